//! The calls of a location as events.

mod contexts;
mod threads;
mod within;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use anyhow::Result;
use laggard_engine::events::{Calls, Item, TracedLocation};
use laggard_engine::symbols::{Symbols, shown};
use laggard_otf2::definitions::UNDEFINED;
use laggard_otf2::events::{Collective, Event, Message, Told};
use laggard_otf2::profile::{PROPERTY, RegionProfile};
use laggard_otf2::{ArchiveWriter, EventWriter};
use laggard_trace::calls::{self, Call, GenericType, Shape};
use laggard_trace::{Beside, REGION_FUNCTION, RegionEntry, Signature, flags};
use rustc_hash::FxHashMap;

use super::groups::Groups;
use super::names::{Names, location_id};
use super::teams::Teams;
use contexts::At;
use threads::Within;

/// The state of a request, until it completes.
#[derive(Clone, Copy, Debug)]
enum Posted {
    /// Unknown to OTF2, or complete.
    Nothing,
    Send,
    /// The received message, unless only its completion tells.
    Receive(Option<Message>),
    Collective(Collective),
    /// On a window.
    Transfer(u32),
}

/// Writes one location.
pub struct Writer<'a> {
    /// The archive.
    pub archive: &'a ArchiveWriter,
    /// Its events.
    pub events: &'a mut EventWriter,
    /// The traced location.
    pub traced: &'a TracedLocation,
    /// Numbers of groups.
    pub groups: &'a Groups,
    /// Numbers of teams and locks.
    pub teams: &'a mut Teams,
    /// Numbers of texts and regions.
    pub names: &'a mut Names,
    /// Windows by number: communicator.
    pub definitions: &'a laggard_otf2::definitions::Definitions,
    /// Resolves addresses.
    pub symbols: &'a mut Symbols,
    /// Whether regions are entered as calling contexts: an archive has samples in no other way.
    pub has_contexts: bool,
    /// Time that a sample of the archive stands for, ns.
    pub period: u64,
}

/// State of a location while it is written.
#[derive(Default)]
struct State {
    /// Regions around the last call, the outermost first.
    stack: Vec<u32>,
    /// Where the location is, as calling contexts.
    at: At,
    /// Parallel regions among these, the innermost last.
    within: Vec<Within>,
    /// The same for call paths, by id; empty: not resolved yet.
    paths: Vec<Option<Rc<[u32]>>>,
    posts: VecDeque<Posted>,
    /// Number of the first one in `posts`.
    first: u64,
    /// The last time written, ticks; times never go back.
    last: u64,
    /// Requests of a call whose last record is still to come.
    parts: Vec<Signature>,
    /// Metrics of the location's counters, and their sums.
    counters: Vec<(u32, u64)>,
    /// Whether the sums are to be written before the next call.
    has_counted: bool,
    /// The groups of the open epochs, by window and whether it is an exposure.
    epochs: FxHashMap<(u32, bool), u32>,
}

