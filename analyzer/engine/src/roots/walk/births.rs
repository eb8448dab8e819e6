//! Threads that others of their rank start: what they did before is what those did who started them.
//!
//! At its birth, a thread gets what its creator did so far, and whom it met when. So it is compared with other
//! ranks as if the two were one until then; what it inherits is charged to that one. Waits stay where they
//! were: the backward sweep hands the costs of what was inherited on to the creator.

use laggard_trace::Event;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Walker;
use crate::roots::activities::{Activity, Kind, Legacy, Site, is_call, site};
use crate::roots::members::Members;
use crate::roots::spent::Sums;
use crate::roots::synced::Synced;
use crate::roots::walk::moments::{Moment, With};

/// Most threads of a rank whose births the others note: each of them keeps sums for each of these.
const MOST: usize = 64;

/// What a thread inherits from the one that started it.
#[derive(Clone)]
pub struct Heritage {
    /// Location of the creator.
    creator: usize,
    /// Position of the thread in its rank.
    heir: usize,
    /// What the creator did until then, by number of its activity.
    then: Sums,
    /// Until when that is known, ns, and the call that it ends with.
    until: (i64, Site),
    synced: Synced,
    activities: Legacy,
}

/// Where a thread went on from its creator.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Location of the creator.
    pub creator: usize,
    /// Position among what happened to the creator.
    pub order: u64,
    /// By number of the creator's activity: the own one.
    pub numbers: Vec<u32>,
}

/// When the threads of a rank were started, and the positions of those that did so: by the `numbers` that traces tell, if
/// these threads were there before, else the first one.
pub fn creators(
    births: &[Option<i64>],
    by: impl Iterator<Item = Option<u32>>,
    numbers: &[u32],
) -> Vec<Option<(i64, usize)>> {
    let positions: FxHashMap<u32, usize> = numbers.iter().copied().zip(0..).collect();
    let births_by = births.iter().zip(by);
    births_by
        .map(|(born, by)| {
            let born = (*born)?;
            let creator = by.and_then(|by| positions.get(&by).copied());
            let creator = creator.filter(|at| births[*at].is_none_or(|other| other < born));
            Some((born, creator.unwrap_or(0)))
        })
        .collect()
}

