//! MPI that the program, a plugin or another tool loads and looks up itself.

use std::ffi::OsStr;

use laggard_tests::attack::{Attack, assert_no_anomalies, assert_same, late_senders, three_rounds};
use laggard_tests::mpi::Mpi;
use laggard_tests::process::Outcome;
use laggard_tests::product::Bench;
use laggard_tests::recorded::mark;
use laggard_tests::report::Report;

#[test]
fn library_loaded_and_unloaded() {
    let mut attack = Attack::new("dlopen", "dlopen.c", &[]);
    let cflags = ["-shared", "-fPIC"];
    let plugin = attack.bench.compile("attacks/plugin.c", &cflags, &[]);
    attack.words.push(plugin);
    let report = attack.three_rounds("plugin_receive");
    assert_no_anomalies(&report);
    let found = late_senders(&report, "plugin_receive");
    assert!(
        found.iter().all(|b| b.location.is("plugin.c", 9)),
        "{found:#?}"
    );
}

/// Exactly the calls of `dlopen_mpi.c` and `ctypes_mpi.py`.
#[track_caller]
fn assert_all_calls(attack: &Attack) {
    let dump = attack.bench.dump(&attack.trace());
    let expected = [
        ("MPI_Init", 2),
        ("MPI_Allreduce", 2),
        ("MPI_Send", 3),
        ("MPI_Recv", 3),
        ("MPI_Finalize", 2),
    ];
    for (call, times) in expected {
        let lines = dump
            .lines()
            .filter(|l| l.split_whitespace().any(|w| w == call));
        assert_eq!(lines.count(), times, "{call} in\n{dump}");
    }
}

/// The program looks the functions up in the MPI library: recorded like any other.
fn loading_mpi(how: &str) {
    let attack = Attack::unlinked(&format!("dlopen-mpi-{how}"), "dlopen_mpi.c", &[how]);
    let report = attack.three_rounds("main");
    assert_no_anomalies(&report);
    assert_all_calls(&attack);
    let found = late_senders(&report, "main");
    assert!(
        found.iter().all(|b| b
            .location
            .is("dlopen_mpi.c", mark("attacks/dlopen_mpi.c", "recv"))),
        "{found:#?}"
    );
}

#[test]
fn mpi_is_loaded_for_all() {
    loading_mpi("global");
}

#[test]
fn mpi_is_loaded_for_the_program_only() {
    loading_mpi("local");
}

#[test]
fn mpi_is_loaded_with_its_own_functions_first() {
    loading_mpi("deepbind");
}

/// Looked-up functions still work after MPI was closed and loaded again.
#[test]
fn mpi_is_loaded_again() {
    loading_mpi("again");
}

fn python_without_a_module(scope: &str) {
    // The script uses Open MPI's handles.
    if Mpi::is_left_out(Mpi::Mpich, "ctypes_mpi.py") {
        return;
    }
    let script = laggard_tests::product::programs().join("attacks/ctypes_mpi.py");
    let attack = Attack {
        bench: Bench::beside(&format!("ctypes-{scope}")),
        words: vec![laggard_tests::product::python(), script, scope.into()],
        env: Vec::new(),
    };
    let report = attack.three_rounds("receive");
    assert_no_anomalies(&report);
    assert_all_calls(&attack);
    let found = late_senders(&report, "receive");
    assert!(
        found.iter().all(|b| b.location.is("ctypes_mpi.py", 22)),
        "{found:#?}"
    );
}

#[test]
fn python_with_ctypes() {
    python_without_a_module("local");
}

#[test]
fn python_with_ctypes_and_mpi_for_all() {
    python_without_a_module("global");
}

