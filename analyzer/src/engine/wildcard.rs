//! Receives whose place in their channel is not known yet.
//!
//! Matching is in posting order, but a wildcard receive says only when it completes
//! on which channel it was. Until then it, and what was posted after it and could
//! be on the same channel, has no number.

use std::collections::VecDeque;

use super::calls::Token;
use super::channel::{ChannelKey, End};

/// A completed receive that may still be without a number.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// The call that completed it: thread and number.
    pub call: (u32, u64),
    /// What the answer is for, if it is asked about.
    pub message: Option<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unresolved,
    Resolved(u32),
    Numbered(u64),
    Dead,
}

#[derive(Debug)]
struct Slot {
    key: ChannelKey,
    state: State,
    end: End,
    peeks: bool,
    receipt: Option<Receipt>,
    completed: bool,
}

/// A receive that can be numbered now.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its slot.
    pub slot: u64,
    /// Its posting.
    pub end: End,
    /// Its channel.
    pub channel: u32,
    /// Whether it leaves the message in the queue.
    pub peeks: bool,
}

/// The receives of a rank, in posting order, from the first without a number on.
#[derive(Debug, Default)]
pub struct Deferred {
    slots: VecDeque<Slot>,
    base: u64,
    unresolved: usize,
}

/// Whether a receive posted for `pattern` can match a message on `key`.
fn matches(pattern: ChannelKey, key: ChannelKey) -> bool {
    pattern.0 == key.0
        && (pattern.1 < 0 || pattern.1 == key.1)
        && (pattern.2 < 0 || pattern.2 == key.2)
}

impl Deferred {
    /// Adds a posted receive; `channel` if it is known already.
    pub fn post(&mut self, channel: Option<u32>, key: ChannelKey, end: End, peeks: bool) -> u64 {
        let state = match channel {
            Some(channel) => State::Resolved(channel),
            None => {
                self.unresolved += 1;
                State::Unresolved
            }
        };
        self.slots.push_back(Slot {
            key,
            state,
            end,
            peeks,
            receipt: None,
            completed: peeks,
        });
        self.base + self.slots.len() as u64 - 1
    }

    /// Whether no receive waits for its number or its completion.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether a receive on this channel has to wait for its number.
    #[inline]
    pub fn blocks(&self, key: ChannelKey) -> bool {
        self.unresolved > 0
            && self
                .slots
                .iter()
                .any(|s| s.state == State::Unresolved && matches(s.key, key))
    }

    fn slot(&mut self, slot: u64) -> Option<&mut Slot> {
        self.slots
            .get_mut(usize::try_from(slot.checked_sub(self.base)?).ok()?)
    }

    /// The channel of a receive, if known.
    pub fn channel(&mut self, slot: u64) -> Option<u32> {
        match self.slot(slot)?.state {
            State::Resolved(channel) => Some(channel),
            _ => None,
        }
    }

    /// What a receive was posted for.
    pub fn key(&mut self, slot: u64) -> Option<ChannelKey> {
        Some(self.slot(slot)?.key)
    }

    /// A wildcard receive turned out to be on this channel.
    pub fn resolve(&mut self, slot: u64, channel: u32, key: ChannelKey) {
        let Some(found) = self.slot(slot) else { return };
        if found.state == State::Unresolved {
            found.state = State::Resolved(channel);
            found.key = key;
            self.unresolved -= 1;
        }
    }

    /// A receive completed; gives its number if it has one.
    pub fn complete(&mut self, slot: u64, receipt: Receipt) -> Option<u64> {
        let found = self.slot(slot)?;
        found.completed = true;
        if let State::Numbered(n) = found.state {
            return Some(n);
        }
        found.receipt = Some(receipt);
        None
    }

    /// A receive never gets a message.
    pub fn cancel(&mut self, slot: u64) {
        let Some(found) = self.slot(slot) else { return };
        if found.state == State::Unresolved {
            self.unresolved -= 1;
        }
        let Some(found) = self.slot(slot) else { return };
        found.state = State::Dead;
    }

