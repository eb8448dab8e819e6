//! The same programs with threads of one rank instead of ranks: groups meet at barriers, other steps are none.

use laggard_trace::calls::number::pthread_barrier_wait;
use laggard_trace::{Extension, Record, Signature};

use super::losses::losses;
use super::program::{Kind, Machine, Party, Step, TICK, With, line};
use crate::support::{Calls, finalize, init};

/// Runs the steps.
pub fn run(count: usize, steps: &[Step], shares: bool) -> Machine {
    let threads = (0..count as u32).map(|thread| Calls::new(0, thread, 1));
    let mut machine = Machine::new(threads.collect(), shares);
    machine.are_threads = true;
    machine.calls[0].call(1, init(), 0, 1_000);
    for thread in 0..count {
        // Others are there when the first one has started MPI.
        let (line, enter) = if thread == 0 { (1, 0) } else { (0, 1_000) };
        machine.note(thread, line, (enter, 1_000), Vec::new());
        machine.met(thread, With::All, 0, Some(1_000));
    }
    for step in steps {
        match *step {
            Step::Compute(..) => machine.step(step),
            Step::Collective { group, .. } => meet(&mut machine, group),
            _ => {}
        }
    }
    meet(&mut machine, 0);
    let end = machine.now[0] + TICK;
    machine.calls[0].call(99, finalize(), end, end + TICK);
    machine
}

/// The threads of a group meet.
fn meet(machine: &mut Machine, group: usize) {
    let members = machine.groups[group].clone();
    let comes = |&thread: &usize| Party {
        enter: machine.now[thread] + 10 * TICK,
        at: (thread, machine.done[thread].len()),
    };
    let all: Vec<Party> = members.iter().map(comes).collect();
    let last = all.iter().map(|party| party.enter).max().unwrap_or(0);
    let signature = Signature {
        operation: pthread_barrier_wait,
        parameter: members.len() as i64,
        ..Signature::default()
    };
    let key = Record::extension_u64(Extension::Value, 1_000 + group as u64);
    for (local, &thread) in members.iter().enumerate() {
        let times = (all[local].enter, last + (20 + local as u64) * TICK);
        let mut waits = losses(Kind::Barrier, local, &all, times, machine.shares);
        waits.iter_mut().for_each(|wait| wait.class = "threads");
        let line = line(80, thread);
        machine.calls[thread].extended(line, signature, &[key], times);
        machine.note(thread, line, times, waits);
    }
    for &thread in &members {
        let own = machine.done[thread].last().expect("a call").clone();
        let at = machine.done[thread].len() - 1;
        machine.met(thread, With::Group(group), at, Some(own.leave));
        for wait in own.waits {
            machine.met_late(thread, wait.late, None);
        }
    }
}
