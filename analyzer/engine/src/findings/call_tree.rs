//! What happens where: calls, time, waiting, what caused waiting, and bytes by call path, over all
//! ranks and as spread over them.
//!
//! The head chooses the call paths with most time and makes a tree of their frames, of bounded size.
//! Agents then add up their ranks' amounts at its nodes, so that none has more than one kind of
//! amount of all nodes and ranks in memory. Everything else is in one further node.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{self as comm, Job};
use laggard_patterns::PatternId;
use laggard_report::{Amount, CallNode, CallTree, Spread, seconds};
use laggard_trace::calls::user::REGION;
use laggard_trace::calls::{self, Call};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::findings::fold::{class_of, width_of_class};
use crate::findings::merge::Own;
use crate::findings::places::{self, Places};
use crate::input::bounds::is_init;
use crate::input::open::Opened;
use crate::judge::profile::{Calls, Profiled};
use crate::roots::activities::{Activity, Kind, Site};
use crate::roots::carry::UNIT;

/// Most call paths that are looked at, those with most time.
const SITES: usize = 256;
/// Most nodes of their tree.
const NODES: usize = 128;
/// The node of the whole run, and that of all that is not in the tree.
const RUN: usize = 0;
const REST: usize = 1;

/// Kinds of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Calls,
    /// In calls, and outside of them after a call. ns.
    Time,
    /// ns.
    Waiting,
    /// Waiting that started there, ns.
    Caused,
    Bytes,
}

impl Metric {
    const ALL: [Metric; 5] = [
        Metric::Calls,
        Metric::Time,
        Metric::Waiting,
        Metric::Caused,
        Metric::Bytes,
    ];
}

/// The tree without amounts, as agents know it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Shape {
    /// By node: its parent, which comes before it. The run is its own.
    parents: Vec<u32>,
    /// By call and call path: the node of the call, and that of its innermost frame, where the
    /// program goes on after it.
    sites: FxHashMap<Site, (u32, u32)>,
}

/// What a node is, and its name.
type Named = (What, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum What {
    Run,
    Frame,
    Call,
    Rest,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Run => "run",
            What::Frame => "frame",
            What::Call => "call",
            What::Rest => "rest",
        }
    }
}

/// One kind of amounts, at the head, by node.
struct Amounts {
    exclusive: Vec<u64>,
    /// Of the node with those below it; none where there is nothing.
    spreads: Vec<Option<Spreading>>,
}

/// An amount over all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Spreading {
    least: u64,
    median: u64,
    /// And the lowest rank with it.
    most: (u64, u32),
    /// Mean of a rank, by class.
    classes: Vec<u64>,
}

/// What is known of this agent's ranks, and which call paths have the same lines.
pub struct Known<'k, N> {
    pub own: &'k Own,
    pub opened: &'k Opened,
    pub profiled: &'k [Profiled],
    /// Name of a call path: the first one with the same lines.
    pub name: N,
}

