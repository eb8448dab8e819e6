//! The critical path: the chain of activities that ends last. From the end of the run it goes back
//! on a location until a wait, and on from the party that was waited for, at the moment when that
//! one came (Böhme, de Supinski, Geimer, Schulz, Wolf: Scalable critical-path based performance
//! analysis, IPDPS 2012).
//!
//! One agent at a time follows it, on its own locations, slab by slab from the last one on; where it leaves
//! them, the agent of the late party goes on.

use std::io;

use anyhow::Result;
use laggard_comm::Job;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::basics::spill::{Piece, Spill};
use crate::roots::sweep::ranges;
use crate::wire::links::{Hop, Hopping, Jump, Jumping, Link, Passing, Stretch};
use crate::wire::parcels::Parcel;

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
    /// When the last of them ended, ns, and its name.
    last: Option<(i64, (u32, u32))>,
}

/// Where the path may leave the locations of an agent.
#[derive(Default)]
pub struct Jumps {
    spill: Spill,
    /// By slab.
    pieces: Vec<Piece>,
}

impl Jumps {
    /// Keeps those of the next slab, sorted by location and time.
    pub fn put(&mut self, mut jumps: Vec<Jump>) {
        // One list of each location, nearly in order.
        jumps.sort_by_key(|jump| (jump.lane, jump.time, jump.rank, jump.thread));
        self.pieces.push(self.spill.put(&Jumping { jumps }.pack()));
    }

    /// The error that lost jumps.
    pub fn error(&mut self) -> Option<io::Error> {
        self.spill.error.take()
    }

    fn take(&mut self, slab: usize) -> Vec<Jump> {
        Jumping::unpack(&self.spill.take(self.pieces[slab])).jumps
    }
}

/// Where the path leaves the waiting calls of a location. `links` are by enter and time.
pub fn jumps(lane: u32, links: &[Link], jumps: &mut Vec<Jump>) {
    for call in links.chunk_by(|a, b| a.enter == b.enter) {
        let last = call.iter().rfind(|link| link.late_rank != NONE);
        let last = last.filter(|link| link.time > link.since());
        jumps.extend(last.map(|link| Jump {
            lane,
            time: link.time,
            rank: link.late_rank,
            thread: link.late_thread,
        }));
    }
}

/// The path before it is followed.
pub struct Path<'j> {
    job: &'j dyn Job,
    /// The agents of all locations, and their numbers there, by rank and thread.
    places: FxHashMap<(u32, u32), (u32, u32)>,
    /// The location that ends last.
    last: (u32, u32),
    pub span: Span,
}

impl<'j> Path<'j> {
    /// At the end of the run. `names` are rank and thread of this agent's locations, `ends` when
    /// they ended, ns; the path begins at `start`. Collective.
    ///
    /// # Errors
    /// Messages that cannot be read.
    pub fn new(job: &'j dyn Job, names: &[(u32, u32)], ends: &[i64], start: i64) -> Result<Self> {
        let last = ends.iter().zip(names);
        let last = last.max_by_key(|(end, name)| (**end, std::cmp::Reverse(**name)));
        let own = Own {
            names: names.to_vec(),
            last: last.map(|(end, name)| (*end, *name)),
        };
        let mut places = FxHashMap::default();
        let mut ends = Vec::new();
        for (agent, bytes) in (0..).zip(job.all_gather(postcard::to_stdvec(&own)?)) {
            let own: Own = postcard::from_bytes(&bytes)?;
            ends.extend(own.last);
            let names = own.names.into_iter().zip(0..);
            places.extend(names.map(|(name, lane)| (name, (agent, lane))));
        }
        let last = ends.into_iter();
        let last = last.max_by_key(|(end, name)| (*end, std::cmp::Reverse(*name)));
        let (end, last) = last.unwrap_or_default();
        Ok(Path {
            job,
            places,
            last,
            span: Span { start, end },
        })
    }

