//! Programs that do what a preloaded library does not expect. They must behave as without the
//! collector, and leave a trace that can be analysed.

mod clocks;
mod loading;

use std::ffi::OsStr;
use std::process::Command;

use laggard_tests::attack::{
    Attack, assert_no_anomalies, assert_same, late_senders, only_directories, three_rounds,
};
use laggard_tests::attempts::{scale, until_right};
use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_tests::recorded::check;
use laggard_tests::report::{Anomaly, Report};

fn forking(how: &str) {
    let attack = Attack::new(&format!("fork-{how}"), "fork.c", &[how]);
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    assert_eq!(
        only_directories(&attack.bench.dir),
        ["trace"],
        "traces of children"
    );
}

#[test]
fn fork_and_exit() {
    forking("exit");
}

#[test]
fn fork_and_quick_exit() {
    forking("_exit");
}

#[test]
fn fork_and_exec() {
    forking("exec");
}

#[test]
fn vfork_and_exec() {
    forking("vfork");
}

#[test]
fn posix_spawn() {
    forking("spawn");
}

/// A child that closes all descriptors and ends by exit().
#[test]
fn fork_and_daemon() {
    forking("daemon");
}

#[test]
fn system() {
    forking("system");
}

/// A rank ends without Finalize. Its records up to then are reported, and the report says that the
/// recording is incomplete.
fn ending(how: &str) {
    let attack = Attack::new(&format!("ending-{how}"), "ending.c", &[how]);
    let report = attack.three_rounds_to_an_end();
    assert!(
        !report.anomalies.is_empty(),
        "an incomplete run without an anomaly"
    );
}

#[test]
fn exit_without_finalize() {
    ending("exit");
}

#[test]
fn quick_exit_without_finalize() {
    ending("_exit");
}

#[test]
fn return_without_finalize() {
    ending("return");
}

#[test]
fn segmentation_fault() {
    ending("segv");
}

#[test]
fn terminated() {
    ending("term");
}

#[test]
fn killed() {
    ending("kill");
}

#[test]
fn mpi_abort() {
    ending("abort");
}

/// The call interrupted by the signal never returned; all calls before it are recorded.
#[test]
fn mpi_abort_in_a_signal_handler() {
    if Mpi::is_left_out(Mpi::Mpich, "MPI_Abort in a receive, where it may fail") {
        return;
    }
    ending("signal");
}

/// The collector's own frames are the last on the stack.
#[test]
fn out_of_stack() {
    ending("stack");
}

#[test]
fn exec_after_init() {
    ending("exec");
}

#[test]
fn exit_while_a_thread_calls_mpi() {
    ending("thread");
}

/// The children are a run of their own, with a trace of their own. Neither run misses the messages
/// between them.
#[test]
fn processes_that_are_spawned() {
    if Mpi::is_left_out(
        Mpi::Mpich,
        "MPI_Comm_spawn, which fails with Debian's 4.0.2",
    ) {
        return;
    }
    let attack = Attack::new("spawn", "spawn.c", &[]);
    attack.run();
    let mut traces = only_directories(&attack.bench.dir);
    traces.sort();
    assert_eq!(traces, ["trace", "trace.1"]);
    for trace in traces {
        let text = attack.bench.analyze_agreed(&attack.bench.path(&trace));
        let report = Report::parse(&text).expect("a report of the promised shape");
        assert_eq!(
            (report.run.ranks, report.errors().len()),
            (2, 0),
            "{trace}: {report:#?}"
        );
        assert_eq!(
            report.anomaly("unmatched_send") + report.anomaly("unmatched_receive"),
            0
        );
    }
}

/// Calls beyond the limit of signatures are counted, and the report says so.
#[test]
fn more_kinds_of_calls_than_are_told_apart() {
    let attack = Attack::new("kinds", "kinds.c", &[]);
    let report = attack.report();
    // 80,000 kinds in each rank, beyond the limit of signatures of a rank.
    let lost = report.anomaly("lost_calls");
    assert!((28_000..30_000).contains(&lost), "{lost}");
    let known = report.run.operations;
    assert!((290_000..293_000).contains(&(known + lost)), "{known}");
}

