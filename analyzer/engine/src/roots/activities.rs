//! What a location did: computation between two calls or in a function, or calls.

use std::ops::Range;

use laggard_trace::calls::{self, Shape};
use laggard_trace::{Beside, Event, flags};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::basics::ends::NONE;
use crate::basics::intern::{Interner, PathKey, path_key};
use crate::roots::counters::Numbers;
use crate::roots::functions::Functions;
use crate::stream::roles::Among;
use crate::stream::rows::{Row, TimeClass};
use crate::stream::thread::Thread;
use crate::wire::links::Wholes;

/// A call: its number, and its call path.
pub type Site = (u16, PathKey);

/// Kind of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Between two calls, or in a function of the program.
    Computation,
    /// In a file operation.
    Io,
    /// In any other call, without its waiting.
    Call,
    /// None of the late location: the wait lasted longer than all that it did more.
    Latency,
    /// Between two calls or in one, off the processor by itself.
    Blocked,
    /// The same, since another program or rank had it.
    Preempted,
    /// The same, in the kernel.
    Kernel,
    /// In a function of the program, as samples tell of what is computation beside. Never a cause.
    Sampled,
    /// For a late party, in a collective in which others may have waited for the same one. Never a
    /// cause.
    Waited,
    /// What counters counted in computation. Never a cause.
    Counted,
}

/// What time between calls may be beside work, in the order of what traces say of it.
pub const OFF_WORK: [Kind; 3] = [Kind::Blocked, Kind::Preempted, Kind::Kernel];

/// What a location did for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Activity {
    pub kind: Kind,
    /// The call, or the one before the stretch between two. Of computation in a function there is no call,
    /// but the call path.
    pub begin: Site,
    /// The call after the stretch; for latency, the call that waited; none for what is in a call.
    pub until: Site,
}

/// What a call may be beside work, in the order of time spent on it.
pub const INSIDE: [Kind; 3] = [Kind::Blocked, Kind::Preempted, Kind::Kernel];

impl Kind {
    /// Whether it can be a cause: it is not told beside another one.
    pub fn is_cause(self) -> bool {
        !matches!(self, Kind::Sampled | Kind::Waited | Kind::Counted)
    }
}

impl Activity {
    /// The call that came late because of it.
    pub fn late(&self) -> Site {
        match self.kind == Kind::Latency || self.until == Site::default() {
            true => self.begin,
            false => self.until,
        }
    }

    /// Whether it is between two calls and in no known function: nothing tells it from other such
    /// stretches than the calls around it, which may differ between ranks.
    pub fn is_stretch(&self) -> bool {
        match self.kind {
            Kind::Computation => !self.is_in_function(),
            Kind::Blocked | Kind::Preempted | Kind::Kernel => self.until != Site::default(),
            Kind::Io
            | Kind::Call
            | Kind::Latency
            | Kind::Sampled
            | Kind::Waited
            | Kind::Counted => false,
        }
    }

    /// Whether it is a call of start-up or shut-down.
    pub fn is_apart(&self) -> bool {
        let call = calls::call(self.begin.0).filter(|_| self.kind == Kind::Call);
        call.is_some_and(|call| call.shape.is_apart())
    }

    /// Whether it is computation in a function of the program.
    pub fn is_in_function(&self) -> bool {
        let (operation, path) = self.begin;
        self.kind == Kind::Computation && operation == 0 && path != PathKey::default()
    }

    /// Which of the [`Wholes`](crate::wire::links::Wholes) it belongs to: each is compared as one. If
    /// everything is compared `as_whole`, all that is not off work goes together.
    pub fn whole(&self, as_whole: bool) -> Option<usize> {
        match self.kind {
            Kind::Blocked => Some(1),
            Kind::Preempted => Some(2),
            Kind::Kernel => Some(3),
            Kind::Sampled | Kind::Waited | Kind::Counted => None,
            _ => (as_whole || self.is_stretch()).then_some(0),
        }
    }

    /// All stretches of a kind in no known function as one, as call paths tell them apart; any other
    /// activity is itself.
    pub fn by_call_path(&self) -> Activity {
        match self.is_stretch() {
            true => Activity {
                kind: self.kind,
                begin: Site::default(),
                until: Site::default(),
            },
            false => *self,
        }
    }

    /// Samples in a function.
    pub fn sampled(function: PathKey) -> Activity {
        Activity {
            kind: Kind::Sampled,
            begin: (0, function),
            until: Site::default(),
        }
    }

