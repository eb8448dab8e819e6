//! Waits, told to the agents of their late parties.

use std::ops::Range;

use crate::basics::ends::NONE;
use crate::roots::activities::{Site, site};
use crate::roots::carry::{rank_bit, thread_bit};
use crate::roots::lanes;
use crate::roots::sums::Victim;
use crate::roots::sweep::Sweep;
use crate::roots::walk::{self, Late};
use crate::wire::links::{Leaving, Link, Telling, Told, Waiters};
use crate::wire::parcels::exchange;

impl Sweep<'_> {
    /// Tells waits to the agents of the late parties; `own` are the places of each location's
    /// `links`. `counts` gets the numbers of waits that the agents told.
    pub(super) fn tell(
        &mut self,
        links: &[Link],
        own: &[(usize, usize)],
        counts: &mut Vec<u32>,
    ) -> Exchanged {
        let (job, agents) = (self.search.job, self.search.job.agents());
        let ranks = self.search.opened.agent_of.len();
        let mut telling: Vec<Telling> = (0..agents).map(|_| Telling::default()).collect();
        let mut waits: Vec<Vec<u32>> = vec![Vec::new(); agents];
        // Most late parties are at the same agent.
        telling[job.agent()].told.reserve(links.len());
        waits[job.agent()].reserve(links.len());
        let mut told: Vec<(u32, u32)> = Vec::with_capacity(links.len());
        for (walker, &(begin, end)) in self.walkers.iter().zip(own) {
            let Some(first) = links[begin..end].first() else {
                continue;
            };
            let thread = walker.thread;
            let who = Waiters {
                ranks: rank_bit(first.rank, ranks),
                threads: thread_bit(walker.name.1),
            };
            for link in &links[begin..end] {
                let agent = match link.late_rank {
                    NONE => None,
                    rank => self.search.agent_of(rank),
                };
                let Some(agent) = agent else {
                    told.push((NONE, 0));
                    continue;
                };
                let (operation, path) = site(thread, link.signature);
                let row = thread.rows.get(link.signature as usize);
                let is_team = self.search.folds && link.left != i64::MAX;
                let group = row.filter(|_| is_team).and_then(walk::team);
                let mut wait = Told {
                    event: link.event,
                    share: link.share,
                    left: link.left.min(link.leave),
                    late_rank: link.late_rank,
                    rank: link.rank,
                    thread: walker.name.1,
                    who,
                    path,
                    operation,
                    pattern: link.pattern,
                    late_thread: link.late_thread,
                    group: 0,
                    is_met: u32::from(link.left != i64::MAX),
                    looked: link.looked,
                    beside: link.beside,
                };
                let (list, waits) = (&mut telling[agent].told, &mut waits[agent]);
                let next = list.len() as u32;
                if let Some(group) = group {
                    wait.group = self.search.numbers.values[group as usize];
                    wait.left = link.left;
                    let at = *self.folded.entry(Team::of(&wait)).or_insert(next);
                    if at != next {
                        let team = &mut list[at as usize];
                        team.share = team.share.saturating_add(wait.share);
                        team.who.add(wait.who);
                        team.left = team.left.min(wait.left);
                        waits[at as usize] += 1;
                        told.push((agent as u32, at));
                        continue;
                    }
                }
                list.push(wait);
                waits.push(1);
                told.push((agent as u32, next));
            }
        }
        self.folded.clear();
        let mut leaving: Vec<Leaving> = (0..agents).map(|_| Leaving::default()).collect();
        let received = exchange(job, &mut telling);
        let count = received.iter().map(|parcel| parcel.told.len()).sum();
        let mut lates: Vec<Late> = Vec::with_capacity(count);
        let mut last: Option<(Victim, u32)> = None;
        for ((agent, parcel), leaving) in (0..).zip(&received).zip(&mut leaving) {
            counts.push(parcel.told.len() as u32);
            leaving.earlier.reserve(parcel.told.len());
            for (index, told) in (0..).zip(&parcel.told) {
                let lane = self.lane(told.late_rank, told.late_thread);
                if lane.is_none() {
                    self.lose(told.pattern, told.share);
                }
                let leave = lane.filter(|_| told.is_met == 0);
                let leave = leave.map(|lane| self.walkers[lane as usize].leave_of(told.event));
                let earlier = leave.map_or(0, |leave| told.left.saturating_sub(leave).max(0));
                leaving.earlier.push(earlier);
                let group = match told.group {
                    0 => None,
                    id => self.search.numbers.find(&id),
                };
                let victim = Victim {
                    pattern: told.pattern,
                    call: (told.operation, told.path),
                };
                let mut number = || match last {
                    Some((last, number)) if last == victim => number,
                    _ => last.insert((victim, self.victims.number(victim))).1,
                };
                lates.extend(lane.map(|lane| Late {
                    event: told.event,
                    lane,
                    agent,
                    index,
                    rank: told.rank,
                    thread: told.thread,
                    who: told.who,
                    group: group.unwrap_or(NONE),
                    victim: number(),
                    share: told.share,
                    left: told.left,
                    is_met: told.is_met != 0,
                    looked: told.looked,
                    beside: told.beside != 0,
                }));
            }
        }
        let key = |late: &Late| {
            let team = (late.group, late.victim);
            (late.event, team, late.agent, late.index)
        };
        let (lates, _) = lanes::by_lane(&lates, self.walkers.len(), |late| late.lane, key);
        let answers = exchange(job, &mut leaving);
        let leaves = told.iter().zip(links).map(|(&(agent, index), link)| {
            let answer = answers.get(agent as usize);
            let earlier = answer.and_then(|answer| answer.earlier.get(index as usize));
            link.leave.saturating_sub(earlier.copied().unwrap_or(0))
        });
        let leaves = leaves.collect();
        Exchanged {
            told,
            waits,
            lates,
            leaves,
        }
    }
}

/// What was told, and what came back.
pub(super) struct Exchanged {
    /// By wait: the agent, and the wait's number there.
    pub(super) told: Vec<(u32, u32)>,
    /// By agent and number: how many waits it stands for.
    pub(super) waits: Vec<Vec<u32>>,
    /// What the agents told, by location and event.
    pub(super) lates: Vec<Late>,
    /// By wait: when the late call was left, or the waiting one if that was earlier, ns.
    pub(super) leaves: Vec<i64>,
}

/// What waits have in common that are told together.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Team {
    late: (u32, u32),
    event: u64,
    group: u64,
    pattern: u16,
    call: Site,
}

impl Team {
    fn of(told: &Told) -> Team {
        Team {
            late: (told.late_rank, told.late_thread),
            event: told.event,
            group: told.group,
            pattern: told.pattern,
            call: (told.operation, told.path),
        }
    }
}

/// Late calls, and the positions of those who told of them; `lates` is sorted.
pub(super) fn teams(lates: &[Late]) -> (Vec<Late>, Vec<Range<usize>>) {
    let mut teams: Vec<Late> = Vec::with_capacity(lates.len());
    let mut from: Vec<Range<usize>> = Vec::with_capacity(lates.len());
    for (at, late) in lates.iter().enumerate() {
        let key = |late: &Late| (late.lane, late.event, late.group, late.victim);
        match (teams.last_mut(), from.last_mut()) {
            (Some(team), Some(from)) if late.group != NONE && key(team) == key(late) => {
                team.share = team.share.saturating_add(late.share);
                team.who.add(late.who);
                team.left = team.left.min(late.left);
                from.end = at + 1;
            }
            _ => {
                teams.push(*late);
                from.push(at..at + 1);
            }
        }
    }
    (teams, from)
}
