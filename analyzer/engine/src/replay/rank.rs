//! Pass one over the calls of a rank: counts messages and collectives, ties
//! completions to what was posted, and turns slow instances into questions.

use std::ops::Range;

use laggard_trace::calls::Shape;
use laggard_trace::{Event, flags};
use rustc_hash::FxHashMap;

use crate::basics::ends::{End, NONE};
use crate::basics::in_order::InOrder;
use crate::collectives::group::{GroupEntry, Part};
use crate::memory::competing::Moves;
use crate::memory::epochs::{Epochs, target_of};
use crate::memory::lock::Locks;
use crate::memory::watches::{Look, Write};
use crate::messages::channel::{ChannelKey, Channels};
use crate::messages::charges::Waiter;
use crate::messages::questions::Asker;
use crate::messages::wildcard::Deferred;
use crate::replay::answers::Asked;
use crate::stream::call::CallAt;
use crate::stream::columns::Columns;
use crate::stream::roles::{Memory, Role};
use crate::stream::rows::{Row, Step};
use crate::stream::thread::{Posted, Thread};
use crate::waits::noted::Ended;
use crate::wire::parcels::{Member, Progress, Side};
use crate::wire::watched::Watch;

/// The traces of one rank.
pub struct Rank<'a> {
    /// World rank.
    pub rank: u32,
    /// Its threads in order.
    pub threads: Vec<Thread<'a>>,
    /// Channels on which it sends.
    pub sends: Channels,
    /// Channels on which it receives.
    pub receives: Channels,
    /// Collectives so far, and the groups' own numbers by the agent's.
    group_next: Vec<u64>,
    own_groups: FxHashMap<u32, u32>,
    /// Its number in communicators, by the agent's group number.
    pub local_ranks: FxHashMap<u32, u32>,
    /// Receives whose number is not known yet.
    pub deferred: Deferred,
    /// Non-blocking receives may be cancelled, so that none has a number before it completes.
    pub cancels: bool,
    /// What it asks, and what was found.
    pub asker: Asker,
    /// Its epochs on windows.
    pub(crate) epochs: Epochs,
    /// What it wrote into symmetric memory in this slab.
    pub writes: Vec<Write>,
    /// Some of these are kept for the next slab: regions of the program wait for values.
    pub keeps_writes: bool,
    /// Where each thread last looked at memory in a window.
    pub(crate) looks: Vec<Look>,
    /// Waits for values and locks that began in this slab.
    pub watches: Vec<Watch>,
    /// What it did with locks.
    pub locks: Locks,
    /// What it transferred to and from others.
    pub moves: Moves,
    /// Collectives entered in this slab.
    pub entries: Vec<GroupEntry>,
    /// Transfers before the fences among these: group, which collective on it, transfer.
    pub transfers: Vec<(u32, u64, Member)>,
    /// Other agents' questions about messages that did not happen yet.
    pub waiting: Vec<Asked>,
    /// Progress that peers reported in this round: channel, side, entry.
    pub(crate) noted: Vec<(u32, Side, Progress)>,
    /// Wildcard receives that were never completed.
    pub abandoned: Vec<(ChannelKey, End)>,
    /// What ended requests, if somebody wants to know.
    pub ended: Option<Vec<Ended>>,
    pub(crate) agent_of: &'a [u32],
}
impl<'a> Rank<'a> {
    /// A rank before its first slab.
    pub fn new(rank: u32, threads: Vec<Thread<'a>>, agent_of: &'a [u32]) -> Self {
        let agent = agent_of.get(rank as usize).copied().unwrap_or(NONE);
        let asker = Asker::new(threads.len(), agent);
        Rank {
            rank,
            threads,
            sends: Channels::default(),
            receives: Channels::default(),
            group_next: Vec::new(),
            own_groups: FxHashMap::default(),
            local_ranks: FxHashMap::default(),
            deferred: Deferred::default(),
            cancels: false,
            asker,
            epochs: Epochs::default(),
            writes: Vec::new(),
            keeps_writes: false,
            looks: Vec::new(),
            watches: Vec::new(),
            locks: Locks::default(),
            moves: Moves::default(),
            entries: Vec::new(),
            transfers: Vec::new(),
            waiting: Vec::new(),
            noted: Vec::new(),
            abandoned: Vec::new(),
            ended: None,
            agent_of,
        }
    }

