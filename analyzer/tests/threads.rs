//! Waits among the threads of a rank, on traces made in memory.

use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;
use laggard_export::Choice;

use crate::per_rank::read;
use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_report::{Bottleneck, ParallelRegion, Report, words};
use laggard_trace::calls::number;
use laggard_trace::{Extension, PEER_NONE, Record, Signature};

const MS: u64 = 1_000_000;

/// A call of a thread, with what it waits for or is.
fn call(
    calls: &mut Calls,
    (line, operation): (u32, u16),
    (key, parameter): (u64, i64),
    (enter, leave): (u64, u64),
) {
    let signature = Signature {
        operation,
        parameter,
        ..Signature::default()
    };
    let key = Record::extension_u64(Extension::Value, key);
    calls.extended(line, signature, &[key], (enter * MS, leave * MS));
}

/// One rank with so many threads, of which the first one starts MPI.
fn threads(count: u32) -> Vec<Calls> {
    let mut all: Vec<Calls> = (0..count).map(|thread| Calls::new(0, thread, 1)).collect();
    all[0].call(1, init(), 0, MS);
    all
}

/// The report, by one, two and three agents and whatever rounds they have.
fn report(mut all: Vec<Calls>, end: u64) -> Report {
    all[0].call(99, finalize(), end * MS, (end + 1) * MS);
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    analyze_by_agents(all, &options, [None, Some(2), Some(3)])
}

/// Lines of the late calls of a pattern's first finding, with the time lost to them, ms.
fn causes(report: &Report, pattern: &str) -> Vec<(u32, i64)> {
    let found = report.bottlenecks.iter().find(|b| b.pattern == pattern);
    let causes = found.into_iter().flat_map(|found| &found.causes);
    let mut causes: Vec<(u32, i64)> = causes
        .map(|cause| (cause.location.line, (cause.severity_s * 1e3).round() as i64))
        .collect();
    causes.sort_unstable();
    causes
}

fn lost(report: &Report, pattern: &str) -> i64 {
    total(report, pattern) / MS as i64
}

/// Time in calls that nothing explains, ms.
fn unexplained(report: &Report) -> i64 {
    let calls = report.location_sums.as_ref().unwrap().in_calls.unwrap();
    (calls.unexplained_s * 1e3).round() as i64
}

/// All that come late to a barrier share the time in which they are missing.
#[test]
fn teams_wait_for_all_that_are_late() {
    let mut all = threads(3);
    for (meeting, enters) in [(1, [10, 20, 30]), (2, [40, 40, 40])] {
        let leave = *enters.iter().max().unwrap();
        for (line, (thread, enter)) in (10..).zip(all.iter_mut().zip(enters)) {
            let key = (5 << 24 | meeting, 3);
            call(thread, (line, number::omp_barrier), key, (enter, leave));
        }
    }
    let report = report(all, 50);
    assert_eq!(lost(&report, "wait_at_omp_barrier"), 20 + 10);
    // Of the first thread's wait.
    assert_eq!(causes(&report, "wait_at_omp_barrier"), [(11, 5), (12, 15)]);
    assert_eq!(lost(&report, "wait_at_implicit_omp_barrier"), 0);
    assert_eq!(lost(&report, "omp_management"), 0);
}

/// Time in a barrier after the last thread has come is the runtime's.
#[test]
fn the_runtime_takes_time_when_all_are_there() {
    let mut all = threads(2);
    for (thread, (enter, leave)) in all.iter_mut().zip([(10, 23), (20, 25)]) {
        let key = (5 << 24 | 1, 2);
        call(thread, (10, number::omp_barrier), key, (enter, leave));
    }
    let report = report(all, 50);
    assert_eq!(lost(&report, "wait_at_omp_barrier"), 10);
    assert_eq!(lost(&report, "omp_management"), 3 + 5);
    assert_eq!(causes(&report, "omp_management"), []);
}

/// Who is missing was not recorded: nobody knows whom the others waited for.
#[test]
fn incomplete_meetings_are_charged_to_nobody() {
    let mut all = threads(2);
    for (thread, enter) in all.iter_mut().zip([10, 20]) {
        call(
            thread,
            (10, number::omp_barrier),
            (5 << 24 | 1, 3),
            (enter, 30),
        );
    }
    assert_eq!(lost(&report(all, 50), "wait_at_omp_barrier"), 0);
}

