//! Whether the partners of a call are on one host: its expected cost depends on this.

use laggard_baselines::Span;
use laggard_trace::{Location, WORLD, flags};
use rustc_hash::FxHashMap;

use crate::input::open::Opened;

/// Operation and call path.
type Key = (u16, u32);

/// Spans of a location's calls to their partners.
pub struct Spans<'o> {
    rank: u32,
    hosts: &'o [u32],
    /// The span of all calls, if the run was on one host.
    all: Option<Span>,
    /// `None`: unknown, or not always the same.
    found: FxHashMap<Key, Option<Span>>,
}

impl<'o> Spans<'o> {
    pub fn new(location: &Location, opened: &'o Opened) -> Spans<'o> {
        let is_one_host = opened.host_names.len() <= 1;
        let mut spans = Spans {
            rank: location.header.rank,
            hosts: &opened.hosts,
            all: is_one_host.then_some(Span::IntraNode),
            found: FxHashMap::default(),
        };
        if !is_one_host {
            spans.look(location);
        }
        spans
    }

    fn look(&mut self, location: &Location) {
        let definitions = &location.definitions;
        let mut groups: FxHashMap<u64, Option<Span>> = FxHashMap::default();
        // The run has several hosts.
        groups.insert(WORLD, Some(Span::InterNode));
        // Only one member has the list of all.
        let listed = definitions.communicators.iter();
        for communicator in listed.filter(|communicator| communicator.members.len() > 1) {
            groups.insert(communicator.id, self.of_ranks(&communicator.members));
        }
        for &(id, communicator, _, _) in &definitions.group_handles {
            let span = groups.get(&communicator).copied().flatten();
            groups.insert(id, span);
        }
        for signature in definitions.signatures() {
            let span = if signature.has(flags::COLLECTIVE) {
                groups.get(&signature.group).copied().flatten()
            } else {
                let halves = [signature.send.peer, signature.receive.peer];
                let mut peers = halves.iter().filter(|&&peer| peer != NO_PROCESS);
                let first = peers.next().and_then(|&peer| self.of_peer(peer));
                first.filter(|_| peers.all(|&peer| self.of_peer(peer) == first))
            };
            let key = (signature.operation, signature.call_path);
            let known = self.found.entry(key).or_insert(span);
            if *known != span {
                *known = None;
            }
        }
    }

    /// Span to a rank; `None` if it is no rank.
    pub fn of_peer(&self, peer: i32) -> Option<Span> {
        let host = |rank: u32| self.hosts.get(rank as usize);
        let theirs = host(u32::try_from(peer).ok()?)?;
        Some(match host(self.rank)? == theirs {
            true => Span::IntraNode,
            false => Span::InterNode,
        })
    }

    fn of_ranks(&self, ranks: &[u32]) -> Option<Span> {
        let spans = ranks.iter().map(|&rank| self.of_peer(rank as i32));
        let spans: Option<Vec<Span>> = spans.collect();
        Some(match spans?.contains(&Span::InterNode) {
            true => Span::InterNode,
            false => Span::IntraNode,
        })
    }

    /// The span of these calls, if it is known and always the same.
    pub fn of(&self, operation: u16, call_path: u32) -> Option<Span> {
        let found = || self.found.get(&(operation, call_path)).copied().flatten();
        self.all.or_else(found)
    }
}

/// The peer of a missing half (`MPI_PROC_NULL`).
const NO_PROCESS: i32 = -2;
