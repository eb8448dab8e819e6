//! The cause phase: rounds over slabs of global time. In each, pass one turns slow
//! instances into questions, pass two answers those of others, and what came back
//! is named.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use laggard_patterns::{Interval, two_sided};

use super::channel::{Channel, End};
use super::exchange::Asked;
use super::finding::Instance;
use super::group::{Groups, Outcome, Owned, losses, owner};
use super::rank::{Rank, Waiter};
use super::table::NONE;
use super::wire::{
    Answering, Asking, Declaration, Detail, Fold, Parcel, Progress, QUESTION_BARE, Question, Reply,
    Telling, Whole, exchange, recycle,
};
use crate::comm::Job;

/// An agent in the cause phase.
pub struct Agent<'a> {
    job: &'a dyn Job,
    /// Its ranks, ascending.
    pub ranks: Vec<Rank<'a>>,
    positions: FxHashMap<u32, u32>,
    /// Its groups.
    pub groups: Groups,
    /// Collectives that it joins.
    pub owned: Owned,
    /// Channels that other agents declared: (rank's position, side, channel), by agent.
    declared: Vec<Vec<(u32, u32, u32)>>,
    /// How many channels this agent declared to each other.
    declares: Vec<u32>,
    /// Agent of each world rank; this agent may hold none.
    agent_of: &'a [u32],
    /// Host of each world rank.
    hosts: &'a [u32],
    /// Questions sent.
    pub requests: u64,
    asking: Vec<Asking>,
    answering: Vec<Answering>,
    telling: Vec<Telling>,
    /// What each rank has to answer.
    answers: Vec<Answers>,
}

/// What a rank has to answer, and its answers.
#[derive(Default)]
struct Answers {
    asked: Vec<Asked>,
    /// Agent, and reply whose detail is in `details`.
    replies: Vec<(u32, Reply)>,
    details: Vec<Detail>,
}

/// One parcel for each agent.
fn empty<P: Parcel>(job: &dyn Job) -> Vec<P> {
    (0..job.agents()).map(|_| P::default()).collect()
}

impl<'a> Agent<'a> {
    /// An agent before its first round.
    pub fn new(
        job: &'a dyn Job,
        ranks: Vec<Rank<'a>>,
        groups: Groups,
        agent_of: &'a [u32],
        hosts: &'a [u32],
    ) -> Self {
        let positions = ranks
            .iter()
            .enumerate()
            .map(|(at, r)| (r.rank, at as u32))
            .collect();
        let answers = ranks.iter().map(|_| Answers::default()).collect();
        Agent {
            job,
            ranks,
            positions,
            groups,
            owned: Owned::default(),
            declared: vec![Vec::new(); job.agents()],
            declares: vec![0; job.agents()],
            agent_of,
            hosts,
            requests: 0,
            asking: empty(job),
            answering: empty(job),
            telling: empty(job),
            answers,
        }
    }

    /// One round: the calls entered before `until`. The `last` one also settles what
    /// never got an answer.
    pub fn round(&mut self, until: i64, last: bool) {
        self.ranks.par_iter_mut().for_each(|rank| {
            rank.pass_one(until);
            if last {
                rank.finish();
            }
        });
        self.fold_collectives();
        self.ask(last);
        let received = exchange(self.job, &mut self.asking);
        self.take_questions(&received);
        recycle(self.job, &mut self.asking, received);
        self.ranks
            .par_iter_mut()
            .zip(&mut self.answers)
            .for_each(|(rank, answers)| answer(rank, answers));
        self.reply();
        let received = exchange(self.job, &mut self.answering);
        self.take_replies(&received);
        recycle(self.job, &mut self.answering, received);
        let received = exchange(self.job, &mut self.telling);
        self.take_outcomes(&received);
        recycle(self.job, &mut self.telling, received);
        self.ranks
            .par_iter_mut()
            .for_each(|rank| name(rank, last, self.hosts));
    }

    /// Adds this slab's entries and waits of the own members to their groups.
    fn fold_collectives(&mut self) {
        let mut ready = Vec::new();
        for position in 0..self.ranks.len() {
            let entries = std::mem::take(&mut self.ranks[position].entries);
            for entry in &entries {
                let rank = &self.ranks[position];
                let row = rank.threads[entry.thread as usize].rows[entry.signature as usize];
                self.groups.enter(entry, rank, &row);
            }
            let rank = &mut self.ranks[position];
            rank.entries = entries;
            rank.entries.clear();
        }
        for position in 0..self.ranks.len() {
            let mut waiters = std::mem::take(&mut self.ranks[position].waiters);
            for waiter in waiters.drain(..) {
                if let Some(outcome) = self.groups.wait(position as u32, waiter) {
                    ready.push((position as u32, waiter, outcome));
                }
            }
            self.ranks[position].waiters = waiters;
        }
        for (rank, waiter, outcome) in ready {
            self.charge(rank, &waiter, &outcome);
        }
    }