    /// Decodes the slab that ends at `until` and takes all its calls in. If the rank is
    /// `alone`, its chunks are what threads share.
    pub fn pass_one(&mut self, until: i64, alone: bool) {
        for thread in &mut self.threads {
            thread.stream.fill(until, alone, &mut thread.columns);
            thread.history.extend(&thread.columns, &thread.rows);
            thread.following.extend(&thread.columns, &thread.rows);
        }
        if let [thread] = self.threads.as_mut_slice() {
            let columns = std::mem::take(&mut thread.columns);
            let mut at = columns.first;
            for extended in &columns.extended {
                self.take_plain(0, &columns, at..extended.0);
                self.take_extended(0, &columns, extended);
                at = extended.0 + 1;
            }
            self.take_plain(0, &columns, at..columns.enter.len());
            self.threads[0].columns = columns;
        } else {
            self.take_in_order();
        }
    }

    /// Takes the calls of several threads in. These share channels, so it is done in order of
    /// entry.
    fn take_in_order(&mut self) {
        let threads = self.threads.iter_mut();
        let slabs: Vec<Columns> = threads.map(|t| std::mem::take(&mut t.columns)).collect();
        let mut next: Vec<usize> = slabs.iter().map(|columns| columns.first).collect();
        let mut extended: Vec<_> = slabs.iter().map(|c| c.extended.iter().peekable()).collect();
        let heads = slabs.iter().zip(&next);
        let mut order = InOrder::new(heads.map(|(slab, &at)| slab.enter.get(at).copied()));
        while let Some(thread) = order.least() {
            let (columns, at) = (&slabs[thread], next[thread]);
            match extended[thread].next_if(|(position, _)| *position == at) {
                Some(extended) => self.take_extended(thread, columns, extended),
                None => self.take_plain(thread, columns, at..at + 1),
            }
            next[thread] += 1;
            order.advance(columns.enter.get(at + 1).copied());
        }
        for (thread, columns) in self.threads.iter_mut().zip(slabs) {
            thread.columns = columns;
        }
    }

    /// Takes successive calls of a thread in of which no extension record says more.
    fn take_plain(&mut self, thread: usize, columns: &Columns, mut calls: Range<usize>) {
        while let Some(at) = self.take_posts(thread, columns, calls.clone()) {
            self.step(thread, columns, at);
            calls.start = at + 1;
        }
    }

    /// Takes calls of a thread in until one does more than posting a request: its position.
    /// Half of all calls and more are these, in many programs.
    fn take_posts(
        &mut self,
        thread: usize,
        columns: &Columns,
        calls: Range<usize>,
    ) -> Option<usize> {
        let is_in_order = is_in_order(self.cancels, &self.deferred);
        let (sends, receives) = (&mut self.sends, &mut self.receives);
        let taking = &mut self.threads[thread];
        let (rows, posted) = (&taking.rows[..], &mut taking.posted);
        let first = calls.start;
        let times = columns.enter[calls.clone()].iter();
        let times = times.zip(&columns.signature[calls]);
        for (at, (&time, &signature)) in (first..).zip(times) {
            let Some(row) = rows.get(signature as usize) else {
                taking.undefined += 1;
                continue;
            };
            let end = End {
                time,
                event: columns.number + at as u64,
                signature,
                thread: thread as u32,
            };
            match row.step {
                Step::Nothing => {}
                Step::PostSend => {
                    let channel = row.send_channel;
                    let n = sends.push(channel, end);
                    posted.push(Posted::Send { channel, n });
                }
                Step::PostReceive if is_in_order => {
                    let channel = row.receive_channel;
                    let n = receives.push(channel, end);
                    posted.push(Posted::Receive { channel, n });
                }
                _ => return Some(at),
            }
        }
        None
    }

    /// Takes the call at a position in of which no extension record says more.
    #[inline(never)]
    fn step(&mut self, thread: usize, columns: &Columns, at: usize) {
        let (end, leave) = columns.begin(thread, at);
        let thread = &mut self.threads[thread];
        let row = &thread.rows[end.signature as usize];
        let mut call = CallAt::new(end, leave, row);
        match row.step {
            Step::Undefined => thread.undefined += 1,
            Step::Send => {
                let n = self.sends.push(row.send_channel, end);
                if call.asks {
                    let channel = (row.send_channel, &mut self.sends);
                    self.asker.begin(&mut call, 1);
                    self.asker.ask_for_post(&call, channel, n);
                    self.asker.end(&call);
                }
            }
            Step::Receive if is_in_order(self.cancels, &self.deferred) => {
                let n = self.receives.push(row.receive_channel, end);
                let channel = (row.receive_channel, &mut self.receives);
                self.asker.begin(&mut call, 1);
                self.asker.ask_for_send(&call, channel, n);
                self.asker.end(&call);
            }
            Step::Exchange if is_in_order(self.cancels, &self.deferred) => {
                let (to, from) = (row.send_channel, row.receive_channel);
                self.asker.begin(&mut call, 2);
                let n = self.sends.push(to, end);
                if call.asks {
                    self.asker.ask_for_post(&call, (to, &mut self.sends), n);
                }
                let n = self.receives.push(from, end);
                self.asker
                    .ask_for_send(&call, (from, &mut self.receives), n);
                self.asker.end(&call);
            }
            Step::Collective => {
                let row = *row;
                self.collective(&call, &row, None, false);
            }
            Step::Complete => {
                let list = row.completes;
                let mut call = call.waiting(row);
                self.asker.begin(&mut call, thread.listed(list));
                self.complete_list(&call, list);
                self.asker.end(&call);
            }
            _ => {
                let row = *row;
                self.take(call, &row, None);
            }
        }
    }