    /// Waits for a thread of a world rank.
    pub fn waited((rank, thread): (u32, u32)) -> Activity {
        Activity {
            kind: Kind::Waited,
            begin: Site::default(),
            until: (0, [rank.into(), thread.into()]),
        }
    }

    /// That a rank met the late one by itself, after their group had met.
    pub fn met_alone(rank: u32) -> Activity {
        Activity {
            kind: Kind::Waited,
            begin: Site::default(),
            until: (1, [rank.into(), 0]),
        }
    }

    /// The same of all members of a set, given by its [hash](crate::roots::members::Members::hash), or of its root with each
    /// of them.
    pub fn met_in(set: [u64; 2], is_root: bool) -> Activity {
        Activity {
            until: (2 + u16::from(is_root), set),
            ..Activity::met_alone(0)
        }
    }

    /// The same in all agents.
    pub fn key(&self) -> [u64; 2] {
        let mut bytes = [0; 40];
        let words = [self.begin.1, self.until.1].concat();
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes[32] = self.kind as u8;
        bytes[34..36].copy_from_slice(&self.begin.0.to_le_bytes());
        bytes[36..38].copy_from_slice(&self.until.0.to_le_bytes());
        let hash = xxh3_128(&bytes);
        [hash as u64, (hash >> 64) as u64]
    }
}

/// What an activity is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// With all that belongs to one of the [`Wholes`].
    InWhole(u8),
    /// With the same activity alone.
    Alone,
    /// It is never a cause.
    Never,
}

/// What the walk over the calls has to know of each.
#[derive(Clone, Copy, Debug)]
pub struct OfCall {
    /// The number of its activity.
    pub number: u32,
    /// Whether it may meet a group, or a team of threads.
    pub meets: bool,
    /// Whether it posts a request.
    pub posts: bool,
    /// By [`INSIDE`]: whether that, in such a call, is a cause of its own. Who sleeps in file operations
    /// and in waits among threads does what these are for.
    pub tells: [bool; INSIDE.len()],
    /// Whether it is an operation on a file, or looks whether something has come.
    pub stores: bool,
    pub looks: bool,
    /// See [`is_plain`].
    pub is_plain: bool,
}

/// The activities of a location, numbered.
#[derive(Clone, Default)]
pub struct Activities {
    /// Whether everything is compared as a whole.
    as_whole: bool,
    /// By number.
    pub list: Interner<Activity>,
    /// By number: see [`Compared`].
    pub compared: Vec<Compared>,
    /// Calls that look whether something has come.
    pub looks: Vec<u32>,
    /// The agent's numbers of them.
    pub shared: Vec<u32>,
    /// By signature.
    of_call: Vec<OfCall>,
    /// By signature: the last signature before it, and the number of the computation between.
    of_gap: Vec<(u32, u32)>,
    /// By a file's number of the call path: number of the computation in that function.
    of_function: FxHashMap<u32, u32>,
    /// The same of samples; `None` if the function is not known.
    of_sampled: FxHashMap<u32, Option<u32>>,
    /// Calls before stretches, with functions in which there were samples then.
    sampled_in: FxHashSet<(Site, PathKey)>,
    /// What was beside work in calls, by kind and signature; and with the numbers of the calls.
    of_inside: FxHashMap<(Kind, u32), u32>,
    around: Vec<(u32, u32)>,
    /// Those of counters.
    pub(super) counters: Numbers,
    /// Those that are another location's, which this one went on from: their numbers, and whose they are.
    inherited: Range<u32>,
    owners: Vec<usize>,
}

/// A location with more activities does not pass on what it inherited itself: threads may start each other in a long
/// chain.
const MOST_INHERITED: usize = 1024;

/// The activities of a location, for another one that goes on from it.
#[derive(Clone)]
pub struct Legacy {
    /// By number, and whose they are; `None`: they are left out.
    list: Vec<Option<(Activity, usize)>>,
    sampled_in: FxHashSet<(Site, PathKey)>,
}

/// What a call's record tells of the time before it.
#[derive(Clone, Copy, Default)]
pub struct Told<'a> {
    /// Computation: call paths, and ticks.
    pub computed: &'a [(u32, u32)],
    /// What else it was.
    pub beside: Beside,
    /// Samples: call paths, and ticks.
    pub sampled: &'a [(u32, u32)],
}

impl<'a> Told<'a> {
    /// Whether the time is computation in no known function.
    pub fn is_nothing(&self) -> bool {
        self.computed.is_empty() && self.beside.is_work()
    }

