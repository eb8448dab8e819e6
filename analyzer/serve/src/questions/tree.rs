//! The three panes of a profile: what is measured, where in the program, where in the machine. All
//! numbers are those of the report.

use anyhow::{Context, Result};
use laggard_engine::events::Placed;
use laggard_overlay::Stop;
use laggard_report::layout::GLUE;
use laggard_report::{Amount, CallNode, CallTree, Report, RootCause, Spread, words};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::overview::{place_of_cause, threads};
use super::{Asked, LONGEST, cut, names, short};
use crate::against;
use crate::share::Share;

/// Most nodes of the call tree: those with most of the metric.
const NODES: usize = 500;
/// Most bytes of all their names.
const NAMES: usize = 40_000;

/// Most rows of threads of a rank.
const THREADS: u32 = 512;

/// Most root causes that are metrics.
const ROOTS: usize = 50;
/// Ranks of a root cause that are listed have at least this part of it, unless the list is cut.
const NEARLY_ALL: f64 = 0.9 - 1e-6;

/// Asks for a metric, by place in the program, and for one of these by ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tree {
    /// What is measured: `time`, `waiting`, `caused`, `calls`, `bytes`, a part of the time or of the time lost as the
    /// report has it, or the id or the key of a root cause.
    pub metric: String,
    /// Position of the node whose ranks are asked for; the whole run.
    pub node: Option<usize>,
    /// The same by its name, which stays when a later report has further nodes.
    pub place: Option<String>,
}

/// What every node of the tree has: id, name, unit, amount.
type OfNodes = (
    &'static str,
    &'static str,
    &'static str,
    fn(&CallNode) -> Option<Amount<f64>>,
);

const OF_NODES: [OfNodes; 5] = [
    ("time", "Time", "s", |node| Some(node.time_s.clone())),
    ("waiting", "Waiting", "s", |node| {
        Some(node.waiting_s.clone())
    }),
    ("caused", "Caused waiting", "s", |node| {
        node.caused_s.clone()
    }),
    ("calls", "Calls", "", |node| Some(node.calls.as_f64())),
    ("bytes", "Bytes", "B", |node| Some(node.bytes.as_f64())),
];

/// A metric of a report.
struct Metric {
    id: String,
    /// What a root cause is called in later reports, too.
    key: Option<String>,
    /// The one that it is part of.
    parent: Option<String>,
    name: String,
    unit: &'static str,
    /// By node.
    amounts: Vec<Option<Amount<f64>>>,
    /// Why nobody knows what threads of ranks have. Else those that are not told have nothing.
    untold: Option<String>,
}

impl Metric {
    /// Of the whole run; `None` if there is none.
    fn whole(&self) -> Option<f64> {
        Some(self.amounts.first()?.as_ref()?.inclusive)
    }
}

/// All metrics of a report, each after the one that it is part of.
fn metrics(report: &Report) -> Vec<Metric> {
    let Some(tree) = &report.call_tree else {
        return Vec::new();
    };
    let mut all: Vec<Metric> = Vec::new();
    for (id, name, unit, amount) in OF_NODES {
        all.push(Metric {
            id: id.to_owned(),
            key: None,
            parent: None,
            name: name.to_owned(),
            unit,
            amounts: tree.nodes.iter().map(amount).collect(),
            untold: None,
        });
    }
    for metric in &tree.metrics {
        let mut amounts = vec![None; tree.nodes.len()];
        for of in &metric.nodes {
            if let Some(place) = amounts.get_mut(of.node as usize) {
                *place = Some(of.time_s.clone());
            }
        }
        all.push(Metric {
            id: metric.id.clone(),
            key: None,
            parent: metric.parent.clone(),
            name: metric.name.clone(),
            unit: "s",
            amounts,
            untold: None,
        });
    }
    let roots = report.root_causes.iter().flatten().take(ROOTS);
    all.extend(roots.map(|root| Metric {
        id: root.id.clone(),
        key: Some(names::of_cause(root)),
        parent: Some("caused".to_owned()),
        name: short(&words::root_cause(root).replace(GLUE, " ")),
        unit: "s",
        amounts: at_its_place(report, tree, root),
        untold: untold(tree, root),
    }));
    all
}

