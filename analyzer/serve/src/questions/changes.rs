//! Changes of what is recorded, however much is in sight.

use anyhow::Result;
use laggard_overlay::{Filter, Stop};
use laggard_trace::Change;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds};
use crate::share::Share;

/// Most changes that are told, the first ones.
const ROWS: usize = 200;

/// Asks for those of some locations in a stretch of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Changes {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
}

/// When, ns, where, and what.
type Row = (i64, usize, i64);

/// What some locations have.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    rows: Vec<Row>,
    /// All that are known: an index keeps the first ones of a location.
    count: u64,
}

impl Filter for Told {
    fn merge(&mut self, other: Told) {
        self.rows.extend(other.rows);
        self.rows.sort_unstable();
        self.rows.truncate(ROWS);
        self.count += other.count;
    }
}

impl Asked for Changes {
    type Part = Told;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Told> {
        let (from, until) = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let mut told = Told::default();
        for at in share.own(&chosen) {
            stop.check()?;
            let changes = share.index_of(at).changes.iter();
            let seen = changes.filter(|change| (from..until).contains(&change.time));
            let rows: Vec<Row> = seen.map(|one| (one.time, at, one.parameter)).collect();
            told.merge(Told {
                count: rows.len() as u64,
                rows,
            });
        }
        Ok(told)
    }

    fn answer(&self, share: &Share, told: Told) -> Result<Value> {
        let rows = told.rows.iter().map(|(time, at, parameter)| {
            Ok(json!({
                "at_s": seconds(*time),
                "location": at,
                "rank": share.named(*at)?.rank,
                "thread": share.thread_apart(*at),
                "change": Change::of(*parameter).map_or_else(String::new, |change| change.text()),
            }))
        });
        Ok(json!({"changes": rows.collect::<Result<Vec<_>>>()?, "count": told.count}))
    }
}
