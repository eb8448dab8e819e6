//! Converts events to calls: regions entered and left, and the events inside them.

mod threads;
mod within;

use laggard_trace::calls::{self, Call, number};
use laggard_trace::{Definition, REGION_FUNCTION, Region, RegionEntry, flags};
use rustc_hash::FxHashSet;

use crate::computed::Computed;
use crate::constructs::Construct;
use crate::definitions::Definitions;
use crate::events::Event;
use crate::metrics::Counting;
use crate::notes::{Kind, Notes};
use crate::open::{Open, instant};
use crate::output::Output;
use crate::paths::Paths;
use crate::pending::{Outcome, Pending};
use crate::profile::{PROPERTY, RegionProfile};
use crate::world::{Meaning, Thread, World};
use threads::Threads;
use within::wildcards;

/// The request number of a one-sided transfer; these have a range apart from messages.
pub(crate) fn transfer_request(matching: u64) -> u64 {
    1 << 63 | matching
}

/// Deepest nesting of regions.
const DEEPEST: usize = 1 << 16;

/// Most regions left open when an enclosing one is left.
const MOST_UNLEFT: usize = 256;

/// Messages of a location that may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Sent messages may be missing.
    pub sends: bool,
    /// Received messages may be missing.
    pub receives: bool,
}

/// A region that was entered and not left yet.
#[derive(Clone, Copy, Debug)]
struct Level {
    region: u32,
    /// Its node in the tree of call paths.
    node: u32,
    /// The same for waits among threads: paths of all threads of a team begin at its parallel region.
    within: u32,
}

/// The calls of one location.
pub struct Calls<'a> {
    pub(crate) world: &'a World,
    pub(crate) definitions: &'a Definitions,
    pub(crate) thread: Thread,
    stack: Vec<Level>,
    paths: Paths,
    /// When the first event of the archive is, and the last one, on the location's clock, ticks.
    pub span: (u64, u64),
    /// Where the location computes, if that is wanted.
    pub computed: Option<Computed>,
    pub(crate) open: Option<Open>,
    /// Samples since the last call: call path, and ticks.
    sampled: Vec<(u32, u64)>,
    /// What its counters said.
    counting: Counting,
    pending: Pending,
    threads: Threads,
    /// The last call, if it was a probe: archives do not record its result.
    probe: Option<(u64, u16)>,
    /// Defined ids of windows, and of communicators of a single process.
    pub(crate) known: FxHashSet<u64>,
    /// Writer of the working copy.
    pub output: Output<'a>,
    /// Anomalies of the location.
    pub notes: Notes,
    /// Messages that may be missing.
    pub missing: Missing,
}

