//! Pass one over the calls of a rank: counts messages and collectives, ties completions to posted
//! requests, and turns slow instances into questions.

use std::ops::Range;
use std::sync::LazyLock;

use laggard_trace::calls::Shape;
use laggard_trace::{Event, Location, flags};
use rustc_hash::FxHashMap;

use crate::basics::ends::{End, NONE};
use crate::basics::in_order::InOrder;
use crate::clock::ClockMap;
use crate::collectives::group::GroupEntry;
use crate::collectives::own::Collectives;
use crate::memory::epochs::target_of;
use crate::memory::own::RemoteMemory;
use crate::messages::channel::is_somebody;
use crate::messages::charges::Waiter;
use crate::messages::ends::Messages;
use crate::messages::questions::Asker;
use crate::messages::questions::Peers;
use crate::messages::wildcard::Deferred;
use crate::stream::call::CallAt;
use crate::stream::columns::{Columns, Stream};
use crate::stream::polling::Episode;
use crate::stream::recorded::Recorded;
use crate::stream::roles::{Among, Memory, Part, Role};
use crate::stream::rows::{Row, Step};
use crate::stream::thread::{Posted, Thread, Usual};
use crate::threads::Threads;
use crate::waits::log::{Ended, Log, ShortLog};
use crate::wire::parcels::Detail;
use crate::wire::parcels::Side;

/// The traces of one rank.
pub struct Rank<'a> {
    /// Its calls.
    pub recorded: Recorded<'a>,
    pub messages: Messages,
    pub collectives: Collectives,
    /// Its one-sided communication.
    pub memory: RemoteMemory,
    /// Its threads that wait for each other.
    pub among: Threads,
    /// Ends of requests, if requested.
    pub ended: Option<Vec<Ended>>,
}
impl Peers for [Rank<'_>] {
    #[inline(always)]
    fn end(&self, peer: u32, channel: u32, side: Side, n: u64) -> Option<&End> {
        self[peer as usize].messages.end(channel, side, n)
    }

    #[inline(always)]
    fn late(&self, peer: u32, end: &End, since: i64, by: Option<i64>) -> Detail {
        self[peer as usize].recorded.late(end, since, by)
    }

    fn may_be_needed(&self, peer: u32, end: &End, is_post: bool) -> bool {
        self[peer as usize].recorded.may_be_needed(end, is_post)
    }
}

impl<'a> Rank<'a> {
    /// A rank before its first slab.
    pub fn new(rank: u32, threads: Vec<Thread<'a>>, agent_of: &'a [u32]) -> Self {
        let agent = agent_of.get(rank as usize).copied().unwrap_or(NONE);
        let asker = Asker::new(rank, threads.len(), agent);
        Rank {
            recorded: Recorded {
                rank,
                threads,
                agent_of,
                is_bare: false,
            },
            messages: Messages::new(asker),
            collectives: Collectives::default(),
            memory: RemoteMemory::default(),
            among: Threads::default(),
            ended: None,
        }
    }

