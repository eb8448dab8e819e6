//! Root causes in a report: who started the waiting that others passed on.

use serde::{Deserialize, Serialize};

use crate::numbers::NEGLIGIBLE_PERCENT;
use crate::{Caller, ParallelRegion, SourceLocation};

/// An activity of some ranks that others waited for in the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootCause {
    /// `rc1`, `rc2`…, the largest first.
    pub id: String,
    /// The ranks that cause nearly all of it, as ranges.
    pub rank_set: String,
    /// These ranks, the largest part first; may be cut after the largest.
    pub ranks: Vec<RootRank>,
    /// Numbers of the threads of these ranks that cause nearly all of it, as ranges; empty if they are
    /// the ranks' first threads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread_set: String,
    /// Between two calls: `computation`; there or in a call: `blocked`, off the processor by itself;
    /// `preempted`, off it since others had it; or `kernel`, in the kernel. Else `io`, a file operation; `call`, any other
    /// call, without its own waiting; or `latency`: the wait was longer than all that the late rank did
    /// longer.
    pub activity: String,
    /// The call; of what is between two, the call before it. Empty if there was none, and for computation
    /// in a function, which `location` tells then.
    pub operation: String,
    /// Where it is.
    pub location: SourceLocation,
    /// The call that ended what is between two; for latency, the call that waited; none for what is in a
    /// call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<RootSite>,
    /// Parallel regions of OpenMP in which the call that came late is made; none if it is outside of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel_regions: Vec<ParallelRegion>,
    /// Waiting for these ranks, all ranks.
    pub direct_s: f64,
    /// Waiting for others, who waited for these ranks.
    pub indirect_s: f64,
    /// Both.
    pub severity_s: f64,
    /// Of the sum of all locations' wall time.
    pub percent: f64,
    /// How much shorter the run is predicted to be if these ranks did it no longer than the others;
    /// of traces that are not too large, for the first root causes. Negative: it gets longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_s: Option<f64>,
    /// Of the run's time between start-up and shut-down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_percent: Option<f64>,
    /// If it gains nothing by itself: what it gains once others are mended, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_after: Option<GainAfter>,
    /// What these ranks did more than those that waited for them; empty if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// In which functions they computed longer than those that waited, as samples tell, or without them the regions
    /// and instrumented functions of the program; the largest part first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<RootFunction>,
    /// What made the computation longer, where instructions and cycles were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<Factors>,
    /// What they counted while they computed, and those that waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<RootCounter>,
    /// Of time in the kernel between two calls: how many page faults more these ranks had than those that waited,
    /// in the mean of all times that they were late, if these take half of it or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<f64>,
    /// Who waited, the largest part first.
    pub victims: Vec<Victim>,
    /// When these ranks were late at the greatest cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_wait: Option<WorstWait>,
    /// What to try; nothing if it is known to gain nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl RootCause {
    /// Whether a program is thinkable without it, so that its gain can be told: the network is not
    /// of the program.
    pub fn can_go(&self) -> bool {
        match self.activity.as_str() {
            "computation" => self.until.is_some(),
            activity => activity != "latency",
        }
    }

    /// Whether the run is predicted to be no shorter without it: others come as late then.
    pub fn gains_nothing(&self) -> bool {
        self.gain_percent
            .is_some_and(|gain| gain < NEGLIGIBLE_PERCENT)
    }
}

/// What a root cause gains once others are mended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GainAfter {
    /// The others' ids.
    pub mended: Vec<String>,
    /// How much shorter than with these mended alone the run is predicted to be.
    pub gain_s: f64,
    /// Of the run's time between start-up and shut-down.
    pub gain_percent: f64,
}

/// Waits for one call that came late; times since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorstWait {
    /// The rank that came late.
    pub rank: u32,
    /// When it was waited for; of several that waited, since so long in the mean.
    pub start_s: f64,
    /// When it came.
    pub end_s: f64,
    /// Waiting because of this root cause, of all who waited for that call.
    pub severity_s: f64,
}

/// Part of a root cause in the waits of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootShare {
    /// Its id.
    pub id: String,
    /// Of all waits of this pattern in this call, 0..=1.
    pub share: f64,
}

