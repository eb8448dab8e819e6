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
    /// Also answer browsers that ask for this host: a proxy that passes its own name on
    #[arg(long, value_name = "NAME", conflicts_with = "socket", value_parser = host)]
    pub allow_host: Vec<String>,
    /// A Unix socket in place of a port; nothing may be there yet
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// End after so many minutes without a page; 0 is never
    #[arg(long, value_name = "MINUTES", default_value_t = 240.0, value_parser = minutes)]
    pub idle: f64,
    /// The findings [default: report.json beside the trace; if there is none, an analysis now]
    #[arg(long, value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Another run of the program, its report or directory: the profile has what that one has, too
    #[arg(long, value_name = "REPORT", conflicts_with = "follow")]
    pub against: Option<PathBuf>,
    /// Follow a program that still runs, or is about to start: show what it has done so far. All
    /// agents have this option, or none
    #[arg(long, conflicts_with = "report")]
    pub follow: bool,
    /// With --follow: while the program runs, look for findings only as long as the trace has at most
    /// so many MB. The views go on
    #[arg(long, value_name = "MB", default_value_t = 4096, requires = "follow")]
    pub follow_mb: u64,
    /// Join messages and follow the critical path in traces of at most so many GB, once a page asks.
    /// Both take time and room for temporary files, the path some memory
    #[arg(long, value_name = "GB", default_value_t = 16)]
    pub whole_gb: u32,
    /// Replay traces of at most so many MB with the sliders of the page. Each slider takes as long as
    /// laggard what-if
    #[arg(long, value_name = "MB", default_value_t = (laggard_whatif::MOST_BYTES >> 20) as u32)]
    pub what_if_mb: u32,
    /// With --follow: let the page pause the recording and change what is recorded, as laggard steer
    /// does
    #[arg(long, requires = "follow")]
    pub steer: bool,
    /// The program has ended when the input does
    #[arg(long, hide = true, requires = "follow")]
    pub until_input_ends: bool,
    /// Processes that answer, each with some of the ranks. With mpirun, its processes do; so do
    /// those that join with --meet. [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub agents: Option<u16>,
    /// Writes a file, and waits until the agents have joined with it, on this machine or others
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub meet: Option<PathBuf>,
    /// Be one of the agents of the server that wrote this file; - reads it from the input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["meet", "agents", "port", "socket", "report", "against"])]
    pub join: Option<PathBuf>,
    /// Agents that each agent asks, in a tree; as many as there are: all are asked by the first
    #[arg(long, value_name = "N", default_value_t = laggard_comm::FAN_OUT as u16, value_parser = clap::value_parser!(u16).range(1..))]
    pub fan_out: u16,
    /// Answer without agents that take longer than so many seconds, and say so; 0 is to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub wait: u32,
    /// Threads that answer, of each agent [default: the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print nothing but the address and errors
    #[arg(short, long)]
    pub quiet: bool,
}

fn host(text: &str) -> Result<String, String> {
    let is_address = text.starts_with('[') && text.ends_with(']');
    match text.is_empty() || text.contains('/') || text.contains(':') && !is_address {
        true => Err("a name or an address, without scheme and port".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok();
    let minutes = minutes.filter(|minutes| (0.0..=1e6).contains(minutes));
    minutes.ok_or_else(|| "a number of minutes from 0 to 1000000".to_owned())
}
