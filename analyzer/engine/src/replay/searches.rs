//! The waits for values and locks, and the slow transfers, that an agent knows, its own and
//! others'.
//!
//! In the round in which a wait begins, it is sent to all agents whose ranks may have ended it (see
//! [`Interests`]). Each searches the calls of its PEs, slab by slab, and keeps the best candidate.
//! In the slab in which the wait ends it answers. So the calls of PEs are kept for one slab only,
//! however long a wait lasts.

use laggard_comm::Job;
use laggard_patterns::progress::{self, Stall};
use laggard_patterns::{Interval, PatternId, one_sided};
use laggard_trace::flags;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::memory::passive::progressed;
use crate::memory::watches::{keep_last, sort_writes};
use crate::memory::{competing, lock};
use crate::messages::charges::Losses;
use crate::replay::interests::Interests;
use crate::replay::rank::Rank;
use crate::stream::polling::Episode;
use crate::stream::roles::Memory;
use crate::stream::rows::Row;
use crate::waits::charging::{Hosts, Loss, Lost, Waiting};
use crate::wire::parcels::{Answering, Asking, Detail};
use crate::wire::watched::{Held, Kind, Rival, Watch, Written};

/// A wait of a rank, and the results so far.
#[derive(Debug)]
struct Open {
    /// The agent that sent it.
    agent: u32,
    watch: Watch,
    best: Option<Written>,
    /// Holders of the lock, if it is one.
    held: Vec<Held>,
    /// Competitors, if it is a transfer.
    rivals: Vec<Rival>,
    /// Whether it began in this slab.
    is_new: bool,
    /// Number of targets that the call waited for.
    targets: u32,
    /// The looks in vain, if it is an episode of the own ranks.
    episode: Option<Episode>,
}

impl Open {
    /// Searches the calls of these ranks in this slab, which ends at `until`; `touching` are the
    /// positions of ranks that transferred to or from a rank.
    fn look(&mut self, ranks: &[Rank], touching: &FxHashMap<u32, Vec<u32>>, until: i64) {
        let watch = self.watch;
        let target = u32::try_from(watch.value).ok();
        if watch.expected > 0
            && let Some(positions) = target.and_then(|target| touching.get(&target))
        {
            for &at in positions {
                let Rank {
                    recorded, memory, ..
                } = &ranks[at as usize];
                memory.rivals(recorded, &watch, self.is_new, &mut self.rivals);
            }
            if watch.leave < until {
                competing::join(&mut self.rivals);
            }
        }
        let is_first = std::mem::take(&mut self.is_new);
        if watch.is(Kind::Transfer) {
            return;
        }
        for rank in ranks {
            if !watch.is(Kind::Value) {
                self.held
                    .extend(rank.memory.held(&rank.recorded, &watch, is_first));
            }
            if watch.is_of_window() {
                let is_target = rank.recorded.rank as i32 == watch.value as i64 as i32;
                if is_target && self.best.is_none() {
                    self.best = progressed(&rank.recorded, &watch);
                }
            } else if watch.is(Kind::Value)
                && let Some(written) = rank.memory.written(&rank.recorded, &watch)
            {
                self.improve(written);
            }
        }
    }

    /// The waiting call. A call that waits for several targets has several waits.
    fn waiting(&self) -> Waiting {
        let watch = &self.watch;
        Waiting {
            rank: watch.rank,
            thread: watch.thread,
            since: watch.enter,
            enter: watch.by().unwrap_or(watch.enter),
            leave: watch.leave,
            signature: watch.signature,
        }
    }

    /// Adds the results for another target of the same call: the last target ended the wait.
    fn join(&mut self, other: &mut Open) {
        self.targets += other.targets;
        self.held.append(&mut other.held);
        let key = |held: &Held| {
            let detail = &held.detail;
            (
                held.until,
                held.from,
                detail.rank,
                detail.thread,
                detail.event,
            )
        };
        self.held.sort_unstable_by_key(key);
        self.held.dedup_by_key(|held| key(held));
        let later = |written: &Written| (written.time, std::cmp::Reverse(written.detail.rank));
        self.best = self.best.into_iter().chain(other.best).max_by_key(later);
    }

