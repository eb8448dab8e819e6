//! Names that stay while a program goes on. Each report numbers places and root causes anew, and positions of
//! locations change whenever ranks or threads come.

use laggard_engine::events::Placed;
use laggard_report::{CallTree, RootCause};
use xxhash_rust::xxh3::xxh3_64;

/// Most rows of ranks and threads.
const ROWS: usize = 500;

/// A short name of a text.
fn named(text: &str) -> String {
    format!("{:012x}", xxh3_64(text.as_bytes()) >> 16)
}

/// Names of the nodes of a call tree, by their way from its root.
pub fn of_nodes(tree: &CallTree) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let above = node.parent.and_then(|above| names.get(above as usize));
        let above = above.map_or("", |above| above);
        names.push(named(&format!("{above} {} {}", node.kind, node.name)));
    }
    names
}

/// The name of a root cause: of who does what, where.
pub fn of_cause(root: &RootCause) -> String {
    let (at, until) = (&root.location, root.until.as_ref());
    let until = until.map(|until| (&until.operation, &until.location.callpath));
    let who = (&root.rank_set, &root.thread_set);
    let what = (&root.activity, &root.operation, until);
    let place = (&at.file, at.line, &at.function, &at.callpath);
    format!("rc-{}", named(&format!("{who:?} {what:?} {place:?}")))
}

/// Locations by position: first and last of successive ranks, and first and last of the threads that each has.
/// `None` if these are too many rows.
pub fn of_locations(placed: &[Placed]) -> Option<Vec<[u32; 4]>> {
    let mut rows: Vec<[u32; 4]> = Vec::new();
    for of_rank in placed.chunk_by(|a, b| a.rank == b.rank) {
        let begin = rows.len();
        for threads in of_rank.chunk_by(|a, b| a.thread + 1 == b.thread) {
            let (first, last) = (&threads[0], &threads[threads.len() - 1]);
            rows.push([first.rank, first.rank, first.thread, last.thread]);
        }
        if let Some([before, own]) = rows.get_mut(begin.saturating_sub(1)..)
            && before[1] + 1 == own[0]
            && before[2..] == own[2..]
        {
            before[1] = own[1];
            rows.pop();
        }
        if rows.len() > ROWS {
            return None;
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_the_same_threads_share_a_row() {
        let placed = |all: &[(u32, u32)]| -> Vec<Placed> {
            let one = |&(rank, thread): &(u32, u32)| Placed {
                rank,
                thread,
                agent: 0,
                host: 0,
            };
            all.iter().map(one).collect()
        };
        let rows = |all: &[(u32, u32)]| of_locations(&placed(all)).unwrap();
        assert_eq!(rows(&[]), [[0; 4]; 0]);
        assert_eq!(rows(&[(0, 0), (1, 0), (2, 0)]), [[0, 2, 0, 0]]);
        // Rank 2 has no trace; thread 1 of rank 3 has none.
        let odd = [(0, 0), (0, 1), (1, 0), (1, 1), (3, 0), (3, 2), (4, 0)];
        let told = [[0, 1, 0, 1], [3, 3, 0, 0], [3, 3, 2, 2], [4, 4, 0, 0]];
        assert_eq!(rows(&odd), told);
        let many: Vec<_> = (0..2000)
            .flat_map(|rank| (0..1 + rank % 2).map(move |thread| (rank, thread)))
            .collect();
        assert_eq!(of_locations(&placed(&many)), None);
    }
}
