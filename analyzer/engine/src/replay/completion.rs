//! Completions in pass one: ties Wait* and Test* to posted requests, and numbers the receives whose
//! channel they tell.

use laggard_patterns::PatternId;
use laggard_trace::{Event, OUTCOME_CANCELLED};

use crate::basics::ends::NONE;
use crate::messages::channel::is_somebody;
use crate::messages::charges::Waiter;
use crate::replay::rank::Rank;
use crate::stream::call::CallAt;
use crate::stream::rows::{Outcome, Row};
use crate::stream::thread::{Posted, Usual};
use crate::waits::charging::{Hosts, Looked, Loss, Waiting};
use crate::waits::log::{Ended, Subject};

impl Rank<'_> {
    /// Completes everything that a Wait* or Test* completed.
    pub(crate) fn completions(&mut self, call: &CallAt, row: &Row, event: Option<&Event>) {
        let mut call = *call;
        call.wait(row);
        match self.ended {
            Some(_) => self.complete_one_by_one(&call, row.completes),
            None => self.complete_list(&call, row.completes),
        }
        let thread = call.thread as usize;
        let next = self.recorded.threads[thread].next_post();
        for completion in event.map_or(&[][..], |e| &e.completed) {
            let outcome = Outcome::from(completion.outcome);
            match completion.thread {
                None => {
                    let number = next.wrapping_sub(u64::from(completion.delta));
                    let posted = self.recorded.threads[thread].complete(number);
                    self.completed(&call, posted, outcome);
                }
                Some(other) => {
                    let found = self.recorded.threads.iter().position(|t| t.number == other);
                    if let Some(other) = found {
                        let posted =
                            self.recorded.threads[other].complete(u64::from(completion.delta));
                        self.completed(&call, posted, outcome);
                    }
                }
            }
        }
    }

    #[inline]
    pub(crate) fn complete_list(&mut self, call: &CallAt, list: u32) {
        let next = self.recorded.threads[call.thread as usize].next_post();
        let mut from = 0;
        while let Some((at, delta, outcome)) = self.complete_messages(call, list, from) {
            let number = next.wrapping_sub(u64::from(delta));
            let posted = self.recorded.threads[call.thread as usize].take(number);
            self.completed(call, posted, Outcome::from(outcome));
            from = at + 1;
        }
        self.recorded.threads[call.thread as usize].trim();
    }

    /// Completes everything on a completion list one by one, so that it can be noted.
    fn complete_one_by_one(&mut self, call: &CallAt, list: u32) {
        let next = self.recorded.threads[call.thread as usize].next_post();
        let mut entries = 0..;
        while let Some((delta, outcome)) = entries.next().and_then(|at| {
            let list = self.recorded.threads[call.thread as usize]
                .lists
                .get(list as usize)?;
            list.get(at).copied()
        }) {
            let number = next.wrapping_sub(u64::from(delta));
            let posted = self.recorded.threads[call.thread as usize].complete(number);
            self.completed(call, posted, Outcome::from(outcome));
        }
    }

    /// Completes the messages on a completion list, `from` an entry to the first request that is no
    /// message. Returns position and entry of that request.
    #[inline]
    fn complete_messages(
        &mut self,
        call: &CallAt,
        list: u32,
        from: usize,
    ) -> Option<(usize, u32, u32)> {
        let thread = &mut self.recorded.threads[call.thread as usize];
        let entries = thread.lists.get(list as usize)?.get(from..)?;
        let posted = &mut thread.posted[..];
        let (asker, sends, receives) = (
            &mut self.messages.asker,
            &mut self.messages.sends,
            &mut self.messages.receives,
        );
        for (at, &(delta, outcome)) in (from..).zip(entries) {
            let number = posted.len().wrapping_sub(delta as usize);
            let Some(posted) = posted.get_mut(number) else {
                continue;
            };
            match *posted {
                Posted::Receive { channel, n } => {
                    asker.ask_for_send(call, (channel, receives), n);
                }
                Posted::Send {
                    channel,
                    n,
                    is_empty,
                } => {
                    if call.asks && outcome != OUTCOME_CANCELLED {
                        asker.ask_for_post(call, (channel, sends), n, is_empty);
                    }
                }
                Posted::Done => continue,
                Posted::Group { .. } | Posted::Deferred { .. } | Posted::Access { .. } => {
                    return Some((at, delta, outcome));
                }
            }
            *posted = Posted::Done;
        }
        None
    }

    /// Takes the end of a request.
    pub(crate) fn completed(&mut self, call: &CallAt, posted: Posted, outcome: Outcome) {
        match posted {
            Posted::Done => {}
            Posted::Send {
                channel,
                n,
                is_empty,
            } => {
                self.note(|| Ended::by(call, Subject::Sent(channel, n)));
                if call.asks && outcome != Outcome::Cancelled {
                    self.messages.asker.ask_for_post(
                        call,
                        (channel, &mut self.messages.sends),
                        n,
                        is_empty,
                    );
                }
            }
            Posted::Receive { channel, n } => {
                self.note(|| Ended::by(call, Subject::Received(channel, n)));
                self.messages
                    .asker
                    .ask_for_send(call, (channel, &mut self.messages.receives), n);
            }
            Posted::Group {
                group,
                n,
                signature,
                waits,
            } => {
                self.note(|| Ended::by(call, Subject::Collective(group, n)));
                if !waits {
                    return;
                }
                let asked = match call.asks {
                    true => self.messages.asker.calls.collective(call),
                    false => NONE,
                };
                self.messages.asker.waiters.push(Waiter {
                    group,
                    n,
                    enter: self.messages.asker.calls.begun(call),
                    leave: call.leave,
                    thread: call.thread,
                    signature: call.signature,
                    collective: signature,
                    posted: true,
                    call: asked,
                    asks: call.asks,
                    waits: true,
                    // The call may have waited for other requests.
                    usual: Usual::UNKNOWN,
                });
            }
            // Who a looked-for transfer waited for is not searched.
            Posted::Access { window, target } => {
                if outcome == Outcome::AsPosted && !call.polled {
                    self.memory.complete_access(
                        &self.recorded,
                        &mut self.messages,
                        call,
                        window,
                        target,
                    );
                }
            }
            Posted::Deferred { slot } => {
                let channel = match outcome {
                    Outcome::Cancelled => {
                        self.messages.deferred.cancel(slot);
                        self.number_deferred(Some((call.thread, call.number)));
                        return;
                    }
                    Outcome::AsPosted => self.messages.deferred.channel(slot).or_else(|| {
                        let (group, peer, tag) = self.messages.deferred.key(slot)?;
                        (is_somebody(peer) && tag >= 0).then(|| {
                            self.messages
                                .receives
                                .number((group, peer, tag), self.recorded.agent_of)
                        })
                    }),
                    // The thread that completed it defines the signature, not the one that posted
                    // it.
                    Outcome::Resolved(signature) => self.recorded.threads[call.thread as usize]
                        .rows
                        .get(signature as usize)
                        .map(|row| row.receive_channel)
                        .filter(|&channel| channel != NONE),
                };
                match channel {
                    Some(channel) => {
                        let key = self.messages.receives.list[channel as usize].key;
                        let posted = self.messages.deferred.key(slot);
                        let call = &CallAt {
                            any: call.any || posted.is_some_and(|(_, peer, _)| peer < 0),
                            ..*call
                        };
                        self.messages.deferred.resolve(slot, channel, key);
                        let receipt = self.messages.receipt(call, channel);
                        if let Some(n) = self.messages.deferred.complete(slot, receipt) {
                            self.note(|| receipt.ended(channel, n));
                            self.messages.ask_late(
                                &receipt,
                                channel,
                                n,
                                Some((call.thread, call.number)),
                            );
                        }
                    }
                    None => self.messages.deferred.cancel(slot),
                }
                self.number_deferred(Some((call.thread, call.number)));
            }
        }
    }

    /// Numbers the deferred receives that can be numbered `now`, in this call, and asks for them.
    /// For receives that completed in earlier calls it asks only for times: whether the late
    /// party's calls are still in memory would depend on where rounds end.
    pub(crate) fn number_deferred(&mut self, now: Option<(u32, u64)>) {
        for ready in self.messages.deferred.take_ready() {
            let channel = ready.channel;
            let n = if ready.peeks {
                self.messages.receives.list[channel as usize].next
            } else {
                self.messages.receives.count(channel, ready.end)
            };
            if let Some(receipt) = self.messages.deferred.number(ready.slot, n) {
                if !ready.peeks {
                    self.note(|| receipt.ended(channel, n));
                }
                self.messages.ask_late(&receipt, channel, n, now);
            }
        }
        self.messages.deferred.trim();
    }

    /// Ends the stream: receives that are still unresolved never got a message.
    pub fn finish(&mut self) {
        self.messages.abandoned = self.messages.deferred.abandon_unresolved();
        self.number_deferred(None);
    }

    /// Charges the looks that never found anything, after the last call.
    pub fn charge_looks(&mut self, hosts: Hosts<'_>) {
        let rank = self.recorded.rank;
        let charged = self.messages.asker.charged.iter_mut();
        for (at, (thread, charged)) in (0..).zip(self.recorded.threads.iter_mut().zip(charged)) {
            for (signature, looks) in thread.polling.in_vain() {
                let waiting = Waiting {
                    rank,
                    thread: at,
                    enter: looks.last,
                    since: looks.begin,
                    leave: looks.end,
                    signature,
                };
                let loss = Loss {
                    looked: Some(Looked {
                        since: looks.begin,
                        until: looks.end,
                        beside: false,
                        elsewhere: NONE,
                    }),
                    ..Loss::sure(PatternId::LookedInVain, looks.looked, None)
                };
                charged.charge(hosts, waiting, loss);
            }
        }
    }
}
