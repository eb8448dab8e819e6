//! Circles of dependencies, as clocks may make them: who of those that wait for each other goes on.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::Provider;
use crate::lane::Lane;

/// What junctions need, of all that is known in a slab.
pub struct Circles {
    /// By junction: the calls that it needs. Location, number, and whether it is a moment in the
    /// call.
    calls: FxHashMap<u64, Vec<(u32, u64, bool)>>,
    /// By junction: the junctions that it needs.
    junctions: FxHashMap<u64, Vec<u64>>,
}

impl Circles {
    /// `chained` are junctions that need another one, by that.
    pub fn new(lanes: &[Lane], chained: &FxHashMap<u64, Vec<Provider>>) -> Circles {
        let mut found = Circles {
            calls: FxHashMap::default(),
            junctions: FxHashMap::default(),
        };
        for lane in lanes.iter().filter(|lane| !lane.is_done) {
            for open in lane.open() {
                let calls = found.calls.entry(open.junction).or_default();
                calls.push((lane.location, open.number, open.is_by_time));
            }
        }
        for (needed, by) in chained {
            for by in by {
                let junctions = found.junctions.entry(by.junction).or_default();
                junctions.push(*needed);
            }
        }
        found
    }

    /// A location in a circle, or one that waits for what never comes, if all wait that are not
    /// done. The last of its circle.
    pub fn member(&self, lanes: &[Lane]) -> usize {
        let last = lanes.iter().rposition(|lane| !lane.is_done);
        let mut at = last.unwrap_or_default();
        // The path of those who wait for the next one.
        let mut place: FxHashMap<usize, usize> = FxHashMap::default();
        let mut path = Vec::new();
        while place.insert(at, path.len()).is_none() {
            path.push(at);
            match self.awaited(lanes, lanes[at].needs) {
                Some(next) => at = next,
                None => return at,
            }
        }
        // The second time it was put in behind the end.
        let begin = path.iter().position(|&other| other == at).unwrap_or(0);
        path[begin..].iter().copied().max().unwrap_or(at)
    }

    /// The last location that a junction still waits for.
    fn awaited(&self, lanes: &[Lane], junction: u64) -> Option<usize> {
        let mut known = FxHashSet::from_iter([junction]);
        let mut open = vec![junction];
        let mut found = None;
        while let Some(junction) = open.pop() {
            for &(location, number, is_by_time) in self.calls.get(&junction).into_iter().flatten() {
                let lane = &lanes[location as usize];
                if !lane.is_done && lane.is_open(number, is_by_time) {
                    found = found.max(Some(location as usize));
                }
            }
            let more = self.junctions.get(&junction).into_iter().flatten();
            open.extend(more.filter(|junction| known.insert(**junction)));
        }
        found
    }
}
