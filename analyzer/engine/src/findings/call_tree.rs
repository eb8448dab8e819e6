//! What happens where: calls, time, waiting, what caused waiting, and bytes by call path, over all
//! ranks and as spread over them.
//!
//! The head chooses the call paths with most time and makes a tree of their frames, of bounded size.
//! Agents then add up their ranks' amounts at its nodes, so that none has more than one kind of
//! amount of all nodes and ranks in memory. Everything else is in one further node.

mod metrics;
mod shape;
mod spread;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use laggard_comm::{self as comm, Job};
use laggard_patterns::PatternId;
use laggard_report::CallTree;
use laggard_trace::calls::{self, Call};
use rustc_hash::FxHashMap;

use self::metrics::Metric;
use self::shape::{Amounts, OfNodes, Part, REST, Shape};
use self::spread::{Classes, Spreading, spread};
use crate::basics::intern::PathKey;
use crate::findings::merge::Own;
use crate::findings::places::{self, Places};
use crate::input::bounds::is_init;
use crate::input::open::Opened;
use crate::judge::profile::{Beside, Calls, LocationTimes, Profiled, Who};
use crate::roots::activities::{Activity, Kind, OFF_WORK, Site};
use crate::roots::carry::UNIT;
use crate::stream::rows::TimeClass;

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
        let threads: Vec<Who> = self.own.locations.iter().map(LocationTimes::who).collect();
        let mut ranks: Vec<u32> = threads.iter().map(|one| one.0).collect();
        ranks.dedup();
        let mut most = [threads
            .iter()
            .map(|one| u64::from(one.1))
            .max()
            .unwrap_or(0)];
        job.reduce_max(&mut most);
        let classes = Classes::new(self.opened.agent_of.len(), most[0] + 1);
        let amounts = |metric: &Metric| -> Result<Amounts> {
            let values = self.values(metric, &shape, &ranks, |(rank, _)| rank);
            let all = |of: &Vec<u64>| of.iter().copied().fold(0, u64::saturating_add);
            let mut exclusive: Vec<u64> = values.iter().map(all).collect();
            job.reduce_sum(&mut exclusive);
            let inclusive = shape.sums(&exclusive);
            // Most details are at few nodes.
            let has_some = |node: &usize| inclusive[*node] > 0;
            let some: Vec<usize> = (0..inclusive.len()).filter(has_some).collect();
            let of_some = |values: Vec<Vec<u64>>| -> Vec<Vec<u64>> {
                let mut values = shape.inclusive(values);
                let some = some.iter().map(|&node| std::mem::take(&mut values[node]));
                some.collect()
            };
            let spreads = spread(job, &ranks, of_some(values), |of| {
                Spreading::over(of, &classes)
            })?;
            let of_threads = match classes.has_threads() {
                false => Vec::new(),
                true => {
                    let values = self.values(metric, &shape, &threads, |who| who);
                    let found = spread(job, &threads, of_some(values), |of| classes.threads(of))?;
                    at_nodes(&some, found, inclusive.len())
                }
            };
            Ok(Amounts {
                spreads: at_nodes(&some, spreads, inclusive.len()),
                exclusive,
                inclusive,
                of_threads,
            })
        };
        let of = OfNodes {
            calls: amounts(&Metric::Calls)?,
            time: amounts(&Metric::Time)?,
            waiting: amounts(&Metric::Waiting)?,
            caused: match self.own.roots.is_unknown {
                true => None,
                false => Some(amounts(&Metric::Caused)?),
            },
            bytes: amounts(&Metric::Bytes)?,
        };
        let found: BTreeSet<u8> = self.own.findings.keys().map(|key| key.0).collect();
        let found = comm::union(job, found.into_iter().collect())?;
        let found: Vec<PatternId> = found
            .into_iter()
            .filter_map(PatternId::from_number)
            .collect();
        let details = metrics::details(&found).into_iter().map(|detail| {
            let of = amounts(&detail.metric)?;
            Ok((detail, of))
        });
        let details = details.collect::<Result<Vec<_>>>()?;
        Ok((job.agent() == 0).then(|| {
            let (nodes, metrics) = shape.told(names, of, details);
            CallTree {
                ranks_per_class: classes.ranks_each as u32,
                threads_per_class: classes.has_threads().then_some(classes.threads_each),
                nodes,
                metrics,
            }
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

    /// Amounts of this agent's ranks or threads, by node and by `keys`, ascending, without those of the nodes below.
    fn values<K: Ord>(
        &self,
        metric: &Metric,
        shape: &Shape,
        keys: &[K],
        key: impl Fn(Who) -> K,
    ) -> Vec<Vec<u64>> {
        // Parts may be taken away again.
        let mut values = vec![vec![0i64; keys.len()]; shape.parents.len()];
        let mut add = |node: usize, who: Who, amount: i64| {
            if let Ok(at) = keys.binary_search(&key(who)) {
                values[node][at] = values[node][at].saturating_add(amount);
            }
        };
        let own = self.own;
        match metric {
            Metric::Calls | Metric::Bytes => self.of_calls(|site, who, of| {
                let amount = if *metric == Metric::Calls {
                    of.count
                } else {
                    of.bytes
                };
                add(shape.of_call(site), who, whole(amount));
            }),
            Metric::InCalls(classes) => {
                let mut spend = |class: TimeClass, site: Site, who: Who, time: i64| {
                    if classes.contains(&class) {
                        add(shape.of_call(site), who, time);
                    }
                };
                self.of_calls(|site, who, of| {
                    if is_timed(site.0) {
                        let on_files = of.on_files.min(of.total);
                        let class = TimeClass::of(site.0);
                        spend(class, site, who, whole(of.total - on_files));
                        spend(TimeClass::Io, site, who, whole(on_files));
                    }
                });
                for Beside { who, site, time } in &own.beside {
                    spend(TimeClass::of(site.0), *site, *who, *time);
                }
            }
            Metric::Time | Metric::Computation => {
                let mut left: FxHashMap<Who, i64> = FxHashMap::default();
                for location in &own.locations {
                    *left.entry(location.who()).or_default() += whole(location.wall());
                }
                let is_all = *metric == Metric::Time;
                // Time in calls, listed or not, is no computation.
                let mut in_call = |node: usize, who: Who, time: i64| {
                    if is_all && node != REST {
                        add(node, who, time);
                    }
                    if !is_all || node != REST {
                        *left.entry(who).or_default() -= time;
                    }
                };
                self.of_calls(|site, who, of| {
                    if is_timed(site.0) {
                        in_call(shape.of_call(site), who, whole(of.total));
                    }
                });
                for beside in &own.beside {
                    in_call(shape.of_call(beside.site), beside.who, beside.time);
                }
                let mut spend = |node: usize, who: Who, time: i64| {
                    if node != REST {
                        add(node, who, time);
                        *left.entry(who).or_default() -= time;
                    }
                };
                for (site, threads) in &own.computed {
                    for (who, time) in threads {
                        spend(shape.after_call(*site), *who, whole(*time));
                    }
                }
                for ((site, kind), threads) in &own.off_work {
                    if let Some(node) = shape.off_work(*site, *kind) {
                        for (who, time) in threads {
                            spend(node, *who, whole(*time));
                            spend(shape.after_call(*site), *who, -whole(*time));
                        }
                    }
                }
                // Computation of which samples tell the function is there, not after the call.
                for ((site, function), threads) in &own.in_functions {
                    let function = shape.of_call((0, *function));
                    if function == REST {
                        continue;
                    }
                    // What is not notable after a call is in the rest.
                    let is_at = own.computed.contains_key(site);
                    for (who, time) in threads {
                        spend(function, *who, whole(*time));
                        if is_at {
                            spend(shape.after_call(*site), *who, -whole(*time));
                        }
                    }
                }
                left.into_iter()
                    .for_each(|(who, time)| add(REST, who, time));
            }
            Metric::OffWork(kind) => {
                let number = OFF_WORK
                    .iter()
                    .position(|of| of == kind)
                    .unwrap_or_default();
                let mut left: FxHashMap<Who, i64> = FxHashMap::default();
                for location in &own.locations {
                    *left.entry(location.who()).or_default() += whole(location.outside[number]);
                }
                for ((site, _), threads) in own.off_work.iter().filter(|((_, of), _)| of == kind) {
                    let node = shape.off_work(*site, *kind);
                    let node = node.unwrap_or_else(|| shape.after_call(*site));
                    for (who, time) in threads {
                        add(node, *who, whole(*time));
                        *left.entry(*who).or_default() -= whole(*time);
                    }
                }
                // What is not notable after a call is in the rest.
                left.into_iter()
                    .for_each(|(who, time)| add(REST, who, time));
            }
            Metric::Waiting => self.lost(PatternId::is_waiting, |site, who, time| {
                add(shape.of_call(site), who, time);
            }),
            Metric::Lost(patterns) => self.lost(
                |pattern| patterns.contains(&pattern),
                |site, who, time| add(shape.of_call(site), who, time),
            ),
            Metric::Caused => {
                let mut costs: BTreeMap<(usize, K), (Who, u128)> = BTreeMap::new();
                for (activity, root) in &own.roots.of {
                    let (site, is_call) = cause(activity);
                    let node = match is_call {
                        true => shape.of_call(site),
                        false => shape
                            .off_work(site, activity.kind)
                            .unwrap_or_else(|| shape.after_call(site)),
                    };
                    for (who, amount) in &root.ranks {
                        let sum = costs.entry((node, key(*who))).or_insert((*who, 0));
                        sum.1 += amount;
                    }
                }
                let costs = costs.into_iter();
                costs.for_each(|((node, _), (who, amount))| add(node, who, whole(ns(amount))));
            }
        }
        let positive = |of: Vec<i64>| of.into_iter().map(|one| one.max(0) as u64).collect();
        values.into_iter().map(positive).collect()
    }

    /// Hands on what some patterns charge for calls of each thread, ns.
    fn lost(&self, is_wanted: impl Fn(PatternId) -> bool, mut take: impl FnMut(Site, Who, i64)) {
        let is_wanted = |pattern| PatternId::from_number(pattern).is_some_and(&is_wanted);
        for ((pattern, operation, path), sums) in &self.own.findings {
            if is_wanted(*pattern) {
                let ranks = sums.ranks.iter();
                let alone = ranks.filter_map(|of| Some((self.alone(of.0)?, of.1)));
                alone.for_each(|(who, time)| take((*operation, *path), who, whole(time)));
            }
        }
        for ((site, pattern), threads) in &self.own.charged {
            if is_wanted(*pattern) {
                let threads = threads.iter();
                threads.for_each(|(who, time)| take(*site, *who, whole(*time)));
            }
        }
    }

    /// The thread of a rank that has only one.
    fn alone(&self, rank: u32) -> Option<Who> {
        let locations = &self.own.locations;
        let first = locations.partition_point(|one| one.rank < rank);
        let is_its = |at: usize| locations.get(at).is_some_and(|one| one.rank == rank);
        (is_its(first) && !is_its(first + 1)).then(|| locations[first].who())
    }

    /// Hands on the calls of each location.
    fn of_calls(&self, mut take: impl FnMut(Site, Who, &Calls)) {
        for location in self.profiled {
            for calls in &location.calls {
                let path = location.paths.get(calls.path as usize).copied();
                let path = (self.name)(path.unwrap_or_default());
                take((calls.operation, path), location.times.who(), calls);
            }
        }
    }
}

/// Values by node, of those of some nodes.
fn at_nodes<T>(some: &[usize], values: Vec<Option<T>>, nodes: usize) -> Vec<Option<T>> {
    let mut all: Vec<Option<T>> = (0..nodes).map(|_| None).collect();
    for (&node, value) in some.iter().zip(values) {
        all[node] = value;
    }
    all
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
