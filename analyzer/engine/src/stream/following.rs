//! Activity of a rank after slow calls: the next call, computation that could have overlapped the
//! wait, and the rank's next need of others. Rules for hints use it.

use std::collections::VecDeque;

use laggard_comm::Filter;
use laggard_trace::{Signature, flags};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::basics::intern::PathKey;
use crate::basics::room::make_room;
use crate::stream::columns::Instance;
use crate::stream::rows::{NeedKind, Row, TimeClass};

/// Activity after the slow calls of one operation and call path. Times are ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// Slow calls with a next call.
    pub calls: u64,
    /// Computation between these and their next calls.
    pub computed: u64,
    /// Part of the slow calls' duration that this computation could hide.
    pub overlap: u64,
    /// Part that all computation could hide, up to where the rank [gives](Need::Nothing) something.
    pub ahead: u64,
    /// Part that computation after further receives could hide, up to the same point. After each,
    /// at most as much counts as after the slow call. Other messages could be handled first.
    pub alike: u64,
    /// Slow calls followed by the same one at the same place, with the same peers.
    pub repeats: u64,
    /// The next calls.
    pub next: Vec<Next>,
    /// The ranks' next needs, ascending by rank and need.
    pub needs: Vec<Needed>,
}

/// A rank's need of others after a slow call, before it gives them anything. A shorter wait in the
/// slow call does not make it come earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Need {
    /// None: it gives something first, which others may wait for; or no call follows.
    Nothing,
    /// This call, which is slow, too.
    Wait(u16, PathKey),
    /// This call, in which all meet. The rank is among the last to come.
    Meeting(u16, PathKey),
}

/// Duration of the slow calls of a rank before a need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Needed {
    /// World rank.
    pub rank: u32,
    pub need: Need,
    /// Sum of durations, ns.
    pub time: u64,
}

impl Needed {
    fn key(&self) -> (u32, Need) {
        (self.rank, self.need)
    }
}

/// Appends others to an ascending list.
fn add_needs(list: &mut Vec<Needed>, others: Vec<Needed>) {
    let is_behind = match (list.last(), others.first()) {
        (Some(last), Some(first)) => last.key() < first.key(),
        _ => true,
    };
    list.extend(others);
    if !is_behind {
        order(list);
    }
}

/// Sorts a list, and adds up entries of the same rank and need.
fn order(list: &mut Vec<Needed>) {
    list.sort_unstable_by_key(Needed::key);
    list.dedup_by(|further, kept| {
        let is_same = further.key() == kept.key();
        if is_same {
            kept.time = kept.time.saturating_add(further.time);
        }
        is_same
    });
}

/// A call that follows others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// Its number.
    pub operation: u16,
    /// Its call path.
    pub path: PathKey,
    /// Number of slow calls before it.
    pub calls: u64,
    /// Those of them with the same communicator.
    pub same_group: u64,
}

/// Activity after the slow calls, by place.
pub type Followers = FxHashMap<(u16, PathKey), Followed>;

impl Followed {
    fn add_next(&mut self, next: Next) {
        let same = |known: &&mut Next| (known.operation, known.path) == (next.operation, next.path);
        match self.next.iter_mut().find(same) {
            Some(known) => {
                known.calls = known.calls.saturating_add(next.calls);
                known.same_group = known.same_group.saturating_add(next.same_group);
            }
            None => self.next.push(next),
        }
    }

    /// The call that follows most often.
    pub fn most(&self) -> Option<&Next> {
        let key = |next: &&Next| (next.calls, std::cmp::Reverse((next.operation, next.path)));
        self.next.iter().max_by_key(key)
    }
}

impl Filter for Followed {
    /// The activity after other calls.
    fn merge(&mut self, other: Followed) {
        self.calls = self.calls.saturating_add(other.calls);
        self.computed = self.computed.saturating_add(other.computed);
        self.overlap = self.overlap.saturating_add(other.overlap);
        self.ahead = self.ahead.saturating_add(other.ahead);
        self.alike = self.alike.saturating_add(other.alike);
        add_needs(&mut self.needs, other.needs);
        self.repeats = self.repeats.saturating_add(other.repeats);
        other.next.into_iter().for_each(|next| self.add_next(next));
    }
}

