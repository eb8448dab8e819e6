//! Threads of a rank that wait for each other: programs with known waits, and odd ones.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use laggard_tests::attempts::until_right;
use laggard_tests::process;
use laggard_tests::product::{Bench, PROCESSOR_TIME, TIMEOUT};
use laggard_tests::recorded::{check, mark, near};
use laggard_tests::report::Report;
use laggard_tests::round_trip;
use laggard_tests::threads::{self, DELAY, FLAGS, ROUNDS, Run};
use serde_json::{Value, json};

/// A rank that waits for a rank whose threads wait for one of them: one chain.
#[test]
fn a_late_thread_is_the_root_of_what_others_wait() {
    let source = "threads/late_thread.c";
    until_right("late thread", |_| {
        let run = Run::of("late_thread.c", 2, "2");
        let waited = ROUNDS * DELAY;
        run.loses("wait_at_implicit_omp_barrier", waited)?;
        run.loses("wait_at_barrier", waited)?;
        run.is_hybrid(waited)?;
        let loop_ = mark(source, "loop");
        let found = run.finding("wait_at_implicit_omp_barrier");
        check(found["location"]["line"] == loop_, found)?;
        run.begins_in_main("wait_at_implicit_omp_barrier")?;
        let cause = &found["causes"][0];
        check(cause["rank"] == 0 && cause["thread"] == 1, cause)?;
        check(
            found["ranks"][0]["rank"] == 0 && found["ranks"].as_array().map(Vec::len) == Some(1),
            found,
        )?;
        // The team, the other rank, and the other rank's second thread, while the first one waits.
        // The other rank's threads are alike.
        let uneven = &run.report["thread_imbalance"][0];
        let overload = uneven["overload_s"].as_f64().unwrap_or(0.0);
        check(near(overload, 0.5 * waited, 0.05 * waited), uneven)?;
        let worst = [&uneven["worst_rank"], &uneven["worst_thread"]];
        check(
            worst == [0, 1] && uneven["location"]["line"] == loop_,
            uneven,
        )?;
        let root = run.root();
        let cost = root["severity_s"].as_f64().unwrap_or(0.0);
        check(near(cost, 3.0 * waited, 0.3 * waited), root)?;
        check(root["rank_set"] == "0" && root["thread_set"] == "1", root)?;
        check(
            root["until"]["line"] == loop_ && root["activity"] == "computation",
            root,
        )
    });
}

/// Of a thread that is started late, and is late itself, both are behind what others wait: what its creator did until
/// then, and what it did. It was nowhere before.
#[test]
fn a_thread_that_is_started_late_has_two_reasons() {
    let source = "threads/started.c";
    until_right("started thread", |_| {
        let run = Run::of("started.c", 2, "1");
        let (send, join) = (mark(source, "send"), mark(source, "join"));
        let threads = "1-5";
        // For rank 1, and for the first thread, which waits for the end of each.
        run.starts(threads, (0, send), 2.0 * ROUNDS * DELAY)?;
        // The first thread is alone for 40 ms before each round; of the first one, it is after another call.
        run.starts("", (join, join), ROUNDS * 0.040)?;
        let alone = (ROUNDS - 1.0) * 0.040;
        let roots = run.report["root_causes"].as_array().into_iter().flatten();
        for (line, expected) in [(0, ROUNDS * DELAY), (join, alone)] {
            let root = roots.clone().find(|root| root["location"]["line"] == line);
            let gain = root.and_then(|root| root["gain_s"].as_f64());
            check(near(gain.unwrap_or(0.0), expected, 0.1 * expected), &root)?;
        }
        let rows = &run.report["critical_path"]["profile"];
        let mut rows = rows.as_array().into_iter().flatten();
        let row = rows.find(|row| row["until"]["line"] == send && row["location"]["line"] == 0);
        let time = row.and_then(|row| row["seconds"].as_f64()).unwrap_or(0.0);
        check(near(time, ROUNDS * DELAY, 0.1 * ROUNDS * DELAY), &row)
    });
}

/// Threads have numbers in the order in which they are made, so those of OpenMP's, whoever calls something first.
#[test]
fn threads_are_numbered_as_they_are_made() {
    let source = "threads/numbers.c";
    let check_run = |run: &Run| {
        let cost = 3.0 * ROUNDS * DELAY;
        // While the program's threads wait, those of the team are idle.
        for (thread, line, cost) in [("3", "team", cost), ("6", "meet", 2.0 * cost)] {
            let line = mark(source, line);
            run.starts(thread, (line, line), cost)?;
        }
        Ok(())
    };
    until_right("numbers", |_| check_run(&Run::of("numbers.c", 1, "4")));
    until_right("numbers by clang", |_| {
        check_run(&Run::by_clang("numbers.c", 1, "4"))
    });
}

/// Who holds a mutex is late for those who want it; a mutex that is free has no record.
#[test]
fn a_mutex_is_charged_to_its_holder() {
    let source = "threads/mutex.c";
    until_right("mutex", |_| {
        let run = Run::of("mutex.c", 2, "1");
        let waited = ROUNDS * DELAY;
        run.loses("wait_on_mutex", waited)?;
        run.loses("wait_at_barrier", waited)?;
        let found = run.finding("wait_on_mutex");
        let (lock, unlock) = (mark(source, "lock"), mark(source, "unlock"));
        run.is_due_to(found, (lock, (1, unlock)), waited)?;
        // The first thread, and rank 1 for it.
        run.starts("1", (unlock, unlock), 2.0 * waited)?;
        let locks = run.dump.matches("pthread_mutex_lock").count();
        check(locks == ROUNDS as usize, &run.dump)
    });
}

