//! Blocking calls whose messages are asked about, until their patterns are named.
//!
//! A call is charged once: with the sender, the receiver, the collective or the transfers to
//! windows that it waited for longest. It is kept from its first question to its last answer. One that waited for a
//! late sender is kept a little longer: until the receives after it tell whether a
//! message that had been sent earlier was overtaken.

use laggard_patterns::progress::{REST_NS, Stall, wait_for_progress};
use laggard_patterns::{Interval, PatternId, window};
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::room::make_room;
use crate::clock::causality::Violations;
use crate::messages::channel::COMPLETED;
use crate::stream::call::CallAt;
use crate::waits::charging::{Loss, Lost, Waiting, total};
use crate::wire::parcels::{Absence, Detail, SEND, Side};

/// A blocking call that waits for answers.
#[derive(Clone, Copy, Debug)]
struct Call {
    enter: i64,
    leave: i64,
    thread: u32,
    signature: u32,
    /// Questions without an answer.
    open: u32,
    /// The largest late sender and late receiver so far, [`Late`] each.
    sender: u32,
    receiver: u32,
    /// The non-blocking collective, or the transfers, that it waited for longest, [`Losses`].
    group: u32,
    /// Low half of the number of the first message after those that were asked about before it.
    messages: u32,
    /// How many messages that are asked about it received.
    received: u32,
}

/// Who sent a message, and how it was received.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    /// World rank.
    source: i32,
    /// Receiving thread, and whether the program took what came first, in one: there are many.
    thread_and_any: u32,
}

impl Receipt {
    #[inline(always)]
    fn new(source: i32, thread: u32, any: bool) -> Self {
        let thread_and_any = thread << 1 | u32::from(any);
        Receipt {
            source,
            thread_and_any,
        }
    }

    #[inline]
    fn thread(&self) -> u32 {
        self.thread_and_any >> 1
    }

    #[inline]
    fn any(&self) -> bool {
        self.thread_and_any & 1 != 0
    }
}

/// A party that was late for a call.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Time that it cost, ns.
    pub severity: i64,
    /// Number of the message among those that its receiver asks about; of no use for a blocked send.
    pub message: u64,
    /// Number of the message on its channel.
    pub n: u64,
    /// World rank of the party.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// When the party was late, and what it did, see [`Late::at`].
    pub detail: Detail,
}

const _: () = assert!(size_of::<Late>() <= 128, "more is not copied at once");

/// A partner whose progress a call needed.
#[derive(Debug)]
struct Partner {
    absence: Absence,
    /// Begin and end of each absence, ns.
    times: Vec<(i64, i64)>,
}

/// What a call lost in a non-blocking collective that it completed, or in transfers under locks.
#[derive(Clone, Debug, Default)]
pub struct Losses(pub Vec<Lost>);

impl Losses {
    fn total(&self) -> i64 {
        total(self.0.iter())
    }

    /// Whether a call is charged with these rather than with the others. Ties go by who
    /// is late, so that the order of the answers does not matter.
    fn outrank(&self, other: &Losses) -> bool {
        let key = |losses: &Losses| {
            let late = |lost: &Lost| lost.late.or(lost.shares.first().map(|share| share.1));
            let late = losses.0.iter().find_map(late);
            let late = late.map(|detail| (detail.rank, detail.operation, detail.path));
            (losses.total(), std::cmp::Reverse(late))
        };
        key(self) > key(other)
    }
}

/// When a message was sent whose question has no answer yet: before all times.
/// Half of what fits, so that differences with times fit.
const UNANSWERED: i64 = i64::MIN / 2;
/// When a message was sent whose sender has no trace.
const UNKNOWN: i64 = i64::MAX / 2;

/// Number of the first of the questions about epochs on windows, which are not messages. Nobody
/// has time to receive 2^63 of those.
pub const EPOCHS: u64 = 1 << 63;

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The call; `NONE` if only the time of a send is wanted.
    pub call: u32,
    /// Number of the received message; of no use for a blocked send.
    pub message: u64,
}

