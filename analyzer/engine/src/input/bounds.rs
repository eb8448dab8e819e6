//! The time that all shares refer to: between start-up and shut-down.
//!
//! For each location it begins when its own call of MPI_Init or shmem_init returns. It ends when
//! the last of all locations enters Finalize: waiting for a late one counts, the work of Finalize
//! does not. A location without such calls (another thread, a killed process, an archive) is
//! measured from its first call, or from when it began if that is known, to the end of its last. In a program with two libraries, everything
//! before the second start counts, but not that start itself.

use std::collections::BTreeMap;

use laggard_trace::calls::{self, GenericType, Shape};
use laggard_trace::{Decoder, Event, LIMIT_SIZE, LIMIT_WRITE, Location, ProfileEntry, Signature};

use crate::clock::ClockMap;
use crate::input::profile::saturating_sum;

/// Whether the function with this number starts a library.
pub fn is_init(operation: u16) -> bool {
    calls::call(operation).is_some_and(|call| call.shape == Shape::Init)
}

fn is_finalize(operation: u16) -> bool {
    calls::call(operation).is_some_and(|call| call.shape == Shape::Finalize)
}

/// Whether the function with this number belongs to start-up or shut-down.
pub fn is_end(operation: u16) -> bool {
    is_init(operation) || is_finalize(operation)
}

/// Whether a program may call it before start-up is over, or after shut-down has begun.
fn is_aside(operation: u16) -> bool {
    calls::call(operation)
        .is_none_or(|call| matches!(call.generic, GenericType::Setup | GenericType::User))
}

/// A call that ends a library. Ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finalize {
    /// Number of the call.
    pub operation: u16,
    /// The location's id of its call path.
    pub call_path: u32,
    pub enter: u64,
    leave: u64,
    is_profiled: bool,
}

/// Bounds of a location's parts. Ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// First enter and last leave.
    pub span: (u64, u64),
    /// When a further thread began, if that is known.
    pub born: Option<u64>,
    /// Number of the thread that started it, if that is known.
    pub creator: Option<u32>,
    /// When start-up was over, if it has one.
    pub started: Option<u64>,
    /// Part of `started` in calls that start a library.
    starting: u64,
    /// Part in other calls of the profile before the end of start-up or after the begin of
    /// shut-down.
    aside: Calls,
    /// Its call of Finalize.
    pub finalize: Option<Finalize>,
}

/// The time of a call that is in the profile.
fn profiled(signature: &Signature, event: &Event) -> u64 {
    let is_user = calls::call(signature.operation).is_none_or(calls::Call::is_user);
    match signature.is_profiled() && !is_user {
        true => event.leave - event.enter,
        false => 0,
    }
}

/// Time by number of the call and call path, ticks.
type Calls = BTreeMap<(u16, u32), u64>;

fn note(calls: &mut Calls, signature: &Signature, time: u64) {
    let sum = calls.entry((signature.operation, signature.call_path));
    let sum = sum.or_default();
    *sum = sum.saturating_add(time);
}

fn add(calls: &mut Calls, others: Calls) {
    for (key, time) in others {
        let sum = calls.entry(key).or_default();
        *sum = sum.saturating_add(time);
    }
}

impl Bounds {
    /// Bounds of a location, from its first and last calls.
    pub fn of(location: &Location) -> Bounds {
        let spent = |is: fn(u16) -> bool| {
            let entries = location.profile.iter().filter(|e| is(e.operation));
            saturating_sum(entries.map(|entry| entry.total))
        };
        let first = location.header.start_ticks;
        let mut bounds = Bounds {
            span: (first, first),
            ..Bounds::default()
        };
        let has_events = location.chunks.iter().any(|chunk| chunk.count > 0);
        if has_events {
            bounds.start(location);
            let began = location.definitions.properties("born_ticks");
            let began = began.first().and_then(|ticks| ticks.parse().ok());
            bounds.born = began.filter(|began| *began <= bounds.span.0);
            bounds.span.0 = bounds.born.unwrap_or(bounds.span.0);
            let creator = location.definitions.properties("born_by");
            bounds.creator = creator.first().and_then(|thread| thread.parse().ok());
        } else if location.chunks.is_empty() && spent(is_init) > 0 {
            // A file is created after MPI_Init; only the profile knows how long that took.
            bounds.starting = spent(is_init);
            bounds.span.0 = first.saturating_sub(bounds.starting);
            bounds.started = Some(first);
        }
        let end = location.end.map_or(bounds.span.0, |end| end.end_ticks);
        bounds.span.1 = end;
        // If records stopped at a limit, the profile went on to the end.
        let stopped = LIMIT_SIZE | LIMIT_WRITE;
        let is_cut = location.end.is_some_and(|end| end.limits & stopped != 0);
        if has_events {
            let last = bounds.stop(location);
            // The last call counts; the file is closed a little later.
            bounds.span.1 = match last > bounds.span.0 && !is_cut {
                true => last,
                false => end.max(last),
            };
        }
        if bounds.finalize.is_none() && (!has_events || is_cut) {
            let mut entries = location.profile.iter();
            let last = entries.find(|entry| is_finalize(entry.operation));
            bounds.finalize = last.map(|entry: &ProfileEntry| Finalize {
                operation: entry.operation,
                call_path: entry.call_path,
                enter: end.saturating_sub(entry.total),
                leave: end,
                is_profiled: true,
            });
        }
        bounds.span.1 = bounds.span.1.max(bounds.span.0);
        bounds
    }

