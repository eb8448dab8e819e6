//! The critical path in a report, and how busy the run was.

use serde::{Deserialize, Serialize};

use crate::{RootSite, SourceLocation};

/// The chain of activities that ended last: from the end of the run back, at each wait on at the
/// party that was waited for. Making anything else faster does not make the run shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    /// From when the last rank began `MPI_Init` until the last one entered `MPI_Finalize`.
    pub length_s: f64,
    /// Its time in calls that start or end a library. No percentage, rank or phase counts it.
    #[serde(default)]
    pub startup_s: f64,
    /// Its time, where a second in which few locations are busy counts more: that second, and for
    /// each other location the idle part of it (Jiang's weighted critical path).
    pub weight_s: f64,
    /// Time of all locations in activities of the path, at most as long each as on the path.
    pub activities_s: f64,
    /// What is lost, of all locations, because they have less to do than the path.
    pub imbalance_impact_s: f64,
    /// The part of that between locations that do different things.
    pub inter_partition_s: f64,
    /// The part of that between locations that do the same.
    pub intra_partition_s: f64,
    /// Time of all locations in other activities, without waiting.
    pub non_critical_s: f64,
    /// The ranks that it is on without start-up, the longest part first; may be cut after the
    /// longest.
    pub ranks: Vec<PathRank>,
    /// Its activities, the longest first; may be cut.
    pub profile: Vec<PathRow>,
    /// Its phases, if the program marks some, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PathPhase>,
    /// The weight of no activity or phase is wrong by more than this. Their sum is not wrong.
    #[serde(default)]
    pub weight_error_s: f64,
}

/// A phase of the program on the critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathPhase {
    /// Its name.
    pub phase: String,
    /// Time of the path in it.
    pub seconds: f64,
    /// Part of the path without start-up, 0 to 1.
    pub share: f64,
    /// Part of the weight of that, 0 to 1.
    pub weight_share: f64,
}

/// Part of a rank in the critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathRank {
    /// World rank.
    pub rank: u32,
    /// Time of the path on it.
    pub seconds: f64,
}

/// An activity on the critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathRow {
    /// `computation`, `io` or `call`, without waiting.
    pub kind: String,
    /// The call; for computation, the call before it. Empty if there was none, and for computation
    /// in a function, which `location` tells then.
    pub operation: String,
    /// Where it is.
    pub location: SourceLocation,
    /// The call that ended the computation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<RootSite>,
    /// Time of the path in it.
    pub seconds: f64,
    /// Part of the path without start-up, 0 to 1; 0 for start-up itself.
    pub share: f64,
    /// Part of the weight of that, 0 to 1; 0 for start-up itself.
    pub weight_share: f64,
    /// The ranks that do it on the path, the longest part first; eight at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<PathRank>,
    /// How much longer it is on the path than in the mean of all locations.
    pub imbalance_s: f64,
    /// Its part of the path's `imbalance_impact_s`.
    pub impact_s: f64,
}

/// How much ranks waited at a time. Above 64 sets, those that wait alike are one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingRanks {
    /// The ranks, as `0-3,8`.
    pub ranks: String,
    /// Their number of locations.
    pub locations: u64,
    /// By two bins: the share of their time in which they waited, 0 to 1.
    pub shares: Vec<f64>,
}

/// How busy the run was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parallelism {
    /// Length of a bin; the first one begins with the run.
    pub bins_s: f64,
    /// By bin: locations that did not wait, in the mean.
    pub busy: Vec<f64>,
    /// By bin: bytes sent per second.
    pub bytes_per_s: Vec<f64>,
    /// Who waited when, for at most 64 sets of ranks.
    #[serde(default)]
    pub waiting: Vec<WaitingRanks>,
    /// Time of all locations without waiting, by the length of the critical path.
    pub speedup: f64,
    /// The same by the number of locations, 0 to 1.
    pub efficiency: f64,
    /// Time of all locations without waiting, for each message; absent without messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_s: Option<f64>,
}
