//! What waits cost the locations that they are charged to.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::basics::room;
use crate::wire::links::{Alike, Blame, More, Wait, Waiters};

/// Parts of a ns in which costs are counted.
pub const UNIT: i64 = 1 << 10;
/// Binary digits of the cost of a ns, after the point.
const POINT: u32 = 32;

/// The cost of a ns of waiting, from `since` on.
#[derive(Debug, Default)]
pub(super) struct Charge {
    pub(super) since: u64,
    pub(super) victim: u32,
    /// Costs per ns, in 2^-[`POINT`] [`UNIT`]s.
    rate: u128,
    /// The most that a ns costs because of one wait, not of what was put on it, in
    /// 2^-[`POINT`] [`UNIT`]s.
    most: u128,
    /// Who waits.
    who: Waiters,
    /// What costs less, as those waited alike who are charged for.
    pub(super) less: SmallVec<[Less; 1]>,
}

/// Waits that others had, too: a ns of them costs less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Less {
    /// The location's number of their activity.
    pub(super) activity: u32,
    /// So much less, in 2^-[`POINT`] [`UNIT`]s.
    rate: u128,
    /// Instead of the charge's.
    most: u128,
}

/// Costs from one kind of waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) victim: u32,
    /// In [`UNIT`]s.
    pub(super) amount: i64,
    /// Who waits.
    pub(super) who: Waiters,
}

/// A location that goes on from another one.
#[derive(Debug)]
pub(super) struct Heir {
    /// Position among what happened at its creator.
    pub(super) order: u64,
    pub(super) lane: u32,
    /// By number of the creator's activity: its own one.
    pub(super) numbers: Vec<u32>,
}

/// One location.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) charges: Vec<Charge>,
    /// Those that go on from it, the last one last.
    pub(super) heirs: Vec<Heir>,
    /// Locations that cannot go on before this one has.
    pub(super) blocked: Vec<u32>,
    /// By activity, victim, and whether they are direct, see [`key`]: costs, and who
    /// waits.
    pub(super) sums: FxHashMap<u64, (u128, Waiters)>,
    /// Waits for this location while it waited itself, by victim, in [`UNIT`]s.
    pub(super) indirect: Vec<u128>,
    /// Its own waits that made others wait, by pattern, in [`UNIT`]s.
    pub(super) propagating: Vec<u128>,
}

impl Lane {
    /// Adds the costs that later waits put on a wait.
    pub(super) fn costs_of(&mut self, wait: &Wait, costs: &mut Vec<Cost>) {
        if self.charges.is_empty() {
            return;
        }
        if self.charges.iter().any(|charge| charge.since > wait.order) {
            self.charges.retain(|charge| charge.since <= wait.order);
        }
        let time = wait.share.max(0) as u128 + u128::from(wait.transfer);
        let mut most = 0;
        for charge in &self.charges {
            let (rate, most_of_one) = charge.of(wait);
            most = most.max(most_of_one);
            let amount = (rate * time) >> POINT;
            let cost = Cost {
                victim: charge.victim,
                amount: i64::try_from(amount).unwrap_or(i64::MAX),
                who: charge.who,
            };
            if cost.amount > 0 {
                merge(costs, &cost);
            }
        }
        let most = most.min((UNIT as u128) << POINT);
        if most > 0 {
            let amount = (most * wait.share.max(0) as u128) >> POINT;
            *room::at(&mut self.propagating, wait.pattern.into()) += amount;
        }
    }

    /// Charges the late location with a wait and with the costs put on it. Its own waits may have
    /// passed on theirs.
    pub(super) fn charge(
        &mut self,
        (blame, passes_on): (&Blame, bool),
        (longer, alike): (&[More], &[Alike]),
        costs: &[Cost],
    ) {
        let more: i64 = longer.iter().map(|more| more.time).sum();
        let all = more.saturating_add(blame.waited);
        // What explains one wait explains each of them.
        let most = all.saturating_mul(blame.waits.into());
        let own = Cost {
            victim: blame.victim,
            amount: blame.share.min(most).saturating_mul(UNIT),
            who: blame.who,
        };
        let over = (blame.share - most).max(0).saturating_mul(UNIT);
        if over > 0 {
            let over = Cost {
                amount: over,
                ..own
            };
            self.add(blame.latency, over, true);
        }
        let mut charge = |cost: Cost, is_direct: bool| {
            if all <= 0 {
                self.add(blame.latency, cost, is_direct);
                return;
            }
            let of_longer = scale(cost.amount, more, all);
            if let Some((last, others)) = longer.split_last() {
                // What remains of the division goes to the last one.
                let mut left = of_longer;
                for longer in others {
                    let amount = scale(of_longer, longer.time, more);
                    left -= amount;
                    self.add(longer.activity, Cost { amount, ..cost }, is_direct);
                }
                let amount = left;
                self.add(last.activity, Cost { amount, ..cost }, is_direct);
            }
            if blame.waited > 0 {
                let rate = ((cost.amount as u128) << POINT) / all as u128;
                let mut most = 0;
                if is_direct {
                    *room::at(&mut self.indirect, cost.victim as usize) +=
                        (cost.amount - of_longer) as u128;
                    most = rate / u128::from(blame.waits.max(1)) * u128::from(passes_on);
                }
                self.put(blame.since, cost, (rate, most), alike);
            }
        };
        if own.amount > 0 {
            charge(own, true);
        }
        for cost in costs.iter().filter(|cost| cost.amount > 0) {
            charge(*cost, false);
        }
    }

