//! The report as data. Field names and their order are those of the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::calls::CallTree;
use crate::findings::{Bottleneck, CalledOnce, Unlisted};
use crate::path::{CriticalPath, Parallelism};
use crate::roots::{DelayCosts, RootCause, WaitClass};
use crate::run::{Agents, Anomaly, PhasesOfRun, Run, Settings};
use crate::times::{
    Efficiency, FunctionTimes, Imbalance, InCalls, LocationClass, LocationSums, LocationTimes,
    Metric, OffWork, OperationTimes, Region, ThreadImbalance,
};
use crate::traffic::{MessagePairs, RankMatrix};

/// Anomalies that hide waiting, in words.
const BLIND: &[(&str, &str)] = &[
    ("no_events", "only a profile was recorded"),
    ("paused", "the recording was paused"),
    ("missing_ranks", "ranks have no trace"),
    ("size_limit", "the trace reached its size limit"),
    ("write_error", "the trace could not be written"),
    ("collector_error", "the recording ended early"),
    ("lost_calls", "calls were lost"),
    ("polling", "ranks waited by polling"),
];

/// Of these, those that do not mean that the recording is broken: the program, or its user,
/// wanted it so.
const WANTED: &[&str] = &["paused", "polling"];

/// Everything that one analysis found. Times are seconds, sizes bytes, percents
/// are of the sum over all locations of their wall time, which is what they ran between start-up
/// and shut-down: from the return of their own MPI_Init or shmem_init until the last of all
/// locations enters Finalize. What `init_completion` lost is in percent of all their time, with
/// start-up and shut-down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`](crate::SCHEMA).
    pub schema: String,
    /// What was recorded.
    pub run: Run,
    /// What the analysis was told.
    pub settings: Settings,
    /// How the analysis ran: the only part that depends on the number of agents.
    pub agents: Agents,
    /// Efficiency of the run.
    pub efficiency: Efficiency,
    /// How long start-up and shut-down took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases_of_run: Option<PhasesOfRun>,
    /// Times of all locations together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_sums: Option<LocationSums>,
    /// One entry per location, by rank and thread; of a large run those that stand out.
    pub locations: Vec<LocationTimes>,
    /// All locations by classes of successive ranks, if not all are in `locations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub location_classes: Vec<LocationClass>,
    /// Total per pattern, by pattern id; patterns that lost nothing are left out.
    pub metrics: BTreeMap<String, Metric>,
    /// Time by function, most first, all places together; calls that start a library are in
    /// `phases_of_run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationTimes>,
    /// What happens where: by call path, and over ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_tree: Option<CallTree>,
    /// Who sends whom; absent without messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagePairs>,
    /// Who sends whom, and who waits for whom, all of it; of large runs by groups of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_matrix: Option<RankMatrix>,
    /// Who started the waiting, the largest part first; absent if it was not searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_causes: Option<Vec<RootCause>>,
    /// Waiting whose root cause is not known, all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untraced_s: Option<f64>,
    /// Waiting of root causes that are too small to be listed, all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted_s: Option<f64>,
    /// All waiting by the activity of its root cause, listed or not, all ranks; `untraced` is what nobody is known to
    /// have started. Absent if root causes were not searched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting_by_activity_s: BTreeMap<String, f64>,
    /// By class of waits: what they come from, and what comes of them; absent with root causes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wait_classes: BTreeMap<String, WaitClass>,
    /// By class of waits: costs of what ranks did longer; absent with root causes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delay_costs: BTreeMap<String, DelayCosts>,
    /// The chain of activities that ended last; absent with root causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalPath>,
    /// How busy the run was; absent with root causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<Parallelism>,
    /// Findings, largest severity first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Findings that are not listed, since none cost a rank `hotspot_percent` of its time, nor all
    /// together 1.5 times that; absent if there are none. What they lost is part of all sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_hotspot: Option<Unlisted>,
    /// Hotspots that were called once by a location and that no table of baselines covers, most
    /// time first: whether they were slow cannot be judged, only what they waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called_once: Vec<CalledOnce>,
    /// Computation between calls that ranks share unevenly, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imbalance: Vec<Imbalance>,
    /// Computation by function, as samples tell, most first; absent without samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionTimes>,
    /// Computation before threads of a rank meet that they share unevenly, most first; absent if there is
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_imbalance: Vec<ThreadImbalance>,
    /// Regions of the program, those that ranks differ in most first; absent if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<Region>,
    /// What is odd about the run or its trace.
    pub anomalies: Vec<Anomaly>,
}

impl Report {
    /// Time that was spent waiting, in percent of the sum over all locations of their
    /// wall time.
    pub fn waiting_percent(&self) -> f64 {
        let sums = self.sums();
        crate::percent(sums.wait_s, sums.wall_s)
    }

    /// Why there may have been more waiting than that, in words; empty if all is known.
    pub fn unknown_waiting(&self) -> String {
        let seen = |id: &str| self.anomalies.iter().any(|anomaly| anomaly.id == id);
        let unknown = BLIND.iter().filter(|(id, _)| seen(id));
        let words: Vec<&str> = unknown.map(|(_, words)| *words).collect();
        words.join(", ")
    }

    /// Whether waiting is unknown only where the program, or its user, wanted it so: paused
    /// the recording of some of its calls, or waited in loops of its own.
    pub fn is_sound(&self) -> bool {
        let is_blind = |id: &str| BLIND.iter().any(|(blind, _)| *blind == id);
        let mut blind = self
            .anomalies
            .iter()
            .filter(|anomaly| is_blind(&anomaly.id));
        self.run.operations > 0 && blind.all(|anomaly| WANTED.contains(&anomaly.id.as_str()))
    }

    /// Whether traces end before the program did: it was killed or aborted, or ended
    /// without saying so. Of calls that never returned anomalies tell.
    pub fn is_cut_off(&self) -> bool {
        let mut ids = self.anomalies.iter().map(|anomaly| anomaly.id.as_str());
        ids.any(|id| id == "truncated_trace")
    }

    /// Times of all locations together.
    pub fn sums(&self) -> LocationSums {
        if let Some(sums) = &self.location_sums {
            return sums.clone();
        }
        let sum = |part: &dyn Fn(&LocationTimes) -> f64| self.locations.iter().map(part).sum();
        let some = |part: &dyn Fn(&LocationTimes) -> Option<f64>| {
            let parts = self.locations.iter().filter_map(part);
            parts.fold(None, |sum, part| Some(sum.unwrap_or(0.0) + part))
        };
        let busiest = self.locations.iter().filter(|l| l.bottleneck);
        let mut counters: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in self.locations.iter().flat_map(|l| &l.counters) {
            let sum = counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        LocationSums {
            computation_s: sum(&|l| l.computation_s),
            off_work: OffWork::sum(self.locations.iter().map(|l| l.off_work)),
            communication_s: sum(&|l| l.communication_s),
            synchronization_s: sum(&|l| l.synchronization_s),
            io_s: sum(&|l| l.io_s),
            wait_s: sum(&|l| l.wait_s),
            inter_node_wait_s: None,
            in_calls: InCalls::sum(self.locations.iter().map(|l| l.in_calls)),
            wall_s: sum(&|l| l.wall_s.unwrap_or(self.run.wall_time_s)),
            startup_s: some(&|l| l.startup_s),
            shutdown_s: some(&|l| l.shutdown_s),
            busiest: crate::rank_ranges(busiest.map(|l| l.rank)),
            waits: self.locations.iter().map(|l| l.waits).sum(),
            traffic: None,
            processor_s: some(&|l| l.processor_s),
            counted_s: some(&|l| l.counted_s),
            counters,
        }
    }
}
