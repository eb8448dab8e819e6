//! What was recorded, how it was analysed, and what is odd about it.

use serde::{Deserialize, Serialize};

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
    /// What ranks may use of their hosts, hosts that are alike together; empty if that is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<HostProcessors>,
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

/// The processors of hosts that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostProcessors {
    /// Their names, sorted.
    pub hosts: Vec<String>,
    /// Ranks on each.
    pub ranks: u32,
    /// Their first threads, and further ones of OpenMP teams.
    pub threads: u32,
    /// Processors that these may use on each, no more than the quota.
    pub cores: u32,
    /// Lists of the processors that a rank may run on, as `0-3,8`, each list once.
    pub affinities: Vec<String>,
    /// The least number of processors that a quota allows a rank at a time, if there is a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u32>,
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
