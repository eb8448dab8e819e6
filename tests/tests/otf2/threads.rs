//! Archives with OpenMP, as Score-P writes them, with times known to the nanosecond.

use laggard_tests::archive::Archive;
use laggard_tests::product::Bench;
use laggard_tests::report::Report;

use super::found;

/// Two ranks with two threads each.
const TEAMS: [(&str, [u32; 2]); 2] = [("first", [0, 10]), ("second", [1, 11])];
/// ns between the beginnings of two regions.
const PERIOD: u64 = 100_000_000;

/// A thread's part in a region: events at times in µs since its begin, and when it comes to the end.
type Part<'a> = (&'a [(u64, &'a str)], u64);

/// A finding: pattern, operation, µs, rank.
type Expected = (&'static str, &'static str, u64, u32);

struct Scene {
    archive: Archive,
    regions: u64,
}

impl Scene {
    fn new() -> Scene {
        let mut archive = Archive::new(2);
        archive.line("region main app.c 3");
        for (rank, line) in [(0, "thread 10 0"), (1, "thread 11 1")] {
            archive.line(line);
            archive.event(rank, 0, "program_begin ./app");
            archive.call((rank, "MPI_Init", (0, 1_000), &[]));
            archive.event(rank, 1_000, "enter main");
        }
        for (name, [a, b]) in TEAMS {
            archive.line(&format!("team {name} {a},{b}"));
        }
        Scene {
            archive,
            regions: 0,
        }
    }

    /// A parallel region of the team of `rank`, with both threads' parts. It is over 10 µs after the
    /// last one has come to its end.
    fn region(&mut self, rank: u32, parts: [Part<'_>; 2]) {
        self.regions += 1;
        let begin = PERIOD * self.regions;
        let (team, locations) = TEAMS[rank as usize];
        let line = 10 * self.regions;
        let parallel = format!("parallel{line}");
        self.archive
            .line(&format!("construct {parallel} parallel app.c {line}"))
            .line(&format!(
                "construct end{line} implicit_barrier app.c {}",
                line + 9
            ));
        let last = parts.iter().map(|part| part.1).max().unwrap_or(0);
        let over = begin + (last + 10) * 1_000;
        for (location, (events, ends)) in locations.into_iter().zip(parts) {
            let archive = &mut self.archive;
            if location == locations[0] {
                archive.event(location, begin, "fork 2");
            }
            archive.event(location, begin, &format!("team_begin {team}"));
            archive.event(location, begin, &format!("enter {parallel}"));
            for (at, what) in events {
                archive.event(location, begin + at * 1_000, what);
            }
            archive.event(location, begin + ends * 1_000, &format!("enter end{line}"));
            archive.event(location, over, &format!("leave end{line}"));
            archive.event(location, over, &format!("leave {parallel}"));
            archive.event(location, over, &format!("team_end {team}"));
            if location == locations[0] {
                archive.event(location, over, "join");
            }
        }
    }

    /// What is reported, but for idle threads, which all scenes have, and what the runtime took.
    fn finds(mut self, name: &str, expected: &[Expected]) -> Report {
        let end = PERIOD * (self.regions + 1);
        for rank in 0..2 {
            self.archive.event(rank, end, "leave main");
            self.archive
                .call((rank, "MPI_Finalize", (end, end + 1_000), &[]));
        }
        let bench = Bench::sharing(&format!("otf2-threads-{name}"));
        let report = bench.analyze_all(&self.archive.write(&bench, "archive"));
        let report = Report::parse(&report).expect("a report");
        let rows = found(&report).into_iter();
        let rows = rows.filter(|row| !["idle_threads", "omp_management"].contains(&row.0.as_str()));
        let rows: Vec<_> = rows
            .map(|(pattern, operation, _, ns, ranks)| (pattern, operation, ns, ranks))
            .collect();
        let mut own: Vec<_> = expected
            .iter()
            .map(|&(pattern, operation, us, rank)| {
                (
                    pattern.to_owned(),
                    operation.to_owned(),
                    us * 1_000,
                    vec![rank],
                )
            })
            .collect();
        own.sort();
        assert_eq!(rows, own);
        assert!(report.anomalies.is_empty(), "{:?}", report.anomalies);
        report
    }
}

/// Threads wait for each other at the end of a region, of a construct in it, and at barriers; those of
/// the other rank come at the same time.
#[test]
fn threads_of_a_team_wait_for_each_other() {
    let mut scene = Scene::new();
    scene.region(0, [(&[], 20_000), (&[], 50_000)]);
    scene.region(1, [(&[], 50_000), (&[], 50_000)]);
    scene
        .archive
        .line("construct loop for app.c 31")
        .line("construct loop_end implicit_barrier app.c 33")
        .line("construct sections sections app.c 41")
        .line("construct sections_end implicit_barrier app.c 44")
        .line("construct barrier barrier app.c 35");
    let meets = |first: u64| {
        [
            (0, "enter loop"),
            (first, "leave loop"),
            (first, "enter loop_end"),
            (30_000, "leave loop_end"),
            (45_000 - first / 2, "enter barrier"),
            (40_000, "leave barrier"),
            // The barrier of a construct may lie in it, as one of Score-P's adapters has it.
            (41_000, "enter sections"),
            (41_000 + first, "enter sections_end"),
            (71_000, "leave sections_end"),
            (71_000, "leave sections"),
        ]
    };
    scene.region(1, [(&meets(30_000), 80_000), (&meets(10_000), 80_000)]);
    let report = scene.finds(
        "teams",
        &[
            (
                "wait_at_implicit_omp_barrier",
                "omp_parallel_end",
                30_000,
                0,
            ),
            ("wait_at_implicit_omp_barrier", "omp_loop_end", 20_000, 1),
            (
                "wait_at_implicit_omp_barrier",
                "omp_sections_end",
                20_000,
                1,
            ),
            ("wait_at_omp_barrier", "omp_barrier", 10_000, 1),
        ],
    );
    let at_end = report.bottlenecks.iter();
    let mut at_end = at_end.filter(|found| found.operation == "omp_parallel_end");
    let place = &at_end.next().expect("just found").location;
    assert!(
        place.is("app.c", 19) && place.leads_over("app.c", 10),
        "{place:?}"
    );
    assert_eq!(place.function.as_deref(), Some("!$omp implicit barrier"));
}

/// Who wants what another thread holds waits for it; what is free costs nothing.
#[test]
fn locks_are_charged_to_their_holders() {
    let mut scene = Scene::new();
    scene
        .archive
        .line("construct critical critical app.c 12")
        .line("construct body critical_sblock app.c 12")
        .line("construct set omp_set_lock omp.h 0")
        .line("construct unset omp_unset_lock omp.h 0");
    let critical = |enters: u64, from: u64, order: &str| {
        let until = from + 15_000;
        let names = [format!("acquire 5 {order}"), format!("release 5 {order}")];
        (names, [enters, from, until])
    };
    let ([a1, r1], [e1, f1, u1]) = critical(1_000, 1_000, "1");
    let ([a2, r2], [e2, f2, u2]) = critical(4_000, 16_001, "2");
    fn section<'a>((e, f, u): (u64, u64, u64), a: &'a str, r: &'a str) -> [(u64, &'a str); 6] {
        [
            (e, "enter critical"),
            (f, a),
            (f, "enter body"),
            (u, "leave body"),
            (u, r),
            (u, "leave critical"),
        ]
    }
    let first = section((e1, f1, u1), &a1, &r1);
    let second = section((e2, f2, u2), &a2, &r2);
    scene.region(0, [(&first, 60_000), (&second, 60_000)]);
    let lock = |enters: u64, from: u64| {
        [
            (enters, "enter set"),
            (from, "acquire 6 1"),
            (from, "leave set"),
            (from + 20_000, "enter unset"),
            (from + 20_000, "release 6 1"),
            (from + 20_000, "leave unset"),
        ]
    };
    scene.region(
        0,
        [
            (&lock(1_000, 21_001), 60_000),
            (&lock(1_000, 1_000), 60_000),
        ],
    );
    // One after the other.
    let free = section((1_000, 1_000, 2_000), "acquire 5 3", "release 5 3");
    let later = section((3_000, 3_000, 4_000), "acquire 5 4", "release 5 4");
    scene.region(1, [(&free, 60_000), (&later, 60_000)]);
    scene.finds(
        "locks",
        &[
            ("wait_at_critical", "omp_critical", 12_000, 0),
            ("wait_on_mutex", "omp_set_lock", 20_000, 0),
        ],
    );
}

/// Mutexes and ends of threads are waited for, as recorders of POSIX threads write it.
#[test]
fn mutexes_and_joins_are_charged() {
    let mut scene = Scene::new();
    scene
        .archive
        .line("construct lock pthread_mutex_lock pthread.h 0")
        .line("construct unlock pthread_mutex_unlock pthread.h 0")
        .line("construct join pthread_join pthread.h 0");
    let holds = |enters: u64, from: u64, until: u64| {
        [
            (enters, "enter lock"),
            (from, "acquire_mutex 7 1"),
            (from, "leave lock"),
            (until, "enter unlock"),
            (until, "release_mutex 7 1"),
            (until, "leave unlock"),
        ]
    };
    scene.region(
        0,
        [
            (&holds(1_000, 26_001, 30_000), 60_000),
            (&holds(500, 500, 26_000), 60_000),
        ],
    );
    // A near miss: one after the other.
    scene.region(
        1,
        [
            (&holds(1_000, 1_000, 2_000), 60_000),
            (&holds(3_000, 3_000, 4_000), 60_000),
        ],
    );
    scene.regions += 1;
    let begin = PERIOD * scene.regions;
    // The second thread of rank 0 ends late, that of rank 1 before it is waited for.
    for (rank, thread, ends, from, until) in [
        (0, 10, 40_000, 10_000, 40_001),
        (1, 11, 5_000, 10_000, 10_001),
    ] {
        let at = |us: u64| begin + us * 1_000;
        scene
            .archive
            .event(thread, at(ends), "thread_end 0 1")
            .event(rank, at(from), "enter join")
            .event(rank, at(until), "thread_wait 0 1")
            .event(rank, at(until), "leave join");
    }
    scene.finds(
        "posix",
        &[
            ("wait_on_mutex", "pthread_mutex_lock", 25_000, 0),
            ("wait_for_thread", "pthread_join", 30_000, 0),
        ],
    );
}

/// Turns in ordered regions are waited for.
#[test]
fn turns_are_waited_for() {
    let mut scene = Scene::new();
    scene
        .archive
        .line("construct ordered ordered app.c 12")
        .line("construct body ordered_sblock app.c 12");
    let turn = |enters: u64, from: u64| {
        [
            (enters, "enter ordered"),
            (from, "enter body"),
            (from + 10_000, "leave body"),
            (from + 10_000, "leave ordered"),
        ]
    };
    scene.region(
        0,
        [
            (&turn(1_000, 1_000), 60_000),
            (&turn(1_000, 11_001), 60_000),
        ],
    );
    scene.region(
        1,
        [
            (&turn(1_000, 1_000), 60_000),
            (&turn(12_000, 12_000), 60_000),
        ],
    );
    scene.finds("ordered", &[("wait_at_ordered", "omp_ordered", 10_000, 0)]);
}

/// A thread waits for tasks that others execute, but not while it executes some itself.
#[test]
fn tasks_are_waited_for() {
    let mut scene = Scene::new();
    scene
        .archive
        .line("construct create create_task app.c 12")
        .line("construct task task app.c 12")
        .line("construct taskwait taskwait app.c 14");
    let creates = [
        (0, "enter create"),
        (0, "task_create first 0 1"),
        (0, "leave create"),
        (0, "enter create"),
        (0, "task_create first 0 2"),
        (0, "leave create"),
        (1_000, "enter taskwait"),
        (1_000, "task_switch first 0 2"),
        (1_000, "enter task"),
        (21_000, "leave task"),
        (21_000, "task_complete first 0 2"),
        (21_000, "task_switch first 0 0"),
        (50_001, "leave taskwait"),
    ];
    // It waits at the end of the region, and executes the other task meanwhile.
    let executes = [
        (0, "enter end10"),
        (1_000, "task_switch first 0 1"),
        (1_000, "enter task"),
        (50_000, "leave task"),
        (50_000, "task_complete first 0 1"),
        (50_000, "task_switch first 1 0"),
        (70_010, "leave end10"),
    ];
    let mut region = |parts: [&[(u64, &'static str)]; 2]| {
        // The second thread comes to the end by itself.
        scene.regions += 1;
        let begin = PERIOD * scene.regions;
        let archive = &mut scene.archive;
        archive
            .line("construct parallel10 parallel app.c 10")
            .line("construct end10 implicit_barrier app.c 19");
        for (location, events) in [0, 10].into_iter().zip(parts) {
            if location == 0 {
                archive.event(location, begin, "fork 2");
            }
            archive.event(location, begin, "team_begin first");
            archive.event(location, begin, "enter parallel10");
            for (at, what) in events {
                archive.event(location, begin + at * 1_000, what);
            }
            if location == 0 {
                archive.event(location, begin + 70_000_000, "enter end10");
                archive.event(location, begin + 70_010_000, "leave end10");
            }
            archive.event(location, begin + 70_010_000, "leave parallel10");
            archive.event(location, begin + 70_010_000, "team_end first");
            if location == 0 {
                archive.event(location, begin + 70_010_000, "join");
            }
        }
    };
    region([&creates, &executes]);
    scene.finds(
        "tasks",
        &[
            ("wait_for_tasks", "omp_taskwait", 29_000, 0),
            (
                "wait_at_implicit_omp_barrier",
                "omp_parallel_end",
                20_000,
                0,
            ),
        ],
    );
}
