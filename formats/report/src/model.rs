//! The report as data. Field names and their order are those of the file.

use crate::advice::Advice;
use crate::calls::CallTree;
use crate::path::{CriticalPath, Parallelism};
use crate::roots::{DelayCosts, RootCause, RootShare, WaitClass};
use crate::traffic::{MessagePairs, RankMatrix, Traffic};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
            counted_s: some(&|l| l.counted_s),
            counters,
        }
    }
}

/// A region of the program: named by it, or a function that the compiler instrumented. Times of
/// a location in a region are outside of recorded calls and of regions nested in it, but for
/// `inclusive_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Name of the region, phase or function.
    pub region: String,
    /// `region`, `phase` or `function`.
    pub kind: String,
    /// The generic type that an operation map gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_type: Option<String>,
    /// Where it was begun first; of a function where that begins.
    pub location: SourceLocation,
    /// Times it was begun and ended.
    pub calls: u64,
    /// Calls of a tiny function that were counted only; their time is that of the regions
    /// around them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed_calls: Option<u64>,
    /// Locations that were in it.
    pub locations: u64,
    /// From begin to end, all locations together.
    pub inclusive_s: f64,
    /// All locations together.
    pub exclusive_s: f64,
    /// Mean over the locations that were in it.
    pub mean_s: f64,
    /// Of the location with most.
    pub max_s: f64,
    /// Rank of the location with most.
    pub worst_rank: u32,
    /// max_s / mean_s.
    pub imbalance: f64,
    /// What the other locations may have waited: (max_s − mean_s) · locations.
    pub imbalance_s: f64,
    /// Exclusive time of ranks beyond the mean over all ranks of the run; the others are below it by
    /// as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload_s: Option<f64>,
    /// What ranks that were never in it are below that mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_participation_s: Option<f64>,
    /// The overload, if a single rank was in it; else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_participant_s: Option<f64>,
    /// `imbalance_s` in percent of all time.
    pub percent: f64,
    /// Mean of one instance.
    pub instance_mean_s: f64,
    /// Longest instance.
    pub instance_max_s: f64,
    /// What marked it: `imbalance` (between locations), `deviation` (between instances), `none`.
    pub filter: String,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// As it was started.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Size of `MPI_COMM_WORLD`, or PEs.
    pub ranks: u32,
    /// Threads of ranks that have a trace.
    pub locations: u32,
    /// Names of the hosts, sorted.
    pub hosts: Vec<String>,
    /// Programming models seen: `mpi`, `shmem`.
    pub models: Vec<String>,
    /// When the recording began, Unix time by the clock of the first rank's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_s: Option<f64>,
    /// From the first location's start to the last location's end.
    pub wall_time_s: f64,
    /// Size of all files of the trace.
    pub trace_bytes: u64,
    /// Calls.
    pub operations: u64,
    /// The MPI library and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_library: Option<String>,
    /// Largest error of the clock comparison between two locations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_s: Option<f64>,
    /// Effects before their causes, as far as operations were looked at; absent if there
    /// were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_violations: Option<ClockViolations>,
    /// The most crowded host, if ranks or their threads share processors: they wait for these, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
}

/// Effects that seem to come before their causes, since clocks are not exactly compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockViolations {
    /// With clocks as they were measured.
    pub before: Causality,
    /// With clocks as they were used.
    pub after: Causality,
}

/// How many effects come before their causes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Causality {
    /// Messages that were received before they were sent.
    pub messages: u64,
    /// Members that left a collective before the last one entered.
    pub collectives: u64,
    /// By how much at most.
    pub largest_s: f64,
}

