//! Calls that never returned: the call of each rank at the end of its trace, and whether the
//! message it waited for was on its way.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use laggard_comm::{self as comm, Filter, Job};
use laggard_trace::calls::{self, GenericType, number};
use laggard_trace::{FileHeader, Location, OpenCall, PEER_ANY};
use serde::{Deserialize, Serialize};

use crate::basics::intern::{Interner, PathKey, path_key};
use crate::memory::lock::Object;
use crate::messages::channel::Channels;
use crate::replay::rank::Rank;
use crate::stream::thread::{Posted, Thread};

/// Longest possible recording: later times are invalid.
const LONGEST_RUN_S: u64 = 10 * 366 * 86_400;

/// A call that a thread was in when its trace ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hanging {
    /// World rank.
    pub rank: u32,
    pub thread: u32,
    /// Number of the call.
    pub operation: u16,
    /// Where it was called.
    pub path: PathKey,
    /// When it was entered, ns.
    pub enter: i64,
    /// What it waits for.
    pub wait: Wait,
    /// The rank has no other thread that might go on, and its earlier calls are all known.
    pub is_certain: bool,
}

/// What a call waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Wait {
    /// Not known.
    Unknown,
    /// A message on this communicator, from a rank or `PEER_ANY`, with one tag or any.
    Message { group: u64, peer: i32, tag: i32 },
    /// A receive with this tag by a rank.
    Receiver { group: u64, peer: i32, tag: i32 },
    /// Receives posted for messages that were never sent: number, peer and tag of the first, and
    /// the call that posted it.
    Requests {
        count: u64,
        peer: i32,
        tag: i32,
        operation: u16,
        path: PathKey,
    },
    /// The members of a communicator, in its collective with this number; `root` if the collective
    /// has one.
    Members { group: u64, number: u64, root: i32 },
    /// A variable that must compare with a value.
    Value {
        address: u64,
        comparison: i32,
        value: u64,
    },
    /// A lock of OpenSHMEM.
    Lock { address: u64 },
    /// A transfer to or from a rank.
    Transfer { peer: i32 },
    /// The end of a thread of the rank, or a lock that it has; perhaps for a limited time.
    Thread {
        thread: u32,
        ends: bool,
        has_limit: bool,
    },
}

/// Answers of other ranks about the waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    /// Members of communicators.
    pub members: BTreeMap<u64, Vec<u32>>,
    /// Number of collectives on a communicator that a rank has entered and left, or begun.
    pub collectives: BTreeMap<(u64, u32), u64>,
    /// Holders of a lock.
    pub holders: BTreeMap<u64, BTreeSet<u32>>,
    /// Awaited messages that were sent, and awaited receives that were posted.
    pub met: BTreeSet<Question>,
}

/// A question about a communicator, a lock or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Question {
    /// The members, and how far they have come.
    Group(u64),
    /// The holder.
    Lock(u64),
    /// Whether the first rank sent the message that the second one waits for: communicator, ranks,
    /// tag.
    Sent(u64, u32, u32, i32),
    /// Whether the second rank posted a receive for the message that the first one waits to send.
    Asked(u64, u32, u32, i32),
}

impl Filter for Known {
    fn merge(&mut self, other: Known) {
        for (group, members) in other.members {
            let known = self.members.entry(group).or_default();
            // For an intercommunicator, each side tells its own members.
            known.extend(members);
            known.sort_unstable();
            known.dedup();
        }
        self.collectives.extend(other.collectives);
        for (lock, holders) in other.holders {
            self.holders.entry(lock).or_default().extend(holders);
        }
        self.met.extend(other.met);
    }
}

impl Hanging {
    /// The question whose answer tells the rank that it waits for.
    pub fn question(&self) -> Option<Question> {
        let world = |peer: i32| u32::try_from(peer).ok();
        match self.wait {
            Wait::Members { group, .. } => Some(Question::Group(group)),
            Wait::Lock { address } => Some(Question::Lock(address)),
            Wait::Message { group, peer, tag } => {
                Some(Question::Sent(group, world(peer)?, self.rank, tag))
            }
            Wait::Receiver { group, peer, tag } => {
                Some(Question::Asked(group, self.rank, world(peer)?, tag))
            }
            _ => None,
        }
    }
}

/// The open calls of a rank's threads at the end of their traces; `number` gives the agent's number
/// of a communicator.
pub fn of_rank<'r>(
    rank: &'r Rank,
    numbers: &'r Interner<u64>,
) -> impl Iterator<Item = Hanging> + 'r {
    rank.recorded.threads.iter().filter_map(|thread| {
        let call = open_call(thread)?;
        Some(Hanging {
            rank: rank.recorded.rank,
            thread: thread.number,
            operation: call.operation,
            path: path_key(&thread.stream.location().definitions, call.call_path),
            enter: thread.stream.moment_ns(call.enter),
            wait: wait(rank, thread, &call, numbers),
            is_certain: rank.recorded.threads.len() == 1 && call.flags & OpenCall::INCOMPLETE == 0,
        })
    })
}

