//! How the analysis grows with the ranks and the calls, and an extrapolation to larger machines.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use laggard_report::Report;

use crate::process;
use crate::runs::Outcome;
use crate::table::Table;
use laggard_generator::{
    self as generator, Expected, Fault, Length, Program, Settings, differences,
};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ranks of the traces, ascending.
    pub ranks: Vec<u32>,
    /// Calls of each rank.
    pub calls: u64,
    /// Numbers of agents.
    pub agents: Vec<usize>,
    /// What the ranks did.
    pub program: Program,
    /// How often everything is analysed.
    pub rounds: u32,
    /// Directory of the traces, made one after the other.
    pub directory: PathBuf,
}

/// The analyses of a trace by one number of agents: the one with the median time.
#[derive(Clone, Debug)]
struct Run {
    ranks: f64,
    calls: f64,
    agents: usize,
    time_s: f64,
    /// Of all agents together, the largest of all rounds, bytes.
    memory: f64,
    /// Between agents.
    messages: f64,
    bytes: f64,
    trace_bytes: f64,
    /// Name, time of the slowest agent in s, bytes of all agents.
    phases: Vec<(String, f64, f64)>,
}

/// Analyses generated traces of growing size, checks every report against its expectations, and
/// fits how costs grow.
///
/// # Errors
/// A report differs from its expectations; the analyzer or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    process::with_analyzer(&options.directory, |analyzer| {
        measure_all(options, analyzer, outcome)
    })
}

fn measure_all(options: &Options, analyzer: &Path, outcome: &mut Outcome) -> Result<()> {
    let program = options.program.name();
    // The fewest ranks also make as many calls as the most ranks do together, and numbers in
    // between.
    let fewest = *options.ranks.first().context("no numbers of ranks")?;
    let lengths = options.ranks.iter().map(|&ranks| {
        let longer = u64::from(ranks / fewest);
        (fewest, options.calls * longer)
    });
    let by_ranks = options.ranks.iter().map(|&ranks| (ranks, options.calls));
    let (by_ranks, by_calls): (Vec<_>, Vec<_>) = (by_ranks.collect(), lengths.collect());
    for (what, sizes) in [("ranks", by_ranks), ("calls", by_calls)] {
        let title = format!("Analysis of {program}, --all, growing {what}; reports as expected");
        let head = [
            "ranks",
            "calls of each",
            "agents",
            "time, s",
            "MB in all",
            "messages",
            "bytes sent",
            "of trace, %",
        ];
        let mut table = Table::new(&title, &head);
        let mut runs = Vec::new();
        for (ranks, calls) in sizes {
            let trace = generate(options, ranks, calls)?;
            for rounds in in_turns(options, |agents| analyze(analyzer, &trace, agents))? {
                let times = rounds.iter().map(|run| run.time_s).collect();
                let run = typical(rounds)?;
                let agents = run.agents;
                table.row([
                    ranks.to_string(),
                    calls.to_string(),
                    agents.to_string(),
                    format!("{:.2}", run.time_s),
                    format!("{:.0}", run.memory / 1e6),
                    format!("{:.0}", run.messages),
                    format!("{:.0}", run.bytes),
                    format!("{:.3}", run.bytes / run.trace_bytes * 100.0),
                ]);
                outcome.raw.push((
                    format!("{program} {ranks} ranks x {calls} calls, {agents} agents: time s"),
                    times,
                ));
                runs.push(run);
            }
            fs::remove_dir_all(&trace)?;
        }
        outcome.table(table);
        let size: fn(&Run) -> f64 = match what {
            "ranks" => |run| run.ranks,
            _ => |run| run.calls,
        };
        outcome.table(exponents(what, options, &runs, size));
        if what == "ranks" {
            outcome.table(predicted(options, &runs)?);
            outcome.table(machine(options, &runs)?);
            if options.agents.len() > 1 {
                outcome.table(machine_memory(&runs));
            }
        }
    }
    Ok(())
}

