//! Where the critical path is: stretch by stretch where these are few, else its share of equal parts of the time.

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_overlay::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::at_head::{AtHead, heard, made, told};
use super::{Asked, LOCATIONS, PARTS, seconds};
use crate::index::{overlap, within};
use crate::share::Share;
use crate::spending::borders;
use crate::whole::Whole;

/// Most stretches that are told one by one, of all locations together.
const STRETCHES: usize = 2000;

/// The critical path on some locations in a stretch of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Path {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
    /// Parts in which shares are told where stretches are many.
    pub width: usize,
}

impl Asked for Path {
    type Part = AtHead;

    fn part(&self, share: &Share, stop: &Stop) -> Result<AtHead> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        if chosen.len() > LOCATIONS {
            bail!("a critical path is told on {LOCATIONS} locations at most");
        }
        let path = match made(share, Whole::path) {
            Ok(path) => path,
            Err(without) => return Ok(without),
        };
        stop.check()?;
        let seen = |at: usize| {
            let all = &path[at];
            let first = all.partition_point(|one| one.1 <= stretch.0);
            let end = all.partition_point(|one| one.0 < stretch.1);
            &all[first..end.max(first)]
        };
        let is_few = chosen.clone().map(|at| seen(at).len()).sum::<usize>() <= STRETCHES;
        let width = self.width.clamp(1, PARTS / chosen.len());
        let borders = borders(stretch, width);
        let lanes = chosen.map(|at| {
            let seen = seen(at);
            let cut = |one: &(i64, i64)| (one.0.max(stretch.0), one.1.min(stretch.1));
            let total: i64 = seen.iter().map(|one| overlap(*one, stretch)).sum();
            let told = is_few.then(|| {
                let told = seen.iter().map(cut);
                let told = told.map(|(from, until)| json!([from - stretch.0, until - from]));
                told.collect::<Vec<_>>()
            });
            let parts = (!is_few).then(|| {
                let mut sums = vec![0; width];
                for one in seen {
                    within(&borders, cut(one), |part, time| sums[part] += time);
                }
                let shares = sums.iter().zip(borders.windows(2)).map(|(sum, borders)| {
                    let whole = (borders[1] - borders[0]).max(1);
                    // What is there at all can be seen.
                    (sum * 255 / whole).max(i64::from(*sum > 0)) as u8
                });
                STANDARD.encode(shares.collect::<Vec<u8>>())
            });
            json!({"location": at, "total_s": seconds(total), "stretches": told, "parts": parts})
        });
        let lanes: Vec<Value> = lanes.collect();
        let answer = json!({
            "is_made": true,
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "lanes": lanes,
        });
        Ok(told(&answer))
    }

    fn answer(&self, _: &Share, part: AtHead) -> Result<Value> {
        heard(part)
    }
}
