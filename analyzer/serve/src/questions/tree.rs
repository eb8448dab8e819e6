//! The three panes of a profile: what is measured, where in the program, where in the machine. All
//! numbers are those of the report.

use anyhow::{Context, Result};
use laggard_engine::events::Placed;
use laggard_overlay::Stop;
use laggard_report::{Amount, CallNode, CallTree, Spread, words};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, LONGEST, cut, short};
use crate::against;
use crate::share::Share;

/// Most nodes of the call tree: those with most of the metric.
const NODES: usize = 500;
/// Most bytes of all their names.
const NAMES: usize = 40_000;

/// Most rows of threads of a rank.
const THREADS: u32 = 512;

/// Asks for a metric, by place in the program, and for one of these by ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tree {
    /// What is measured: `time`, `waiting`, `caused`, `calls` or `bytes`.
    pub metric: String,
    /// Position of the node whose ranks are asked for; the whole run.
    pub node: Option<usize>,
}

/// A metric: its name, its unit, and its amount at a node.
type Metric = (
    &'static str,
    &'static str,
    fn(&CallNode) -> Option<Amount<f64>>,
);

/// All of them.
const METRICS: [Metric; 5] = [
    ("time", "s", |node| Some(node.time_s.clone())),
    ("waiting", "s", |node| Some(node.waiting_s.clone())),
    ("caused", "s", |node| node.caused_s.clone()),
    ("calls", "", |node| Some(node.calls.as_f64())),
    ("bytes", "B", |node| Some(node.bytes.as_f64())),
];

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
        let names = || METRICS.map(|(name, ..)| name).join(", ");
        let metric = METRICS.iter().find(|(name, ..)| *name == self.metric);
        let (name, unit, amount) =
            metric.with_context(|| format!("metric is one of {}", names()))?;
        let run = tree.nodes.first().context("the call tree is empty")?;
        let other = share.against().and_then(|other| other.call_tree.as_ref());
        let other = other.map(|other| &other.nodes[..]);
        let same = other.map(|other| against::same(&tree.nodes, other));
        let metrics = METRICS.iter().filter_map(|(name, unit, amount)| {
            let whole = amount(run)?.inclusive;
            let before = other.and_then(|other| Some(amount(other.first()?)?.inclusive));
            Some(json!({"name": name, "unit": unit, "whole": whole, "before": before}))
        });
        // Inclusive and exclusive at the same place of the other run.
        let before = |at: usize| {
            let node = &other?[same.as_ref()?[at]?];
            let amount = amount(node)?;
            Some([amount.inclusive, amount.exclusive])
        };
        let kept = largest(tree, *amount);
        let longest = longest(kept.iter().map(|&at| &tree.nodes[at].name[..]));
        let nodes = kept.iter().map(|&at| {
            let node = &tree.nodes[at];
            let amount = amount(node).unwrap_or_default();
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
            ])
        });
        let chosen = tree
            .nodes
            .get(self.node.unwrap_or(0))
            .context("no such node")?;
        let spread = amount(chosen).and_then(|amount| amount.ranks);
        let extremes = spread.as_ref();
        let extremes = extremes.map(|one| json!([one.min, one.median, one.max, one.max_rank]));
        Ok(json!({
            "metric": name,
            "against": share.against().map(|other| short(&words::command(&other.run))),
            "unit": unit,
            "metrics": metrics.collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
            "nodes_in_report": tree.nodes.len(),
            "node": self.node.unwrap_or(0),
            "ranks_per_class": tree.ranks_per_class,
            "spread": extremes,
            "system": spread.map_or_else(|| json!([]), |spread| system(share, tree, spread)),
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
fn largest(tree: &CallTree, amount: fn(&CallNode) -> Option<Amount<f64>>) -> Vec<usize> {
    let of = |at: &usize| amount(&tree.nodes[*at]).map_or(0.0, |amount| amount.inclusive);
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

/// Means of a rank by classes of successive ranks, with their hosts, and of their threads.
fn system(share: &Share, tree: &CallTree, spread: Spread<f64>) -> Value {
    let count = tree.ranks_per_class.max(1);
    let last = share.events().ranks().saturating_sub(1);
    let placed = &share.events().placed;
    let mut threads = spread.threads.into_iter();
    let rows = (0..).zip(spread.classes).map(|(class, mean)| {
        let first: u32 = class * count;
        let at = placed.partition_point(|one| one.rank < first);
        let host = placed.get(at).map_or("", |_| share.host(at));
        let last = first.saturating_add(count - 1).min(last);
        let locations = share.of_ranks(first, last);
        let means = threads.next().unwrap_or_default();
        json!({
            "host": short(host),
            "first": first,
            "last": last,
            "locations": locations,
            "mean": mean,
            "threads": of_threads(tree, placed, locations, &means),
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
