//! What a location moved, and with which part in it: counts and bytes, as the program asked for.

use std::collections::VecDeque;

use laggard_trace::calls::{self, GenericType, Shape};
use laggard_trace::{Beside, Endpoint, PEER_NONE, Signature, flags};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::basics::room;
use crate::stream::columns::{Columns, Instance};
use crate::stream::roles::Among;
use crate::stream::rows::Row;

/// Bytes that left a rank's memory for others (or a file), and that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    pub sent: u64,
    pub received: u64,
}

impl Bytes {
    fn add(&mut self, sent: u64, received: u64) {
        self.sent = self.sent.saturating_add(sent);
        self.received = self.received.saturating_add(received);
    }
}

/// Sums over calls. A receive has the bytes of its buffer, where neither the call nor the senders
/// know better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub two_sided: Bytes,
    pub collective: Bytes,
    pub one_sided: Bytes,
    pub file: Bytes,
    /// Messages sent.
    pub sends: u64,
    /// Of these, those without data.
    pub empty_sends: u64,
    /// Receives posted.
    pub receives: u64,
    /// Collectives in which the rank gave data and got some.
    pub exchanges: u64,
    /// Collectives in which it only gave.
    pub sources: u64,
    /// Collectives in which it only got.
    pub destinations: u64,
    /// Collectives in which it did neither.
    pub synchronizations: u64,
    /// One-sided transfers.
    pub transfers: u64,
    /// Epochs of two ranks on windows, at their origins: access epochs by target, and locks.
    pub pairs: u64,
    /// Of these, those without a transfer.
    pub unneeded_pairs: u64,
    /// Calls on files that read or write.
    pub file_calls: u64,
    /// Wait states in its calls.
    pub waits: u64,
    /// Wait states of others that it caused; of a rank's first thread.
    pub caused: u64,
}

impl Traffic {
    /// Adds others.
    pub fn merge(&mut self, other: &Traffic) {
        let pairs = [
            (&mut self.two_sided, other.two_sided),
            (&mut self.collective, other.collective),
            (&mut self.one_sided, other.one_sided),
            (&mut self.file, other.file),
        ];
        for (sum, part) in pairs {
            sum.add(part.sent, part.received);
        }
        let pairs = [
            (&mut self.sends, other.sends),
            (&mut self.empty_sends, other.empty_sends),
            (&mut self.receives, other.receives),
            (&mut self.exchanges, other.exchanges),
            (&mut self.sources, other.sources),
            (&mut self.destinations, other.destinations),
            (&mut self.synchronizations, other.synchronizations),
            (&mut self.transfers, other.transfers),
            (&mut self.pairs, other.pairs),
            (&mut self.unneeded_pairs, other.unneeded_pairs),
            (&mut self.file_calls, other.file_calls),
            (&mut self.waits, other.waits),
            (&mut self.caused, other.caused),
        ];
        for (sum, part) in pairs {
            *sum = sum.saturating_add(part);
        }
    }

    /// Adds calls with a signature; the halves are those of the calls.
    fn add(&mut self, signature: &Signature, send: Endpoint, receive: Endpoint, calls: u64) {
        let without = flags::PAUSED | flags::FAILED | flags::UNSUCCESSFUL;
        let Some(call) = calls::call(signature.operation) else {
            return;
        };
        if calls == 0 || signature.flags & without != 0 {
            return;
        }
        let (sent, received) = (
            send.bytes.saturating_mul(calls),
            receive.bytes.saturating_mul(calls),
        );
        let (sends, receives) = (signature.has(flags::SENDS), signature.has(flags::RECEIVES));
        if sends || receives {
            if sends && send.peer != PEER_NONE {
                self.two_sided.add(sent, 0);
                self.sends += calls;
                self.empty_sends += if send.bytes == 0 { calls } else { 0 };
            }
            if receives && receive.peer != PEER_NONE && !signature.has(flags::PEEKS) {
                self.two_sided.add(0, received);
                self.receives += calls;
            }
            return;
        }
        match call.generic {
            GenericType::OneSidedPut | GenericType::OneSidedGet | GenericType::OneSidedAtomic
                if send.peer != PEER_NONE || receive.peer != PEER_NONE =>
            {
                self.one_sided.add(sent, received);
                self.transfers += calls;
            }
            GenericType::Io | GenericType::GroupSync
                if call.generic == GenericType::Io || call.shape == Shape::CollectiveIo =>
            {
                self.file.add(sent, received);
                self.file_calls += if sent > 0 || received > 0 { calls } else { 0 };
            }
            GenericType::GroupComm | GenericType::GroupSync
                if signature.has(flags::COLLECTIVE) && !call.is_user() =>
            {
                self.collective.add(sent, received);
                *match (sent > 0, received > 0) {
                    (true, true) => &mut self.exchanges,
                    (true, false) => &mut self.sources,
                    (false, true) => &mut self.destinations,
                    (false, false) => &mut self.synchronizations,
                } += calls;
            }
            _ => {}
        }
    }
}

