//! Waiting by polling: looks that find nothing, until one does.
//!
//! The looks at one *place* are an *episode*, which the first look that finds something ends. A
//! place is an operation and call path, and what is looked at as far as looks tell it: the channel
//! of a probe, a variable or a lock in symmetric memory. Tests do not tell their requests; a request
//! was not looked at before it was posted.
//!
//! A loop may look at several places in turn. If it ends when one of them finds something, the looks at the others
//! waited for that, too.

use std::collections::VecDeque;

use laggard_patterns::polled::is_looking;
use laggard_trace::calls::number;
use laggard_trace::{Event, OUTCOME_CANCELLED, PEER_ANY, Signature, TAG_ANY, flags};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::basics::ends::NONE;
use crate::basics::intern::PathKey;
use crate::stream::columns::{Columns, Stream};
use crate::stream::looks::{Look, LookAt, Looks, NotedLook, is_vain};
use crate::stream::rows::Row;

/// Fewer looks in a row, with nothing but looking between them, are no wait if they never find
/// anything: such a program only drives the library now and then.
pub const IN_A_ROW: u64 = 10;
/// Most stretches of an episode that are told apart. Those with the least time between them are
/// taken as one, in which looks are spread evenly.
const STRETCHES: usize = 16;

/// A part of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Its begin, ns.
    pub begin: i64,
    /// Its end, ns.
    pub end: i64,
    /// Time in it that counts as looking, ns.
    pub looked: i64,
    /// Enter of its last look, ns.
    pub last: i64,
    /// Number of requests that the thread had posted before.
    posts: u64,
}

/// Looks at a place in vain, with the one that found something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Episode {
    /// One after another; they do not overlap.
    stretches: SmallVec<[Stretch; 2]>,
    /// Enter of the look that found something, ns.
    pub found: i64,
    /// Whether looks at other places found nothing meanwhile.
    pub beside: bool,
    /// Looks at other places that waited for the same, each with a signature.
    others: Vec<(u32, Episode)>,
}

impl Stretch {
    /// Looking before a moment, ns.
    fn before(&self, moment: i64) -> i64 {
        let whole = self.end - self.begin;
        match moment.saturating_sub(self.begin) {
            ..=0 => 0,
            part if part >= whole => self.looked,
            part => (i128::from(self.looked) * i128::from(part) / i128::from(whole)) as i64,
        }
    }

    /// Adds the next one.
    fn join(&mut self, next: &Stretch) {
        self.looked += next.looked;
        (self.end, self.last) = (next.end, next.last);
    }
}

impl Episode {
    fn add(&mut self, stretch: Stretch) {
        let is_dense = |s: &Stretch| s.looked == s.end - s.begin;
        let follows = |last: &&mut Stretch| {
            let is_next = (last.end, last.posts) == (stretch.begin, stretch.posts);
            is_next && is_dense(last) && is_dense(&stretch)
        };
        if let Some(last) = self.stretches.last_mut().filter(follows) {
            last.join(&stretch);
            return;
        }
        self.stretches.push(stretch);
        if self.stretches.len() > STRETCHES {
            let gaps = self
                .stretches
                .windows(2)
                .map(|two| two[1].begin - two[0].end);
            let least = (0..).zip(gaps).min_by_key(|&(at, gap)| (gap, at));
            let at = least.map_or(0, |(at, _)| at);
            let next = self.stretches.remove(at + 1);
            self.stretches[at].join(&next);
        }
    }

    /// Takes some of the looks, and leaves the rest.
    fn take(&mut self, is_taken: impl Fn(&Stretch) -> bool) -> Episode {
        let all = std::mem::take(&mut self.stretches).into_iter();
        let (taken, rest) = all.partition(is_taken);
        self.stretches = rest;
        Episode {
            stretches: taken,
            ..Episode::default()
        }
    }

    /// Takes the looks since a moment, ns, and leaves the rest. One stretch may be divided, unless it began in the same
    /// turn of looks, of which each takes so long, ns.
    fn take_since(&mut self, moment: i64, look: i64) -> Episode {
        let mut since = Episode::default();
        for stretch in std::mem::take(&mut self.stretches) {
            let moment = match is_looking(moment - stretch.begin, look) {
                true => stretch.begin.min(moment),
                false => moment,
            };
            let before = Stretch {
                end: stretch.end.min(moment),
                looked: stretch.before(moment),
                last: stretch.last.min(moment),
                ..stretch
            };
            let after = Stretch {
                begin: stretch.begin.max(moment),
                looked: stretch.looked - before.looked,
                ..stretch
            };
            let (left, taken) = (&mut self.stretches, &mut since.stretches);
            left.extend((before.begin < before.end).then_some(before));
            taken.extend((after.begin < after.end).then_some(after));
        }
        since
    }