    fn add(&mut self, activity: u32, cost: Cost, is_direct: bool) {
        let key = key(activity, cost.victim, is_direct);
        let sum = self.sums.entry(key).or_default();
        sum.0 += cost.amount.max(0) as u128;
        sum.1.add(cost.who);
    }

    fn put(&mut self, since: u64, cost: Cost, (rate, most): (u128, u128), alike: &[Alike]) {
        let mut charges = self.charges.iter();
        let known = charges.position(|c| c.since == since && c.victim == cost.victim);
        let at = known.unwrap_or_else(|| {
            self.charges.push(Charge {
                since,
                victim: cost.victim,
                ..Charge::default()
            });
            self.charges.len() - 1
        });
        self.charges[at].add(cost.who, (rate, most), alike);
    }
}

impl Charge {
    /// What a ns of a wait costs, and the most because of one wait.
    #[inline]
    fn of(&self, wait: &Wait) -> (u128, u128) {
        let mut less = self.less.iter();
        let less = less.find(|less| less.activity == wait.alike);
        less.map_or((self.rate, self.most), |less| {
            (self.rate.saturating_sub(less.rate), less.most)
        })
    }

    /// Adds those of another location, which this one costs, too.
    pub(super) fn merge(&mut self, other: Charge) {
        let find = |of: &[Less], activity| of.iter().position(|less| less.activity == activity);
        for less in &mut self.less {
            let here = find(&other.less, less.activity).map(|at| other.less[at]);
            less.rate += here.map_or(0, |here| here.rate);
            less.most = less.most.max(here.map_or(other.most, |here| here.most));
        }
        for less in &other.less {
            if find(&self.less, less.activity).is_none() {
                self.less.push(Less {
                    most: self.most.max(less.most),
                    ..*less
                });
            }
        }
        self.rate += other.rate;
        self.most = self.most.max(other.most);
        self.who.add(other.who);
    }

    /// Adds what a ns costs because of a wait, of these who waited `alike`.
    fn add(&mut self, who: Waiters, (rate, most): (u128, u128), alike: &[Alike]) {
        let part = |amount: u128, alike: &Alike| {
            amount * alike.both.max(0) as u128 / alike.all.max(1) as u128
        };
        for less in &mut self.less {
            let here = alike.iter().find(|alike| alike.activity == less.activity);
            less.rate += here.map_or(0, |alike| part(rate, alike));
            let most = here.map_or(most, |alike| most - part(most, alike));
            less.most = less.most.max(most);
        }
        for alike in alike {
            if self.less.iter().all(|less| less.activity != alike.activity) {
                self.less.push(Less {
                    activity: alike.activity,
                    rate: part(rate, alike),
                    most: self.most.max(most - part(most, alike)),
                });
            }
        }
        self.rate += rate;
        self.most = self.most.max(most);
        self.who.add(who);
    }
}

/// An activity, a victim, and whether costs are direct, as one number: that is hashed at once.
fn key(activity: u32, victim: u32, is_direct: bool) -> u64 {
    u64::from(activity) << 32 | u64::from(victim << 1) | u64::from(is_direct)
}

/// See [`key`].
pub(super) fn parts_of(key: u64) -> (u32, u32, bool) {
    ((key >> 32) as u32, key as u32 >> 1, key & 1 == 1)
}

/// In [`UNIT`]s.
pub(super) fn sum(costs: &[Cost]) -> u128 {
    costs.iter().map(|cost| cost.amount.max(0) as u128).sum()
}

/// Adds a cost to those of its kind.
pub(super) fn merge(costs: &mut Vec<Cost>, cost: &Cost) {
    match costs.iter_mut().find(|other| other.victim == cost.victim) {
        Some(other) => {
            other.amount = other.amount.saturating_add(cost.amount);
            other.who.add(cost.who);
        }
        None => costs.push(*cost),
    }
}

/// `amount * part / all`.
pub fn scale(amount: i64, part: i64, all: i64) -> i64 {
    if part == all {
        return amount;
    }
    match amount.checked_mul(part) {
        Some(product) => product / all.max(1),
        None => (i128::from(amount) * i128::from(part) / i128::from(all.max(1))) as i64,
    }
}
