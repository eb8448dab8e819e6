//! Calls on symmetric memory: waits for values and locks, writes, and their messages between
//! agents.

use laggard_trace::calls::{Call, GenericType, number};
use laggard_trace::{Event, PEER_NONE, Signature, SymmetricAddress, flags};

use crate::basics::ends::End;
use crate::memory::lock::Object;
use crate::memory::own::RemoteMemory;
use crate::stream::call::CallAt;
use crate::stream::polling::Episode;
use crate::stream::recorded::Recorded;
use crate::stream::roles::Memory;
use crate::stream::rows::Row;
use crate::wire::watched::{ANY_CHANGE, Effect, Kind};
use crate::wire::watched::{Watch, Written};

/// Largest write, in bytes, that may set a flag: it may end a wait for an unknown variable.
const FLAG_BYTES: u64 = 8;

/// A read of a place in a window by a thread.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    thread: u32,
    enter: i64,
    window: u64,
    displacement: u64,
    /// World rank.
    target: u32,
}

/// A write of this slab.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// World rank of the target PE.
    target: u32,
    /// Its window; 0 for symmetric memory.
    window: u64,
    /// Symmetric address, or displacement in the window.
    address: u64,
    bytes: u64,
    /// Extent from the first to the last byte; more than `bytes` with gaps.
    length: u64,
    /// New value of the variable, if known.
    value: Option<u64>,
    /// Whether it may leave the variable unchanged.
    may_fail: bool,
    end: End,
}

impl Write {
    /// Its effect on the variable of the wait; `None` if it does not touch it, or sets it to
    /// another value.
    fn ends(&self, watch: &Watch) -> Option<Effect> {
        let changes = match self.may_fail {
            true => Effect::MayChange,
            false => Effect::Changes,
        };
        let last = self.address.saturating_add(self.length);
        if watch.window != 0 {
            // A displacement unit is one byte or more.
            let covers = (self.address..last).contains(&watch.address);
            let is_there = self.address == watch.address || self.length > FLAG_BYTES && covers;
            return (self.window == watch.window && is_there).then_some(changes);
        }
        // The address of a window in its own memory is unknown.
        if watch.is_user() && (watch.address == 0 || self.window != 0) {
            return (self.length <= FLAG_BYTES).then_some(changes);
        }
        // An archive has no addresses.
        let is_elsewhere = self.window != 0 || watch.address == 0;
        if is_elsewhere || watch.address < self.address || watch.address >= last {
            return None;
        }
        let same = (self.address, self.bytes) == (watch.address, u64::from(watch.bytes));
        match self.value.filter(|_| same && !watch.is_user()) {
            Some(value) => watch.is_satisfied(value).then_some(Effect::Satisfies),
            None => Some(changes),
        }
    }
}

/// Whether a call has the bytes of its signature.
pub fn has_its_size(event: Option<&Event>) -> bool {
    event.is_none_or(|event| event.send_bytes.is_none() && event.receive_bytes.is_none())
}

/// Keeps the last writes to each PE; they stay sorted. The record of a region is at its end, so a
/// write of the slab before may have ended it.
pub fn keep_last(writes: &mut Vec<Write>) {
    let mut kept = Vec::new();
    for of_target in writes.chunk_by(|a, b| a.target == b.target) {
        let first = kept.len();
        // Repeated failing attempts must not push out the write that ended the wait.
        let mut room = [KEPT; 2];
        let last = of_target.iter().rev().filter(|write| {
            let room = &mut room[usize::from(write.may_fail)];
            let is_kept = *room > 0;
            *room -= usize::from(is_kept);
            is_kept
        });
        kept.extend(last);
        kept[first..].reverse();
    }
    *writes = kept;
}

/// Writes to a PE kept from slab to slab: this many that changed something, and as many that may
/// have failed.
const KEPT: usize = 16;

/// Sorts writes by target and time.
pub fn sort_writes(writes: &mut [Write]) {
    writes.sort_unstable_by_key(|write| (write.target, write.end.time, write.end.event));
}

