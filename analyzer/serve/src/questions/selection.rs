//! Sums of a stretch of time and some locations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_overlay::filters::Histogram;
use laggard_overlay::{Filter, Stop};
use laggard_patterns::PatternId;
use laggard_trace::calls::{self, Call};
use laggard_trace::flags;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds, short};
use crate::index::{is_told, overlap, scaled};
use crate::share::Share;
use crate::spending::{NAMES, Read, Times, is_exact, message, times, times_and_calls};

/// Rows of each table.
const ROWS: usize = 40;
/// Waits among which the longest are looked for at once.
const SORTED: usize = 100 * ROWS;

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
    /// Calls of which the name, or a frame of the call path, has this text; all calls.
    #[serde(default)]
    pub functions: String,
}

/// Sums of some locations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    times: Times,
    /// Locations whose single calls are not read.
    unread: u64,
    /// Those of which the profile of the whole run tells.
    profiled: u64,
    /// Locations of which only the longest waits are known.
    unknown: u64,
    /// Those with a profile alone.
    unrecorded: u64,
    /// Those whose recording was paused nobody knows when.
    paused: u64,
    /// Time in which less than calls was recorded, ns.
    left_out: i64,
    /// By call and place. Of locations whose single calls are not read it has the waiting alone.
    profile: BTreeMap<(String, String), Row>,
    /// How long single calls took, ns.
    durations: Histogram,
    /// Bytes of single messages.
    sizes: Histogram,
    /// The longest waits: time lost, location, since, pattern, late rank, late location.
    waits: Vec<(Reverse<i64>, u32, i64, u32, u32, u32)>,
    /// Waits that these are the longest of.
    waits_in_sight: u64,
}

/// What calls of one name at one place add up to. ns
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Row {
    calls: u64,
    time: i64,
    /// Part of that time.
    waiting: i64,
    bytes: u64,
}

