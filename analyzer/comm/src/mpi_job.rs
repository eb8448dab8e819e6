//! Agents as the ranks of an MPI job.

use std::cell::Cell;
use std::ptr::NonNull;

use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::request::{Request, StaticScope};
use mpi::topology::{Process, SimpleCommunicator};
use mpi::traits::*;

use super::liveness::Watch;
use super::{Job, Letter, Sent, Talk, launched, launched_number, waiting};

/// Tags of the messages between agents.
mod tag {
    /// A partial result on its way to the head.
    pub const TREE: mpi::Tag = 1;
    /// A parcel of one agent for another.
    pub const PARCEL: mpi::Tag = 2;
    /// One of many pieces for the head, or a request for one.
    pub const RELAY: mpi::Tag = 3;
    /// Parcels of a conversation. Successive ones differ: some agents may have begun the next one.
    pub const LETTER: [mpi::Tag; 2] = [4, 5];
}

/// Largest piece of one message: counts are `int` in MPI.
const PIECE: usize = 1 << 30;

/// Maps unsigned numbers to signed ones in the same order: MPICH 4.0.2 takes the maximum of
/// unsigned 64-bit numbers as if they were signed.
fn in_order(value: u64) -> i64 {
    (value ^ 1 << 63) as i64
}

/// Inverts [`in_order`].
fn from_order(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

/// The agents of an MPI job.
pub struct MpiJob {
    world: SimpleCommunicator,
    sent: Cell<Sent>,
    /// Conversations so far.
    conversations: Cell<usize>,
    // Dropped after `world`.
    started: Started,
}

/// A parcel on its way. Its memory is kept until it was sent.
struct Sending {
    request: Request<'static, [u8], StaticScope>,
    parcel: NonNull<[u8]>,
}

impl Sending {
    fn new(to: &Process, parcel: Vec<u8>, tag: mpi::Tag) -> Sending {
        let parcel: &'static mut [u8] = Box::leak(parcel.into_boxed_slice());
        let memory = NonNull::from(&mut *parcel);
        Sending {
            request: to.immediate_send_with_tag(StaticScope, &*parcel, tag),
            parcel: memory,
        }
    }

    /// It, if it was not sent yet.
    fn test(self) -> Option<Sending> {
        let Sending { request, parcel } = self;
        match request.test() {
            Ok(_) => {
                // SAFETY: leaked from a box in `new`; nobody has it any more.
                drop(unsafe { Box::from_raw(parcel.as_ptr()) });
                None
            }
            Err(request) => Some(Sending { request, parcel }),
        }
    }

    fn wait(self) {
        self.request.wait();
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(self.parcel.as_ptr()) });
    }
}

/// MPI, which ends when this is dropped, and this agent's watcher until then.
struct Started {
    universe: Option<Universe>,
    watch: Option<Watch>,
}

impl Drop for Started {
    fn drop(&mut self) {
        let universe = self.universe.take();
        // All agents end together.
        Watch::waiting(self.watch.as_ref(), || drop(universe));
    }
}

impl MpiJob {
    /// Starts MPI; `None` if it was started already. An agent without progress for `stall_limit`
    /// seconds ends its job; 0: no limit.
    pub fn new(stall_limit: u64) -> Option<MpiJob> {
        let is_watched = stall_limit > 0 && launched() > 1;
        let name = launched_number().map_or("an agent".to_owned(), |n| format!("agent {n}"));
        let watch = is_watched
            .then(|| Watch::start(&name, stall_limit))
            .flatten();
        // Waiting agents leave their core to working ones.
        if std::env::var_os(waiting::OPTION).is_none() {
            // SAFETY: there is no other thread yet.
            unsafe { std::env::set_var(waiting::OPTION, "1") };
        }
        waiting::as_told();
        let start = || mpi::initialize_with_threading(mpi::Threading::Funneled);
        let (universe, _) = Watch::waiting(watch.as_ref(), start)?;
        let world = universe.world();
        Some(MpiJob {
            world,
            sent: Cell::default(),
            conversations: Cell::default(),
            started: Started {
                universe: Some(universe),
                watch,
            },
        })
    }