/// All rounds of each number of agents, in turns.
fn in_turns(options: &Options, run: impl Fn(usize) -> Result<Run>) -> Result<Vec<Vec<Run>>> {
    let mut runs = vec![Vec::new(); options.agents.len()];
    for _ in 0..options.rounds {
        for (runs, &agents) in runs.iter_mut().zip(&options.agents) {
            runs.push(run(agents)?);
        }
    }
    Ok(runs)
}

/// The round with the median time, and the most memory of any.
fn typical(mut rounds: Vec<Run>) -> Result<Run> {
    let memory = rounds.iter().map(|run| run.memory).fold(0.0, f64::max);
    rounds.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    let middle = (rounds.len().saturating_sub(1)) / 2;
    let run = rounds.into_iter().nth(middle).context("no rounds")?;
    Ok(Run { memory, ..run })
}

fn generate(options: &Options, ranks: u32, calls: u64) -> Result<PathBuf> {
    let trace = options.directory.join(format!("scale-{ranks}-{calls}"));
    if trace.is_dir() {
        bail!("{} is in the way", trace.display());
    }
    let faults = ["slow-rank=7:50", "noise=10"].map(str::parse::<Fault>);
    let settings = Settings {
        faults: faults
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(anyhow::Error::msg)?,
        ..Settings::new(
            options.program,
            ranks,
            Length::Calls(u64::from(ranks) * calls),
        )
    };
    generator::generate(&settings, &trace)?;
    Ok(trace)
}

fn analyze(analyzer: &Path, trace: &Path, agents: usize) -> Result<Run> {
    let mut command = process::mpirun(agents);
    command.arg(analyzer).arg("analyze").arg(trace);
    // Its ledger charges the last member of a collective.
    command.args([
        "--all",
        "--charge",
        "last",
        "--stats",
        "-q",
        "--threads",
        "1",
    ]);
    process::run(&mut command)?;
    let report = Report::read(&trace.join("report.json"))?;
    let found = differences(&Expected::read(trace)?, &report);
    if let Some(first) = found.first() {
        bail!(
            "{}: {} differences from what is expected, the first: {first}",
            trace.display(),
            found.len()
        );
    }
    let stats = &report.agents;
    let peaks = stats.shares.iter().map(|share| {
        let peaks = share.phases.iter().map(|phase| phase.peak_memory_bytes);
        peaks.max().unwrap_or(0) as f64
    });
    Ok(Run {
        ranks: f64::from(report.run.ranks),
        calls: report.run.operations as f64,
        agents,
        time_s: stats.analysis_time_s,
        memory: peaks.sum(),
        messages: stats.phases.iter().map(|phase| phase.messages as f64).sum(),
        bytes: stats
            .phases
            .iter()
            .map(|phase| phase.bytes_exchanged as f64)
            .sum(),
        trace_bytes: report.run.trace_bytes as f64,
        phases: stats
            .phases
            .iter()
            .map(|phase| {
                (
                    phase.name.clone(),
                    phase.time_s,
                    phase.bytes_exchanged as f64,
                )
            })
            .collect(),
    })
}

/// The least-squares line y = a + b x: (a, b).
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let common: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let slope = if spread > 0.0 { common / spread } else { 0.0 };
    (y - slope * x, slope)
}

/// The exponent e of y ~ x^e.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|p| (p.0.ln(), p.1.max(1e-9).ln()))
        .collect();
    line(&logs).1
}

/// How costs grow with the size, per number of agents. Only the larger half of the sizes counts:
/// sizes that take no time say nothing about exponents.
fn exponents(what: &str, options: &Options, runs: &[Run], size: fn(&Run) -> f64) -> Table {
    let title = format!("Exponents e of cost ~ {what}^e, from the larger sizes");
    let mut table = Table::new(&title, &["agents", "time", "memory"]);
    for &agents in &options.agents {
        let runs: Vec<&Run> = runs.iter().filter(|run| run.agents == agents).collect();
        let larger = &runs[runs.len() / 2..];
        let larger = if larger.len() < 2 { &runs[..] } else { larger };
        let of = |cost: fn(&Run) -> f64| -> Vec<(f64, f64)> {
            larger.iter().map(|run| (size(run), cost(run))).collect()
        };
        table.row([
            agents.to_string(),
            format!("{:.2}", exponent(&of(|run| run.time_s))),
            format!("{:.2}", exponent(&of(|run| run.memory))),
        ]);
    }
    table
}

