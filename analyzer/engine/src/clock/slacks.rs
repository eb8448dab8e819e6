//! Times from causes to effects, which correct the clocks.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;

/// The smallest times from causes on other hosts to effects on a rank.
#[derive(Clone, Debug)]
pub struct Slacks {
    pub own: u32,
    pub of_rank: Arc<[u32]>,
    pub width: i64,
    pub limit: i64,
    /// By clock of the cause and bin.
    pub least: FxHashMap<(u32, u32), Time>,
}

impl Slacks {
    /// Notes a cause that `rank` began at `began`, with its effect here at `ended`, ns.
    #[inline]
    pub fn note(&mut self, rank: i32, began: i64, ended: i64) {
        let clock = self.of_rank.get(rank as usize).copied().unwrap_or(NONE);
        let slack = ended.saturating_sub(began);
        if clock == self.own || clock == NONE || slack > self.limit {
            return;
        }
        let bin = (ended.max(0) / self.width) as u32;
        let time = Time { slack, ended };
        let least = self.least.entry((clock, bin)).or_insert(time);
        *least = time.min(*least);
    }
}

/// Time from a cause to its effect, ns, and the moment of the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time {
    pub slack: i64,
    pub ended: i64,
}
