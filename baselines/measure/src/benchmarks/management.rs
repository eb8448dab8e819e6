//! Calls that make and free communicators and windows.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::rc::Rc;

use mpi::ffi::{MPI_Aint, MPI_Comm, MPI_Win};

use super::Volume::Fixed;
use super::collectives::row;
use super::requests::{none, wait};
use super::{Benchmark, Site, Steps, call, constant, no_info};

/// One row each.
pub const ROWS: &[Benchmark] = &[
    row(&["MPI_Comm_dup", "MPI_Comm_free"], Fixed, comm_dup),
    row(&["MPI_Comm_idup"], Fixed, comm_idup),
    row(&["MPI_Comm_split", "MPI_Comm_free"], Fixed, comm_split),
    row(&["MPI_Comm_create", "MPI_Comm_free"], Fixed, comm_create),
    row(&["MPI_Cart_create", "MPI_Comm_free"], Fixed, cart_create),
    row(&["MPI_Win_create", "MPI_Win_free"], Fixed, win_create),
    row(&["MPI_Win_allocate", "MPI_Win_free"], Fixed, win_allocate),
];

/// Bytes of a window that nobody uses.
const WINDOW: usize = 4096;

/// Makes a communicator and frees it.
fn made(mut make: impl FnMut(&mut MPI_Comm) + 'static) -> Steps {
    Steps::new(move || {
        let mut made = constant!(RSMPI_COMM_NULL);
        make(&mut made);
        call!(MPI_Comm_free(&mut made));
    })
}

fn comm_dup(site: &Site) -> Steps {
    let comm = site.comm;
    made(move |made| call!(MPI_Comm_dup(comm, made)))
}

fn comm_idup(site: &Site) -> Steps {
    let comm = site.comm;
    let none_made = || constant!(RSMPI_COMM_NULL);
    let made = Rc::new(Cell::new(none_made()));
    let rest = made.clone();
    let steps = Steps::new(move || {
        let (mut copy, mut request) = (none_made(), none());
        call!(MPI_Comm_idup(comm, &mut copy, &mut request));
        wait(&mut request);
        made.set(copy);
    });
    steps.after(move || {
        let mut copy = rest.replace(none_made());
        call!(MPI_Comm_free(&mut copy));
    })
}

fn comm_split(site: &Site) -> Steps {
    let (comm, rank) = (site.comm, site.rank);
    made(move |made| call!(MPI_Comm_split(comm, 0, rank, made)))
}

fn comm_create(site: &Site) -> Steps {
    let comm = site.comm;
    let mut group = constant!(RSMPI_GROUP_NULL);
    call!(MPI_Comm_group(comm, &mut group));
    made(move |made| call!(MPI_Comm_create(comm, group, made))).release(move || {
        let mut group = group;
        call!(MPI_Group_free(&mut group));
    })
}

fn cart_create(site: &Site) -> Steps {
    let (comm, members): (MPI_Comm, c_int) = (site.comm, site.size);
    let wraps = 1;
    made(move |made| call!(MPI_Cart_create(comm, 1, &members, &wraps, 0, made)))
}

/// Makes a window and frees it.
fn opened(mut make: impl FnMut(&mut MPI_Win) + 'static) -> Steps {
    Steps::new(move || {
        let mut made = constant!(RSMPI_WIN_NULL);
        make(&mut made);
        call!(MPI_Win_free(&mut made));
    })
}

fn win_create(site: &Site) -> Steps {
    let comm = site.comm;
    let mut memory = vec![0u8; WINDOW];
    opened(move |window| {
        call!(MPI_Win_create(
            memory.as_mut_ptr().cast(),
            WINDOW as MPI_Aint,
            1,
            no_info(),
            comm,
            window
        ));
    })
}

fn win_allocate(site: &Site) -> Steps {
    let comm = site.comm;
    opened(move |window| {
        let mut memory = null_mut::<u8>();
        call!(MPI_Win_allocate(
            WINDOW as MPI_Aint,
            1,
            no_info(),
            comm,
            (&raw mut memory).cast(),
            window
        ));
    })
}
