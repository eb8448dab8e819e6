//! Following a program while it runs: its trace is opened again and again, as far as it is complete.
//!
//! *Data flow.* Every half second each agent looks in which calls its ranks are (`now`). From time to time
//! all agents open the trace again and add what is new to the index; less often they analyse all that is
//! there (`pace`). The new share takes the place of the one before, and pages are told. Once every file was
//! closed, or its process is gone, the trace is opened a last time, as `laggard serve` does it afterwards.
//!
//! *Constraints.* The program is never waited for and never waits: files are read as they are. What
//! following costs is bounded by `pace`, and its threads give way to all others ([`nice`]). Findings of a
//! trace beyond a limit end there; the index goes on.

mod now;
mod pace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Result, bail};
use laggard_comm::{self as comm, Endings, Job, signals};
use laggard_engine::events::{Events, Place};
use laggard_overlay::{LinkJob, Linked, Lost};
use laggard_report::Report;
use laggard_report::units::plural;
use laggard_trace::ENDED_FILE;
use serde::{Deserialize, Serialize};

pub use crate::index::Growing;
use crate::news::News;
use crate::share::Share;
use crate::shares::Shares;
use crate::steer::{Wanted, follows};
use crate::whole::Limits;
use now::{Looks, Seen};
use pace::{LOOK, Pace};

/// Openings in a row of which a file was just being cut to its last size.
const AGAIN: usize = 5;

/// Makes a report of a trace, at the head: a last one of the whole run, or one of what is there. Collective.
pub type Analyze = Box<dyn Fn(&dyn Job, &Path, Extent) -> Result<Option<Report>> + Send + Sync>;

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A run that goes on.
    SoFar,
    /// A run that is over.
    Whole,
}

/// A program that is followed.
pub struct Follow {
    /// The directory.
    pub trace: PathBuf,
    /// While the program runs, no more than this is analysed, bytes of the files. It bounds the memory.
    pub most_bytes: u64,
    /// Of what is read in the end.
    pub limits: Limits,
    /// Makes reports.
    pub analyze: Analyze,
    /// Whether pages may steer the recording.
    pub steers: bool,
    /// Whoever has started the program knows that it has ended.
    pub has_ended: Arc<AtomicBool>,
    /// What is known of the trace so far.
    pub growing: Growing,
}

/// What the head has all agents do after they have looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    /// Nothing yet.
    Wait,
    /// Open what is there by now.
    Open,
    /// … and analyse it.
    Analyze,
    /// The run is over.
    Last,
}

/// Ranks that did not end by themselves, and when and where each was seen to end.
type Dead = BTreeMap<u32, Option<(Duration, String)>>;

/// By how much clocks of hosts may differ. What starts a program keeps them within some ms.
const CLOCKS: Duration = Duration::from_millis(20);

/// What an agent sees of its ranks while they run.
#[derive(Default)]
struct Watched {
    looks: Looks,
    endings: Endings,
}

/// What an agent knows of its locations.
#[derive(Default, Serialize, Deserialize)]
struct Known {
    seen: Seen,
    /// Ranks whose process is gone, and whose file was not closed.
    dead: Dead,
    /// Locations that are still written.
    running: u64,
    /// By rank, the number of the user's wish that it follows, if there is one.
    steered: BTreeMap<u32, u32>,
}

impl Follow {
    /// The first share: waits until there is something to open. Collective.
    ///
    /// # Errors
    /// What is there is no trace, and the program has ended.
    pub fn begin(&mut self, job: &dyn Job) -> Result<Share> {
        signals::outlive_files();
        loop {
            let opened = self.open(job, None, true);
            let mut ended = [u64::from(self.has_ended.load(Relaxed))];
            job.reduce_max(&mut ended);
            match opened {
                Err(error) if ended == [1] => return Err(error),
                Err(_) => std::thread::sleep(LOOK),
                opened => return opened,
            }
        }
    }