#[test]
fn threads_idle_until_a_region_or_the_end() {
    let mut all = threads(2);
    call(
        &mut all[0],
        (10, number::omp_parallel),
        (6 << 24, 2),
        (15, 16),
    );
    call(&mut all[1], (20, number::omp_idle), (6 << 24, 0), (2, 17));
    let end = (6 << 24 | 0xff_ffff, 2);
    call(&mut all[0], (11, number::omp_parallel_end), end, (30, 32));
    call(&mut all[1], (21, number::omp_parallel_end), end, (32, 32));
    call(&mut all[1], (22, number::omp_idle), (0, 0), (32, 51));
    let report = report(all, 50);
    assert_eq!(lost(&report, "wait_at_implicit_omp_barrier"), 2);
    assert_eq!(lost(&report, "idle_threads"), 13 + 18);
    // The begin at the first thread, and until the second one had it.
    assert_eq!(lost(&report, "omp_management"), 1 + 2);
    // Threads wait, which work can be given to: there may be no other rank.
    let roots = report.root_causes.as_ref().unwrap();
    let computed = roots.iter().find(|root| root.activity == "computation");
    let hints = &computed.unwrap().hints;
    assert!(
        hints[0].contains("to the rank's other threads"),
        "{hints:?}"
    );
}

/// A call in a region has it around it; one after it has none.
#[test]
fn calls_have_the_region_around_them() {
    let rank = |rank: u32| {
        let mut threads: Vec<Calls> = (0..2).map(|thread| Calls::new(rank, thread, 2)).collect();
        threads[0].call(1, init(), 0, MS);
        let begins = [(number::omp_parallel, 2), (number::omp_idle, 1 << 32 | 2)];
        for (thread, (begin, part)) in threads.iter_mut().zip(begins) {
            call(thread, (10, begin), (6 << 24, part), (1, 2));
        }
        let moved = |line: i32| match rank {
            0 => send(number::MPI_Send, 1, line),
            _ => receive(number::MPI_Recv, 0, line),
        };
        let enter = |late, early| MS * [late, early][rank as usize];
        threads[1].call(20, moved(20), enter(20, 3), 21 * MS);
        for (thread, member) in threads.iter_mut().zip(0..) {
            let end = (6 << 24 | 0xff_ffff, member << 32 | 2);
            call(thread, (11, number::omp_parallel_end), end, (30, 32));
        }
        threads[0].call(30, moved(30), enter(40, 33), 41 * MS);
        threads[0].call(99, finalize(), 50 * MS, 51 * MS);
        threads
    };
    let all = (0..2).flat_map(rank).collect();
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(all, &options, [None, Some(2), Some(3)]);
    let region = |line: u32| {
        let late = |found: &&Bottleneck| found.pattern == "late_sender";
        let mut found = report.bottlenecks.iter().filter(late);
        let found = found.find(|found| found.location.line == line).unwrap();
        let rows = |rows: &[ParallelRegion]| -> Vec<(u32, u32, String)> {
            let rows = rows.iter();
            rows.map(|row| (row.line, row.threads, row.thread_set.clone()))
                .collect()
        };
        let cause = &found.causes[0].parallel_regions;
        (rows(&found.parallel_regions), rows(cause))
    };
    let inside = vec![(10, 2, "1".to_owned())];
    assert_eq!(region(20), (inside.clone(), inside));
    assert_eq!(region(30), (Vec::new(), Vec::new()));
}

/// A late thread is told by its number, also where threads before it have no file.
#[test]
fn late_threads_have_their_numbers() {
    let ranks = || {
        let mut all: Vec<Calls> = [(0, 0), (1, 0), (1, 3), (2, 0)]
            .map(|(rank, thread)| Calls::new(rank, thread, 3))
            .into();
        for at in [0, 1, 3] {
            all[at].call(1, init(), 0, MS);
        }
        for (at, enter) in [(0, 10), (2, 30), (3, 20)] {
            for (line, operation, root) in [
                (20, number::MPI_Barrier, PEER_NONE),
                (21, number::MPI_Reduce, 0),
            ] {
                let enter = enter + if line == 21 { 40 } else { 0 };
                let leave = if line == 21 { 71 } else { 31 };
                all[at].collective(line, operation, root, enter * MS, leave * MS);
            }
        }
        for at in [0, 1, 3] {
            all[at].call(99, finalize(), 90 * MS, 91 * MS);
        }
        all
    };
    for charge_last in [false, true] {
        let mut options = AnalyzeOptions {
            charge_last,
            ..AnalyzeOptions::default()
        };
        options.settings.all = true;
        let report = analyze_by_agents(ranks(), &options, [None, Some(2), Some(3)]);
        let found = report
            .bottlenecks
            .iter()
            .filter(|found| [20, 21].contains(&found.location.line));
        let causes = found
            .flat_map(|found| &found.causes)
            .filter(|cause| cause.rank == 1);
        let threads: Vec<_> = causes.map(|cause| cause.thread).collect();
        assert!(
            threads.len() >= 2 && threads.iter().all(|thread| *thread == Some(3)),
            "{threads:?}"
        );
    }
}

