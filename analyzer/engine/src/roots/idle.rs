//! When locations idle, and where the critical path may leave them.

use laggard_trace::calls::Shape;

use crate::roots::load::{Load, Sent};
use crate::roots::map::WaitMap;
use crate::roots::path::{self, Jumps};
use crate::stream::thread::Thread;
use crate::wire::links::{Jump, Link};

/// What is known of it so far.
pub(super) struct Idle<'s> {
    /// By number of the location.
    threads: Vec<&'s Thread<'s>>,
    pub(super) load: Load,
    pub(super) sent: Sent,
    pub(super) map: WaitMap,
    pub(super) jumps: Jumps,
    /// Threads that are started later, latest first: when, ns, their locations, and rank and number of the
    /// threads that they go on from.
    started: Vec<(i64, u32, (u32, u32))>,
}

impl<'s> Idle<'s> {
    /// Of a run of so many ranks that ends at `end`, ns.
    pub(super) fn new(ranks: usize, end: i64) -> Self {
        let load = Load::new(end);
        Idle {
            threads: Vec::new(),
            map: WaitMap::new(ranks, load.width().saturating_mul(2)),
            sent: load.sent(),
            load,
            jumps: Jumps::default(),
            started: Vec::new(),
        }
    }

    /// Adds the next location. `start` is when it is started, ns, and who by, if that is not the launcher.
    pub(super) fn add(
        &mut self,
        rank: u32,
        thread: &'s Thread<'s>,
        start: Option<(i64, (u32, u32))>,
    ) {
        let lane = self.threads.len() as u32;
        self.threads.push(thread);
        self.map.count(rank);
        if let Some((start, main)) = start {
            self.started.push((start, lane, main));
        }
    }

    /// All locations are there.
    pub(super) fn begin(&mut self) {
        self.started.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Notes the waits of a slab that ends at `until`, ns. `own` are the places of each location's `links`.
    pub(super) fn note(&mut self, links: &[Link], own: &[(usize, usize)], until: i64) {
        let mut jumps = Vec::with_capacity(links.len());
        for (lane, &(begin, end)) in (0..).zip(own) {
            let links = &links[begin..end];
            path::jumps(lane, links, &mut jumps);
            let rows = &self.threads[lane as usize].rows;
            // Each by itself: a call's links may be in several slabs. Nobody counts as busy in the
            // shutdown.
            for link in links {
                let began = began(link);
                let row = rows.get(link.signature as usize);
                if row.is_none_or(|row| row.shape != Shape::Finalize) {
                    self.load.add(began, link.time, -1);
                }
                self.map.add(link.rank, began, link.time);
            }
        }
        // A thread goes on from the first one of its rank.
        while let Some((time, lane, main)) = self.started.pop_if(|(start, ..)| *start < until) {
            let (rank, thread) = main;
            jumps.push(Jump {
                lane,
                time,
                rank,
                thread,
            });
        }
        self.jumps.put(jumps);
    }

    /// Notes where a wait is among ranks and time.
    pub(super) fn wait(&mut self, link: &Link) {
        self.map.add(link.rank, began(link), link.time);
    }
}

/// When a location began to wait, ns.
fn began(link: &Link) -> i64 {
    link.time.saturating_sub(link.share).max(link.since())
}
