//! Messages between agents about waits for values and locks, and slow transfers.

use super::packing::{Mask, Pack, Packer, Unpacker, entries};
use super::parcels::Detail;

entries! {
    /// A wait of a PE until a variable of its own has some value.
    #[derive(Default)]
    Watch {
        /// Number of the wait at its agent.
        id: u64,
        /// When it began, ns.
        enter: i64,
        /// Leave, ns.
        leave: i64,
        /// For an episode of looks: enter of the one that found something, ns. Else 0.
        found: i64,
        /// Symmetric address.
        address: u64,
        /// Value of the comparison.
        value: u64,
        /// World rank.
        rank: u32,
        /// Position of the thread in the rank.
        thread: u32,
        signature: u32,
        /// Operator of the comparison, as in `shmem.h`.
        comparison: u32,
        /// Bytes of the variable.
        bytes: u32,
        /// Whether the variable is unsigned.
        is_unsigned: u32,
        /// Kind of wait, a [`Kind`]. For windows, the address is the window and the value the
        /// target; for a transfer, the value is its target.
        kind: u32,
        /// Expected duration of a transfer, ns; 0 = competitors are not requested.
        expected: i64,
        /// For a loop of the program that last read a place in a window: the window; its
        /// displacement is the address. Else 0.
        window: u64,
        /// World rank that holds the memory.
        holder: u64,
        /// For a call that completed a transfer's request: its number among those with questions,
        /// plus one; its other losses count, too. 0 for other calls.
        call: u32,
    }
    /// A hold of a lock while a PE waited for it.
    #[derive(Default)]
    Held {
        /// Number of the wait.
        id: u64,
        /// Begin, ns.
        from: i64,
        /// End, ns.
        until: i64,
        /// The call that released it, and the activity of the holder.
        detail: Detail,
    }
    /// Transfers of a thread by one call path that overlap another rank's transfer to or from the
    /// same target.
    #[derive(Default)]
    Rival {
        /// Number of the transfer that asks.
        id: u64,
        /// Begin of the first overlap, ns.
        from: i64,
        /// End of the last, ns.
        until: i64,
        /// Total overlap, ns.
        overlap: i64,
        /// The call.
        detail: Detail,
    }
    /// A write that may have ended a wait.
    #[derive(Default)]
    Written {
        /// Number of the wait.
        id: u64,
        /// Time of the write, ns.
        time: i64,
        /// Its effect, an [`Effect`].
        effect: u32,
        /// Activity of the writing PE before.
        detail: Detail,
    }
}

/// Kind of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A variable to have some value.
    Value,
    /// A lock of OpenSHMEM to be free.
    Lock,
    /// A lock on a window that excludes all others.
    ExclusiveWindow,
    /// A lock on a window that excludes only exclusive ones.
    SharedWindow,
    /// None: a transfer was slow.
    Transfer,
}

/// Effect of a write on a variable that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Effect {
    /// It may have changed nothing: a compare-and-swap of MPI, whose result is known only after a
    /// later call.
    MayChange,
    /// It changed the variable to an unknown value.
    Changes,
    /// It set the variable to the awaited value.
    Satisfies,
}

/// Instead of a comparison: a loop of the program waits for any condition.
pub const ANY_CHANGE: u32 = u32::MAX;

impl Watch {
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u32
    }

    /// For an episode of looks: when the one that found something was entered, ns.
    pub fn by(&self) -> Option<i64> {
        Some(self.found).filter(|found| *found != 0)
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

    /// Whether a loop of the program waits: then the last write counts.
    pub fn is_user(&self) -> bool {
        self.comparison == ANY_CHANGE
    }

    /// Whether this value of the variable satisfies the comparison.
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
    /// Whether this write, not the other, ended the wait: the first that certainly did, else the
    /// last one; writes that changed something come first. Of two at once, that of the lower rank.
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
