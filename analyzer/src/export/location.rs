//! The calls of a location as events.

use std::collections::VecDeque;

use anyhow::Result;
use laggard_otf2::events::{Collective, Event, Message, OneSided};
use laggard_otf2::{ArchiveWriter, EventWriter};
use laggard_trace::calls::{self, GenericType, Shape};
use laggard_trace::{Decoder, Endpoint, OUTCOME_CANCELLED, Signature, WORLD, flags};

use super::groups::{Groups, On};
use super::operation::operation;
use super::otf2::Names;
use crate::directory::TracedLocation;
use crate::symbols::Symbols;

/// What a request is, until it completes.
#[derive(Clone, Copy, Debug)]
enum Posted {
    /// Nothing that OTF2 knows, or complete.
    Nothing,
    Send,
    /// What it receives, unless only its completion tells.
    Receive(Option<Message>),
    Collective(Collective),
}

/// Writes one location.
pub struct Writer<'a> {
    /// Where to.
    pub archive: &'a ArchiveWriter,
    /// Its events.
    pub events: &'a mut EventWriter,
    /// Where from.
    pub traced: &'a TracedLocation,
    /// Numbers of groups.
    pub groups: &'a Groups,
    /// Numbers of texts and regions.
    pub names: &'a mut Names,
    /// Windows by number: communicator.
    pub definitions: &'a laggard_otf2::definitions::Definitions,
    /// What resolves addresses.
    pub symbols: &'a mut Symbols,
}

/// State of a location while it is written.
#[derive(Default)]
struct State {
    /// Regions around the last call, the outermost first.
    stack: Vec<u32>,
    /// Those of call paths, by id; empty: not resolved yet.
    paths: Vec<Option<Vec<u32>>>,
    posts: VecDeque<Posted>,
    /// Number of the first one in `posts`.
    first: u64,
    /// Ticks; times never go back.
    last: u64,
    /// Requests of a call whose last record is still to come.
    parts: Vec<Signature>,
}

