//! Random programs: what each rank did and when, whom it waited for, and the trace of it.

use std::collections::VecDeque;

use laggard_trace::calls::number::{self, *};
use laggard_trace::{Communicator, Definition, Signature, WORLD, flags};
use proptest::prelude::*;

use super::losses::{HELD, late_receiver, late_sender, losses, needed, needs_all, stays_for};
use crate::support::{Calls, collective, ranks, receive, send};

/// What takes little time takes some of these, ns: less than what looks like a stalled transfer.
pub const TICK: u64 = 200;
/// What a reduction takes for which all come at the same time, ns.
pub const USUAL: u64 = 4 * TICK;

/// Activity, line of the call or of the one before, and line of the call after.
pub type Key = (&'static str, u32, u32);

/// A call of a rank: its place among that one's calls.
pub type At = (usize, usize);

/// A wait of a call.
#[derive(Clone, Debug)]
pub struct Wait {
    /// ns
    pub share: i64,
    /// What counts as waiting after the late one had come, ns.
    pub transfer: i64,
    pub late: At,
    /// The class of the wait.
    pub class: &'static str,
}

/// Whom a rank met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    All,
    Group(usize),
    Rank(usize),
}

/// That a rank met others.
#[derive(Clone, Debug)]
pub struct Meet {
    pub with: With,
    /// In which of its calls.
    pub at: usize,
    /// When the first of them left, ns; `None`: what counts is what the rank did after the call.
    pub left: Option<u64>,
    /// If the rank waited for a message of the other one: how much later it left, ns.
    pub later: i64,
    /// Whether the call may have waited for others after that. What counts then is what the rank did before
    /// these waits, if most of them came after it.
    pub before_waits: bool,
    /// If it was by a broadcast: the group. Those who waited met the root, which met all of them by itself.
    pub broadcast: Option<usize>,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Done {
    pub line: u32,
    pub enter: u64,
    pub leave: u64,
    /// Of the time before it: blocked, preempted, and in the kernel, ns.
    pub off: [u64; 3],
    pub waits: Vec<Wait>,
    /// Looks wait for all who are missing. Those that go on waiting, for whom others are charged, do
    /// nothing else: by how much that is more than what is charged, ns.
    beyond: i64,
    /// Whether it is a collective whose members wait for the same: its group.
    pub team: Option<usize>,
    /// The meetings that are known when it ends.
    pub meets: Vec<Meet>,
}

impl Done {
    /// What the time between the call `before` and this one was, in order: activities and ns.
    pub fn gap(&self, before: &Done) -> [(Key, i64); 4] {
        let [blocked, preempted, kernel] = self.off.map(|time| time as i64);
        let all = (self.enter - before.leave) as i64;
        [
            ("blocked", blocked),
            ("preempted", preempted),
            ("kernel", kernel),
            ("computation", all - blocked - preempted - kernel),
        ]
        .map(|(kind, time)| ((kind, before.line, self.line), time))
    }

    pub fn waited(&self) -> i64 {
        self.waits.iter().map(|wait| wait.share).sum()
    }

    /// What counts as waiting after the late one had come, ns.
    pub fn transfer(&self) -> i64 {
        self.waits.iter().map(|wait| wait.transfer).sum()
    }

    /// ns in it, without its waiting.
    pub fn inside(&self) -> i64 {
        (self.leave - self.enter) as i64 - self.waited() - self.transfer() - self.beyond
    }
}

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Barrier,
    Exchange,
    /// The root has this place among the members.
    Broadcast(usize),
    Reduce(usize),
    /// A reduction that nobody leaves before all have come.
    Held(usize),
    Scan,
}

/// How a rank completes requests.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// The oldest one.
    Wait,
    /// All; first those that are no sends.
    All,
    /// The oldest one, in looks that last so many ns.
    Look(u64),
}

/// What ranks do, one after the other.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A rank computes so many ns. Parts of them it is blocked, preempted, and in the kernel.
    Compute(usize, u64, [u64; 3]),
    /// One rank sends to another. A synchronous send waits for the receive.
    Message { from: usize, to: usize, waits: bool },
    /// The same, but one end posts it, or both do.
    Post {
        from: usize,
        to: usize,
        waits: bool,
        ends: Ends,
    },
    /// Members of a group meet.
    Collective {
        group: usize,
        kind: Kind,
        posts: bool,
    },
    /// A rank completes what it has posted.
    Complete(usize, How),
}