/// Entries that come and go, by number.
#[derive(Debug)]
pub struct Slots<T> {
    list: Vec<T>,
    free: Vec<u32>,
    /// How many there were before memory was given back: about as many will be needed.
    expected: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            list: Vec::new(),
            free: Vec::new(),
            expected: 0,
        }
    }
}

impl<T> Slots<T> {
    /// Keeps an entry.
    #[inline(always)]
    pub fn keep(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.list[slot as usize] = entry;
                slot
            }
            None => {
                make_room(&mut self.list, 1, self.expected);
                self.list.push(entry);
                self.list.len() as u32 - 1
            }
        }
    }

    /// Gives an entry's number back.
    #[inline]
    pub fn drop(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

impl<T> std::ops::Index<u32> for Slots<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.list[slot as usize]
    }
}

/// The calls of a rank that wait for answers.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Slots<Call>,
    /// Calls with open questions.
    waiting: usize,
    lates: Slots<Late>,
    groups: Slots<Losses>,
    /// Calls that have all their answers, and somebody was late.
    concluded: Vec<u32>,
    /// Calls whose last question nobody can answer.
    unanswerable: Vec<u32>,
    /// When the messages that are asked about were sent, in the order of their
    /// receipt; kept as long as a late sender before them is not named.
    sent: Vec<i64>,
    /// How they were received.
    receipts: Vec<Receipt>,
    /// Number of `sent[0]`.
    message_base: u64,
    /// When the last transfers left of the epochs that calls waited for: call, origin, ns.
    transfers: Vec<(u32, i32, i64)>,
    /// Partners that were absent while calls lasted, by call.
    partners: FxHashMap<u32, Vec<Partner>>,
    /// Questions of the call being taken in.
    opened: u32,
    /// Whether there is something new since calls were named.
    changed: bool,
    /// Effects before their causes.
    pub violations: Violations,
}

impl Calls {
    /// Begins a call: its number, to which the next questions belong until it ends.
    #[inline(always)]
    pub fn begin(&mut self, at: &CallAt) -> u32 {
        self.opened = 0;
        self.calls.keep(Call {
            enter: at.enter,
            leave: at.leave,
            thread: at.thread,
            signature: at.signature,
            open: 0,
            sender: NONE,
            receiver: NONE,
            group: NONE,
            messages: self.next_message() as u32,
            received: 0,
        })
    }

    /// Ends the call begun last: it has asked all that it will.
    #[inline(always)]
    pub fn end(&mut self, slot: u32) {
        if self.opened == 0 {
            self.calls.drop(slot);
            return;
        }
        self.waiting += 1;
        let next = self.next_message() as u32;
        let call = &mut self.calls.list[slot as usize];
        call.open = self.opened;
        call.received = next.wrapping_sub(call.messages);
    }

    /// Number of the next message that is asked about.
    #[inline(always)]
    fn next_message(&self) -> u64 {
        self.message_base + self.sent.len() as u64
    }

    /// Position in `sent` of the first message that the call received: since it is there, so are
    /// all that came later, and nobody has memory for 2^32 of them.
    #[inline]
    fn first_message(&self, call: &Call) -> usize {
        call.messages.wrapping_sub(self.message_base as u32) as usize
    }

    /// Makes room for so many questions.
    #[inline]
    pub fn make_room(&mut self, questions: usize) {
        make_room(&mut self.sent, questions, 0);
        make_room(&mut self.receipts, questions, 0);
    }

    /// For a question about a message that the call received; if it has no number, only the
    /// time of the send is wanted.
    #[inline(always)]
    pub fn message(&mut self, at: &CallAt, source: i32) -> Token {
        let message = self.next_message();
        self.changed = true;
        self.sent.push(UNANSWERED);
        self.receipts.push(Receipt::new(source, at.thread, at.any));
        let call = at.slot;
        self.opened += u32::from(call != NONE);
        Token { call, message }
    }

    /// For a question about a message that the call sent.
    #[inline(always)]
    pub fn blocked_send(&mut self, at: &CallAt) -> Token {
        Token {
            call: self.collective(at),
            message: u64::MAX,
        }
    }

