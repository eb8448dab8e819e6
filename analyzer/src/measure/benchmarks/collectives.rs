//! Blocking collectives, on communicators and on neighbourhoods.

use std::ffi::c_int;

use mpi::ffi::{MPI_Aint, MPI_Comm, MPI_Datatype};

use super::Kind::Group;
use super::Volume::{Blocks, Fixed, Sized};
use super::{Benchmark, Site, Steps, Volume, byte, call, constant};

/// Rank of roots.
pub const ROOT: c_int = 0;

/// One row each.
pub const ROWS: &[Benchmark] = &[
    row(&["MPI_Barrier"], Fixed, barrier),
    row(&["MPI_Bcast"], Sized, bcast),
    row(&["MPI_Reduce"], Sized, reduce),
    row(&["MPI_Allreduce"], Sized, allreduce),
    row(&["MPI_Scan"], Sized, scan),
    row(&["MPI_Exscan"], Sized, exscan),
    row(&["MPI_Gather"], Blocks, gather),
    row(&["MPI_Gatherv"], Blocks, gatherv),
    row(&["MPI_Scatter"], Blocks, scatter),
    row(&["MPI_Scatterv"], Blocks, scatterv),
    row(&["MPI_Allgather"], Blocks, allgather),
    row(&["MPI_Allgatherv"], Blocks, allgatherv),
    row(&["MPI_Alltoall"], Blocks, alltoall),
    row(&["MPI_Alltoallv"], Blocks, alltoallv),
    row(&["MPI_Alltoallw"], Blocks, alltoallw),
    row(&["MPI_Reduce_scatter"], Blocks, reduce_scatter),
    row(&["MPI_Reduce_scatter_block"], Blocks, reduce_scatter_block),
    row(&["MPI_Neighbor_allgather"], Sized, neighbor_allgather),
    row(&["MPI_Neighbor_allgatherv"], Sized, neighbor_allgatherv),
    row(&["MPI_Neighbor_alltoall"], Sized, neighbor_alltoall),
    row(&["MPI_Neighbor_alltoallv"], Sized, neighbor_alltoallv),
    row(&["MPI_Neighbor_alltoallw"], Sized, neighbor_alltoallw),
];

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

fn barrier(site: &Site) -> Steps {
    let comm = site.comm;
    Steps::new(move || call!(MPI_Barrier(comm)))
}

fn bcast(site: &Site) -> Steps {
    let site = *site;
    Steps::new(move || {
        call!(MPI_Bcast(
            site.outgoing,
            site.count(),
            byte(),
            ROOT,
            site.comm
        ));
    })
}

fn reduce(site: &Site) -> Steps {
    let (site, (count, datatype, op)) = (*site, site.elements());
    Steps::new(move || {
        call!(MPI_Reduce(
            site.outgoing,
            site.incoming,
            count,
            datatype,
            op,
            ROOT,
            site.comm
        ));
    })
}

macro_rules! on_elements {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let (site, (count, datatype, op)) = (*site, site.elements());
            Steps::new(move || {
                call!($function(
                    site.outgoing,
                    site.incoming,
                    count,
                    datatype,
                    op,
                    site.comm
                ));
            })
        }
    };
}

on_elements!(allreduce, MPI_Allreduce);
on_elements!(scan, MPI_Scan);
on_elements!(exscan, MPI_Exscan);
on_elements!(reduce_scatter_block, MPI_Reduce_scatter_block);

fn reduce_scatter(site: &Site) -> Steps {
    let (site, (count, datatype, op)) = (*site, site.elements());
    let counts = vec![count; site.size as usize];
    Steps::new(move || {
        call!(MPI_Reduce_scatter(
            site.outgoing,
            site.incoming,
            counts.as_ptr(),
            datatype,
            op,
            site.comm
        ));
    })
}

