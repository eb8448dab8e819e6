//! Time on the critical path by activity: one more sweep over the calls of a location.

use std::collections::VecDeque;

use laggard_trace::Event;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::basics::ends::NONE;
use crate::basics::room;
use crate::clock::ClockMap;
use crate::roots::activities::{Told, is_call};
use crate::roots::load::{Bin, Weights};
use crate::roots::phases::Phases;
use crate::roots::walk::Walked;
use crate::stream::columns::{Columns, Stream};
use crate::stream::rows::Row;
use crate::wire::links::Stretch;

/// Time on the path, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub time: i64,
    /// Weighted, see [`crate::roots::load`]; and by how much that may be wrong. In parts of a ns
    /// until the sweep is over.
    pub weight: i128,
    pub error: i128,
}

impl Spent {
    /// Adds another part.
    pub fn add(&mut self, other: &Spent) {
        self.time += other.time;
        self.weight += other.weight;
        self.error += other.error;
    }
}

/// One location.
pub struct Along<'a> {
    /// See [`Search::folds`](crate::roots::Search::folds).
    folds: bool,
    stream: Stream<'a>,
    columns: Columns,
    pub walked: Walked<'a>,
    /// By activity.
    pub on_path: Vec<Spent>,
    /// The stretch of the path that it is in or before, and those that follow: begins and ends, ns.
    here: (i64, i64),
    stretches: VecDeque<(i64, i64)>,
    /// The last call: more of it may be on the path than is known yet.
    open: Call,
    /// The last time on the path whose weight was needed, ns, its bin, and the weight before it.
    weighed: (i64, Bin, i128),
    /// The phases that the program marked.
    pub phases: Phases,
}

/// No stretch of the path.
const NEVER: (i64, i64) = (i64::MAX, i64::MAX);

/// Signature, enter and leave, ns.
type Call = (u32, i64, i64);

impl<'a> Along<'a> {
    /// A location that was walked over.
    pub fn new(walked: Walked<'a>, clock: ClockMap, folds: bool) -> Self {
        let stream = Stream::new(walked.thread.stream.location(), clock);
        Along {
            folds,
            phases: Phases::new(stream.location()),
            stream,
            columns: Columns::without_look_back(),
            on_path: Vec::new(),
            here: NEVER,
            stretches: VecDeque::new(),
            open: (NONE, walked.begin, walked.begin),
            walked,
            weighed: (0, Bin::default(), 0),
        }
    }

    /// Adds a stretch that follows the others.
    pub fn push(&mut self, stretch: &Stretch) {
        let stretch = (stretch.from, stretch.until);
        match self.here {
            NEVER => self.here = stretch,
            _ => self.stretches.push_back(stretch),
        }
        self.phases.push(stretch);
    }

    /// Adds up the path in the calls that are entered before `until`, ns. All stretches that begin before it are
    /// there.
    pub fn read(&mut self, until: i64, weights: &Weights) {
        // Regions are records of their own, which tell of what was before them.
        if !self.walked.thread.rows.iter().any(Row::is_mark) {
            if self.here.0 >= until {
                return;
            }
            self.stream.pass(self.here.0);
        }
        self.stream.fill(until, false, &mut self.columns);
        let columns = std::mem::take(&mut self.columns);
        self.phases.read(&columns, &self.stream, weights);
        let (mut at, end) = (columns.first, columns.enter.len());
        let call = |at: usize| (columns.signature[at], columns.enter[at], columns.leave[at]);
        let is_call = is_call(&self.walked.thread.rows);
        let is_defined = |at: &usize| is_call(columns.signature[*at]);
        while at < end {
            let begin = self.here.0;
            if columns.enter[at] <= begin {
                // The last call before the path has the time up to the next one.
                let next = at + columns.enter[at..].partition_point(|&enter| enter <= begin);
                let last = (at..next).rev().find(is_defined);
                self.open = last.map_or(self.open, call);
                at = next;
                continue;
            }
            if is_defined(&at) {
                self.take(call(at), columns.event(at), weights);
            }
            at += 1;
        }
        self.columns = columns;
    }

    /// Adds up the time until the next call, with the parts that its record tells. If
    /// the path has only some of that, parts count as one after the other.
    fn take(&mut self, next: Call, event: Option<&Event>, weights: &Weights) {
        let (signature, enter, leave) = self.open;
        if signature != NONE {
            let number = self.walked.of_call(signature);
            self.add(number, (enter, leave.min(next.1)), weights);
        }
        self.open = next;
        let time = (next.1 - leave).max(0);
        let told = event.map(|_| Told::by(event, self.folds));
        let Some(told) = told.filter(|told| !told.is_nothing()) else {
            if time > 0 {
                let number = self.walked.of_gap(signature, next.0);
                self.add(number, (leave, next.1), weights);
            }
            return;
        };
        let mut parts: SmallVec<[(u32, i64); 4]> = SmallVec::new();
        self.walked.activities.of_gap_in(
            self.walked.thread,
            (signature, next.0),
            told,
            time,
            |number, time| {
                parts.push((number, time));
            },
        );
        let mut from = leave;
        for (number, time) in parts {
            self.add(number, (from, from + time), weights);
            from += time;
        }
    }

    /// After the last slab: weights are ns from now on.
    pub fn finish(&mut self, weights: &Weights) {
        let (signature, enter, leave) = self.open;
        if signature != NONE {
            let number = self.walked.of_call(signature);
            self.add(number, (enter, leave), weights);
        }
        let phases = self.phases.spent.values_mut();
        let all = self.on_path.iter_mut().chain(phases);
        for spent in all {
            (spent.weight, spent.error) = (weights.ns(spent.weight), weights.ns(spent.error));
        }
    }

    /// Adds the part of some time that is on the path.
    fn add(&mut self, activity: u32, (from, until): (i64, i64), weights: &Weights) {
        loop {
            let (begin, end) = self.here;
            let (begin, last) = (begin.max(from), end.min(until));
            if begin < last {
                let (time, bin, weight) = &mut self.weighed;
                if *time != begin {
                    *weight = weights.until(bin, begin);
                }
                let until = weights.until(bin, last);
                let spent = room::at(&mut self.on_path, activity as usize);
                spent.time += last - begin;
                spent.weight += until - *weight;
                spent.error += weights.error(*bin, (begin, last));
                (*time, *weight) = (last, until);
            }
            if end > until || self.here == NEVER {
                break;
            }
            self.here = self.stretches.pop_front().unwrap_or(NEVER);
        }
    }
}