    /// By the record of a call with extension records. What is beside computation counts as such
    /// unless it is `told_apart`.
    pub fn by(event: Option<&'a Event>, told_apart: bool) -> Told<'a> {
        event.map_or_else(Told::default, |event| Told {
            computed: &event.computed,
            sampled: &event.sampled,
            beside: match told_apart {
                true => event.beside,
                false => Beside::default(),
            },
        })
    }
}

impl Activities {
    /// Before the first one. See [`Activity::whole`].
    pub fn new(as_whole: bool) -> Activities {
        Activities {
            as_whole,
            ..Activities::default()
        }
    }

    /// Those of this location, for another one.
    pub fn legacy(&self, location: usize) -> Legacy {
        let passes_on = self.list.values.len() <= MOST_INHERITED;
        let values = (0..).zip(&self.list.values);
        let list = values.map(|(number, value)| match self.owner(number) {
            None => Some((*value, location)),
            owner => owner.filter(|_| passes_on).map(|owner| (*value, owner)),
        });
        Legacy {
            list: list.collect(),
            sampled_in: self.sampled_in.clone(),
        }
    }

    /// The location whose activity this is, if that is another one.
    pub fn owner(&self, number: u32) -> Option<usize> {
        let at = self.inherited.contains(&number);
        at.then(|| self.owners[(number - self.inherited.start) as usize])
    }

    /// The numbers of those that are another location's.
    pub fn inherited(&self) -> Range<usize> {
        self.inherited.start as usize..self.inherited.end as usize
    }

    /// Goes on from another location. Returns the own numbers by that one's, [`NONE`] for those that are left out:
    /// causes have numbers beside those of the same activity here.
    pub fn inherit(&mut self, legacy: Legacy) -> Vec<u32> {
        self.sampled_in.extend(legacy.sampled_in);
        let is_cause = |activity: &Activity| activity.kind.is_cause();
        let known = legacy.list.iter().flatten();
        for (activity, _) in known.clone().filter(|of| !is_cause(&of.0)) {
            self.number(*activity);
        }
        let begin = self.list.values.len() as u32;
        for (activity, owner) in known.filter(|of| is_cause(&of.0)) {
            self.list.values.push(*activity);
            self.owners.push(*owner);
            self.note_last();
        }
        self.inherited = begin..self.list.values.len() as u32;
        let mut next = self.inherited.clone();
        let list = legacy.list.iter();
        let numbers = list.map(|of| match of {
            None => NONE,
            Some((activity, _)) if is_cause(activity) => next.next().unwrap_or(NONE),
            Some((activity, _)) => self.number(*activity),
        });
        numbers.collect()
    }

    /// The number of an activity.
    pub fn number(&mut self, activity: Activity) -> u32 {
        let number = self.list.number(activity);
        self.note_last();
        number
    }

    /// Notes what the last one is compared with, if it is new.
    #[inline]
    fn note_last(&mut self) {
        if self.compared.len() < self.list.values.len() {
            let activity = self.list.values[self.compared.len()];
            let whole = activity.whole(self.as_whole);
            self.compared.push(match whole {
                Some(whole) => Compared::InWhole(whole as u8),
                None if activity.kind.is_cause() => Compared::Alone,
                None => Compared::Never,
            });
        }
    }

    /// All of them, by number.
    pub fn all(&self) -> impl Iterator<Item = &Activity> {
        self.list.values.iter()
    }

    /// Sums of times by activity.
    #[inline]
    pub fn wholes(&self, times: &[(u32, i64)]) -> Wholes {
        let mut wholes = Wholes::default();
        // Most is of the first.
        let mut first = 0;
        for &(number, time) in times {
            match self.compared[number as usize] {
                Compared::InWhole(0) => first += time,
                Compared::InWhole(whole) => wholes[usize::from(whole)] += time,
                _ => {}
            }
        }
        wholes[0] = first;
        wholes
    }

    /// The activity of a call.
    #[inline]
    pub fn of_call(&mut self, thread: &Thread<'_>, signature: u32) -> OfCall {
        match self.known(signature) {
            Some(call) => call,
            None => self.new_call(thread, signature),
        }
    }

    /// The same of one that was asked for before.
    #[inline]
    pub fn known(&self, signature: u32) -> Option<OfCall> {
        let call = self.of_call.get(signature as usize).copied();
        call.filter(|call| call.number != NONE)
    }

