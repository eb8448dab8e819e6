//! The table per rank. Agents keep the rows of their ranks and send them to the head piece by
//! piece, in order of ranks, so that the head never holds all of them.

use std::path::Path;

use anyhow::Result;
use laggard_comm::Job;
use laggard_patterns::PatternId;
use laggard_report::SourceLocation;
use laggard_tables::{Call, Late, PerRank, Row, Run, Text, Value};
use laggard_trace::calls;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::basics::intern::{Interner, PathKey};
use crate::findings::fold::Times;
use crate::findings::places::Places;
use crate::input::open::Opened;
use crate::judge::profile::LocationTimes;
use crate::waits::sums::{LocalFindings, Parts, PatternNumber, Sums};

/// Approximate number of rows and locations in a piece.
const PIECE: usize = 4096;

/// Loss of a location in one call, because of one party. Ordered by all fields except the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Lost {
    pattern: PatternNumber,
    operation: u16,
    late_operation: u16,
    /// Number of the call path.
    path: u32,
    /// World rank of the late party; `NONE` = nobody.
    late: u32,
    /// Number of the late party's call path.
    late_path: u32,
    instances: u64,
    parts: Parts,
}

impl Lost {
    fn is_about(&self) -> (PatternNumber, u16, u32, u32, u16, u32) {
        let late = (self.late, self.late_operation, self.late_path);
        let own = (self.pattern, self.operation, self.path);
        (own.0, own.1, own.2, late.0, late.1, late.2)
    }

    fn add(&mut self, other: &Lost) {
        self.instances = self.instances.saturating_add(other.instances);
        self.parts.add(&other.parts);
    }
}

/// Adds up the losses of the same call and party.
fn added(mut lost: Vec<Lost>) -> Vec<Lost> {
    lost.sort_unstable_by_key(Lost::is_about);
    lost.dedup_by(|next, sum| {
        let is_same = next.is_about() == sum.is_about();
        if is_same {
            sum.add(next);
        }
        is_same
    });
    lost
}

/// The rows of an agent's locations.
#[derive(Debug, Default)]
pub struct Rows {
    paths: Interner<PathKey>,
    /// By position of the location; a location may have many.
    lost: Vec<Box<[Lost]>>,
}

impl Rows {
    /// Empty rows of `locations` locations.
    pub fn new(locations: usize) -> Rows {
        Rows {
            paths: Interner::default(),
            lost: vec![Box::default(); locations],
        }
    }

    /// Adds the findings of a location; `name` gives a signature's call and call path.
    pub fn take(
        &mut self,
        location: usize,
        findings: &LocalFindings,
        name: impl Fn(u32) -> (u16, PathKey),
    ) {
        let mut lost = Vec::new();
        for (signature, pattern, sums) in findings.iter() {
            let (operation, path) = name(signature);
            self.split(pattern, operation, path, sums, &mut lost);
        }
        self.lost[location] = added(lost).into_boxed_slice();
    }

    /// Splits the sums of one call: a row for each late party, and one for the time charged to
    /// nobody.
    fn split(
        &mut self,
        pattern: PatternNumber,
        operation: u16,
        path: PathKey,
        sums: &Sums,
        lost: &mut Vec<Lost>,
    ) {
        let mut rest = Lost {
            pattern,
            operation,
            late_operation: 0,
            path: self.paths.number(path),
            late: NONE,
            late_path: NONE,
            instances: sums.instances,
            parts: Parts {
                severity: sums.severity,
                ..Parts::default()
            },
        };
        for (late, cause) in sums.causes.iter() {
            rest.instances = rest.instances.saturating_sub(cause.instances);
            rest.parts.severity = rest.parts.severity.saturating_sub(cause.sums.severity);
            lost.push(Lost {
                late: late.rank,
                late_operation: late.operation,
                late_path: self.paths.number(late.path),
                instances: cause.instances,
                parts: cause.sums,
                ..rest
            });
        }
        if rest.instances > 0 || rest.parts.severity > 0 {
            lost.push(rest);
        }
    }