/// Locks of all kinds are charged to who holds them, with both runtimes of OpenMP.
#[test]
fn other_locks_are_charged_to_their_holders() {
    let source = "threads/locks.c";
    let check_run = |run: &Run| {
        run.loses("wait_on_mutex", 5.0 * ROUNDS * DELAY)?;
        for (operation, taken, given_back) in [
            ("omp_set_lock", "lock", "unlock"),
            ("omp_set_nest_lock", "nest", "unnest"),
            ("pthread_rwlock_rdlock", "read", "unshare"),
            ("pthread_rwlock_wrlock", "write", "unshare"),
            ("pthread_spin_lock", "spin", "unspin"),
        ] {
            let mut found = run.report["bottlenecks"].as_array().into_iter().flatten();
            let found = found.find(|found| found["operation"] == operation);
            let found = found.unwrap_or(&Value::Null);
            let lines = (mark(source, taken), (1, mark(source, given_back)));
            run.is_due_to(found, lines, ROUNDS * DELAY)?;
        }
        let waits = [
            "omp_set_lock",
            "omp_set_nest_lock",
            "rwlock_rdlock",
            "rwlock_wrlock",
            "spin_lock",
        ]
        .map(|name| run.dump.matches(&format!("{name} ")).count());
        check(waits == [ROUNDS as usize; 5], &(waits, &run.dump))
    };
    until_right("locks", |_| check_run(&Run::of("locks.c", 1, "2")));
    until_right("locks by clang", |_| {
        check_run(&Run::by_clang("locks.c", 1, "2"))
    });
    // The program seems to have an allocator of its own then.
    until_right("locks at fixed places", |_| {
        let bench = Bench::sharing("threads-locks-fixed");
        let fixed = [FLAGS, &["-no-pie", "-fno-pie"]].concat();
        let program = bench.compile("threads/locks.c", &fixed, &[]);
        check_run(&Run::recorded(&bench, &program, 1, "2"))
    });
}

/// Of two threads that come at the same time, one waits for the other, with both runtimes of OpenMP.
#[test]
fn who_comes_at_the_same_time_waits_for_the_other() {
    // Without a processor, a thread comes later.
    let most = 45..=50;
    let check_run = |run: &Run| {
        let names = [
            "omp_critical",
            "omp_set_lock",
            "omp_set_nest_lock",
            "pthread_mutex_lock",
            "pthread_rwlock_wrlock",
            "pthread_spin_lock",
        ];
        let waits = names.map(|name| run.dump.matches(&format!(" {name} ")).count());
        let is_seen = waits.iter().all(|waits| most.contains(waits));
        check(is_seen, &waits)
    };
    until_right("at once", |_| check_run(&Run::of("at_once.c", 1, "2")));
    until_right("at once by clang", |_| {
        check_run(&Run::by_clang("at_once.c", 1, "2"))
    });
}

/// Threads wait in turns for a critical section, each for those who are in it before, with both runtimes of OpenMP.
#[test]
fn a_critical_section_is_entered_in_turns() {
    let section = mark("threads/critical.c", "section");
    let check_run = |run: &Run| {
        let pattern = "wait_at_critical";
        let held = [19.0 + 18.0 + 17.0, 2.0 * 20.0, 20.0].map(|ms| 1e-3 * ms * ROUNDS);
        run.loses(pattern, held.iter().sum())?;
        let found = run.finding(pattern);
        check(found["location"]["line"] == section, found)?;
        run.is_due_to_each(pattern, section, &held)?;
        let sections = run.dump.matches(" omp_critical ").count();
        check(sections == 3 * ROUNDS as usize, &run.dump)
    };
    until_right("critical", |_| check_run(&Run::of("critical.c", 1, "4")));
    until_right("critical by clang", |_| {
        check_run(&Run::by_clang("critical.c", 1, "4"))
    });
}

/// The end of a region is the end of the section: the runtime returns to what called the region's function.
#[test]
fn a_critical_section_may_be_the_last_of_a_region() {
    until_right("last", |_| {
        let run = Run::of("last.c", 1, "2");
        run.loses("wait_at_critical", ROUNDS * 0.020)?;
        let cause = &run.finding("wait_at_critical")["causes"][0];
        check(cause["operation"] == "omp_critical_end", cause)?;
        let function = cause["location"]["function"].as_str().unwrap_or_default();
        check(function.starts_with("in_turns"), cause)
    });
}

