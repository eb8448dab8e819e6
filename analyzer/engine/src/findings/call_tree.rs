//! What happens where: calls, time, waiting, what caused waiting, and bytes by call path, over all
//! ranks and as spread over them.
//!
//! The head chooses the call paths with most time and makes a tree of their frames, of bounded size.
//! Agents then add up their ranks' amounts at its nodes, so that none has more than one kind of
//! amount of all nodes and ranks in memory. Everything else is in one further node.

mod shape;
mod spread;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{self as comm, Job};
use laggard_patterns::PatternId;
use laggard_report::CallTree;
use laggard_trace::calls::{self, Call};
use rustc_hash::FxHashMap;

use self::shape::{Amounts, Metric, Part, REST, Shape};
use self::spread::spreads;
use crate::basics::intern::PathKey;
use crate::findings::fold::width_of_class;
use crate::findings::merge::Own;
use crate::findings::places::{self, Places};
use crate::input::bounds::is_init;
use crate::input::open::Opened;
use crate::judge::profile::{Calls, Profiled};
use crate::roots::activities::{Activity, Kind, Site};
use crate::roots::carry::UNIT;

/// Most call paths that are looked at, those with most time.
const SITES: usize = 256;

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
        let paths = sites.iter().map(|((_, path), _)| *path).collect();
        let locations = &self.opened.locations;
        places.add(places::paths(job, paths, locations, self.profiled)?);
        let named = (job.agent() == 0).then(|| Shape::new(&sites, places));
        let (shape, names) = named.unwrap_or_default();
        let shape = comm::from_head(job, shape)?;
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
            let spreads = spreads(job, &ranks, values, self.opened.agent_of.len())?;
            amounts.push(Amounts { exclusive, spreads });
        }
        let is_traced = !self.own.roots.is_unknown;
        Ok((job.agent() == 0).then(|| CallTree {
            ranks_per_class: width_of_class(self.opened.agent_of.len()) as u32,
            nodes: shape.told(names, amounts, is_traced),
        }))
    }

    /// The calls and call paths with most time, or that cause most waiting, most first; the same
    /// everywhere. Collective.
    fn sites(&self, job: &dyn Job) -> Result<Vec<Part>> {
        let mut own: BTreeMap<Part, u64> = BTreeMap::new();
        let mut add_part = |part: Part, time: u64| {
            let sum = own.entry(part).or_default();
            *sum = sum.saturating_add(time);
        };
        for ((site, kind), ranks) in &self.own.off_work {
            let all = ranks.values().copied().fold(0, u64::saturating_add);
            add_part((*site, Some(*kind)), all);
        }
        let mut add = |site: Site, time: u64| add_part((site, None), time);
        for (site, sums) in &self.own.profile {
            if is_timed(site.0) {
                add(*site, sums.total.saturating_sub(sums.ends));
            }
        }
        for (site, ranks) in &self.own.computed {
            ranks.values().for_each(|time| add(*site, *time));
        }
        for ((_, function), ranks) in &self.own.in_functions {
            ranks.values().for_each(|time| add((0, *function), *time));
        }
        for (activity, root) in &self.own.roots.of {
            add(cause(activity).0, ns(root.all()));
        }
        let all = comm::merge_up(job, own)?;
        let all = all.unwrap_or_default().into_iter();
        let mut all: Vec<(Reverse<u64>, Part)> =
            all.map(|(part, time)| (Reverse(time), part)).collect();
        all.sort_unstable();
        let most = all.iter().filter(|(time, _)| time.0 > 0).take(SITES);
        comm::from_head(job, most.map(|(_, part)| *part).collect())
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
                for ((site, kind), ranks) in &own.off_work {
                    if let Some(node) = shape.off_work(*site, *kind) {
                        for (rank, time) in ranks {
                            spend(node, *rank, whole(*time));
                            spend(shape.after_call(*site), *rank, -whole(*time));
                        }
                    }
                }
                // Computation of which samples tell the function is there, not after the call.
                for ((site, function), ranks) in &own.in_functions {
                    let function = shape.of_call((0, *function));
                    if function == REST {
                        continue;
                    }
                    for (rank, time) in ranks {
                        spend(function, *rank, whole(*time));
                        spend(shape.after_call(*site), *rank, -whole(*time));
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
                        false => shape
                            .off_work(site, activity.kind)
                            .unwrap_or_else(|| shape.after_call(site)),
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
}

/// Whether the time of a call counts. That of starting a library is reported apart, and regions
/// have other calls in them.
fn is_timed(operation: u16) -> bool {
    !is_init(operation) && !calls::call(operation).is_some_and(Call::is_user)
}

/// Where an activity is that made others wait, and whether in the call, or after it.
fn cause(activity: &Activity) -> (Site, bool) {
    match activity.kind {
        Kind::Computation | Kind::Sampled | Kind::Waited | Kind::Counted => (activity.begin, false),
        Kind::Blocked | Kind::Preempted | Kind::Kernel => {
            (activity.begin, activity.until == Site::default())
        }
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
