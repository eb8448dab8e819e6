//! Agents as the ranks of an MPI job.

use std::cell::Cell;
use std::ffi::c_int;
use std::time::Duration;

use anyhow::{Result, bail};

use super::library::Functions;
use super::liveness::Watch;
use super::{Job, Kind, Letter, Sent, Talk, launched, launched_number, relay};

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
    mpi: &'static Functions,
    sent: Cell<Sent>,
    /// Conversations so far.
    conversations: Cell<usize>,
    started: Started,
}

/// A parcel on its way. Its memory is kept until it was sent.
struct Sending {
    request: u64,
    _parcel: Vec<u8>,
}

/// MPI, which ends when this is dropped, and this agent's watcher until then.
struct Started {
    mpi: &'static Functions,
    watch: Option<Watch>,
}

impl Drop for Started {
    fn drop(&mut self) {
        // All agents end together.
        Watch::waiting(self.watch.as_ref(), || (self.mpi.finish)());
    }
}

impl MpiJob {
    /// Loads MPI with `load`, and starts it. An agent without progress for `stall_limit` seconds
    /// ends its job; 0: no limit.
    ///
    /// # Errors
    /// MPI cannot be loaded, or was started already.
    pub fn new(
        stall_limit: u64,
        load: impl FnOnce() -> Result<&'static Functions>,
    ) -> Result<MpiJob> {
        let is_watched = stall_limit > 0 && launched() > 1;
        let name = launched_number().map_or("an agent".to_owned(), |n| format!("agent {n}"));
        // MPI libraries may start threads as soon as they are loaded.
        let watch = is_watched
            .then(|| Watch::start(&name, stall_limit))
            .flatten();
        let mpi = load()?;
        if !Watch::waiting(watch.as_ref(), || (mpi.start)()) {
            bail!("MPI is already running in this process");
        }
        let job = MpiJob {
            mpi,
            sent: Cell::default(),
            conversations: Cell::default(),
            started: Started { mpi, watch },
        };
        // Each process would read everything and write the report.
        if job.agents() == 1 && launched() > 1 {
            bail!(
                "started by a launcher of another MPI than the one that was found: its {} processes do not see each other; use that MPI's launcher",
                launched()
            );
        }
        Ok(job)
    }

    /// Sends bytes of any length, in pieces.
    fn send_pieces(&self, bytes: &[u8], to: usize, kind: Kind) {
        for piece in bytes.chunks(PIECE) {
            let length = piece.len() as c_int;
            // SAFETY: memory of this length.
            unsafe { (self.mpi.send)(piece.as_ptr(), length, to as c_int, kind as c_int) };
        }
    }

    /// Receives as many.
    fn receive_pieces(&self, bytes: &mut [u8], from: usize, kind: Kind) {
        for piece in bytes.chunks_mut(PIECE) {
            let length = piece.len() as c_int;
            // SAFETY: memory of this length.
            unsafe { (self.mpi.receive)(piece.as_mut_ptr(), length, from as c_int, kind as c_int) };
        }
    }

    /// Starts to send a letter, which is one message.
    fn start_letter(&self, to: usize, parcel: Vec<u8>, kind: Kind) -> Sending {
        let (start, length) = (parcel.as_ptr(), parcel.len() as c_int);
        // SAFETY: memory of this length, which stays until the request is done.
        let request = unsafe { (self.mpi.start_send)(start, length, to as c_int, kind as c_int) };
        let _parcel = parcel;
        Sending { request, _parcel }
    }

    /// Waits for a letter of anybody.
    fn next_letter(&self, kind: Kind) -> Letter {
        let tag = kind as c_int;
        let mut length = 0;
        // SAFETY: writes the length.
        let agent = self.waiting(|| unsafe { (self.mpi.probe)(tag, &mut length) }) as usize;
        let mut parcel = vec![0; length as usize];
        // SAFETY: memory of this length. No other thread takes the message.
        unsafe { (self.mpi.receive)(parcel.as_mut_ptr(), length, agent as c_int, tag) };
        (agent, parcel)
    }

