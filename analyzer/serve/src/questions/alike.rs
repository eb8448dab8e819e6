//! Amounts by locations and time, as in a map, where locations that had alike amounts share a row.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use laggard_overlay::filters::{Ranks, Sum};
use laggard_overlay::{Filter, Stop};
use laggard_report::{RankSet, list_of_ranks};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::heat::{CELLS, Heat, ROWS, Row};
use super::metric::Metric;
use super::{Asked, RANGES, cut};
use crate::index::scaled;
use crate::share::Share;
use crate::spending::borders;

/// In so many parts of the time amounts are compared: as many as there can be without too many classes. In none,
/// all are alike.
const PARTS: [usize; 6] = [16, 8, 4, 2, 1, 0];
/// Most characters of a row's label.
const LABEL: usize = 60;
/// Shares of a part's time that count as different.
const SHARES: i64 = 8;

/// A map of classes of locations; its height is the most rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Alike(Heat);

/// Locations by what they have in each part: who they are, and the sums of cells.
type ByParts = BTreeMap<Vec<u8>, (Ranks, Vec<Sum>)>;

/// These; `None` once they are more than are wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Classes {
    most: usize,
    of: Option<ByParts>,
}

impl Filter for Classes {
    fn merge(&mut self, other: Classes) {
        self.of = match (self.of.take(), other.of) {
            (Some(mut one), Some(other)) => {
                Filter::merge(&mut one, other);
                Some(one).filter(|classes| classes.len() <= self.most)
            }
            // What is too much for some is too much for all.
            _ => None,
        };
    }
}

impl Alike {
    fn most(&self) -> usize {
        self.0.height.clamp(1, ROWS)
    }

    fn width(&self) -> usize {
        self.0.width.clamp(1, CELLS / 2 / self.most())
    }
}

/// How much there is in each of so many parts of a row: shares of time; of other amounts powers of two.
fn signature(cells: &[Sum], borders: &[i64], parts: usize, is_time: bool) -> Vec<u8> {
    let edge = |part: usize| part * cells.len() / parts;
    let of = (0..parts).map(|part| {
        let (first, end) = (edge(part), edge(part + 1));
        let cells = cells[first..end].iter();
        let sum = cells.fold(0, |sum: i64, cell| sum.saturating_add(cell.0));
        let whole = (borders[end] - borders[first]).max(1);
        match is_time {
            true => scaled(SHARES, sum.clamp(0, whole), whole) as u8,
            false => (i64::BITS - sum.max(0).leading_zeros()) as u8,
        }
    });
    of.collect()
}

impl Asked for Alike {
    /// Classes by fewer and fewer parts, and how many locations are not counted as a whole.
    type Part = (Vec<Classes>, Sum);

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let stretch = share.stretch(self.0.from_s, self.0.until_s)?;
        let chosen = share.chosen(self.0.first, self.0.last)?;
        let metric = Metric::of(&self.0.metric)?;
        let borders = borders(stretch, self.width());
        let none = || {
            let levels = PARTS.map(|_| Classes {
                most: self.most(),
                of: Some(BTreeMap::new()),
            });
            (levels.to_vec(), Sum(0))
        };
        let own = share.own(&chosen).into_par_iter();
        let classes = own.try_fold(none, |mut all, at| {
            let mut cells = vec![Sum(0); borders.len() - 1];
            let is_all = metric.add(share, (at, chosen.len()), &borders, &mut cells, stop)?;
            let levels = PARTS.into_iter().zip(&mut all.0);
            for (parts, level) in levels {
                let key = signature(&cells, &borders, parts, metric.is_time());
                let class = (Ranks::of(at as u32), cells.clone());
                level.merge(Classes {
                    of: Some(BTreeMap::from([(key, class)])),
                    ..*level
                });
            }
            all.1.0 += i64::from(!is_all);
            anyhow::Ok(all)
        });
        classes.try_reduce(none, |mut one, other| {
            one.merge(other);
            Ok(one)
        })
    }

    fn answer(&self, share: &Share, (levels, partly): Self::Part) -> Result<Value> {
        let classes = levels.into_iter().find_map(|level| level.of);
        let mut rows: Vec<Row> = classes
            .into_iter()
            .flatten()
            .map(|(_, (locations, cells))| row(share, &locations.0, cells))
            .collect::<Result<_>>()?;
        rows.sort_by_key(|row| row.first);
        self.0.told(share, rows, partly)
    }
}

/// The row of some locations. If these are not in succession, the first one is looked at next.
fn row(share: &Share, locations: &RankSet, cells: Vec<Sum>) -> Result<Row> {
    // Before all of them are looked at.
    share.named(locations.max().context("a class of nobody")? as usize)?;
    let all = || locations.iter().map(|at| at as usize);
    let (first, last) = (all().next().unwrap_or(0), all().last().unwrap_or(0));
    let count = locations.len() as usize;
    let ranks: RankSet = all().map(|at| share.placed(at).rank).collect();
    let are_threads = all().any(|at| share.placed(at).thread > 0);
    let label = match (count, are_threads) {
        (1, _) => format!("rank {}", share.label(first)),
        (_, false) => list_of_ranks(ranks.iter(), RANGES),
        (_, true) => format!("{count} threads of {}", list_of_ranks(ranks.iter(), RANGES)),
    };
    Ok(Row {
        label: cut(&label, LABEL),
        first,
        last: if last - first + 1 == count {
            last
        } else {
            first
        },
        count,
        cells,
    })
}