/// Bytes that a call moves between ranks: what it sends, and what it gets from windows.
pub fn moved(signature: &Signature, send: Endpoint, receive: Endpoint) -> u64 {
    let mut one = Traffic::default();
    one.add(signature, send, receive, 1);
    let parts = [
        one.two_sided.sent,
        one.collective.sent,
        one.one_sided.sent,
        one.one_sided.received,
    ];
    parts.into_iter().fold(0, u64::saturating_add)
}

/// The receiver of the messages of some calls, with their number and bytes.
fn message(signature: &Signature, send: Endpoint, calls: u64) -> Option<(u32, (u64, u64))> {
    let without = flags::PAUSED | flags::FAILED | flags::UNSUCCESSFUL;
    let sends = signature.has(flags::SENDS) && signature.flags & without == 0 && calls > 0;
    let peer = u32::try_from(send.peer).ok().filter(|_| sends)?;
    Some((peer, (calls, send.bytes.saturating_mul(calls))))
}

/// The calls of a location by signature.
#[derive(Debug, Default)]
pub struct Counted {
    /// By signature.
    plain: Vec<Plain>,
    /// Time between calls before such a call in which threads meet, since they met last.
    met: Vec<Met>,
    /// That time so far.
    since_met: Met,
    /// Ticks of the slab that were off and are not in that yet, with the number of the call after.
    off: VecDeque<(u64, u64)>,
    /// Signature and leave of the last call.
    last: Option<(usize, i64)>,
    /// Calls whose records say more.
    extended: Traffic,
    /// Samples: ticks by signature of the call before, `NONE` at the begin, and call path.
    sampled: FxHashMap<(u32, u32), u64>,
    /// Messages and bytes that these sent, by world rank.
    sent: FxHashMap<u32, (u64, u64)>,
    /// Asleep or blocked, without a processor, and in the kernel: ticks by signature of the call before.
    off_work: FxHashMap<u32, [u64; 3]>,
    /// What all stretches between calls were beside work, and what was counted in them.
    pub beside: Beside,
    /// By signature; empty if root causes are not searched.
    pub beyond: Vec<Beyond>,
}

/// Calls as their signature says.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    calls: u64,
    /// Time from their leaves to the next enters, ns.
    computed: u64,
}

/// Time in calls, ns, and how many calls have some.
pub type InCalls = (i64, u64);

/// What calls were beyond their waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beyond {
    /// Others had the processor.
    pub preempted: InCalls,
    /// In file operations: asleep, or in the kernel.
    pub stored: InCalls,
}

/// Time of a thread between calls until it met others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// All of it, ns.
    pub time: u64,
    /// Asleep, blocked or without a processor, ticks.
    pub off: u64,
}

impl Met {
    fn add(&mut self, other: Met) {
        self.time = self.time.saturating_add(other.time);
        self.off = self.off.saturating_add(other.off);
    }
}

impl Counted {
    /// Adds what the records of a new slab say of calls beyond their signatures. The calls must be
    /// [added](Self::add) after it.
    pub fn extend(&mut self, columns: &Columns, rows: &[Row], signatures: &[Signature]) {
        let before = self.last.map_or(NONE, |(signature, _)| signature as u32);
        self.plain.resize(signatures.len(), Plain::default());
        for (_, off) in self.off.drain(..) {
            self.since_met.off = self.since_met.off.saturating_add(off);
        }
        for (at, event) in &columns.extended {
            self.beside.add(&event.beside);
            let Beside {
                blocked,
                preempted,
                kernel,
                ..
            } = event.beside;
            if blocked | preempted > 0 {
                let call = columns.number + *at as u64;
                self.off
                    .push_back((call, blocked.saturating_add(preempted)));
            }
            let off = [blocked, preempted, kernel];
            if !event.sampled.is_empty() || off != [0; 3] {
                let is_call = |id: &&u32| rows.get(**id as usize).is_some_and(|row| !row.is_mark());
                let earlier = columns.signature[columns.first..*at].iter();
                let last = earlier.rev().find(is_call).copied().unwrap_or(before);
                let sums = self.off_work.entry(last).or_default();
                for (sum, ticks) in sums.iter_mut().zip(off) {
                    *sum = sum.saturating_add(ticks);
                }
                for &(path, ticks) in &event.sampled {
                    let sum = self.sampled.entry((last, path)).or_default();
                    *sum = sum.saturating_add(ticks.into());
                }
            }
            let id = event.signature as usize;
            if let (Some(signature), Some(count)) = (signatures.get(id), self.plain.get_mut(id)) {
                // It will be added.
                count.calls = count.calls.wrapping_sub(1);
                let calls = event.repeated.map_or(1, |(calls, _)| calls.into());
                let halves = (event.send(signature), event.receive(signature));
                self.extended.add(signature, halves.0, halves.1, calls);
                if let Some((peer, (messages, bytes))) = message(signature, halves.0, calls) {
                    let sum = self.sent.entry(peer).or_default();
                    sum.0 = sum.0.saturating_add(messages);
                    sum.1 = sum.1.saturating_add(bytes);
                }
            }
        }
    }

