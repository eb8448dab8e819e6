//! Barriers, collectives and other joint calls of PEs.

use std::ffi::c_int;
use std::ptr;

use laggard_trace::{Subject, flags};

use crate::call::{Call, guarded};
use crate::classes::Operation;
use crate::groups::Pes;
use crate::groups::{Group, NO_ROOT};
use crate::signature::Half;
use crate::stream::Stream;
use crate::symmetric;

#[inline(always)]
pub fn everybody() -> Pes {
    Pes::All
}

/// `size` PEs from `start` on, 2^`log_stride` apart.
#[inline(always)]
pub fn active_set(start: c_int, log_stride: c_int, size: c_int) -> Pes {
    Pes::ActiveSet {
        start,
        log_stride,
        size,
    }
}

/// A call that several PEs make together.
pub struct Meeting {
    pes: Pes,
    root: c_int,
    sent: usize,
    received: usize,
}

/// Every PE needs data from all, or waits for all; `sent` and `received` are bytes of this PE.
#[inline(always)]
pub fn meeting(pes: Pes, sent: usize, received: usize) -> Meeting {
    Meeting {
        pes,
        root: NO_ROOT,
        sent,
        received,
    }
}

/// The root sends `bytes` bytes to all; its number is that in the set.
#[inline(always)]
pub fn broadcast(pes: Pes, root: c_int, bytes: usize) -> Meeting {
    Meeting {
        pes,
        root,
        sent: bytes,
        received: bytes,
    }
}

impl Meeting {
    fn volumes(&self, group: &Group) -> (usize, usize) {
        if self.root == NO_ROOT {
            (self.sent, self.received)
        } else if self.root == group.rank {
            (self.sent, 0)
        } else {
            (0, self.received)
        }
    }
}

impl Operation for Meeting {
    fn subject(&self, stream: &mut Stream) -> Subject {
        match guarded(|| stream.pes(self.pes)).flatten() {
            Some(group) => Subject {
                group: group.id,
                peer: group.world_rank(self.root),
                ..Subject::NONE
            },
            None => Subject::NONE,
        }
    }

    #[inline(never)]
    fn after(&mut self, call: &mut Call) {
        let mut raw = call.raw();
        if let Some(group) = call.stream().pes(self.pes) {
            let (sent, received) = self.volumes(group);
            raw.group = ptr::from_ref(group);
            raw.send = Half::new(self.root, 0, sent as u64);
            raw.receive.bytes = received as u64;
            raw.flags |= flags::COLLECTIVE;
        }
        call.record(&raw);
    }
}

/// Allocates or frees symmetric memory, jointly on all PEs.
pub struct Memory {
    meeting: Meeting,
    wanted: usize,
    given: u64,
}

/// Allocates `wanted` bytes of symmetric memory; 0 = frees some.
#[inline(always)]
pub fn memory(wanted: usize) -> Memory {
    Memory {
        meeting: meeting(Pes::All, 0, 0),
        wanted,
        given: 0,
    }
}

impl Operation for Memory {
    fn returned(&mut self, value: u64) {
        self.given = value;
    }

    fn subject(&self, stream: &mut Stream) -> Subject {
        self.meeting.subject(stream)
    }

    #[inline(never)]
    fn after(&mut self, call: &mut Call) {
        if self.wanted > 0 && self.given == 0 {
            // Memory is short on some PE, and none waits for the others.
            let mut raw = call.raw();
            raw.flags |= flags::FAILED;
            return call.record(&raw);
        }
        symmetric::note_heap(self.given);
        self.meeting.after(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_root_sends() {
        let root = |root| broadcast(Pes::All, root, 8);
        let group = Group::test(3, 1, &[0, 1]);
        assert_eq!(root(1).volumes(&group), (8, 0));
        assert_eq!(root(0).volumes(&group), (0, 8));
        assert_eq!(meeting(Pes::All, 4, 16).volumes(&group), (4, 16));
    }
}
