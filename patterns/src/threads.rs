//! Threads of a rank that wait for each other: which of them came late.

use crate::pattern::{Part, Pattern, Unit};

/// Condition and severity shared by all waits for the last thread of a team.
const LAST_CONDITION: &str = "another thread of the team entered later: enter < last";
const LAST_SEVERITY: &str = "min(last, leave) - enter, at each thread";

pub(crate) static WAIT_AT_OMP_BARRIER: Pattern = Pattern {
    id: "wait_at_omp_barrier",
    parent: "threads",
    name: "Wait at explicit OpenMP barrier",
    summary: "Threads waited in a barrier of their team for the last one to arrive.",
    description: "A barrier lasts until the last thread of the team has entered. All others wait \
        from their own entry until then. The reason is what the last thread did since the team was \
        together before. With GCC's runtime, the end of a loop with a static schedule within a \
        region is such a barrier, too.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_IMPLICIT_OMP_BARRIER: Pattern = Pattern {
    id: "wait_at_implicit_omp_barrier",
    parent: "threads",
    name: "Wait at implicit OpenMP barrier",
    summary: "Threads waited at the end of a region, loop or section for the last one to arrive.",
    description: "A parallel region ends when the last thread of its team is done, and so do loops \
        and sections without nowait. All others wait from their own end until then. The reason is \
        that the work was divided unequally, or that the last thread was slower.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static IDLE_THREADS: Pattern = Pattern {
    id: "idle_threads",
    parent: "threads",
    name: "Idle threads",
    summary: "Threads had nothing to do outside of parallel regions.",
    description: "Between parallel regions one thread goes on alone: it computes, communicates, or \
        waits for other ranks. The other threads of its team wait until it begins the next region, \
        or until the program ends.",
    condition: "the thread was done with a region before the next one began",
    severity: "begin of the next region, or enter of the shut-down - end of the last region, or begin \
        of the recording, at each thread that takes part in it",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static OMP_MANAGEMENT: Pattern = Pattern {
    id: "omp_management",
    parent: "threads",
    name: "OpenMP management",
    summary: "The OpenMP runtime took time to begin and end regions and barriers.",
    description: "The runtime makes a team of threads, wakes those that sleep, and lets all go on after a \
        barrier. Nobody is late then. That takes some microseconds where threads spin between regions, \
        tens where they sleep, and milliseconds where there are more threads than cores. Many short \
        regions cost most.",
    condition: "all threads of the team were there, or the region had been begun",
    severity: "leave - enter of the begin of a region; leave - enter(begin), at each thread that the region \
        needs; leave - last, at each thread in a barrier or at an end",
    unit: Unit::Seconds,
    part: Part::End,
};

/// Severity shared by all waits for a lock of the rank.
const HELD_SEVERITY: &str =
    "enter of the last unlock by another thread during the wait - enter(lock)";

pub(crate) static WAIT_ON_MUTEX: Pattern = Pattern {
    id: "wait_on_mutex",
    parent: "threads",
    name: "Wait on mutex",
    summary: "Threads waited for a mutex that other threads of their rank held.",
    description: "The thread wanted a mutex (pthread_mutex_lock; C11's and C++'s are the same), a \
        read-write lock, a spin lock, or a lock of OpenMP (omp_set_lock, omp_set_nest_lock) while others had it, one after another. Each holder has its share: the time until it gave the mutex \
        back, since the holder before did, or since the wait began. The reason is what a holder did \
        while it had the mutex, and how often threads want it.",
    condition: "another thread gave the mutex back during the wait",
    severity: HELD_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_CRITICAL: Pattern = Pattern {
    id: "wait_at_critical",
    parent: "threads",
    name: "Wait at critical section",
    summary: "Threads waited to enter a critical section of OpenMP that others were in.",
    description: "One thread at a time may be in a critical section of a name; all without a name are \
        one. Each thread that was in it meanwhile has its share: the time until it left, since the one \
        before did, or since the wait began.",
    condition: "another thread left the section during the wait",
    severity: "enter of the last end of the section by another thread during the wait - enter(begin)",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_ORDERED: Pattern = Pattern {
    id: "wait_at_ordered",
    parent: "threads",
    name: "Wait at ordered region",
    summary: "Threads waited in an ordered loop of OpenMP for the iterations before theirs.",
    description: "Threads go through the ordered regions of a loop in the order of its iterations. Each \
        thread that passed the turn on meanwhile has its share: the time until it did, since the one before \
        did, or since the wait began. With GCC's runtime, the turn passes when a thread is done with its \
        part of the iterations; with others, at the end of the region.",
    condition: "another thread passed the turn on during the wait",
    severity: "enter of the last passing on by another thread during the wait - enter(begin)",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_AT_THREAD_BARRIER: Pattern = Pattern {
    id: "wait_at_thread_barrier",
    parent: "threads",
    name: "Wait at thread barrier",
    summary: "Threads waited in pthread_barrier_wait for the last one to arrive.",
    description: "A barrier of POSIX threads lasts until as many threads have entered as it was made \
        for. All others wait from their own entry until the last one comes. The reason is what that \
        thread did since they were together before.",
    condition: LAST_CONDITION,
    severity: LAST_SEVERITY,
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_ON_SIGNAL: Pattern = Pattern {
    id: "wait_on_signal",
    parent: "threads",
    name: "Wait on condition",
    summary: "Threads waited for a condition or a semaphore that another thread signalled late.",
    description: "The thread waited until another one signalled a condition (pthread_cond_signal, \
        pthread_cond_broadcast; C++'s condition variables are the same) or posted a semaphore. The \
        last signal during the wait ended it: its thread is late. Threads of a pool wait like that for \
        work. A wait that timed out was for nobody.",
    condition: "another thread signalled during the wait, which did not time out",
    severity: "enter of the last signal during the wait - enter(wait)",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_FOR_TASKS: Pattern = Pattern {
    id: "wait_for_tasks",
    parent: "threads",
    name: "Wait for tasks",
    summary: "Threads waited for tasks of OpenMP that other threads executed.",
    description: "At a taskwait or at the end of a taskgroup, a thread executes tasks itself, and then \
        waits for those that others still execute. Whoever ended the last one is late. Tasks are too few or \
        too long, or the thread that makes them has made them too late.",
    condition: "another thread ended a task that the waiting one had made, during the wait; the wait \
        begins when its thread has executed the last task itself",
    severity: "end of the last such task - enter(wait)",
    unit: Unit::Seconds,
    part: Part::Begin,
};

pub(crate) static WAIT_FOR_THREAD: Pattern = Pattern {
    id: "wait_for_thread",
    parent: "threads",
    name: "Wait for the end of a thread",
    summary: "A thread waited in pthread_join for a thread that was not done yet.",
    description: "A join lasts until the other thread has ended. It is known whom the wait is for if that \
        thread was recorded: it called MPI, or others waited for it before.",
    condition: "the other thread ended after the join was entered",
    severity: "end of the other thread - enter(join)",
    unit: Unit::Seconds,
    part: Part::Begin,
};
