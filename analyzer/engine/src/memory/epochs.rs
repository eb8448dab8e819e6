//! Epochs on windows of one rank. Post, start, complete and wait are messages on channels of their
//! own. Also the transfers that a fence has to wait for.
//!
//! The n-th MPI_Win_post of a target for an origin matches the n-th MPI_Win_start of that origin
//! for the target, and so do the calls that end the epoch: as on a channel. The tags are negative,
//! so that no message of the program has them.

use laggard_trace::Event;
use laggard_trace::flags;
use rustc_hash::FxHashMap;

use crate::basics::ends::{End, NONE};
use crate::memory::own::RemoteMemory;
use crate::memory::watches::has_its_size;
use crate::messages::channel::{COMPLETED, NO_TRANSFER, POSTED, TRANSFERRED};
use crate::messages::ends::Messages;
use crate::stream::call::CallAt;
use crate::stream::recorded::Recorded;
use crate::stream::roles::Role;
use crate::stream::rows::Row;
use crate::wire::parcels::{Member, Party};

/// Most targets remembered until a flush of all targets, which waits for the last of them.
const MOST_UNDER_WAY: usize = 256;

/// A target in an access epoch.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// World rank.
    target: i32,
    /// Channel and number of the target's post.
    post: (u32, u64),
    /// Leave of the last transfer; [`NO_TRANSFER`] if there was none.
    transfer: End,
    /// The MPI_Win_start, among the calls with questions, until it is known whether a transfer
    /// follows; `NONE` if it does not ask.
    start: u32,
}

/// The last transfer to or from a target since the last fence.
#[derive(Clone, Copy, Debug)]
struct Last {
    target: i32,
    party: Party,
    leave: i64,
}

#[derive(Debug, Default)]
struct Window {
    /// Origins of the exposure epoch.
    origins: Vec<i32>,
    /// Targets of the access epoch.
    access: Vec<Access>,
    last: Vec<Last>,
    /// Targets of transfers under locks that may not be complete.
    under_way: Vec<i32>,
    /// Locks held, by target (`-1` = of all targets), and whether there was a transfer.
    locks: Vec<(i32, bool)>,
}

/// The target of a one-sided transfer, if it is a process of this run.
pub(crate) fn target_of(row: &Row, event: Option<&Event>) -> Option<i32> {
    let overridden = event.and_then(|e| e.send_endpoint.or(e.receive_endpoint));
    let target = overridden.map_or(row.root, |(peer, _)| peer);
    (target >= 0).then_some(target)
}

/// The windows of a rank.
#[derive(Debug, Default)]
pub struct Epochs {
    /// By the trace's number.
    windows: FxHashMap<u64, Window>,
    /// Epochs of two ranks that this one accessed memory in, or could have: access epochs by target,
    /// and locks. And how many of them had no transfer.
    pub pairs: (u64, u64),
}

impl Epochs {
    /// The posts that may still be asked about: channel and number.
    pub fn held(&self) -> impl Iterator<Item = (u32, u64)> {
        let access = self.windows.values().flat_map(|window| &window.access);
        access.map(|access| access.post)
    }

    /// A lock was taken on this target, or on all (`-1`).
    pub(crate) fn lock(&mut self, window: u64, target: i32) {
        let locks = &mut self.windows.entry(window).or_default().locks;
        locks.push((target, false));
    }

    /// There was a transfer to this target under a lock.
    fn note_locked(&mut self, window: u64, target: i32) {
        let window = self.windows.entry(window).or_default();
        let locks = window.locks.iter_mut();
        let locks = locks.filter(|(of, _)| *of == target || *of < 0);
        locks.for_each(|(_, is_used)| *is_used = true);
    }

    /// The lock was given back.
    pub(crate) fn unlock(&mut self, window: u64, target: i32) {
        let locks = self
            .windows
            .get_mut(&window)
            .map(|window| &mut window.locks);
        let Some(locks) = locks else { return };
        if let Some(at) = locks.iter().position(|&(of, _)| of == target) {
            let (_, is_used) = locks.swap_remove(at);
            self.count_pair(is_used);
        }
    }

