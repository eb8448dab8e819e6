//! Groups of PEs: all PEs, and the active sets that each OpenSHMEM collective names. In the
//! trace they are communicators. Their identity follows from the PE numbers, so all members
//! know it without a message.

use std::ffi::c_int;

use laggard_trace::ALL_PES;

use super::registry::{self, domain};
use super::{Group, Kind, Members};
use crate::hash::Identity;
use crate::run;

/// The PEs that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pes {
    /// All PEs.
    All,
    /// `size` PEs from `start` on, 2^`log_stride` apart.
    ActiveSet {
        /// First PE.
        start: c_int,
        /// Logarithm (base 2) of the distance.
        log_stride: c_int,
        /// Number of PEs.
        size: c_int,
    },
}

/// Most PEs of a set; limited by the bits in parts of a key.
const MOST: i64 = 1 << 24;

impl Pes {
    /// The set as a handle. No other handle has the highest bit: user-space addresses lack it,
    /// and MPICH's handles have 32 bits.
    #[inline(always)]
    pub fn key(self) -> usize {
        const MARK: usize = 1 << 63;
        match self {
            Pes::All => MARK,
            Pes::ActiveSet {
                start,
                log_stride,
                size,
            } => {
                let part = |number: c_int| number as u32 as usize & (MOST as usize - 1);
                MARK | part(log_stride) << 56 & (MARK - 1) | part(start) << 28 | part(size)
            }
        }
    }

    /// Its PEs in a job of `all` PEs; `None` if it names one that does not exist.
    fn members(self, all: i64) -> Option<Vec<i32>> {
        let (start, log_stride, size) = match self {
            Pes::All => (0, 0, all),
            Pes::ActiveSet {
                start,
                log_stride,
                size,
            } => (i64::from(start), log_stride, i64::from(size)),
        };
        if start < 0 || !(0..32).contains(&log_stride) || !(1..=all.min(MOST)).contains(&size) {
            return None;
        }
        let stride = 1i64 << log_stride;
        (start + (size - 1) * stride < all)
            .then(|| (0..size).map(|n| (start + n * stride) as i32).collect())
    }

    fn id(self) -> u64 {
        match self {
            Pes::All => ALL_PES,
            Pes::ActiveSet {
                start,
                log_stride,
                size,
            } => {
                let numbers = [start, log_stride, size].map(|number| number as u64);
                let id = Identity::new(domain::ACTIVE_SET);
                numbers.into_iter().fold(id, Identity::with).id()
            }
        }
    }
}

/// The group of these PEs, if this process is one of them.
pub fn group(pes: Pes) -> Option<&'static Group> {
    let header = &run::settings()?.header;
    registry::known_or(Kind::Intra, pes.key(), |table| {
        let members = pes.members(i64::from(header.ranks))?;
        let rank = members.iter().position(|&pe| pe as u32 == header.rank)?;
        let members = Members {
            rank: rank as i32,
            local: table(members),
            remote: &[],
            topology: None,
        };
        Some(Group::new(pes.id(), 0, Kind::Intra, members, pes.key()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(start: c_int, log_stride: c_int, size: c_int) -> Pes {
        Pes::ActiveSet {
            start,
            log_stride,
            size,
        }
    }

    #[test]
    fn members_are_a_power_of_two_apart() {
        assert_eq!(set(1, 1, 3).members(6), Some(vec![1, 3, 5]));
        assert_eq!(set(0, 0, 2).members(2), Some(vec![0, 1]));
        assert_eq!(Pes::All.members(3), Some(vec![0, 1, 2]));
    }

    #[test]
    fn sets_that_make_no_sense_have_none() {
        for wrong in [
            set(-1, 0, 1),
            set(0, -1, 1),
            set(0, 40, 1),
            set(0, 0, 0),
            set(0, 0, 7),
            set(1, 1, 4),
            set(c_int::MAX, 31, c_int::MAX),
        ] {
            assert_eq!(wrong.members(6), None, "{wrong:?}");
        }
    }

    #[test]
    fn keys_and_identities_differ() {
        let sets = [
            Pes::All,
            set(0, 0, 4),
            set(0, 1, 4),
            set(1, 0, 4),
            set(0, 0, 5),
        ];
        let keys: std::collections::HashSet<_> = sets.iter().map(|set| set.key()).collect();
        let ids: std::collections::HashSet<_> = sets.iter().map(|set| set.id()).collect();
        assert_eq!((keys.len(), ids.len()), (sets.len(), sets.len()));
    }
}
