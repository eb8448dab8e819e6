//! How locations, operations and regions spent their time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::findings::{SevereInstance, SourceLocation};
use crate::traffic::Traffic;

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
    pub(crate) fn sum(all: impl Iterator<Item = Option<InCalls>>) -> Option<InCalls> {
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

/// Parts of the time outside of recorded calls in which that was no work, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OffWork {
    /// Off the processor by itself: asleep, or waiting for a device or a lock.
    #[serde(default, skip_serializing_if = "is_none")]
    pub blocked_s: f64,
    /// Off the processor since others had it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub preempted_s: f64,
    /// In the kernel.
    #[serde(default, skip_serializing_if = "is_none")]
    pub kernel_s: f64,
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl OffWork {
    /// The sum of several.
    pub fn sum(all: impl Iterator<Item = OffWork>) -> OffWork {
        all.fold(OffWork::default(), |sum, one| OffWork {
            blocked_s: sum.blocked_s + one.blocked_s,
            preempted_s: sum.preempted_s + one.preempted_s,
            kernel_s: sum.kernel_s + one.kernel_s,
        })
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
    /// Parts of it.
    #[serde(flatten)]
    pub off_work: OffWork,
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
    /// Parts of it.
    #[serde(flatten)]
    pub off_work: OffWork,
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
    /// On processors while they were recorded, start-up and shut-down included, as far as that is
    /// known; absent if it is of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_s: Option<f64>,
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

/// Computation in a function of the program, whoever called it, compared over all ranks of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionTimes {
    /// Its line with most samples, and a call path to it.
    pub location: SourceLocation,
    /// Ranks that were in it.
    pub ranks: u64,
    /// All ranks together.
    pub total_s: f64,
    /// Mean over all ranks of the run.
    pub mean_s: f64,
    /// Of the rank with most.
    pub max_s: f64,
    /// The lowest rank with most.
    pub worst_rank: u32,
    /// What ranks computed there beyond the mean.
    pub overload_s: f64,
    /// `total_s` in percent of all time.
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
    /// Part of that in which it was asleep, blocked or without a processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_off_s: Option<f64>,
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
