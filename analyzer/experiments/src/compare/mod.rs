//! Revisions of a program, side by side.

pub(crate) mod join;
mod plot;
mod regression;
pub(crate) mod roots;
mod scripts;
mod text;

use laggard_report::units::plural;
use laggard_report::{Bottleneck, OperationTimes, Region, Report, SourceLocation};
use serde::Serialize;

pub use crate::layout::TextOptions;
use crate::matching::{self, Identity, Matched};
use crate::noise::{self, Aim, Change, Evidence, Limits, Sample, Verdict};
use crate::set::{self, Experiment, Run, start_and_end, wall};
use crate::{Error, rounded};
pub use plot::draw;
pub use regression::Regression;
pub use roots::{RootCauseRow, RootPlace};
pub use scripts::{to_junit, to_markdown, to_openmetrics};
pub use text::render;

/// The schema of [`Comparison`].
pub const COMPARE_SCHEMA: &str = "laggard-compare/1";

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Programs may have different names.
    pub any_program: bool,
    /// Without repeats: least difference that counts, percent.
    pub threshold_percent: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            any_program: false,
            threshold_percent: noise::THRESHOLD_PERCENT,
        }
    }
}

/// Revisions, side by side. Lists of values have one entry per revision. Lists of changes have one
/// per revision except the first, against the first. Times are of all ranks together, except the
/// wall time. It is that between start-up and shut-down, as are all shares of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// [`COMPARE_SCHEMA`].
    pub schema: &'static str,
    /// The noise to compare differences with.
    pub noise: Noise,
    /// In the user's order.
    pub revisions: Vec<Revision>,
    /// Numbers of the whole run.
    pub totals: Vec<Total>,
    /// What counters counted that all runs have, by name; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRow>,
    /// Root causes, the largest in any revision first; absent unless all reports have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_causes: Option<Vec<RootCauseRow>>,
    /// Findings, the largest loss in any revision first.
    pub bottlenecks: Vec<BottleneckRow>,
    /// Regions of the program, the longest first.
    pub regions: Vec<RegionRow>,
    /// Functions of MPI and OpenSHMEM, the longest first.
    pub operations: Vec<OperationRow>,
    /// Caveats about the numbers.
    pub notes: Vec<String>,
    /// Of these, the one about cores, which stands beside the result.
    #[serde(skip)]
    crowded: Option<String>,
    /// Whether there are start-up and shut-down, which the wall time leaves out.
    #[serde(skip)]
    is_apart: bool,
}

/// The noise to compare differences with.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// The weakest evidence of any two revisions.
    pub evidence: Evidence,
    /// The same in words.
    pub text: String,
    /// For tests: differences that chance alone gives more often are noise.
    pub alpha: f64,
    /// Without repeats: least difference in percent of the first value …
    pub threshold_percent: f64,
    /// … and in percent of all time.
    pub least_percent: f64,
}

/// One revision.
#[derive(Clone, Debug, Serialize)]
pub struct Revision {
    /// Its short name.
    pub label: String,
    /// The reports of its runs.
    pub reports: Vec<String>,
    /// The program as started in the first run.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Ranks of each run.
    pub ranks: u32,
}

/// A number of the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Total {
    /// Its name, which ends in the unit; efficiencies have none.
    pub id: &'static str,
    /// In words.
    pub name: &'static str,
    /// By revision.
    pub values: Vec<Sample>,
    /// Against the first.
    pub changes: Vec<Change>,
}

/// What a counter counted in the computation of all ranks.
#[derive(Clone, Debug, Serialize)]
pub struct CounterRow {
    /// Its name.
    pub name: String,
    /// By revision.
    pub values: Vec<Sample>,
    /// Against the first.
    pub changes: Vec<Change>,
    /// For each second in which it counted, by revision; absent unless all runs tell how long that was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub per_second: Vec<Sample>,
    /// Against the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub per_second_changes: Vec<Change>,
}

/// Whether an item is in a revision and in the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In both.
    Both,
    /// Not in the first.
    New,
    /// Not in this one.
    Gone,
    /// In neither, but in another revision.
    Neither,
}

/// A finding in some revision.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// Where.
    pub location: SourceLocation,
    /// Calls, in the run that lost most. The other fields are from that run, too.
    pub calls: u64,
    /// Calls that lost time.
    pub instances: u64,
    /// Share of all time of that run.
    pub percent: f64,
    /// The rank that it waited for most, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause_rank: Option<u32>,
    /// That rank's activity, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A finding over all revisions.
