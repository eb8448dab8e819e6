//! Names the patterns of calls with all answers.

use std::cmp::Reverse;

use laggard_patterns::progress::{REST_NS, Stall, wait_for_progress};
use laggard_patterns::{PatternId, window};

use super::{Call, Calls, EMPTY, EPOCHS, Late, ORDER_WINDOW, Partner, Receipt, UNANSWERED};
use crate::basics::ends::NONE;
use crate::basics::slots::Slots;
use crate::messages::channel::{COMPLETED, Channels, NO_TRANSFER};
use crate::waits::charging::{Loss, Lost, Waiting};
use crate::wire::parcels::Absence;

impl Calls {
    /// Names the patterns of the calls of `rank` with all answers; `channels` are those on which it sends, and
    /// receives. At the `end` of the trace, questions without an answer count as unmatched.
    pub fn name(
        &mut self,
        rank: u32,
        channels: (&Channels, &Channels),
        end: bool,
        mut found: impl FnMut(Waiting, Loss),
    ) {
        if !std::mem::take(&mut self.changed) && !end {
            return;
        }
        for call in std::mem::take(&mut self.unanswerable) {
            self.answer(call, 1, None);
        }
        let open = |calls: &Slots<Call>| -> Vec<u32> {
            calls
                .numbers()
                .filter(|&slot| calls[slot].open > 0)
                .collect()
        };
        if end {
            for slot in open(&self.calls) {
                self.calls[slot].open = 0;
                if self.is_unanswered(slot) {
                    self.partnerless.insert(slot);
                }
                self.conclude(slot);
            }
        }
        let mut concluded = std::mem::take(&mut self.concluded);
        let least = self.least_sent();
        concluded.retain(|&slot| {
            let call = &self.calls[slot];
            let (sent, posted, lost) = (call.sender, call.receiver, call.group);
            let mut waiting = call.waiting(rank);
            let episode = match self.episodes.is_empty() {
                true => None,
                false => self.episodes.get(&slot),
            };
            if let Some(episode) = episode {
                waiting.enter = episode.found;
            }
            let mut found = |loss: Loss<'_>| found(waiting, loss);
            let sender = self.lates.get(call.sender);
            let worst = if call.sender != NONE {
                call.sender
            } else {
                call.receiver
            };
            let message = self.lates.get(worst);
            let most = message.map_or(0, |late| late.severity);
            let on = message.map_or(0, |late| {
                self.communicator(late, sender.is_some(), channels)
            });
            let group = self.groups.get(call.group);
            match (group.filter(|losses| losses.total() > most), message) {
                (Some(losses), _) => match episode {
                    None => losses.0.iter().for_each(|lost| found(lost.as_loss())),
                    Some(episode) => {
                        let polled = Lost::polled(&losses.0, waiting.since, episode);
                        polled.iter().for_each(|lost| found(lost.as_loss()));
                    }
                },
                (None, Some(late)) if let Some(episode) = episode => {
                    let known = Some(late.detail).filter(|detail| detail.rank != NONE);
                    let is_empty = known.is_some_and(|late| late.empty != 0);
                    let pattern = match sender {
                        None if late.message & EMPTY != 0 => PatternId::LateReceiverSync,
                        None => PatternId::LateReceiver,
                        Some(late) if late.tag < 0 => self.epoch_of(slot, late).0,
                        Some(_) if is_empty => PatternId::LateSenderSync,
                        Some(_) => PatternId::LateSender,
                    };
                    let lost = Lost {
                        late: known,
                        group: on,
                        ..Lost::new(pattern, late.severity)
                    };
                    let polled = Lost::polled(&[lost], waiting.since, episode);
                    polled.iter().for_each(|lost| found(lost.as_loss()));
                }
                (None, Some(late)) => {
                    let known = Some(&late.detail).filter(|detail| detail.rank != NONE);
                    let mut severity = late.severity;
                    let pattern = match sender {
                        None if late.message & EMPTY != 0 => Some(PatternId::LateReceiverSync),
                        None => Some(PatternId::LateReceiver),
                        Some(late) if late.tag < 0 => {
                            let (pattern, after) = self.epoch_of(slot, late);
                            found(Loss::sure(PatternId::LateComplete, after, known));
                            severity -= after;
                            Some(pattern)
                        }
                        Some(_) => self.overtaken(call, late, channels.1, (&least, end)),
                    };
                    let Some(pattern) = pattern else {
                        return true;
                    };
                    if pattern == PatternId::LateSender && call.received == 1 {
                        let at = self.first_message(call);
                        if !self.receipts[at].any() {
                            let until = self.message_base + (at + 1 + ORDER_WINDOW) as u64;
                            let searched = (until, call.thread, late.detail.time);
                            self.searched.until.push(Reverse(searched));
                        }
                    }
                    let is_empty = known.is_some_and(|late| late.empty != 0);
                    let pattern = match pattern {
                        PatternId::LateSender if is_empty => PatternId::LateSenderSync,
                        other => other,
                    };
                    found(Loss {
                        group: on,
                        ..Loss::sure(pattern, severity, known)
                    });
                }
                (None, None) => {}
            }
            if let Some((stall, absence)) = self.stalled(slot) {
                let (pattern, whom) = (PatternId::WaitForProgress, Some(&absence.detail));
                found(Loss {
                    doubt: stall.doubt,
                    group: absence.group,
                    ..Loss::sure(pattern, stall.severity, whom)
                });
            }
            if self.partnerless.contains(&slot) {
                let until = self.charged_until(slot);
                let rest = self.calls[slot].leave.saturating_sub(until);
                let lost = Lost {
                    // Whether it waited, or took so long by itself, nobody knows.
                    doubt: rest / 2,
                    ..Lost::new(PatternId::PartnerWithoutTrace, rest)
                };
                match episode {
                    None => found(lost.as_loss()),
                    Some(episode) => {
                        let polled = Lost::polled(&[lost], until, episode);
                        polled.iter().for_each(|lost| found(lost.as_loss()));
                    }
                }
            }
            for late in [sent, posted] {
                if late != NONE {
                    self.lates.drop(late);
                }
            }
            if lost != NONE {
                self.groups.drop(lost);
            }
            let call = &mut self.calls[slot];
            (call.sender, call.receiver) = (NONE, NONE);
            self.forget(slot);
            false
        });
        self.concluded = concluded;
        let mut done = self.receipts.len();
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
        if !self.searched.is_empty() {
            for (number, receipt) in (self.message_base..).zip(&self.receipts[..done]) {
                self.searched.look_at(number, receipt);
            }
        }
        self.receipts.drain(..done);
        self.message_base += done as u64;
        self.give_back();
    }

