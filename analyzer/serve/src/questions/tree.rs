//! The three panes of a profile: what is measured, where in the program, where in the machine. All
//! numbers are those of the report.

use anyhow::{Context, Result};
use laggard_overlay::Stop;
use laggard_report::{Amount, CallNode, CallTree, words};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, LONGEST, cut, short};
use crate::against;
use crate::share::Share;

/// Most nodes of the call tree: those with most of the metric.
const NODES: usize = 500;
/// Most bytes of all their names.
const NAMES: usize = 40_000;

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
    ("calls", "", |node| Some(in_numbers(&node.calls))),
    ("bytes", "B", |node| Some(in_numbers(&node.bytes))),
];

fn in_numbers(amount: &Amount<u64>) -> Amount<f64> {
    Amount {
        inclusive: amount.inclusive as f64,
        exclusive: amount.exclusive as f64,
        ranks: amount.ranks.as_ref().map(|spread| laggard_report::Spread {
            min: spread.min as f64,
            median: spread.median as f64,
            max: spread.max as f64,
            max_rank: spread.max_rank,
            classes: spread.classes.iter().map(|&one| one as f64).collect(),
        }),
    }
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
        Ok(json!({
            "metric": name,
            "against": share.against().map(|other| short(&words::command(&other.run))),
            "unit": unit,
            "metrics": metrics.collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
            "nodes_in_report": tree.nodes.len(),
            "node": self.node.unwrap_or(0),
            "system": system(share, tree, spread.map(|spread| spread.classes).unwrap_or_default()),
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

/// Means of a rank by classes of successive ranks, with their hosts.
fn system(share: &Share, tree: &CallTree, classes: Vec<f64>) -> Value {
    let count = tree.ranks_per_class.max(1);
    let last = share.events().ranks().saturating_sub(1);
    let placed = &share.events().placed;
    let rows = (0..).zip(classes).map(|(class, mean)| {
        let first: u32 = class * count;
        let at = placed.partition_point(|one| one.rank < first);
        let host = placed.get(at).map_or("", |_| share.host(at));
        let last = first.saturating_add(count - 1).min(last);
        json!({
            "host": short(host),
            "first": first,
            "last": last,
            "locations": share.of_ranks(first, last),
            "mean": mean,
        })
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