    #[cold]
    fn new_call(&mut self, thread: &Thread<'_>, signature: u32) -> OfCall {
        let row = thread.rows.get(signature as usize);
        let kind = match row.map(|row| row.class) {
            Some(TimeClass::Io) => Kind::Io,
            _ => Kind::Call,
        };
        let number = self.number(Activity {
            kind,
            begin: site(thread, signature),
            until: Site::default(),
        });
        let looks = row.is_some_and(|row| row.looks);
        if looks && !self.looks.contains(&number) {
            self.looks.push(number);
        }
        let at = signature as usize;
        let call = OfCall {
            number,
            meets: row.is_some_and(meets),
            posts: row.is_some_and(|row| row.has(flags::POSTS)),
            tells: row.map_or([false; INSIDE.len()], |row| {
                tells((row.operation, row.class), row.looks)
            }),
            stores: row.is_some_and(|row| row.class == TimeClass::Io),
            looks,
            is_plain: row.is_some_and(is_plain),
        };
        if self.of_call.len() <= at {
            let unknown = OfCall {
                number: NONE,
                ..call
            };
            self.of_call.resize(at + 1, unknown);
        }
        self.of_call[at] = call;
        call
    }

    /// What was beside work in a call.
    pub fn inside(&mut self, thread: &Thread<'_>, kind: Kind, signature: u32) -> u32 {
        if let Some(&known) = self.of_inside.get(&(kind, signature)) {
            return known;
        }
        let number = self.number(Activity {
            kind,
            begin: site(thread, signature),
            until: Site::default(),
        });
        let call = self.of_call(thread, signature).number;
        self.of_inside.insert((kind, signature), number);
        self.around.push((number, call));
        number
    }

    /// The numbers of what was beside work in calls, with those of the calls.
    pub fn calls_around(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.around.iter().copied()
    }

    /// The number of the computation between two calls.
    #[inline]
    pub fn of_gap(&mut self, thread: &Thread<'_>, before: u32, signature: u32) -> u32 {
        match self.of_gap.get(signature as usize) {
            Some(&(last, number)) if last == before && number != NONE => number,
            _ => self.new_gap(thread, before, signature),
        }
    }

    #[inline(never)]
    fn new_gap(&mut self, thread: &Thread<'_>, before: u32, signature: u32) -> u32 {
        let number = self.number(Activity {
            kind: Kind::Computation,
            begin: site(thread, before),
            until: site(thread, signature),
        });
        let at = signature as usize;
        if self.of_gap.len() <= at {
            self.of_gap.resize(at + 1, (NONE, NONE));
        }
        self.of_gap[at] = (before, number);
        number
    }
}

impl Activities {
    /// The parts of the `time` between two calls, ns: activities, and their times. Rates of clocks
    /// change: parts of computation keep their shares.
    pub fn of_gap_in(
        &mut self,
        thread: &Thread<'_>,
        (before, signature): (u32, u32),
        told: Told<'_>,
        mut time: i64,
        mut part: impl FnMut(u32, i64),
    ) {
        if !told.beside.is_work() {
            let Beside {
                blocked,
                preempted,
                kernel,
                ..
            } = told.beside;
            for (kind, ticks) in [
                (Kind::Blocked, blocked),
                (Kind::Preempted, preempted),
                (Kind::Kernel, kernel),
            ] {
                let own = thread.stream.length_ns(ticks).clamp(0, time);
                if own > 0 {
                    let number = self.number(Activity {
                        kind,
                        begin: site(thread, before),
                        until: site(thread, signature),
                    });
                    part(number, own);
                    time -= own;
                }
            }
        }
        let ticks = told.computed.iter().map(|(_, ticks)| u64::from(*ticks));
        let all: u64 = ticks.sum();
        let (mut ticks, mut done) = (0u64, 0);
        for &(path, own) in told.computed {
            ticks += u64::from(own);
            let until = (i128::from(time) * i128::from(ticks) / i128::from(all.max(1))) as i64;
            let number = match path {
                0 => self.of_gap(thread, before, signature),
                path => self.of_function(thread, path),
            };
            part(number, until - done);
            done = until;
        }
        if time > done {
            part(self.of_gap(thread, before, signature), time - done);
        }
    }

