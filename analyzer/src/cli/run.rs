//! Options of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Where the trace goes [default: laggard-trace]; if that holds a trace
    /// already, DIR.1, DIR.2, …
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Frames kept per call: 1 = the calling line only, 0 = none [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=128))]
    pub callpath_depth: Option<u16>,
    /// What is recorded [default: trace]
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// Largest file per rank and thread, MB; beyond it only the profile goes on
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_trace_mb: Option<u64>,
    /// Memory per rank and thread, KB
    #[arg(long, value_name = "KB", value_parser = clap::value_parser!(u64).range(1..))]
    pub buffer_kb: Option<u64>,
    /// What a file of the trace holds [default: location]
    #[arg(long, value_enum)]
    pub file_per: Option<FilePer>,
    /// Regions and functions of the program: record every instance, however short; analyze needs
    /// the same file
    #[arg(long, value_name = "FILE")]
    pub operation_map: Option<PathBuf>,
    /// Sample the call stacks of ranks that compute, HZ times per second on the processor [default:
    /// 100]: causes name functions
    #[arg(
        long,
        value_name = "HZ",
        require_equals = true,
        num_args = 0..=1,
        default_missing_value = "100",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub sample: Option<u32>,
    /// Analyse the trace, too: print the report, and write it beside the trace, also as a page for
    /// browsers
    #[arg(long)]
    pub report: bool,
    /// … and open the page
    #[arg(long)]
    pub open: bool,
    /// Serve what the program does to a browser while it runs, and afterwards until Ctrl-C
    #[arg(long)]
    pub serve: bool,
    /// With --serve: let the page pause the recording and change what is recorded, as laggard steer
    /// does
    #[arg(long, requires = "serve")]
    pub steer: bool,
    /// With --report: agents that analyse, started by the program's launcher [default: one, or
    /// several of large runs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub agents: Option<u16>,
    /// How you run the program: mpirun -n 4 ./app args
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

/// What the collector records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Every call
    Trace,
    /// No events, only the profile
    Profile,
    /// Nothing
    Off,
}

impl Mode {
    /// The value that the collector knows.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Trace => "trace",
            Mode::Profile => "profile",
            Mode::Off => "off",
        }
    }
}

/// What a file of the trace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FilePer {
    /// One thread of one rank
    Location,
    /// All ranks of a host: fewer files
    Node,
}

impl FilePer {
    /// The value that the collector knows.
    pub fn name(self) -> &'static str {
        match self {
            FilePer::Location => "location",
            FilePer::Node => "node",
        }
    }
}
