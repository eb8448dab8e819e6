//! Who comes late to a collective, and how the late ones share the blame.
//!
//! The time between two successive enters is divided equally among all that are missing: the
//! Shapley value of "until all are there". The latest are known by name. Time in which more were
//! missing belongs to nobody by name.

use std::cmp::Reverse;

use laggard_trace::calls::Shape;
use smallvec::SmallVec;

use crate::basics::ends::NONE;
use crate::collectives::topology::Topology;
use crate::wire::parcels::{Fold, Member, Party};

/// Most late members that are known by name.
pub const MOST_LATE: usize = 8;
/// Latest members that are kept. The first of them tells when no more were missing than are known.
const KEPT: usize = MOST_LATE + 1;

/// The latest members that somebody waits for, by enter.
pub type Latest = SmallVec<[Party; KEPT]>;
/// Late members with their shares of a wait, ns.
pub type Shares = SmallVec<[(i64, Party); MOST_LATE]>;

/// Whether single members matter, not only the first and the last.
pub fn keeps_members(shape: Shape) -> bool {
    matches!(shape, Shape::Prefix | Shape::Neighbourhood)
}

/// Whether the blame for a wait is shared by the latest of all members.
pub fn is_shared(shape: Shape) -> bool {
    matches!(
        shape,
        Shape::Barrier
            | Shape::PeBarrier
            | Shape::AllToAll
            | Shape::OneToAll
            | Shape::AllToOne
            | Shape::Management
            | Shape::WindowCreate
            | Shape::WindowFree
            | Shape::CollectiveIo
            | Shape::Finalize
            | Shape::Fence
    )
}

/// Adds a member if it is one of the latest, before those that are apart from these.
pub fn keep_latest(latest: &mut Vec<Member>, member: Member) {
    if member.is_apart != 0 {
        return latest.push(member);
    }
    let entries = entries(latest);
    if entries < KEPT {
        return latest.insert(entries, member);
    }
    let by_enter = |m: &&mut Member| (m.party.enter, Reverse(m.party.rank));
    let first = latest[..entries].iter_mut().min_by_key(by_enter);
    if let Some(first) = first.filter(|first| member.party.is_later(&first.party)) {
        *first = member;
    }
}

/// The number of the latest members; those that are apart follow.
fn entries(members: &[Member]) -> usize {
    let first = members.iter().position(|m| m.is_apart != 0);
    first.unwrap_or(members.len())
}

/// All members of a complete collective that matter one by one: the fold, and the members of its
/// shape.
pub struct Whole<'m> {
    pub fold: &'m Fold,
    pub members: &'m [Member],
    /// Positions of the members of a scan, the latest first.
    pub order: &'m [u32],
    pub topology: &'m Topology,
    /// Whether late members share the blame; otherwise the last one has it all.
    pub shares: bool,
    /// Whether a member has no trace.
    pub is_missed: bool,
}

/// Sorts the members of a complete collective, and tells each whom it waits for in the end. Returns
/// their order by enter, if it is a scan.
pub fn arrange(fold: &Fold, members: &mut [Member], topology: &Topology) -> Vec<u32> {
    match fold.shape() {
        Shape::Prefix => {
            members.sort_unstable_by_key(|member| (member.local_rank, member.party.rank));
            pair_with_lower(members);
            return order(members);
        }
        Shape::Neighbourhood => {
            members.sort_unstable_by_key(|member| (member.local_rank, member.party.rank));
            pair_with_neighbours(fold.group, members, topology);
        }
        _ => {
            let (entries, transfers) = members.split_at_mut(entries(members));
            // By target, the last one first; ties go to the lower rank.
            transfers.sort_unstable_by_key(|m| (m.local_rank, Reverse(m.leave), m.party.rank));
            entries.sort_unstable_by_key(|m| (m.party.enter, Reverse(m.party.rank)));
        }
    }
    Vec::new()
}

/// Positions of members, the latest first.
pub fn order(members: &[Member]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    order.sort_unstable_by_key(|&at| {
        let party = &members[at as usize].party;
        (Reverse(party.enter), party.rank)
    });
    order
}