    /// For a question about the other side of an epoch on a window.
    pub fn epoch(&mut self, at: &CallAt) -> Token {
        let message = EPOCHS + u64::from(self.opened);
        self.opened += 1;
        Token {
            call: at.slot,
            message,
        }
    }

    /// When the last transfer of the epoch left that an origin ended.
    pub fn note_transfer(&mut self, call: u32, origin: i32, time: i64) {
        self.transfers.push((call, origin, time));
    }

    /// For the outcome of a non-blocking collective, or of a transfer under a lock, that the call
    /// completed.
    #[inline(always)]
    pub fn collective(&mut self, at: &CallAt) -> u32 {
        self.opened += 1;
        at.slot
    }

    /// What the call lost in so many of these.
    pub fn collective_ended(&mut self, call: u32, count: u32, losses: Losses) {
        let slot = call;
        let call = &mut self.calls.list[slot as usize];
        if !losses.0.is_empty() {
            keep_worst(&mut self.groups, &mut call.group, losses, Losses::outrank);
        }
        self.answer(slot, count, None);
    }

    /// Enter and leave of a call, ns; equal if only a time is wanted.
    #[inline]
    pub fn interval(&self, call: u32) -> Interval {
        match self.calls.list.get(call as usize) {
            Some(call) => call.interval(),
            None => Interval::new(0, 0),
        }
    }

    /// Whether a late sender of the call is known.
    #[inline]
    pub fn has_sender(&self, call: u32) -> bool {
        let call = self.calls.list.get(call as usize);
        call.is_some_and(|call| call.sender != NONE)
    }

    /// One more question of a call that has some without an answer.
    pub fn hold(&mut self, call: u32) {
        self.calls.list[call as usize].open += 1;
    }

    /// Until when, ns, a call will be charged at least. A late receiver is charged only where no
    /// sender turns out to be late.
    pub fn charged_at_least(&self, call: u32) -> i64 {
        let sender = self.calls[call].sender;
        self.charged_with(call, sender)
    }

    /// Until when, ns, a call is charged that has all its answers.
    fn charged_until(&self, call: u32) -> i64 {
        let Call {
            sender, receiver, ..
        } = self.calls[call];
        self.charged_with(call, if sender == NONE { receiver } else { sender })
    }

    fn charged_with(&self, call: u32, late: u32) -> i64 {
        let call = &self.calls[call];
        let message = self.lates.list.get(late as usize);
        let group = self.groups.list.get(call.group as usize);
        let charged = message.map_or(0, |late| late.severity);
        let charged = charged.max(group.map_or(0, Losses::total));
        call.enter.saturating_add(charged)
    }

    /// When a partner was absent while a call lasted.
    pub fn take_absence(&mut self, absence: &Absence, times: &[i64]) {
        if !times.is_empty() {
            let partner = Partner {
                absence: *absence,
                times: times.chunks_exact(2).map(|two| (two[0], two[1])).collect(),
            };
            self.partners.entry(absence.call).or_default().push(partner);
        }
        self.answer(absence.call, 1, None);
    }

    /// What a call lost while a partner was absent, after what it is charged with otherwise: with
    /// the partner that it lost most for.
    fn stalled(&self, slot: u32) -> Option<(Stall, &Detail)> {
        let partners = self.partners.get(&slot)?;
        let (own, until) = (self.calls[slot].interval(), self.charged_until(slot));
        if own.leave.saturating_sub(until) < REST_NS {
            return None;
        }
        let stalls = partners.iter().filter_map(|Partner { absence, times }| {
            let stall = wait_for_progress(own, until.max(absence.from), times)?;
            Some((stall, &absence.detail))
        });
        stalls.max_by_key(|(stall, detail)| {
            // The same partner may be needed for several messages.
            let whose = (detail.rank, detail.thread, detail.operation, detail.path);
            let parts = (detail.computation, detail.waiting, detail.io, detail.other);
            (
                stall.severity,
                std::cmp::Reverse((stall.doubt, whose, parts)),
            )
        })
    }

    /// A question that nobody can answer: the peer has no trace.
    pub fn unanswerable(&mut self, token: Token) {
        self.note_sent(token.message, UNKNOWN);
        if token.call != NONE {
            // The call may have more to ask.
            self.unanswerable.push(token.call);
            self.changed = true;
        }
    }