    /// Fills the parcels of the first leg.
    fn ask(&mut self, last: bool) {
        let asking = &mut self.asking;
        let count = &mut self.declares;
        for rank in &mut self.ranks {
            let world_rank = rank.rank;
            let mut declares = |asking: &mut [Asking], channel: &mut Channel, side: u32| {
                let agent = channel.agent as usize;
                if channel.declared == NONE {
                    channel.declared = count[agent];
                    count[agent] += 1;
                    let (group, peer, tag) = channel.key;
                    asking[agent].declarations.push(Declaration {
                        group,
                        rank: peer as u32,
                        peer: world_rank as i32,
                        tag,
                        side,
                    });
                }
                (agent, channel.declared)
            };
            let mut questions = std::mem::take(&mut rank.questions);
            self.requests += questions.len() as u64;
            for (channel, side, mut question) in questions.drain(..) {
                let channels = match side {
                    0 => &mut rank.receives,
                    _ => &mut rank.sends,
                };
                let channel = &mut channels.list[channel as usize];
                let (agent, declared) = declares(asking, channel, side);
                question.channel = declared;
                asking[agent].questions.push(question);
            }
            rank.questions = questions;
            rank.progress(last, |channel, side, n| {
                let (agent, declared) = declares(asking, channel, side);
                asking[agent].progress.push(Progress {
                    channel: declared,
                    last: u32::from(last),
                    n,
                });
            });
        }
        let agents = self.job.agents();
        self.groups.take_folds(last, |fold, members| {
            let to = &mut asking[owner(fold.group, fold.n, agents)];
            to.folds.push(*fold);
            to.members.extend_from_slice(members);
        });
    }

    fn take_questions(&mut self, received: &[Asking]) {
        for (agent, parcel) in received.iter().enumerate() {
            for declaration in &parcel.declarations {
                let found = self.find_channel(declaration);
                self.declared[agent].push(found);
            }
            let declared = &self.declared[agent];
            for &question in &parcel.questions {
                let (rank, side, channel) = declared[question.channel as usize];
                if rank != NONE {
                    self.answers[rank as usize].asked.push(Asked {
                        agent: agent as u32,
                        channel,
                        side,
                        question,
                    });
                }
            }
            for entry in &parcel.progress {
                let (rank, side, channel) = declared[entry.channel as usize];
                if rank != NONE {
                    self.ranks[rank as usize].note_progress(channel, side, entry);
                }
            }
            let mut members = parcel.members.iter().copied();
            for fold in &parcel.folds {
                let own = members.by_ref().take(fold.members as usize);
                self.owned.add(agent as u32, *fold, own);
            }
        }
    }

    fn find_channel(&mut self, declaration: &Declaration) -> (u32, u32, u32) {
        let Some(&position) = self.positions.get(&declaration.rank) else {
            return (NONE, 0, 0);
        };
        let key = (declaration.group, declaration.peer, declaration.tag);
        let channel = self.ranks[position as usize].channel(key, declaration.side);
        (position, declaration.side, channel)
    }

    /// Fills the parcels of the second leg.
    fn reply(&mut self) {
        for answers in &mut self.answers {
            for (agent, mut reply) in answers.replies.drain(..) {
                let to = &mut self.answering[agent as usize];
                if reply.detail != 0 {
                    to.details.push(answers.details[reply.detail as usize - 1]);
                    reply.detail = to.details.len() as u32;
                }
                to.replies.push(reply);
            }
            answers.details.clear();
        }
        for joined in std::mem::take(&mut self.owned.complete) {
            // The late member's agent, or anyone who can pass it on.
            let late = late_rank(&joined.fold);
            let agent = self.agent_of.get(late as usize).copied().unwrap_or(NONE);
            let agent = if agent == NONE {
                joined.wanters[0]
            } else {
                agent
            };
            let to = &mut self.answering[agent as usize];
            to.wholes.push(joined.whole());
            to.members.extend_from_slice(&joined.members);
            to.wanters.extend_from_slice(&joined.wanters);
        }
    }

    /// Takes the answers in, and fills the parcels of the third leg.
    fn take_replies(&mut self, received: &[Answering]) {
        for parcel in received {
            for reply in &parcel.replies {
                let detail = (reply.detail as usize).checked_sub(1);
                let detail = detail.map(|at| &parcel.details[at]);
                self.ranks[reply.rank as usize].calls.reply(reply, detail);
            }
            let (mut members, mut wanters) = (&parcel.members[..], &parcel.wanters[..]);
            for whole in &parcel.wholes {
                let own;
                (own, members) = members.split_at(whole.members as usize);
                let agents;
                (agents, wanters) = wanters.split_at(whole.wanters as usize);
                let detail = self.detail_of(&whole.fold);
                for &agent in agents {
                    let to = &mut self.telling[agent as usize];
                    to.details.extend(detail);
                    to.wholes.push(Whole {
                        detail: detail.map_or(0, |_| to.details.len() as u32),
                        ..*whole
                    });
                    to.members.extend_from_slice(own);
                }
            }
        }
    }