    /// Adds a call as its signature says.
    #[inline(always)]
    pub fn add(&mut self, call: &Instance, row: &Row) {
        let at = call.signature as usize;
        let Some(own) = self.plain.get_mut(at) else {
            return;
        };
        own.calls = own.calls.wrapping_add(1);
        // An instance of a region is no call: the program goes on computing.
        if !row.is_plain && (row.is_mark() || call.enter == call.leave && row.is_user()) {
            return;
        }
        if let Some((last, since)) = self.last.replace((at, call.leave)) {
            let time = (call.enter - since).max(0) as u64;
            let before = &mut self.plain[last];
            before.computed = before.computed.saturating_add(time);
            self.since_met.time = self.since_met.time.saturating_add(time);
            if !row.is_plain {
                self.meet(call.number, at, row.among);
            }
        }
    }

    /// Threads may meet in a call with this number and signature.
    fn meet(&mut self, number: u64, signature: usize, among: Among) {
        if !matches!(among, Among::Meets | Among::Forks | Among::Idles) {
            return;
        }
        let mut met = std::mem::take(&mut self.since_met);
        let before = self.off.partition_point(|(call, _)| *call <= number);
        for (_, off) in self.off.drain(..before) {
            met.off = met.off.saturating_add(off);
        }
        if among == Among::Meets {
            room::at(&mut self.met, signature).add(met);
        }
    }

    /// Computation after calls, ns, by their signature.
    pub fn computed(&self) -> impl Iterator<Item = (u32, u64)> {
        let all = (0..).zip(self.plain.iter().map(|plain| plain.computed));
        all.filter(|(_, time)| *time > 0)
    }

    /// Computation before calls in which threads meet, by their signature.
    pub fn met(&self) -> impl Iterator<Item = (u32, Met)> {
        let all = (0..).zip(self.met.iter().copied());
        all.filter(|(_, met)| met.time > 0)
    }

    /// Samples: signature of the call before, `NONE` at the begin, call path, and ticks.
    pub fn sampled(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let all = self.sampled.iter();
        all.map(|(&(before, path), &ticks)| (before, path, ticks))
    }

    /// Signature of the call before, and ticks after it that were no work: asleep or blocked, without a processor,
    /// and in the kernel.
    pub fn off_work(&self) -> impl Iterator<Item = (u32, [u64; 3])> {
        self.off_work
            .iter()
            .map(|(&before, &ticks)| (before, ticks))
    }

    /// Their sum after calls with this signature.
    pub fn off_work_after(&self, signature: u32) -> u64 {
        let ticks = self.off_work.get(&signature);
        ticks.map_or(0, |ticks| {
            ticks.iter().copied().fold(0, u64::saturating_add)
        })
    }

    /// Computation after calls with this signature, ns.
    pub fn computed_after(&self, signature: u32) -> u64 {
        let plain = self.plain.get(signature as usize);
        plain.map_or(0, |plain| plain.computed)
    }

    /// Takes away time after calls with this signature that counts as looking, ns, in which others had the processor
    /// for so many ticks.
    pub fn looked_after(&mut self, signature: u32, time: u64, preempted: u64) {
        let off_work = self.off_work.get_mut(&signature).map(|of| &mut of[1]);
        for of in off_work.into_iter().chain([&mut self.beside.preempted]) {
            *of = of.saturating_sub(preempted);
        }
        if let Some(plain) = self.plain.get_mut(signature as usize) {
            plain.computed = plain.computed.saturating_sub(time);
        }
    }

    /// Messages and bytes sent, by the receiver's world rank; a rank may come several times.
    pub fn sent(&self, signatures: &[Signature]) -> impl Iterator<Item = (u32, (u64, u64))> {
        let plain = signatures.iter().zip(&self.plain);
        let plain = plain.filter_map(|(s, plain)| message(s, s.send, plain.calls));
        plain.chain(self.sent.iter().map(|(peer, sent)| (*peer, *sent)))
    }

    /// The sums of all.
    pub fn traffic(&self, signatures: &[Signature]) -> Traffic {
        let mut traffic = self.extended;
        for (signature, plain) in signatures.iter().zip(&self.plain) {
            traffic.add(signature, signature.send, signature.receive, plain.calls);
        }
        traffic
    }
}