/// Whether a thread finalised MPI, or ended: it is in no call.
fn has_ended(thread: &Thread) -> bool {
    let end = thread.stream.location().end;
    end.is_some_and(|end| !matches!(end.reason, 1 | 3))
}

/// The call that a thread never returned from, if its file's entry is plausible.
pub fn open_call(thread: &Thread) -> Option<OpenCall> {
    let location = thread.stream.location();
    let call = location.open_call.filter(|_| !has_ended(thread))?;
    let header = &location.header;
    let since = call.enter.checked_sub(header.start_ticks)?;
    let is_known = calls::call(call.operation).is_some();
    if !is_known || since / header.ticks_per_s.max(1) > LONGEST_RUN_S {
        return None;
    }
    // A call left by a jump did not return, but a later call did.
    let last = thread.columns.leave.last().copied().unwrap_or(i64::MIN);
    (thread.stream.moment_ns(call.enter) >= last).then_some(call)
}

fn wait(rank: &Rank, thread: &Thread, call: &OpenCall, numbers: &Interner<u64>) -> Wait {
    let Some(known) = calls::call(call.operation) else {
        return Wait::Unknown;
    };
    let OpenCall {
        group, peer, tag, ..
    } = *call;
    match known.generic {
        _ if is_lock(call.operation) => {
            let holder = holder(rank, thread, call);
            of_thread(holder, false, call)
        }
        _ if is_join(call.operation) => {
            of_thread(named(rank, call, |header| header.handle), true, call)
        }
        GenericType::TwoSidedReceive if peer == PEER_ANY || peer >= 0 => {
            Wait::Message { group, peer, tag }
        }
        GenericType::TwoSidedSend if peer >= 0 => Wait::Receiver { group, peer, tag },
        GenericType::Completion => requests(rank, thread),
        GenericType::GroupSync | GenericType::GroupComm if group != 0 => Wait::Members {
            group,
            root: peer,
            number: numbers
                .find(&group)
                .map_or(0, |at| rank.collectives.begun_on(at)),
        },
        GenericType::WaitOnValue => match (call.symmetric(), call.compared()) {
            (Some(address), Some(value)) => Wait::Value {
                address: address.0,
                comparison: tag,
                value,
            },
            _ => Wait::Unknown,
        },
        GenericType::Lock => match call.symmetric() {
            Some(address) => Wait::Lock { address: address.0 },
            None => Wait::Unknown,
        },
        GenericType::OneSidedPut | GenericType::OneSidedGet | GenericType::OneSidedAtomic
            if peer >= 0 =>
        {
            Wait::Transfer { peer }
        }
        _ => Wait::Unknown,
    }
}

/// Whether a call takes a lock that knows who has it alone.
fn is_lock(operation: u16) -> bool {
    matches!(
        operation,
        number::pthread_mutex_lock
            | number::mtx_lock
            | number::pthread_rwlock_rdlock
            | number::pthread_rwlock_wrlock
    )
}

fn is_join(operation: u16) -> bool {
    matches!(operation, number::pthread_join | number::thrd_join)
}

/// A wait for a thread, if it is known.
fn of_thread(thread: Option<&Thread>, ends: bool, call: &OpenCall) -> Wait {
    thread.map_or(Wait::Unknown, |thread| Wait::Thread {
        thread: thread.number,
        ends,
        has_limit: call.tag != 0,
    })
}

/// The thread of the rank that a call waits for, by the name that its file has. It has not ended: those that did may have
/// had the same.
fn named<'r, 'a>(
    rank: &'r Rank<'a>,
    call: &OpenCall,
    name: impl Fn(&FileHeader) -> u64,
) -> Option<&'r Thread<'a>> {
    let value = call.compared().filter(|value| *value != 0)?;
    let mut threads = rank.recorded.threads.iter().rev();
    threads.find(|other| name(&other.stream.location().header) == value && !has_ended(other))
}

/// The thread of the rank that has the lock which a thread waits for. It had it when the wait began; if it gave it back
/// since, its trace has a record of that, unless calls are left out.
fn holder<'r, 'a>(rank: &'r Rank<'a>, thread: &Thread, call: &OpenCall) -> Option<&'r Thread<'a>> {
    let is_whole = |call: OpenCall| call.flags & OpenCall::INCOMPLETE == 0;
    let since = thread.stream.moment_ns(call.enter);
    let holder = named(rank, call, |header| header.tid.into()).filter(|_| is_whole(*call))?;
    let last = holder.columns.leave.last();
    let has_it = last.is_none_or(|last| *last <= since) && open_call(holder).is_none_or(is_whole);
    has_it.then_some(holder)
}