    fn count_pair(&mut self, is_used: bool) {
        self.pairs.0 += 1;
        self.pairs.1 += u64::from(!is_used);
    }

    /// Notes a transfer under a lock that a flush may have to wait for.
    fn note_under_way(&mut self, window: u64, target: i32) {
        let under_way = &mut self.windows.entry(window).or_default().under_way;
        // From the end: most transfers have the same target as the one before.
        if under_way.len() < MOST_UNDER_WAY && !under_way.iter().rev().any(|&t| t == target) {
            under_way.push(target);
        }
    }

    /// Removes the transfers under way to a target, or to all: returns their targets.
    pub(crate) fn flushed(&mut self, window: u64, target: Option<i32>) -> Vec<i32> {
        let Some(window) = self.windows.get_mut(&window) else {
            return Vec::new();
        };
        match target {
            None => std::mem::take(&mut window.under_way),
            Some(target) => {
                window.under_way.retain(|&other| other != target);
                Vec::new()
            }
        }
    }

    /// The last transfers before a fence of `window`, as members of it. The local rank of each is
    /// its target's world rank.
    pub fn fence(&mut self, window: u64) -> impl Iterator<Item = Member> {
        let window = self.windows.get_mut(&window);
        let last = window.map_or(Vec::new(), |window| std::mem::take(&mut window.last));
        last.into_iter().map(|last| Member {
            party: last.party,
            leave: last.leave,
            local_rank: last.target as u32,
            asks: 0,
            late: NONE,
            through: i64::MAX,
            is_apart: 1,
        })
    }
}

impl RemoteMemory {
    /// Takes a call on a window.
    pub fn take_epoch(
        &mut self,
        own: &Recorded,
        messages: &mut Messages,
        call: &CallAt,
        row: &Row,
        event: Option<&Event>,
    ) {
        let window = own.group_id(call);
        if window == 0 {
            return;
        }
        match row.role {
            Role::None => {}
            Role::Post => {
                let origins = self.epoch_peers(own, call, event);
                for &origin in &origins {
                    let channel = messages
                        .sends
                        .number((window, origin, POSTED), own.agent_of);
                    messages.sends.push(channel, call.end());
                }
                self.epochs.windows.entry(window).or_default().origins = origins;
            }
            Role::Passive => self.take_passive(own, call, row, event),
            Role::Start => self.start_epoch(own, messages, call, window, event),
            Role::Transfer => {
                if let Some(target) = target_of(row, event) {
                    if self.keeps_writes && !row.has(flags::PAUSED) {
                        self.on_window_memory(own, call, window, event);
                    }
                    let has_epoch = self.transfer(own, messages, call, window, target);
                    let expected = match row.has(flags::PAUSED) {
                        true => 0,
                        false => self.move_data(own, call, target, has_its_size(event)),
                    };
                    // In an epoch, the post explains the wait.
                    let expected = if has_epoch { 0 } else { expected };
                    if self.access_passive(own, call, window, target, expected) {
                        self.epochs.note_under_way(window, target);
                        self.epochs.note_locked(window, target);
                    } else if expected > 0 {
                        self.watch_transfer(own, call, target, expected);
                    }
                }
            }
            Role::Complete => self.complete_epoch(own, messages, call, window),
            Role::Wait => {
                let found = self.epochs.windows.get_mut(&window);
                let origins = found.map_or(Vec::new(), |found| std::mem::take(&mut found.origins));
                for origin in origins {
                    for tag in [COMPLETED, TRANSFERRED] {
                        let key = (window, origin, tag);
                        let channel = messages.receives.number(key, own.agent_of);
                        let n = messages.receives.push(channel, call.end());
                        let receives = &mut messages.receives;
                        messages.asker.ask_for_epoch(call, (channel, receives), n);
                    }
                }
            }
        }
    }

