//! What a program loses as it runs on more ranks.
//!
//! Let `n0` be the ranks of the smallest run and `T` the wall time between start-up and shut-down. If the problem stays the same
//! (strong scaling), the *scaling factor* is `(T(n0)/T(n)) / (n/n0)`. If the problem grows with the
//! ranks (weak scaling), it is `T(n0)/T(n)`. 1 is ideal. The loss in rank-seconds is `n·T(n) −
//! k·n0·T(n0)`, where `k` is 1 (strong) or `n/n0` (weak). [`Part`]s and [`Cost`]s divide it, and
//! add up to it.

mod costs;
mod plot;
mod roots;
mod text;

use laggard_report::Report;
use laggard_report::layout::three_digits;
use serde::Serialize;

use crate::set::{self, Experiment, Run};
use crate::{Error, rounded};
pub use costs::{Cost, Kind, Part, RegionFactor};
pub use plot::draw;
pub use roots::RootGrowth;
pub use text::render;

/// The schema of [`Scaling`].
pub const SCALE_SCHEMA: &str = "laggard-scale/1";

/// How the problem grows with the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Growth {
    /// Not at all.
    Strong,
    /// With the ranks.
    Weak,
}

impl Growth {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            Growth::Strong => "strong",
            Growth::Weak => "weak",
        }
    }

    /// The work on `ranks`, as a multiple of that on `fewest`.
    fn work(self, fewest: u32, ranks: u32) -> f64 {
        match self {
            Growth::Strong => 1.0,
            Growth::Weak => f64::from(ranks) / f64::from(fewest.max(1)),
        }
    }
}

/// Options of scaling.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Programs may have different names.
    pub any_program: bool,
    /// How the problem grows; `None`: guessed from its computation.
    pub growth: Option<Growth>,
}

/// Runs of several sizes. Times are seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Scaling {
    /// [`SCALE_SCHEMA`].
    pub schema: &'static str,
    /// The program of the smallest run.
    pub program: String,
    /// How the problem grows.
    pub scaling: Growth,
    /// Whether `scaling` is guessed.
    pub assumed: bool,
    /// The reason for the guess.
    pub because: String,
    /// By ranks, the smallest first.
    pub sizes: Vec<Size>,
    /// Root causes, those that lost most in the largest run first; absent unless all reports have
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_causes: Option<Vec<RootGrowth>>,
    /// Caveats about the numbers.
    pub notes: Vec<String>,
    /// Of these, the one about cores, which stands beside the result.
    #[serde(skip)]
    crowded: Option<String>,
}

/// The run of one size; with repeats, the one with the median wall time.
#[derive(Clone, Debug, Serialize)]
pub struct Size {
    /// Ranks.
    pub ranks: u32,
    /// The report of all values except the extremes.
    pub report: String,
    /// Number of repeats, including this one.
    pub runs: usize,
    /// Wall time between start-up and shut-down.
    pub wall_time_s: f64,
    /// Shortest of all repeats.
    pub wall_time_min_s: f64,
    /// Longest of all repeats.
    pub wall_time_max_s: f64,
    /// Wall time with ideal scaling.
    pub ideal_wall_time_s: f64,
    /// Start-up and shut-down, rank-seconds; part of no other number.
    pub startup_shutdown_s: f64,
    /// Against the smallest run: T(n0)/T(n), for weak scaling times n/n0.
    pub speedup: f64,
    /// Speedup with ideal scaling: n/n0.
    pub ideal_speedup: f64,
    /// speedup / ideal_speedup.
    pub factor: f64,
    /// Of this run alone (POP).
    pub parallel_efficiency: f64,
    /// Of this run alone (POP).
    pub load_balance: f64,
    /// Of this run alone (POP).
    pub communication_efficiency: f64,
    /// Computation with ideal scaling over actual computation (POP).
    pub computation_scaling: f64,
    /// Its factors, of the computation that counters saw; `None` without instructions and cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_scaling: Option<CountedScaling>,
    /// Rank-seconds lost against the smallest run; negative if it is better than ideal.
    pub lost_s: f64,
    /// The same in percent of this run's rank-seconds.
    pub lost_percent: f64,
    /// The loss by kind of time: adds up to `lost_s`.
    pub parts: Vec<Part>,
    /// The loss by operation, bottleneck and region, the largest first: adds up to `lost_s`.
    pub costs: Vec<Cost>,
    /// Regions of the program with their scaling.
    pub regions: Vec<RegionFactor>,
}

