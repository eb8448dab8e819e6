//! Messages from the first of a pair to the other, by blocking calls.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use mpi::ffi::{MPI_Message, MPI_Status};

use super::Kind::Pair;
use super::Volume::Sized;
use super::{Benchmark, Site, Steps, byte, call, constant};

/// Tag of everything.
pub const TAG: i32 = 0;

/// One row each.
pub const ROWS: &[Benchmark] = &[
    row(&["MPI_Send", "MPI_Recv"], send),
    row(&["MPI_Ssend", "MPI_Recv"], ssend),
    row(&["MPI_Bsend", "MPI_Recv"], bsend),
    row(&["MPI_Sendrecv"], sendrecv),
    row(&["MPI_Sendrecv_replace"], sendrecv_replace),
    row(&["MPI_Send", "MPI_Probe"], probe),
    row(&["MPI_Send", "MPI_Mprobe", "MPI_Mrecv"], mprobe),
];

/// A benchmark of messages.
pub const fn row(calls: &'static [&'static str], prepare: fn(&Site) -> Steps) -> Benchmark {
    Benchmark {
        calls,
        kind: Pair,
        volume: Sized,
        prepare,
    }
}

/// Room for a status.
pub fn status() -> MPI_Status {
    // SAFETY: plain numbers.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn receive(site: &Site) {
    let mut status = status();
    call!(MPI_Recv(
        site.incoming,
        site.count(),
        byte(),
        site.other(),
        TAG,
        site.comm,
        &mut status
    ));
}

/// `send` on one side, a receive on the other.
fn one_way(site: &Site, send: fn(&Site)) -> Steps {
    let site = *site;
    Steps::new(move || match site.is_first() {
        true => send(&site),
        false => receive(&site),
    })
}

macro_rules! send_by {
    ($function:ident, $site:expr) => {
        call!($function(
            $site.outgoing,
            $site.count(),
            byte(),
            $site.other(),
            TAG,
            $site.comm
        ))
    };
}

fn send(site: &Site) -> Steps {
    one_way(site, |site| send_by!(MPI_Send, site))
}

fn ssend(site: &Site) -> Steps {
    one_way(site, |site| send_by!(MPI_Ssend, site))
}

fn bsend(site: &Site) -> Steps {
    let detach = attach(site);
    one_way(site, |site| send_by!(MPI_Bsend, site)).release(detach)
}

/// Attaches a buffer for buffered sends. The result detaches it.
pub fn attach(site: &Site) -> impl FnMut() + 'static {
    // MPI_BSEND_OVERHEAD is 128 in Open MPI and 96 in MPICH; a few messages may be under way.
    let mut room = vec![0u8; 8 * (site.bytes + 1024)];
    call!(MPI_Buffer_attach(
        room.as_mut_ptr().cast(),
        room.len() as i32
    ));
    move || {
        let (mut address, mut size) = (std::ptr::null_mut::<c_void>(), 0);
        call!(MPI_Buffer_detach((&raw mut address).cast(), &mut size));
        room.clear();
    }
}

fn sendrecv(site: &Site) -> Steps {
    let site = *site;
    Steps::new(move || {
        let mut status = status();
        call!(MPI_Sendrecv(
            site.outgoing,
            site.count(),
            byte(),
            site.other(),
            TAG,
            site.incoming,
            site.count(),
            byte(),
            site.other(),
            TAG,
            site.comm,
            &mut status
        ));
    })
}

fn sendrecv_replace(site: &Site) -> Steps {
    let site = *site;
    Steps::new(move || {
        let mut status = status();
        call!(MPI_Sendrecv_replace(
            site.outgoing,
            site.count(),
            byte(),
            site.other(),
            TAG,
            site.other(),
            TAG,
            site.comm,
            &mut status
        ));
    })
}

fn probe(site: &Site) -> Steps {
    let site = *site;
    let steps = Steps::new(move || match site.is_first() {
        true => send_by!(MPI_Send, site),
        false => {
            let mut status = status();
            call!(MPI_Probe(site.other(), TAG, site.comm, &mut status));
        }
    });
    // The message is already there, so this measures no receive.
    steps.after(move || {
        if !site.is_first() {
            receive(&site);
        }
    })
}

fn mprobe(site: &Site) -> Steps {
    let site = *site;
    Steps::new(move || match site.is_first() {
        true => send_by!(MPI_Send, site),
        false => {
            let mut message: MPI_Message = constant!(RSMPI_MESSAGE_NULL);
            let mut status = status();
            let from = site.other();
            call!(MPI_Mprobe(from, TAG, site.comm, &mut message, &mut status));
            call!(MPI_Mrecv(
                site.incoming,
                site.count(),
                byte(),
                &mut message,
                &mut status
            ));
        }
    })
}
