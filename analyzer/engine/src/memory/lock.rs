//! Locks of OpenSHMEM and of windows: who held one while another waited for it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::basics::ends::End;
use crate::memory::own::RemoteMemory;
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::wire::watched::{Held, Kind, Watch};

/// The object of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A lock of OpenSHMEM, by its symmetric address.
    Address(u64),
    /// A window at a target, or at all targets if negative.
    Window(u64, i32),
}

/// A lock that a rank released in this slab.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    object: Object,
    /// Others may hold it at the same time, if they share it as well.
    is_shared: bool,
    /// When it was acquired, ns.
    from: i64,
    /// The call that released it.
    end: End,
    /// Whether it was released in an earlier slab.
    is_kept: bool,
}

/// Releases of each lock that are kept from slab to slab, if some PE tries locks until it gets them:
/// how long that took is known at the end. As many count in such a wait.
pub const KEPT: usize = 16;

/// A lock that a rank holds.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// When it was acquired, ns.
    at: i64,
    is_shared: bool,
    /// The call that acquired it.
    thread: u32,
    signature: u32,
}

/// The locks of a rank.
#[derive(Debug, Default)]
pub struct Locks {
    taken: FxHashMap<Object, Taken>,
    /// Calls that released a lock that the rank did not hold: thread and signature.
    foreign: BTreeMap<(u32, u32), u64>,
    /// Locks released in this slab.
    pub given_back: Vec<Hold>,
}

impl Locks {
    /// Acquires a lock, at the return of the call.
    pub fn take(&mut self, call: &CallAt, object: Object, is_shared: bool) {
        let taken = Taken {
            at: call.leave,
            is_shared,
            thread: call.thread,
            signature: call.signature,
        };
        self.taken.insert(object, taken);
    }

    /// Whether a lock is shared, if the rank holds it.
    pub fn held_shared(&self, object: Object) -> Option<bool> {
        self.taken.get(&object).map(|taken| taken.is_shared)
    }

    /// Whether the rank holds a lock.
    pub fn holds(&self, object: Object) -> bool {
        self.taken.contains_key(&object)
    }

    /// Releases a lock, at the enter of the call. Releasing a lock of OpenSHMEM that another PE
    /// acquired also ends waits for it: the releasing PE counts as the holder for the whole wait of
    /// the others.
    pub fn give_back(&mut self, object: Object, end: End) {
        let (from, is_shared) = match (self.taken.remove(&object), object) {
            (Some(taken), _) => (taken.at, taken.is_shared),
            (None, Object::Address(_)) => {
                *self.foreign.entry((end.thread, end.signature)).or_default() += 1;
                (i64::MIN, false)
            }
            // The lock may have been acquired during a pause of the recording.
            (None, Object::Window(..)) => return,
        };
        self.given_back.push(Hold {
            object,
            is_shared,
            from,
            end,
            is_kept: false,
        });
    }

    /// Keeps the last releases of each lock.
    pub fn keep_last(&mut self) {
        let mut counts: FxHashMap<Object, usize> = FxHashMap::default();
        let mut last: Vec<Hold> = Vec::new();
        for hold in self.given_back.drain(..).rev() {
            let count = counts.entry(hold.object).or_default();
            *count += 1;
            if *count <= KEPT {
                last.push(Hold {
                    is_kept: true,
                    ..hold
                });
            }
        }
        last.reverse();
        self.given_back = last;
    }

    /// Locks that were never released, by the call that acquired them, and calls that released a
    /// lock that the rank did not hold: thread, signature, count.
    pub fn odd(&self) -> [BTreeMap<(u32, u32), u64>; 2] {
        let mut kept: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for taken in self.taken.values() {
            *kept.entry((taken.thread, taken.signature)).or_default() += 1;
        }
        [kept, self.foreign.clone()]
    }
}

impl Hold {
    /// Whether this lock excludes the one that `watch` waits for.
    fn conflicts(&self, watch: &Watch) -> bool {
        match self.object {
            Object::Address(address) => watch.is(Kind::Lock) && address == watch.address,
            Object::Window(window, target) => {
                let wanted = watch.value as i64 as i32;
                let meets = target == wanted || target < 0 || wanted < 0;
                let excludes = watch.is(Kind::ExclusiveWindow)
                    || watch.is(Kind::SharedWindow) && !self.is_shared;
                excludes && meets && window == watch.address
            }
        }
    }
}

