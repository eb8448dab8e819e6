//! Receives whose place in their channel is not known yet.
//!
//! Matching is in posting order, but a wildcard receive gets its channel only on completion. Until
//! then it has no number, nor have later receives that could be on the same channel.
//!
//! A receive is held up by the first unresolved one of each pattern that fits it. It waits at one
//! such pattern at a time, and at each at most once: when the pattern's first unresolved receive is
//! a later one, it never holds it up again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;

use crate::basics::ends::End;
use crate::messages::channel::ChannelKey;
use crate::messages::charges::Token;
use crate::waits::log::{Ended, Subject};

/// Completion of a receive that may still be without a number.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// The call that completed it: thread and number.
    pub call: (u32, u64),
    /// Enter and leave of that call, ns.
    pub times: (i64, i64),
    /// Target of the answer, if there is a question.
    pub message: Option<Token>,
}

impl Receipt {
    /// The end of a message's receipt by this call.
    pub fn ended(&self, channel: u32, n: u64) -> Ended {
        let (enter, leave) = self.times;
        Ended {
            subject: Subject::Received(channel, n),
            number: self.call.1,
            enter,
            leave,
        }
    }
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

/// A receive that can get its number now.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub slot: u64,
    /// Its posting.
    pub end: End,
    pub channel: u32,
    /// Whether it leaves the message in the queue.
    pub peeks: bool,
}

/// The unresolved receives posted for one pattern, and the receives that wait for them.
#[derive(Debug, Default)]
struct Pattern {
    /// In posting order; the first is unresolved.
    unresolved: VecDeque<u64>,
    /// Resolved receives held up by the first of them.
    waiting: BinaryHeap<Reverse<u64>>,
}

/// The receives of a rank, in posting order, from the first without a number on.
#[derive(Debug, Default)]
pub struct Deferred {
    slots: VecDeque<Slot>,
    base: u64,
    /// Patterns with unresolved receives.
    patterns: FxHashMap<ChannelKey, Pattern>,
    /// Resolved receives that nothing holds up.
    ready: Vec<u64>,
}

/// The patterns that a message on `key` fits.
fn fitting(key: ChannelKey) -> [ChannelKey; 4] {
    let (group, peer, tag) = key;
    [key, (group, -1, tag), (group, peer, -1), (group, -1, -1)]
}

impl Deferred {
    /// Adds a posted receive; `channel` if it is known already.
    pub fn post(&mut self, channel: Option<u32>, key: ChannelKey, end: End, peeks: bool) -> u64 {
        let slot = self.base + self.slots.len() as u64;
        self.slots.push_back(Slot {
            key,
            state: channel.map_or(State::Unresolved, State::Resolved),
            end,
            peeks,
            receipt: None,
            completed: peeks,
        });
        match channel {
            Some(_) => self.hold_up(slot, key),
            None => {
                let pattern = self.patterns.entry(key).or_default();
                pattern.unresolved.push_back(slot);
            }
        }
        slot
    }

    /// Lets a resolved receive wait at a pattern that holds it up.
    fn hold_up(&mut self, slot: u64, key: ChannelKey) {
        for pattern in fitting(key) {
            if let Some(pattern) = self.patterns.get_mut(&pattern)
                && pattern
                    .unresolved
                    .front()
                    .is_some_and(|&first| first < slot)
            {
                return pattern.waiting.push(Reverse(slot));
            }
        }
        self.ready.push(slot);
    }

    /// A receive of this pattern was resolved: releases the receives that it held up.
    fn advance(&mut self, key: ChannelKey) {
        let Some(mut pattern) = self.patterns.remove(&key) else {
            return;
        };
        while let Some(&first) = pattern.unresolved.front() {
            if self
                .slot(first)
                .is_some_and(|slot| slot.state == State::Unresolved)
            {
                break;
            }
            pattern.unresolved.pop_front();
        }
        let first = pattern.unresolved.front().copied();
        let mut released = Vec::new();
        while let Some(&Reverse(slot)) = pattern.waiting.peek() {
            if first.is_some_and(|first| first < slot) {
                break;
            }
            pattern.waiting.pop();
            released.push(slot);
        }
        if first.is_some() {
            self.patterns.insert(key, pattern);
        }
        for slot in released {
            if let Some(key) = self.key(slot) {
                self.hold_up(slot, key);
            }
        }
    }

