//! Selects the agents that can know who ended a wait for a value or a lock, or who competed with a
//! transfer: those whose ranks use that memory or that lock, according to their signatures.

use laggard_comm::Job;
use laggard_trace::calls::{self, GenericType};
use laggard_trace::{Endpoint, PEER_NONE, Signature, flags};
use rustc_hash::FxHashSet;

use crate::replay::rank::Rank;
use crate::stream::roles::Role;
use crate::wire::parcels::{Parcel, Touched};
use crate::wire::watched::{Kind, Watch};

/// Most ranges of ranks, or locks, that an agent reports. With more, it says that it may know of
/// all.
const MOST: usize = 4096;

/// Memory and locks used by the ranks of one agent.
#[derive(Debug, Default)]
pub struct Interests {
    /// World ranks in whose memory they read or write: first and last of ranges, ascending; all if
    /// `None`.
    targets: Option<Vec<[u64; 2]>>,
    /// Whether they use locks of OpenSHMEM. Only the records tell which.
    symmetric_locks: bool,
    /// Windows on which they acquire locks; all if `None`.
    windows: Option<FxHashSet<u64>>,
}

/// The other end of a one-sided call.
fn target(signature: &Signature, generic: GenericType) -> Option<Endpoint> {
    match generic {
        GenericType::OneSidedGet => Some(signature.receive),
        GenericType::OneSidedPut => Some(signature.send),
        // It may only read.
        GenericType::OneSidedAtomic if signature.send.peer == PEER_NONE => Some(signature.receive),
        GenericType::OneSidedAtomic => Some(signature.send),
        _ => None,
    }
}

impl Interests {
    /// The interests of each agent's ranks. Collective.
    pub fn gather(job: &dyn Job, ranks: &[Rank]) -> Vec<Interests> {
        if job.agents() == 1 {
            return vec![Interests::default()];
        }
        let locations = ranks.iter().flat_map(|rank| &rank.recorded.threads);
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
        let mut windows: Option<FxHashSet<u64>> = Some(FxHashSet::default());
        let mut symmetric_locks = false;
        for signature in signatures {
            let Some(call) = calls::call(signature.operation) else {
                continue;
            };
            if signature.has(flags::FAILED) {
                continue;
            }
            if let Some(target) = target(signature, call.generic) {
                match (u32::try_from(target.peer), &mut targets) {
                    (Ok(target), Some(targets)) => _ = targets.insert(target),
                    // To MPI_PROC_NULL. For a fallback signature, which has no bytes, the targets
                    // are in the records.
                    (Err(_), _) if target.peer == PEER_NONE && target.bytes > 0 => {}
                    _ => targets = None,
                }
            }
            let is_lock = matches!(call.generic, GenericType::Lock | GenericType::Unlock);
            symmetric_locks |= is_lock && call.is_shmem();
            if Role::of(signature.operation) == Role::Passive {
                match &mut windows {
                    Some(windows) if signature.group != 0 => _ = windows.insert(signature.group),
                    _ => windows = None,
                }
            }
        }
        Interests {
            targets: targets.map(ranges).filter(|ranges| ranges.len() <= MOST),
            symmetric_locks,
            windows: windows.filter(|windows| windows.len() <= MOST),
        }
    }

    fn packed(self) -> Touched {
        let everybody = vec![[0, u64::MAX]];
        let all_windows = u64::from(self.windows.is_none());
        let mut windows: Vec<[u64; 2]> = self
            .windows
            .into_iter()
            .flatten()
            .map(|window| [window, 0])
            .collect();
        windows.sort_unstable();
        Touched {
            targets: self.targets.unwrap_or(everybody),
            windows,
            locks: vec![[u64::from(self.symmetric_locks), all_windows]],
        }
    }

    /// Whether the agent may know about a wait; `has_target`: the target of the window is one of
    /// its ranks.
    pub fn may_know(&self, watch: &Watch, has_target: bool) -> bool {
        let touches = |rank: u64| match &self.targets {
            Some(ranges) => {
                let at = ranges.partition_point(|range| range[1] < rank);
                ranges.get(at).is_some_and(|range| range[0] <= rank)
            }
            None => true,
        };
        let windows = self.windows.as_ref();
        if watch.expected > 0 && touches(watch.value) {
            return true;
        }
        if watch.is_of_window() {
            has_target || windows.is_none_or(|windows| windows.contains(&watch.address))
        } else if watch.is(Kind::Lock) {
            self.symmetric_locks
        } else if watch.is(Kind::Value) {
            touches(u64::from(watch.holder()))
        } else {
            false
        }
    }
}

impl From<Touched> for Interests {
    fn from(touched: Touched) -> Self {
        let [symmetric, all_windows] = touched.locks.first().copied().unwrap_or_default();
        let windows = touched.windows.into_iter().map(|[window, _]| window);
        Interests {
            targets: Some(touched.targets),
            symmetric_locks: symmetric != 0,
            windows: (all_windows == 0).then(|| windows.collect()),
        }
    }
}

/// Ranges of successive ranks: first and last, ascending.
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
    use laggard_trace::calls::number;

    /// shmem_set_lock.
    const SET_LOCK: u16 = 1050;

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

    /// The interests as other agents get them.
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
        // The agent of the target.
        assert!(some.may_know(&waits(Kind::SharedWindow, 8, 0), true));
        let none = told(&[]);
        assert!(!none.may_know(&transfer(0), false));
    }

    #[test]
    fn who_cannot_say_is_told_everything() {
        let nowhere = told(&[put(PEER_NONE)]);
        assert!(!nowhere.may_know(&transfer(77), false));
        let lock = Signature {
            operation: SET_LOCK,
            ..Signature::default()
        };
        let unsaid = told(&[put(-3), window(0), lock]);
        assert!(unsaid.may_know(&transfer(77), false));
        assert!(unsaid.may_know(&waits(Kind::Value, 1, 1 << 20), false));
        assert!(unsaid.may_know(&waits(Kind::Lock, 1, 0), false));
        let scattered: Vec<Signature> = (0..2 * MOST as i32 + 2).map(|n| put(2 * n)).collect();
        assert!(told(&scattered).may_know(&transfer(1), false));
    }
}
