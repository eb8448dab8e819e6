//! OTF2's names of the collectives.

use laggard_trace::calls;

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

/// The `OTF2_CollectiveOp` of a call. Barrier stands for calls without a name in OTF2 and for those
/// that manage handles: SCOUT 2.5 gives up at unknown names.
pub fn operation(number: u16) -> u8 {
    let Some(call) = calls::call(number) else {
        return 0;
    };
    let name = call.name.to_ascii_lowercase();
    let name = match call.is_shmem() {
        true => like(&name),
        false => name.trim_start_matches("mpi_"),
    };
    let of = |name: &str| OPERATIONS.iter().position(|known| *known == name);
    let blocking = name.strip_prefix('i').unwrap_or(name);
    let blocking = blocking.strip_prefix("neighbor_").unwrap_or(blocking);
    of(name).or_else(|| of(blocking)).unwrap_or(0) as u8
}

/// The MPI collective that corresponds to one of OpenSHMEM.
fn like(name: &str) -> &'static str {
    let known = [
        ("broadcast", "bcast"),
        ("fcollect", "allgather"),
        ("collect", "allgatherv"),
        ("alltoall", "alltoall"),
        ("_to_all", "allreduce"),
    ];
    let found = known.iter().find(|(part, _)| name.contains(part));
    found.map_or("barrier", |(_, like)| like)
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
            (number::MPI_Comm_split, 0),
            (number::MPI_Win_free, 0),
            (number::MPI_Win_fence, 0),
        ] {
            assert_eq!(operation(call), expected, "{}", calls::name(call));
        }
        for (name, expected) in [
            ("shmem_barrier_all", 0),
            ("shmem_broadcast64", 1),
            ("shmem_collect32", 7),
            ("shmem_fcollect64", 6),
            ("shmem_int_sum_to_all", 11),
        ] {
            let call = calls::CALLS.iter().find(|call| call.name == name);
            assert_eq!(operation(call.unwrap().number), expected, "{name}");
        }
    }
}
