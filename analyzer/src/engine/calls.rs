//! Blocking calls whose messages were asked about, until their patterns are named.

use std::collections::VecDeque;

use laggard_patterns::{Interval, PatternId, two_sided};

use super::rank::{CallAt, ORDER_WINDOW};
use super::wire::{Detail, Reply};

/// A blocking call that waited for messages.
#[derive(Clone, Debug)]
struct Call {
    at: CallAt,
    /// Questions without an answer.
    open: u32,
    /// The largest late sender: severity, message, when it was sent, source.
    late_sender: Option<LateSender>,
    /// The largest late receiver.
    late_receiver: Option<(i64, Slot)>,
    /// Messages from this one on are this call's or later ones.
    first_message: u64,
}

#[derive(Clone, Debug)]
struct LateSender {
    severity: i64,
    message: u64,
    sent: i64,
    source: i32,
    detail: Slot,
}

/// A received message whose send is asked for.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Number of the call that received it, `NO_CALL` if only its time is wanted.
    call: u64,
    source: i32,
    thread: u32,
    /// When it was sent, ns; `i64::MAX` = unknown.
    sent: i64,
    answered: bool,
}

const NO_CALL: u64 = u64::MAX;
/// Tokens of questions about blocked sends have this bit.
const SEND_TOKEN: u64 = 1 << 63;

/// A pattern found in a call.
#[derive(Clone, Debug)]
pub struct Named {
    /// Which.
    pub pattern: PatternId,
    /// ns.
    pub severity: i64,
    /// The waiting call.
    pub at: CallAt,
    /// The late party.
    pub late: Detail,
}

/// Place of a [`Detail`] in [`Details`].
type Slot = u32;

/// Details of the calls that wait, stored apart: few calls have one.
#[derive(Debug, Default)]
struct Details {
    list: Vec<Detail>,
    free: Vec<Slot>,
}

impl Details {
    /// Keeps a detail in place of `old`.
    fn keep(&mut self, detail: &Detail, old: Option<Slot>) -> Slot {
        let Some(slot) = old.or_else(|| self.free.pop()) else {
            self.list.push(*detail);
            return self.list.len() as Slot - 1;
        };
        self.list[slot as usize] = *detail;
        slot
    }

    fn take(&mut self, slot: Slot) -> Detail {
        self.free.push(slot);
        self.list[slot as usize]
    }
}

/// The calls of a rank that wait for answers, in order.
#[derive(Debug, Default)]
pub struct Calls {
    calls: VecDeque<Call>,
    base: u64,
    messages: VecDeque<Message>,
    message_base: u64,
    details: Details,
    /// Whether the call being taken in is already in `calls`.
    current: bool,
    /// Messages received before they were sent, and by how much at most, ns.
    pub violations: (u64, u64),
}

impl Calls {
    /// The next questions belong to a new call.
    #[inline]
    pub fn begin(&mut self) {
        self.current = false;
    }

    fn current(&mut self, at: &CallAt) -> u64 {
        if !self.current {
            self.current = true;
            self.calls.push_back(Call {
                at: *at,
                open: 0,
                late_sender: None,
                late_receiver: None,
                first_message: self.message_base + self.messages.len() as u64,
            });
        }
        self.base + self.calls.len() as u64 - 1
    }

    /// A token for a question about a message that the call received; if it does not
    /// `charge`, only the time of the send is wanted.
    pub fn message(&mut self, at: &CallAt, source: i32, charge: bool) -> u64 {
        let call = if charge { self.current(at) } else { NO_CALL };
        if charge {
            self.calls.back_mut().expect("the current call").open += 1;
        }
        self.messages.push_back(Message {
            call,
            source,
            thread: at.thread,
            sent: i64::MAX,
            answered: false,
        });
        self.message_base + self.messages.len() as u64 - 1
    }

    /// A token for a question about a message that the call sent.
    pub fn blocked_send(&mut self, at: &CallAt) -> u64 {
        let call = self.current(at);
        self.calls.back_mut().expect("the current call").open += 1;
        call | SEND_TOKEN
    }

    fn answered(&mut self, token: u64, sent: i64) -> Option<(u64, i32)> {
        let at = usize::try_from(token.checked_sub(self.message_base)?).ok()?;
        let message = self.messages.get_mut(at)?;
        message.answered = true;
        message.sent = sent;
        Some((message.call, message.source))
    }

    /// A question that nobody can answer: the peer has no trace.
    pub fn unanswerable(&mut self, token: u64) {
        if let Some((call, _)) = self.answered(token, i64::MAX)
            && let Some(call) = find(&mut self.calls, self.base, call)
        {
            call.open -= 1;
        }
    }

