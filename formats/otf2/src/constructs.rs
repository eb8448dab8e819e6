//! Recognises regions of OpenMP and of POSIX threads, as Score-P and other recorders write them.
//!
//! A construct is known by the role of its region, and by the words of its name where recorders give
//! another role: `!$omp taskwait @file.c:12` is a barrier for one of Score-P's adapters. Functions are known
//! by their names.

use laggard_trace::calls::{CALLS, number};

use crate::definitions::{PARADIGM_OPENMP, PARADIGM_PTHREAD, Region};

/// `OTF2_RegionRole` of the constructs.
#[allow(missing_docs)]
pub mod role {
    pub const PARALLEL: u8 = 5;
    pub const SECTIONS: u8 = 6;
    pub const CRITICAL: u8 = 12;
    pub const CRITICAL_SBLOCK: u8 = 13;
    pub const BARRIER: u8 = 15;
    pub const IMPLICIT_BARRIER: u8 = 16;
    pub const ORDERED: u8 = 18;
    pub const ORDERED_SBLOCK: u8 = 19;
    pub const TASK_WAIT: u8 = 22;
}

/// What a region of threads is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Construct {
    /// A thread's part in a parallel region.
    Parallel,
    /// A construct with sections; its barrier is told apart.
    Sections,
    /// A wait at the end of a construct, or of the parallel region.
    ImplicitBarrier,
    /// The code that only one thread at a time executes.
    CriticalBody,
    /// The code that threads execute in turn.
    OrderedBody,
    /// A call of the table of threads, by number.
    Call(u16),
}

impl Construct {
    /// What a region is; `None` if threads do not wait there.
    pub fn of(region: &Region, name: &[u8]) -> Option<Construct> {
        let name = name.trim_ascii().to_ascii_lowercase();
        match region.paradigm {
            PARADIGM_OPENMP => {}
            PARADIGM_PTHREAD => return called(&name).map(Construct::Call),
            _ => return None,
        }
        if let Some(call) = called(&name) {
            return Some(Construct::Call(call));
        }
        let construct = name.strip_prefix(b"!$omp ").unwrap_or_default();
        let is = |word: &str| construct.starts_with(word.as_bytes());
        Some(match region.role {
            _ if is("taskwait") => Construct::Call(number::omp_taskwait),
            _ if is("taskgroup") => Construct::Call(number::omp_taskgroup_end),
            role::PARALLEL => Construct::Parallel,
            role::SECTIONS => Construct::Sections,
            role::CRITICAL => Construct::Call(number::omp_critical),
            role::CRITICAL_SBLOCK => Construct::CriticalBody,
            role::BARRIER => Construct::Call(number::omp_barrier),
            role::IMPLICIT_BARRIER => Construct::ImplicitBarrier,
            role::ORDERED => Construct::Call(number::omp_ordered),
            role::ORDERED_SBLOCK => Construct::OrderedBody,
            role::TASK_WAIT => Construct::Call(number::omp_taskwait),
            _ => return None,
        })
    }
}

/// A name without its place, which a region has besides: `!$omp barrier @file.c:12`.
pub fn shown(name: &[u8]) -> &[u8] {
    let place = name.windows(2).rposition(|two| two == b" @");
    match place.filter(|_| name.starts_with(b"!$omp ")) {
        Some(at) => &name[..at],
        None => name,
    }
}

/// The call of the table of threads with this name, also as Fortran mangles it.
fn called(name: &[u8]) -> Option<u16> {
    let name = name.strip_suffix(b"()").unwrap_or(name);
    let end = name.iter().rposition(|&byte| byte != b'_')?;
    let name = &name[..=end];
    let mut calls = CALLS.iter().filter(|call| call.is_threads());
    let found = calls.find(|call| call.name.as_bytes() == name);
    found.map(|call| call.number)
}

/// Whether it is a wait for all threads of a team.
pub fn meets(call: u16) -> bool {
    use number::*;
    [
        omp_barrier,
        omp_loop_end,
        omp_sections_end,
        omp_parallel_end,
    ]
    .contains(&call)
}

/// Whether it is a wait for tasks.
pub fn awaits_tasks(call: u16) -> bool {
    [number::omp_taskwait, number::omp_taskgroup_end].contains(&call)
}

/// Whether it waits for a lock until it is acquired.
pub fn locks(call: u16) -> bool {
    use number::*;
    [
        omp_critical,
        omp_set_lock,
        omp_set_nest_lock,
        pthread_mutex_lock,
        mtx_lock,
        pthread_spin_lock,
        pthread_rwlock_rdlock,
        pthread_rwlock_wrlock,
    ]
    .contains(&call)
}

/// Whether it gives a lock back.
pub fn unlocks(call: u16) -> bool {
    use number::*;
    [
        omp_critical_end,
        omp_unset_lock,
        omp_unset_nest_lock,
        pthread_mutex_unlock,
        mtx_unlock,
        pthread_spin_unlock,
        pthread_rwlock_unlock,
    ]
    .contains(&call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_constructs_are_shown_without_their_place() {
        assert_eq!(shown(b"!$omp for @a.c:3"), b"!$omp for");
        assert_eq!(shown(b"f @a.c:3"), b"f @a.c:3");
        assert_eq!(shown(b"!$omp critical"), b"!$omp critical");
    }

    #[test]
    fn constructs_are_known_by_role_and_name() {
        let of = |role, paradigm, name: &str| {
            let region = Region {
                role,
                paradigm,
                name: 0,
                canonical: 0,
                file: 0,
                line: 0,
            };
            Construct::of(&region, name.as_bytes())
        };
        let barrier = Some(Construct::Call(number::omp_barrier));
        let taskwait = Some(Construct::Call(number::omp_taskwait));
        let openmp = PARADIGM_OPENMP;
        assert_eq!(of(role::BARRIER, openmp, "!$omp barrier @a.c:3"), barrier);
        assert_eq!(of(role::BARRIER, openmp, "!$omp taskwait @a.c:3"), taskwait);
        assert_eq!(of(role::TASK_WAIT, openmp, "!$omp taskwait"), taskwait);
        for name in ["omp_set_lock", "OMP_SET_LOCK", "omp_set_lock_"] {
            let set = Some(Construct::Call(number::omp_set_lock));
            assert_eq!(of(2, openmp, name), set, "{name}");
        }
        assert_eq!(of(2, openmp, "omp_test_lock"), None);
        assert_eq!(of(role::BARRIER, 2, "!$omp barrier @a.c:3"), None);
        assert_eq!(of(1, 2, "omp_set_lock"), None);
    }
}
