//! Questions in pass one: which messages' other ends are asked for.

use super::rank::{CallAt, ORDER_WINDOW, Rank};
use super::table::NONE;
use super::wildcard::Receipt;
use super::wire::{QUESTION_BARE, Question};

impl Rank<'_> {
    pub(super) fn receipt(&mut self, call: &CallAt, channel: u32) -> Receipt {
        let asked = self.should_ask(call);
        let source = self.receives.list[channel as usize].key.1;
        let message = asked.then(|| self.calls.message(call, source, call.asks));
        let leave = if call.asks { call.leave } else { call.enter };
        Receipt {
            call: (call.thread, call.number),
            message,
            enter: call.enter,
            leave,
        }
    }

    pub(super) fn ask_late(
        &mut self,
        receipt: &Receipt,
        channel: u32,
        n: u64,
        now: Option<(u32, u64)>,
    ) {
        let Some(token) = receipt.message else { return };
        if self.receives.list[channel as usize].agent == NONE {
            self.calls.unanswerable(token);
            return;
        }
        self.questions.push((
            channel,
            0,
            Question {
                channel: 0,
                rank: self.position,
                token,
                n,
                enter: receipt.enter,
                leave: receipt.leave,
                flags: if now == Some(receipt.call) {
                    0
                } else {
                    QUESTION_BARE
                },
            },
        ));
    }

    /// Whether a receive is asked about: it was slow, or follows a slow one closely.
    pub(super) fn should_ask(&mut self, call: &CallAt) -> bool {
        if call.asks {
            self.watch = ORDER_WINDOW;
            true
        } else if self.watch > 0 {
            self.watch -= 1;
            true
        } else {
            false
        }
    }

    pub(super) fn ask_for_send(&mut self, call: &CallAt, channel: u32, n: u64) {
        let end = &self.receives.list[channel as usize];
        if end.agent == NONE {
            return;
        }
        let source = end.key.1;
        if !self.should_ask(call) {
            return;
        }
        let token = self.calls.message(call, source, call.asks);
        self.questions.push((
            channel,
            0,
            Question {
                channel: 0,
                rank: self.position,
                token,
                n,
                enter: call.enter,
                leave: if call.asks { call.leave } else { call.enter },
                flags: 0,
            },
        ));
    }

    pub(super) fn ask_for_post(&mut self, call: &CallAt, channel: u32, n: u64) {
        if self.sends.list[channel as usize].agent == NONE {
            return;
        }
        let token = self.calls.blocked_send(call);
        self.questions.push((
            channel,
            1,
            Question {
                channel: 0,
                rank: self.position,
                token,
                n,
                enter: call.enter,
                leave: call.leave,
                flags: 0,
            },
        ));
    }
}
