//! The cause phase: rounds over slabs of global time. In each, pass one turns slow instances into
//! questions, pass two answers the questions of other agents, and the answers name patterns.

use laggard_comm::{Filter, Job};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::clock::causality::Violations;
use crate::collectives::between::Between;
use crate::collectives::group::{Groups, Owned, owner};
use crate::collectives::late::{Whole, arrange};
use crate::collectives::losing::losses;
use crate::messages::channel::Channel;
use crate::messages::channel::POSTED;
use crate::messages::charges::Losses;
use crate::messages::ends::{Asked, Messages};
use crate::messages::progress::Progress;
use crate::messages::questions::{Asker, Times};
use crate::replay::rank::Rank;
use crate::replay::searches::Watching;
use crate::waits::charging::Hosts;
use crate::waits::links::Links;
use crate::wire::parcels;
use crate::wire::parcels::{
    Answering, Asking, Declaration, Describing, Detail, Inquiry, Need, Parcel, Party, Question,
    Requesting, Side, Told, exchange, recycle,
};

/// An agent in the cause phase.
pub struct Agent<'a> {
    job: &'a dyn Job,
    /// Its ranks, ascending.
    pub ranks: Vec<Rank<'a>>,
    positions: FxHashMap<u32, u32>,
    pub groups: Groups,
    /// Collectives that this agent joins.
    pub owned: Owned,
    /// Channels that other agents declared: (rank's position, side, channel), by agent.
    declared: Vec<Vec<(u32, Side, u32)>>,
    /// Channels that this agent declared, by agent: (rank's position, side, channel).
    declares: Vec<Vec<(u32, Side, u32)>>,
    /// Agent of each world rank; this agent may hold none.
    agent_of: &'a [u32],
    hosts: Hosts<'a>,
    asking: Vec<Asking>,
    answering: Vec<Answering>,
    requesting: Vec<Requesting>,
    /// Requests to each agent: position of the asking rank, and number of the late party in its
    /// calls.
    requested: Vec<Vec<(u32, u32)>>,
    describing: Vec<Describing>,
    watching: Watching,
    progress: Progress,
    /// The waits with their late parties, if root causes are searched.
    pub links: Option<Links>,
}

/// What an agent knows between two rounds.
pub struct PutAway {
    /// Its ranks.
    pub ranks: Vec<Rank<'static>>,
    /// Their groups.
    pub groups: Groups,
    /// What they have to do with others.
    pub shared: Shared,
}

/// What an agent knows of messages and collectives with others.
pub struct Shared {
    owned: Owned,
    declared: Vec<Vec<(u32, Side, u32)>>,
    declares: Vec<Vec<(u32, Side, u32)>>,
    watching: Watching,
    progress: Progress,
}

/// Requests that one thread answers at a time, at least.
const CHUNK: usize = 256;
/// Ranks whose waits are charged before they are put away: those of all ranks would be much of the memory.
const TOGETHER: usize = 1024;

fn empty<P: Parcel>(job: &dyn Job) -> Vec<P> {
    (0..job.agents()).map(|_| P::default()).collect()
}

impl<'a> Agent<'a> {
    /// An agent before its first round. Collective.
    pub fn new(
        job: &'a dyn Job,
        ranks: Vec<Rank<'a>>,
        groups: Groups,
        agent_of: &'a [u32],
        hosts: Hosts<'a>,
    ) -> Self {
        let positions = ranks
            .iter()
            .enumerate()
            .map(|(at, r)| (r.recorded.rank, at as u32))
            .collect();
        let watching = Watching::new(job, &ranks);
        Agent {
            job,
            ranks,
            positions,
            groups,
            owned: Owned::default(),
            declared: vec![Vec::new(); job.agents()],
            declares: vec![Vec::new(); job.agents()],
            agent_of,
            hosts,
            asking: empty(job),
            answering: empty(job),
            requesting: empty(job),
            requested: vec![Vec::new(); job.agents()],
            describing: empty(job),
            watching,
            progress: Progress::default(),
            links: None,
        }
    }

    /// What it knows, for [`take_up`](Self::take_up) once the trace is opened again.
    pub fn put_away(self) -> PutAway {
        PutAway {
            ranks: self.ranks.into_iter().map(Rank::put_away).collect(),
            groups: self.groups,
            shared: Shared {
                owned: self.owned,
                declared: self.declared,
                declares: self.declares,
                watching: self.watching,
                progress: self.progress,
            },
        }
    }

