//! The critical path as rows of the report.

use std::cmp::Reverse;

use laggard_report::{
    CriticalPath, Parallelism, PathPhase, PathRank, PathRow, WaitingRanks, rank_ranges, ratio,
};

use rustc_hash::FxHashMap;

use crate::findings::places::Places;
use crate::report::roots::{name, operation, place, site};
use crate::roots::activities::Activity;
use crate::roots::carry::UNIT;
use crate::roots::impact::OnPath;
use crate::roots::map;
use crate::roots::sums::Roots;
use crate::waits::sums::LISTED;

/// Most activities that are listed, and the least share of one of them.
const MOST: usize = 100;
const LEAST_SHARE: f64 = 0.001;
/// Most ranks of an activity that are listed.
const RANKS: usize = 8;

/// The critical path, and how busy this many locations were, which sent so many messages.
pub fn rows(
    roots: &Roots,
    (locations, messages): (usize, u64),
    places: &mut Places,
) -> (CriticalPath, Parallelism) {
    let (path, load) = (&roots.path, &roots.load);
    let length = (load.span.1 - load.span.0).max(0);
    // Start-up is in no percentage.
    let apart = || path.of.iter().filter(|(activity, _)| activity.is_apart());
    let startup: i64 = apart().map(|(_, sums)| sums.time).sum();
    let inner = (length - startup) as f64;
    let of_inner = path.of.iter().filter(|(activity, _)| !activity.is_apart());
    let weight: i128 = path.of.values().map(|sums| sums.weight).sum();
    let inner_weight = of_inner.map(|(_, sums)| sums.weight).sum::<i128>() as f64;
    let mut ranks = path.ranks.clone();
    for (rank, time) in apart().flat_map(|(_, sums)| &sums.ranks) {
        *ranks.entry(*rank).or_default() -= time;
    }
    ranks.retain(|_, time| *time > 0);
    let impact = |of: fn(&OnPath) -> i128| {
        let parts = path.of.values().map(|sums| of(sums).max(0));
        seconds(parts.sum())
    };
    let (all, inter) = (impact(|sums| sums.impact), impact(|sums| sums.inter));
    let mut profile: Vec<_> = path.of.iter().filter(|(_, sums)| sums.time > 0).collect();
    profile.sort_unstable_by_key(|(activity, sums)| (Reverse(sums.time), **activity));
    let is_listed = |sums: &OnPath| ratio(sums.time as f64, length as f64) >= LEAST_SHARE;
    profile.retain(|(_, sums)| is_listed(sums));
    // What is known of some activities as one falls on each by its time.
    let mut of_all: FxHashMap<Activity, i64> = FxHashMap::default();
    for (activity, sums) in &path.of {
        *of_all.entry(activity.by_call_path()).or_default() += sums.time;
    }
    let shared = |activity: &Activity, time: i64| {
        let whole = activity.by_call_path();
        let known = path.of.get(&whole).filter(|_| whole != *activity);
        let impact = known.map_or(0, |sums| sums.impact.max(0));
        impact * i128::from(time) / i128::from(of_all[&whole].max(1))
    };
    let profile = profile.into_iter().take(MOST).map(|(activity, sums)| {
        let mean = sums.all / locations.max(1) as i64;
        let part = if activity.is_apart() { 0.0 } else { 1.0 };
        PathRow {
            kind: name(activity).to_owned(),
            operation: operation(activity.begin),
            location: place(activity.begin, places),
            until: site(activity.until, places),
            seconds: laggard_report::seconds(sums.time),
            share: ratio(part * sums.time as f64, inner),
            weight_share: ratio(part * sums.weight as f64, inner_weight),
            ranks: longest(&sums.ranks, RANKS),
            imbalance_s: laggard_report::seconds((sums.time - mean).max(0)),
            impact_s: seconds(sums.impact.max(0) + shared(activity, sums.time)),
        }
    });
    let profile = profile.collect();
    let mut phases: Vec<PathPhase> = path
        .phases
        .iter()
        .map(|(name, spent)| PathPhase {
            phase: name.clone(),
            seconds: laggard_report::seconds(spent.time),
            share: ratio(spent.time as f64, inner).min(1.0),
            weight_share: ratio(spent.weight as f64, inner_weight).min(1.0),
        })
        .collect();
    phases.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    phases.truncate(MOST);
    let errors = path.of.values().map(|sums| sums.error);
    let errors = errors.chain(path.phases.values().map(|spent| spent.error));
    let critical = CriticalPath {
        length_s: laggard_report::seconds(length),
        startup_s: laggard_report::seconds(startup),
        weight_s: laggard_report::seconds(weight),
        activities_s: laggard_report::seconds(path.activities),
        imbalance_impact_s: all,
        inter_partition_s: inter,
        intra_partition_s: (all - inter).max(0.0),
        non_critical_s: laggard_report::seconds(path.others),
        ranks: longest(&ranks, LISTED),
        profile,
        phases,
        weight_error_s: laggard_report::seconds(errors.max().unwrap_or(0)),
    };
    let busy = load
        .busy
        .iter()
        .fold(0, |sum: i64, time| sum.saturating_add(*time));
    let speedup = ratio(busy as f64, length as f64);
    let per_bin = |sums: f64| ratio(sums, load.width as f64);
    let parallelism = Parallelism {
        bins_s: laggard_report::seconds(load.width),
        busy: load.busy.iter().map(|&time| per_bin(time as f64)).collect(),
        bytes_per_s: load
            .bytes
            .iter()
            .map(|&bytes| per_bin(bytes as f64) * 1e9)
            .collect(),
        waiting: load.waiting.rows.iter().map(waiting).collect(),
        speedup,
        efficiency: ratio(speedup, locations as f64),
        granularity_s: (messages > 0).then(|| laggard_report::seconds(busy / messages as i64)),
    };
    (critical, parallelism)
}

/// Shares to a thousandth.
fn waiting(row: &map::Row) -> WaitingRanks {
    let ranks = row.ranks.iter().flat_map(|(first, last)| *first..=*last);
    let share = |share: &f64| (share * 1e3).round().clamp(0.0, 1e3) / 1e3;
    WaitingRanks {
        ranks: rank_ranges(ranks),
        locations: row.locations,
        shares: row.waited.iter().map(share).collect(),
    }
}

/// The ranks that the path is on longest.
fn longest(ranks: &FxHashMap<u32, i64>, most: usize) -> Vec<PathRank> {
    let mut ranks: Vec<(u32, i64)> = ranks.iter().map(|(rank, time)| (*rank, *time)).collect();
    ranks.sort_unstable_by_key(|&(rank, time)| (Reverse(time), rank));
    let ranks = ranks.into_iter().take(most).map(|(rank, time)| PathRank {
        rank,
        seconds: laggard_report::seconds(time),
    });
    ranks.collect()
}

fn seconds(amount: i128) -> f64 {
    laggard_report::seconds(amount / i128::from(UNIT))
}