    /// From now on all messages are noted, and what ends requests. No call takes a short cut
    /// then: only the long way has room for it.
    pub fn note_all(&mut self) {
        self.ended = Some(Vec::new());
        self.sends.counted = Some(Vec::new());
        self.receives.counted = Some(Vec::new());
        for findings in &mut self.asker.findings {
            findings.losses = Some(Vec::new());
        }
        for row in self.threads.iter_mut().flat_map(|thread| &mut thread.rows) {
            if !matches!(row.step, Step::Undefined | Step::Nothing) {
                row.step = Step::General;
            }
        }
    }

    /// Notes what ended something, if it is asked for.
    pub(crate) fn note(&mut self, ended: impl FnOnce() -> Ended) {
        if let Some(notes) = &mut self.ended {
            notes.push(ended());
        }
    }

    /// Takes a call in that extension records say more of.
    fn take_extended(&mut self, thread: usize, columns: &Columns, extended: &(usize, Event)) {
        let (at, event) = extended;
        let (end, leave) = columns.begin(thread, *at);
        let thread = &mut self.threads[thread];
        match thread.rows.get(end.signature as usize).copied() {
            Some(row) if row.step != Step::Undefined => {
                self.take(CallAt::new(end, leave, &row), &row, Some(event));
            }
            _ => thread.undefined += 1,
        }
    }

    /// A call that matters for matching.
    fn take(&mut self, mut call: CallAt, row: &Row, event: Option<&Event>) {
        if row.memory != Memory::Nothing {
            return self.on_memory(&call, row, event);
        }
        if row.is_user()
            && let Some(ticks) = event.and_then(|event| event.value)
        {
            call = self.begun_before(&call, ticks, row);
        }
        let completed = event.map_or(0, |event| event.completed.len());
        let listed = self.threads[call.thread as usize].listed(row.completes);
        self.asker.begin(&mut call, 2 + completed + listed);
        let call = &call;
        let posts = row.has(flags::POSTS);
        let mut posted = Posted::Done;
        if row.has(flags::SENDS) {
            posted = self.send(call, row, event, posts);
        }
        if row.has(flags::RECEIVES) {
            posted = self.receive(call, row, event, posts);
        }
        if row.has(flags::COLLECTIVE) && row.group != NONE {
            posted = self.collective(call, row, event, posts);
        }
        if row.role != Role::None {
            self.take_epoch(call, row, event);
            if posts && let Some(target) = target_of(row, event) {
                let window = self.group_id(call);
                posted = Posted::Access { window, target };
            }
        }
        if row.completes != 0 || event.is_some_and(|e| !e.completed.is_empty()) {
            self.completions(call, row, event);
        }
        if posts {
            self.threads[call.thread as usize].post(posted);
        }
        self.asker.end(call);
    }

    pub(crate) fn send(
        &mut self,
        call: &CallAt,
        row: &Row,
        event: Option<&Event>,
        posts: bool,
    ) -> Posted {
        let mut channel = row.send_channel;
        if let Some((peer, tag)) = event.and_then(|e| e.send_endpoint) {
            let group = self.group_id(call);
            channel = if peer < 0 {
                NONE
            } else {
                self.sends.number((group, peer, tag), self.agent_of)
            };
        }
        if channel == NONE {
            return Posted::Done;
        }
        let n = self.sends.count(channel, call.end());
        if posts {
            return Posted::Send { channel, n };
        }
        if call.asks {
            self.asker.ask_for_post(call, (channel, &mut self.sends), n);
        }
        Posted::Done
    }

