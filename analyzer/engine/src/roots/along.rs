//! Time on the critical path by activity: one more sweep over the calls of a location.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::basics::ends::NONE;
use crate::basics::room;
use crate::clock::ClockMap;
use crate::roots::activities::{Told, is_call};
use crate::roots::load::{Bin, Sent, Weights};
use crate::roots::phases::Phases;
use crate::roots::walk::Walked;
use crate::stream::columns::{Columns, Stream};
use crate::stream::traffic::moved;
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
    /// Its stretches of the path to come: begins and ends, ns.
    stretches: VecDeque<(i64, i64)>,
    /// The last call: more of it may be on the path than is known yet.
    open: Call,
    /// The last time on the path whose weight was needed, ns, its bin, and the weight before it.
    weighed: (i64, Bin, i128),
    /// By signature: bytes that a call moves.
    moved: Vec<u64>,
    /// Where the last bytes went.
    sending: Bin,
    /// The phases that the program marked.
    pub phases: Phases,
}

/// Signature, enter and leave, ns.
type Call = (u32, i64, i64);

impl<'a> Along<'a> {
    /// A location that was walked over.
    pub fn new(walked: Walked<'a>, clock: ClockMap, folds: bool) -> Self {
        let stream = Stream::new(walked.thread.stream.location(), clock);
        let signatures = stream.location().definitions.signatures().iter();
        let moved = signatures.map(|signature| moved(signature, signature.send, signature.receive));
        Along {
            folds,
            phases: Phases::new(stream.location()),
            moved: moved.collect(),
            stream,
            columns: Columns::without_look_back(),
            on_path: Vec::new(),
            stretches: VecDeque::new(),
            open: (NONE, walked.begin, walked.begin),
            walked,
            weighed: (0, Bin::default(), 0),
            sending: Bin::default(),
        }
    }

    /// Adds a stretch that follows the others.
    pub fn push(&mut self, stretch: &Stretch) {
        self.stretches.push_back((stretch.from, stretch.until));
        self.phases.push((stretch.from, stretch.until));
    }

    /// Adds up the path and the bytes sent in the calls that are entered before `until`, ns. All
    /// stretches that begin before it are there.
    pub fn read(&mut self, until: i64, weights: &Weights, sent: &mut Sent) {
        self.stream.fill(until, false, &mut self.columns);
        let columns = std::mem::take(&mut self.columns);
        self.send(&columns, sent);
        self.phases.read(&columns, &self.stream, weights);
        let calls = columns.first..columns.enter.len();
        let call = |at: usize| (columns.signature[at], columns.enter[at], columns.leave[at]);
        let is_call = is_call(&self.walked.thread.rows);
        let is_defined = |at: &usize| is_call(columns.signature[*at]);
        let begin = self.stretches.front().map_or(i64::MAX, |next| next.0);
        let before = columns.enter[calls.clone()].partition_point(|&enter| enter <= begin);
        // The last call before the path has the time up to the next one.
        let next = calls.start + before;
        if let Some(last) = (calls.start..next).rev().find(is_defined) {
            self.open = call(last);
        }
        for at in (next..calls.end).filter(is_defined) {
            match self.stretches.front() {
                None => {
                    let last = (at..calls.end).rev().find(is_defined);
                    self.open = last.map_or(self.open, call);
                    break;
                }
                // The path comes back later.
                Some((begin, _)) if *begin >= columns.enter[at] => self.open = call(at),
                Some(_) => {
                    let told = Told::by(columns.event(at), self.folds);
                    self.take(call(at), told, weights);
                }
            }
        }
        self.columns = columns;
    }

    /// Adds up the time until the next call, with the parts that its record tells. If
    /// the path has only some of that, parts count as one after the other.
    fn take(&mut self, next: Call, told: Told<'_>, weights: &Weights) {
        let (signature, enter, leave) = self.open;
        if signature != NONE {
            let number = self.walked.of_call(signature);
            self.add(number, (enter, leave.min(next.1)), weights);
        }
        let time = (next.1 - leave).max(0);
        if told.is_nothing() {
            if time > 0 {
                let number = self.walked.of_gap(signature, next.0);
                self.add(number, (leave, next.1), weights);
            }
            self.open = next;
            return;
        }
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
        self.open = next;
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
        while let Some(&(begin, end)) = self.stretches.front() {
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
            if end > until {
                break;
            }
            self.stretches.pop_front();
        }
    }

    /// Adds the bytes that calls move.
    fn send(&mut self, columns: &Columns, sent: &mut Sent) {
        let signatures = self.stream.location().definitions.signatures();
        let (mut first, end) = (columns.first, columns.enter.len());
        let extended = columns
            .extended
            .iter()
            .map(|(at, event)| (*at, Some(event)));
        for (at, event) in extended.chain([(end, None)]) {
            let plain = columns.signature[first..at].iter();
            for (&id, &enter) in plain.zip(&columns.enter[first..at]) {
                let bytes = self.moved.get(id as usize).copied().unwrap_or(0);
                if bytes != 0 {
                    sent.add(&mut self.sending, enter, bytes);
                }
            }
            first = at + 1;
            let Some(event) = event else {
                break;
            };
            if let Some(signature) = signatures.get(event.signature as usize) {
                let bytes = moved(signature, event.send(signature), event.receive(signature));
                if bytes != 0 {
                    sent.add(&mut self.sending, columns.enter[at], bytes);
                }
            }
        }
    }
}