#[derive(Clone, Debug, Serialize)]
pub struct BottleneckRow {
    /// Pattern id.
    pub pattern: String,
    /// Pattern name.
    pub name: String,
    /// The call that lost the time.
    pub operation: String,
    /// By revision; null if not found there.
    pub places: Vec<Option<Place>>,
    /// By revision except the first: how it was matched with the previous revision that has it;
    /// null if not found there, or found for the first time.
    pub matched: Vec<Option<Matched>>,
    /// By revision except the first.
    pub states: Vec<State>,
    /// Time lost, by revision; 0 in runs that lack it.
    pub lost_s: Vec<Sample>,
    /// Against the first.
    pub changes: Vec<Change>,
}

/// A region over all revisions.
#[derive(Clone, Debug, Serialize)]
pub struct RegionRow {
    /// By revision; null if there is none.
    pub names: Vec<Option<String>>,
    /// `region`, `phase` or `function`.
    pub kind: String,
    /// How it was matched, as for bottlenecks.
    pub matched: Vec<Option<Matched>>,
    /// By revision except the first.
    pub states: Vec<State>,
    /// From begin to end, by revision.
    pub inclusive_s: Vec<Sample>,
    /// The same against the first.
    pub changes: Vec<Change>,
    /// Outside of recorded calls and nested regions, by revision.
    pub exclusive_s: Vec<Sample>,
    /// The same against the first.
    pub exclusive_changes: Vec<Change>,
    /// The largest location over the mean.
    pub imbalance: Vec<Sample>,
}

/// A function over all revisions.
#[derive(Clone, Debug, Serialize)]
pub struct OperationRow {
    /// Its name.
    pub operation: String,
    /// By revision except the first.
    pub states: Vec<State>,
    /// Calls, by revision.
    pub calls: Vec<Sample>,
    /// Time inside, by revision.
    pub total_s: Vec<Sample>,
    /// The same against the first.
    pub changes: Vec<Change>,
    /// Waiting charged to patterns within it.
    pub wait_s: Vec<Sample>,
}

/// Compares revisions, each given as its runs.
///
/// # Errors
/// If they cannot be compared; see [`Error`].
pub fn compare(revisions: Vec<Vec<Run>>, options: &Options) -> Result<Comparison, Error> {
    let experiments = set::experiments(revisions, options.any_program, "revisions")?;
    let weakest = experiments[1..]
        .iter()
        .map(|experiment| noise::evidence(experiments[0].runs.len(), experiment.runs.len()));
    let evidence = weakest.min().unwrap_or(Evidence::Threshold);
    let judge = Judge::new(&experiments, options);
    Ok(Comparison {
        schema: COMPARE_SCHEMA,
        noise: Noise {
            evidence,
            text: noise_in_words(evidence, &experiments, options),
            alpha: noise::ALPHA,
            threshold_percent: options.threshold_percent,
            least_percent: noise::LEAST_PERCENT,
        },
        totals: totals(&experiments, options),
        counters: counters(&experiments, options),
        root_causes: roots::rows(&experiments, &judge),
        bottlenecks: bottlenecks(&experiments, &judge),
        regions: regions(&experiments, &judge),
        operations: operations(&experiments, &judge),
        notes: notes(&experiments),
        crowded: set::crowded(&experiments),
        is_apart: set::are_ends_known(&experiments),
        revisions: experiments.into_iter().map(revision).collect(),
    })
}

fn revision(experiment: Experiment) -> Revision {
    let run = &experiment.runs[0].report.run;
    Revision {
        program: run.program.clone(),
        arguments: run.arguments.clone(),
        ranks: run.ranks,
        reports: experiment.runs.iter().map(|r| r.source.clone()).collect(),
        label: experiment.label,
    }
}

fn noise_in_words(evidence: Evidence, experiments: &[Experiment], options: &Options) -> String {
    let runs: Vec<String> = experiments
        .iter()
        .map(|e| e.runs.len().to_string())
        .collect();
    let runs = runs.join(" and ");
    match evidence {
        Evidence::Test => format!(
            "measured over {runs} runs: what changed passed the Mann-Whitney U test (p < {}); ~ did \
             not",
            noise::ALPHA
        ),
        Evidence::Spread => format!(
            "{runs} runs are too few for a test (4 of each are enough): what changed did so by \
             more than the repeats differ; ~ did not"
        ),
        Evidence::Threshold => format!(
            "unknown, since there are no repeats: what changed did so by {} % or more, and {} % of \
             all time; it may be chance; ~ did not",
            options.threshold_percent,
            noise::LEAST_PERCENT
        ),
    }
}

