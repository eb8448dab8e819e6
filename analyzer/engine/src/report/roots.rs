//! Root causes as rows of the report.

use std::cmp::Reverse;

use laggard_patterns::PatternId;
use laggard_report::{RootCause, RootRank, RootSite, SourceLocation, Victim, percent, rank_ranges};
use laggard_trace::calls;
use rustc_hash::FxHashMap;

use crate::findings::places::Places;
use crate::roots::activities::{Activity, Kind, Site};
use crate::roots::carry::{UNIT, rank_bit};
use crate::roots::sums::{Root, Roots};
use crate::waits::sums::LISTED;

/// Most root causes that are listed.
const MOST: usize = 100;
/// Smallest root cause that is listed, percent of all time.
const LEAST_PERCENT: f64 = 0.01;
/// Ranks are named until they have this share of a root cause.
const NEARLY_ALL: f64 = 0.9;
/// Most waiting calls that are listed for each.
const VICTIMS: usize = 8;

/// The root causes, and the waiting without one, s. `measured` is the time of all locations, ns;
/// `ranks` the number of ranks.
pub fn rows(
    roots: &Roots,
    measured: f64,
    ranks: usize,
    places: &mut Places,
) -> (Vec<RootCause>, f64) {
    let traced: u128 = roots.of.values().map(Root::all).sum();
    let untraced = (roots.waiting * UNIT as u128).saturating_sub(traced);
    let mut all: Vec<_> = roots.of.iter().collect();
    all.sort_unstable_by_key(|(activity, root)| (Reverse(root.all()), **activity));
    all.retain(|(_, root)| percent(ns(root.all()), measured) >= LEAST_PERCENT);
    all.truncate(MOST);
    let rows = all.into_iter().enumerate().map(|(at, (activity, root))| {
        let (rank_set, shares) = shares(root);
        let until = site(activity.until, places);
        RootCause {
            id: format!("rc{}", at + 1),
            rank_set,
            ranks: shares,
            activity: name(activity).to_owned(),
            operation: operation(activity.begin),
            location: place(activity.begin, places),
            until,
            direct_s: seconds(root.direct),
            indirect_s: seconds(root.indirect),
            severity_s: seconds(root.all()),
            percent: percent(ns(root.all()), measured),
            victims: victims(root, ranks, places),
        }
    });
    (rows.collect(), seconds(untraced))
}

fn ns(amount: u128) -> f64 {
    (amount / UNIT as u128) as f64
}

fn seconds(amount: u128) -> f64 {
    let ns = i128::try_from(amount / UNIT as u128);
    laggard_report::seconds(ns.unwrap_or(i128::MAX))
}

fn name(activity: &Activity) -> &'static str {
    match activity.kind {
        Kind::Computation => "computation",
        Kind::Io => "io",
        Kind::Call => "call",
        Kind::Latency => "latency",
    }
}

fn operation((operation, _): Site) -> String {
    match operation {
        0 => String::new(),
        known => calls::name(known).to_owned(),
    }
}

fn place((operation, path): Site, places: &mut Places) -> SourceLocation {
    match operation {
        0 => SourceLocation::default(),
        _ => places.of(path),
    }
}

fn site(site: Site, places: &mut Places) -> Option<RootSite> {
    (site.0 != 0).then(|| RootSite {
        operation: operation(site),
        location: place(site, places),
    })
}

/// The fewest ranks with nearly all of a root cause, and their parts.
fn shares(root: &Root) -> (String, Vec<RootRank>) {
    let mut by_rank: FxHashMap<u32, u128> = FxHashMap::default();
    for ((rank, _), amount) in &root.ranks {
        *by_rank.entry(*rank).or_default() += amount;
    }
    let mut ranks: Vec<_> = by_rank.into_iter().collect();
    ranks.sort_unstable_by_key(|&(rank, amount)| (Reverse(amount), rank));
    let (all, mut sum) = (root.all() as f64, 0u128);
    let few = ranks.iter().take_while(|(_, amount)| {
        let is_needed = (sum as f64) < NEARLY_ALL * all;
        sum += amount;
        is_needed
    });
    let few = few.count();
    ranks.truncate(few);
    let mut named: Vec<u32> = ranks.iter().map(|(rank, _)| *rank).collect();
    named.sort_unstable();
    let shares = ranks.iter().take(LISTED).map(|&(rank, amount)| RootRank {
        rank,
        severity_s: seconds(amount),
    });
    (rank_ranges(named), shares.collect())
}

fn victims(root: &Root, ranks: usize, places: &mut Places) -> Vec<Victim> {
    let mut victims: Vec<_> = root.victims.iter().collect();
    victims.sort_unstable_by_key(|(victim, (amount, _))| (Reverse(*amount), **victim));
    let rows = victims
        .into_iter()
        .take(VICTIMS)
        .map(|(victim, &(amount, bits))| {
            let pattern = u8::try_from(victim.pattern)
                .ok()
                .and_then(PatternId::from_number);
            let waiting = (0..ranks as u32).filter(|&rank| bits & rank_bit(rank, ranks) != 0);
            Victim {
                pattern: pattern.map_or("", PatternId::id).to_owned(),
                operation: operation(victim.call),
                location: place(victim.call, places),
                rank_set: rank_ranges(waiting),
                severity_s: seconds(amount),
            }
        });
    rows.collect()
}
