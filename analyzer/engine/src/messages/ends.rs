//! The messages of one rank: both ends of its channels, its questions, and its answers.

use rustc_hash::FxHashMap;

use crate::basics::ends::{End, NONE};
use crate::messages::channel::{Channel, ChannelKey, Channels};
use crate::messages::questions::Asker;
use crate::messages::wildcard::Deferred;
use crate::stream::recorded::Recorded;
use crate::stream::thread::Posted;
use crate::wire::parcels::{POST, Progress, Question, Reply, SEND, Side};

/// The messages of one rank.
#[derive(Debug, Default)]
pub struct Messages {
    pub sends: Channels,
    pub receives: Channels,
    /// Receives without a known number.
    pub deferred: Deferred,
    /// Whether non-blocking receives may be cancelled: then they get a number only on completion.
    pub cancels: bool,
    /// Its questions and results.
    pub asker: Asker,
    /// Other agents' questions about messages that have not happened yet.
    pub waiting: Vec<Asked>,
    /// Progress that peers reported in this round: channel, side, entry.
    noted: Vec<(u32, Side, Progress)>,
    /// Wildcard receives that were never completed.
    pub abandoned: Vec<(ChannelKey, End)>,
}

/// A received question, or its unanswered rest.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The agent that asks.
    pub agent: u32,
    /// The answering rank's channel.
    pub channel: u32,
    /// The side asked about.
    pub side: Side,
    pub question: Question,
}

impl Asked {
    /// Removes the messages whose ends happened from the question. Returns the reply to them, if
    /// there are any, and adds their times.
    pub fn answer(&mut self, messages: &Messages, times: &mut Vec<i64>) -> Option<Reply> {
        let Question { channel, count, n } = self.question;
        let before = times.len();
        let ends = messages.answers_on(self.side).list[self.channel as usize].since(n);
        times.extend(ends.iter().take(count as usize).map(|end| end.time));
        let answered = (times.len() - before) as u32;
        self.question.n += u64::from(answered);
        self.question.count -= answered;
        (answered > 0).then_some(Reply {
            channel,
            count: answered,
            n,
        })
    }
}

impl Messages {
    /// No messages yet; the rank asks with `asker`.
    pub fn new(asker: Asker) -> Messages {
        Messages {
            asker,
            ..Messages::default()
        }
    }

    /// The channels on which this rank asks.
    #[inline]
    pub fn asks_on(&self, side: Side) -> &Channels {
        match side {
            SEND => &self.receives,
            _ => &self.sends,
        }
    }

    /// See [`Messages::asks_on`].
    pub fn asks_on_mut(&mut self, side: Side) -> &mut Channels {
        match side {
            SEND => &mut self.receives,
            _ => &mut self.sends,
        }
    }

    /// The channel with this key, for questions from other ranks.
    pub fn channel(&mut self, key: ChannelKey, side: Side, agent_of: &[u32]) -> u32 {
        self.answers_on_mut(side).number(key, agent_of)
    }

    /// Tag of a channel on which this rank answers.
    pub fn tag_of(&self, side: Side, channel: u32) -> i32 {
        self.answers_on(side).list[channel as usize].key.2
    }

    #[inline]
    fn answers_on(&self, side: Side) -> &Channels {
        match side {
            SEND => &self.sends,
            _ => &self.receives,
        }
    }

    fn answers_on_mut(&mut self, side: Side) -> &mut Channels {
        match side {
            SEND => &mut self.sends,
            _ => &mut self.receives,
        }
    }

    /// The end of a message on a channel on which this rank answers, if it happened already.
    #[inline]
    pub fn end(&self, channel: u32, side: Side, n: u64) -> Option<&End> {
        self.answers_on(side).list[channel as usize].get(n)
    }

    /// Reports, for each channel with new counts, the first message that may still be asked about.
    /// In the `last` round, reports the final counts of all channels. The side is that of
    /// questions.
    pub fn progress(
        &mut self,
        own: &Recorded,
        held: impl Iterator<Item = (u32, u64)>,
        last: bool,
        mut report: impl FnMut(u32, &mut Channel, Side, u64),
    ) {
        let mut open_receives: FxHashMap<u32, u64> = FxHashMap::default();
        let mut open_sends: FxHashMap<u32, u64> = FxHashMap::default();
        let hold = |open: &mut FxHashMap<u32, u64>, channel: u32, n: u64| {
            let first = open.entry(channel).or_insert(n);
            *first = n.min(*first);
        };
        if !last {
            for posted in own.threads.iter().flat_map(|thread| thread.posted.iter()) {
                match *posted {
                    Posted::Send { channel, n, .. } => hold(&mut open_sends, channel, n),
                    Posted::Receive { channel, n } => hold(&mut open_receives, channel, n),
                    _ => {}
                }
            }
            let deferred: Vec<_> = self.deferred.numbered_open().collect();
            for (key, n) in deferred {
                let channel = self.receives.number(key, own.agent_of);
                hold(&mut open_receives, channel, n);
            }
            for (channel, n) in held {
                hold(&mut open_receives, channel, n);
            }
            for (side, channel, n) in self.asker.waits_for() {
                let open = match side {
                    SEND => &mut open_receives,
                    _ => &mut open_sends,
                };
                hold(open, channel, n);
            }
        }
        for (channels, open, side) in [
            (&mut self.receives, open_receives, SEND),
            (&mut self.sends, open_sends, POST),
        ] {
            let touched = std::mem::take(&mut channels.touched);
            let numbers = if last {
                (0..channels.list.len() as u32).collect()
            } else {
                touched
            };
            for number in numbers {
                let channel = &mut channels.list[number as usize];
                channel.touched = false;
                if channel.agent == NONE {
                    continue;
                }
                let n = open.get(&number).copied().unwrap_or(channel.next);
                report(number, channel, side, n);
                if n < channel.next {
                    channels.touch(number);
                }
            }
        }
    }

    /// Notes a peer's progress; it takes effect once this round's questions are answered.
    pub fn note_progress(&mut self, channel: u32, side: Side, entry: &Progress) {
        self.noted.push((channel, side, *entry));
    }

    /// Drops ends that peers will not ask for. An open question about a message that has not
    /// happened holds its channel's progress back.
    pub fn release_past(&mut self) {
        let mut asked: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for waiting in &self.waiting {
            let first = asked
                .entry((waiting.channel, waiting.side))
                .or_insert(u64::MAX);
            *first = waiting.question.n.min(*first);
        }
        for (channel, side, entry) in std::mem::take(&mut self.noted) {
            let first = asked.get(&(channel, side)).copied().unwrap_or(u64::MAX);
            let end = &mut self.answers_on_mut(side).list[channel as usize];
            if entry.last != 0 {
                end.final_count = Some(entry.n);
            }
            end.release(entry.n.min(first));
            if first < entry.n {
                self.noted.push((channel, side, entry));
            }
        }
    }
}
