//! Which agents can know who ended a wait for a value or a lock, or who competed with a transfer:
//! those whose ranks ever touch that memory or that lock, by their signatures.

use laggard_trace::calls::{self, GenericType};
use laggard_trace::{Signature, flags};
use rustc_hash::FxHashSet;

use super::epochs::Role;
use super::rank::Rank;
use super::watch::{Kind, Watch};
use super::wire::{Parcel, Touched};
use crate::comm::Job;

/// Ranges of ranks, or locks, that an agent tells of; with more it says that it may know of all.
const MOST: usize = 4096;

/// What the ranks of one agent touch.
#[derive(Debug, Default)]
pub struct Interests {
    /// World ranks in whose memory they read or write: first and last, ascending; all if `None`.
    targets: Option<Vec<[u64; 2]>>,
    /// See [`lock`]; all if `None`.
    locks: Option<FxHashSet<[u64; 2]>>,
}

/// A lock at a symmetric address, or on a window.
fn lock(is_on_window: bool, id: u64) -> [u64; 2] {
    [u64::from(is_on_window), id]
}

/// The other rank that a one-sided call names.
fn target(signature: &Signature, generic: GenericType) -> Option<i32> {
    match generic {
        GenericType::OneSidedGet => Some(signature.receive.peer),
        GenericType::OneSidedPut | GenericType::OneSidedAtomic => Some(signature.send.peer),
        _ => None,
    }
}

impl Interests {
    /// What each agent's ranks touch. Collective.
    pub fn gather(job: &dyn Job, ranks: &[Rank]) -> Vec<Interests> {
        if job.agents() == 1 {
            return vec![Interests::default()];
        }
        let locations = ranks.iter().flat_map(|rank| &rank.threads);
        let signatures = locations.flat_map(|thread| {
            let location = thread.stream.location();
            location.definitions.signatures()
        });
        let own = Interests::of(signatures).packed();
        let all = job.all_gather(own.pack()).into_iter();
        all.map(|bytes| Interests::from(Touched::unpack(&bytes)))
            .collect()
    }

    fn of<'s>(signatures: impl Iterator<Item = &'s Signature>) -> Interests {
        let mut targets: Option<FxHashSet<u32>> = Some(FxHashSet::default());
        let mut locks: Option<FxHashSet<[u64; 2]>> = Some(FxHashSet::default());
        for signature in signatures {
            let Some(call) = calls::call(signature.operation) else {
                continue;
            };
            if signature.has(flags::PAUSED) {
                continue;
            }
            if let Some(target) = target(signature, call.generic) {
                // Those of a fallback signature are in the records.
                match (u32::try_from(target), &mut targets) {
                    (Ok(target), Some(targets)) => _ = targets.insert(target),
                    _ => targets = None,
                }
            }
            let is_lock = matches!(call.generic, GenericType::Lock | GenericType::Unlock);
            let found = match (call.is_shmem(), Role::of(signature.operation)) {
                (true, _) if is_lock => lock(false, signature.parameter as u64),
                (false, Role::Passive) => lock(true, signature.group),
                _ => continue,
            };
            match &mut locks {
                Some(locks) if found[1] != 0 => _ = locks.insert(found),
                _ => locks = None,
            }
        }
        Interests {
            targets: targets.map(ranges).filter(|ranges| ranges.len() <= MOST),
            locks: locks.filter(|locks| locks.len() <= MOST),
        }
    }

    fn packed(self) -> Touched {
        let everybody = vec![[0, u64::MAX]];
        let mut locks: Vec<[u64; 2]> = match self.locks {
            Some(locks) => locks.into_iter().collect(),
            None => vec![[u64::MAX; 2]],
        };
        locks.sort_unstable();
        Touched {
            targets: self.targets.unwrap_or(everybody),
            locks,
        }
    }

    /// Whether the agent may know something of a wait; `has_target` says whether the target of a
    /// window is one of its ranks.
    pub fn may_know(&self, watch: &Watch, has_target: bool) -> bool {
        let touches = |rank: u64| match &self.targets {
            Some(ranges) => ranges
                .iter()
                .any(|range| range[0] <= rank && rank <= range[1]),
            None => true,
        };
        let locks = |is_on_window| match &self.locks {
            Some(locks) => locks.contains(&lock(is_on_window, watch.address)),
            None => true,
        };
        if watch.expected > 0 && touches(watch.value) {
            return true;
        }
        if watch.is_of_window() {
            has_target || locks(true)
        } else if watch.is(Kind::Lock) {
            locks(false)
        } else if watch.is(Kind::Value) {
            touches(u64::from(watch.rank))
        } else {
            false
        }
    }
}

