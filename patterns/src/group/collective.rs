//! Collective data movement: which member needs which data.

use crate::Interval;
use crate::pattern::{Part, Pattern, Unit};

pub(crate) static WAIT_AT_NXN: Pattern = Pattern {
    id: "wait_at_nxn",
    parent: "group_comm",
    name: "Wait at N x N",
    summary: "Ranks waited in an all-to-all operation for the last one to arrive.",
    description: "In MPI_Allreduce, MPI_Alltoall, MPI_Allgather and the like everybody needs \
        data of everybody, so nobody can leave before the last member has entered. In a \
        neighbourhood operation it is the last neighbour. The reason is what the late member did \
        since the ranks were together before.",
    condition: "another member entered later: enter < last",
    severity: "min(last, leave) - enter, at each member. For a non-blocking form: the part of \
        the completing wait before the last member started.",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static NXN_COMPLETION: Pattern = Pattern {
    id: "nxn_completion",
    parent: "group_comm",
    name: "N x N completion",
    summary: "Ranks stayed in an all-to-all operation after the first was through.",
    description: "When the last member has entered and the first has left, the data has been \
        exchanged; what is spent after that is the library's algorithm, the network or \
        interference on the node. In a neighbourhood operation, last and first_out are of the \
        member and those whose data it needs; who left before all of these had entered is not \
        first_out.",
    condition: "leave > max(first_out, last)",
    severity: "leave - max(first_out, last), at each member",
    unit: Unit::Seconds,
    part: Part::End,
};

pub(crate) static LATE_BROADCAST: Pattern = Pattern {
    id: "late_broadcast",
    parent: "group_comm",
    name: "Late broadcast",
    summary: "Ranks waited in a broadcast or scatter for the root to arrive.",
    description: "Data goes from the root to everybody. Members that enter before the root wait \
        for it. The reason is what the root did before the call.",
    condition: "the root entered later, the member is not the root, and data is moved",
    severity: "min(enter(root), leave) - enter, at each member but the root",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static EARLY_REDUCE: Pattern = Pattern {
    id: "early_reduce",
    parent: "group_comm",
    name: "Early reduce",
    summary: "The root of a reduce or gather waited before anybody else was there.",
    description: "The root needs data of the others and entered before the first of them. Until \
        that one came, nothing could be done.",
    condition: "the root entered before all members that have data for it",
    severity: "min(earliest enter of those members, leave) - enter, at the root",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static LATE_REDUCE_CONTRIBUTION: Pattern = Pattern {
    id: "late_reduce_contribution",
    parent: "group_comm",
    name: "Late contribution to a reduce",
    summary: "The root of a reduce or gather waited for the last contribution.",
    description: "The root needs data of everybody. From the first contribution on it can work, \
        but it cannot leave before the last member has entered.",
    condition: "a member that has data entered later than the root and than the first of them",
    severity: "min(last, leave) - enter - early_reduce, at the root",
    unit: Unit::Seconds,
    part: Part::Within,
};

pub(crate) static EARLY_SCAN: Pattern = Pattern {
    id: "early_scan",
    parent: "group_comm",
    name: "Early scan",
    summary: "Ranks waited in a prefix operation for a lower rank.",
    description: "In MPI_Scan and MPI_Exscan each rank needs the contributions of all lower \
        ranks, and waits for the latest of them.",
    condition: "a lower rank entered later",
    severity: "min(latest enter of the lower ranks, leave) - enter, at each member",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_FOR_MEMBER: Pattern = Pattern {
    id: "wait_for_member",
    parent: "group_comm",
    name: "Wait for a member",
    summary: "Ranks could not go on in an operation with a root before others took or passed on data.",
    description: "In a broadcast, scatter, reduce or gather most ranks need nothing of most others. But the library \
        cannot hand over large data before who takes it is there, and data may go by a tree, through ranks that \
        come late. So members of a gather wait for a late root, the root of a broadcast for late members, and ranks \
        inside of a tree for both. The trace does not tell who passes data to whom: charged are those who \
        entered while the call lasted, and only what the call took longer than it should.",
    condition: "the call took longer than it should, and others of whom it needs no data entered while it lasted",
    severity: "min(last enter of these, leave - usual duration) - (enter + what other patterns charge). \
        If data goes to one, its enter counts first, then that of the others",
    unit: Unit::Seconds,
    part: Part::Within,
};

/// Late broadcast: `min(enter(root), leave) - enter`, ns. Only for a member that is not the root
/// and gets data, which the caller checks.
#[inline]
pub fn late_broadcast(own: Interval, root_enter: i64) -> i64 {
    own.before(root_enter)
}

/// Early reduce: `min(earliest enter of the others, leave) - enter`, ns, at the root.
#[inline]
pub fn early_reduce(root: Interval, earliest_other: i64) -> i64 {
    root.before(earliest_other)
}

/// Late contribution: `min(last, leave) - enter - early_reduce`, ns, at the root: its wait for the
/// last of the others beyond [`early_reduce`].
#[inline]
pub fn late_reduce_contribution(root: Interval, latest_other: i64, early_reduce: i64) -> i64 {
    root.clip(root.before(latest_other).saturating_sub(early_reduce))
}

/// Wait for a member: `min(last, leave - usual) - from`, ns, where other patterns charge the time until
/// `from`. `last` is the latest enter of the others that came before `own` ended, `usual` what such a
/// call takes when nobody is late, ns.
#[inline]
pub fn wait_for_member(own: Interval, from: i64, last: i64, usual: i64) -> i64 {
    let until = own.leave.saturating_sub(usual.max(0)).min(last);
    own.clip(until.saturating_sub(from.max(own.enter)))
}

/// Early scan: `min(latest enter of lower ranks, leave) - enter`, ns.
#[inline]
pub fn early_scan(own: Interval, latest_lower: i64) -> i64 {
    own.before(latest_lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_wait_for_the_root() {
        assert_eq!(late_broadcast(Interval::new(10, 100), 60), 50);
        assert_eq!(late_broadcast(Interval::new(60, 100), 60), 0);
        assert_eq!(late_broadcast(Interval::new(70, 100), 60), 0);
        assert_eq!(late_broadcast(Interval::new(10, 40), 60), 30);
    }

    #[test]
    fn root_waits_for_the_first_then_for_the_last() {
        let root = Interval::new(10, 100);
        let early = early_reduce(root, 40);
        assert_eq!(early, 30);
        assert_eq!(late_reduce_contribution(root, 90, early), 50);
        // With one other member, the first is the last.
        assert_eq!(late_reduce_contribution(root, 40, early), 0);
    }

    #[test]
    fn root_that_is_late_itself_did_not_wait() {
        let root = Interval::new(95, 100);
        assert_eq!(early_reduce(root, 40), 0);
        assert_eq!(late_reduce_contribution(root, 90, 0), 0);
        // The near miss: one member was there before the root, one came after it.
        assert_eq!(late_reduce_contribution(root, 97, 0), 2);
    }

    #[test]
    fn what_the_data_takes_is_no_wait_for_a_member() {
        let own = Interval::new(10, 100);
        assert_eq!(wait_for_member(own, 10, 60, 20), 50);
        // Another wait came before.
        assert_eq!(wait_for_member(own, 40, 60, 20), 20);
        assert_eq!(wait_for_member(own, 70, 60, 20), 0);
        // Somebody came while the data was under way.
        assert_eq!(wait_for_member(own, 10, 60, 85), 5);
        assert_eq!(wait_for_member(own, 10, 60, 95), 0);
        // Others came after it had left.
        assert_eq!(wait_for_member(own, 10, i64::MIN, 20), 0);
    }

    #[test]
    fn scan_waits_for_lower_ranks_only() {
        assert_eq!(early_scan(Interval::new(10, 100), 60), 50);
        // Rank 0 has no lower ranks.
        assert_eq!(early_scan(Interval::new(10, 100), i64::MIN), 0);
    }

    proptest! {
        #[test]
        fn severities_fit_the_operation(enter: i64, leave: i64, first: i64, last: i64) {
            let own = Interval::new(enter, leave);
            let early = early_reduce(own, first);
            let late = late_reduce_contribution(own, last, early);
            let held = wait_for_member(own, first, last, early);
            for severity in [late_broadcast(own, first), early, late, early_scan(own, last), held] {
                prop_assert!((0..=own.duration()).contains(&severity));
            }
            prop_assert!(early.checked_add(late).is_some_and(|sum| sum <= own.duration()) || last < first);
        }
    }
}