/// Cost of each holder to a PE that waits from `enter` on, ns: from the release of the holder
/// before to its own release. Sorts the holders.
pub fn shares(enter: i64, held: &mut [Held]) -> Vec<i64> {
    held.sort_unstable_by_key(|held| (held.until, held.from, held.detail.rank, held.detail.event));
    let first = held.first().map_or(enter, |first| first.from.max(enter));
    let before = held.iter().map(|held| held.until);
    let before = std::iter::once(first).chain(before);
    let shares = held
        .iter()
        .zip(before)
        .map(|(held, before)| held.until - before);
    shares.map(|share| share.max(0)).collect()
}

impl RemoteMemory {
    /// The times in which this rank held a lock during another rank's wait for it, as far as it
    /// released it in this slab; or before, if this is the first slab that is searched.
    pub fn held<'r>(
        &'r self,
        own: &'r Recorded,
        watch: &'r Watch,
        is_first: bool,
    ) -> impl Iterator<Item = Held> + 'r {
        let holds = self.locks.given_back.iter();
        let during = move |hold: &&Hold| {
            let waits = hold.end.time > watch.enter && hold.end.time <= watch.leave;
            waits && (is_first || !hold.is_kept) && own.rank != watch.rank && hold.conflicts(watch)
        };
        holds.filter(during).map(|hold| Held {
            id: watch.id,
            from: hold.from,
            until: hold.end.time,
            detail: own.late(&hold.end, watch.enter.max(hold.from), watch.by()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(from: i64, until: i64) -> Held {
        Held {
            from,
            until,
            ..Held::default()
        }
    }

    #[test]
    fn holders_share_the_wait() {
        let mut passed_on = [held(62, 90), held(0, 60), held(91, 120)];
        assert_eq!(shares(20, &mut passed_on), [40, 30, 30]);
        assert_eq!(passed_on[0].until, 60);
    }

    #[test]
    fn locks_of_windows_conflict_unless_they_are_shared() {
        let hold = |target, is_shared| Hold {
            object: Object::Window(7, target),
            is_shared,
            from: 0,
            end: End {
                time: 0,
                event: 0,
                signature: 0,
                thread: 0,
            },
            is_kept: false,
        };
        let watch = |kind: Kind, target: i32| Watch {
            address: 7,
            value: target as i64 as u64,
            kind: kind as u32,
            ..Watch::default()
        };
        let (alone, together) = (Kind::ExclusiveWindow, Kind::SharedWindow);
        assert!(hold(2, false).conflicts(&watch(alone, 2)));
        assert!(hold(2, true).conflicts(&watch(alone, 2)));
        assert!(hold(2, false).conflicts(&watch(together, 2)));
        assert!(!hold(2, true).conflicts(&watch(together, 2)));
        assert!(!hold(2, false).conflicts(&watch(alone, 1)));
        assert!(hold(-1, true).conflicts(&watch(alone, 1)));
        assert!(hold(1, false).conflicts(&watch(together, -1)));
        assert!(!hold(-1, true).conflicts(&watch(Kind::Lock, 1)));
    }

    #[test]
    fn who_gives_back_what_another_took_ends_waits_for_it() {
        let end = End {
            time: 90,
            event: 7,
            signature: 3,
            thread: 0,
        };
        let mut locks = Locks::default();
        locks.give_back(Object::Window(5, 0), end);
        assert!(locks.given_back.is_empty());
        locks.give_back(Object::Address(64), end);
        let hold = locks.given_back[0];
        assert_eq!((hold.from, hold.end.time), (i64::MIN, 90));
        assert_eq!(
            locks.odd(),
            [BTreeMap::new(), BTreeMap::from([((0, 3), 1)])]
        );
        assert_eq!(shares(40, &mut [held(hold.from, hold.end.time)]), [50]);
    }

    #[test]
    fn a_lock_that_was_free_costs_from_when_another_took_it() {
        assert_eq!(shares(20, &mut [held(25, 60)]), [35]);
        assert!(shares(20, &mut []).is_empty());
    }
}