#[test]
fn longjmp_out_of_an_error_handler() {
    let attack = Attack::new("longjmp", "longjmp.c", &[]);
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
}

#[test]
fn short_lived_threads_and_signals() {
    let attack = Attack::new("threads", "threads.c", &[]);
    let report = attack.report();
    assert_no_anomalies(&report);
    assert_eq!(
        report.anomaly("unmatched_send") + report.anomaly("unmatched_receive"),
        0
    );
}

/// Every thread's calls are recorded, however it ended, and nothing is reported as missing. The
/// main thread goes on after a stack overflow.
#[test]
fn threads_that_end_early() {
    let attack = Attack::new("early", "early.c", &[]);
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    for rank in 0..2 {
        for thread in 1..5 {
            let path = attack.trace().join(laggard_trace::file_name(rank, thread));
            let location = laggard_trace::Location::open(&path).expect("a location");
            let end = location.end.expect("an end");
            // Beside these: a wait at the threads' barrier, and its end if another thread waits for that.
            assert!((5..=7).contains(&end.calls), "{path:?}: {}", end.calls);
            assert_eq!((end.recorded, end.reason), (end.calls, 2), "{path:?}");
        }
    }
    assert_eq!(report.locations.len(), 10);
}

/// The trace stays where it began, even for later threads, and all descriptors belong to the
/// program.
#[test]
fn a_program_that_goes_elsewhere_and_closes_everything() {
    let mut attack = Attack::new("elsewhere", "elsewhere.c", &[]);
    let elsewhere = attack.bench.path("other-place");
    std::fs::create_dir(&elsewhere).expect("a directory");
    attack.words.push(elsewhere.clone());
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    assert_eq!(report.locations.len(), 4);
    assert!(report.run.operations > 400_000, "{:#?}", report.run);
    for rank in 0..2 {
        let own = std::fs::read(elsewhere.join(format!("own-file-{rank}")));
        assert_eq!(own.expect("the program's file"), b"own");
    }
    assert_eq!(std::fs::read_dir(&elsewhere).expect("it").count(), 2);
}

#[test]
fn paused_by_pcontrol() {
    let attack = Attack::new("pcontrol", "pcontrol.c", &[]);
    let report = until_right("paused by MPI_Pcontrol", |_| {
        attack.forget_trace();
        let report = attack.report();
        let found = late_senders(&report, "wait_for_message");
        let total: f64 = found.iter().map(|b| b.severity_s).sum();
        check((0.100..0.150).contains(&(total / scale())), &report)?;
        Ok(report)
    });
    assert_eq!(
        report.anomaly("unmatched_send") + report.anomaly("unmatched_receive"),
        0
    );
    assert_calls_are_counted(&attack);
}

/// Calls during a pause count, too, and there are no more records than calls.
#[track_caller]
fn assert_calls_are_counted(attack: &Attack) {
    let mut info = Command::new(&attack.bench.command);
    info.arg("info").arg(attack.trace());
    let info = process::run(&mut info, TIMEOUT, &attack.bench.path("info")).expect_success();
    let count = |before: &str| {
        let end = info.stdout.find(before)?;
        let from = info.stdout[..end].rfind(", ")?;
        let digits = info.stdout[from..end].chars().filter(char::is_ascii_digit);
        digits.collect::<String>().parse::<u64>().ok()
    };
    let calls = count(" calls").expect("a number of calls");
    let recorded = count(" of them in records").unwrap_or(calls);
    assert!(calls > 10 && recorded <= calls, "{info}");
}

#[test]
fn paused_from_the_start() {
    let mut attack = Attack::new("paused", "wrapped.c", &[]);
    attack.env.push(("LAGGARD_PAUSED", "1".into()));
    let report = attack.report();
    assert!(late_senders(&report, "main").is_empty(), "{report:#?}");
    assert_calls_are_counted(&attack);
}

