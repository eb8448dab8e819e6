//! The part of a wait that mending it gains. The gain of a rank is limited by its later waits: it
//! may wait there instead, if everything it needs next comes as early as before.
//!
//! After a wait a rank needs something of others before it gives them anything ([`Need`]). If it
//! waits there as well, that wait grows by as much as the first one shrinks. If all ranks meet
//! there, all can go on earlier by at most the time that each of them lost in the mended wait or
//! waits for the others. And no run is shorter than the computation of a rank.

use laggard_patterns::PatternId;
use laggard_report::RankSet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::basics::intern::PathKey;
use crate::collectives::between::Between;
use crate::findings::fold::Folded;
use crate::findings::fold::FoldedFindings;
use crate::judge::profile::Profile;
use crate::stream::following::{Followers, Need, Needed};
use crate::waits::sums::FindingKey;

/// An operation at a place.
type Place = (u16, PathKey);

/// Losses of ranks in some findings, ns.
#[derive(Clone, Debug, Default)]
struct Losses(Vec<OfFinding>);

/// Losses of ranks in one finding, ns: exact for the largest ones.
#[derive(Clone, Debug)]
struct OfFinding {
    listed: FxHashMap<u32, u64>,
    all: RankSet,
    /// Upper bound for each rank that is not listed.
    others: u64,
}

impl Losses {
    fn add(&mut self, folded: &Folded) {
        let listed = folded.ranks.iter();
        self.0.push(OfFinding {
            listed: listed.map(|&(rank, lost, _)| (rank, lost)).collect(),
            all: folded.rank_set.clone(),
            others: folded.ranks.last().map_or(0, |rank| rank.1),
        });
    }

    /// Upper bound of a rank's loss.
    fn of(&self, rank: u32) -> u64 {
        let losses = self
            .0
            .iter()
            .map(|finding| match finding.listed.get(&rank) {
                Some(&lost) => lost,
                None if finding.all.contains(rank) => finding.others,
                None => 0,
            });
        losses.fold(0, u64::saturating_add)
    }
}

/// The waits at a place that ranks reach after other waits.
#[derive(Debug, Default)]
struct Waits {
    losses: Losses,
    /// The late ranks.
    late: FxHashMap<u32, Late>,
    /// Time lost to other ranks than these, ns.
    unknown: u64,
}

/// A late rank. ns
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    /// Time that others lost to it.
    lost: u64,
    /// Part of `lost` in which it was in communication itself.
    held_up: u64,
}

/// Facts about the whole run.
pub struct Run {
    waits: FxHashMap<Place, Waits>,
    ranks: u32,
    /// Time between start-up and shut-down, ns.
    pub wall: u64,
    between: Between,
}