/// A region may end with any call of OpenMP, which compilers make a jump: its place is in the program all the same,
/// with both runtimes.
#[test]
fn the_last_calls_of_regions_have_places() {
    let is_placed = |line: &str| {
        let functions = ["barrier", "single", "section", "chore"];
        let (at, function) = line.rsplit_once(' ').unwrap_or_default();
        at.contains("  jumps.c:") && functions.contains(&function)
    };
    let check_run = |run: &Run| {
        for call in [
            "omp_barrier",
            "omp_critical",
            "omp_critical_end",
            "omp_taskwait",
            "omp_loop_end",
        ] {
            let lines = run
                .dump
                .lines()
                .filter(|line| line.contains(&format!(" {call} ")));
            let (known, unknown): (Vec<_>, Vec<_>) = lines.partition(|line| is_placed(line));
            assert_eq!(unknown, [""; 0], "{call}");
            // Who waits for tasks, and which meetings are an end of a single region, is the runtime's affair.
            let is_sure = !["omp_taskwait", "omp_loop_end"].contains(&call);
            check(!is_sure || !known.is_empty(), &(call, &run.dump))?;
        }
        Ok(())
    };
    // Compilers make jumps if they optimise.
    until_right("jumps", |_| {
        let bench = Bench::sharing("threads-jumps");
        let program = bench.compile("threads/jumps.c", &["-fopenmp", "-O2"], &[]);
        check_run(&Run::recorded(&bench, &program, 1, "2"))
    });
    until_right("jumps by clang", |_| {
        let bench = Bench::sharing("threads-clang-jumps");
        let program = threads::by_clang_with(&bench, "jumps.c", &["-O2"]);
        check_run(&Run::recorded(&bench, &program, 1, "2"))
    });
}

/// Mutexes of all types and protocols are charged to their holders, and calls for them return what they ever do.
#[test]
fn mutexes_of_all_protocols_are_charged() {
    let source = "threads/protocols.c";
    until_right("protocols", |_| {
        let run = Run::of("protocols.c", 1, "1");
        let waits = run
            .dump
            .lines()
            .filter(|line| line.contains(" pthread_mutex_lock "));
        let long = |line: &&str| {
            let us = line
                .split_whitespace()
                .nth(2)
                .and_then(|us| us.parse().ok());
            us.is_some_and(|us: f64| us > 1e3)
        };
        let kinds = waits.filter(long).count() as f64;
        check(kinds == 16.0, &run.dump)?;
        let (lock, unlock) = (mark(source, "lock"), mark(source, "unlock"));
        run.loses("wait_on_mutex", kinds * DELAY)?;
        let found = run.finding("wait_on_mutex");
        run.is_due_to(found, (lock, (1, unlock)), kinds * DELAY)
    });
}

/// Threads wait for their turns in an ordered loop, with both runtimes of OpenMP.
#[test]
fn ordered_regions_are_gone_through_in_turns() {
    let check_run = |run: &Run| {
        run.loses("wait_at_ordered", ROUNDS * 0.020 * (1.0 + 2.0 + 3.0))?;
        let found = run.finding("wait_at_ordered");
        check(
            found["location"]["function"]
                .as_str()
                .is_some_and(|name| name.starts_with("main")),
            found,
        )?;
        let cause = &found["causes"][0];
        check(cause["operation"] == "omp_ordered_end", cause)?;
        // To find the runtime's function takes a thread some us, the first time.
        let waited = |line: &&str| {
            let us = line
                .split_whitespace()
                .nth(2)
                .and_then(|us| us.parse().ok());
            line.contains(" omp_ordered ") && us.is_some_and(|us: f64| us > 1e3)
        };
        let turns = run.dump.lines().filter(waited).count();
        check(turns == 3 * ROUNDS as usize, &run.dump)
    };
    until_right("ordered", |_| check_run(&Run::of("ordered.c", 1, "4")));
    until_right("ordered by clang", |_| {
        check_run(&Run::by_clang("ordered.c", 1, "4"))
    });
}

/// What it gains to mend a thread for which threads of its rank wait, against the same program mended.
#[test]
fn mending_a_thread_gains_what_is_promised() {
    const MOST_OFF: f64 = 0.25;
    let bench = Bench::new("threads-gains");
    let program = bench.compile("threads/gains.c", FLAGS, &[]);
    let cases = [
        ("late", ("0", true)),
        ("lock", ("0", true)),
        ("task", ("0", true)),
        ("first", ("0-1", false)),
        ("signal", ("0-1", true)),
    ];
    for (case, (ranks, is_further)) in cases {
        until_right(case, |attempt| {
            let elapsed = |kind: &str| {
                let trace = format!("{case}-{kind}-{attempt}");
                let words = [program.as_os_str(), case.as_ref(), kind.as_ref()];
                let run = bench.traced(2, &words, &trace).env("OMP_NUM_THREADS", "4");
                let outcome = run.env("OMP_WAIT_POLICY", "passive").run();
                let outcome = outcome.expect_orderly().expect_success();
                let mut lines = outcome.stdout.lines();
                let time = lines.find_map(|line| line.strip_prefix("elapsed "));
                let time: f64 = time.and_then(|time| time.parse().ok()).expect("a time");
                (time, bench.path(&trace))
            };
            let ((flawed, trace), (mended, _)) = (elapsed("flawed"), elapsed("mended"));
            let path = bench.path(&format!("{case}.json"));
            let outcome = bench.analyze(&trace, 2, &path, &["-q"]);
            outcome.expect_orderly().expect_success();
            let report = fs::read_to_string(&path).expect("a report");
            let report: Value = serde_json::from_str(&report).expect("JSON");
            // Threads are numbered as they come. What one does after different calls is several causes.
            let roots = report["root_causes"].as_array().into_iter().flatten();
            let roots = roots.filter(|root| root["rank_set"] == ranks);
            let roots = roots.filter(|root| root["thread_set"].is_string() == is_further);
            let promised: f64 = roots.filter_map(|root| root["gain_s"].as_f64()).sum();
            let gained = flawed - mended;
            let seen = (case, promised, gained);
            eprintln!("{seen:?}");
            check(near(promised, gained, MOST_OFF * gained), &seen)
        });
    }
}

