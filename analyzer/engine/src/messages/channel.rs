//! Channels: one direction of messages with one tag on one communicator.
//!
//! The n-th send on a channel matches the n-th receive in posting order. Both ends count. An end is
//! kept until the other side reports that it will not ask for it any more.

use laggard_trace::{PEER_FOREIGN, Signature, flags};
use rustc_hash::FxHashMap;

use crate::basics::ends::{End, NONE};
use crate::basics::queue::Queue;
use crate::messages::questions::Query;

/// Key of a channel at one of its ends: communicator, peer, tag.
pub type ChannelKey = (u64, i32, i32);

/// One end of a channel.
#[derive(Debug)]
pub struct Channel {
    /// Communicator, peer, tag.
    pub key: ChannelKey,
    /// The agent that holds the peer; `NONE` if it has no trace.
    pub agent: u32,
    /// Number of the channel declared by this agent to `agent`, `NONE` = not declared. If both
    /// agents are the same, the peer's number of the channel.
    pub declared: u32,
    /// Position of a peer at this agent, once `declared`.
    pub peer: u32,
    /// Number of the next message.
    pub next: u64,
    /// The last messages, up to `next`.
    ends: Queue<End>,
    /// Whether the channel is in the list of those with progress to report.
    pub touched: bool,
    /// The peer will not ask for messages before this one; `u64::MAX` if it has no trace.
    past: u64,
    /// Number of messages that the peer counted at the end of its trace.
    pub final_count: Option<u64>,
    /// Open questions to another agent, in order.
    pub asked: Queue<Query>,
    /// Number of unsent questions, at the end of `asked`.
    pub unsent: u32,
}

impl Channel {
    /// Removes the question about message `n`, which is answered.
    #[inline]
    pub fn take_asked(&mut self, n: u64) -> Option<Query> {
        let at = self.asked.iter().position(|query| query.n == n)?;
        Some(self.asked.remove(at))
    }

    /// Sends the unsent questions, successive messages together: first one and count.
    pub fn take_unsent(&mut self, mut send: impl FnMut(u64, u32)) {
        let first = self.asked.len() - std::mem::take(&mut self.unsent) as usize;
        let mut range: Option<(u64, u32)> = None;
        for query in &self.asked[first..] {
            match &mut range {
                Some((n, count)) if *n + u64::from(*count) == query.n => *count += 1,
                _ => {
                    if let Some((n, count)) = range.replace((query.n, 1)) {
                        send(n, count);
                    }
                }
            }
        }
        if let Some((n, count)) = range {
            send(n, count);
        }
    }

    /// Counts a message and keeps its end.
    #[inline(always)]
    fn push(&mut self, end: End) -> u64 {
        let n = self.next;
        self.next += 1;
        if n >= self.past {
            self.ends.push(end);
        }
        n
    }

    /// Number of the first message in `ends`.
    #[inline]
    fn base(&self) -> u64 {
        self.next - self.ends.len() as u64
    }

    /// The end of message `n`, if it happened and is still kept.
    #[inline]
    pub fn get(&self, n: u64) -> Option<&End> {
        self.ends
            .get(usize::try_from(n.checked_sub(self.base())?).ok()?)
    }

    /// The ends of messages from `n` on; none if message `n` is not kept.
    pub fn since(&self, n: u64) -> &[End] {
        let at = n.checked_sub(self.base()).map(usize::try_from);
        at.and_then(|at| self.ends.get(at.ok()?..)).unwrap_or(&[])
    }

    /// The peer will not ask for messages before `n`.
    pub fn release(&mut self, n: u64) {
        self.past = self.past.max(n);
        let past = self.past.saturating_sub(self.base());
        let past = usize::try_from(past).unwrap_or(usize::MAX);
        self.ends.drop_first(past);
    }
}

/// Up to this number, channels are searched linearly: most of the many ranks have few.
const FEW: usize = 8;

/// The channels of a rank in one direction.
#[derive(Debug, Default)]
pub struct Channels {
    /// Numbers of all channels, once there are more than `FEW`.
    numbers: FxHashMap<ChannelKey, u32>,
    /// Channels by number.
    pub list: Vec<Channel>,
    /// Channels whose counts changed since progress was last reported.
    pub touched: Vec<u32>,
    /// Every message counted by [`Channels::count`], if requested.
    pub counted: Option<Vec<Counted>>,
}

