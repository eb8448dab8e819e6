//! The rounds of the cause phase from the start of the run to its end. If the clocks contradict
//! causality, they run again with better clocks.

use anyhow::Result;
use laggard_comm::Job;

use crate::basics::intern::Interner;
use crate::clock::causality::Violations;
use crate::collectives::group::Groups;
use crate::input::open::Opened;
use crate::judge::profile::{Profiled, Verdicts};
use crate::phases::Phases;
use crate::replay::agent::{Agent, PutAway};
use crate::replay::preparation;
use crate::replay::slab;
use crate::timeline::repair::{Known, Noted, Timeline};
use crate::waits::charging::Hosts;
use crate::waits::links::Links;
use crate::waits::trail::Trail;

/// Most corrections of clocks. Each may make other members the last ones of a collective, and
/// smaller errors show once a wrong rate is corrected.
const MOST_REPAIRS: usize = 8;
/// Most successive corrections without fewer violations.
const MOST_WORSE: usize = 2;

/// Input of all rounds.
pub struct Rounds<'a> {
    /// The agents.
    pub job: &'a dyn Job,
    /// The traces.
    pub opened: &'a Opened,
    pub profiled: &'a [Profiled],
    /// Verdicts of their locations.
    pub verdicts: &'a [Verdicts],
    /// The groups' numbers.
    pub numbers: &'a Interner<u64>,
    /// Whether every instance is asked about.
    pub all: bool,
    /// Whether regions of the program wait for values.
    pub keeps_writes: bool,
    /// Whether late members of a collective share the blame.
    pub shares: bool,
    /// Whether the ranks note their waits for the search for root causes.
    pub roots: bool,
    /// Whether waits are all that is wanted: neither sums nor what late parties did.
    pub is_bare: bool,
    /// Approximate number of an agent's records in a slab.
    pub records: u64,
}

/// Result of all rounds.
pub struct Settled<'a> {
    /// The agent with its findings.
    pub agent: Agent<'a>,
    /// The clocks that it used.
    pub timeline: Timeline,
    /// Violations of causality with the clocks as measured.
    pub before: Violations,
    /// Violations with the clocks as used.
    pub after: Violations,
}

impl<'a> Rounds<'a> {
    /// An agent before its first round, and the ends of all slabs but the last.
    pub fn begin(
        &self,
        timeline: &Timeline,
        noting: Option<&Violations>,
        groups: Option<Groups>,
    ) -> (Agent<'a>, Vec<i64>) {
        self.begin_with(timeline, noting, groups, None)
    }

    /// The same; an agent that was put away goes on, now that its trace was opened again.
    pub fn go_on(
        &self,
        timeline: &Timeline,
        groups: Groups,
        known: Option<PutAway>,
    ) -> (Agent<'a>, Vec<i64>) {
        self.begin_with(timeline, None, Some(groups), known)
    }

    fn begin_with(
        &self,
        timeline: &Timeline,
        noting: Option<&Violations>,
        groups: Option<Groups>,
        known: Option<PutAway>,
    ) -> (Agent<'a>, Vec<i64>) {
        let known = known.map(|known| ((known.ranks, known.groups), known.shared));
        let (known, shared) = known.unzip();
        let (ranks, known) = known.unzip();
        let opened = self.opened;
        let clocks: Vec<_> = timeline.own(opened).into_iter().map(|own| own.0).collect();
        let end = timeline.end(opened);
        let mut ranks = preparation::ranks(
            opened,
            self.profiled,
            self.verdicts,
            &clocks,
            (self.all, self.roots),
            self.keeps_writes,
            (self.numbers, ranks.unwrap_or_default()),
        );
        for rank in &mut ranks {
            let slacks = noting.map(|known| timeline.slacks(rank.recorded.rank, end, known));
            rank.messages.asker.slacks = slacks.map(Box::new);
            if self.is_bare {
                rank.be_bare();
            }
            if self.roots {
                let threads = &rank.recorded.threads;
                for (charged, thread) in rank.messages.asker.charged.iter_mut().zip(threads) {
                    charged.trail = Some(Trail::default());
                    charged.least = thread.rows.iter().map(|row| row.threshold).collect();
                }
            }
        }
        let groups =
            groups.unwrap_or_else(|| preparation::groups(self.job, &opened.locations, &[]).1);
        let mut groups = match known {
            Some(known) => Groups::onto(known, groups),
            None => groups,
        };
        groups.shares = self.shares;
        if timeline.has_several() {
            // Each of two clocks may have this error.
            let error = i64::try_from(opened.clocks.error_ns());
            groups.tolerance = error.unwrap_or(i64::MAX).saturating_mul(2);
        }
        let borders = slab::borders(self.job, opened, &clocks, end, self.records);
        let mut agent = Agent::new(
            self.job,
            ranks,
            groups,
            &opened.agent_of,
            Hosts(&opened.hosts),
        );
        if let Some(shared) = shared {
            agent.take_up(shared);
        }
        if self.roots {
            let records = slab::part(self.job, opened.locations.len(), self.records);
            let parts = slab::borders(self.job, opened, &clocks, end, records);
            agent.links = Some(Links::new(&parts));
        }
        (agent, borders)
    }

    fn run(
        &self,
        timeline: &Timeline,
        noting: Option<&Violations>,
        groups: Option<Groups>,
        phases: &Phases,
    ) -> (Agent<'a>, Violations) {
        let (mut agent, borders) = self.begin(timeline, noting, groups);
        let progress = phases.bar(borders.len() as u64 + 1);
        for &until in &borders {
            agent.round(until, false);
            progress.inc(1);
        }
        agent.round(i64::MAX, true);
        progress.finish_and_clear();
        let violations = agent.violations().of_all(self.job);
        (agent, violations)
    }

    /// Runs all rounds, until the clocks contradict causality as little as possible. Collective.
    pub fn settle(
        &self,
        mut timeline: Timeline,
        groups: Groups,
        phases: &Phases,
    ) -> Result<Settled<'a>> {
        let run = |timeline: &Timeline, noting: Option<&Violations>| {
            self.run(timeline, noting, None, phases)
        };
        let (mut agent, before) = self.run(&timeline, None, Some(groups), phases);
        let mut after = before;
        if before.all().count > 0 && timeline.is_correctable() {
            // Times between hosts are noted only if needed: it takes time.
            agent.ranks = Vec::new();
            (agent, after) = run(&timeline, Some(&before));
            let (mut best, mut worse) = ((after, timeline.clone()), 0);
            let mut known = Known::default();
            for _ in 0..MOST_REPAIRS {
                if after.all().count == 0 || worse == MOST_WORSE {
                    break;
                }
                let mut noted = Noted::default();
                let slacks = agent
                    .ranks
                    .iter()
                    .filter_map(|r| r.messages.asker.slacks.as_deref());
                slacks.for_each(|slacks| noted.add(slacks));
                agent.ranks = Vec::new();
                timeline = timeline.corrected(self.job, self.opened, noted, &mut known)?;
                (agent, after) = run(&timeline, Some(&before));
                worse += 1;
                if after.is_less_than(&best.0) {
                    (best, worse) = ((after, timeline.clone()), 0);
                }
            }
            if worse > 0 {
                // Measurements have errors beyond their bounds.
                agent.ranks = Vec::new();
                timeline = best.1;
                (agent, after) = run(&timeline, None);
            }
        }
        Ok(Settled {
            agent,
            timeline,
            before,
            after,
        })
    }
}