    fn wait(&self, requests: &[u64]) {
        // SAFETY: requests that were not ended before.
        self.waiting(|| unsafe { (self.mpi.wait)(requests.as_ptr(), requests.len()) });
    }

    /// Runs a call that may wait for other agents.
    fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        Watch::waiting(self.started.watch.as_ref(), wait)
    }

    /// See [`Job::converse`].
    fn talk(&self, work: &mut Talk<'_>) {
        let number = self.conversations.replace(self.conversations.get() + 1);
        let kind = [Kind::Letter, Kind::OtherLetter][number % 2];
        let mut letters: Vec<Letter> = Vec::new();
        let mut sending: Vec<Sending> = Vec::new();
        let mut needs_more = work(None, &mut letters);
        loop {
            for (agent, parcel) in letters.drain(..) {
                self.count_sent(1, parcel.len());
                sending.push(self.start_letter(agent, parcel, kind));
            }
            // SAFETY: those that are done are forgotten.
            sending.retain(|sending| unsafe { !(self.mpi.test)(sending.request) });
            if !needs_more {
                break;
            }
            needs_more = work(Some(self.next_letter(kind)), &mut letters);
        }
        let requests: Vec<u64> = sending.iter().map(|sending| sending.request).collect();
        self.wait(&requests);
    }

    /// Carries packets: those that `next` gives, with their receivers, and to `take` those that come,
    /// with their senders, until `is_over` says so at all agents: what is on its way then arrives. Packets have
    /// a byte or more. To be called by the thread that started MPI.
    ///
    /// While nothing is to be carried, it looks ever more seldom, up to 1000 times in a second: this
    /// may last for hours.
    pub fn carry(
        &self,
        next: &mut dyn FnMut() -> Option<Letter>,
        take: &mut dyn FnMut(Letter),
        is_over: &dyn Fn() -> bool,
    ) {
        const LONGEST: Duration = Duration::from_millis(1);
        const TAG: c_int = Kind::Carried as c_int;
        let mut sending: Vec<Sending> = Vec::new();
        let mut idle = 0u32;
        let others = self.agents() - 1;
        // Whether this agent has told the others that it is over, and how many of them have.
        let (mut is_told, mut over) = (false, 0);
        self.waiting(|| {
            while !(is_told && sending.is_empty() && over == others) {
                if !is_told && is_over() {
                    let me = self.agent();
                    for to in (0..self.agents()).filter(|to| *to != me) {
                        sending.push(self.start_letter(to, Vec::new(), Kind::Carried));
                    }
                    is_told = true;
                }
                idle = idle.saturating_add(1);
                while let Some((to, packet)) = next() {
                    self.count_sent(1, packet.len());
                    sending.push(self.start_letter(to, packet, Kind::Carried));
                    idle = 0;
                }
                // SAFETY: those that are done are forgotten.
                sending.retain(|sending| unsafe { !(self.mpi.test)(sending.request) });
                let mut length = 0;
                // SAFETY: writes the length.
                let from = unsafe { (self.mpi.look)(TAG, &mut length) };
                if let Ok(agent) = usize::try_from(from) {
                    let mut packet = vec![0; length as usize];
                    let start = packet.as_mut_ptr();
                    // SAFETY: memory of this length. No other thread takes the message.
                    unsafe { (self.mpi.receive)(start, length, from, TAG) };
                    match packet.is_empty() {
                        true => over += 1,
                        false => take((agent, packet)),
                    }
                    idle = 0;
                } else if idle > 100 {
                    // At first as long as a message takes, then longer.
                    std::thread::sleep(Duration::from_micros(idle.into()).min(LONGEST));
                }
            }
        });
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
        (self.mpi.rank)() as usize
    }

    fn agents(&self) -> usize {
        (self.mpi.size)() as usize
    }

    fn send(&self, to: usize, kind: Kind, bytes: &[u8]) {
        self.count_sent(1, bytes.len());
        self.waiting(|| {
            self.send_pieces(&(bytes.len() as u64).to_ne_bytes(), to, kind);
            self.send_pieces(bytes, to, kind);
        });
    }

    fn receive(&self, from: usize, kind: Kind) -> Vec<u8> {
        self.waiting(|| {
            let mut length = [0; size_of::<u64>()];
            self.receive_pieces(&mut length, from, kind);
            let mut bytes = vec![0; u64::from_ne_bytes(length) as usize];
            self.receive_pieces(&mut bytes, from, kind);
            bytes
        })
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
        // SAFETY: a number for each agent on both sides.
        self.waiting(|| unsafe { (self.mpi.all_to_all)(mine.as_ptr(), theirs.as_mut_ptr()) });
        let mut received: Vec<Vec<u8>> = theirs.iter().map(|&n| vec![0; n as usize]).collect();
        let mut requests = Vec::new();
        for (agent, parcel) in received.iter_mut().enumerate() {
            for piece in parcel.chunks_mut(PIECE) {
                let (start, length) = (piece.as_mut_ptr(), piece.len() as c_int);
                // SAFETY: memory of this length, which stays until the requests are done.
                requests.push(unsafe {
                    (self.mpi.start_receive)(start, length, agent as c_int, Kind::Parcel as c_int)
                });
            }
        }
        for (agent, parcel) in parcels.iter().enumerate() {
            for piece in parcel.chunks(PIECE) {
                let (start, length) = (piece.as_ptr(), piece.len() as c_int);
                // SAFETY: as above.
                requests.push(unsafe {
                    (self.mpi.start_send)(start, length, agent as c_int, Kind::Parcel as c_int)
                });
            }
        }
        self.wait(&requests);
        received[me] = own;
        received
    }

    fn reduce_max(&self, values: &mut [u64]) {
        let others = (self.agents() - 1).min(1);
        self.count_sent(others, others * size_of_val(values));
        let mut signed: Vec<i64> = values.iter().copied().map(in_order).collect();
        let (start, length) = (signed.as_mut_ptr(), signed.len() as c_int);
        // SAFETY: memory of this length.
        self.waiting(|| unsafe { (self.mpi.maximum)(start, length) });
        for (value, largest) in values.iter_mut().zip(signed) {
            *value = from_order(largest);
        }
    }

    fn reduce_sum(&self, values: &mut [u64]) {
        let others = (self.agents() - 1).min(1);
        self.count_sent(others, others * size_of_val(values));
        let (start, length) = (values.as_mut_ptr(), values.len() as c_int);
        // SAFETY: memory of this length.
        self.waiting(|| unsafe { (self.mpi.sum)(start, length) });
    }

    fn broadcast(&self, bytes: &mut Vec<u8>) {
        let spread = |bytes: &mut [u8]| {
            for piece in bytes.chunks_mut(PIECE) {
                let (start, length) = (piece.as_mut_ptr(), piece.len() as c_int);
                // SAFETY: memory of this length.
                self.waiting(|| unsafe { (self.mpi.broadcast)(start, length) });
            }
        };
        let mut length = (bytes.len() as u64).to_ne_bytes();
        spread(&mut length);
        if self.agent() == 0 {
            let others = self.agents() - 1;
            self.count_sent(others, bytes.len() * others);
        }
        bytes.resize(u64::from_ne_bytes(length) as usize, 0);
        spread(bytes);
    }

    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        // The pieces may go into a pipe, whose reader takes its time.
        self.waiting(|| relay(self, next, take));
    }

    fn converse(&self, work: &mut Talk<'_>) {
        self.talk(work);
    }

    fn sent(&self) -> Sent {
        self.sent.get()
    }

    fn abort(&self, code: i32) -> ! {
        (self.mpi.abort)(code);
        std::process::exit(code)
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