    pub fn rename_paths(&mut self, name: impl Fn(PathKey) -> PathKey) {
        let mut paths = Interner::default();
        let renamed = self
            .paths
            .values
            .iter()
            .map(|&path| paths.number(name(path)));
        let renamed: Vec<u32> = renamed.collect();
        self.paths = paths;
        let other = |path: &mut u32| {
            if let Some(&now) = renamed.get(*path as usize) {
                *path = now;
            }
        };
        for rows in &mut self.lost {
            for lost in rows.iter_mut() {
                other(&mut lost.path);
                other(&mut lost.late_path);
            }
            *rows = added(std::mem::take(rows).into_vec()).into_boxed_slice();
        }
    }
}

/// Rows of successive locations.
#[derive(Default, Serialize, Deserialize)]
struct Piece {
    /// Call paths by number.
    paths: Vec<PathKey>,
    parts: Vec<Part>,
}

/// Rows of one location, or a part of them.
#[derive(Serialize, Deserialize)]
struct Part {
    times: LocationTimes,
    /// Whether these are the location's first rows.
    begins: bool,
    lost: Vec<Lost>,
}

/// The pieces of an agent's rows.
struct Pieces<'r> {
    rows: &'r mut Rows,
    times: &'r [LocationTimes],
    /// Next location, and its next row.
    at: usize,
    row: usize,
}

impl Pieces<'_> {
    fn next(&mut self) -> Option<Piece> {
        let mut piece = Piece::default();
        let mut paths: Interner<PathKey> = Interner::default();
        let mut size = 0;
        while size < PIECE {
            let Some(times) = self.times.get(self.at) else {
                break;
            };
            let begins = self.row == 0;
            let known = &self.rows.paths.values;
            if begins {
                // The worst first. Ties go by key: numbers of call paths depend on the agent.
                let key = |path: u32| known.get(path as usize).copied();
                self.rows.lost[self.at].sort_by_cached_key(|lost| {
                    let about = (lost.pattern, lost.operation, key(lost.path));
                    let late = (lost.late, lost.late_operation, key(lost.late_path));
                    (std::cmp::Reverse(lost.parts.severity), about, late)
                });
            }
            let rest = &self.rows.lost[self.at][self.row..];
            let lost = &rest[..rest.len().min(PIECE - size)];
            let mut number = |path: u32| match known.get(path as usize) {
                Some(&key) => paths.number(key),
                None => NONE,
            };
            let renumbered = lost.iter().map(|lost| Lost {
                path: number(lost.path),
                late_path: number(lost.late_path),
                ..*lost
            });
            piece.parts.push(Part {
                times: times.clone(),
                begins,
                lost: renumbered.collect(),
            });
            size += lost.len() + 1;
            if lost.len() == rest.len() {
                self.rows.lost[self.at] = Box::default();
                (self.at, self.row) = (self.at + 1, 0);
            } else {
                self.row += lost.len();
            }
        }
        piece.paths = paths.values;
        (!piece.parts.is_empty()).then_some(piece)
    }
}

/// Writes the table of all agents' locations; `times` ascend by rank and thread. Collective. Only
/// the head writes, and only the head gets errors of writing.
pub fn write(
    job: &dyn Job,
    path: &Path,
    mut rows: Rows,
    times: &[LocationTimes],
    opened: &Opened,
    places: &mut Places,
    all: bool,
) -> Result<()> {
    let mut pieces = Pieces {
        rows: &mut rows,
        times,
        at: 0,
        row: 0,
    };
    let pack = |piece: Piece| postcard::to_stdvec(&piece).expect("numbers in vectors");
    let mut next = || pieces.next().map(pack);
    if job.agent() != 0 {
        job.relay(&mut next, &mut |_| {});
        return Ok(());
    }
    let mut table = Table::new(path, opened, places, all);
    job.relay(&mut next, &mut |bytes| {
        // Receive from all agents even after an error: they wait for it.
        if let Ok(open) = &mut table
            && let Err(error) = open.add(&bytes)
        {
            table = Err(error);
        }
    });
    Ok(table?.file.finish()?)
}

#[derive(Clone, Copy, Default)]
struct Place {
    file: Option<Text>,
    line: u32,
    function: Option<Text>,
    callpath: Option<Text>,
}

