//! What threads did between calls, and in calls beside work: off the processor or in the kernel, samples of
//! the call stack, and counters.
//!
//! Each thread with such times has tracks of its own for them, below its calls. The trace does not tell the
//! order of the parts of a stretch: they are drawn one after the other.

use std::io::Write;

use anyhow::Result;
use laggard_engine::events::{OUTSIDE, Operation};
use laggard_perfetto::{Kind, Prepared, Slice, Track, Value};
use laggard_trace::COUNTERS;
use laggard_trace::calls::Call;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{FIRST, TimeLine, track_of};

/// Numbers of a thread's tracks: parts of stretches, counters, and samples.
const PARTS: u64 = 0;
const FIRST_COUNTER: u64 = 1;
const SAMPLES: u64 = FIRST_COUNTER + COUNTERS as u64;

/// What is known of these tracks so far.
#[derive(Default)]
pub(super) struct Between {
    /// Tracks that are defined.
    tracks: FxHashSet<u64>,
    /// Kinds of slices.
    outside: Option<[Prepared; OUTSIDE.len()]>,
    /// Kinds of samples, by call path.
    samples: FxHashMap<u32, Prepared>,
    /// Names of the counters of the current location.
    counters: Vec<String>,
}

impl<W: Write + Send + 'static> TimeLine<'_, W> {
    /// The calls of a location follow.
    pub(super) fn begin_between(&mut self, at: usize) {
        self.between.counters = self.events.counters(at);
    }

    /// Draws the time before a call, since the one before.
    pub(super) fn stretch(&mut self, at: usize, operation: &Operation, since: i64) -> Result<()> {
        // Of a region without calls, it reaches to its end.
        let until = match operation.call.is_some_and(Call::is_user) {
            true => operation.leave,
            false => operation.enter,
        };
        self.outside(at, operation.beside(), (since, until))?;
        // What a call did more than it waited, it did at its end.
        let inside: i64 = operation.off().iter().sum();
        let since = operation.leave.saturating_sub(inside).max(operation.enter);
        self.outside(at, operation.off(), (since, operation.leave))?;
        self.count_in(at, operation, (since, until))?;
        for (path, time) in self.events.moments(at, operation) {
            self.sample(at, path, time)?;
        }
        Ok(())
    }

    /// The parts off the processor and in the kernel, one after the other.
    fn outside(
        &mut self,
        at: usize,
        times: [i64; OUTSIDE.len()],
        (since, until): (i64, i64),
    ) -> Result<()> {
        let mut begin = since;
        for (part, time) in times.into_iter().enumerate() {
            let end = begin.saturating_add(time).min(until);
            if end <= begin {
                continue;
            }
            let track = self.own_track(
                at,
                PARTS,
                "beside work",
                "parts of a stretch or a call: their order is not known",
            )?;
            let kinds = match &self.between.outside {
                Some(kinds) => kinds,
                None => {
                    let mut kinds = Vec::new();
                    for kind in OUTSIDE {
                        kinds.push(self.writer.prepare(&Kind {
                            name: kind.name(),
                            category: "beside work",
                            values: &[],
                            colour: None,
                        })?);
                    }
                    let Ok(kinds) = kinds.try_into() else {
                        return Ok(());
                    };
                    self.between.outside.insert(kinds)
                }
            };
            self.writer.begin(&Slice {
                track,
                begin,
                kind: &kinds[part],
                number: None,
                flows_from: &[],
                flows_to: &[],
            })?;
            self.writer.end(track, end)?;
            begin = end;
        }
        Ok(())
    }

    /// Counts per second in the stretch.
    fn count_in(
        &mut self,
        at: usize,
        operation: &Operation,
        (since, until): (i64, i64),
    ) -> Result<()> {
        let Some((counts, time)) = self.events.counted(at, operation) else {
            return Ok(());
        };
        for (number, count) in counts.iter() {
            let Some(name) = self.between.counters.get(number) else {
                continue;
            };
            let name = format!("{name} per second");
            let track = self.own_track(
                at,
                FIRST_COUNTER + number as u64,
                &name,
                "while the thread computes",
            )?;
            let rate = i128::from(count) * 1_000_000_000 / i128::from(time.max(1));
            let rate = i64::try_from(rate).unwrap_or(i64::MAX);
            self.writer.count(track, since, rate)?;
            self.writer.count(track, until.max(since), 0)?;
        }
        Ok(())
    }

    fn sample(&mut self, at: usize, path: u32, time: i64) -> Result<()> {
        if !self.between.samples.contains_key(&path) {
            let (place, whole) = (&self.places[path as usize], &self.paths[path as usize]);
            let name = match place.is_empty() {
                true => "sample",
                false => place,
            };
            let kind = self.writer.prepare(&Kind {
                name,
                category: "sample",
                values: &[("call path", Value::Text(whole))],
                colour: None,
            })?;
            self.between.samples.insert(path, kind);
        }
        let track = self.own_track(at, SAMPLES, "samples", "where the thread was")?;
        Ok(self.writer.instant(&Slice {
            track,
            begin: time,
            kind: &self.between.samples[&path],
            number: None,
            flows_from: &[],
            flows_to: &[],
        })?)
    }

    /// The number of a track below that of a location; defines it at first use.
    fn own_track(&mut self, at: usize, which: u64, name: &str, description: &str) -> Result<u64> {
        // After the locations' own tracks, and those of their root causes.
        let first = FIRST + 2 * self.events.locations() as u64;
        let uuid = first + at as u64 * (1 + SAMPLES) + which;
        if !self.between.tracks.insert(uuid) {
            return Ok(uuid);
        }
        let track = Track {
            uuid,
            parent: Some(track_of(at)),
            name,
            description,
            order: which as i32,
        };
        match which {
            PARTS | SAMPLES => self.writer.track(&track)?,
            _ => self.writer.counter_track(&track)?,
        }
        Ok(uuid)
    }
}
