//! Waiting by polling: looks that find nothing, until one does.
//!
//! The looks at one *place* are an *episode*, which the first look that finds something ends. A
//! place is an operation and call path, and what is looked at as far as looks tell it: the channel
//! of a probe, a variable or a lock in symmetric memory. Tests do not tell their requests; a request
//! was not looked at before it was posted.

use std::collections::VecDeque;

use laggard_patterns::polled::is_looking;
use laggard_trace::calls::number;
use laggard_trace::{Event, OUTCOME_CANCELLED, PEER_ANY, Signature, TAG_ANY, flags};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::basics::ends::NONE;
use crate::basics::intern::PathKey;
use crate::stream::columns::{Columns, Stream};
use crate::stream::rows::Row;

/// Fewer looks in a row, with nothing but looking between them, are no wait if they never find
/// anything: such a program only drives the library now and then.
pub const IN_A_ROW: u64 = 10;
/// Most stretches of an episode that are told apart. Those with the least time between them are
/// taken as one, in which looks are spread evenly.
const STRETCHES: usize = 16;
/// Most spots of a loop of looks that are told apart.
pub const SPOTS: usize = 4;

/// What the looks of a signature have in common, or its calls that do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooksOf {
    /// Whether they look.
    pub looks: bool,
    /// Whether they find nothing.
    pub is_vain: bool,
    /// Whether they do nothing, see [`Row::idles`].
    idles: bool,
    spot: Spot,
}

/// Operation and call path of looks.
type Spot = (u16, u32);

/// What calls of this signature look for. `None`: they do not look, and do something.
pub fn looks(signature: &Signature) -> Option<LooksOf> {
    let row = Row::new(signature);
    row.can_be_looking().then(|| looks_of(&row, signature))
}

fn looks_of(row: &Row, signature: &Signature) -> LooksOf {
    LooksOf {
        looks: row.looks,
        is_vain: is_vain(row),
        idles: row.idles,
        spot: (signature.operation, signature.call_path),
    }
}

/// Whether a look finds nothing. One that fails has found what it fails with.
fn is_vain(row: &Row) -> bool {
    row.has(flags::UNSUCCESSFUL) && !row.has(flags::FAILED)
}

/// A record of looks, or of a call between two looks that does nothing: that is looking, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether it found nothing.
    pub is_vain: bool,
    /// Its enter, or the leave of the look before if some of the time between counts as looking, ns.
    pub begin: i64,
    /// That time, ns.
    pub before: i64,
    /// In that time others had the processor for so many ticks.
    pub preempted: u64,
    /// Whether all of the time since the look before counts as looking.
    pub follows: bool,
    /// Number of looks; 0 for a call that does nothing.
    pub calls: u64,
    /// Time between enter and leave that counts as looking, ns.
    pub looked: i64,
    /// Time between looks that counts as looking, ns.
    pub between: i64,
}

/// Where a record of looks belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookAt {
    /// Number of the place among those of the location; `NONE` if no look there was in vain.
    pub place: u32,
    /// Number of the row of looks: one goes on while all time between looks counts as looking.
    pub row: u64,
    /// Whether it ends an episode.
    pub ends: bool,
}

/// A record of looks, as a sweep is told of it.
#[derive(Clone, Copy, Debug)]
pub struct NotedLook {
    /// Its position in the columns.
    pub position: usize,
    /// What counts as looking.
    pub look: Look,
    /// Where it belongs.
    pub at: LookAt,
    /// The shortest look so far, ns.
    pub shortest: i64,
}

/// Follows the looks of a location.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// If the last call that did something was a look that found nothing.
    left: Option<Left>,
    /// The shortest look so far, ns: others may have lost their processor meanwhile.
    shortest: Option<i64>,
    /// Where looks were made since a call that was none, or a look that found something.
    spots: Spots,
}

