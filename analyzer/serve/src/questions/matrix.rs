//! Who sends whom, and who waits for whom: a part of the report's matrix.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use laggard_overlay::Stop;
use laggard_report::MatrixCell;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, short};
use crate::share::Share;

/// Most rows, and most columns.
const LINES: u32 = 64;

/// A part of the matrix.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Matrix {
    /// What is told: `messages`, `bytes` or `waiting`.
    pub metric: String,
    /// Whether rows and columns are hosts, not ranks.
    #[serde(default)]
    pub hosts: bool,
    /// First rank of the rows; 0.
    pub from: Option<u32>,
    /// Last rank of the rows; that of the run.
    pub from_last: Option<u32>,
    /// First rank of the columns; 0.
    pub to: Option<u32>,
    /// Last rank of the columns; that of the run.
    pub to_last: Option<u32>,
}

/// The ranks of rows or columns, and how many share one.
fn lines(
    first: Option<u32>,
    last: Option<u32>,
    (ranks, least): (u32, u32),
) -> Result<(Range<u32>, u32)> {
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(ranks.saturating_sub(1)));
    if first > last || last >= ranks {
        bail!("ranks are 0 to {}", ranks.saturating_sub(1));
    }
    let least = least.max(1);
    // Cells of the report are not cut.
    let first = first / least * least;
    let share = (last - first + 1).div_ceil(LINES).next_multiple_of(least);
    Ok((first..last + 1, share))
}

impl Asked for Matrix {
    /// The head's report tells all.
    type Part = ();

    fn part(&self, _: &Share, _: &Stop) -> Result<()> {
        Ok(())
    }

    fn answer(&self, share: &Share, (): ()) -> Result<Value> {
        let matrix = share.report()?.rank_matrix.as_ref();
        let matrix =
            matrix.context("the report has no matrix of ranks: analyze the trace again")?;
        let amount: fn(&MatrixCell) -> f64 = match &*self.metric {
            "messages" => |cell| cell.messages as f64,
            "bytes" => |cell| cell.bytes as f64,
            "waiting" => |cell| cell.waiting_s,
            _ => bail!("metric is one of messages, bytes, waiting"),
        };
        let events = share.events();
        let ranks = (events.ranks(), matrix.ranks_per_cell);
        let (rows, row) = lines(self.from, self.from_last, ranks)?;
        let (columns, column) = lines(self.to, self.to_last, ranks)?;
        let host_of = |rank: u32| {
            let at = events.placed.partition_point(|one| one.rank < rank);
            events.placed.get(at).map_or(0, |placed| placed.host)
        };
        let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let mut whole = 0.0;
        for cell in &matrix.cells {
            if rows.contains(&cell.from) && columns.contains(&cell.to) {
                let at = match self.hosts {
                    true => (host_of(cell.from), host_of(cell.to)),
                    false => (
                        (cell.from - rows.start) / row,
                        (cell.to - columns.start) / column,
                    ),
                };
                *sums.entry(at).or_default() += amount(cell);
                whole += amount(cell);
            }
        }
        let labels = |ranks: &Range<u32>, share: u32| {
            let firsts = ranks.clone().step_by(share as usize);
            let labels = firsts.map(|first| (first, (first + share).min(ranks.end) - 1));
            labels.collect::<Vec<_>>()
        };
        let hosts = events
            .hosts()
            .iter()
            .take(LINES as usize)
            .map(|name| short(name));
        let sums = sums
            .iter()
            .filter(|((from, to), sum)| **sum > 0.0 && *from < LINES && *to < LINES);
        Ok(json!({
            "metric": self.metric,
            "rows": labels(&rows, row),
            "columns": labels(&columns, column),
            "hosts": self.hosts.then(|| hosts.collect::<Vec<_>>()),
            "hosts_in_run": events.hosts().len(),
            // A cell of several ranks counts for the host of its first one.
            "exact": !self.hosts || matrix.ranks_per_cell <= 1,
            "cells": sums.map(|((from, to), sum)| json!([from, to, sum])).collect::<Vec<_>>(),
            "whole": whole,
        }))
    }
}
