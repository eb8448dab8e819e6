//! What one agent knows: a trace, its index, and the report.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use laggard_comm::{Job, signals};
use laggard_engine::events::{Events, Operation, Operations, Placed, ProfileRow};
use laggard_report::Report;

use crate::index::{self, Index, KeptWait, LocationIndex};
use crate::whole::{Limits, Whole};

/// The part of a run that one agent answers for. Locations are told by their position in the run.
pub struct Share {
    /// The trace.
    events: Events,
    /// Its index.
    index: Index,
    /// The report about the run, at the head.
    report: Option<Arc<Report>>,
    /// The report about another run that this one is shown against, at the head.
    against: Option<Arc<Report>>,
    /// The run as a whole, at the head, if nobody writes its trace any more.
    whole: Option<Arc<Whole>>,
    /// The locations that it answers for.
    own: Range<usize>,
    /// Where the index is kept; nowhere if nobody may write.
    pub kept: Option<PathBuf>,
    /// The trace's files as they were.
    files: Vec<(PathBuf, State)>,
}

/// A file as it was when it was opened.
enum State {
    /// It has no name of its own.
    Unknown,
    /// Its size and time: nobody writes it any more.
    Whole(u64, Option<SystemTime>),
    /// Which one it is, and how many of its bytes are read: it is still written.
    Growing((u64, u64), u64),
}

impl State {
    fn whole(file: &Path) -> State {
        let told = file.metadata();
        told.map_or(State::Unknown, |told| {
            State::Whole(told.len(), told.modified().ok())
        })
    }

    fn growing(file: &Path, used: u64) -> State {
        let told = file.metadata();
        told.map_or(State::Unknown, |told| {
            State::Growing((told.dev(), told.ino()), used)
        })
    }

