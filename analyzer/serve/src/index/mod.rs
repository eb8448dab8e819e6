//! What is known of each location without reading its calls: sums of time at moments all along the run,
//! where reading can begin, and the longest waits.
//!
//! Between two moments sums grow evenly. So the time of any stretch is a difference of two look-ups, and
//! the parts of a stretch always add up to it; single calls are read from the trace.

mod build;
mod file;

use laggard_engine::events::{Mark, TimeClass};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use build::{Swept, build, counts, overlap, scaled};
pub use file::kept;

/// Calls between two checkpoints.
pub const CALLS: u64 = 256;
/// Kinds of time in calls that are told apart; see [`kind`].
pub const KINDS: usize = 3;

/// The kind of time of a class of calls: moving data, meeting, or files.
pub fn kind(class: TimeClass) -> usize {
    match class {
        TimeClass::Communication | TimeClass::Setup => 0,
        TimeClass::Synchronization => 1,
        TimeClass::Io => 2,
    }
}

/// The index of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// By location.
    pub locations: Vec<LocationIndex>,
}

/// The index of a location. Times are ns since the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocationIndex {
    /// Between start-up and shut-down.
    pub measured: (i64, i64),
    /// Sums, ascending in time.
    pub checkpoints: Vec<Checkpoint>,
    /// Where reading can begin, ascending.
    pub marks: Vec<MarkAt>,
    /// The longest waits, ascending by when they began.
    pub waits: Vec<KeptWait>,
    /// The first changes of what is recorded, ascending.
    pub changes: Vec<ChangeAt>,
}

/// Sums of a location from start-up to a moment, ns.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Checkpoint {
    /// The moment: the leave of a call.
    pub time: i64,
    /// Time in calls, by kind.
    pub inside: [i64; KINDS],
    /// Time lost by waiting.
    pub waiting: i64,
}

/// A change of what is recorded, that the user asked for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ChangeAt {
    /// When, ns.
    pub time: i64,
    /// What, see [`Change::of`](laggard_trace::Change::of).
    pub parameter: i64,
}

/// A [`Mark`], and when its first call was entered.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MarkAt {
    /// Enter of the first call, ns.
    pub enter: i64,
    /// Number of this call.
    pub number: u64,
    /// Its chunk.
    pub chunk: u64,
}

/// A wait state.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct KeptWait {
    /// When the wait began, ns.
    pub since: i64,
    /// How long it lasted, ns.
    pub lost: i64,
    /// When the call that waited was entered, ns.
    pub enter: i64,
    /// When the late call was entered, ns; `i64::MIN` if there is none.
    pub late_enter: i64,
    /// Position of the late rank's location; `u32::MAX` if it has no trace.
    pub late_location: u32,
    /// Rank that came late; `u32::MAX` if nobody did.
    pub late_rank: u32,
    /// Number of the pattern.
    pub pattern: u32,
    /// Number of the late call in the table of calls.
    pub late_call: u32,
}

impl LocationIndex {
    /// Sums from start-up to a moment, ns: by kind, and waiting. Exact at checkpoints.
    pub fn until(&self, time: i64) -> ([i64; KINDS], i64) {
        let after = self.checkpoints.partition_point(|one| one.time <= time);
        let Some(before) = after.checked_sub(1) else {
            return ([0; KINDS], 0);
        };
        let a = &self.checkpoints[before];
        let Some(b) = self.checkpoints.get(after) else {
            return (a.inside, a.waiting);
        };
        let part = |from: i64, to: i64| {
            let grown = i128::from(to - from) * i128::from(time - a.time);
            from + (grown / i128::from(b.time - a.time)) as i64
        };
        let mut inside = a.inside;
        for (sum, next) in inside.iter_mut().zip(b.inside) {
            *sum = part(*sum, next);
        }
        (inside, part(a.waiting, b.waiting))
    }

    /// Time of a stretch between start-up and shut-down, ns.
    pub fn covered(&self, (from, until): (i64, i64)) -> i64 {
        let (begin, end) = self.measured;
        (until.min(end) - from.max(begin)).max(0)
    }

    /// At most so many calls are in a stretch.
    pub fn calls(&self, (from, until): (i64, i64)) -> u64 {
        let first = self.checkpoints.partition_point(|one| one.time < from);
        let last = self.checkpoints.partition_point(|one| one.time < until);
        (last - first + 1) as u64 * CALLS
    }

    /// About so many calls are read for a stretch: reading begins at a mark.
    pub fn reads(&self, (from, until): (i64, i64)) -> u64 {
        let last = self.checkpoints.partition_point(|one| one.time < until) as u64;
        let read = (last * CALLS).saturating_sub(self.mark(from).number);
        read.max(self.calls((from, until)))
    }

    /// Where to begin to read all calls that end after a moment.
    pub fn mark(&self, time: i64) -> Mark {
        let after = self.marks.partition_point(|one| one.enter <= time);
        let found = self.marks.get(after.saturating_sub(1));
        found.map_or(Mark::default(), |found| Mark {
            chunk: found.chunk as u32,
            number: found.number,
        })
    }

    /// Whether all waits are kept.
    pub fn has_all_waits(&self) -> bool {
        let kept: i64 = self.waits.iter().map(|wait| wait.lost).sum();
        self.checkpoints
            .last()
            .is_none_or(|last| last.waiting == kept)
    }

    /// Kept waits that lie at least partly in a stretch.
    pub fn waits(&self, (from, until): (i64, i64)) -> impl Iterator<Item = &KeptWait> {
        let end = self.waits.partition_point(|wait| wait.since < until);
        let waits = self.waits[..end].iter();
        waits.filter(move |wait| wait.since.saturating_add(wait.lost) > from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_stretch_add_up() {
        let checkpoint = |time, inside, waiting| Checkpoint {
            time,
            inside: [inside, 0, 7],
            waiting,
        };
        let index = LocationIndex {
            measured: (10, 95),
            checkpoints: vec![
                checkpoint(10, 0, 0),
                checkpoint(43, 11, 5),
                checkpoint(90, 40, 23),
            ],
            ..LocationIndex::default()
        };
        assert_eq!(index.until(5), ([0; KINDS], 0));
        assert_eq!(index.until(43), ([11, 0, 7], 5));
        assert_eq!(index.until(1000), ([40, 0, 7], 23));
        let mut before = 0;
        for time in 0..100 {
            let now = index.until(time).0[0];
            assert!(now >= before);
            before = now;
        }
        assert_eq!(index.covered((0, 50)), 40);
        assert_eq!(index.covered((90, 200)), 5);
    }
}