/// The last call, after a look that found nothing.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// Its leave, ns.
    leave: i64,
    /// The sleep after it, ns.
    off: i64,
    /// Time since the leave of the look until then, without sleep, ns.
    passed: i64,
    /// Whether the look was not the first one at something.
    is_again: bool,
}

/// The first few spots.
#[derive(Clone, Copy, Debug, Default)]
struct Spots {
    list: [Spot; SPOTS],
    len: usize,
}

impl Spots {
    /// Adds one; whether it was there before. `None`: there are more than can be told apart.
    fn add(&mut self, spot: Spot) -> Option<bool> {
        let is_known = self.list[..self.len].contains(&spot);
        if !is_known {
            *self.list.get_mut(self.len)? = spot;
            self.len += 1;
        }
        Some(is_known)
    }
}

impl Looks {
    /// Goes on after others of which this was the shortest, ns.
    pub fn after(shortest: Option<i64>) -> Looks {
        Looks {
            shortest,
            ..Looks::default()
        }
    }

    /// Passes over calls that are no looks.
    pub fn pass(&mut self) {
        self.left = None;
    }

    /// Takes the next call. `None` if it is no look.
    #[inline]
    pub fn take(
        &mut self,
        (signature, row): (u32, &Row),
        times: (i64, i64),
        event: Option<&Event>,
        stream: &Stream,
    ) -> Option<Look> {
        let signatures = || stream.location().definitions.signatures();
        let looks = row
            .can_be_looking()
            .then(|| looks_of(row, &signatures()[signature as usize]));
        self.look(looks, times, event, |ticks| stream.length_ns(ticks))
    }

    /// The same for a call that `looks`. `length_ns` tells how long ticks are.
    #[inline]
    pub fn look(
        &mut self,
        looks: Option<LooksOf>,
        (enter, leave): (i64, i64),
        event: Option<&Event>,
        length_ns: impl Fn(u64) -> i64,
    ) -> Option<Look> {
        let left = self.left.take();
        let LooksOf {
            looks,
            is_vain,
            idles,
            spot,
        } = looks?;
        let off = || event.and_then(|event| event.off).map_or(0, &length_ns);
        let preempted = event.map_or(0, |event| event.beside.preempted);
        if idles
            && let Some(left) = left
            && event.is_none_or(|event| event.completed.is_empty())
            && let Some(look) = self.idle(
                left,
                (enter, leave),
                off(),
                (preempted, length_ns(preempted)),
            )
        {
            return Some(look);
        }
        if !looks {
            return None;
        }
        if left.is_none() {
            self.spots = Spots::default();
        }
        // Who sleeps before the first look at something does not sleep between looks at it.
        let is_again = self.spots.add(spot).unwrap_or(true);
        if is_vain {
            self.left = Some(Left {
                leave,
                off: off(),
                passed: 0,
                is_again,
            });
        }
        let whole = leave - enter;
        // The collector records a series of close looks as one.
        let (calls, inside) = match event.and_then(|event| event.repeated) {
            Some((calls, ticks)) => {
                let inside = length_ns(u64::from(ticks));
                (i64::from(calls.max(1)), inside.min(whole))
            }
            None => (1, whole),
        };
        let (look, gap) = (inside / calls, (whole - inside) / (calls - 1).max(1));
        let look = self.shortest.map_or(look, |shortest| shortest.min(look));
        self.shortest = Some(look);
        let looked = if is_looking(gap, look) { whole } else { inside };
        let (begin, before, preempted, follows) = left.map_or((enter, 0, 0, false), |left| {
            let (gap, off, rest) = left.until(enter, is_again, length_ns(preempted));
            // To go to sleep and to wake up takes time, too.
            match is_looking(left.passed + rest, look) || rest < gap / 8 {
                true => (enter - gap, gap, preempted, true),
                false if off > 0 => (enter - gap, off, 0, false),
                false => (enter, 0, 0, false),
            }
        });
        Some(Look {
            is_vain,
            begin,
            before,
            preempted,
            follows,
            calls: calls as u64,
            looked,
            between: (looked - inside) + before,
        })
    }

