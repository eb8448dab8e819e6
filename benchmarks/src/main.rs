//! `laggard-benchmarks`: what to measure.

mod generate;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use laggard_benchmarks::runs::Outcome;
use laggard_benchmarks::traces::Series;
use laggard_benchmarks::{
    analysis, bytes, calls, detection, exchange, follow, overlay, sampling, scale, zoom,
};
use laggard_generator::Program;

/// Rounds of the cheap measurements.
const ROUNDS: u32 = 11;

/// Measures the collector and the analyzer.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    what: What,
    /// Append all numbers to a file under benchmarks/runs
    #[arg(long, global = true)]
    save: bool,
    /// Where files go that are needed for a while [default: one for temporary files]
    #[arg(long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// What the collector adds to an MPI call
    Calls(Calls),
    /// What a call takes in a trace
    Bytes,
    /// How fast the analyzer is, and what memory it takes
    Analysis(Analysis),
    /// Exports and imports: speed, bytes and memory, beside other readers of archives
    Exchange(Exchange),
    /// How the analysis grows with ranks and calls, checked against what traces were made to say
    Scale(Scale),
    /// False alarms and misses for a grid of thresholds
    Detection(Detection),
    /// Questions to a tree of agents: time and rate by number of agents and fan-out
    Overlay(Overlay),
    /// What it costs a program to be followed
    Follow(Follow),
    /// What samples cost real programs
    Sampling(Sampling),
    /// How fast a trace can be looked at: its index, the first picture, parts of any length
    Zoom(Zoom),
    /// Everything that takes minutes: calls, bytes, analysis of small traces
    All,
    /// Write a trace of a program that never ran, and what an analysis must find in it
    Generate(generate::Generate),
    /// Compare a report with what its trace was made to say
    Check(generate::Check),
}

#[derive(Debug, Args)]
struct Calls {
    /// Rounds of all variants
    #[arg(long, default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(Debug, Args)]
struct Follow {
    /// Pairs of runs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Time steps of the program
    #[arg(long, default_value_t = 4000)]
    steps: u32,
}

#[derive(Debug, Args)]
struct Sampling {
    /// Pairs of runs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Samples per second
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    hz: u32,
}

#[derive(Debug, Args)]
struct Detection {
    /// Only the default thresholds
    #[arg(long)]
    defaults: bool,
}

#[derive(Debug, Args)]
struct Scale {
    /// Ranks of the traces, ascending
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1024,4096,16384,65536",
          value_parser = clap::value_parser!(u32).range(8..=65536))]
    ranks: Vec<u32>,
    /// Calls of each rank
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(20..))]
    calls: u64,
    /// Agents
    #[arg(long, value_name = "A,…", value_delimiter = ',', default_value = "1,2")]
    agents: Vec<usize>,
    /// What the ranks did
    #[arg(long, value_enum, default_value_t = Program::Halo2d)]
    program: Program,
    /// Rounds of all numbers of agents
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(Debug, Args)]
struct Overlay {
    /// Agents
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "8,64,512",
          value_parser = clap::value_parser!(u32).range(2..=4096))]
    agents: Vec<u32>,
    /// Fan-outs; a flat tree is measured in any case
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "2,4,8,16,32",
          value_parser = clap::value_parser!(u32).range(1..))]
    fan_outs: Vec<u32>,
    /// Questions for each number
    #[arg(long, default_value_t = 101, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(Debug, Args)]
struct Analysis {
    /// Sizes of the traces, million calls
    #[arg(long, value_name = "M,…", value_delimiter = ',', default_value = "5,50,200",
          value_parser = clap::value_parser!(u64).range(1..))]
    sizes: Vec<u64>,
    #[command(flatten)]
    series: Series,
    /// Cores to spread threads or agents over [default: all]
    #[arg(long)]
    cores: Option<usize>,
    /// With the filters on, not --all
    #[arg(long)]
    filtered: bool,
}

#[derive(Debug, Args)]
struct Zoom {
    /// Sizes of the traces, million calls
    #[arg(long, value_name = "M,…", value_delimiter = ',', default_value = "5,50,200",
          value_parser = clap::value_parser!(u64).range(1..))]
    sizes: Vec<u64>,
    #[command(flatten)]
    series: Series,
    /// Agents that answer
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    agents: u16,
    /// Pictures of each kind
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    questions: u32,
}

