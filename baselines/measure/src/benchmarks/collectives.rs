//! Collectives, on communicators and on neighbourhoods: blocking, or non-blocking and waited for at
//! once. Both forms have the same arguments except for the request.

use std::ffi::{c_int, c_void};

use mpi::ffi::{MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Op};

use super::Kind::Group;
use super::Volume::{Blocks, Fixed, Sized};
use super::requests::{none, wait};
use super::{Benchmark, Site, Steps, Volume, byte, call, constant};

const ROOT: c_int = 0;
/// Neighbours of each member of a ring.
const NEIGHBOURS: usize = 2;

/// A benchmark of a group.
pub const fn row(
    calls: &'static [&'static str],
    volume: Volume,
    prepare: fn(&Site) -> Steps,
) -> Benchmark {
    Benchmark {
        calls,
        kind: Group,
        volume,
        prepare,
    }
}

/// Arguments of the calls.
struct Given {
    outgoing: *mut c_void,
    incoming: *mut c_void,
    /// Elements of a message or block, and their type.
    count: c_int,
    datatype: MPI_Datatype,
    /// The same count for each party, and where their blocks begin, bytes.
    counts: Vec<c_int>,
    begins: Vec<c_int>,
    offsets: Vec<MPI_Aint>,
    types: Vec<MPI_Datatype>,
    op: MPI_Op,
    comm: MPI_Comm,
}

impl Given {
    /// Memory for this many parties of a communicator.
    fn new(site: &Site, parties: usize, comm: MPI_Comm) -> Given {
        let (counts, begins) = site.counts(parties);
        Given {
            outgoing: site.outgoing,
            incoming: site.incoming,
            count: site.count(),
            datatype: byte(),
            offsets: begins.iter().map(|&begin| begin as MPI_Aint).collect(),
            types: vec![byte(); parties],
            counts,
            begins,
            op: constant!(RSMPI_SUM),
            comm,
        }
    }

    /// The benchmark of a call with these arguments.
    fn steps(self, mut timed: impl FnMut(&Given) + 'static) -> Steps {
        Steps::new(move || timed(&self))
    }
}

/// Blocks of bytes for all members.
fn of_group(site: &Site, timed: impl FnMut(&Given) + 'static) -> Steps {
    Given::new(site, site.size as usize, site.comm).steps(timed)
}

/// Elements that can be added up, the same number for all members.
fn of_elements(site: &Site, timed: impl FnMut(&Given) + 'static) -> Steps {
    let (count, datatype, op) = site.elements();
    let given = Given {
        count,
        datatype,
        op,
        counts: vec![count; site.size as usize],
        ..Given::new(site, site.size as usize, site.comm)
    };
    given.steps(timed)
}

/// Blocks of bytes for the neighbours in a ring of the members.
fn of_ring(site: &Site, timed: impl FnMut(&Given) + 'static) -> Steps {
    let mut ring = constant!(RSMPI_COMM_NULL);
    let (members, wraps) = (site.size, 1);
    call!(MPI_Cart_create(
        site.comm, 1, &members, &wraps, 0, &mut ring
    ));
    let steps = Given::new(site, NEIGHBOURS, ring).steps(timed);
    steps.release(move || {
        let mut ring = ring;
        call!(MPI_Comm_free(&mut ring));
    })
}

/// Two rows for each collective: the volume, the blocking form and the one with a request, the kind
/// of communicator, and their arguments.
macro_rules! collectives {
    ($($volume:ident $call:ident $start:ident $on:ident |$given:ident| $arguments:tt;)*) => {
        /// Two rows each.
        pub const ROWS: &[Benchmark] = &[$(
            row(&[stringify!($call)], $volume, |site| {
                $on(site, |$given| collectives!(@ $call $arguments))
            }),
            row(&[stringify!($start)], $volume, |site| {
                $on(site, |$given| {
                    let mut request = none();
                    collectives!(@ $start $arguments &mut request);
                    wait(&mut request);
                })
            }),
        )*];
    };
    (@ $call:ident ($($argument:expr),*) $($request:expr)?) => {
        call!($call($($argument,)* $($request)?))
    };
}

