//! Cost of the analysis' phases, and the progress bar.

use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use laggard_comm::{self as comm, Filter, Job, Sent};
use laggard_report::{AgentShare, Phase, PhaseShare};
use serde::{Deserialize, Serialize};

use crate::basics::spill::most_room;
use crate::options::AnalyzeOptions;

/// Up to this many agents are listed one by one; of more, those that stand out.
const LISTED: usize = 16;

/// Cost of one phase on this agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cost {
    time_s: f64,
    messages: u64,
    bytes: u64,
    /// Largest resident memory from the start to the end of the phase, bytes.
    peak: u64,
    /// The most room of temporary files from the start to the end of the phase, bytes.
    room: u64,
}

/// Statistics of one agent.
#[derive(Serialize, Deserialize)]
struct Share {
    agent: u32,
    locations: u64,
    requests: u64,
    costs: Vec<Cost>,
}

/// The phases so far.
pub struct Phases<'j> {
    job: &'j dyn Job,
    stats: bool,
    shows: bool,
    done: Vec<(&'static str, Cost)>,
    current: Option<(&'static str, Instant, Sent)>,
}

impl<'j> Phases<'j> {
    /// The state before the first phase.
    pub fn new(job: &'j dyn Job, options: &AnalyzeOptions) -> Self {
        Phases {
            job,
            stats: options.stats,
            shows: options.progress && job.agent() == 0,
            done: Vec::new(),
            current: None,
        }
    }

    /// Ends a phase and begins the next.
    pub fn begin(&mut self, name: &'static str) {
        self.end();
        self.current = Some((name, Instant::now(), self.job.sent()));
    }

    fn end(&mut self) {
        if let Some((name, since, before)) = self.current.take() {
            let sent = self.job.sent();
            let cost = Cost {
                time_s: since.elapsed().as_secs_f64(),
                messages: sent.messages - before.messages,
                bytes: sent.bytes - before.bytes,
                peak: comm::peak_memory(),
                room: most_room(),
            };
            self.done.push((name, cost));
        }
    }

    /// A progress bar of `rounds` rounds.
    pub fn bar(&self, rounds: u64) -> ProgressBar {
        if !self.shows {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(rounds);
        if let Ok(style) = ProgressStyle::with_template("analysing {bar:40} {percent}% {eta}") {
            bar.set_style(style);
        }
        bar
    }

    /// The phases of all agents together, and of single ones, at the head. Collective, if
    /// statistics are wanted. `locations`: number that this agent held. `requests`: number that its
    /// ranks sent.
    pub fn finish(
        mut self,
        locations: usize,
        requests: u64,
    ) -> Result<(Vec<Phase>, Vec<AgentShare>)> {
        self.end();
        if !self.stats {
            return Ok(Default::default());
        }
        let (names, costs): (Vec<_>, Vec<_>) = self.done.into_iter().unzip();
        let share = Share {
            agent: self.job.agent() as u32,
            locations: locations as u64,
            requests,
            costs,
        };
        let Some(Shares(shares)) = comm::merge_up(self.job, Shares(vec![share]))? else {
            return Ok(Default::default());
        };
        let phases = names.iter().enumerate().map(|(at, name)| {
            let costs = shares.iter().filter_map(|share| share.costs.get(at));
            let mut phase = Phase {
                name: (*name).to_owned(),
                ..Phase::default()
            };
            for cost in costs {
                phase.time_s = phase.time_s.max(cost.time_s);
                phase.messages += cost.messages;
                phase.bytes_exchanged += cost.bytes;
                phase.peak_memory_bytes = phase.peak_memory_bytes.max(cost.peak);
                phase.temporary_bytes += cost.room;
            }
            phase
        });
        Ok((phases.collect(), listed(shares).iter().map(told).collect()))
    }
}

/// Of several agents, in no order.
#[derive(Serialize, Deserialize)]
struct Shares(Vec<Share>);

impl Filter for Shares {
    fn merge(&mut self, other: Shares) {
        self.0.extend(other.0);
    }
}

/// All agents, or those with the most time, bytes or memory; ascending.
fn listed(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_by_key(|share| share.agent);
    if shares.len() <= LISTED {
        return shares;
    }
    let sum = |share: &Share, part: fn(&Cost) -> f64| share.costs.iter().map(part).sum::<f64>();
    let orders: [fn(&Cost) -> f64; 3] = [|c| c.time_s, |c| c.bytes as f64, |c| c.peak as f64];
    let mut keeps = vec![false; shares.len()];
    let mut order: Vec<usize> = (0..shares.len()).collect();
    for part in orders {
        order.sort_by(|&a, &b| sum(&shares[b], part).total_cmp(&sum(&shares[a], part)));
        order[..LISTED / 3].iter().for_each(|&at| keeps[at] = true);
    }
    let mut keeps = keeps.into_iter();
    shares.retain(|_| keeps.next() == Some(true));
    shares
}

fn told(share: &Share) -> AgentShare {
    let phases = share.costs.iter().map(|cost| PhaseShare {
        time_s: cost.time_s,
        messages: cost.messages,
        bytes_sent: cost.bytes,
        peak_memory_bytes: cost.peak,
    });
    AgentShare {
        agent: share.agent,
        locations: share.locations,
        requests: share.requests,
        phases: phases.collect(),
    }
}
