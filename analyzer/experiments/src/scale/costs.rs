//! On what rank-seconds were lost, so that the shares add up to the loss.
//!
//! All time of all ranks is computation, or inside of a call, or start-up or shut-down, or before
//! the first call or after the last one of a rank that began late or ended early. Inside of calls it was waiting, which
//! findings tell, or not. Each of these in the larger run, less `k` times the same in the smallest
//! one, is what was lost with it; some may have got less.
//!
//! Waiting is *load imbalance* as far as those who were waited for computed meanwhile, as the
//! causes of findings say, and other waiting else: for those that waited themselves, did I/O, or
//! nobody knows what.

use std::collections::BTreeMap;

use laggard_patterns::PatternId;
use laggard_report::{Bottleneck, Region, Report, SourceLocation};
use serde::Serialize;

use crate::matching::{self, Identity};
use crate::rounded;

/// A part of the loss.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// `computation`, `load_imbalance`, `other_waiting`, `communication`, `synchronization`, `io`
    /// (these three: inside of calls, without waiting), `startup_shutdown` or `outside` (before the
    /// first call of a rank, after its last one).
    pub id: &'static str,
    /// Rank-seconds that it would take, were scaling ideal.
    pub expected_s: f64,
    /// Rank-seconds that it took.
    pub observed_s: f64,
    /// What was lost with it.
    pub lost_s: f64,
    /// Of all that was lost; 0 if nothing was.
    pub share: f64,
}

/// What a cost is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Outside of calls: in a region of the program, or, without a name, in none.
    Computation,
    /// A finding of waiting.
    Bottleneck,
    /// Inside of calls of a function, without waiting.
    Operation,
    /// Start-up and shut-down.
    #[serde(rename = "startup_shutdown")]
    Ends,
    /// Before the first call of a rank, or after its last one.
    Outside,
}

/// What one thing costs.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// What it is.
    pub kind: Kind,
    /// Of the region, pattern or function; "" if it has none.
    pub name: String,
    /// Pattern id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The call of a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Where it is, in the larger run if it is in that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<SourceLocation>,
    /// Rank-seconds that it would take, were scaling ideal.
    pub expected_s: f64,
    /// Rank-seconds that it took.
    pub observed_s: f64,
    /// What was lost with it; negative if it got less.
    pub lost_s: f64,
    /// Of all that was lost; 0 if nothing was.
    pub share: f64,
    /// Of `lost_s`, what was lost since those that were waited for computed.
    pub to_computation_s: f64,
    /// Its scaling factor, expected_s / observed_s; absent where it took no time in one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

