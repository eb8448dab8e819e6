//! The commands about generated traces: write one, and compare a report with it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use laggard_generator::{
    self as generator, EXPECTED_FILE, Expected, FAULT_SYNTAX, Fault, Length, Program, Settings,
    Skew,
};
use laggard_report::Report;

const SHOWN: usize = 50;

/// What a file of the trace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FilePer {
    /// One rank
    Location,
    /// All ranks of a host
    Node,
}

/// Write a trace of a program that never ran, and what an analysis must find in it.
#[derive(Debug, Args)]
#[command(after_help = FAULT_SYNTAX)]
pub struct Generate {
    /// Where the trace goes
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What the ranks do
    #[arg(long, value_enum, default_value = "stencil")]
    program: Program,
    /// Ranks
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65536))]
    ranks: u32,
    /// Ranks on each host, with a clock of its own [default: all on one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    ranks_per_host: u32,
    /// Calls of all ranks together, about [default: 5000000]
    #[arg(long, conflicts_with = "steps")]
    calls: Option<u64>,
    /// Steps of the program, instead of calls
    #[arg(long)]
    steps: Option<u64>,
    /// Bytes of a message
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(..=1 << 40))]
    bytes: u64,
    /// A message's way, but for its bytes, ns
    #[arg(long, value_name = "NS", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(..=1 << 32))]
    latency_ns: u64,
    /// Larger messages wait for their receive
    #[arg(long, value_name = "BYTES", default_value_t = 65536)]
    eager_limit: u64,
    /// What a rank computes in a step, µs
    #[arg(long, value_name = "US", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    compute_us: u64,
    /// Halo exchanges go round: the last rank of a dimension is a neighbour of the first
    #[arg(long)]
    periodic: bool,
    /// A fault, see below; the first four programs have some of their own if none is given
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Clocks of hosts start up to so much earlier or later, s
    #[arg(long, value_name = "MAX", default_value_t = 0.0)]
    clock_offset_s: f64,
    /// Clocks of hosts run up to so much faster or slower, parts per million
    #[arg(long, value_name = "MAX", default_value_t = 0.0)]
    clock_drift_ppm: f64,
    /// Clocks are measured up to so much wrong, ns; with 0 all severities are exact
    #[arg(long, value_name = "MAX", default_value_t = 0)]
    clock_error_ns: u64,
    /// Rates of clocks change up to so much from their average, parts per million; exact
    /// severities need a measurement at each change
    #[arg(long, value_name = "MAX", default_value_t = 0.0)]
    clock_wander_ppm: f64,
    /// How often they change, ms
    #[arg(long, value_name = "MS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(..=1 << 32))]
    clock_wander_ms: u64,
    /// How often clocks are measured during the run, ms; 0 = at start and end only
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1 << 32))]
    clock_sync_ms: u64,
    /// What a file of the trace holds
    #[arg(long, value_enum, default_value = "location")]
    file_per: FilePer,
    /// Another seed, other times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the trace, without what an analysis must find
    #[arg(long)]
    no_expectations: bool,
}

/// Compare a report (of `laggard analyze --all`) with what its trace was made to say.
#[derive(Debug, Args)]
pub struct Check {
    /// The generated trace
    #[arg(long, value_name = "DIR")]
    trace: PathBuf,
    /// The report [default: report.json in the trace's directory]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Writes a trace.
pub fn generate(options: &Generate) -> Result<()> {
    let length = match (options.steps, options.calls) {
        (Some(steps), _) => Length::Steps(steps),
        (None, calls) => Length::Calls(calls.unwrap_or(5_000_000)),
    };
    let faults = match options.fault.is_empty() {
        true => options.program.usual_faults(options.ranks),
        false => options.fault.clone(),
    };
    let settings = Settings {
        ranks_per_host: options.ranks_per_host,
        message_bytes: options.bytes,
        latency_ns: options.latency_ns,
        eager_limit: options.eager_limit,
        computation_ns: options.compute_us * 1000,
        periodic: options.periodic,
        faults,
        skew: Skew {
            offset_s: options.clock_offset_s.abs(),
            drift_ppm: options.clock_drift_ppm.abs(),
            error_ns: options.clock_error_ns,
            wander_ppm: options.clock_wander_ppm.abs(),
            wander_ns: options.clock_wander_ms * 1_000_000,
            sync_ns: options.clock_sync_ms * 1_000_000,
        },
        seed: options.seed,
        expectations: !options.no_expectations,
        file_per_node: options.file_per == FilePer::Node,
        ..Settings::new(options.program, options.ranks, length)
    };
    let start = Instant::now();
    let written = generator::generate(&settings, &options.out)
        .with_context(|| options.out.display().to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} calls, {:.1} MB, {:.2} bytes per call, {:.1} million calls/s",
        written.calls,
        written.bytes as f64 / 1e6,
        written.bytes as f64 / written.calls as f64,
        written.calls as f64 / seconds / 1e6,
    );
    if settings.expectations {
        println!("Expected: {}", options.out.join(EXPECTED_FILE).display());
    }
    Ok(())
}

/// Compares; fails if anything differs.
pub fn check(options: &Check) -> Result<ExitCode> {
    let expected = Expected::read(&options.trace)?;
    let default = || options.trace.join("report.json");
    let report = Report::read(&options.report.clone().unwrap_or_else(default))?;
    let differences = generator::differences(&expected, &report);
    for difference in differences.iter().take(SHOWN) {
        println!("{difference}");
    }
    match differences.len() {
        0 => {
            let (findings, ranks) = (expected.findings.len(), expected.run.ranks);
            println!("as expected: {findings} findings, {ranks} ranks");
            Ok(ExitCode::SUCCESS)
        }
        count => {
            println!("{count} differences");
            Ok(ExitCode::FAILURE)
        }
    }
}
