//! Transfers that compete at one process: slow transfers, and concurrent transfers of others to or
//! from the same target.

use laggard_patterns::{Interval, PatternId, one_sided};
use laggard_trace::calls::{self, GenericType};

use crate::basics::ends::End;
use crate::memory::own::RemoteMemory;
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::waits::charging::Lost;
use crate::wire::parcels::Detail;
use crate::wire::watched::{Kind, Rival, Watch};

/// A transfer to or from the memory of another rank.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// World rank of the other process.
    target: u32,
    thread: u32,
    /// Enter, ns.
    enter: i64,
    /// Leave, ns.
    leave: i64,
    signature: u32,
    /// Number in the location.
    event: u64,
    /// Latest leave of this and all earlier transfers of this target and thread, ns.
    reach: i64,
    /// Whether it was entered in this slab.
    is_new: bool,
}

impl Move {
    fn call(&self) -> End {
        End {
            time: self.enter,
            event: self.event,
            signature: self.signature,
            thread: self.thread,
        }
    }

    fn key(&self) -> (u32, u32, i64) {
        (self.target, self.thread, self.enter)
    }
}

/// The transfers of a rank that may compete with others.
#[derive(Debug, Default)]
pub struct Moves(Vec<Move>);

impl Moves {
    /// Sorts them by target, thread and enter.
    pub fn sort(&mut self) {
        self.0.sort_unstable_by_key(Move::key);
        let mut before: Option<Move> = None;
        for one in &mut self.0 {
            let same = before.filter(|b| (b.target, b.thread) == (one.target, one.thread));
            one.reach = same.map_or(one.leave, |before| before.reach.max(one.leave));
            before = Some(*one);
        }
    }

    /// Drops transfers that ended before `until`, the end of the slab.
    pub fn trim(&mut self, until: i64) {
        self.0.retain(|one| one.leave > until);
        self.0.iter_mut().for_each(|one| one.is_new = false);
    }

    /// The target ranks, each once.
    pub fn targets(&self) -> impl Iterator<Item = u32> {
        let mut last = None;
        let targets = self.0.iter().map(|one| one.target);
        targets.filter(move |target| last.replace(*target) != Some(*target))
    }

    /// Transfers of a thread that overlap a transfer to or from `target`.
    fn overlapping(&self, target: u32, thread: u32, watch: &Watch) -> impl Iterator<Item = &Move> {
        let (enter, leave) = (watch.enter, watch.leave);
        let is_before = |one: &Move| {
            (one.target, one.thread) < (target, thread)
                || (one.target, one.thread) == (target, thread) && one.reach <= enter
        };
        let first = self.0.partition_point(is_before);
        let here = self.0[first..].iter().take_while(move |one| {
            (one.target, one.thread) == (target, thread) && one.enter < leave
        });
        here.filter(move |one| one.leave > enter)
    }
}

/// Most competitors kept of a transfer, those with the largest overlap. At a process that all
/// others transfer to, all compete with all.
const MOST: usize = 32;

/// Joins the entries of a competitor from several slabs, and keeps the largest. One agent has all
/// entries of a rank, so the largest of all are among the largest of each agent.
pub fn join(rivals: &mut Vec<Rival>) {
    let who = |rival: &Rival| {
        let detail = &rival.detail;
        (detail.rank, detail.thread, detail.operation, detail.path)
    };
    rivals.sort_unstable_by_key(|rival| (who(rival), rival.from));
    rivals.dedup_by(|next, first| {
        let is_same = who(next) == who(first);
        if is_same {
            first.until = first.until.max(next.until);
            first.overlap = first.overlap.saturating_add(next.overlap);
        }
        is_same
    });
    if rivals.len() > MOST {
        rivals.sort_unstable_by_key(|rival| (std::cmp::Reverse(rival.overlap), who(rival)));
        rivals.truncate(MOST);
    }
}

/// Time in which some competitor transferred, ns. A series of transfers counts from its first to
/// its last, but at most its own duration.
fn overlap(rivals: &[Rival]) -> i64 {
    let mut spans: Vec<(i64, i64)> = rivals.iter().map(|r| (r.from, r.until)).collect();
    spans.sort_unstable();
    let (mut sum, mut end) = (0, i64::MIN);
    for (from, until) in spans {
        sum += (until - from.max(end)).max(0);
        end = end.max(until);
    }
    let all = rivals.iter().map(|rival| rival.overlap);
    sum.min(all.fold(0, i64::saturating_add))
}

/// Loss of a transfer to its competitors. They lost `otherwise` ns to others. `None` without
/// competitors.
pub fn loss(
    operation: u16,
    watch: &Watch,
    otherwise: i64,
    rivals: &mut Vec<Rival>,
) -> Option<Lost> {
    join(rivals);
    if rivals.is_empty() {
        return None;
    }
    let interval = Interval::new(watch.enter, watch.leave);
    let severity = one_sided::competing(interval, watch.expected, otherwise, overlap(rivals));
    let all = rivals.iter().map(|rival| i128::from(rival.overlap)).sum();
    let share =
        |rival: &Rival| i128::from(severity) * i128::from(rival.overlap) / i128::max(all, 1);
    let shares = rivals.iter();
    let shares = shares.map(|rival| (share(rival) as i64, rival.detail));
    Some(Lost {
        left: i64::MAX,
        group: 0,
        looked: None,
        pattern: match calls::call(operation).map(|call| call.generic) {
            Some(GenericType::OneSidedGet) => PatternId::CompetingGet,
            _ => PatternId::CompetingPut,
        },
        severity,
        doubt: 0,
        late: None,
        shares: shares.collect(),
    })
}