    /// What the late member of a collective did since the first one entered.
    fn detail_of(&self, fold: &Fold) -> Option<Detail> {
        let late = late_rank(fold);
        let rank = &self.ranks[*self.positions.get(&late)? as usize];
        let (thread, event) = if late == fold.last_rank {
            (fold.last_thread, fold.last_event)
        } else {
            (fold.root_thread, fold.root_event)
        };
        rank.detail_at(thread, event, fold.first_enter)
    }

    /// Charges the own members that waited for these collectives.
    fn take_outcomes(&mut self, received: &[Telling]) {
        let mut ready = Vec::new();
        for parcel in received {
            let mut members = &parcel.members[..];
            for whole in &parcel.wholes {
                let own;
                (own, members) = members.split_at(whole.members as usize);
                let detail = (whole.detail as usize).checked_sub(1);
                let outcome = Outcome {
                    fold: whole.fold,
                    members: own.to_vec(),
                    detail: detail.map(|at| parcel.details[at]),
                };
                let outcome = Arc::new(outcome);
                self.groups.outcome(&outcome, |rank, waiter| {
                    ready.push((rank, waiter, outcome.clone()));
                });
            }
        }
        for (rank, waiter, outcome) in ready {
            self.charge(rank, &waiter, &outcome);
        }
    }

    /// Charges a member with what it lost in a collective.
    fn charge(&mut self, rank: u32, waiter: &Waiter, outcome: &Outcome) {
        let hosts = self.hosts;
        let rank = &mut self.ranks[rank as usize];
        let (number, local) = (
            rank.rank,
            rank.local_ranks.get(&waiter.group).copied().unwrap_or(0),
        );
        let thread = &mut rank.threads[waiter.thread as usize];
        let row = thread.rows[waiter.collective as usize];
        let findings = &mut thread.findings;
        losses(waiter, outcome, number, local, &row, |loss| {
            let late = loss.late.as_ref();
            findings.add(
                loss.pattern,
                waiter.signature,
                &Instance {
                    severity: loss.severity,
                    rank: number,
                    enter: waiter.enter,
                    leave: waiter.leave,
                    late,
                    inter_host: late.is_some_and(|late| differ(hosts, number, late.rank)),
                },
            );
        });
    }
}

fn differ(hosts: &[u32], a: u32, b: u32) -> bool {
    hosts.get(a as usize) != hosts.get(b as usize)
}

/// Who the members of a collective waited for.
fn late_rank(fold: &Fold) -> u32 {
    if fold.root_is_late != 0 && fold.root_enter != i64::MIN && fold.root_rank >= 0 {
        fold.root_rank as u32
    } else {
        fold.last_rank
    }
}

/// Pass two for one rank: answers what was asked now, and what was asked before and
/// happened now.
fn answer(rank: &mut Rank, answers: &mut Answers) {
    let waiting = std::mem::take(&mut rank.waiting);
    for asked in waiting.into_iter().chain(answers.asked.drain(..)) {
        match rank.end(asked.channel, asked.side, asked.question.n) {
            Some(end) => {
                let (mut reply, detail) = reply_to(rank, asked.side, &asked.question, &end);
                if let Some(detail) = detail {
                    answers.details.push(detail);
                    reply.detail = answers.details.len() as u32;
                }
                answers.replies.push((asked.agent, reply));
            }
            None => rank.waiting.push(asked),
        }
    }
    rank.release_past();
}

fn reply_to(rank: &Rank, side: u32, question: &Question, end: &End) -> (Reply, Option<Detail>) {
    let interval = Interval::new(question.enter, question.leave);
    let severity = match side {
        0 => two_sided::late_sender(interval, end.time),
        _ => two_sided::late_receiver(interval, end.time),
    };
    let detail = (severity > 0).then(|| {
        let bare = question.flags & QUESTION_BARE != 0;
        let since = if bare { end.time } else { question.enter };
        rank.detail_at(end.thread, end.event, since)
            .unwrap_or_else(|| rank.detail_of_signature(end.thread, end.signature))
    });
    let reply = Reply {
        rank: question.rank,
        side,
        token: question.token,
        time: end.time,
        detail: 0,
        reserved: 0,
    };
    (reply, detail)
}

fn name(rank: &mut Rank, last: bool, hosts: &[u32]) {
    let number = rank.rank;
    let threads = &mut rank.threads;
    rank.calls.name(last, |named| {
        let at = named.at;
        threads[at.thread as usize].findings.add(
            named.pattern,
            at.signature,
            &Instance {
                severity: named.severity,
                rank: number,
                enter: at.enter,
                leave: at.leave,
                late: Some(&named.late),
                inter_host: differ(hosts, number, named.late.rank),
            },
        );
    });
}