/// Ids and keys of the metrics of a report.
pub fn offered(report: &Report) -> Vec<String> {
    metrics(report)
        .into_iter()
        .flat_map(|metric| [Some(metric.id), metric.key])
        .flatten()
        .collect()
}

/// The number of the only thread of ranks that starts a root cause. `None`: there are several, or threads share
/// classes, so that nobody knows how much each has.
fn thread_of(tree: &CallTree, root: &RootCause) -> Option<usize> {
    let (first, last) = threads(root)?;
    let is_one = first == last && first < THREADS && tree.threads_per_class.unwrap_or(1) == 1;
    is_one.then_some(first as usize)
}

/// Why nobody knows what the threads of ranks have of a root cause.
fn untold(tree: &CallTree, root: &RootCause) -> Option<String> {
    if thread_of(tree, root).is_some() {
        return None;
    }
    let each = tree.threads_per_class.unwrap_or(1);
    Some(match threads(root) {
        Some((one, last)) if one == last && each > 1 => {
            format!(
                "Thread {one} of these ranks starts it. The report tells threads in rows of {each}."
            )
        }
        Some((one, last)) if one == last => format!("Thread {one} of these ranks starts it."),
        _ => format!(
            "Threads {} of these ranks start it. How much each does is not known.",
            short(&root.thread_set)
        ),
    })
}

/// The waiting that a root cause started, by node: where it is, and above. Its ranks are known if the report lists
/// those that start nearly all of it.
fn at_its_place(report: &Report, tree: &CallTree, root: &RootCause) -> Vec<Option<Amount<f64>>> {
    let mut amounts = vec![None; tree.nodes.len()];
    let listed: f64 = root.ranks.iter().map(|one| one.severity_s).sum();
    let is_listed = listed >= NEARLY_ALL * root.severity_s;
    let spread = || {
        let each = tree.ranks_per_class.max(1);
        let mut classes = vec![0.0; report.run.ranks.div_ceil(each) as usize];
        let mut ranks = vec![0.0; report.run.ranks as usize];
        for one in &root.ranks {
            let rank = ranks.get_mut(one.rank as usize)?;
            *rank += one.severity_s;
            let first = one.rank / each * each;
            let count = each.min(report.run.ranks - first);
            classes[(one.rank / each) as usize] += one.severity_s / f64::from(count);
        }
        let largest = (0..)
            .zip(&ranks)
            .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        let (max_rank, max) = largest.map(|(rank, most)| (rank, *most))?;
        ranks.sort_by(f64::total_cmp);
        let middle = ranks[(ranks.len() - 1) / 2] + ranks[ranks.len() / 2];
        let of_thread =
            |mean: &f64| thread_of(tree, root).map(|at| [vec![0.0; at], vec![*mean]].concat());
        Some(Spread {
            min: *ranks.first()?,
            median: middle / 2.0,
            max,
            max_rank,
            threads: classes.iter().filter_map(of_thread).collect(),
            classes,
        })
    };
    let spread = Some(()).filter(|()| is_listed).and_then(|()| spread());
    let place = place_of_cause(report, root);
    let mut next = Some(place);
    while let Some(at) = next {
        let exclusive = if at == place { root.severity_s } else { 0.0 };
        amounts[at] = Some(Amount {
            inclusive: root.severity_s,
            exclusive,
            ranks: spread.clone(),
        });
        next = tree.nodes[at].parent.map(|above| above as usize);
    }
    amounts
}

impl Asked for Tree {
    /// The head's report tells all.
    type Part = ();

    fn part(&self, _: &Share, _: &Stop) -> Result<()> {
        Ok(())
    }

