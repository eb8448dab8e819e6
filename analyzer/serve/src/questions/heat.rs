//! Amounts by locations and time: shares of a kind of time, or what was sent or counted.

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_overlay::Stop;
use laggard_overlay::filters::Sum;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::metric::Metric;
use super::{Asked, seconds};
use crate::index::scaled;
use crate::share::Share;
use crate::spending::borders;

/// Most cells of a map: a byte each.
pub const CELLS: usize = 3 << 14;
/// Most rows: each has a label.
pub const ROWS: usize = 256;

/// A map of some locations in a stretch of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heat {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
    /// See [`Metric::of`].
    pub metric: String,
    /// Cells in a row.
    pub width: usize,
    /// Most rows; as many successive locations share one as that needs.
    pub height: usize,
}

impl Heat {
    /// Columns, and locations in a row.
    fn shape(&self, locations: usize) -> (usize, usize) {
        let rows = self.height.clamp(1, ROWS).min(locations.max(1));
        let in_row = locations.div_ceil(rows).max(1);
        let rows = locations.div_ceil(in_row).max(1);
        (self.width.clamp(1, CELLS / rows), in_row)
    }
}

impl Asked for Heat {
    /// Sums of cells, row by row, and how many locations are not counted as a whole.
    type Part = (Vec<Sum>, Sum);

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let metric = Metric::of(&self.metric)?;
        let (width, in_row) = self.shape(chosen.len());
        let borders = borders(stretch, width);
        let own = share.own(&chosen);
        let rows = chosen.clone().step_by(in_row).collect::<Vec<_>>();
        let rows = rows.into_par_iter().map(|first| {
            let (mut row, mut partly) = (vec![Sum(0); width], 0);
            for at in first.max(own.start)..(first + in_row).min(own.end) {
                let of = (at, chosen.len());
                let is_all = metric.add(share, of, &borders, &mut row, stop)?;
                partly += i64::from(!is_all);
            }
            Ok((row, partly))
        });
        let (rows, partly): (Vec<Vec<Sum>>, Vec<i64>) =
            rows.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok((rows.concat(), Sum(partly.iter().sum())))
    }

    fn answer(&self, share: &Share, (cells, partly): Self::Part) -> Result<Value> {
        let chosen = share.chosen(self.first, self.last)?;
        let (width, in_row) = self.shape(chosen.len());
        if cells.len() != width * chosen.len().div_ceil(in_row) {
            bail!("an agent tells of another map");
        }
        let rows = cells.chunks(width).enumerate().map(|(row, cells)| {
            let first = chosen.start + row * in_row;
            let last = (first + in_row).min(chosen.end) - 1;
            Row {
                label: match first == last {
                    true => share.label(first),
                    false => format!("{}–{}", share.label(first), share.label(last)),
                },
                first,
                last,
                count: last - first + 1,
                cells: cells.to_vec(),
            }
        });
        self.told(share, rows.collect(), partly)
    }
}

/// A row of a map.
pub struct Row {
    pub label: String,
    /// Locations to look at next.
    pub first: usize,
    pub last: usize,
    /// Locations in it.
    pub count: usize,
    /// Their sums, by part of the time.
    pub cells: Vec<Sum>,
}

impl Heat {
    /// A map of such rows.
    ///
    /// # Errors
    /// The question makes no sense.
    pub fn told(&self, share: &Share, rows: Vec<Row>, partly: Sum) -> Result<Value> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let metric = Metric::of(&self.metric)?;
        let width = rows.first().map_or(1, |row| row.cells.len());
        let borders = borders(stretch, width);
        // Of time the most is known; else it is what a location of a cell has at most.
        let means = rows.iter().flat_map(|row| {
            let count = row.count.max(1) as i64;
            row.cells.iter().map(move |cell| cell.0 / count)
        });
        let most = means.max().filter(|_| !metric.is_time());
        let sum = |cells: &[Sum]| {
            let cells = cells.iter();
            cells.fold(0, |sum: i64, cell| sum.saturating_add(cell.0))
        };
        let total = rows
            .iter()
            .fold(0, |total: i64, row| total.saturating_add(sum(&row.cells)));
        let told = rows.iter().map(|row| {
            let cells = row.cells.iter().zip(borders.windows(2));
            let shades = cells.map(|(cell, borders)| {
                let whole = most.unwrap_or(borders[1] - borders[0]).max(1);
                let whole = whole.saturating_mul(row.count as i64);
                scaled(255, cell.0.clamp(0, whole), whole) as u8
            });
            let told = json!({
                "first": row.first, "last": row.last, "label": row.label, "count": row.count,
                "total": metric.told(sum(&row.cells)),
            });
            (told, shades.collect::<Vec<u8>>())
        });
        let (told, shades): (Vec<Value>, Vec<Vec<u8>>) = told.unzip();
        Ok(json!({
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "metric": self.metric,
            "width": width,
            "rows": told,
            "cells": STANDARD.encode(shades.concat()),
            "unit": metric.unit(),
            "total": metric.told(total),
            "most": most.map(|most| metric.told(most)),
            "partly_counted": partly.0,
        }))
    }
}
