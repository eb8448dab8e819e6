//! The backward sweep: carries the costs of waits to those who caused them.
//!
//! A wait of `W` ns is charged to what its late party did longer, the excess `d`, and to that
//! party's own waits since, `w`: each ns of them takes `W / (d + w)`, at most 1. So does each ns of
//! costs that were put on the wait itself. Waits take their part when the sweep comes to them:
//! until then, a location keeps what a ns of waiting costs, and up to which moment.

mod charges;

use laggard_comm::Job;
use laggard_patterns::PatternId;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::intern::Interner;
use crate::basics::room;
use crate::roots::activities::Kind;
use crate::roots::sums::{Roots, Victim, Worst};
use crate::roots::walk::Walked;
use crate::wire::links::{
    Alike, Blame, Carried, Carrying, Kept, More, Named, Part, Source, Wait, Waiters,
};
use crate::wire::parcels::{Parcel, exchange};
use charges::{Cost, Heir, Lane, merge, parts_of, sum};
pub use charges::{UNIT, scale};

/// The bit of a rank in a set of 64: several ranks share one if there are more.
pub fn rank_bit(rank: u32, ranks: usize) -> u64 {
    let at = u64::from(rank) * 64 / (ranks as u64).max(64);
    1 << at.min(63)
}

/// The bit of a thread's number in a set of 64.
pub fn thread_bit(number: u32) -> u64 {
    1 << (number % 64)
}

impl Waiters {
    /// Adds others.
    pub fn add(&mut self, other: Waiters) {
        self.ranks |= other.ranks;
        self.threads |= other.threads;
    }
}

/// Costs put on the waits that an agent told.
#[derive(Default)]
struct Came {
    /// By the wait's number: their place in `costs`; [`NONE`] while they are missing.
    places: Vec<(u32, u32)>,
    costs: Vec<Cost>,
    /// By the wait's number: the lane that waits for them; [`NONE`] if none does.
    blocked: Vec<u32>,
}

impl Came {
    /// Takes the costs put on a wait; returns the lane that waits for them.
    fn take(&mut self, index: u32, costs: &[Cost]) -> Option<usize> {
        let begin = self.costs.len() as u32;
        self.costs.extend_from_slice(costs);
        let at = index as usize;
        *self.places.get_mut(at)? = (begin, self.costs.len() as u32);
        let blocked = std::mem::replace(&mut self.blocked[at], NONE);
        (blocked != NONE).then_some(blocked as usize)
    }

    /// The costs put on a wait, which are not needed again.
    #[inline]
    fn use_up(&mut self, index: u32) -> &[Cost] {
        let place = &mut self.places[index as usize];
        let (begin, end) = std::mem::take(place);
        &self.costs[begin as usize..end as usize]
    }

    /// Costs of waits that nobody was charged with, in [`UNIT`]s.
    fn left(&self) -> u128 {
        let places = self.places.iter().filter(|(begin, _)| *begin != NONE);
        let left = places.map(|&(begin, end)| sum(&self.costs[begin as usize..end as usize]));
        left.sum()
    }
}

/// One slab of the sweep.
struct Slab<'k> {
    /// By lane.
    left: Vec<Left<'k>>,
    /// Lanes that can go on.
    ready: Vec<usize>,
    /// By agent and number of what was told: waits that have not passed their costs on.
    remaining: Vec<Vec<u32>>,
    /// Costs of waits that are told together, while some are missing.
    folded: FxHashMap<(u32, u32), Vec<Cost>>,
    /// By agent.
    came: Vec<Came>,
    /// Waits whose costs other agents have not told.
    expected: u64,
}

/// What is left of a lane's lists.
#[derive(Clone, Copy, Default)]
struct Left<'k> {
    blames: &'k [Blame],
    waits: &'k [Wait],
    more: &'k [More],
    alike: &'k [Alike],
    sources: &'k [Source],
}

impl Left<'_> {
    fn has_items(&self) -> bool {
        !self.blames.is_empty() || !self.waits.is_empty()
    }
}