    pub(crate) fn receive(
        &mut self,
        call: &CallAt,
        row: &Row,
        event: Option<&Event>,
        posts: bool,
    ) -> Posted {
        let mut channel = row.receive_channel;
        let overridden = event.and_then(|e| e.receive_endpoint);
        if let Some((peer, tag)) = overridden {
            channel = self.receive_channel(call, peer, tag);
        }
        let end = call.end();
        let peeks = row.has(flags::PEEKS);
        if posts && (channel == NONE || self.cancels) {
            let (group, peer, tag) = self.posted_endpoint(call, overridden);
            if peer < laggard_trace::PEER_ANY {
                return Posted::Done;
            }
            let slot = self.deferred.post(None, (group, peer, tag), end, false);
            return Posted::Deferred { slot };
        }
        if channel == NONE {
            return Posted::Done;
        }
        let key = self.receives.list[channel as usize].key;
        if self.deferred.blocks(key) {
            let slot = self.deferred.post(Some(channel), key, end, peeks);
            if posts {
                return Posted::Deferred { slot };
            }
            let receipt = self.receipt(call, channel);
            self.deferred.complete(slot, receipt);
            return Posted::Done;
        }
        if peeks {
            let n = self.receives.list[channel as usize].next;
            self.asker
                .ask_for_send(call, (channel, &mut self.receives), n);
            return Posted::Done;
        }
        let n = self.receives.count(channel, end);
        if posts {
            return Posted::Receive { channel, n };
        }
        self.asker
            .ask_for_send(call, (channel, &mut self.receives), n);
        Posted::Done
    }

    /// Gives a row the rank's own number of its group.
    pub fn number_group(&mut self, thread: usize, signature: usize) {
        let row = &mut self.threads[thread].rows[signature];
        let next = self.own_groups.len() as u32;
        row.own_group = *self.own_groups.entry(row.group).or_insert(next);
        self.group_next.resize(self.own_groups.len(), 0);
    }

    /// Collectives that it has begun, by the agent's number of their group.
    pub fn collectives(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let own = self.own_groups.iter();
        own.filter_map(|(&group, &own)| Some((group, *self.group_next.get(own as usize)?)))
    }

    /// Collectives that it has begun on a group, by the agent's number.
    pub fn collectives_on(&self, group: u32) -> u64 {
        let own = self.own_groups.get(&group);
        let next = own.and_then(|&own| self.group_next.get(own as usize));
        next.copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn collective(
        &mut self,
        call: &CallAt,
        row: &Row,
        event: Option<&Event>,
        posts: bool,
    ) -> Posted {
        let (mut root, mut has_bytes) = (row.root, row.has_bytes);
        if let Some(event) = event {
            root = event.send_endpoint.map_or(root, |(root, _)| root);
            has_bytes |= event.send_bytes.is_some() || event.receive_bytes.is_some();
        }
        let part = Part::new(row.shape, root, has_bytes, self.rank);
        let is_fence = row.shape == Shape::Fence;
        let next = &mut self.group_next[row.own_group as usize];
        let n = *next;
        *next += 1;
        if is_fence {
            let transfers = self.epochs.fence(self.group_id(call));
            let transfers = transfers.map(|transfer| (row.group, n, transfer));
            self.transfers.extend(transfers);
        }
        self.entries.push(GroupEntry {
            group: row.group,
            n,
            enter: call.enter,
            leave: if posts { i64::MAX } else { call.leave },
            event: call.number,
            thread: call.thread,
            signature: call.signature,
            part,
            computed: match (row.of_all, call.thread) {
                (true, 0) => self.threads[0].following.computed_before(call.number),
                _ => 0,
            },
            asks: part.waits && (posts || call.asks),
        });
        if posts {
            return Posted::Group {
                group: row.group,
                n,
                signature: call.signature,
                waits: part.waits,
            };
        }
        if part.waits && call.asks {
            self.asker.waiters.push(Waiter {
                group: row.group,
                n,
                enter: call.enter,
                leave: call.leave,
                thread: call.thread,
                signature: call.signature,
                collective: call.signature,
                posted: false,
                call: NONE,
                asks: true,
            });
        }
        Posted::Done
    }

    pub(crate) fn receive_channel(&mut self, call: &CallAt, peer: i32, tag: i32) -> u32 {
        if peer < 0 || tag < 0 {
            return NONE;
        }
        let group = self.group_id(call);
        self.receives.number((group, peer, tag), self.agent_of)
    }

    pub(crate) fn group_id(&self, call: &CallAt) -> u64 {
        self.signature(call).group
    }

    pub(crate) fn posted_endpoint(
        &self,
        call: &CallAt,
        overridden: Option<(i32, i32)>,
    ) -> (u64, i32, i32) {
        let signature = self.signature(call);
        let (peer, tag) = overridden.unwrap_or((signature.receive.peer, signature.receive.tag));
        (signature.group, peer, tag)
    }

    pub(crate) fn signature(&self, call: &CallAt) -> &laggard_trace::Signature {
        &self.threads[call.thread as usize]
            .stream
            .location()
            .definitions
            .signatures()[call.signature as usize]
    }
}

/// Whether receives have their number when they are posted.
#[inline(always)]
fn is_in_order(cancels: bool, deferred: &Deferred) -> bool {
    !cancels && deferred.is_empty()
}
