//! Time in calls that no other rank explains.

use crate::pattern::{Part, Pattern, Unit};

pub(crate) static UNEXPLAINED: Pattern = Pattern {
    id: "unexplained",
    parent: "lost",
    name: "Unexplained",
    summary: "Calls took longer than they cost, and no pattern says why.",
    description: "What is left of the time in calls beyond what patterns charge and beyond what \
        the calls cost. With more ranks than processors it probably is waiting for a processor; \
        else data still under way, the network, another job, or a process without a trace. \
        In OpenSHMEM also a single wait, or looks, for a value that no recorded call wrote (shmem_ptr), for a \
        lock that nobody held, or a slow transfer that met nobody. Of waits among threads those that no recorded \
        thread ended: for a lock that another process has, or a thread without a recording.",
    condition: "the calls of an operation at a place took longer, all together, than what \
        patterns charge there and what they may cost: 1.5 times what the baseline table says, or \
        else twice the fastest of the kind in the run",
    severity: "time in the calls - what patterns charge - calls x cost. Single waits for a value, \
        a lock or a thread: leave - enter; transfers: what they took longer than expected",
    unit: Unit::Seconds,
    part: Part::Unknown,
};

pub(crate) static WITHOUT_PROCESSOR: Pattern = Pattern {
    id: "without_processor",
    parent: "lost",
    name: "Without a processor",
    summary: "Calls took longer since other programs, ranks or threads had the processor.",
    description: "What would be unexplained otherwise, as far as the rank was ready to run in these \
        calls and others had its processor, and nobody was late. Libraries that yield their \
        processor in waits are off it there, too: that is waiting, and not counted here.",
    condition: "the collector noted in calls of an operation at a place that others had the \
        processor, for longer than the waits of these calls explain",
    severity: "that time, and at most what would be unexplained. Found together with root causes",
    unit: Unit::Seconds,
    part: Part::End,
};

pub(crate) static STORAGE: Pattern = Pattern {
    id: "storage",
    parent: "lost",
    name: "Storage",
    summary: "File operations took longer in the file system, while nobody was late.",
    description: "What would be unexplained otherwise, as far as the rank was asleep in these \
        operations, or in the kernel, and did not wait for another rank: the file system, its \
        network and its devices take that time, and copying to and from the kernel.",
    condition: "the collector noted in file operations at a place that the rank was asleep or in \
        the kernel, for longer than the waits of these operations explain",
    severity: "that time, and at most what would be unexplained. Found together with root causes",
    unit: Unit::Seconds,
    part: Part::End,
};

pub(crate) static PARTNER_WITHOUT_TRACE: Pattern = Pattern {
    id: "partner_without_trace",
    parent: "lost",
    name: "Partner without a trace",
    summary: "A call needed a rank whose trace is missing or ends before.",
    description: "Nobody knows when that rank came. What the call took beyond other waiting may be \
        waiting for it: who started that is not known, and what others waited for this call ends \
        here, too. Record all ranks, until the end of the program, to learn more.",
    condition: "a call received a message of which no send is recorded, or took part in a \
        collective of which not all members are",
    severity: "leave - max(enter, what other patterns charge until); of a collective until the \
        first member left",
    unit: Unit::Seconds,
    part: Part::Within,
};