    /// Takes an answer in.
    pub fn reply(&mut self, reply: &Reply, detail: Option<&Detail>) {
        if reply.token & SEND_TOKEN != 0 {
            let number = reply.token & !SEND_TOKEN;
            let Some(call) = find(&mut self.calls, self.base, number) else {
                return;
            };
            call.open = call.open.saturating_sub(1);
            let severity = two_sided::late_receiver(call.interval(), reply.time);
            let Some(detail) = detail.filter(|_| severity > 0) else {
                return;
            };
            // Ties go by who is late, so that the order of the answers does not matter.
            let key = |detail: &Detail| std::cmp::Reverse((detail.rank, detail.path));
            let old = call.late_receiver;
            let list = &self.details.list;
            let before = old.map(|(most, slot)| (most, key(&list[slot as usize])));
            if before.is_none_or(|before| (severity, key(detail)) > before) {
                let slot = self.details.keep(detail, old.map(|(_, slot)| slot));
                call.late_receiver = Some((severity, slot));
            }
            return;
        }
        let Some((number, source)) = self.answered(reply.token, reply.time) else {
            return;
        };
        let Some(call) = find(&mut self.calls, self.base, number) else {
            return;
        };
        call.open = call.open.saturating_sub(1);
        let leave = call.at.leave;
        let severity = two_sided::late_sender(call.interval(), reply.time);
        if let Some(detail) = detail.filter(|_| severity > 0) {
            let key = |severity, sent, message| (severity, sent, std::cmp::Reverse(message));
            let old = &call.late_sender;
            let before = old
                .as_ref()
                .map(|most| key(most.severity, most.sent, most.message));
            if before.is_none_or(|before| key(severity, reply.time, reply.token) > before) {
                let old = old.as_ref().map(|most| most.detail);
                call.late_sender = Some(LateSender {
                    severity,
                    message: reply.token,
                    sent: reply.time,
                    source,
                    detail: self.details.keep(detail, old),
                });
            }
        }
        if reply.time > leave {
            self.violations.0 += 1;
            self.violations.1 = self.violations.1.max((reply.time - leave) as u64);
        }
    }

    /// Names the patterns of the calls at the front that are answered. At the `end`
    /// of the trace, questions without an answer count as unmatched.
    pub fn name(&mut self, end: bool, mut found: impl FnMut(Named)) {
        while let Some(call) = self.calls.front() {
            if call.open > 0 && !end {
                break;
            }
            let pattern = match &call.late_sender {
                None => None,
                Some(late) => match self.overtaken(late, end) {
                    Some(pattern) => Some(pattern),
                    None => break,
                },
            };
            self.base += 1;
            let Some(call) = self.calls.pop_front() else {
                break;
            };
            let sender = call
                .late_sender
                .map(|late| (late.severity, self.details.take(late.detail)));
            let receiver = call
                .late_receiver
                .map(|(severity, slot)| (severity, self.details.take(slot)));
            let named = match (pattern, sender, receiver) {
                (Some(pattern), Some((severity, late)), _) => (pattern, severity, late),
                (_, _, Some((severity, late))) => (PatternId::LateReceiver, severity, late),
                _ => continue,
            };
            let (pattern, severity, late) = named;
            let named = Named {
                pattern,
                severity,
                at: call.at,
                late,
            };
            found(named);
        }
        let needed = self
            .calls
            .front()
            .map_or(u64::MAX, |call| call.first_message);
        while self.message_base < needed
            && self
                .messages
                .front()
                .is_some_and(|message| message.answered || end)
        {
            self.messages.pop_front();
            self.message_base += 1;
        }
    }

    /// Which late sender it is: whether a message that was sent before the late one is
    /// received after it, by the same thread. `None` while the answers that decide it
    /// are not there.
    fn overtaken(&self, late: &LateSender, end: bool) -> Option<PatternId> {
        let first = usize::try_from(late.message + 1 - self.message_base).ok()?;
        let own = self.messages.get(first - 1)?;
        let mut seen = 0;
        let mut pattern = PatternId::LateSender;
        for message in self.messages.range(first.min(self.messages.len())..) {
            if message.call == own.call {
                continue;
            }
            if seen == ORDER_WINDOW {
                break;
            }
            seen += 1;
            if !message.answered && !end {
                return None;
            }
            if message.thread != own.thread || message.sent >= late.sent {
                continue;
            }
            if message.source == late.source {
                return Some(PatternId::LateSenderWrongOrderSameSource);
            }
            pattern = PatternId::LateSenderWrongOrderOtherSource;
        }
        (end || seen == ORDER_WINDOW).then_some(pattern)
    }
}

/// The call with this number.
fn find(calls: &mut VecDeque<Call>, base: u64, number: u64) -> Option<&mut Call> {
    calls.get_mut(usize::try_from(number.checked_sub(base)?).ok()?)
}

impl Call {
    fn interval(&self) -> Interval {
        Interval::new(self.at.enter, self.at.leave)
    }
}