    /// Whether no receive waits for its number or its completion.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether a receive on this channel has to wait for its number.
    #[inline]
    pub fn blocks(&self, key: ChannelKey) -> bool {
        !self.patterns.is_empty()
            && fitting(key)
                .iter()
                .any(|pattern| self.patterns.contains_key(pattern))
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

    /// The pattern of a receive.
    pub fn key(&mut self, slot: u64) -> Option<ChannelKey> {
        Some(self.slot(slot)?.key)
    }

    /// A wildcard receive turned out to be on this channel.
    pub fn resolve(&mut self, slot: u64, channel: u32, key: ChannelKey) {
        let Some(found) = self.slot(slot) else { return };
        if found.state == State::Unresolved {
            found.state = State::Resolved(channel);
            let pattern = std::mem::replace(&mut found.key, key);
            self.advance(pattern);
            self.hold_up(slot, key);
        }
    }

    /// Completes a receive; returns its number if it has one.
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
        let key = found.key;
        if std::mem::replace(&mut found.state, State::Dead) == State::Unresolved {
            self.advance(key);
        }
    }

    /// Takes the receives that are no longer held up, in posting order.
    pub fn take_ready(&mut self) -> Vec<Ready> {
        let mut slots = std::mem::take(&mut self.ready);
        slots.sort_unstable();
        let ready = slots.into_iter().filter_map(|number| {
            let slot = self.slot(number)?;
            match slot.state {
                State::Resolved(channel) => Some(Ready {
                    slot: number,
                    end: slot.end,
                    channel,
                    peeks: slot.peeks,
                }),
                _ => None,
            }
        });
        ready.collect()
    }

    /// Numbers a receive; returns its receipt if it completed before.
    pub fn number(&mut self, slot: u64, n: u64) -> Option<Receipt> {
        let found = self.slot(slot)?;
        found.state = State::Numbered(n);
        found.receipt.take()
    }

    /// Numbered receives that are not complete. They hold their channel's progress back.
    pub fn numbered_open(&self) -> impl Iterator<Item = (ChannelKey, u64)> {
        self.slots.iter().filter_map(|slot| match slot.state {
            State::Numbered(n) if !slot.completed => Some((slot.key, n)),
            _ => None,
        })
    }

    /// Drops finished receives at the front.
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

