//! Events within a call: messages, requests, collectives, transfers.

use anyhow::Result;
use laggard_otf2::definitions::UNDEFINED;
use laggard_otf2::events::{Any, Collective, Event, Message, OneSided};
use laggard_trace::calls::{self, GenericType, Shape, number};
use laggard_trace::{Endpoint, OUTCOME_CANCELLED, PEER_NONE, Signature, WORLD, flags};

use super::{Posted, State, Writer};
use crate::groups::{On, SYMMETRIC, is_on_symmetric};
use crate::operation::operation;

impl Writer<'_> {
    /// One half of a message; `None` if its peer is no rank of this run.
    fn message(&self, group: u64, half: Endpoint) -> Option<Message> {
        let rank = self.traced.location.header.rank;
        let (comm, peer) = self.groups.peer(group, half.peer, rank)?;
        Some(Message {
            peer,
            comm,
            tag: half.tag as u32,
            bytes: half.bytes,
        })
    }

    fn collective(&self, signature: &Signature) -> Option<Collective> {
        let rank = self.traced.location.header.rank;
        let On::Comm(on) = self.groups.on(signature.group)? else {
            return None;
        };
        Some(Collective {
            operation: operation(signature.operation),
            on,
            root: self
                .groups
                .root(signature.group, signature.send.peer, rank)?,
            sent: signature.send.bytes,
            received: signature.receive.bytes,
        })
    }

    /// A request's number. Threads of a rank may complete each other's requests.
    fn request(&self, post: u64) -> u64 {
        u64::from(self.traced.location.header.thread) << 40 | post & ((1 << 40) - 1)
    }

    /// The first request that is not done. The trace does not record which ones a test looked at.
    pub(super) fn under_way(&self, state: &State) -> Option<u64> {
        let mut posts = state.posts.iter();
        let at = posts.position(|posted| !matches!(posted, Posted::Nothing))?;
        Some(self.request(state.first + at as u64))
    }

    /// Events at a call's begin: sends, and posted requests.
    pub(super) fn begin(
        &mut self,
        state: &mut State,
        signature: &Signature,
        time: u64,
    ) -> Result<()> {
        let post = state.first + state.posts.len() as u64;
        let request = self.request(post);
        let posts = signature.has(flags::POSTS);
        let mut posted = Posted::Nothing;
        if signature.has(flags::SENDS)
            && let Some(message) = self.message(signature.group, signature.send)
        {
            if posts {
                posted = Posted::Send;
                self.put(time, &Event::Isend(message, request))?;
            } else {
                self.put(time, &Event::Send(message))?;
            }
        }
        if posts && signature.has(flags::RECEIVES) {
            let message = self.message(signature.group, signature.receive);
            let is_any = signature.receive.peer == laggard_trace::PEER_ANY
                || signature.receive.tag == laggard_trace::TAG_ANY;
            let message = message.filter(|_| !is_any);
            if message.is_some() || is_any {
                posted = Posted::Receive(message);
                let any = left_open(signature);
                self.put(time, &Event::IrecvRequest(request, any))?;
            }
        }
        if signature.has(flags::COLLECTIVE) {
            match (
                posts,
                self.collective(signature),
                self.is_about_windows(signature),
            ) {
                (true, Some(collective), _) => {
                    posted = Posted::Collective(collective);
                    self.put(time, &Event::CollectiveRequest(request))?;
                }
                (false, _, true) => self.put(time, &Event::WindowCollectiveBegin)?,
                (false, Some(_), false) if has_events(signature) => {
                    self.put(time, &Event::CollectiveBegin)?;
                }
                _ => {}
            }
        }
        if posts && is_transfer(signature.operation) {
            posted = match self.groups.on(signature.group) {
                Some(On::Window(window)) => Posted::Transfer(window),
                _ => Posted::Nothing,
            };
        }
        if posts {
            state.posts.push_back(posted);
        }
        Ok(())
    }

    fn is_about_windows(&self, signature: &Signature) -> bool {
        let shape = calls::call(signature.operation).map_or(Shape::Single, |call| call.shape);
        let of_window = [Shape::WindowCreate, Shape::WindowFree, Shape::Fence];
        of_window.contains(&shape) && self.window(signature).is_some()
    }

    /// The window that a call makes, frees or is on.
    fn window(&self, signature: &Signature) -> Option<u32> {
        let object = self.groups.window(signature.object);
        object.or_else(|| self.groups.window(signature.group))
    }

    /// A request is done.
    pub(super) fn complete(
        &mut self,
        state: &mut State,
        post: u64,
        outcome: u32,
        time: u64,
    ) -> Result<()> {
        let place = post.checked_sub(state.first);
        let Some(posted) = place.and_then(|at| state.posts.get_mut(at as usize)) else {
            return Ok(());
        };
        let posted = std::mem::replace(posted, Posted::Nothing);
        while let Some(Posted::Nothing) = state.posts.front() {
            state.posts.pop_front();
            state.first += 1;
        }
        let request = self.request(post);
        let cancelled = Event::RequestCancelled(request);
        let event = match posted {
            Posted::Nothing => return Ok(()),
            _ if outcome == OUTCOME_CANCELLED => cancelled,
            Posted::Send => Event::IsendComplete(request),
            Posted::Receive(message) => match self.outcome(outcome).or(message) {
                Some(message) => Event::Ireceived(message, request),
                None => cancelled,
            },
            Posted::Collective(collective) => Event::CollectiveComplete(collective, request),
            Posted::Transfer(window) => Event::TransferComplete(window, request),
        };
        self.put(time, &event)
    }

    /// The message that a wildcard receive got.
    fn outcome(&self, outcome: u32) -> Option<Message> {
        let signatures = self.traced.location.definitions.signatures();
        let found = signatures.get(outcome as usize).filter(|_| outcome != 0)?;
        self.message(found.group, found.receive)
    }

    /// A request of another thread is done, as far as this thread knows.
    pub(super) fn complete_elsewhere(
        &mut self,
        thread: u32,
        post: u32,
        outcome: u32,
        time: u64,
    ) -> Result<()> {
        let request = u64::from(thread) << 40 | u64::from(post);
        match self.outcome(outcome) {
            _ if outcome == OUTCOME_CANCELLED => self.put(time, &Event::RequestCancelled(request)),
            Some(message) => self.put(time, &Event::Ireceived(message, request)),
            None => Ok(()),
        }
    }

    /// Events at a call's end.
    pub(super) fn finish(
        &mut self,
        state: &mut State,
        signature: &Signature,
        time: u64,
    ) -> Result<()> {
        let posts = signature.has(flags::POSTS);
        if signature.has(flags::RECEIVES)
            && !posts
            && !signature.has(flags::PEEKS)
            && let Some(message) = self.message(signature.group, signature.receive)
        {
            self.put(time, &Event::Receive(message, left_open(signature)))?;
        }
        if signature.has(flags::COLLECTIVE) && !posts {
            return self.end_collective(signature, time);
        }
        // It was the last one posted.
        let last = (state.first + state.posts.len() as u64).saturating_sub(1);
        let matching = if posts { self.request(last) } else { 0 };
        let group = match is_on_symmetric(signature.operation) {
            true => SYMMETRIC,
            false => signature.group,
        };
        let Some(On::Window(window)) = self.groups.on(group) else {
            return Ok(());
        };
        let generic = calls::call(signature.operation).map(|call| call.generic);
        if generic == Some(GenericType::Exposure) {
            return self.epoch(state, signature, window, time);
        }
        let for_all = match signature.operation {
            number::MPI_Win_lock_all => Some(Event::Lock(window, UNDEFINED, false)),
            number::MPI_Win_unlock_all => Some(Event::OnTarget(window, UNDEFINED)),
            number::MPI_Win_flush_all | number::MPI_Win_flush_local_all => {
                Some(Event::Window(window))
            }
            _ => None,
        };
        if let Some(event) = for_all {
            return self.put(time, &event);
        }
        let is_atomic = generic == Some(GenericType::OneSidedAtomic);
        let reads = generic == Some(GenericType::OneSidedGet)
            || is_atomic && signature.send.peer == PEER_NONE;
        let half = if reads {
            signature.receive
        } else {
            signature.send
        };
        let Some(target) = self.groups.target(self.definitions, window, half.peer) else {
            return Ok(());
        };
        let event = match generic {
            _ if is_transfer(signature.operation) => Event::OneSided(OneSided {
                window,
                target,
                written: if reads { 0 } else { half.bytes },
                read: if reads { half.bytes } else { 0 },
                matching,
            }),
            Some(GenericType::Lock) => Event::Lock(window, target, signature.parameter as i32 == 1),
            Some(GenericType::Unlock) => Event::OnTarget(window, target),
            Some(GenericType::Completion) => Event::Flush(window, target),
            _ => return Ok(()),
        };
        self.put(time, &event)
    }

    /// The effect of a call on an epoch: MPI_Win_post and MPI_Win_start name the other side.
    fn epoch(
        &mut self,
        state: &mut State,
        signature: &Signature,
        window: u32,
        time: u64,
    ) -> Result<()> {
        if signature.has(flags::UNSUCCESSFUL) {
            return Ok(());
        }
        let (begins, exposes) = match signature.operation {
            number::MPI_Win_post => (true, true),
            number::MPI_Win_start => (true, false),
            number::MPI_Win_complete => (false, false),
            _ => (false, true),
        };
        let key = (window, exposes);
        if begins {
            let peers = self.traced.location.definitions.peers(signature.parameter);
            if let Some(group) = self.groups.peers(peers) {
                state.epochs.insert(key, group);
            }
        }
        match state.epochs.get(&key) {
            Some(&group) => self.put(time, &Event::GroupSync(window, group)),
            None => Ok(()),
        }
    }

    fn end_collective(&mut self, signature: &Signature, time: u64) -> Result<()> {
        if self.is_about_windows(signature)
            && let Some(window) = self.window(signature)
        {
            match calls::call(signature.operation).map(|call| call.shape) {
                Some(Shape::WindowCreate) => self.put(time, &Event::WindowCreate(window))?,
                Some(Shape::WindowFree) => self.put(time, &Event::WindowDestroy(window))?,
                _ => {}
            }
            let collective = Collective {
                operation: operation(signature.operation),
                on: window,
                root: laggard_otf2::events::ROOT_NONE,
                sent: 0,
                received: 0,
            };
            return self.put(time, &Event::WindowCollectiveEnd(collective));
        }
        match self.collective(signature) {
            Some(collective) if has_events(signature) => {
                self.put(time, &Event::CollectiveEnd(collective))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a call moves data to or from another rank's memory.
fn is_transfer(operation: u16) -> bool {
    let generic = calls::call(operation).map(|call| call.generic);
    matches!(
        generic,
        Some(GenericType::OneSidedPut | GenericType::OneSidedGet | GenericType::OneSidedAtomic)
    )
}

/// The wildcards of a receive.
fn left_open(signature: &Signature) -> Any {
    Any {
        source: signature.has(flags::ANY_SOURCE),
        tag: signature.has(flags::ANY_TAG),
    }
}

/// Whether a collective has events of its own; start and end of MPI have none.
fn has_events(signature: &Signature) -> bool {
    let shape = calls::call(signature.operation).map(|call| call.shape);
    let is_silent = shape.is_some_and(Shape::is_apart);
    !(is_silent && signature.group == WORLD)
}
