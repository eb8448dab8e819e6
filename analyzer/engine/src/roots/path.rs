//! The critical path: the chain of activities that ends last. From the end of the run it goes back
//! on a location until a wait, and on from the party that was waited for, at the moment when that
//! one came (Böhme, de Supinski, Geimer, Schulz, Wolf: Scalable critical-path based performance
//! analysis, IPDPS 2012).
//!
//! The head follows it, slab by slab from the last one on, and tells the agents its stretches on
//! their locations.

use anyhow::Result;
use laggard_comm::Job;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::roots::lanes::by_lane;
use crate::wire::links::{Jump, Jumping, Link, Passing, Stretch};
use crate::wire::parcels::exchange;

/// The moments between which the path is sought, ns. The same on all agents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    pub start: i64,
    pub end: i64,
}

/// What an agent tells of its locations.
#[derive(Serialize, Deserialize)]
struct Own {
    names: Vec<(u32, u32)>,
    sets: Vec<Vec<u32>>,
    /// When the last of them ended, ns, and its name.
    last: Option<(i64, (u32, u32))>,
}

/// Most members of all sets that are numbered.
const MOST_MEMBERS: usize = 1 << 22;

/// Locations of an agent that waited for the same: a number below that of its locations is one of
/// them, higher ones are members of collectives. So a collective is told once, not by member.
#[derive(Default)]
pub struct Sets {
    numbers: FxHashMap<Vec<u32>, u32>,
    list: Vec<Vec<u32>>,
    /// Members of all.
    members: usize,
}

impl Sets {
    /// The number of a set, if there is room for one more. There are this many `locations`.
    fn number(&mut self, members: &[u32], locations: u32) -> Option<u32> {
        if let Some(&known) = self.numbers.get(members) {
            return Some(known);
        }
        let next = locations + self.list.len() as u32;
        (self.members + members.len() <= MOST_MEMBERS).then(|| {
            self.members += members.len();
            self.numbers.insert(members.to_vec(), next);
            self.list.push(members.to_vec());
            next
        })
    }

    /// Tells jumps of locations, given with their position, by time: one for all that wait for the
    /// same. `late` finds the position of a late party at this agent.
    pub fn told(
        &mut self,
        mut jumps: Vec<(u32, Jump)>,
        locations: u32,
        late: impl Fn(u32, u32) -> Option<u32>,
    ) -> Vec<Jump> {
        let key = |(lane, jump): &(u32, Jump)| (jump.time, jump.rank, jump.thread, *lane);
        // One list of each location, in order.
        jumps.sort_by_key(key);
        let mut told = Vec::with_capacity(jumps.len());
        let mut members = Vec::new();
        for same in jumps.chunk_by(|a, b| a.1 == b.1) {
            members.clear();
            members.extend(same.iter().map(|(lane, _)| *lane));
            members.dedup();
            let jump = same[0].1;
            if let [set] = members[..] {
                told.push(Jump { set, ..jump });
                continue;
            }
            // With the late one, members of a collective are always the same.
            if let Some(late) = late(jump.rank, jump.thread)
                && let Err(at) = members.binary_search(&late)
            {
                members.insert(at, late);
            }
            match self.number(&members, locations) {
                Some(set) => told.push(Jump { set, ..jump }),
                None => told.extend(same.iter().map(|&(set, jump)| Jump { set, ..jump })),
            }
        }
        told
    }
}

/// What the head knows.
struct Head {
    /// By agent: its first location.
    first: Vec<u32>,
    /// By agent: see [`Sets`].
    sets: Vec<Vec<Vec<u32>>>,
    /// By rank and thread.
    lanes: FxHashMap<(u32, u32), u32>,
    /// Where the path is, and until when, ns.
    at: u32,
    until: i64,
}

/// The path under way.
pub struct Path<'j> {
    job: &'j dyn Job,
    head: Option<Head>,
    pub span: Span,
}

/// Where the path leaves the waiting calls of a location. `links` are by enter and time.
pub fn jumps(lane: u32, links: &[Link], jumps: &mut Vec<(u32, Jump)>) {
    for call in links.chunk_by(|a, b| a.enter == b.enter) {
        let known = call.iter().filter(|link| link.late_rank != NONE);
        let last = known.max_by_key(|link| link.time);
        jumps.extend(last.filter(|link| link.time > link.since()).map(|link| {
            let jump = Jump {
                time: link.time,
                rank: link.late_rank,
                thread: link.late_thread,
                set: 0,
            };
            (lane, jump)
        }));
    }
}

