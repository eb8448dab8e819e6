//! Options of `steer`.

use std::path::PathBuf;

use clap::Args;
use laggard_serve::steer::{self, Kept};

use super::{RankList, rank_list, seconds};

/// Options of `steer`.
#[derive(Debug, Args)]
pub struct Steer {
    /// The trace directory of a program that runs [default: the newest of laggard-trace,
    /// laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// These ranks only, as 0-3,8
    #[arg(long, visible_alias = "rank", value_name = "LIST", value_parser = rank_list)]
    pub ranks: Option<RankList>,
    /// Record no calls, but those that other ranks' calls may match
    #[arg(long, group = "detail")]
    pub pause: bool,
    /// Record every call again
    #[arg(long, group = "detail")]
    pub resume: bool,
    /// Record the profile, and those that other ranks' calls may match
    #[arg(long, group = "detail")]
    pub profile: bool,
    /// All as the program was started
    #[arg(long, group = "detail")]
    pub as_started: bool,
    /// Most frames of a call path
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u8).range(..=128))]
    pub depth: Option<u8>,
    /// Samples of the call stack per second and thread; 0 is none
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u16).range(..=10_000))]
    pub sample: Option<u16>,
    /// Leave out these calls, as MPI_Iprobe,MPI_Test*
    #[arg(long, value_name = "CALLS", value_delimiter = ',')]
    pub leave_out: Vec<String>,
    /// Take these calls in again
    #[arg(long, value_name = "CALLS", value_delimiter = ',')]
    pub take_in: Vec<String>,
    /// Wait no longer than this for ranks to see it, seconds
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub wait: f64,
}

impl Steer {
    /// What is to change; `None`: nothing.
    pub fn change(&self) -> Option<steer::Steer> {
        let detail = [
            (self.pause, Kept::Paused),
            (self.profile, Kept::Profile),
            (self.resume, Kept::Trace),
        ];
        let detail = detail.into_iter().find(|(is, _)| *is);
        let change = steer::Steer {
            ranks: self.ranks.clone().map(|ranks| ranks.0),
            as_started: self.as_started,
            detail: detail.map(|(_, kept)| kept),
            depth: self.depth,
            sample_hz: self.sample,
            leave_out: self.leave_out.clone(),
            take_in: self.take_in.clone(),
        };
        let is_one = change.as_started
            || change.detail.is_some()
            || change.depth.is_some()
            || change.sample_hz.is_some()
            || !change.leave_out.is_empty()
            || !change.take_in.is_empty();
        is_one.then_some(change)
    }
}
