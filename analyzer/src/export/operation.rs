//! What OTF2 calls the collectives.

use laggard_trace::calls::{self, Shape};

/// Collectives in the order of `OTF2_CollectiveOp`, as their calls are named.
const OPERATIONS: [&str; 17] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "reduce_scatter_block",
];
/// `OTF2_COLLECTIVE_OP_CREATE_HANDLE`, `OTF2_COLLECTIVE_OP_DESTROY_HANDLE`.
const HANDLES: (u8, u8) = (17, 18);

/// The `OTF2_CollectiveOp` of a call; that of a barrier for what OTF2 has no name for.
pub fn operation(number: u16) -> u8 {
    let Some(call) = calls::call(number) else {
        return 0;
    };
    let name = call.name.to_ascii_lowercase();
    let name = name.trim_start_matches("mpi_");
    let of = |name: &str| OPERATIONS.iter().position(|known| *known == name);
    let blocking = name.strip_prefix('i').unwrap_or(name);
    let blocking = blocking.strip_prefix("neighbor_").unwrap_or(blocking);
    if let Some(operation) = of(name).or_else(|| of(blocking)) {
        return operation as u8;
    }
    match call.shape {
        Shape::WindowFree => HANDLES.1,
        Shape::Management if name == "comm_free" || name == "comm_disconnect" => HANDLES.1,
        Shape::Management | Shape::WindowCreate => HANDLES.0,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::calls::number;

    #[test]
    fn collectives_have_their_operations() {
        for (call, expected) in [
            (number::MPI_Barrier, 0),
            (number::MPI_Ibarrier, 0),
            (number::MPI_Ialltoallw, 10),
            (number::MPI_Neighbor_alltoall, 8),
            (number::MPI_Ineighbor_allgather, 6),
            (number::MPI_Reduce_scatter_block, 16),
            (number::MPI_Comm_split, 17),
            (number::MPI_Comm_free, 18),
            (number::MPI_Win_free, 18),
            (number::MPI_Win_fence, 0),
        ] {
            assert_eq!(operation(call), expected, "{}", calls::name(call));
        }
    }
}
