//! Messages from the first of a pair to the other, by requests: non-blocking and persistent.

use mpi::ffi::MPI_Request;

use super::messages::{TAG, attach, row, status};
use super::{Benchmark, Site, Steps, byte, call, constant};

/// One row each.
pub const ROWS: &[Benchmark] = &[
    row(&["MPI_Isend", "MPI_Irecv", "MPI_Wait"], isend),
    row(&["MPI_Issend", "MPI_Irecv", "MPI_Waitall"], issend),
    row(&["MPI_Ibsend", "MPI_Irecv", "MPI_Waitany"], ibsend),
    row(&["MPI_Irsend", "MPI_Irecv", "MPI_Waitsome"], irsend),
    row(&["MPI_Rsend", "MPI_Irecv", "MPI_Wait"], rsend),
    row(&["MPI_Start", "MPI_Wait"], start),
    row(&["MPI_Startall", "MPI_Waitall"], startall),
];

/// The null request.
pub fn none() -> MPI_Request {
    constant!(RSMPI_REQUEST_NULL)
}

/// Completes a request.
pub fn wait(request: &mut MPI_Request) {
    let mut status = status();
    call!(MPI_Wait(request, &mut status));
}

fn wait_all(request: &mut MPI_Request) {
    let mut status = status();
    call!(MPI_Waitall(1, request, &mut status));
}

fn wait_any(request: &mut MPI_Request) {
    let (mut status, mut index) = (status(), 0);
    call!(MPI_Waitany(1, request, &mut index, &mut status));
}

fn wait_some(request: &mut MPI_Request) {
    let (mut status, mut index, mut found) = (status(), 0, 0);
    call!(MPI_Waitsome(
        1,
        request,
        &mut found,
        &mut index,
        &mut status
    ));
}

macro_rules! by {
    ($function:ident, $buffer:ident, $site:expr, $request:expr) => {
        call!($function(
            $site.$buffer,
            $site.count(),
            byte(),
            $site.other(),
            TAG,
            $site.comm,
            $request
        ))
    };
}

/// `send` on one side, a receive on the other, and `complete` on both.
fn one_way(
    site: &Site,
    send: fn(&Site, &mut MPI_Request),
    complete: fn(&mut MPI_Request),
) -> Steps {
    let site = *site;
    Steps::new(move || {
        let mut request = none();
        match site.is_first() {
            true => send(&site, &mut request),
            false => by!(MPI_Irecv, incoming, site, &mut request),
        }
        complete(&mut request);
    })
}

fn isend(site: &Site) -> Steps {
    let send = |site: &Site, request: &mut MPI_Request| by!(MPI_Isend, outgoing, site, request);
    one_way(site, send, wait)
}

fn issend(site: &Site) -> Steps {
    let send = |site: &Site, request: &mut MPI_Request| by!(MPI_Issend, outgoing, site, request);
    one_way(site, send, wait_all)
}

fn ibsend(site: &Site) -> Steps {
    let detach = attach(site);
    let send = |site: &Site, request: &mut MPI_Request| by!(MPI_Ibsend, outgoing, site, request);
    one_way(site, send, wait_any).release(detach)
}

/// `send` after the receive was posted.
fn ready(site: &Site, send: fn(&Site), complete: fn(&mut MPI_Request)) -> Steps {
    let site = *site;
    let posted = std::rc::Rc::new(std::cell::Cell::new(none()));
    let post = posted.clone();
    Steps::new(move || match site.is_first() {
        true => send(&site),
        false => complete(&mut posted.replace(none())),
    })
    .before(move || {
        if !site.is_first() {
            let mut request = none();
            by!(MPI_Irecv, incoming, site, &mut request);
            post.set(request);
        }
    })
}

fn rsend(site: &Site) -> Steps {
    let send = |site: &Site| {
        call!(MPI_Rsend(
            site.outgoing,
            site.count(),
            byte(),
            site.other(),
            TAG,
            site.comm
        ));
    };
    ready(site, send, wait)
}

fn irsend(site: &Site) -> Steps {
    let send = |site: &Site| {
        let mut request = none();
        by!(MPI_Irsend, outgoing, site, &mut request);
        wait_some(&mut request);
    };
    ready(site, send, wait_some)
}

/// Persistent requests, started by `start`.
fn persistent(site: &Site, start: fn(&mut MPI_Request), complete: fn(&mut MPI_Request)) -> Steps {
    let mut request = none();
    match site.is_first() {
        true => by!(MPI_Send_init, outgoing, site, &mut request),
        false => by!(MPI_Recv_init, incoming, site, &mut request),
    }
    Steps::new(move || {
        start(&mut request);
        complete(&mut request);
    })
    .release(move || call!(MPI_Request_free(&mut request)))
}

fn start(site: &Site) -> Steps {
    persistent(site, |request| call!(MPI_Start(request)), wait)
}

fn startall(site: &Site) -> Steps {
    persistent(site, |request| call!(MPI_Startall(1, request)), wait_all)
}
