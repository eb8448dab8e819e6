//! Anomalies of a run or its trace, collected on all agents.

use laggard_comm::Filter;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;

/// How much an anomaly matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Good to know.
    Info,
    /// Numbers may be off, or the program has a defect.
    Warning,
    /// A part of the trace could not be used.
    Error,
}

/// One row of the report's anomalies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Anomaly {
    /// Kind.
    pub id: String,
    /// How much it matters.
    pub level: Level,
    /// Call and call path concerned. Rows of the same place are added up.
    pub place: Option<(u16, PathKey)>,
    /// The file or location, if there is one.
    pub origin: Option<String>,
    /// Description of the first occurrence; the report adds the place.
    pub detail: String,
    /// Number of occurrences.
    pub count: u64,
}

/// Rows per kind kept in full; the last row counts the rest.
const ROWS_PER_KIND: usize = 50;

/// All rows of an agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Anomalies(Vec<Anomaly>);

impl Anomaly {
    /// Sets the file or location.
    pub fn origin(&mut self, origin: String) -> &mut Self {
        self.origin = Some(origin);
        self
    }

    /// Sets the call.
    pub fn place(&mut self, operation: u16, path: PathKey) -> &mut Self {
        self.place = Some((operation, path));
        self
    }
}

impl Anomalies {
    /// Adds a row.
    pub fn add(&mut self, id: &str, level: Level, count: u64, detail: String) -> &mut Anomaly {
        self.0.push(Anomaly {
            id: id.to_owned(),
            level,
            place: None,
            origin: None,
            detail,
            count,
        });
        self.0.last_mut().expect("just pushed")
    }

    /// The calls of all rows.
    pub fn places(&self) -> impl Iterator<Item = (u16, PathKey)> {
        self.0.iter().filter_map(|row| row.place)
    }

    /// Renames call paths.
    pub fn rename_paths(&mut self, name: impl Fn(PathKey) -> PathKey) {
        for (_, path) in self.0.iter_mut().filter_map(|row| row.place.as_mut()) {
            *path = name(*path);
        }
    }

    /// The rows, the worst first, in an order that does not depend on agents. Rows about the same
    /// call are joined. A kind has at most `ROWS_PER_KIND` rows.
    pub fn into_rows(mut self) -> Vec<Anomaly> {
        self.0.sort_by(|a, b| {
            (
                std::cmp::Reverse(a.level),
                &a.id,
                a.place,
                &a.origin,
                &a.detail,
            )
                .cmp(&(
                    std::cmp::Reverse(b.level),
                    &b.id,
                    b.place,
                    &b.origin,
                    &b.detail,
                ))
        });
        let mut rows: Vec<Anomaly> = Vec::new();
        let mut of_kind = 0;
        for row in self.0 {
            match rows.last_mut() {
                Some(last) if last.id == row.id && last.level == row.level => {
                    let same = last.origin == row.origin
                        && match row.place {
                            Some(_) => last.place == row.place,
                            None => last.place.is_none() && last.detail == row.detail,
                        };
                    if same {
                        last.count += row.count;
                    } else if of_kind == ROWS_PER_KIND {
                        if !last.detail.ends_with("and more") {
                            last.detail.push_str("; and more");
                        }
                        last.count += row.count;
                    } else {
                        of_kind += 1;
                        rows.push(row);
                    }
                }
                _ => {
                    of_kind = 1;
                    rows.push(row);
                }
            }
        }
        rows
    }
}

impl Filter for Anomalies {
    fn merge(&mut self, other: Anomalies) {
        self.0.extend(other.0);
    }
}
