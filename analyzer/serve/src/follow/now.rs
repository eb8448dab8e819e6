//! In which calls ranks are now, and whom they wait for.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use laggard_report::{RankSet, list_of_ranks, rank_ranges};
use laggard_trace::calls;
use serde::{Deserialize, Serialize};

use crate::news::Call;
use crate::questions::short;
use crate::share::Share;

/// Most rows of a list.
pub const ROWS: usize = 20;
/// A call is told of that lasts so long.
const LASTS: Duration = Duration::from_secs(1);
/// Everybody stands still who has been in the same call for so long.
const STANDS: Duration = Duration::from_secs(2);

/// When calls that are under way were seen first, by position of the location in the run.
#[derive(Default)]
pub struct Looks(HashMap<usize, (u64, Instant)>);

/// Who is in a call.
#[derive(Default, Serialize, Deserialize)]
struct InCall {
    ranks: Vec<u32>,
    /// Of ranks with several threads, those that are there.
    threads: Vec<u32>,
    /// For at least.
    ms: u64,
}

/// What was seen of some locations.
#[derive(Default, Serialize, Deserialize)]
pub struct Seen {
    /// By call, place, and who is waited for (−1 = nobody alone).
    calls: BTreeMap<(u16, String, i32), InCall>,
    /// Locations that are written and do not stand still.
    moving: u64,
    standing: u64,
}

impl Looks {
    /// Looks at this agent's locations.
    pub fn look(&mut self, share: &Share) -> Seen {
        let mut seen = Seen::default();
        let now = Instant::now();
        let events = share.events();
        for own in 0..events.locations() {
            let (at, place) = (events.first + own, events.place(own));
            if place.is_complete {
                continue;
            }
            let Some(open) = events.open_call(own) else {
                self.0.remove(&at);
                seen.moving += 1;
                continue;
            };
            let since = match self.0.get(&at) {
                Some(&(enter, since)) if enter == open.enter => since,
                _ => now,
            };
            self.0.insert(at, (open.enter, since));
            let lasts = now - since;
            match lasts >= STANDS {
                true => seen.standing += 1,
                false => seen.moving += 1,
            }
            if lasts < LASTS {
                continue;
            }
            let place_of = events.place_of(own, open.call_path).short();
            let key = (open.operation, place_of, open.peer.max(-1));
            let row = seen.calls.entry(key).or_default();
            row.ranks.push(place.rank);
            row.threads.extend(share.thread_apart(at));
            row.ms = row.ms.max(lasts.as_millis() as u64);
        }
        seen
    }
}

impl Seen {
    /// Adds what another agent has seen.
    pub fn add(&mut self, other: Seen) {
        for (key, seen) in other.calls {
            let row = self.calls.entry(key).or_default();
            row.ranks.extend(seen.ranks);
            row.threads.extend(seen.threads);
            row.ms = row.ms.max(seen.ms);
        }
        self.moving += other.moving;
        self.standing += other.standing;
    }

    /// Whether nobody has got further for some time.
    pub fn stands(&self) -> bool {
        self.moving == 0 && self.standing > 0
    }

    /// Calls at a place, and whom they wait for: how many there are.
    pub fn calls_in_all(&self) -> usize {
        self.calls.len()
    }

    /// The calls that have lasted longest, these first.
    pub fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.ms));
        let row = |((call, place, peer), seen): (&(u16, String, i32), &InCall)| {
            let ranks: RankSet = seen.ranks.iter().copied().collect();
            Call {
                ranks: list_of_ranks(ranks.iter(), ROWS),
                threads: short(&rank_ranges(seen.threads.iter().copied())),
                call: calls::call(*call).map_or_else(String::new, |call| call.name.to_owned()),
                place: place.clone(),
                waits_for: u32::try_from(*peer).ok(),
                for_s: seen.ms as f64 / 1e3,
            }
        };
        calls.into_iter().take(ROWS).map(row).collect()
    }
}
