//! Calls that never returned, and who waits for whom: the sentences of the report.

use std::collections::BTreeMap;

use laggard_report::units::duration;
use laggard_report::{
    Anomaly, AnomalySeverity, list_of_ranks, polls, rank_ranges, seconds, with_threads,
};
use laggard_trace::calls::{self, Shape, number};
use laggard_trace::{SymmetricAddress, WORLD};

use crate::basics::ends::NONE;
use crate::basics::intern::PathKey;
use crate::findings::hanging::{Hanging, Known, Wait};

/// Most rows of one kind.
const ROWS: usize = 50;
/// Most ranks that a sentence names one by one.
const NAMED: usize = 8;
/// Most collectives of one communicator that are searched: ranks are in the same one, or in few.
const NUMBERS: usize = 64;
/// Shortest duration that a sentence tells, ns. Durations are lower bounds: the end of recording is
/// unknown, only the last return of a call is known.
const WORTH_TELLING: i64 = 1_000_000;
/// Communicator of all PEs of OpenSHMEM.
const ALL_PES: u64 = 2;

/// A thread: its rank, and its number there.
type Party = (u32, u32);

/// Members that have not entered a collective that others are in.
struct Missing {
    ranks: Vec<u32>,
    /// The first of them that is in another call and has no other thread.
    stuck: Option<u32>,
}

/// The calls that never returned, and their context.
pub struct Scene<'a> {
    calls: Vec<Hanging>,
    /// Index in `calls` of a rank's first one.
    of_rank: BTreeMap<u32, usize>,
    known: Known,
    /// By communicator and number of the collective.
    missing: BTreeMap<(u64, u64), Missing>,
    /// The agent that holds a rank, by world rank.
    agent_of: &'a [u32],
    /// Ranks whose trace is cut off.
    truncated: &'a [bool],
    /// When the last call of all ranks returned, ns.
    end: i64,
}

impl<'a> Scene<'a> {
    /// Joins the findings of the agents.
    pub fn new(
        mut calls: Vec<Hanging>,
        known: Known,
        (agent_of, truncated): (&'a [u32], &'a [bool]),
        end: i64,
    ) -> Self {
        calls.sort_by_key(|call| (call.rank, call.thread));
        let mut of_rank = BTreeMap::new();
        for (at, call) in calls.iter().enumerate() {
            of_rank.entry(call.rank).or_insert(at);
        }
        let mut scene = Scene {
            calls,
            of_rank,
            known,
            missing: BTreeMap::new(),
            agent_of,
            truncated,
            end,
        };
        scene.find_missing();
        scene
    }

    /// The rows of the report; `place` formats a call path.
    pub fn rows(&self, mut place: impl FnMut(PathKey) -> String) -> Vec<Anomaly> {
        let mut rows = self.deadlocks(&mut place);
        let mut by_call: BTreeMap<(u16, PathKey), Vec<&Hanging>> = BTreeMap::new();
        for call in &self.calls {
            let alike = by_call.entry((call.operation, call.path)).or_default();
            alike.push(call);
        }
        let calls = by_call.into_values();
        let groups = calls.filter_map(|calls| {
            // The worst one ends a chain of waits, or has lasted longest.
            let order = |call: &&&Hanging| (self.is_held_up(call), call.enter, call.rank);
            let worst = *calls.iter().min_by_key(order)?;
            Some(((self.is_held_up(worst), calls[0].rank), worst, calls))
        });
        let mut groups: Vec<_> = groups.collect();
        groups.sort_by_key(|(order, ..)| *order);
        let rest: usize = groups.iter().skip(ROWS).map(|group| group.2.len()).sum();
        for (at, (_, worst, calls)) in groups.iter().take(ROWS).enumerate() {
            let mut detail = self.sentence(worst, calls, &mut place);
            let mut count = calls.len();
            if at + 1 == ROWS && rest > 0 {
                detail.push_str("; and more");
                count += rest;
            }
            rows.push(warning("cut_off_in", count, detail));
        }
        rows
    }