/// Renames call paths. Entries about the same calls are then added up.
pub fn rename_paths(followers: &mut Followers, name: impl Fn(PathKey) -> PathKey) {
    for ((operation, path), mut followed) in std::mem::take(followers) {
        for mut next in std::mem::take(&mut followed.next) {
            next.path = name(next.path);
            followed.add_next(next);
        }
        let mut needs = std::mem::take(&mut followed.needs);
        for needed in &mut needs {
            if let Need::Wait(_, path) | Need::Meeting(_, path) = &mut needed.need {
                *path = name(*path);
            }
        }
        order(&mut needs);
        followed.needs = needs;
        let key = (operation, name(path));
        followers.entry(key).or_default().merge(followed);
    }
}

/// The call paths of all calls.
pub fn paths(followers: &Followers) -> impl Iterator<Item = PathKey> {
    followers.values().flat_map(|followed| {
        let next = followed.next.iter().map(|next| next.path);
        next.chain(
            followed
                .needs
                .iter()
                .filter_map(|needed| match needed.need {
                    Need::Nothing => None,
                    Need::Wait(_, path) | Need::Meeting(_, path) => Some(path),
                }),
        )
    })
}

/// A call that takes less than the slow one before it, over this, waits for nobody.
const SHORT: i64 = 16;

/// A slow call, and the activity after it so far.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Its position in [`Following::by_signature`].
    sums: usize,
    duration: i64,
    /// Leave of the last call so far.
    leave: i64,
    /// Computation directly after the slow call, and the next call's signature, once known.
    first: Option<(i64, u32)>,
    /// See [`Followed::ahead`].
    ahead: i64,
    /// See [`Followed::alike`].
    alike: i64,
    /// Whether the last call so far is a further receive.
    received: bool,
}

impl Open {
    /// Takes the call after a slow one.
    #[inline(always)]
    fn go_on(&mut self, call: &Instance, row: &Row) {
        let computed = (call.enter - self.leave).max(0);
        self.ahead = self.ahead.saturating_add(computed);
        match self.first {
            None => self.first = Some((computed, call.signature)),
            Some((first, _)) if self.received => {
                self.alike = self.alike.saturating_add(computed.min(first));
            }
            Some(_) => {}
        }
        let is_received = row.has(flags::RECEIVES) && !row.has(flags::PEEKS);
        self.received = (is_received && !row.has(flags::POSTS)) || row.completes != 0;
        self.leave = call.leave;
    }
}

/// A [`Need`] with a signature for the call.
type LocalNeed = (NeedKind, u32);

/// Activity after the slow calls of one location, by their signature.
#[derive(Debug, Default)]
pub struct Following {
    open: Option<Open>,
    met: SinceMet,
    /// Computation between calls in which all ranks meet, ns.
    total: u64,
    /// Calls of the slab in which all ranks meet: their numbers, and the computation since the
    /// previous one, ns.
    computed: VecDeque<(u64, i64)>,
    by_signature: Vec<BySignature>,
    /// Position in `by_signature` plus one, by signature; 0 for those without one.
    positions: Vec<u32>,
}

/// Time of a location since the last call in which all ranks meet.
#[derive(Clone, Copy, Debug, Default)]
struct SinceMet {
    /// Whether there was one.
    met: bool,
    /// Time between calls since then, except between polls that found nothing, ns. A damaged trace
    /// may make it wrong, but nothing worse.
    computed: i64,
    /// End of the last call, ns.
    left: i64,
    /// Whether the last call that was not one of all ranks was a poll that found nothing.
    looked: bool,
}

impl SinceMet {
    /// All meet again: returns the computation since, ns.
    fn meet(&mut self, call: &Instance) -> i64 {
        let computed = self.computed.wrapping_add(call.enter - self.left);
        (self.computed, self.left) = (0, call.leave);
        match std::mem::replace(&mut self.met, true) {
            true => computed.max(0),
            false => 0,
        }
    }