/// How a region of the program scales.
#[derive(Clone, Debug, Serialize)]
pub struct RegionFactor {
    /// Its name.
    pub region: String,
    /// Rank-seconds in it, from begin to end, in the smallest run.
    pub reference_s: f64,
    /// In this run.
    pub observed_s: f64,
    /// The scaling factor of the time in it; absent where it takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

/// All time of all ranks, or threads where there are more.
pub fn rank_seconds(report: &Report) -> f64 {
    let locations = report.run.locations.max(report.run.ranks);
    f64::from(locations) * report.run.wall_time_s
}

/// Of that, start-up and shut-down; 0 in reports that do not tell them apart.
pub fn start_and_end(report: &Report) -> f64 {
    let sums = report.sums();
    sums.startup_s.unwrap_or(0.0) + sums.shutdown_s.unwrap_or(0.0)
}

/// Whether a pattern's time is waiting; those that this version does not know are.
fn is_waiting(finding: &Bottleneck) -> bool {
    PatternId::from_id(&finding.pattern).is_none_or(PatternId::is_waiting)
}

/// Of a finding's time, that in which those who were waited for computed. Of many causes the
/// largest are listed; the rest is taken to be like them.
fn to_computation(finding: &Bottleneck) -> f64 {
    let causes = finding.causes.iter();
    let (of, known) = causes.fold((0.0, 0.0), |(of, known), cause| {
        (
            of + cause.computation_s.unwrap_or(0.0),
            known + cause.severity_s,
        )
    });
    match known > 0.0 {
        true => finding.severity_s * (of / known).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// Inside of the calls of a kind, without waiting.
const CLASSES: [&str; 3] = ["communication", "synchronization", "io"];

/// A run, and the smallest one.
pub struct Losses<'a> {
    smallest: &'a Report,
    report: &'a Report,
    work: f64,
}

impl<'a> Losses<'a> {
    /// Of `report` against the smallest run, with so many times the work.
    pub fn new(smallest: &'a Report, report: &'a Report, work: f64) -> Losses<'a> {
        Losses {
            smallest,
            report,
            work,
        }
    }

    /// Rank-seconds.
    pub fn lost(&self) -> f64 {
        rank_seconds(self.report) - self.work * rank_seconds(self.smallest)
    }

    fn share(&self, lost: f64) -> f64 {
        laggard_report::ratio(lost, self.lost())
    }

    /// By what the time went by with.
    pub fn parts(&self) -> Vec<Part> {
        let (before, after) = (Account::new(self.smallest), Account::new(self.report));
        let parts = before.parts().into_iter().zip(after.parts());
        let parts = parts.map(|((id, reference), (_, observed))| {
            let expected = self.work * reference;
            Part {
                id,
                expected_s: rounded(expected),
                observed_s: rounded(observed),
                lost_s: rounded(observed - expected),
                share: self.share(observed - expected),
            }
        });
        parts.collect()
    }

    /// By region, finding and function, the most first; what neither lost nor gained is left out.
    pub fn costs(&self) -> Vec<Cost> {
        let mut costs = self.computation();
        costs.extend(self.waiting());
        costs.extend(self.operations());
        let (before, after) = (Account::new(self.smallest), Account::new(self.report));
        costs.push(self.cost(Kind::Ends, String::new(), before.ends, after.ends));
        costs.push(self.cost(Kind::Outside, String::new(), before.outside, after.outside));
        costs.retain(|cost| cost.lost_s != 0.0);
        costs.sort_by(|a, b| {
            let names = (a.kind, &a.name).cmp(&(b.kind, &b.name));
            b.lost_s.total_cmp(&a.lost_s).then(names)
        });
        costs
    }

    fn cost(&self, kind: Kind, name: String, reference: f64, observed: f64) -> Cost {
        let expected = self.work * reference;
        Cost {
            kind,
            name,
            pattern: None,
            operation: None,
            location: None,
            expected_s: rounded(expected),
            observed_s: rounded(observed),
            lost_s: rounded(observed - expected),
            share: self.share(observed - expected),
            to_computation_s: 0.0,
            factor: (expected > 0.0 && observed > 0.0).then(|| rounded(expected / observed)),
        }
    }

    /// Regions that are no operations, and what is in none.
    fn computation(&self) -> Vec<Cost> {
        let of = |report: &'a Report| -> Vec<&'a Region> {
            let regions = report.regions.iter();
            regions.filter(|r| r.operation_type.is_none()).collect()
        };
        let (before, after) = (of(self.smallest), of(self.report));
        let sum = |regions: &[&Region]| regions.iter().map(|r| r.exclusive_s).sum::<f64>();
        let rest = |report: &Report, regions| report.sums().computation_s - sum(regions);
        let mut costs = vec![self.cost(
            Kind::Computation,
            String::new(),
            rest(self.smallest, &before),
            rest(self.report, &after),
        )];
        for (one, other) in joined(&before, &after, Identity::of_region, matching::regions) {
            let Some(named) = other.or(one) else { continue };
            let time = |region: Option<&&Region>| region.map_or(0.0, |r| r.exclusive_s);
            let name = named.region.clone();
            let mut cost = self.cost(Kind::Computation, name, time(one), time(other));
            cost.location = Some(named.location.clone());
            costs.push(cost);
        }
        costs
    }

    /// Findings, and waiting that is in none of those that are listed.
    fn waiting(&self) -> Vec<Cost> {
        let of = |report: &'a Report| -> Vec<&'a Bottleneck> {
            let findings = report.bottlenecks.iter();
            findings.filter(|finding| is_waiting(finding)).collect()
        };
        let (before, after) = (of(self.smallest), of(self.report));
        let sum = |all: &[&Bottleneck]| all.iter().map(|f| f.severity_s).sum::<f64>();
        let rest = |report: &Report, all| report.sums().wait_s - sum(all);
        let mut costs = vec![self.cost(
            Kind::Bottleneck,
            String::new(),
            rest(self.smallest, &before),
            rest(self.report, &after),
        )];
        for (one, other) in joined(&before, &after, Identity::of_finding, matching::findings) {
            let Some(named) = other.or(one) else { continue };
            let time = |found: Option<&&Bottleneck>| found.map_or(0.0, |f| f.severity_s);
            let computed = |found: Option<&&Bottleneck>| found.map_or(0.0, |f| to_computation(f));
            let name = named.name.clone();
            let mut cost = self.cost(Kind::Bottleneck, name, time(one), time(other));
            cost.to_computation_s = rounded(computed(other) - self.work * computed(one));
            cost.pattern = Some(named.pattern.clone());
            cost.operation = Some(named.operation.clone());
            cost.location = Some(named.location.clone());
            costs.push(cost);
        }
        costs
    }

    /// Functions, without waiting; and the rest, for reports that do not list all.
    fn operations(&self) -> Vec<Cost> {
        let of = |report: &Report| -> BTreeMap<String, f64> {
            let rows = report.operations.iter();
            rows.map(|row| (row.operation.clone(), row.total_s - row.wait_s))
                .collect()
        };
        let (before, after) = (of(self.smallest), of(self.report));
        let rest = |report: &Report, listed: &BTreeMap<String, f64>| {
            let sums = report.sums();
            let inside = sums.communication_s + sums.synchronization_s + sums.io_s;
            inside - sums.wait_s - listed.values().sum::<f64>()
        };
        let mut costs = vec![self.cost(
            Kind::Operation,
            String::new(),
            rest(self.smallest, &before),
            rest(self.report, &after),
        )];
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let time = |rows: &BTreeMap<String, f64>| rows.get(name).copied().unwrap_or(0.0);
            costs.push(self.cost(Kind::Operation, name.clone(), time(&before), time(&after)));
        }
        costs
    }
}

