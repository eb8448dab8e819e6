//! Where rank-seconds were lost, in shares that add up to the loss.
//!
//! All time of all ranks between start-up and shut-down is computation, time inside of calls, or
//! outside: of ranks that started up later or shut down earlier than others. Inside of
//! calls it is waiting, according to the findings, or not. The loss of each part is its time in the
//! larger run less `k` times its time in the smallest one. Some parts may shrink.
//!
//! Waiting is *load imbalance* as far as the awaited ranks computed meanwhile, according to the
//! causes of findings. The rest is other waiting: the awaited ranks waited themselves, did I/O, or
//! it is unknown.

use std::collections::BTreeMap;

use laggard_patterns::PatternId;
use laggard_report::{Bottleneck, Region, Report, SourceLocation};
use serde::Serialize;

use crate::matching::{self, Identity};
use crate::rounded;
use crate::set::wall;

/// A part of the loss.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// `computation`, `load_imbalance`, `other_waiting`, `communication`, `synchronization`, `io`
    /// (these three: inside of calls, without waiting), or `outside` (of ranks that started up later
    /// or shut down earlier than others).
    pub id: &'static str,
    /// Rank-seconds with ideal scaling.
    pub expected_s: f64,
    /// Rank-seconds that it took.
    pub observed_s: f64,
    /// Rank-seconds lost.
    pub lost_s: f64,
    /// Share of the whole loss; 0 if nothing was lost.
    pub share: f64,
}

/// Kind of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Outside of calls, in a region of the program or, without a name, in none.
    Computation,
    /// A finding of waiting.
    Bottleneck,
    /// Inside of calls of a function, without waiting.
    Operation,
    /// Of ranks that started up later or shut down earlier than others.
    Outside,
}

/// The cost of one item.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Its kind.
    pub kind: Kind,
    /// Name of the region, pattern or function; "" if it has none.
    pub name: String,
    /// Pattern id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The call of a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Its place, in the larger run if that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<SourceLocation>,
    /// Rank-seconds with ideal scaling.
    pub expected_s: f64,
    /// Rank-seconds that it took.
    pub observed_s: f64,
    /// Rank-seconds lost; negative if it shrank.
    pub lost_s: f64,
    /// Share of the whole loss; 0 if nothing was lost.
    pub share: f64,
    /// The part of `lost_s` during which the awaited ranks computed.
    pub to_computation_s: f64,
    /// Its scaling factor, expected_s / observed_s; absent if it took no time in one of the runs.
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
    /// The scaling factor of its time; absent if it takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

/// All time of all ranks, or of threads if there are more, between start-up and shut-down.
pub fn rank_seconds(report: &Report) -> f64 {
    let locations = report.run.locations.max(report.run.ranks);
    f64::from(locations) * wall(report)
}

/// Whether a pattern's time is waiting. Unknown patterns count as waiting.
fn is_waiting(finding: &Bottleneck) -> bool {
    PatternId::from_id(&finding.pattern).is_none_or(PatternId::is_waiting)
}

/// The part of a finding's time during which the awaited ranks computed. Reports list only the
/// largest of many causes; the rest is taken to be like them.
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

/// Classes of time inside of calls, without waiting.
const CLASSES: [&str; 3] = ["communication", "synchronization", "io"];

/// A run, and the smallest one.
pub struct Losses<'a> {
    smallest: &'a Report,
    report: &'a Report,
    work: f64,
}

impl<'a> Losses<'a> {
    /// Compares `report` with the smallest run, with `work` times its work.
    pub fn new(smallest: &'a Report, report: &'a Report, work: f64) -> Losses<'a> {
        Losses {
            smallest,
            report,
            work,
        }
    }

    /// The loss in rank-seconds.
    pub fn lost(&self) -> f64 {
        rank_seconds(self.report) - self.work * rank_seconds(self.smallest)
    }

    fn share(&self, lost: f64) -> f64 {
        laggard_report::ratio(lost, self.lost())
    }

    /// The loss by kind of time.
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

    /// By region, finding and function, the largest first; items without loss or gain are left out.
    pub fn costs(&self) -> Vec<Cost> {
        let mut costs = self.computation();
        costs.extend(self.waiting());
        costs.extend(self.operations());
        let (before, after) = (Account::new(self.smallest), Account::new(self.report));
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

    /// Regions other than operations, and time outside of regions.
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

    /// Findings, and waiting beyond the listed ones.
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

/// Time of a run by kind, rank-seconds.
struct Account {
    computation: f64,
    imbalance: f64,
    other_waiting: f64,
    /// By class of [`CLASSES`].
    inside: [f64; 3],
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
        let known: f64 = report.operations.iter().map(|row| row.wait_s).sum();
        let mut inside = [0.0; 3];
        for (at, class) in CLASSES.iter().enumerate() {
            let rows = report.operations.iter().filter(|row| row.time == *class);
            let waiting: f64 = rows.map(|row| row.wait_s).sum();
            // The report does not say which calls waited: shared out by their time.
            let rest = laggard_report::ratio(classes[at], all) * (sums.wait_s - known);
            inside[at] = classes[at] - waiting - rest;
        }
        Account {
            computation: sums.computation_s,
            imbalance,
            other_waiting: sums.wait_s - imbalance,
            inside,
            outside: rank_seconds(report) - sums.computation_s - all,
        }
    }

    fn parts(&self) -> [(&'static str, f64); 7] {
        [
            ("computation", self.computation),
            ("load_imbalance", self.imbalance),
            ("other_waiting", self.other_waiting),
            (CLASSES[0], self.inside[0]),
            (CLASSES[1], self.inside[1]),
            (CLASSES[2], self.inside[2]),
            ("outside", self.outside),
        ]
    }
}

/// Joins items of two runs of one program by place.
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

/// Regions of the program with their scaling.
pub fn regions(smallest: &Report, report: &Report, work: f64) -> Vec<RegionFactor> {
    fn of(report: &Report) -> Vec<&Region> {
        report.regions.iter().collect()
    }
    let (before, after) = (of(smallest), of(report));
    let pairs = joined(&before, &after, Identity::of_region, matching::regions);
    let rows = pairs.into_iter().filter_map(|(one, other)| {
        let time = |region: Option<&&Region>| region.map_or(0.0, |r| r.inclusive_s);
        let (reference, observed) = (time(one), time(other));
        // As T: the time of all ranks in it, divided by the ranks.
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
