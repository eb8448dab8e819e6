//! Questions in pass one: which messages' other ends are asked for.

use super::rank::{CallAt, ORDER_WINDOW, Rank};
use super::table::NONE;
use super::wildcard::Receipt;
use super::wire::{QUESTION_BARE, Question};

impl Rank<'_> {
    pub(super) fn receipt(&mut self, call: &CallAt, channel: u32, peeks: bool) -> Receipt {
        let peer = self.receives.list[channel as usize].peer as usize;
        let received = self.received_from[peer];
        if !peeks {
            self.received_from[peer] += 1;
        }
        let asked = self.should_ask(call);
        let source = self.receives.list[channel as usize].key.1;
        let message = asked.then(|| self.calls.message(call, source, call.asks));
        let leave = if call.asks { call.leave } else { call.enter };
        Receipt {
            message,
            enter: call.enter,
            leave,
            received,
        }
    }

    pub(super) fn ask_late(&mut self, receipt: &Receipt, channel: u32, n: u64) {
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
                received: receipt.received,
                flags: QUESTION_BARE,
            },
        ));
    }

    pub(super) fn count_received(&mut self, channel: u32) {
        let slot = self.receives.list[channel as usize].peer as usize;
        self.received_from[slot] += 1;
    }

    /// Asks for the sends of everything that the call received, counted first:
    /// what one call completes together is not in the wrong order.
    pub(super) fn ask_for_received(&mut self, call: &CallAt) {
        for index in 0..self.received.len() {
            let (channel, n) = self.received[index];
            let peer = self.receives.list[channel as usize].peer as usize;
            let received = self.received_from[peer].saturating_sub(1);
            self.ask_for_send(call, channel, n, received, 0);
        }
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

    pub(super) fn ask_for_send(
        &mut self,
        call: &CallAt,
        channel: u32,
        n: u64,
        received: u64,
        flags: u64,
    ) {
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
                received,
                flags,
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
                received: 0,
                flags: 0,
            },
        ));
    }
}
