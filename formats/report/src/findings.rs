//! Findings: what waits where, because of whom.

use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::roots::RootShare;

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
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Caller {
    /// As the compiler wrote it into the program; "" if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// Function, or `function+0xoffset`, or `module+0xoffset`; "" if unknown.
    pub function: String,
}

/// A parallel region of OpenMP in which threads make a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelRegion {
    /// File of the line at which it begins, as the compiler wrote it into the program; "" if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// Function, or `function+0xoffset`, or `module+0xoffset`; "" if unknown.
    pub function: String,
    /// Threads of its largest team.
    pub threads: u32,
    /// Numbers, within their teams, of the threads that make the call, as ranges.
    pub thread_set: String,
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
    /// Parallel regions of OpenMP in which it is made; none if it is outside of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel_regions: Vec<ParallelRegion>,
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
    /// Numbers of their threads that did, as ranges; empty if these are the ranks' first threads, unless threads of
    /// a rank wait for each other.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread_set: String,
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

    /// Whether the call waits for other threads, or for whoever shares a lock with them.
    pub fn is_among_threads(&self) -> bool {
        self.operation_type == "threads"
    }
}

/// Whether calls of a function only look whether something has come.
pub fn polls(operation: &str) -> bool {
    const LOOK: [&str; 8] = [
        "MPI_Test",
        "MPI_Testall",
        "MPI_Testany",
        "MPI_Testsome",
        "MPI_Iprobe",
        "MPI_Improbe",
        "MPI_Request_get_status",
        "MPI_Win_test",
    ];
    // Their names have a type: shmem_long_test_any.
    let is_of_shmem = operation.starts_with("shmem_") && operation.contains("_test");
    is_of_shmem || LOOK.contains(&operation)
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
    /// Numbers of its threads that lost time, as ranges; empty if it is the first one, unless threads of a rank wait
    /// for each other.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread_set: String,
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
    /// Its late thread; absent of first threads, unless further ones lost time, or threads of a rank wait for each
    /// other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The call that it made too late.
    pub operation: String,
    /// Where.
    pub location: SourceLocation,
    /// Parallel regions of OpenMP in which it is made; none if it is outside of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel_regions: Vec<ParallelRegion>,
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
    /// Its thread; absent of first threads, unless threads of a rank wait for each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
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