    /// Takes a call that does nothing. `None` if it is too late, or too long, to be part of looking.
    fn idle(
        &mut self,
        left: Left,
        (enter, leave): (i64, i64),
        off: i64,
        (preempted, preempted_ns): (u64, i64),
    ) -> Option<Look> {
        let (gap, _, rest) = left.until(enter, left.is_again, preempted_ns);
        let looked = leave - enter;
        let passed = left.passed + rest + looked;
        if !is_looking(passed, self.shortest?) {
            return None;
        }
        self.left = Some(Left {
            leave,
            off,
            passed,
            ..left
        });
        Some(Look {
            is_vain: true,
            begin: enter - gap,
            before: gap,
            preempted,
            follows: true,
            calls: 0,
            looked,
            between: gap,
        })
    }
}

impl Left {
    /// Time until the next call, the part of it that counts as sleep between looks, and the rest but for time
    /// `preempted`, ns.
    fn until(&self, enter: i64, is_again: bool, preempted: i64) -> (i64, i64, i64) {
        let gap = (enter - self.leave).max(0);
        let off = if is_again { self.off.clamp(0, gap) } else { 0 };
        (gap, off, (gap - off - preempted).max(0))
    }
}

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
}

impl Stretch {
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

    /// Takes the looks after the request with this number was posted, or all, and leaves the rest.
    fn since_post(&mut self, number: Option<u64>) -> Episode {
        let is_since = |stretch: &Stretch| number.is_none_or(|number| stretch.posts > number);
        let all = std::mem::take(&mut self.stretches).into_iter();
        let (since, rest) = all.partition(is_since);
        self.stretches = rest;
        Episode {
            stretches: since,
            found: 0,
        }
    }

    /// When it began, ns.
    pub fn begin(&self) -> Option<i64> {
        Some(self.stretches.first()?.begin)
    }