impl<'m> Whole<'m> {
    /// Those that are none of the latest: the root that members have data for, or the last transfer before a fence into
    /// the memory of each world rank, by rank.
    fn apart(&self) -> &'m [Member] {
        &self.members[entries(self.members)..]
    }

    /// The last transfer before a fence into the memory of this world rank.
    pub fn last_transfer(&self, rank: u32) -> Option<&'m Member> {
        let transfers = self.apart();
        let at = transfers.partition_point(|m| m.local_rank < rank);
        transfers.get(at).filter(|m| m.local_rank == rank)
    }

    /// Whether there were transfers before a fence.
    pub fn has_transfers(&self) -> bool {
        !self.apart().is_empty()
    }

    /// The root, if it moves data and late members share the blame.
    pub fn root(&self) -> Option<&'m Party> {
        match self.fold.shape() {
            Shape::OneToAll => Some(&self.fold.last).filter(|_| self.fold.is_anybody_awaited()),
            Shape::AllToOne => self.apart().first().map(|member| &member.party),
            _ => None,
        }
    }

    /// The member `local_rank` and its position, if single members matter.
    pub fn member(&self, local_rank: u32) -> Option<(usize, &'m Member)> {
        let at = self
            .members
            .binary_search_by_key(&local_rank, |m| m.local_rank);
        let at = at.ok().filter(|_| keeps_members(self.fold.shape()))?;
        Some((at, &self.members[at]))
    }

    /// The member at a position of the list, and the one that it waited for in the end.
    pub fn awaited_by(&self, at: usize) -> Option<&'m Party> {
        let last = self.members.get(self.members[at].late as usize)?;
        Some(&last.party)
    }

    /// The latest of all members that came after a moment and before another, ns.
    pub fn latest_until(&self, from: i64, until: i64) -> Latest {
        let mut latest = self.latest(from);
        latest.retain(|party| party.enter <= until);
        latest
    }

    /// The latest of all members that came after a moment, ns.
    pub fn latest(&self, from: i64) -> Latest {
        let entries = &self.members[..entries(self.members)];
        let late = entries.partition_point(|m| m.party.enter <= from);
        entries[late..].iter().map(|member| member.party).collect()
    }

    /// The latest of those whom the member at a position needs that came after it.
    pub fn latest_for(&self, at: usize) -> Latest {
        let own = &self.members[at];
        let from = own.party.enter;
        if !self.shares {
            let last = self.awaited_by(at).filter(|last| last.enter > from);
            return last.copied().into_iter().collect();
        }
        let party = |other: usize| &self.members[other].party;
        if self.fold.shape() == Shape::Prefix {
            let order = self.order.iter().map(|&other| other as usize);
            let late = order.take_while(|&other| party(other).enter > from);
            let late = late.filter(|&other| other < at).take(KEPT);
            let mut latest: Latest = late.map(|other| *party(other)).collect();
            latest.reverse();
            return latest;
        }
        let needed = needed(self.fold.group, self.members, at, self.topology).1;
        let late = needed.into_iter().filter(|&other| other != at);
        let late = late.filter(|&other| party(other).enter > from);
        let mut latest: Vec<Party> = late.map(|other| *party(other)).collect();
        latest.sort_unstable_by_key(|party| (party.enter, Reverse(party.rank)));
        let known = latest.len().saturating_sub(KEPT);
        latest.drain(known..).collect()
    }

    /// The members that can cause another's loss, each once.
    pub fn name_late(&self) -> Vec<Party> {
        let fold = self.fold;
        let is_late = |party: &Party| party.enter > fold.first_enter;
        let mut late: Vec<Party> = match fold.shape() {
            Shape::Init | Shape::Single => Vec::new(),
            shape if keeps_members(shape) => {
                let asking = (0..self.members.len()).filter(|&at| self.members[at].asks != 0);
                asking.flat_map(|at| self.latest_for(at)).collect()
            }
            Shape::Fence => {
                let targets = self.apart();
                let targets = targets.chunk_by(|a, b| a.local_rank == b.local_rank);
                let transfers = targets.map(|of_target| of_target[0].party);
                let latest = self.latest(fold.first_enter);
                transfers.chain(latest).chain([fold.last]).collect()
            }
            _ if !fold.is_anybody_awaited() => Vec::new(),
            Shape::OneToAll if fold.held == 0 => vec![fold.last],
            shape if is_shared(shape) && !self.members.is_empty() => {
                let root = self.root().copied();
                self.latest(fold.first_enter)
                    .into_iter()
                    .chain(root)
                    .collect()
            }
            Shape::AllToOne => vec![fold.first, fold.last],
            _ => vec![fold.last],
        };
        late.retain(is_late);
        late.sort_unstable_by_key(|party| (party.rank, party.event));
        late.dedup_by_key(|party| (party.rank, party.event));
        late
    }
}

/// The shares of late members, given by enter, in a wait from one moment until another, ns. What is
/// left of the wait belongs to more members than are known.
pub fn shares(late: &[Party], from: i64, until: i64) -> Shares {
    let (known, mut since) = match late.len().checked_sub(MOST_LATE) {
        Some(more @ 1..) => (&late[more..], late[more - 1].enter.max(from)),
        _ => (late, from),
    };
    // What does not divide goes to the last one.
    let (mut missing, mut share, mut rest) = (known.len() as i64, 0, 0);
    let mut shares = Shares::new();
    for party in known {
        let moment = party.enter.min(until);
        let time = (moment - since).max(0);
        (share, rest) = (share + time / missing, rest + time % missing);
        (missing, since) = (missing - 1, since.max(moment));
        let own = if missing == 0 { share + rest } else { share };
        if own > 0 {
            shares.push((own, *party));
        }
    }
    shares
}

