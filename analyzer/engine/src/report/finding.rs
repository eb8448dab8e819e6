//! A finding: what waits where, how long, and because of whom.

use laggard_patterns::{Evidence, PatternId, confidence};
use laggard_report::{
    Bottleneck, Instance, RankClass, RankSet, RankShare, percent, ratio, seconds,
};
use laggard_trace::calls::{self, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::basics::intern::PathKey;
use crate::findings::fold::Folded;
use crate::findings::places::Places;
use crate::findings::{fold, within};
use crate::judge::detect::Filter;
use crate::judge::profile::{Profile, ProfileSums};
use crate::report::around::Around;
use crate::report::hints::{Found, RunFacts, hints};
use crate::report::reasons::{Reason, because};
use crate::report::roots::{Traced, thread_set};
use crate::stream::following::Followers;
use crate::waits::spread::Spread;
use crate::waits::sums::{CauseKey, FindingKey, Worst};

/// The time of all locations, ns.
#[derive(Clone, Copy)]
pub struct Total {
    /// Between start-up and shut-down.
    pub measured: f64,
    /// Including start-up and shut-down.
    pub all: f64,
}

impl Total {
    /// The time that a pattern's percentages refer to.
    pub fn of(self, pattern: PatternId) -> f64 {
        if pattern.is_startup() {
            self.all
        } else {
            self.measured
        }
    }
}

/// Operations and call paths with mostly waiting time.
pub fn waiting_at<'f>(
    findings: impl Iterator<Item = (&'f FindingKey, &'f Folded)>,
    profile: &Profile,
) -> FxHashSet<(u16, PathKey)> {
    let mut sums: FxHashMap<(u16, PathKey), u64> = FxHashMap::default();
    for (&(pattern, operation, path), folded) in findings {
        if PatternId::from_number(pattern).is_some_and(PatternId::is_waiting) {
            let sum = sums.entry((operation, path)).or_default();
            *sum = sum.saturating_add(folded.severity);
        }
    }
    let is_most = |(place, lost): &((u16, PathKey), u64)| {
        let total = profile.get(place).map_or(0, |sums| sums.total);
        *lost >= total.div_ceil(2)
    };
    let waiting = sums.into_iter().filter(is_most);
    waiting.map(|(place, _)| place).collect()
}

/// Context that all findings share.
pub struct Context<'c> {
    pub traced: &'c Traced,
    /// See [`waiting_at`].
    pub waiting: &'c FxHashSet<(u16, PathKey)>,
    pub total: Total,
    pub clock_error: u64,
    pub any_truncated: bool,
    pub members_missing: bool,
    pub single_host: bool,
    /// Number of ranks of the run.
    pub ranks: usize,
    pub around: &'c Around,
    pub run: RunFacts<'c>,
    pub followers: &'c Followers,
    pub within: &'c within::Regions,
    pub profile: &'c Profile,
}

