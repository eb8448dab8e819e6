//! Steering a recording that is under way: what a user wants of some ranks, written into the control block
//! of the trace directory.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use laggard_report::list_of_ranks;
use laggard_trace::{CONTROL_FILE, Control, DEEPEST, Detail, MOST_HZ, MOST_LEFT_OUT, Wish, calls};
use serde::{Deserialize, Serialize};

/// Most ranges of ranks in a text.
const RANGES: usize = 20;

/// What a user wants. What is not said stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Steer {
    /// These ranks, first and last of each range; `None`: all.
    pub ranks: Option<Vec<(u32, u32)>>,
    /// All as it was started, before anything else of this.
    pub as_started: bool,
    /// What is kept of calls.
    pub detail: Option<Kept>,
    /// Most frames of a call path.
    pub depth: Option<u8>,
    /// Samples per second.
    pub sample_hz: Option<u16>,
    /// Calls to leave out, by name, or by the begin of their names and `*`.
    pub leave_out: Vec<String>,
    /// Calls that are not left out any more.
    pub take_in: Vec<String>,
}

/// What is kept of calls, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Every call.
    Trace,
    /// The profile.
    Profile,
    /// Nothing, for a while.
    Paused,
}

impl Steer {
    /// Writes it. Returns the ranks, and the numbers of their wishes.
    ///
    /// # Errors
    /// It makes no sense; there is no such rank; the run cannot be steered from here.
    pub fn apply(&self, directory: &Path) -> Result<Vec<(u32, u32)>> {
        let (leave_out, take_in) = (numbers(&self.leave_out)?, numbers(&self.take_in)?);
        if let Some(depth) = self.depth.filter(|depth| *depth > DEEPEST) {
            bail!("call paths have at most {DEEPEST} frames, not {depth}");
        }
        if let Some(hz) = self.sample_hz.filter(|hz| *hz > MOST_HZ) {
            bail!("at most {MOST_HZ} samples per second are taken, not {hz}");
        }
        let control = open(directory)?;
        let all = vec![(0, control.ranks.saturating_sub(1))];
        let ranges = self.ranks.as_ref().unwrap_or(&all);
        if let Some((_, last)) = ranges.iter().find(|(_, last)| *last >= control.ranks) {
            bail!("there is no rank {last}: the run has {}", control.ranks);
        }
        if let Some((first, last)) = ranges.iter().find(|(first, last)| first > last) {
            bail!("{first}-{last} are no ranks");
        }
        let mut ranges = ranges.clone();
        ranges.sort_unstable();
        let mut next = 0;
        let mut ranks: Vec<u32> = Vec::new();
        for (first, last) in ranges {
            ranks.extend(first.max(next)..=last);
            next = next.max(last + 1);
        }
        // Nothing is written if one of them cannot be.
        let mut wishes = Vec::new();
        for rank in ranks {
            let (number, before) = control.wish(rank)?;
            let mut wish = match self.as_started {
                true => Wish::default(),
                false => before.clone(),
            };
            // The program may have said something else since.
            let is_said = self.as_started || self.detail.is_some();
            wish.said = before.said != is_said;
            if let Some(kept) = self.detail {
                wish.detail = Some(match kept {
                    Kept::Trace => Detail::Trace,
                    Kept::Profile => Detail::Profile,
                    Kept::Paused => Detail::Paused,
                });
            }
            wish.depth = self.depth.or(wish.depth);
            wish.sample_hz = self.sample_hz.or(wish.sample_hz);
            wish.left_out.extend(&leave_out);
            wish.left_out.sort_unstable();
            wish.left_out.dedup();
            wish.left_out.retain(|number| !take_in.contains(number));
            if wish.left_out.len() > MOST_LEFT_OUT {
                bail!("no more than {MOST_LEFT_OUT} calls can be left out");
            }
            let is_kept = wish == before && number % 2 == 0;
            wishes.push((rank, number, (!is_kept).then_some(wish)));
        }
        let mut done = Vec::with_capacity(wishes.len());
        for (rank, number, wish) in wishes {
            let number = wish.map_or(Ok(number), |wish| control.set(rank, &wish))?;
            done.push((rank, number));
        }
        Ok(done)
    }
}

/// Opens the control block; waits for others that have it open for a moment.
fn open(directory: &Path) -> Result<Control> {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(10);
    let mut opened = Control::open(directory);
    for _ in 0..TRIES {
        let is_busy = |(_, error): &(_, Error)| error.kind() == ErrorKind::Other;
        if !opened.as_ref().is_err_and(is_busy) {
            break;
        }
        std::thread::sleep(PAUSE);
        opened = Control::open(directory);
    }
    opened.map_err(|(path, error)| {
        let path = path.display();
        match error.kind() {
            ErrorKind::NotFound => anyhow!(
                "{path}: not there, so the run cannot be steered: it was recorded by an older laggard, on \
                 machines without this directory, or with LAGGARD_MODE=off"
            ),
            _ => anyhow!("{path}: {error}"),
        }
    })
}

/// The calls with these names.
fn numbers(names: &[String]) -> Result<Vec<u16>> {
    let mut found = Vec::new();
    for name in names {
        let before = found.len();
        let is_meant = |call: &&calls::Call| match name.strip_suffix('*') {
            Some(begin) => call.name.starts_with(begin),
            None => call.name == *name,
        };
        // Waits among threads have other ways into the trace.
        let meant = calls::CALLS.iter().filter(is_meant);
        let meant = meant.filter(|call| !call.is_threads());
        found.extend(meant.map(|call| call.number));
        if found.len() == before {
            let shown: String = name.chars().take(60).collect();
            bail!(
                "no call is named {}, or it is a wait among threads: names are as in laggard dump",
                laggard_files::printable(&shown)
            );
        }
    }
    Ok(found)
}