    /// A message that was asked about was sent at `time`.
    #[inline]
    pub fn note_sent(&mut self, message: u64, time: i64) {
        let at = message.wrapping_sub(self.message_base);
        if let Some(sent) = self.sent.get_mut(at as usize) {
            *sent = time;
            self.changed = true;
        }
    }

    /// So many questions of a call are answered; who was late, if somebody was, and what was
    /// asked about.
    /// The number of the late one if it is the worst so far: it is to be described.
    #[inline(always)]
    pub fn answer(&mut self, call: u32, count: u32, late: Option<(Side, Late)>) -> Option<u32> {
        let slot = call;
        let call = &mut self.calls.list[slot as usize];
        let lates = &mut self.lates;
        let kept = match late {
            Some((SEND, late)) => keep_worst(lates, &mut call.sender, late, Late::outranks_sender),
            Some((_, late)) => keep_worst(lates, &mut call.receiver, late, Late::outranks_receiver),
            None => None,
        };
        call.open -= count;
        self.changed = true;
        if call.open == 0 {
            self.conclude(slot);
        }
        kept
    }

    /// Whether a call that had answers in this round is still to be charged with this late
    /// party: source, tag, and number of the message on its channel; a receiver if the call
    /// `sends`.
    pub fn is_charged_with(
        &self,
        call: u32,
        late: u32,
        message: (i32, i32, u64),
        sends: bool,
    ) -> bool {
        let late = &self.lates[late];
        (late.source, late.tag, late.n) == message && !(sends && self.has_sender(call))
    }

    /// What a late party did.
    #[inline]
    pub fn describe(&mut self, late: u32, detail: &Detail) {
        self.lates.list[late as usize].detail = *detail;
    }

    /// A call has all its answers.
    #[inline(always)]
    fn conclude(&mut self, slot: u32) {
        let call = &self.calls[slot];
        let is_late = call.sender != NONE || call.receiver != NONE || call.group != NONE;
        if is_late || !self.partners.is_empty() && self.partners.contains_key(&slot) {
            make_room(&mut self.concluded, 1, 0);
            self.concluded.push(slot);
        } else {
            if !self.transfers.is_empty() {
                self.transfers.retain(|transfer| transfer.0 != slot);
            }
            self.calls.drop(slot);
        }
        self.waiting -= 1;
    }