/// The ends of a message that are not blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Send,
    Receive,
    Both,
}

/// Random steps.
pub fn steps(ranks: usize) -> impl Strategy<Value = Vec<Step>> {
    let pair = move || {
        let pair = (0..ranks, 1..ranks);
        pair.prop_map(move |(from, by)| (from, (from + by) % ranks))
    };
    let off = prop_oneof![2 => Just([0; 3]), 1 => [0..4u64, 0..4u64, 0..4u64]];
    let compute = (0..ranks, 100_000..10_000_000u64, off).prop_map(|(rank, time, parts)| {
        Step::Compute(rank, time, parts.map(|part| time * part / 9))
    });
    let message =
        (pair(), any::<bool>()).prop_map(|((from, to), waits)| Step::Message { from, to, waits });
    let ends = prop_oneof![Just(Ends::Send), Just(Ends::Receive), Just(Ends::Both)];
    let post = (pair(), any::<bool>(), ends).prop_map(|((from, to), waits, ends)| Step::Post {
        from,
        to,
        waits,
        ends,
    });
    let kind = prop_oneof![
        3 => Just(Kind::Barrier),
        3 => Just(Kind::Exchange),
        1 => (0..ranks).prop_map(Kind::Broadcast),
        1 => (0..ranks).prop_map(Kind::Reduce),
        1 => (0..ranks).prop_map(Kind::Held),
        1 => Just(Kind::Scan),
    ];
    let collective = (0..5usize, kind, any::<bool>())
        .prop_map(|(group, kind, posts)| Step::Collective { group, kind, posts });
    let how = prop_oneof![
        Just(How::Wait),
        Just(How::All),
        (50_000..200_000u64).prop_map(How::Look),
    ];
    let complete = (0..ranks, how).prop_map(|(rank, how)| Step::Complete(rank, how));
    let step = prop_oneof![
        6 => compute,
        3 => message,
        2 => post,
        3 => collective,
        3 => complete,
    ];
    prop::collection::vec(step, 1..40)
}

/// Who comes to a collective, or to a message: when, and in which call.
#[derive(Clone, Copy, Debug)]
pub struct Party {
    pub enter: u64,
    pub at: At,
}

/// What a request needs.
#[derive(Clone, Debug)]
enum Needs {
    /// The other end of a message: a sender, or a receiver, without which it may be complete.
    Sender(Party),
    Receiver {
        party: Party,
        waits: bool,
    },
    /// Members of a collective.
    Members {
        group: usize,
        kind: Kind,
        /// The place of this one among the members.
        local: usize,
        all: Vec<Party>,
    },
}

#[derive(Clone, Debug)]
struct Request {
    post: u64,
    /// The call that posted it.
    at: usize,
    needs: Needs,
}

/// The ranks of a program.
pub struct Machine {
    pub calls: Vec<Calls>,
    pub done: Vec<Vec<Done>>,
    /// Members of the groups: all, all but the last, the second with the last, all but the last again, and the first two.
    pub groups: Vec<Vec<usize>>,
    /// Whether these are no ranks, but the threads of one.
    pub are_threads: bool,
    /// Whether late members share the blame.
    pub shares: bool,
    pub now: Vec<u64>,
    /// Since its last call, see [`Done::off`].
    off: Vec<[u64; 3]>,
    requests: Vec<VecDeque<Request>>,
}

/// Lines stand for kinds of calls. Ranks share some of them.
pub fn line(base: u32, rank: usize) -> u32 {
    base + rank as u32 % 2
}

fn group_id(group: usize) -> u64 {
    match group {
        0 => WORLD,
        other => 100 + other as u64,
    }
}

/// Runs the steps.
pub fn run(count: usize, steps: &[Step], shares: bool) -> Machine {
    let mut machine = Machine::new(ranks(count as u32), shares);
    machine.begin();
    steps.iter().for_each(|step| machine.step(step));
    for rank in (0..count).chain(0..count) {
        machine.complete(rank, How::All);
    }
    machine.collective(0, Kind::Barrier, true);
    machine
}

impl Machine {
    pub fn new(calls: Vec<Calls>, shares: bool) -> Machine {
        let count = calls.len();
        Machine {
            calls,
            done: vec![Vec::new(); count],
            groups: vec![
                (0..count).collect(),
                (0..count - 1).collect(),
                vec![1, count - 1],
                (0..count - 1).collect(),
                vec![0, 1],
            ],
            are_threads: false,
            shares,
            now: vec![0; count],
            off: vec![[0; 3]; count],
            requests: vec![VecDeque::new(); count],
        }
    }