/// The file and its texts.
struct Table<'t> {
    file: PerRank,
    opened: &'t Opened,
    places: &'t mut Places,
    known: FxHashMap<PathKey, Place>,
    operations: FxHashMap<u16, Text>,
    patterns: FxHashMap<PatternNumber, Text>,
    hosts: Vec<Option<Text>>,
    /// Names of the times, in the order of [`Table::times`].
    metrics: [Text; 12],
    /// Places often share texts.
    texts: FxHashMap<String, Text>,
}

impl<'t> Table<'t> {
    fn new(path: &Path, opened: &'t Opened, places: &'t mut Places, all: bool) -> Result<Self> {
        let first = &opened.run;
        let run = Run {
            run_id: first.run_id,
            program: first.program.first().map_or("", String::as_str),
            arguments: first.program.get(1..).unwrap_or_default(),
            ranks: opened.agent_of.len() as u32,
            all,
        };
        let mut file = PerRank::create(path, &run)?;
        let metrics = [
            "wall",
            "startup",
            "shutdown",
            "computation",
            "communication",
            "synchronization",
            "io",
            "wait",
            "blocked",
            "preempted",
            "kernel",
            "processor",
        ];
        Ok(Table {
            metrics: metrics.map(|metric| file.text(metric)),
            file,
            opened,
            places,
            known: FxHashMap::default(),
            operations: FxHashMap::default(),
            patterns: FxHashMap::default(),
            hosts: vec![None; opened.host_names.len().max(1)],
            texts: FxHashMap::default(),
        })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let piece: Piece = postcard::from_bytes(bytes)?;
        for part in &piece.parts {
            let host = self.host(part.times.rank);
            let row = |metric, time, value| Row {
                rank: part.times.rank,
                thread: part.times.thread,
                host,
                metric,
                time,
                value,
            };
            if part.begins {
                let times = Times::of(&part.times);
                let [blocked, preempted, kernel] = times.outside;
                let times = [
                    times.wall,
                    times.startup,
                    times.shutdown,
                    times.computation,
                    times.communication,
                    times.synchronization,
                    times.io,
                    times.waiting,
                    blocked,
                    preempted,
                    kernel,
                    times.processor,
                ];
                for (metric, time) in self.metrics.into_iter().zip(times) {
                    self.file.push(&row(metric, time, Value::Time))?;
                }
                let counted = &part.times.counted;
                for (name, count) in &counted.counts {
                    if let Some(metric) = self.text(name.clone()) {
                        let row = row(metric, counted.time, Value::Counted(*count));
                        self.file.push(&row)?;
                    }
                }
            }
            for lost in &part.lost {
                let path = |number: u32| piece.paths.get(number as usize).copied();
                let late = (lost.late != NONE).then(|| Late {
                    rank: lost.late,
                    call: self.call(lost.late_operation, path(lost.late_path)),
                    computation: lost.parts.computation,
                    waiting: lost.parts.waiting,
                    io: lost.parts.io,
                });
                let value = Value::Lost {
                    instances: lost.instances,
                    call: self.call(lost.operation, path(lost.path)),
                    late,
                };
                let pattern = self.pattern(lost.pattern);
                self.file.push(&row(pattern, lost.parts.severity, value))?;
            }
        }
        Ok(())
    }

    fn call(&mut self, operation: u16, path: Option<PathKey>) -> Call {
        let place = path.map_or(Place::default(), |path| self.place(path));
        let file = &mut self.file;
        let name = self.operations.entry(operation);
        Call {
            operation: *name.or_insert_with(|| file.text(calls::name(operation))),
            file: place.file,
            line: place.line,
            function: place.function,
            callpath: place.callpath,
        }
    }

    fn pattern(&mut self, number: PatternNumber) -> Text {
        let file = &mut self.file;
        let name = || file.text(PatternId::from_number(number).map_or("", PatternId::id));
        *self.patterns.entry(number).or_insert_with(name)
    }

    fn host(&mut self, rank: u32) -> Text {
        let host = self.opened.hosts.get(rank as usize).copied().unwrap_or(0) as usize;
        let known = self.hosts.get(host).copied().flatten();
        known.unwrap_or_else(|| {
            let text = self.file.text(self.opened.host_of(rank));
            self.hosts[host] = Some(text);
            text
        })
    }