    /// Adds a call; `looks`: it is a poll that found nothing.
    #[inline(always)]
    fn add(&mut self, call: &Instance, looks: bool) {
        // Time between polls is no computation.
        if !(looks | self.looked) {
            self.computed = self.computed.wrapping_add(call.enter - self.left);
        }
        (self.left, self.looked) = (call.leave, looks);
    }
}

#[derive(Debug, Default)]
struct BySignature {
    signature: u32,
    calls: u64,
    computed: u64,
    overlap: u64,
    ahead: u64,
    alike: u64,
    /// Signatures of the next calls, with their numbers.
    next: SmallVec<[(u32, u64); 1]>,
    /// The next needs, with the time of the slow calls before.
    needs: SmallVec<[(LocalNeed, u64); 1]>,
}

impl BySignature {
    /// Adds a slow call, and what followed until this need.
    fn add(&mut self, open: &Open, need: LocalNeed) {
        let hidden = |computed: i64| computed.min(open.duration) as u64;
        if let Some((computed, next)) = open.first {
            self.calls += 1;
            self.computed = self.computed.saturating_add(computed as u64);
            self.overlap = self.overlap.saturating_add(hidden(computed));
            match self.next.iter_mut().find(|(known, _)| *known == next) {
                Some((_, count)) => *count += 1,
                None => self.next.push((next, 1)),
            }
        }
        self.ahead = self.ahead.saturating_add(hidden(open.ahead));
        self.alike = self.alike.saturating_add(hidden(open.alike));
        let duration = open.duration.max(0) as u64;
        let need = match need {
            (NeedKind::Nothing, _) => (NeedKind::Nothing, 0),
            need => need,
        };
        match self.needs.iter_mut().find(|(known, _)| *known == need) {
            Some((_, time)) => *time = time.saturating_add(duration),
            None => self.needs.push((need, duration)),
        }
    }
}

impl Following {
    /// A new slab begins.
    pub fn turn(&mut self) {
        self.computed.clear();
    }

    /// Takes the next call.
    #[inline(always)]
    pub fn add(&mut self, call: &Instance, row: &Row) {
        if row.is_plain {
            self.met.add(call, false);
        } else if row.of_all {
            let computed = self.met.meet(call);
            self.computed.push_back((call.number, computed));
            self.total = self.total.saturating_add(computed as u64);
        } else {
            self.met.add(call, row.has(flags::UNSUCCESSFUL));
        }
        // Calls that only manage handles, or ask for a size, count as computation.
        if !row.is_plain && row.class == TimeClass::Setup {
            return;
        }
        let duration = call.leave - call.enter;
        let mut is_slow = duration >= row.threshold && row.blocks && !row.has(flags::POSTS);
        if let Some(open) = &mut self.open {
            // If all calls are slow, or a few microseconds are: nothing came later there because of this one.
            is_slow &= duration >= open.duration / SHORT;
            let need = match is_slow {
                true => Some(NeedKind::Wait),
                false => row.need,
            };
            open.go_on(call, row);
            if let Some(need) = need {
                self.by_signature[open.sums].add(open, (need, call.signature));
                self.open = None;
            }
        }
        if is_slow {
            self.open = Some(Open {
                sums: self.sums(call.signature),
                duration,
                leave: call.leave,
                first: None,
                ahead: 0,
                alike: 0,
                received: false,
            });
        }
    }

    /// Computation between calls in which all ranks meet, ns.
    pub fn computed(&self) -> u64 {
        self.total
    }

    /// Computation between a call of the slab in which all ranks meet and the previous one, ns;
    /// calls must be given in order.
    pub fn computed_before(&mut self, call: u64) -> i64 {
        while let Some((number, computed)) = self.computed.pop_front() {
            if number == call {
                return computed;
            }
        }
        0
    }

