//! How fast the analyzer reads: calls per second and core, speed-up, memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, Usage};
use crate::runs::Outcome;
use crate::table::{Table, median};
use crate::traces::{Series, Trace};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the traces, million calls.
    pub sizes: Vec<u64>,
    /// The traces and how often.
    pub series: Series,
    /// Cores to spread agents or threads over.
    pub cores: usize,
    /// Directory of the traces.
    pub directory: PathBuf,
    /// Whether the filters are on, instead of `--all`.
    pub filtered: bool,
}

/// One way to run the analysis.
#[derive(Clone, Copy, Debug)]
struct Configuration {
    agents: usize,
    threads: usize,
    /// Without root causes.
    fast: bool,
}

impl Configuration {
    fn name(self) -> String {
        let plural = |n, word| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        format!(
            "{} x {}{}",
            plural(self.agents, "agent"),
            plural(self.threads, "thread"),
            if self.fast { ", --fast" } else { "" }
        )
    }

    fn cores(self) -> f64 {
        (self.agents * self.threads) as f64
    }
}

struct Run {
    usage: Usage,
    /// Without the start of MPI, s.
    analysis_s: f64,
    /// Of the agent with the largest peak, bytes.
    peak_bytes: f64,
    calls: f64,
    /// Bytes that agents sent to each other.
    exchanged: f64,
    /// The most room that temporary files of all agents took at a time, bytes.
    temporary: f64,
    /// (name, s).
    phases: Vec<(String, f64)>,
}

/// Measures all sizes.
///
/// # Errors
/// The analyzer or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    process::with_analyzer(&options.directory, |analyzer| {
        let mut sizes = options.sizes.iter();
        sizes.try_for_each(|&size| measure_size(options, analyzer, size, outcome))
    })
}

fn measure_size(
    options: &Options,
    analyzer: &Path,
    millions: u64,
    outcome: &mut Outcome,
) -> Result<()> {
    let series = &options.series;
    let trace = Trace::get(&options.directory, series, millions)?;
    let mut sizes = vec![(1, 1)];
    if options.cores > 1 {
        sizes.extend([(1, options.cores), (options.cores, 1)]);
    }
    let configurations = sizes.into_iter().flat_map(|(agents, threads)| {
        [false, true].map(|fast| Configuration {
            agents,
            threads,
            fast,
        })
    });
    let configurations: Vec<Configuration> = configurations.collect();
    let mut runs: Vec<Vec<Run>> = configurations.iter().map(|_| Vec::new()).collect();
    for _ in 0..series.rounds {
        for (configuration, runs) in configurations.iter().zip(&mut runs) {
            runs.push(analyze(
                analyzer,
                &trace.path,
                *configuration,
                options.filtered,
            )?);
        }
    }
    trace.done(series.keep)?;
    let mode = if options.filtered {
        "filtered"
    } else {
        "--all"
    };
    let title = format!("Analysis of {}, {mode}", series.title(millions));
    let head = [
        "configuration",
        "time, s",
        "M calls/s",
        "per core",
        "per CPU s",
        "speed-up",
        "MB/agent",
        "sent, B/call",
        "kept, B/call",
    ];
    let mut table = Table::new(&title, &head);
    let of =
        |runs: &[Run], value: fn(&Run) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>());
    let single = of(&runs[0], |run| run.analysis_s);
    for (configuration, runs) in configurations.iter().zip(&runs) {
        let time = of(runs, |run| run.analysis_s);
        let rate = runs[0].calls / time / 1e6;
        table.row([
            configuration.name(),
            format!("{time:.3}"),
            format!("{rate:.2}"),
            format!("{:.2}", rate / configuration.cores()),
            format!("{:.2}", of(runs, |run| run.calls / run.usage.cpu_s / 1e6)),
            format!("{:.2}", single / time),
            format!("{:.0}", of(runs, |run| run.peak_bytes) / 1e6),
            format!("{:.1}", of(runs, |run| run.exchanged / run.calls)),
            format!("{:.1}", of(runs, |run| run.temporary / run.calls)),
        ]);
        add_raw(
            outcome,
            &format!(
                "{} {millions}m {mode} {}",
                series.program.name(),
                configuration.name()
            ),
            runs,
        );
    }
    outcome.table(table);
    Ok(())
}

fn add_raw(outcome: &mut Outcome, name: &str, runs: &[Run]) {
    let mut add = |what: &str, value: &dyn Fn(&Run) -> f64| {
        outcome
            .raw
            .push((format!("{name}, {what}"), runs.iter().map(value).collect()));
    };
    add("analysis s", &|run| run.analysis_s);
    add("wall s", &|run| run.usage.wall_s);
    add("CPU s", &|run| run.usage.cpu_s);
    add("MB exchanged", &|run| run.exchanged / 1e6);
    add("temporary MB", &|run| run.temporary / 1e6);
    add("peak MB", &|run| run.peak_bytes / 1e6);
    for (at, (phase, _)) in runs[0].phases.iter().enumerate() {
        add(&format!("phase {phase} s"), &|run| {
            run.phases.get(at).map_or(0.0, |phase| phase.1)
        });
    }
}

fn analyze(
    analyzer: &Path,
    trace: &Path,
    configuration: Configuration,
    filtered: bool,
) -> Result<Run> {
    let report = analyzer.with_extension("json");
    let mut command = match configuration.agents {
        1 => Command::new(analyzer),
        agents => {
            let mut command = process::mpirun(agents);
            command.arg(analyzer);
            command
        }
    };
    command.arg("analyze").arg(trace).arg("-o").arg(&report);
    command.args(["--stats", "--format", "none", "-q"]);
    command.args(["--threads", &configuration.threads.to_string()]);
    if !filtered {
        command.arg("--all");
    }
    if configuration.fast {
        command.arg("--fast");
    }
    let usage = process::run(&mut command)?;
    let text = fs::read_to_string(&report)?;
    fs::remove_file(&report)?;
    let report: serde_json::Value = serde_json::from_str(&text)?;
    let number = |value: &serde_json::Value, what: &str| {
        value
            .as_f64()
            .with_context(|| format!("no {what} in the report"))
    };
    let agents = &report["agents"];
    let phases = agents["phases"].as_array().map_or(&[][..], Vec::as_slice);
    let temporary = phases
        .last()
        .and_then(|phase| phase["temporary_bytes"].as_f64());
    let phases = phases.iter().map(|phase| {
        let name = phase["name"].as_str().unwrap_or_default().to_owned();
        (name, phase["time_s"].as_f64().unwrap_or_default())
    });
    Ok(Run {
        usage,
        analysis_s: number(&agents["analysis_time_s"], "time")?,
        peak_bytes: agents["peak_memory_bytes"]
            .as_f64()
            .unwrap_or(usage.peak_bytes as f64),
        exchanged: number(&agents["bytes_exchanged"], "volume")?,
        temporary: temporary.unwrap_or(0.0),
        calls: number(&report["run"]["operations"], "number of calls")?,
        phases: phases.collect(),
    })
}
