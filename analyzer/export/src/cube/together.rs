//! What all calls at a place lost together, as the call tree of a report tells.

use std::cmp::Reverse;

use laggard_patterns::PatternId;
use laggard_report::{CallTree, NodeTime};
use rustc_hash::FxHashMap;

/// What a pattern has at a node of the call tree, without the nodes below.
pub struct Lost {
    pub pattern: PatternId,
    /// Its frames, outermost first.
    pub frames: Vec<String>,
    /// The call; empty if it is none.
    pub call: String,
    /// Positions of locations, and ns.
    pub of: Vec<(usize, i64)>,
}

/// All of it, by ranks and threads of locations. Where the tree has the mean of several, each has that.
pub fn lost(tree: &CallTree, places: &[(u32, u32)]) -> Vec<Lost> {
    let metrics = tree.metrics.iter().filter_map(|metric| {
        let pattern = PatternId::from_id(&metric.id)?;
        PatternId::TOGETHER
            .contains(&pattern)
            .then_some((pattern, &metric.nodes))
    });
    let of_nodes = metrics.flat_map(|(pattern, nodes)| {
        let nodes_with = nodes.iter().filter(|at| at.time_s.exclusive > 0.0);
        nodes_with.map(move |at| {
            let (frames, call) = path(tree, at.node);
            let of = shared(tree, (at, nodes), places);
            Lost {
                pattern,
                frames,
                call,
                of,
            }
        })
    });
    of_nodes.collect()
}

/// The frames of a node, outermost first, and its call. Parents have lower numbers.
fn path(tree: &CallTree, node: u32) -> (Vec<String>, String) {
    let (mut frames, mut call) = (Vec::new(), String::new());
    let mut next = Some(node);
    while let Some((at, node)) = next.and_then(|at| Some((at, tree.nodes.get(at as usize)?))) {
        match &*node.kind {
            "frame" => frames.push(node.name.clone()),
            "call" => call.clone_from(&node.name),
            _ => {}
        }
        next = node.parent.filter(|&parent| parent < at);
    }
    frames.reverse();
    (frames, call)
}

/// The time at a node by location: all of it, and in proportion to what the tree has of each.
fn shared(
    tree: &CallTree,
    (at, all): (&NodeTime, &[NodeTime]),
    places: &[(u32, u32)],
) -> Vec<(usize, i64)> {
    let is_below = |other: &&NodeTime| {
        let node = tree.nodes.get(other.node as usize);
        node.is_some_and(|node| node.parent == Some(at.node))
    };
    let below: Vec<&NodeTime> = all.iter().filter(is_below).collect();
    let whole = ns(at.time_s.exclusive);
    let mut first: FxHashMap<u32, u32> = FxHashMap::default();
    let parts = places.iter().enumerate().map(|(location, &place)| {
        let first = *first.entry(place.0).or_insert(place.1);
        let of = |one: &NodeTime| mean(tree, one, place, first);
        let own = of(at) - below.iter().map(|one| of(one)).sum::<i64>();
        (location, own.max(0))
    });
    let parts: Vec<(usize, i64)> = parts.filter(|(_, part)| *part > 0).collect();
    let sum: i128 = parts.iter().map(|(_, part)| i128::from(*part)).sum();
    let share = |part: i64| (i128::from(whole) * i128::from(part) / sum.max(1)) as i64;
    let mut shares: Vec<(usize, i64)> = parts.iter().map(|&(at, part)| (at, share(part))).collect();
    let left = whole - shares.iter().map(|(_, share)| share).sum::<i64>();
    let largest = shares.iter_mut().min_by_key(|(_, share)| Reverse(*share));
    if let Some((_, share)) = largest {
        *share += left;
    }
    shares
}