/// Who signals is late for those who wait for it.
#[test]
fn signals_are_charged_to_those_who_give_them() {
    let source = "threads/signals.c";
    until_right("signals", |_| {
        let run = Run::of("signals.c", 2, "1");
        run.loses("wait_on_signal", ROUNDS * (DELAY + DELAY / 2.0))?;
        run.loses("wait_at_thread_barrier", ROUNDS * DELAY / 3.0)?;
        let line = |name: &str| mark(source, name);
        let found = run.finding("wait_on_signal");
        let who = (1, line("signal"));
        run.is_due_to(found, (line("wait"), who), ROUNDS * DELAY)?;
        for (begin, until, part) in [
            ("meet", "signal", 1.0),
            ("signal", "post", 2.0),
            ("post", "meet", 3.0),
        ] {
            run.starts("1", (line(begin), line(until)), ROUNDS * DELAY / part)?;
        }
        Ok(())
    });
}

/// Who executes the last task is late for those who wait for it; who executes tasks does not wait.
#[test]
fn tasks_are_charged_to_those_who_execute_them() {
    let source = "threads/tasks.c";
    let check_run = |run: &Run| {
        run.loses("wait_for_tasks", ROUNDS * 0.040)?;
        run.loses("wait_at_implicit_omp_barrier", ROUNDS * (0.010 + 0.005))?;
        let found = run.finding("wait_for_tasks");
        let lines = mark(source, "taskwait")..=mark(source, "taskgroup") + 1;
        let line = found["location"]["line"].as_u64().unwrap_or(0);
        check(lines.contains(&(line as u32)), found)?;
        let ranks = found["ranks"].as_array().map(Vec::len);
        check(ranks == Some(1), found)?;
        let cause = &found["causes"][0];
        check(cause["operation"] == "omp_task_end", cause)?;
        check(cause["location"]["line"] == mark(source, "task"), cause)?;
        let causes = &run.report["root_causes"];
        let is_such = |root: &&Value| root["until"]["operation"] == "omp_task_end";
        let root = causes.as_array().into_iter().flatten().find(is_such);
        check(root.is_some_and(|root| root["thread_set"] == "1"), causes)?;
        let waits = run.dump.matches("omp_taskwait ").count();
        check(waits == ROUNDS as usize, &run.dump)
    };
    until_right("tasks", |_| check_run(&Run::of("tasks.c", 1, "2")));
    until_right("tasks by clang", |_| {
        check_run(&Run::by_clang("tasks.c", 1, "2"))
    });
}

/// A loop of tasks, a task without `if` and a taskwait with `depend` wait within calls of their own.
#[test]
fn waits_for_tasks_in_other_calls_are_seen() {
    let source = "threads/task_waits.c";
    let check_run = |run: &Run, lines: &[(&str, u32)]| {
        run.loses("wait_for_tasks", 3.0 * ROUNDS * 0.020)?;
        let found = run.report["bottlenecks"].as_array().into_iter().flatten();
        let found = found.filter(|found| found["pattern"] == "wait_for_tasks");
        let found: Vec<&Value> = found.collect();
        check(found.len() == lines.len(), &found)?;
        for (operation, line) in lines {
            let is_it = |found: &&&Value| {
                // GCC gives a taskwait the line before it.
                let lines = [json!(line - 1), json!(line)];
                found["operation"] == *operation && lines.contains(&found["location"]["line"])
            };
            let it = found
                .iter()
                .find(is_it)
                .ok_or_else(|| format!("{line}: {found:?}"))?;
            let severity = it["severity_s"].as_f64().unwrap_or(0.0);
            check(near(severity, ROUNDS * 0.020, 0.1 * ROUNDS * 0.020), it)?;
            let cause = &it["causes"][0];
            check(
                cause["thread"] == 1 && cause["operation"] == "omp_task_end",
                it,
            )?;
        }
        Ok(())
    };
    let lines = |of: [&str; 3]| of.map(|name| mark(source, name));
    let [in_loop, task, taskwait] = lines(["loop", "task", "taskwait"]);
    let expected = [
        ("omp_taskgroup_end", in_loop),
        ("omp_taskwait", task),
        ("omp_taskwait", taskwait),
    ];
    until_right("other waits for tasks", |_| {
        check_run(&Run::of("task_waits.c", 1, "2"), &expected)
    });
    until_right("other waits for tasks by clang", |_| {
        check_run(&Run::by_clang("task_waits.c", 1, "2"), &expected)
    });
}