/// Each member waits for the latest of the lower ranks.
fn pair_with_lower(members: &mut [Member]) {
    let mut latest = NONE;
    for at in 0..members.len() {
        members[at].late = latest;
        let party = &members[at].party;
        if latest == NONE || party.is_later(&members[latest as usize].party) {
            latest = at as u32;
        }
    }
}

/// Whether the neighbours of a member are known, and their positions. If not, any member that
/// entered before it left may be one.
fn needed(
    group: u64,
    members: &[Member],
    at: usize,
    topology: &Topology,
) -> (bool, SmallVec<[usize; 8]>) {
    let own = &members[at];
    let position = |source: &u32| members.binary_search_by_key(source, |m| m.local_rank).ok();
    let sources = topology.sources(group, own.party.rank);
    let needed = match sources {
        Some(sources) => sources.iter().filter_map(position).collect(),
        None => (0..members.len())
            .filter(|&other| members[other].party.enter <= own.leave)
            .collect(),
    };
    (sources.is_some(), needed)
}

/// Each member that asks waits for the latest of its neighbours. If the neighbours are unknown,
/// nobody knows when they were through.
fn pair_with_neighbours(group: u64, members: &mut [Member], topology: &Topology) {
    for at in 0..members.len() {
        let own = &members[at];
        if own.asks == 0 {
            continue;
        }
        let (is_known, needed) = needed(group, members, at, topology);
        let later = |latest: usize, other: usize| {
            let is_later = members[other].party.is_later(&members[latest].party);
            if is_later { other } else { latest }
        };
        let latest = needed.iter().copied().filter(|&other| other != at);
        let latest = latest.reduce(later);
        let complete = latest.map_or(i64::MIN, |latest| members[latest].party.enter);
        let complete = complete.max(own.party.enter);
        let leaves = needed.iter().map(|&other| members[other].leave);
        let through = leaves.chain([own.leave]).filter(|&leave| leave >= complete);
        let through = through.min().filter(|_| is_known);
        members[at].late = latest.map_or(NONE, |latest| latest as u32);
        members[at].through = through.unwrap_or(i64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parties(enters: &[i64]) -> Vec<Party> {
        let parties = (0..).zip(enters).map(|(rank, &enter)| Party {
            enter,
            rank,
            ..Party::default()
        });
        parties.collect()
    }

    fn amounts(late: &[i64], from: i64, until: i64) -> Vec<(u32, i64)> {
        let shares = shares(&parties(late), from, until);
        shares.iter().map(|(share, p)| (p.rank, *share)).collect()
    }

    #[test]
    fn all_that_are_missing_share_the_time() {
        assert_eq!(amounts(&[20, 22], 0, 22), [(0, 10), (1, 12)]);
        // The wait ended before the last one came.
        assert_eq!(amounts(&[20, 30], 0, 22), [(0, 10), (1, 12)]);
        // What remains of a division goes to the last one.
        assert_eq!(amounts(&[4, 4, 4], 0, 4), [(0, 1), (1, 1), (2, 2)]);
        assert_eq!(amounts(&[4], 4, 4), []);
    }

    #[test]
    fn eight_are_known_by_name() {
        let eight: Vec<i64> = (1..=8).map(|n| 8 * n).collect();
        let sum = |shares: &[(u32, i64)]| shares.iter().map(|(_, share)| share).sum::<i64>();
        assert_eq!(sum(&amounts(&eight, 0, 64)), 64);
        // Of nine or more, from when eight are missing.
        let nine: Vec<i64> = (1..=9).map(|n| 8 * n).collect();
        let found = amounts(&nine, 0, 72);
        assert_eq!((found[0], sum(&found)), ((1, 1), 64));
    }

    #[test]
    fn the_latest_are_kept() {
        let mut latest = vec![Member {
            is_apart: 1,
            ..Member::default()
        }];
        for party in parties(&[5, 1, 9, 3, 8, 2, 7, 6, 4, 10]) {
            let member = Member {
                party,
                ..Member::default()
            };
            keep_latest(&mut latest, member);
        }
        assert_eq!(latest.pop().map(|last| last.is_apart), Some(1));
        let mut enters: Vec<i64> = latest.iter().map(|m| m.party.enter).collect();
        enters.sort_unstable();
        assert_eq!(enters, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