    /// At the end of the trace: removes unresolved receives, which never got a message.
    pub fn abandon_unresolved(&mut self) -> Vec<(ChannelKey, End)> {
        let mut abandoned = Vec::new();
        for slot in &mut self.slots {
            if slot.state == State::Unresolved {
                slot.state = State::Dead;
                abandoned.push((slot.key, slot.end));
            }
        }
        for (_, pattern) in std::mem::take(&mut self.patterns) {
            self.ready
                .extend(pattern.waiting.iter().map(|&Reverse(slot)| slot));
        }
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
            times: (0, 0),
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

    /// A simple model: searches all earlier receives.
    #[derive(Default)]
    struct Model(Vec<(ChannelKey, State)>);

    impl Model {
        fn take_ready(&mut self) -> Vec<u64> {
            let fits = |pattern: ChannelKey, key: ChannelKey| fitting(key).contains(&pattern);
            let mut ready = Vec::new();
            for at in 0..self.0.len() {
                let (key, state) = self.0[at];
                let free = |&(pattern, state): &(ChannelKey, State)| {
                    state != State::Unresolved || !fits(pattern, key)
                };
                if matches!(state, State::Resolved(_)) && self.0[..at].iter().all(free) {
                    self.0[at].1 = State::Numbered(0);
                    ready.push(at as u64);
                }
            }
            ready
        }
    }

    #[test]
    fn receives_are_held_up_as_a_scan_of_all_tells() {
        let mut random = 7u64;
        let mut draw = |n: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % n
        };
        for _ in 0..300 {
            let (mut deferred, mut model) = (Deferred::default(), Model::default());
            for _ in 0..60 {
                let key = (1, draw(2) as i32, draw(2) as i32);
                let open =
                    |(_, (_, state)): &(usize, &(ChannelKey, State))| *state == State::Unresolved;
                let unresolved: Vec<usize> = model
                    .0
                    .iter()
                    .enumerate()
                    .filter(open)
                    .map(|(at, _)| at)
                    .collect();
                let pick = unresolved.get(draw(60) as usize).copied();
                match (draw(8), pick) {
                    (0, Some(at)) => {
                        deferred.cancel(at as u64);
                        model.0[at].1 = State::Dead;
                    }
                    (1..=3, Some(at)) => {
                        let (group, peer, tag) = model.0[at].0;
                        let key = (
                            group,
                            if peer < 0 { key.1 } else { peer },
                            if tag < 0 { key.2 } else { tag },
                        );
                        deferred.resolve(at as u64, 5, key);
                        model.0[at] = (key, State::Resolved(5));
                    }
                    (4, _) => {
                        deferred.post(Some(5), key, end(0), false);
                        model.0.push((key, State::Resolved(5)));
                    }
                    _ => {
                        let wild =
                            [(1, -1, key.2), (1, key.1, -1), (1, -1, -1), key][draw(4) as usize];
                        deferred.post(None, wild, end(0), false);
                        model.0.push((wild, State::Unresolved));
                    }
                }
                let ready: Vec<u64> = deferred
                    .take_ready()
                    .iter()
                    .map(|ready| ready.slot)
                    .collect();
                assert_eq!(ready, model.take_ready());
                for slot in ready {
                    deferred.number(slot, 0);
                }
            }
            deferred.abandon_unresolved();
            model
                .0
                .iter_mut()
                .filter(|(_, state)| *state == State::Unresolved)
                .for_each(|slot| slot.1 = State::Dead);
            let ready: Vec<u64> = deferred
                .take_ready()
                .iter()
                .map(|ready| ready.slot)
                .collect();
            assert_eq!(ready, model.take_ready());
        }
    }

    /// Time in seconds for `n` outstanding wildcards and as many definite receives behind them,
    /// completed in order, backwards, and in a mixed order.
    fn seconds(n: u64) -> f64 {
        let orders: [fn(u64, u64) -> u64; 3] = [|i, _| i, |i, n| n - 1 - i, |i, n| i * 7919 % n];
        let started = std::time::Instant::now();
        for order in orders {
            let mut deferred = Deferred::default();
            for i in 0..n {
                deferred.post(None, (1, -1, 7), end(i as i64), false);
            }
            for i in 0..n {
                let key = (1, (i % 100) as i32, 7);
                assert!(deferred.blocks(key));
                deferred.post(Some(0), key, end(0), false);
            }
            let mut numbered = 0;
            for i in 0..n {
                let slot = order(i, n);
                deferred.resolve(slot, 0, (1, (slot % 100) as i32, 7));
                deferred.complete(slot, receipt());
                for ready in deferred.take_ready() {
                    deferred.number(ready.slot, numbered);
                    numbered += 1;
                }
                deferred.trim();
            }
            assert_eq!(numbered, 2 * n);
        }
        started.elapsed().as_secs_f64()
    }

    /// Sixteen times the receives take about sixteen times as long, and not 256 times.
    #[test]
    fn the_time_grows_with_the_receives_and_not_with_their_square() {
        // A busy machine can disturb some measurements, but not all.
        let ratios: Vec<f64> = (0..5).map(|_| seconds(64_000) / seconds(4_000)).collect();
        assert!(ratios.iter().any(|&ratio| ratio < 64.0), "{ratios:?}");
    }
}