#[test]
fn threads_of_other_languages_are_seen() {
    until_right("C++", |_| {
        let source = "threads/cplusplus.cpp";
        let run = Run::of("cplusplus.cpp", 1, "1");
        run.loses("wait_on_signal", ROUNDS * DELAY)?;
        // The program's lines, not those of C++'s headers.
        let found = run.finding("wait_on_signal");
        let (wait, signal) = (mark(source, "wait"), mark(source, "signal"));
        run.is_due_to(found, (wait, (1, signal)), ROUNDS * DELAY)?;
        run.starts("1", (signal, signal), ROUNDS * DELAY)
    });
    until_right("Fortran", |_| {
        let run = Run::of("fortran.f90", 1, "2");
        run.loses("wait_at_implicit_omp_barrier", ROUNDS * 0.020)?;
        run.loses("wait_at_omp_barrier", ROUNDS * 0.010)?;
        run.loses("wait_on_mutex", ROUNDS * 0.020)?;
        let found = run.finding("wait_on_mutex");
        check(found["operation"] == "omp_set_nest_lock", found)?;
        let line = |name: &str| mark("threads/fortran.f90", name);
        run.is_due_to(found, (line("nest"), (1, line("unnest"))), ROUNDS * 0.020)
    });
}

/// A barrier in a region is one place for all threads of the team, also for the one that began the region. Two barriers are
/// two.
#[test]
fn a_barrier_is_one_finding_for_its_team() {
    let check_run = |run: &Run, source: &str| {
        let found = run.report["bottlenecks"].as_array().into_iter().flatten();
        let found = found.filter(|found| found["pattern"] == "wait_at_omp_barrier");
        let found: Vec<&Value> = found.collect();
        let [first, second] = found[..] else {
            return check(false, &found);
        };
        for (found, name, (late, waited), threads) in [
            (first, "first", (1, 2.0 * 0.030), "0,2"),
            (second, "second", (2, 2.0 * 0.020), "0-1"),
        ] {
            let (line, cause) = (mark(source, name), &found["causes"][0]);
            check(found["location"]["line"] == line, found)?;
            check(
                cause["thread"] == late && cause["location"]["line"] == line,
                found,
            )?;
            let severity = found["severity_s"].as_f64().unwrap_or(0.0);
            let expected = ROUNDS * waited;
            check(near(severity, expected, 0.1 * expected), found)?;
            let sets = [&found["rank_set"], &found["thread_set"]];
            check(sets == ["0", threads], found)?;
            let path = found["location"]["callpath"].as_array();
            let path = path.map_or(&[][..], Vec::as_slice);
            let functions: Vec<&str> = path
                .iter()
                .filter_map(|line| line.as_str()?.split_whitespace().next())
                .collect();
            check(
                functions.first() == Some(&"main") && functions.ends_with(&["phases"; 2]),
                found,
            )?;
        }
        Ok(())
    };
    for source in ["two_barriers.c", "two_barriers.f90"] {
        until_right(source, |_| {
            check_run(&Run::of(source, 1, "3"), &format!("threads/{source}"))
        });
    }
}

/// Who lets a thread go on is behind what others wait for that thread, though neither is known before it ends. Who waits for
/// work that never comes stays unknown.
#[test]
fn threads_that_are_known_in_the_end_tell_whom_they_waited_for() {
    let source = "threads/handed_on.cpp";
    let line = |name: &str| mark(source, name);
    let (signal, promise) = (line("signal"), line("promise"));
    until_right("handed on", |_| {
        let run = Run::of("handed_on.cpp", 1, "1");
        run.loses("wait_on_signal", ROUNDS * (DELAY + 0.020))?;
        run.loses("wait_for_thread", ROUNDS * (DELAY + 0.025))?;
        for (wait, let_go_on) in [("wait", signal), ("future", promise)] {
            let mut found = run.report["bottlenecks"].as_array().into_iter().flatten();
            let found = found.find(|found| found["location"]["line"] == line(wait));
            let found = found.unwrap_or(&Value::Null);
            check(found["thread_set"] == "2,4,6,8,10", found)?;
            let mut causes = found["causes"].as_array().into_iter().flatten();
            let is_due = |cause: &Value| cause["location"]["line"] == let_go_on;
            check(causes.all(is_due), found)?;
        }
        // For the other thread, and for the first one, which waits for that.
        let producers = "3,5,7,9,11";
        run.starts(producers, (0, signal), 2.0 * ROUNDS * DELAY)?;
        run.starts(producers, (signal, promise), 2.0 * ROUNDS * 0.020)?;
        let locations = &run.report["run"]["locations"];
        check(*locations == 1 + 2 * ROUNDS as u64, locations)
    });
}

/// C11's calls have their own names.
#[test]
fn threads_of_c11_are_seen() {
    let source = "threads/c11.c";
    until_right("C11", |_| {
        let run = Run::of("c11.c", 1, "1");
        for (pattern, operation, let_go_on) in [
            ("wait_on_mutex", "mtx_lock", "unlock"),
            ("wait_on_signal", "cnd_wait", "signal"),
            ("wait_for_thread", "thrd_join", "create"),
        ] {
            let found = run.finding(pattern);
            check(found["operation"] == operation, found)?;
            run.is_due_to_each(pattern, mark(source, let_go_on), &[DELAY; ROUNDS as usize])?;
        }
        Ok(())
    });
}