impl Run {
    /// Collects the facts of a run of `ranks` ranks that ended at `end`, ns.
    pub fn new<'f>(
        findings: impl Iterator<Item = (&'f FindingKey, &'f Folded)>,
        followers: &Followers,
        ranks: u32,
        (between, end): (&Between, i64),
    ) -> Run {
        let mut waits: FxHashMap<Place, Waits> = FxHashMap::default();
        for needed in followers.values().flat_map(|followed| &followed.needs) {
            if let Need::Wait(operation, path) | Need::Meeting(operation, path) = needed.need {
                waits.entry((operation, path)).or_default();
            }
        }
        for (&(pattern, operation, path), folded) in findings {
            let pattern = PatternId::from_number(pattern);
            let is_for_others = |pattern: &PatternId| {
                let competes = [PatternId::CompetingPut, PatternId::CompetingGet];
                pattern.is_waiting() && !competes.contains(pattern)
            };
            let Some(waits) = waits.get_mut(&(operation, path)) else {
                continue;
            };
            if pattern.filter(is_for_others).is_some() {
                waits.losses.add(folded);
                let mut known = 0u64;
                for (key, cause) in &folded.causes {
                    let late = waits.late.entry(key.rank).or_default();
                    late.lost = late.lost.saturating_add(cause.sums.severity);
                    late.held_up = late.held_up.saturating_add(cause.sums.waiting);
                    known = known.saturating_add(cause.sums.severity);
                }
                let unknown = folded.severity.saturating_sub(known);
                waits.unknown = waits.unknown.saturating_add(unknown);
            }
        }
        let mut between = between.clone();
        between.cut();
        Run {
            waits,
            ranks,
            wall: between.wall(end),
            between,
        }
    }

    /// The gain that is left, ns, of the time lost by the rank that lost most. `profile` gives the
    /// number of members of a call at a place.
    pub fn left(
        &self,
        (key, folded): (&FindingKey, &Folded),
        needs: &[Needed],
        profile: &Profile,
    ) -> u64 {
        let place = (key.1, key.2);
        let members = |place: &Place| profile.get(place).map_or(0, |sums| sums.members);
        let is_group = PatternId::from_number(key.0).is_some_and(PatternId::is_about_group);
        let mut mended = Mended {
            place,
            is_group,
            is_of_all: is_group && members(&place) >= self.ranks,
            losses: Losses::default(),
            late: FxHashSet::default(),
            meetings: FxHashMap::default(),
        };
        mended.losses.add(folded);
        if is_group {
            mended.late = folded.causes.iter().map(|(key, _)| key.rank).collect();
        }
        let of_rank = |&(rank, lost, _): &(u32, u64, u64)| {
            let begin = needs.partition_point(|needed| needed.rank < rank);
            let own = needs[begin..]
                .iter()
                .take_while(|needed| needed.rank == rank);
            let mut left: Option<u64> = None;
            for needed in own {
                let part = self.kept(needed, &mut mended, &members).min(needed.time);
                left = Some(left.unwrap_or(0).saturating_add(part));
            }
            left.unwrap_or(lost).min(lost)
        };
        let most = folded.ranks.iter().map(of_rank).max().unwrap_or(0);
        let computes = |&&(_, rank): &&(u64, u32)| !mended.late.contains(&rank);
        let longest = self.between.most.iter().find(computes);
        let least = match is_group {
            true => longest.map_or(0, |one| one.0),
            false => self.between.computed,
        };
        most.min(self.wall.saturating_sub(least))
    }

    /// Time by which a rank, and the ranks that wait for it, can go on earlier after `needed`, ns.
    fn kept(&self, needed: &Needed, mended: &mut Mended, members: &dyn Fn(&Place) -> u32) -> u64 {
        let (place, waits) = match needed.need {
            Need::Nothing => return u64::MAX,
            Need::Wait(operation, path) => ((operation, path), true),
            Need::Meeting(operation, path) => ((operation, path), false),
        };
        // Ranks that leave a call together reach everything that follows earlier.
        if place == mended.place || mended.is_of_all {
            return u64::MAX;
        }
        let Some(there) = self.waits.get(&place) else {
            return u64::MAX;
        };
        if waits && !mended.is_group {
            let late = there.late.iter().filter(|(rank, _)| **rank != needed.rank);
            let earlier = late.map(|(&rank, late)| {
                let own = mended.losses.of(rank);
                own.saturating_add(late.held_up)
            });
            let is_known = there.losses.of(needed.rank) > 0 && there.unknown == 0;
            return earlier.max().filter(|_| is_known).unwrap_or(u64::MAX);
        }
        if members(&place) < self.ranks {
            return u64::MAX;
        }
        let (losses, late) = (&mended.losses, &mended.late);
        let is_earlier = |rank: u32| late.contains(&rank) || losses.of(rank) > 0;
        let earlier = || {
            let ranks = (0..self.ranks).filter(|rank| !late.contains(rank));
            let of_rank = |rank| losses.of(rank).saturating_add(there.losses.of(rank));
            let least = ranks.map(of_rank).min().unwrap_or(u64::MAX);
            // Only while all others wait for one of the ranks that will be earlier.
            let lost = there.late.iter().filter(|(rank, _)| is_earlier(**rank));
            let lost = lost.fold(there.unknown, |sum, (_, late)| {
                sum.saturating_add(late.lost)
            });
            let others = (0..self.ranks).filter(|&rank| !is_earlier(rank)).count() as u64;
            lost.checked_div(others)
                .map_or(least, |each| each.min(least))
        };
        *mended.meetings.entry(place).or_insert_with(earlier)
    }
}

