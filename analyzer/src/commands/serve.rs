//! `laggard serve`: a run to look around in, with a browser.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use laggard_engine::events::Events;
use laggard_serve::Share;
use laggard_serve::server::{self, Options};

use super::{export, screen, traces};
use crate::cli::Serve;

/// Answers the pages of browsers until it is stopped.
pub fn serve(options: &Serve) -> Result<ExitCode> {
    if laggard_comm::launched() > 1 {
        bail!("serve is one process: run it without mpirun");
    }
    if let Some(threads) = options.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads));
        pool.build_global()?;
    }
    let trace = traces::meant(options.directory.as_deref())?;
    let events = Events::open(&trace)?;
    export::note(&events);
    let report = export::report(options.report.as_deref(), options.quiet, &trace, &events)?;
    let share = Share::of_all(events, report, &trace)?;
    if share.kept.is_none() && !options.quiet {
        screen::say("note: the index cannot be kept: it is made anew each time");
    }
    let idle = u64::from(options.idle) * 60;
    let served = Options {
        port: options.port,
        socket: options.socket.clone(),
        idle: (idle > 0).then(|| Duration::from_secs(idle)),
    };
    server::serve(share, &served, |address| {
        screen::print(&format!("{address}\n"))?;
        if !options.quiet {
            screen::say("open this address in a browser; Ctrl-C ends");
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}
