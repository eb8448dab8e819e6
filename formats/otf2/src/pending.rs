//! Calls that have returned but are not written yet. An archive gives the source of a receive,
//! or the communicator of a collective, only when the request completes.
//!
//! Later calls wait, too, so that records stand in the order in which calls returned, and each
//! record of a request is complete. The number of waiting calls is limited to bound memory.

use std::collections::VecDeque;

use laggard_trace::{Counts, Endpoint, OUTCOME_CANCELLED, PEER_ANY, Signature, TAG_ANY, flags};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::events::Told;

/// Flags of receives with wildcards.
const ANY: u16 = flags::ANY_SOURCE | flags::ANY_TAG;

/// Most waiting calls, and most repetitions of them.
const MOST: usize = 1 << 18;
const MOST_AGAIN: usize = 1 << 23;

/// A request that a call completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its post number, from 0.
    pub post: u64,
    /// Outcome as in a completion list.
    pub outcome: u32,
}

/// A call that has returned, or one of several requests that it posted.
#[derive(Clone, Debug)]
pub struct Done {
    /// Entry, ticks.
    pub enter: u64,
    /// Exit, ticks.
    pub leave: u64,
    /// The signature, without id and completion list.
    pub signature: Signature,
    /// Requests that it completed.
    pub completes: SmallVec<[Completed; 2]>,
    /// Attributes of an OpenSHMEM call.
    pub told: Told,
    /// Computation before it, by call path: its id, and ticks.
    pub computed: Vec<(u32, u64)>,
    /// What was counted before it.
    pub counted: Counts,
    /// Samples before it: call path, and ticks.
    pub sampled: Vec<(u32, u64)>,
}

/// Facts about a request from its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing new.
    AsPosted,
    /// The message of a receive.
    Received {
        /// Communicator.
        group: u64,
        /// Its source.
        receive: Endpoint,
        /// The signature of the message, if the receive had a wildcard; else 0.
        outcome: u32,
    },
    /// The data of a collective.
    Collective {
        /// Communicator.
        group: u64,
        /// Root, bytes sent.
        send: Endpoint,
        /// Bytes received.
        receive: Endpoint,
    },
    /// The request was cancelled.
    Cancelled,
}

/// Result of looking up a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The request, to be named by the completing call.
    Post(Completed),
    /// The posting call had to be written before.
    TooLate,
    /// No call posted it.
    Unknown,
}

/// An active request.
#[derive(Clone, Copy, Debug)]
struct Request {
    post: u64,
    /// Number of its record.
    record: u64,
}

/// A call, and others like it right after it: who looks for a message looks often.
struct Waiting {
    done: Done,
    /// Whether more will be known of it.
    waits: bool,
    /// By repetition: time since the one before, and in it, ticks.
    again: VecDeque<(u32, u32)>,
    /// Leave of the last one, ticks.
    end: u64,
}

impl Waiting {
    /// Counts another call as a repetition of this one, if it is.
    fn repeat(&mut self, other: &Waiting) -> bool {
        let (done, next) = (&self.done, &other.done);
        let is_same = !self.waits
            && !other.waits
            && !next.signature.has(flags::POSTS)
            && next.completes.is_empty()
            && next.computed.is_empty()
            && next.counted.is_empty()
            && next.sampled.is_empty()
            && done.completes.is_empty()
            && done.computed.is_empty()
            && done.counted.is_empty()
            && done.sampled.is_empty()
            && (&next.signature, &next.told) == (&done.signature, &done.told);
        let since = next.enter.checked_sub(self.end);
        let since = since.and_then(|since| u32::try_from(since).ok());
        let inside = u32::try_from(next.leave.wrapping_sub(next.enter)).ok();
        let Some(times) = since.zip(inside).filter(|_| is_same) else {
            return false;
        };
        self.again.push_back(times);
        self.end = next.leave;
        true
    }
}

/// The waiting calls and the active requests.
#[derive(Default)]
pub struct Pending {
    queue: VecDeque<Waiting>,
    /// Repetitions in the queue.
    again: usize,
    /// Number of the first record in the queue, without repetitions.
    first: u64,
    requests: FxHashMap<u64, Request>,
    posts: u64,
    /// Number of requests without a completion event.
    pub unfinished: u64,
}

