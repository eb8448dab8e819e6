//! What happens where: a tree of call paths with amounts, and their spread over ranks.

use serde::{Deserialize, Serialize};

/// Call paths with most time as a tree. All amounts together are those of the run: what is in no
/// listed call path is in one node of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallTree {
    /// Successive ranks that share a class: 1 in runs of up to 64 ranks.
    pub ranks_per_class: u32,
    /// Threads of a rank with successive numbers that share a class; absent if no rank has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_class: Option<u32>,
    /// Each node before those below it, of these the ones with most time first. The first one is the
    /// whole run.
    pub nodes: Vec<CallNode>,
    /// What the time consists of, and what the time lost does: each metric after the one that it is part of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<TreeMetric>,
}

/// A part of the time, or of the time lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeMetric {
    /// One of [`PARTS_OF_TIME`], `lost`, a group of patterns, or a pattern.
    pub id: String,
    /// The metric that it is part of, `time` among them; absent of the time lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// For people.
    pub name: String,
    /// The nodes that have some, ascending.
    pub nodes: Vec<NodeTime>,
}

/// A metric at a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeTime {
    /// Position of the node in the tree.
    pub node: u32,
    /// With those of the metrics below it.
    pub time_s: Amount<f64>,
}

/// Parts of the time: id, the one that it is part of, name, and what it is. Parents come first.
pub const PARTS_OF_TIME: [[&str; 4]; 8] = [
    [
        "computation",
        "time",
        "Computation",
        "Outside of all recorded calls. What follows a call is time of the function that made it.",
    ],
    [
        "blocked",
        "computation",
        "Asleep or blocked",
        "Outside of calls, off the processor by itself: asleep, or waiting for a device or a lock.",
    ],
    [
        "preempted",
        "computation",
        "Without a processor",
        "Outside of calls, off the processor since others had it.",
    ],
    [
        "kernel",
        "computation",
        "In the kernel",
        "Outside of calls, in the kernel.",
    ],
    [
        "communication",
        "time",
        "Communication",
        "In calls that move data, waiting included.",
    ],
    [
        "handles",
        "communication",
        "Handles",
        "In calls that only manage handles.",
    ],
    [
        "synchronization",
        "time",
        "Synchronization",
        "In calls whose purpose is that ranks or threads meet, waiting included.",
    ],
    ["io", "time", "I/O", "In file operations, waiting included."],
];

/// A frame of a call path, or a call at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallNode {
    /// Position of the node above; absent of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// `run`, `frame`, `call`, or `rest` for all that is not listed. Below a frame, time after its calls that was
    /// no work: `blocked`, off the processor by itself; `preempted`, off it since others had it; `kernel`, in the kernel.
    pub kind: String,
    /// `function file:line` of a frame, the function of a call, in words what was no work, else "".
    pub name: String,
    /// Calls.
    pub calls: Amount<u64>,
    /// Time between start-up and shut-down. That of a frame alone is outside of calls: after a call
    /// that was made there, until the next one, as far as that was work or nobody knows.
    pub time_s: Amount<f64>,
    /// Time that patterns charge as waiting.
    pub waiting_s: Amount<f64>,
    /// Waiting of all ranks that started here; absent if root causes were not searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_s: Option<Amount<f64>>,
    /// Bytes that calls sent and received.
    pub bytes: Amount<u64>,
}

/// An amount at a node, all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amount<T> {
    /// With all nodes below.
    pub inclusive: T,
    /// Without them.
    pub exclusive: T,
    /// The inclusive amounts of single ranks; absent if there are none.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Spread<T>>,
}

impl Amount<u64> {
    /// The same in floating point.
    pub fn as_f64(&self) -> Amount<f64> {
        let all = |of: &Vec<u64>| of.iter().map(|&one| one as f64).collect();
        let spread = |spread: &Spread<u64>| Spread {
            min: spread.min as f64,
            median: spread.median as f64,
            max: spread.max as f64,
            max_rank: spread.max_rank,
            classes: all(&spread.classes),
            threads: spread.threads.iter().map(all).collect(),
        };
        Amount {
            inclusive: self.inclusive as f64,
            exclusive: self.exclusive as f64,
            ranks: self.ranks.as_ref().map(spread),
        }
    }
}

/// For types without a default.
fn none<T>() -> Option<Spread<T>> {
    None
}

/// Amounts of single ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread<T> {
    /// Least of a rank.
    pub min: T,
    /// Median.
    pub median: T,
    /// Most of a rank.
    pub max: T,
    /// The lowest rank with most.
    pub max_rank: u32,
    /// By class of successive ranks: mean of a rank.
    pub classes: Vec<T>,
    /// By class of ranks, and by class of threads: mean of a thread. Those at the end that have nothing are left out.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Vec<T>>,
}
