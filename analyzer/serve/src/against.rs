//! The amounts that another run has where this one has them.

use laggard_experiments::matching::function_of;
use laggard_report::CallNode;
use rustc_hash::FxHashMap;

/// A place: what is above it, and its own kind and name.
type Path = Vec<(String, String)>;

/// Finds the nodes of another tree that are those of `own`, by position; `None` where there is no such one, or
/// nobody can say which.
///
/// Nodes are the same with the same names on the way down, lines included. Of others, those are whose functions are
/// the same on the whole way, if no second one in either tree has the same: lines move when a program is changed.
pub fn same(own: &[CallNode], other: &[CallNode]) -> Vec<Option<usize>> {
    let exact = [own, other].map(|nodes| paths(nodes, |node| node.name.clone()));
    let by_function = [own, other].map(|nodes| {
        paths(nodes, |node| match &node.kind[..] {
            "frame" => function_of(&node.name),
            _ => node.name.clone(),
        })
    });
    let known = |paths: &[Path]| -> FxHashMap<Path, Vec<usize>> {
        let mut known: FxHashMap<Path, Vec<usize>> = FxHashMap::default();
        for (at, path) in paths.iter().enumerate() {
            known.entry(path.clone()).or_default().push(at);
        }
        known
    };
    let exactly = known(&exact[1]);
    let [own_functions, others_functions] = by_function.each_ref().map(|paths| known(paths));
    let only = |found: Option<&Vec<usize>>| match found.map(|all| &all[..]) {
        Some([one]) => Some(*one),
        _ => None,
    };
    let of = |at: usize| {
        let same = exactly
            .get(&exact[0][at])
            .and_then(|all| all.first().copied());
        same.or_else(|| {
            only(own_functions.get(&by_function[0][at]))?;
            only(others_functions.get(&by_function[0][at]))
        })
    };
    (0..own.len()).map(of).collect()
}

/// The path of each node, by position.
fn paths(nodes: &[CallNode], name: impl Fn(&CallNode) -> String) -> Vec<Path> {
    let mut paths: Vec<Path> = Vec::with_capacity(nodes.len());
    for node in nodes {
        // What is above comes first.
        let above = node.parent.and_then(|above| paths.get(above as usize));
        let mut path = above.cloned().unwrap_or_default();
        path.push((node.kind.clone(), name(node)));
        paths.push(path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(nodes: &[(Option<u32>, &str, &str)]) -> Vec<CallNode> {
        let nodes = nodes.iter().map(|(parent, kind, name)| CallNode {
            parent: *parent,
            kind: (*kind).to_owned(),
            name: (*name).to_owned(),
            ..CallNode::default()
        });
        nodes.collect()
    }

    #[test]
    fn places_are_found_again_when_lines_have_moved() {
        let before = tree(&[
            (None, "run", ""),
            (Some(0), "frame", "main a.c:7"),
            (Some(1), "call", "MPI_Recv"),
            (Some(0), "frame", "step a.c:9"),
            (Some(3), "call", "MPI_Send"),
            (Some(0), "frame", "step a.c:12"),
            (Some(5), "call", "MPI_Send"),
            (Some(0), "frame", "gone a.c:40"),
        ]);
        let after = tree(&[
            (None, "run", ""),
            (Some(0), "frame", "main a.c:8"),
            (Some(1), "call", "MPI_Recv"),
            (Some(1), "call", "MPI_Bcast"),
            (Some(0), "frame", "step a.c:12"),
            (Some(4), "call", "MPI_Send"),
            (Some(0), "frame", "step a.c:15"),
        ]);
        let found = same(&after, &before);
        // Of the two calls in `step`, one is where it was; which the other one is nobody knows.
        let expected = [Some(0), Some(1), Some(2), None, Some(5), Some(6), None];
        assert_eq!(found, expected);
        assert!(same(&after, &[]).iter().all(Option::is_none));
    }
}