    fn begin(&mut self) {
        for rank in 0..self.calls.len() {
            for group in 1..self.groups.len() {
                let members = &self.groups[group];
                let Some(local) = members.iter().position(|&member| member == rank) else {
                    continue;
                };
                let all = members.iter().map(|&member| member as u32);
                let communicator = Communicator {
                    id: group_id(group),
                    size: members.len() as u32,
                    local_rank: local as u32,
                    members: if local == 0 {
                        all.collect()
                    } else {
                        Vec::new()
                    },
                    ..Communicator::default()
                };
                self.calls[rank].define(Definition::Communicator(communicator));
            }
            let init = Signature {
                operation: MPI_Init,
                ..Signature::default()
            };
            self.calls[rank].call(1, init, 0, 1_000);
            self.now[rank] = 1_000;
            self.note(rank, 1, (0, 1_000), Vec::new());
            self.met(rank, With::All, 0, Some(1_000));
        }
        // None is faster: so this is what is usual.
        self.calls_at_once(60);
    }

    /// All are in a reduction from and until the same moment.
    fn calls_at_once(&mut self, line: u32) {
        let enter = 1_000 + 10 * TICK;
        for rank in 0..self.calls.len() {
            let signature = self.signature(MPI_Reduce, 0, Kind::Held(0));
            self.calls[rank].call(line, signature, enter, enter + USUAL);
            self.note(rank, line, (enter, enter + USUAL), Vec::new());
        }
    }

    pub fn step(&mut self, step: &Step) {
        match *step {
            Step::Compute(rank, time, parts) => {
                self.now[rank] += time;
                self.calls[rank].is_off(parts);
                // Alone, the last one is charged as Scalasca does, to which all that is computation.
                if self.shares {
                    let sums = self.off[rank].iter_mut().zip(parts);
                    sums.for_each(|(sum, part)| *sum += part);
                }
            }
            Step::Message { from, to, waits } => self.message(from, to, waits, None),
            Step::Post {
                from,
                to,
                waits,
                ends,
            } => self.message(from, to, waits, Some(ends)),
            Step::Collective { group, kind, posts } => {
                let members = self.groups[group].len();
                let kind = match kind {
                    Kind::Broadcast(root) => Kind::Broadcast(root % members),
                    Kind::Reduce(root) => Kind::Reduce(root % members),
                    // Nobody need wait for a non-blocking one.
                    Kind::Held(root) if posts => Kind::Reduce(root % members),
                    Kind::Held(root) => Kind::Held(root % members),
                    other => other,
                };
                match posts {
                    true => self.start(group, kind),
                    false => self.collective(group, kind, false),
                }
            }
            Step::Complete(rank, how) => self.complete(rank, how),
        }
    }

    /// Notes a call; returns its place.
    pub fn note(&mut self, rank: usize, line: u32, at: (u64, u64), waits: Vec<Wait>) -> usize {
        self.done[rank].push(Done {
            line,
            enter: at.0,
            leave: at.1,
            off: std::mem::take(&mut self.off[rank]),
            waits,
            beyond: 0,
            team: None,
            meets: Vec::new(),
        });
        self.now[rank] = at.1;
        self.done[rank].len() - 1
    }

    /// A rank met others in its last call, or, as that one tells, in an earlier one.
    pub fn met(&mut self, rank: usize, with: With, at: usize, left: Option<u64>) {
        let last = self.done[rank].last_mut().expect("a call");
        last.meets.push(Meet {
            with,
            at,
            left,
            later: 0,
            before_waits: false,
            broadcast: None,
        });
    }

    /// The last meeting of a rank.
    fn last_meet(&mut self, rank: usize, at: usize) -> &mut Meet {
        let last = self.done[rank][at].meets.last_mut();
        last.expect("a meeting")
    }

