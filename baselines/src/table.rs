//! A table of measured times.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Baseline, Error};

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "laggard-baseline/1";

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
/// *Between sizes* the logarithm of the time is linear in the logarithm of
/// `bytes + 1` (so that 0 bytes have a place); *between group sizes* it is linear in
/// the logarithm of the group size, where both neighbours cover the bytes. Fewer
/// bytes than the smallest size take the smallest size's time: latency has a
/// floor. More bytes or members than measured are not covered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was measured, for people.
    #[serde(default)]
    pub description: String,
    /// Measurements.
    pub entries: Vec<Entry>,
}

/// Measurements of one operation in one group size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the call.
    pub operation: String,
    /// Members; 2 for a message.
    pub group_size: u32,
    /// Times by size.
    pub points: Vec<Point>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes per call and member.
    pub bytes: u64,
    /// Seconds.
    pub time_s: f64,
}

impl Table {
    /// A table with these measurements; the order does not matter.
    pub fn new(description: &str, entries: Vec<Entry>) -> Table {
        let mut table = Table {
            schema: SCHEMA.to_owned(),
            description: description.to_owned(),
            entries,
        };
        table.sort();
        table
    }

    /// Reads a table's file.
    pub fn read(path: &Path) -> Result<Table, Error> {
        let bytes = fs::read(path).map_err(|source| Error::Read {
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

    fn sort(&mut self) {
        self.entries
            .sort_by(|a, b| (&a.operation, a.group_size).cmp(&(&b.operation, b.group_size)));
        for entry in &mut self.entries {
            entry.points.sort_by_key(|point| point.bytes);
        }
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
            if entry.group_size == 0 {
                return wrong(entry, "a group has at least one member");
            }
            let good = |point: &Point| point.time_s.is_finite() && point.time_s > 0.0;
            if !entry.points.iter().all(good) {
                return wrong(entry, "a time is not a positive number of seconds");
            }
            if entry
                .points
                .windows(2)
                .any(|pair| pair[0].bytes == pair[1].bytes)
            {
                return wrong(entry, "two times for the same number of bytes");
            }
        }
        let same = |pair: &[Entry]| {
            (&pair[0].operation, pair[0].group_size) == (&pair[1].operation, pair[1].group_size)
        };
        match self.entries.windows(2).find(|pair| same(pair)) {
            Some(pair) => wrong(&pair[0], "stands in the table twice"),
            None => Ok(()),
        }
    }

    /// The entries of an operation, by group size.
    fn operation(&self, operation: &str) -> &[Entry] {
        let from = self
            .entries
            .partition_point(|e| e.operation.as_str() < operation);
        let rest = &self.entries[from..];
        &rest[..rest.partition_point(|e| e.operation == operation)]
    }
}

impl Baseline for Table {
    fn lookup(&self, operation: &str, bytes: u64, group_size: u32) -> Option<f64> {
        let entries = self.operation(operation);
        let above = entries.partition_point(|e| e.group_size < group_size);
        let upper = entries.get(above)?;
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
}

impl Entry {
    /// Seconds for this many bytes.
    fn time(&self, bytes: u64) -> Option<f64> {
        let above = self.points.partition_point(|point| point.bytes < bytes);
        let upper = self.points.get(above)?;
        let Some(lower) = above.checked_sub(1).and_then(|at| self.points.get(at)) else {
            return Some(upper.time_s);
        };
        if upper.bytes == bytes {
            return Some(upper.time_s);
        }
        let place = |bytes: u64| (bytes as f64 + 1.0).ln();
        Some(between(
            (place(lower.bytes), lower.time_s),
            (place(upper.bytes), upper.time_s),
            place(bytes),
        ))
    }
}

/// The value at `at` on the curve through two (place, value), straight in the
/// logarithm of the value.
fn between((x0, y0): (f64, f64), (x1, y1): (f64, f64), at: f64) -> f64 {
    let share = (at - x0) / (x1 - x0);
    (y0.ln() + share * (y1.ln() - y0.ln())).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(group_size: u32, points: &[(u64, f64)]) -> Entry {
        Entry {
            operation: "MPI_Allreduce".to_owned(),
            group_size,
            points: points
                .iter()
                .map(|&(bytes, time_s)| Point { bytes, time_s })
                .collect(),
        }
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
        // 8, 92.7 and 1024 bytes + 1: half of the way in the logarithm is near 90.
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
