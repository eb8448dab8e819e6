//! What Scalasca knows of waiting. By its rules only that counts: the time of other waits is that of
//! their calls.

use laggard_patterns::PatternId;
use laggard_trace::calls::{Shape, number};

use crate::stream::rows::Row;

/// Calls that take a message only when they are asked to later.
const PROBES: [u16; 2] = [number::MPI_Probe, number::MPI_Mprobe];

/// Calls that send and receive: of these it knows late senders.
const EXCHANGES: [u16; 2] = [number::MPI_Sendrecv, number::MPI_Sendrecv_replace];

/// Collectives in which it looks for no waits.
const UNEVEN: [u16; 2] = [number::MPI_Alltoallv, number::MPI_Alltoallw];

/// Whether it knows a wait with this pattern, of a call with this row.
pub(super) fn is_wait(pattern: u16, row: &Row) -> bool {
    let pattern = u8::try_from(pattern).ok().and_then(PatternId::from_number);
    let is_one_of = |calls: [u16; 2]| calls.contains(&row.operation);
    match pattern {
        None => false,
        Some(pattern) if pattern.is_polled() || pattern == PatternId::WaitForMember => false,
        Some(pattern) if pattern.is_about_group() => is_met(row),
        Some(pattern) => match pattern.class() {
            "late_sender" => !is_one_of(PROBES),
            "late_receiver" => !is_one_of(EXCHANGES),
            class => !["progress", "unknown"].contains(&class),
        },
    }
}

/// Whether members of a group meet in a call with this row.
pub(super) fn is_met(row: &Row) -> bool {
    let is_other = matches!(
        row.shape,
        Shape::Single | Shape::Neighbourhood | Shape::Management | Shape::CollectiveIo
    );
    !is_other && !UNEVEN.contains(&row.operation)
}