/// Each holder has the time until it gave the lock back, since the one before did. What the waiting
/// thread gives back itself, and what is given back later, does not count.
#[test]
fn locks_are_waited_for_in_turns() {
    // A thread without a file, as where none could be made, leaves a gap in the numbers.
    let mut all = threads(2);
    all.push(Calls::new(0, 3, 1));
    let mut unlock = |thread: usize, line, at| {
        let lock = (7, 0);
        call(
            &mut all[thread],
            (line, number::pthread_mutex_unlock),
            lock,
            (at, at),
        );
    };
    unlock(0, 10, 5);
    unlock(0, 11, 20);
    unlock(2, 12, 35);
    unlock(2, 13, 45);
    let lock = (7, 0);
    call(
        &mut all[1],
        (20, number::pthread_mutex_lock),
        lock,
        (10, 40),
    );
    call(
        &mut all[1],
        (21, number::pthread_mutex_unlock),
        lock,
        (41, 41),
    );
    // Another lock, which nobody gives back.
    call(
        &mut all[1],
        (22, number::pthread_mutex_lock),
        (8, 0),
        (42, 44),
    );
    let report = report(all, 50);
    assert_eq!(lost(&report, "wait_on_mutex"), 25);
    assert_eq!(causes(&report, "wait_on_mutex"), [(11, 10), (12, 15)]);
    let mut found = report.bottlenecks.iter();
    let found = found
        .find(|found| found.pattern == "wait_on_mutex")
        .unwrap();
    let late = found.causes.iter();
    let late: Vec<_> = late.map(|one| (one.location.line, one.thread)).collect();
    assert_eq!(late, [(12, Some(3)), (11, Some(0))]);
    // Who waited has a number, too.
    assert_eq!(
        (&*found.thread_set, &*found.ranks[0].thread_set),
        ("1", "1")
    );
    assert_eq!(found.worst_instance.as_ref().unwrap().thread, Some(1));
    assert_eq!(words::ranks(found, 8), "thread 1 of rank 0");
    // Nobody is known to have held the other lock. That is no cost of the call.
    assert_eq!(unexplained(&report), 2);
}

/// Who gives a lock back may tell so when another one has it already: the last one during a wait is charged all the
/// same.
#[test]
fn locks_may_be_given_back_before_it_is_told() {
    let mut all = threads(3);
    let mut call = |thread: usize, line, operation, key, [enter, leave]: [u64; 2]| {
        let signature = Signature {
            operation,
            ..Signature::default()
        };
        let key = Record::extension_u64(Extension::Value, key);
        all[thread].extended(line, signature, &[key], (enter * 1_000, leave * 1_000));
    };
    let (take, give) = (number::omp_critical, number::omp_critical_end);
    call(1, 20, take, 7, [10_000, 40_000]);
    call(0, 10, give, 7, [20_000; 2]);
    call(2, 11, give, 7, [40_001; 2]);
    // The one before ended this wait: who comes then was in it for no time.
    call(1, 21, take, 8, [50_000, 60_000]);
    call(0, 12, give, 8, [59_950; 2]);
    call(2, 13, give, 8, [60_050; 2]);
    let report = report(all, 70);
    let lines: Vec<_> = report.bottlenecks.iter().flat_map(|b| &b.causes).collect();
    let mut lines: Vec<_> = lines
        .iter()
        .map(|late| (late.location.line, (late.severity_s * 1e3).round()))
        .collect();
    lines.sort_unstable_by_key(|(line, _)| *line);
    assert_eq!(lines, [(10, 10.0), (11, 20.0), (12, 10.0)]);
}