/// Takes the last ones off a list; fewer if there are not so many.
fn take_last<'k, T>(list: &mut &'k [T], count: u32) -> &'k [T] {
    let begin = list.len().saturating_sub(count as usize);
    list.split_off(begin..).unwrap_or_default()
}

impl<'k> Slab<'k> {
    fn new(kept: &'k Kept, lanes: usize) -> Slab<'k> {
        let (mut blames, mut waits) = (&kept.blames[..], &kept.waits[..]);
        let (mut more, mut alike, mut sources) =
            (&kept.more[..], &kept.alike[..], &kept.sources[..]);
        let left = (0..lanes as u32).map(|lane| {
            let own = blames.partition_point(|blame| blame.lane <= lane);
            let own = blames.split_off(..own).unwrap_or_default();
            let count = |of: fn(&Blame) -> u32| own.iter().map(|blame| of(blame) as usize).sum();
            let own_waits = waits.partition_point(|wait| wait.lane <= lane);
            Left {
                blames: own,
                waits: waits.split_off(..own_waits).unwrap_or_default(),
                more: more.split_off(..count(|own| own.count)).unwrap_or_default(),
                alike: alike
                    .split_off(..count(|own| own.alike))
                    .unwrap_or_default(),
                sources: sources
                    .split_off(..count(|own| own.sources))
                    .unwrap_or_default(),
            }
        });
        let left: Vec<Left<'k>> = left.collect();
        let ready = (0..lanes).filter(|&lane| left[lane].has_items());
        let mut remaining = vec![Vec::new(); kept.counts.len()];
        for wait in kept.waits.iter().filter(|wait| wait.agent != NONE) {
            *room::at(&mut remaining[wait.agent as usize], wait.index as usize) += 1;
        }
        let came = kept.counts.iter().map(|&count| Came {
            places: vec![(NONE, 0); count as usize],
            costs: Vec::new(),
            blocked: vec![NONE; count as usize],
        });
        Slab {
            ready: ready.collect(),
            left,
            remaining,
            folded: FxHashMap::default(),
            came: came.collect(),
            expected: kept.expected.iter().map(|&count| u64::from(count)).sum(),
        }
    }
}

/// The costs of an agent's locations.
pub struct Carrier<'j> {
    job: &'j dyn Job,
    lanes: Vec<Lane>,
    victims: Interner<Victim>,
    /// By agent, and number that it told: the number here.
    known: Vec<Vec<u32>>,
    /// By agent, and number here: the number that was told.
    told: Vec<FxHashMap<u32, u32>>,
    /// Whether only waits for messages make waits that propagate.
    by_messages: bool,
    /// Costs that ended at waits for nobody that is known, in [`UNIT`]s.
    untraced: u128,
    /// Those of one wait, or of several that are told together.
    costs: Vec<Cost>,
}