pub fn bottleneck(
    key: FindingKey,
    sums: &Folded,
    profile: &ProfileSums,
    context: &Context,
    places: &mut Places,
) -> Option<Bottleneck> {
    let (pattern, operation, path) = key;
    let pattern = PatternId::from_number(pattern)?;
    let call = calls::call(operation)?;
    let severity = sums.severity;
    let mean_loss = severity / sums.instances.max(1);
    // All late parties are on the waiting rank's own host, with one clock.
    let is_local = sums.inter_host == 0 && !sums.causes.is_empty();
    let error = match context.single_host || is_local {
        true => 0,
        false => context.clock_error,
    };
    let evidence = Evidence {
        clock_error_ns: error as i64,
        truncated: context.any_truncated,
        // The wait for a non-blocking collective does not tell its group.
        members_missing: match call.shape {
            Shape::Single => context.members_missing && pattern.is_about_group(),
            _ => profile.members_missing,
        },
        inferred: call.is_user(),
    };
    let mean = profile.total as f64 / profile.count.max(1) as f64 / 1e9;
    let (filter, measured, baseline) = match profile.filter {
        Filter::None | Filter::Once | Filter::Hotspot => ("hotspot", None, None),
        Filter::Excess(ratio, expected) => ("hotspot", Some(ratio), expected),
        Filter::Deviation(ratio) => ("deviation", Some(ratio), None),
        Filter::Baseline(ratio, expected) => ("baseline", Some(ratio), Some(expected)),
        Filter::All => ("all", None, None),
    };
    let waiting_ranks = sums.rank_set.len();
    let mut reasons: Vec<Reason> = Vec::new();
    let waits = |operation, path| context.waiting.contains(&(operation, path));
    let is_of_threads = calls::call(operation).is_some_and(|call| call.is_threads());
    // Where both ends may be of one rank, the rank alone does not tell them apart.
    let is_within = |key: &CauseKey| key.thread > 0 && sums.rank_set.contains(key.rank);
    let are_told = is_of_threads || sums.causes.iter().any(|(key, _)| is_within(key));
    let threads = |numbers: &RankSet| thread_set(numbers.iter(), are_told);
    let thread_set = threads(&sums.thread_set);
    let are_told = are_told || !thread_set.is_empty();
    let causes = sums.causes.iter().map(|(key, cause)| {
        let reason = because(
            (pattern, operation, path),
            key,
            (cause, severity),
            waiting_ranks,
            waits,
            places,
        );
        let share = ratio(cause.sums.severity as f64, severity as f64);
        let tells = reason.is_between || reason.late == laggard_patterns::Late::Computed;
        let finding = (pattern as u8, operation, path);
        let computed = ratio(cause.sums.computation as f64, severity as f64);
        let part = if reason.is_between { share } else { computed };
        let of = (part, reason.is_between);
        let mostly = context.traced.mostly(&finding, key.rank, of);
        let because = match mostly.filter(|_| tells) {
            Some(mostly) => format!("{}, {mostly}", reason.text),
            None => reason.text.clone(),
        };
        reasons.push(reason);
        let part = |ns: u64| Some(seconds(ns));
        laggard_report::Cause {
            rank: key.rank,
            thread: (key.thread > 0 || are_told).then_some(key.thread.into()),
            operation: calls::name(key.operation).to_owned(),
            location: places.of(key.path),
            parallel_regions: within::rows(context.within, (key.operation, key.path), places),
            severity_s: seconds(cause.sums.severity),
            share,
            because,
            computation_s: part(cause.sums.computation),
            wait_s: part(cause.sums.waiting),
            io_s: part(cause.sums.io),
            blocked_s: part(cause.sums.blocked).filter(|time| *time > 0.0),
            preempted_s: part(cause.sums.preempted).filter(|time| *time > 0.0),
        }
    });
    let causes: Vec<_> = causes.collect();
    // Of other patterns, it is waiting for nobody known.
    let is_of_members = pattern.is_about_group() && pattern.is_waiting() && !causes.is_empty();
    let several = severity.saturating_sub(sums.late.severity);
    let several = Some(several).filter(|time| is_of_members && *time > 0);
    let found = Found {
        key,
        sums,
        profile,
        all: context.profile,
        followed: context.followers.get(&(operation, path)),
        reasons: &reasons,
        traced: context.traced,
    };
    let (hints, advice) = hints(&found, &context.run, places);
    // Many short calls that took too long only together have no bad one.
    let of_single_calls = |worst: &Worst| {
        let most = worst.severity.saturating_mul(sums.instances);
        pattern != PatternId::Unexplained || most >= severity / 2
    };
    let worst = sums.worst.filter(of_single_calls);
    let first = RankSet::new([0]);
    let of_rank = |rank: u32| {
        let own = sums.threads.iter().find(|(of, _)| *of == rank);
        threads(own.map_or(&first, |(_, numbers)| numbers))
    };
    Some(Bottleneck {
        id: String::new(),
        pattern: pattern.id().to_owned(),
        name: pattern.name().to_owned(),
        operation: call.name.to_owned(),
        operation_type: call.generic.name().to_owned(),
        location: places.of(path),
        parallel_regions: within::rows(context.within, (operation, path), places),
        severity_s: seconds(severity),
        percent: percent(severity as f64, context.total.of(pattern)),
        rank_percent: Some(ratio(sums.rank_percent, 1.0)),
        confidence: ratio(
            confidence(mean_loss as i64, &evidence)
                * (1.0 - sums.doubt as f64 / severity.max(1) as f64),
            1.0,
        ),
        calls: profile.count,
        instances: sums.instances,
        mean_s: mean,
        min_s: profile.range.map(|(least, _)| seconds(least)),
        max_s: profile.range.map(|(_, most)| seconds(most)),
        baseline_s: baseline,
        ratio: measured.map(|value| ratio(value, 1.0)),
        filter: filter.to_owned(),
        ranks: sums
            .ranks
            .iter()
            .map(|&(rank, severity, instances)| RankShare {
                rank,
                thread_set: of_rank(rank),
                severity_s: seconds(severity),
                instances,
            })
            .collect(),
        rank_set: Some(laggard_report::rank_ranges(sums.rank_set.iter())),
        thread_set,
        rank_classes: loss_classes(sums, context.ranks),
        inter_node_s: (!context.single_host).then(|| seconds(sums.inter_host)),
        quartiles_s: quartiles(&sums.spread),
        several_s: several.map(seconds),
        causes,
        root_causes: context.traced.shares(&key),
        worst_instance: worst.map(|worst| Instance {
            rank: worst.rank,
            thread: (worst.thread > 0 || are_told).then_some(worst.thread),
            start_s: seconds(worst.enter),
            end_s: seconds(worst.leave),
            severity_s: seconds(worst.severity),
            timeline: context.around.timeline(&key, places),
        }),
        hints,
        advice,
    })
}

pub fn quartiles(spread: &Spread) -> Option<[f64; 3]> {
    Some(spread.quartiles()?.map(seconds))
}

fn loss_classes(sums: &Folded, ranks: usize) -> Vec<RankClass> {
    let classes = sums.classes.iter().map(|one| {
        let (first, last) = fold::ranks_of_class(one.class, ranks);
        RankClass {
            first_rank: first,
            last_rank: last,
            ranks: one.ranks,
            severity_s: seconds(one.severity),
            least_s: seconds(one.least),
            most_s: seconds(one.most),
        }
    });
    classes.collect()
}