/// Receives under way whose message was never sent.
fn requests(rank: &Rank, thread: &Thread) -> Wait {
    let mut found = thread.under_way().filter_map(|posted| match *posted {
        Posted::Receive { channel, n } => {
            let channel = rank.messages.receives.list.get(channel as usize)?;
            let is_sent = n < channel.final_count.unwrap_or(0);
            (!is_sent).then_some((channel, n))
        }
        _ => None,
    });
    let Some((channel, n)) = found.next().filter(|(channel, _)| channel.key.1 >= 0) else {
        return Wait::Unknown;
    };
    let (_, peer, tag) = channel.key;
    let asked = channel.get(n).and_then(|end| {
        let by = rank.recorded.threads.get(end.thread as usize)?;
        let row = by.rows.get(end.signature as usize)?;
        Some((row.operation, *by.paths.get(end.signature as usize)?))
    });
    match asked {
        Some((operation, path)) => Wait::Requests {
            count: 1 + found.count() as u64,
            peer,
            tag,
            operation,
            path,
        },
        None => Wait::Unknown,
    }
}

/// Answers of this agent's ranks about the open calls of all agents. Collective.
pub fn ask(
    job: &dyn Job,
    hanging: &[Hanging],
    ranks: &[Rank],
    locations: &[Location],
    numbers: &Interner<u64>,
) -> Result<Known> {
    let own = hanging.iter().filter_map(Hanging::question).collect();
    let questions: Vec<Question> = comm::union(job, own)?;
    let mut known = Known::default();
    if questions.is_empty() {
        return Ok(known);
    }
    let groups = questions.iter().filter_map(|question| match question {
        Question::Group(group) => Some((numbers.find(group)?, *group)),
        _ => None,
    });
    let groups: BTreeMap<u32, u64> = groups.collect();
    for rank in ranks {
        for (number, count) in rank.collectives.begun() {
            if let Some(&group) = groups.get(&number) {
                known.collectives.insert((group, rank.recorded.rank), count);
            }
        }
    }
    let rank_of = |rank: u32| {
        let at = ranks.binary_search_by_key(&rank, |known| known.recorded.rank);
        at.ok().map(|at| &ranks[at])
    };
    for &question in &questions {
        match question {
            // Answered for all groups at once below: each rank is in few of them.
            Question::Group(_) => {}
            Question::Lock(address) => {
                let holds = |rank: &&Rank| rank.memory.locks.holds(Object::Address(address));
                let holders = ranks
                    .iter()
                    .filter(holds)
                    .map(|rank| rank.recorded.rank)
                    .collect();
                known.holders.insert(address, holders);
            }
            Question::Sent(group, from, to, tag) => {
                let sent = |rank: &Rank| has_more(&rank.messages.sends, group, to, tag);
                if rank_of(from).is_some_and(sent) {
                    known.met.insert(question);
                }
            }
            Question::Asked(group, from, to, tag) => {
                let asked = |rank: &Rank| {
                    has_more(&rank.messages.receives, group, from, tag)
                        || !rank.messages.deferred.is_empty()
                        || !rank.messages.abandoned.is_empty()
                };
                if rank_of(to).is_some_and(asked) {
                    known.met.insert(question);
                }
            }
        }
    }
    for location in locations {
        for communicator in &location.definitions.communicators {
            let is_asked = questions
                .binary_search(&Question::Group(communicator.id))
                .is_ok();
            if is_asked && !communicator.members.is_empty() {
                let members = communicator.members.iter();
                let members = members.chain(&communicator.remote_members);
                let one = BTreeMap::from([(communicator.id, members.copied().collect())]);
                known.merge(Known {
                    members: one,
                    ..Known::default()
                });
            }
        }
    }
    Ok(known)
}

/// Whether a rank sent (or posted receives for) more messages on a channel than its partner has
/// received (or sent).
fn has_more(channels: &Channels, group: u64, peer: u32, tag: i32) -> bool {
    channels.list.iter().any(|channel| {
        let (of, with, tagged) = channel.key;
        let is_it = of == group && with == peer as i32 && (tag < 0 || tagged == tag);
        is_it && tagged >= 0 && channel.next > channel.final_count.unwrap_or(0)
    })
}

/// The call paths of all calls.
pub fn paths(hanging: &[Hanging]) -> impl Iterator<Item = PathKey> + '_ {
    hanging.iter().flat_map(|call| {
        let asked = match &call.wait {
            Wait::Requests { path, .. } => Some(*path),
            _ => None,
        };
        [Some(call.path), asked].into_iter().flatten()
    })
}

pub fn rename_paths(hanging: &mut [Hanging], name: impl Fn(PathKey) -> PathKey) {
    for call in hanging {
        call.path = name(call.path);
        if let Wait::Requests { path, .. } = &mut call.wait {
            *path = name(*path);
        }
    }
}