impl<'j> Carrier<'j> {
    /// Before the last slab. Waits propagate that made any others wait, or in a message alone.
    /// Of the `walked` locations with these `names`, threads go on from those that started them.
    pub fn new(
        job: &'j dyn Job,
        victims: Interner<Victim>,
        by_messages: bool,
        (walked, names): (&mut [Walked<'_>], &[(u32, u32)]),
    ) -> Self {
        let agents = job.agents();
        let mut lanes: Vec<Lane> = names.iter().map(|_| Lane::default()).collect();
        for (lane, walked) in (0..).zip(walked) {
            let Some(origin) = walked.origin.take() else {
                continue;
            };
            lanes[origin.creator].heirs.push(Heir {
                order: origin.order,
                lane,
                numbers: origin.numbers,
            });
        }
        for lane in &mut lanes {
            lane.heirs.sort_by_key(|heir| heir.order);
        }
        Carrier {
            job,
            lanes,
            victims,
            known: vec![Vec::new(); agents],
            told: vec![FxHashMap::default(); agents],
            by_messages,
            untraced: 0,
            costs: Vec::new(),
        }
    }

    /// Carries the costs of one slab, of locations with these ranks and threads, until nobody waits
    /// for any. Where clocks may make a circle of waits, agents do it in rounds. Collective.
    pub fn backward(&mut self, kept: Kept, names: &[(u32, u32)], may_circle: bool) {
        // All have ended the conversation about the slab before.
        self.job.reduce_max(&mut [0]);
        let slab = &mut Slab::new(&kept, names.len());
        match may_circle {
            true => self.in_rounds(slab, names),
            false => self.in_conversation(slab),
        }
        self.untraced += slab.came.iter().map(Came::left).sum::<u128>();
    }

    /// Agents tell each other costs as they find them.
    fn in_conversation(&mut self, slab: &mut Slab<'_>) {
        let job = self.job;
        let mut out: Vec<Carrying> = (0..job.agents()).map(|_| Carrying::default()).collect();
        job.converse(&mut |came, letters| {
            if let Some((agent, bytes)) = came {
                self.receive(agent, &Carrying::unpack(&bytes), slab);
            }
            while let Some(lane) = slab.ready.pop() {
                self.run(lane, slab, &mut out);
            }
            for (agent, parcel) in out.iter_mut().enumerate() {
                if !parcel.carried.is_empty() {
                    letters.push((agent, parcel.pack()));
                    parcel.clear();
                }
            }
            slab.expected > 0
        });
    }

    /// The same in rounds, in which agents find out whether somebody has to go on without what is
    /// put on it.
    fn in_rounds(&mut self, slab: &mut Slab<'_>, names: &[(u32, u32)]) {
        let agents = self.job.agents();
        loop {
            let mut out: Vec<Carrying> = (0..agents).map(|_| Carrying::default()).collect();
            let has_moved = !slab.ready.is_empty();
            while let Some(lane) = slab.ready.pop() {
                self.run(lane, slab, &mut out);
            }
            let blocked = slab.left.iter().filter(|left| left.has_items()).count();
            let mut sums = [u64::from(has_moved), blocked as u64];
            if agents > 1 {
                self.job.reduce_sum(&mut sums);
                for (agent, parcel) in exchange(self.job, &mut out).iter().enumerate() {
                    self.receive(agent, parcel, slab);
                }
            }
            let [moved, blocked] = sums;
            if blocked == 0 {
                return;
            }
            if moved == 0 || agents == 1 {
                // Clocks contradict causality: one of them goes on without what is put on it.
                self.give_way(slab, names);
            }
        }
    }

    /// Takes the costs from another agent.
    fn receive(&mut self, agent: usize, came: &Carrying, slab: &mut Slab<'_>) {
        for named in &came.victims {
            let victim = self.victims.number(Victim {
                pattern: named.pattern,
                call: (named.operation, named.path),
            });
            self.known[agent].push(victim);
        }
        let mut parts = &came.parts[..];
        for carried in &came.carried {
            let own = (carried.count as usize).min(parts.len());
            let own = parts.split_off(..own).unwrap_or_default();
            let known = &self.known[agent];
            let costs = own.iter().filter_map(|part| {
                Some(Cost {
                    victim: *known.get(part.victim as usize)?,
                    amount: part.amount,
                    who: part.who,
                })
            });
            self.costs.clear();
            self.costs.extend(costs);
            slab.expected = slab.expected.saturating_sub(1);
            slab.ready
                .extend(slab.came[agent].take(carried.index, &self.costs));
        }
    }

    /// Lets the blocked location with the highest rank go on.
    fn give_way(&self, slab: &mut Slab<'_>, names: &[(u32, u32)]) {
        let blocked = slab.came.iter().flat_map(|came| &came.blocked);
        let blocked = blocked.filter(|&&lane| lane != NONE);
        let last = blocked.map(|&lane| (names[lane as usize], lane)).max();
        let key = |(rank, thread): (u32, u32)| (u64::from(rank) << 32 | u64::from(thread)) + 1;
        let mut highest = [last.map_or(0, |(name, _)| key(name))];
        self.job.reduce_max(&mut highest);
        let Some((_, lane)) = last.filter(|(name, _)| key(*name) == highest[0]) else {
            return;
        };
        let mut left = slab.left[lane as usize];
        if let Some(blame) = left.blames.last() {
            for source in take_last(&mut left.sources, blame.sources) {
                let came = &mut slab.came[source.agent as usize];
                if came.places[source.index as usize].0 == NONE {
                    slab.ready.extend(came.take(source.index, &[]));
                }
            }
        }
    }

    /// Goes back at one location until a cost is missing.
    fn run(&mut self, at: usize, slab: &mut Slab<'_>, out: &mut [Carrying]) {
        let mut left = slab.left[at];
        let has_heirs = !self.lanes[at].heirs.is_empty();
        loop {
            let (blame, wait) = (left.blames.last(), left.waits.last());
            let late = blame.map_or(0, |blame| blame.order + 1);
            let waits = wait.map_or(0, |wait| wait.order + 1);
            let next = late.max(waits);
            if has_heirs
                && let Some(heir) = self.lanes[at].heirs.last()
                && (1..=heir.order).contains(&next)
            {
                match self.take_over(at, slab) {
                    Some(missing) => self.lanes[missing].blocked.push(at as u32),
                    None => continue,
                }
                break;
            }
            if let Some(wait) = wait.filter(|_| late < waits) {
                take_last(&mut left.waits, 1);
                self.pass_on(at, wait, slab, out);
            } else if let Some(blame) = blame {
                let mut sources = left.sources;
                let told = take_last(&mut sources, blame.sources);
                let is_missing = |source: &&Source| {
                    let came = &slab.came[source.agent as usize];
                    came.places[source.index as usize].0 == NONE
                };
                if let Some(missing) = told.iter().find(is_missing) {
                    let came = &mut slab.came[missing.agent as usize];
                    came.blocked[missing.index as usize] = at as u32;
                    break;
                }
                let costs = match told {
                    [source] => slab.came[source.agent as usize].use_up(source.index),
                    _ => {
                        self.costs.clear();
                        for source in told {
                            let came = &mut slab.came[source.agent as usize];
                            let own = came.use_up(source.index).iter();
                            own.for_each(|cost| merge(&mut self.costs, cost));
                        }
                        &self.costs[..]
                    }
                };
                take_last(&mut left.blames, 1);
                left.sources = sources;
                let more = take_last(&mut left.more, blame.count);
                let alike = take_last(&mut left.alike, blame.alike);
                let passes_on = !self.by_messages || self.is_message(blame.victim);
                self.lanes[at].charge((blame, passes_on), (more, alike), costs);
            } else {
                break;
            }
        }
        slab.left[at] = left;
        if !left.has_items() {
            let blocked = std::mem::take(&mut self.lanes[at].blocked);
            slab.ready
                .extend(blocked.into_iter().map(|lane| lane as usize));
        }
    }

    /// Passes the costs on that later waits put on a wait of a location.
    fn pass_on(&mut self, at: usize, wait: &Wait, slab: &mut Slab<'_>, out: &mut [Carrying]) {
        let costs = &mut self.costs;
        costs.clear();
        self.lanes[at].costs_of(wait, costs);
        if wait.agent == NONE {
            self.untraced += sum(costs);
            return;
        }
        let agent = wait.agent as usize;
        let remaining = &mut slab.remaining[agent][wait.index as usize];
        *remaining -= 1;
        if *remaining > 0 {
            let folded = slab.folded.entry((wait.agent, wait.index)).or_default();
            costs.iter().for_each(|cost| merge(folded, cost));
            return;
        }
        if !slab.folded.is_empty()
            && let Some(mut folded) = slab.folded.remove(&(wait.agent, wait.index))
        {
            costs.iter().for_each(|cost| merge(&mut folded, cost));
            *costs = folded;
        }
        if agent == self.job.agent() {
            slab.ready.extend(slab.came[agent].take(wait.index, costs));
            return;
        }
        let to = &mut out[agent];
        to.carried.push(Carried {
            index: wait.index,
            count: costs.len() as u32,
        });
        let told = &mut self.told[agent];
        for cost in costs {
            let next = told.len() as u32;
            let number = *told.entry(cost.victim).or_insert(next);
            if number == next {
                let victim = self.victims.values[cost.victim as usize];
                to.victims.push(Named {
                    pattern: victim.pattern,
                    operation: victim.call.0,
                    path: victim.call.1,
                });
            }
            to.parts.push(Part {
                amount: cost.amount,
                who: cost.who,
                victim: number,
            });
        }
    }

    /// Before a location goes back beyond the begin of its last heir, it takes over what that one's waiting costs.
    /// Returns which location has to go back first.
    fn take_over(&mut self, at: usize, slab: &Slab<'_>) -> Option<usize> {
        let mut creator = at;
        // An heir may have heirs.
        let heir = loop {
            let heir = self.lanes[creator].heirs.last()?.lane as usize;
            if slab.left[heir].has_items() {
                return Some(heir);
            }
            if self.lanes[heir].heirs.is_empty() {
                break heir;
            }
            creator = heir;
        };
        let charges = std::mem::take(&mut self.lanes[heir].charges);
        let creator = &mut self.lanes[creator];
        let of = creator.heirs.pop()?;
        let inherited = charges
            .into_iter()
            .filter(|charge| charge.since <= of.order);
        for mut charge in inherited {
            let numbers = &of.numbers;
            charge.less.retain(|less| {
                let number = numbers.iter().position(|own| *own == less.activity);
                less.activity = number.map_or(NONE, |number| number as u32);
                number.is_some()
            });
            let of = (charge.since, charge.victim);
            let mut known = creator.charges.iter_mut();
            match known.find(|known| (known.since, known.victim) == of) {
                Some(known) => known.merge(charge),
                None => creator.charges.push(charge),
            }
        }
        None
    }

    /// Whether these are waits for a message or its receiver.
    fn is_message(&self, victim: u32) -> bool {
        let pattern = u8::try_from(self.victims.values[victim as usize].pattern).ok();
        let pattern = pattern.and_then(PatternId::from_number);
        pattern.is_some_and(|pattern| ["late_sender", "late_receiver"].contains(&pattern.class()))
    }

    /// Adds the costs of all locations, given with rank and thread.
    pub fn finish<'w>(
        self,
        (names, lanes): (&[(u32, u32)], impl Iterator<Item = &'w Walked<'w>>),
        roots: &mut Roots,
    ) {
        roots.untraced += self.untraced;
        for ((lane, own), walked) in self.lanes.into_iter().zip(names).zip(lanes) {
            let (activities, longer) = (&walked.activities, &walked.longer);
            for (amount, victim) in lane.indirect.iter().zip(&self.victims.values) {
                roots.classes.entry(victim.pattern).or_default().indirect += amount;
            }
            for (pattern, &amount) in (0..).zip(&lane.propagating) {
                if amount > 0 {
                    roots.classes.entry(pattern).or_default().propagating += amount;
                }
            }
            let mut charged: Vec<u32> = Vec::new();
            for (key, (amount, who)) in lane.sums {
                let (activity, victim, is_direct) = parts_of(key);
                charged.extend((amount > 0).then_some(activity));
                let owner = activities.owner(activity);
                let name = owner.map_or(*own, |owner| names[owner]);
                let activity = activities.list.values[activity as usize];
                let victim = self.victims.values[victim as usize];
                let class = roots.classes.entry(victim.pattern).or_default();
                match is_direct {
                    true => class.direct += amount,
                    false => class.long += amount,
                }
                if is_direct && activity.kind != Kind::Latency {
                    class.short += amount;
                }
                roots.add((name, activity), (victim, amount, who), is_direct);
            }
            charged.sort_unstable();
            charged.dedup();
            for activity in charged {
                let owner = activities.owner(activity);
                let (rank, _) = owner.map_or(*own, |owner| names[owner]);
                let root = roots.of.get_mut(&activities.list.values[activity as usize]);
                let Some(root) = root else { continue };
                if let Some(longer) = longer.get(activity as usize) {
                    root.longer.add(longer);
                }
                if let Some(&worst) = walked.worst.get(activity as usize) {
                    root.worst.take(Worst { rank, ..worst });
                }
            }
        }
    }
}
