//! The regions of a location: as recorded, or the sums of their instances in the records.

use std::borrow::Cow;
use std::collections::BTreeMap;

use laggard_trace::{Chunk, Decoder, Event, Location, REGION_PHASE, RegionEntry, Signature, calls};

/// The runtime profile of a location's regions: from its file, or the sums of the recorded instances
/// if the file was not closed. Instances too short for a record count for the enclosing region
/// then; phases, and what was open in the end, are not among them.
pub fn regions_of(location: &Location) -> Cow<'_, [RegionEntry]> {
    let is_known = location.end.is_some() || !location.regions.is_empty();
    if is_known || location.definitions.regions().is_empty() {
        return Cow::Borrowed(&location.regions);
    }
    let mut sums = Sums::default();
    // An instance is recorded where it ended: from the end on, it comes before what it encloses.
    for chunk in location.chunks.iter().rev() {
        if location.verify(chunk) {
            let spans = spans(location, chunk);
            spans.iter().rev().for_each(|span| sums.take(span));
            // Memory must not grow with the file.
            location.release(chunk);
        }
    }
    sums.close(0);
    Cow::Owned(sums.entries.into_values().collect())
}

/// A call, or an instance of a region; ticks.
struct Span {
    begin: u64,
    end: u64,
    /// Time of the call or of the instance: several calls may have one record.
    time: u64,
    /// Id of the region; `None` of a call.
    region: Option<u32>,
}

/// The calls and instances of a chunk, as recorded.
fn spans(location: &Location, chunk: &Chunk) -> Vec<Span> {
    let signatures = location.definitions.signatures();
    let regions = location.definitions.regions();
    let is_phase = |id: u32| {
        let region = regions.get(id as usize);
        region.is_some_and(|region| region.kind == REGION_PHASE)
    };
    let mut decoder = Decoder::new(location.records(chunk), chunk.base);
    let mut spans = Vec::new();
    while let Some(event) = decoder.next() {
        let signature = signatures.get(event.signature as usize);
        let found = signature.and_then(|signature| span(event, signature));
        spans.extend(found.filter(|span| !span.region.is_some_and(is_phase)));
    }
    spans
}

fn span(event: &Event, signature: &Signature) -> Option<Span> {
    if !signature.is_profiled() || signature.operation == 0 {
        return None;
    }
    if calls::call(signature.operation).is_some_and(|call| call.is_user()) {
        let lasted = event.value.unwrap_or(event.leave - event.enter);
        let begin = event.leave.checked_sub(lasted)?;
        return Some(Span {
            begin,
            end: event.leave,
            time: lasted,
            region: Some(u32::try_from(signature.parameter).ok()?),
        });
    }
    let whole = event.leave - event.enter;
    Some(Span {
        begin: event.enter,
        end: event.leave,
        time: event.repeated.map_or(whole, |(_, ticks)| ticks.into()),
        region: None,
    })
}

/// An instance whose begin is not reached yet; ticks.
struct Open {
    region: u32,
    begin: u64,
    duration: u64,
    /// Time in it that is in calls or other instances.
    inside: u64,
}

impl Open {
    fn add_inside(&mut self, time: u64) {
        self.inside = self.inside.saturating_add(time);
    }
}

#[derive(Default)]
struct Sums {
    /// By begin: the last one is the innermost.
    open: Vec<Open>,
    /// By region.
    entries: BTreeMap<u32, RegionEntry>,
}

impl Sums {
    /// Takes what ended before everything taken so far.
    fn take(&mut self, span: &Span) {
        self.close(span.end);
        let Some(region) = span.region else {
            if let Some(innermost) = self.open.last_mut() {
                innermost.add_inside(span.time);
            }
            return;
        };
        let at = self.open.partition_point(|open| open.begin <= span.begin);
        // Where instances overlap, the time belongs to the one that began later.
        let until = self.open.get(at).map_or(span.end, |later| later.begin);
        let own = until.min(span.end).saturating_sub(span.begin);
        if let Some(around) = at.checked_sub(1) {
            self.open[around].add_inside(own);
        }
        let open = Open {
            region,
            begin: span.begin,
            duration: span.time,
            inside: span.time.saturating_sub(own),
        };
        self.open.insert(at, open);
    }