    /// Goes on with what was known of the same locations; ranks and groups do so already.
    pub fn take_up(&mut self, known: Shared) {
        self.owned = known.owned;
        self.declared = known.declared;
        self.declares = known.declares;
        let watching = std::mem::take(&mut self.watching);
        self.watching = known.watching.onto(watching);
        self.progress = known.progress;
    }

    /// Violations of causality of its ranks.
    pub fn violations(&self) -> Violations {
        let mut all = Violations::default();
        for rank in &self.ranks {
            all.merge(rank.messages.asker.calls.violations);
        }
        all
    }

    /// Computation between the run's meetings.
    pub fn between(&self) -> Between {
        let mut all = self.owned.between.clone();
        all.merge(self.groups.between.clone());
        all
    }

    /// By group: number of instances that a rank left before all had entered.
    pub fn apart(&self) -> FxHashMap<u64, u64> {
        let mut all = self.owned.apart.clone();
        for (group, count) in &self.groups.apart {
            *all.entry(*group).or_default() += count;
        }
        all
    }

    /// One round: the calls entered before `until`. The `last` one also settles unanswered
    /// questions.
    pub fn round(&mut self, until: i64, last: bool) {
        self.read(until, last);
        self.ask_and_name(until, last);
    }

    /// The first half of a round: decodes and counts its calls. The waits of the round before are put away
    /// meanwhile.
    pub fn read(&mut self, until: i64, last: bool) {
        let alone = self.ranks.len() < rayon::current_num_threads();
        let (ranks, links) = (&mut self.ranks, &mut self.links);
        let read = || {
            ranks.par_iter_mut().for_each(|rank| {
                rank.pass_one(until, alone);
                if last {
                    rank.finish();
                }
            });
        };
        rayon::join(|| links.iter_mut().for_each(Links::put_over_away), read);
    }

    /// The second half of a round: questions, answers and names for the calls entered before
    /// `until`.
    pub fn ask_and_name(&mut self, until: i64, last: bool) {
        self.connect();
        self.look_up();
        self.fold_collectives();
        self.ask(last);
        if self.job.agents() > 1 || last {
            self.exchange(until);
        } else {
            self.look_at_memory(until);
            self.settle_needs(until);
        }
        self.watching
            .charge(&mut self.ranks, &self.positions, self.hosts);
        self.groups.trim();
        let (groups, hosts) = (&self.groups, self.hosts);
        let are_many = self.ranks.len() > TOGETHER;
        for ranks in self.ranks.chunks_mut(TOGETHER) {
            ranks.par_iter_mut().for_each(|rank| {
                rank.messages.release_past();
                charge_collectives(rank, groups, hosts);
                let charged = &mut rank.messages.asker.charged;
                let over = if last { i64::MAX } else { until };
                let by = (hosts, groups.shares, over);
                rank.among.charge(&rank.recorded, charged, by);
                if last {
                    rank.charge_looks(hosts);
                }
                let Messages {
                    sends,
                    receives,
                    asker,
                    ..
                } = &mut rank.messages;
                asker.name((sends, receives), last, hosts);
            });
            let Some(links) = &mut self.links else {
                continue;
            };
            let charged = ranks
                .iter_mut()
                .flat_map(|rank| &mut rank.messages.asker.charged);
            for charged in charged {
                let trail = charged.trail.iter_mut();
                trail.for_each(|trail| trail.drain(are_many, |trail| links.extend(trail)));
                if last {
                    charged.trail = None;
                }
            }
        }
        self.groups.trim();
        if let Some(links) = &mut self.links {
            links.end_round(until);
        }
    }