    /// Runs a call that may wait for other agents.
    fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        Watch::waiting(self.started.watch.as_ref(), wait)
    }

    /// See [`Job::converse`].
    fn talk(&self, work: &mut Talk<'_>) {
        let number = self.conversations.replace(self.conversations.get() + 1);
        let tag = tag::LETTER[number % 2];
        let mut letters: Vec<Letter> = Vec::new();
        let mut sending: Vec<Sending> = Vec::new();
        let mut needs_more = work(None, &mut letters);
        loop {
            for (agent, parcel) in letters.drain(..) {
                self.count_sent(1, parcel.len());
                let to = self.world.process_at_rank(agent as i32);
                sending.push(Sending::new(&to, parcel, tag));
            }
            sending = sending.into_iter().filter_map(Sending::test).collect();
            if !needs_more {
                break;
            }
            let any = self.world.any_process();
            let (message, status) = self.waiting(|| any.matched_probe_with_tag(tag));
            let mut parcel = vec![0u8; status.count(u8::equivalent_datatype()) as usize];
            let agent = status.source_rank() as usize;
            message.matched_receive_into(&mut parcel[..]);
            needs_more = work(Some((agent, parcel)), &mut letters);
        }
        self.waiting(|| sending.into_iter().for_each(Sending::wait));
    }

    /// See [`Job::relay`].
    fn relay_all(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        let head = self.world.process_at_rank(0);
        if self.agent() != 0 {
            loop {
                // Waits until the head has room for it.
                head.receive_with_tag::<u8>(tag::RELAY);
                let piece = next().unwrap_or_default();
                head.send_with_tag(&(piece.len() as u64), tag::RELAY);
                for part in piece.chunks(PIECE) {
                    head.send_with_tag(part, tag::RELAY);
                }
                self.count_sent(1, piece.len());
                if piece.is_empty() {
                    return;
                }
            }
        }
        while let Some(piece) = next() {
            take(piece);
        }
        for agent in 1..self.agents() {
            let from = self.world.process_at_rank(agent as i32);
            loop {
                from.send_with_tag(&1u8, tag::RELAY);
                let (length, _) = from.receive_with_tag::<u64>(tag::RELAY);
                let mut piece = vec![0u8; length as usize];
                for part in piece.chunks_mut(PIECE) {
                    from.receive_into_with_tag(part, tag::RELAY);
                }
                self.count_sent(1, 1);
                if piece.is_empty() {
                    break;
                }
                take(piece);
            }
        }
    }

    fn count_sent(&self, messages: usize, bytes: usize) {
        let mut sent = self.sent.get();
        sent.messages += messages as u64;
        sent.bytes += bytes as u64;
        self.sent.set(sent);
    }
}

impl Job for MpiJob {
    fn agent(&self) -> usize {
        self.world.rank() as usize
    }

    fn agents(&self) -> usize {
        self.world.size() as usize
    }