/// The largest size as the smaller ones predict it: cost = a + b * ranks.
fn predicted(options: &Options, runs: &[Run]) -> Result<Table> {
    let head = ["agents", "time, s", "predicted", "MB in all", "predicted"];
    let mut table = Table::new("The largest size, as the smaller ones predict it", &head);
    for &agents in &options.agents {
        let runs: Vec<&Run> = runs.iter().filter(|run| run.agents == agents).collect();
        let (largest, smaller) = runs.split_last().context("nothing measured")?;
        let predict = |cost: fn(&Run) -> f64| {
            let points: Vec<(f64, f64)> =
                smaller.iter().map(|run| (run.ranks, cost(run))).collect();
            let (fixed, each) = line(&points);
            fixed + each * largest.ranks
        };
        table.row([
            agents.to_string(),
            format!("{:.2}", largest.time_s),
            format!("{:.2}", predict(|run| run.time_s)),
            format!("{:.0}", largest.memory / 1e6),
            format!("{:.0}", predict(|run| run.memory) / 1e6),
        ]);
    }
    Ok(table)
}

/// The machine of the model.
const MACHINE_RANKS: f64 = 1e6;
const MACHINE_AGENTS: f64 = 1e3;
/// Its network for one agent, bytes/s and s per message: cautious figures for one of many processes
/// of a node.
const BANDWIDTH: f64 = 1e9;
const LATENCY: f64 = 5e-6;

/// A model of a large machine. In every phase an agent pays for its own ranks, as measured per
/// rank. The data that every agent learns of all ranks grows with the ranks, and so does the data
/// that the head collects. Exchanges cost messages to all other agents.
fn machine(options: &Options, runs: &[Run]) -> Result<Table> {
    let title = format!(
        "Extrapolated to {MACHINE_RANKS:.0} ranks on {MACHINE_AGENTS:.0} agents, {} calls each",
        options.calls
    );
    let mut table = Table::new(&title, &["term", "s"]);
    let of = |agents: usize| runs.iter().filter(move |run| run.agents == agents);
    let single: Vec<&Run> = of(1).collect();
    let last = single.last().context("a run of one agent is needed")?;
    let mut terms: Vec<(String, f64)> = Vec::new();
    for (at, (name, ..)) in last.phases.iter().enumerate() {
        let points: Vec<(f64, f64)> = single
            .iter()
            .map(|run| (run.ranks, run.phases[at].1))
            .collect();
        let (fixed, each) = line(&points);
        let own = fixed.max(0.0) + each.max(0.0) * MACHINE_RANKS / MACHINE_AGENTS;
        terms.push((format!("{name}: own ranks"), own));
    }
    // Several agents: the part of each phase's bytes that grows with the ranks.
    if let Some(&agents) = options.agents.iter().filter(|&&agents| agents > 1).max() {
        let several: Vec<&Run> = of(agents).collect();
        let largest = several.last().context("nothing measured")?;
        for (at, (name, ..)) in largest.phases.iter().enumerate() {
            let points: Vec<(f64, f64)> = several
                .iter()
                .map(|run| (run.ranks, run.phases[at].2))
                .collect();
            let each = line(&points).1.max(0.0);
            // The head passes on the data of all ranks, agent by agent.
            let agents = agents as f64;
            let to_all = each / agents * MACHINE_RANKS * MACHINE_AGENTS.log2() / BANDWIDTH;
            terms.push((format!("{name}: told of all ranks"), to_all));
        }
        let rounds = largest.messages / (agents as f64 * (agents as f64 - 1.0));
        // At worst every message of a round goes to every other agent.
        terms.push((
            "messages to all other agents".to_owned(),
            rounds * MACHINE_AGENTS * LATENCY,
        ));
    }
    terms.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = terms.iter().map(|term| term.1).sum();
    for (name, seconds) in &terms {
        table.row([name.clone(), format!("{seconds:.3}")]);
    }
    table.row(["sum".to_owned(), format!("{sum:.3}")]);
    let dominant = terms.first().map_or("", |term| &term.0);
    table.row([format!("the largest term: {dominant}"), String::new()]);
    Ok(table)
}