/// What the analysis was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// All instances were measured; the filters were off.
    pub all: bool,
    /// Share of its location's wall time from which an operation is looked at, and of its rank's
    /// from which a finding is listed.
    pub hotspot_percent: f64,
    /// Multiple of the baseline from which an operation is looked at.
    pub baseline_ratio: f64,
    /// Ratio mean/min or max/mean from which an operation is looked at.
    pub deviation_ratio: f64,
    /// The baseline table, if one was given: what it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Root causes were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
    /// The last member of a collective has all the blame.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub charge_last: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            all: false,
            hotspot_percent: 1.0,
            baseline_ratio: 1.5,
            deviation_ratio: 2.0,
            baseline: None,
            fast: false,
            charge_last: false,
        }
    }
}

/// How the analysis ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    /// Agents.
    pub count: u32,
    /// Bytes that agents sent to each other.
    pub bytes_exchanged: u64,
    /// Requests that agents sent to each other, and to themselves.
    pub requests: u64,
    /// From start to report.
    pub analysis_time_s: f64,
    /// Largest resident memory of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// The phases in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Single agents; of many, those that stand out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<AgentShare>,
}

/// The run in three parts, which add up to `run.wall_time_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhasesOfRun {
    /// Until the first location was through MPI_Init or shmem_init.
    pub startup_s: f64,
    /// From then until the last one entered Finalize.
    pub measured_s: f64,
    /// The rest.
    pub shutdown_s: f64,
    /// What calls of Init and Finalize took of the first and the last part, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<EndOperation>,
}

/// Calls of a function that starts or ends a library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndOperation {
    /// The function.
    pub operation: String,
    /// Calls of all locations.
    pub calls: u64,
    /// Time inside them, but for the wait in Finalize for the last location, which is measured.
    pub total_s: f64,
    /// Of the time of all locations from their first call to the end of their last one, 0..=1.
    pub share: f64,
}

/// What one agent did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentShare {
    /// Its number.
    pub agent: u32,
    /// Locations that it held.
    pub locations: u64,
    /// Requests of its ranks.
    pub requests: u64,
    /// The phases in their order, as [`Agents::phases`].
    pub phases: Vec<PhaseShare>,
}

/// One phase of one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseShare {
    /// Time.
    pub time_s: f64,
    /// Messages to other agents.
    pub messages: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Largest resident memory until the end of the phase.
    pub peak_memory_bytes: u64,
}

/// One phase of the analysis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Time of the slowest agent.
    pub time_s: f64,
    /// Messages between agents.
    #[serde(default)]
    pub messages: u64,
    /// Bytes in them.
    pub bytes_exchanged: u64,
    /// Largest resident memory of an agent until the end of the phase.
    #[serde(default)]
    pub peak_memory_bytes: u64,
    /// Room that temporary files of all agents took at most, until the end of the phase.
    #[serde(default)]
    pub temporary_bytes: u64,
}

/// Efficiencies of the run, 0..=1 (POP).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// `load_balance * communication`.
    pub parallel: f64,
    /// Mean over maximum of the locations' computation.
    pub load_balance: f64,
    /// Largest computation over time between start-up and shut-down.
    pub communication: f64,
    /// `communication / transfer`: what remains to be lost on an ideal network. With `gain_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serialization: Option<f64>,
    /// Time on an ideal network over time. With `gain_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<f64>,
    /// Of ranks with all their threads, if there are further ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid: Option<Hybrid>,
}

/// Efficiencies of ranks with several threads (POP's multiplicative model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hybrid {
    /// Mean computation of all threads over the time between start-up and shut-down:
    /// `mpi.parallel * threads.parallel`.
    pub parallel: f64,
    /// Of the time in which ranks' first threads are outside of MPI.
    pub mpi: EfficiencyPart,
    /// Of the computation of all threads in that time. Above 1 where threads compute while the first one
    /// is in MPI.
    pub threads: EfficiencyPart,
}

/// One part of a hybrid program's efficiency: `parallel = load_balance * communication`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EfficiencyPart {
    /// Mean time over all time.
    pub parallel: f64,
    /// Mean over maximum: of the ranks, or of the threads of each rank.
    pub load_balance: f64,
    /// Maximum over all time.
    pub communication: f64,
}

