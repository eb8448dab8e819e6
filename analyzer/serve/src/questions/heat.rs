//! Amounts by locations and time: shares of a kind of time, or what was sent or counted.

use anyhow::Result;
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
const CELLS: usize = 1 << 16;
/// Most rows: each has a label.
const ROWS: usize = 256;

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
        let cells: Vec<i64> = cells.into_iter().map(|cell| cell.0).collect();
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let metric = Metric::of(&self.metric)?;
        let (width, in_row) = self.shape(chosen.len());
        let borders = borders(stretch, width);
        // Of time the most is known; else it is what a location of a cell has at most.
        let mean = |row: usize, cell: i64| {
            let first = chosen.start + row * in_row;
            cell / (in_row.min(chosen.end - first)) as i64
        };
        let means = cells.iter().enumerate();
        let most = means.map(|(at, &cell)| mean(at / width, cell)).max();
        let most = most.filter(|_| !metric.is_time());
        let rows = cells.chunks(width).enumerate().map(|(row, cells)| {
            let first = chosen.start + row * in_row;
            let last = (first + in_row).min(chosen.end) - 1;
            let label = match first == last {
                true => share.label(first),
                false => format!("{}–{}", share.label(first), share.label(last)),
            };
            let count = (last - first + 1) as i64;
            let shades = cells.iter().zip(borders.windows(2)).map(|(sum, borders)| {
                let whole = most.unwrap_or(borders[1] - borders[0]).max(1);
                let whole = whole.saturating_mul(count);
                scaled(255, (*sum).clamp(0, whole), whole) as u8
            });
            let total = cells
                .iter()
                .fold(0, |sum: i64, cell| sum.saturating_add(*cell));
            let row = json!({
                "first": first, "last": last, "label": label, "total": metric.told(total),
            });
            (row, shades.collect::<Vec<u8>>())
        });
        let (rows, shades): (Vec<Value>, Vec<Vec<u8>>) = rows.unzip();
        let total = cells
            .iter()
            .fold(0, |sum: i64, cell| sum.saturating_add(*cell));
        Ok(json!({
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "metric": self.metric,
            "width": width,
            "rows": rows,
            "cells": STANDARD.encode(shades.concat()),
            "unit": metric.unit(),
            "total": metric.told(total),
            "most": most.map(|most| metric.told(most)),
            "partly_counted": partly.0,
        }))
    }
}