#[test]
fn off() {
    let mut attack = Attack::new("off", "wrapped.c", &[]);
    attack.env.push(("LAGGARD_MODE", "off".into()));
    let outcome = attack.run();
    assert!(
        !attack.trace().exists(),
        "a trace in spite of LAGGARD_MODE=off"
    );
    assert_eq!(outcome.stderr, "");
}

/// Runs with the collector preloaded, or with other settings, on only one of two ranks.
#[track_caller]
fn one_rank_is_different(test: &str, rank: u32, everywhere: bool, set: &str) -> (Bench, Outcome) {
    let bench = Bench::beside(test);
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let script =
        format!("[ ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} = {rank} ] && export {set}; exec \"$0\"");
    let words = [
        "sh".as_ref(),
        "-c".as_ref(),
        script.as_ref(),
        program.as_os_str(),
    ];
    let plain = bench.plain(2, &[program.as_os_str()]);
    let run = match everywhere {
        true => bench.traced(2, &words, "trace"),
        false => bench.plain(2, &words).env("LAGGARD_TRACE_DIR", "trace"),
    };
    let plain = plain.run().expect_orderly();
    let outcome = run.timeout(30).run().expect_orderly();
    assert_same(&plain, &outcome);
    (bench, outcome)
}

/// The collector must not start joint actions of ranks if one rank lacks it.
#[test]
fn preloaded_on_one_rank_only() {
    for rank in [0, 1] {
        let library = Bench::beside("preloaded-on-one").library.clone();
        let preload = format!("LD_PRELOAD={}", library.display());
        let (bench, outcome) = one_rank_is_different("preloaded-on-one", rank, false, &preload);
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert!(
            lines.len() == 1 && lines[0].starts_with(&format!("laggard[{rank}]: 1 of 2 ranks")),
            "{outcome}"
        );
        let report = Report::parse(&bench.analyze_agreed(&bench.path("trace")));
        let report = report.expect("a report of the promised shape");
        assert_eq!(report.anomaly("missing_ranks"), 1, "{report:#?}");
    }
}

/// A rank that records nothing still takes part in the clock measurement at the end.
#[test]
fn off_on_one_rank_only() {
    let (bench, _) = one_rank_is_different("off-on-one", 1, true, "LAGGARD_MODE=off");
    let report = Report::parse(&bench.analyze_agreed(&bench.path("trace")));
    let report = report.expect("a report of the promised shape");
    assert_eq!(report.anomaly("missing_ranks"), 1, "{report:#?}");
}

/// Without memory the recording ends, the program does not.
#[test]
fn memory_is_short() {
    let attack = Attack::new("memory", "memory.c", &[]);
    let outcome = attack.run();
    let mut lines: Vec<&str> = outcome.stderr.lines().collect();
    lines.sort();
    let said = |rank: usize| format!("laggard[{rank}]: memory is short");
    assert!(
        lines.len() == 2 && (0..2).all(|rank| lines[rank].starts_with(&said(rank))),
        "{outcome}"
    );
    attack.bench.analyze_agreed(&attack.trace());
}

/// Descriptors belong to the program. A thread that momentarily has none is not recorded, and the
/// report says so.
#[test]
fn descriptors_are_the_programs() {
    let attack = Attack::new("descriptors", "descriptors.c", &[]);
    let report = attack.report();
    assert_eq!(report.anomaly("unrecorded_threads"), 2, "{report:#?}");
    let other = |a: &&Anomaly| a.severity != "info" && a.id != "unrecorded_threads";
    let other = report.anomalies.iter().filter(other);
    assert_eq!(other.count(), 0, "{:#?}", report.anomalies);
    let info = Command::new(&attack.bench.command)
        .arg("info")
        .arg(attack.trace())
        .output()
        .expect("info");
    let text = String::from_utf8_lossy(&info.stdout);
    assert!(text.contains("unrecorded threads (2 times)"), "{text}");
}