#[derive(Debug, Args)]
struct Exchange {
    /// Sizes of the traces, million calls
    #[arg(long, value_name = "M,…", value_delimiter = ',', default_value = "5",
          value_parser = clap::value_parser!(u64).range(1..))]
    sizes: Vec<u64>,
    #[command(flatten)]
    series: Series,
    /// Targets of exports; what otf2 gives is read again [default: all]
    #[arg(long, value_name = "FORMAT,…", value_delimiter = ',',
          value_parser = exchange::TARGETS)]
    targets: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    let directory = cli
        .directory
        .unwrap_or_else(|| std::env::temp_dir().join("laggard-benchmarks"));
    let mut outcome = Outcome::default();
    let what = match cli.what {
        What::Generate(options) => {
            return generate::generate(&options).map(|()| ExitCode::SUCCESS);
        }
        What::Check(options) => return generate::check(&options),
        What::Calls(options) => {
            calls::measure(&directory, options.rounds as usize, &mut outcome)?;
            "calls"
        }
        What::Bytes => {
            bytes::measure(&directory, &mut outcome)?;
            "bytes"
        }
        What::Analysis(options) => {
            analyze(options, directory, &mut outcome)?;
            "analysis"
        }
        What::Exchange(options) => {
            let targets = match options.targets.is_empty() {
                true => exchange::TARGETS.map(str::to_owned).to_vec(),
                false => options.targets,
            };
            let options = exchange::Options {
                sizes: options.sizes,
                series: options.series,
                targets,
                directory,
            };
            exchange::measure(&options, &mut outcome)?;
            "exchange"
        }
        What::Scale(options) => {
            let options = scale::Options {
                ranks: options.ranks,
                calls: options.calls,
                agents: options.agents,
                program: options.program,
                rounds: options.rounds,
                directory,
            };
            scale::measure(&options, &mut outcome)?;
            "scale"
        }
        What::Overlay(options) => {
            let whole = |numbers: Vec<u32>| numbers.into_iter().map(|one| one as usize).collect();
            let options = overlay::Options {
                agents: whole(options.agents),
                fan_outs: whole(options.fan_outs),
                rounds: options.rounds as usize,
            };
            overlay::measure(&options, &mut outcome)?;
            "overlay"
        }
        What::Follow(options) => {
            let options = follow::Options {
                rounds: options.rounds as usize,
                steps: options.steps,
                directory,
            };
            follow::measure(&options, &mut outcome)?;
            "follow"
        }
        What::Sampling(options) => {
            let options = sampling::Options {
                rounds: options.rounds as usize,
                hz: options.hz,
                directory,
            };
            sampling::measure(&options, &mut outcome)?;
            "sampling"
        }
        What::Zoom(options) => {
            let options = zoom::Options {
                sizes: options.sizes,
                series: options.series,
                agents: options.agents.into(),
                questions: options.questions as usize,
                directory,
            };
            zoom::measure(&options, &mut outcome)?;
            "zoom"
        }
        What::Detection(Detection { defaults }) => {
            let options = detection::Options {
                directory,
                only_defaults: defaults,
            };
            detection::measure(&options, &mut outcome)?;
            "detection"
        }
        What::All => {
            calls::measure(&directory, ROUNDS as usize, &mut outcome)?;
            bytes::measure(&directory, &mut outcome)?;
            let sizes = vec![5, 50];
            for filtered in [false, true] {
                let options = Analysis {
                    sizes: sizes.clone(),
                    series: Series::default(),
                    cores: None,
                    filtered,
                };
                analyze(options, directory.clone(), &mut outcome)?;
            }
            "all"
        }
    };
    if cli.save {
        println!("Kept in {}", outcome.save(what)?.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn analyze(options: Analysis, directory: PathBuf, outcome: &mut Outcome) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = analysis::Options {
        sizes: options.sizes,
        series: options.series,
        cores: options.cores.unwrap_or(cores),
        directory,
        filtered: options.filtered,
    };
    analysis::measure(&options, outcome)
}
