//! In which functions threads were, moment by moment, as samples tell: all chosen locations together, and some of
//! them apart.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_engine::events::CallPath;
use laggard_overlay::filters::Sum;
use laggard_overlay::{Stop, Stopped};
use laggard_report::layout::base_name;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds, short};
use crate::share::Share;
use crate::spending::{borders, is_exact, read};

/// Functions that are told apart: those with most samples. The others are one.
const FUNCTIONS: usize = 5;
/// Most locations that are told apart.
const APART: usize = 16;
/// Most parts of a stretch, and most counts of an answer, of four bytes each.
const PARTS: usize = 1000;
const COUNTS: usize = 16_000;

/// Samples over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sampled {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
    /// So many of the first of them are told apart as well.
    #[serde(default)]
    pub apart: usize,
    /// Parts in which it is told.
    pub width: usize,
}

/// File and name of a function.
type Function = (String, String);

/// Samples by row and part of the stretch. The first row has those of all locations, each other one those of a
/// location that is told apart.
type Counts = BTreeMap<(usize, usize), Sum>;

impl Sampled {
    fn rows(&self, locations: usize) -> usize {
        1 + self.apart.min(APART).min(locations)
    }

    fn borders(&self, share: &Share, rows: usize) -> Result<Vec<i64>> {
        let most = PARTS.min(COUNTS / (rows * (FUNCTIONS + 1)));
        let stretch = share.stretch(self.from_s, self.until_s)?;
        Ok(borders(stretch, self.width.clamp(1, most)))
    }
}

impl Asked for Sampled {
    /// By function, and how many locations are not counted.
    type Part = (BTreeMap<Function, Counts>, Sum);

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let rows = self.rows(chosen.len());
        let borders = self.borders(share, rows)?;
        let own = share.own(&chosen).into_par_iter();
        let parts = own.map(|at| -> Result<Self::Part> {
            let mut part = Self::Part::default();
            if !is_exact(share, at, stretch, chosen.len()) {
                part.1.0 = 1;
                return Ok(part);
            }
            let mut counts: FxHashMap<(u32, usize), i64> = FxHashMap::default();
            samples(share, at, stretch, stop, |path, time| {
                let part = borders.partition_point(|&border| border <= time) - 1;
                *counts.entry((path, part)).or_default() += 1;
                ControlFlow::Continue(())
            })?;
            let row = Some(1 + at - chosen.start).filter(|&row| row < rows);
            for ((path, moment), count) in counts {
                let function = function(&share.events().call_paths[path as usize]);
                let of = part.0.entry(function).or_default();
                for row in [0].into_iter().chain(row) {
                    of.entry((row, moment)).or_default().0 += count;
                }
            }
            Ok(part)
        });
        parts.try_reduce(Self::Part::default, |mut one, other| {
            laggard_overlay::Filter::merge(&mut one, other);
            Ok(one)
        })
    }

    fn answer(&self, share: &Share, (functions, uncounted): Self::Part) -> Result<Value> {
        let chosen = share.chosen(self.first, self.last)?;
        let rows = self.rows(chosen.len());
        let borders = self.borders(share, rows)?;
        let total = |counts: &Counts| -> i64 {
            let of_all = counts.iter().filter(|((row, _), _)| *row == 0);
            of_all.map(|(_, count)| count.0).sum()
        };
        let mut functions: Vec<(Function, Counts)> = functions.into_iter().collect();
        // Of equal ones, the first by name.
        functions.sort_by_key(|(_, counts)| -total(counts));
        let apart = functions.len().min(FUNCTIONS);
        let others = functions.split_off(apart);
        let told = functions
            .iter()
            .map(|(function, counts)| json!({"name": text(function), "samples": total(counts)}));
        let told: Vec<Value> = told.collect();
        let parts = borders.len() - 1;
        let mut curves = vec![0u32; rows * (FUNCTIONS + 1) * parts];
        let curve = (0..).zip(functions).map(|(at, (_, counts))| (at, counts));
        let many = others.len();
        let of_others: i64 = others.iter().map(|(_, counts)| total(counts)).sum();
        let rest = others.into_iter().map(|(_, counts)| (FUNCTIONS, counts));
        for (at, counts) in curve.chain(rest) {
            for ((row, part), count) in counts {
                let place = curves.get_mut((row * (FUNCTIONS + 1) + at) * parts + part);
                if let Some(sum) = place {
                    *sum = sum.saturating_add(u32::try_from(count.0).unwrap_or(u32::MAX));
                }
            }
        }
        let told_apart = (chosen.start..).take(rows - 1);
        Ok(json!({
            "from_s": seconds(borders[0]),
            "until_s": seconds(borders[parts]),
            "functions": told,
            "others": {"functions": many, "samples": of_others},
            "locations": told_apart.collect::<Vec<usize>>(),
            "parts": parts,
            // Row by row, and there function by function, the others last: a number of 32 bits for each part.
            "counts": STANDARD.encode(curves.iter().flat_map(|count| count.to_le_bytes()).collect::<Vec<u8>>()),
            "partly_counted": uncounted.0,
        }))
    }
}

/// Gives the samples of a location in a stretch, until `take` breaks: number of the call path, and when, ns. They are not
/// sorted.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn samples(
    share: &Share,
    at: usize,
    (from, until): (i64, i64),
    stop: &Stop,
    mut take: impl FnMut(u32, i64) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    read(share, at, from, stop, |call| {
        let mut seen = share.samples(at, call);
        seen.try_for_each(|(path, time)| match (from..until).contains(&time) {
            true => take(path, time),
            false => ControlFlow::Continue(()),
        })?;
        // The first call after the stretch tells of the time before it.
        match call.enter >= until {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
}

/// The function in which a sample was, at whatever line of it.
fn function(path: &CallPath) -> Function {
    let place = &path.place;
    let name = place.function.rsplit_once("+0x");
    let name = name.map_or(&place.function[..], |(name, _)| name);
    (place.file.clone(), name.to_owned())
}

/// `app.c exchange`, or the known part of it.
fn text((file, name): &Function) -> String {
    match (base_name(file), &name[..]) {
        ("", "") => "unknown".to_owned(),
        ("", name) => short(name),
        (file, name) => short(&format!("{file} {name}")),
    }
}