/// What the time in calls was: `total_s = explained_s + unexplained_s + cost_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InCalls {
    /// Inside calls, those that only manage handles included.
    pub total_s: f64,
    /// What patterns charge: waiting, and the completion of collectives.
    pub explained_s: f64,
    /// Beyond that and beyond what the calls cost: the findings `unexplained`.
    pub unexplained_s: f64,
    /// What the calls cost.
    pub cost_s: f64,
}

impl InCalls {
    /// All together, if it is known of each.
    fn sum(all: impl Iterator<Item = Option<InCalls>>) -> Option<InCalls> {
        all.reduce(|one, other| {
            let (one, other) = (one?, other?);
            Some(InCalls {
                total_s: one.total_s + other.total_s,
                explained_s: one.explained_s + other.explained_s,
                unexplained_s: one.unexplained_s + other.unexplained_s,
                cost_s: one.cost_s + other.cost_s,
            })
        })
        .flatten()
    }
}

/// A host on which ranks and their threads share processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    /// Ranks on it.
    pub ranks: u32,
    /// Their first threads, and further ones of OpenMP teams.
    #[serde(default)]
    pub threads: u32,
    /// Processors that they may use.
    pub cores: u32,
    /// Hosts with more threads than processors; this is the one with the most threads for each.
    pub hosts: u32,
}

impl Crowd {
    /// Whether ranks share processors, whatever threads they have.
    pub fn is_of_ranks(&self) -> bool {
        self.ranks > self.cores
    }
}

/// How one location spent its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocationTimes {
    /// Rank or PE.
    pub rank: u32,
    /// Thread of the rank, from 0.
    pub thread: u32,
    /// Host name.
    pub host: String,
    /// Outside of all recorded calls.
    pub computation_s: f64,
    /// In calls that move data.
    pub communication_s: f64,
    /// In calls whose purpose is that ranks meet.
    pub synchronization_s: f64,
    /// In file operations.
    pub io_s: f64,
    /// Time, inside the calls, that patterns charged to this location.
    pub wait_s: f64,
    /// One of the locations that compute most and that others wait for.
    pub bottleneck: bool,
    /// Between start-up and shut-down: its computation and its time inside calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// What the time in calls was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_calls: Option<InCalls>,
    /// From its first call until its MPI_Init or shmem_init returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_s: Option<f64>,
    /// From when the last location entered Finalize to the end of its last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_s: Option<f64>,
    /// On its processor while it was recorded, start-up and shut-down included; absent if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_s: Option<f64>,
    /// The part of its computation in which its counters counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_s: Option<f64>,
    /// What they counted there, in user mode, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Wait states in its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<u64>,
    /// Wait states of others that the rank caused; a wait for several ranks is one of each. At the
    /// rank's first thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_waits: Option<u64>,
    /// What it moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// Times of the locations of successive ranks, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocationClass {
    /// First rank of the class.
    pub first_rank: u32,
    /// Last rank of the class.
    pub last_rank: u32,
    /// Locations of these ranks.
    pub locations: u64,
    /// Outside of all recorded calls.
    pub computation_s: f64,
    /// In calls that move data.
    pub communication_s: f64,
    /// In calls whose purpose is that ranks meet.
    pub synchronization_s: f64,
    /// In file operations.
    pub io_s: f64,
    /// Time, inside the calls, that patterns charged.
    pub wait_s: f64,
    /// Least computation of one of the locations.
    pub least_computation_s: f64,
    /// Most computation of one of the locations.
    pub most_computation_s: f64,
}

