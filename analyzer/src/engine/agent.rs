//! The cause phase: rounds over slabs of global time. In each, pass one turns slow
//! instances into questions, pass two answers those of others, and what came back
//! is named.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use laggard_patterns::{Interval, two_sided};

use super::channel::End;
use super::exchange::Asked;
use super::finding::Instance;
use super::group::{Groups, Outcome, Owned, Waited, losses, owner};
use super::rank::Rank;
use super::table::NONE;
use super::wire::{
    Declaration, Detail, Fold, Member, Parcel, Progress, QUESTION_BARE, Question, Reply, Unpack,
    Whole,
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
    /// Host of each world rank.
    hosts: &'a [u32],
    /// Questions sent.
    pub requests: u64,
}

/// What a rank has to answer.
#[derive(Default)]
struct Answers {
    asked: Vec<Asked>,
    replies: Vec<(u32, Reply, Option<Detail>)>,
}

impl<'a> Agent<'a> {
    /// An agent before its first round.
    pub fn new(job: &'a dyn Job, ranks: Vec<Rank<'a>>, groups: Groups, hosts: &'a [u32]) -> Self {
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
            hosts,
            requests: 0,
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
        let parcels = self.pack_questions(last);
        let received = self.job.exchange(parcels);
        let mut answers = self.unpack_questions(&received);
        self.ranks
            .par_iter_mut()
            .zip(&mut answers)
            .for_each(|(rank, answers)| answer(rank, answers));
        let parcels = self.pack_answers(answers);
        let received = self.job.exchange(parcels);
        let parcels = self.unpack_answers(&received);
        let received = self.job.exchange(parcels);
        self.take_outcomes(&received);
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
                self.groups.wait(position as u32, waiter, |waited| {
                    ready.push((waited.rank, waited.waiter, waited.outcome.clone()));
                });
            }
            self.ranks[position].waiters = waiters;
        }
        for (rank, waiter, outcome) in ready {
            self.charge(Waited {
                rank,
                waiter,
                outcome: &outcome,
            });
        }
    }

    fn pack_questions(&mut self, last: bool) -> Vec<Vec<u8>> {
        let agents = self.job.agents();
        let mut declarations: Vec<Vec<Declaration>> = vec![Vec::new(); agents];
        let mut questions: Vec<Vec<Question>> = vec![Vec::new(); agents];
        let mut progress: Vec<Vec<Progress>> = vec![Vec::new(); agents];
        for rank in &mut self.ranks {
            let world_rank = rank.rank;
            let mut declares = |channel: &mut super::channel::Channel, side: u32| {
                let agent = channel.agent as usize;
                if channel.declared == NONE {
                    channel.declared = self.declares[agent];
                    self.declares[agent] += 1;
                    let (group, peer, tag) = channel.key;
                    declarations[agent].push(Declaration {
                        group,
                        rank: peer as u32,
                        peer: world_rank as i32,
                        tag,
                        side,
                    });
                }
                (agent, channel.declared)
            };
            let asked = std::mem::take(&mut rank.questions);
            for (channel, side, mut question) in asked {
                let channels = if side == 0 {
                    &mut rank.receives
                } else {
                    &mut rank.sends
                };
                let (agent, declared) = declares(&mut channels.list[channel as usize], side);
                question.channel = declared;
                questions[agent].push(question);
                self.requests += 1;
            }
            rank.progress(last, |channel, side, n| {
                let (agent, declared) = declares(channel, side);
                progress[agent].push(Progress {
                    channel: declared,
                    last: u32::from(last),
                    n,
                });
            });
        }
        let mut folds: Vec<(Vec<Fold>, Vec<Member>)> = vec![Default::default(); agents];
        self.groups.take_folds(last, |fold, members| {
            let to = &mut folds[owner(fold.group, fold.n, agents)];
            to.0.push(*fold);
            to.1.extend_from_slice(members);
        });
        (0..agents)
            .map(|agent| {
                let mut parcel = Parcel::default();
                parcel.section(&declarations[agent]);
                parcel.section(&questions[agent]);
                parcel.section(&progress[agent]);
                parcel.section(&folds[agent].0);
                parcel.section(&folds[agent].1);
                parcel.finish()
            })
            .collect()
    }

    fn unpack_questions(&mut self, received: &[Vec<u8>]) -> Vec<Answers> {
        let mut answers: Vec<Answers> = self.ranks.iter().map(|_| Answers::default()).collect();
        let mut progress = Vec::new();
        for (agent, bytes) in received.iter().enumerate() {
            let mut sections = Unpack::new(bytes);
            for declaration in sections.section::<Declaration>() {
                let found = self.find_channel(&declaration);
                self.declared[agent].push(found);
            }
            for question in sections.section::<Question>() {
                let (rank, side, channel) = self.declared[agent][question.channel as usize];
                if rank != NONE {
                    answers[rank as usize].asked.push(Asked {
                        agent: agent as u32,
                        channel,
                        side,
                        question,
                    });
                }
            }
            for entry in sections.section::<Progress>() {
                progress.push((self.declared[agent][entry.channel as usize], entry));
            }
            let folds: Vec<Fold> = sections.section().collect();
            let mut members = sections.section::<Member>();
            for fold in folds {
                let own = members.by_ref().take(fold.members as usize);
                self.owned.add(agent as u32, fold, own);
            }
        }
        // Questions of this round come before the progress that was said with them.
        for ((rank, side, channel), entry) in progress {
            if rank != NONE {
                self.ranks[rank as usize].note_progress(channel, side, &entry);
            }
        }
        answers
    }

    fn find_channel(&mut self, declaration: &Declaration) -> (u32, u32, u32) {
        let Some(&position) = self.positions.get(&declaration.rank) else {
            return (NONE, 0, 0);
        };
        let key = (declaration.group, declaration.peer, declaration.tag);
        let channel = self.ranks[position as usize].channel(key, declaration.side);
        (position, declaration.side, channel)
    }

    /// Replies, and complete collectives on their way to the late member's agent.
    fn pack_answers(&mut self, answers: Vec<Answers>) -> Vec<Vec<u8>> {
        let agents = self.job.agents();
        let mut replies: Vec<(Vec<Reply>, Vec<Detail>)> = vec![Default::default(); agents];
        for (agent, mut reply, detail) in answers.into_iter().flat_map(|a| a.replies) {
            let to = &mut replies[agent as usize];
            if let Some(detail) = detail {
                to.1.push(detail);
                reply.detail = to.1.len() as u32;
            }
            to.0.push(reply);
        }
        let mut wholes: Vec<(Vec<Whole>, Vec<Member>, Vec<u32>)> = vec![Default::default(); agents];
        for joined in std::mem::take(&mut self.owned.complete) {
            // The late member's agent, or anyone who can pass it on.
            let late = self.late_rank(&joined.fold);
            let agent = self
                .ranks
                .first()
                .map(|r| r.agent_of(late))
                .filter(|&a| a != NONE);
            let agent = agent.unwrap_or_else(|| joined.wanters[0]);
            let to = &mut wholes[agent as usize];
            to.0.push(joined.whole());
            to.1.extend_from_slice(&joined.members);
            to.2.extend_from_slice(&joined.wanters);
        }
        replies
            .into_iter()
            .zip(wholes)
            .map(|((replies, details), (wholes, members, wanters))| {
                let mut parcel = Parcel::default();
                parcel.section(&replies);
                parcel.section(&details);
                parcel.section(&wholes);
                parcel.section(&members);
                parcel.section(&wanters);
                parcel.finish()
            })
            .collect()
    }

    /// Who the members of a collective waited for.
    fn late_rank(&self, fold: &Fold) -> u32 {
        if fold.root_is_late != 0 && fold.root_enter != i64::MIN && fold.root_rank >= 0 {
            fold.root_rank as u32
        } else {
            fold.last_rank
        }
    }

    fn unpack_answers(&mut self, received: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let agents = self.job.agents();
        let mut outcomes: Vec<(Vec<Whole>, Vec<Member>, Vec<Detail>)> =
            vec![Default::default(); agents];
        for bytes in received {
            let mut sections = Unpack::new(bytes);
            let replies: Vec<Reply> = sections.section().collect();
            let details: Vec<Detail> = sections.section().collect();
            for reply in &replies {
                let detail = (reply.detail as usize)
                    .checked_sub(1)
                    .map(|at| &details[at]);
                self.ranks[reply.rank as usize].calls.reply(reply, detail);
            }
            let wholes: Vec<Whole> = sections.section().collect();
            let mut members = sections.section::<Member>();
            let mut wanters = sections.section::<u32>();
            for whole in wholes {
                let members: Vec<Member> = members.by_ref().take(whole.members as usize).collect();
                let detail = self.detail_of(&whole.fold);
                for agent in wanters.by_ref().take(whole.wanters as usize) {
                    let to = &mut outcomes[agent as usize];
                    if let Some(detail) = detail {
                        to.2.push(detail);
                    }
                    let detail = if detail.is_some() {
                        to.2.len() as u32
                    } else {
                        0
                    };
                    to.0.push(Whole {
                        wanters: 0,
                        detail,
                        ..whole
                    });
                    to.1.extend_from_slice(&members);
                }
            }
        }
        outcomes
            .into_iter()
            .map(|(wholes, members, details)| {
                let mut parcel = Parcel::default();
                parcel.section(&wholes);
                parcel.section(&members);
                parcel.section(&details);
                parcel.finish()
            })
            .collect()
    }

    /// What the late member of a collective did since the first one entered.
    fn detail_of(&self, fold: &Fold) -> Option<Detail> {
        let late = self.late_rank(fold);
        let rank = &self.ranks[*self.positions.get(&late)? as usize];
        let (thread, event) = if late == fold.last_rank {
            (fold.last_thread, fold.last_event)
        } else {
            (fold.root_thread, fold.root_event)
        };
        rank.detail_at(thread, event, fold.first_enter)
    }

    fn take_outcomes(&mut self, received: &[Vec<u8>]) {
        let mut ready = Vec::new();
        for bytes in received {
            let mut sections = Unpack::new(bytes);
            let wholes: Vec<Whole> = sections.section().collect();
            let mut members = sections.section::<Member>();
            let details: Vec<Detail> = sections.section::<Detail>().collect::<Vec<_>>();
            for whole in wholes {
                let outcome = Outcome {
                    fold: whole.fold,
                    members: members.by_ref().take(whole.members as usize).collect(),
                    detail: (whole.detail as usize).checked_sub(1).map(|at| details[at]),
                };
                self.groups.outcome(outcome, |waited| {
                    ready.push((waited.rank, waited.waiter, waited.outcome.clone()));
                });
            }
        }
        for (rank, waiter, outcome) in ready {
            self.charge(Waited {
                rank,
                waiter,
                outcome: &outcome,
            });
        }
    }

    /// Charges a member with what it lost in a collective.
    fn charge(&mut self, waited: Waited) {
        let Waited {
            rank,
            waiter,
            outcome,
        } = waited;
        let hosts = self.hosts;
        let rank = &mut self.ranks[rank as usize];
        let (number, local) = (
            rank.rank,
            rank.local_ranks.get(&waiter.group).copied().unwrap_or(0),
        );
        let thread = &mut rank.threads[waiter.thread as usize];
        let row = thread.rows[waiter.collective as usize];
        let findings = &mut thread.findings;
        losses(&waiter, outcome, number, local, &row, |loss| {
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

/// Pass two for one rank: answers what was asked now, and what was asked before and
/// happened now.
fn answer(rank: &mut Rank, answers: &mut Answers) {
    let mut asked = std::mem::take(&mut answers.asked);
    asked.extend(std::mem::take(&mut rank.waiting));
    for Asked {
        agent,
        channel,
        side,
        question,
    } in asked
    {
        match rank.end(channel, side, question.n) {
            Some(end) => {
                let (reply, detail) = reply_to(rank, side, &question, &end);
                answers.replies.push((agent, reply, detail));
            }
            None => rank.waiting.push(Asked {
                agent,
                channel,
                side,
                question,
            }),
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
        overtook: u32::from(side == 0 && end.ordinal > question.received),
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