/// A signal while the file grows is not taken for a full disk.
#[test]
fn interrupted_by_signals() {
    let mut attack = Attack::new("interrupted", "wrapped.c", &[]);
    let cflags = ["-shared", "-fPIC", "-D_GNU_SOURCE"];
    let library = attack.bench.compile("attacks/interrupted.c", &cflags, &[]);
    let library = library.to_string_lossy().into_owned();
    attack.env.push(("LD_PRELOAD", library));
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
}

/// POSIX I/O behaves as without the collector, and what waits is recorded as ever.
fn posix_io(how: &str) {
    let attack = Attack::new(&format!("posix-io-{how}"), "posix_io.c", &[how]);
    let report = attack.three_rounds("late_message");
    assert_no_anomalies(&report);
    assert_eq!(
        only_directories(&attack.bench.dir),
        ["trace"],
        "traces of children"
    );
}

/// Handlers write slowly, also while the allocator is locked: none of it is a record.
#[test]
fn writes_in_signal_handlers() {
    posix_io("signals");
}

#[test]
fn writes_of_forked_children() {
    posix_io("children");
}

#[test]
fn results_and_errno_of_posix_io() {
    posix_io("results");
}

/// A thread ends in a read, and a handler jumps out of one.
#[test]
fn cancelled_in_a_read() {
    posix_io("cancel");
}

#[test]
fn streams_and_descriptors() {
    posix_io("streams");
}

#[test]
fn small_stacks() {
    let attack = Attack::new("small-stacks", "small_stacks.c", &[]);
    let report = attack.report();
    assert!(report.locations.len() > 2, "{report:#?}");
}

#[test]
fn error_codes_and_statuses() {
    let attack = Attack::new("errors", "errors.c", &[]);
    let report = attack.report();
    assert!(report.errors().is_empty(), "{:#?}", report.anomalies);
}

#[test]
fn statuses_ignored() {
    let attack = Attack::new("status-ignore", "status_ignore.c", &[]);
    let report = attack.report();
    assert_no_anomalies(&report);
}

#[test]
fn odd_but_correct() {
    let attack = Attack::new("odd", "odd.c", &[]);
    let report = attack.report();
    assert_no_anomalies(&report);
}

/// A relative trace directory is relative to where the program started, not to where it moved.
#[test]
fn default_trace_directory() {
    let attack = Attack::new("default-directory", "odd.c", &[]);
    let words: Vec<&OsStr> = attack.words.iter().map(|w| w.as_os_str()).collect();
    let library = attack.bench.library.to_string_lossy().into_owned();
    let run = attack.bench.plain(2, &words).env("LD_PRELOAD", library);
    run.run().expect_orderly().expect_success();
    attack
        .bench
        .analyze_agreed(&attack.bench.path("laggard-trace"));
}

/// An OpenSHMEM that numbers PEs in its own way is not recorded; one line and an anomaly say so.
#[test]
fn pes_that_are_not_the_ranks_with_their_numbers() {
    let bench = Bench::beside("other-pes");
    let library = bench.library("attacks/pes_of_some.c");
    let library = library.to_string_lossy().into_owned();
    let program = bench.compile("attacks/other_pes.c", &[], &[&library]);
    let words = [program.as_os_str()];
    let plain = bench.plain(3, &words).run();
    let plain = plain.expect_orderly().expect_success();
    let trace = bench.path("trace");
    let report = three_rounds("main", || {
        let _ = std::fs::remove_dir_all(&trace);
        let traced = bench.traced(3, &words, "trace").run().expect_orderly();
        assert_same(&plain, &traced);
        let lines: Vec<&str> = traced.stderr.lines().collect();
        let said = "calls of OpenSHMEM are not recorded: its 2 PEs are not numbered as the 3 ranks";
        assert!(lines.len() == 1 && lines[0].contains(said), "{traced}");
        let report = Report::parse(&bench.analyze_agreed(&trace));
        report.expect("a report of the promised shape")
    });
    assert_eq!(report.anomaly("pes_are_not_ranks"), 2, "{report:#?}");
    assert!(report.errors().is_empty(), "{:#?}", report.anomalies);
    let dump = bench.dump(&trace);
    let calls = dump.lines().filter_map(|l| l.split_whitespace().nth(3));
    assert!(
        !calls.clone().any(|call| call.starts_with("shmem")),
        "{dump}"
    );
    // Even calls after the first shmem_finalize.
    let receives = calls.filter(|&call| call == "MPI_Recv");
    assert_eq!(receives.count(), 3, "{dump}");
}

