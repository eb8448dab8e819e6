//! A link over MPI. One thread may call MPI: it carries everybody's packets.

use std::cell::RefCell;
use std::sync::Arc;

use laggard_comm::{Job, MpiJob};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::link::{Arrived, Link, Linked};

/// Packets on their way to the thread that calls MPI.
struct Mpi {
    agent: usize,
    agents: usize,
    out: UnboundedSender<(usize, Vec<u8>)>,
}

impl Link for Mpi {
    fn agent(&self) -> usize {
        self.agent
    }

    fn agents(&self) -> usize {
        self.agents
    }

    fn send(&self, to: usize, packet: Vec<u8>) {
        // Who has ended needs no packet any more.
        let _ = self.out.send((to, packet));
    }
}

/// Runs `work` with a link over a job, while this thread, which must be the one that started MPI,
/// carries the packets.
pub fn run<R: Send>(job: &MpiJob, work: impl FnOnce(Linked) -> R + Send) -> R {
    let (out, outgoing) = unbounded_channel();
    let (into, inbox) = unbounded_channel();
    let link = Mpi {
        agent: job.agent(),
        agents: job.agents(),
        out,
    };
    let linked = Linked::new(Arc::new(link), inbox);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || work(linked));
        let outgoing = RefCell::new(outgoing);
        job.carry(
            &mut || outgoing.borrow_mut().try_recv().ok(),
            &mut |(from, packet)| {
                let _ = into.send(Arrived::Packet(from, packet));
            },
            // What was sent before is carried to its end.
            &|| worker.is_finished() && outgoing.borrow().is_empty(),
        );
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