    /// Adds up the instances that began at `end` or later.
    fn close(&mut self, end: u64) {
        while let Some(done) = self.open.pop_if(|open| open.begin >= end) {
            let exclusive = done.duration.saturating_sub(done.inside);
            let entry = self.entries.entry(done.region).or_insert(RegionEntry {
                region: done.region,
                minimum: u64::MAX,
                ..RegionEntry::default()
            });
            let add = |sum: u64, time: u64| sum.saturating_add(time);
            entry.count += 1;
            // An enclosing instance of the same region includes this one.
            if self.open.iter().all(|open| open.region != done.region) {
                entry.inclusive = add(entry.inclusive, done.duration);
            }
            entry.exclusive = add(entry.exclusive, exclusive);
            entry.minimum = entry.minimum.min(exclusive);
            entry.maximum = entry.maximum.max(exclusive);
            let square = u128::from(exclusive) * u128::from(exclusive);
            entry.sum_of_squares = entry.sum_of_squares.saturating_add(square);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use laggard_trace::calls::number::MPI_Barrier;
    use laggard_trace::calls::user::REGION;
    use laggard_trace::{
        Definition, End, Extension, FileHeader, LocationWriter, MemorySpace, REGION_NAMED, Record,
        Region,
    };

    use super::*;

    /// A file with calls and instances of regions in the order of their ends: region (0 = a call),
    /// begin, end.
    fn written(spans: &[(u32, u64, u64)], end: Option<End>) -> Location {
        let mut header = FileHeader::new();
        header.ranks = 1;
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        for id in 1..=3 {
            writer.define(&[
                Definition::Region(Region {
                    id,
                    kind: REGION_NAMED,
                    ..Region::default()
                }),
                Definition::Signature(Signature {
                    id,
                    operation: REGION,
                    parameter: id.into(),
                    ..Signature::default()
                }),
            ]);
        }
        writer.define(&[Definition::Signature(Signature {
            id: 4,
            operation: MPI_Barrier,
            ..Signature::default()
        })]);
        for &(region, begin, end) in spans {
            if region == 0 {
                writer.push(begin, end, 4);
                continue;
            }
            let lasted = [Record::extension_u64(Extension::Value, end - begin)];
            writer.push_extended(&lasted, end, end, region);
        }
        let space = match end {
            Some(end) => writer.finish(end),
            None => writer.leave_open(),
        };
        Location::from_bytes(Path::new("test.lgt"), &space.into_bytes()).unwrap()
    }

    /// Region, count, inclusive, exclusive, shortest and longest time.
    fn sums(spans: &[(u32, u64, u64)]) -> Vec<(u32, u64, u64, u64, u64, u64)> {
        let location = written(spans, None);
        let sums = regions_of(&location).into_owned().into_iter().map(|e| {
            (
                e.region,
                e.count,
                e.inclusive,
                e.exclusive,
                e.minimum,
                e.maximum,
            )
        });
        sums.collect()
    }

    #[test]
    fn time_in_calls_and_inner_regions_is_not_exclusive() {
        // 1 from 100 to 200 with 2 (120 to 160), and a call of 10 in each; then 1 again, empty.
        let spans = [
            (0, 105, 115),
            (0, 130, 140),
            (2, 120, 160),
            (1, 100, 200),
            (0, 210, 290),
            (1, 300, 330),
        ];
        let expected = [(1, 2, 130, 50 + 30, 30, 50), (2, 1, 40, 30, 30, 30)];
        assert_eq!(sums(&spans), expected);
    }

    #[test]
    fn a_region_within_itself_is_counted_once() {
        let spans = [(1, 120, 150), (1, 100, 200)];
        assert_eq!(sums(&spans), [(1, 2, 100, 100, 30, 70)]);
    }

    #[test]
    fn where_regions_overlap_the_time_is_of_the_later_one() {
        let spans = [(0, 110, 120), (1, 100, 200), (0, 250, 260), (2, 150, 300)];
        let expected = [(1, 1, 100, 40, 40, 40), (2, 1, 150, 140, 140, 140)];
        assert_eq!(sums(&spans), expected);
    }

    #[test]
    fn what_was_open_in_the_end_is_unknown() {
        assert_eq!(sums(&[(0, 105, 115)]), []);
    }

    #[test]
    fn a_closed_file_says_what_its_regions_are() {
        let closed = written(&[(1, 100, 200)], Some(End::default()));
        assert_eq!(regions_of(&closed), &[][..]);
    }
}
