//! What one agent knows: a trace, its index, and the report.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use laggard_comm::{Job, signals};
use laggard_engine::events::{Events, Mark, Operations, Placed, ProfileRow};
use laggard_report::Report;

use crate::index::{self, Index, LocationIndex};

/// The part of a run that one agent answers for. Locations are told by their position in the run.
pub struct Share {
    /// The trace.
    events: Events,
    /// Its index.
    index: Index,
    /// The report about the run, at the head.
    report: Option<Report>,
    /// The locations that it answers for.
    own: Range<usize>,
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
    /// What this agent has opened of a trace. Makes the index if there is none yet. Collective.
    ///
    /// # Errors
    /// The trace cannot be read as a whole; the same on all agents.
    pub fn new(
        job: &dyn Job,
        events: Events,
        report: Option<Report>,
        trace: &Path,
    ) -> Result<Share> {
        let files = events.files().chain(trace.is_file().then_some(trace));
        let files: Vec<PathBuf> = files.map(Path::to_owned).collect();
        let files = files.into_iter().map(|file| {
            let state = state(&file);
            (file, state)
        });
        let files = files.collect();
        let (index, kept) = index::kept(job, &events, trace)?;
        Ok(Share {
            own: events.first..events.first + events.locations(),
            events,
            index,
            report,
            kept,
            files,
        })
    }

    /// The report about the run.
    ///
    /// # Errors
    /// Only the head has it.
    pub fn report(&self) -> Result<&Report> {
        self.report.as_ref().context("the report is at the head")
    }

    /// The index of an own location.
    pub fn index_of(&self, at: usize) -> &LocationIndex {
        &self.index.locations[at - self.own.start]
    }

    /// The calls of an own location after a mark.
    pub fn operations_from(&self, at: usize, mark: Mark) -> Operations<'_> {
        self.events.operations_from(at - self.own.start, mark)
    }

    /// The profile of an own location.
    pub fn profile(&self, at: usize) -> Vec<ProfileRow> {
        self.events.profile(at - self.own.start)
    }

    /// What is known of the trace beside its calls.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Any location of the run.
    pub fn placed(&self, at: usize) -> &Placed {
        &self.events.placed[at]
    }

    /// Its name: the rank, and the thread if it is another one than the first.
    pub fn label(&self, at: usize) -> String {
        let placed = self.placed(at);
        match placed.thread {
            0 => placed.rank.to_string(),
            thread => format!("{}.{thread}", placed.rank),
        }
    }

    /// Name of its host.
    pub fn host(&self, at: usize) -> &str {
        let host = self.placed(at).host as usize;
        self.events.hosts().get(host).map_or("", String::as_str)
    }

    /// Locations of the run.
    pub fn locations(&self) -> usize {
        self.events.placed.len()
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
        if signals::has_lost() {
            bail!("part of the trace cannot be read any more: start laggard serve again");
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
        let all = self.locations();
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