    /// Exchanges questions, answers and outcomes with other agents.
    fn exchange(&mut self, until: i64) {
        let received = exchange(self.job, &mut self.asking);
        self.take_declarations(&received);
        self.answer_waiting();
        self.answer(&received);
        for (agent, parcel) in received.iter().enumerate() {
            self.watching.hear(agent, &parcel.watches);
        }
        self.look_at_memory(until);
        recycle(self.job, &mut self.asking, received);
        self.pass_wholes_on();
        let received = exchange(self.job, &mut self.answering);
        self.take_times(&received);
        self.take_outcomes(&received);
        for parcel in &received {
            self.watching.answered(parcel);
        }
        recycle(self.job, &mut self.answering, received);
        self.request();
        self.tell_needs();
        let received = exchange(self.job, &mut self.requesting);
        let told = received.iter().flat_map(|parcel| &parcel.told);
        told.for_each(|told| self.groups.detail(told));
        self.describe(&received);
        for (agent, parcel) in received.iter().enumerate() {
            self.hear_needs(agent, &parcel.needs);
        }
        self.answer_needs(until);
        recycle(self.job, &mut self.requesting, received);
        let received = exchange(self.job, &mut self.describing);
        for (requested, parcel) in self.requested.iter_mut().zip(&received) {
            let described = requested.drain(..).zip(&parcel.descriptions);
            for ((rank, late), detail) in described.filter(|(_, detail)| detail.operation != 0) {
                let calls = &mut self.ranks[rank as usize].messages.asker.calls;
                calls.describe(late, detail);
            }
        }
        received
            .iter()
            .for_each(|parcel| self.take_absences(parcel));
        recycle(self.job, &mut self.describing, received);
    }

    /// Settles needs if this agent has all ranks, as the exchange does otherwise.
    fn settle_needs(&mut self, until: i64) {
        self.tell_needs();
        let own = self.job.agent();
        let mut asked = std::mem::take(&mut self.requesting[own]);
        self.hear_needs(own, &asked.needs);
        self.answer_needs(until);
        let mut answers = std::mem::take(&mut self.describing[own]);
        self.take_absences(&answers);
        asked.clear();
        answers.clear();
        (self.requesting[own], self.describing[own]) = (asked, answers);
    }

    /// Sends the needs of the own ranks' calls to the agents of their partners.
    fn tell_needs(&mut self) {
        let (requesting, groups) = (&mut self.requesting, &self.groups);
        let agents = self.job.agents();
        for rank in &mut self.ranks {
            let members = (rank.recorded.rank, agents);
            rank.messages
                .asker
                .need_members(members, |waiter| groups.outcome_of(waiter));
            rank.messages
                .take_needs(|agent, need| requesting[agent as usize].needs.push(need));
        }
    }

    fn hear_needs(&mut self, agent: usize, needs: &[Need]) {
        let (ranks, declared, positions) = (&self.ranks, &self.declared[agent], &self.positions);
        let of_groups = needs.iter().filter(|need| need.peer == NONE);
        for need in of_groups {
            let Some(group) = self.groups.number(need.group) else {
                continue;
            };
            let takes_part = |rank: &&Rank| {
                rank.recorded.rank != need.rank && rank.collectives.begun_on(group) > need.n
            };
            for member in ranks.iter().filter(takes_part) {
                let need = Need {
                    peer: member.recorded.rank,
                    ..*need
                };
                let position = positions.get(&member.recorded.rank).copied();
                self.progress.hear(agent, &need, position);
            }
        }
        let of_messages = needs.iter().filter(|need| need.peer != NONE);
        for need in of_messages {
            let position = || {
                if need.channel == NONE {
                    return positions.get(&need.peer).copied();
                }
                let (position, side, channel) = declared[need.channel as usize];
                let rank = ranks.get(position as usize)?;
                let end = rank.messages.end(channel, side, need.n)?;
                let is_post = rank.messages.tag_of(side, channel) == POSTED;
                let may_be_needed = rank.recorded.may_be_needed(end, is_post);
                may_be_needed.then_some(position)
            };
            self.progress.hear(agent, need, position());
        }
    }

    fn answer_needs(&mut self, until: i64) {
        let describing = &mut self.describing;
        let ranks = &self.ranks;
        let recorded = |position: u32| ranks.get(position as usize).map(|rank| &rank.recorded);
        self.progress
            .look(recorded, until, |agent, absence, times| {
                let to = &mut describing[agent as usize];
                to.absences.push(absence);
                to.times.extend(times);
            });
    }

    fn take_absences(&mut self, answers: &Describing) {
        let mut times = &answers.times[..];
        for absence in &answers.absences {
            let own;
            (own, times) = times.split_at(2 * absence.count as usize);
            let rank = &mut self.ranks[self.positions[&absence.rank] as usize];
            rank.messages.asker.calls.take_absence(absence, own);
        }
    }