/// The last signal ends a wait; one that timed out is for nobody.
#[test]
fn signals_end_waits() {
    let mut all = threads(2);
    for (line, at) in [(10, 15), (11, 38)] {
        let signal = (line, number::pthread_cond_signal);
        call(&mut all[0], signal, (7, 0), (at, at));
    }
    let wait = (20, number::pthread_cond_wait);
    call(&mut all[1], wait, (7, 0), (10, 40));
    call(&mut all[1], wait, (9, 1), (41, 45));
    call(
        &mut all[0],
        (12, number::pthread_cond_signal),
        (9, 0),
        (44, 44),
    );
    let report = report(all, 50);
    assert_eq!(lost(&report, "wait_on_signal"), 28);
    assert_eq!(causes(&report, "wait_on_signal"), [(11, 28)]);
}

/// The last task that another thread has ended during the wait is the one that it was for.
#[test]
fn waits_for_tasks_are_charged_to_the_last_one() {
    let mut all = threads(3);
    let end = |line| (line, number::omp_task_end);
    call(&mut all[0], (10, number::omp_taskwait), (7, 0), (10, 40));
    call(&mut all[1], end(20), (7, 0), (15, 15));
    call(&mut all[2], end(21), (7, 0), (38, 38));
    // A near miss: tasks that another one has made, and those of its own thread.
    call(&mut all[1], end(22), (8, 0), (39, 39));
    call(
        &mut all[0],
        (11, number::omp_taskgroup_end),
        (9, 0),
        (50, 60),
    );
    call(&mut all[0], end(23), (9, 0), (61, 61));
    let report = report(all, 70);
    assert_eq!(lost(&report, "wait_for_tasks"), 28);
    assert_eq!(causes(&report, "wait_for_tasks"), [(21, 28)]);
    assert_eq!(unexplained(&report), 0);
}

/// Threads that compute unequally before they meet are told, by rank.
#[test]
fn uneven_threads_are_told() {
    let mut all = threads(2);
    for (at, enter) in [(0, 10), (1, 30)] {
        let before = (5, number::omp_barrier);
        call(&mut all[at], before, (5 << 24 | 7, 2), (2, 4));
        let barrier = (10, number::omp_barrier);
        call(&mut all[at], barrier, (5 << 24 | 1, 2), (enter, 30));
    }
    let report = report(all, 40);
    let rows = &report.thread_imbalance;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!((&*row.before, row.location.line), ("omp_barrier", 10));
    assert_eq!((row.threads, row.worst_rank, row.worst_thread), (2, 0, 1));
    let ms = [row.mean_s, row.max_s, row.overload_s].map(|time| (time * 1e3).round() as i64);
    assert_eq!(ms, [16, 26, 10]);
}

/// Of a thread that comes last since it slept it is said so.
#[test]
fn who_sleeps_does_not_compute_most() {
    for asleep in [0, 20] {
        let mut all = threads(2);
        for (at, enter) in [(0, 10), (1, 30)] {
            let before = (5, number::omp_barrier);
            call(&mut all[at], before, (5 << 24 | 7, 2), (2, 4));
            all[at].is_off([at as u64 * asleep * MS, 0, 0]);
            // It was asleep before another call.
            call(
                &mut all[at],
                (6, number::pthread_mutex_unlock),
                (9, 0),
                (enter, enter),
            );
            let barrier = (10, number::omp_barrier);
            call(&mut all[at], barrier, (5 << 24 | 1, 2), (enter, 30));
        }
        let report = report(all, 40);
        let row = &report.thread_imbalance[0];
        assert_eq!((row.worst_thread, row.before.as_str()), (1, "omp_barrier"));
        let is_asleep = asleep > 0;
        assert_eq!(row.max_off_s, is_asleep.then_some(0.020));
        let who = words::busiest_thread(row);
        assert_eq!(who.contains("off the processor for"), is_asleep, "{who}");
        let advice = words::share_among_threads(&report).expect("advice");
        assert_eq!(
            advice.contains("see first why thread 1 of rank 0"),
            is_asleep,
            "{advice}"
        );
    }
}