/// Threads that the program starts and that compute at the same time share processors; those that sleep do not.
#[test]
fn threads_that_compute_at_the_same_time_are_a_crowd() {
    until_right("a crowd", |_| {
        let bench = Bench::sharing("threads-computing");
        let program = bench.compile("threads/computing.c", &["-pthread"], &[]);
        let crowd = |what: &str| {
            let words = [program.as_os_str(), OsStr::new(what)];
            let run = bench.traced(1, &words, "trace").env(PROCESSOR_TIME, "1");
            run.run().expect_orderly().expect_success();
            let trace = bench.path("trace");
            let report: Value = serde_json::from_str(&bench.analyze_all(&trace)).expect("JSON");
            fs::remove_dir_all(trace).expect("the trace goes");
            report["run"]["crowd"].clone()
        };
        for when in ["compute", "later"] {
            let found = crowd(when);
            check(found["threads"] == 2 && found["cores"] == 1, &found)?;
        }
        let found = crowd("asleep");
        check(found.is_null(), &found)
    });
}

/// Two processors that this process may use, as `taskset` wants them.
fn two_cores() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.expect("a list").trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse().expect("a number")..=last.parse::<u32>().expect("a number")
    });
    let two: Vec<String> = ranges
        .flatten()
        .take(2)
        .map(|core| core.to_string())
        .collect();
    (two.len() == 2).then(|| two.join(","))
}

/// GCC's runtime binds the first thread before MPI begins: the others may run elsewhere.
#[test]
fn threads_that_are_bound_have_a_processor_each() {
    let Some(two) = two_cores() else {
        eprintln!("SKIPPED: this machine has one core");
        return;
    };
    let bench = Bench::beside("threads-bound");
    let program = bench.compile("threads/tasks.c", FLAGS, &[]);
    // The launcher binds a rank to one of them.
    let words = ["taskset", "-c", &two].map(OsStr::new);
    let words = [&words[..], &[program.as_os_str()]].concat();
    let run = bench.traced(1, &words, "trace");
    let run = run.env("OMP_NUM_THREADS", "2").env("OMP_PROC_BIND", "true");
    run.run().expect_orderly().expect_success();
    let report: Value =
        serde_json::from_str(&bench.analyze_all(&bench.path("trace"))).expect("JSON");
    let run = &report["run"];
    let host = &run["processors"][0];
    assert!(host["threads"] == 2 && host["cores"] == 2, "{host}");
    assert!(run["crowd"].is_null(), "{run}");
}

/// An archive of a recording tells of threads what the recording does.
#[test]
fn archives_have_waits_among_threads() {
    for (source, ranks, threads) in [
        ("late_thread.c", 2, "2"),
        ("critical.c", 1, "4"),
        ("locks.c", 1, "2"),
        ("ordered.c", 1, "4"),
        ("tasks.c", 1, "2"),
        ("in_teams.c", 2, "2"),
    ] {
        let bench = Bench::sharing(&format!("threads-archive-{}", source.replace('.', "-")));
        let program = bench.compile(&format!("threads/{source}"), FLAGS, &[]);
        let run = bench.traced(ranks, &[program.as_os_str()], "trace");
        let run = run.env("OMP_NUM_THREADS", threads);
        run.env("OMP_WAIT_POLICY", "passive")
            .run()
            .expect_orderly()
            .expect_success();
        let trace = bench.path("trace");
        let report = Report::parse(&bench.analyze_agreed(&trace)).expect("a report");
        let different = round_trip::differences(&bench, &trace, &report);
        assert_eq!(different, [""; 0], "{source}");
        let mut command = Command::new("otf2-print");
        command.arg(bench.path("archive").join("traces.otf2"));
        let printed = process::run(&mut command, TIMEOUT, &bench.path("print")).expect_success();
        let has = |event: &str| printed.stdout.lines().any(|line| line.starts_with(event));
        for event in [
            "THREAD_FORK",
            "THREAD_TEAM_BEGIN",
            "THREAD_TEAM_END",
            "THREAD_JOIN",
        ] {
            assert!(has(event), "{source}: no {event}");
        }
    }
}