/// Another tool looks up the next function in the MPI library. It is loaded before or after the
/// collector, and the program is linked with MPI or looks it up itself.
fn tool_by_handle(test: &str, is_first: bool, is_linked: bool) {
    let attack = match is_linked {
        true => Attack::new(test, "wrapped.c", &[]),
        false => Attack::unlinked(test, "dlopen_mpi.c", &["local"]),
    };
    let tool = attack.library("handle_tool.c");
    let words: Vec<&OsStr> = attack.words.iter().map(|w| w.as_os_str()).collect();
    let [tool, collector] = [&tool, &attack.bench.library].map(|l| l.display().to_string());
    let run = |preload: String| {
        let trace = attack.trace().to_string_lossy().into_owned();
        let run = attack.bench.plain(2, &words).env("LD_PRELOAD", preload);
        let run = run.env("LAGGARD_TRACE_DIR", trace).run();
        run.expect_orderly().expect_success()
    };
    let plain = run(tool.clone());
    // Before the collector, the tool's function is the caller.
    let report = three_rounds("", || {
        attack.forget_trace();
        let traced = run(match is_first {
            true => format!("{tool}:{collector}"),
            false => format!("{collector}:{tool}"),
        });
        assert_same(&plain, &traced);
        assert_eq!(traced.stderr, "");
        let report = Report::parse(&attack.bench.analyze_agreed(&attack.trace()));
        report.expect("a report of the promised shape")
    });
    assert_no_anomalies(&report);
    assert_all_calls(&attack);
}

#[test]
fn before_a_tool_that_looks_up_by_handle() {
    tool_by_handle("before-handle-tool", false, true);
}

#[test]
fn behind_a_tool_that_looks_up_by_handle() {
    tool_by_handle("behind-handle-tool", true, true);
}

#[test]
fn before_a_tool_that_looks_up_by_handle_as_the_program_does() {
    tool_by_handle("before-handle-tool-unlinked", false, false);
}

#[test]
fn behind_a_tool_that_looks_up_by_handle_as_the_program_does() {
    tool_by_handle("behind-handle-tool-unlinked", true, false);
}

/// Lookups that depend on the caller, and the resulting dlerror(), are as usual.
#[test]
fn lookups_of_the_program_and_a_plugin() {
    let mut attack = Attack::unlinked("dlsym", "dlsym.c", &[]);
    let plugin = attack.library("dlsym_plugin.c");
    attack.words.push(plugin);
    let outcome = attack.run();
    let found = |line: &str| outcome.stdout.lines().filter(|l| *l == line).count();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(outcome.stderr, "");
    // The program does depend on the caller, or the comparison would show nothing.
    let plugins = "plugin, default only_in_plugin: dlsym_plugin, no error";
    assert_eq!(found(plugins), 2, "{outcome}");
    assert_eq!(
        found("MPI_Send after an error: MPI, no error"),
        2,
        "{outcome}"
    );
}

/// One line of one rank, and nothing else.
#[track_caller]
fn assert_says_other_mpi(outcome: &Outcome) {
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let start = "laggard: nothing is recorded: this program uses another MPI library (";
    assert!(lines.len() == 1 && lines[0].starts_with(start), "{outcome}");
}

/// Another family's handles mean nothing here, even if looked up by handle.
#[test]
fn mpi_of_another_family_is_loaded() {
    let mut attack = Attack::unlinked("other-mpi", "other_mpi.c", &[]);
    let library = attack.library("libmpi_other.c");
    attack.words.push(library);
    let outcome = attack.run();
    assert_says_other_mpi(&outcome);
    assert!(!attack.trace().exists(), "a trace of another MPI");
}

/// Calls that cannot be recorded are reported.
#[test]
fn mpi_that_no_preloaded_library_sees() {
    let mut attack = Attack::unlinked("deepbind", "deepbind.c", &[]);
    let plugin = attack.library("deepbind_plugin.c");
    attack.words.push(plugin);
    let outcome = attack.run();
    let said = |line: &&str| line.starts_with("laggard: nothing is recorded: ");
    assert_eq!(outcome.stderr.lines().filter(said).count(), 2, "{outcome}");
}