    /// Position of the sums of a signature.
    #[inline]
    fn sums(&mut self, signature: u32) -> usize {
        let at = match self.positions.get(signature as usize) {
            Some(&at) if at > 0 => at,
            _ => self.begin(signature),
        };
        at as usize - 1
    }

    /// Adds a signature: its position plus one.
    #[cold]
    fn begin(&mut self, signature: u32) -> u32 {
        let (positions, all) = (&mut self.positions, &mut self.by_signature);
        let further = (signature as usize + 1).saturating_sub(positions.len());
        make_room(positions, further, 0);
        positions.resize(positions.len() + further, 0);
        make_room(all, 1, 0);
        all.push(BySignature {
            signature,
            ..BySignature::default()
        });
        self.positions[signature as usize] = all.len() as u32;
        all.len() as u32
    }

    /// Moves everything of `rank` into `followers`; `name` gives a signature's call and call path.
    pub fn drain_into(
        mut self,
        followers: &mut Followers,
        rank: u32,
        signatures: &[Signature],
        name: impl Fn(u32) -> (u16, PathKey),
    ) {
        if let Some(open) = self.open.take() {
            self.by_signature[open.sums].add(&open, (NeedKind::Nothing, 0));
        }
        for sums in self.by_signature {
            let signature = sums.signature;
            let own = &signatures[signature as usize];
            let mut followed = Followed {
                calls: sums.calls,
                computed: sums.computed,
                overlap: sums.overlap,
                ahead: sums.ahead,
                alike: sums.alike,
                ..Followed::default()
            };
            for (next, calls) in sums.next {
                let other = &signatures[next as usize];
                let (operation, path) = name(next);
                let is_on_same = own.group == other.group;
                if name(signature) == (operation, path) && is_on_same && same_peers(own, other) {
                    followed.repeats += calls;
                }
                followed.add_next(Next {
                    operation,
                    path,
                    calls,
                    same_group: if is_on_same { calls } else { 0 },
                });
            }
            for ((kind, next), time) in sums.needs {
                let (operation, path) = match kind {
                    NeedKind::Nothing => Default::default(),
                    _ => name(next),
                };
                let need = match kind {
                    NeedKind::Nothing => Need::Nothing,
                    NeedKind::Wait => Need::Wait(operation, path),
                    NeedKind::Meeting => Need::Meeting(operation, path),
                };
                add_needs(&mut followed.needs, vec![Needed { rank, need, time }]);
            }
            followers
                .entry(name(signature))
                .or_default()
                .merge(followed);
        }
    }
}