    /// Reads the calls up to the first one that needs a library, or that starts the last one.
    fn start(&mut self, location: &Location) {
        let signatures = location.definitions.signatures();
        let mut functions: Vec<u16> = signatures.iter().map(|s| s.operation).collect();
        functions.retain(|&operation| is_init(operation));
        functions.sort_unstable();
        functions.dedup();
        let mut is_first = true;
        let mut aside = Calls::new();
        for chunk in &location.chunks {
            let mut decoder = Decoder::new(location.records(chunk), chunk.base);
            while let Some(event) = decoder.next() {
                if is_first {
                    self.span.0 = event.enter;
                    is_first = false;
                }
                let signature = signatures.get(event.signature as usize);
                let signature = signature.copied().unwrap_or_default();
                let operation = signature.operation;
                let time = profiled(&signature, event);
                if is_init(operation) {
                    self.started = Some(event.leave);
                    self.starting = self.starting.saturating_add(time);
                    add(&mut self.aside, std::mem::take(&mut aside));
                    functions.retain(|&other| other != operation);
                } else if is_aside(operation) {
                    note(&mut aside, &signature, time);
                }
                if functions.is_empty() || !is_aside(operation) {
                    return;
                }
            }
        }
    }

    /// Reads the calls after the last one that needs a library. Returns the end of the last call.
    fn stop(&mut self, location: &Location) -> u64 {
        let signatures = location.definitions.signatures();
        let has_finalize = signatures.iter().any(|s| is_finalize(s.operation));
        let mut last = None;
        let mut after = Calls::new();
        for chunk in location.chunks.iter().rev().filter(|chunk| chunk.count > 0) {
            location.fetch(chunk);
            let (mut found, mut aside, mut is_needed) = (None, Calls::new(), false);
            let mut leave = 0;
            let mut decoder = Decoder::new(location.records(chunk), chunk.base);
            while let Some(event) = decoder.next() {
                leave = event.leave;
                let signature = signatures.get(event.signature as usize);
                let signature = signature.copied().unwrap_or_default();
                let operation = signature.operation;
                if is_finalize(operation) && found.is_none() {
                    aside.clear();
                    found = Some(Finalize {
                        operation,
                        call_path: signature.call_path,
                        enter: event.enter,
                        leave: event.leave,
                        is_profiled: signature.is_profiled(),
                    });
                } else if is_finalize(operation) || is_aside(operation) {
                    note(&mut aside, &signature, profiled(&signature, event));
                } else {
                    aside.clear();
                    (found, is_needed) = (None, true);
                }
            }
            last.get_or_insert(leave);
            add(&mut after, aside);
            if found.is_some() {
                self.finalize = found;
                add(&mut self.aside, std::mem::take(&mut after));
            }
            if found.is_some() || is_needed || !has_finalize {
                break;
            }
        }
        last.unwrap_or(0)
    }

    /// Times of a location outside of the measured time. The last location entered Finalize at
    /// `stopped`, ns; calls that start a library took `starting` ticks in all.
    pub fn ends(&self, clock: &ClockMap, starting: u64, stopped: Option<i64>) -> Ends {
        let between = |from: i64, to: i64| to.saturating_sub(from).max(0) as u64;
        let (first, last) = (clock.ns(self.span.0), clock.ns(self.span.1));
        let startup = self
            .started
            .map_or(0, |leave| between(first, clock.ns(leave)));
        let later = clock.length_ns(starting.saturating_sub(self.starting)) as u64;
        let mut ends = Ends {
            startup: startup.saturating_add(later),
            ..Ends::default()
        };
        if let Some(finalize) = &self.finalize {
            let (enter, leave) = (clock.ns(finalize.enter), clock.ns(finalize.leave));
            let waited = stopped.unwrap_or(enter).clamp(enter, leave.max(enter));
            ends.shutdown = between(waited, last.max(leave));
            if finalize.is_profiled {
                ends.finalizing = between(waited, leave);
            }
        }
        ends
    }

    /// The unmeasured calls, without those that start or end a library: number, call path, ns.
    pub fn aside(&self, clock: &ClockMap) -> impl Iterator<Item = ((u16, u32), u64)> {
        let ns = |ticks: u64| clock.length_ns(ticks) as u64;
        self.aside
            .iter()
            .map(move |(key, ticks)| (*key, ns(*ticks)))
    }
}

/// Unmeasured times of a location, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Until its libraries have started.
    pub startup: u64,
    /// Since the last location entered Finalize.
    pub shutdown: u64,
    /// Part of `shutdown` in its own call of Finalize, if that is in the profile.
    pub finalizing: u64,
}