    /// When it began at the own place, ns.
    pub fn begin(&self) -> Option<i64> {
        Some(self.stretches.first()?.begin)
    }

    /// The looks at each place. Those elsewhere have a signature of looks there, the others `NONE`.
    pub fn parts(&self) -> impl Iterator<Item = (u32, &Episode)> {
        let others = self.others.iter().map(|(of, part)| (*of, part));
        std::iter::once((NONE, self)).chain(others)
    }

    /// Looking at the own place before a moment, ns.
    pub fn before(&self, moment: i64) -> i64 {
        let parts = self.stretches.iter();
        parts.map(|stretch| stretch.before(moment)).sum()
    }
}

/// Operation, call path, and what is looked at.
type Place = (u16, PathKey, [u64; 2]);

/// What is looked at, if a look does not tell it, as in archives.
const UNKNOWN: [u64; 2] = [0, 0];

/// The place of a look; `event` has what differs from its signature.
fn place(signature: &Signature, path: PathKey, event: Option<&Event>) -> Place {
    let object = match signature.operation {
        number::MPI_Iprobe | number::MPI_Improbe if signature.group != 0 => {
            let receive = event.map_or(signature.receive, |event| event.receive(signature));
            let either = |flag, any, is| if signature.has(flag) { any } else { is };
            let peer = either(flags::ANY_SOURCE, PEER_ANY, receive.peer);
            let tag = either(flags::ANY_TAG, TAG_ANY, receive.tag);
            [
                signature.group,
                u64::from(peer as u32) << 32 | u64::from(tag as u32),
            ]
        }
        operation if laggard_trace::calls::call(operation).is_some_and(|c| c.has_address()) => {
            let address = event.and_then(|event| event.address);
            [address.unwrap_or(signature.parameter as u64), 0]
        }
        number::MPI_Win_test => [signature.group, 0],
        _ => UNKNOWN,
    };
    (signature.operation, path, object)
}

/// Calls after which time between looks is told apart. There are as many as a loop has looks.
const AFTER: usize = 4;

/// Time between looks that counts as looking, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Between {
    all: u64,
    /// The part of it that is between records, by the signature of the one before, with the ticks in which others had
    /// the processor.
    after: [(u32, u64, u64); AFTER],
    /// Time in calls between looks that do nothing, by their signature: it counts as time of the looks.
    idle: [(u32, u64); AFTER],
}

impl Between {
    /// Adds `all`, of which some is after a record with this signature.
    fn add(&mut self, all: i64, (signature, time, preempted): (u32, i64, u64)) {
        self.all = self.all.saturating_add(all.max(0) as u64);
        self.add_after((signature, time.max(0) as u64, preempted));
    }

    fn add_after(&mut self, (signature, time, preempted): (u32, u64, u64)) {
        let mut known = self.after.iter();
        let at = known.position(|(of, sum, _)| *of == signature || *sum == 0);
        let (of, sum, off) = &mut self.after[at.unwrap_or(AFTER - 1)];
        if *sum == 0 {
            *of = signature;
        }
        *sum = sum.saturating_add(time);
        *off = off.saturating_add(preempted);
    }

    /// Adds a call that does nothing.
    fn add_idle(&mut self, (signature, time): (u32, u64)) {
        let mut known = self.idle.iter();
        let at = known.position(|(of, sum)| *of == signature || *sum == 0);
        let (of, sum) = &mut self.idle[at.unwrap_or(AFTER - 1)];
        if *sum == 0 {
            *of = signature;
        }
        *sum = sum.saturating_add(time);
    }

    fn merge(&mut self, other: &Between) {
        self.all = self.all.saturating_add(other.all);
        let (after, idle) = (other.after, other.idle);
        after.into_iter().for_each(|part| self.add_after(part));
        idle.into_iter().for_each(|part| self.add_idle(part));
    }
}

/// Looks in a row at one place, with nothing but looking between them, in vain so far.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    stretch: Stretch,
    calls: u64,
    between: Between,
    /// Number of the row of the location's looks.
    row: u64,
}

impl Run {
    /// What a look takes, ns.
    fn mean_look(&self) -> i64 {
        self.stretch.looked / self.calls.max(1) as i64
    }
}