    fn answer(&self, share: &Share, (): ()) -> Result<Value> {
        let report = share.report()?;
        let tree = report.call_tree.as_ref();
        let tree = tree.context("the report has no call tree: analyze the trace again")?;
        let all = metrics(report);
        let metric = all
            .iter()
            .find(|metric| metric.id == self.metric || metric.key.as_ref() == Some(&self.metric));
        let metric = metric.context("the report has no such metric")?;
        anyhow::ensure!(!tree.nodes.is_empty(), "the call tree is empty");
        let amount = |at: usize| metric.amounts.get(at).cloned().flatten();
        let other = share.against().filter(|other| other.call_tree.is_some());
        let others = other.map(metrics).unwrap_or_default();
        // Other runs have other root causes.
        let same_metric = |id: &str| {
            let is_it =
                |other: &&Metric| other.id == id && other.parent.as_deref() != Some("caused");
            others.iter().find(is_it)
        };
        let other_nodes = other.and_then(|other| Some(&other.call_tree.as_ref()?.nodes[..]));
        let same = other_nodes.map(|other| against::same(&tree.nodes, other));
        let rows = all.iter().filter_map(|metric| {
            let before = same_metric(&metric.id).and_then(Metric::whole);
            Some(json!({
                "id": metric.id,
                "key": metric.key,
                "parent": metric.parent,
                "name": metric.name,
                "unit": metric.unit,
                "whole": metric.whole()?,
                "before": before,
            }))
        });
        let other_metric = same_metric(&metric.id);
        // Inclusive and exclusive at the same place of the other run.
        let before = |at: usize| {
            let at = same.as_ref()?[at]?;
            let amount = other_metric?.amounts.get(at)?.clone().unwrap_or_default();
            Some([amount.inclusive, amount.exclusive])
        };
        let names = names::of_nodes(tree);
        let kept = largest(tree, &amount);
        let longest = longest(kept.iter().map(|&at| &tree.nodes[at].name[..]));
        let nodes = kept.iter().map(|&at| {
            let node = &tree.nodes[at];
            let amount = amount(at).unwrap_or_default();
            let spread = amount.ranks.as_ref();
            json!([
                at,
                node.parent,
                node.kind,
                cut(&node.name, longest),
                amount.inclusive,
                amount.exclusive,
                spread.map(|spread| json!([
                    spread.min,
                    spread.median,
                    spread.max,
                    spread.max_rank
                ])),
                before(at),
                names[at],
            ])
        });
        // What is there no more, or never was, is told as none, and the ranks are those of the whole run.
        let chosen = match &self.place {
            Some(place) => names.iter().position(|name| name == place),
            None => Some(self.node.unwrap_or(0)).filter(|at| *at < names.len()),
        };
        let spread = amount(chosen.unwrap_or(0)).and_then(|amount| amount.ranks);
        let extremes = spread.as_ref();
        let extremes = extremes.map(|one| json!([one.min, one.median, one.max, one.max_rank]));
        Ok(json!({
            "metric": metric.id,
            "key": metric.key,
            "against": share.against().map(|other| short(&words::command(&other.run))),
            "unit": metric.unit,
            "metrics": rows.collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
            "nodes_in_report": tree.nodes.len(),
            "node": chosen,
            "place": chosen.map(|at| &names[at]),
            "ranks_per_class": tree.ranks_per_class,
            "spread": extremes,
            "system": spread.map_or_else(|| json!([]), |spread| system(share, tree, spread, metric.untold.is_none())),
            "untold_threads": metric.untold,
        }))
    }
}

/// Characters of each name, so that all of them fit: those of templates may be long.
fn longest<'n>(names: impl Iterator<Item = &'n str> + Clone) -> usize {
    let bytes = |most: usize| -> usize { names.clone().map(|name| cut(name, most).len()).sum() };
    let mut longest = LONGEST;
    while longest > 1 && bytes(longest) > NAMES {
        longest /= 2;
    }
    longest
}

