//! Who received what was sent: all messages of a run.
//!
//! *Constraints.* There may be many more than fit into memory. They are in a file without a name, in blocks of a short
//! time and of some senders: what is looked at is in few of them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use laggard_engine::events::{Events, Joined, Message as Found, Piece, Spill, Wait};
use laggard_overlay::Stop;

/// Messages that are kept until they are put away together.
const KEPT: usize = 1 << 20;
/// Most messages of a block.
const BLOCK: usize = 1024;
/// Groups of successive locations whose messages are apart, and the least locations of one.
const GROUPS: usize = 64;
const LEAST: usize = 16;

/// A message that was sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// Enter of the call that sent it, ns.
    pub sent: i64,
    /// Leave of the call that had received it, ns.
    pub received: i64,
    /// Positions of the locations.
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// Messages of one group of senders, by the time at which they were sent.
struct Block {
    group: u32,
    /// The first was sent then, ns.
    sent: i64,
    /// The last was received then, ns.
    received: i64,
    piece: Piece,
}

/// A message in a block: sent so long after the one before it, received so long after that, ns; sender, receiver,
/// bytes.
type Packed = (u64, i64, u32, u32, u64);

/// The messages of a run.
pub struct Messages {
    /// Locations of a group.
    width: u32,
    recent: Vec<Message>,
    blocks: Vec<Block>,
    pieces: Mutex<Spill>,
}

impl Joined for Messages {
    fn message(&mut self, message: &Found) -> Result<()> {
        let done = message
            .receive
            .and_then(|receive| Some((receive, receive.done?)));
        if let (Some(send), Some((receive, done))) = (message.send, done) {
            self.add(Message {
                sent: send.enter,
                received: done.leave,
                from: send.location,
                to: receive.location,
                bytes: send.bytes,
            })?;
        }
        Ok(())
    }

    fn wait(&mut self, _: &Wait) -> Result<()> {
        Ok(())
    }
}

impl Messages {
    /// Of a whole run.
    ///
    /// # Errors
    /// The trace cannot be read, or there is no room for temporary files.
    pub fn of(events: &Events) -> Result<Messages> {
        let mut found = Messages::new(events.locations());
        events.join(&mut found)?;
        found.put_away()?;
        Ok(found)
    }

    fn new(locations: usize) -> Messages {
        Messages {
            width: locations.div_ceil(GROUPS).max(LEAST) as u32,
            recent: Vec::new(),
            blocks: Vec::new(),
            pieces: Mutex::default(),
        }
    }

    fn add(&mut self, message: Message) -> Result<()> {
        self.recent.push(message);
        match self.recent.len() {
            KEPT => self.put_away(),
            _ => Ok(()),
        }
    }

    fn put_away(&mut self) -> Result<()> {
        let width = self.width;
        self.recent
            .sort_unstable_by_key(|message| (message.from / width, *message));
        let pieces = self
            .pieces
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let groups = self
            .recent
            .chunk_by(|one, next| one.from / width == next.from / width);
        for block in groups.flat_map(|group| group.chunks(BLOCK)) {
            let sent = block[0].sent;
            let mut before = sent;
            let packed = block.iter().map(|message| -> Packed {
                let after = message.sent.abs_diff(before);
                before = message.sent;
                let took = message.received.wrapping_sub(message.sent);
                (after, took, message.from, message.to, message.bytes)
            });
            let packed: Vec<Packed> = packed.collect();
            self.blocks.push(Block {
                group: block[0].from / width,
                sent,
                received: block
                    .iter()
                    .fold(i64::MIN, |last, one| last.max(one.received)),
                piece: pieces.put(&postcard::to_stdvec(&packed)?),
            });
        }
        self.recent.clear();
        has_room(pieces)
    }

    /// Those that are under way between some locations in a stretch of time, no more than `most`.
    ///
    /// # Errors
    /// Temporary files cannot be read, or nobody wants the answer any more.
    pub fn within(
        &self,
        (from, until): (i64, i64),
        among: &Range<u32>,
        most: usize,
        stop: &Stop,
    ) -> Result<Vec<Message>> {
        let groups = among.start / self.width..among.end.div_ceil(self.width);
        let seen = self.blocks.iter().filter(|block| {
            block.sent < until && block.received >= from && groups.contains(&block.group)
        });
        let mut found = Vec::new();
        for block in seen {
            stop.check()?;
            let mut time = block.sent;
            let all = self.read(block)?.into_iter();
            let all = all.map(|(after, took, from, to, bytes)| {
                time = time.wrapping_add_unsigned(after);
                Message {
                    sent: time,
                    received: time.wrapping_add(took),
                    from,
                    to,
                    bytes,
                }
            });
            found.extend(all.filter(|one| {
                let is_seen = one.sent < until && one.received >= from;
                is_seen && among.contains(&one.from) && among.contains(&one.to)
            }));
            if found.len() >= most {
                break;
            }
        }
        found.sort_unstable();
        found.truncate(most);
        Ok(found)
    }

    fn read(&self, block: &Block) -> Result<Vec<Packed>> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = pieces.get(block.piece);
        has_room(&mut pieces)?;
        Ok(postcard::from_bytes(&bytes)?)
    }
}

fn has_room(pieces: &mut Spill) -> Result<()> {
    match pieces.error.take() {
        Some(error) => {
            bail!("no room for temporary files ({error}): set TMPDIR to a directory with more")
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than are kept at a time, among more locations than are in a group.
    #[test]
    fn all_that_are_under_way_are_found() {
        const LOCATIONS: u32 = 200;
        let message = |n: u32| {
            let sent = i64::from(n / LOCATIONS) * 100 + i64::from(n.wrapping_mul(7919) % 90);
            // Some take a thousand times as long.
            let took = if n.is_multiple_of(1009) { 50_000 } else { 50 };
            Message {
                sent,
                received: sent + took,
                from: n % LOCATIONS,
                to: (n * 31 + n / LOCATIONS) % LOCATIONS,
                bytes: n.into(),
            }
        };
        let count = KEPT as u32 * 5 / 4;
        let mut messages = Messages::new(LOCATIONS as usize);
        (0..count).for_each(|n| messages.add(message(n)).unwrap());
        messages.put_away().unwrap();
        let end = i64::from(count / LOCATIONS) * 100;
        for (from, until, among) in [
            (end / 2, end / 2 + 300, 0..16),
            (end / 2, end / 2 + 1000, 10..41),
            (end / 5 * 4 - 200, end / 5 * 4 + 200, 0..200),
            (0, 30_000, 190..200),
            (end + 40_000, end + 90_000, 0..200),
        ] {
            let is_seen = |one: &Message| {
                let is_among = among.contains(&one.from) && among.contains(&one.to);
                is_among && one.sent < until && one.received >= from
            };
            let mut expected: Vec<Message> = (0..count).map(message).filter(is_seen).collect();
            expected.sort_unstable();
            assert!(!expected.is_empty(), "{from} {among:?}");
            let found = |most| {
                let stop = Stop::default();
                messages.within((from, until), &among, most, &stop).unwrap()
            };
            assert_eq!(found(usize::MAX), expected);
            assert_eq!(found(1).len(), 1);
        }
        let stop = Stop::default();
        stop.stop();
        assert!(messages.within((0, end), &(0..10), 9, &stop).is_err());
    }
}