    /// Looking before a moment, ns.
    pub fn before(&self, moment: i64) -> i64 {
        let parts = self.stretches.iter().map(|stretch| {
            let whole = stretch.end - stretch.begin;
            match moment.saturating_sub(stretch.begin) {
                ..=0 => 0,
                part if part >= whole => stretch.looked,
                part => (i128::from(stretch.looked) * i128::from(part) / i128::from(whole)) as i64,
            }
        });
        parts.sum()
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

/// Looks at one place.
#[derive(Debug, Default)]
struct Looking {
    /// A signature of looks in vain.
    signature: u32,
    /// Looks since one found something.
    episode: Episode,
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
    /// The looks of this slab, if requested.
    pub noted: Option<Vec<NotedLook>>,
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
                if look.is_vain {
                    if let Some(found) = found {
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
                    let episode = found.end(times.0, first);
                    self.ended.push_back((columns.number + at as u64, episode));
                    ends = true;
                }
                if let Some(noted) = &mut self.noted {
                    let row = self.row;
                    noted.push(NotedLook {
                        position: at,
                        look,
                        at: LookAt { place, row, ends },
                        shortest: self.looks.shortest.unwrap_or(0),
                    });
                }
            }
            self.posts += u64::from(row.has(flags::POSTS));
            self.last = columns.signature[at];
        }
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

    /// Ends the episode: a look found something that was posted as request `first`, if it was.
    fn end(&mut self, found: i64, first: Option<u64>) -> Episode {
        // Looks before that were for something else.
        let episode = std::mem::take(&mut self.episode).since_post(first);
        self.close();
        self.vain.0.since_post(first);
        self.vain.1 = Between::default();
        let between = std::mem::take(&mut self.between.1);
        self.between.0.merge(&between);
        Episode { found, ..episode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::{Beside, Completion};

    const MS: i64 = 1_000_000;

    /// Looks of 1 us in vain at these calls, in a row, 10 ms apart, of which the program sleeps all
    /// but 100 us: how much of the time between each and the one before counts as looking, ns.
    fn between(calls: &[u16]) -> Vec<i64> {
        let event = Event {
            off: Some(9_900_000),
            ..Event::default()
        };
        let mut looks = Looks::default();
        let taken = (0..).zip(calls).map(|(at, &operation)| {
            let of = LooksOf {
                looks: true,
                is_vain: true,
                idles: false,
                spot: (operation, 1),
            };
            let enter = at * 10 * MS;
            let times = (enter, enter + 1_000);
            looks.look(Some(of), times, Some(&event), |ticks| ticks as i64)
        });
        taken.map(|look| look.map_or(-1, |l| l.before)).collect()
    }

    #[test]
    fn sleep_before_the_first_look_is_none_between_looks() {
        let (probe, test) = (number::MPI_Iprobe, number::MPI_Test);
        let gap = 10 * MS - 1_000;
        assert_eq!(between(&[probe, probe, probe]), [0, gap, gap]);
        assert_eq!(between(&[probe, test]), [0, 0]);
        assert_eq!(between(&[probe, test, probe, test]), [0, 0, gap, gap]);
        // More than can be told apart: looks at them again.
        assert_eq!(between(&[1, 2, 3, 4, 5, 1]), [0, 0, 0, 0, gap, gap]);
    }

    /// A look of 100 ns in vain, a call that does nothing from `idle` on and until, and a look that enters at `again`,
    /// ns after the first one's end: what counts as looking at each of the last two.
    fn around(
        idle: (i64, i64),
        again: i64,
        event: Option<&Event>,
    ) -> [Option<(i64, i64, bool)>; 2] {
        let of = |looks, idles| LooksOf {
            looks,
            is_vain: looks,
            idles,
            spot: (number::MPI_Test, 1),
        };
        let (test, wait) = (of(true, false), of(false, true));
        let mut looks = Looks::default();
        let mut take = |of, times, event| {
            let look = looks.look(Some(of), times, event, |ticks| ticks as i64);
            look.map(|look| (look.before, look.looked, look.follows))
        };
        take(test, (-100, 0), None);
        [
            take(wait, idle, event),
            take(test, (again, again + 100), None),
        ]
    }

    /// Two looks 10 ms apart, of which others had the processor so long: how much of that counts as looking, ns.
    fn without_processor(preempted: i64) -> i64 {
        let of = LooksOf {
            looks: true,
            is_vain: true,
            idles: false,
            spot: (number::MPI_Test, 1),
        };
        let mut looks = Looks::default();
        looks.look(Some(of), (-100, 0), None, |ticks| ticks as i64);
        let event = Event {
            beside: Beside {
                preempted: preempted as u64,
                ..Beside::default()
            },
            ..Event::default()
        };
        let times = (10 * MS, 10 * MS + 100);
        let look = looks.look(Some(of), times, Some(&event), |ticks| ticks as i64);
        look.map_or(-1, |look| look.before)
    }

    #[test]
    fn who_looks_without_a_processor_in_between_looks_all_the_time() {
        assert_eq!(without_processor(10 * MS - 900), 10 * MS);
        // Or it works in between, and others take its processor then.
        assert_eq!(without_processor(5 * MS), 0);
        assert_eq!(without_processor(20 * MS), 10 * MS);
    }

    #[test]
    fn calls_between_looks_that_do_nothing_are_looking() {
        let (all, some) = (Some((900, 100, true)), Some((500, 200, true)));
        assert_eq!(around((500, 700), 1_600, None), [some, all]);
        // All that is between two looks must be short, with the call.
        let none = Some((0, 100, false));
        assert_eq!(around((500, 700), 2_100, None), [some, none]);
        assert_eq!(around((500, 2_600), 2_700, None), [None, none]);
        assert_eq!(around((2_500, 2_600), 2_700, None), [None, none]);
        // It completes something.
        let completes = Event {
            completed: vec![Completion {
                delta: 1,
                outcome: 0,
                thread: None,
            }],
            ..Event::default()
        };
        assert_eq!(around((500, 700), 800, Some(&completes)), [None, none]);
    }
}