/// What the tree has of a thread, with the nodes below.
fn mean(tree: &CallTree, of: &NodeTime, (rank, thread): (u32, u32), first: u32) -> i64 {
    let Some(spread) = &of.time_s.ranks else {
        return 0;
    };
    let class = (rank / tree.ranks_per_class.max(1)) as usize;
    let of_class = match tree
        .threads_per_class
        .filter(|_| !spread.threads.is_empty())
    {
        Some(each) => {
            let threads = spread.threads.get(class);
            threads.and_then(|of| of.get((thread / each.max(1)) as usize))
        }
        None => spread.classes.get(class).filter(|_| thread == first),
    };
    of_class.copied().map_or(0, ns)
}

fn ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use laggard_report::{Amount, CallNode, Spread, TreeMetric};

    use super::*;

    fn time(
        node: u32,
        [inclusive, exclusive]: [f64; 2],
        classes: &[f64],
        threads: &[&[f64]],
    ) -> NodeTime {
        let ranks = Spread {
            classes: classes.to_vec(),
            threads: threads.iter().map(|of| of.to_vec()).collect(),
            ..Spread::default()
        };
        NodeTime {
            node,
            time_s: Amount {
                inclusive,
                exclusive,
                ranks: Some(ranks),
            },
        }
    }

    /// By frames and call: locations, and ns.
    fn found(tree: &CallTree, places: &[(u32, u32)]) -> Vec<(String, Vec<(usize, i64)>)> {
        let lost = lost(tree, places).into_iter();
        lost.map(|lost| {
            assert_eq!(lost.pattern, PatternId::Storage);
            let path = format!("{} > {}", lost.frames.join(" > "), lost.call);
            (path, lost.of)
        })
        .collect()
    }

    fn tree(times: Vec<NodeTime>) -> CallTree {
        let node = |parent, kind: &str, name: &str| CallNode {
            parent,
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..CallNode::default()
        };
        let of = |id: &str| TreeMetric {
            id: id.to_owned(),
            nodes: times.clone(),
            ..TreeMetric::default()
        };
        CallTree {
            ranks_per_class: 1,
            nodes: vec![
                node(None, "run", ""),
                node(Some(0), "frame", "main a.c:1"),
                node(Some(1), "frame", "save a.c:2"),
                node(Some(2), "call", "MPI_File_write"),
            ],
            // Single calls tell of late senders.
            metrics: vec![of("late_sender"), of("storage")],
            ..CallTree::default()
        }
    }

    #[test]
    fn nodes_have_what_is_not_below_them() {
        let tree = tree(vec![
            time(0, [5e-9, 0.0], &[4e-9, 1e-9], &[]),
            time(1, [5e-9, 0.0], &[4e-9, 1e-9], &[]),
            time(2, [5e-9, 2e-9], &[4e-9, 1e-9], &[]),
            time(3, [3e-9, 3e-9], &[2e-9, 1e-9], &[]),
        ]);
        let expected = [
            ("main a.c:1 > save a.c:2 > ".to_owned(), vec![(0, 2)]),
            (
                "main a.c:1 > save a.c:2 > MPI_File_write".to_owned(),
                vec![(0, 2), (2, 1)],
            ),
        ];
        assert_eq!(found(&tree, &[(0, 0), (0, 1), (1, 0)]), expected);
    }

    #[test]
    fn classes_share_all_of_it() {
        let mut tree = tree(vec![time(3, [1e-8, 1e-8], &[3e-9], &[])]);
        tree.ranks_per_class = 4;
        let of = vec![(0, 4), (1, 3), (2, 3)];
        assert_eq!(found(&tree, &[(0, 0), (1, 0), (2, 0)])[0].1, of);
        tree.threads_per_class = Some(1);
        tree.metrics[1].nodes = vec![time(3, [1e-8, 1e-8], &[1e-8], &[&[0.0, 7e-9, 3e-9]])];
        let of = vec![(1, 7), (2, 3)];
        assert_eq!(found(&tree, &[(0, 0), (0, 1), (0, 2)])[0].1, of);
    }
}