    /// Follows until the run is over; what its agents do beside their questions. Returns why it ended
    /// before, if it did.
    pub fn run(mut self, linked: Linked, shares: &Shares) {
        let job = LinkJob::new(linked);
        // Another agent that ends, or says nonsense, unwinds this thread.
        let followed = std::panic::AssertUnwindSafe(|| self.go_on(&job, shares));
        let why = match std::panic::catch_unwind(followed) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("{error:#}"),
            Err(why) => match why.downcast::<Lost>() {
                Ok(lost) => lost.0,
                Err(_) => "laggard failed to follow".to_owned(),
            },
        };
        let before = shares.news().borrow().clone().unwrap_or_default();
        let text = format!("What is shown ends here: {why}. Start laggard serve again.");
        shares.tell(News {
            runs: false,
            text,
            ..before
        });
    }

    fn go_on(&mut self, job: &dyn Job, shares: &Shares) -> Result<()> {
        let mut pace = Pace::default();
        let mut watched = Watched::default();
        let mut hangs = hangs(&shares.newest().1);
        let mut lost = None;
        let mut wanted = Wanted::default();
        // Ranks whose process was gone before the newest share was opened: it has all they wrote.
        let mut gone = Dead::new();
        let mut analyzed_s = seconds(shares.newest().1.events());
        loop {
            // The others wait for the head.
            if job.agent() == 0 {
                std::thread::sleep(LOOK);
            }
            let (number, share) = shares.newest();
            let known = known(&share, &mut watched);
            let all = job.all_gather(postcard::to_stdvec(&known)?);
            let mut sum = Known::default();
            for (agent, one) in all.iter().enumerate() {
                sum.add(comm::unpacked(agent, one)?);
            }
            let step = match job.agent() {
                0 if !sum.dead.keys().eq(gone.keys()) && sum.running > 0 => Step::Open,
                0 => self.next(&sum, &share, &mut pace),
                _ => Step::Wait,
            };
            let mut told = postcard::to_stdvec(&step)?;
            job.broadcast(&mut told);
            let step: Step = comm::unpacked(0, &told)?;
            if job.agent() == 0 {
                let mut text = sum.text(step, &gone);
                if self.is_beyond(&share) && step != Step::Last {
                    text = format!(
                        "{text} Findings are of its first {analyzed_s:.1} s until it ends (--follow-mb)."
                    );
                }
                if let Some(lost) = &lost {
                    text = format!("{text} What is shown goes no further: {lost}.");
                }
                // Without a control block there is nothing to tell of it.
                let _ = wanted.read(&self.trace);
                let mut wanted = wanted.rows(&sum.steered);
                let wanted_in_all = wanted.len();
                wanted.truncate(now::ROWS);
                let news = News {
                    steers: self.steers,
                    wanted,
                    wanted_in_all,
                    number,
                    runs: true,
                    end_s: seconds(share.events()),
                    locations: share.locations(),
                    text,
                    hangs: hangs.clone(),
                    calls: sum.seen.calls(),
                    calls_in_all: sum.seen.calls_in_all(),
                };
                shares.tell(news);
            }
            if step == Step::Wait {
                continue;
            }
            if step == Step::Last {
                return self.end(job, shares, &mut watched);
            }
            let begun = worked();
            gone = sum.dead;
            let analyzes = step == Step::Analyze;
            match self.open(job, Some(&share), analyzes) {
                Ok(share) => {
                    if analyzes {
                        analyzed_s = seconds(share.events());
                    }
                    hangs = self::hangs(&share);
                    lost = None;
                    add(job, shares, share);
                }
                // Files may be gone, and come again.
                Err(error) => lost = Some(format!("{error:#}")),
            }
            pace.took(longest(job, worked().saturating_sub(begun)), analyzes);
        }
    }

    /// What to do next, at the head.
    fn next(&self, known: &Known, share: &Share, pace: &mut Pace) -> Step {
        let ranks = share.events().ranks() as usize;
        let has_all = share.ranks_with_trace() == ranks;
        let is_told =
            self.has_ended.load(Relaxed) || laggard_files::exists(&self.trace.join(ENDED_FILE));
        if is_told || pace.is_over(known.running == 0, has_all) {
            return Step::Last;
        }
        let stands = known.seen.stands();
        match pace.next(stands) {
            // Who waits for whom is told of a program that hangs, however long that takes.
            Step::Analyze if self.is_beyond(share) && !stands => Step::Open,
            step => step,
        }
    }

    /// Whether the trace is analysed no more until the program has ended.
    fn is_beyond(&self, share: &Share) -> bool {
        share.events().bytes() > self.most_bytes
    }

    /// Opens what is there, and makes a report of it, or keeps the one before. Collective.
    fn open(&mut self, job: &dyn Job, before: Option<&Share>, analyzes: bool) -> Result<Share> {
        for _ in 0..AGAIN {
            signals::take_lost();
            let events = self.growing.open(job, &self.trace)?;
            let report = match analyzes {
                true => (self.analyze)(job, &self.trace, Extent::SoFar)?.map(Arc::new),
                false => before.and_then(Share::report_kept),
            };
            let index = comm::agree(job, self.growing.index(job, &events))?;
            let share = Share::growing(events, index, report);
            // A writer may just have cut its file to its last size.
            let mut lost = [u64::from(signals::take_lost())];
            job.reduce_max(&mut lost);
            if lost == [0] {
                return Ok(share);
            }
            self.growing.forget();
        }
        bail!("files are cut off while they are read")
    }

    /// The last share. Collective.
    fn end(&self, job: &dyn Job, shares: &Shares, watched: &mut Watched) -> Result<()> {
        signals::take_lost();
        let events = Events::open_share(job, &self.trace)?;
        let report = (self.analyze)(job, &self.trace, Extent::Whole)?;
        let share = Share::new(job, events, report, (&self.trace, self.limits))?;
        let own = (0..share.events().locations()).map(|at| share.events().place(at));
        let open = own.filter(|place| !place.is_complete);
        let open = open.map(|place| (place.rank, watched.ended(&place)));
        let open = comm::union(job, open.collect())?.into_iter().collect();
        add(job, shares, share);
        let (number, share) = shares.newest();
        if job.agent() == 0 {
            shares.tell(News {
                number,
                runs: false,
                end_s: seconds(share.events()),
                locations: share.locations(),
                text: format!("The program has ended.{}", killed(&open)),
                hangs: hangs(&share),
                ..News::default()
            });
        }
        Ok(())
    }
}

