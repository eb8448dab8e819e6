//! What is known of each location without reading its calls: sums of time at moments all along the run,
//! where reading can begin, and the longest waits.
//!
//! Between two moments sums grow evenly. So the time of any stretch is a difference of two look-ups, and
//! the parts of a stretch always add up to it; single calls are read from the trace.

mod build;
mod file;
mod packed;
mod run;

use laggard_engine::events::{Mark, TimeClass};
use laggard_trace::{Change, Detail};

pub use build::{Growing, build, counts, is_told, overlap, scaled};
pub use file::kept;
pub use packed::{pack, unpack};
pub use run::Run;

/// Calls between two checkpoints, as a rule.
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

/// The same of an operation, whatever it completes.
pub fn kind_of(operation: u16) -> usize {
    kind(TimeClass::of(operation))
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
    /// Between two of them there are [`CALLS`] times two to this power.
    pub coarser: u32,
    /// Where reading can begin, ascending.
    pub marks: Vec<MarkAt>,
    /// Parallel regions of OpenMP around marks; a region comes after those around it.
    pub regions: Vec<RegionAt>,
    /// The longest waits.
    pub waits: Waits,
    /// What all waits lost, by signature of the call that waited, ascending.
    pub lost: Vec<LostBy>,
    /// The places where looks were in vain, ascending.
    pub looks: Vec<LooksAt>,
    /// The first changes of what is recorded, ascending.
    pub changes: Vec<ChangeAt>,
}

/// Sums of a location from start-up to a moment, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The moment: the leave of a call.
    pub time: i64,
    /// Time in calls, by kind.
    pub inside: [i64; KINDS],
    /// Time lost by waiting.
    pub waiting: i64,
}

/// A moment between two checkpoints, and how far it is from one to the other.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'i> {
    before: &'i Checkpoint,
    next: &'i Checkpoint,
    share: f64,
}

impl Moment<'_> {
    /// Time in calls of a kind since start-up, ns. Exact at checkpoints.
    pub fn inside(&self, kind: usize) -> i64 {
        self.part(self.before.inside[kind], self.next.inside[kind])
    }

    /// Time lost by waiting since start-up, ns.
    pub fn waiting(&self) -> i64 {
        self.part(self.before.waiting, self.next.waiting)
    }

    fn part(&self, from: i64, to: i64) -> i64 {
        from + ((to - from) as f64 * self.share) as i64
    }
}

/// A change of what is recorded, that the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeAt {
    /// When, ns.
    pub time: i64,
    /// What, see [`Change::of`](laggard_trace::Change::of).
    pub parameter: i64,
}

/// A [`Mark`], and when its first call was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkAt {
    /// Enter of the first call, ns.
    pub enter: i64,
    /// Number of this call.
    pub number: u64,
    /// Its chunk.
    pub chunk: u64,
    /// Number of the region around it among [`LocationIndex::regions`], from 1; 0 = none.
    pub region: u32,
    /// The shortest look before it, ns; 0 = none.
    pub shortest: i64,
}

/// A parallel region of OpenMP, as a thread begins it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegionAt {
    /// Number of the region around it, from 1; 0 = none.
    pub around: u32,
    /// Signature of the call that begins it.
    pub signature: u32,
}

/// What calls of one signature lost by waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostBy {
    /// Their signature.
    pub signature: u32,
    /// In the whole run, ns.
    pub lost: i64,
    /// Time between them that counts as looking, ns.
    pub between: i64,
}

/// Looks at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LooksAt {
    /// Number of the place, see [`LookAt`](laggard_engine::events::LookAt).
    pub place: u32,
    /// Enter of the last look that found something after others had not, ns; `i64::MIN` if there is none.
    pub found: i64,
}

/// Wait states, ascending by when they began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    all: Vec<KeptWait>,
    /// When the last of those up to each one was over, ns.
    over: Vec<i64>,
    /// Time lost in all of them, ns.
    lost: i64,
}

impl Waits {
    /// These waits, which ascend.
    pub fn new(all: Vec<KeptWait>) -> Waits {
        let mut last = i64::MIN;
        let over = all.iter().map(|wait| {
            last = last.max(wait.until);
            last
        });
        Waits {
            over: over.collect(),
            lost: all.iter().map(|wait| wait.lost).sum(),
            all,
        }
    }

    /// All of them.
    pub fn all(&self) -> &[KeptWait] {
        &self.all
    }

    /// Those that lie at least partly in a stretch.
    fn within(&self, (from, until): (i64, i64)) -> impl Iterator<Item = &KeptWait> {
        let first = self.over.partition_point(|&over| over <= from);
        let end = self.all.partition_point(|wait| wait.since < until);
        let waits = self.all[first.min(end)..end].iter();
        waits.filter(move |wait| wait.until > from)
    }
}