    fn place(&mut self, path: PathKey) -> Place {
        if let Some(&known) = self.known.get(&path) {
            return known;
        }
        let SourceLocation {
            file,
            line,
            function,
            callpath,
            ..
        } = self.places.of(path);
        let place = Place {
            file: self.text(file),
            line,
            function: self.text(function),
            callpath: self.text(callpath.join(" > ")),
        };
        self.known.insert(path, place);
        place
    }

    fn text(&mut self, text: String) -> Option<Text> {
        if text.is_empty() {
            return None;
        }
        let file = &mut self.file;
        Some(match self.texts.get(&text) {
            Some(&known) => known,
            None => *self
                .texts
                .entry(text)
                .or_insert_with_key(|text| file.text(text)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::charging::{Charged, Hosts, Loss, Waiting};
    use crate::wire::parcels::Detail;

    fn late(rank: u32) -> Detail {
        Detail {
            rank,
            operation: 5,
            path: [u64::from(rank), 0],
            computation: 3,
            ..Detail::default()
        }
    }

    /// A location that lost 10 ns to each of `causes`, and 1 ns to nobody. The calls have three
    /// signatures; two are on one line.
    fn rows(causes: u32) -> Rows {
        let mut charged = Charged::default();
        let mut add = |signature, severity, late: Option<&Detail>| {
            let waiting = Waiting {
                since: 0,
                rank: 0,
                thread: 0,
                enter: 0,
                leave: 100,
                signature,
            };
            let loss = Loss::sure(PatternId::LateSender, severity, late);
            charged.charge(Hosts(&[]), waiting, loss);
        };
        for signature in 1..=3 {
            (1..=causes).for_each(|rank| add(signature, 10, Some(&late(rank))));
            add(signature, 1, None);
        }
        let mut rows = Rows::new(2);
        rows.take(0, &charged.findings, |signature| {
            (7, [100 + u64::from(signature / 2), 0])
        });
        rows
    }

    fn times() -> Vec<LocationTimes> {
        let of = |rank| LocationTimes {
            rank,
            ..LocationTimes::default()
        };
        vec![of(0), of(1)]
    }

    #[test]
    fn rows_are_added_up_by_what_they_are_about() {
        let rows = rows(2);
        let sums: Vec<_> = rows.lost[0]
            .iter()
            .map(|lost| (lost.parts.severity, lost.instances, lost.late))
            .collect();
        assert_eq!(sums.iter().map(|sum| sum.0).sum::<u64>(), 63);
        assert!(sums.contains(&(20, 2, 1)) && sums.contains(&(10, 1, 2)));
        assert!(sums.contains(&(2, 2, NONE)) && sums.contains(&(1, 1, NONE)));
        assert_eq!(sums.len(), 6);
    }

    #[test]
    fn what_is_renamed_to_the_same_is_one() {
        let mut rows = rows(2);
        rows.rename_paths(|path| if path[0] >= 100 { [100, 0] } else { path });
        let severities: Vec<u64> = rows.lost[0].iter().map(|l| l.parts.severity).collect();
        assert_eq!(severities.len(), 3);
        assert_eq!(severities.iter().sum::<u64>(), 63);
    }

    #[test]
    fn a_location_with_many_rows_goes_in_pieces() {
        let mut rows = rows(5_000);
        let times = times();
        let mut pieces = Pieces {
            rows: &mut rows,
            times: &times,
            at: 0,
            row: 0,
        };
        let mut begun = Vec::new();
        let (mut sum, mut last, mut count) = (0, u64::MAX, 0);
        while let Some(piece) = pieces.next() {
            count += 1;
            let size: usize = piece.parts.iter().map(|part| part.lost.len() + 1).sum();
            assert!(size <= PIECE + 1, "{size}");
            for part in &piece.parts {
                begun.extend(part.begins.then_some(part.times.rank));
                for lost in &part.lost {
                    assert!(lost.parts.severity <= last);
                    last = lost.parts.severity;
                    sum += lost.parts.severity;
                    assert!((lost.path as usize) < piece.paths.len());
                    assert_eq!(lost.late == NONE, lost.late_path == NONE);
                }
            }
        }
        assert_eq!((begun, sum), (vec![0, 1], 3 * 50_003 - 6));
        assert!(count > 2);
    }
}