impl Pending {
    /// Adds a call and returns its number. `request` is the request that it posted, `waits`
    /// whether more will be known of it. An active request of the same number will get no
    /// completion event any more.
    pub fn push(&mut self, done: Done, request: Option<u64>, waits: bool) -> u64 {
        let record = self.first + self.queue.len() as u64;
        if let Some(request) = request {
            let post = self.posts;
            self.posts += 1;
            if let Some(old) = self.requests.insert(request, Request { post, record }) {
                self.abandon(old.record);
            }
        }
        self.queue.push_back(Waiting {
            end: done.leave,
            done,
            waits,
            again: VecDeque::new(),
        });
        if request.is_none() {
            self.fold();
        }
        record
    }

    /// The last call may be a repetition.
    fn fold(&mut self) {
        let before = self.queue.len().checked_sub(2);
        let Some(last) = before.and_then(|_| self.queue.pop_back()) else {
            return;
        };
        match self.queue.back_mut().is_some_and(|call| call.repeat(&last)) {
            true => self.again += 1,
            false => self.queue.push_back(last),
        }
    }

    /// Adds the last facts about a call.
    pub fn settle(&mut self, record: u64, add: impl FnOnce(&mut Signature)) {
        let place = record.checked_sub(self.first);
        if let Some(call) = place.and_then(|at| self.queue.get_mut(at as usize)) {
            add(&mut call.done.signature);
            call.waits = false;
            if record + 1 == self.first + self.queue.len() as u64 {
                self.fold();
            }
        }
    }

    /// Whether a request was posted and has not completed.
    pub fn is_under_way(&self, request: u64) -> bool {
        self.requests.contains_key(&request)
    }

    /// Whether a request is a receive with a wildcard source or tag.
    pub fn is_for_any(&self, request: u64) -> bool {
        let record = self.requests.get(&request).map(|request| request.record);
        let place = record.and_then(|record| record.checked_sub(self.first));
        place
            .and_then(|at| self.queue.get(at as usize))
            .is_some_and(|call| call.done.signature.flags & ANY != 0)
    }

    /// Completes a request.
    pub fn complete(&mut self, request: u64, outcome: Outcome) -> Found {
        let Some(Request { post, record }) = self.requests.remove(&request) else {
            return Found::Unknown;
        };
        let completed = Completed {
            post,
            outcome: match outcome {
                Outcome::Cancelled => OUTCOME_CANCELLED,
                Outcome::Received { outcome, .. } => outcome,
                _ => 0,
            },
        };
        let place = record.checked_sub(self.first);
        let Some(call) = place.and_then(|at| self.queue.get_mut(at as usize)) else {
            // Already written as a request without data, unless there was nothing to add.
            return match outcome {
                Outcome::AsPosted | Outcome::Cancelled => Found::Post(completed),
                _ => Found::TooLate,
            };
        };
        call.waits = false;
        let signature = &mut call.done.signature;
        match outcome {
            Outcome::AsPosted => {}
            Outcome::Received {
                group,
                receive,
                outcome,
            } => {
                (signature.group, signature.receive) = (group, receive);
                // The wildcard stays in the signature; the completion gives the outcome.
                if outcome != 0 && signature.has(flags::ANY_SOURCE) {
                    signature.receive.peer = PEER_ANY;
                }
                if outcome != 0 && signature.has(flags::ANY_TAG) {
                    signature.receive.tag = TAG_ANY;
                }
            }
            Outcome::Collective {
                group,
                send,
                receive,
            } => {
                (signature.group, signature.send, signature.receive) = (group, send, receive);
            }
            Outcome::Cancelled => signature.flags &= !(flags::RECEIVES | flags::COLLECTIVE),
        }
        Found::Post(completed)
    }

    /// The next call to write: complete, or waiting for too long.
    pub fn pop(&mut self) -> Option<Done> {
        let is_full = self.queue.len() > MOST || self.again > MOST_AGAIN;
        let call = self.queue.front()?;
        if call.waits {
            if !is_full {
                return None;
            }
            self.abandon(self.first);
        }
        let call = self.queue.front_mut()?;
        let Some((since, inside)) = call.again.pop_front() else {
            self.first += 1;
            return self.queue.pop_front().map(|call| call.done);
        };
        self.again -= 1;
        let enter = call.done.leave + u64::from(since);
        let next = Done {
            enter,
            leave: enter + u64::from(inside),
            ..call.done.clone()
        };
        Some(std::mem::replace(&mut call.done, next))
    }

