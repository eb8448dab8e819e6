//! When a location last synchronised with others, and what it had done until then.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use crate::roots::members::{Members, Set};
use crate::roots::spent::{Spent, Sums};
use crate::roots::teams::Team;

/// Most meetings of a pair, one after another, before which a wait of looks may have begun.
const MOST_EARLIER: usize = 8;

/// Activities, and ns.
pub type Parts = Vec<(u32, i64)>;

/// Looks that waited for somebody.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// Their begin, ns.
    pub began: i64,
    /// When that one came, ns.
    pub came: i64,
    /// Whether looks at something else found nothing meanwhile.
    pub beside: bool,
}

/// A call that ends.
#[derive(Clone, Default)]
pub struct Closed {
    /// The number of its activity.
    pub number: u32,
    /// ns
    pub leave: i64,
    /// Waiting in it, ns; and when that was over, ns.
    pub waited: i64,
    pub until: i64,
    /// The same waiting by activities of whom it was for.
    pub alike: Parts,
    /// What counts as waiting after the late one had come, ns.
    pub transfer: i64,
    /// Time in it, without its waiting. What was beside work is probably why it left later than others, and
    /// comes first.
    pub parts: Parts,
}

/// Whom a location waits for, or who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// Another world rank.
    Rank(u32),
    /// A thread of the same rank, by its number.
    Thread(u32),
}

/// In what two locations met without others who wait, too.
#[derive(Clone, Copy, Debug)]
pub enum Few {
    /// By themselves.
    Two,
    /// With all of a set, or each of them with its root.
    Of(Set, bool),
}

/// As one number: that is hashed at once.
impl Hash for Partner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(match *self {
            Partner::Rank(rank) => u64::from(rank),
            Partner::Thread(thread) => u64::from(thread) | 1 << 32,
        });
    }
}

/// The last synchronisations with others.
#[derive(Clone, Default)]
pub struct Synced {
    /// With all ranks.
    all: Sums,
    /// With all threads of its rank: before, there were none.
    threads: Sums,
    /// With some of them, since. The latest first; each is the last one with one of its threads.
    teams: Vec<(Team, Sums)>,
    /// Position in `sums`.
    pairs: FxHashMap<Partner, u32>,
    sums: Vec<Sums>,
    /// By position there, of those that met while one of them looked at something else, too: when the other one
    /// came, ns, and the sums of before. The latest last.
    earlier: FxHashMap<u32, Vec<(i64, Sums)>>,
    /// By members, and whether only this rank met the others. The latest first; none from before
    /// `all`.
    groups: Vec<((Set, bool), Sums)>,
}

/// The meeting that is missed least: the next one was soon after it. Looks may go on since before the first.
fn least(earlier: &[(i64, Sums)]) -> usize {
    let gaps = earlier.windows(2).map(|two| two[1].0 - two[0].0);
    let least = (0..).zip(gaps).skip(1).min_by_key(|&(_, gap)| gap);
    least.map_or(0, |(at, _)| at)
}

impl Synced {
    /// Those with other ranks, for a thread that goes on from this one.
    pub fn with_ranks(&self) -> Synced {
        let pairs = self.pairs.iter();
        let pairs = pairs.filter(|(partner, _)| matches!(partner, Partner::Rank(_)));
        let mut ranks = Synced {
            all: self.all.clone(),
            groups: self.groups.clone(),
            ..Synced::default()
        };
        for (partner, at) in pairs {
            ranks.pairs.insert(*partner, ranks.sums.len() as u32);
            ranks.sums.push(self.sums[*at as usize].clone());
        }
        ranks
    }

    /// Activities have these `numbers` from now on, by those they had.
    pub fn renumber(&mut self, numbers: &[u32]) {
        let groups = self.groups.iter_mut().map(|(_, sums)| sums);
        let earlier = self.earlier.values_mut().flatten().map(|(_, sums)| sums);
        let all = self
            .sums
            .iter_mut()
            .chain(groups)
            .chain(earlier)
            .chain([&mut self.all]);
        all.for_each(|sums| sums.renumber(numbers));
    }

