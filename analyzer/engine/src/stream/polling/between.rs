//! Time between looks that counts as looking.

/// Calls after which time between looks is told apart. There are as many as a loop has looks.
const AFTER: usize = 4;

/// Time between looks that counts as looking, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Between {
    pub(super) all: u64,
    /// The part of it that is between records, by the signature of the one before, with the ticks in which others had
    /// the processor.
    pub(super) after: [(u32, u64, u64); AFTER],
    /// Time in calls between looks that do nothing, by their signature: it counts as time of the looks.
    pub(super) idle: [(u32, u64); AFTER],
}

impl Between {
    /// Adds `all`, of which some is after a record with this signature.
    pub(super) fn add(&mut self, all: i64, (signature, time, preempted): (u32, i64, u64)) {
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
    pub(super) fn add_idle(&mut self, (signature, time): (u32, u64)) {
        let mut known = self.idle.iter();
        let at = known.position(|(of, sum)| *of == signature || *sum == 0);
        let (of, sum) = &mut self.idle[at.unwrap_or(AFTER - 1)];
        if *sum == 0 {
            *of = signature;
        }
        *sum = sum.saturating_add(time);
    }

    pub(super) fn merge(&mut self, other: &Between) {
        self.all = self.all.saturating_add(other.all);
        let (after, idle) = (other.after, other.idle);
        after.into_iter().for_each(|part| self.add_after(part));
        idle.into_iter().for_each(|part| self.add_idle(part));
    }
}