    /// The receives that no earlier unresolved one holds up any more, in posting order.
    pub fn take_ready(&self) -> Vec<Ready> {
        let mut ready = Vec::new();
        let mut ahead: Vec<ChannelKey> = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            match slot.state {
                State::Unresolved => ahead.push(slot.key),
                State::Resolved(channel) if !ahead.iter().any(|&p| matches(p, slot.key)) => {
                    let slot_number = self.base + at as u64;
                    ready.push(Ready {
                        slot: slot_number,
                        end: slot.end,
                        channel,
                        peeks: slot.peeks,
                    });
                }
                _ => {}
            }
        }
        ready
    }

    /// Gives a receive its number; its receipt if it completed before.
    pub fn number(&mut self, slot: u64, n: u64) -> Option<Receipt> {
        let found = self.slot(slot)?;
        found.state = State::Numbered(n);
        found.receipt.take()
    }

    /// Numbered receives that are not completed: their channel's place is held open.
    pub fn numbered_open(&self) -> impl Iterator<Item = (ChannelKey, u64)> {
        self.slots.iter().filter_map(|slot| match slot.state {
            State::Numbered(n) if !slot.completed => Some((slot.key, n)),
            _ => None,
        })
    }

    /// Forgets the receives at the front that are done with.
    pub fn trim(&mut self) {
        while let Some(slot) = self.slots.front() {
            let done = match slot.state {
                State::Numbered(_) => slot.completed,
                State::Dead => true,
                _ => false,
            };
            if !done {
                return;
            }
            self.slots.pop_front();
            self.base += 1;
        }
    }

    /// At the end of the trace: what is unresolved never was received.
    pub fn abandon_unresolved(&mut self) -> Vec<(ChannelKey, End)> {
        let mut abandoned = Vec::new();
        for slot in &mut self.slots {
            if slot.state == State::Unresolved {
                slot.state = State::Dead;
                abandoned.push((slot.key, slot.end));
            }
        }
        self.unresolved = 0;
        abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(time: i64) -> End {
        End {
            time,
            event: 0,
            signature: 1,
            thread: 0,
        }
    }

    fn receipt() -> Receipt {
        Receipt {
            call: (0, 0),
            message: None,
        }
    }

    #[test]
    fn a_definite_receive_waits_for_the_wildcard_before_it() {
        let mut deferred = Deferred::default();
        let wild = deferred.post(None, (1, -1, 7), end(0), false);
        assert!(
            deferred.blocks((1, 3, 7))
                && !deferred.blocks((1, 3, 8))
                && !deferred.blocks((2, 3, 7))
        );
        let definite = deferred.post(Some(5), (1, 3, 7), end(1), false);
        assert!(deferred.complete(definite, receipt()).is_none());
        assert!(deferred.take_ready().is_empty());
        deferred.resolve(wild, 5, (1, 3, 7));
        let ready: Vec<u64> = deferred.take_ready().iter().map(|r| r.slot).collect();
        assert_eq!(ready, [wild, definite]);
        assert!(deferred.number(wild, 0).is_none());
        assert!(deferred.number(definite, 1).is_some());
        assert_eq!(deferred.complete(wild, receipt()), Some(0));
        deferred.trim();
        assert!(deferred.slots.is_empty() && !deferred.blocks((1, 3, 7)));
    }

    #[test]
    fn a_cancelled_receive_takes_no_number() {
        let mut deferred = Deferred::default();
        let cancelled = deferred.post(None, (1, 2, 3), end(0), false);
        let after = deferred.post(Some(0), (1, 2, 3), end(1), false);
        deferred.cancel(cancelled);
        assert_eq!(deferred.take_ready()[0].slot, after);
        assert!(deferred.abandon_unresolved().is_empty());
    }
}