    /// The two of a wait met: one in its last call, where it may have looked last at some time, and
    /// looked for all until some time, the other in the late one.
    pub fn met_late(&mut self, rank: usize, late: At, look: Option<(u64, u64)>) {
        let at = self.done[rank].len() - 1;
        let left = match look {
            Some((_, until)) => until.min(self.done[late.0][late.1].leave),
            None => self.left(rank, late),
        };
        let look = look.map(|(end, _)| end);
        let own = &self.done[rank][at];
        let is_receiver = own.waits.iter().any(|wait| wait.class == "late_receiver");
        // Alone, the last one is charged as Scalasca does: a sender counts from its own leave, or from
        // that of the look that was late.
        let own = match is_receiver && !self.shares {
            true => look.unwrap_or(own.leave),
            false => look.map_or(left, |end| left.min(end)),
        };
        let last = &self.done[rank][at];
        let waits_for = |wait: &Wait| wait.late == late && wait.class == "late_sender";
        let is_sent = look.is_none() && self.shares && last.waits.iter().any(waits_for);
        // Who is late is waited for until it comes, whoever else is.
        let is_passed = |wait: &Wait| wait.late == late && is_one_by_one(wait.class);
        let is_passed = look.is_none() && self.shares && last.waits.iter().any(is_passed);
        let own = match is_passed {
            true => self.done[late.0][late.1].enter,
            false => own,
        };
        let later = match is_sent {
            true => (last.leave.saturating_sub(self.done[late.0][late.1].leave) as i64)
                .min(last.inside()),
            false => 0,
        };
        self.met(rank, With::Rank(late.0), at, Some(own));
        let meet = self.last_meet(rank, at);
        (meet.later, meet.before_waits) = (later, is_passed);
        self.met_by(rank, late, left);
    }

    /// A late one met who waited.
    fn met_by(&mut self, rank: usize, late: At, left: u64) {
        self.done[late.0][late.1].meets.push(Meet {
            with: With::Rank(rank),
            at: late.1,
            left: Some(left),
            later: 0,
            before_waits: false,
            broadcast: None,
        });
    }

    /// When the first one left of the last call of a rank and the late one for it.
    fn left(&self, rank: usize, late: At) -> u64 {
        let own = self.done[rank].last().expect("a call");
        own.leave.min(self.done[late.0][late.1].leave)
    }

    fn message(&mut self, from: usize, to: usize, waits: bool, ends: Option<Ends>) {
        let posts_send = matches!(ends, Some(Ends::Send | Ends::Both));
        let posts_receive = matches!(ends, Some(Ends::Receive | Ends::Both));
        let (sent, posted) = (self.now[from] + 10 * TICK, self.now[to] + 10 * TICK);
        let sender = Party {
            enter: sent,
            at: (from, self.done[from].len()),
        };
        let receiver = Party {
            enter: posted,
            at: (to, self.done[to].len()),
        };
        let left = match (posts_send, waits) {
            (true, _) => sent + 5 * TICK,
            (false, true) => sent.max(posted) + 30 * TICK,
            (false, false) => sent + 50 * TICK,
        };
        let got = match posts_receive {
            true => posted + 5 * TICK,
            false => sent.max(posted) + 70 * TICK,
        };
        let (operation, base) = match (posts_send, waits) {
            (false, false) => (MPI_Send, 10),
            (false, true) => (MPI_Ssend, 12),
            (true, false) => (MPI_Isend, 14),
            (true, true) => (MPI_Issend, 16),
        };
        let mut signature = send(operation, to as i32, 0);
        signature.flags |= if posts_send { flags::POSTS } else { 0 };
        let sends = line(base, from);
        self.calls[from].call(sends, signature, sent, left);
        let (operation, base) = match posts_receive {
            false => (MPI_Recv, 20),
            true => (MPI_Irecv, 22),
        };
        let mut signature = receive(operation, from as i32, 0);
        signature.flags |= if posts_receive { flags::POSTS } else { 0 };
        let receives = line(base, to);
        self.calls[to].call(receives, signature, posted, got);
        let at = self.note(from, sends, (sent, left), Vec::new());
        if posts_send {
            let post = self.calls[from].posts() - 1;
            let needs = Needs::Receiver {
                party: receiver,
                waits,
            };
            self.requests[from].push_back(Request { post, at, needs });
        }
        let at = self.note(to, receives, (posted, got), Vec::new());
        if posts_receive {
            let post = self.calls[to].posts() - 1;
            let needs = Needs::Sender(sender);
            self.requests[to].push_back(Request { post, at, needs });
        }
        if !posts_send {
            let share = late_receiver((sent, left), posted);
            self.wait_for(from, (share, receiver.at), "late_receiver");
        }
        if !posts_receive {
            let share = late_sender((posted, got), sent);
            self.wait_for(to, (share, sender.at), "late_sender");
        }
    }