    /// Follows the path back to its begin, through the `jumps` of this agent's locations. Returns its stretches on
    /// them by slab, the latest first. Collective.
    pub fn follow(&self, jumps: &mut Jumps, spill: &mut Spill) -> Vec<Piece> {
        let (me, agents) = (self.job.agent(), self.job.agents());
        let last = jumps.pieces.len() - 1;
        let mut here = Here::new(last);
        let (rank, thread) = self.last;
        let first = Hop {
            slab: last as u32,
            rank,
            thread,
            until: self.span.end,
        };
        let starts = self.places.get(&self.last).map(|place| place.0);
        self.job.converse(&mut |came, letters| {
            let hop = match came {
                None => Some(first).filter(|_| starts == Some(me as u32)),
                Some((_, bytes)) => match Hopping::unpack(&bytes).hops[..] {
                    [hop] => Some(hop),
                    // It has come to its begin.
                    _ => return false,
                },
            };
            let Some(hop) = hop else {
                return starts.is_some();
            };
            match here.follow(self, hop, (jumps, spill)) {
                Some((agent, hop)) => {
                    let parcel = Hopping { hops: vec![hop] };
                    letters.push((agent as usize, parcel.pack()));
                    true
                }
                None => {
                    let others = (0..agents).filter(|&agent| agent != me);
                    letters.extend(others.map(|agent| (agent, Vec::new())));
                    false
                }
            }
        });
        here.finish(spill)
    }
}

/// The jumps of a slab, and where those of each location are that the path may still take.
type Left = (Vec<Jump>, Vec<(usize, usize)>);

/// An agent's part of the path, as far as it was followed.
struct Here {
    slab: usize,
    /// Of this slab, once they are needed.
    jumps: Option<Left>,
    /// Of this slab, the latest first.
    stretches: Vec<Stretch>,
    /// By slab, from the last one on.
    pieces: Vec<Piece>,
}

impl Here {
    fn new(slab: usize) -> Here {
        Here {
            slab,
            jumps: None,
            stretches: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Follows the path on this agent's locations. Returns which agent goes on, and where; `None` at the begin.
    fn follow(
        &mut self,
        path: &Path<'_>,
        hop: Hop,
        (jumps, spill): (&mut Jumps, &mut Spill),
    ) -> Option<(u32, Hop)> {
        let me = path.job.agent() as u32;
        let (_, mut at) = *path.places.get(&(hop.rank, hop.thread))?;
        let mut until = hop.until;
        while self.slab > hop.slab as usize {
            self.go_back(spill);
        }
        loop {
            let slab = self.slab;
            let (jumps, left) = self.jumps.get_or_insert_with(|| {
                let jumps = jumps.take(slab);
                let lanes = jumps.last().map_or(0, |jump| jump.lane as usize + 1);
                let left = ranges(&jumps, lanes, |jump| jump.lane);
                (jumps, left)
            });
            while let Some((begin, end)) = left.get_mut(at as usize) {
                // The path only goes back: what is later is not on it.
                let of = &jumps[*begin..*end];
                let Some(next) = of.iter().rposition(|jump| jump.time <= until) else {
                    break;
                };
                *end = *begin + next;
                let jump = of[next];
                let name = (jump.rank, jump.thread);
                let place = path.places.get(&name);
                let Some(&(agent, lane)) = place.filter(|&&place| place != (me, at)) else {
                    continue;
                };
                let from = jump.time.max(path.span.start);
                self.stretches.extend(stretch(at, from, until));
                (at, until) = (lane, jump.time);
                if agent != me {
                    let hop = Hop {
                        slab: slab as u32,
                        rank: jump.rank,
                        thread: jump.thread,
                        until,
                    };
                    return Some((agent, hop));
                }
            }
            if slab == 0 {
                // The rest of it is on one location.
                self.stretches.extend(stretch(at, path.span.start, until));
                return None;
            }
            self.go_back(spill);
        }
    }

    fn go_back(&mut self, spill: &mut Spill) {
        let stretches = std::mem::take(&mut self.stretches);
        self.pieces.push(spill.put(&Passing { stretches }.pack()));
        self.jumps = None;
        self.slab -= 1;
    }

    fn finish(mut self, spill: &mut Spill) -> Vec<Piece> {
        while self.slab > 0 {
            self.go_back(spill);
        }
        let stretches = self.stretches;
        self.pieces.push(spill.put(&Passing { stretches }.pack()));
        self.pieces
    }
}

/// A stretch of the path, if it takes any time.
fn stretch(lane: u32, from: i64, until: i64) -> Option<Stretch> {
    (from < until).then_some(Stretch { lane, from, until })
}
