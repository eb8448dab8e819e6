//! What a location waited for while somebody waited for it: one step of a chain from a wait to the one
//! that all wait for.

use anyhow::Result;
use laggard_overlay::Stop;
use laggard_overlay::filters::First;
use laggard_patterns::PatternId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds};
use crate::share::Share;

/// A location that is waited for, and since when until when.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meanwhile {
    /// Position of the location.
    pub location: usize,
    /// When the wait for it began.
    pub from_s: f64,
    /// When it came.
    pub until_s: f64,
}

/// A wait: how much of it lies there, since when and for how long it lasts, whom it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Longest {
    within: i64,
    since: i64,
    lost: i64,
    until: i64,
    pattern: u32,
    late_location: u32,
    late_rank: u32,
    late_enter: i64,
}

impl Asked for Meanwhile {
    /// The wait of which most lies in the stretch, at the share that has the location.
    type Part = Option<First<Longest>>;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        stop.check()?;
        let chosen = share.chosen(Some(self.location), Some(self.location))?;
        let stretch = share.stretch(Some(self.from_s), Some(self.until_s))?;
        if share.own(&chosen).is_empty() {
            return Ok(None);
        }
        let waits = share.index_of(self.location).waits(stretch);
        let waits = waits.map(|wait| Longest {
            within: wait.within(stretch),
            since: wait.since,
            lost: wait.lost,
            until: wait.until,
            pattern: wait.pattern,
            late_location: wait.late_location,
            late_rank: wait.late_rank,
            late_enter: wait.late_enter,
        });
        Ok(waits.max().map(First))
    }

    fn answer(&self, share: &Share, part: Self::Part) -> Result<Value> {
        let longest = part.map(|First(wait)| {
            let pattern = u8::try_from(wait.pattern)
                .ok()
                .and_then(PatternId::from_number);
            let has_late = wait.late_rank != u32::MAX;
            json!({
                "since_s": seconds(wait.since),
                "lost_s": seconds(wait.lost),
                "until_s": seconds(wait.until),
                "within_s": seconds(wait.within),
                "pattern": pattern.map_or("", PatternId::name),
                "late_rank": has_late.then_some(wait.late_rank),
                "late_thread": share.thread(wait.late_location),
                "late_location": (wait.late_location != u32::MAX).then_some(wait.late_location),
                "late_enter_s": has_late.then(|| seconds(wait.late_enter)),
            })
        });
        Ok(json!({"rank": share.placed(self.location).rank, "wait": longest}))
    }
}