/// Compares times of all ranks together with the noise.
struct Judge {
    limits: Limits,
}

impl Judge {
    fn new(experiments: &[Experiment], options: &Options) -> Judge {
        let all = Sample::new(experiments[0].values(|report| report.sums().wall_s));
        Judge {
            limits: Limits {
                percent: options.threshold_percent,
                least: all.median * noise::LEAST_PERCENT / 100.0,
            },
        }
    }

    fn changes(&self, values: &[Sample]) -> Vec<Change> {
        changes(values, Aim::Less, self.limits)
    }
}

fn changes(values: &[Sample], aim: Aim, limits: Limits) -> Vec<Change> {
    let later = values[1..].iter();
    later
        .map(|value| Change::new(&values[0], value, aim, limits))
        .collect()
}

/// A row of totals: id, name, which way is better, and the number.
type TotalOf = (&'static str, &'static str, Aim, fn(&Report) -> f64);

const TOTALS: [TotalOf; 10] = [
    ("wall_time_s", "Wall time", Aim::Less, wall),
    (
        "parallel_efficiency",
        "Parallel efficiency",
        Aim::More,
        |r| r.efficiency.parallel,
    ),
    ("load_balance", "Load balance", Aim::More, |r| {
        r.efficiency.load_balance
    }),
    (
        "communication_efficiency",
        "Communication efficiency",
        Aim::More,
        |r| r.efficiency.communication,
    ),
    ("computation_s", "Computation", Aim::Less, |r| {
        r.sums().computation_s
    }),
    ("communication_s", "Communication", Aim::Less, |r| {
        r.sums().communication_s
    }),
    ("synchronization_s", "Synchronisation", Aim::Less, |r| {
        r.sums().synchronization_s
    }),
    ("io_s", "I/O", Aim::Less, |r| r.sums().io_s),
    ("wait_s", "Waiting (in these)", Aim::Less, |r| {
        r.sums().wait_s
    }),
    (
        "startup_shutdown_s",
        "Start-up and shut-down",
        Aim::Less,
        start_and_end,
    ),
];

fn totals(experiments: &[Experiment], options: &Options) -> Vec<Total> {
    let judge = Judge::new(experiments, options);
    let rows = TOTALS.iter().map(|&(id, name, aim, of)| {
        let values = experiments.iter().map(|e| sample(e.values(of)));
        let values: Vec<Sample> = values.collect();
        let limits = match (id, aim) {
            // The wall time is all time itself.
            ("wall_time_s", _) => Limits {
                least: 0.0,
                ..judge.limits
            },
            (_, Aim::More) => Limits {
                least: noise::LEAST_PERCENT / 100.0,
                ..judge.limits
            },
            (_, Aim::Less) => judge.limits,
        };
        Total {
            id,
            name,
            changes: changes(&values, aim, limits),
            values,
        }
    });
    rows.collect()
}

fn counters(experiments: &[Experiment], options: &Options) -> Vec<CounterRow> {
    let reports = || {
        experiments
            .iter()
            .flat_map(|e| &e.runs)
            .map(|run| run.report.sums())
    };
    let first = reports().next().unwrap_or_default().counters;
    let common = first.into_keys();
    let common = common.filter(|name| reports().all(|sums| sums.counters.contains_key(name)));
    let limits = Limits {
        percent: options.threshold_percent,
        least: 0.0,
    };
    let time = |report: &Report| report.sums().counted_s.unwrap_or(0.0);
    let is_timed = experiments
        .iter()
        .all(|one| one.values(time).iter().all(|time| *time > 0.0));
    let rows = common.map(|name| {
        let count = |report: &Report| report.sums().counters[&name] as f64;
        let samples = |of: &dyn Fn(&Report) -> f64| -> Vec<Sample> {
            let all = experiments.iter().map(|one| sample(one.values(of)));
            all.collect()
        };
        let values = samples(&count);
        let per_second = match is_timed {
            true => samples(&|report| count(report) / time(report)),
            false => Vec::new(),
        };
        // Work that is done faster is better; other events cost time.
        let aim = match &*name {
            "instructions" | "cycles" => Aim::More,
            _ => Aim::Less,
        };
        CounterRow {
            changes: changes(&values, Aim::Less, limits),
            values,
            per_second_changes: match is_timed {
                true => changes(&per_second, aim, limits),
                false => Vec::new(),
            },
            per_second,
            name,
        }
    });
    rows.collect()
}