collectives! {
    Fixed MPI_Barrier MPI_Ibarrier of_group |g| (g.comm);
    Sized MPI_Bcast MPI_Ibcast of_group |g| (g.outgoing, g.count, g.datatype, ROOT, g.comm);
    Sized MPI_Reduce MPI_Ireduce of_elements |g|
        (g.outgoing, g.incoming, g.count, g.datatype, g.op, ROOT, g.comm);
    Sized MPI_Allreduce MPI_Iallreduce of_elements |g|
        (g.outgoing, g.incoming, g.count, g.datatype, g.op, g.comm);
    Sized MPI_Scan MPI_Iscan of_elements |g|
        (g.outgoing, g.incoming, g.count, g.datatype, g.op, g.comm);
    Sized MPI_Exscan MPI_Iexscan of_elements |g|
        (g.outgoing, g.incoming, g.count, g.datatype, g.op, g.comm);
    Blocks MPI_Gather MPI_Igather of_group |g|
        (g.outgoing, g.count, g.datatype, g.incoming, g.count, g.datatype, ROOT, g.comm);
    Blocks MPI_Gatherv MPI_Igatherv of_group |g|
        (g.outgoing, g.count, g.datatype,
         g.incoming, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype, ROOT, g.comm);
    Blocks MPI_Scatter MPI_Iscatter of_group |g|
        (g.outgoing, g.count, g.datatype, g.incoming, g.count, g.datatype, ROOT, g.comm);
    Blocks MPI_Scatterv MPI_Iscatterv of_group |g|
        (g.outgoing, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype,
         g.incoming, g.count, g.datatype, ROOT, g.comm);
    Blocks MPI_Allgather MPI_Iallgather of_group |g|
        (g.outgoing, g.count, g.datatype, g.incoming, g.count, g.datatype, g.comm);
    Blocks MPI_Allgatherv MPI_Iallgatherv of_group |g|
        (g.outgoing, g.count, g.datatype,
         g.incoming, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype, g.comm);
    Blocks MPI_Alltoall MPI_Ialltoall of_group |g|
        (g.outgoing, g.count, g.datatype, g.incoming, g.count, g.datatype, g.comm);
    Blocks MPI_Alltoallv MPI_Ialltoallv of_group |g|
        (g.outgoing, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype,
         g.incoming, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype, g.comm);
    Blocks MPI_Alltoallw MPI_Ialltoallw of_group |g|
        (g.outgoing, g.counts.as_ptr(), g.begins.as_ptr(), g.types.as_ptr(),
         g.incoming, g.counts.as_ptr(), g.begins.as_ptr(), g.types.as_ptr(), g.comm);
    Blocks MPI_Reduce_scatter MPI_Ireduce_scatter of_elements |g|
        (g.outgoing, g.incoming, g.counts.as_ptr(), g.datatype, g.op, g.comm);
    Blocks MPI_Reduce_scatter_block MPI_Ireduce_scatter_block of_elements |g|
        (g.outgoing, g.incoming, g.count, g.datatype, g.op, g.comm);
    Sized MPI_Neighbor_allgather MPI_Ineighbor_allgather of_ring |g|
        (g.outgoing, g.count, g.datatype, g.incoming, g.count, g.datatype, g.comm);
    Sized MPI_Neighbor_allgatherv MPI_Ineighbor_allgatherv of_ring |g|
        (g.outgoing, g.count, g.datatype,
         g.incoming, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype, g.comm);
    Sized MPI_Neighbor_alltoall MPI_Ineighbor_alltoall of_ring |g|
        (g.outgoing, g.count, g.datatype, g.incoming, g.count, g.datatype, g.comm);
    Sized MPI_Neighbor_alltoallv MPI_Ineighbor_alltoallv of_ring |g|
        (g.outgoing, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype,
         g.incoming, g.counts.as_ptr(), g.begins.as_ptr(), g.datatype, g.comm);
    Sized MPI_Neighbor_alltoallw MPI_Ineighbor_alltoallw of_ring |g|
        (g.outgoing, g.counts.as_ptr(), g.offsets.as_ptr(), g.types.as_ptr(),
         g.incoming, g.counts.as_ptr(), g.offsets.as_ptr(), g.types.as_ptr(), g.comm);
}
