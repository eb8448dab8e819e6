//! Who sends whom, and who waits for whom: a part of the report's matrix, or what some locations did in a
//! stretch of time.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use laggard_overlay::Stop;
use laggard_overlay::filters::Sum;
use laggard_report::MatrixCell;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds, short};
use crate::share::Share;
use crate::spending::{is_exact, sent};

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
    /// Of what is sent, or waited, there; of the whole run.
    pub selection: Option<Selected>,
}

/// A stretch of time, and the locations that send, or wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Selected {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
}

/// Rows and columns: ranks, and how many share one.
struct Lines {
    rows: (Range<u32>, u32),
    columns: (Range<u32>, u32),
    by_host: bool,
}

impl Lines {
    /// The cell of two ranks, if it is in sight.
    fn cell(&self, share: &Share, from: u32, to: u32) -> Option<(u32, u32)> {
        let (rows, row) = &self.rows;
        let (columns, column) = &self.columns;
        if !rows.contains(&from) || !columns.contains(&to) {
            return None;
        }
        let placed = &share.events().placed;
        let host_of = |rank: u32| {
            let at = placed.partition_point(|one| one.rank < rank);
            placed.get(at).map_or(0, |placed| placed.host)
        };
        Some(match self.by_host {
            true => (host_of(from), host_of(to)),
            false => ((from - rows.start) / row, (to - columns.start) / column),
        })
    }
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

impl Matrix {
    fn lines(&self, share: &Share, ranks_per_cell: u32) -> Result<Lines> {
        let ranks = (share.events().ranks(), ranks_per_cell);
        Ok(Lines {
            rows: lines(self.from, self.from_last, ranks)?,
            columns: lines(self.to, self.to_last, ranks)?,
            by_host: self.hosts,
        })
    }

    /// Sums of a location by cell: messages, bytes, or ns of waiting.
    fn sums(
        &self,
        share: &Share,
        at: usize,
        stretch: (i64, i64),
        take: &mut impl FnMut(u32, u32, i64),
        stop: &Stop,
    ) -> Result<()> {
        let own = share.placed(at).rank;
        if self.metric == "waiting" {
            for wait in share.index_of(at).waits(stretch) {
                let wait_ends = wait.since.saturating_add(wait.lost);
                let within = crate::index::overlap((wait.since, wait_ends), stretch);
                take(own, wait.late_rank, within);
            }
            return Ok(());
        }
        let is_bytes = self.metric == "bytes";
        sent(share, at, stretch, stop, |to, bytes| {
            let amount = if is_bytes { bytes } else { 1 };
            take(own, to, i64::try_from(amount).unwrap_or(i64::MAX));
        })?;
        Ok(())
    }

    fn of_selection(&self, share: &Share, (sums, part): Sums, lines: &Lines) -> Result<Value> {
        let amount = |sum: i64| match &*self.metric {
            "waiting" => seconds(sum),
            _ => sum as f64,
        };
        let whole = sums.values().map(|sum| sum.0).fold(0, i64::saturating_add);
        let sums = sums.into_iter().map(|(cell, sum)| (cell, amount(sum.0)));
        Ok(self.told(share, lines, sums, (amount(whole), part.0 == 0)))
    }

    fn told(
        &self,
        share: &Share,
        lines: &Lines,
        sums: impl Iterator<Item = ((u32, u32), f64)>,
        (whole, exact): (f64, bool),
    ) -> Value {
        let labels = |(ranks, share): &(Range<u32>, u32)| {
            let firsts = ranks.clone().step_by(*share as usize);
            let labels = firsts.map(|first| (first, (first + share).min(ranks.end) - 1));
            labels.collect::<Vec<_>>()
        };
        let locations = |ranks: Vec<(u32, u32)>| -> Vec<(usize, usize)> {
            let ranks = ranks.into_iter();
            ranks
                .map(|(first, last)| share.of_ranks(first, last))
                .collect()
        };
        let hosts = share.events().hosts();
        let names = hosts.iter().take(LINES as usize).map(|name| short(name));
        let sums = sums.filter(|((from, to), sum)| *sum > 0.0 && *from < LINES && *to < LINES);
        json!({
            "metric": self.metric,
            "rows": labels(&lines.rows),
            "columns": labels(&lines.columns),
            "row_locations": locations(labels(&lines.rows)),
            "column_locations": locations(labels(&lines.columns)),
            "hosts": self.hosts.then(|| names.collect::<Vec<_>>()),
            "hosts_in_run": hosts.len(),
            "exact": exact,
            "cells": sums.map(|((from, to), sum)| json!([from, to, sum])).collect::<Vec<_>>(),
            "whole": whole,
        })
    }
}

/// By cell, and how many locations have more calls than are read, or waits that are not kept.
type Sums = (BTreeMap<(u32, u32), Sum>, Sum);

impl Asked for Matrix {
    /// Of a selection; else the head's report tells all.
    type Part = Sums;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Sums> {
        let mut sums = Sums::default();
        let Some(selection) = &self.selection else {
            return Ok(sums);
        };
        let lines = self.lines(share, 1)?;
        let stretch = share.stretch(selection.from_s, selection.until_s)?;
        let chosen = share.chosen(selection.first, selection.last)?;
        for at in share.own(&chosen) {
            stop.check()?;
            let is_whole = match &*self.metric {
                "waiting" => share.index_of(at).has_all_waits(),
                _ => is_exact(share, at, stretch, chosen.len()),
            };
            sums.1.0 += i64::from(!is_whole);
            if !is_whole && self.metric != "waiting" {
                continue;
            }
            let mut take = |from, to, amount: i64| {
                if let Some(cell) = lines.cell(share, from, to) {
                    let sum = sums.0.entry(cell).or_default();
                    sum.0 = sum.0.saturating_add(amount);
                }
            };
            self.sums(share, at, stretch, &mut take, stop)?;
        }
        Ok(sums)
    }

    fn answer(&self, share: &Share, part: Sums) -> Result<Value> {
        if !["messages", "bytes", "waiting"].contains(&&*self.metric) {
            bail!("metric is one of messages, bytes, waiting");
        }
        if self.selection.is_some() {
            return self.of_selection(share, part, &self.lines(share, 1)?);
        }
        let matrix = share.report()?.rank_matrix.as_ref();
        let matrix =
            matrix.context("the report has no matrix of ranks: analyze the trace again")?;
        let amount: fn(&MatrixCell) -> f64 = match &*self.metric {
            "messages" => |cell| cell.messages as f64,
            "bytes" => |cell| cell.bytes as f64,
            _ => |cell| cell.waiting_s,
        };
        let lines = self.lines(share, matrix.ranks_per_cell)?;
        let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let mut whole = 0.0;
        for cell in &matrix.cells {
            if let Some(at) = lines.cell(share, cell.from, cell.to) {
                *sums.entry(at).or_default() += amount(cell);
                whole += amount(cell);
            }
        }
        // A cell of several ranks counts for the host of its first one.
        let exact = !self.hosts || matrix.ranks_per_cell <= 1;
        Ok(self.told(share, &lines, sums.into_iter(), (whole, exact)))
    }
}
