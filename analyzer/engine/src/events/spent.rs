//! Times of locations as a report counts them: between start-up and shut-down.

use laggard_comm::{Job, Serial};

use super::Events;
use crate::input::bounds::is_init;
use crate::judge::profile::{self, Profile};
use crate::stream::rows::TimeClass;
use crate::timeline::moments::Moments;

/// What one location spent its time on. ns.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// From when to when it is measured, ns since the start of the run.
    pub measured: (i64, i64),
    /// Outside of all recorded calls.
    pub computation_ns: u64,
    /// Its calls. A call and a call path may come several times.
    pub calls: Vec<SpentIn>,
}

/// Calls at one call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentIn {
    /// Number of the call.
    pub call: u16,
    /// Number of the call path.
    pub call_path: u32,
    /// What its time is.
    pub class: TimeClass,
    /// Calls.
    pub count: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Time in them; negative if it takes away what other rows have in start-up or shut-down.
    pub ns: i64,
}

impl Events {
    /// What each location spent its time on; sums are those of a report.
    pub fn spent(&self) -> Vec<Spent> {
        self.spent_of_share(&Serial)
    }

    /// As [`spent`](Self::spent), of this agent's locations. Collective.
    pub fn spent_of_share(&self, job: &dyn Job) -> Vec<Spent> {
        let clocks = self.timeline.own(&self.opened);
        let stopped = Moments::new(job, &self.opened, &self.timeline).stopped;
        let profiled = profile::of_all(&self.opened, &clocks, stopped);
        let whole = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let locations = profiled.iter().zip(&clocks).enumerate();
        let of_locations = locations.map(|(at, (location, (clock, _)))| {
            let mut beside = Vec::new();
            let times = location.settled(clock, stopped, (&mut Profile::default(), &mut beside));
            let mut calls = Vec::new();
            for (path, entry) in &location.entries {
                let row = SpentIn {
                    call: entry.operation,
                    call_path: self.path_number(at, *path),
                    class: TimeClass::of(entry.operation),
                    count: entry.count - entry.on_files.0.min(entry.count),
                    bytes: entry.bytes,
                    ns: match is_init(entry.operation) {
                        true => 0,
                        false => whole(entry.total.saturating_sub(entry.on_files.1)),
                    },
                };
                calls.push(row);
                if entry.on_files.0 > 0 {
                    calls.push(SpentIn {
                        class: TimeClass::Io,
                        count: entry.on_files.0,
                        bytes: 0,
                        ns: whole(entry.on_files.1),
                        ..row
                    });
                }
            }
            calls.extend(beside.iter().map(|beside| SpentIn {
                call: beside.site.0,
                call_path: self.path_of_key.get(&beside.site.1).copied().unwrap_or(0),
                class: TimeClass::of(beside.site.0),
                count: 0,
                bytes: 0,
                ns: beside.time,
            }));
            let bounds = &self.opened.bounds[at];
            let span = bounds.span;
            let begin = clock.ns(bounds.started.unwrap_or(span.0));
            // Threads that do not shut the library down are measured to their end, as in a report.
            let end = clock.ns(span.1).saturating_sub_unsigned(times.shutdown);
            Spent {
                measured: (begin, end.max(begin)),
                computation_ns: times.computation(),
                calls,
            }
        });
        of_locations.collect()
    }
}