    /// The number of a partner.
    #[inline]
    pub fn number(&mut self, partner: Partner) -> u32 {
        if let Some(&known) = self.pairs.get(&partner) {
            return known;
        }
        let next = self.sums.len() as u32;
        self.pairs.insert(partner, next);
        self.sums.push(Sums::default());
        next
    }

    /// The last one with a partner, given with its number, before a wait.
    #[inline]
    pub fn with(
        &self,
        (partner, number): (Partner, u32),
        polled: Option<Polled>,
        members: &Members,
    ) -> &Sums {
        self.last((partner, number), polled, members).0
    }

    /// The same, and if it was with others: with whom, and whether this one was the root.
    #[inline]
    fn last(
        &self,
        (partner, number): (Partner, u32),
        polled: Option<Polled>,
        members: &Members,
    ) -> (&Sums, Option<(Set, bool)>) {
        let mut last = match partner {
            Partner::Rank(_) => &self.all,
            Partner::Thread(thread) => self.with_thread(thread),
        };
        let pair = self.pair_before(number, polled);
        last = if pair.order > last.order { pair } else { last };
        let Partner::Rank(rank) = partner else {
            return (last, None);
        };
        let order = last.order;
        let later = self.groups.iter();
        let mut later = later.take_while(|(_, sums)| sums.order > order);
        let met = later.find(|((set, _), _)| members.has(*set, rank));
        met.map_or((last, None), |(group, sums)| (sums, Some(*group)))
    }

    /// The last one of a pair before a wait: who looks at several things in turn still waits for one when another
    /// one comes.
    #[inline]
    fn pair_before(&self, number: u32, polled: Option<Polled>) -> &Sums {
        let sums = &self.sums[number as usize];
        let Some(polled) = polled.filter(|_| !self.earlier.is_empty()) else {
            return sums;
        };
        let mut earlier = self.earlier.get(&number).into_iter().flatten();
        let before = earlier.find(|(came, _)| *came > polled.began);
        before.map_or(sums, |(_, sums)| sums)
    }

    /// The last one of a team with a thread.
    fn with_thread(&self, thread: u32) -> &Sums {
        let mut teams = self.teams.iter();
        let met = teams.find(|(team, _)| team.binary_search(&thread).is_ok());
        met.map_or(&self.threads, |(_, sums)| sums)
    }

    /// The last one with a partner, given with its number, before a wait that all of a set may have; and in what they met
    /// without others of them.
    #[inline]
    pub fn in_team(
        &self,
        partner: (Partner, u32),
        set: Set,
        members: &Members,
    ) -> (&Sums, Option<Few>) {
        let (met, is_root) = self.with_set(set, members);
        let (last, group) = self.last(partner, None, members);
        if last.order <= met.order {
            return (met, is_root.then_some(Few::Two));
        }
        let few = match (group, last.team) {
            (Some((group, false)), _) => Some(Few::Of(group, false)),
            // The others met the root as one.
            (Some((_, true)), _) | (None, None) => Some(Few::Two),
            (None, Some(team)) => (!members.has_all(team, set)).then_some(Few::Of(team, true)),
        };
        (last, few)
    }

    /// The last ones since `met` with ranks of a set, in which not all of them were; of two with the rank of the other one.
    pub fn by_few(
        &self,
        met: &Sums,
        set: Set,
        members: &Members,
    ) -> impl Iterator<Item = (Few, u32, &Sums)> {
        let order = met.order;
        let pairs = self.pairs.iter().filter_map(move |(partner, &pair)| {
            let pair = &self.sums[pair as usize];
            match partner {
                Partner::Rank(rank) if pair.order > order && members.has(set, *rank) => {
                    Some((Few::Two, *rank, pair))
                }
                _ => None,
            }
        });
        let groups = self.groups.iter();
        let groups = groups.take_while(move |(_, sums)| sums.order > order);
        let groups = groups.map(|((group, is_root), sums)| (Few::Of(*group, *is_root), 0, sums));
        pairs.chain(groups)
    }