impl Channels {
    /// Frees what only further messages need.
    pub fn free(&mut self) {
        for channel in &mut self.list {
            channel.ends.shrink();
            channel.asked.shrink();
        }
        self.touched = Vec::new();
    }

    /// The number of a channel; `agent_of` says where the peer's trace is.
    pub fn number(&mut self, key: ChannelKey, agent_of: &[u32]) -> u32 {
        if let Some(number) = self.find(key) {
            return number;
        }
        let agent = usize::try_from(key.1)
            .ok()
            .and_then(|peer| agent_of.get(peer));
        let agent = agent.copied().unwrap_or(NONE);
        self.list.push(Channel {
            key,
            agent,
            declared: NONE,
            peer: NONE,
            next: 0,
            ends: Queue::default(),
            touched: false,
            past: if agent == NONE { u64::MAX } else { 0 },
            final_count: None,
            asked: Queue::default(),
            unsent: 0,
        });
        let number = self.list.len() as u32 - 1;
        if self.list.len() > FEW {
            let begun = self.numbers.len();
            let further = (begun as u32..).zip(&self.list[begun..]);
            self.numbers
                .extend(further.map(|(number, channel)| (channel.key, number)));
        }
        number
    }

    fn find(&self, key: ChannelKey) -> Option<u32> {
        if self.list.len() > FEW {
            return self.numbers.get(&key).copied();
        }
        let at = self.list.iter().position(|channel| channel.key == key);
        at.map(|at| at as u32)
    }

    /// The channel of a signature's send half, if it is a message.
    pub fn of_send(&mut self, signature: &Signature, agent_of: &[u32]) -> u32 {
        if !signature.has(flags::SENDS) || !is_somebody(signature.send.peer) {
            return NONE;
        }
        self.number(
            (signature.group, signature.send.peer, signature.send.tag),
            agent_of,
        )
    }

    /// The channel of a signature's receive half, if it is a message and definite.
    pub fn of_receive(&mut self, signature: &Signature, agent_of: &[u32]) -> u32 {
        let receive = signature.receive;
        if !signature.has(flags::RECEIVES) || !is_somebody(receive.peer) || receive.tag < 0 {
            return NONE;
        }
        self.number((signature.group, receive.peer, receive.tag), agent_of)
    }

    /// Counts a message on a channel and keeps its end.
    #[inline(always)]
    pub fn push(&mut self, number: u32, end: End) -> u64 {
        let channel = &mut self.list[number as usize];
        if !channel.touched {
            channel.touched = true;
            self.touched.push(number);
        }
        channel.push(end)
    }

    /// As `push`, but also notes the message if requested.
    pub fn count(&mut self, number: u32, end: End) -> u64 {
        let n = self.push(number, end);
        if let Some(counted) = &mut self.counted {
            counted.push(Counted {
                channel: number,
                n,
                end,
            });
        }
        n
    }

    /// Notes that a channel's counts changed.
    #[inline]
    pub fn touch(&mut self, number: u32) {
        let channel = &mut self.list[number as usize];
        if !channel.touched {
            channel.touched = true;
            self.touched.push(number);
        }
    }
}

/// Whether a peer is one that a message comes from or goes to. Who is no rank of this run has no trace.
#[inline]
pub fn is_somebody(peer: i32) -> bool {
    peer >= 0 || peer == PEER_FOREIGN
}

/// A counted end of a message.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Number of the channel.
    pub channel: u32,
    /// Number of the message on it.
    pub n: u64,
    /// The call.
    pub end: End,
}

/// Tag of the channel from target to origin: an end is a MPI_Win_post.
pub const POSTED: i32 = -1001;

/// From origin to target: an end is a MPI_Win_complete.
pub const COMPLETED: i32 = -1002;

/// From origin to target: the end's time is when the last transfer of an epoch left, or
/// [`NO_TRANSFER`].
pub const TRANSFERRED: i32 = -1003;

/// In place of the time of an epoch's last transfer: there was none. Before all times, and differences
/// with times fit.
pub const NO_TRANSFER: i64 = i64::MIN / 4;