/// A near miss: both compute as long until they meet, one of them with a call in between.
#[test]
fn calls_between_meetings_make_nobody_uneven() {
    let mut all = threads(2);
    let lock = (6, number::pthread_mutex_lock);
    for at in [0, 1] {
        let before = (5, number::omp_barrier);
        call(&mut all[at], before, (5 << 24 | 7, 2), (2, 4));
        if at == 1 {
            call(&mut all[at], lock, (9, 0), (20, 20));
        }
        let barrier = (10, number::omp_barrier);
        call(&mut all[at], barrier, (5 << 24 | 1, 2), (30, 30));
    }
    let report = report(all, 40);
    assert_eq!(report.thread_imbalance, []);
}

/// A rank waits for another one whose first thread waits for its second: that is the root.
#[test]
fn chains_go_through_threads_and_ranks() {
    let mut all: Vec<Calls> = [(0, 0), (0, 1), (1, 0)]
        .map(|(rank, thread)| Calls::new(rank, thread, 2))
        .into();
    let key = (5 << 24 | 1, 2);
    for at in [0, 2] {
        all[at].call(1, init(), 0, MS);
    }
    for (at, enter) in [(0, 10), (1, 30)] {
        let barrier = (10 + at as u32, number::omp_barrier);
        call(&mut all[at], barrier, key, (enter, 30));
    }
    for (at, enter) in [(0, 30), (2, 5)] {
        all[at].collective(20, number::MPI_Barrier, -1, enter * MS, 30 * MS);
        all[at].call(99, finalize(), 31 * MS, 32 * MS);
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(all, &options, [None, Some(2), Some(3)]);
    assert_eq!(lost(&report, "wait_at_barrier"), 25);
    assert_eq!(lost(&report, "wait_at_omp_barrier"), 20);
    let root = &report.root_causes.as_ref().unwrap()[0];
    assert_eq!((&*root.rank_set, &*root.thread_set), ("0", "1"));
    assert_eq!(root.until.as_ref().unwrap().location.line, 11);
    let waiting = |pattern: &str| {
        let mut victims = root.victims.iter();
        let victim = victims.find(|victim| victim.pattern == pattern).unwrap();
        (&*victim.rank_set, &*victim.thread_set)
    };
    assert_eq!(waiting("wait_at_omp_barrier"), ("0", "0"));
    assert_eq!(waiting("wait_at_barrier"), ("1", ""));
    // The team's wait, and what of the rank's comes of it.
    assert_eq!((root.direct_s * 1e3).round(), 20.0);
    assert!(root.indirect_s > 0.015, "{root:?}");
    assert_eq!(root.gain_s, None);
}

/// Root causes: thread sets and lines of the calls that were late, with their costs, ms.
fn roots(report: &Report) -> Vec<(&str, u32, i64)> {
    let roots = report.root_causes.iter().flatten();
    let roots = roots.map(|root| {
        let line = root.until.as_ref().map_or(0, |until| until.location.line);
        (
            &*root.thread_set,
            line,
            (root.severity_s * 1e3).round() as i64,
        )
    });
    roots.filter(|(_, _, cost)| *cost > 0).collect()
}

/// Pairs of threads wait in one place: each root cause names the thread that waited for it.
#[test]
fn victims_are_the_threads_that_waited_for_that_cause() {
    let mut all = threads(70);
    for (lock, (holder, waiter), until) in [(7, (1, 2), 30), (8, (3, 68), 45)] {
        let give = (10 + holder as u32, number::pthread_mutex_unlock);
        call(&mut all[holder], give, (lock, 0), (until, until));
        let take = (20, number::pthread_mutex_lock);
        call(&mut all[waiter], take, (lock, 0), (10, until));
    }
    let report = report(all, 50);
    let roots = report.root_causes.iter().flatten();
    let waiting = roots.filter_map(|root| {
        let victim = root.victims.first()?;
        Some((&*root.thread_set, &*victim.thread_set))
    });
    let mut waiting: Vec<_> = waiting.collect();
    waiting.sort_unstable();
    assert_eq!(waiting, [("1", "2"), ("3", "68")]);
    let found = report
        .bottlenecks
        .iter()
        .find(|found| found.pattern == "wait_on_mutex");
    assert_eq!(found.unwrap().thread_set, "2,68");
}

/// Threads that came to a barrier in turns, with the key of each: who meets whom changes.
fn barriers(all: &mut [Calls], meetings: &[(u64, &[(usize, u64)])]) {
    for (key, enters) in meetings {
        let leave = enters.iter().map(|(_, enter)| *enter).max().unwrap_or(0);
        for &(thread, enter) in *enters {
            let barrier = (10 + thread as u32, number::pthread_barrier_wait);
            let key = (*key, enters.len() as i64);
            call(&mut all[thread], barrier, key, (enter, leave));
        }
    }
}

/// Two threads meet at a barrier of theirs. What the late one did there makes its partner late for a third thread,
/// which was not there.
#[test]
fn a_meeting_of_two_is_none_with_a_third() {
    let mut all = threads(3);
    let together = [(0, 10), (1, 10), (2, 10)];
    let meetings: [(u64, &[(usize, u64)]); 3] = [
        (1, &together),
        (2, &[(0, 10), (1, 40)]),
        (1, &[(0, 40), (1, 40), (2, 10)]),
    ];
    barriers(&mut all, &meetings);
    let report = report(all, 50);
    assert_eq!(lost(&report, "wait_at_thread_barrier"), 60);
    assert_eq!(roots(&report), [("1", 11, 60)]);
}

/// Barriers at one address may have other threads each time: only those that came have met. What was before a
/// meeting without any waits is settled.
#[test]
fn who_met_is_who_came_to_that_meeting() {
    let mut all = threads(3);
    let together = [(0, 10), (1, 10), (2, 10)];
    let meetings: [(u64, &[(usize, u64)]); 5] = [
        (1, &together),
        (2, &[(0, 10), (1, 40)]),
        (2, &[(1, 42), (2, 42)]),
        (1, &[(0, 44), (1, 44), (2, 44)]),
        (1, &[(0, 64), (1, 46), (2, 46)]),
    ];
    barriers(&mut all, &meetings);
    let report = report(all, 70);
    assert_eq!(lost(&report, "wait_at_thread_barrier"), 30 + 36);
    assert_eq!(roots(&report), [("", 10, 36), ("1", 11, 30)]);
}

/// The table of waits among threads says what each is for, and so does the time line.
#[test]
fn exports_tell_teams_and_locks() {
    let directory = tempfile::tempdir().unwrap();
    let mut all = threads(2);
    for (member, enter) in [(0, 10), (1, 20)] {
        let team = (5 << 24 | 3, i64::from(member) << 32 | 2);
        let thread = &mut all[member as usize];
        call(thread, (10, number::omp_barrier), team, (enter, 20));
    }
    call(
        &mut all[1],
        (20, number::pthread_mutex_lock),
        (0x7f01, 0),
        (30, 35),
    );
    call(
        &mut all[1],
        (21, number::pthread_cond_wait),
        (0x7f40, 1),
        (36, 38),
    );
    all[0].call(99, finalize(), 50 * MS, 51 * MS);
    all.iter_mut()
        .for_each(|calls| calls.write(directory.path()));
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory.path(), &options).unwrap();
    let report = analysis.unwrap().report;
    let events = Events::open(directory.path()).unwrap();
    let line = directory.path().join("line");
    laggard_export::perfetto(&events, &report, &Choice::default(), &line).unwrap();
    let mut bytes = Vec::new();
    let mut line = GzDecoder::new(File::open(line).unwrap());
    line.read_to_end(&mut bytes).unwrap();
    for text in ["team", "member", "meeting", "0x7f01", "0x7f40", "timed out"] {
        let bytes = bytes.windows(text.len());
        assert!(
            bytes.clone().any(|found| found == text.as_bytes()),
            "{text}"
        );
    }
    let tables = directory.path().join("tables");
    let format = laggard_export::TableFormat::Parquet;
    laggard_export::tables(&events, &report, format, &tables).unwrap();
    let rows = read(&tables.join("threads.parquet"));
    let cells = |columns: [&str; 7]| -> Vec<String> {
        let rows = rows.iter();
        let told = rows.map(|row| columns.map(|column| row[column].to_string()).join(" "));
        told.collect()
    };
    let columns = [
        "thread",
        "team",
        "threads",
        "member",
        "meeting",
        "object",
        "timed_out",
    ];
    assert_eq!(
        cells(columns),
        [
            "0 5 2 0 3 null false",
            "1 5 2 1 3 null false",
            "1 null null null null \"7f01\" false",
            "1 null null null null \"7f40\" true",
        ]
    );
}