impl<N: Fn(PathKey) -> PathKey> Known<'_, N> {
    /// The tree over all agents, at the head. Collective.
    ///
    /// # Errors
    /// Messages of agents cannot be packed or unpacked.
    pub fn tree(&self, job: &dyn Job, places: &mut Places) -> Result<Option<CallTree>> {
        let sites = self.sites(job)?;
        let paths = sites.iter().map(|(_, path)| *path).collect();
        let locations = &self.opened.locations;
        places.add(places::paths(job, paths, locations, self.profiled)?);
        let named = (job.agent() == 0).then(|| shape(&sites, places));
        let (shape, names) = named.unwrap_or_default();
        let mut bytes = postcard::to_stdvec(&shape)?;
        job.broadcast(&mut bytes);
        let shape: Shape = postcard::from_bytes(&bytes)?;
        let mut ranks: Vec<u32> = self.own.locations.iter().map(|one| one.rank).collect();
        ranks.dedup();
        let mut amounts = Vec::new();
        for metric in Metric::ALL {
            let mut values = self.values(metric, &shape, &ranks);
            let all = |of: &Vec<u64>| of.iter().copied().fold(0, u64::saturating_add);
            let mut exclusive: Vec<u64> = values.iter().map(all).collect();
            job.reduce_sum(&mut exclusive);
            shape.add_up(&mut values, |sum, part| {
                let pairs = sum.iter_mut().zip(part);
                pairs.for_each(|(sum, part)| *sum = sum.saturating_add(*part));
            });
            let spreads = self.spreads(job, &ranks, values)?;
            amounts.push(Amounts { exclusive, spreads });
        }
        let is_traced = !self.own.roots.is_unknown;
        Ok((job.agent() == 0).then(|| CallTree {
            ranks_per_class: width_of_class(self.opened.agent_of.len()) as u32,
            nodes: told(&shape, names, amounts, is_traced),
        }))
    }

    /// The calls and call paths with most time, or that cause most waiting, most first; the same
    /// everywhere. Collective.
    fn sites(&self, job: &dyn Job) -> Result<Vec<Site>> {
        let mut own: BTreeMap<Site, u64> = BTreeMap::new();
        let mut add = |site: Site, time: u64| {
            let sum = own.entry(site).or_default();
            *sum = sum.saturating_add(time);
        };
        for (site, sums) in &self.own.profile {
            if is_timed(site.0) {
                add(*site, sums.total.saturating_sub(sums.ends));
            }
        }
        for (site, ranks) in &self.own.computed {
            ranks.values().for_each(|time| add(*site, *time));
        }
        for (activity, root) in &self.own.roots.of {
            add(cause(activity).0, ns(root.all()));
        }
        let all = comm::merge_up(job, own, |mut sums, other| {
            for (site, time) in other {
                let sum: &mut u64 = sums.entry(site).or_default();
                *sum = sum.saturating_add(time);
            }
            sums
        })?;
        let all = all.unwrap_or_default().into_iter();
        let mut all: Vec<(Reverse<u64>, Site)> =
            all.map(|(site, time)| (Reverse(time), site)).collect();
        all.sort_unstable();
        let most = all.iter().filter(|(time, _)| time.0 > 0).take(SITES);
        let mut bytes = postcard::to_stdvec(&most.map(|(_, site)| *site).collect::<Vec<_>>())?;
        job.broadcast(&mut bytes);
        Ok(postcard::from_bytes(&bytes)?)
    }

    /// Amounts of this agent's ranks, by node and rank, without those of the nodes below.
    fn values(&self, metric: Metric, shape: &Shape, ranks: &[u32]) -> Vec<Vec<u64>> {
        // Parts may be taken away again.
        let mut values = vec![vec![0i64; ranks.len()]; shape.parents.len()];
        let mut add = |node: usize, rank: u32, amount: i64| {
            if let Ok(at) = ranks.binary_search(&rank) {
                values[node][at] = values[node][at].saturating_add(amount);
            }
        };
        let own = self.own;
        match metric {
            Metric::Calls | Metric::Bytes => self.of_calls(|site, rank, of| {
                let amount = if metric == Metric::Calls {
                    of.count
                } else {
                    of.bytes
                };
                add(shape.of_call(site), rank, whole(amount));
            }),
            Metric::Time => {
                let mut left: FxHashMap<u32, i64> = FxHashMap::default();
                for location in &own.locations {
                    *left.entry(location.rank).or_default() += whole(location.wall());
                }
                let mut spend = |node: usize, rank: u32, time: i64| {
                    if node != REST {
                        add(node, rank, time);
                        *left.entry(rank).or_default() -= time;
                    }
                };
                self.of_calls(|site, rank, of| {
                    if is_timed(site.0) {
                        spend(shape.of_call(site), rank, whole(of.total));
                    }
                });
                for beside in &own.beside {
                    spend(shape.of_call(beside.site), beside.rank, beside.time);
                }
                for (site, ranks) in &own.computed {
                    for (rank, time) in ranks {
                        spend(shape.after_call(*site), *rank, whole(*time));
                    }
                }
                left.into_iter()
                    .for_each(|(rank, time)| add(REST, rank, time));
            }
            Metric::Waiting => {
                for ((pattern, operation, path), sums) in &own.findings {
                    if PatternId::from_number(*pattern).is_some_and(PatternId::is_waiting) {
                        let node = shape.of_call((*operation, *path));
                        let ranks = sums.ranks.iter();
                        ranks.for_each(|(rank, time, _)| add(node, *rank, whole(*time)));
                    }
                }
            }
            Metric::Caused => {
                let mut costs: BTreeMap<(usize, u32), u128> = BTreeMap::new();
                for (activity, root) in &own.roots.of {
                    let (site, is_call) = cause(activity);
                    let node = match is_call {
                        true => shape.of_call(site),
                        false => shape.after_call(site),
                    };
                    for ((rank, _), amount) in &root.ranks {
                        *costs.entry((node, *rank)).or_default() += amount;
                    }
                }
                let costs = costs.into_iter();
                costs.for_each(|((node, rank), amount)| add(node, rank, whole(ns(amount))));
            }
        }
        let positive = |of: Vec<i64>| of.into_iter().map(|one| one.max(0) as u64).collect();
        values.into_iter().map(positive).collect()
    }

    /// Hands on the calls of each location.
    fn of_calls(&self, mut take: impl FnMut(Site, u32, &Calls)) {
        for location in self.profiled {
            for calls in &location.calls {
                let path = location.paths.get(calls.path as usize).copied();
                let path = (self.name)(path.unwrap_or_default());
                take((calls.operation, path), location.times.rank, calls);
            }
        }
    }

    /// The spread of each node over all ranks, at the head; `values` by node and by this agent's
    /// `ranks`. Agents share the nodes. Collective.
    fn spreads(
        &self,
        job: &dyn Job,
        ranks: &[u32],
        values: Vec<Vec<u64>>,
    ) -> Result<Vec<Option<Spreading>>> {
        let agents = job.agents();
        let all = self.opened.agent_of.len();
        let nodes = values.len();
        let mut parcels: Vec<Vec<&Vec<u64>>> = vec![Vec::new(); agents];
        for (node, of) in values.iter().enumerate() {
            parcels[node % agents].push(of);
        }
        let packed = parcels
            .iter()
            .map(|of| postcard::to_stdvec(&(ranks, of)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut mine: Vec<Vec<(u32, u64)>> = vec![Vec::new(); nodes.div_ceil(agents)];
        for bytes in job.exchange(packed) {
            let (ranks, of): (Vec<u32>, Vec<Vec<u64>>) = postcard::from_bytes(&bytes)?;
            for (sum, values) in mine.iter_mut().zip(of) {
                sum.extend(ranks.iter().copied().zip(values));
            }
        }
        let spreads: Vec<Option<Spreading>> = mine
            .into_iter()
            .map(|of| Spreading::over(of, all))
            .collect();
        let mut parcels = vec![Vec::new(); agents];
        parcels[0] = postcard::to_stdvec(&spreads)?;
        let mut found = vec![None; nodes];
        for (agent, bytes) in job.exchange(parcels).iter().enumerate() {
            if bytes.is_empty() {
                continue;
            }
            let spreads: Vec<Option<Spreading>> = postcard::from_bytes(bytes)?;
            let places = found.iter_mut().skip(agent).step_by(agents);
            places.zip(spreads).for_each(|(place, one)| *place = one);
        }
        Ok(found)
    }
}

/// Whether the time of a call counts. That of starting a library is reported apart, and regions
/// have other calls in them.
fn is_timed(operation: u16) -> bool {
    !is_init(operation) && !calls::call(operation).is_some_and(Call::is_user)
}

/// Where an activity is that made others wait, and whether in the call, or after it.
fn cause(activity: &Activity) -> (Site, bool) {
    match activity.kind {
        Kind::Computation => (activity.begin, false),
        Kind::Io | Kind::Call => (activity.begin, true),
        Kind::Latency => (activity.until, true),
    }
}

fn ns(amount: u128) -> u64 {
    u64::try_from(amount / UNIT as u128).unwrap_or(u64::MAX)
}

fn whole(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

impl Shape {
    /// The node of a call.
    fn of_call(&self, site: Site) -> usize {
        self.sites.get(&site).map_or(REST, |nodes| nodes.0 as usize)
    }

    /// The node of what the program does after a call.
    fn after_call(&self, site: Site) -> usize {
        self.sites.get(&site).map_or(REST, |nodes| nodes.1 as usize)
    }

    /// Adds the amounts of each node to its parent's.
    fn add_up<T>(&self, amounts: &mut [T], add: impl Fn(&mut T, &T)) {
        for node in (1..amounts.len()).rev() {
            let (before, from) = amounts.split_at_mut(node);
            add(&mut before[self.parents[node] as usize], &from[0]);
        }
    }
}

impl Spreading {
    /// The spread of these amounts by rank, of a run of `ranks`; none if there are none.
    fn over(mut of: Vec<(u32, u64)>, ranks: usize) -> Option<Spreading> {
        let most = of
            .iter()
            .copied()
            .max_by_key(|&(rank, value)| (value, Reverse(rank)))?;
        if most.1 == 0 {
            return None;
        }
        let mut classes: BTreeMap<u16, (u128, u128)> = BTreeMap::new();
        for &(rank, value) in &of {
            let class = classes.entry(class_of(rank, ranks)).or_default();
            *class = (class.0 + u128::from(value), class.1 + 1);
        }
        let count = ranks.div_ceil(width_of_class(ranks));
        let mean = |class: u16| classes.get(&class).map_or(0, |(sum, n)| (sum / n) as u64);
        of.sort_unstable_by_key(|&(_, value)| value);
        let middle = (of[(of.len() - 1) / 2].1, of[of.len() / 2].1);
        Some(Spreading {
            least: of[0].1,
            median: middle.0 + (middle.1 - middle.0) / 2,
            most: (most.1, most.0),
            classes: (0..count as u16).map(mean).collect(),
        })
    }

    fn told<T>(self, unit: impl Fn(u64) -> T) -> Spread<T> {
        Spread {
            min: unit(self.least),
            median: unit(self.median),
            max: unit(self.most.0),
            max_rank: self.most.1,
            classes: self.classes.into_iter().map(unit).collect(),
        }
    }
}

/// The tree of the frames of these call paths, the most important first, and the names of its nodes.
fn shape(sites: &[Site], places: &mut Places) -> (Shape, Vec<Named>) {
    let mut shape = Shape {
        parents: vec![RUN as u32; 2],
        ..Shape::default()
    };
    let mut names = vec![(What::Run, String::new()), (What::Rest, String::new())];
    let mut known: FxHashMap<(u32, Named), u32> = FxHashMap::default();
    for site in sites {
        let frames = places.of(site.1).callpath.into_iter();
        let mut nodes: Vec<Named> = frames.map(|frame| (What::Frame, frame)).collect();
        // Functions and regions of the program are no calls of a library.
        let is_call = site.0 != 0 && site.0 != REGION;
        if is_call {
            nodes.push((What::Call, calls::name(site.0).to_owned()));
        }
        let (mut at, mut above) = (RUN as u32, RUN as u32);
        let mut found = Vec::new();
        for named in nodes {
            let next = (shape.parents.len() + found.len()) as u32;
            let node = known.get(&(at, named.clone())).copied().unwrap_or(next);
            if node == next {
                found.push((at, named));
            }
            (above, at) = (at, node);
        }
        if names.len() + found.len() > NODES {
            continue;
        }
        for (parent, named) in found {
            known.insert((parent, named.clone()), names.len() as u32);
            shape.parents.push(parent);
            names.push(named);
        }
        let after = if is_call { above } else { at };
        shape.sites.insert(*site, (at, after));
    }
    (shape, names)
}

/// The nodes of the report: each before those below it, of these the ones with most time first.
fn told(shape: &Shape, names: Vec<Named>, amounts: Vec<Amounts>, is_traced: bool) -> Vec<CallNode> {
    let inclusive = amounts.iter().map(|of| {
        let mut sums = of.exclusive.clone();
        shape.add_up(&mut sums, |sum, part| *sum = sum.saturating_add(*part));
        sums
    });
    let inclusive: Vec<Vec<u64>> = inclusive.collect();
    let order = |node: usize| {
        let [calls, time, ..] = [0, 1].map(|metric| Reverse(inclusive[metric][node]));
        (node == REST, time, calls, &names[node])
    };
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for node in 1..names.len() {
        below[shape.parents[node] as usize].push(node);
    }
    for of in &mut below {
        of.sort_by(|a, b| order(*b).cmp(&order(*a)));
    }
    let mut numbers: Vec<u32> = vec![0; names.len()];
    let mut rows: Vec<CallNode> = Vec::new();
    let mut open = vec![RUN];
    while let Some(node) = open.pop() {
        open.extend(&below[node]);
        numbers[node] = rows.len() as u32;
        let amount = |metric: Metric| {
            let at = metric as usize;
            let of = (inclusive[at][node], amounts[at].exclusive[node]);
            (of, amounts[at].spreads[node].clone())
        };
        let count = |metric| {
            let ((inclusive, exclusive), spread) = amount(metric);
            Amount {
                inclusive,
                exclusive,
                ranks: spread.map(|one| one.told(|value| value)),
            }
        };
        let time = |metric| {
            let ((inclusive, exclusive), spread) = amount(metric);
            Amount {
                inclusive: seconds(inclusive),
                exclusive: seconds(exclusive),
                ranks: spread.map(|one| one.told(seconds)),
            }
        };
        let (what, name) = &names[node];
        rows.push(CallNode {
            parent: (node != RUN).then(|| numbers[shape.parents[node] as usize]),
            kind: what.name().to_owned(),
            name: name.clone(),
            calls: count(Metric::Calls),
            time_s: time(Metric::Time),
            waiting_s: time(Metric::Waiting),
            caused_s: is_traced.then(|| time(Metric::Caused)),
            bytes: count(Metric::Bytes),
        });
    }
    rows
}
