//! Groups that have more members on a host than it has cores.
//!
//! Their members take turns. If waiting members leave their cores to the others, a call takes a
//! little longer, and that is its cost there. If they do not, a call lasts until the system has
//! given every member a slice of time. That is no cost of the call and differs from run to run. It
//! depends on the MPI library, its build and its settings, so a trial decides.

use std::collections::BTreeMap;

use laggard_comm as comm;
use laggard_report::units::duration;

use super::benchmarks::call;
use super::clock;
use super::groups::Group;
use super::world::Members;

/// Calls of the trial …
const TRIED: usize = 24;
/// … of which a quarter must be shorter than this, ns: less than the shortest slice of time that
/// systems give, and more than such calls take on a host.
const SLICE: i64 = 300_000;

/// A group whose members keep their cores. Nothing is measured in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its position.
    pub group: usize,
    /// Time of a barrier and an exchange together, ns.
    pub time: i64,
}

/// Whether a host has more members of a group than cores, so that they cannot begin together.
pub fn is_crowded(group: &Group, hosts: &[String]) -> bool {
    let mut members: BTreeMap<&str, usize> = BTreeMap::new();
    for &rank in &group.ranks {
        *members.entry(&hosts[rank]).or_default() += 1;
    }
    members.values().any(|&count| count > comm::cores())
}

/// Tries whether waiting members leave their cores. If not, returns the duration of calls at rank
/// 0, ns. Collective.
pub fn time_with_slices(members: &Members) -> Option<i64> {
    let mut times = Vec::new();
    for _ in 0..TRIED {
        members.broadcast(&mut [0]);
        let began = clock::now();
        call!(MPI_Barrier(members.comm));
        members.all_gather(&[0; 8]);
        let mut slowest = [clock::now() - began];
        members.maximum(&mut slowest);
        times.push(slowest[0]);
    }
    has_slices(times)
}

/// The first quartile of the times, if it contains slices of time.
fn has_slices(mut times: Vec<i64>) -> Option<i64> {
    times.sort_unstable();
    times
        .get(times.len() / 4)
        .copied()
        .filter(|&time| time >= SLICE)
}

/// A sentence on the groups in which nothing is measured.
pub fn note(kept: &[Kept], groups: &[Group], ranks: usize) -> Option<String> {
    let longest = kept.iter().map(|kept| kept.time).max()?;
    let mut sizes: Vec<usize> = kept.iter().map(|kept| groups[kept.group].size()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    Some(format!(
        "of {ranks} ranks groups of {} are left out: they have more members than a host has cores, \
         and who waits keeps its core, so that a barrier and an exchange of 8 bytes take {}; their \
         calls are judged as without a table",
        sizes.join(", "),
        duration(longest as f64 / 1e9),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_baselines::Span;

    #[test]
    fn slices_are_told_from_other_work_in_between() {
        // Another process had a core for most of the time, but not always.
        let disturbed = [vec![20_000; 7], vec![4_000_000; 17]].concat();
        assert_eq!(has_slices(disturbed), None);
        let slices = [vec![20_000; 3], vec![4_000_000; 21]].concat();
        assert_eq!(has_slices(slices), Some(4_000_000));
    }

    #[test]
    fn a_note_names_groups_and_times() {
        let group = |size: usize| Group {
            ranks: (0..size).collect(),
            span: Span::IntraNode,
            members: None,
        };
        let groups = [group(2), group(3), group(4)];
        assert_eq!(note(&[], &groups, 4), None);
        let kept = [(1, 4_000_000), (2, 9_000_000)];
        let kept = kept.map(|(group, time)| Kept { group, time });
        let note = note(&kept, &groups, 4).unwrap();
        assert!(
            note.starts_with("of 4 ranks groups of 3, 4 are left out"),
            "{note}"
        );
        assert!(note.contains("9.00 ms"), "{note}");
    }
}
