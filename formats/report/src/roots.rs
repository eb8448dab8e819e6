//! Root causes in a report: who started the waiting that others passed on.

use serde::{Deserialize, Serialize};

use crate::SourceLocation;

/// An activity of some ranks that others waited for in the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootCause {
    /// `rc1`, `rc2`…, the largest first.
    pub id: String,
    /// The ranks that cause nearly all of it, as ranges.
    pub rank_set: String,
    /// These ranks, the largest part first; may be cut after the largest.
    pub ranks: Vec<RootRank>,
    /// `computation`; `io`, a file operation; `call`, any other call, without its own waiting;
    /// or `latency`: the wait was longer than all that the late rank did longer.
    pub activity: String,
    /// The call; for computation, the call before it. Empty if there was none.
    pub operation: String,
    /// Where it is.
    pub location: SourceLocation,
    /// The call that ended the computation; for latency, the call that waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<RootSite>,
    /// Waiting for these ranks, all ranks.
    pub direct_s: f64,
    /// Waiting for others, who waited for these ranks.
    pub indirect_s: f64,
    /// Both.
    pub severity_s: f64,
    /// Of the sum of all locations' wall time.
    pub percent: f64,
    /// Who waited, the largest part first.
    pub victims: Vec<Victim>,
}

/// Part of one rank in a root cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RootRank {
    /// World rank.
    pub rank: u32,
    /// Waiting that it causes, all ranks.
    pub severity_s: f64,
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
    /// Their waiting, all ranks.
    pub severity_s: f64,
}