/// Looks at one place.
#[derive(Debug, Default)]
struct Looking {
    /// A signature of looks in vain.
    signature: u32,
    /// Looks since one found something.
    episode: Episode,
    /// When a look found what looks here waited for, the last time, ns; 0: none did.
    found: i64,
    /// Of all episodes that found something, and of this one, if it does.
    between: (Between, Between),
    run: Run,
    /// Runs of looks that no later one explains, and those since one found something.
    vain: (Episode, Between),
}

/// The places where looks of a location found nothing.
#[derive(Debug, Default)]
pub struct Places {
    numbers: FxHashMap<Place, u32>,
    /// Place of each signature that looks; `NONE` if no look there was in vain. Empty: none was.
    of_signatures: Vec<u32>,
}

impl Places {
    /// Takes in all signatures, those that are known already among them. `is_vain` tells of each by id whether its
    /// looks find nothing, if it looks. Returns a signature of looks in vain for each place that is new.
    pub fn know(
        &mut self,
        signatures: &[Signature],
        is_vain: impl Fn(usize) -> Option<bool>,
        path: impl Fn(usize) -> PathKey,
    ) -> Vec<u32> {
        let looks = signatures.iter().enumerate();
        let looks = looks.filter_map(|(id, signature)| Some((id, signature, is_vain(id)?)));
        let mut new = Vec::new();
        for (id, signature, _) in looks.clone().filter(|(.., is_vain)| *is_vain) {
            let next = self.numbers.len() as u32;
            let place = place(signature, path(id), None);
            if *self.numbers.entry(place).or_insert(next) == next {
                new.push(id as u32);
            }
        }
        if !self.numbers.is_empty() {
            self.of_signatures.clear();
            self.of_signatures.resize(signatures.len(), NONE);
            for (id, signature, _) in looks {
                let number = self.number(place(signature, path(id), None));
                self.of_signatures[id] = number.unwrap_or(NONE);
            }
        }
        new
    }

    /// The number of a place, or of looks there that do not tell at what.
    fn number(&self, place: Place) -> Option<u32> {
        let known = self.numbers.get(&place);
        let known = known.or_else(|| self.numbers.get(&(place.0, place.1, UNKNOWN)));
        known.copied()
    }

    /// The number of the place of a look; `NONE` if no look there was in vain.
    #[inline]
    pub fn of(
        &self,
        (id, signature): (u32, &Signature),
        path: impl FnOnce() -> PathKey,
        event: Option<&Event>,
    ) -> u32 {
        let number = match event {
            Some(event) if event.address.is_some() || event.receive_endpoint.is_some() => {
                self.number(place(signature, path(), Some(event)))
            }
            _ => self.of_signatures.get(id as usize).copied(),
        };
        number.unwrap_or(NONE)
    }

    /// Whether no look was in vain.
    pub fn is_empty(&self) -> bool {
        self.of_signatures.is_empty()
    }
}

/// Polling of a location.
#[derive(Debug, Default)]
pub struct Polling {
    places: Places,
    /// By place.
    looking: Vec<Looking>,
    looks: Looks,
    /// Number of the row of looks, see [`Run`].
    row: u64,
    /// Requests posted so far.
    posts: u64,
    /// Signature of the last call, and place of the last look.
    last: u32,
    place: u32,
    /// Episodes that ended in this slab, with the numbers of the calls that ended them.
    ended: VecDeque<(u64, Episode)>,
    /// Where it looked last.
    recent: Recent,
    /// The looks of this slab, if requested. One that ends episodes elsewhere is there once more for each of these.
    pub noted: Option<Vec<NotedLook>>,
}

/// Most places of looks in turn that are told of each other.
const IN_TURN: usize = 8;

/// Most records after a look that found something in which it is searched how its loop goes on.
const AHEAD: usize = 64;
/// Who works for so long before a call that is no look does more than to handle what it found, ns.
const HANDLING_NS: i64 = 50_000;

/// Whether a loop of looks goes on after the one at a position, which found something.
#[cold]
fn goes_on((columns, at): (&Columns, usize), rows: &[Row], stream: &Stream) -> bool {
    let found = &rows[columns.signature[at] as usize];
    let mut ahead = Ahead {
        rows,
        leave: columns.leave[at],
        may_receive: found.has(flags::PEEKS),
        count: 0,
        vain: SmallVec::new(),
    };
    let mut next = at + 1..columns.enter.len();
    let known = next.find_map(|at| {
        let times = (columns.enter[at], columns.leave[at]);
        ahead.take(columns.signature[at], times, columns.event(at))
    });
    // The slab may end in between.
    let further = |event: &Event, times| ahead.take(event.signature, times, Some(event));
    let known = known.or_else(|| stream.peek(AHEAD, further));
    // A trace that has no end tells of none.
    known.unwrap_or(stream.location().end.is_none())
}

