//! What hints are about.

use crate::PatternId;

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A finding of this pattern.
    Finding(PatternId),
    /// A root cause with this activity.
    Root(Activity),
}

impl From<PatternId> for Subject {
    fn from(pattern: PatternId) -> Subject {
        Subject::Finding(pattern)
    }
}

impl From<Activity> for Subject {
    fn from(activity: Activity) -> Subject {
        Subject::Root(activity)
    }
}

/// The activity of a root cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Outside of calls.
    Computation,
    /// A file operation.
    Io,
    /// Any other call, without its own waiting.
    Call,
    /// The wait was longer than all that the late rank did longer.
    Latency,
    /// Between two calls or in one, off the processor by itself: asleep, or waiting for a device or a lock.
    Blocked,
    /// The same, since others had it.
    Preempted,
    /// The same, in the kernel.
    Kernel,
}

impl Activity {
    /// All.
    pub const ALL: [Activity; 7] = [
        Activity::Computation,
        Activity::Io,
        Activity::Call,
        Activity::Latency,
        Activity::Blocked,
        Activity::Preempted,
        Activity::Kernel,
    ];

    /// The word in reports and rules.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Computation => "computation",
            Activity::Io => "io",
            Activity::Call => "call",
            Activity::Latency => "latency",
            Activity::Blocked => "blocked",
            Activity::Preempted => "preempted",
            Activity::Kernel => "kernel",
        }
    }

    /// The activity with this name.
    pub fn from_name(name: &str) -> Option<Activity> {
        let mut all = Activity::ALL.into_iter();
        all.find(|activity| activity.name() == name)
    }
}
