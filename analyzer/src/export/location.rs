//! The calls of a location as events.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use anyhow::Result;
use laggard_otf2::events::{Any, Collective, Event, Message, OneSided};
use laggard_otf2::{ArchiveWriter, EventWriter};
use laggard_trace::calls::{self, GenericType, Shape, number};
use laggard_trace::{Endpoint, OUTCOME_CANCELLED, Signature, WORLD, flags};

use rustc_hash::FxHashMap;

use super::groups::{Groups, On};
use super::operation::operation;
use super::otf2::Names;
use crate::directory::TracedLocation;
use crate::events::{Calls, Item};
use crate::symbols::{Symbols, shown};

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
    paths: Vec<Option<Rc<[u32]>>>,
    posts: VecDeque<Posted>,
    /// Number of the first one in `posts`.
    first: u64,
    /// Ticks; times never go back.
    last: u64,
    /// Requests of a call whose last record is still to come.
    parts: Vec<Signature>,
    /// The groups of the open epochs, by window and whether it is an exposure.
    epochs: FxHashMap<(u32, bool), u32>,
}

impl Writer<'_> {
    /// Writes all calls. `program` is told at the beginning, and the end of the last call given.
    pub fn write(&mut self, mut program: Option<Event>) -> Result<u64> {
        let location = &self.traced.location;
        let mut state = State::default();
        let paths = location.definitions.call_path_count();
        state.paths.resize(paths, None);
        let mut written = Ok(());
        Calls::new(location).read(|item| {
            let Item::Call(_, event, known) = item else {
                return ControlFlow::Continue(());
            };
            written = self.record(&mut state, event, known, &mut program);
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        written?;
        self.enclose(&mut state, &[], 0)?;
        Ok(state.last)
    }

    /// Writes what a record says: a call, a part of one, or many.
    fn record(
        &mut self,
        state: &mut State,
        event: &laggard_trace::Event,
        known: &Signature,
        program: &mut Option<Event>,
    ) -> Result<()> {
        let signature = Signature {
            send: event.send(known),
            receive: event.receive(known),
            parameter: event.value.map_or(known.parameter, |value| value as i64),
            ..*known
        };
        if signature.has(flags::PART) {
            state.parts.push(signature);
            return Ok(());
        }
        let ns = |ticks| self.traced.ns(ticks).max(0) as u64;
        let (enter, leave) = (ns(event.enter), ns(event.leave));
        if let Some(program) = program.take() {
            self.put(enter, &program)?;
        }
        // A record of many calls: evenly, as nothing else is known of them.
        let count = event
            .repeated
            .map_or(1, |(count, _)| u64::from(count.max(1)));
        let length = leave.saturating_sub(enter) / count;
        let inside = event.repeated.map_or(length, |(_, ticks)| {
            (self.traced.length_ns(ticks.into()) as u64 / count).min(length)
        });
        for n in 0..count {
            let enter = enter + n * length;
            self.call(state, &signature, (enter, enter + inside), event)?;
        }
        Ok(())
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
    fn around(&mut self, state: &mut State, path: u32) -> Rc<[u32]> {
        let definitions = &self.traced.location.definitions;
        if let Some(Some(known)) = state.paths.get(path as usize) {
            return known.clone();
        }
        let lines = self.symbols.resolve_call_path(definitions, path);
        let regions = shown(&lines).map(|line| {
            let (function, file) = (line.function.as_bytes(), line.file.as_bytes());
            self.names.function(function, file, line.line)
        });
        let mut regions: Vec<u32> = regions.collect();
        regions.reverse();
        let regions: Rc<[u32]> = regions.into();
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
        event: &laggard_trace::Event,
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
        let completed = event.completed.iter();
        let completed = completed.map(|c| (c.delta, c.outcome, c.thread));
        let all: Vec<_> = list.chain(completed).collect();
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
        if signature.has(flags::UNSUCCESSFUL)
            && let Some(request) = self.under_way(state)
        {
            self.put(leave, &Event::RequestTest(request))?;
        }
        self.finish(state, signature, leave)?;
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

    /// A request that is not done. Which ones a test looked at is not recorded: the first.
    fn under_way(&self, state: &State) -> Option<u64> {
        let mut posts = state.posts.iter();
        let at = posts.position(|posted| !matches!(posted, Posted::Nothing))?;
        Some(self.request(state.first + at as u64))
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
    fn finish(&mut self, state: &mut State, signature: &Signature, time: u64) -> Result<()> {
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
        let Some(On::Window(window)) = self.groups.on(signature.group) else {
            return Ok(());
        };
        let generic = calls::call(signature.operation).map(|call| call.generic);
        if generic == Some(GenericType::Exposure) {
            return self.epoch(state, signature, window, time);
        }
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

    /// What a call does to an epoch: MPI_Win_post and MPI_Win_start name the other side.
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

/// What a receive took as it came.
fn left_open(signature: &Signature) -> Any {
    Any {
        source: signature.has(flags::ANY_SOURCE),
        tag: signature.has(flags::ANY_TAG),
    }
}

/// Whether a collective has events of its own: beginning and end of MPI have not.
fn has_events(signature: &Signature) -> bool {
    let shape = calls::call(signature.operation).map(|call| call.shape);
    let is_silent = matches!(shape, Some(Shape::Init | Shape::Finalize));
    !(is_silent && signature.group == WORLD)
}