    /// `rank 2 was in MPI_Recv at app.c:40 when its trace ended, …`
    fn sentence(
        &self,
        first: &Hanging,
        calls: &[&Hanging],
        place: &mut impl FnMut(PathKey) -> String,
    ) -> String {
        let ranks = list_of_ranks(calls.iter().map(|call| call.rank), NAMED);
        let ranks = with_threads(&further(calls.iter().map(|call| call.thread)), ranks, NAMED);
        let is_one = calls.len() == 1;
        let (verb, ended, who) = match is_one {
            true => ("was", "its trace ended", String::new()),
            false => (
                "were",
                "their traces ended",
                format!("{} ", named((first.rank, first.thread))),
            ),
        };
        let since = self.end.saturating_sub(first.enter);
        let at_least = match since {
            WORTH_TELLING.. => format!(", so for at least {}", duration(seconds(since))),
            _ => String::new(),
        };
        format!(
            "{ranks} {verb} in {} when {ended}, {who}since {:.3} s{at_least}{}",
            self.call(first, place),
            seconds(first.enter),
            self.waits_for(first, place),
        )
    }

    /// `MPI_Recv at app.c:40`
    fn call(&self, call: &Hanging, place: &mut impl FnMut(PathKey) -> String) -> String {
        format!("{} at {}", calls::name(call.operation), place(call.path))
    }