/// Times of all locations together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocationSums {
    /// Outside of all recorded calls.
    pub computation_s: f64,
    /// In calls that move data.
    pub communication_s: f64,
    /// In calls whose purpose is that ranks meet.
    pub synchronization_s: f64,
    /// In file operations.
    pub io_s: f64,
    /// Time, inside the calls, that patterns charged.
    pub wait_s: f64,
    /// Of `wait_s`, what was lost to ranks on other hosts, if the run had several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inter_node_wait_s: Option<f64>,
    /// What the time in calls was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_calls: Option<InCalls>,
    /// Between start-up and shut-down.
    pub wall_s: f64,
    /// Start-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_s: Option<f64>,
    /// Shut-down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_s: Option<f64>,
    /// Ranks that compute most and that others wait for, as ranges; "" if none does.
    pub busiest: String,
    /// The part of their computation in which counters counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_s: Option<f64>,
    /// What they counted there, in user mode, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Wait states in all calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<u64>,
    /// What all moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// Calls of one function, all locations and places together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationTimes {
    /// The function; or a region of the program that an operation map made an operation.
    pub operation: String,
    /// Its generic type.
    pub operation_type: String,
    /// The sum of the locations that its time is in: `communication`, `synchronization` or `io`.
    pub time: String,
    /// Calls.
    pub calls: u64,
    /// Time inside, between start-up and shut-down; of a region of the program, outside of
    /// recorded calls and nested regions.
    pub total_s: f64,
    /// Time, inside the calls, that patterns charged as waiting.
    pub wait_s: f64,
    /// Time that the calls cost: neither charged by a pattern nor unexplained; absent of regions of
    /// the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_s: Option<f64>,
    /// Wait states in these calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<u64>,
    /// Wait states for which one of these calls came late; a wait for several is one of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_waits: Option<u64>,
}

/// Total of one pattern.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Pattern name; empty in reports of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Time lost.
    pub total_s: f64,
    /// Of the sum of all locations' wall time.
    pub percent: f64,
    /// Instances that lost time.
    pub instances: u64,
    /// Of `total_s`, what was lost to ranks on other hosts, if the run had several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inter_node_s: Option<f64>,
    /// First quartile, median and third quartile of the time lost in an instance, to 1.6 %; absent
    /// for fewer than five instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quartiles_s: Option<[f64; 3]>,
    /// The most severe instances, the worst first, each of another call or place; five at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_instances: Vec<SevereInstance>,
}

/// One of the most severe instances of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SevereInstance {
    /// The call.
    pub operation: String,
    /// Its place.
    pub location: SourceLocation,
    /// Rank or PE that lost time.
    pub rank: u32,
    /// The late one; absent if there is none, or it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_rank: Option<u32>,
    /// Entry.
    pub start_s: f64,
    /// Leaving.
    pub end_s: f64,
    /// Time lost.
    pub severity_s: f64,
}

/// Computation from the leave of a call to the next call, compared over all ranks of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imbalance {
    /// The call after which ranks computed.
    pub after: String,
    /// Its place.
    pub location: SourceLocation,
    /// Ranks that computed there.
    pub ranks: u64,
    /// All ranks together.
    pub total_s: f64,
    /// Mean over all ranks of the run.
    pub mean_s: f64,
    /// Of the rank with most.
    pub max_s: f64,
    /// The lowest rank with most.
    pub worst_rank: u32,
    /// What ranks computed beyond the mean.
    pub overload_s: f64,
    /// What the others were below the mean: the same sum.
    pub underload_s: f64,
    /// The part of it that belongs to ranks that never computed there.
    pub non_participation_s: f64,
    /// The overload, if a single rank computed there; else 0.
    pub single_participant_s: f64,
    /// `overload_s` in percent of all time.
    pub percent: f64,
}

/// Computation of threads until they meet, as in a parallel region, compared over the threads of each rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadImbalance {
    /// What they meet in.
    pub before: String,
    /// Its place.
    pub location: SourceLocation,
    /// Ranks whose threads meet there.
    pub ranks: u64,
    /// Threads of all these ranks.
    pub threads: u64,
    /// All threads together.
    pub total_s: f64,
    /// Mean over them.
    pub mean_s: f64,
    /// Of the thread that is farthest beyond the mean of its rank's threads.
    pub max_s: f64,
    /// That mean.
    pub rank_mean_s: f64,
    /// Its rank.
    pub worst_rank: u32,
    /// Its number.
    pub worst_thread: u32,
    /// What threads computed beyond the mean of their rank.
    pub overload_s: f64,
    /// `overload_s` in percent of all time.
    pub percent: f64,
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLocation {
    /// As the compiler wrote it into the program; "" if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// Function, or `function+0xoffset`, or `module+0xoffset`; "" if unknown.
    pub function: String,
    /// `function file:line`, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callpath: Vec<String>,
    /// Callers that tell this place from others of the report that have the same line, innermost
    /// first; absent if the line alone does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
}

