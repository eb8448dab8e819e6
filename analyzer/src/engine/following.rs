//! What a rank does after the calls that are slow enough to be asked about: the next call, and
//! computation that could have been done while the call waited. Rules for hints need it.

use laggard_trace::{Signature, flags};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::calls::make_room;
use super::columns::Columns;
use super::intern::PathKey;
use super::table::{Row, TimeClass};

/// What follows the slow calls of one operation and call path. Times are ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// Slow calls that another one follows.
    pub calls: u64,
    /// Computation between these and the next ones.
    pub computed: u64,
    /// Of the slow calls' duration, what that computation could hide.
    pub overlap: u64,
    /// Slow calls followed by the same one at the same place, with the same peers.
    pub repeats: u64,
    /// The next calls.
    pub next: Vec<Next>,
}

/// A call that follows others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// Its number.
    pub operation: u16,
    /// Its call path.
    pub path: PathKey,
    /// How often it follows.
    pub calls: u64,
    /// Of these, how often with the same communicator.
    pub same_group: u64,
}

/// What follows the slow calls at each place.
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

    /// Adds what follows calls of others.
    pub fn merge(&mut self, other: Followed) {
        self.calls = self.calls.saturating_add(other.calls);
        self.computed = self.computed.saturating_add(other.computed);
        self.overlap = self.overlap.saturating_add(other.overlap);
        self.repeats = self.repeats.saturating_add(other.repeats);
        other.next.into_iter().for_each(|next| self.add_next(next));
    }

    /// The call that follows most often.
    pub fn most(&self) -> Option<&Next> {
        let key = |next: &&Next| (next.calls, std::cmp::Reverse((next.operation, next.path)));
        self.next.iter().max_by_key(key)
    }
}

/// Adds others up.
pub fn merge(followers: &mut Followers, other: Followers) {
    for (key, followed) in other {
        followers.entry(key).or_default().merge(followed);
    }
}

/// Gives call paths other names; what then is about the same calls is added up.
pub fn rename_paths(followers: &mut Followers, name: impl Fn(PathKey) -> PathKey) {
    for ((operation, path), mut followed) in std::mem::take(followers) {
        for mut next in std::mem::take(&mut followed.next) {
            next.path = name(next.path);
            followed.add_next(next);
        }
        let key = (operation, name(path));
        followers.entry(key).or_default().merge(followed);
    }
}

/// The call paths that are named.
pub fn paths(followers: &Followers) -> impl Iterator<Item = PathKey> {
    let next = followers.values().flat_map(|followed| &followed.next);
    next.map(|next| next.path)
}

/// A slow call whose next one has not come yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    signature: u32,
    duration: i64,
    leave: i64,
}

/// What follows the slow calls of one location, by their signature.
#[derive(Debug, Default)]
pub struct Following {
    open: Option<Open>,
    by_signature: Vec<BySignature>,
    /// One more than the position in `by_signature`, by signature; 0 for those without one.
    positions: Vec<u32>,
}

#[derive(Debug, Default)]
struct BySignature {
    signature: u32,
    calls: u64,
    computed: u64,
    overlap: u64,
    /// Signatures of the next calls, and how often.
    next: SmallVec<[(u32, u64); 1]>,
}

impl Following {
    /// Takes the calls of a new slab in.
    pub fn extend(&mut self, columns: &Columns, rows: &[Row]) {
        let first = columns.first;
        let mut last = self.open.take();
        let times = columns.enter[first..].iter().zip(&columns.leave[first..]);
        for ((&enter, &leave), &signature) in times.zip(&columns.signature[first..]) {
            let Some(row) = rows.get(signature as usize) else {
                continue;
            };
            // Calls that only manage handles, or ask for a size, are part of the computation.
            if row.class == TimeClass::Setup {
                continue;
            }
            if let Some(open) = last.take() {
                self.close(open, enter, signature);
            }
            if leave - enter >= row.threshold && row.blocks && !row.has(flags::POSTS) {
                last = Some(Open {
                    signature,
                    duration: leave - enter,
                    leave,
                });
            }
        }
        self.open = last;
    }

    #[inline]
    fn sums(&mut self, signature: u32) -> &mut BySignature {
        let at = match self.positions.get(signature as usize) {
            Some(&at) if at > 0 => at,
            _ => self.begin(signature),
        };
        &mut self.by_signature[at as usize - 1]
    }

    /// One more than the position of a signature that has none yet.
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

    fn close(&mut self, open: Open, enter: i64, next: u32) {
        let sums = self.sums(open.signature);
        let computed = (enter - open.leave).max(0);
        sums.calls += 1;
        sums.computed = sums.computed.saturating_add(computed as u64);
        let hidden = computed.min(open.duration) as u64;
        sums.overlap = sums.overlap.saturating_add(hidden);
        match sums.next.iter_mut().find(|(known, _)| *known == next) {
            Some((_, count)) => *count += 1,
            None => sums.next.push((next, 1)),
        }
    }

    /// Moves everything into `followers`; `name` gives a signature's call and call path.
    pub fn drain_into(
        self,
        followers: &mut Followers,
        signatures: &[Signature],
        name: impl Fn(u32) -> (u16, PathKey),
    ) {
        for sums in self.by_signature {
            let signature = sums.signature;
            let own = &signatures[signature as usize];
            let mut followed = Followed {
                calls: sums.calls,
                computed: sums.computed,
                overlap: sums.overlap,
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

    fn followers(calls: &[(i64, i64, u32)], slab: usize) -> Followers {
        let mut following = Following::default();
        let mut columns = Columns::default();
        for slab in calls.chunks(slab) {
            columns.turn();
            for &(enter, leave, signature) in slab {
                columns.push(enter, leave, signature);
            }
            following.extend(&columns, &rows());
        }
        let signatures: Vec<Signature> = (0..4).map(|_| Signature::default()).collect();
        let mut followers = Followers::default();
        let name = |signature: u32| (signature as u16, PATHS[signature as usize]);
        following.drain_into(&mut followers, &signatures, name);
        followers
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
            merge(&mut sum, b.clone());
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