/// Factors of the computation's scaling, each against the smallest run; their product is the scaling of the
/// time that was counted (POP's metrics: computation scaling).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CountedScaling {
    /// Instructions that ideal scaling would need, over those of all ranks.
    pub instructions: f64,
    /// Instructions per cycle.
    pub instructions_per_cycle: f64,
    /// Cycles per second.
    pub frequency: f64,
}

impl CountedScaling {
    fn of(smallest: &Report, report: &Report, work: f64) -> Option<CountedScaling> {
        let of = |report: &Report| {
            let sums = report.sums();
            let count = |name| sums.counters.get(name).map(|&count| count as f64);
            let all = [count("instructions")?, count("cycles")?, sums.counted_s?];
            all.iter().all(|&one| one > 0.0).then_some(all)
        };
        let (first, now) = (of(smallest)?, of(report)?);
        let [instructions, cycles, seconds] = [0, 1, 2].map(|at| first[at] / now[at]);
        Some(CountedScaling {
            instructions: rounded(work * instructions),
            instructions_per_cycle: rounded(cycles / instructions),
            frequency: rounded(seconds / cycles),
        })
    }
}

/// Compares sizes, each given as its runs, in any order.
///
/// # Errors
/// If they cannot be compared; see [`Error`].
pub fn scale(sizes: Vec<Vec<Run>>, options: &Options) -> Result<Scaling, Error> {
    let mut experiments = set::experiments(sizes, options.any_program, "sizes")?;
    experiments.sort_by_key(Experiment::ranks);
    for pair in experiments.windows(2) {
        if pair[0].ranks() == pair[1].ranks() {
            return Err(Error::SameSize {
                one: pair[0].runs[0].source.clone(),
                other: pair[1].runs[0].source.clone(),
                ranks: pair[0].ranks(),
            });
        }
    }
    let guess = guess(&experiments);
    let growth = options.growth.unwrap_or(guess.0);
    let smallest = &median_run(&experiments[0]).report;
    let of_size = |experiment| size(experiment, smallest, growth);
    Ok(Scaling {
        schema: SCALE_SCHEMA,
        program: smallest.run.program.clone(),
        scaling: growth,
        assumed: options.growth.is_none(),
        because: guess.1,
        sizes: experiments.iter().map(of_size).collect(),
        root_causes: roots::rows(&experiments, growth),
        notes: notes(&experiments),
        crowded: set::crowded(&experiments),
    })
}

/// The run with the median wall time; of two in the middle the faster one.
fn median_run(experiment: &Experiment) -> &Run {
    &experiment.runs[at_median(experiment)]
}

/// The number of that run.
fn at_median(experiment: &Experiment) -> usize {
    let mut runs: Vec<usize> = (0..experiment.runs.len()).collect();
    let wall = |at: usize| set::wall(&experiment.runs[at].report);
    runs.sort_by(|&a, &b| wall(a).total_cmp(&wall(b)));
    runs[(runs.len() - 1) / 2]
}

/// Guesses whether the problem grew: as the computation of all ranks together did, from the
/// smallest to the largest run.
fn guess(experiments: &[Experiment]) -> (Growth, String) {
    let (first, last) = (&experiments[0], &experiments[experiments.len() - 1]);
    let computation = |e: &Experiment| median_run(e).report.sums().computation_s;
    let more_ranks = f64::from(last.ranks()) / f64::from(first.ranks().max(1));
    let more = computation(last) / computation(first);
    if !more.is_finite() || more <= 0.0 {
        let why = "there is no computation that could tell".to_owned();
        return (Growth::Strong, why);
    }
    // Nearer to 1 or to the growth of ranks, by ratio.
    let growth = match more < more_ranks.sqrt() {
        true => Growth::Strong,
        false => Growth::Weak,
    };
    let why = format!(
        "on {} times the ranks all of them together computed {} times as long",
        three_digits(more_ranks),
        three_digits(more)
    );
    (growth, why)
}