/// Until when the run is known, s.
fn seconds(events: &Events) -> f64 {
    events.end_ns() as f64 / 1e9
}

/// From now on this share is the newest. The head, which asks, has it after all others. Collective.
fn add(job: &dyn Job, shares: &Shares, share: Share) {
    let mut told = [0];
    if job.agent() == 0 {
        job.reduce_max(&mut told);
        shares.add(share);
    } else {
        shares.add(share);
        job.reduce_max(&mut told);
    }
}

/// Ranks that wait for each other, of the report.
fn hangs(share: &Share) -> Vec<String> {
    let Ok(report) = share.report() else {
        return Vec::new();
    };
    let rows = report.anomalies.iter().filter(|row| row.id == "deadlock");
    let mut rows: Vec<String> = rows.map(|row| row.detail.clone()).collect();
    let others = rows.len().saturating_sub(now::ROWS);
    rows.truncate(now::ROWS);
    rows.extend((others > 0).then(|| format!("{others} more")));
    rows
}

/// What this agent knows of its own locations.
fn known(share: &Share, watched: &mut Watched) -> Known {
    let mut known = Known {
        seen: watched.looks.look(share),
        ..Known::default()
    };
    let here = comm::host();
    for at in 0..share.events().locations() {
        let place = share.events().place(at);
        let steered = share.events().steered(at);
        if steered != 0 {
            follows(&mut known.steered, place.rank, steered);
        }
        if place.is_complete {
            continue;
        }
        if place.host == here && comm::is_gone(place.pid) {
            known.dead.insert(place.rank, watched.ended(&place));
            continue;
        }
        known.running += 1;
        if place.host == here {
            watched.endings.watch(place.pid);
        }
    }
    known
}