impl From<Touched> for Interests {
    fn from(touched: Touched) -> Self {
        let knows_all = touched.locks.contains(&[u64::MAX; 2]);
        Interests {
            targets: Some(touched.targets),
            locks: (!knows_all).then(|| touched.locks.into_iter().collect()),
        }
    }
}

/// Successive ranks as first and last, ascending.
fn ranges(ranks: FxHashSet<u32>) -> Vec<[u64; 2]> {
    let mut ranks: Vec<u64> = ranks.into_iter().map(u64::from).collect();
    ranks.sort_unstable();
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some(last) if last[1] + 1 == rank => last[1] = rank,
            _ => ranges.push([rank, rank]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::Endpoint;
    use laggard_trace::calls::number;

    fn put(peer: i32) -> Signature {
        Signature {
            operation: number::MPI_Put,
            send: Endpoint {
                peer,
                tag: 0,
                bytes: 8,
            },
            ..Signature::default()
        }
    }

    fn window(window: u64) -> Signature {
        Signature {
            operation: number::MPI_Win_unlock,
            group: window,
            ..Signature::default()
        }
    }

    /// As the others get it.
    fn told(signatures: &[Signature]) -> Interests {
        let packed = Interests::of(signatures.iter()).packed().pack();
        Interests::from(Touched::unpack(&packed))
    }

    fn transfer(target: u64) -> Watch {
        Watch {
            value: target,
            kind: Kind::Transfer as u32,
            expected: 5,
            ..Watch::default()
        }
    }

    fn waits(kind: Kind, address: u64, rank: u32) -> Watch {
        Watch {
            kind: kind as u32,
            address,
            rank,
            ..Watch::default()
        }
    }

    #[test]
    fn only_who_touches_it_is_told() {
        let some = told(&[put(3), put(5), put(4), window(9)]);
        assert_eq!(some.targets, Some(vec![[3, 5]]));
        for (watch, may_know) in [
            (transfer(4), true),
            (transfer(6), false),
            (waits(Kind::Value, 1, 5), true),
            (waits(Kind::Value, 1, 2), false),
            (waits(Kind::SharedWindow, 9, 0), true),
            (waits(Kind::SharedWindow, 8, 0), false),
            (waits(Kind::Lock, 9, 0), false),
        ] {
            assert_eq!(some.may_know(&watch, false), may_know, "{watch:?}");
        }
        // The target itself.
        assert!(some.may_know(&waits(Kind::SharedWindow, 8, 0), true));
        let none = told(&[]);
        assert!(!none.may_know(&transfer(0), false));
    }

    #[test]
    fn who_cannot_say_is_told_everything() {
        let unsaid = told(&[put(-3), window(0)]);
        assert!(unsaid.may_know(&transfer(77), false));
        assert!(unsaid.may_know(&waits(Kind::Value, 1, 1 << 20), false));
        assert!(unsaid.may_know(&waits(Kind::Lock, 1, 0), false));
        let scattered: Vec<Signature> = (0..2 * MOST as i32 + 2).map(|n| put(2 * n)).collect();
        assert!(told(&scattered).may_know(&transfer(1), false));
    }
}