fn size(experiment: &Experiment, smallest: &Report, growth: Growth) -> Size {
    let run = median_run(experiment);
    let report = &run.report;
    let walls = experiment.values(set::wall);
    let wall = set::wall(report);
    let ideal_speedup = f64::from(report.run.ranks) / f64::from(smallest.run.ranks.max(1));
    let reference = set::wall(smallest);
    let work = growth.work(smallest.run.ranks, report.run.ranks);
    let speedup = work * reference / wall;
    let ideal = reference * work / ideal_speedup;
    let losses = costs::Losses::new(smallest, report, work);
    let lost = losses.lost();
    let computation = report.sums().computation_s;
    let expected = smallest.sums().computation_s * work;
    Size {
        ranks: report.run.ranks,
        report: run.source.clone(),
        runs: experiment.runs.len(),
        wall_time_s: wall,
        wall_time_min_s: walls.iter().copied().fold(f64::INFINITY, f64::min),
        wall_time_max_s: walls.iter().copied().fold(0.0, f64::max),
        ideal_wall_time_s: rounded(ideal),
        startup_shutdown_s: rounded(set::start_and_end(report)),
        speedup: rounded(speedup),
        ideal_speedup: rounded(ideal_speedup),
        factor: rounded(speedup / ideal_speedup),
        parallel_efficiency: report.efficiency.parallel,
        load_balance: report.efficiency.load_balance,
        communication_efficiency: report.efficiency.communication,
        computation_scaling: laggard_report::ratio(expected, computation),
        counted_scaling: CountedScaling::of(smallest, report, work),
        lost_s: rounded(lost),
        lost_percent: laggard_report::percent(lost, costs::rank_seconds(report)),
        parts: losses.parts(),
        costs: losses.costs(),
        regions: costs::regions(smallest, report, work),
    }
}