struct Mended {
    place: Place,
    /// Whether several ranks wait for one, which is then earlier as well.
    is_group: bool,
    /// Whether all ranks leave it together.
    is_of_all: bool,
    losses: Losses,
    /// The late ranks, which are earlier as well.
    late: FxHashSet<u32>,
    /// Time by which all can go on earlier after they meet at a place, ns.
    meetings: FxHashMap<Place, u64>,
}

/// Keeps only the needs that are listed findings.
pub fn keep_listed(followers: &mut Followers, findings: &FoldedFindings) {
    let mut listed: FxHashMap<(u16, PathKey), FxHashSet<u32>> = FxHashMap::default();
    for ((_, operation, path), folded) in findings {
        let ranks = folded.ranks.iter().map(|rank| rank.0);
        listed.entry((*operation, *path)).or_default().extend(ranks);
    }
    for (place, followed) in followers {
        let listed = listed.get(place);
        let is_listed = |needed: &Needed| listed.is_some_and(|ranks| ranks.contains(&needed.rank));
        followed.needs.retain(is_listed);
        followed.needs.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::profile::ProfileSums;
    use crate::waits::sums::{Cause, CauseKey, Parts};
    use crate::wire::parcels::Fold;
    use laggard_comm::Filter;
    use laggard_trace::calls::number;

    const SEND: Place = (1, [1, 0]);
    const BARRIER: Place = (2, [2, 0]);
    const RECEIVE: Place = (3, [3, 0]);
    const RANKS: u32 = 3;

    fn key(pattern: PatternId, place: Place) -> FindingKey {
        (pattern as u8, place.0, place.1)
    }

    /// A finding with these losses of ranks, and late ranks with the time that they waited
    /// meanwhile.
    fn folded(ranks: &[(u32, u64)], late: &[(u32, u64)]) -> Folded {
        let severity = ranks.iter().map(|rank| rank.1).sum();
        let cause = |&(rank, waiting): &(u32, u64)| {
            let (operation, path) = SEND;
            let sums = Parts {
                severity: severity / late.len() as u64,
                waiting,
                ..Parts::default()
            };
            let cause = Cause {
                sums,
                ..Cause::default()
            };
            (
                CauseKey {
                    rank,
                    thread: 0,
                    operation,
                    path,
                },
                cause,
            )
        };
        Folded {
            severity,
            rank_set: RankSet::new(ranks.iter().map(|rank| rank.0)),
            ranks: ranks.iter().map(|&(rank, lost)| (rank, lost, 1)).collect(),
            causes: late.iter().map(cause).collect(),
            ..Folded::default()
        }
    }

    /// Gain of mending a wait of rank 0 for rank 1, of 100 ns, before its next need.
    fn left(
        need: Need,
        there: (PatternId, Place, Folded),
        mended: PatternId,
        computed: [u64; 3],
    ) -> u64 {
        let members = |place: Place, members: u32| {
            let sums = ProfileSums {
                members,
                ..ProfileSums::default()
            };
            (place, sums)
        };
        let profile: Profile = [members(SEND, 2), members(BARRIER, RANKS)]
            .into_iter()
            .collect();
        let mut between = Between {
            computed: computed.into_iter().max().unwrap_or(0),
            ..Between::default()
        };
        (0..)
            .zip(computed)
            .for_each(|(rank, computed)| between.add_rank(rank, computed));
        let needs = vec![Needed {
            rank: 0,
            need,
            time: 120,
        }];
        let mut followers = Followers::default();
        followers.entry(SEND).or_default().needs = needs.clone();
        let wait = folded(&[(0, 100)], &[(1, 0)]);
        let (pattern, place, sums) = there;
        let other = key(pattern, place);
        let findings = [(&other, &sums)].into_iter();
        let run = Run::new(findings, &followers, RANKS, (&between, 1000));
        run.left((&key(mended, SEND), &wait), &needs, &profile)
    }

    fn of_message(need: Need, there: (PatternId, Place, Folded)) -> u64 {
        left(need, there, PatternId::LateReceiver, [0; 3])
    }

    fn barrier(ranks: &[(u32, u64)]) -> (PatternId, Place, Folded) {
        (PatternId::WaitAtBarrier, BARRIER, folded(ranks, &[(0, 0)]))
    }

    #[test]
    fn no_more_is_left_than_the_others_wait_where_all_meet() {
        let meeting = Need::Meeting(BARRIER.0, BARRIER.1);
        // No rank waits for rank 0 alone.
        assert_eq!(of_message(meeting, barrier(&[(1, 90)])), 0);
        assert_eq!(of_message(meeting, barrier(&[(1, 90), (2, 30)])), 30);
        assert_eq!(of_message(meeting, barrier(&[(1, 500), (2, 700)])), 100);
        // If rank 0 gives something first, others may wait for it.
        assert_eq!(of_message(Need::Nothing, barrier(&[(1, 90)])), 100);
    }

    #[test]
    fn no_more_is_left_than_the_late_ones_are_held_up_where_it_waits_again() {
        let wait = Need::Wait(RECEIVE.0, RECEIVE.1);
        let there = |ranks: &[(u32, u64)], late: &[(u32, u64)]| {
            (PatternId::LateSender, RECEIVE, folded(ranks, late))
        };
        assert_eq!(of_message(wait, there(&[(0, 50)], &[(2, 0)])), 0);
        assert_eq!(of_message(wait, there(&[(0, 50)], &[(2, 20)])), 20);
        // Others wait there, not rank 0.
        assert_eq!(of_message(wait, there(&[(1, 50)], &[(2, 0)])), 100);
        // Both waits are at one place and mended together.
        let again = Need::Wait(SEND.0, SEND.1);
        assert_eq!(of_message(again, there(&[(0, 50)], &[(2, 0)])), 100);
    }

    #[test]
    fn a_run_lasts_as_long_as_a_rank_computes() {
        let there = || barrier(&[]);
        let computed = [100, 0, 930];
        let of = |pattern| left(Need::Nothing, there(), pattern, computed);
        assert_eq!(of(PatternId::LateReceiver), 70);
        assert_eq!(of(PatternId::WaitAtBarrier), 70);
        // Rank 1 is late: it does not compute the time that others take from it.
        let of = |pattern| left(Need::Nothing, there(), pattern, [100, 930, 0]);
        assert_eq!(of(PatternId::LateReceiver), 70);
        assert_eq!(of(PatternId::WaitAtBarrier), 100);
    }

    #[test]
    fn a_run_lasts_as_long_as_the_slowest_between_meetings() {
        let fold = |operation, computed, first_leave, last| {
            let mut fold = Fold {
                operation: u32::from(operation),
                computed,
                first_leave,
                ..Fold::default()
            };
            fold.last.enter = last;
            fold
        };
        let all = [
            fold(number::MPI_Init, 0, 100, 90),
            fold(number::MPI_Barrier, 20, 200, 200),
            fold(number::MPI_Finalize, 30, 400, 390),
        ];
        let of = |folds: &[Fold]| {
            let mut between = Between::default();
            folds.iter().for_each(|fold| between.add(fold));
            between
        };
        for split in 0..=all.len() {
            let mut sum = of(&all[..split]);
            sum.merge(of(&all[split..]));
            assert_eq!((sum.wall(500), sum.computed), (290, 50), "{split}");
        }
        assert_eq!(of(&all[..2]).wall(500), 400);
        assert_eq!(of(&[]).wall(500), 500);
    }

    #[test]
    fn who_comes_out_of_a_call_together_needs_nothing_of_others() {
        let meeting = Need::Meeting(BARRIER.0, BARRIER.1);
        let of = |members| {
            let there = barrier(&[(1, 90)]);
            let mut profile = Profile::default();
            for place in [SEND, BARRIER] {
                profile.entry(place).or_default().members = RANKS;
            }
            profile.entry(SEND).or_default().members = members;
            let mut followers = Followers::default();
            let needs = vec![Needed {
                rank: 0,
                need: meeting,
                time: 120,
            }];
            followers.entry(SEND).or_default().needs = needs.clone();
            let other = key(there.0, there.1);
            let findings = [(&other, &there.2)].into_iter();
            let between = Between::default();
            let run = Run::new(findings, &followers, RANKS, (&between, 1000));
            let wait = folded(&[(0, 100)], &[(1, 0)]);
            run.left((&key(PatternId::WaitAtNxn, SEND), &wait), &needs, &profile)
        };
        assert_eq!(of(3), 100);
        // Rank 2 is not among them, and comes last.
        assert_eq!(of(2), 0);
    }
}