impl Writer<'_> {
    /// Writes all calls. Begins with `program`, and returns the end of the last call.
    pub fn write(&mut self, mut program: Option<Event>) -> Result<u64> {
        let location = &self.traced.location;
        let mut state = State::default();
        let paths = location.definitions.call_path_count();
        state.paths.resize(paths, None);
        let counters = location.definitions.properties("counter").into_iter();
        let counters = counters.map(|name| (self.names.metric(name.as_bytes()), 0));
        state.counters = counters.collect();
        // What they count from.
        state.has_counted = !state.counters.is_empty();
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
        while !state.within.is_empty() {
            let last = state.last;
            self.leave_team(&mut state, last)?;
        }
        self.enclose(&mut state, 0, 0)?;
        Ok(state.last)
    }

    /// Writes the profile of regions.
    pub fn profile_regions(&mut self) {
        let location = &self.traced.location;
        let id = location_id(location.header.rank, location.header.thread);
        let mut state = State::default();
        let defined = location.definitions.regions();
        for (number, entry) in location.regions.iter().enumerate() {
            let Some(region) = defined.get(entry.region as usize) else {
                continue;
            };
            let path = self.around(&mut state, region.call_path);
            let name = location.definitions.string(region.name);
            let named = match region.kind {
                REGION_FUNCTION => path.last().copied().unwrap_or(UNDEFINED),
                _ => self.names.named(name.as_bytes()),
            };
            let told = RegionProfile {
                kind: region.kind,
                region: named,
                path: path.to_vec(),
                entry: self.in_ns(entry),
            };
            let property = format!("{PROPERTY}{number}");
            self.names.property(id, &property, &told.text());
        }
    }

    fn in_ns(&self, entry: &RegionEntry) -> RegionEntry {
        let ns = |ticks: u64| self.traced.length_ns(ticks).round() as u64;
        // ns of a tick.
        let rate = self.traced.length_ns(1 << 32) / (1u64 << 32) as f64;
        RegionEntry {
            inclusive: ns(entry.inclusive),
            exclusive: ns(entry.exclusive),
            minimum: ns(entry.minimum),
            maximum: ns(entry.maximum),
            sum_of_squares: (entry.sum_of_squares as f64 * rate * rate) as u128,
            ..*entry
        }
    }

    /// Writes a record: a call, a part of one, or many.
    fn record(
        &mut self,
        state: &mut State,
        event: &laggard_trace::Event,
        known: &Signature,
        program: &mut Option<Event>,
    ) -> Result<()> {
        // Of these, the value is a key.
        let is_of_threads = calls::call(known.operation).is_some_and(Call::is_threads);
        let signature = Signature {
            send: event.send(known),
            receive: event.receive(known),
            parameter: match event.value.filter(|_| !is_of_threads) {
                Some(value) => value as i64,
                None => known.parameter,
            },
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
        if calls::call(known.operation).is_some_and(Call::is_user) {
            return self.region(state, &signature, event.value.is_none(), (enter, leave));
        }
        let told = told(known, event);
        let off = event.off.map(|ticks| self.traced.length_ns(ticks) as u64);
        let length_ns = |ticks| self.traced.length_ns(ticks) as u64;
        let ns = |beside: &Beside| Beside {
            blocked: length_ns(beside.blocked),
            preempted: length_ns(beside.preempted),
            kernel: length_ns(beside.kernel),
            ..*beside
        };
        self.take_samples(state, event);
        for (at, count) in event.beside.counted.iter() {
            if let Some((_, sum)) = state.counters.get_mut(at) {
                *sum = sum.saturating_add(count);
                state.has_counted = true;
            }
        }
        let counts = &event.beside.counted;
        let counted = (!counts.is_empty()).then(|| length_ns(counts.time));
        let slept = match off {
            Some(_) => told.in_vain(off),
            None => told,
        };
        // A record of many calls spreads them evenly, as nothing else is known.
        let count = event
            .repeated
            .map_or(1, |(count, _)| u64::from(count.max(1)));
        let whole = leave.saturating_sub(enter);
        let inside = event.repeated.map_or(whole, |(_, ticks)| {
            (self.traced.length_ns(ticks.into()) as u64).min(whole)
        });
        let each = inside / count;
        for n in 0..count {
            let part = u128::from(whole - each) * u128::from(n) / u128::from((count - 1).max(1));
            let enter = enter + part as u64;
            // The sleep was after the last of them.
            let mut told = if n + 1 == count { slept } else { told };
            if n == 0 {
                told = told
                    .beside(&ns(&event.beside))
                    .with_inside(&ns(&event.inside))
                    .with_counted(counted);
            }
            self.call(state, &signature, &told, (enter, enter + each), event)?;
        }
        Ok(())
    }

    /// A region of the program is over; `is_bare` if it made no calls.
    fn region(
        &mut self,
        state: &mut State,
        signature: &Signature,
        is_bare: bool,
        (enter, leave): (u64, u64),
    ) -> Result<()> {
        if !is_bare {
            // It already encloses the calls, and ends now.
            state.last = state.last.max(leave);
            return self.enclose(state, signature.call_path, leave);
        }
        self.enclose(state, signature.call_path, enter)?;
        let name = calls::name(signature.operation).as_bytes();
        let region = self.names.named(name);
        self.enter(state, region, state.last, &Told::default())?;
        state.last = state.last.max(leave);
        self.leave(state, region, state.last)
    }

    fn put(&mut self, time: u64, event: &Event) -> Result<()> {
        Ok(self.archive.write(self.events, time, event)?)
    }

    /// A region is entered.
    fn enter(&mut self, state: &mut State, region: u32, time: u64, told: &Told) -> Result<()> {
        let event = match told.is_empty() {
            _ if self.has_contexts => self.enters(state, region, told),
            true => Event::Enter(region),
            false => Event::EnterCall(region, Box::new(*told)),
        };
        self.put(time, &event)
    }

    /// A region is left.
    fn leave(&mut self, state: &mut State, region: u32, time: u64) -> Result<()> {
        let event = match self.has_contexts {
            true => self.leaves(state),
            false => Event::Leave(region),
        };
        self.put(time, &event)
    }

    /// Leaves and enters regions so that those of a call path enclose a call. Calling contexts tell what encloses
    /// it by themselves.
    fn enclose(&mut self, state: &mut State, path: u32, enter: u64) -> Result<()> {
        if self.has_contexts {
            self.be_at(state, path);
            self.write_samples(state)?;
            state.last = state.last.max(enter);
            return self.count(state);
        }
        let around = match path {
            0 => Rc::default(),
            path => self.around(state, path),
        };
        // What is around a parallel region stays: in it, paths begin anew.
        let floor = state.within.last().map_or(0, |within| within.floor);
        let inner = &state.stack[floor..];
        let same = inner.iter().zip(&around[..]).take_while(|(a, b)| a == b);
        let same = same.count();
        for region in state.stack.split_off(floor + same).into_iter().rev() {
            self.put(state.last, &Event::Leave(region))?;
        }
        state.last = state.last.max(enter);
        for region in &around[same..] {
            self.put(state.last, &Event::Enter(*region))?;
            state.stack.push(*region);
        }
        self.count(state)
    }

    /// Writes the sums of counters, if there are new ones.
    fn count(&mut self, state: &mut State) -> Result<()> {
        if std::mem::take(&mut state.has_counted) {
            for &(metric, sum) in &state.counters {
                self.put(state.last, &Event::Metric(metric, sum))?;
            }
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
            match line.is_region() {
                true => self.names.named(function),
                false => self.names.function(function, file, line.line),
            }
        });
        let mut regions: Vec<u32> = regions.collect();
        regions.reverse();
        let regions: Rc<[u32]> = regions.into();
        if let Some(place) = state.paths.get_mut(path as usize) {
            *place = Some(regions.clone());
        }
        regions
    }

    /// Writes a call with everything inside it.
    fn call(
        &mut self,
        state: &mut State,
        signature: &Signature,
        told: &Told,
        (enter, leave): (u64, u64),
        event: &laggard_trace::Event,
    ) -> Result<()> {
        self.enclose(state, signature.call_path, enter)?;
        let enter = state.last;
        let leave = leave.max(enter);
        let region = self.names.call(signature.operation);
        self.enter(state, region, enter, told)?;
        self.begin_threads(signature, enter)?;
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
        self.finish_threads(signature, event, leave)?;
        self.leave(state, region, leave)?;
        state.last = leave;
        self.after_threads(state, signature, event, leave)
    }
}

