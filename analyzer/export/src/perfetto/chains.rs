//! From a wait back to what started it: the late party's own waits since the two last met, those of
//! the party that this one waited for, and so on, until somebody worked longer than it waited.

use std::cmp::Reverse;

use laggard_engine::events::{Events, Member, NONE, Party};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::super::roots::{Roots, Stretch};
use super::super::selection::{Drawn, Selection};

/// Most parties in a chain.
const MOST_STEPS: usize = 1 << 10;
/// Most times that a chain which leads back to the rank that waits is followed anew.
const MOST_RETURNS: usize = 16;
/// Most waits, collectives and stretches of a location that are looked through at each step.
const MOST: usize = 64;

/// A location that was waited for, and when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// When, ns.
    pub time: i64,
    /// For how long it was waited, ns.
    pub share: i64,
    /// Position of the location; [`NONE`] if it has no trace.
    pub late: u32,
}

impl From<&Party> for Came {
    fn from(party: &Party) -> Came {
        Came {
            time: party.time,
            share: party.share,
            late: party.location,
        }
    }
}

/// A stretch of a root cause, with the flows that begin in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub stretch: Stretch,
    pub flows: Vec<u64>,
}

/// The drawn stretches of root causes, by location.
pub fn causes(
    events: &Events,
    roots: &Roots,
    selection: &Selection,
    drawn: &[Drawn],
) -> Vec<Vec<Cause>> {
    let all = drawn.par_iter().enumerate().map(|(at, drawn)| {
        let mut causes = Vec::new();
        if drawn.count > 0 && roots.has_rank(events.place(at).rank) {
            roots.stretches(events, at, |stretch| {
                if selection.has_time(stretch.1, stretch.2) {
                    let flows = Vec::new();
                    causes.push(Cause { stretch, flows });
                }
            });
        }
        causes
    });
    all.collect()
}

/// Where a chain ends.
enum End {
    /// At a stretch of a root cause: its location, and its position there.
    Root(usize, usize),
    /// At the rank that waits itself. The late party learned of it at this moment, ns.
    Back(i64),
    Nobody,
}

/// Who waited for whom, and who met whom, by location.
pub struct Chains {
    came: Vec<Vec<Came>>,
    /// Leaves of collectives that all members waited in, ns, with their groups.
    met: Vec<Vec<(i64, u32)>>,
    /// Groups, and locations that took part in such a collective.
    members: FxHashSet<(u32, u32)>,
}

impl Chains {
    /// Nobody waited.
    pub fn new(locations: usize) -> Chains {
        Chains {
            came: vec![Vec::new(); locations],
            met: vec![Vec::new(); locations],
            members: FxHashSet::default(),
        }
    }

    /// Adds a late party of a wait of `location`.
    pub fn wait(&mut self, location: u32, party: &Party) {
        self.came[location as usize].push(party.into());
    }

    /// Adds a member of a collective.
    pub fn meet(&mut self, member: &Member) {
        if let Some(done) = member.done.filter(|_| member.waits && member.is_awaited) {
            self.met[member.location as usize].push((done.leave, member.group));
            self.members.insert((member.group, member.location));
        }
    }

    /// Everything is there.
    pub fn sort(&mut self) {
        let of_locations = self.came.par_iter_mut();
        of_locations.for_each(|came| came.sort_unstable_by_key(|one| (one.time, one.late)));
        self.met.par_iter_mut().for_each(|met| met.sort_unstable());
    }

    /// The stretch of a root cause that started a wait of `waiting`: its location, and its position
    /// in `causes`, where those of each location are in the order of time.
    pub fn root(&self, causes: &[Vec<Cause>], waiting: u32, came: Came) -> Option<(usize, usize)> {
        let mut since = i64::MIN;
        for _ in 0..MOST_RETURNS {
            match self.follow(causes, (waiting, came), since) {
                End::Root(location, at) => return Some((location, at)),
                // Nobody waits for itself: what both did before that is no difference.
                End::Back(met) => since = met,
                End::Nobody => return None,
            }
        }
        None
    }