    /// Ends the wait of all calls: nothing more will be known.
    pub fn finish(&mut self) {
        for record in self.first..self.first + self.queue.len() as u64 {
            self.abandon(record);
        }
    }

    /// Gives a request's record up: the message of a receive stays unknown.
    fn abandon(&mut self, record: u64) {
        let place = record.checked_sub(self.first);
        if let Some(call) = place.and_then(|at| self.queue.get_mut(at as usize))
            && std::mem::take(&mut call.waits)
        {
            call.done.signature.flags &= !(flags::RECEIVES | flags::COLLECTIVE);
            self.unfinished += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(enter: u64) -> Done {
        Done {
            enter,
            leave: enter + 1,
            signature: Signature {
                flags: flags::POSTS | flags::RECEIVES,
                ..Signature::default()
            },
            completes: SmallVec::new(),
            told: Told::default(),
            computed: Vec::new(),
            counted: Counts::default(),
            sampled: Vec::new(),
        }
    }

    fn from(peer: i32) -> Outcome {
        let receive = Endpoint {
            peer,
            tag: 1,
            bytes: 8,
        };
        Outcome::Received {
            group: 1,
            receive,
            outcome: 0,
        }
    }

    #[test]
    fn records_wait_until_all_is_known_and_keep_their_order() {
        let mut pending = Pending::default();
        pending.push(receive(0), Some(70), true);
        pending.push(receive(10), Some(71), true);
        let post = |post| Found::Post(Completed { post, outcome: 0 });
        assert_eq!(pending.complete(71, from(5)), post(1));
        assert!(pending.pop().is_none());
        assert_eq!(pending.complete(70, from(4)), post(0));
        let peers = std::iter::from_fn(|| pending.pop()).map(|done| done.signature.receive.peer);
        assert_eq!(peers.collect::<Vec<_>>(), [4, 5]);
        assert_eq!(pending.complete(70, from(4)), Found::Unknown);
        assert_eq!(pending.unfinished, 0);
    }

    #[test]
    fn requests_that_never_complete_are_no_receives() {
        let mut pending = Pending::default();
        pending.push(receive(0), Some(70), true);
        // The same number again: the first request must have ended.
        pending.push(receive(10), Some(70), true);
        assert_eq!(pending.pop().unwrap().signature.flags, flags::POSTS);
        assert!(pending.pop().is_none());
        pending.finish();
        assert_eq!(pending.pop().unwrap().signature.flags, flags::POSTS);
        assert_eq!(pending.unfinished, 2);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut pending = Pending::default();
        pending.push(receive(0), Some(70), true);
        for n in 0..MOST as u64 {
            pending.push(receive(n), None, false);
        }
        assert_eq!(pending.pop().unwrap().signature.flags, flags::POSTS);
        assert_eq!(pending.complete(70, from(4)), Found::TooLate);
    }

    #[test]
    fn looks_wait_as_one_and_come_one_by_one() {
        let look = |enter: u64| {
            let mut look = receive(enter);
            look.signature.flags = 0;
            look.leave = enter + 1 + enter % 3;
            look
        };
        let mut pending = Pending::default();
        pending.push(receive(0), Some(70), true);
        let times = (1..2 * MOST as u64).map(|n| 10 * n);
        times.clone().for_each(|at| {
            pending.push(look(at), None, false);
        });
        assert_eq!(pending.queue.len(), 2);
        assert!(pending.pop().is_none());
        assert!(matches!(pending.complete(70, from(4)), Found::Post(_)));
        assert_eq!(pending.pop().unwrap().signature.receive.peer, 4);
        for at in times {
            let (found, expected) = (pending.pop().unwrap(), look(at));
            assert_eq!((found.enter, found.leave), (expected.enter, expected.leave));
        }
        assert!(pending.pop().is_none());
        assert_eq!((pending.again, pending.first), (0, 2));
    }

    #[test]
    fn probes_without_success_are_looks() {
        let mut pending = Pending::default();
        pending.push(receive(0), Some(70), true);
        for n in 0..4 {
            let mut probe = receive(10 + n);
            probe.signature.flags = flags::PEEKS;
            let record = pending.push(probe, None, true);
            pending.settle(record, |signature| signature.flags |= flags::UNSUCCESSFUL);
        }
        assert_eq!((pending.queue.len(), pending.again), (2, 3));
    }
}