/// Calls after a look that found something.
struct Ahead<'r> {
    rows: &'r [Row],
    /// The leave of the last one, ns.
    leave: i64,
    /// Whether the next one may receive what was found.
    may_receive: bool,
    count: usize,
    /// Looks that found nothing: their signatures, and what else tells their places apart.
    vain: SmallVec<[Told; IN_TURN]>,
}

/// A signature, and the address and source of an event that differ from it.
type Told = (u32, Option<u64>, Option<(i32, i32)>);

impl Ahead<'_> {
    /// Takes the next call. Returns whether the loop goes on, once that is known.
    fn take(
        &mut self,
        signature: u32,
        (enter, leave): (i64, i64),
        event: Option<&Event>,
    ) -> Option<bool> {
        self.count += 1;
        if self.count > AHEAD {
            return Some(true);
        }
        let row = self.rows.get(signature as usize)?;
        if row.is_mark() {
            return None;
        }
        let before = enter - std::mem::replace(&mut self.leave, leave);
        let may_receive = std::mem::take(&mut self.may_receive);
        if !row.looks || row.idles && event.is_none_or(|event| event.completed.is_empty()) {
            // Others need this thread in a collective.
            let receives = may_receive && row.has(flags::RECEIVES);
            let is_over = before >= HANDLING_NS && !receives || row.has(flags::COLLECTIVE);
            return is_over.then_some(false);
        }
        // What is left of the last turn looks at each place once, and finds nothing.
        let is_series = event.is_some_and(|event| event.repeated.is_some());
        let of = |event: &Event| (signature, event.address, event.receive_endpoint);
        let look = event.map_or((signature, None, None), of);
        if is_series || !is_vain(row) || self.vain.contains(&look) {
            return Some(true);
        }
        self.vain.push(look);
        None
    }
}

/// The places of the last looks in vain, the latest last.
#[derive(Debug, Default)]
struct Recent(SmallVec<[u32; IN_TURN]>);

impl Recent {
    #[inline]
    fn add(&mut self, place: u32) {
        if self.0.last() == Some(&place) {
            return;
        }
        match self.0.iter().position(|at| *at == place) {
            Some(at) => self.0[at..].rotate_left(1),
            None => {
                if self.0.len() == IN_TURN {
                    self.0.remove(0);
                }
                self.0.push(place);
            }
        }
    }
}

impl Polling {
    /// Polling of a location with these signatures, before its first call.
    pub fn new(signatures: &[Signature], rows: &[Row], paths: &[PathKey]) -> Polling {
        let mut polling = Polling::default();
        polling.know(signatures, rows, paths);
        polling
    }

    /// Takes in all signatures, those that are known already among them.
    pub fn know(&mut self, signatures: &[Signature], rows: &[Row], paths: &[PathKey]) {
        let known = rows.len().min(paths.len()).min(signatures.len());
        let vain = |id: usize| rows[id].looks.then(|| is_vain(&rows[id]));
        let new = self.places.know(&signatures[..known], vain, |id| paths[id]);
        self.looking
            .extend(new.into_iter().map(|signature| Looking {
                signature,
                ..Looking::default()
            }));
    }