/// Memory of an agent of a large machine, bytes: for itself, its own ranks, and the data of all
/// ranks.
#[derive(Debug, PartialEq)]
struct MemoryTerms {
    own: f64,
    own_ranks: f64,
    all_ranks: f64,
}

/// Memory of `a` agents together is `a * itself + each * ranks + a * told * ranks`. Fits a line
/// over agents for each number of ranks, then lines through their coefficients.
fn memory_terms(runs: &[Run]) -> MemoryTerms {
    let mut sizes: Vec<f64> = runs.iter().map(|run| run.ranks).collect();
    sizes.dedup();
    let lines = sizes.iter().map(|&ranks| {
        let of_size = runs.iter().filter(|run| run.ranks == ranks);
        let points: Vec<(f64, f64)> = of_size.map(|run| (run.agents as f64, run.memory)).collect();
        let (common, each_agent) = line(&points);
        ((ranks, common), (ranks, each_agent))
    });
    let (common, each_agent): (Vec<_>, Vec<_>) = lines.unzip();
    let (itself, told) = line(&each_agent);
    let each = line(&common).1;
    MemoryTerms {
        own: itself.max(0.0),
        own_ranks: each.max(0.0) * MACHINE_RANKS / MACHINE_AGENTS,
        all_ranks: told.max(0.0) * MACHINE_RANKS,
    }
}

/// Memory of an agent of the large machine.
fn machine_memory(runs: &[Run]) -> Table {
    let title =
        format!("Memory of an agent with {MACHINE_RANKS:.0} ranks on {MACHINE_AGENTS:.0} agents");
    let mut table = Table::new(&title, &["term", "MB"]);
    let terms = memory_terms(runs);
    let mut rows = [
        ("its process", terms.own),
        ("own ranks", terms.own_ranks),
        ("told of all ranks", terms.all_ranks),
    ];
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (term, bytes) in rows {
        table.row([term.to_owned(), format!("{:.0}", bytes / 1e6)]);
    }
    table.row([format!("the largest term: {}", rows[0].0), String::new()]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(time_s: f64, memory: f64) -> Run {
        Run {
            ranks: 1.0,
            calls: 1.0,
            agents: 1,
            time_s,
            memory,
            messages: 0.0,
            bytes: 0.0,
            trace_bytes: 1.0,
            phases: Vec::new(),
        }
    }

    #[test]
    fn memory_is_taken_apart() {
        let sizes = [1e3, 4e3, 16e3].into_iter();
        let runs: Vec<Run> = sizes
            .flat_map(|ranks| {
                [1, 2, 3].map(|agents| {
                    let memory = agents as f64 * (20e6 + 200.0 * ranks) + 30e3 * ranks;
                    Run {
                        ranks,
                        agents,
                        ..run(1.0, memory)
                    }
                })
            })
            .collect();
        let terms = memory_terms(&runs);
        let near = |a: f64, b: f64| (a - b).abs() < b * 1e-9;
        assert!(near(terms.own, 20e6), "{terms:?}");
        assert!(near(terms.own_ranks, 30e6), "{terms:?}");
        assert!(near(terms.all_ranks, 200e6), "{terms:?}");
    }

    #[test]
    fn the_median_time_and_the_most_memory_count() {
        let rounds = vec![run(9.0, 5.0), run(1.0, 7.0), run(2.0, 6.0)];
        let typical = typical(rounds).unwrap();
        assert_eq!((typical.time_s, typical.memory), (2.0, 7.0));
    }

    #[test]
    fn lines_and_exponents_are_those_of_the_points() {
        let (a, b) = line(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]);
        assert!((a - 3.0).abs() < 1e-9 && (b - 2.0).abs() < 1e-9);
        let cubes: Vec<(f64, f64)> = [1.0, 2.0, 3.0].map(|x: f64| (x, 5.0 * x.powi(3))).to_vec();
        assert!((exponent(&cubes) - 3.0).abs() < 1e-9);
    }
}