macro_rules! of_blocks {
    ($name:ident, $function:ident $(, $root:ident)?) => {
        fn $name(site: &Site) -> Steps {
            let (site, count) = (*site, site.count());
            Steps::new(move || {
                call!($function(
                    site.outgoing,
                    count,
                    byte(),
                    site.incoming,
                    count,
                    byte(),
                    $($root,)?
                    site.comm
                ));
            })
        }
    };
}

of_blocks!(gather, MPI_Gather, ROOT);
of_blocks!(scatter, MPI_Scatter, ROOT);
of_blocks!(allgather, MPI_Allgather);
of_blocks!(alltoall, MPI_Alltoall);

fn gatherv(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    Steps::new(move || {
        call!(MPI_Gatherv(
            site.outgoing,
            site.count(),
            byte(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            ROOT,
            site.comm
        ));
    })
}

fn scatterv(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    Steps::new(move || {
        call!(MPI_Scatterv(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            site.incoming,
            site.count(),
            byte(),
            ROOT,
            site.comm
        ));
    })
}

fn allgatherv(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    Steps::new(move || {
        call!(MPI_Allgatherv(
            site.outgoing,
            site.count(),
            byte(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            site.comm
        ));
    })
}

fn alltoallv(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    Steps::new(move || {
        call!(MPI_Alltoallv(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            site.comm
        ));
    })
}

fn alltoallw(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    let types = vec![byte(); counts.len()];
    Steps::new(move || {
        call!(MPI_Alltoallw(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            types.as_ptr(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            types.as_ptr(),
            site.comm
        ));
    })
}

/// Neighbours of each member of a ring.
pub const NEIGHBOURS: usize = 2;

/// The members as a ring.
pub fn ring(site: &Site) -> MPI_Comm {
    let mut ring = constant!(RSMPI_COMM_NULL);
    let (members, wraps) = (site.size, 1);
    call!(MPI_Cart_create(
        site.comm, 1, &members, &wraps, 0, &mut ring
    ));
    ring
}

/// What gives a ring back.
pub fn free(ring: MPI_Comm) -> impl FnMut() + 'static {
    move || {
        let mut ring = ring;
        call!(MPI_Comm_free(&mut ring));
    }
}

macro_rules! of_neighbours {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let (site, count, ring) = (*site, site.count(), ring(site));
            Steps::new(move || {
                call!($function(
                    site.outgoing,
                    count,
                    byte(),
                    site.incoming,
                    count,
                    byte(),
                    ring
                ));
            })
            .release(free(ring))
        }
    };
}

of_neighbours!(neighbor_allgather, MPI_Neighbor_allgather);
of_neighbours!(neighbor_alltoall, MPI_Neighbor_alltoall);

fn neighbor_allgatherv(site: &Site) -> Steps {
    let (site, ring, (counts, begins)) = (*site, ring(site), site.counts(NEIGHBOURS));
    Steps::new(move || {
        call!(MPI_Neighbor_allgatherv(
            site.outgoing,
            site.count(),
            byte(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            ring
        ));
    })
    .release(free(ring))
}

fn neighbor_alltoallv(site: &Site) -> Steps {
    let (site, ring, (counts, begins)) = (*site, ring(site), site.counts(NEIGHBOURS));
    Steps::new(move || {
        call!(MPI_Neighbor_alltoallv(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            ring
        ));
    })
    .release(free(ring))
}

/// Counts, beginnings in bytes and types of the neighbours' blocks.
pub fn typed(site: &Site) -> (Vec<c_int>, Vec<MPI_Aint>, Vec<MPI_Datatype>) {
    let (counts, begins) = site.counts(NEIGHBOURS);
    let begins = begins.into_iter().map(|begin| begin as MPI_Aint);
    (counts, begins.collect(), vec![byte(); NEIGHBOURS])
}

fn neighbor_alltoallw(site: &Site) -> Steps {
    let (site, ring, (counts, begins, types)) = (*site, ring(site), typed(site));
    Steps::new(move || {
        call!(MPI_Neighbor_alltoallw(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            types.as_ptr(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            types.as_ptr(),
            ring
        ));
    })
    .release(free(ring))
}
