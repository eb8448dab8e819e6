//! Teams of OpenMP and locks, with their OTF2 numbers.
//!
//! Records tell the number of a team, which is another one each time it is forked. Teams of the same threads
//! are one in an archive: they are told apart by how often a thread has been in them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use laggard_engine::events::{Among, Calls, Item};
use laggard_otf2::definitions::{Comm, Definitions, Group, PARADIGM_OPENMP, UNDEFINED, group_kind};
use laggard_trace::calls::number;
use laggard_trace::{Event, Location, Signature};
use rustc_hash::FxHashMap;

use super::names::{Names, location_id};

/// Successive teams in which a thread has the same number.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    last: u64,
    number: u32,
}

/// Teams and locks of a run.
#[derive(Debug, Default)]
pub struct Teams {
    /// Spans of each location, by rank.
    spans: FxHashMap<u32, Vec<(u64, Vec<Span>)>>,
    /// Numbers of the communicators, by locations.
    comms: FxHashMap<Vec<u64>, u32>,
    /// The first number that is free.
    first: u32,
    /// Numbers of locks, by rank and key.
    locks: FxHashMap<(u32, u64), u32>,
}

/// Team and thread of a call, if it is one in which threads of a team meet.
fn meets(event: &Event, known: &Signature) -> Option<(u64, u32)> {
    let among = Among::of(known, event)?;
    Some((among.team?, among.member?))
}

/// The team whose region begins after an omp_parallel or omp_idle.
pub fn begun(event: &Event, known: &Signature) -> Option<u64> {
    Among::of(known, event)?.team
}

impl Teams {
    /// Finds who is in which team.
    pub fn gather<'l>(
        locations: impl Iterator<Item = &'l Location>,
        definitions: &Definitions,
    ) -> Teams {
        let mut teams = Teams {
            first: definitions
                .comms
                .iter()
                .map(|comm| comm.id + 1)
                .max()
                .unwrap_or(0),
            ..Teams::default()
        };
        for location in locations {
            let mut signatures = location.definitions.signatures().iter();
            if !signatures.any(|known| known.operation == number::omp_parallel_end) {
                continue;
            }
            let mut spans: Vec<Span> = Vec::new();
            Calls::new(location).read(|item| {
                let Item::Call(_, event, known) = item else {
                    return ControlFlow::Continue(());
                };
                if let Some((team, number)) = meets(event, known) {
                    add(&mut spans, team, number);
                }
                ControlFlow::Continue(())
            });
            spans.sort_unstable_by_key(|span| span.first);
            let header = &location.header;
            let of_rank = teams.spans.entry(header.rank).or_default();
            of_rank.push((location_id(header.rank, header.thread), spans));
        }
        teams
    }

    /// The communicator of a team.
    pub fn comm(&mut self, rank: u32, team: u64) -> u32 {
        let of_rank = self.spans.get(&rank).into_iter().flatten();
        let mut members: Vec<(u32, u64)> = of_rank
            .filter_map(|(location, spans)| {
                let after = spans.partition_point(|span| span.first <= team);
                // Spans overlap where teams nest.
                let mut before = spans[..after].iter().rev().take(8);
                let span = before.find(|span| team <= span.last)?;
                Some((span.number, *location))
            })
            .collect();
        members.sort_unstable();
        let members: Vec<u64> = members.into_iter().map(|(_, location)| location).collect();
        let next = self.first + self.comms.len() as u32;
        *self.comms.entry(members).or_insert(next)
    }

    /// The number of a lock.
    pub fn lock(&mut self, rank: u32, key: u64) -> u32 {
        let next = self.locks.len() as u32 + 1;
        *self.locks.entry((rank, key)).or_insert(next)
    }

    /// Defines the teams.
    pub fn define(self, names: &mut Names, into: &mut Definitions) {
        if self.comms.is_empty() {
            return;
        }
        let all: BTreeSet<u64> = self.comms.keys().flatten().copied().collect();
        let all: Vec<u64> = all.into_iter().collect();
        let mut group = into.groups.keys().max().map_or(0, |last| last + 1);
        let mut add = |kind: u8, members: Vec<u64>| {
            let paradigm = PARADIGM_OPENMP;
            let new = Group {
                kind,
                paradigm,
                members,
            };
            into.groups.insert(group, vec![new]);
            group += 1;
            group - 1
        };
        add(group_kind::COMM_LOCATIONS, all.clone());
        let mut comms: Vec<(u32, Vec<u64>)> = self
            .comms
            .into_iter()
            .map(|(members, id)| (id, members))
            .collect();
        comms.sort_unstable();
        for (id, members) in comms {
            let position = |member: u64| all.binary_search(&member).unwrap_or(0) as u64;
            let group = add(
                group_kind::COMM_GROUP,
                members.into_iter().map(position).collect(),
            );
            let name = names.string(b"OpenMP team");
            into.comms.push(Comm {
                id,
                name,
                group,
                other: None,
                parent: UNDEFINED,
            });
        }
    }
}

/// Notes that a thread is in a team.
fn add(spans: &mut Vec<Span>, team: u64, number: u32) {
    // The last few, as teams nest.
    let mut recent = spans.iter_mut().rev().take(4);
    let same = recent.find(|span| {
        span.number == number && (span.first..=span.last.saturating_add(1)).contains(&team)
    });
    match same {
        Some(span) => span.last = span.last.max(team),
        None => spans.push(Span {
            first: team,
            last: team,
            number,
        }),
    }
}