/// A transfer without competitors is unexplained if it takes this much longer than expected, ns.
/// Less is noise.
pub const UNEXPLAINED_NS: i64 = 50_000;

impl RemoteMemory {
    /// Notes a transfer to or from another world rank. Returns its expected duration, ns, if it was
    /// slow enough to ask for competitors; else 0.
    pub fn move_data(
        &mut self,
        own: &Recorded,
        call: &CallAt,
        target: i32,
        is_as_defined: bool,
    ) -> i64 {
        let Ok(target) = u32::try_from(target) else {
            return 0;
        };
        if target == own.rank || call.leave <= call.enter {
            return 0;
        }
        self.moves.0.push(Move {
            target,
            thread: call.thread,
            enter: call.enter,
            leave: call.leave,
            signature: call.signature,
            event: call.number,
            reach: call.leave,
            is_new: true,
        });
        let usual = &own.threads[call.thread as usize].usual;
        let usual = usual.get(&call.signature).filter(|_| is_as_defined);
        let slow = usual.filter(|usual| call.asks && call.leave - call.enter >= usual.slow);
        slow.map_or(0, |usual| usual.expected)
    }

    /// Asks for competitors of a transfer.
    pub fn watch_transfer(&mut self, own: &Recorded, call: &CallAt, target: i32, expected: i64) {
        let watch = Watch {
            enter: call.enter,
            leave: call.leave,
            value: target as i64 as u64,
            rank: own.rank,
            thread: call.thread,
            signature: call.signature,
            kind: Kind::Transfer as u32,
            expected,
            ..Watch::default()
        };
        self.watches.push((watch, None));
    }

    /// Adds this rank's competition with a transfer of another rank: one entry for each thread and
    /// call path. Unless the watch `is_new`, only this slab's transfers count.
    pub fn rivals(&self, own: &Recorded, watch: &Watch, is_new: bool, found: &mut Vec<Rival>) {
        let Ok(target) = u32::try_from(watch.value) else {
            return;
        };
        if own.rank == watch.rank || self.moves.0.is_empty() {
            return;
        }
        for thread in 0..own.threads.len() as u32 {
            let first = found.len();
            let moves = self.moves.overlapping(target, thread, watch);
            for one in moves.filter(|one| is_new || one.is_new) {
                let (from, until) = (one.enter.max(watch.enter), one.leave.min(watch.leave));
                let detail = own.detail_alone(&one.call());
                let key = |detail: &Detail| (detail.operation, detail.path);
                let same = found[first..]
                    .iter_mut()
                    .find(|rival| key(&rival.detail) == key(&detail));
                match same {
                    Some(rival) => {
                        rival.until = rival.until.max(until);
                        rival.overlap = rival.overlap.saturating_add(until - from);
                    }
                    None => found.push(Rival {
                        id: watch.id,
                        from,
                        until,
                        overlap: until - from,
                        detail,
                    }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rival(rank: u32, from: i64, until: i64, overlap: i64) -> Rival {
        Rival {
            id: 0,
            from,
            until,
            overlap,
            detail: Detail {
                rank,
                ..Detail::default()
            },
        }
    }

    #[test]
    fn competitors_at_once_count_once() {
        assert_eq!(overlap(&[rival(1, 0, 50, 50), rival(2, 20, 60, 40)]), 60);
        assert_eq!(overlap(&[rival(1, 0, 10, 10), rival(2, 20, 60, 40)]), 50);
        // A series with gaps.
        assert_eq!(overlap(&[rival(1, 0, 50, 5)]), 5);
        assert_eq!(overlap(&[]), 0);
    }

    #[test]
    fn what_a_competitor_did_in_several_slabs_is_one() {
        let mut rivals = vec![rival(2, 50, 60, 10), rival(1, 0, 9, 9), rival(2, 0, 20, 20)];
        join(&mut rivals);
        let spans: Vec<_> = rivals
            .iter()
            .map(|r| (r.detail.rank, r.from, r.until))
            .collect();
        assert_eq!(spans, [(1, 0, 9), (2, 0, 60)]);
        assert_eq!(rivals[1].overlap, 30);
    }

    #[test]
    fn the_largest_competitors_are_left() {
        let mut rivals: Vec<_> = (0..100)
            .map(|n| rival(n, 0, 200, 1 + i64::from(n)))
            .collect();
        join(&mut rivals);
        assert_eq!(rivals.len(), MOST);
        assert!(
            rivals
                .iter()
                .all(|rival| rival.detail.rank >= 100 - MOST as u32)
        );
    }

    #[test]
    fn transfers_are_found_that_overlap() {
        let one = |thread, enter, leave| Move {
            target: 3,
            thread,
            enter,
            leave,
            signature: 0,
            event: 0,
            reach: leave,
            is_new: true,
        };
        let mut moves = Moves(vec![
            one(0, 40, 50),
            one(1, 0, 90),
            one(0, 0, 10),
            one(0, 10, 30),
        ]);
        moves.sort();
        let watch = Watch {
            enter: 10,
            leave: 40,
            ..Watch::default()
        };
        let found = |thread| {
            let moves = moves.overlapping(3, thread, &watch);
            moves.map(|one| one.enter).collect::<Vec<_>>()
        };
        assert_eq!(found(0), [10]);
        assert_eq!(found(1), [0]);
        assert!(moves.overlapping(2, 0, &watch).next().is_none());
        assert_eq!(moves.targets().collect::<Vec<_>>(), [3]);
        moves.trim(49);
        assert_eq!(moves.0.len(), 2);
        assert!(moves.0.iter().all(|one| !one.is_new));
    }
}