/// A wait state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptWait {
    /// When the wait began, ns.
    pub since: i64,
    /// How long it lasted, ns.
    pub lost: i64,
    /// When it was over, ns. Of a wait in looks, there may be work before that.
    pub until: i64,
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
    /// Signature of the call that waited.
    pub signature: u32,
    /// Communicator or window in which it waited; 0 if that is the call's.
    pub group: u64,
}

impl KeptWait {
    /// How much of it was lost in a stretch, ns.
    pub fn within(&self, stretch: (i64, i64)) -> i64 {
        let part = overlap((self.since, self.until), stretch);
        scaled(self.lost, part, self.until - self.since)
    }

    /// Gives the parts between `borders` that it is in, and how much of it, ns.
    pub fn spread(&self, borders: &[i64], mut take: impl FnMut(usize, i64)) {
        let up_to = |time: i64| scaled(self.lost, time - self.since, self.until - self.since);
        within(borders, (self.since, self.until), |part, time| {
            let begin = self.since.max(borders[part]);
            take(part, up_to(begin + time) - up_to(begin));
        });
    }

    /// Whether there may be work in it.
    pub fn is_spread(&self) -> bool {
        self.lost < self.until - self.since
    }
}

impl Checkpoint {
    const NONE: Checkpoint = Checkpoint {
        time: 0,
        inside: [0; KINDS],
        waiting: 0,
    };
}

impl LocationIndex {
    /// What is known at ascending moments.
    pub fn at<'i>(&'i self, moments: &'i [i64]) -> impl Iterator<Item = Moment<'i>> + 'i {
        let mut after = 0;
        // Between the checkpoints around the last moment: these, until when, and the part of their
        // difference that a ns is.
        let first = self.checkpoints.first();
        let begin = first.map_or(i64::MAX, |first| first.time);
        let none = &Checkpoint::NONE;
        let mut around = (none, none, begin, 0.0);
        moments.iter().map(move |&time| {
            if time >= around.2 {
                after += few_before(&self.checkpoints[after..], |one| one.time <= time);
                let before = &self.checkpoints[after - 1];
                around = match self.checkpoints.get(after) {
                    Some(next) => {
                        let whole = (next.time - before.time) as f64;
                        (before, next, next.time, 1.0 / whole)
                    }
                    None => (before, before, i64::MAX, 0.0),
                };
            }
            let (before, next, _, part) = around;
            let share = (time - before.time) as f64 * part;
            Moment {
                before,
                next,
                share,
            }
        })
    }

    /// Time of a stretch between start-up and shut-down, ns.
    pub fn covered(&self, (from, until): (i64, i64)) -> i64 {
        let (begin, end) = self.measured;
        (until.min(end) - from.max(begin)).max(0)
    }

    /// Calls between two checkpoints.
    pub fn between(&self) -> u64 {
        CALLS << self.coarser
    }

    /// At most so many calls are in a stretch.
    pub fn calls(&self, (from, until): (i64, i64)) -> u64 {
        let first = self.checkpoints.partition_point(|one| one.time < from);
        let last = self.checkpoints.partition_point(|one| one.time < until);
        (last - first + 1) as u64 * self.between()
    }

    /// About so many calls are read for a stretch: reading begins at a mark.
    pub fn reads(&self, (from, until): (i64, i64)) -> u64 {
        let last = self.checkpoints.partition_point(|one| one.time < until) as u64;
        let read = (last * self.between()).saturating_sub(self.mark(from).number);
        read.max(self.calls((from, until)))
    }

    /// Where to begin to read all calls that end after a moment.
    pub fn mark(&self, time: i64) -> Mark {
        let found = self.mark_at(time);
        Mark {
            chunk: found.chunk as u32,
            number: found.number,
        }
    }

    /// Signatures of the calls that began the parallel regions around that mark, the innermost one last.
    pub fn within(&self, time: i64) -> Vec<u32> {
        let mut signatures = Vec::new();
        let mut next = self.mark_at(time).region;
        while let Some(at) = next.checked_sub(1)
            && let Some(region) = self.regions.get(at as usize)
        {
            signatures.push(region.signature);
            // Whatever a file says, this ends.
            next = region.around.min(at);
        }
        signatures.reverse();
        signatures
    }

    /// The shortest look before that mark, ns.
    pub fn shortest(&self, time: i64) -> Option<i64> {
        Some(self.mark_at(time).shortest).filter(|&shortest| shortest > 0)
    }

    /// When looks at a place found something for the last time, ns; `i64::MIN` if they never did.
    pub fn found(&self, place: u32) -> i64 {
        let known = self.looks.binary_search_by_key(&place, |at| at.place);
        known.map_or(i64::MIN, |at| self.looks[at].found)
    }

    fn mark_at(&self, time: i64) -> MarkAt {
        let after = self.marks.partition_point(|one| one.enter <= time);
        // What looks are is known from those before.
        let before = if self.looks.is_empty() { 1 } else { 2 };
        let found = self.marks.get(after.saturating_sub(before));
        found.copied().unwrap_or_default()
    }

    /// Whether nothing that is measured is outside of a stretch.
    pub fn is_all_in(&self, (from, until): (i64, i64)) -> bool {
        from <= self.measured.0 && until >= self.measured.1
    }

    /// How much of a stretch was recorded as less than calls, since the user asked for that while the program ran, ns.
    pub fn left_out(&self, stretch: (i64, i64)) -> i64 {
        let (mut since, mut sum) = (None, 0);
        for change in &self.changes {
            let Some(Change::Detail(detail)) = Change::of(change.parameter) else {
                continue;
            };
            if matches!(detail, Some(Detail::Paused | Detail::Profile)) {
                since.get_or_insert(change.time);
            } else if let Some(since) = since.take() {
                sum += overlap((since, change.time), stretch);
            }
        }
        let last = since.map_or(0, |since| overlap((since, self.measured.1), stretch));
        sum + last
    }

    /// Whether all waits are kept.
    pub fn has_all_waits(&self) -> bool {
        let last = self.checkpoints.last();
        last.is_none_or(|last| last.waiting == self.waits.lost)
    }

    /// Kept waits that lie at least partly in a stretch.
    pub fn waits(&self, stretch: (i64, i64)) -> impl Iterator<Item = &KeptWait> {
        self.waits.within(stretch)
    }
}