/// Attributes for data without OTF2 records: parameters of calls on windows, whether files were
/// waited for, addresses and values of OpenSHMEM.
fn told(known: &Signature, event: &laggard_trace::Event) -> Told {
    let Some(call) = calls::call(known.operation) else {
        return Told::default();
    };
    if call.is_user() {
        return Told::default();
    }
    if threads::paradigm_of_lock(known.operation).is_some() {
        return Told::default();
    }
    if call.is_threads() {
        return Told::of_threads(event.value.unwrap_or(0), known.parameter as u64);
    }
    if call.is_shmem() {
        if !call.has_address() {
            return Told::default();
        }
        let parameter = Some(known.parameter as u64).filter(|&address| address != 0);
        let operand = match call.generic {
            GenericType::WaitOnValue => {
                let receive = event.receive(known);
                Some((receive.tag, receive.bytes.min(u64::from(u32::MAX))))
            }
            _ => match event.send(known).tag {
                0 => None,
                tag => Some((tag, 0)),
            },
        };
        if known.has(flags::UNSUCCESSFUL) {
            // Readers cannot know that without an address it neither writes nor takes a lock.
            return Told::of_memory(None, None, operand).in_vain(Some(0));
        }
        return Told::of_memory(event.address.or(parameter), event.value, operand);
    }
    if known.has(flags::ON_FILES) {
        return Told::of_files();
    }
    // Records tell of tests of requests that found nothing, but of no such look at a window.
    if known.operation == calls::number::MPI_Win_test && known.has(flags::UNSUCCESSFUL) {
        return Told::default().in_vain(Some(0));
    }
    let has_parameter = call.shape == Shape::Fence
        || matches!(
            call.generic,
            GenericType::Lock
                | GenericType::OneSidedPut
                | GenericType::OneSidedGet
                | GenericType::OneSidedAtomic
        );
    match event.value.map_or(known.parameter, |value| value as i64) {
        0 => Told::default(),
        parameter if has_parameter => Told::of_window(parameter),
        _ => Told::default(),
    }
}
