//! Non-blocking collectives, waited for at once.

use std::ffi::c_int;

use mpi::ffi::MPI_Request;

use super::Volume::{Blocks, Fixed, Sized};
use super::collectives::{NEIGHBOURS, ROOT, free, ring, row, typed};
use super::requests::{none, wait};
use super::{Benchmark, Site, Steps, byte, call};

/// One row each.
pub const ROWS: &[Benchmark] = &[
    row(&["MPI_Ibarrier"], Fixed, ibarrier),
    row(&["MPI_Ibcast"], Sized, ibcast),
    row(&["MPI_Ireduce"], Sized, ireduce),
    row(&["MPI_Iallreduce"], Sized, iallreduce),
    row(&["MPI_Iscan"], Sized, iscan),
    row(&["MPI_Iexscan"], Sized, iexscan),
    row(&["MPI_Igather"], Blocks, igather),
    row(&["MPI_Igatherv"], Blocks, igatherv),
    row(&["MPI_Iscatter"], Blocks, iscatter),
    row(&["MPI_Iscatterv"], Blocks, iscatterv),
    row(&["MPI_Iallgather"], Blocks, iallgather),
    row(&["MPI_Iallgatherv"], Blocks, iallgatherv),
    row(&["MPI_Ialltoall"], Blocks, ialltoall),
    row(&["MPI_Ialltoallv"], Blocks, ialltoallv),
    row(&["MPI_Ialltoallw"], Blocks, ialltoallw),
    row(&["MPI_Ireduce_scatter"], Blocks, ireduce_scatter),
    row(
        &["MPI_Ireduce_scatter_block"],
        Blocks,
        ireduce_scatter_block,
    ),
    row(&["MPI_Ineighbor_allgather"], Sized, ineighbor_allgather),
    row(&["MPI_Ineighbor_allgatherv"], Sized, ineighbor_allgatherv),
    row(&["MPI_Ineighbor_alltoall"], Sized, ineighbor_alltoall),
    row(&["MPI_Ineighbor_alltoallv"], Sized, ineighbor_alltoallv),
    row(&["MPI_Ineighbor_alltoallw"], Sized, ineighbor_alltoallw),
];

/// Starts something and waits for it.
fn waited(mut start: impl FnMut(*mut MPI_Request) + 'static) -> Steps {
    Steps::new(move || {
        let mut request = none();
        start(&mut request);
        wait(&mut request);
    })
}

fn ibarrier(site: &Site) -> Steps {
    let comm = site.comm;
    waited(move |request| call!(MPI_Ibarrier(comm, request)))
}

fn ibcast(site: &Site) -> Steps {
    let site = *site;
    waited(move |request| {
        call!(MPI_Ibcast(
            site.outgoing,
            site.count(),
            byte(),
            ROOT,
            site.comm,
            request
        ));
    })
}

fn ireduce(site: &Site) -> Steps {
    let (site, (count, datatype, op)) = (*site, site.elements());
    waited(move |request| {
        call!(MPI_Ireduce(
            site.outgoing,
            site.incoming,
            count,
            datatype,
            op,
            ROOT,
            site.comm,
            request
        ));
    })
}

macro_rules! on_elements {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let (site, (count, datatype, op)) = (*site, site.elements());
            waited(move |request| {
                call!($function(
                    site.outgoing,
                    site.incoming,
                    count,
                    datatype,
                    op,
                    site.comm,
                    request
                ));
            })
        }
    };
}

on_elements!(iallreduce, MPI_Iallreduce);
on_elements!(iscan, MPI_Iscan);
on_elements!(iexscan, MPI_Iexscan);
on_elements!(ireduce_scatter_block, MPI_Ireduce_scatter_block);

fn ireduce_scatter(site: &Site) -> Steps {
    let (site, (count, datatype, op)) = (*site, site.elements());
    let counts = vec![count; site.size as usize];
    waited(move |request| {
        call!(MPI_Ireduce_scatter(
            site.outgoing,
            site.incoming,
            counts.as_ptr(),
            datatype,
            op,
            site.comm,
            request
        ));
    })
}

