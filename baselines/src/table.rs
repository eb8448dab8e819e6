//! A table of measured times.

mod text;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::curve::between;
use crate::{Baseline, Entry, Error, Fingerprint, Growth, Model, Point, Span};

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "laggard-baseline/1";
/// Largest file of a table, bytes.
const LARGEST: u64 = 256 << 20;

/// Times measured on one machine.
///
/// ```json
/// {
///   "schema": "laggard-baseline/1",
///   "description": "n1, Open MPI 4.1.4",
///   "entries": [
///     {"operation": "MPI_Allreduce", "group_size": 4,
///      "points": [{"bytes": 8, "time_s": 2.1e-6}, {"bytes": 1024, "time_s": 4.0e-6}]}
///   ]
/// }
/// ```
///
/// This much may be written by hand. `laggard baseline` adds the machine's fingerprint, where the
/// members were, and a model of each entry.
///
/// *Between sizes* the logarithm of the time is linear in the logarithm of `bytes + 1` (so that 0
/// bytes have a place), unless the entry's model was closer to its checks. *Between group sizes* it
/// is linear in the logarithm of the group size, if both neighbours cover the bytes. Fewer bytes
/// than the smallest size take the smallest size's time: latency has a floor. Only the model covers
/// more bytes or members than measured, if it was close to the measurements, and not too far beyond
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// [`SCHEMA`].
    pub schema: String,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// The machine; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// Measurements that are missing, and why: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Measurements.
    pub entries: Vec<Entry>,
}

impl Table {
    /// A table with these measurements; the order does not matter.
    pub fn new(description: &str, entries: Vec<Entry>) -> Table {
        let mut table = Table {
            schema: SCHEMA.to_owned(),
            description: description.to_owned(),
            fingerprint: None,
            notes: Vec::new(),
            entries,
        };
        table.sort();
        table
    }

    /// Fits the models of all entries.
    pub fn fit(&mut self) {
        for entry in &mut self.entries {
            entry.model = Model::fit(&entry.points, &entry.checks);
            entry.growth = None;
        }
        let same = |a: &Entry, b: &Entry| (&a.operation, a.span) == (&b.operation, b.span);
        for groups in self.entries.chunk_by_mut(same) {
            let known: Vec<_> = groups
                .iter()
                .map(|entry| (entry.group_size, &entry.points[..]))
                .collect();
            let growth = Growth::fit(&known);
            if let Some(largest) = groups.last_mut() {
                largest.growth = growth;
            }
        }
    }

    /// The table as text, a line per point: the same measurements give the same bytes.
    pub fn to_json(&self) -> String {
        text::json(self)
    }

    /// Writes the table's file, which appears when it is complete.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::Write {
            path: path.to_owned(),
            source,
        };
        laggard_files::replace(path, self.to_json().as_bytes()).map_err(failed)
    }

    /// Reads a table's file.
    pub fn read(path: &Path) -> Result<Table, Error> {
        let bytes = laggard_files::read(path, LARGEST).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        Table::from_json(&bytes, path)
    }

    /// Reads a table from a file's content; `path` is used in messages.
    pub fn from_json(bytes: &[u8], path: &Path) -> Result<Table, Error> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let wrong = |source| Error::Parse {
            path: path.to_owned(),
            source,
        };
        let head: Head = serde_json::from_slice(bytes).map_err(wrong)?;
        if head.schema != SCHEMA {
            return Err(Error::OtherSchema {
                path: path.to_owned(),
                found: head.schema,
            });
        }
        let mut table: Table = serde_json::from_slice(bytes).map_err(wrong)?;
        table.sort();
        table.check(path)?;
        Ok(table)
    }

    pub(crate) fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.key().cmp(&b.key()));
        self.entries.iter_mut().for_each(Entry::sort);
    }

    fn check(&self, path: &Path) -> Result<(), Error> {
        let wrong = |entry: &Entry, what| {
            Err(Error::Value {
                path: path.to_owned(),
                operation: entry.operation.clone(),
                group_size: entry.group_size,
                what,
            })
        };
        for entry in &self.entries {
            if let Some(what) = flaw(entry) {
                return wrong(entry, what);
            }
        }
        let same = |pair: &[Entry]| pair[0].key() == pair[1].key();
        match self.entries.windows(2).find(|pair| same(pair)) {
            Some(pair) => wrong(&pair[0], "stands in the table twice"),
            None => Ok(()),
        }
    }

    /// The entries of an operation, by span and group size.
    fn operation(&self, operation: &str) -> &[Entry] {
        let from = self
            .entries
            .partition_point(|e| e.operation.as_str() < operation);
        let rest = &self.entries[from..];
        &rest[..rest.partition_point(|e| e.operation == operation)]
    }

    /// The entries of an operation, or of an OpenSHMEM function that does the same with elements of
    /// another type.
    fn covering(&self, operation: &str) -> &[Entry] {
        let own = self.operation(operation);
        if !own.is_empty() || !operation.starts_with("shmem") {
            return own;
        }
        let siblings = siblings(operation).map(|name| self.operation(name));
        siblings
            .into_iter()
            .find(|entries| !entries.is_empty())
            .unwrap_or(own)
    }
}

