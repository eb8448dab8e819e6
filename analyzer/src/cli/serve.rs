//! Options of `serve`.

use std::path::PathBuf;

use clap::Args;

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The trace directory, one above it, or the anchor file of an OTF2 archive [default: the
    /// newest of laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Port on this machine; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "socket")]
    pub port: u16,
    /// A Unix socket in place of a port; nothing may be there yet
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// End after so many minutes without a page; 0 is never
    #[arg(long, value_name = "MINUTES", default_value_t = 240)]
    pub idle: u32,
    /// The findings [default: report.json beside the trace; if there is none, an analysis now]
    #[arg(long, value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Threads that answer [default: the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print nothing but the address and errors
    #[arg(short, long)]
    pub quiet: bool,
}