fn sample(values: Vec<f64>) -> Sample {
    Sample::new(values.into_iter().map(rounded).collect())
}

fn bottlenecks(experiments: &[Experiment], judge: &Judge) -> Vec<BottleneckRow> {
    fn items(report: &Report) -> Vec<&Bottleneck> {
        report.bottlenecks.iter().collect()
    }
    let joined = join::join(experiments, items, Identity::of_finding, matching::findings);
    let rows = joined.iter().filter_map(|row| {
        let lost_s: Vec<Sample> = row.samples(|finding| finding.severity_s);
        let any = row.any()?;
        Some(BottleneckRow {
            pattern: any.pattern.clone(),
            name: any.name.clone(),
            operation: any.operation.clone(),
            places: row.worst(|finding| finding.severity_s, place),
            matched: row.matched.clone(),
            states: row.states(),
            changes: judge.changes(&lost_s),
            lost_s,
        })
    });
    largest_first(rows.collect(), |row| &row.lost_s)
}

fn place(finding: &Bottleneck) -> Place {
    let cause = finding.causes.first();
    Place {
        location: finding.location.clone(),
        calls: finding.calls,
        instances: finding.instances,
        percent: finding.percent,
        cause_rank: cause.map(|cause| cause.rank),
        cause: cause.map(|cause| {
            let text = laggard_report::layout::cause(finding, cause);
            text.replace(laggard_report::layout::GLUE, " ")
        }),
    }
}

fn regions(experiments: &[Experiment], judge: &Judge) -> Vec<RegionRow> {
    fn items(report: &Report) -> Vec<&Region> {
        report.regions.iter().collect()
    }
    let joined = join::join(experiments, items, Identity::of_region, matching::regions);
    let rows = joined.iter().filter_map(|row| {
        let inclusive_s = row.samples(|region| region.inclusive_s);
        let exclusive_s = row.samples(|region| region.exclusive_s);
        Some(RegionRow {
            names: row.worst(|region| region.inclusive_s, |region| region.region.clone()),
            kind: row.any()?.kind.clone(),
            matched: row.matched.clone(),
            states: row.states(),
            changes: judge.changes(&inclusive_s),
            exclusive_changes: judge.changes(&exclusive_s),
            imbalance: row.samples(|region| region.imbalance),
            inclusive_s,
            exclusive_s,
        })
    });
    largest_first(rows.collect(), |row| &row.inclusive_s)
}

fn operations(experiments: &[Experiment], judge: &Judge) -> Vec<OperationRow> {
    fn items(report: &Report) -> Vec<&OperationTimes> {
        report.operations.iter().collect()
    }
    let joined = join::by_name(experiments, items, |operation| operation.operation.clone());
    let rows = joined.iter().filter_map(|row| {
        let total_s = row.samples(|operation| operation.total_s);
        Some(OperationRow {
            operation: row.any()?.operation.clone(),
            states: row.states(),
            calls: row.samples(|operation| operation.calls as f64),
            changes: judge.changes(&total_s),
            wait_s: row.samples(|operation| operation.wait_s),
            total_s,
        })
    });
    largest_first(rows.collect(), |row| &row.total_s)
}

/// Sorts by the largest median of all revisions; ties keep their order.
fn largest_first<R>(mut rows: Vec<R>, values: impl Fn(&R) -> &Vec<Sample>) -> Vec<R> {
    let most = |row: &R| values(row).iter().map(|v| v.median).fold(0.0, f64::max);
    rows.sort_by(|a, b| most(b).total_cmp(&most(a)));
    rows
}

fn notes(experiments: &[Experiment]) -> Vec<String> {
    let mut notes = set::notes(experiments);
    let first = &experiments[0];
    for other in &experiments[1..] {
        if first.ranks() != other.ranks() {
            notes.push(format!(
                "{} ran on {}, {} on {}: times of all ranks together differ for that alone \
                 (laggard scale tells of sizes)",
                first.label,
                plural(first.ranks().into(), "rank"),
                other.label,
                other.ranks()
            ));
        }
        if first.runs[0].report.run.arguments != other.runs[0].report.run.arguments {
            notes.push(format!(
                "{} and {} had different arguments",
                first.label, other.label
            ));
        }
    }
    notes
}

impl Change {
    /// Whether it is more than noise.
    pub fn is_real(&self) -> bool {
        self.verdict != Verdict::Same
    }
}