    /// The last call of a rank waited for another one.
    fn wait_for(&mut self, rank: usize, (share, late): (i64, At), class: &'static str) {
        if share == 0 {
            return;
        }
        let own = self.done[rank].last_mut().expect("a call");
        own.waits.push(Wait {
            share,
            transfer: 0,
            late,
            class,
        });
        self.met_late(rank, late, None);
    }

    /// A blocking collective; the last one if the run `ends`.
    fn collective(&mut self, group: usize, kind: Kind, ends: bool) {
        let members = self.groups[group].clone();
        let all: Vec<Party> = members
            .iter()
            .map(|&rank| Party {
                enter: self.now[rank] + 10 * TICK,
                at: (rank, self.done[rank].len()),
            })
            .collect();
        let leaves: Vec<u64> = (0..all.len())
            .map(|local| {
                let complete = (0..all.len()).filter(|&other| stays_for(kind, local, other));
                let complete = complete.map(|other| all[other].enter).max().unwrap_or(0);
                complete.max(all[local].enter) + 20 * TICK + 7 * TICK * local as u64
            })
            .collect();
        let first = *leaves.iter().min().expect("a member");
        let (operation, base) = operation(kind, false);
        let mut is_late = vec![false; all.len()];
        for (local, &rank) in members.iter().enumerate() {
            let line = match kind {
                _ if ends => 90,
                // What is slow depends on the size of the group.
                Kind::Held(_) => line(base + 2 * group as u32, rank),
                _ => line(base, rank),
            };
            let operation = if ends { MPI_Finalize } else { operation };
            let times = (all[local].enter, leaves[local]);
            let waits = losses(kind, local, &all, times, self.shares);
            for wait in &waits {
                let late = all.iter().position(|party| party.at == wait.late);
                is_late[late.expect("a member")] = true;
            }
            let signature = self.signature(operation, group, kind);
            self.calls[rank].call(line, signature, times.0, times.1);
            let at = self.note(rank, line, times, waits);
            let is_broadcast = matches!(kind, Kind::Broadcast(_));
            let is_team = self.shares && (needs_all(kind) || is_broadcast);
            self.done[rank][at].team = is_team.then_some(group);
        }
        for (local, &rank) in members.iter().enumerate() {
            let at = self.done[rank].len() - 1;
            let waits = self.done[rank][at].waits.clone();
            if needs_all(kind) {
                // Who neither waits nor is waited for does not learn who left first.
                let knows = !waits.is_empty() || is_late[local];
                let left = if knows { first } else { leaves[local] };
                self.met(rank, self.with(group), at, Some(left));
                continue;
            }
            let is_broadcast = matches!(kind, Kind::Broadcast(_));
            for wait in &waits {
                let late = wait.late;
                let is_held = wait.class == HELD;
                let is_passed = is_held || self.shares && is_one_by_one(wait.class);
                let left = match is_passed {
                    true => self.done[late.0][late.1].enter,
                    false => first,
                };
                self.met(rank, With::Rank(late.0), at, Some(left));
                let is_team = is_broadcast && self.shares;
                let meet = self.last_meet(rank, at);
                meet.before_waits = is_passed;
                meet.broadcast = is_team.then_some(group);
                if is_held {
                    self.met_by(rank, late, self.left(rank, late));
                    continue;
                }
                let is_rooted = is_broadcast || matches!(kind, Kind::Reduce(_));
                match (self.shares, is_rooted) {
                    (true, _) if is_broadcast => {}
                    // As Scalasca does, it counts from its own leave.
                    (false, true) => self.met_by(rank, late, u64::MAX),
                    _ => {
                        self.met_by(rank, late, first);
                        self.last_meet(late.0, late.1).before_waits = is_passed;
                    }
                }
            }
            // The root of a broadcast for which somebody waits has met all.
            if is_broadcast && self.shares && is_late[local] {
                self.met(rank, With::Group(group), at, Some(first));
                self.last_meet(rank, at).broadcast = Some(group);
            }
        }
    }

    fn with(&self, group: usize) -> With {
        match self.groups[group].len() == self.calls.len() {
            true => With::All,
            false => With::Group(group),
        }
    }