    /// The condition that a call waits for, and the activity of the ranks concerned.
    fn waits_for(&self, call: &Hanging, place: &mut impl FnMut(PathKey) -> String) -> String {
        let tagged = |tag: i32| match tag {
            0.. => format!(" with tag {tag}"),
            _ => String::new(),
        };
        match &call.wait {
            Wait::Unknown => String::new(),
            Wait::Message { peer, tag, .. } => match u32::try_from(*peer) {
                Ok(peer) => {
                    let sent = match self.is_met(call) {
                        true => ", which was sent",
                        false => "",
                    };
                    let message = format!("a message{} of rank {peer}{sent}", tagged(*tag));
                    format!(", waiting for {message}; {}", self.state(peer, place))
                }
                Err(_) => format!(", waiting for a message{} of any rank", tagged(*tag)),
            },
            Wait::Receiver { peer, tag, .. } => {
                let peer = *peer as u32;
                let message = format!("its message{}", tagged(*tag));
                let state = self.state(peer, place);
                format!(", waiting for rank {peer} to receive {message}; {state}")
            }
            Wait::Requests {
                count,
                peer,
                tag,
                operation,
                path,
            } => {
                let asked = format!("{} at {}", calls::name(*operation), place(*path));
                let (of, state) = match u32::try_from(*peer) {
                    Ok(peer) => (
                        format!("rank {peer}"),
                        format!("; {}", self.state(peer, place)),
                    ),
                    Err(_) => ("any rank".to_owned(), String::new()),
                };
                let more = match count - 1 {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let message = format!("a message{} of {of} ({asked}){more}", tagged(*tag));
                format!(", while nobody had sent {message}{state}")
            }
            Wait::Members { group, number, .. } => self.members(call, *group, *number, place),
            Wait::Value {
                address,
                comparison,
                value,
            } => {
                let sign = ["==", "!=", ">", "<=", "<", ">="];
                let sign = usize::try_from(*comparison).ok().and_then(|c| sign.get(c));
                let address = SymmetricAddress(*address);
                match sign {
                    Some(sign) => {
                        let value = *value as i64;
                        format!(", waiting until the variable at {address} is {sign} {value}")
                    }
                    None => format!(", waiting for the variable at {address}"),
                }
            }
            Wait::Lock { address } => {
                let shown = SymmetricAddress(*address);
                match self.holder(*address, call.rank) {
                    Some(rank) => {
                        let state = self.state(rank, place);
                        format!(
                            ", waiting for the lock at {shown}, which rank {rank} held; {state}"
                        )
                    }
                    None => format!(", waiting for the lock at {shown}"),
                }
            }
            Wait::Transfer { peer } => format!(", a transfer with rank {peer}"),
            Wait::Thread {
                thread,
                ends,
                has_limit,
            } => {
                let waiting = match has_limit {
                    true => ", waiting, for a limited time, for",
                    false => ", waiting for",
                };
                if *thread == call.thread {
                    return format!("{waiting} a mutex that it has itself");
                }
                let other = (call.rank, *thread);
                let state = match self.at(other) {
                    Some(call) => format!("it was in {}", self.call(call, place)),
                    None => "it was in no call that is known".to_owned(),
                };
                let what = if *ends { " to end" } else { ", which has it" };
                format!("{waiting} {}{what}; {state}", named(other))
            }
        }
    }

    /// The rank that holds a lock which a rank waits for.
    fn holder(&self, address: u64, rank: u32) -> Option<u32> {
        let holders = self.known.holders.get(&address)?;
        holders.iter().copied().find(|&holder| holder != rank)
    }

    /// The members that have not entered the collective of a call.
    fn members(
        &self,
        call: &Hanging,
        group: u64,
        number: u64,
        place: &mut impl FnMut(PathKey) -> String,
    ) -> String {
        let Some(missing) = self.missing(group, number) else {
            return String::new();
        };
        if let Some(first) = missing.stuck.or(missing.ranks.first().copied()) {
            let ranks = list_of_ranks(missing.ranks.iter().copied(), NAMED);
            let state = self.state(first, place);
            return match shape(call) {
                Shape::Barrier | Shape::PeBarrier | Shape::AllToAll | Shape::Finalize => {
                    format!(", waiting for {ranks} to enter it; {state}")
                }
                _ => format!(", while {ranks} had not entered it; {state}"),
            };
        }
        let other = self.calls.iter().find(|other| {
            other.operation != call.operation
                && matches!(other.wait, Wait::Members { group: on, number: n, .. } if on == group && n == number)
        });
        match other {
            Some(other) => format!(
                ", and all others were in a collective there as well, but rank {} in another one, {}",
                other.rank,
                self.call(other, place)
            ),
            None => ", and so were all others that it needs".to_owned(),
        }
    }

    /// The members that have not entered a collective, if known.
    fn missing(&self, group: u64, number: u64) -> Option<&Missing> {
        self.missing.get(&(group, number))
    }

    /// Finds the members that have not entered the collectives that ranks are in.
    fn find_missing(&mut self) {
        let wanted = self.calls.iter().filter_map(|call| match call.wait {
            Wait::Members { group, number, .. } => Some((group, number)),
            _ => None,
        });
        let mut wanted: Vec<(u64, u64)> = wanted.collect();
        wanted.sort_unstable();
        wanted.dedup();
        for of_group in wanted.chunk_by(|a, b| a.0 == b.0) {
            for &(group, number) in of_group.iter().take(NUMBERS) {
                if let Some(ranks) = self.missing_ranks(group, number) {
                    let is_stuck = |rank: &u32| self.stuck(*rank).is_some();
                    let stuck = ranks.iter().copied().find(is_stuck);
                    let missing = Missing { ranks, stuck };
                    self.missing.insert((group, number), missing);
                }
            }
        }
    }

    /// Members of a communicator that have not entered its collective with this number, according
    /// to their traces; `None` if unknown.
    fn missing_ranks(&self, group: u64, number: u64) -> Option<Vec<u32>> {
        let everybody;
        let members = match group {
            WORLD | ALL_PES => {
                everybody = (0..self.agent_of.len() as u32).collect();
                &everybody
            }
            _ => self.known.members.get(&group)?,
        };
        let is_missing = |rank: &u32| {
            let count = self.known.collectives.get(&(group, *rank)).copied();
            let count = count.unwrap_or(0);
            let is_in = count > number || count == number && self.is_on(*rank, group);
            self.has_trace(*rank) && !is_in
        };
        Some(members.iter().copied().filter(is_missing).collect())
    }

    fn has_trace(&self, rank: u32) -> bool {
        let agent = self.agent_of.get(rank as usize);
        agent.is_some_and(|&agent| agent != NONE)
    }

    /// The open calls of a rank's threads.
    fn of(&self, rank: u32) -> impl Iterator<Item = &Hanging> {
        let first = self.of_rank.get(&rank).copied();
        let calls = self.calls.get(first.unwrap_or(self.calls.len())..);
        let calls = calls.unwrap_or(&[]).iter();
        calls.take_while(move |call| call.rank == rank)
    }

    fn is_on(&self, rank: u32, group: u64) -> bool {
        let is_on =
            |call: &Hanging| matches!(call.wait, Wait::Members { group: on, .. } if on == group);
        self.of(rank).any(is_on)
    }

    /// `rank 1 was in MPI_Recv at app.c:12`
    fn state(&self, rank: u32, place: &mut impl FnMut(PathKey) -> String) -> String {
        if let Some(call) = self.of(rank).next() {
            return format!("rank {rank} was in {}", self.call(call, place));
        }
        let is_cut = self.truncated.get(rank as usize).copied();
        let what = match (self.has_trace(rank), is_cut.unwrap_or(true)) {
            (false, _) => return format!("of rank {rank} there is no trace"),
            (true, true) => "was in no call that is known",
            (true, false) => "had ended",
        };
        format!("rank {rank} {what}")
    }

    /// Whether a call waits for a rank that is itself in an open call.
    fn is_held_up(&self, call: &Hanging) -> bool {
        let is_in = |rank: u32| self.of(rank).next().is_some();
        match call.wait {
            Wait::Message { peer, .. }
            | Wait::Receiver { peer, .. }
            | Wait::Requests { peer, .. }
            | Wait::Transfer { peer } => u32::try_from(peer).is_ok_and(is_in),
            Wait::Members { group, number, .. } => {
                let missing = self.missing(group, number);
                missing.is_some_and(|missing| missing.stuck.is_some())
            }
            Wait::Lock { address } => self.holder(address, call.rank).is_some_and(is_in),
            Wait::Thread { thread, .. } => self.at((call.rank, thread)).is_some(),
            Wait::Unknown | Wait::Value { .. } => false,
        }
    }

    fn is_met(&self, call: &Hanging) -> bool {
        let question = call.question();
        question.is_some_and(|question| self.known.met.contains(&question))
    }

    /// The open call of a thread.
    fn at(&self, (rank, thread): Party) -> Option<&Hanging> {
        self.of(rank).find(|call| call.thread == thread)
    }

    /// Who a call certainly needs to go on.
    fn needs(&self, call: &Hanging) -> Option<Party> {
        match call.wait {
            Wait::Thread {
                thread, has_limit, ..
            } => (!has_limit).then_some((call.rank, thread)),
            // That rank has no other thread.
            _ => Some((self.needs_rank(call)?, 0)),
        }
    }

    /// The rank that a call of a rank without other threads certainly needs to go on.
    fn needs_rank(&self, call: &Hanging) -> Option<u32> {
        if !call.is_certain || returns(call.operation) || self.is_met(call) {
            return None;
        }
        match call.wait {
            Wait::Message { group, peer, tag } => {
                let peer = u32::try_from(peer).ok()?;
                // It may have sent the message: sends are recorded when the call returns.
                let sends = |other: &Hanging| match other.wait {
                    Wait::Receiver {
                        group: on,
                        peer: to,
                        tag: sent,
                    } => on == group && to == call.rank as i32 && (tag < 0 || tag == sent),
                    _ => is_exchange(other.operation),
                };
                self.stuck(peer).filter(|other| !sends(other))?;
                Some(peer)
            }
            Wait::Receiver { group, peer, tag } => {
                let peer = u32::try_from(peer).ok()?;
                let takes = |other: &Hanging| match other.wait {
                    Wait::Message {
                        group: on,
                        peer: from,
                        tag: wanted,
                    } => {
                        let is_from = from < 0 || from == call.rank as i32;
                        on == group && is_from && (wanted < 0 || wanted == tag)
                    }
                    _ => false,
                };
                self.stuck(peer).filter(|other| !takes(other))?;
                Some(peer)
            }
            Wait::Members {
                group,
                number,
                root,
            } => {
                let missing = self.missing(group, number)?;
                match shape(call) {
                    Shape::Barrier | Shape::PeBarrier | Shape::AllToAll => missing.stuck,
                    Shape::AllToOne if root == call.rank as i32 => missing.stuck,
                    Shape::OneToAll => {
                        let root = u32::try_from(root).ok()?;
                        missing.ranks.contains(&root).then_some(root)
                    }
                    // Depends on the algorithm of the library.
                    _ => None,
                }
            }
            Wait::Lock { address } => self.holder(address, call.rank),
            _ => None,
        }
    }

    /// The open call of a rank with a single thread.
    fn stuck(&self, rank: u32) -> Option<&Hanging> {
        self.of(rank).next().filter(|call| call.is_certain)
    }

    /// Rows for ranks, or threads, that wait for each other in a circle.
    fn deadlocks(&self, place: &mut impl FnMut(PathKey) -> String) -> Vec<Anomaly> {
        let calls = self.calls.iter();
        let needs = calls.filter_map(|call| Some(((call.rank, call.thread), self.needs(call)?)));
        let needs: BTreeMap<Party, Party> = needs.collect();
        let mut rows = Vec::new();
        // For each one, the start of the first chain that reached it.
        let mut seen: BTreeMap<Party, Party> = BTreeMap::new();
        for &from in needs.keys() {
            let mut one = from;
            while let (false, Some(&next)) = (seen.contains_key(&one), needs.get(&one)) {
                seen.insert(one, from);
                one = next;
            }
            if seen.get(&one) == Some(&from) && rows.len() < ROWS {
                rows.push(self.circle(&needs, one, place));
            }
        }
        rows
    }

    /// The row for the circle that contains a thread.
    fn circle(
        &self,
        needs: &BTreeMap<Party, Party>,
        one: Party,
        place: &mut impl FnMut(PathKey) -> String,
    ) -> Anomaly {
        let mut all = vec![one];
        while let Some(&next) = all.last().and_then(|last| needs.get(last))
            && next != one
        {
            all.push(next);
        }
        let least = all.iter().enumerate().min_by_key(|(_, one)| **one);
        let least = least.map_or(0, |(at, _)| at);
        all.rotate_left(least);
        let steps = all.iter().take(NAMED).filter_map(|one| {
            let call = self.call(self.at(*one)?, place);
            let next = named(*needs.get(one)?);
            Some(format!("{} in {call} for {next}", named(*one)))
        });
        let mut steps: Vec<String> = steps.collect();
        if all.len() > NAMED {
            steps.push(format!("and {} more", all.len() - NAMED));
        }
        let ranks = list_of_ranks(all.iter().map(|(rank, _)| *rank), NAMED);
        let threads = all.iter().map(|(_, thread)| *thread);
        let who = match self.at(one).map(|call| &call.wait) {
            Some(Wait::Thread { .. }) => "thread",
            _ => "rank",
        };
        let detail = match all.len() {
            1 => format!("a {who} waits for itself: {}", steps.join(", ")),
            _ => format!(
                "{} wait for each other, so that none can go on: {}",
                with_threads(&further(threads), ranks, NAMED),
                steps.join(", ")
            ),
        };
        warning("deadlock", 1, detail)
    }
}

/// Numbers of threads as ranges; empty if they are the ranks' first ones.
fn further(threads: impl Iterator<Item = u32> + Clone) -> String {
    match threads.clone().any(|thread| thread > 0) {
        true => rank_ranges(threads),
        false => String::new(),
    }
}

/// `thread 1 of rank 0`
fn named((rank, thread): Party) -> String {
    with_threads(
        &further([thread].into_iter()),
        format!("rank {rank}"),
        NAMED,
    )
}

/// Whether a call comes back whatever others do: it looks, or begins something.
fn returns(operation: u16) -> bool {
    const WAIT: [&str; 3] = ["MPI_Init", "MPI_Info", "MPI_Intercomm"];
    let name = calls::name(operation);
    let is_immediate = name.starts_with("MPI_I") && !WAIT.iter().any(|wait| name.starts_with(wait));
    is_immediate || name.starts_with("MPI_Start") || polls(name)
}

/// Which members need which in a collective.
fn shape(call: &Hanging) -> Shape {
    calls::call(call.operation).map_or(Shape::Single, |call| call.shape)
}

/// Whether a call both sends and receives a message.
fn is_exchange(operation: u16) -> bool {
    matches!(
        operation,
        number::MPI_Sendrecv | number::MPI_Sendrecv_replace
    )
}

fn warning(id: &str, count: usize, detail: String) -> Anomaly {
    Anomaly {
        id: id.to_owned(),
        severity: AnomalySeverity::Warning,
        count: count as u64,
        detail,
        origin: None,
    }
}

#[cfg(test)]
mod tests;