    /// Whether what was read of the file is still there.
    fn holds(&self, file: &Path) -> bool {
        match (self, file.metadata()) {
            (State::Unknown, _) => true,
            (_, Err(_)) => false,
            (State::Whole(size, time), Ok(told)) => {
                told.len() == *size && told.modified().ok() == *time
            }
            (State::Growing(which, used), Ok(told)) => {
                (told.dev(), told.ino()) == *which && told.len() >= *used
            }
        }
    }
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
        (trace, limits): (&Path, Limits),
    ) -> Result<Share> {
        let files = events.files().chain(trace.is_file().then_some(trace));
        let files = files.map(|file| (file.to_owned(), State::whole(file)));
        let files = files.collect();
        let (index, kept) = index::kept(job, &events, trace)?;
        let is_head = job.agent() == 0;
        Ok(Share {
            whole: is_head.then(|| Arc::new(Whole::new(trace, events.bytes(), limits))),
            own: events.first..events.first + events.locations(),
            events,
            index,
            report: report.map(Arc::new),
            against: None,
            kept,
            files,
        })
    }

    /// What this agent has opened of a trace that is still written, as far as it is complete.
    pub fn growing(events: Events, index: Index, report: Option<Arc<Report>>) -> Share {
        let files = events.used();
        let files = files.map(|(file, used)| (file.to_owned(), State::growing(file, used)));
        let files = files.collect();
        Share {
            own: events.first..events.first + events.locations(),
            events,
            index,
            report,
            against: None,
            whole: None,
            kept: None,
            files,
        }
    }

    /// Is shown against another run from now on.
    pub fn compare(&mut self, other: Report) {
        self.against = Some(Arc::new(other));
    }

    /// The report about another run that this one is shown against.
    pub fn against(&self) -> Option<&Report> {
        self.against.as_deref()
    }

    /// The report, to be kept with a later share.
    pub fn report_kept(&self) -> Option<Arc<Report>> {
        self.report.clone()
    }

    /// The report about the run.
    ///
    /// # Errors
    /// Only the head has it.
    pub fn report(&self) -> Result<&Report> {
        self.report.as_deref().context("the report is at the head")
    }

    /// The run as a whole, at the head; `None` elsewhere.
    ///
    /// # Errors
    /// The program still writes it.
    pub fn whole(&self) -> Result<Option<&Arc<Whole>>> {
        let is_growing = |(_, state): &(PathBuf, State)| matches!(state, State::Growing(..));
        if self.files.iter().any(is_growing) {
            bail!("this is told once the program has ended");
        }
        Ok(self.whole.as_ref())
    }

    /// The index of an own location.
    pub fn index_of(&self, at: usize) -> &LocationIndex {
        &self.index.locations[at - self.own.start]
    }

    /// Of a wait of an own location: number of the call that waited, of its call path, and id of the communicator,
    /// window or file in which it waited; 0 if that is none.
    pub fn site(&self, at: usize, wait: &KeptWait) -> (u16, u32, u64) {
        let (call, path, of_call) = self.site_of(at, wait.signature);
        let id = if wait.group != 0 { wait.group } else { of_call };
        let groups = &self.events.groups;
        let is_known = groups.binary_search_by_key(&id, |group| group.id).is_ok();
        (call, path, if is_known { id } else { 0 })
    }

    /// The same of calls of a signature, whatever they waited for.
    pub fn site_of(&self, at: usize, signature: u32) -> (u16, u32, u64) {
        let found = self.events.site(at - self.own.start, signature);
        found.unwrap_or_default()
    }

    /// Records of an own location.
    pub fn records(&self, at: usize) -> u64 {
        self.events.place(at - self.own.start).records
    }

    /// Whether only a profile was recorded of an own location.
    pub fn is_profile(&self, at: usize) -> bool {
        self.records(at) == 0 && !self.profile(at).is_empty()
    }

    /// Whether the recording of an own location was paused at times.
    pub fn was_paused(&self, at: usize) -> bool {
        self.events.place(at - self.own.start).was_paused
    }

    /// The calls of an own location: from a few before a moment on.
    pub fn operations_from(&self, at: usize, time: i64) -> Operations<'_> {
        let index = self.index_of(at);
        let (mark, within) = (index.mark(time), index.within(time));
        let before = (&within[..], index.shortest(time));
        self.events
            .operations_from(at - self.own.start, mark, before)
    }

    /// Samples of the time before a call of an own location: numbers of call paths, and when they were taken, ns.
    pub fn samples(&self, at: usize, call: &Operation<'_>) -> impl Iterator<Item = (u32, i64)> {
        self.events.moments(at - self.own.start, call)
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

    /// A location that another agent tells of.
    ///
    /// # Errors
    /// There is none.
    pub fn named(&self, at: usize) -> Result<&Placed> {
        let placed = self.events.placed.get(at);
        placed.context("an agent tells of a location that there is not")
    }

    /// The first and the last location of ranks from `first` to `last`; of ranks without trace, one beside them.
    pub fn of_ranks(&self, first: u32, last: u32) -> (usize, usize) {
        let placed = &self.events.placed;
        let begin = placed.partition_point(|one| one.rank < first);
        let end = placed.partition_point(|one| one.rank <= last);
        let most = placed.len().saturating_sub(1);
        let begin = begin.min(most);
        (begin, end.saturating_sub(1).max(begin))
    }

    /// The location of a thread of a rank; of one without trace, that of the first thread, or one beside it.
    pub fn of_thread(&self, rank: u32, thread: u32) -> usize {
        let (begin, end) = self.of_ranks(rank, rank);
        let is_it = |at: &usize| {
            self.events
                .placed
                .get(*at)
                .is_some_and(|one| (one.rank, one.thread) == (rank, thread))
        };
        (begin..=end).find(is_it).unwrap_or(begin)
    }

    /// The number of the thread that is a location; none of what is no location.
    pub fn thread(&self, at: u32) -> Option<u32> {
        self.events.placed.get(at as usize).map(|one| one.thread)
    }

    /// The number of the thread that is a location of the run, if its rank has several.
    pub fn thread_apart(&self, at: usize) -> Option<u32> {
        let own = self.events.placed.get(at)?;
        let (begin, end) = self.of_ranks(own.rank, own.rank);
        (begin < end).then_some(own.thread)
    }

    /// Its name: the rank, and the thread if it is another one than the first.
    pub fn label(&self, at: usize) -> String {
        let placed = self.placed(at);
        match placed.thread {
            0 => placed.rank.to_string(),
            thread => format!("{}.{thread}", placed.rank),
        }
    }

    /// Ranks of the run of which there is a trace.
    pub fn ranks_with_trace(&self) -> usize {
        let ranks = self.events.placed.chunk_by(|a, b| a.rank == b.rank);
        ranks.count()
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
        let gone = self.files.iter().find(|(file, state)| !state.holds(file));
        if let Some((file, state)) = gone {
            let file = file.display();
            match state {
                State::Growing(..) => bail!(
                    "{file} was removed or cut off while it was written: what was in it cannot be shown any more"
                ),
                _ => bail!("{file} has changed since it was opened: start laggard serve again"),
            }
        }
        let is_whole = |(_, state): &(PathBuf, State)| !matches!(state, State::Growing(..));
        if signals::has_lost() && self.files.iter().all(is_whole) {
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
