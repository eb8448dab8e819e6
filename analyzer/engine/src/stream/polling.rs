//! Waiting by polling: looks that find nothing, until one does.
//!
//! The looks at one *place* are an *episode*, which the first look that finds something ends. A
//! place is an operation and call path, and what is looked at as far as looks tell it: the channel
//! of a probe, a variable or a lock in symmetric memory. Tests do not tell their requests; a request
//! was not looked at before it was posted.
//!
//! A loop may look at several places in turn. If it ends when one of them finds something, the looks at the others
//! waited for that, too.

mod ahead;
mod between;
mod episode;
mod places;

use std::collections::VecDeque;

use laggard_trace::{Event, OUTCOME_CANCELLED, Signature, flags};
use smallvec::SmallVec;

use crate::basics::intern::PathKey;
use crate::stream::columns::{Columns, Stream};
use crate::stream::looks::{Look, LookAt, Looks, NotedLook, is_vain};
use crate::stream::rows::Row;
use ahead::goes_on;
use between::Between;
pub use episode::{Episode, Stretch};
pub use places::Places;

/// Fewer looks in a row, with nothing but looking between them, are no wait if they never find
/// anything: such a program only drives the library now and then.
pub const IN_A_ROW: u64 = 10;
/// Most places of looks in turn that are told of each other.
const IN_TURN: usize = 8;

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