    /// Losses due to locks, values and targets.
    fn losses(&mut self) -> Losses {
        let watch = &self.watch;
        let interval = Interval::new(watch.enter, watch.leave);
        let of_window = watch.is_of_window();
        let mut losses = Losses::default();
        if self.episode.is_some() {
            // More may be forgotten.
            self.held
                .sort_unstable_by_key(|held| (held.until, held.from, held.detail.rank));
            let more = self.held.len().saturating_sub(lock::KEPT);
            self.held.drain(..more);
        }
        if !self.held.is_empty() {
            let shares = lock::shares(watch.enter, &mut self.held).into_iter();
            let late = self.held.iter().map(|held| held.detail);
            let shares: Vec<(i64, Detail)> = shares.zip(late).collect();
            let parts = shares.iter().map(|(share, _)| *share);
            let known = parts.fold(0, i64::saturating_add);
            // Holders before these are forgotten. Else one of the looks would have got the lock.
            let is_full = self.episode.is_some() && self.held.len() == lock::KEPT;
            let last = self.held.last().filter(|_| is_full);
            let held = last.map_or(0, |last| last.until - watch.enter);
            losses.0.push(Lost {
                left: i64::MAX,
                group: 0,
                looked: None,
                pattern: match of_window {
                    true => PatternId::LockContention,
                    false => PatternId::WaitOnLock,
                },
                severity: known.max(held),
                late: None,
                shares,
                doubt: 0,
            });
        }
        if let Some(best) = &self.best {
            let since = self.held.iter().map(|held| held.until).max();
            let (pattern, Stall { severity, doubt }) = match of_window {
                true => {
                    let stall = progress::passive(interval, since, best.time);
                    (PatternId::WaitForProgress, stall)
                }
                false => {
                    let severity = one_sided::wait_on_value(interval, best.time);
                    (PatternId::WaitOnValue, Stall { severity, doubt: 0 })
                }
            };
            losses.0.push(Lost {
                left: i64::MAX,
                group: 0,
                looked: None,
                pattern,
                severity,
                late: Some(best.detail),
                shares: Vec::new(),
                doubt,
            });
        }
        losses.0.retain(|lost| lost.severity > 0);
        if let Some(episode) = &self.episode {
            losses.0 = Lost::polled(&losses.0, watch.enter, episode);
        }
        losses
    }

    fn improve(&mut self, written: Written) {
        if self.best.is_none_or(|best| written.is_better(&best)) {
            self.best = Some(written);
        }
    }
}

/// The waits that an agent knows of.
#[derive(Debug, Default)]
pub struct Watching {
    told: u64,
    open: Vec<Open>,
    /// Finished waits of the own ranks.
    over: FxHashMap<u64, Open>,
    /// Interests by agent.
    interests: Vec<Interests>,
    /// Whether some PE looks for a value or a lock in vain: what ended such a wait may be in an
    /// earlier slab.
    keeps_writes: bool,
}

impl Watching {
    /// No waits yet. Collective.
    pub fn new(job: &dyn Job, ranks: &[Rank]) -> Watching {
        let threads = ranks.iter().flat_map(|rank| &rank.recorded.threads);
        let mut rows = threads.flat_map(|thread| &thread.rows);
        let is_vain =
            |row: &Row| row.looks && row.memory != Memory::Nothing && row.has(flags::UNSUCCESSFUL);
        let mut looks = [u64::from(rows.any(is_vain))];
        job.reduce_max(&mut looks);
        Watching {
            interests: Interests::gather(job, ranks),
            keeps_writes: looks[0] > 0,
            ..Watching::default()
        }
    }

    /// Goes on with what agents are interested in by now.
    pub fn onto(self, watching: Watching) -> Watching {
        Watching {
            interests: watching.interests,
            keeps_writes: self.keeps_writes || watching.keeps_writes,
            ..self
        }
    }

    /// Sends the waits that began in this slab to the agents that may know something.
    ///
    /// `agent_of` gives the agent of a rank.
    pub fn tell(
        &mut self,
        ranks: &mut [Rank],
        agent: usize,
        agent_of: &[u32],
        asking: &mut [Asking],
    ) {
        for rank in ranks {
            rank.messages.asker.requests += rank.memory.watches.len() as u64;
            for (mut watch, episode) in rank.memory.watches.drain(..) {
                watch.id = self.told;
                self.told += 1;
                let target = usize::try_from(watch.value as i64).ok();
                let target = target.and_then(|target| agent_of.get(target));
                for (other, parcel) in asking.iter_mut().enumerate() {
                    let has_target = target == Some(&(other as u32));
                    if other != agent && self.interests[other].may_know(&watch, has_target) {
                        parcel.watches.push(watch);
                    }
                }
                self.hear(agent, &[watch]);
                if let Some(open) = self.open.last_mut() {
                    open.episode = episode;
                }
            }
        }
    }

    /// Takes the waits sent by an agent.
    pub fn hear(&mut self, agent: usize, watches: &[Watch]) {
        self.open.extend(watches.iter().map(|&watch| Open {
            agent: agent as u32,
            watch,
            best: None,
            held: Vec::new(),
            rivals: Vec::new(),
            is_new: true,
            targets: 1,
            episode: None,
        }));
    }

