//! Passive target synchronisation: who held a conflicting lock on a window, and when a target next
//! made progress.

use laggard_trace::calls::number;
use laggard_trace::{Event, PEER_NONE};

use crate::memory::lock::Object;
use crate::memory::own::RemoteMemory;
use crate::messages::ends::Messages;
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::stream::rows::Row;
use crate::wire::watched::{Effect, Kind, Watch, Written};

/// Instead of a target: all targets of a window.
const ALL: i32 = -1;
/// `MPI_MODE_NOCHECK`, in the parameter of a lock: no other process holds a conflicting lock.
const NO_CHECK: i64 = 1 << 32;
/// Type of lock in the low half of the parameter.
const EXCLUSIVE: i32 = 1;

impl RemoteMemory {
    /// A call of passive target synchronisation.
    pub fn take_passive(
        &mut self,
        own: &Recorded,
        call: &CallAt,
        row: &Row,
        event: Option<&Event>,
    ) {
        let window = own.group_id(call);
        let overridden = event.and_then(|event| event.send_endpoint);
        let target = overridden.map_or(row.root, |(peer, _)| peer);
        let target = match row.operation {
            number::MPI_Win_lock | number::MPI_Win_unlock => target,
            number::MPI_Win_flush | number::MPI_Win_flush_local => target,
            _ => ALL,
        };
        if target == PEER_NONE {
            return;
        }
        let object = Object::Window(window, target);
        match row.operation {
            number::MPI_Win_lock | number::MPI_Win_lock_all => {
                let value = event.and_then(|event| event.value);
                let value = value.map(|value| value as i64);
                let parameter = value.unwrap_or(own.signature(call).parameter);
                let is_shared = parameter as i32 != EXCLUSIVE;
                if parameter & NO_CHECK == 0 {
                    self.watch_window(own, call, (window, target), is_shared, 0);
                }
                self.locks.take(call, object, is_shared);
                self.epochs.lock(window, target);
            }
            number::MPI_Win_unlock | number::MPI_Win_unlock_all => {
                if let Some(is_shared) = self.locks.held_shared(object) {
                    self.watch_window(own, call, (window, target), is_shared, 0);
                }
                self.flush(own, call, window, target);
                self.locks.give_back(object, call.end());
                self.epochs.unlock(window, target);
            }
            _ => {
                if target != ALL {
                    self.access_passive(own, call, window, target, 0);
                }
                self.flush(own, call, window, target);
            }
        }
    }

    /// A call that waits for transfers to complete. A flush of all targets may wait for any of
    /// them.
    fn flush(&mut self, own: &Recorded, call: &CallAt, window: u64, target: i32) {
        let one = (target != ALL).then_some(target);
        for target in self.epochs.flushed(window, one) {
            self.access_passive(own, call, window, target, 0);
        }
    }

    /// Takes a transfer or flush, which may wait for the lock, or for the target's progress.
    /// `expected`: its usual duration, ns, if it may have competitors. Returns whether there is a
    /// lock.
    pub fn access_passive(
        &mut self,
        own: &Recorded,
        call: &CallAt,
        window: u64,
        target: i32,
        expected: i64,
    ) -> bool {
        let of = |target| self.locks.held_shared(Object::Window(window, target));
        let held = of(target).or_else(|| of(ALL));
        if let Some(is_shared) = held {
            self.watch_window(own, call, (window, target), is_shared, expected);
        }
        held.is_some()
    }

    /// Completes a request of a transfer. The call may wait for other requests, too: it is charged
    /// with the longest wait.
    pub fn complete_access(
        &mut self,
        own: &Recorded,
        messages: &mut Messages,
        call: &CallAt,
        window: u64,
        target: i32,
    ) {
        let before = self.watches.len();
        self.access_passive(own, call, window, target, 0);
        for (watch, _) in &mut self.watches[before..] {
            watch.call = messages.asker.calls.collective(call) + 1;
        }
    }

    fn watch_window(
        &mut self,
        own: &Recorded,
        call: &CallAt,
        (window, target): (u64, i32),
        is_shared: bool,
        expected: i64,
    ) {
        if !call.asks || call.leave <= call.enter {
            return;
        }
        let kind = match is_shared {
            true => Kind::SharedWindow,
            false => Kind::ExclusiveWindow,
        };
        let watch = Watch {
            enter: call.enter,
            leave: call.leave,
            address: window,
            value: target as i64 as u64,
            rank: own.rank,
            thread: call.thread,
            signature: call.signature,
            kind: kind as u32,
            expected,
            ..Watch::default()
        };
        self.watches.push((watch, None));
    }
}

/// The target's next enter of a call after the begin of a passive access, if it was outside of all
/// calls then. `None` if it entered no call in this slab.
pub fn progressed(own: &Recorded, watch: &Watch) -> Option<Written> {
    let (end, is_inside) = own.next_progress(watch.enter)?;
    // A target that was inside, or came only after the end, did not delay the access.
    let time = match is_inside || end.time > watch.leave {
        true => watch.enter,
        false => end.time,
    };
    Some(Written {
        id: watch.id,
        time,
        effect: Effect::Satisfies as u32,
        detail: own.late(&end, watch.enter, None),
    })
}
