//! What one agent knows: a trace, its index, and the report.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use laggard_engine::events::Events;
use laggard_report::Report;

use crate::index::{self, Index};

/// The part of a run that one agent answers for.
pub struct Share {
    /// The trace.
    pub events: Events,
    /// Its index.
    pub index: Index,
    /// The report about it.
    pub report: Report,
    /// The locations that it answers for.
    pub own: Range<usize>,
    /// Where the index is kept; nowhere if nobody may write.
    pub kept: Option<PathBuf>,
    /// The trace's files as they were.
    files: Vec<(PathBuf, State)>,
}

/// Size and time of a file; `None` if it is gone.
type State = Option<(u64, Option<SystemTime>)>;

fn state(file: &Path) -> State {
    let told = file.metadata().ok()?;
    Some((told.len(), told.modified().ok()))
}

impl Share {
    /// All of a trace that is open. Makes its index if there is none yet.
    ///
    /// # Errors
    /// The trace cannot be read as a whole.
    pub fn of_all(events: Events, report: Report, trace: &Path) -> Result<Share> {
        let files = events.files().chain(trace.is_file().then_some(trace));
        let files: Vec<PathBuf> = files.map(Path::to_owned).collect();
        let files = files.into_iter().map(|file| {
            let state = state(&file);
            (file, state)
        });
        let files = files.collect();
        let (index, kept) = index::kept(&events, trace)?;
        Ok(Share {
            own: 0..events.locations(),
            events,
            index,
            report,
            kept,
            files,
        })
    }

    /// Checks that the trace's files are as they were. Those that an archive is rewritten into
    /// have no names.
    ///
    /// # Errors
    /// One is not: reading on would end the process, or tell of another run.
    pub fn check(&self) -> Result<()> {
        for (file, before) in &self.files {
            if before.is_some() && state(file) != *before {
                let file = file.display();
                bail!("{file} has changed since it was opened: start laggard serve again");
            }
        }
        Ok(())
    }

    /// The stretch of time that a question is about; all of the run if it does not say. ns.
    ///
    /// # Errors
    /// The stretch is empty, or no time.
    pub fn stretch(&self, from_s: Option<f64>, until_s: Option<f64>) -> Result<(i64, i64)> {
        let ns = |seconds: f64| (seconds * 1e9).clamp(-1e18, 1e18).round() as i64;
        let from = from_s.map_or(0, ns);
        let until = until_s.map_or(self.events.end_ns().max(1), ns);
        let is_time = from_s.is_none_or(f64::is_finite) && until_s.is_none_or(f64::is_finite);
        (is_time && from < until)
            .then_some((from, until))
            .context("from_s must be before until_s")
    }

    /// The locations that a question is about, all of the run's if it does not say.
    ///
    /// # Errors
    /// There are no such ones.
    pub fn chosen(&self, first: Option<usize>, last: Option<usize>) -> Result<Range<usize>> {
        let all = self.events.locations();
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(all.saturating_sub(1)));
        if first > last || last >= all {
            bail!(
                "first and last are of the locations 0 to {}",
                all.saturating_sub(1)
            );
        }
        Ok(first..last + 1)
    }

    /// Those of them that this share answers for.
    pub fn own(&self, chosen: &Range<usize>) -> Range<usize> {
        let first = chosen.start.max(self.own.start);
        first..chosen.end.min(self.own.end).max(first)
    }
}