    /// The communicator of a late message; 0 if it is that of the call.
    fn communicator(
        &self,
        late: &Late,
        is_sender: bool,
        (sends, receives): (&Channels, &Channels),
    ) -> u64 {
        let channel = match is_sender {
            _ if late.message >= EPOCHS => None,
            true => {
                let at = late.message.wrapping_sub(self.message_base) as usize;
                let receipt = self.receipts.get(at);
                receipt.and_then(|receipt| receives.list.get(receipt.channel as usize))
            }
            false => sends.list.get((late.message >> 1) as usize),
        };
        channel.map_or(0, |channel| channel.key.0)
    }

    /// Largest loss of a call during a partner's absence, after the time charged otherwise.
    fn stalled(&self, slot: u32) -> Option<(Stall, &Absence)> {
        let partners = self.partners.get(&slot)?;
        let (own, until) = (self.calls[slot].interval(), self.charged_until(slot));
        if own.leave.saturating_sub(until) < REST_NS {
            return None;
        }
        let stalls = partners.iter().filter_map(|Partner { absence, times }| {
            let stall = wait_for_progress(own, until.max(absence.from), times)?;
            Some((stall, absence))
        });
        stalls.max_by_key(|(stall, Absence { detail, group, .. })| {
            // The same partner may be needed for several messages.
            let whose = (detail.rank, detail.thread, detail.operation, detail.path);
            let off = (detail.blocked, detail.preempted);
            let in_other = (detail.other_blocked, detail.other_preempted);
            let parts = (
                detail.computation,
                detail.waiting,
                detail.io,
                off,
                (detail.other, in_other),
            );
            (stall.severity, Reverse((stall.doubt, whose, parts, *group)))
        })
    }

