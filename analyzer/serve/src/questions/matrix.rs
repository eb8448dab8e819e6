//! Who sends whom, and who waits for whom: a part of the report's matrix, or what some locations did in a
//! stretch of time, in all communicators or in one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use laggard_engine::events::{Events, GroupKind};
use laggard_overlay::filters::Sum;
use laggard_overlay::{Filter, Stop};
use laggard_report::MatrixCell;
use laggard_trace::WORLD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds, short};
use crate::share::Share;
use crate::spending::{is_exact, sent};

/// Most rows, and most columns.
const LINES: u32 = 64;
/// Communicators and windows that are listed, the largest first.
const LISTED: usize = 32;

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
    /// Of what is sent, or waited, in this communicator, window or file, as the answer lists it; in all.
    pub communicator: Option<String>,
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
    /// If rows and columns are hosts: how many successive ones share one.
    hosts: Option<u32>,
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
        Some(match self.hosts {
            Some(hosts) => (host_of(from) / hosts, host_of(to) / hosts),
            None => ((from - rows.start) / row, (to - columns.start) / column),
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
        let hosts = share.events().hosts().len().max(1) as u32;
        Ok(Lines {
            rows: lines(self.from, self.from_last, ranks)?,
            columns: lines(self.to, self.to_last, ranks)?,
            hosts: self.hosts.then(|| hosts.div_ceil(LINES)),
        })
    }

    /// The communicator or window that is asked about.
    fn wanted(&self) -> Result<Option<u64>> {
        let id = self.communicator.as_deref();
        let id = id.map(|text| u64::from_str_radix(text, 16)).transpose();
        id.context("communicator is one of those in the answer without it")
    }

    /// The stretch and the locations that are read; none where the report tells all.
    fn selected(&self) -> Option<Selected> {
        let whole = self.communicator.as_ref().map(|_| Selected::default());
        self.selection.clone().or(whole)
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
        let wanted = self.wanted()?;
        if self.metric == "waiting" {
            for wait in share.index_of(at).waits(stretch) {
                if wanted.is_some_and(|wanted| share.site(at, wait).2 != wanted) {
                    continue;
                }
                take(own, wait.late_rank, wait.within(stretch));
            }
            return Ok(());
        }
        let is_bytes = self.metric == "bytes";
        let groups = &share.events().groups;
        sent(share, at, stretch, stop, |call, to, bytes| {
            let group = groups.get(call.group as usize).map(|group| group.id);
            if wanted.is_some() && group != wanted {
                return;
            }
            let amount = if is_bytes { bytes } else { 1 };
            take(own, to, i64::try_from(amount).unwrap_or(i64::MAX));
        })?;
        Ok(())
    }

    fn of_selection(
        &self,
        share: &Share,
        Sums {
            cells: sums,
            partly: part,
            ..
        }: Sums,
        lines: &Lines,
    ) -> Result<Value> {
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
        let hosts = lines.hosts.map(|each| {
            let classes = share.events().hosts().chunks(each as usize);
            let names = classes.map(|class| match class {
                [first, .., last] => format!("{}–{}", short(first), short(last)),
                one => short(&one.concat()),
            });
            names.collect::<Vec<_>>()
        });
        let sums = sums.filter(|(_, sum)| *sum > 0.0);
        json!({
            "metric": self.metric,
            "rows": labels(&lines.rows),
            "columns": labels(&lines.columns),
            "row_locations": locations(labels(&lines.rows)),
            "column_locations": locations(labels(&lines.columns)),
            "hosts": hosts,
            "hosts_per_row": lines.hosts,
            "exact": exact,
            "cells": sums.map(|((from, to), sum)| json!([from, to, sum])).collect::<Vec<_>>(),
            "whole": whole,
        })
    }
}

/// What is told of some locations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    /// By row and column.
    cells: BTreeMap<(u32, u32), Sum>,
    /// Locations with more calls than are read, or waits that are not kept.
    partly: Sum,
    /// Communicators and windows by size and id: their labels.
    listed: BTreeMap<(Reverse<u32>, u64), Label>,
}

/// The name of a communicator or window; empty where nobody has heard of it yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Label(String);

impl Filter for Label {
    fn merge(&mut self, other: Label) {
        if self.0.is_empty() {
            *self = other;
        }
    }
}

impl Filter for Sums {
    fn merge(&mut self, other: Sums) {
        Filter::merge(&mut self.cells, other.cells);
        self.partly.merge(other.partly);
        Filter::merge(&mut self.listed, other.listed);
        // One more says that there are more.
        while self.listed.len() > LISTED + 1 {
            self.listed.pop_last();
        }
    }
}

impl Sums {
    /// Takes what an agent knows of communicators and windows of several ranks; of what is waited also of files,
    /// and of no group.
    fn list(&mut self, events: &Events, waits: bool) {
        let groups = events.groups.iter();
        let used = groups.filter(|group| waits || group.kind != GroupKind::File);
        let several = used.filter(|group| group.size != 1);
        let none = waits.then(|| ((Reverse(u32::MAX), 0), Label("none".to_owned())));
        let all = several.map(|group| {
            let world = if group.id == WORLD { "world" } else { "" };
            ((Reverse(group.size), group.id), Label(world.to_owned()))
        });
        self.merge(Sums {
            listed: all.chain(none).collect(),
            ..Sums::default()
        });
        for (id, name) in (0..events.locations()).flat_map(|own| events.communicator_names(own)) {
            let mut listed = self.listed.iter_mut();
            if let Some((_, label)) = listed.find(|((_, known), _)| *known == id && id != WORLD) {
                label.0 = name.into_owned();
            }
        }
    }
}

impl Asked for Matrix {
    /// Of a selection; else the head's report tells all.
    type Part = Sums;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Sums> {
        let mut sums = Sums::default();
        sums.list(share.events(), self.metric == "waiting");
        self.wanted()?;
        let Some(selection) = self.selected() else {
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
            sums.partly.0 += i64::from(!is_whole);
            if !is_whole && self.metric != "waiting" {
                continue;
            }
            let mut take = |from, to, amount: i64| {
                if let Some(cell) = lines.cell(share, from, to) {
                    let sum = sums.cells.entry(cell).or_default();
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
        let are_more = part.listed.len() > LISTED;
        let listed = part.listed.iter().take(LISTED);
        let listed = listed.map(|((_, id), Label(name))| match &name[..] {
            "" => json!([format!("{id:x}"), format!("#{id:x}")]),
            name => json!([format!("{id:x}"), short(name)]),
        });
        let listed: Value = listed.collect();
        let mut answer = match self.selected() {
            Some(_) => self.of_selection(share, part, &self.lines(share, 1)?)?,
            None => self.of_run(share)?,
        };
        answer["communicators"] = listed;
        answer["more_communicators"] = are_more.into();
        Ok(answer)
    }
}

impl Matrix {
    /// As the report tells it.
    fn of_run(&self, share: &Share) -> Result<Value> {
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
        let mut told = self.told(share, &lines, sums.into_iter(), (whole, exact));
        told["ranks_per_cell"] = matrix.ranks_per_cell.into();
        Ok(told)
    }
}
