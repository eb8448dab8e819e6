//! The current call of a replay.

use crate::basics::ends::{End, NONE};
use crate::stream::rows::Row;

/// The current call.
#[derive(Clone, Copy, Debug)]
pub struct CallAt {
    /// Position of the thread in the rank.
    pub thread: u32,
    pub signature: u32,
    /// Number in the location.
    pub number: u64,
    /// Enter, ns.
    pub enter: i64,
    /// Leave, ns.
    pub leave: i64,
    /// Whether it is long enough for questions.
    pub asks: bool,
    /// Whether it ended an episode of looks.
    pub polled: bool,
    /// See [`Row::any`].
    pub any: bool,
    /// Its number among the calls with questions, see [`crate::messages::charges::Calls::begin`];
    /// `NONE` without any.
    pub slot: u32,
}

impl CallAt {
    /// The call with this begin, leave and signature's `row`.
    #[inline(always)]
    pub fn new(begin: End, leave: i64, row: &Row) -> Self {
        CallAt {
            thread: begin.thread,
            signature: begin.signature,
            number: begin.event,
            enter: begin.time,
            leave,
            asks: leave - begin.time >= row.asks_from,
            polled: false,
            any: row.any,
            slot: NONE,
        }
    }

    /// Makes it a call that completes requests: it has questions if it waits for them, or looked for
    /// them before.
    #[inline(always)]
    pub(crate) fn wait(&mut self, row: &Row) {
        if !(row.blocks || self.polled) {
            (self.asks, self.slot) = (false, NONE);
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
