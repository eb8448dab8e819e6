//! The tree of call paths: its nodes, their names, and how the report has them.

use std::cmp::Reverse;

use laggard_report::{Amount, CallNode, NodeTime, TreeMetric, seconds, words};
use laggard_trace::calls;
use laggard_trace::calls::user::REGION;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::metrics::Detail;
use super::spread::Spreading;
use crate::findings::places::Places;
use crate::roots::activities::{Kind, Site};

/// Most nodes.
const NODES: usize = 128;
/// The node of the whole run, and that of all that is not in the tree.
const RUN: usize = 0;
pub const REST: usize = 1;

/// The tree without amounts, as agents know it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Shape {
    /// By node: its parent, which comes before it. The run is its own.
    pub parents: Vec<u32>,
    /// By call and call path: the node of the call, and that of its innermost frame, where the
    /// program goes on after it.
    sites: FxHashMap<Site, (u32, u32)>,
    /// Nodes of what the program did there beside work.
    off_work: FxHashMap<(Site, Kind), u32>,
}

/// A call at a call path, or what was done after it beside work.
pub type Part = (Site, Option<Kind>);

/// What a node is, and its name.
pub type Named = (What, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    Run,
    Frame,
    Call,
    /// What a frame did after its calls beside work.
    Off(Kind),
    Rest,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Run => "run",
            What::Frame => "frame",
            What::Call => "call",
            What::Off(Kind::Blocked) => "blocked",
            What::Off(Kind::Preempted) => "preempted",
            What::Off(_) => "kernel",
            What::Rest => "rest",
        }
    }
}

/// One kind of amounts, at the head, by node.
pub struct Amounts {
    pub exclusive: Vec<u64>,
    /// With those of the nodes below.
    pub inclusive: Vec<u64>,
    /// How these are spread; none where there is nothing.
    pub spreads: Vec<Option<Spreading>>,
    /// The same by classes of ranks and threads; empty without threads.
    pub of_threads: Vec<Option<Vec<Vec<u64>>>>,
}

impl Amounts {
    fn at<T>(&self, node: usize, unit: impl Fn(u64) -> T) -> Amount<T> {
        let threads = self.of_threads.get(node).cloned().flatten();
        let threads = threads.unwrap_or_default();
        let spread = self.spreads[node].clone();
        Amount {
            inclusive: unit(self.inclusive[node]),
            exclusive: unit(self.exclusive[node]),
            ranks: spread.map(|spread| spread.told(threads, unit)),
        }
    }
}

/// What every node has.
pub struct OfNodes {
    pub calls: Amounts,
    pub time: Amounts,
    pub waiting: Amounts,
    /// Absent if root causes were not searched.
    pub caused: Option<Amounts>,
    pub bytes: Amounts,
}