    /// Goes on with a rank of the same trace, which was opened again: it has the same threads.
    pub fn onto(self, rank: Rank<'_>) -> Rank<'_> {
        let threads = self.recorded.threads.into_iter();
        let threads = threads.zip(rank.recorded.threads);
        Rank {
            recorded: Recorded {
                threads: threads.map(|(known, thread)| known.onto(thread)).collect(),
                is_bare: self.recorded.is_bare,
                ..rank.recorded
            },
            messages: self.messages,
            collectives: self.collectives,
            memory: self.memory,
            among: self.among,
            ended: self.ended,
        }
    }

    /// What is known, for [`onto`](Self::onto), and nothing of the trace.
    pub fn put_away(self) -> Rank<'static> {
        static NOTHING: LazyLock<Location> = LazyLock::new(Location::empty);
        let thread = |known: &Thread<'_>| {
            let stream = Stream::new(&NOTHING, ClockMap::even(0, 0, 1, 0));
            let none = (Vec::new(), Vec::new(), Vec::new());
            Thread::new(
                known.number,
                stream,
                none.0,
                none.1,
                none.2,
                FxHashMap::default(),
            )
        };
        let threads = self.recorded.threads.iter().map(thread).collect();
        let nobody = Rank::new(self.recorded.rank, threads, &[]);
        self.onto(nobody)
    }

    /// Frees what only the rounds need: they are over. Findings are put away.
    pub fn free(&mut self) {
        self.recorded.threads.iter_mut().for_each(Thread::free);
        let messages = &mut self.messages;
        messages.sends.free();
        messages.receives.free();
        messages.asker.free();
    }

    /// Its findings are there again.
    pub fn bring_back(&mut self) {
        let charged = self.messages.asker.charged.iter_mut();
        charged.for_each(|charged| charged.findings.bring_back());
    }

    /// Decodes the slab that ends at `until` and takes all its calls. If the rank is `alone`,
    /// threads share its chunks.
    pub fn pass_one(&mut self, until: i64, alone: bool) {
        for thread in &mut self.recorded.threads {
            thread.stream.fill(until, alone, &mut thread.columns);
            let (rows, paths, lists) = (&thread.rows, &thread.paths, &thread.lists);
            let polling = &mut thread.polling;
            polling.extend(&thread.columns, rows, paths, lists, &thread.stream);
            if !self.recorded.is_bare {
                thread.sum_up();
            }
        }
        if let [thread] = self.recorded.threads.as_mut_slice() {
            let columns = std::mem::take(&mut thread.columns);
            let mut at = columns.first;
            for extended in &columns.extended {
                self.take_plain(0, &columns, at..extended.0);
                self.take_extended(0, &columns, extended);
                at = extended.0 + 1;
            }
            self.take_plain(0, &columns, at..columns.enter.len());
            self.recorded.threads[0].columns = columns;
        } else {
            self.take_in_order();
        }
    }

    /// Takes the calls of several threads in order of entry, since threads share channels.
    fn take_in_order(&mut self) {
        let threads = self.recorded.threads.iter_mut();
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
        for (thread, columns) in self.recorded.threads.iter_mut().zip(slabs) {
            thread.columns = columns;
        }
    }

    /// Takes successive calls of a thread without extension records.
    fn take_plain(&mut self, thread: usize, columns: &Columns, mut calls: Range<usize>) {
        while let Some(at) = self.take_posts(thread, columns, calls.clone()) {
            self.step(thread, columns, at);
            calls.start = at + 1;
        }
    }

    /// Takes calls of a thread that only post a request: returns the position of the first other
    /// call. In many programs, these are half of all calls or more.
    fn take_posts(
        &mut self,
        thread: usize,
        columns: &Columns,
        calls: Range<usize>,
    ) -> Option<usize> {
        let is_in_order = is_in_order(self.messages.cancels, &self.messages.deferred);
        let (sends, receives) = (&mut self.messages.sends, &mut self.messages.receives);
        let taking = &mut self.recorded.threads[thread];
        let (rows, posted) = (&taking.rows[..], &mut taking.posted);
        let first = calls.start;
        let times = columns.enter[calls.clone()].iter();
        let times = times.zip(&columns.signature[calls]);
        for (at, (time, &signature)) in (first..).zip(times) {
            let Some(row) = rows.get(signature as usize) else {
                taking.undefined += 1;
                continue;
            };
            let end = || End {
                time: *time,
                event: columns.number + at as u64,
                signature,
                thread: thread as u32,
            };
            match row.step {
                Step::Nothing => {}
                Step::PostSend => {
                    let channel = row.send_channel;
                    let n = sends.push(channel, end());
                    let is_empty = row.is_empty;
                    posted.push(Posted::Send {
                        channel,
                        n,
                        is_empty,
                    });
                }
                Step::PostReceive if is_in_order => {
                    let channel = row.receive_channel;
                    let n = receives.push(channel, end());
                    posted.push(Posted::Receive { channel, n });
                }
                _ => return Some(at),
            }
        }
        None
    }

    /// Takes the call at a position, which has no extension record.
    #[inline(never)]
    fn step(&mut self, thread: usize, columns: &Columns, at: usize) {
        let (end, leave) = columns.begin(thread, at);
        let thread = &mut self.recorded.threads[thread];
        let row = &thread.rows[end.signature as usize];
        let mut call = CallAt::new(end, leave, row);
        match row.step {
            Step::Undefined => thread.undefined += 1,
            Step::Send => {
                let n = self.messages.sends.push(row.send_channel, end);
                if call.asks {
                    let channel = (row.send_channel, &mut self.messages.sends);
                    self.messages.asker.begin(&mut call, 1);
                    self.messages
                        .asker
                        .ask_for_post(&call, channel, n, row.is_empty);
                    self.messages.asker.end(&call);
                }
            }
            Step::Receive if is_in_order(self.messages.cancels, &self.messages.deferred) => {
                let n = self.messages.receives.push(row.receive_channel, end);
                let channel = (row.receive_channel, &mut self.messages.receives);
                self.messages.asker.begin(&mut call, 1);
                self.messages.asker.ask_for_send(&call, channel, n);
                self.messages.asker.end(&call);
            }
            Step::Exchange if is_in_order(self.messages.cancels, &self.messages.deferred) => {
                let (to, from) = (row.send_channel, row.receive_channel);
                self.messages.asker.begin(&mut call, 2);
                let n = self.messages.sends.push(to, end);
                if call.asks {
                    self.messages.asker.ask_for_post(
                        &call,
                        (to, &mut self.messages.sends),
                        n,
                        row.is_empty,
                    );
                }
                let n = self.messages.receives.push(from, end);
                self.messages
                    .asker
                    .ask_for_send(&call, (from, &mut self.messages.receives), n);
                self.messages.asker.end(&call);
            }
            Step::Collective => {
                let row = *row;
                self.collective(&call, &row, None, false);
            }
            Step::Complete => {
                let row = *row;
                let list = row.completes;
                let questions = thread.listed(list);
                let episode = self.looked(&mut call, &row);
                call.wait(&row);
                self.messages.asker.begin(&mut call, questions);
                self.messages.asker.looked(&call, episode);
                self.complete_list(&call, list);
                self.messages.asker.end(&call);
            }
            _ => {
                let row = *row;
                self.take(call, &row, None);
            }
        }
    }

    /// From now on notes all messages and the ends of requests. Turns the short cuts off: they do
    /// not note anything.
    pub fn note_all(&mut self) {
        self.ended = Some(Vec::new());
        self.messages.sends.counted = Some(Vec::new());
        self.messages.receives.counted = Some(Vec::new());
        for row in self
            .recorded
            .threads
            .iter_mut()
            .flat_map(|thread| &mut thread.rows)
        {
            if !matches!(row.step, Step::Undefined | Step::Nothing) {
                row.step = Step::General;
            }
        }
    }

    /// From now on tells waits and their late parties alone: no sums, and nothing that only reports
    /// have.
    pub fn be_bare(&mut self) {
        self.recorded.is_bare = true;
        for charged in &mut self.messages.asker.charged {
            charged.is_bare = true;
        }
    }

    /// From now on notes each wait state.
    pub fn note_waits(&mut self) {
        for charged in &mut self.messages.asker.charged {
            charged.log = Some(Log::default());
        }
    }

    /// From now on notes each wait state in short, and each look.
    pub fn note_in_short(&mut self) {
        for thread in &mut self.recorded.threads {
            thread.polling.noted = Some(Vec::new());
        }
        for charged in &mut self.messages.asker.charged {
            charged.short = Some(ShortLog::default());
        }
    }

    /// Notes the end of a request, if requested.
    pub(crate) fn note(&mut self, ended: impl FnOnce() -> Ended) {
        if let Some(notes) = &mut self.ended {
            notes.push(ended());
        }
    }

    fn take_extended(&mut self, thread: usize, columns: &Columns, extended: &(usize, Event)) {
        let (at, event) = extended;
        let (end, leave) = columns.begin(thread, *at);
        let thread = &mut self.recorded.threads[thread];
        match thread.rows.get(end.signature as usize).copied() {
            Some(row) if row.step != Step::Undefined => {
                self.take(CallAt::new(end, leave, &row), &row, Some(event));
            }
            _ => thread.undefined += 1,
        }
    }

    /// The looks in vain that this call ended. All of them are asked about: the filters judge calls
    /// one by one.
    #[inline(always)]
    fn looked(&mut self, call: &mut CallAt, row: &Row) -> Option<Episode> {
        if !row.looks {
            return None;
        }
        let thread = &mut self.recorded.threads[call.thread as usize];
        let episode = thread.polling.ended_by(call.number)?;
        if episode.begin()? >= episode.found {
            return None;
        }
        (call.polled, call.asks) = (true, true);
        Some(episode)
    }

    /// Takes a call that matters for matching.
    fn take(&mut self, mut call: CallAt, row: &Row, event: Option<&Event>) {
        if row.among != Among::Nothing {
            let key = event.and_then(|event| event.value).unwrap_or(0);
            let size = self.recorded.signature(&call).parameter as u32;
            return self.among.take(&self.recorded, &call, row, (key, size));
        }
        let episode = self.looked(&mut call, row);
        if row.memory != Memory::Nothing {
            let memory = &mut self.memory;
            return memory.on_memory(&self.recorded, &call, row, event, episode);
        }
        if row.is_user()
            && let Some(ticks) = event.and_then(|event| event.value)
        {
            call = self.recorded.begun_before(&call, ticks, row);
        }
        let completed = event.map_or(0, |event| event.completed.len());
        let listed = self.recorded.threads[call.thread as usize].listed(row.completes);
        self.messages.asker.begin(&mut call, 2 + completed + listed);
        self.messages.asker.looked(&call, episode);
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
            self.memory
                .take_epoch(&self.recorded, &mut self.messages, call, row, event);
            if posts && let Some(target) = target_of(row, event) {
                let window = self.recorded.group_id(call);
                posted = Posted::Access { window, target };
            }
        }
        if row.completes != 0 || event.is_some_and(|e| !e.completed.is_empty()) {
            self.completions(call, row, event);
        }
        if posts {
            self.recorded.threads[call.thread as usize].post(posted);
        }
        self.messages.asker.end(call);
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
            let group = self.recorded.group_id(call);
            channel = match is_somebody(peer) {
                true => self
                    .messages
                    .sends
                    .number((group, peer, tag), self.recorded.agent_of),
                false => NONE,
            };
        }
        if channel == NONE {
            return Posted::Done;
        }
        let n = self.messages.sends.count(channel, call.end());
        let is_empty = row.is_empty;
        if posts {
            return Posted::Send {
                channel,
                n,
                is_empty,
            };
        }
        if call.asks {
            self.messages.asker.ask_for_post(
                call,
                (channel, &mut self.messages.sends),
                n,
                is_empty,
            );
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
        if posts && (channel == NONE || self.messages.cancels) {
            let (group, peer, tag) = self.recorded.posted_endpoint(call, overridden);
            if peer < laggard_trace::PEER_ANY {
                return Posted::Done;
            }
            let slot = self
                .messages
                .deferred
                .post(None, (group, peer, tag), end, false);
            return Posted::Deferred { slot };
        }
        if channel == NONE {
            return Posted::Done;
        }
        let key = self.messages.receives.list[channel as usize].key;
        if self.messages.deferred.blocks(key) {
            let slot = self.messages.deferred.post(Some(channel), key, end, peeks);
            if posts {
                return Posted::Deferred { slot };
            }
            let receipt = self.messages.receipt(call, channel);
            self.messages.deferred.complete(slot, receipt);
            return Posted::Done;
        }
        if peeks {
            let n = self.messages.receives.list[channel as usize].next;
            self.messages
                .asker
                .ask_for_send(call, (channel, &mut self.messages.receives), n);
            return Posted::Done;
        }
        let n = self.messages.receives.count(channel, end);
        if posts {
            return Posted::Receive { channel, n };
        }
        self.messages
            .asker
            .ask_for_send(call, (channel, &mut self.messages.receives), n);
        Posted::Done
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
        let part = Part::new(row.shape, root, has_bytes, self.recorded.rank);
        if row.shape == Shape::Finalize {
            self.among.finish(&self.recorded, call);
        }
        let thread = &self.recorded.threads[call.thread as usize];
        let usual = match part.is_held && call.asks && !posts {
            true => thread.usual.get(&call.signature),
            false => None,
        };
        // A member that needs nothing of others asks only if its call was slow.
        let is_slow = |usual: &Usual| call.leave - call.enter >= usual.slow;
        let asks = part.waits && (posts || call.asks) || usual.is_some_and(is_slow);
        let usual = usual.copied().unwrap_or(Usual::UNKNOWN);
        let is_fence = row.shape == Shape::Fence;
        let n = self.collectives.begin(row.own_group);
        if is_fence {
            let transfers = self.memory.epochs.fence(self.recorded.group_id(call));
            let transfers = transfers.map(|transfer| (row.group, n, transfer));
            self.collectives.transfers.extend(transfers);
        }
        self.collectives.entries.push(GroupEntry {
            group: row.group,
            n,
            enter: call.enter,
            leave: if posts { i64::MAX } else { call.leave },
            event: call.number,
            thread: call.thread,
            thread_number: self.recorded.threads[call.thread as usize].number,
            signature: call.signature,
            part,
            computed: match (row.of_all, call.thread) {
                (true, 0) => self.recorded.threads[0]
                    .following
                    .computed_before(call.number),
                _ => 0,
            },
            asks,
        });
        if posts {
            return Posted::Group {
                group: row.group,
                n,
                signature: call.signature,
                waits: part.waits,
            };
        }
        if asks {
            self.messages.asker.waiters.push(Waiter {
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
                waits: part.waits,
                usual,
            });
        }
        Posted::Done
    }

    pub(crate) fn receive_channel(&mut self, call: &CallAt, peer: i32, tag: i32) -> u32 {
        if !is_somebody(peer) || tag < 0 {
            return NONE;
        }
        let group = self.recorded.group_id(call);
        self.messages
            .receives
            .number((group, peer, tag), self.recorded.agent_of)
    }
}

/// Whether receives get their number when they are posted.
#[inline(always)]
fn is_in_order(cancels: bool, deferred: &Deferred) -> bool {
    !cancels && deferred.is_empty()
}
