//! Locks of OpenSHMEM: who held one while a PE waited for it.

use rustc_hash::FxHashMap;

use super::channel::End;
use super::rank::{CallAt, Rank};
use super::watch::{Held, Watch};

/// A lock that a rank gave back in this slab.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Symmetric address.
    lock: u64,
    /// When it was taken, ns.
    from: i64,
    /// The call that gave it back.
    end: End,
}

/// The locks of a rank.
#[derive(Debug, Default)]
pub struct Locks {
    /// When those were taken that it holds, ns.
    taken: FxHashMap<u64, i64>,
    /// What it gave back in this slab.
    pub given_back: Vec<Hold>,
}

impl Locks {
    /// A lock is taken when the call returns.
    pub fn take(&mut self, call: &CallAt, lock: u64) {
        self.taken.insert(lock, call.leave);
    }

    /// A lock is given back from when the call is entered. Of one that another PE took it is
    /// not known who held it.
    pub fn give_back(&mut self, lock: u64, end: End) {
        if let Some(from) = self.taken.remove(&lock) {
            self.given_back.push(Hold { lock, from, end });
        }
    }
}

impl Rank<'_> {
    /// How this rank, another one than the waiting one, held a lock during a wait for it, as far
    /// as it gave it back in this slab.
    pub(super) fn held<'r>(&'r self, watch: &'r Watch) -> impl Iterator<Item = Held> + 'r {
        let holds = self.locks.given_back.iter();
        let during = |hold: &&Hold| {
            let waits = hold.end.time > watch.enter && hold.end.time <= watch.leave;
            waits && hold.lock == watch.address && self.rank != watch.rank
        };
        holds.filter(during).map(|hold| Held {
            id: watch.id,
            from: hold.from,
            until: hold.end.time,
            event: hold.end.event,
            detail: self.late(&hold.end, watch.enter.max(hold.from)),
        })
    }
}

/// What each holder costs a PE that waits from `enter` on, ns: until it gave the lock back, from
/// when the holder before did. Brings the holders in order.
pub fn shares(enter: i64, held: &mut [Held]) -> Vec<i64> {
    held.sort_unstable_by_key(|held| (held.until, held.from, held.detail.rank, held.event));
    let first = held.first().map_or(enter, |first| first.from.max(enter));
    let before = held.iter().map(|held| held.until);
    let before = std::iter::once(first).chain(before);
    let shares = held
        .iter()
        .zip(before)
        .map(|(held, before)| held.until - before);
    shares.map(|share| share.max(0)).collect()
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
    fn a_lock_that_was_free_costs_from_when_another_took_it() {
        assert_eq!(shares(20, &mut [held(25, 60)]), [35]);
        assert!(shares(20, &mut []).is_empty());
    }
}
