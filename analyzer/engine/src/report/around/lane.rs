//! Activity of one thread in a moment of the run, in a few segments.

use laggard_trace::calls::{self, GenericType};
use laggard_trace::{Chunk, Decoder, Location, flags};
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::clock::ClockMap;
use crate::stream::rows::TimeClass;

/// Most segments of a lane.
const SEGMENTS: usize = 40;
/// Segments shorter than this part of the moment are joined with their neighbours.
const FINENESS: i64 = 160;
/// Approximate number of records read for a lane; of more, the last ones.
const RECORDS: u64 = 1 << 20;

/// Activity in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Outside of all calls.
    Computation,
    Communication,
    Synchronization,
    Io,
    /// Calls, and computation between them, that are too short to show.
    Several,
}

/// Part of a lane. ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub start: i64,
    pub end: i64,
    pub kind: Kind,
    /// Number of the call, 0 = none.
    pub operation: u16,
    /// Its call path.
    pub path: PathKey,
    /// Number of calls.
    pub calls: u64,
    /// Time inside calls.
    pub inside: i64,
}

/// How well a thread fits a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fit {
    /// No calls.
    #[default]
    Nothing,
    /// It made calls.
    Calls,
    /// One of its calls began at the requested time.
    Exact,
}

/// Activity of a thread.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its activity before this time of the moment is unknown. ns.
    pub known_from: i64,
    pub segments: Vec<Segment>,
    pub fit: Fit,
}

impl Lane {
    /// Call paths of the shown calls.
    pub fn paths(&self) -> impl Iterator<Item = PathKey> {
        let told = self
            .segments
            .iter()
            .filter(|segment| segment.operation != 0);
        told.map(|segment| segment.path)
    }
}

/// Reads the activity of a location in a moment, between two times. `paths` are the keys of its
/// call paths, `at` is the begin of the requested call.
pub fn read(
    location: &Location,
    clock: &ClockMap,
    span: (u64, u64),
    paths: &[PathKey],
    (from, until): (i64, i64),
    at: i64,
) -> Lane {
    let chunks = &location.chunks;
    let begins_by = |moment: i64| move |chunk: &Chunk| clock.ns(chunk.base) <= moment;
    let end = chunks.partition_point(begins_by(until));
    let first = chunks[..end]
        .partition_point(begins_by(from))
        .saturating_sub(1);
    let (mut begin, mut records) = (end, 0);
    while begin > first && records < RECORDS {
        begin -= 1;
        records += u64::from(chunks[begin].count);
    }
    let (start, stop) = (clock.ns(span.0), clock.ns(span.1));
    let mut known_from = from.max(start);
    if begin > first {
        known_from = known_from.max(clock.ns(chunks[begin].base));
    }
    let mut folder = Folder::new(
        known_from,
        until,
        (until.saturating_sub(from) / FINENESS).max(1),
    );
    let mut fit = Fit::Nothing;
    let signatures = location.definitions.signatures();
    for chunk in &chunks[begin..end] {
        if !location.verify(chunk) {
            // Damaged: its activity and that before are unknown.
            folder = Folder::new(from.max(clock.ns(chunk.base)), until, folder.shortest);
            continue;
        }
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            let (enter, leave) = (clock.ns(event.enter), clock.ns(event.leave));
            let Some(signature) = signatures.get(event.signature as usize) else {
                continue;
            };
            let generic = calls::call(signature.operation).map(|call| call.generic);
            let is_region = generic.is_none_or(|generic| generic == GenericType::User);
            if leave <= from || enter >= until || is_region || signature.has(flags::PART) {
                continue;
            }
            fit = fit.max(if enter == at { Fit::Exact } else { Fit::Calls });
            let kind = match TimeClass::of_call(signature.operation, signature.flags) {
                TimeClass::Communication | TimeClass::Setup => Kind::Communication,
                TimeClass::Synchronization => Kind::Synchronization,
                TimeClass::Io => Kind::Io,
            };
            let path = paths.get(signature.call_path as usize).copied();
            folder.call(Segment {
                start: enter,
                end: leave,
                kind,
                operation: signature.operation,
                path: path.unwrap_or_default(),
                calls: event.repeated.map_or(1, |(calls, _)| u64::from(calls)),
                inside: 0,
            });
        }
        location.release(chunk);
    }
    // If recording stopped before the program did, later activity is unknown.
    let is_whole = location.end.is_some_and(|end| end.limits == 0);
    let known_until = if is_whole { stop.min(until) } else { folder.at };
    Lane {
        known_from: folder.from,
        segments: folder.finish(known_until),
        fit,
    }
}

/// Folds many calls into few segments.
struct Folder {
    from: i64,
    until: i64,
    /// End of the known activity so far.
    at: i64,
    shortest: i64,
    segments: Vec<Segment>,
}

impl Folder {
    fn new(from: i64, until: i64, shortest: i64) -> Folder {
        // A thread may begin after the moment.
        let from = from.min(until);
        Folder {
            from,
            // A damaged trace may begin after its end.
            until: until.max(from),
            at: from,
            shortest,
            segments: Vec::new(),
        }
    }

