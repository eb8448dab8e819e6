//! Named regions in call paths: chains of open ones, and their positions in a path.

use laggard_callpath::{PathId, Tracer};

use super::{MOST_PATHS, Regions};
use crate::stream::Stream;

impl Regions {
    /// Whether a node belongs to this region.
    pub(super) fn is_node_of(&self, node: u32, region: u32) -> bool {
        let node = (node as usize).checked_sub(1);
        node.is_some_and(|at| self.nodes[at].region == region)
    }

    /// The node of the innermost open named region.
    pub(super) fn node(&self) -> u32 {
        let open = self.open.iter().rev();
        open.map(|open| open.node)
            .find(|&node| node != 0)
            .unwrap_or(0)
    }

    /// Names to put into a path, each with the frame that it encloses; outermost first.
    fn names(
        &self,
        mut node: u32,
        depth: usize,
        tracer: &Tracer,
        path: PathId,
    ) -> Vec<(usize, &str)> {
        let path = tracer.frames(path);
        let mut names = Vec::new();
        while let Some(found) = (node as usize).checked_sub(1).map(|at| &self.nodes[at])
            && names.len() < depth
        {
            let begun = tracer.frames(found.begun);
            names.push((position(path, begun, depth), &*found.name));
            node = found.outer;
        }
        // A chain out of order began in functions that have returned.
        for at in 1..names.len() {
            names[at].0 = names[at].0.max(names[at - 1].0);
        }
        names.reverse();
        names
    }
}

/// Number of frames of `path`, innermost first, that a region begun at `begun` encloses: the
/// frames of functions that its own function called. Its own function contains the innermost
/// line from which both paths were called.
fn position<F: PartialEq>(path: &[F], begun: &[F], depth: usize) -> usize {
    if path.len() < depth && begun.len() < depth {
        let ends = path.iter().rev().zip(begun.iter().rev());
        let common = ends.take_while(|(one, other)| one == other).count();
        path.len().saturating_sub(common + 1)
    } else {
        // The outermost frames are cut off.
        let outer = begun.get(1..).unwrap_or(&[]);
        let fits = |at: &usize| {
            let rest = &path[at + 1..];
            let common = rest.len().min(outer.len());
            rest[..common] == outer[..common]
        };
        (0..path.len()).find(fits).unwrap_or(path.len())
    }
}

impl Stream {
    /// The path of a call within the named regions that are open.
    #[cold]
    #[inline(never)]
    pub(in crate::stream) fn path_within(&mut self, path: PathId) -> PathId {
        let (within, depth) = (self.within, self.depth);
        let Some(regions) = &mut self.regions else {
            return path;
        };
        if path == PathId::EMPTY {
            return path;
        }
        let key = (path.0, within);
        if let Some(&known) = regions.paths.get(&key) {
            return known;
        }
        if regions.paths.len() >= MOST_PATHS {
            return path;
        }
        let names = regions.names(within, depth, &self.tracer, path);
        let found = self.tracer.with_names(path, &names);
        regions.paths.insert(key, found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_frames_between_functions() {
        // The region begins in `f` at line 1; `main` calls `f` at line 9.
        let begun = ["f 1", "main 9"];
        assert_eq!(position(&["g 4", "f 2", "main 9"], &begun, 16), 1);
        assert_eq!(position(&["h 5", "g 4", "f 2", "main 9"], &begun, 16), 2);
        assert_eq!(position(&["f 3", "main 9"], &begun, 16), 0);
        // After `f` has returned, the region belongs to the caller of `f`.
        assert_eq!(position(&["main 10"], &begun, 16), 0);
        assert_eq!(position(&["g 4", "main 10"], &begun, 16), 1);
        assert_eq!(position(&["h 5", "g 4", "main 10"], &begun, 16), 2);
        // If the path is cut off, the remaining frames must match.
        assert_eq!(position(&["h 5", "g 4", "f 2"], &begun, 3), 2);
        assert_eq!(position(&["g 4", "f 2", "main 9"], &begun, 3), 1);
    }
}
