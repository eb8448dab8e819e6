//! The cause phase: rounds over slabs of global time. In each, pass one turns slow
//! instances into questions, pass two answers those of others, and what came back
//! is named.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use laggard_patterns::{Interval, two_sided};

use super::asking::{Asker, differ};
use super::calls::Losses;
use super::channel::{Channel, End};
use super::exchange::Asked;
use super::finding::Instance;
use super::group::{Groups, Owned, losses, name_late, owner};
use super::rank::Rank;
use super::table::NONE;
use super::wire::{
    Answering, Asking, Declaration, Detail, Fold, Inquiry, Parcel, Party, Progress, Question,
    Reply, SEND, Side, Telling, Told, exchange, recycle,
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
    declared: Vec<Vec<(u32, Side, u32)>>,
    /// How many channels this agent declared to each other.
    declares: Vec<u32>,
    /// Agent of each world rank; this agent may hold none.
    agent_of: &'a [u32],
    /// Host of each world rank.
    hosts: &'a [u32],
    asking: Vec<Asking>,
    answering: Vec<Answering>,
    telling: Vec<Telling>,
}

/// Questions that one thread answers at a time.
const CHUNK: usize = 4096;

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
            asking: empty(job),
            answering: empty(job),
            telling: empty(job),
        }
    }

    /// One round: the calls entered before `until`. The `last` one also settles what
    /// never got an answer.
    pub fn round(&mut self, until: i64, last: bool) {
        let alone = self.ranks.len() < rayon::current_num_threads();
        self.ranks.par_iter_mut().for_each(|rank| {
            rank.pass_one(until, alone);
            if last {
                rank.finish();
            }
        });
        self.connect();
        self.look_up();
        self.fold_collectives();
        self.ask(last);
        if self.job.agents() > 1 || last {
            self.exchange();
        }
        self.groups.trim();
        let (groups, hosts) = (&self.groups, self.hosts);
        self.ranks.par_iter_mut().for_each(|rank| {
            rank.release_past();
            charge_collectives(rank, groups, hosts);
            rank.asker.name(rank.rank, last, hosts);
        });
        self.groups.trim();
    }

    /// Questions, answers and outcomes, between agents.
    fn exchange(&mut self) {
        let received = exchange(self.job, &mut self.asking);
        self.take_declarations(&received);
        self.answer_waiting();
        self.answer(&received);
        recycle(self.job, &mut self.asking, received);
        self.pass_wholes_on();
        let received = exchange(self.job, &mut self.answering);
        self.take_replies(&received);
        recycle(self.job, &mut self.answering, received);
        let received = exchange(self.job, &mut self.telling);
        let told = received.iter().flat_map(|parcel: &Telling| &parcel.told);
        told.for_each(|told| self.groups.detail(told));
        recycle(self.job, &mut self.telling, received);
    }

    /// Finds the other ends, at this agent, of channels that are asked about for the
    /// first time.
    fn connect(&mut self) {
        for at in 0..self.ranks.len() {
            for (side, channel) in std::mem::take(&mut self.ranks[at].unconnected) {
                self.connect_channel(at, side, channel);
            }
        }
    }

    fn connect_channel(&mut self, at: usize, side: Side, channel: u32) {
        let own = &self.ranks[at];
        let (group, peer, tag) = own.asks_on(side).list[channel as usize].key;
        let own_rank = own.rank as i32;
        let peer = self.positions[&(peer as u32)];
        let declared = self.ranks[peer as usize].channel((group, own_rank, tag), side);
        let channel = &mut self.ranks[at].asks_on_mut(side).list[channel as usize];
        (channel.peer, channel.declared) = (peer, declared);
    }

    /// Answers what ranks of this agent ask each other.
    fn look_up(&mut self) {
        let take = |rank: &mut Rank| std::mem::take(&mut rank.asker);
        let mut askers: Vec<Asker> = self.ranks.iter_mut().map(take).collect();
        let ranks = &self.ranks;
        askers
            .par_iter_mut()
            .zip(ranks)
            .for_each(|(asker, own)| asker.look_up(own, ranks));
        for (rank, asker) in self.ranks.iter_mut().zip(askers) {
            rank.asker = asker;
        }
    }

    /// Adds this slab's entries of the own members to their groups.
    fn fold_collectives(&mut self) {
        for at in 0..self.ranks.len() {
            let entries = std::mem::take(&mut self.ranks[at].entries);
            let (ranks, positions) = (&self.ranks, &self.positions);
            let detail = |party: &Party, fold: &Fold| {
                detail_of(party, fold.first_enter, fold.complete, ranks, positions)
            };
            for entry in &entries {
                let rank = &ranks[at];
                let row = &rank.threads[entry.thread as usize].rows[entry.signature as usize];
                self.groups.enter(entry, rank, row, detail);
            }
            self.ranks[at].entries = entries;
            self.ranks[at].entries.clear();
        }
    }

    /// Fills the parcels of the first leg, and tells ranks of this agent the progress of
    /// others.
    fn ask(&mut self, last: bool) {
        let own_agent = self.job.agent() as u32;
        let asking = &mut self.asking;
        let count = &mut self.declares;
        let mut local = Vec::new();
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            let world_rank = rank.rank;
            let mut declares = |asking: &mut [Asking], channel: &mut Channel, side: Side| {
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
            let mut questions = std::mem::take(&mut rank.asker.questions);
            for (side, channel, mut question) in questions.drain(..) {
                let channel = &mut rank.asks_on_mut(side).list[channel as usize];
                let (agent, declared) = declares(asking, channel, side);
                question.channel = declared;
                asking[agent].questions.push(question);
            }
            rank.asker.questions = questions;
            rank.progress(last, |number, channel, side, n| {
                if channel.agent == own_agent {
                    local.push((at, side, number, n));
                    return;
                }
                let (agent, declared) = declares(asking, channel, side);
                asking[agent].progress.push(Progress {
                    channel: declared,
                    last: u32::from(last),
                    n,
                });
            });
        }
        for (at, side, number, n) in local {
            if self.ranks[at].asks_on(side).list[number as usize].declared == NONE {
                self.connect_channel(at, side, number);
            }
            let channel = &self.ranks[at].asks_on(side).list[number as usize];
            let (peer, channel) = (channel.peer as usize, channel.declared);
            let last = u32::from(last);
            self.ranks[peer].note_progress(channel, side, &Progress { channel, last, n });
        }
        let asking = &mut self.asking;
        let agents = self.job.agents();
        self.groups.take_folds(last, |fold, members| {
            let to = &mut asking[owner(fold.group, fold.n, agents)];
            to.folds.push(*fold);
            to.members.extend_from_slice(members);
        });
    }

    /// Takes in what came on the first leg but the questions.
    fn take_declarations(&mut self, received: &[Asking]) {
        for (agent, parcel) in received.iter().enumerate() {
            for declaration in &parcel.declarations {
                let found = self.find_channel(declaration);
                self.declared[agent].push(found);
            }
            let declared = &self.declared[agent];
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

    /// Pass two: answers what was asked in earlier rounds and happened now.
    fn answer_waiting(&mut self) {
        let answering = &mut self.answering;
        for rank in &mut self.ranks {
            for asked in std::mem::take(&mut rank.waiting) {
                match rank.end(asked.channel, asked.side, asked.question.n) {
                    Some(end) => {
                        let to = &mut answering[asked.agent as usize];
                        reply_to(rank, asked.side, &asked.question, end, to);
                    }
                    None => rank.waiting.push(asked),
                }
            }
        }
    }

    /// Pass two: answers what is asked in this round.
    fn answer(&mut self, received: &[Asking]) {
        for (agent, parcel) in received.iter().enumerate() {
            let (declared, ranks) = (&self.declared[agent], &self.ranks);
            let chunks = parcel.questions.par_chunks(CHUNK).map(|questions| {
                let mut answers = Answering::default();
                let mut waiting = Vec::new();
                for question in questions {
                    let (rank, side, channel) = declared[question.channel as usize];
                    if rank == NONE {
                        continue;
                    }
                    let at = &ranks[rank as usize];
                    if let Some(end) = at.end(channel, side, question.n) {
                        reply_to(at, side, question, end, &mut answers);
                        continue;
                    }
                    let asked = Asked {
                        agent: agent as u32,
                        channel,
                        side,
                        question: *question,
                    };
                    waiting.push((rank, asked));
                }
                (answers, waiting)
            });
            for (answers, waiting) in chunks.collect::<Vec<_>>() {
                let to = &mut self.answering[agent];
                let before = to.replies.len() as u32;
                to.late.extend(answers.late.iter().map(|at| before + at));
                to.replies.extend(answers.replies);
                to.details.extend(answers.details);
                for (rank, asked) in waiting {
                    self.ranks[rank as usize].waiting.push(asked);
                }
            }
        }
    }

    /// Sends the complete collectives that this agent joined to the late members' agents.
    fn pass_wholes_on(&mut self) {
        for mut joined in std::mem::take(&mut self.owned.complete) {
            let fold = &mut joined.fold;
            fold.members = joined.members.len() as u32;
            for late in name_late(fold, &mut joined.members, &self.groups.topology) {
                let to = &mut self.answering[self.agent_of[late.rank as usize] as usize];
                to.inquiries.push(Inquiry {
                    group: fold.group,
                    n: fold.n,
                    since: fold.first_enter,
                    complete: fold.complete,
                    party: late,
                    wanters: joined.wanters.len() as u32,
                    reserved: 0,
                });
                to.wanters.extend_from_slice(&joined.wanters);
            }
            for &wanter in &joined.wanters {
                let to = &mut self.answering[wanter as usize];
                to.folds.push(*fold);
                to.members.extend_from_slice(&joined.members);
            }
        }
    }

    /// Takes the answers in, and fills the parcels of the third leg.
    fn take_replies(&mut self, received: &[Answering]) {
        for parcel in received {
            let mut late = parcel.late.iter().zip(&parcel.details).peekable();
            for (at, reply) in parcel.replies.iter().enumerate() {
                let detail = late.next_if(|(position, _)| **position == at as u32);
                let asker = &mut self.ranks[reply.rank as usize].asker;
                asker.reply(reply, detail.map(|(_, detail)| detail));
            }
            let mut members = &parcel.members[..];
            for fold in &parcel.folds {
                let own;
                (own, members) = members.split_at(fold.members as usize);
                self.groups.outcome(fold, own);
            }
            let mut wanters = &parcel.wanters[..];
            for inquiry in &parcel.inquiries {
                let agents;
                (agents, wanters) = wanters.split_at(inquiry.wanters as usize);
                let (ranks, positions) = (&self.ranks, &self.positions);
                let (since, complete) = (inquiry.since, inquiry.complete);
                if let Some(detail) = detail_of(&inquiry.party, since, complete, ranks, positions) {
                    for &agent in agents {
                        self.telling[agent as usize].told.push(Told {
                            group: inquiry.group,
                            n: inquiry.n,
                            detail,
                        });
                    }
                }
            }
        }
    }
}

/// Charges a rank with what it lost in the collectives whose outcome is known.
fn charge_collectives(rank: &mut Rank, groups: &Groups, hosts: &[u32]) {
    let (number, local_ranks) = (rank.rank, &rank.local_ranks);
    let (threads, asker) = (&rank.threads, &mut rank.asker);
    let (findings, calls) = (&mut asker.findings, &mut asker.calls);
    asker.waiters.retain(|waiter| {
        let thread = waiter.thread as usize;
        let row = &threads[thread].rows[waiter.collective as usize];
        let findings = &mut findings[thread];
        let is_settled = groups.charged(waiter, |instance| {
            let local = || local_ranks.get(&waiter.group).copied().unwrap_or(0);
            if waiter.call != NONE {
                // The call may have waited longer for something else that it completed.
                let mut lost = Losses::default();
                losses(waiter, instance, local, row, |pattern, severity, late| {
                    lost.0.push((pattern, severity, late.copied()));
                });
                calls.collective_ended(waiter.call, lost);
                return;
            }
            losses(waiter, instance, local, row, |pattern, severity, late| {
                findings.add(
                    pattern,
                    waiter.signature,
                    &Instance {
                        severity,
                        rank: number,
                        enter: waiter.enter,
                        leave: waiter.leave,
                        late,
                        inter_host: late.is_some_and(|late| differ(hosts, number, late.rank)),
                    },
                );
            });
        });
        !is_settled
    });
}

/// What a late member of a collective did, if it is at this agent.
fn detail_of(
    late: &Party,
    since: i64,
    complete: i64,
    ranks: &[Rank],
    positions: &FxHashMap<u32, u32>,
) -> Option<Detail> {
    let rank = &ranks[*positions.get(&late.rank)? as usize];
    Some(rank.before_entry(late, since, complete))
}

/// Answers a question about this end.
fn reply_to(rank: &Rank, side: Side, question: &Question, end: &End, answers: &mut Answering) {
    let interval = Interval::new(question.enter, question.leave);
    let severity = match side {
        SEND => two_sided::late_sender(interval, end.time),
        _ => two_sided::late_receiver(interval, end.time),
    };
    if severity > 0 {
        let since = match question.bare {
            0 => question.enter,
            _ => end.time,
        };
        answers.late.push(answers.replies.len() as u32);
        answers.details.push(rank.late(end, since));
    }
    answers.replies.push(Reply {
        rank: question.rank,
        token: question.token,
        time: end.time,
    });
}