    /// Searches the writes of this slab, which ends at `until`, and answers the finished waits.
    pub fn look(
        &mut self,
        ranks: &mut [Rank],
        until: i64,
        agent: usize,
        answering: &mut [Answering],
    ) {
        if !self.open.is_empty() {
            ranks.par_iter_mut().for_each(|rank| {
                sort_writes(&mut rank.memory.writes);
                rank.memory.moves.sort();
            });
            let ranks = &*ranks;
            let mut touching: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
            for (at, rank) in ranks.iter().enumerate() {
                for target in rank.memory.moves.targets() {
                    touching.entry(target).or_default().push(at as u32);
                }
            }
            let open = self.open.par_iter_mut();
            open.for_each(|open| open.look(ranks, &touching, until));
        }
        for rank in ranks {
            match rank.memory.keeps_writes || self.keeps_writes {
                true => {
                    sort_writes(&mut rank.memory.writes);
                    keep_last(&mut rank.memory.writes);
                }
                false => rank.memory.writes.clear(),
            }
            match self.keeps_writes {
                true => rank.memory.locks.keep_last(),
                false => rank.memory.locks.given_back.clear(),
            }
            rank.memory.moves.trim(until);
        }
        let open = std::mem::take(&mut self.open).into_iter();
        let (over, open): (Vec<_>, _) = open.partition(|open| open.watch.leave < until);
        self.open = open;
        for open in over {
            if open.agent == agent as u32 {
                self.over.insert(open.watch.id, open);
            } else {
                let answering = &mut answering[open.agent as usize];
                answering.written.extend(open.best);
                answering.held.extend(open.held);
                answering.rivals.extend(open.rivals);
            }
        }
    }

    /// Takes an agent's answers.
    pub fn answered(&mut self, answering: &Answering) {
        for written in &answering.written {
            if let Some(open) = self.over.get_mut(&written.id) {
                open.improve(*written);
            }
        }
        for held in &answering.held {
            if let Some(open) = self.over.get_mut(&held.id) {
                open.held.push(*held);
            }
        }
        for rival in &answering.rivals {
            if let Some(open) = self.over.get_mut(&rival.id) {
                open.rivals.push(*rival);
            }
        }
    }

    /// Charges the finished waits.
    pub fn charge(&mut self, ranks: &mut [Rank], positions: &FxHashMap<u32, u32>, hosts: Hosts) {
        let mut over: Vec<Open> = std::mem::take(&mut self.over).into_values().collect();
        over.sort_unstable_by_key(|open| (open.waiting(), open.watch.id));
        over.dedup_by(|next, first| {
            let is_same = next.watch.is_of_window() && next.waiting() == first.waiting();
            if is_same {
                first.join(next);
            }
            is_same
        });
        for mut open in over {
            let watch = open.watch;
            let rank = &mut ranks[positions[&watch.rank] as usize];
            let asker = &mut rank.messages.asker;
            let charged = &mut asker.charged[watch.thread as usize];
            let waiting = open.waiting();
            let interval = Interval::new(watch.enter, watch.leave);
            let is_known = open.best.is_some() || !open.held.is_empty();
            // An archive may not tell the address.
            if !is_known && !watch.is_of_window() && (watch.address != 0 || watch.is_user()) {
                let episode = open.episode.as_ref();
                let Some(episode) = episode else {
                    charged.charge(hosts, waiting, Loss::unexplained(interval.duration()));
                    continue;
                };
                let looked = [Lost::new(
                    PatternId::Unexplained,
                    episode.found - watch.enter,
                )];
                charged.charge_all(hosts, waiting, &Lost::polled(&looked, watch.enter, episode));
                continue;
            }
            if !is_known && open.episode.is_some() {
                continue;
            }
            let losses = open.losses();
            if let Some(call) = watch.call.checked_sub(1) {
                asker.calls.collective_ended(call, open.targets, losses);
                continue;
            }
            let lost = charged.charge_all(hosts, waiting, &losses.0);
            if watch.expected == 0 {
                continue;
            }
            let rows = &rank.recorded.threads[watch.thread as usize].rows;
            let operation = rows[watch.signature as usize].operation;
            match competing::loss(operation, &watch, lost, &mut open.rivals) {
                Some(loss) => charged.charge(hosts, waiting, loss.as_loss()),
                None if lost == 0 => {
                    let excess = interval.duration() - watch.expected;
                    if excess >= competing::UNEXPLAINED_NS {
                        charged.charge(hosts, waiting, Loss::unexplained(excess));
                    }
                }
                None => {}
            }
        }
    }
}
