//! Calls that have returned but are not written yet. An archive gives the source of a receive,
//! or the communicator of a collective, only when the request completes.
//!
//! Later calls wait, too, so that records stand in the order in which calls returned, and each
//! record of a request is complete. The number of waiting calls is limited to bound memory.

use std::collections::VecDeque;

use laggard_trace::{Endpoint, OUTCOME_CANCELLED, PEER_ANY, Signature, TAG_ANY, flags};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::events::Told;

/// Flags of receives with wildcards.
const ANY: u16 = flags::ANY_SOURCE | flags::ANY_TAG;

/// Most waiting calls.
const MOST: usize = 1 << 18;

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

/// The waiting calls and the active requests.
#[derive(Default)]
pub struct Pending {
    queue: VecDeque<(Done, bool)>,
    /// Number of the first record in the queue.
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
        self.queue.push_back((done, waits));
        record
    }

    /// Adds the last facts about a call.
    pub fn settle(&mut self, record: u64, add: impl FnOnce(&mut Signature)) {
        let place = record.checked_sub(self.first);
        if let Some((done, waits)) = place.and_then(|at| self.queue.get_mut(at as usize)) {
            add(&mut done.signature);
            *waits = false;
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
            .is_some_and(|(done, _)| done.signature.flags & ANY != 0)
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
        let Some((done, waits)) = place.and_then(|at| self.queue.get_mut(at as usize)) else {
            // Already written as a request without data, unless there was nothing to add.
            return match outcome {
                Outcome::AsPosted | Outcome::Cancelled => Found::Post(completed),
                _ => Found::TooLate,
            };
        };
        *waits = false;
        let signature = &mut done.signature;
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
        let &(_, waits) = self.queue.front()?;
        if waits {
            if self.queue.len() <= MOST {
                return None;
            }
            self.abandon(self.first);
        }
        self.first += 1;
        self.queue.pop_front().map(|(done, _)| done)
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
        if let Some((done, waits)) = place.and_then(|at| self.queue.get_mut(at as usize))
            && std::mem::take(waits)
        {
            done.signature.flags &= !(flags::RECEIVES | flags::COLLECTIVE);
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
}
