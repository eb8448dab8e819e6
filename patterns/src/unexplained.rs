//! Time that no pattern explains.

use crate::catalogue::{Pattern, Unit};

/// Row of [`PatternId::Slow`](crate::PatternId::Slow).
pub(crate) static UNEXPLAINED: Pattern = Pattern {
    id: "unexplained",
    parent: "outside",
    name: "Unexplained time",
    summary: "Slower than usual, but no partner was late: network, library or other jobs.",
    description: "The call took longer than it should, by the measure of the filter that the \
        report names, and every rank that it depended on had already arrived. The cause lies \
        outside what the program's calls can show: a loaded network, other jobs on the node, the \
        operating system, a slow path of the MPI library.",
    condition: "the filters flagged the instance, and no pattern that can occur in it charged \
        time to it",
    severity: "leave - enter, less what is usual for the operation",
    advice: &[
        "Repeat the run: if other calls are hit, it is interference from outside.",
        "Check that ranks are bound to cores and that no core is shared.",
        "Measure the machine's baseline, so that slow and usual can be told apart.",
    ],
    unit: Unit::Seconds,
};