macro_rules! of_blocks {
    ($name:ident, $function:ident $(, $root:ident)?) => {
        fn $name(site: &Site) -> Steps {
            let (site, count) = (*site, site.count());
            waited(move |request| {
                call!($function(
                    site.outgoing,
                    count,
                    byte(),
                    site.incoming,
                    count,
                    byte(),
                    $($root,)?
                    site.comm,
                    request
                ));
            })
        }
    };
}

of_blocks!(igather, MPI_Igather, ROOT);
of_blocks!(iscatter, MPI_Iscatter, ROOT);
of_blocks!(iallgather, MPI_Iallgather);
of_blocks!(ialltoall, MPI_Ialltoall);

fn igatherv(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    waited(move |request| {
        call!(MPI_Igatherv(
            site.outgoing,
            site.count(),
            byte(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            ROOT,
            site.comm,
            request
        ));
    })
}

fn iscatterv(site: &Site) -> Steps {
    let (site, (counts, begins)) = (*site, site.counts(site.size as usize));
    waited(move |request| {
        call!(MPI_Iscatterv(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            byte(),
            site.incoming,
            site.count(),
            byte(),
            ROOT,
            site.comm,
            request
        ));
    })
}

/// The same blocks to and from all.
struct Many {
    counts: Vec<c_int>,
    begins: Vec<c_int>,
}

fn many(site: &Site, parties: usize) -> Many {
    let (counts, begins) = site.counts(parties);
    Many { counts, begins }
}

fn iallgatherv(site: &Site) -> Steps {
    let (site, all) = (*site, many(site, site.size as usize));
    waited(move |request| {
        call!(MPI_Iallgatherv(
            site.outgoing,
            site.count(),
            byte(),
            site.incoming,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            byte(),
            site.comm,
            request
        ));
    })
}

fn ialltoallv(site: &Site) -> Steps {
    let (site, all) = (*site, many(site, site.size as usize));
    waited(move |request| {
        call!(MPI_Ialltoallv(
            site.outgoing,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            byte(),
            site.incoming,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            byte(),
            site.comm,
            request
        ));
    })
}

fn ialltoallw(site: &Site) -> Steps {
    let (site, all) = (*site, many(site, site.size as usize));
    let types = vec![byte(); site.size as usize];
    waited(move |request| {
        call!(MPI_Ialltoallw(
            site.outgoing,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            types.as_ptr(),
            site.incoming,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            types.as_ptr(),
            site.comm,
            request
        ));
    })
}

macro_rules! of_neighbours {
    ($name:ident, $function:ident) => {
        fn $name(site: &Site) -> Steps {
            let (site, count, ring) = (*site, site.count(), ring(site));
            waited(move |request| {
                call!($function(
                    site.outgoing,
                    count,
                    byte(),
                    site.incoming,
                    count,
                    byte(),
                    ring,
                    request
                ));
            })
            .release(free(ring))
        }
    };
}

of_neighbours!(ineighbor_allgather, MPI_Ineighbor_allgather);
of_neighbours!(ineighbor_alltoall, MPI_Ineighbor_alltoall);

fn ineighbor_allgatherv(site: &Site) -> Steps {
    let (site, ring, all) = (*site, ring(site), many(site, NEIGHBOURS));
    waited(move |request| {
        call!(MPI_Ineighbor_allgatherv(
            site.outgoing,
            site.count(),
            byte(),
            site.incoming,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            byte(),
            ring,
            request
        ));
    })
    .release(free(ring))
}

fn ineighbor_alltoallv(site: &Site) -> Steps {
    let (site, ring, all) = (*site, ring(site), many(site, NEIGHBOURS));
    waited(move |request| {
        call!(MPI_Ineighbor_alltoallv(
            site.outgoing,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            byte(),
            site.incoming,
            all.counts.as_ptr(),
            all.begins.as_ptr(),
            byte(),
            ring,
            request
        ));
    })
    .release(free(ring))
}

fn ineighbor_alltoallw(site: &Site) -> Steps {
    let (site, ring, (counts, begins, types)) = (*site, ring(site), typed(site));
    waited(move |request| {
        call!(MPI_Ineighbor_alltoallw(
            site.outgoing,
            counts.as_ptr(),
            begins.as_ptr(),
            types.as_ptr(),
            site.incoming,
            counts.as_ptr(),
            begins.as_ptr(),
            types.as_ptr(),
            ring,
            request
        ));
    })
    .release(free(ring))
}