    /// Takes the calls of a new slab. `lists` are the requests that calls complete, by id.
    pub fn extend(
        &mut self,
        columns: &Columns,
        rows: &[Row],
        paths: &[PathKey],
        lists: &[Vec<(u32, u32)>],
        stream: &Stream,
    ) {
        self.ended.clear();
        self.noted.iter_mut().for_each(Vec::clear);
        if self.places.is_empty() {
            return;
        }
        let signatures = stream.location().definitions.signatures();
        let mut extended = columns.extended.iter().peekable();
        for at in columns.first..columns.enter.len() {
            let event = extended.next_if(|(position, _)| *position == at);
            let event = event.map(|(_, event)| event);
            let signature = columns.signature[at] as usize;
            let Some(row) = rows.get(signature) else {
                continue;
            };
            let times = (columns.enter[at], columns.leave[at]);
            let call = (columns.signature[at], row);
            if let Some(look) = self.looks.take(call, times, event, stream) {
                self.row += u64::from(!look.follows);
                let of = (columns.signature[at], &signatures[signature]);
                // What does nothing belongs to the look before.
                if look.calls > 0 {
                    self.place = self.places.of(of, || paths[signature], event);
                }
                let place = self.place;
                let found = self.looking.get_mut(place as usize);
                let mut ends = false;
                let mut others = SmallVec::new();
                if look.is_vain {
                    if let Some(found) = found {
                        self.recent.add(place);
                        found.add(&look, times, (self.posts, self.last));
                        found.run_on(&look, times, (self.posts, self.row, self.last));
                        if look.calls == 0 {
                            found.add_idle((columns.signature[at], look.looked as u64));
                        }
                    }
                } else if let Some(found) = found
                    // A look that finds something at once is no waiting.
                    && found.episode.begin().is_some()
                    && let Some(first) = found_by(listed(lists, row), event, self.posts)
                {
                    found.add(&look, times, (self.posts, self.last));
                    let is_since = |s: &Stretch| first.is_none_or(|number| s.posts > number);
                    let mut episode = found.end(times.0, |looks| looks.take(is_since));
                    // Looks before that were for something else.
                    found.episode = Episode::default();
                    let begin = episode.begin().unwrap_or(times.0);
                    episode.beside = self.looked_beside(place, begin);
                    others = self.in_turn(place, begin);
                    if !others.is_empty() && goes_on((columns, at), rows, stream) {
                        others.clear();
                    }
                    for &at in &others {
                        let other = &mut self.looking[at as usize];
                        let look = other.run.mean_look();
                        let part = other.end(times.0, |looks| looks.take_since(begin, look));
                        episode.others.push((other.signature, part));
                    }
                    self.ended.push_back((columns.number + at as u64, episode));
                    ends = true;
                }
                if let Some(noted) = &mut self.noted {
                    let (row, shortest) = (self.row, self.looks.shortest());
                    let mut note = |look, place, ends| {
                        noted.push(NotedLook {
                            position: at,
                            look,
                            at: LookAt { place, row, ends },
                            shortest,
                        });
                    };
                    note(look, place, ends);
                    let nothing = Look {
                        calls: 0,
                        between: 0,
                        ..look
                    };
                    others.into_iter().for_each(|at| note(nothing, at, true));
                }
            }
            self.posts += u64::from(row.has(flags::POSTS));
            self.last = columns.signature[at];
        }
    }

    /// Other places with looks in vain since a moment, ns.
    fn in_turn(&self, place: u32, since: i64) -> SmallVec<[u32; IN_TURN]> {
        let others = self.recent.0.iter().filter(|&&at| at != place);
        let is_open = |&at: &u32| {
            let last = self.looking[at as usize].episode.stretches.last();
            last.is_some_and(|last| last.end > since)
        };
        others.copied().filter(is_open).collect()
    }

    /// Whether looks at others of the last places found nothing since a moment, ns.
    fn looked_beside(&self, place: u32, since: i64) -> bool {
        let mut others = self.recent.0.iter().filter(|&&at| at != place);
        others.any(|&at| {
            let other = &self.looking[at as usize];
            let last = other.episode.stretches.last();
            last.is_some_and(|last| last.end > since) || other.found > since
        })
    }

    /// The episode that a call of this slab ended; calls must be given in order.
    pub fn ended_by(&mut self, call: u64) -> Option<Episode> {
        while self.ended.front().is_some_and(|(number, _)| *number < call) {
            self.ended.pop_front();
        }
        let is_it = self
            .ended
            .front()
            .is_some_and(|(number, _)| *number == call);
        is_it
            .then(|| self.ended.pop_front())?
            .map(|(_, episode)| episode)
    }

    /// Time beyond that in calls with these signatures, ns: what is between looks is of these, and so are calls that
    /// do nothing there. A signature may come several times.
    pub fn between(&self) -> impl Iterator<Item = (u32, i64)> {
        let looking = self.looking.iter();
        looking.flat_map(|looking| {
            let parts = [&looking.between.0, &looking.vain.1];
            let idle = parts.into_iter().flat_map(|part| part.idle);
            let idle = idle.map(|(signature, time)| (signature, time as i64));
            let all = parts.into_iter().map(|part| part.all as i64);
            let in_idle = idle.clone().map(|(_, time)| time);
            let of_looks = all.chain(in_idle).fold(0, i64::saturating_add);
            let taken = idle.map(|(signature, time)| (signature, -time));
            taken.chain([(looking.signature, of_looks)])
        })
    }