impl RemoteMemory {
    /// Takes a call on symmetric memory.
    pub fn on_memory(
        &mut self,
        own: &Recorded,
        call: &CallAt,
        row: &Row,
        event: Option<&Event>,
        episode: Option<Episode>,
    ) {
        if row.has(flags::UNSUCCESSFUL) || row.has(flags::PAUSED) {
            return;
        }
        let signature = *own.signature(call);
        let address = event.and_then(|event| event.address);
        let is_user = laggard_trace::calls::call(row.operation).is_some_and(Call::is_user);
        let since_begun = event.and_then(|event| event.value).filter(|_| is_user);
        let call = &match since_begun {
            Some(ticks) => own.begun_before(call, ticks, row),
            None => *call,
        };
        let address = match is_user {
            true => address.unwrap_or(0),
            false => address.unwrap_or(signature.parameter as u64),
        };
        let waits = matches!(row.memory, Memory::Waits | Memory::Locks) || episode.is_some();
        if waits && call.asks && call.leave > call.enter {
            let mut watch = self.watch(own, call, &signature, address, event);
            if let Some(begin) = episode.as_ref().and_then(Episode::begin) {
                (watch.enter, watch.found) = (begin, call.enter);
            }
            self.watches.push((watch, episode));
        }
        match row.memory {
            // An archive does not tell locks apart.
            Memory::Locks | Memory::TriesLock | Memory::Unlocks if address == 0 => {}
            Memory::Locks | Memory::TriesLock => {
                self.locks.take(call, Object::Address(address), false);
            }
            Memory::Unlocks => self.locks.give_back(Object::Address(address), call.end()),
            Memory::Sets | Memory::Changes => {
                self.write(call, row.memory, &signature, address, event);
                let send = event.map_or(signature.send, |event| event.send(&signature));
                let receive = event.map_or(signature.receive, |event| event.receive(&signature));
                // An atomic may only read.
                let peer = if send.peer == PEER_NONE {
                    receive.peer
                } else {
                    send.peer
                };
                self.compete(own, call, peer, event);
            }
            Memory::Gets => {
                let receive = event.map_or(signature.receive, |event| event.receive(&signature));
                self.compete(own, call, receive.peer, event);
            }
            Memory::Waits | Memory::Looks | Memory::Nothing => {}
        }
    }

    /// A transfer, which may compete with others at its target.
    fn compete(&mut self, own: &Recorded, call: &CallAt, target: i32, event: Option<&Event>) {
        let expected = self.move_data(own, call, target, has_its_size(event));
        if expected > 0 {
            self.watch_transfer(own, call, target, expected);
        }
    }

    /// A transfer on a window. It may end a loop in which its target waits, or read the flag of
    /// such a loop.
    pub fn on_window_memory(
        &mut self,
        own: &Recorded,
        call: &CallAt,
        window: u64,
        event: Option<&Event>,
    ) {
        let signature = *own.signature(call);
        let generic = laggard_trace::calls::call(signature.operation).map(|call| call.generic);
        let value = event.and_then(|event| event.value);
        let displacement = value.unwrap_or(signature.parameter as u64);
        let send = event.map_or(signature.send, |event| event.send(&signature));
        let receive = event.map_or(signature.receive, |event| event.receive(&signature));
        let changes = send.peer != PEER_NONE;
        if !changes || generic == Some(GenericType::OneSidedAtomic) {
            let target = if changes { send.peer } else { receive.peer };
            self.looks.retain(|look| look.thread != call.thread);
            self.looks.push(Look {
                thread: call.thread,
                enter: call.enter,
                window,
                displacement,
                target: target as u32,
            });
        }
        if let Ok(target) = u32::try_from(send.peer) {
            self.writes.push(Write {
                target,
                window,
                address: displacement,
                bytes: send.bytes,
                length: send.bytes,
                value: None,
                may_fail: signature.operation == number::MPI_Compare_and_swap,
                end: call.end(),
            });
        }
    }

