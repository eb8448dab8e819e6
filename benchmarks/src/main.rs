//! `laggard-benchmarks`: what to measure.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
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
    }
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