    /// The part of it that is between records, ns, by the signature of the one before, which may come several times;
    /// and the ticks in which others had the processor then.
    pub fn between_after(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let looking = self.looking.iter();
        looking.flat_map(|looking| {
            [looking.between.0.after, looking.vain.1.after]
                .into_iter()
                .flatten()
        })
    }

    /// The looks that never found anything, with their signatures. There must be no more calls.
    pub fn in_vain(&mut self) -> impl Iterator<Item = (u32, &Stretch)> {
        self.looking.iter_mut().flat_map(|looking| {
            looking.close();
            let stretches = looking.vain.0.stretches.iter();
            stretches.map(|stretch| (looking.signature, stretch))
        })
    }
}

/// The requests that calls of a row complete, with their outcomes.
fn listed<'l>(lists: &'l [Vec<(u32, u32)>], row: &Row) -> &'l [(u32, u32)] {
    let listed = lists.get(row.completes as usize);
    listed.map_or(&[], Vec::as_slice)
}

/// What a look that completes the requests `listed` and those of its `event` found: the number of
/// the first request, if it is one of this thread. `None`: nothing, requests were cancelled. The
/// thread had posted so many before.
fn found_by(listed: &[(u32, u32)], event: Option<&Event>, posts: u64) -> Option<Option<u64>> {
    let mut first = None;
    let (mut all, mut cancelled) = (0, 0);
    let extended = event.map_or(&[][..], |event| &event.completed).iter();
    let extended = extended.map(|c| (c.delta, c.outcome, c.thread.is_none()));
    let listed = listed
        .iter()
        .map(|&(delta, outcome)| (delta, outcome, true));
    for (delta, outcome, is_own) in listed.chain(extended) {
        all += 1;
        if outcome == OUTCOME_CANCELLED {
            cancelled += 1;
        } else if is_own {
            first = first.max(Some(delta));
        }
    }
    let first = first.and_then(|delta| posts.checked_sub(u64::from(delta)));
    (all == 0 || cancelled < all).then_some(first)
}

impl Looking {
    /// Adds a record of looks to the episode.
    fn add(&mut self, look: &Look, (enter, leave): (i64, i64), (posts, last): (u64, u32)) {
        let after = (last, look.before, look.preempted);
        self.between.1.add(look.between, after);
        let stretch = |begin, end, looked| Stretch {
            begin,
            end,
            looked,
            last: enter,
            posts,
        };
        if look.begin < enter {
            self.episode.add(stretch(look.begin, enter, look.before));
        }
        self.episode.add(stretch(enter, leave, look.looked));
    }

    /// A call that does nothing is time of the looks around it.
    fn add_idle(&mut self, idle: (u32, u64)) {
        self.between.1.add_idle(idle);
        if self.run.calls > 0 {
            self.run.between.add_idle(idle);
        }
    }

    /// Adds looks in vain to the run, or begins another one with them.
    fn run_on(
        &mut self,
        look: &Look,
        (enter, leave): (i64, i64),
        (posts, row, last): (u64, u64, u32),
    ) {
        let is_dense = look.looked == leave - enter;
        if look.calls == 0 && self.run.calls == 0 {
            return;
        }
        if self.run.row != row || !is_dense {
            self.close();
        }
        if !is_dense {
            return;
        }
        let (begin, before, preempted) = match look.follows {
            true => (look.begin, look.before, look.preempted),
            false => (enter, 0, 0),
        };
        let next = Stretch {
            begin,
            end: leave,
            looked: before + look.looked,
            last: enter,
            posts,
        };
        match self.run.calls {
            0 => self.run.stretch = next,
            _ => self.run.stretch.join(&next),
        }
        let run = &mut self.run;
        (run.row, run.calls) = (row, run.calls.saturating_add(look.calls));
        let between = look.between - look.before + before;
        run.between.add(between, (last, before, preempted));
    }

    /// Ends the run.
    fn close(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.calls >= IN_A_ROW {
            self.vain.0.add(run.stretch);
            self.vain.1.merge(&run.between);
        }
    }

    /// A look found something then, ns: takes those that waited for it out of the episode.
    fn end(&mut self, found: i64, take: impl Fn(&mut Episode) -> Episode) -> Episode {
        let episode = take(&mut self.episode);
        self.close();
        take(&mut self.vain.0);
        self.vain.1 = Between::default();
        let between = std::mem::take(&mut self.between.1);
        self.between.0.merge(&between);
        self.found = found;
        Episode { found, ..episode }
    }
}