fn same_peers(one: &Signature, other: &Signature) -> bool {
    (one.send.peer, one.receive.peer) == (other.send.peer, other.receive.peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::columns::Columns;
    use laggard_trace::calls::number;

    const PATHS: [PathKey; 4] = [[0, 0], [1, 0], [2, 0], [3, 0]];

    fn rows() -> Vec<Row> {
        let row = |operation, class, threshold| Row {
            operation,
            class,
            threshold,
            ..Row::UNDEFINED
        };
        vec![
            Row::UNDEFINED,
            row(1, TimeClass::Communication, 10),
            row(2, TimeClass::Synchronization, i64::MAX),
            row(3, TimeClass::Setup, 0),
        ]
    }

    fn take(following: &mut Following, columns: &Columns, rows: &[Row]) {
        following.turn();
        for call in columns.slab() {
            following.add(&call, &rows[call.signature as usize]);
        }
    }

    fn followers(calls: &[(i64, i64, u32)], slab: usize) -> Followers {
        let mut following = Following::default();
        let mut columns = Columns::default();
        for slab in calls.chunks(slab) {
            columns.turn();
            for &(enter, leave, signature) in slab {
                columns.push(enter, leave, signature);
            }
            take(&mut following, &columns, &rows());
        }
        let signatures: Vec<Signature> = (0..4).map(|_| Signature::default()).collect();
        let mut followers = Followers::default();
        let name = |signature: u32| (signature as u16, PATHS[signature as usize]);
        following.drain_into(&mut followers, 7, &signatures, name);
        followers
    }

    const SEND: u32 = 4;
    const RECEIVE: u32 = 5;
    const WAITALL: u32 = 6;
    const BARRIER: u32 = 7;
    const BROADCAST: u32 = 8;
    const IRECV: u32 = 9;

    /// Rows of realistic calls; all of 10 ns or more are slow.
    fn real_rows() -> Vec<Row> {
        let row = |operation, flags| Row {
            threshold: 10,
            of_all: operation == number::MPI_Barrier,
            ..Row::new(&Signature {
                operation,
                flags,
                ..Signature::default()
            })
        };
        let mut all = rows();
        all.push(row(number::MPI_Send, flags::SENDS));
        all.push(row(number::MPI_Recv, flags::RECEIVES));
        all.push(row(number::MPI_Waitall, 0));
        all.push(row(number::MPI_Barrier, flags::COLLECTIVE));
        all.push(row(number::MPI_Bcast, flags::COLLECTIVE));
        all.push(row(number::MPI_Irecv, flags::RECEIVES | flags::POSTS));
        all
    }

    /// The needs after slow calls like the first one, with the duration of these. Also the part
    /// that could be hidden, and the part of that with other messages first.
    fn needs(calls: &[(i64, i64, u32)]) -> (Vec<(Need, u64)>, u64, u64) {
        let mut following = Following::default();
        let mut columns = Columns::default();
        columns.turn();
        for &(enter, leave, signature) in calls {
            columns.push(enter, leave, signature);
        }
        take(&mut following, &columns, &real_rows());
        let signatures: Vec<Signature> = (0..10).map(|_| Signature::default()).collect();
        let mut followers = Followers::default();
        let name = |signature: u32| (signature as u16, [u64::from(signature), 0]);
        following.drain_into(&mut followers, 7, &signatures, name);
        let found = &followers[&name(calls[0].2)];
        assert!(found.needs.iter().all(|needed| needed.rank == 7));
        let needs = found.needs.iter().map(|needed| (needed.need, needed.time));
        (needs.collect(), found.ahead, found.alike)
    }

    #[test]
    fn what_a_rank_needs_next_ends_what_could_be_hidden() {
        let need = |kind: fn(u16, PathKey) -> Need, signature: u32| {
            kind(signature as u16, [u64::from(signature), 0])
        };
        let after = |next: &[(i64, i64, u32)]| {
            let calls = [&[(0, 20, RECEIVE)], next].concat();
            let (needs, ahead, alike) = needs(&calls);
            assert_eq!(needs.len(), 1, "{needs:?}");
            assert_eq!(needs[0].1, 20);
            (needs[0].0, ahead, alike)
        };
        let nothing = Need::Nothing;
        // It gives something; later calls do not matter.
        assert_eq!(after(&[(25, 26, SEND), (30, 50, WAITALL)]), (nothing, 5, 0));
        assert_eq!(after(&[(25, 26, BROADCAST)]), (nothing, 5, 0));
        // The end of the trace.
        assert_eq!(after(&[]), (nothing, 0, 0));
        assert_eq!(after(&[(25, 26, RECEIVE)]), (nothing, 5, 0));
        // It waits again.
        let wait = need(Need::Wait, WAITALL);
        assert_eq!(after(&[(24, 25, IRECV), (30, 40, WAITALL)]), (wait, 9, 0));
        assert_eq!(after(&[(30, 40, BARRIER)]).0, need(Need::Wait, BARRIER));
        // All meet, and it is the last.
        let meeting = need(Need::Meeting, BARRIER);
        assert_eq!(
            after(&[(24, 25, RECEIVE), (45, 46, BARRIER)]),
            (meeting, 20, 4)
        );
        assert_eq!(
            after(&[(22, 23, RECEIVE), (23, 24, RECEIVE), (25, 26, BARRIER)]).2,
            1
        );
    }

    #[test]
    fn what_is_computed_between_meetings_of_all_is_known() {
        let calls = [
            (5, 6, BARRIER),
            (16, 36, RECEIVE),
            (40, 50, BARRIER),
            (50, 51, BARRIER),
        ];
        for slab in 1..=calls.len() {
            let mut following = Following::default();
            let mut columns = Columns::default();
            let mut computed = Vec::new();
            for slab in calls.chunks(slab) {
                columns.turn();
                for &(enter, leave, signature) in slab {
                    columns.push(enter, leave, signature);
                }
                take(&mut following, &columns, &real_rows());
                let numbers = (columns.number + columns.first as u64..).take(slab.len());
                let of_all = numbers.zip(slab).filter(|(_, call)| call.2 == BARRIER);
                computed.extend(of_all.map(|(number, _)| following.computed_before(number)));
            }
            assert_eq!(computed, [0, 14, 0], "{slab}");
        }
    }

    #[test]
    fn needs_are_added_up_by_rank() {
        let of = |rank, place, time| Needed {
            rank,
            need: Need::Wait(1, PATHS[place]),
            time,
        };
        let list = |needs: &[Needed]| Followed {
            needs: needs.to_vec(),
            ..Followed::default()
        };
        let low = list(&[of(1, 2, 10), of(1, 3, 1)]);
        let high = list(&[of(1, 3, 5), of(4, 0, 7)]);
        let sum = |one: &Followed, other: &Followed| {
            let mut sum = one.clone();
            sum.merge(other.clone());
            sum.needs
        };
        let both = [of(1, 2, 10), of(1, 3, 6), of(4, 0, 7)];
        assert_eq!(sum(&low, &high), both);
        assert_eq!(sum(&high, &low), both);
        let mut followers: Followers = [((1, PATHS[1]), list(&both))].into_iter().collect();
        rename_paths(&mut followers, |_| PATHS[0]);
        let renamed = &followers[&(1, PATHS[0])].needs;
        assert_eq!(renamed[..], [of(1, 0, 16), of(4, 0, 7)]);
    }

    #[test]
    fn next_calls_and_computation_are_summed_up_over_slabs() {
        let calls = [
            (0, 20, 1),    // slow, 30 of computation follow
            (40, 41, 3),   // manages handles: part of it
            (50, 60, 2),   // the next one
            (60, 65, 1),   // fast: not looked at
            (100, 150, 1), // slow, 20 of computation, then the same again
            (170, 190, 1), // slow, nothing follows
        ];
        for slab in 1..=calls.len() {
            let followers = followers(&calls, slab);
            let found = &followers[&(1, PATHS[1])];
            assert_eq!((found.calls, found.computed), (2, 50), "{slab}");
            assert_eq!(found.overlap, 20 + 20);
            assert_eq!(found.repeats, 1);
            assert_eq!(followers.len(), 1);
            let mut next: Vec<_> = found.next.iter().map(|n| (n.operation, n.calls)).collect();
            next.sort_unstable();
            assert_eq!(next, [(1, 1), (2, 1)]);
        }
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let one = followers(&[(0, 20, 1), (50, 60, 2)], 1);
        let other = followers(&[(0, 20, 1), (50, 60, 1), (70, 80, 2)], 1);
        let sum = |a: &Followers, b: &Followers| {
            let mut sum = a.clone();
            sum.merge(b.clone());
            let found = sum.remove(&(1, PATHS[1])).unwrap();
            (found.most().copied(), found.calls, found.computed)
        };
        assert_eq!(sum(&one, &other), sum(&other, &one));
        assert_eq!(
            sum(&one, &other).0.map(|next| (next.operation, next.calls)),
            Some((2, 2))
        );
    }

    #[test]
    fn renamed_paths_are_added_up() {
        let mut followers = followers(&[(0, 20, 1), (50, 60, 1), (70, 80, 2)], 1);
        rename_paths(&mut followers, |_| PATHS[0]);
        let found = &followers[&(1, PATHS[0])];
        assert_eq!(found.next.len(), 2);
        assert!(paths(&followers).all(|path| path == PATHS[0]));
    }
}
