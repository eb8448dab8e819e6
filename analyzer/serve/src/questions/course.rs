//! How much of something all chosen locations had together, moment by moment.

use anyhow::Result;
use laggard_overlay::Stop;
use laggard_overlay::filters::Sum;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::metric::Metric;
use super::{Asked, seconds};
use crate::share::Share;
use crate::spending::borders;

/// Most parts of a course.
const PARTS: usize = 1000;

/// An amount over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Course {
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
    /// Parts in which it is told.
    pub width: usize,
}

impl Asked for Course {
    /// Amounts by part, and how many locations are not counted as a whole.
    type Part = (Vec<Sum>, Sum);

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let metric = Metric::of(&self.metric)?;
        let borders = borders(stretch, self.width.clamp(1, PARTS));
        let none = || (vec![Sum(0); borders.len() - 1], Sum(0));
        let own = share.own(&chosen).into_par_iter();
        let parts = own.map(|at| {
            let mut part = none();
            let of = (at, chosen.len());
            let is_all = metric.add(share, of, &borders, &mut part.0, stop)?;
            part.1.0 += i64::from(!is_all);
            Ok(part)
        });
        parts.try_reduce(none, |mut one, other| {
            laggard_overlay::Filter::merge(&mut one, other);
            Ok(one)
        })
    }

    fn answer(&self, share: &Share, (parts, partly): Self::Part) -> Result<Value> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let metric = Metric::of(&self.metric)?;
        let borders = borders(stretch, parts.len());
        // Time in a second is the number of locations that have it at that moment.
        let rates = parts.iter().zip(borders.windows(2)).map(|(part, borders)| {
            let length = (borders[1] - borders[0]).max(1) as f64;
            let second = if metric.is_time() { 1.0 } else { 1e9 };
            let rate = part.0 as f64 * second / length;
            // Three digits are more than can be seen.
            format!("{rate:.3e}").parse::<f64>().unwrap_or(rate)
        });
        let total = parts
            .iter()
            .fold(0i64, |sum, part| sum.saturating_add(part.0));
        Ok(json!({
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "metric": self.metric,
            "unit": metric.unit(),
            "rates": rates.collect::<Vec<_>>(),
            "total": metric.told(total),
            "partly_counted": partly.0,
        }))
    }
}