/// A line of a call path, without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// As the compiler wrote it into the program; "" if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// Function, or `function+0xoffset`, or `module+0xoffset`; "" if unknown.
    pub function: String,
}

/// One finding: a pattern in an operation at a place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// `f3a9c1e`: follows from pattern, call and place, so that all reports about a trace name it
    /// alike, whatever their settings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Pattern id.
    pub pattern: String,
    /// Pattern name.
    pub name: String,
    /// The call that lost the time.
    pub operation: String,
    /// Its generic type.
    pub operation_type: String,
    /// Where it is called.
    pub location: SourceLocation,
    /// Time lost, all ranks.
    pub severity_s: f64,
    /// Of the sum of all locations' wall time.
    pub percent: f64,
    /// The largest part that one of the ranks lost of its time, in percent: what
    /// `hotspot_percent` is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_percent: Option<f64>,
    /// How sure, 0..=1.
    pub confidence: f64,
    /// Calls at this place, all ranks.
    pub calls: u64,
    /// Those that lost time.
    pub instances: u64,
    /// Mean duration of the calls.
    pub mean_s: f64,
    /// Duration of the shortest call at this place; absent if the profile does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_s: Option<f64>,
    /// Duration of the longest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    /// What the operation should take, if the table covers it.
    pub baseline_s: Option<f64>,
    /// `mean_s / baseline_s`; or the deviation that the filter saw: the largest of mean / minimum,
    /// maximum / mean and mean / fastest call of the same function and size.
    pub ratio: Option<f64>,
    /// What flagged it: `baseline`, `deviation`, `hotspot` (nothing to compare with says that it
    /// was fast) or `all`.
    pub filter: String,
    /// Ranks that lost time, the worst first; may be cut after the worst.
    pub ranks: Vec<RankShare>,
    /// All ranks that lost time, as ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_set: Option<String>,
    /// The ranks that lost time by classes of successive ranks, if there are too many to list
    /// all; of the findings with most lost time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rank_classes: Vec<RankClass>,
    /// The part lost to ranks on other hosts, if the run had several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inter_node_s: Option<f64>,
    /// First quartile, median and third quartile of the time lost in an instance, to 1.6 %; absent
    /// for fewer than five instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quartiles_s: Option<[f64; 3]>,
    /// The part lost while more members of a collective were missing than are known by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub several_s: Option<f64>,
    /// Whom they waited for, the largest share first.
    pub causes: Vec<Cause>,
    /// Listed root causes that start it, the largest part first; those of a twentieth or more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub root_causes: Vec<RootShare>,
    /// The instance that lost most.
    pub worst_instance: Option<Instance>,
    /// What to try.
    pub hints: Vec<String>,
    /// What rules for hints say: those of the hints that name numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
}

impl Bottleneck {
    /// Whether no recorded call of another rank can account for the time.
    pub fn is_unexplained(&self) -> bool {
        self.pattern == "unexplained"
    }
}

/// Whether calls of a function only look whether something has come.
pub fn polls(operation: &str) -> bool {
    const LOOK: [&str; 5] = [
        "MPI_Test",
        "MPI_Iprobe",
        "MPI_Improbe",
        "MPI_Request_get_status",
        "shmem_test",
    ];
    LOOK.iter().any(|start| operation.starts_with(start))
}