    fn start_epoch(
        &mut self,
        own: &Recorded,
        messages: &mut Messages,
        call: &CallAt,
        window: u64,
        event: Option<&Event>,
    ) {
        let transfer = End {
            time: NO_TRANSFER,
            ..call.end()
        };
        let mut access = Vec::new();
        for target in self.epoch_peers(own, call, event) {
            let channel = messages
                .receives
                .number((window, target, POSTED), own.agent_of);
            let n = messages.receives.push(channel, call.end());
            let receives = &mut messages.receives;
            let asks = messages.asker.ask_for_epoch(call, (channel, receives), n);
            access.push(Access {
                target,
                post: (channel, n),
                transfer,
                start: match asks {
                    true => messages.asker.calls.collective(call),
                    false => NONE,
                },
            });
        }
        self.epochs.windows.entry(window).or_default().access = access;
    }

    /// Notes a transfer; returns whether an access epoch with the target is open, so that it may
    /// wait for the post.
    fn transfer(
        &mut self,
        own: &Recorded,
        messages: &mut Messages,
        call: &CallAt,
        window: u64,
        target: i32,
    ) -> bool {
        let party = own.party(call);
        let window = self.epochs.windows.entry(window).or_default();
        let last = Last {
            target,
            party,
            leave: call.leave,
        };
        match window.last.iter_mut().find(|last| last.target == target) {
            Some(found) if found.leave <= call.leave => *found = last,
            Some(_) => {}
            None => window.last.push(last),
        }
        if let Some(access) = window.access.iter_mut().find(|a| a.target == target) {
            access.transfer = End {
                time: call.leave,
                ..call.end()
            };
            let start = std::mem::replace(&mut access.start, NONE);
            if start != NONE {
                messages.asker.calls.answer(start, 1, None);
            }
            let (channel, n) = access.post;
            let receives = &mut messages.receives;
            messages.asker.ask_for_epoch(call, (channel, receives), n);
            return true;
        }
        false
    }

    fn complete_epoch(
        &mut self,
        own: &Recorded,
        messages: &mut Messages,
        call: &CallAt,
        window: u64,
    ) {
        let found = self.epochs.windows.get_mut(&window);
        let accesses = found.map_or(Vec::new(), |found| std::mem::take(&mut found.access));
        for access in accesses {
            let has_none = access.transfer.time == NO_TRANSFER;
            self.epochs.count_pair(!has_none);
            let calls = &mut messages.asker.calls;
            if access.start != NONE {
                if has_none {
                    calls.note_transfer(access.start, access.target, NO_TRANSFER);
                }
                calls.answer(access.start, 1, None);
            }
            for (tag, end) in [(COMPLETED, call.end()), (TRANSFERRED, access.transfer)] {
                let key = (window, access.target, tag);
                let channel = messages.sends.number(key, own.agent_of);
                messages.sends.push(channel, end);
            }
            let (channel, n) = access.post;
            let receives = &mut messages.receives;
            let asks = messages.asker.ask_for_epoch(call, (channel, receives), n);
            if asks && has_none {
                let calls = &mut messages.asker.calls;
                calls.note_transfer(call.slot, access.target, NO_TRANSFER);
            }
            // The message's number is not held back any more.
            messages.receives.touch(channel);
        }
    }

    /// World ranks named by a MPI_Win_post or MPI_Win_start.
    fn epoch_peers(&self, own: &Recorded, call: &CallAt, event: Option<&Event>) -> Vec<i32> {
        let value = event
            .and_then(|event| event.value)
            .map(|value| value as i64);
        let parameter = value.unwrap_or(own.signature(call).parameter);
        let location = own.threads[call.thread as usize].stream.location();
        let peers = location.definitions.peers(parameter).iter();
        // Processes outside this run have no rank in it.
        peers.filter_map(|&rank| i32::try_from(rank).ok()).collect()
    }
}