/// Another tool's wrappers, between the program and MPI, or in the program itself.
#[test]
fn with_a_wrapper_library_of_the_users() {
    let mut attack = Attack::new("wrapper-library", "wrapped.c", &[]);
    let cflags = ["-shared", "-fPIC"];
    let wrapper = attack
        .bench
        .compile("attacks/counting_wrapper.c", &cflags, &[]);
    let wrapper = wrapper.to_string_lossy().into_owned();
    attack.env.push(("LD_PRELOAD", wrapper));
    attack.three_rounds("main");
}

#[test]
fn with_wrappers_in_the_program() {
    let bench = Bench::beside("wrapped-in-program");
    let wrapper = laggard_tests::product::programs().join("attacks/counting_wrapper.c");
    let wrapper = wrapper.to_string_lossy().into_owned();
    let program = bench.compile("attacks/wrapped.c", &[&wrapper], &[]);
    let words = vec![program];
    let env = Vec::new();
    let attack = Attack { bench, words, env };
    // The calling function is in the wrapper: the program calls no other MPI_Recv.
    attack.three_rounds("");
}

/// A program without MPI runs as usual and leaves nothing behind.
#[test]
fn programs_without_mpi() {
    let bench = Bench::beside("no-mpi");
    let cases: [&[&str]; 5] = [
        &["/bin/ls", "/"],
        &[
            "python3",
            "-c",
            "import os, sys; print(sys.version, os.getpid() > 0)",
        ],
        &["sh", "-c", "echo one; (echo two) | cat; exit 3"],
        &["true"],
        &["sh", "-c", "kill -TERM $$"],
    ];
    for words in cases {
        let run = |preload: bool| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).current_dir(&bench.dir);
            if preload {
                command.env("LD_PRELOAD", &bench.library);
            }
            process::run(&mut command, TIMEOUT, &bench.path("no-mpi"))
        };
        let (plain, preloaded) = (run(false), run(true));
        assert_same(&plain, &preloaded);
        assert_eq!(preloaded.stderr, plain.stderr);
    }
    assert_eq!(only_directories(&bench.dir), [""; 0]);
}

/// The program goes on when its trace is truncated, and gets a message. The rest of the trace does
/// not look like the program's end.
#[test]
fn traces_are_cut_off() {
    for bytes in ["0", "5000"] {
        let attack = Attack::new(&format!("cut-off-{bytes}"), "cut_off.c", &["trace", bytes]);
        let said = attack.run().stderr;
        for rank in 0..2 {
            let line = format!("laggard[{rank}]: the trace of this rank is cut short: somebody");
            assert_eq!(said.matches(&line).count(), 1, "{said}");
        }
        let report = attack.bench.path("report.json");
        let outcome = attack.bench.analyze(&attack.trace(), 1, &report, &["-q"]);
        let outcome = outcome.expect_orderly();
        assert!(outcome.signal.is_none(), "{outcome}");
    }
}

/// A SIGBUS of the program stays the program's.
#[test]
fn other_files_are_cut_off() {
    for how in ["handled", "chained", "default", "sent"] {
        let attack = Attack::new(&format!("cut-off-{how}"), "cut_off.c", &[how]);
        match how {
            "chained" | "default" => attack.run_to_an_end(),
            _ => attack.run(),
        };
    }
}