/// Notes that a thread of a rank follows the wish with this number, by rank. What concerns the whole
/// process is done by the first thread that sees it.
pub fn follows(heard: &mut BTreeMap<u32, u32>, rank: u32, number: u32) {
    let newest = heard.entry(rank).or_default();
    *newest = number.max(*newest);
}

/// What is wanted of some ranks that want the same, and how many of them follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// These ranks.
    pub ranks: String,
    /// What is wanted of them.
    pub wish: String,
    /// Those that have not seen it yet: that have returned from no call since.
    pub unheard: String,
}

/// What is wanted of all ranks.
#[derive(Default)]
pub struct Wanted {
    /// The ranks of which something is wanted, and its number.
    wishes: Vec<(u32, u32, Wish)>,
    modified: Option<SystemTime>,
}

impl Wanted {
    /// Reads what is wanted now, if it may have changed since.
    ///
    /// # Errors
    /// There is no control block, or a foreign one; somebody steers for long.
    pub fn read(&mut self, directory: &Path) -> Result<()> {
        let modified = directory.join(CONTROL_FILE).metadata();
        let modified = modified.and_then(|told| told.modified()).ok();
        if modified.is_some() && modified == self.modified {
            return Ok(());
        }
        // One that is refused is looked at again when it has changed.
        self.modified = modified;
        let control = open(directory)?;
        let mut wishes = Vec::new();
        for rank in 0..control.ranks {
            let (number, wish) = control
                .wish(rank)
                .context("the control block cannot be read")?;
            if number != 0 {
                wishes.push((rank, number, wish));
            }
        }
        self.wishes = wishes;
        Ok(())
    }

    /// Rows of ranks that want the same; `heard`: by rank, the number that it follows.
    pub fn rows(&self, heard: &BTreeMap<u32, u32>) -> Vec<Row> {
        let mut rows: BTreeMap<String, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for (rank, number, wish) in &self.wishes {
            let row = rows.entry(wish.text()).or_default();
            row.0.push(*rank);
            if heard.get(rank) != Some(number) {
                row.1.push(*rank);
            }
        }
        let list = |ranks: Vec<u32>| match ranks.is_empty() {
            true => String::new(),
            false => list_of_ranks(ranks, RANGES),
        };
        let row = |(wish, (ranks, unheard))| Row {
            ranks: list(ranks),
            wish,
            unheard: list(unheard),
        };
        rows.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(ranks: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let (path, draft) = (
            directory.path().join(CONTROL_FILE),
            directory.path().join("d"),
        );
        laggard_trace::create_control(&path, &draft, [1; 16], ranks).unwrap();
        directory
    }

    #[test]
    fn what_is_not_said_stays() {
        let directory = block(4);
        let steer = |text: &str| {
            let steer: Steer = serde_json::from_str(text).unwrap();
            steer.apply(directory.path())
        };
        steer(r#"{"detail": "paused", "ranks": [[1, 2]]}"#).unwrap();
        let numbers = steer(r#"{"depth": 4, "leave_out": ["MPI_Iprobe", "MPI_Test*"]}"#).unwrap();
        assert_eq!(numbers, [(0, 2), (1, 4), (2, 4), (3, 2)]);
        steer(r#"{"take_in": ["MPI_Test*"]}"#).unwrap();
        steer(r#"{"as_started": true, "ranks": [[0, 0]]}"#).unwrap();
        // It is said again.
        steer(r#"{"as_started": true, "ranks": [[0, 0]]}"#).unwrap();
        let mut wanted = Wanted::default();
        wanted.read(directory.path()).unwrap();
        let rows = wanted.rows(&BTreeMap::from([(0, 6), (1, 6), (2, 4), (3, 4)]));
        let texts = rows.iter().map(|row| [&row.ranks, &row.wish, &row.unheard]);
        let texts: Vec<[&str; 3]> = texts.map(|row| row.map(String::as_str)).collect();
        assert_eq!(
            texts,
            [
                ["rank 0", "as it was started", "rank 0"],
                ["rank 3", "call paths of 4 at most, without MPI_Iprobe", ""],
                [
                    "ranks 1-2",
                    "paused, call paths of 4 at most, without MPI_Iprobe",
                    "rank 2"
                ],
            ]
        );
    }

    #[test]
    fn nonsense_changes_nothing() {
        let directory = block(2);
        for (text, why) in [
            (
                r#"{"leave_out": ["MPI_Nothing"]}"#,
                "no call is named MPI_Nothing",
            ),
            (r#"{"ranks": [[0, 2]], "depth": 1}"#, "there is no rank 2"),
            (r#"{"leave_out": ["shmem_*"]}"#, "no more than 116 calls"),
        ] {
            let steer: Steer = serde_json::from_str(text).unwrap();
            let error = steer.apply(directory.path()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(serde_json::from_str::<Steer>(r#"{"file": "/etc/passwd"}"#).is_err());
        let control = Control::open(directory.path()).unwrap();
        assert_eq!(control.wish(0).unwrap(), (0, Wish::default()));
    }
}