impl<'a> Calls<'a> {
    /// A location before its first event.
    pub fn new(
        world: &'a World,
        definitions: &'a Definitions,
        thread: Thread,
        output: Output<'a>,
    ) -> Calls<'a> {
        Calls {
            world,
            definitions,
            thread,
            stack: Vec::new(),
            paths: Paths::new(),
            span: (0, 0),
            computed: None,
            open: None,
            sampled: Vec::new(),
            counting: Counting::default(),
            pending: Pending::default(),
            threads: Threads::default(),
            probe: None,
            known: FxHashSet::default(),
            output,
            notes: Notes::default(),
            missing: Missing::default(),
        }
    }

    pub(crate) fn note(&mut self, kind: Kind) {
        let location = self.thread.location;
        self.notes.add(kind, 1, || format!("location {location}"));
    }

    /// Takes in the next event, at `time` in ticks; times never decrease.
    pub fn event(&mut self, time: u64, event: &Event) {
        self.settle_threads(event);
        match *event {
            Event::Enter(region) => self.enter(time, region, None),
            Event::EnterCall(region, ref told) => {
                let is_within = self.open.is_some();
                self.enter(time, region, None);
                if let Some(open) = self.open.as_mut().filter(|_| !is_within) {
                    open.told = told.or(&open.told);
                }
            }
            Event::Leave(region) => self.leave(time, region),
            Event::EnterContext(context, _, ref told) => {
                let Some(found) = self.definitions.contexts.get(&context) else {
                    return self.note(Kind::Undefined);
                };
                let is_within = self.open.is_some();
                self.enter(time, found.region, Some(context));
                if let Some(open) = self.open.as_mut().filter(|_| !is_within) {
                    open.told = told.or(&open.told);
                }
            }
            Event::Sample(context, _) => {
                // Samples in calls are of no stretch of computation.
                if self.open.is_none() {
                    let node = self.paths.context(context, self.definitions);
                    let path = self.paths.call_path(node, &mut self.output);
                    self.sampled.push((path, time));
                }
            }
            Event::LeaveContext(context) => match self.definitions.contexts.get(&context) {
                Some(found) => self.leave(time, found.region),
                None => self.note(Kind::Undefined),
            },
            Event::Send(message) => self.send(time, message, None),
            Event::Isend(message, request) => self.send(time, message, Some(request)),
            Event::Receive(message, any) => self.receive(time, message, any),
            Event::IrecvRequest(request, any) => {
                let flags = flags::RECEIVES | wildcards(any);
                self.request(time, request, instant::MPI_Irecv, flags);
            }
            Event::CollectiveRequest(request) => match self.open {
                Some(_) => self.request(time, request, 0, flags::COLLECTIVE),
                None => self.note(Kind::Incomplete),
            },
            Event::IsendComplete(request) => self.complete(time, request, Outcome::AsPosted),
            Event::RequestCancelled(request) => self.complete(time, request, Outcome::Cancelled),
            Event::Ireceived(message, request) => {
                if let Some((group, receive)) = self.half(message) {
                    let outcome = match self.pending.is_for_any(request) {
                        true => self.output.received(group, receive),
                        false => 0,
                    };
                    let outcome = Outcome::Received {
                        group,
                        receive,
                        outcome,
                    };
                    self.complete(time, request, outcome);
                }
            }
            Event::CollectiveComplete(collective, request) => {
                if let Some((group, send, receive)) = self.halves(collective) {
                    let outcome = Outcome::Collective {
                        group,
                        send,
                        receive,
                    };
                    self.complete(time, request, outcome);
                }
            }
            Event::RequestTest(_) => {
                if let Some(open) = &mut self.open {
                    open.tested = true;
                }
            }
            Event::CollectiveEnd(collective) => self.collective(collective),
            Event::WindowCollectiveEnd(collective) => self.on_window(collective.on, |_| {}),
            Event::WindowCreate(window) | Event::WindowDestroy(window) | Event::Window(window) => {
                self.on_window(window, |_| {})
            }
            Event::GroupSync(window, group) => self.group_sync(window, group),
            Event::OnTarget(window, target) | Event::Flush(window, target) => {
                self.on_target(window, target, 0);
            }
            Event::TransferComplete(_, matching) => {
                let request = transfer_request(matching);
                if self.pending.is_under_way(request) {
                    self.complete(time, request, Outcome::AsPosted);
                }
            }
            Event::Lock(window, target, exclusive) => {
                self.on_target(window, target, if exclusive { 1 } else { 2 });
            }
            Event::OneSided(transfer) => self.transfer(transfer),
            Event::Measurement(is_on) => {
                if !is_on {
                    self.note(Kind::SwitchedOff);
                    (self.missing.sends, self.missing.receives) = (true, true);
                }
            }
            Event::CollectiveBegin | Event::WindowCollectiveBegin => {}
            Event::Metric(counter, value) => self.counting.take(time, counter, value),
            Event::Nothing | Event::Program(..) | Event::ProgramEnd => {}
            _ => self.of_threads(time, event),
        }
    }

    fn enter(&mut self, time: u64, region: u32, context: Option<u32>) {
        let (above, around) = self
            .stack
            .last()
            .map_or((0, 0), |level| (level.node, level.within));
        if self.stack.len() >= DEEPEST {
            return self.note(Kind::Unbalanced);
        }
        let (mut node, mut within) = (above, around);
        let meaning = self.world.meaning(region);
        if let Some(Meaning::Threads(Construct::CriticalBody | Construct::OrderedBody)) = meaning {
            self.enter_body(time);
        }
        if self.open.is_none() {
            self.compute(time);
            match meaning {
                Some(Meaning::Call(number)) => {
                    if let Some(context) = context {
                        let parent = self.definitions.contexts[&context].parent;
                        node = self.paths.context(parent, self.definitions);
                    }
                    let path = self.paths.call_path(node, &mut self.output);
                    let mut open = Open::new(number, time, path, self.stack.len());
                    (open.computed, open.counted) =
                        (self.take_computed(), self.counting.enters(time));
                    self.open = Some(open);
                }
                Some(Meaning::User | Meaning::Threads(_)) => {
                    (node, within) = self.nodes(region, context, (above, around));
                    if let Some(Meaning::Threads(construct)) = meaning
                        && let Some((call, told)) = self.opens(construct)
                    {
                        let path = self.paths.call_path(within, &mut self.output);
                        let mut open = Open::new(call, time, path, self.stack.len());
                        (open.computed, open.counted) =
                            (self.take_computed(), self.counting.enters(time));
                        open.told = told;
                        self.open = Some(open);
                    }
                }
                None => self.note(Kind::Undefined),
            }
        }
        self.stack.push(Level {
            region,
            node,
            within,
        });
    }

    /// The nodes of a region of the program, or of threads.
    fn nodes(
        &mut self,
        region: u32,
        context: Option<u32>,
        (above, around): (u32, u32),
    ) -> (u32, u32) {
        let meaning = self.world.meaning(region);
        let known = self.definitions.regions.get(&region);
        let is_placed = meaning == Some(Meaning::User) || known.is_some_and(|known| known.line > 0);
        let is_parallel = meaning == Some(Meaning::Threads(Construct::Parallel));
        if let Some(context) = context {
            // Functions of a library are where they are called.
            let at = match is_placed {
                true => context,
                false => self.definitions.contexts[&context].parent,
            };
            let node = self.paths.context(at, self.definitions);
            return (node, node);
        }
        let around = if is_parallel { 0 } else { around };
        match is_placed {
            true => {
                let mut enter = |above| self.paths.enter(above, region, self.definitions);
                (enter(above), enter(around))
            }
            // In archives of laggard, paths begin anew in a parallel region.
            false if is_parallel => (0, 0),
            false => (above, around),
        }
    }

    fn leave(&mut self, time: u64, region: u32) {
        let mut levels = self.stack.iter().rev().take(MOST_UNLEFT);
        let Some(up) = levels.position(|level| level.region == region) else {
            return self.note(Kind::Unbalanced);
        };
        if self.open.is_none() {
            self.compute(time);
        }
        let at = self.stack.len() - 1 - up;
        if at + 1 < self.stack.len() {
            self.note(Kind::Unbalanced);
        }
        self.stack.truncate(at);
        if self.open.as_ref().is_some_and(|open| open.depth >= at)
            && let Some(open) = self.open.take()
        {
            self.close_left(region, open, time);
        }
        if let Some(Meaning::Threads(construct)) = self.world.meaning(region) {
            self.left_construct(time, construct);
        }
    }

    /// Until now, the location computed in the innermost region.
    fn compute(&mut self, time: u64) {
        let node = self.stack.last().map_or(0, |level| level.node);
        if let Some(computed) = &mut self.computed {
            computed.pass(time, node);
        }
    }

    /// What it computed since the last call.
    fn take_computed(&mut self) -> Vec<(u32, u64)> {
        let computed = self.computed.as_mut();
        computed.map_or_else(Vec::new, |computed| {
            computed.take(&mut self.paths, &mut self.output)
        })
    }

    /// Ends a call; returns the number of its last record.
    fn close(&mut self, open: Open, time: u64) -> u64 {
        if let Some(computed) = &mut self.computed {
            computed.begin(time);
        }
        self.counting.leaves(time);
        if open.lacks_group() {
            self.note(Kind::Incomplete);
        }
        let (sends, receives) = open.lacks_message();
        self.missing.sends |= sends;
        self.missing.receives |= receives;
        self.settle_probe(Some(&open));
        let number = open.number;
        let is_probe = open.is_probe();
        // The next event tells more.
        let is_open = is_probe || self.is_unsettled();
        let mut record = 0;
        let mut sampled = std::mem::take(&mut self.sampled);
        for (mut done, request, waits) in open.close(time) {
            done.sampled = std::mem::take(&mut sampled);
            record = self.pending.push(done, request, waits || is_open);
            self.probe = is_probe.then_some((record, number));
        }
        self.write_settled();
        record
    }

    /// Writes the calls of which all is known.
    fn write_settled(&mut self) {
        while let Some(done) = self.pending.pop() {
            self.output.record(&done);
        }
    }

    /// Archives do not record the result of a probe. It found the message that the next call
    /// receives. A non-blocking probe followed by another call found nothing.
    fn settle_probe(&mut self, next: Option<&Open>) {
        let Some((record, number)) = self.probe.take() else {
            return;
        };
        // A matched probe takes its message and cannot be the receive of an earlier probe.
        let taking = [number::MPI_Mprobe, number::MPI_Improbe];
        let receiving = next.filter(|open| !taking.contains(&open.number));
        let mut parts = receiving.iter().flat_map(|open| &open.parts);
        let received = parts.find(|part| part.flags & flags::RECEIVES != 0);
        let next_is_known = next.is_some();
        self.pending.settle(record, |signature| match received {
            Some(part) if part.request.is_none() => {
                (signature.group, signature.receive) = (part.group, part.receive);
                signature.flags |= part.flags & !flags::SENDS | flags::PEEKS;
            }
            None if next_is_known && number != number::MPI_Probe => {
                signature.flags |= flags::UNSUCCESSFUL;
            }
            _ => {}
        });
    }

    /// Applies `act` to the open call, or to an instantaneous stand-in.
    fn within(&mut self, time: u64, stand_in: u16, act: impl FnOnce(&mut Open)) {
        match &mut self.open {
            Some(open) => act(open),
            None => {
                self.compute(time);
                let is_of_threads = calls::call(stand_in).is_some_and(Call::is_threads);
                let node = self.stack.last().map_or(0, |level| match is_of_threads {
                    true => level.within,
                    false => level.node,
                });
                let path = self.paths.call_path(node, &mut self.output);
                let mut open = Open::new(stand_in, time, path, self.stack.len());
                (open.computed, open.counted) = (self.take_computed(), self.counting.enters(time));
                act(&mut open);
                self.close(open, time);
            }
        }
    }

    /// Defines the regions of the archive's profile, and returns the profile.
    pub fn regions(&mut self) -> Vec<RegionEntry> {
        let (definitions, location) = (self.definitions, self.thread.location);
        let is_profile = |name| definitions.string(name).starts_with(PROPERTY.as_bytes());
        let own = definitions.properties.iter();
        let own = own.filter(|(of, name, _)| *of == location && is_profile(*name));
        let mut entries = Vec::new();
        for (_, _, text) in own {
            let Some(told) = RegionProfile::parse(definitions.string(*text)) else {
                self.note(Kind::Undefined);
                continue;
            };
            let mut node = 0;
            for &region in &told.path {
                node = self.paths.enter(node, region, definitions);
            }
            let call_path = self.paths.call_path(node, &mut self.output);
            let name = match told.kind {
                REGION_FUNCTION => 0,
                _ => definitions.regions.get(&told.region).map_or(0, |r| r.name),
            };
            let region = entries.len() as u32 + 1;
            let name = self.output.string(name);
            let defined = Definition::Region(Region {
                id: region,
                kind: told.kind,
                name,
                call_path,
            });
            self.output.writer().define(&[defined]);
            entries.push(RegionEntry {
                region,
                ..told.entry
            });
        }
        entries
    }

    /// Ends the location after its last event.
    pub fn finish(&mut self) {
        let left = self.stack.len() as u64;
        let location = self.thread.location;
        let about = || format!("location {location}");
        self.notes.add(Kind::Unbalanced, left, about);
        self.finish_threads();
        self.settle_probe(None);
        self.pending.finish();
        self.write_settled();
        self.missing.receives |= self.pending.unfinished > 0;
        self.notes
            .add(Kind::Unfinished, self.pending.unfinished, about);
        self.notes.add(Kind::Deep, self.paths.cut, about);
    }
}