    /// Pattern of a wait for the other side of an epoch, and the part of it, in ns, that an origin
    /// took to report its last transfer as complete.
    #[cold]
    #[inline(never)]
    fn epoch_of(&self, call: u32, late: &Late) -> (PatternId, i64) {
        let mut transfers = self.transfers.iter();
        let found = transfers.find(|(of, who, _)| *of == call && *who == late.source);
        match (late.tag, found) {
            (COMPLETED, Some((_, _, NO_TRANSFER))) => (PatternId::EarlyWaitSync, 0),
            (_, Some((_, _, NO_TRANSFER))) => (PatternId::LatePostSync, 0),
            (COMPLETED, Some(&(_, _, left))) => {
                let own = self.calls[call].interval();
                let after = window::late_complete(own, late.detail.time, left);
                (PatternId::EarlyWait, after)
            }
            (COMPLETED, None) => (PatternId::EarlyWait, 0),
            _ => (PatternId::LatePost, 0),
        }
    }

    /// The least send time from each message with a question to the end of its part of the list: parts are as long
    /// as the [`ORDER_WINDOW`] searched after a call, which is in two of them.
    fn least_sent(&self) -> Vec<i64> {
        let mut least: Vec<i64> = self.receipts.iter().map(|receipt| receipt.sent).collect();
        for part in least.chunks_mut(ORDER_WINDOW) {
            let mut from_here = i64::MAX;
            for sent in part.iter_mut().rev() {
                from_here = from_here.min(*sent);
                *sent = from_here;
            }
        }
        least
    }

    /// Pattern of a late sender: whether the same thread received, after the late message, one that
    /// was sent before it. `None` while answers that decide it are missing.
    ///
    /// Another source's message is in the wrong order only if the program chose the order: not if
    /// the call took any message, and not if it also took a message of that source, as a Waitall
    /// over all neighbours does.
    #[inline(always)]
    fn overtaken(
        &self,
        call: &Call,
        late: &Late,
        receives: &Channels,
        (least, end): (&[i64], bool),
    ) -> Option<PatternId> {
        let begin = self.first_message(call);
        let first = begin + call.received as usize;
        let last = self.receipts.len().min(first + ORDER_WINDOW);
        let window = &self.receipts[first..last];
        let is_whole = end || window.len() == ORDER_WINDOW;
        let time = late.detail.time;
        // UNANSWERED is before all times.
        let mut parts = [first, first.next_multiple_of(ORDER_WINDOW)].into_iter();
        if parts.all(|at| least.get(at).is_none_or(|&sent| sent >= time))
            || window.iter().all(|receipt| receipt.sent >= time)
        {
            return is_whole.then_some(PatternId::LateSender);
        }
        let own = &self.receipts[begin..first];
        let source = |receipt: &Receipt| receives.list[receipt.channel as usize].key.1;
        let any = usize::try_from(late.message - self.message_base).ok()?;
        let any = self.receipts[any].any();
        let mut pattern = PatternId::LateSender;
        for receipt in window {
            let sent = receipt.sent;
            if sent == UNANSWERED && !end {
                return None;
            }
            if sent == UNANSWERED || receipt.thread() != call.thread || sent >= time {
                continue;
            }
            if source(receipt) == late.source {
                return Some(PatternId::LateSenderWrongOrderSameSource);
            }
            if !any && own.iter().all(|own| source(own) != source(receipt)) {
                pattern = PatternId::LateSenderWrongOrderOtherSource;
            }
        }
        is_whole.then_some(pattern)
    }

    /// Gives back the memory of named late parties: calls of many ranks are named one rank after
    /// the other.
    fn give_back(&mut self) {
        let calls = self.calls.iter_mut();
        let used = calls.flat_map(|call| [&mut call.sender, &mut call.receiver]);
        self.lates.compact(used);
    }
}