/// The functions of OpenSHMEM in the same family.
fn siblings(operation: &str) -> impl Iterator<Item = &'static str> {
    let calls = || laggard_trace::calls::CALLS.iter();
    let own = calls().find(|call| call.name == operation && call.number >= FIRST_FAMILY);
    let family = own.map(|call| call.number / FAMILY);
    let same = calls().filter(move |call| Some(call.number / FAMILY) == family);
    same.map(|call| call.name)
}

/// Numbers in a family, one for each type.
const FAMILY: u16 = 32;
/// Functions without a type have smaller numbers.
const FIRST_FAMILY: u16 = 1152;

/// An impossible value in the entry, if there is one.
fn flaw(entry: &Entry) -> Option<&'static str> {
    if entry.group_size == 0 {
        return Some("a group has at least one member");
    }
    let good = |point: &Point| point.time_s.is_finite() && point.time_s > 0.0;
    for points in [&entry.points, &entry.checks] {
        if !points.iter().all(good) {
            return Some("a time is not a positive number of seconds");
        }
        if points.windows(2).any(|pair| pair[0].bytes == pair[1].bytes) {
            return Some("two times for the same number of bytes");
        }
    }
    let growth = entry.growth.as_ref();
    if growth.is_some_and(|growth| !growth.error.is_finite() || growth.error < 0.0) {
        return Some("a growth whose error is no number");
    }
    entry.model.as_ref().and_then(Model::flaw)
}

/// Seconds in a group, from entries of one operation and span by group size.
fn time(entries: &[Entry], bytes: u64, group_size: u32) -> Option<f64> {
    let above = entries.partition_point(|e| e.group_size < group_size);
    let Some(upper) = entries.get(above) else {
        let largest = entries.last()?;
        let factor = largest.growth?.factor(largest.group_size, group_size)?;
        return Some(largest.time(bytes)? * factor);
    };
    if upper.group_size == group_size {
        return upper.time(bytes);
    }
    let lower = entries.get(above.checked_sub(1)?)?;
    let place = |size: u32| f64::from(size).ln();
    Some(between(
        (place(lower.group_size), lower.time(bytes)?),
        (place(upper.group_size), upper.time(bytes)?),
        place(group_size),
    ))
}

impl Baseline for Table {
    fn lookup(&self, operation: &str, bytes: u64, group_size: u32) -> Option<f64> {
        self.lookup_within(operation, bytes, group_size, None)
    }

    fn lookup_within(
        &self,
        operation: &str,
        bytes: u64,
        group_size: u32,
        span: Option<Span>,
    ) -> Option<f64> {
        let entries = self.covering(operation);
        let times = |wanted: &dyn Fn(Option<Span>) -> bool| {
            let spans = entries.chunk_by(|a, b| a.span == b.span);
            let spans = spans.filter(|entries| wanted(entries[0].span));
            let times = spans.filter_map(|entries| time(entries, bytes, group_size));
            // Models from a file may have any values.
            let times = times.filter(|time| time.is_finite() && *time > 0.0);
            times.min_by(f64::total_cmp)
        };
        times(&|other| other.is_none() || span.is_none() || other == span)
    }

    fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(group_size: u32, points: &[(u64, f64)]) -> Entry {
        let points = points
            .iter()
            .map(|&(bytes, time_s)| Point::new(bytes, time_s));
        Entry::new("MPI_Allreduce", group_size, None, points.collect())
    }

    fn table() -> Table {
        let entries = vec![
            entry(8, &[(1023, 4e-6), (7, 2e-6)]),
            entry(2, &[(7, 1e-6), (1023, 2e-6)]),
        ];
        Table::new("test", entries)
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("covered");
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn measured_points_come_back() {
        close(table().lookup("MPI_Allreduce", 7, 2), 1e-6);
        close(table().lookup("MPI_Allreduce", 1023, 8), 4e-6);
    }

    #[test]
    fn between_points_the_logarithm_is_straight() {
        // 8, 92.7 and 1024 bytes + 1: the middle of the logarithms is near 90.
        let middle = table().lookup("MPI_Allreduce", 90, 2).unwrap();
        assert!((1.40e-6..1.43e-6).contains(&middle), "{middle}");
        // 4 lies half-way between 2 and 8.
        close(
            table().lookup("MPI_Allreduce", 7, 4),
            2e-6f64.sqrt() * 1e-6f64.sqrt(),
        );
    }

    #[test]
    fn smaller_than_measured_costs_the_floor() {
        close(table().lookup("MPI_Allreduce", 0, 2), 1e-6);
    }

    #[test]
    fn what_was_not_measured_is_not_covered() {
        let table = table();
        assert_eq!(table.lookup("MPI_Allreduce", 1024, 2), None);
        assert_eq!(table.lookup("MPI_Allreduce", 7, 9), None);
        assert_eq!(table.lookup("MPI_Allreduce", 7, 1), None);
        assert_eq!(table.lookup("MPI_Bcast", 7, 2), None);
        assert_eq!(crate::Empty.lookup("MPI_Allreduce", 7, 2), None);
    }

    #[test]
    fn file_comes_back_and_errors_name_it() {
        let text = serde_json::to_vec(&table()).unwrap();
        assert_eq!(
            Table::from_json(&text, Path::new("b.json")).unwrap(),
            table()
        );
        let mut with_notes = table();
        with_notes.notes = vec!["one \"quoted\"".into(), "two".into()];
        let again = Table::from_json(with_notes.to_json().as_bytes(), Path::new("b.json"));
        assert_eq!(again.unwrap(), with_notes);
        let read = |text: &str| {
            let error = Table::from_json(text.as_bytes(), Path::new("b.json")).unwrap_err();
            error.to_string()
        };
        assert!(read("x").contains("b.json is not a baseline table"));
        assert!(read("{}").contains("missing field `schema`"));
        assert!(read(r#"{"schema": "laggard-report/1"}"#).contains("laggard-report/1"));
        let with = |entries: &str| {
            read(&format!(
                r#"{{"schema": "{SCHEMA}", "entries": [{entries}]}}"#
            ))
        };
        let one = r#"{"operation": "MPI_Send", "group_size": 2, "points": [{"bytes": 1, "time_s": 1e-6}]}"#;
        assert!(with(&one.replace("1e-6", "-1")).contains("MPI_Send, group size 2: a time"));
        assert!(with(&one.replace("\"group_size\": 2", "\"group_size\": 0")).contains("member"));
        assert!(with(&format!("{one}, {one}")).contains("twice"));
        let missing = Table::read(Path::new("/nonexistent/b.json")).unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/b.json"));
    }

    proptest! {
        #[test]
        fn times_lie_between_their_neighbours(bytes in 0u64..=1023, group in 2u32..=8) {
            let time = table().lookup("MPI_Allreduce", bytes, group).unwrap();
            prop_assert!((0.999e-6..4.001e-6).contains(&time));
        }
    }
}