impl Watched {
    /// When and where a process was seen to end.
    fn ended(&self, place: &Place) -> Option<(Duration, String)> {
        // Others may have processes of the same number.
        let ended = self
            .endings
            .ended(place.pid)
            .filter(|_| place.host == comm::host())?;
        Some((ended, place.host.to_owned()))
    }
}

impl Known {
    fn add(&mut self, other: Known) {
        self.seen.add(other.seen);
        self.dead.extend(other.dead);
        self.running += other.running;
        self.steered.extend(other.steered);
    }

    /// How the program goes on.
    fn text(&self, step: Step, gone: &Dead) -> String {
        let running = plural(self.running, "thread");
        match step {
            Step::Last => "The program has ended: the last analysis is under way.".to_owned(),
            _ if gone.keys().eq(self.dead.keys()) => {
                format!("The program runs: {running}.{}", killed(&self.dead))
            }
            _ => format!("The program runs: {running}."),
        }
    }
}

/// Says which ranks did not end by themselves.
fn killed(dead: &Dead) -> String {
    if dead.is_empty() {
        return String::new();
    }
    let ranks = laggard_report::list_of_ranks(dead.keys().copied(), now::ROWS);
    let first = first(dead).map(|rank| format!("; rank {rank} was the first"));
    let first = first.unwrap_or_default();
    format!(" Killed, or ended before its recording did: {ranks}{first}.")
}

/// Who ended before all others: these are ended by what started the program, as a rule.
fn first(dead: &Dead) -> Option<u32> {
    let all: Option<Vec<_>> = dead
        .iter()
        .map(|(rank, ended)| Some((ended.as_ref()?, rank)))
        .collect();
    let all = all?;
    let ((ended, host), rank) = all.iter().min()?;
    let is_later = |(other, at): &(Duration, String)| match at == host {
        true => other > ended,
        false => *other > *ended + CLOCKS,
    };
    let others = all.iter().filter(|(_, other)| other != rank);
    let mut others = others.map(|(other, _)| is_later(other)).peekable();
    (others.peek().is_some() && others.all(|is_later| is_later)).then_some(**rank)
}

/// The longest of what all agents took: none of them uses more than its part of a core. Collective.
fn longest(job: &dyn Job, own: Duration) -> Duration {
    let mut took = [own.as_nanos() as u64];
    job.reduce_max(&mut took);
    Duration::from_nanos(took[0])
}

/// Time of the calling thread on its processor.
fn worked() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Makes the calling thread give way to all others of this machine.
pub fn nice() {
    /// The least priority.
    const LEAST: i32 = 19;
    // SAFETY: plain system call, about this thread. A refusal changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST) };
}

#[cfg(test)]
mod tests {
    use laggard_overlay::link;

    use super::*;

    #[test]
    fn who_ended_first_is_told_if_that_is_known() {
        let told = |all: &[(u64, &str)]| {
            let ended =
                |&(ms, host): &(u64, &str)| Some((Duration::from_millis(ms), host.to_owned()));
            first(&(0..).zip(all.iter().map(ended)).collect())
        };
        assert_eq!(told(&[(9, "a"), (7, "a"), (9, "a")]), Some(1));
        // At the same time; of one alone there is nothing to say.
        assert_eq!(told(&[(9, "a"), (7, "a"), (7, "a")]), None);
        assert_eq!(told(&[(9, "a")]), None);
        // Clocks of two hosts.
        assert_eq!(told(&[(9, "a"), (7, "b")]), None);
        assert_eq!(told(&[(90, "a"), (7, "b")]), Some(1));
        let mut dead = Dead::from([(0, Some((Duration::ZERO, "a".to_owned())))]);
        dead.insert(1, None);
        assert_eq!(first(&dead), None);
    }

    /// The head may have the least to do.
    #[test]
    fn the_pace_is_that_of_the_slowest_agent() {
        let times = [5, 40, 20].map(Duration::from_millis);
        let of = |job: &dyn Job| longest(job, times[job.agent()]);
        assert_eq!(LinkJob::run_all(link::threads(3), of), [times[1]; 3]);
    }
}