impl Filter for Row {
    fn merge(&mut self, other: Row) {
        self.calls += other.calls;
        self.time += other.time;
        self.waiting += other.waiting;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Sums {
    /// Adds what calls of one name at one call path add up to.
    fn take(&mut self, share: &Share, (call, path): (u16, u32), sum: Row) {
        let place = share.events().call_paths[path as usize].short();
        let of = self.profile.entry((calls::name(call).to_owned(), place));
        of.or_default().merge(sum);
    }

    fn keep_longest_waits(&mut self) {
        self.waits.sort_unstable();
        self.waits.truncate(ROWS);
    }
}

impl Filter for Sums {
    fn merge(&mut self, other: Sums) {
        let times = self.times.iter_mut().zip(other.times);
        times.for_each(|(sum, part)| *sum += part);
        self.unread += other.unread;
        self.profiled += other.profiled;
        self.unknown += other.unknown;
        self.unrecorded += other.unrecorded;
        self.paused += other.paused;
        self.left_out += other.left_out;
        Filter::merge(&mut self.profile, other.profile);
        self.durations.merge(other.durations);
        self.sizes.merge(other.sizes);
        self.waits.extend(other.waits);
        self.waits_in_sight += other.waits_in_sight;
        self.keep_longest_waits();
    }
}

impl Selection {
    /// The sums of an own location; `among` are asked about in all.
    fn sums(
        &self,
        share: &Share,
        at: usize,
        (stretch, among): ((i64, i64), usize),
        stop: &Stop,
    ) -> Result<Sums> {
        let index = share.index_of(at);
        let reads = is_exact(share, at, stretch, among);
        let mut sums = self.waits(share, at, (stretch, reads));
        let is_all = index.is_all_in(stretch);
        sums.unknown = u64::from(!is_all && !index.has_all_waits());
        sums.unrecorded = u64::from(share.is_profile(at));
        sums.left_out = index.left_out(stretch);
        sums.paused = u64::from(index.changes.is_empty() && share.was_paused(at));
        if !reads {
            let times = times(share, at, &[stretch.0, stretch.1], among, stop)?;
            sums.times = times.first().copied().unwrap_or_default();
            match is_all {
                true => {
                    sums.profiled = 1 - sums.unrecorded;
                    self.take_profile(share, at, &mut sums);
                }
                false => sums.unread = 1 - sums.unrecorded,
            }
            return Ok(sums);
        }
        let mut of: FxHashMap<(u16, u32), Option<Row>> = FxHashMap::default();
        let borders = [stretch.0, stretch.1];
        let times = times_and_calls(share, (at, among), &borders, stop, |read| {
            let call = match read {
                Read::Call(call) => call,
                Read::Waited(wait, parts) => {
                    let (call, path, _) = share.site_of(at, wait.signature);
                    let known = of.entry((call, path));
                    let known =
                        known.or_insert_with(|| self.has(share, (call, path)).then(Row::default));
                    // Of the whole run, what all waits lost is known.
                    if let Some(sum) = known.as_mut().filter(|_| !is_all) {
                        sum.waiting += parts.iter().map(|(_, time)| time).sum::<i64>();
                    }
                    return;
                }
                Read::Between(between) => {
                    let known = of.entry(between.site);
                    let known =
                        known.or_insert_with(|| self.has(share, between.site).then(Row::default));
                    if let Some(sum) = known {
                        let (begin, end) = between.stretch;
                        let part = overlap((begin, end), stretch);
                        sum.time += scaled(between.time, part, end - begin);
                    }
                    return;
                }
            };
            let is_part = call.has(flags::PART);
            if !is_told(call.call, call.signature) {
                return;
            }
            let key = (call.signature.operation, call.call_path);
            let known = of.entry(key);
            let known = known.or_insert_with(|| self.has(share, key).then(Row::default));
            let Some(sum) = known else { return };
            let bytes = call.send().bytes.saturating_add(call.receive().bytes);
            let begins = (stretch.0..stretch.1).contains(&call.enter);
            if let Some((_, bytes)) = message(call).filter(|_| begins) {
                sums.sizes.add(bytes);
            }
            if is_part {
                // One of the messages of a call, which follows.
                sum.bytes = sum.bytes.saturating_add(bytes);
                return;
            }
            sums.durations.add((call.leave - call.enter).max(0) as u64);
            // As all shares of a report: what start-up and shut-down take is not counted.
            let own = (
                call.enter.max(index.measured.0),
                call.leave.min(index.measured.1),
            );
            sum.merge(Row {
                calls: call.calls.into(),
                time: scaled(call.inside, overlap(own, stretch), call.leave - call.enter),
                waiting: 0,
                bytes,
            });
        })?;
        sums.times = times.first().copied().unwrap_or_default();
        for (site, sum) in of {
            sum.into_iter().for_each(|sum| sums.take(share, site, sum));
        }
        Ok(sums)
    }

    /// The kept waits of an own location in a stretch, and by call and place what they lost there; of the whole run,
    /// what all lost. If its calls are read, these tell of waits in looks.
    fn waits(&self, share: &Share, at: usize, (stretch, reads): ((i64, i64), bool)) -> Sums {
        let index = share.index_of(at);
        let mut sums = Sums::default();
        let mut of: FxHashMap<(u16, u32), Option<i64>> = FxHashMap::default();
        let mut lose = |(call, path, _): (u16, u32, u64), lost: i64| {
            let known = of.entry((call, path));
            let known = known.or_insert_with(|| self.has(share, (call, path)).then_some(0));
            known.as_mut().map(|sum| *sum += lost).is_some()
        };
        let is_all = index.is_all_in(stretch);
        for one in index.lost.iter().filter(|_| is_all) {
            lose(share.site_of(at, one.signature), one.lost);
        }
        for wait in index.waits(stretch) {
            let lost = match is_all || (reads && wait.is_spread()) {
                true => 0,
                false => wait.within(stretch),
            };
            if !lose(share.site_of(at, wait.signature), lost) {
                continue;
            }
            sums.waits_in_sight += 1;
            sums.waits.push((
                Reverse(wait.lost),
                at as u32,
                wait.since,
                wait.pattern,
                wait.late_rank,
                wait.late_location,
            ));
            if sums.waits.len() >= SORTED {
                sums.keep_longest_waits();
            }
        }
        sums.keep_longest_waits();
        for (site, waiting) in of {
            let row = waiting.map(|waiting| Row {
                waiting,
                ..Row::default()
            });
            row.into_iter().for_each(|row| sums.take(share, site, row));
        }
        sums
    }

    /// Takes what a location did in the whole run from its profile, which knows nothing of single calls.
    fn take_profile(&self, share: &Share, at: usize, sums: &mut Sums) {
        for one in &share.index_of(at).lost {
            let (call, path, _) = share.site_of(at, one.signature);
            if one.between > 0 && self.has(share, (call, path)) {
                let time = one.between;
                sums.take(
                    share,
                    (call, path),
                    Row {
                        time,
                        ..Row::default()
                    },
                );
            }
        }
        for row in share.profile(at) {
            let (call, site) = (calls::call(row.call), (row.call, row.call_path));
            if call.is_some_and(Call::is_user) || !self.has(share, site) {
                continue;
            }
            // What start-up and shut-down take is not counted.
            let is_apart = call.is_some_and(|call| call.shape.is_apart());
            let time = i64::try_from(row.total_ns).unwrap_or(i64::MAX);
            let of = Row {
                calls: row.count,
                time: if is_apart { 0 } else { time },
                waiting: 0,
                bytes: row.bytes,
            };
            sums.take(share, site, of);
        }
    }

    /// Whether calls of this name and call path are chosen.
    fn has(&self, share: &Share, (call, path): (u16, u32)) -> bool {
        let wanted = self.functions.to_lowercase();
        let is_it = |text: &str| text.to_lowercase().contains(&wanted);
        let place = &share.events().call_paths[path as usize].place;
        is_it(calls::name(call)) || place.callpath.iter().any(|frame| is_it(frame))
    }
}

impl Asked for Selection {
    type Part = Sums;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Sums> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        let own = share.own(&chosen).into_par_iter();
        let sums = own.map(|at| self.sums(share, at, (stretch, chosen.len()), stop));
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
        let times_of = |row: &Row| Reverse((row.time, row.waiting));
        profile.sort_by(|(a, row), (b, other)| (times_of(row), a).cmp(&(times_of(other), b)));
        profile.truncate(ROWS);
        let profile = profile.iter().map(|((call, place), row)| {
            // Of calls that are not read their waiting alone is known.
            let is_read = sums.unread == 0 || row.calls > 0;
            json!({
                "call": call, "place": short(place), "calls": is_read.then_some(row.calls),
                "time_s": is_read.then(|| seconds(row.time)), "bytes": is_read.then_some(row.bytes),
                "waiting_s": seconds(row.waiting),
            })
        });
        let waits = sums
            .waits
            .iter()
            .map(|(lost, at, since, pattern, late, late_at)| {
                let place = share.named(*at as usize)?;
                let pattern = u8::try_from(*pattern).ok().and_then(PatternId::from_number);
                Ok(json!({
                    "lost_s": seconds(lost.0),
                    "since_s": seconds(*since),
                    "location": at,
                    "rank": place.rank,
                    "thread": place.thread,
                    "pattern": pattern.map_or("", PatternId::name),
                    "late_rank": (*late != u32::MAX).then_some(late),
                    "late_thread": share.thread(*late_at),
                }))
            });
        // From, to, how many, and their sum.
        let told = |histogram: &Histogram, unit: f64| -> Vec<Value> {
            let rows = histogram.counts.iter().map(|(&range, (count, sum))| {
                let border = |range| Histogram::least(range) as f64 / unit;
                json!([border(range), border(range + 1), count, *sum as f64 / unit])
            });
            rows.collect()
        };
        Ok(json!({
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "locations": chosen.len(),
            "times_s": times,
            "unread_locations": sums.unread,
            "profiled_locations": sums.profiled,
            "unknown_waits": sums.unknown,
            "unrecorded_locations": sums.unrecorded,
            "paused_locations": sums.paused,
            "left_out_s": seconds(sums.left_out),
            "profile": profile.collect::<Vec<_>>(),
            "profile_rows": rows,
            "waits": waits.collect::<Result<Vec<_>>>()?,
            "waits_in_sight": sums.waits_in_sight,
            "durations_s": told(&sums.durations, 1e9),
            "sizes": told(&sums.sizes, 1.0),
        }))
    }
}