impl<'j> Path<'j> {
    /// At the end of the run. `names` are rank and thread of this agent's locations, `ends` when
    /// they ended, ns; the path begins at `start`. Collective.
    ///
    /// # Errors
    /// Messages that cannot be read.
    pub fn new(
        job: &'j dyn Job,
        (names, sets): (&[(u32, u32)], Sets),
        ends: &[i64],
        start: i64,
    ) -> Result<Self> {
        let last = ends.iter().zip(names);
        let last = last.max_by_key(|(end, name)| (**end, std::cmp::Reverse(**name)));
        let own = Own {
            names: names.to_vec(),
            sets: sets.list,
            last: last.map(|(end, name)| (*end, *name)),
        };
        let (mut first, mut sets) = (Vec::new(), Vec::new());
        let mut lanes = FxHashMap::default();
        let mut ends = Vec::new();
        for bytes in job.all_gather(postcard::to_stdvec(&own)?) {
            let own: Own = postcard::from_bytes(&bytes)?;
            first.push(lanes.len() as u32);
            ends.extend(own.last);
            sets.push(own.sets);
            for name in own.names {
                let next = lanes.len() as u32;
                lanes.insert(name, next);
            }
        }
        let last = ends.into_iter();
        let last = last.max_by_key(|(end, name)| (*end, std::cmp::Reverse(*name)));
        let (end, last) = last.unwrap_or_default();
        let head = Head {
            first,
            sets,
            at: lanes.get(&last).copied().unwrap_or(NONE),
            until: end,
            lanes,
        };
        Ok(Path {
            job,
            head: (job.agent() == 0).then_some(head),
            span: Span { start, end },
        })
    }

    /// Follows the path back through a slab with these `jumps`, to the run's begin if it is the
    /// `first` one. Returns its stretches on this agent's locations, the latest first. Collective.
    pub fn backward(&mut self, jumps: Vec<Jump>, first: bool) -> Vec<Stretch> {
        let agents = self.job.agents();
        let mut out: Vec<Jumping> = (0..agents).map(|_| Jumping::default()).collect();
        out[0].jumps = jumps;
        let received = exchange(self.job, &mut out);
        let mut told: Vec<Passing> = (0..agents).map(|_| Passing::default()).collect();
        if let Some(head) = &mut self.head {
            head.follow(&received, self.span.start, &mut told);
            if first {
                head.stop(self.span.start, &mut told);
            }
        }
        let mut received = exchange(self.job, &mut told);
        std::mem::take(&mut received[0].stretches)
    }
}

impl Head {
    fn follow(&mut self, of_agents: &[Jumping], start: i64, told: &mut [Passing]) {
        let count = of_agents.iter().map(|parcel| parcel.jumps.len()).sum();
        let mut all: Vec<(u32, Jump)> = Vec::with_capacity(count);
        for ((agent, parcel), sets) in of_agents.iter().enumerate().zip(&self.sets) {
            let first = self.first[agent];
            let end = self.first.get(agent + 1).copied();
            let count = end.unwrap_or(self.lanes.len() as u32) - first;
            for jump in &parcel.jumps {
                match jump.set.checked_sub(count) {
                    None => all.push((first + jump.set, *jump)),
                    Some(set) => {
                        let members = sets.get(set as usize).into_iter().flatten();
                        all.extend(members.map(|lane| (first + lane, *jump)));
                    }
                }
            }
        }
        let (jumps, mut left) = by_lane(&all, self.lanes.len(), |of| of.0, |of| of.1.time);
        while let Some((begin, end)) = left.get_mut(self.at as usize) {
            // The path only goes back: what is later is not on it.
            let of = &jumps[*begin..*end];
            let Some(at) = of.iter().rposition(|(_, jump)| jump.time <= self.until) else {
                return;
            };
            *end = *begin + at;
            let jump = of[at].1;
            let next = self.lanes.get(&(jump.rank, jump.thread));
            if let Some(&next) = next.filter(|&&next| next != self.at) {
                self.tell(jump.time.max(start), told);
                (self.at, self.until) = (next, jump.time);
            }
        }
    }

    /// The rest of the path is on one location.
    fn stop(&mut self, start: i64, told: &mut [Passing]) {
        self.tell(start, told);
        self.at = NONE;
    }

    fn tell(&self, from: i64, told: &mut [Passing]) {
        if from < self.until && self.at != NONE {
            let agent = self.first.partition_point(|&first| first <= self.at) - 1;
            told[agent].stretches.push(Stretch {
                lane: self.at - self.first[agent],
                from,
                until: self.until,
            });
        }
    }
}