/// Findings, their causes and root causes name the parallel region in which a thread calls MPI, and its number in
/// the team; calls outside of regions have none. With both runtimes of OpenMP.
#[test]
fn calls_in_teams_tell_their_region() {
    let source = "threads/in_teams.c";
    let line = |name: &str| Value::from(mark(source, name));
    let check_run = |run: &Run| {
        run.loses("late_sender", ROUNDS * (2.0 * DELAY + 0.030))?;
        let found = |name: &str| {
            let mut found = run.report["bottlenecks"].as_array().into_iter().flatten();
            let found = found.find(|found| {
                found["pattern"] == "late_sender" && found["location"]["line"] == line(name)
            });
            found.unwrap_or(&Value::Null)
        };
        let regions = |of: &Value| {
            let rows = of["parallel_regions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let row = |row: &Value| (row["line"].clone(), row["threads"].clone());
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let in_region = [(line("region"), Value::from(2))];
        let received = found("receive");
        check(regions(received) == in_region, received)?;
        // Both threads make the call, and one of them waits.
        let sets = [&received["parallel_regions"][0], received].map(|of| &of["thread_set"]);
        check(sets == ["0-1", "1"], received)?;
        let cause = &received["causes"][0];
        check(cause["location"]["line"] == line("send"), cause)?;
        check(regions(cause) == in_region, cause)?;
        let roots = run.report["root_causes"].as_array().into_iter().flatten();
        let mut roots = roots.filter(|root| root["until"]["line"] == line("send"));
        let root = roots.next().unwrap_or(&Value::Null);
        check(regions(root) == in_region, root)?;
        let in_task = found("task");
        check(
            regions(in_task) == [(line("tasks"), Value::from(2))],
            in_task,
        )?;
        // A near miss: the calls around the regions.
        let alone = found("serial");
        check(alone.is_object() && regions(alone).is_empty(), alone)?;
        let received = run.dump.lines().filter(|line| line.contains(" MPI_Recv "));
        let (inside, outside): (Vec<_>, Vec<_>) =
            received.partition(|line| line.contains(" threads=2 member="));
        let counts = (inside.len(), outside.len());
        check(counts == (3 * ROUNDS as usize, ROUNDS as usize), &counts)
    };
    until_right("in teams", |_| check_run(&Run::of("in_teams.c", 2, "2")));
    until_right("in teams by clang", |_| {
        check_run(&Run::by_clang("in_teams.c", 2, "2"))
    });
}

/// LLVM's runtime tells of itself what happens.
#[test]
fn a_runtime_with_a_tools_interface_tells_the_same() {
    until_right("clang", |_| {
        let run = Run::by_clang("late_thread.c", 2, "2");
        let waited = ROUNDS * DELAY;
        run.loses("wait_at_implicit_omp_barrier", waited)?;
        run.begins_in_main("wait_at_implicit_omp_barrier")?;
        run.loses("wait_at_barrier", waited)?;
        let root = run.root();
        check(root["rank_set"] == "0" && root["thread_set"] == "1", root)
    });
    Run::by_clang("odd.c", 2, "2");
}

/// Regions go on while recording is paused, and others begin meanwhile: they nest as they did, and only
/// what is recorded is waiting.
#[test]
fn regions_may_be_paused() {
    let check_run = |run: &Run| {
        let waited = ROUNDS * DELAY;
        run.loses("wait_at_omp_barrier", waited)?;
        for pattern in [
            "idle_threads",
            "omp_management",
            "wait_at_implicit_omp_barrier",
        ] {
            let lost = run.lost(pattern);
            check(lost < 0.1 * waited, &(pattern, lost))?;
        }
        let lines = run.dump.lines().filter(|line| line.starts_with("0/0 "));
        let calls = lines.filter_map(|line| line.split_whitespace().nth(3));
        let regions: Vec<&str> = calls
            .filter(|call| call.starts_with("omp_parallel"))
            .collect();
        let pairs = regions.chunks(2);
        let pairs = pairs.filter(|pair| **pair == ["omp_parallel", "omp_parallel_end"]);
        let (recorded, pairs) = (2 * ROUNDS as usize, pairs.count());
        check(pairs == recorded && regions.len() == 2 * recorded, &regions)
    };
    until_right("paused", |_| check_run(&Run::of("paused.c", 1, "2")));
    until_right("paused by clang", |_| {
        check_run(&Run::by_clang("paused.c", 1, "2"))
    });
}

/// Programs behave as ever, whatever they do with threads.
#[test]
fn odd_programs_behave_as_ever() {
    for run in [
        Run::of("odd.c", 2, "2"),
        Run::of("odd_tasks.cpp", 1, "4"),
        Run::by_clang("odd_tasks.cpp", 1, "4"),
    ] {
        let anomalies = run.report["anomalies"].as_array().into_iter().flatten();
        // One of them has a thousand threads.
        let bad =
            anomalies.filter(|row| row["severity"] != "info" && row["id"] != "waits_left_out");
        assert_eq!(bad.collect::<Vec<_>>(), Vec::<&Value>::new());
    }
}

/// A thread meets those that come to the same barrier, and no others of its rank: what it did before is
/// told to others later. In nested regions, and with barriers for some threads.
#[test]
fn threads_meet_only_their_team() {
    let check_root = |run: &Run, (source, place): (&str, &str), pattern: &str, expected: f64| {
        let place = mark(source, place);
        let mut roots = run.report["root_causes"].as_array().into_iter().flatten();
        let root = roots.find(|root| root["until"]["line"] == place);
        let root = root.unwrap_or(&Value::Null);
        let victims = root["victims"].as_array().into_iter().flatten();
        let victims = victims.filter(|victim| victim["pattern"] == pattern);
        let cost: f64 = victims.filter_map(|one| one["severity_s"].as_f64()).sum();
        let is_near = near(cost, expected, 0.1 * expected);
        check(is_near, &(pattern, cost, expected, root))
    };
    let source = "threads/nested.c";
    let check_nested = |run: &Run| {
        let pattern = "wait_at_implicit_omp_barrier";
        run.loses(pattern, ROUNDS * (2.0 * DELAY + 0.080 - DELAY))?;
        check_root(run, (source, "inner"), pattern, ROUNDS * 2.0 * DELAY)?;
        check_root(run, (source, "second"), pattern, ROUNDS * (0.080 - DELAY))?;
        let pattern = "wait_at_barrier";
        check_root(run, (source, "inner"), pattern, ROUNDS * DELAY)?;
        check_root(run, (source, "second"), pattern, ROUNDS * (0.080 - DELAY))
    };
    // GCC's runtime starts other threads for each inner region.
    until_right("nested", |_| check_nested(&Run::of("nested.c", 2, "2")));
    until_right("nested by clang", |_| {
        check_nested(&Run::by_clang("nested.c", 2, "2"))
    });
    let source = "threads/barriers.c";
    let check_barriers = |run: &Run| {
        let pattern = "wait_at_thread_barrier";
        run.loses(pattern, ROUNDS * (2.0 * DELAY + 2.0 * 0.020))?;
        check_root(run, (source, "late"), pattern, ROUNDS * 2.0 * DELAY)?;
        check_root(run, (source, "later"), pattern, ROUNDS * 2.0 * 0.020)
    };
    until_right("barriers", |_| {
        check_barriers(&Run::of("barriers.c", 1, "1"))
    });
    until_right("barriers by clang", |_| {
        check_barriers(&Run::by_clang("barriers.c", 1, "1"))
    });
}

/// Waits that C++ makes by system calls, ends of threads that call nothing, and locks with a time limit.
#[test]
fn threads_that_wait_by_other_means_are_seen() {
    let source = "threads/modern.cpp";
    until_right("modern C++", |_| {
        let bench = Bench::sharing("threads-modern");
        let program = bench.compile(source, &["-std=c++20", "-pthread"], &[]);
        let run = Run::recorded(&bench, &program, 1, "1");
        run.loses("wait_on_signal", ROUNDS * 3.0 * DELAY)?;
        run.loses("wait_for_thread", ROUNDS * 2.0 * DELAY)?;
        run.loses("wait_on_mutex", ROUNDS * DELAY)?;
        let waits = run.report["bottlenecks"].as_array().into_iter().flatten();
        let lines: Vec<&Value> = waits
            .filter(|found| found["pattern"] == "wait_for_thread")
            .map(|found| &found["location"]["line"])
            .collect();
        for place in ["join", "within"] {
            let line = mark(source, place);
            check(lines.iter().any(|found| **found == line), &(place, &lines))?;
        }
        // Places are the program's, not those of C++'s headers.
        let places = run.report["bottlenecks"].as_array().into_iter().flatten();
        let places: Vec<String> = places
            .filter(|found| found["operation"] == "futex_wait")
            .map(|found| found["location"]["file"].to_string())
            .collect();
        let is_own = |file: &String| file.contains("modern.cpp");
        check(!places.is_empty() && places.iter().all(is_own), &places)?;
        // The late threads are the roots, though they became known when they let others go on.
        let roots = run.report["root_causes"].as_array().into_iter().flatten();
        let of_others =
            roots.filter(|root| root["thread_set"].as_str().is_some_and(|of| of != "0"));
        let severity: f64 = of_others
            .filter_map(|root| root["severity_s"].as_f64())
            .sum();
        let all = ROUNDS * 6.0 * DELAY;
        check(near(severity, all, 0.1 * all), &(severity, all))
    });
}

/// The end of a thread has the line that starts it as its place, whoever starts it.
#[test]
fn threads_that_others_start_have_a_place() {
    let source = "threads/further.cpp";
    until_right("further", |_| {
        let run = Run::of("further.cpp", 1, "1");
        let found = run.report["bottlenecks"].as_array().into_iter().flatten();
        let line = mark(source, "inner");
        let mut found = found.filter(|found| found["location"]["line"] == line);
        let found = found.next().unwrap_or(&Value::Null);
        let cause = &found["causes"][0];
        check(cause["operation"] == "pthread_exit", found)?;
        check(cause["location"]["line"] == mark(source, "start"), cause)?;
        let severity = found["severity_s"].as_f64().unwrap_or(0.0);
        check(near(severity, ROUNDS * DELAY, 0.1 * ROUNDS * DELAY), found)
    });
}

/// Who executes a `single` region with `copyprivate` is late for those who get its values.
#[test]
fn values_of_single_regions_are_waited_for() {
    let check_run = |run: &Run| {
        let lost = run.lost("wait_at_omp_barrier") + run.lost("wait_at_implicit_omp_barrier");
        check(near(lost, ROUNDS * DELAY, 0.1 * ROUNDS * DELAY), &lost)
    };
    until_right("copyprivate", |_| {
        check_run(&Run::of("copyprivate.c", 1, "2"))
    });
    until_right("copyprivate by clang", |_| {
        check_run(&Run::by_clang("copyprivate.c", 1, "2"))
    });
}

/// What threads of a team computed longer is told from what all of them did, whoever began the region.
#[test]
fn functions_of_a_team_are_compared() {
    let sampled = [("LAGGARD_SAMPLE_HZ", "1000")];
    let longer = |run: &Run| {
        let mut roots = run.report["root_causes"].as_array().into_iter().flatten();
        let is_of_thread =
            |root: &&Value| root["activity"] == "computation" && root["thread_set"] == "1";
        let root = roots.find(is_of_thread).unwrap_or(&Value::Null);
        let most = &root["functions"][0];
        let callers = most["callers"].as_array().into_iter().flatten();
        let is_named = callers.chain([most]).any(|of| of["function"] == "extra");
        let is_all = most["share"].as_f64().is_some_and(|share| share > 0.8);
        check(is_named && is_all, &root)
    };
    let record = |program: &Path, bench: &Bench| {
        longer(&Run::recorded_with(bench, program, (1, "2"), &sampled))
    };
    until_right("sampled", |_| {
        let bench = Bench::sharing("threads-sampled");
        record(&bench.compile("threads/sampled.c", FLAGS, &[]), &bench)
    });
    until_right("sampled by clang", |_| {
        let bench = Bench::sharing("threads-clang-sampled");
        record(&threads::by_clang(&bench, "sampled.c"), &bench)
    });
}
