//! Options of `what-if`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use laggard_whatif::Change;

use super::PlainFormat;

/// Options of `what-if`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("changes").required(true).multiple(true))]
pub struct WhatIf {
    /// The trace directory, one above it, or the anchor file of an OTF2 archive [default: the
    /// newest of laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Computation is so many times faster: in a region or function ('solve*=2'), before calls of a
    /// line (solve.c:12=2), on a rank (rank:3=2) or a host (host:n1=1.5). Each option is a
    /// scenario of its own
    #[arg(long, value_name = "WHERE=FACTOR", group = "changes", value_parser = speed_up)]
    pub speed_up: Vec<Change>,
    /// Computation in a region or function, or before calls of a line, takes the mean of all ranks
    #[arg(long, value_name = "PLACE", group = "changes", value_parser = balance)]
    pub balance: Vec<Change>,
    /// Transfers take this part of their time (latency=0: none at all), bandwidth=2: what they take
    /// beyond the fastest one takes half as long, or no-late-receivers: sends do not wait for
    /// their receives
    #[arg(long, value_name = "WHAT", group = "changes", value_parser = network)]
    pub network: Vec<Change>,
    /// Another machine: calls take what its table of baselines says
    #[arg(long, value_name = "FILE", group = "changes", value_parser = baseline)]
    pub baseline: Vec<Change>,
    /// Blocking messages in a function or line are only waited for before the rank's next call
    #[arg(long, value_name = "PLACE", group = "changes", value_parser = non_blocking)]
    pub non_blocking: Vec<Change>,
    /// Successive messages between the same two ranks in a function or line are one
    #[arg(long, value_name = "PLACE", group = "changes", value_parser = combine)]
    pub combine: Vec<Change>,
    /// Barriers in a function or line are not there
    #[arg(long, value_name = "PLACE", group = "changes", value_parser = no_barrier)]
    pub no_barrier: Vec<Change>,
    /// Each rank makes the calls in a function or line once; later ones are not there
    #[arg(long, value_name = "PLACE", group = "changes", value_parser = once)]
    pub once: Vec<Change>,
    /// Calls in a function or line wait for nobody
    #[arg(long, value_name = "PLACE", group = "changes", value_parser = no_waits)]
    pub no_waits: Vec<Change>,
    /// A root cause of the report is gone, by its number, or a part of it, from 0 to 1
    #[arg(long, value_name = "N[=PART]", group = "changes", value_parser = without_cause)]
    pub without_cause: Vec<Change>,
    /// Scenarios of several changes
    #[arg(long, value_name = "FILE.toml", group = "changes")]
    pub scenario: Option<PathBuf>,
    /// The report with the root causes [default: report.json beside the trace]
    #[arg(long, value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(short, long, value_name = "FILE.json")]
    pub output: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub format: PlainFormat,
}

fn speed_up(words: &str) -> Result<Change, String> {
    Change::parse("speed_up", words)
}

fn balance(words: &str) -> Result<Change, String> {
    Change::parse("balance", words)
}

fn network(words: &str) -> Result<Change, String> {
    Change::parse("network", words)
}

fn baseline(words: &str) -> Result<Change, String> {
    Change::parse("baseline", words)
}

fn non_blocking(words: &str) -> Result<Change, String> {
    Change::parse("non_blocking", words)
}

fn combine(words: &str) -> Result<Change, String> {
    Change::parse("combine", words)
}

fn no_barrier(words: &str) -> Result<Change, String> {
    Change::parse("no_barrier", words)
}

fn once(words: &str) -> Result<Change, String> {
    Change::parse("once", words)
}

fn no_waits(words: &str) -> Result<Change, String> {
    Change::parse("no_waits", words)
}

fn without_cause(words: &str) -> Result<Change, String> {
    Change::parse("without_cause", words)
}
