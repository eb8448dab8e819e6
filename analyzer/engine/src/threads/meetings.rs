//! Who has come to a meeting of threads of a rank, until all have.

use rustc_hash::FxHashMap;

use crate::stream::call::CallAt;

/// Threads that have come to meetings, in order. Of those whose meeting never is complete, others are
/// missing: they were not recorded.
#[derive(Debug, Default)]
pub struct Meetings {
    /// By key.
    here: FxHashMap<u64, Vec<CallAt>>,
}

impl Meetings {
    /// A thread comes to a meeting of `size` threads, after those that came before. Returns the calls of
    /// all if it is the last one.
    pub fn come(&mut self, call: &CallAt, (key, size): (u64, u32)) -> Option<Vec<CallAt>> {
        let here = self.here.entry(key).or_default();
        here.push(*call);
        match here.len() < size as usize {
            true => None,
            false => self.here.remove(&key),
        }
    }

    /// All calls entered before `until` are known, ns: forgets what will never be complete. Nobody
    /// leaves a meeting before all have come.
    pub fn forget(&mut self, until: i64) {
        let may_go_on = |call: &CallAt| call.leave >= until;
        self.here.retain(|_, here| here.iter().all(may_go_on));
    }
}