    /// Follows a wait back. What the late party did before `since` is not looked at.
    fn follow(&self, causes: &[Vec<Cause>], (victim, first): (u32, Came), since: i64) -> End {
        let (mut waiting, mut came, mut least) = (victim, first, since);
        let mut met_by = None;
        for _ in 0..MOST_STEPS {
            let (late, until) = (came.late, came.time);
            match met_by {
                Some(met) if late == victim => return End::Back(met),
                _ if late == NONE => return End::Nobody,
                _ => {}
            }
            let since = self.met(waiting, late, until).max(least);
            let own = self.longest_wait(late, since, until);
            let waited = own.map_or(0, |own| within(own.begin(), own.time, since, until));
            let worked = longest(&causes[late as usize], since, until, own);
            match (worked, own) {
                (Some((at, time)), _) if time >= waited => return End::Root(late as usize, at),
                (_, Some(own)) => {
                    met_by.get_or_insert(own.time);
                    (waiting, came, least) = (late, own, i64::MIN);
                }
                (_, None) => return End::Nobody,
            }
        }
        End::Nobody
    }

    /// The longest wait of a location between two moments, of equal ones the last.
    fn longest_wait(&self, location: u32, since: i64, until: i64) -> Option<Came> {
        let waits = last(&self.came[location as usize], until, |one| one.time);
        let waits = waits.take_while(|one| one.time > since);
        let longest = waits.max_by_key(|one| {
            let length = within(one.begin(), one.time, since, until);
            (length, one.time)
        });
        longest.copied()
    }

    /// When two locations last met before a moment: one waited for the other, or both took part in
    /// a collective in which all wait for all. `i64::MIN` if that is not known.
    fn met(&self, a: u32, b: u32, before: i64) -> i64 {
        let waited = |waiting: u32, late: u32| {
            let waits = last(&self.came[waiting as usize], before - 1, |one| one.time);
            let mut of_late = waits.filter(|one| one.late == late);
            of_late.next().map(|one| one.time)
        };
        let mut both = last(&self.met[a as usize], before, |met| met.0);
        let both = both.find(|met| self.members.contains(&(met.1, b)));
        let all = [waited(a, b), waited(b, a), both.map(|met| met.0)];
        all.into_iter().flatten().max().unwrap_or(i64::MIN)
    }
}

impl Came {
    /// When the wait began, if all of it was for this party, ns.
    fn begin(&self) -> i64 {
        self.time.saturating_sub(self.share)
    }
}

/// The entries until a moment, the last one first; not all, if they are many.
fn last<T>(all: &[T], until: i64, time: impl Fn(&T) -> i64) -> impl Iterator<Item = &T> {
    let end = all.partition_point(|one| time(one) <= until);
    all[..end].iter().rev().take(MOST)
}

/// How much of an interval lies between two moments, ns.
fn within(begin: i64, end: i64, since: i64, until: i64) -> i64 {
    end.min(until).saturating_sub(begin.max(since)).max(0)
}

/// The longest of some stretches between two moments, and its length without the wait in it, ns; of
/// equal ones the first.
fn longest(causes: &[Cause], since: i64, until: i64, wait: Option<Came>) -> Option<(usize, i64)> {
    let end = causes.partition_point(|cause| cause.stretch.1 < until);
    let lengths = (0..end).rev().take(MOST).map(|at| {
        let (_, begin, end) = causes[at].stretch;
        let wait = wait.filter(|wait| begin <= wait.begin() && wait.time <= end);
        let waited = wait.map_or(0, |wait| wait.share);
        (at, within(begin, end, since, until) - waited)
    });
    let lengths = lengths.filter(|(_, length)| *length > 0);
    lengths.max_by_key(|&(at, length)| (length, Reverse(at)))
}