/// Findings that are not listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unlisted {
    /// How many.
    pub findings: u64,
    /// Time lost, all of them together.
    pub severity_s: f64,
    /// Of the sum of all locations' wall time.
    pub percent: f64,
}

/// An operation that was called once at a place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CalledOnce {
    /// The call.
    pub operation: String,
    /// Where it is called.
    pub location: SourceLocation,
    /// Locations that did so.
    pub locations: u64,
    /// Time that these were in it.
    pub total_s: f64,
    /// Of the sum of all locations' wall time.
    pub percent: f64,
}

/// One rank's part of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankShare {
    /// Rank or PE.
    pub rank: u32,
    /// Time lost.
    pub severity_s: f64,
    /// Instances that lost time.
    pub instances: u64,
}

/// Successive ranks' part of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankClass {
    /// First rank of the class.
    pub first_rank: u32,
    /// Last rank of the class.
    pub last_rank: u32,
    /// Ranks of the class that lost time.
    pub ranks: u32,
    /// Time lost by all of these.
    pub severity_s: f64,
    /// Least time lost by one of these.
    pub least_s: f64,
    /// Most time lost by one of these.
    pub most_s: f64,
}

/// Whom a finding's ranks waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The late rank.
    pub rank: u32,
    /// The call that it made too late.
    pub operation: String,
    /// Where.
    pub location: SourceLocation,
    /// Time that others lost to it.
    pub severity_s: f64,
    /// Of the finding's severity, 0..=1.
    pub share: f64,
    /// What it did before.
    pub because: String,
    /// Of `severity_s`, the time in which it computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computation_s: Option<f64>,
    /// Of `severity_s`, the time in which it was itself inside communication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
    /// Of `severity_s`, the time in which it was inside file operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_s: Option<f64>,
    /// Of `severity_s`, the time in which it was off the processor by itself: asleep, or waiting for a
    /// device or a lock; only if there was some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_s: Option<f64>,
    /// Of `severity_s`, the time in which it was off the processor since others had it; only if there
    /// was some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_s: Option<f64>,
}

/// One instance of a finding; times since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Rank or PE.
    pub rank: u32,
    /// Entry.
    pub start_s: f64,
    /// Leaving.
    pub end_s: f64,
    /// Time lost.
    pub severity_s: f64,
    /// What ranks did around it; of the findings with most lost time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}

/// What a few ranks did in a moment of the run; times since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Start of what is shown.
    pub start_s: f64,
    /// End of what is shown.
    pub end_s: f64,
    /// The rank that waited, then others.
    pub lanes: Vec<Lane>,
}

/// One thread of a rank in a [`Timeline`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Rank or PE.
    pub rank: u32,
    /// Thread of the rank.
    pub thread: u32,
    /// `waiting` (it made the call), `late` (it was waited for), `other` (the late one waited for
    /// it, or it took part).
    pub role: String,
    /// Nothing is known of it before; absent if all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_from_s: Option<f64>,
    /// What it did, in order, without overlaps.
    pub segments: Vec<Segment>,
}

/// What a thread did for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Start.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
    /// `computation`, `communication`, `synchronization`, `io` (one call each), or `several`:
    /// calls and computation that are too short to be told apart.
    pub kind: String,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// `file:line` of the call, or what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How many calls, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Of `several`, the time inside of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside_s: Option<f64>,
}

/// How much an anomaly matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnomalySeverity {
    /// Good to know.
    Info,
    /// Numbers may be off, or the program has a defect.
    #[default]
    Warning,
    /// Part of the trace could not be used.
    Error,
}

impl AnomalySeverity {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            AnomalySeverity::Info => "info",
            AnomalySeverity::Warning => "warning",
            AnomalySeverity::Error => "error",
        }
    }
}

/// Something odd about the run or its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anomaly {
    /// Kind.
    pub id: String,
    /// How much it matters.
    pub severity: AnomalySeverity,
    /// How often.
    pub count: u64,
    /// The first of them, or all in words.
    pub detail: String,
    /// The file or location that it was found in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}
