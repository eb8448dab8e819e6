//! What agents tell each other of waits for values and locks, and of slow transfers.

use super::packing::{Pack, Packer, Unpacker, entries, put_mask, take_mask};
use super::parcels::Detail;

entries! {
    /// A PE that waits until a variable of its own has some value.
    #[derive(Default)]
    Watch {
        /// Number among those that the agent told.
        id: u64,
        /// ns.
        enter: i64,
        /// ns.
        leave: i64,
        /// Symmetric address.
        address: u64,
        /// What it is compared with.
        value: u64,
        /// World rank.
        rank: u32,
        /// Position of the thread in the rank.
        thread: u32,
        /// Its signature.
        signature: u32,
        /// By which it is compared, as in `shmem.h`.
        comparison: u32,
        /// Bytes of the variable.
        bytes: u32,
        /// Whether it has no sign.
        is_unsigned: u32,
        /// What is waited for, a [`Kind`]. Of windows the address is the window, the value the
        /// target; of a transfer the value is its target, too.
        kind: u32,
        /// What a transfer should have taken, ns; 0 = it is not asked who competed.
        expected: i64,
        /// Of a loop of the program's own that looked at a place in a window last: the window, of
        /// which the address is the displacement; else 0.
        window: u64,
        /// World rank whose memory that is.
        holder: u64,
        /// Number among those that ask of a call that completed a transfer's request, and one
        /// more: what it lost otherwise counts, too. 0 of others.
        call: u32,
    }
    /// A lock was held while a PE waited for it.
    #[derive(Default)]
    Held {
        /// Of the wait.
        id: u64,
        /// ns.
        from: i64,
        /// ns.
        until: i64,
        /// The call that gave it back, and what the PE that held it did meanwhile.
        detail: Detail,
    }
    /// Transfers of a thread by one call path were under way while another transferred to or from
    /// the same rank.
    #[derive(Default)]
    Rival {
        /// Of the transfer that asks.
        id: u64,
        /// The first that overlaps, ns.
        from: i64,
        /// The last.
        until: i64,
        /// Time in which they overlap, ns.
        overlap: i64,
        /// The call.
        detail: Detail,
    }
    /// A write that may have ended a wait.
    #[derive(Default)]
    Written {
        /// Of the wait.
        id: u64,
        /// ns.
        time: i64,
        /// What is known of it, an [`Effect`].
        effect: u32,
        /// What the PE that wrote did before.
        detail: Detail,
    }
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A variable shall have some value.
    Value,
    /// A lock of OpenSHMEM shall be free.
    Lock,
    /// Nobody else shall have a lock on a window.
    ExclusiveWindow,
    /// Nobody shall have an exclusive lock on a window.
    SharedWindow,
    /// Nothing: a transfer was slow.
    Transfer,
}

/// What is known of a write to a variable that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Effect {
    /// It may have changed nothing: a compare-and-swap of MPI, of which the result is not there
    /// before a later call.
    MayChange,
    /// It changed the variable, to what is not known.
    Changes,
    /// It set the variable to what is waited for.
    Satisfies,
}

/// In place of a comparison: a loop of the program's own waits for whatever it likes.
pub const ANY_CHANGE: u32 = u32::MAX;

impl Watch {
    /// Whether it is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u32
    }

    /// Whether it is about a window.
    pub fn is_of_window(&self) -> bool {
        self.is(Kind::ExclusiveWindow) || self.is(Kind::SharedWindow)
    }

    /// The rank in whose memory the variable is.
    pub fn holder(&self) -> u32 {
        match self.window {
            0 => self.rank,
            _ => self.holder as u32,
        }
    }

    /// Whether it is a loop of the program's own: the last write counts.
    pub fn is_user(&self) -> bool {
        self.comparison == ANY_CHANGE
    }

    /// Whether the variable with this value compares as it shall.
    pub fn is_satisfied(&self, value: u64) -> bool {
        let unused = 64 - 8 * self.bytes.clamp(1, 8);
        let number = |value: u64| match self.is_unsigned {
            0 => i128::from((value << unused) as i64 >> unused),
            _ => i128::from(value << unused >> unused),
        };
        let (value, wanted) = (number(value), number(self.value));
        // As in `shmem.h`.
        match self.comparison {
            0 => value == wanted,
            1 => value != wanted,
            2 => value > wanted,
            3 => value <= wanted,
            4 => value < wanted,
            5 => value >= wanted,
            _ => false,
        }
    }
}

impl Written {
    /// Whether it, not another write, ended the wait: the first that is known to have, else the
    /// last one, and rather one that changed something. Of two at once that of the lower rank.
    pub fn is_better(&self, other: &Written) -> bool {
        let who = |w: &Written| (w.detail.rank, w.detail.thread, w.detail.event);
        if self.effect != other.effect {
            return self.effect > other.effect;
        }
        match self.time == other.time {
            true => who(self) < who(other),
            false => (self.time < other.time) == (self.effect == Effect::Satisfies as u32),
        }
    }
}