    /// Adds a call, and the computation before it.
    fn call(&mut self, mut call: Segment) {
        call.start = call.start.clamp(self.from, self.until);
        call.end = call.end.clamp(call.start, self.until);
        // A region that is an operation comes after the calls in it.
        while self
            .segments
            .last()
            .is_some_and(|last| last.start >= call.start && last.end > call.start)
        {
            self.segments.pop();
        }
        if let Some(last) = self.segments.last_mut() {
            last.end = last.end.min(call.start);
        }
        self.at = self.segments.last().map_or(self.from, |last| last.end);
        self.computed(call.start);
        call.inside = call.end.saturating_sub(call.start);
        self.push(call);
        self.at = call.end;
    }

    fn computed(&mut self, until: i64) {
        if until > self.at {
            self.push(Segment {
                start: self.at,
                end: until,
                kind: Kind::Computation,
                operation: 0,
                path: PathKey::default(),
                calls: 0,
                inside: 0,
            });
            self.at = until;
        }
    }

    fn push(&mut self, next: Segment) {
        let is_short =
            |segment: &Segment| segment.end.saturating_sub(segment.start) < self.shortest;
        match self.segments.last_mut() {
            Some(last) if is_short(&next) && (last.kind == Kind::Several || is_short(last)) => {
                *last = Segment {
                    start: last.start,
                    end: next.end,
                    kind: Kind::Several,
                    operation: 0,
                    path: PathKey::default(),
                    calls: last.calls.saturating_add(next.calls),
                    inside: last.inside.saturating_add(next.inside),
                };
            }
            _ => self.segments.push(next),
        }
    }

    /// All segments; the last one ends at `until`.
    fn finish(mut self, until: i64) -> Vec<Segment> {
        self.computed(until);
        while self.segments.len() > SEGMENTS {
            let mut coarser = Folder::new(self.from, self.until, self.shortest.saturating_mul(2));
            for segment in self.segments {
                coarser.push(segment);
            }
            self = coarser;
        }
        self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(start: i64, end: i64, operation: u16) -> Segment {
        Segment {
            start,
            end,
            kind: Kind::Communication,
            operation,
            path: PathKey::default(),
            calls: 1,
            inside: 0,
        }
    }

    fn folded(calls: &[(i64, i64, u16)], shortest: i64) -> Vec<(i64, i64, Kind, u64)> {
        let mut folder = Folder::new(0, 1000, shortest);
        calls
            .iter()
            .for_each(|&(start, end, operation)| folder.call(call(start, end, operation)));
        let segments = folder.finish(1000).into_iter();
        segments
            .map(|s| (s.start, s.end, s.kind, s.calls))
            .collect()
    }

    #[test]
    fn gaps_are_computation_and_ends_are_cut() {
        let (call, gap) = (Kind::Communication, Kind::Computation);
        assert_eq!(
            folded(&[(-50, 100, 1), (300, 400, 1), (900, 1200, 1)], 10),
            [
                (0, 100, call, 1),
                (100, 300, gap, 0),
                (300, 400, call, 1),
                (400, 900, gap, 0),
                (900, 1000, call, 1)
            ]
        );
        assert_eq!(folded(&[], 10), [(0, 1000, gap, 0)]);
    }

    #[test]
    fn short_ones_are_one() {
        let (several, gap) = (Kind::Several, Kind::Computation);
        let calls: Vec<_> = (0..50).map(|n| (n * 10, n * 10 + 4, 1)).collect();
        assert_eq!(
            folded(&calls, 20),
            [(0, 494, several, 50), (494, 1000, gap, 0)]
        );
        // A single call keeps its name.
        assert_eq!(
            folded(&[(500, 504, 1)], 20)[1],
            (500, 504, Kind::Communication, 1)
        );
    }

    #[test]
    fn a_thread_may_begin_later() {
        let mut folder = Folder::new(2000, 1000, 10);
        folder.call(call(500, 1500, 1));
        assert_eq!(folder.from, 1000);
        let segments = folder.finish(3000);
        assert!(
            segments.iter().all(|s| s.start >= 1000 && s.start <= s.end),
            "{segments:?}"
        );
    }

    #[test]
    fn there_are_few() {
        let calls: Vec<_> = (0..100).map(|n| (n * 10, n * 10 + 5, 1)).collect();
        let segments = folded(&calls, 1);
        assert!(segments.len() <= SEGMENTS, "{segments:?}");
        assert_eq!(segments.iter().map(|s| s.3).sum::<u64>(), 100);
        assert!(segments.windows(2).all(|two| two[0].1 == two[1].0));
    }

    #[test]
    fn an_operation_around_others_hides_them() {
        let calls = [(100, 200, 1), (300, 400, 1), (250, 500, 2), (50, 600, 3)];
        let (call, gap) = (Kind::Communication, Kind::Computation);
        assert_eq!(
            folded(&calls, 10),
            [(0, 50, gap, 0), (50, 600, call, 1), (600, 1000, gap, 0)]
        );
    }
}