impl Shape {
    /// The tree of the frames of these call paths, the most important first, and the names of its nodes. With
    /// a kind, it is about what was done there beside work.
    pub fn new(sites: &[Part], places: &mut Places) -> (Shape, Vec<Named>) {
        let mut shape = Shape {
            parents: vec![RUN as u32; 2],
            ..Shape::default()
        };
        let mut names = vec![(What::Run, String::new()), (What::Rest, String::new())];
        let mut known: FxHashMap<(u32, Named), u32> = FxHashMap::default();
        for (site, off) in sites {
            let frames = places.of(site.1).callpath.into_iter();
            let mut nodes: Vec<Named> = frames.map(|frame| (What::Frame, frame)).collect();
            // Functions and regions of the program are no calls of a library.
            let is_call = site.0 != 0 && site.0 != REGION;
            match *off {
                Some(kind) => {
                    let what = What::Off(kind);
                    let name = words::off_work(what.name()).unwrap_or_default();
                    nodes.push((what, name.to_owned()));
                }
                None if is_call => nodes.push((What::Call, calls::name(site.0).to_owned())),
                None => {}
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
            if let Some(kind) = *off {
                shape.off_work.insert((*site, kind), at);
                continue;
            }
            let after = if is_call { above } else { at };
            shape.sites.insert(*site, (at, after));
        }
        (shape, names)
    }

    /// The node of a call.
    pub fn of_call(&self, site: Site) -> usize {
        self.sites.get(&site).map_or(REST, |nodes| nodes.0 as usize)
    }

    /// The node of what the program does after a call.
    pub fn after_call(&self, site: Site) -> usize {
        self.sites.get(&site).map_or(REST, |nodes| nodes.1 as usize)
    }

    /// The node of what the program did after a call beside work.
    pub fn off_work(&self, site: Site, kind: Kind) -> Option<usize> {
        self.off_work.get(&(site, kind)).map(|&node| node as usize)
    }

    /// Amounts by node and rank, or thread, with those of the nodes below.
    pub fn inclusive(&self, mut values: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
        self.add_up(&mut values, |sum, part| {
            let pairs = sum.iter_mut().zip(part);
            pairs.for_each(|(sum, part)| *sum = sum.saturating_add(*part));
        });
        values
    }

    /// Amounts by node, with those of the nodes below.
    pub fn sums(&self, exclusive: &[u64]) -> Vec<u64> {
        let mut sums = exclusive.to_vec();
        self.add_up(&mut sums, |sum, part| *sum = sum.saturating_add(*part));
        sums
    }

    /// Adds the amounts of each node to its parent's.
    fn add_up<T>(&self, amounts: &mut [T], add: impl Fn(&mut T, &T)) {
        for node in (1..amounts.len()).rev() {
            let (before, from) = amounts.split_at_mut(node);
            add(&mut before[self.parents[node] as usize], &from[0]);
        }
    }

    /// The nodes of the report: each before those below it, of these the ones with most time first. And what
    /// the details have there.
    pub fn told(
        &self,
        names: Vec<Named>,
        of: OfNodes,
        details: Vec<(Detail, Amounts)>,
    ) -> (Vec<CallNode>, Vec<TreeMetric>) {
        let order = |node: usize| {
            let [calls, time] = [&of.calls, &of.time].map(|of| Reverse(of.inclusive[node]));
            (node == REST, time, calls, &names[node])
        };
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
        for node in 1..names.len() {
            below[self.parents[node] as usize].push(node);
        }
        for of in &mut below {
            of.sort_by(|a, b| order(*b).cmp(&order(*a)));
        }
        let mut numbers: Vec<u32> = vec![0; names.len()];
        let mut rows: Vec<CallNode> = Vec::new();
        let mut in_order: Vec<usize> = Vec::new();
        let mut open = vec![RUN];
        while let Some(node) = open.pop() {
            open.extend(&below[node]);
            numbers[node] = rows.len() as u32;
            in_order.push(node);
            let (what, name) = &names[node];
            rows.push(CallNode {
                parent: (node != RUN).then(|| numbers[self.parents[node] as usize]),
                kind: what.name().to_owned(),
                name: name.clone(),
                calls: of.calls.at(node, |count| count),
                time_s: of.time.at(node, seconds),
                waiting_s: of.waiting.at(node, seconds),
                caused_s: of.caused.as_ref().map(|of| of.at(node, seconds)),
                bytes: of.bytes.at(node, |bytes| bytes),
            });
        }
        let details = details.into_iter().map(|(detail, of)| {
            let nodes = (0..)
                .zip(&in_order)
                .filter(|(_, node)| of.inclusive[**node] > 0);
            TreeMetric {
                id: detail.id.to_owned(),
                parent: detail.parent.map(str::to_owned),
                name: detail.name.to_owned(),
                nodes: nodes
                    .map(|(number, node)| NodeTime {
                        node: number,
                        time_s: of.at(*node, seconds),
                    })
                    .collect(),
            }
        });
        let metrics = details.filter(|metric| !metric.nodes.is_empty()).collect();
        (rows, metrics)
    }
}