    /// The samples between two calls: activities, and ns.
    pub fn of_samples(
        &mut self,
        thread: &Thread<'_>,
        (told, functions): (Told<'_>, &Functions),
        mut part: impl FnMut(u32, i64),
    ) {
        if told.sampled.is_empty() {
            return;
        }
        for &(path, ticks) in told.sampled {
            let known = self.of_sampled.get(&path).copied();
            let number = known.unwrap_or_else(|| {
                let key = path_key(&thread.stream.location().definitions, path);
                let function = functions.key(key);
                let number = function.map(|key| self.number(Activity::sampled(key)));
                self.of_sampled.insert(path, number);
                number
            });
            if let Some(number) = number {
                part(number, thread.stream.length_ns(ticks.into()));
            }
        }
    }

    /// Notes which functions all samples of a location are in.
    pub fn note_samples(&mut self, thread: &Thread<'_>, functions: &Functions) {
        let definitions = &thread.stream.location().definitions;
        let all = thread.counted.sampled();
        self.sampled_in.extend(all.filter_map(|(before, path, _)| {
            let function = functions.uncalled(path_key(definitions, path))?;
            Some((site(thread, before), function))
        }));
    }

    /// Whether there were samples of a function in stretches that begin as this one, at any time of the run:
    /// that does not depend on slabs.
    pub fn has_in(&self, stretch: u32, function: PathKey) -> bool {
        let activity = &self.list.values[stretch as usize];
        let is_work = activity.kind == Kind::Computation && activity.is_stretch();
        is_work && self.sampled_in.contains(&(activity.begin, function))
    }

    fn of_function(&mut self, thread: &Thread<'_>, path: u32) -> u32 {
        if let Some(&known) = self.of_function.get(&path) {
            return known;
        }
        let key = path_key(&thread.stream.location().definitions, path);
        let number = self.number(Activity {
            kind: Kind::Computation,
            begin: (0, key),
            until: Site::default(),
        });
        self.of_function.insert(path, number);
        number
    }
}

/// The activities of all locations of an agent.
pub struct Shared {
    /// Their keys.
    pub keys: Interner<[u64; 2]>,
    /// By number: see [`Activity::whole`].
    pub wholes: Vec<Option<usize>>,
}

impl Shared {
    /// Begins with the functions of samples: these have the first numbers on all agents.
    pub fn new(functions: &Functions) -> Shared {
        let keys = functions.keys.iter();
        let keys: Interner<_> = keys.map(|key| Activity::sampled(*key).key()).collect();
        let wholes = vec![None; keys.values.len()];
        Shared { keys, wholes }
    }

    /// Numbers the new activities of a location.
    pub fn add(&mut self, activities: &mut Activities, as_whole: bool) {
        for activity in &activities.list.values[activities.shared.len()..] {
            let number = self.number(activity, as_whole);
            activities.shared.push(number);
        }
    }

    /// The number of an activity.
    pub fn number(&mut self, activity: &Activity, as_whole: bool) -> u32 {
        let number = self.keys.number(activity.key());
        if self.wholes.len() < self.keys.values.len() {
            self.wholes.push(activity.whole(as_whole));
        }
        number
    }

    /// The number of an activity, if a location of this agent has it.
    pub fn find(&self, key: [u64; 2]) -> Option<u32> {
        self.keys.find(&key)
    }
}

/// See [`OfCall::tells`]; of a call by its number and class, and whether it only looks for something.
pub fn tells((operation, class): (u16, TimeClass), looks: bool) -> [bool; INSIDE.len()] {
    let call = calls::call(operation);
    let waits = call.is_some_and(|call| call.is_threads()) || class == TimeClass::Io;
    let is_apart = call.is_none_or(|call| call.shape.is_apart());
    // Who looks and finds nothing waits for somebody, but never for a processor.
    INSIDE.map(|kind| !is_apart && (kind == Kind::Preempted || !waits && !looks))
}

fn meets(row: &Row) -> bool {
    row.has(flags::COLLECTIVE) || row.shape == Shape::Init || row.among == Among::Meets
}

/// Whether a call cannot be part of looking whether something has come. Marks of regions are no calls.
pub fn is_plain(row: &Row) -> bool {
    !row.can_be_looking() && !row.is_mark()
}

/// Whether a record is that of a call. Time in regions of the program is between calls.
pub fn is_call(rows: &[Row]) -> impl Fn(u32) -> bool {
    let has_marks = rows.iter().any(Row::is_mark);
    move |signature| {
        let row = rows.get(signature as usize);
        row.is_some_and(|row| !has_marks || !row.is_mark())
    }
}

/// A call of a thread by its signature.
pub fn site(thread: &Thread<'_>, signature: u32) -> Site {
    let row = thread.rows.get(signature as usize);
    let path = thread.paths.get(signature as usize);
    (
        row.map_or(0, |row| row.operation),
        path.copied().unwrap_or_default(),
    )
}
