//! Who received what was sent: all messages of a run, by the time at which they were sent.

use anyhow::{Result, bail};
use laggard_engine::events::{Events, Joined, Message as Found, Wait};

/// Most messages that are kept: a quarter of a GB.
const MOST: usize = 8_000_000;
/// Messages of which the latest receipt is known.
const BLOCK: usize = 256;

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

/// The messages of a run.
#[derive(Default)]
pub struct Messages {
    /// By the time at which they were sent.
    all: Vec<Message>,
    /// By block: the latest receipt, ns.
    latest: Vec<i64>,
}

impl Joined for Messages {
    fn message(&mut self, message: &Found) -> Result<()> {
        let done = message
            .receive
            .and_then(|receive| Some((receive, receive.done?)));
        if let (Some(send), Some((receive, done))) = (message.send, done) {
            if self.all.len() == MOST {
                bail!("there are more messages than can be shown");
            }
            self.all.push(Message {
                sent: send.enter,
                received: done.leave,
                from: send.location,
                to: receive.location,
                bytes: send.bytes,
            });
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
    /// The trace cannot be read, or there are too many.
    pub fn of(events: &Events) -> Result<Messages> {
        let mut found = Messages::default();
        events.join(&mut found)?;
        found.all.sort_unstable();
        let latest = found.all.chunks(BLOCK).map(|block| {
            let received = block.iter().map(|message| message.received);
            received.max().unwrap_or(i64::MIN)
        });
        found.latest = latest.collect();
        Ok(found)
    }

    /// Those that are under way in a stretch of time.
    pub fn within(&self, (from, until): (i64, i64)) -> impl Iterator<Item = &Message> {
        let end = self.all.partition_point(|message| message.sent < until);
        let blocks = self.all[..end].chunks(BLOCK).zip(&self.latest);
        let blocks = blocks.filter(move |(_, latest)| **latest >= from);
        let all = blocks.flat_map(|(block, _)| block);
        all.filter(move |message| message.received >= from)
    }
}