    /// Searches this slab for the calls that ended waits for values and locks.
    fn look_at_memory(&mut self, until: i64) {
        let (ranks, answering) = (&mut self.ranks, &mut self.answering);
        let agent = self.job.agent();
        self.watching.look(ranks, until, agent, answering);
    }

    /// Finds the other ends, at this agent, of channels with first questions.
    fn connect(&mut self) {
        for at in 0..self.ranks.len() {
            for (side, channel) in std::mem::take(&mut self.ranks[at].messages.asker.unconnected) {
                self.connect_channel(at, side, channel);
            }
        }
    }

    fn connect_channel(&mut self, at: usize, side: Side, channel: u32) {
        let own = &self.ranks[at];
        let asking = &own.messages.asks_on(side).list[channel as usize];
        if asking.declared != NONE {
            return;
        }
        let (group, peer, tag) = asking.key;
        let own_rank = own.recorded.rank as i32;
        let peer = self.positions[&(peer as u32)];
        let agent_of = own.recorded.agent_of;
        let peers = &mut self.ranks[peer as usize].messages;
        let declared = peers.channel((group, own_rank, tag), side, agent_of);
        let channel = &mut self.ranks[at].messages.asks_on_mut(side).list[channel as usize];
        (channel.peer, channel.declared) = (peer, declared);
    }

    /// Answers the questions between ranks of this agent.
    fn look_up(&mut self) {
        let take = |rank: &mut Rank| std::mem::take(&mut rank.messages.asker);
        let mut askers: Vec<Asker> = self.ranks.iter_mut().map(take).collect();
        let (ranks, hosts) = (&self.ranks[..], self.hosts);
        askers.par_iter_mut().zip(ranks).for_each(|(asker, own)| {
            asker.look_up(&own.messages, ranks);
            // At once: late parties take memory.
            asker.name((&own.messages.sends, &own.messages.receives), false, hosts);
        });
        for (rank, asker) in self.ranks.iter_mut().zip(askers) {
            rank.messages.asker = asker;
        }
    }

    /// Adds this slab's entries of the own members to their groups.
    fn fold_collectives(&mut self) {
        for at in 0..self.ranks.len() {
            let entries = std::mem::take(&mut self.ranks[at].collectives.entries);
            let transfers = std::mem::take(&mut self.ranks[at].collectives.transfers);
            for (group, n, transfer) in transfers {
                self.groups.transfer(group, n, transfer);
            }
            for entry in &entries {
                let rank = &self.ranks[at];
                let row =
                    &rank.recorded.threads[entry.thread as usize].rows[entry.signature as usize];
                let own = (rank.recorded.rank, &rank.collectives);
                self.groups.enter(entry, own, row);
            }
            self.ranks[at].collectives.entries = entries;
            self.ranks[at].collectives.entries.clear();
        }
        let (ranks, positions) = (&self.ranks, &self.positions);
        self.groups.settle(|party, fold| {
            detail_of(party, fold.first_enter, fold.complete, ranks, positions)
        });
    }