    /// Names the patterns of the calls of `rank` that have all their answers. At the `end` of the
    /// trace, questions without an answer count as unmatched.
    pub fn name(&mut self, rank: u32, end: bool, mut found: impl FnMut(Waiting, Loss)) {
        if !std::mem::take(&mut self.changed) && !end {
            return;
        }
        for call in std::mem::take(&mut self.unanswerable) {
            self.answer(call, 1, None);
        }
        let open = |calls: &Slots<Call>| -> Vec<u32> {
            let slots = 0..calls.list.len() as u32;
            slots.filter(|&slot| calls[slot].open > 0).collect()
        };
        if end {
            for slot in open(&self.calls) {
                self.calls.list[slot as usize].open = 0;
                self.conclude(slot);
            }
        }
        let mut concluded = std::mem::take(&mut self.concluded);
        concluded.retain(|&slot| {
            let call = &self.calls[slot];
            let (sent, posted, lost) = (call.sender, call.receiver, call.group);
            let waiting = call.waiting(rank);
            let mut found = |loss| found(waiting, loss);
            let sender = self.lates.list.get(call.sender as usize);
            let worst = if call.sender != NONE {
                call.sender
            } else {
                call.receiver
            };
            let message = self.lates.list.get(worst as usize);
            let most = message.map_or(0, |late| late.severity);
            let group = self.groups.list.get(call.group as usize);
            match (group.filter(|losses| losses.total() > most), message) {
                (Some(losses), _) => {
                    losses.0.iter().for_each(|lost| found(lost.as_loss()));
                }
                (None, Some(late)) => {
                    let known = Some(&late.detail).filter(|detail| detail.rank != NONE);
                    let mut severity = late.severity;
                    let pattern = match sender {
                        None => Some(PatternId::LateReceiver),
                        Some(late) if late.tag < 0 => {
                            let (pattern, after) = self.epoch_of(slot, late);
                            found(Loss::sure(PatternId::LateComplete, after, known));
                            severity -= after;
                            Some(pattern)
                        }
                        Some(_) => self.overtaken(call, late, end),
                    };
                    let Some(pattern) = pattern else {
                        return true;
                    };
                    found(Loss::sure(pattern, severity, known));
                }
                (None, None) => {}
            }
            if let Some((stall, detail)) = self.stalled(slot) {
                let loss = Loss::sure(PatternId::WaitForProgress, stall.severity, Some(detail));
                let doubt = stall.doubt;
                found(Loss { doubt, ..loss });
            }
            if !self.partners.is_empty() {
                self.partners.remove(&slot);
            }
            if !self.transfers.is_empty() {
                self.transfers.retain(|transfer| transfer.0 != slot);
            }
            for late in [sent, posted] {
                if late != NONE {
                    self.lates.drop(late);
                }
            }
            if lost != NONE {
                self.groups.drop(lost);
            }
            let call = &mut self.calls.list[slot as usize];
            (call.sender, call.receiver) = (NONE, NONE);
            self.calls.drop(slot);
            false
        });
        self.concluded = concluded;
        let mut done = self.sent.len();
        let mut need = |slot: u32| {
            let call = &self.calls[slot];
            if call.received > 0 {
                done = done.min(self.first_message(call));
            }
        };
        self.concluded.iter().copied().for_each(&mut need);
        if self.waiting > 0 {
            open(&self.calls).into_iter().for_each(need);
        }
        self.sent.drain(..done);
        self.receipts.drain(..done);
        self.message_base += done as u64;
        self.give_back();
    }

    /// What a wait for the other side of an epoch is, and how much of it, in ns, an origin took
    /// to say that its last transfer was through.
    #[cold]
    #[inline(never)]
    fn epoch_of(&self, call: u32, late: &Late) -> (PatternId, i64) {
        match late.tag {
            COMPLETED => (PatternId::EarlyWait, self.after_transfers(call, late)),
            _ => (PatternId::LatePost, 0),
        }
    }

    fn after_transfers(&self, call: u32, origin: &Late) -> i64 {
        let mut transfers = self.transfers.iter();
        let found = transfers.find(|(of, who, _)| *of == call && *who == origin.source);
        found.map_or(0, |&(_, _, left)| {
            window::late_complete(self.calls[call].interval(), origin.detail.time, left)
        })
    }

    /// Gives the memory of late parties back that are named: there may be many ranks, whose
    /// calls are named one rank after the other.
    fn give_back(&mut self) {
        let kept = self.lates.list.len() - self.lates.free.len();
        if self.lates.free.len() <= kept {
            return;
        }
        let mut lates = Vec::with_capacity(kept);
        for call in &mut self.calls.list {
            for late in [&mut call.sender, &mut call.receiver] {
                if *late != NONE {
                    lates.push(self.lates[*late]);
                    *late = lates.len() as u32 - 1;
                }
            }
        }
        self.lates = Slots {
            // A little more, or half of the slabs would have to move theirs.
            expected: self.lates.list.len() + self.lates.list.len() / 16,
            list: lates,
            free: Vec::new(),
        };
    }

