//! Binds ranks to cores where a host has more ranks than cores.
//!
//! Launchers bind ranks if there are enough cores. If there are not, the system puts ranks
//! anywhere. Two members of a pair may share one core for a while, with the other one idle. They
//! take turns and are far slower than two on separate cores.

use laggard_comm as comm;

/// The cores that this rank may use.
pub struct Cores(Vec<usize>);

impl Cores {
    /// The cores of this process; none to choose from if the launcher has chosen.
    pub fn new() -> Cores {
        if !comm::is_crowded() {
            return Cores(Vec::new());
        }
        // SAFETY: all zeros are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is valid for writing, and its size is passed.
        let asked = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        if asked != 0 {
            return Cores(Vec::new());
        }
        let is_in = |core: &usize| {
            // SAFETY: below the size of the set.
            unsafe { libc::CPU_ISSET(*core, &set) }
        };
        Cores((0..libc::CPU_SETSIZE as usize).filter(is_in).collect())
    }

    /// Binds this rank to one of them: the `number`th rank at work on this host takes the
    /// `number`th core, wrapping around.
    pub fn take(&self, number: usize) {
        if self.0.len() < 2 {
            return;
        }
        // SAFETY: all zeros are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the core was in a set of this size.
        unsafe { libc::CPU_SET(self.0[number % self.0.len()], &mut set) };
        // SAFETY: the set is valid, and its size is passed. If the system refuses, the rank stays
        // where it is.
        unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    }
}