/// Tells the threads of a rank when which of them were started, ns, and by which: `births` by position.
pub fn tell(threads: &mut [Walker<'_>], births: &[Option<(i64, usize)>]) {
    let known = births.iter().enumerate();
    let known = known.filter_map(|(heir, born)| {
        let (at, creator) = (*born)?;
        Some((at, heir, creator))
    });
    let mut known: Vec<(i64, usize, usize)> = known.collect();
    known.sort_unstable();
    for &(at, heir, creator) in known.iter().rev() {
        threads[heir].born = Some((at, creator));
        // Who meets no other rank, and starts nobody who does, is compared since its birth.
        threads[heir].inherits |= threads[heir].talks && threads[heir].folds;
        threads[creator].inherits |= threads[heir].inherits;
    }
    for &(at, heir, creator) in &known {
        if threads[heir].inherits {
            let with = With::Heir(heir);
            threads[creator].moments.push(Moment { at, with });
        }
    }
    if known.len() <= MOST {
        for &(at, heir, _) in &known {
            let with = With::Thread(threads[heir].name.1);
            for thread in &mut *threads {
                if thread.born.is_none_or(|(born, _)| born < at) {
                    thread.moments.push(Moment { at, with });
                }
            }
        }
    }
    threads.iter_mut().for_each(|thread| thread.moments.sort());
}

/// Hands over what threads of a rank inherit that were started.
pub fn leave(threads: &mut [Walker<'_>]) {
    for creator in 0..threads.len() {
        let heirs = std::mem::take(&mut threads[creator].heirs);
        for heritage in heirs {
            let heir = &mut threads[heritage.heir];
            heir.heritage = heir.born.map(|_| heritage);
        }
    }
}

/// Of the threads that are `waiting` for what they inherit, by position, those go on whose creators do not wait.
pub fn hand_over(threads: &mut [Walker<'_>], waiting: &mut [bool], members: &Members) {
    leave(threads);
    let goes_on = |(heir, thread): (usize, &Walker<'_>)| {
        let creator = thread.born.filter(|_| waiting[heir])?.1;
        (!waiting[creator]).then_some(heir)
    };
    let heirs: Vec<usize> = threads.iter().enumerate().filter_map(goes_on).collect();
    // A creator may not have begun itself, as far as is known.
    let mut due: Vec<(usize, usize)> = Vec::new();
    let mut wanted = FxHashSet::default();
    for heir in heirs {
        waiting[heir] = false;
        let (first, mut at) = (due.len(), heir);
        while let Some((_, creator)) = threads[at].born.filter(|_| threads[at].heritage.is_none())
            && wanted.insert(at)
        {
            due.push((at, creator));
            at = creator;
        }
        due[first..].reverse();
    }
    let mut is_ahead = FxHashSet::default();
    for (heir, creator) in due {
        if threads[heir].heritage.is_none() && is_ahead.insert(creator) {
            for heritage in threads[creator].ahead(&wanted, members) {
                let heir = &mut threads[heritage.heir];
                heir.heritage = heir.heritage.take().or(Some(heritage));
            }
        }
        if threads[heir].heritage.is_none() {
            threads[heir].heritage = Some(threads[creator].leave_to(heir, None));
        }
    }
}

impl Walker<'_> {
    /// Whether it begins in the calls that were read, and another thread has to be walked over before.
    pub fn waits_to_begin(&self) -> bool {
        let has_calls = self.columns.first < self.columns.enter.len();
        self.inherits && self.born.is_some() && self.heritage.is_none() && has_calls
    }

    /// What threads inherit that are started before the next call, which comes in a later slab.
    fn ahead(&mut self, wanted: &FxHashSet<usize>, members: &Members) -> Vec<Heritage> {
        let lists = (
            std::mem::take(&mut self.columns),
            std::mem::take(&mut self.times),
            std::mem::take(&mut self.waits),
            std::mem::take(&mut self.blames),
            std::mem::take(&mut self.alone),
        );
        let mut ahead = self.clone();
        (
            self.columns,
            self.times,
            self.waits,
            self.blames,
            self.alone,
        ) = lists;
        ahead.moments.keep_heirs(wanted);
        let is_call = is_call(&self.thread.rows);
        let next = |event: &Event, times| is_call(event.signature).then(|| (event.clone(), times));
        match self.stream.peek(usize::MAX, next) {
            Some((event, times)) => {
                let call = (u64::MAX, Some(&event));
                ahead.enter(event.signature, times, call, members);
            }
            None => ahead.close(members),
        }
        ahead.heirs
    }

    /// What a thread inherits that is started now; `known` is what was done until then, and when, ns.
    #[cold]
    pub(super) fn leave_to(&self, heir: usize, known: Option<(Sums, i64)>) -> Heritage {
        let open = self.open.as_ref();
        let leave = open.map_or(i64::MAX, |open| open.leave);
        let (then, until) = known.unwrap_or_else(|| (Sums::now(&self.spent), leave));
        Heritage {
            creator: self.lane,
            heir,
            then,
            until: (
                until,
                open.map_or(Site::default(), |open| site(self.thread, open.signature)),
            ),
            synced: self.synced.with_ranks(),
            activities: self.activities.legacy(self.lane),
        }
    }

    /// It was started at this moment, ns, before its first call, which has the signature `first`.
    #[cold]
    pub(super) fn live(&mut self, born: i64, first: u32) {
        let heritage = self.heritage.take();
        let Some(open) = self.open.as_mut().filter(|open| open.leave < born) else {
            return;
        };
        // Calls that come before have clocks that contradict that.
        self.last.0 = self.last.0.max(born.saturating_sub(1));
        (open.enter, open.leave, open.begin) = (born, born, born);
        self.begin = Some(born);
        // Whom others met before is inherited.
        self.moments.forget(born);
        if let Some(heritage) = heritage {
            self.inherit(heritage, born, first);
        }
        self.spent.order += 2;
        self.synced.start(&self.spent);
    }

    fn inherit(&mut self, heritage: Heritage, born: i64, first: u32) {
        let (until, begin) = heritage.until;
        let numbers = self.activities.inherit(heritage.activities);
        self.spent.inherit(&heritage.then, &numbers);
        self.synced = heritage.synced;
        self.synced.renumber(&numbers);
        if until < born {
            // What the creator calls next is not known yet.
            let number = self.activities.number(Activity {
                kind: Kind::Computation,
                begin,
                until: site(self.thread, first),
            });
            self.spent.add(number, born - until, born);
        }
        self.origin = Some(Origin {
            creator: heritage.creator,
            order: heritage.then.order,
            numbers,
        });
    }
}