    /// Which late sender it is: whether a message that was sent before the late one is
    /// received after it, by the same thread. `None` while the answers that decide it
    /// are not there.
    ///
    /// Another source's message is in the wrong order only where the program chose the
    /// order: not if the call took whatever came first, and not if it took a message of
    /// that source as well, as a Waitall over all neighbours does.
    #[inline(always)]
    fn overtaken(&self, call: &Call, late: &Late, end: bool) -> Option<PatternId> {
        let begin = self.first_message(call);
        let first = begin + call.received as usize;
        let last = self.sent.len().min(first + ORDER_WINDOW as usize);
        let window = &self.sent[first..last];
        let is_whole = end || window.len() == ORDER_WINDOW as usize;
        // UNANSWERED is before all times. Signs of differences are found several at once.
        let time = late.detail.time;
        let signs = |sent: &[i64]| sent.iter().fold(0, |signs, &sent| signs | (sent - time));
        let signs = match window.first_chunk::<{ ORDER_WINDOW as usize }>() {
            Some(window) => signs(window),
            None => signs(window),
        };
        if signs >= 0 {
            return is_whole.then_some(PatternId::LateSender);
        }
        let own = &self.receipts[begin..first];
        let any = usize::try_from(late.message - self.message_base).ok()?;
        let any = self.receipts[any].any();
        let mut pattern = PatternId::LateSender;
        for (&sent, receipt) in window.iter().zip(&self.receipts[first..last]) {
            if sent == UNANSWERED && !end {
                return None;
            }
            if sent == UNANSWERED || receipt.thread() != call.thread || sent >= time {
                continue;
            }
            if receipt.source == late.source {
                return Some(PatternId::LateSenderWrongOrderSameSource);
            }
            if !any && own.iter().all(|own| own.source != receipt.source) {
                pattern = PatternId::LateSenderWrongOrderOtherSource;
            }
        }
        is_whole.then_some(pattern)
    }
}

/// Keeps the worse of an entry and the one in `slot`; the slot's number if that is the entry.
fn keep_worst<T>(
    slots: &mut Slots<T>,
    slot: &mut u32,
    entry: T,
    worse: impl Fn(&T, &T) -> bool,
) -> Option<u32> {
    if *slot == NONE {
        *slot = slots.keep(entry);
    } else if worse(&entry, &slots[*slot]) {
        slots.list[*slot as usize] = entry;
    } else {
        return None;
    }
    Some(*slot)
}

impl Late {
    /// Late at this time, ns; of no rank, as long as it is not known what it did. An `Option`
    /// would take more: there are many.
    pub fn at(time: i64) -> Detail {
        Detail {
            time,
            rank: NONE,
            ..Detail::default()
        }
    }

    /// Whether a call is charged with this late sender rather than with the other.
    fn outranks_sender(&self, other: &Late) -> bool {
        let key = |late: &Late| {
            (
                late.severity,
                late.detail.time,
                std::cmp::Reverse(late.message),
            )
        };
        key(self) > key(other)
    }

    /// Whether a call is charged with this late receiver rather than with the other.
    /// Ties go by what both ends know, so that the order of the answers does not matter.
    fn outranks_receiver(&self, other: &Late) -> bool {
        let key = |late: &Late| {
            let channel = (late.source, late.tag, late.n);
            (late.severity, std::cmp::Reverse(channel))
        };
        key(self) > key(other)
    }
}

impl Call {
    #[inline]
    fn interval(&self) -> Interval {
        Interval::new(self.enter, self.leave)
    }

    #[inline]
    fn waiting(&self, rank: u32) -> Waiting {
        Waiting {
            rank,
            thread: self.thread,
            signature: self.signature,
            enter: self.enter,
            leave: self.leave,
        }
    }
}

/// A member that waits for a collective's outcome.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// Agent's number of the group.
    pub group: u32,
    /// Which collective on it.
    pub n: u64,
    /// The operation that waits: the collective, or the Wait* that completed it. ns.
    pub enter: i64,
    /// ns.
    pub leave: i64,
    /// Position of the thread in the rank.
    pub thread: u32,
    /// Signature of the operation that waits.
    pub signature: u32,
    /// Signature of the collective.
    pub collective: u32,
    /// Whether the collective was non-blocking.
    pub posted: bool,
    /// The call that completed it, in [`crate::messages::charges::Calls`]; `NONE` unless it was
    /// non-blocking and something is asked.
    pub call: u32,
    /// Whether anything is asked, or the completion is only counted.
    pub asks: bool,
}

impl Waiter {
    /// As one that is charged, of this world rank.
    pub fn waiting(&self, rank: u32) -> Waiting {
        Waiting {
            rank,
            thread: self.thread,
            signature: self.signature,
            enter: self.enter,
            leave: self.leave,
        }
    }
}

/// Messages of other sources that may be received in the wrong order are looked for
/// among so many receives after a late one.
pub const ORDER_WINDOW: u64 = 32;