/// Positions of the nodes with most of a metric, and of all above them, ascending.
fn largest(tree: &CallTree, amount: &impl Fn(usize) -> Option<Amount<f64>>) -> Vec<usize> {
    let of = |at: &usize| amount(*at).map_or(0.0, |amount| amount.inclusive);
    let mut order: Vec<usize> = (0..tree.nodes.len()).collect();
    order.sort_by(|a, b| of(b).total_cmp(&of(a)).then(a.cmp(b)));
    order.truncate(NODES);
    // What is above has as much: of equal ones, it comes first.
    order.sort_unstable();
    let kept = |at: usize| order.binary_search(&at).is_ok();
    let has_parent = |at: &usize| {
        tree.nodes[*at]
            .parent
            .is_none_or(|above| kept(above as usize))
    };
    order.iter().copied().filter(has_parent).collect()
}

/// Means of a rank by classes of successive ranks, with their hosts, and of their threads, if these are known.
fn system(share: &Share, tree: &CallTree, spread: Spread<f64>, has_threads: bool) -> Value {
    let count = tree.ranks_per_class.max(1);
    let last = share.events().ranks().saturating_sub(1);
    let placed = &share.events().placed;
    let mut of_class = spread.threads.into_iter();
    let rows = (0..).zip(spread.classes).map(|(class, mean)| {
        let first: u32 = class * count;
        let at = placed.partition_point(|one| one.rank < first);
        let until = placed.partition_point(|one| one.rank <= first.saturating_add(count - 1));
        let host = |at: usize| placed.get(at).map_or("", |_| share.host(at));
        let host = match [host(at), host(until.saturating_sub(1).max(at))] {
            [one, same] if one == same => one.to_owned(),
            [from, to] => format!("{from} … {to}"),
        };
        let last = first.saturating_add(count - 1).min(last);
        let locations = share.of_ranks(first, last);
        let means = of_class.next().unwrap_or_default();
        let threads = match has_threads {
            true => of_threads(tree, placed, locations, &means),
            false => Vec::new(),
        };
        json!({
            "host": short(&host),
            "first": first,
            "last": last,
            "locations": locations,
            "mean": mean,
            "threads": threads,
        })
    });
    rows.collect()
}

/// Means of a thread of some ranks by classes of successive threads: first and last of them, first and last
/// location, mean. Those of several ranks have the locations of all. None if no rank has several.
fn of_threads(
    tree: &CallTree,
    placed: &[Placed],
    (begin, end): (usize, usize),
    means: &[f64],
) -> Vec<Value> {
    let placed = placed.get(begin..=end).unwrap_or_default();
    let count = tree.threads_per_class.unwrap_or(1).max(1);
    let most = placed.iter().map(|one| one.thread).max().unwrap_or(0);
    let is_one = placed.first().map(|one| one.rank) == placed.last().map(|one| one.rank);
    let classes = match most {
        0 => 0..0,
        _ => 0..(most / count + 1).min(THREADS),
    };
    let rows = classes.map(|class| {
        let first = class * count;
        let last = first.saturating_add(count - 1).min(most);
        let before = |thread| begin + placed.partition_point(|one| one.thread < thread);
        let (from, until) = match is_one {
            true => (
                before(first),
                before(last.saturating_add(1)).saturating_sub(1),
            ),
            false => (begin, end),
        };
        let mean = means.get(class as usize).copied().unwrap_or(0.0);
        json!([first, last, from, until, mean])
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_tree_fit() {
        let name = "a".repeat(300);
        assert_eq!(longest([&name[..]; 100].into_iter()), LONGEST);
        assert_eq!(longest([&name[..]; NODES].into_iter()), LONGEST / 4);
        assert_eq!(longest(["main"; NODES].into_iter()), LONGEST);
    }
}
