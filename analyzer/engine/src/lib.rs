//! The analysis engine: phases, from a directory of traces to a report.
//!
//! ```text
//! open ─ profile ─ detect ─ prepare ─
//!     (pass one ─ questions ─ pass two ─ answers ─ name)* ─ merge ─ report
//! ```
//!
//! Every phase runs on all agents at once. They share only [`laggard_comm::Job`]. Results that must
//! not depend on the number of agents are integers (ns): the order of adding does not matter.
//!
//! [`analyze`] is the analysis by a job of agents. [`symbols`] and [`directory`] also serve other
//! crates. [`events`] gives all contents of a trace to exporters.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod analysis;
mod basics;
mod clock;
mod collectives;
pub mod events;
mod findings;
mod input;
mod judge;
mod memory;
mod messages;
mod options;
mod phases;
mod replay;
mod report;
mod roots;
mod rules;
mod stream;
pub mod symbols;
mod threads;
mod timeline;
mod waits;
mod wire;

use std::path::Path;

pub use analysis::analyze_moved;
pub use findings::regions;
pub use input::directory;
use laggard_comm::{self as comm, Job, MpiJob, Serial, signals};
pub use laggard_trace::operations::OperationMap;
pub use options::{Analysis, AnalyzeOptions};
pub use rules::Rules;

/// Analyses a trace directory. Only the head agent gets a result.
///
/// Under an MPI launcher all processes of the job are agents; elsewhere this process is the only
/// one. All agents get the same error; the head should print it.
pub fn analyze(directory: &Path, options: &AnalyzeOptions) -> anyhow::Result<Option<Analysis>> {
    analyze_prepared(directory, STALL_LIMIT_S, || Ok(options.clone()))
}

/// As [`analyze`], by one of the agents of a job.
///
/// # Errors
/// Traces that cannot be read, or options that do not fit them. The same on all agents.
pub fn analyze_as(
    job: &dyn Job,
    directory: &Path,
    options: &AnalyzeOptions,
) -> anyhow::Result<Option<Analysis>> {
    analysis::analyze(job, directory, options)
}

/// Default stall limit, s: an agent without progress for this time ends the job.
pub const STALL_LIMIT_S: u64 = 300;

/// As [`analyze`], with the options of `prepare`. Each agent calls `prepare` as part of the job: a
/// launcher may keep the other agents waiting for ever if one ends earlier. If one of several
/// agents makes no progress for `stall_limit` seconds, it ends the job; 0 = no limit.
pub fn analyze_prepared(
    directory: &Path,
    stall_limit: u64,
    prepare: impl FnOnce() -> anyhow::Result<AnalyzeOptions>,
) -> anyhow::Result<Option<Analysis>> {
    let job: Box<dyn Job> = if comm::launched_by_mpi() {
        Box::new(MpiJob::new(stall_limit, || Ok(comm::library::load()?.1))?)
    } else {
        Box::new(Serial)
    };
    let options = &comm::agree(job.as_ref(), prepare())?;
    signals::watch_files();
    if job.agent() == 0 && job.agents() > 1 {
        signals::watch_end();
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = options
        .threads
        .unwrap_or_else(|| (cores / comm::local_agents().min(cores)).max(1));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        // This thread takes part, so that it need not hand over work and wait for it.
        .use_current_thread()
        .build_global();
    if let Err(error) = pool {
        // An earlier analysis in this process set up the threads: they serve as well.
        log_threads(&error);
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        analyze_as(job.as_ref(), directory, options)
    }));
    match result {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(error)) => {
            signals::is_finished();
            Err(error)
        }
        // The other agents would wait for this one for ever.
        Err(_) => job.abort(1),
    }
}

fn log_threads(error: &rayon::ThreadPoolBuildError) {
    if std::env::var_os("LAGGARD_LOG").is_some_and(|level| level == "debug") {
        eprintln!("laggard: {error}");
    }
}
