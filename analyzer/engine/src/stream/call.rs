//! The call that a replay is at.

use crate::basics::ends::{End, NONE};
use crate::stream::rows::Row;

/// The call being looked at.
#[derive(Clone, Copy, Debug)]
pub struct CallAt {
    /// Position of the thread in the rank.
    pub thread: u32,
    /// Its signature.
    pub signature: u32,
    /// Number in the location.
    pub number: u64,
    /// ns.
    pub enter: i64,
    /// ns.
    pub leave: i64,
    /// Whether it was slow enough to ask.
    pub asks: bool,
    /// See [`Row::any`].
    pub any: bool,
    /// Its number among the calls that ask, see [`crate::messages::charges::Calls::begin`]; `NONE` if it
    /// asks nothing.
    pub slot: u32,
}

impl CallAt {
    /// The call that begins as `begin` says, with this signature's `row`.
    #[inline(always)]
    pub fn new(begin: End, leave: i64, row: &Row) -> Self {
        CallAt {
            thread: begin.thread,
            signature: begin.signature,
            number: begin.event,
            enter: begin.time,
            leave,
            asks: leave - begin.time >= row.threshold,
            any: row.any,
            slot: NONE,
        }
    }

    /// The call as one that completes requests: it asks if it waits for them.
    #[inline(always)]
    pub(crate) fn waiting(self, row: &Row) -> Self {
        match row.blocks {
            true => self,
            false => CallAt {
                asks: false,
                slot: NONE,
                ..self
            },
        }
    }

    /// The call as one end of a message.
    #[inline]
    pub(crate) fn end(&self) -> End {
        End {
            time: self.enter,
            event: self.number,
            signature: self.signature,
            thread: self.thread,
        }
    }
}