    fn write(
        &mut self,
        call: &CallAt,
        memory: Memory,
        signature: &Signature,
        address: u64,
        event: Option<&Event>,
    ) {
        let send = event.map_or(signature.send, |event| event.send(signature));
        let Ok(target) = u32::try_from(send.peer) else {
            return;
        };
        let value = event.and_then(|event| event.value);
        let stride = u64::from(send.tag.unsigned_abs()).max(1);
        self.writes.push(Write {
            target,
            window: 0,
            address,
            bytes: send.bytes,
            length: send.bytes.saturating_mul(stride),
            value: value.filter(|_| memory == Memory::Sets),
            may_fail: false,
            end: call.end(),
        });
    }

    fn watch(
        &self,
        own: &Recorded,
        call: &CallAt,
        signature: &Signature,
        address: u64,
        event: Option<&Event>,
    ) -> Watch {
        let receive = event.map_or(signature.receive, |event| event.receive(signature));
        let of_type = laggard_trace::calls::call(signature.operation);
        if of_type.is_some_and(Call::is_user) {
            let told = SymmetricAddress(address);
            let (address, window, holder) = match told.segment() {
                SymmetricAddress::WINDOW => (told.offset(), signature.group, own.rank),
                SymmetricAddress::UNKNOWN => self.looked_at(call).unwrap_or((address, 0, 0)),
                _ => (address, 0, 0),
            };
            return Watch {
                enter: call.enter,
                leave: call.leave,
                address,
                window,
                holder: u64::from(holder),
                rank: own.rank,
                thread: call.thread,
                signature: call.signature,
                comparison: ANY_CHANGE,
                kind: Kind::Value as u32,
                ..Watch::default()
            };
        }
        Watch {
            id: 0,
            enter: call.enter,
            leave: call.leave,
            address,
            value: event.and_then(|event| event.value).unwrap_or(0),
            rank: own.rank,
            thread: call.thread,
            signature: call.signature,
            comparison: receive.tag as u32,
            bytes: receive.bytes.min(8) as u32,
            is_unsigned: u32::from(of_type.is_some_and(Call::is_unsigned)),
            kind: match of_type.map(|call| call.generic) {
                Some(GenericType::Lock) => Kind::Lock as u32,
                _ => Kind::Value as u32,
            },
            ..Watch::default()
        }
    }

    /// The flag in a window that a loop read last, and so found set: displacement, window, and the
    /// rank that holds it.
    fn looked_at(&self, call: &CallAt) -> Option<(u64, u64, u32)> {
        let mut looks = self.looks.iter();
        let look = looks.find(|l| l.thread == call.thread && l.enter >= call.enter)?;
        Some((look.displacement, look.window, look.target))
    }