/// Where the time of a run went. Rank-seconds.
struct Account {
    computation: f64,
    imbalance: f64,
    other_waiting: f64,
    /// As [`CLASSES`].
    inside: [f64; 3],
    ends: f64,
    outside: f64,
}

impl Account {
    fn new(report: &Report) -> Account {
        let sums = report.sums();
        let findings = report.bottlenecks.iter().filter(|f| is_waiting(f));
        let imbalance: f64 = findings.map(to_computation).sum();
        let imbalance = imbalance.min(sums.wait_s);
        let classes = [sums.communication_s, sums.synchronization_s, sums.io_s];
        let all: f64 = classes.iter().sum();
        let ends = start_and_end(report);
        let known: f64 = report.operations.iter().map(|row| row.wait_s).sum();
        let mut inside = [0.0; 3];
        for (at, class) in CLASSES.iter().enumerate() {
            let rows = report.operations.iter().filter(|row| row.time == *class);
            let waiting: f64 = rows.map(|row| row.wait_s).sum();
            // A report that does not tell in which calls the waiting was: by their time.
            let rest = laggard_report::ratio(classes[at], all) * (sums.wait_s - known);
            inside[at] = classes[at] - waiting - rest;
        }
        Account {
            computation: sums.computation_s,
            imbalance,
            other_waiting: sums.wait_s - imbalance,
            inside,
            ends,
            outside: rank_seconds(report) - sums.computation_s - all - ends,
        }
    }

    fn parts(&self) -> [(&'static str, f64); 8] {
        [
            ("computation", self.computation),
            ("load_imbalance", self.imbalance),
            ("other_waiting", self.other_waiting),
            (CLASSES[0], self.inside[0]),
            (CLASSES[1], self.inside[1]),
            (CLASSES[2], self.inside[2]),
            ("startup_shutdown", self.ends),
            ("outside", self.outside),
        ]
    }
}

/// Things of two runs of one program, matched by their places.
fn joined<'a, T>(
    before: &'a [&'a T],
    after: &'a [&'a T],
    identity: fn(&T) -> Identity,
    pairs: fn(&[Identity], &[Identity], bool) -> Vec<matching::Pair>,
) -> Vec<(Option<&'a &'a T>, Option<&'a &'a T>)> {
    let identities = |list: &[&T]| list.iter().map(|item| identity(item)).collect::<Vec<_>>();
    let pairs = pairs(&identities(before), &identities(after), true);
    let only = |list: &'a [&'a T], taken: Vec<usize>| {
        let rest = list.iter().enumerate();
        rest.filter(move |(at, _)| !taken.contains(at))
            .map(|(_, item)| item)
    };
    let left = only(before, pairs.iter().map(|pair| pair.0).collect());
    let right = only(after, pairs.iter().map(|pair| pair.1).collect());
    let both = pairs
        .iter()
        .map(|pair| (before.get(pair.0), after.get(pair.1)));
    both.chain(left.map(|item| (Some(item), None)))
        .chain(right.map(|item| (None, Some(item))))
        .collect()
}

/// Regions of the program and how each of them scales.
pub fn regions(smallest: &Report, report: &Report, work: f64) -> Vec<RegionFactor> {
    fn of(report: &Report) -> Vec<&Region> {
        report.regions.iter().collect()
    }
    let (before, after) = (of(smallest), of(report));
    let pairs = joined(&before, &after, Identity::of_region, matching::regions);
    let rows = pairs.into_iter().filter_map(|(one, other)| {
        let time = |region: Option<&&Region>| region.map_or(0.0, |r| r.inclusive_s);
        let (reference, observed) = (time(one), time(other));
        // As T: what all ranks spent in it, by the ranks.
        let factor = work * reference / observed;
        Some(RegionFactor {
            region: other.or(one)?.region.clone(),
            reference_s: reference,
            observed_s: observed,
            factor: (factor.is_finite() && factor > 0.0).then(|| rounded(factor)),
        })
    });
    let mut rows: Vec<RegionFactor> = rows.collect();
    rows.sort_by(|a, b| b.observed_s.total_cmp(&a.observed_s));
    rows
}