    /// The last one with all of a set, and perhaps others; and whether only this one met the others.
    #[inline]
    pub fn with_set(&self, set: Set, members: &Members) -> (&Sums, bool) {
        let mut groups = self.groups.iter();
        let met = groups.find(|((other, _), _)| members.has_all(*other, set));
        met.map_or((&self.all, false), |((_, is_root), sums)| (sums, *is_root))
    }

    /// Everybody met.
    pub fn all(&mut self, now: &Spent) -> &mut Sums {
        self.all.note(now);
        self.forget(now.order);
        &mut self.all
    }

    /// All met at a position: that is later than what groups met before.
    fn forget(&mut self, order: u64) {
        self.groups.retain(|(_, sums)| sums.order > order);
    }

    /// The start-up of the rank is over: from now on, it has threads.
    pub fn start(&mut self, now: &Spent) {
        self.threads.note(now);
        self.teams.clear();
    }

    /// The threads of a team met.
    pub fn team(&mut self, team: Team, now: &Spent) {
        match self.teams.iter().position(|(other, _)| *other == team) {
            Some(0) => self.teams[0].1.note(now),
            known => {
                let mut sums = known.map_or_else(Sums::default, |at| self.teams.remove(at).1);
                sums.note(now);
                self.teams.insert(0, (team, sums));
                let mut met = BTreeSet::new();
                self.teams.retain(|(team, _)| {
                    let before = met.len();
                    met.extend(team.iter().copied());
                    met.len() > before
                });
            }
        }
    }

    /// The two of a wait met.
    pub fn pair(&mut self, number: u32, now: &Spent, polled: Option<Polled>) -> &mut Sums {
        let sums = &mut self.sums[number as usize];
        let last = || self.earlier.get(&number)?.last();
        let is_in_turn = |polled: &Polled| {
            let is_beside = |(came, _): &(i64, Sums)| *came > polled.began;
            // Looks at several places may wait for the same.
            let is_known = |(came, _): &(i64, Sums)| *came == polled.came;
            (polled.beside || last().is_some_and(is_beside)) && !last().is_some_and(is_known)
        };
        if let Some(polled) = polled.filter(is_in_turn) {
            let earlier = self.earlier.entry(number).or_default();
            // The memory of what nobody needs is used again.
            let spare = (earlier.len() == MOST_EARLIER).then(|| earlier.remove(least(earlier)).1);
            let mut before = spare.unwrap_or_default();
            before.copy(sums);
            before.later = sums.later;
            earlier.push((polled.came, before));
        }
        sums.note(now);
        sums
    }

    /// The members of a set met; or only this one met the others.
    pub fn set(&mut self, set: (Set, bool), now: &Spent) -> &mut Sums {
        let sums = self.of_set(set, now.order);
        sums.note(now);
        sums
    }

    /// Where the last one of a set is kept that is at a position.
    fn of_set(&mut self, set: (Set, bool), order: u64) -> &mut Sums {
        let known = self.groups.iter().position(|(other, _)| *other == set);
        let last = known.unwrap_or_else(|| {
            self.groups.push((set, Sums::default()));
            self.groups.len() - 1
        });
        // What is known late may have been earlier than others.
        let later = |(_, sums): &&(_, Sums)| sums.order > order;
        let at = self.groups[..last].iter().take_while(later).count();
        self.groups[at..=last].rotate_right(1);
        &mut self.groups[at].1
    }

    /// The members of a set met earlier, as is known only now.
    pub fn known(&mut self, set: Set, then: &Sums, members: &Members) {
        let met = self.groups.iter().find(|(of, _)| *of == (set, false));
        let last = met.map_or(&self.all, |(_, sums)| sums);
        if then.order < last.order.max(self.all.order) {
            return;
        }
        match members.is_all(set) {
            true => {
                self.all.copy(then);
                self.forget(then.order);
            }
            false => self.of_set((set, false), then.order).copy(then),
        }
    }
}
