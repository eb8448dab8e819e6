//! Sums of a stretch of time and some locations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_overlay::filters::Histogram;
use laggard_overlay::{Filter, Stop};
use laggard_patterns::PatternId;
use laggard_trace::calls;
use laggard_trace::flags;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds, short};
use crate::index::{KeptWait, counts, overlap, scaled};
use crate::share::Share;
use crate::spending::{NAMES, Times, calls as calls_of, is_exact, times};

/// Rows of each table.
const ROWS: usize = 40;

/// A selection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Selection {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
}

/// Sums of some locations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    times: Times,
    /// Locations whose single calls are not read.
    unread: u64,
    /// Calls, ns and bytes by call and place.
    profile: BTreeMap<(String, String), (u64, i64, u64)>,
    /// How long single calls took, ns.
    durations: Histogram,
    /// The longest waits: time lost, location, since, pattern, late rank.
    waits: Vec<(Reverse<i64>, u32, i64, u32, u32)>,
}

impl Filter for Sums {
    fn merge(&mut self, other: Sums) {
        let times = self.times.iter_mut().zip(other.times);
        times.for_each(|(sum, part)| *sum += part);
        self.unread += other.unread;
        for (key, (calls, ns, bytes)) in other.profile {
            let sum = self.profile.entry(key).or_default();
            sum.0 += calls;
            sum.1 += ns;
            sum.2 = sum.2.saturating_add(bytes);
        }
        self.durations.merge(other.durations);
        self.waits.extend(other.waits);
        self.waits.sort_unstable();
        self.waits.truncate(ROWS);
    }
}

impl Sums {
    fn of(
        share: &Share,
        at: usize,
        stretch: (i64, i64),
        among: usize,
        stop: &Stop,
    ) -> Result<Sums> {
        let index = share.index_of(at);
        let mut sums = Sums::default();
        let times = times(share, at, &[stretch.0, stretch.1], among, stop)?;
        sums.times = times.first().copied().unwrap_or_default();
        let row = |wait: &KeptWait| {
            (
                Reverse(wait.lost),
                at as u32,
                wait.since,
                wait.pattern,
                wait.late_rank,
            )
        };
        sums.waits = index.waits(stretch).map(row).collect();
        sums.waits.sort_unstable();
        sums.waits.truncate(ROWS);
        if !is_exact(share, at, stretch, among) {
            sums.unread = 1;
            return Ok(sums);
        }
        let mut of: BTreeMap<(u16, u32), (u64, i64, u64)> = BTreeMap::new();
        calls_of(share, at, stretch, stop, |call| {
            if counts(call.call, call.has(flags::PART)) {
                let within = overlap((call.enter, call.leave), stretch);
                let sum = of
                    .entry((call.signature.operation, call.call_path))
                    .or_default();
                sum.0 += u64::from(call.calls);
                sums.durations.add((call.leave - call.enter).max(0) as u64);
                sum.1 += scaled(call.inside, within, call.leave - call.enter);
                let bytes = call.send.bytes.saturating_add(call.receive.bytes);
                sum.2 = sum.2.saturating_add(bytes);
            }
        })?;
        for ((call, path), one) in of {
            let place = share.events().call_paths[path as usize].short();
            let sum = sums
                .profile
                .entry((calls::name(call).to_owned(), place))
                .or_default();
            sum.0 += one.0;
            sum.1 += one.1;
            sum.2 = sum.2.saturating_add(one.2);
        }
        Ok(sums)
    }
}

impl Asked for Selection {
    type Part = Sums;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Sums> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let own = share.own(&chosen).into_par_iter();
        let sums = own.map(|at| Sums::of(share, at, stretch, chosen.len(), stop));
        sums.try_reduce(Sums::default, |mut one, other| {
            one.merge(other);
            Ok(one)
        })
    }

    fn answer(&self, share: &Share, sums: Sums) -> Result<Value> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let times = NAMES.iter().zip(sums.times);
        let times: BTreeMap<_, _> = times.map(|(name, ns)| (*name, seconds(ns))).collect();
        let mut profile: Vec<_> = sums.profile.into_iter().collect();
        let rows = profile.len();
        profile.sort_by(|(a, (_, ns, _)), (b, (_, other, _))| (other, a).cmp(&(ns, b)));
        profile.truncate(ROWS);
        let profile = profile.iter().map(|((call, place), (calls, ns, bytes))| {
            json!({
                "call": call, "place": short(place), "calls": calls,
                "time_s": seconds(*ns), "bytes": bytes,
            })
        });
        let waits = sums.waits.iter().map(|(lost, at, since, pattern, late)| {
            let pattern = u8::try_from(*pattern).ok().and_then(PatternId::from_number);
            json!({
                "lost_s": seconds(lost.0),
                "since_s": seconds(*since),
                "location": at,
                "rank": share.placed(*at as usize).rank,
                "pattern": pattern.map_or("", PatternId::name),
                "late_rank": (*late != u32::MAX).then_some(late),
            })
        });
        // From, to, how many, and their sum.
        let durations = sums.durations.counts.iter().map(|(&range, (count, sum))| {
            let border = |range| Histogram::least(range) as f64 / 1e9;
            json!([border(range), border(range + 1), count, *sum as f64 / 1e9])
        });
        Ok(json!({
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "locations": chosen.len(),
            "times_s": times,
            "unread_locations": sums.unread,
            "profile": profile.collect::<Vec<_>>(),
            "profile_rows": rows,
            "waits": waits.collect::<Vec<_>>(),
            "durations_s": durations.collect::<Vec<_>>(),
        }))
    }
}
