//! Parallel regions of OpenMP around the calls that the report names.

use std::collections::BTreeMap;

use laggard_comm::Filter;
use laggard_comm::filters::Ranks;
use laggard_report::{ParallelRegion, rank_ranges};
use laggard_trace::Signature;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::findings::places::Places;
use crate::stream::within::Within;

/// Most regions that are told of a call.
const MOST: usize = 4;

/// A call and its place.
pub type Site = (u16, PathKey);

/// By call, and by where the region begins: its threads that make the call.
pub type Regions = BTreeMap<Site, BTreeMap<PathKey, Members>>;

/// Threads of a region that make a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// Threads of the largest team.
    size: u32,
    /// Numbers of those that make the call.
    numbers: Ranks,
}

impl Filter for Members {
    fn merge(&mut self, other: Members) {
        self.size = self.size.max(other.size);
        self.numbers.merge(other.numbers);
    }
}

/// Adds the regions of a location's calls, whose signatures are `named`.
pub fn add(
    regions: &mut Regions,
    within: &Within,
    signatures: &[Signature],
    named: impl Fn(u32) -> Site,
) {
    for (call, region) in within.found() {
        let team = signatures[region as usize].parameter as u64;
        // Of idle threads, older traces do not tell which they are.
        if team != 0 {
            let members = Members {
                size: team as u32,
                numbers: Ranks::of((team >> 32) as u32),
            };
            let of_call = regions.entry(named(call)).or_default();
            of_call.entry(named(region).1).or_default().merge(members);
        }
    }
}

/// Renames call paths.
pub fn rename_paths(regions: &mut Regions, name: impl Fn(PathKey) -> PathKey) {
    for ((operation, path), of_call) in std::mem::take(regions) {
        let known = regions.entry((operation, name(path))).or_default();
        for (region, members) in of_call {
            known.entry(name(region)).or_default().merge(members);
        }
    }
}

/// The call paths of the begins of all regions.
pub fn paths(regions: &Regions) -> impl Iterator<Item = PathKey> {
    regions.values().flat_map(|of_call| of_call.keys().copied())
}

/// The regions of a call as rows of the report, in the order of their lines. The thread that forks a team is told by
/// its call, others by the code of the region: these are one line.
pub fn rows(regions: &Regions, site: Site, places: &mut Places) -> Vec<ParallelRegion> {
    let mut by_line: BTreeMap<(String, u32, String), Members> = BTreeMap::new();
    for (&region, members) in regions.get(&site).into_iter().flatten() {
        let place = places.of(region);
        let line = (place.file, place.line, place.function);
        by_line.entry(line).or_default().merge(members.clone());
    }
    let rows = by_line.into_iter().take(MOST);
    let row = |((file, line, function), members): (_, Members)| ParallelRegion {
        file,
        line,
        function,
        threads: members.size,
        thread_set: rank_ranges(members.numbers.0.iter()),
    };
    rows.map(row).collect()
}