/// Part of one rank in a root cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootRank {
    /// World rank.
    pub rank: u32,
    /// Waiting that it causes, all ranks.
    pub severity_s: f64,
}

/// A function in which ranks were longer than those that waited for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootFunction {
    /// Its line with most samples, or where the region begins, and a call path to it.
    #[serde(flatten)]
    pub location: SourceLocation,
    /// How much longer, in the mean of all times that they were late.
    pub more_s: f64,
    /// Of all that they computed longer there and in other functions, 0..=1; without samples, of all that they
    /// computed longer.
    pub share: f64,
    /// Who called it then, the largest part first; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<RootCaller>,
}

/// A line that calls a function in which ranks were longer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootCaller {
    /// The line.
    #[serde(flatten)]
    pub caller: Caller,
    /// Of all that they computed longer in the function, 0..=1; 0 in older reports.
    #[serde(default)]
    pub share: f64,
}

/// How much longer ranks computed since they executed more instructions, needed more cycles for each, or had
/// a slower clock: time is instructions × cycles per instruction × seconds per cycle. Each factor has the
/// excess times the logarithm of its ratio over that of the times (LMDI: B. W. Ang, "The LMDI approach to
/// decomposition analysis: a practical guide", Energy Policy 33, 2005), so that the three are all of it.
/// In the mean of all times that they were late; negative: it made the computation shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Factors {
    /// All together.
    pub excess_s: f64,
    /// More instructions.
    pub instructions_s: f64,
    /// More cycles for each instruction.
    pub cycles_per_instruction_s: f64,
    /// Fewer cycles per second.
    pub frequency_s: f64,
}

impl Factors {
    /// Of computation that was `excess_s` longer, by time, instructions and cycles of the late ranks and of
    /// the others. `None` if the late ones did not compute longer, or somebody counted nothing. If the others
    /// did nothing at all, all of it is instructions.
    pub fn of(excess_s: f64, late: [f64; 3], others: [f64; 3]) -> Option<Factors> {
        let [time, instructions, cycles] = late;
        if late.iter().any(|&count| count <= 0.0) || time <= others[0] {
            return None;
        }
        if others.iter().all(|&count| count <= 0.0) {
            return Some(Factors {
                excess_s,
                instructions_s: excess_s,
                ..Factors::default()
            });
        }
        if others.iter().any(|&count| count <= 0.0) {
            return None;
        }
        let part = |ratio: f64| excess_s * ratio.ln() / (time / others[0]).ln();
        Some(Factors {
            excess_s,
            instructions_s: part(instructions / others[1]),
            cycles_per_instruction_s: part(cycles / instructions * others[1] / others[2]),
            frequency_s: part(time / cycles * others[2] / others[0]),
        })
    }
}

/// What a counter counted in computation, in the mean of all times that ranks were late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootCounter {
    /// Its name.
    pub name: String,
    /// Of the late ranks.
    pub late: f64,
    /// Of those that waited for them.
    pub others: f64,
}

/// A call of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootSite {
    /// Its name.
    pub operation: String,
    /// Where it is.
    #[serde(flatten)]
    pub location: SourceLocation,
}

/// Calls that waited because of a root cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Victim {
    /// Pattern id.
    pub pattern: String,
    /// The call.
    pub operation: String,
    /// Where it is.
    pub location: SourceLocation,
    /// The waiting ranks, as ranges; of more than 64 ranks, the parts of the run in which they are.
    pub rank_set: String,
    /// Numbers of their threads that wait, as ranges; empty if these are the ranks' first threads, unless they wait
    /// for threads of their rank.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread_set: String,
    /// Their waiting, all ranks.
    pub severity_s: f64,
}

/// Waits of one class, by what they come from, and by what comes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitClass {
    /// For what others did longer, or for nothing that they did.
    pub direct_s: f64,
    /// For others that waited themselves.
    pub indirect_s: f64,
    /// For nobody that is known.
    #[serde(default)]
    pub untraced_s: f64,
    /// Waits that made others wait.
    pub propagating_s: f64,
    /// Waits that did not.
    pub terminal_s: f64,
}

/// Costs of what ranks did longer than those that wait for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayCosts {
    /// Waiting of this class for these ranks.
    pub short_s: f64,
    /// Waiting of this class for others, who waited for these ranks.
    pub long_s: f64,
}
