//! `laggard run --report`: what was just recorded is analysed, printed, and made a page.
//!
//! The analysis is a process of its own: however it ends, `laggard run` ends as the program did.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::reports::REPORT;
use super::{screen, show};
use crate::cli::Run;

/// The page beside the trace.
const PAGE: &str = "report.html";
/// Smaller traces, bytes, take one agent about as long as several need to start.
const WORTH_AGENTS: u64 = 256 << 20;
/// With fewer ranks each, agents ask each other so much that threads of one are as fast.
const RANKS_EACH: usize = 32;
/// What root has to tell Open MPI.
const AS_ROOT: &str = "--allow-run-as-root";

/// What was recorded.
pub struct Recorded<'r> {
    /// The directory, as the user knows it.
    pub trace: &'r Path,
    /// Bytes of its files.
    pub bytes: u64,
    /// Ranks, about.
    pub ranks: usize,
    /// The launcher of the program with its options, if it is one of an MPI.
    pub launcher: Option<&'r [OsString]>,
}

/// Analyses a recording, and opens its page if that is wanted. Says what fails.
pub fn report(recorded: &Recorded<'_>, options: &Run) {
    match try_report(recorded, options) {
        Err(error) if !screen::is_broken_pipe(&error) => screen::say(&format!("{error:#}")),
        // Nobody reads any more.
        _ => {}
    }
}

fn try_report(recorded: &Recorded<'_>, options: &Run) -> Result<()> {
    let own = std::env::current_exe().context("cannot find where laggard itself is")?;
    let mut words: Vec<OsString> = vec![own.into(), "analyze".into(), recorded.trace.into()];
    if let Some(map) = &options.operation_map {
        words.extend(["--operation-map".into(), map.into()]);
    }
    let agents = options.agents.map(usize::from);
    analyze(
        recorded,
        agents.unwrap_or_else(|| recorded.agents()),
        &words,
    )?;
    let page = recorded.trace.join(PAGE);
    show::write_page_of(&recorded.trace.join(REPORT), &page)?;
    let shown = page.display();
    if options.open
        && let Err(error) = open::that_detached(&page)
    {
        screen::say(&format!(
            "no browser could be started ({error}); open {shown} yourself"
        ));
    }
    screen::print(&format!("Page written to {shown}\n"))?;
    Ok(())
}

impl Recorded<'_> {
    /// How many agents are worth starting on this host.
    fn agents(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        match self.bytes {
            0..WORTH_AGENTS => 1,
            _ => (self.ranks / RANKS_EACH).clamp(1, cores),
        }
    }
}

/// Several agents analyse, if the launcher starts them; else one does.
fn analyze(recorded: &Recorded<'_>, agents: usize, words: &[OsString]) -> Result<()> {
    if let Some(launcher) = recorded.launcher.filter(|_| agents > 1) {
        let job = job(launcher, agents);
        if run(&[&job, words].concat())? {
            return Ok(());
        }
        screen::say(&format!("{agents} agents failed: one does it alone"));
    }
    match run(words)? {
        true => Ok(()),
        // It has said why.
        false => bail!("{}: no report was made", recorded.trace.display()),
    }
}

/// The beginning of a command that starts so many agents on this host.
fn job(launcher: &[OsString], agents: usize) -> Vec<OsString> {
    let mut job = vec![launcher[0].clone()];
    job.extend(launcher.contains(&AS_ROOT.into()).then(|| AS_ROOT.into()));
    job.extend(["-n".into(), agents.to_string().into()]);
    job
}

/// Whether a command succeeds.
fn run(words: &[OsString]) -> Result<bool> {
    let mut command = Command::new(&words[0]);
    let status = command.args(&words[1..]).status();
    let status = status.with_context(|| format!("cannot start {}", words[0].display()))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_started_as_the_program_was() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let program = words("mpirun --allow-run-as-root -x A=1 -n 4 ./a b");
        assert_eq!(job(&program, 2), words("mpirun --allow-run-as-root -n 2"));
        let program = words("/opt/mpich/bin/mpiexec -n 4 ./a");
        assert_eq!(job(&program, 8), words("/opt/mpich/bin/mpiexec -n 8"));
    }

    #[test]
    fn what_is_small_needs_one_agent() {
        let agents = |bytes, ranks| {
            let recorded = Recorded {
                trace: Path::new("t"),
                bytes,
                ranks,
                launcher: None,
            };
            recorded.agents()
        };
        assert_eq!(agents(WORTH_AGENTS - 1, 4096), 1);
        assert_eq!(agents(WORTH_AGENTS, RANKS_EACH), 1);
        assert_eq!(agents(1, 1), 1);
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        assert_eq!(agents(WORTH_AGENTS, usize::MAX), cores);
    }
}