fn notes(experiments: &[Experiment]) -> Vec<String> {
    let mut notes = set::notes(experiments);
    let threads =
        |report: &Report| f64::from(report.run.locations) / f64::from(report.run.ranks.max(1));
    let first = median_run(&experiments[0]);
    let mut others = experiments[1..].iter().map(median_run);
    if let Some(other) = others.find(|run| threads(&run.report) != threads(&first.report)) {
        notes.push(format!(
            "{} and {} do not have the same number of threads per rank: what a thread lost counts \
             as much as what a rank did",
            first.source, other.source
        ));
    }
    if experiments
        .iter()
        .any(|e| !median_run(e).report.settings.all)
    {
        notes.push(
            "waiting in calls that the filters passed over counts as time of the calls: \
             laggard analyze --all measures it"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, add_region, add_wait};

    fn run(source: &str, report: Report) -> Vec<Run> {
        let source = source.to_owned();
        vec![Run { source, report }]
    }

    /// 1, 2 and 4 ranks: 8 s, 5 s, 4 s, with 8, 8 and 8.8 rank-seconds of computation.
    fn strong() -> Vec<Vec<Run>> {
        let one = testing::report(1, 8.0, 8.0);
        let mut two = testing::report(2, 5.0, 8.0);
        add_wait(&mut two, "f", 10, 1.5, 0.5);
        let mut four = testing::report(4, 4.0, 8.8);
        add_wait(&mut four, "f", 10, 6.0, 4.0);
        vec![run("4.json", four), run("1.json", one), run("2.json", two)]
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
    }

    #[test]
    fn factors_are_those_of_the_definition() {
        let found = scale(strong(), &Options::default()).unwrap();
        assert_eq!((found.scaling, found.assumed), (Growth::Strong, true));
        let words = "on 4.00 times the ranks all of them together computed 1.10 times as long";
        assert_eq!(found.because, words);
        let ranks: Vec<u32> = found.sizes.iter().map(|size| size.ranks).collect();
        assert_eq!(ranks, [1, 2, 4]);
        let [one, two, four] = &found.sizes[..] else {
            panic!("{found:?}")
        };
        near(one.factor, 1.0);
        near(one.lost_s, 0.0);
        assert!(one.costs.is_empty() && one.parts.iter().all(|part| part.lost_s == 0.0));
        near(two.factor, 0.8);
        near(four.factor, 0.5);
        near(four.speedup, 2.0);
        near(four.ideal_wall_time_s, 2.0);
        near(four.lost_s, 8.0);
        near(four.lost_percent, 50.0);
        near(four.computation_scaling, 8.0 / 8.8);
        assert_eq!(four.counted_scaling, None);
        // The same numbers as weak scaling.
        let weak = Options {
            growth: Some(Growth::Weak),
            ..Options::default()
        };
        let found = scale(strong(), &weak).unwrap();
        assert!(!found.assumed);
        near(found.sizes[2].factor, 2.0);
        near(found.sizes[2].ideal_wall_time_s, 8.0);
        near(found.sizes[2].lost_s, 16.0 - 32.0);
    }

    /// Twice the instructions, at 1.5 instead of 2 for each cycle and 2.5 instead of 3 GHz.
    #[test]
    fn counters_divide_the_scaling_of_computation() {
        let counted = |ranks, instructions: u64, cycles: u64, seconds| {
            let mut report = testing::report(ranks, 8.0, 8.0);
            let counts = [("instructions", instructions), ("cycles", cycles)];
            let sums = report.location_sums.as_mut().expect("sums");
            sums.counted_s = Some(seconds);
            sums.counters = counts.map(|(name, count)| (name.to_owned(), count)).into();
            run(&format!("{ranks}.json"), report)
        };
        let sizes = vec![
            counted(1, 6_000_000_000, 3_000_000_000, 1.0),
            counted(2, 12_000_000_000, 8_000_000_000, 3.2),
        ];
        let found = scale(sizes, &Options::default()).unwrap();
        let of = found.sizes[1].counted_scaling.expect("counters");
        near(of.instructions, 0.5);
        near(of.instructions_per_cycle, 0.75);
        near(of.frequency, 2.5 / 3.0);
        let product = of.instructions * of.instructions_per_cycle * of.frequency;
        near(product, 1.0 / 3.2);
    }

    #[test]
    fn computation_tells_how_the_problem_grows() {
        let of = |one: f64, four: f64| {
            let sizes = vec![
                run("1", testing::report(1, 8.0, one)),
                run("4", testing::report(4, 10.0, four)),
            ];
            scale(sizes, &Options::default()).unwrap().scaling
        };
        assert_eq!(of(8.0, 9.0), Growth::Strong);
        assert_eq!(of(8.0, 30.0), Growth::Weak);
        assert_eq!(of(8.0, 15.9), Growth::Strong);
        assert_eq!(of(8.0, 16.1), Growth::Weak);
        assert_eq!(of(0.0, 1.0), Growth::Strong);
    }

    #[test]
    fn what_was_lost_adds_up() {
        let mut sizes = strong();
        add_region(&mut sizes[0][0].report, "solve", 7.0);
        add_region(&mut sizes[1][0].report, "solve", 6.5);
        let found = scale(sizes, &Options::default()).unwrap();
        for size in &found.sizes {
            near(size.parts.iter().map(|part| part.lost_s).sum(), size.lost_s);
            near(size.costs.iter().map(|cost| cost.lost_s).sum(), size.lost_s);
        }
        let four = &found.sizes[2];
        let part = |id: &str| four.parts.iter().find(|part| part.id == id).unwrap().lost_s;
        near(part("computation"), 0.8);
        near(part("load_imbalance"), 4.0);
        near(part("other_waiting"), 2.0);
        near(part("synchronization"), 1.2);
        near(part("outside"), 0.0);
        let cost = |at: usize| (four.costs[at].kind, four.costs[at].name.as_str());
        assert_eq!(cost(0), (Kind::Bottleneck, "Wait at barrier"));
        near(four.costs[0].lost_s, 6.0);
        near(four.costs[0].share, 0.75);
        near(four.costs[0].to_computation_s, 4.0);
        assert_eq!(cost(1), (Kind::Operation, "MPI_Barrier"));
        assert_eq!(cost(2), (Kind::Computation, "solve"));
        near(four.costs[2].lost_s, 0.5);
        near(four.costs[2].expected_s, 6.5);
        near(four.costs[2].observed_s, 7.0);
        near(four.costs[2].factor.unwrap(), 6.5 / 7.0);
        assert_eq!(four.costs[0].factor, None);
        assert_eq!(cost(3), (Kind::Computation, ""));
        near(four.costs[3].lost_s, 0.3);
        let region = &four.regions[0];
        // From begin to end, half a second more than outside of calls.
        near(region.factor.unwrap(), 7.0 / 7.5);
    }

    #[test]
    fn of_repeats_the_median_counts() {
        let mut sizes = strong();
        for (source, wall) in [("1b", 7.0), ("1c", 12.0)] {
            let report = testing::report(1, wall, wall);
            sizes[1].extend(run(source, report));
        }
        let found = scale(sizes, &Options::default()).unwrap();
        let one = &found.sizes[0];
        assert_eq!((one.report.as_str(), one.runs), ("1.json", 3));
        near(one.wall_time_min_s, 7.0);
        near(one.wall_time_max_s, 12.0);
    }

    #[test]
    fn start_and_end_count_nowhere_and_crowds_are_said() {
        let plain = scale(strong(), &Options::default()).unwrap();
        let mut sizes = strong();
        for run in sizes.iter_mut().flatten() {
            let report = &mut run.report;
            let startup_s = 3.0 * f64::from(report.run.ranks);
            report.phases_of_run = Some(laggard_report::PhasesOfRun {
                startup_s,
                measured_s: report.run.wall_time_s,
                ..Default::default()
            });
            report.run.wall_time_s += startup_s;
            if let Some(sums) = &mut report.location_sums {
                sums.startup_s = Some(startup_s * f64::from(report.run.ranks));
            }
            if report.run.ranks == 4 {
                report.run.crowd = Some(laggard_report::Crowd {
                    ranks: 4,
                    threads: 4,
                    cores: 2,
                    hosts: 1,
                });
            }
        }
        let found = scale(sizes, &Options::default()).unwrap();
        for (size, other) in found.sizes.iter().zip(&plain.sizes) {
            near(size.factor, other.factor);
            near(size.lost_percent, other.lost_percent);
            near(size.parts.iter().map(|part| part.lost_s).sum(), size.lost_s);
            near(size.costs.iter().map(|cost| cost.lost_s).sum(), size.lost_s);
            near(size.startup_shutdown_s, 3.0 * f64::from(size.ranks).powi(2));
        }
        let said = |found: &Scaling| {
            let text = render(found, &crate::layout::TextOptions::default());
            let text = text.replace('\u{a0}', " ");
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let text = said(&found);
        let words =
            "scaling factor 0.50 (1 is ideal). 4 ranks share 2 cores in 4: part of the time";
        assert!(text.contains(words), "{text}");
        assert!(
            text.contains("48.0 s on 4 ranks (not counted here)"),
            "{text}"
        );
        assert!(!said(&plain).contains("share"), "{}", said(&plain));
    }

    #[test]
    fn sizes_differ() {
        let mut sizes = strong();
        sizes.push(run("other.json", testing::report(2, 1.0, 1.0)));
        let error = scale(sizes, &Options::default()).unwrap_err().to_string();
        assert!(
            error.contains("2.json and other.json both have 2 ranks"),
            "{error}"
        );
    }
}
