//! `laggard-benchmarks`: what to measure.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use laggard_benchmarks::analysis;
use laggard_benchmarks::runs::Outcome;
use laggard_benchmarks::synthetic::{self, Program, Settings};

#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write a trace of a program that never ran
    Generate(Generate),
    /// How fast the analyzer is, and what memory it takes
    Analysis(Analysis),
}

#[derive(Debug, Args)]
struct Analysis {
    /// Sizes of the traces, million calls
    #[arg(
        long,
        value_name = "M,…",
        value_delimiter = ',',
        default_value = "5,50,200"
    )]
    sizes: Vec<u64>,
    /// Ranks of the traces
    #[arg(long, default_value_t = 4)]
    ranks: u32,
    /// Rounds of all configurations
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Cores to spread threads or agents over [default: all]
    #[arg(long)]
    cores: Option<usize>,
    /// Where traces are made, and reused if they are there [default: a directory
    /// for temporary files]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Leave new traces there
    #[arg(long)]
    keep: bool,
    /// With the filters on, not --all
    #[arg(long)]
    filtered: bool,
    /// Append all numbers to a file under benchmarks/runs
    #[arg(long)]
    save: bool,
}

#[derive(Debug, Args)]
struct Generate {
    /// Ranks
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65536))]
    ranks: u32,
    /// Calls of all ranks together, about
    #[arg(long, default_value_t = 5_000_000)]
    calls: u64,
    /// Where the trace goes
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What the ranks do
    #[arg(long, value_enum, default_value = "stencil")]
    program: Program,
    /// Another seed, other times
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    match Cli::parse().what {
        What::Generate(options) => generate(&options),
        What::Analysis(options) => analysis(options),
    }
}

fn analysis(options: Analysis) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let outcome = analysis::measure(&analysis::Options {
        sizes: options.sizes,
        ranks: options.ranks,
        cores: options.cores.unwrap_or(cores),
        rounds: options.rounds.max(1),
        directory: options.traces.unwrap_or_else(directory),
        keep: options.keep,
        filtered: options.filtered,
    })?;
    show(&outcome, options.save, "analysis")
}

/// Where files go that are needed for a while.
fn directory() -> PathBuf {
    std::env::temp_dir().join("laggard-benchmarks")
}

fn show(outcome: &Outcome, save: bool, what: &str) -> Result<()> {
    if save {
        println!("Kept in {}", outcome.save(what)?.display());
    }
    Ok(())
}

fn generate(options: &Generate) -> Result<()> {
    let settings = Settings {
        ranks: options.ranks,
        calls: options.calls,
        program: options.program,
        seed: options.seed,
    };
    let start = Instant::now();
    let written = synthetic::generate(&settings, &options.out)
        .with_context(|| options.out.display().to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} calls, {:.1} MB, {:.2} bytes per call, {:.1} million calls/s",
        written.calls,
        written.bytes as f64 / 1e6,
        written.bytes as f64 / written.calls as f64,
        written.calls as f64 / seconds / 1e6,
    );
    Ok(())
}
