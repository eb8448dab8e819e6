//! Computation between two calls, by the function that it was in.

use crate::output::Output;
use crate::paths::Paths;

/// Time since the last call of a location.
#[derive(Debug, Default)]
pub struct Computed {
    /// By node of the tree of call paths: ticks.
    spent: Vec<(u32, u64)>,
    /// What is before it is counted, ticks.
    since: u64,
}

impl Computed {
    /// Until this moment, the location was in the function of a node.
    pub fn pass(&mut self, time: u64, node: u32) {
        let ticks = time.saturating_sub(self.since);
        self.since = time;
        if ticks == 0 {
            return;
        }
        match self.spent.iter_mut().find(|(other, _)| *other == node) {
            Some((_, sum)) => *sum += ticks,
            None => self.spent.push((node, ticks)),
        }
    }

    /// A call was left: what was before it is over.
    pub fn begin(&mut self, time: u64) {
        self.spent.clear();
        self.since = time;
    }

    /// The time until a call: call path in the output, and ticks. Empty if it was in no function.
    pub fn take(&mut self, paths: &mut Paths, output: &mut Output) -> Vec<(u32, u64)> {
        let spent = std::mem::take(&mut self.spent).into_iter();
        let known = spent.map(|(node, ticks)| (paths.call_path(node, output), ticks));
        let known: Vec<_> = known.collect();
        match known.iter().all(|(path, _)| *path == 0) {
            true => Vec::new(),
            false => known,
        }
    }
}