    fn signature(&self, operation: u16, group: usize, kind: Kind) -> Signature {
        let root = match kind {
            Kind::Broadcast(root) | Kind::Reduce(root) | Kind::Held(root) => {
                self.groups[group][root] as i32
            }
            _ => 0,
        };
        Signature {
            group: group_id(group),
            ..collective(operation, root)
        }
    }

    /// All members start a non-blocking collective.
    fn start(&mut self, group: usize, kind: Kind) {
        let members = self.groups[group].clone();
        let (operation, base) = operation(kind, true);
        let mut all = Vec::new();
        for &rank in &members {
            let enter = self.now[rank] + 10 * TICK;
            let line = line(base, rank);
            let mut signature = self.signature(operation, group, kind);
            signature.flags |= flags::POSTS;
            self.calls[rank].call(line, signature, enter, enter + 5 * TICK);
            let at = self.note(rank, line, (enter, enter + 5 * TICK), Vec::new());
            all.push(Party {
                enter,
                at: (rank, at),
            });
        }
        for (local, &rank) in members.iter().enumerate() {
            self.requests[rank].push_back(Request {
                post: self.calls[rank].posts() - 1,
                at: all[local].at.1,
                needs: Needs::Members {
                    group,
                    kind,
                    local,
                    all: all.clone(),
                },
            });
        }
    }

    fn complete(&mut self, rank: usize, how: How) {
        // A call that waits for a message is not charged with a late receiver.
        let is_send = |request: &Request| matches!(request.needs, Needs::Receiver { .. });
        let open = &mut self.requests[rank];
        let requests: Vec<Request> = match how {
            How::All => {
                let (sends, others): (Vec<_>, Vec<_>) = open.drain(..).partition(is_send);
                if !others.is_empty() {
                    open.extend(sends);
                    others
                } else {
                    sends
                }
            }
            _ => open.pop_front().into_iter().collect(),
        };
        if requests.is_empty() {
            return;
        }
        let enter = self.now[rank] + 10 * TICK;
        let ready = requests.iter().map(Request::ready).max().unwrap_or(0);
        match how {
            How::Look(each) if ready > enter => {
                self.look(rank, &requests[0], (enter, ready), each);
            }
            // If it is complete at once, it just waits.
            _ => {
                let line = line(70, rank);
                let posts = requests.iter().map(|request| (request.post, None));
                let times = (enter, enter.max(ready) + 25 * TICK);
                self.calls[rank].waitall(line, &posts.collect::<Vec<_>>(), times.0, times.1);
                let waits = self.worst(times, &requests);
                self.completed(rank, line, times, &requests, (&waits, None));
            }
        }
    }

    /// Looks until a request is complete.
    fn look(&mut self, rank: usize, request: &Request, (enter, ready): (u64, u64), each: u64) {
        let line = line(74, rank);
        let looks = (ready - enter).div_ceil(each);
        let found = enter + looks * each;
        self.calls[rank].looks(line, number::MPI_Test, enter, found, each);
        self.calls[rank].test(line, &[request.post], found, found + each);
        let times = (enter, found + each);
        let requests = std::slice::from_ref(request);
        let mut waits = self.worst(times, requests);
        // By the end of the look in which they came.
        let end = |wait: &Wait| {
            let came = self.done[wait.late.0][wait.late.1].enter;
            enter + ((came - enter) / each + 1) * each
        };
        waits.sort_by_key(end);
        let parts: Vec<(u64, Vec<Wait>)> = waits
            .chunk_by(|a, b| end(a) == end(b))
            .map(|same| (end(&same[0]), same.to_vec()))
            .collect();
        let (mut from, mut beyond) = (enter, 0);
        for (at, (end, own)) in parts.iter().enumerate() {
            // The last look completes the request.
            let (until, completes) = match at + 1 == parts.len() {
                true => (times.1, requests),
                false => (*end, &[][..]),
            };
            let look = Some((*end, times.1));
            self.completed(rank, line, (from, until), completes, (own, look));
            from = until;
            let looks = self.done[rank].last_mut().expect("looks");
            looks.beyond = match completes {
                [] => looks.inside(),
                _ => -beyond,
            };
            beyond += looks.beyond;
        }
    }