    /// Fills the parcels of the first leg, and reports progress between ranks of this agent.
    fn ask(&mut self, last: bool) {
        let own_agent = self.job.agent() as u32;
        let asking = &mut self.asking;
        let declared = &mut self.declares;
        let mut local = Vec::new();
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            let world_rank = rank.recorded.rank;
            let mut declares =
                |asking: &mut [Asking], number: u32, channel: &mut Channel, side: Side| {
                    let agent = channel.agent as usize;
                    if channel.declared == NONE {
                        channel.declared = declared[agent].len() as u32;
                        declared[agent].push((at as u32, side, number));
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
            for (side, number) in std::mem::take(&mut rank.messages.asker.unsent) {
                let channel = &mut rank.messages.asks_on_mut(side).list[number as usize];
                let (agent, declared) = declares(asking, number, channel, side);
                let questions = &mut asking[agent].questions;
                channel.take_unsent(|n, count| {
                    questions.push(Question {
                        channel: declared,
                        count,
                        n,
                    });
                });
            }
            let held = rank.memory.epochs.held();
            let own = &rank.recorded;
            rank.messages
                .progress(own, held, last, |number, channel, side, n| {
                    if channel.agent == own_agent {
                        local.push((at, side, number, n));
                        return;
                    }
                    let (agent, declared) = declares(asking, number, channel, side);
                    asking[agent].progress.push(parcels::Progress {
                        channel: declared,
                        last: u32::from(last),
                        n,
                    });
                });
        }
        for (at, side, number, n) in local {
            self.connect_channel(at, side, number);
            let channel = &self.ranks[at].messages.asks_on(side).list[number as usize];
            let (peer, channel) = (channel.peer as usize, channel.declared);
            let last = u32::from(last);
            self.ranks[peer].messages.note_progress(
                channel,
                side,
                &parcels::Progress { channel, last, n },
            );
        }
        let asking = &mut self.asking;
        self.watching
            .tell(&mut self.ranks, own_agent as usize, self.agent_of, asking);
        let agents = self.job.agents();
        self.groups.take_folds(last, |fold, members| {
            let to = &mut asking[owner(fold.group, fold.n, agents)];
            to.folds.push(*fold);
            to.members.extend_from_slice(members);
        });
    }

    /// Takes the first leg, without the questions.
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
                    self.ranks[rank as usize]
                        .messages
                        .note_progress(channel, side, entry);
                }
            }
            let mut members = parcel.members.iter().copied();
            for fold in &parcel.folds {
                let own = members.by_ref().take(fold.members as usize);
                let tolerance = self.groups.tolerance;
                self.owned.add(agent as u32, *fold, own, tolerance);
            }
        }
    }

    fn find_channel(&mut self, declaration: &Declaration) -> (u32, u32, u32) {
        let Some(&position) = self.positions.get(&declaration.rank) else {
            return (NONE, 0, 0);
        };
        let key = (declaration.group, declaration.peer, declaration.tag);
        let rank = &mut self.ranks[position as usize];
        let agent_of = rank.recorded.agent_of;
        let channel = rank.messages.channel(key, declaration.side, agent_of);
        (position, declaration.side, channel)
    }

    /// Pass two: answers questions of earlier rounds about messages that happened now.
    fn answer_waiting(&mut self) {
        let answering = &mut self.answering;
        for rank in &mut self.ranks {
            let mut waiting = std::mem::take(&mut rank.messages.waiting);
            waiting.retain_mut(|asked| {
                let to = &mut answering[asked.agent as usize];
                to.replies
                    .extend(asked.answer(&rank.messages, &mut to.times));
                asked.question.count > 0
            });
            rank.messages.waiting = waiting;
        }
    }

    /// Pass two: answers this round's questions.
    fn answer(&mut self, received: &[Asking]) {
        for (agent, parcel) in received.iter().enumerate() {
            let to = &mut self.answering[agent];
            for question in &parcel.questions {
                let (rank, side, channel) = self.declared[agent][question.channel as usize];
                if rank == NONE {
                    continue;
                }
                let rank = &mut self.ranks[rank as usize];
                let mut asked = Asked {
                    agent: agent as u32,
                    channel,
                    side,
                    question: *question,
                };
                to.replies
                    .extend(asked.answer(&rank.messages, &mut to.times));
                if asked.question.count > 0 {
                    rank.messages.waiting.push(asked);
                }
            }
        }
    }

    /// Takes the times answered by other agents.
    fn take_times(&mut self, received: &[Answering]) {
        let mut by_rank: Vec<Vec<Times>> = vec![Vec::new(); self.ranks.len()];
        for (declared, parcel) in self.declares.iter().zip(received) {
            let mut times = &parcel.times[..];
            for reply in &parcel.replies {
                let own;
                (own, times) = times.split_at(reply.count as usize);
                let (rank, side, channel) = declared[reply.channel as usize];
                by_rank[rank as usize].push(Times {
                    side,
                    channel,
                    n: reply.n,
                    times: own,
                });
            }
        }
        let ranks = self.ranks.par_iter_mut().zip(by_rank);
        ranks.for_each(|(rank, replies)| {
            for reply in &replies {
                rank.messages.take_times(reply);
            }
        });
    }

    /// Asks for descriptions of the late parties.
    fn request(&mut self) {
        let (requesting, requested) = (&mut self.requesting, &mut self.requested);
        for (at, rank) in (0..).zip(&mut self.ranks) {
            rank.messages.take_candidates(|agent, request, late| {
                requesting[agent as usize].requests.push(request);
                requested[agent as usize].push((at, late));
            });
        }
    }

    fn describe(&mut self, received: &[Requesting]) {
        for (agent, parcel) in received.iter().enumerate() {
            let (declared, ranks) = (&self.declared[agent], &self.ranks);
            let requests = parcel.requests.par_iter().with_min_len(CHUNK);
            let described = requests.map(|request| {
                let (rank, side, channel) = declared[request.channel as usize];
                let rank = &ranks[rank as usize];
                let end = rank.messages.end(channel, side, request.n);
                let by = Some(request.by).filter(|by| *by != 0);
                end.map_or_else(Detail::default, |end| Detail {
                    // The asker knows it.
                    time: 0,
                    ..rank
                        .recorded
                        .late(end, end.time.saturating_sub(request.window), by)
                })
            });
            self.describing[agent].descriptions.par_extend(described);
        }
    }

    /// Sends the complete collectives that this agent joined to the late members' agents.
    fn pass_wholes_on(&mut self) {
        for mut joined in std::mem::take(&mut self.owned.complete) {
            let fold = &mut joined.fold;
            fold.members = joined.members.len() as u32;
            let topology = &self.groups.topology;
            let order = arrange(fold, &mut joined.members, topology);
            let whole = Whole {
                fold,
                members: &joined.members,
                order: &order,
                topology,
                shares: self.groups.shares,
                is_missed: false,
            };
            for late in whole.name_late() {
                let to = &mut self.answering[self.agent_of[late.rank as usize] as usize];
                to.inquiries.push(Inquiry {
                    group: fold.group,
                    n: fold.n,
                    since: fold.first_enter,
                    complete: fold.complete,
                    party: late,
                    wanters: joined.wanters.len() as u32,
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

    /// Takes the outcomes of collectives, and describes the late members of this agent.
    fn take_outcomes(&mut self, received: &[Answering]) {
        for parcel in received {
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
                        self.requesting[agent as usize].told.push(Told {
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

/// Charges a rank with its losses in the collectives with a known outcome.
fn charge_collectives(rank: &mut Rank, groups: &Groups, hosts: Hosts) {
    let (number, local_ranks) = (rank.recorded.rank, &rank.collectives.local_ranks);
    let (threads, asker) = (&rank.recorded.threads, &mut rank.messages.asker);
    let (charged, calls) = (&mut asker.charged, &mut asker.calls);
    asker.waiters.retain(|waiter| {
        let thread = waiter.thread as usize;
        let row = &threads[thread].rows[waiter.collective as usize];
        let charged = &mut charged[thread];
        let is_settled = groups.charged(waiter, |instance| {
            // Who needs nothing of others may leave before they come.
            if let Some(last) = instance.needed(row).filter(|_| waiter.waits) {
                if last.enter > waiter.leave {
                    let by = last.enter - waiter.leave;
                    calls.violations.collectives.note(by);
                }
                if let Some(slacks) = &mut asker.slacks {
                    slacks.note(last.rank as i32, last.enter, waiter.leave);
                }
            }
            let local = || local_ranks.get(&waiter.group).copied().unwrap_or(0);
            let own = (number, local);
            let settled = (&groups.whole(instance, waiter.group), instance.details());
            if waiter.call == NONE {
                let waiting = waiter.waiting(number);
                losses(waiter, settled, own, row, |loss| {
                    charged.charge(hosts, waiting, loss);
                });
                return;
            }
            // The call may have waited longer for another request.
            let mut lost = Losses::default();
            losses(waiter, settled, own, row, |loss| lost.0.push(loss.into()));
            calls.collective_ended(waiter.call, 1, lost);
        });
        !is_settled
    });
}

/// Activity of a late member of a collective, if it is at this agent.
fn detail_of(
    late: &Party,
    since: i64,
    complete: i64,
    ranks: &[Rank],
    positions: &FxHashMap<u32, u32>,
) -> Option<Detail> {
    let rank = &ranks[*positions.get(&late.rank)? as usize];
    rank.recorded.before_entry(late, since, complete)
}