/// Gives the parts that a stretch is in, and how much of it is there.
pub fn within(borders: &[i64], (from, until): (i64, i64), mut take: impl FnMut(usize, i64)) {
    let first = few_before(borders, |&border| border <= from);
    for part in first.saturating_sub(1)..borders.len().saturating_sub(1) {
        if borders[part] >= until {
            return;
        }
        take(
            part,
            overlap((from, until), (borders[part], borders[part + 1])),
        );
    }
}

/// Moves what there is no room for to where there is: to what follows, else to what is before. Returns what there is
/// no room for at all.
pub fn fit(amounts: &mut [i64], room: impl Fn(usize) -> i64) -> i64 {
    let mut more = 0;
    for (at, amount) in amounts.iter_mut().enumerate() {
        let all = *amount + more;
        *amount = all.min(room(at).max(0));
        more = all - *amount;
    }
    for (at, amount) in amounts.iter_mut().enumerate().rev() {
        let moved = more.min(room(at) - *amount).max(0);
        *amount += moved;
        more -= moved;
    }
    more
}

/// How many of `sorted` come first, where these are few as a rule.
pub fn few_before<T>(sorted: &[T], comes_first: impl Fn(&T) -> bool) -> usize {
    let mut most = 1;
    while sorted.get(most).is_some_and(&comes_first) {
        most *= 2;
    }
    sorted[..most.min(sorted.len())].partition_point(comes_first)
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
        let sums = |moments: &[i64]| -> Vec<[i64; 3]> {
            let moments = index.at(moments);
            moments
                .map(|at| [at.inside(0), at.inside(2), at.waiting()])
                .collect()
        };
        assert_eq!(sums(&[5, 43, 1000]), [[0, 0, 0], [11, 7, 5], [40, 7, 23]]);
        let moments: Vec<i64> = (0..100).collect();
        let all = sums(&moments);
        assert!(all.is_sorted());
        // However many moments lie before it.
        for at in 0..all.len() {
            assert_eq!(sums(&moments[at..])[0], all[at]);
        }
        assert_eq!(few_before(&[1, 2, 3, 4, 5], |&one| one < 4), 3);
        assert_eq!(few_before(&[] as &[i32], |_| true), 0);
        assert_eq!(index.covered((0, 50)), 40);
        assert_eq!(index.covered((90, 200)), 5);
    }

    #[test]
    fn what_does_not_fit_goes_where_there_is_room() {
        let fits = |amounts: &[i64], room: &[i64]| {
            let mut amounts = amounts.to_vec();
            let more = fit(&mut amounts, |at| room[at]);
            (amounts, more)
        };
        assert_eq!(fits(&[5, 0, 3], &[2, 9, 3]), (vec![2, 3, 3], 0));
        assert_eq!(fits(&[0, 1, 7], &[1, 4, 2]), (vec![1, 4, 2], 1));
        assert_eq!(fits(&[4, 4], &[-3, 4]), (vec![0, 4], 4));
        assert_eq!(fits(&[], &[]), (vec![], 0));
    }

    #[test]
    fn a_stretch_has_the_waits_that_reach_into_it() {
        let waits = [(0, 100), (10, 5), (20, 5), (110, 5), (120, 50)];
        let waits = Waits::new(
            waits
                .map(|(since, lost)| KeptWait {
                    since,
                    lost,
                    until: since + lost,
                    ..KeptWait::default()
                })
                .to_vec(),
        );
        for from in 0..200 {
            for until in from + 1..200 {
                let is_in = |wait: &&KeptWait| wait.since < until && wait.since + wait.lost > from;
                assert!(
                    waits
                        .within((from, until))
                        .eq(waits.all().iter().filter(is_in))
                );
            }
        }
    }
}