impl Writer<'_> {
    /// Writes all calls. `program` is told at the beginning, and the end of the last call given.
    pub fn write(&mut self, program: Option<Event>) -> Result<u64> {
        let location = &self.traced.location;
        let mut state = State::default();
        let mut program = program;
        state
            .paths
            .resize(location.definitions.call_path_count(), None);
        for chunk in &location.chunks {
            if !location.verify(chunk) {
                continue;
            }
            let mut decoder = Decoder::new(location.records(chunk), chunk.base);
            while let Some(event) = decoder.next() {
                let signatures = location.definitions.signatures();
                let known = signatures.get(event.signature as usize);
                let Some(known) = known.filter(|known| known.operation != 0) else {
                    continue;
                };
                let signature = effective(known, event);
                if signature.has(flags::PART) {
                    state.parts.push(signature);
                    continue;
                }
                let ns = |ticks| self.traced.ns(ticks).max(0) as u64;
                let times = (ns(event.enter), ns(event.leave));
                if let Some(program) = program.take() {
                    self.put(times.0, &program)?;
                }
                // A record of many calls: evenly, as nothing else is known of them.
                let count = event
                    .repeated
                    .map_or(1, |(count, _)| u64::from(count.max(1)));
                let length = times.1.saturating_sub(times.0) / count;
                let inside = event.repeated.map_or(length, |(_, ticks)| {
                    (self.traced.length_ns(ticks.into()) as u64 / count).min(length)
                });
                for n in 0..count {
                    let enter = times.0 + n * length;
                    let completed = event.completed.iter();
                    let completed = completed.map(|c| (c.delta, c.outcome, c.thread));
                    let completed: Vec<_> = completed.collect();
                    self.call(&mut state, &signature, (enter, enter + inside), &completed)?;
                }
            }
            location.release(chunk);
        }
        self.enclose(&mut state, &[], 0)?;
        Ok(state.last)
    }

    fn put(&mut self, time: u64, event: &Event) -> Result<()> {
        Ok(self.archive.write(self.events, time, event)?)
    }

    /// Leaves regions and enters others, so that these are around a call.
    fn enclose(&mut self, state: &mut State, around: &[u32], enter: u64) -> Result<()> {
        let same = state.stack.iter().zip(around).take_while(|(a, b)| a == b);
        let same = same.count();
        for region in state.stack.split_off(same).into_iter().rev() {
            self.put(state.last, &Event::Leave(region))?;
        }
        state.last = state.last.max(enter);
        for region in &around[same..] {
            self.put(state.last, &Event::Enter(*region))?;
            state.stack.push(*region);
        }
        Ok(())
    }

    /// The regions of a call path.
    fn around(&mut self, state: &mut State, path: u32) -> Vec<u32> {
        let definitions = &self.traced.location.definitions;
        if let Some(Some(known)) = state.paths.get(path as usize) {
            return known.clone();
        }
        let lines = self.symbols.resolve_call_path(definitions, path);
        let regions = lines.iter().rev().map(|line| {
            let (function, file) = (line.function.as_bytes(), line.file.as_bytes());
            self.names.function(function, file, line.line)
        });
        let regions: Vec<u32> = regions.collect();
        if let Some(place) = state.paths.get_mut(path as usize) {
            *place = Some(regions.clone());
        }
        regions
    }

    /// Writes a call with everything that happened in it.
    fn call(
        &mut self,
        state: &mut State,
        signature: &Signature,
        (enter, leave): (u64, u64),
        completed: &[(u32, u32, Option<u32>)],
    ) -> Result<()> {
        let around = self.around(state, signature.call_path);
        self.enclose(state, &around, enter)?;
        let enter = state.last;
        let leave = leave.max(enter);
        let region = self.names.call(signature.operation);
        self.put(enter, &Event::Enter(region))?;
        for part in std::mem::take(&mut state.parts) {
            self.begin(state, &part, enter)?;
        }
        let definitions = &self.traced.location.definitions;
        let so_far = state.first + state.posts.len() as u64;
        let list = definitions.completion_list(signature.completes).iter();
        let list = list.map(|&(delta, outcome)| (delta, outcome, None));
        let all: Vec<_> = list.chain(completed.iter().copied()).collect();
        self.begin(state, signature, enter)?;
        for (delta, outcome, thread) in all {
            match thread {
                None => {
                    let post = so_far.wrapping_sub(u64::from(delta));
                    self.complete(state, post, outcome, leave)?;
                }
                Some(thread) => self.complete_elsewhere(thread, delta, outcome, leave)?,
            }
        }
        self.finish(signature, leave)?;
        self.put(leave, &Event::Leave(region))?;
        state.last = leave;
        Ok(())
    }

    /// One half of a message; `None` if it is for nobody of this run.
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

    /// A request's number: threads of a rank complete those of others.
    fn request(&self, post: u64) -> u64 {
        u64::from(self.traced.location.header.thread) << 40 | post & ((1 << 40) - 1)
    }

    /// What happens when a call begins: sends, and requests posted.
    fn begin(&mut self, state: &mut State, signature: &Signature, time: u64) -> Result<()> {
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
                self.put(time, &Event::IrecvRequest(request))?;
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
    fn complete(&mut self, state: &mut State, post: u64, outcome: u32, time: u64) -> Result<()> {
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
        };
        self.put(time, &event)
    }

    /// What a wildcard receive got.
    fn outcome(&self, outcome: u32) -> Option<Message> {
        let signatures = self.traced.location.definitions.signatures();
        let found = signatures.get(outcome as usize).filter(|_| outcome != 0)?;
        self.message(found.group, found.receive)
    }

    /// A request of another thread is done, as far as this thread knows.
    fn complete_elsewhere(
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

    /// What happens when a call ends.
    fn finish(&mut self, signature: &Signature, time: u64) -> Result<()> {
        let posts = signature.has(flags::POSTS);
        if signature.has(flags::RECEIVES)
            && !posts
            && !signature.has(flags::PEEKS)
            && let Some(message) = self.message(signature.group, signature.receive)
        {
            self.put(time, &Event::Receive(message))?;
        }
        if signature.has(flags::COLLECTIVE) && !posts {
            return self.end_collective(signature, time);
        }
        let Some(On::Window(window)) = self.groups.on(signature.group) else {
            return Ok(());
        };
        let generic = calls::call(signature.operation).map(|call| call.generic);
        let half = match generic {
            Some(GenericType::OneSidedGet) => signature.receive,
            _ => signature.send,
        };
        let Some(target) = self.groups.target(self.definitions, window, half.peer) else {
            return Ok(());
        };
        let event = match generic {
            Some(GenericType::OneSidedGet) => Event::OneSided(OneSided {
                window,
                target,
                written: 0,
                read: half.bytes,
            }),
            Some(GenericType::OneSidedPut | GenericType::OneSidedAtomic) => {
                Event::OneSided(OneSided {
                    window,
                    target,
                    written: half.bytes,
                    read: 0,
                })
            }
            Some(GenericType::Lock) => Event::Lock(window, target, signature.parameter as i32 == 1),
            Some(GenericType::Unlock) => Event::OnTarget(window, target),
            _ => return Ok(()),
        };
        self.put(time, &event)
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

/// Whether a collective has events of its own: beginning and end of MPI have not.
fn has_events(signature: &Signature) -> bool {
    let shape = calls::call(signature.operation).map(|call| call.shape);
    let is_silent = matches!(shape, Some(Shape::Init | Shape::Finalize));
    !(is_silent && signature.group == WORLD)
}

/// A signature with what extension records say instead.
fn effective(known: &Signature, event: &laggard_trace::Event) -> Signature {
    let mut signature = *known;
    let put = |half: &mut Endpoint, endpoint: Option<(i32, i32)>, bytes: Option<u64>| {
        if let Some((peer, tag)) = endpoint {
            (half.peer, half.tag) = (peer, tag);
        }
        half.bytes = bytes.unwrap_or(half.bytes);
    };
    put(&mut signature.send, event.send_endpoint, event.send_bytes);
    let receive = &mut signature.receive;
    put(receive, event.receive_endpoint, event.receive_bytes);
    signature.parameter = event
        .value
        .map_or(signature.parameter, |value| value as i64);
    signature
}