    fn exchange(&self, mut parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let me = self.agent();
        // This agent's own parcel is moved, not sent.
        let own = std::mem::take(&mut parcels[me]);
        let others = self.agents() - 1;
        self.count_sent(others, others * size_of::<u64>());
        let filled = parcels.iter().filter(|parcel| !parcel.is_empty()).count();
        self.count_sent(filled, parcels.iter().map(Vec::len).sum());
        let mine: Vec<u64> = parcels.iter().map(|parcel| parcel.len() as u64).collect();
        let mut theirs = vec![0u64; mine.len()];
        self.waiting(|| self.world.all_to_all_into(&mine[..], &mut theirs[..]));
        let mut received: Vec<Vec<u8>> = theirs.iter().map(|&n| vec![0; n as usize]).collect();
        let pieces = |lengths: &[u64]| -> usize {
            let pieces = lengths.iter().map(|&n| (n as usize).div_ceil(PIECE));
            pieces.sum()
        };
        let requests = pieces(&mine) + pieces(&theirs);
        mpi::request::multiple_scope(requests, |scope, requests| {
            for (agent, parcel) in received.iter_mut().enumerate() {
                let from = self.world.process_at_rank(agent as i32);
                for piece in parcel.chunks_mut(PIECE) {
                    requests.add(from.immediate_receive_into_with_tag(scope, piece, tag::PARCEL));
                }
            }
            for (agent, parcel) in parcels.iter().enumerate() {
                let to = self.world.process_at_rank(agent as i32);
                for piece in parcel.chunks(PIECE) {
                    requests.add(to.immediate_send_with_tag(scope, piece, tag::PARCEL));
                }
            }
            let mut done = Vec::with_capacity(requests.incomplete());
            self.waiting(|| requests.wait_all(&mut done));
        });
        received[me] = own;
        received
    }

    fn reduce_max(&self, values: &mut [u64]) {
        let others = (self.agents() - 1).min(1);
        self.count_sent(others, others * size_of_val(values));
        let mine: Vec<i64> = values.iter().copied().map(in_order).collect();
        let mut largest = vec![0i64; mine.len()];
        self.waiting(|| {
            self.world
                .all_reduce_into(&mine[..], &mut largest[..], SystemOperation::max());
        });
        for (value, largest) in values.iter_mut().zip(largest) {
            *value = from_order(largest);
        }
    }

    fn reduce_sum(&self, values: &mut [u64]) {
        let others = (self.agents() - 1).min(1);
        self.count_sent(others, others * size_of_val(values));
        let mine = values.to_vec();
        self.waiting(|| {
            self.world
                .all_reduce_into(&mine[..], values, SystemOperation::sum());
        });
    }

    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
        self.exchange(vec![mine; self.agents()])
    }

    fn broadcast(&self, bytes: &mut Vec<u8>) {
        let root = self.world.process_at_rank(0);
        let mut length = bytes.len() as u64;
        self.waiting(|| root.broadcast_into(&mut length));
        if self.agent() == 0 {
            let others = self.agents() - 1;
            self.count_sent(others, bytes.len() * others);
        }
        bytes.resize(length as usize, 0);
        for piece in bytes.chunks_mut(PIECE) {
            self.waiting(|| root.broadcast_into(piece));
        }
    }

    fn tree(
        &self,
        mut mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let (me, agents) = (self.agent(), self.agents());
        let mut step = 1;
        while step < agents {
            if me & step != 0 {
                let parent = self.world.process_at_rank((me - step) as i32);
                self.count_sent(1, mine.len());
                self.waiting(|| {
                    parent.send_with_tag(&(mine.len() as u64), tag::TREE);
                    for piece in mine.chunks(PIECE) {
                        parent.send_with_tag(piece, tag::TREE);
                    }
                });
                return None;
            }
            if me + step < agents {
                let child = self.world.process_at_rank((me + step) as i32);
                let theirs = self.waiting(|| {
                    let (length, _) = child.receive_with_tag::<u64>(tag::TREE);
                    let mut theirs = vec![0u8; length as usize];
                    for piece in theirs.chunks_mut(PIECE) {
                        child.receive_into_with_tag(piece, tag::TREE);
                    }
                    theirs
                });
                mine = combine(mine, theirs);
            }
            step *= 2;
        }
        Some(mine)
    }

    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        // The pieces may go into a pipe, whose reader takes its time.
        self.waiting(|| self.relay_all(next, take));
    }

    fn converse(&self, work: &mut Talk<'_>) {
        self.talk(work);
    }

    fn sent(&self) -> Sent {
        self.sent.get()
    }

    fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_stand_in_order() {
        let values = [0, 1, i64::MAX as u64, 1 << 63, u64::MAX];
        let signed = values.map(in_order);
        assert!(signed.is_sorted());
        assert_eq!(signed.map(from_order), values);
    }
}