    /// A call completed requests, and may have waited for one of them: with looks, until the one
    /// that had this end, and for all until the other one.
    fn completed(
        &mut self,
        rank: usize,
        line: u32,
        times: (u64, u64),
        requests: &[Request],
        (waits, look): (&[Wait], Option<(u64, u64)>),
    ) {
        let at = self.note(rank, line, times, waits.to_vec());
        for wait in waits {
            self.met_late(rank, wait.late, look);
        }
        let last = waits.iter().map(|wait| self.left(rank, wait.late)).max();
        let last = last.map(|left| look.map_or(left, |(end, _)| left.min(end)));
        for request in requests {
            let Needs::Members { group, kind, .. } = request.needs else {
                continue;
            };
            if needs_all(kind) {
                let with = self.with(group);
                match last {
                    Some(left) => self.met(rank, with, at, Some(left)),
                    None => self.met(rank, with, request.at, None),
                }
            }
        }
    }

    /// A call that completes several is charged with the worst.
    fn worst(&self, times: (u64, u64), requests: &[Request]) -> Vec<Wait> {
        let (mut sender, mut receiver, mut members) = (None, None, (Vec::new(), 0));
        for request in requests {
            let one = |share, party: &Party, class| Wait {
                share,
                transfer: 0,
                late: party.at,
                class,
            };
            match &request.needs {
                Needs::Sender(party) => {
                    let wait = one(late_sender(times, party.enter), party, "late_sender");
                    let is_worse = |other: &Wait| wait.share > other.share;
                    if wait.share > 0 && sender.as_ref().is_none_or(is_worse) {
                        sender = Some(wait);
                    }
                }
                Needs::Receiver { party, .. } => {
                    let wait = one(late_receiver(times, party.enter), party, "late_receiver");
                    let key = |wait: &Wait| (wait.share, std::cmp::Reverse(wait.late.0));
                    let is_worse = |other: &Wait| key(&wait) > key(other);
                    if wait.share > 0 && receiver.as_ref().is_none_or(is_worse) {
                        receiver = Some(wait);
                    }
                }
                Needs::Members {
                    kind, local, all, ..
                } => {
                    let own = losses(*kind, *local, all, times, self.shares);
                    let operation = operation(*kind, true).0;
                    let key = |waits: &[Wait], operation: u16| {
                        let sum: i64 = waits.iter().map(|wait| wait.share).sum();
                        let first = waits.first().map(|wait| wait.late.0);
                        (sum, std::cmp::Reverse((first, operation)))
                    };
                    let (known, of) = &members;
                    if !own.is_empty()
                        && (known.is_empty() || key(&own, operation) > key(known, *of))
                    {
                        members = (own, operation);
                    }
                }
            }
        }
        let message: Option<Wait> = sender.or(receiver);
        let members = members.0;
        let most = message.as_ref().map_or(0, |wait| wait.share);
        let sum: i64 = members.iter().map(|wait| wait.share).sum();
        match sum > most {
            true => members,
            false => message.into_iter().collect(),
        }
    }
}

impl Request {
    /// When it is complete.
    fn ready(&self) -> u64 {
        match &self.needs {
            Needs::Sender(party) => party.enter,
            Needs::Receiver { party, waits } => match waits {
                true => party.enter,
                false => 0,
            },
            Needs::Members {
                kind, local, all, ..
            } => {
                let needed = needed(*kind, *local, all.len());
                needed.map(|other| all[other].enter).max().unwrap_or(0)
            }
        }
    }
}

/// Whether members are waited for one by one, as they come.
fn is_one_by_one(class: &str) -> bool {
    ["n_to_one", "scan"].contains(&class)
}

fn operation(kind: Kind, posts: bool) -> (u16, u32) {
    match (kind, posts) {
        (Kind::Barrier, false) => (MPI_Barrier, 40),
        (Kind::Exchange, false) => (MPI_Allreduce, 42),
        (Kind::Broadcast(_), false) => (MPI_Bcast, 44),
        (Kind::Reduce(_), false) => (MPI_Reduce, 46),
        (Kind::Scan, false) => (MPI_Scan, 48),
        (Kind::Held(_), _) => (MPI_Reduce, 60),
        (Kind::Barrier, true) => (MPI_Ibarrier, 50),
        (Kind::Exchange, true) => (MPI_Iallreduce, 52),
        (Kind::Broadcast(_), true) => (MPI_Ibcast, 54),
        (Kind::Reduce(_), true) => (MPI_Ireduce, 56),
        (Kind::Scan, true) => (MPI_Iscan, 58),
    }
}