    /// This rank's write of this slab that ended a wait.
    pub fn written(&self, own: &Recorded, watch: &Watch) -> Option<Written> {
        let key = |write: &Write| (write.target, write.end.time);
        let holder = watch.holder();
        let first = self
            .writes
            .partition_point(|write| key(write) <= (holder, watch.enter));
        let end = self
            .writes
            .partition_point(|write| key(write) <= (holder, watch.leave));
        let mut found: Option<(&Write, Effect)> = None;
        for write in self.writes.get(first..end)? {
            // A loop's own access to a flag in a window does not end it.
            if write.window != 0 && own.rank == watch.rank {
                continue;
            }
            let Some(effect) = write.ends(watch) else {
                continue;
            };
            if found.is_none_or(|(_, known)| effect >= known) {
                found = Some((write, effect));
            }
            if effect == Effect::Satisfies {
                break;
            }
        }
        let (write, effect) = found?;
        Some(Written {
            id: watch.id,
            time: write.end.time,
            effect: effect as u32,
            detail: own.late(&write.end, watch.enter, watch.by()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parcels::Detail;

    fn watch(comparison: u32, value: i64, bytes: u32, is_unsigned: u32) -> Watch {
        Watch {
            address: 100,
            value: value as u64,
            comparison,
            bytes,
            is_unsigned,
            ..Watch::default()
        }
    }

    #[test]
    fn values_compare_as_their_type_says() {
        assert!(watch(0, 7, 8, 0).is_satisfied(7));
        assert!(watch(1, 0, 4, 0).is_satisfied(1) && !watch(1, 0, 4, 0).is_satisfied(1 << 32));
        // A put carries the bytes of −1, the wait its value.
        assert!(watch(0, -1, 4, 0).is_satisfied(0xffff_ffff));
        assert!(watch(4, 0, 4, 0).is_satisfied(0xffff_ffff));
        assert!(watch(2, 0, 4, 1).is_satisfied(0xffff_ffff));
        assert!(!watch(5, 3, 2, 0).is_satisfied(2) && watch(3, 3, 2, 0).is_satisfied(2));
        assert!(!watch(9, 3, 2, 0).is_satisfied(3));
    }

    #[test]
    fn a_place_in_a_window_is_told_from_others() {
        let flag = Watch {
            comparison: ANY_CHANGE,
            window: 7,
            address: 3,
            ..Watch::default()
        };
        let put = |window, address, bytes| Write {
            window,
            ..write(address, bytes, None)
        };
        assert_eq!(put(7, 3, 8).ends(&flag), Some(Effect::Changes));
        assert_eq!(put(7, 2, 8).ends(&flag), None);
        let swap = Write {
            may_fail: true,
            ..put(7, 3, 8)
        };
        assert_eq!(swap.ends(&flag), Some(Effect::MayChange));
        assert_eq!(put(7, 0, 64).ends(&flag), Some(Effect::Changes));
        assert_eq!(put(8, 3, 8).ends(&flag), None);
        assert_eq!(put(0, 3, 8).ends(&flag), None);
        // A loop that looks at its own memory.
        let own = Watch {
            window: 0,
            address: 0,
            ..flag
        };
        assert_eq!(put(7, 2, 4).ends(&own), Some(Effect::Changes));
        assert_eq!(put(7, 2, 64).ends(&own), None);
        // OpenSHMEM waits are not on windows.
        assert_eq!(put(7, 100, 8).ends(&watch(5, 3, 8, 0)), None);
    }

    fn write(address: u64, bytes: u64, value: Option<u64>) -> Write {
        Write {
            target: 0,
            window: 0,
            address,
            bytes,
            length: bytes,
            value,
            may_fail: false,
            end: End {
                time: 0,
                event: 0,
                signature: 0,
                thread: 0,
            },
        }
    }

    #[test]
    fn a_write_ends_a_wait_if_it_covers_the_variable() {
        let watch = watch(5, 3, 8, 0);
        assert_eq!(write(100, 8, Some(3)).ends(&watch), Some(Effect::Satisfies));
        assert_eq!(write(100, 8, Some(2)).ends(&watch), None);
        assert_eq!(write(100, 8, None).ends(&watch), Some(Effect::Changes));
        assert_eq!(write(92, 64, Some(0)).ends(&watch), Some(Effect::Changes));
        assert_eq!(write(92, 8, None).ends(&watch), None);
        assert_eq!(write(101, 8, Some(3)).ends(&watch), None);
    }

    #[test]
    fn attempts_do_not_push_out_what_was_written() {
        let at = |time, may_fail| {
            let mut one = write(100, 8, None);
            (one.end.time, one.may_fail) = (time, may_fail);
            one
        };
        let mut writes: Vec<Write> = (10..50).map(|time| at(time, true)).collect();
        writes.insert(0, at(5, false));
        keep_last(&mut writes);
        let times: Vec<i64> = writes.iter().map(|write| write.end.time).collect();
        let attempts = 50 - KEPT as i64..50;
        assert_eq!(times, [vec![5], attempts.collect()].concat());
    }

    #[test]
    fn the_first_known_write_counts_else_the_last() {
        let written = |time, effect: u32, rank| Written {
            time,
            effect,
            detail: Detail {
                rank,
                ..Detail::default()
            },
            ..Written::default()
        };
        assert!(written(3, 2, 0).is_better(&written(5, 2, 0)));
        assert!(written(5, 1, 0).is_better(&written(3, 1, 0)));
        assert!(written(9, 2, 0).is_better(&written(3, 1, 0)));
        assert!(written(3, 1, 1).is_better(&written(3, 1, 2)));
        // A compare-and-swap that may have failed counts only without another write.
        assert!(written(3, 1, 0).is_better(&written(5, 0, 0)));
        assert!(written(5, 0, 0).is_better(&written(3, 0, 0)));
        assert!(!written(3, 1, 2).is_better(&written(3, 1, 1)));
    }
}
