//! OTF2 archives with many locations, and archives larger than memory, are exported and analysed.

mod limit;

use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_benchmarks::process;
use laggard_generator::{Expected, Length, Program, Settings, differences, generate};
use laggard_report::Report;

use limit::{Limit, forget, limited};

/// Largest error of each of the two times of a loss in an archive, whose clock counts ns.
const RESOLUTION_NS: u64 = 2;

/// The program in a shell with a limit of open files.
fn with_files(files: u32, command: &mut Command) -> &mut Command {
    let script = format!(r#"ulimit -n {files} && exec "$0" "$@""#);
    command
        .args(["sh", "-c", &script])
        .arg(process::built("laggard", "LAGGARD_BIN").unwrap())
}

fn export(trace: &Path, command: &mut Command) -> PathBuf {
    let archive = trace.with_extension("archive");
    command.arg("export").arg(trace).args(["--to", "otf2"]);
    process::run(command.arg("-q").arg("-o").arg(&archive)).unwrap();
    archive.join("traces.otf2")
}

/// Has a command analyse a trace or an archive.
fn analyze(command: &mut Command, trace: &Path) -> Report {
    let output = trace.with_extension("report.json");
    command.arg("analyze").arg(trace).arg("-o").arg(&output);
    // The ledger charges the last member of a collective.
    command.args(["--all", "--charge", "last", "-q"]);
    command.args(["--format", "none", "--threads", "1"]);
    process::run(command).unwrap();
    Report::read(&output).unwrap()
}

/// Compares the report of an archive with its trace's expectations, up to the resolution of its
/// clock.
fn check(trace: &Path, report: &Report) {
    let mut expected = Expected::read(trace).unwrap();
    expected.run.clock_error_ns = RESOLUTION_NS;
    let found = differences(&expected, report);
    assert!(found.is_empty(), "{}", found.join("\n  "));
}

/// A finding without its times: pattern, operation, line, calls, instances, ranks, and each cause's
/// rank, line and words.
fn told(report: &Report) -> Vec<String> {
    let mut told: Vec<String> = (report.bottlenecks.iter())
        .map(|found| {
            let causes = found.causes.iter().map(|cause| {
                let at = (&cause.location.file, cause.location.line);
                (cause.rank, cause.operation.clone(), at)
            });
            let mut causes: Vec<_> = causes.collect();
            causes.sort_unstable();
            format!(
                "{} {} {}:{} {} {} {:?} {causes:?}",
                found.pattern,
                found.operation,
                found.location.file,
                found.location.line,
                found.calls,
                found.instances,
                found.rank_set,
            )
        })
        .collect();
    told.sort_unstable();
    told
}

/// The limit of open files is far below the number of locations; the larger ones are mapped.
#[test]
fn locations_without_end_need_few_files() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let trace = &directory.path().join("trace");
    let settings = Settings {
        faults: vec!["slow-rank=77:50".parse().unwrap()],
        ..Settings::new(Program::Halo2d, 200, Length::Calls(1_200_000))
    };
    generate(&settings, trace).unwrap();
    let mut plain = Command::new("env");
    let archive = export(trace, with_files(64, &mut plain));
    let own = analyze(with_files(64, &mut Command::new("env")), trace);
    for agents in 1..=3 {
        let mut command = match agents {
            1 => Command::new("env"),
            agents => process::mpirun(agents),
        };
        let report = analyze(with_files(64, &mut command), &archive);
        check(trace, &report);
        assert_eq!(told(&report), told(&own), "{agents} agents");
    }
}

/// Without room for temporary files, a report has no root causes, and everything else.
#[test]
fn root_causes_need_room() {
    let directory = tempfile::tempdir().unwrap();
    let trace = &directory.path().join("trace");
    let settings = Settings {
        faults: vec!["noise=30".parse().unwrap()],
        ..Settings::new(Program::Halo2d, 8, Length::Calls(400_000))
    };
    generate(&settings, trace).unwrap();
    let laggard = process::built("laggard", "LAGGARD_BIN").unwrap();
    let mut whole = analyze(&mut Command::new(&laggard), trace);
    // Links to root causes, hints that follow from them or promise what a replay gains, and
    // between which calls a rank computed.
    for found in &mut whole.bottlenecks {
        (found.root_causes, found.hints, found.advice) = Default::default();
        for cause in &mut found.causes {
            if let Some((said, _)) = cause.because.split_once(" before the send, ") {
                cause.because = format!("{said} before the send");
            }
        }
    }
    let roots = whole.root_causes.take();
    assert!(roots.is_some_and(|roots| !roots.is_empty()));
    for agents in 1..=2 {
        let mut tmpdir = std::ffi::OsString::from("TMPDIR=");
        tmpdir.push(directory.path().join("nowhere"));
        let mut command = process::mpirun(agents);
        let mut without = analyze(command.arg("env").arg(tmpdir).arg(&laggard), trace);
        for found in &mut without.bottlenecks {
            (found.hints, found.advice) = Default::default();
        }
        assert_eq!((&without.root_causes, without.untraced_s), (&None, None));
        assert_eq!(without.unlisted_s, None);
        assert_eq!(without.bottlenecks, whole.bottlenecks);
        let said = without
            .anomalies
            .iter()
            .filter(|row| row.id == "no_root_causes");
        assert_eq!(said.count(), 1, "{:?}", without.anomalies);
    }
}

#[test]
fn archives_larger_than_memory_are_analysed() {
    // Neither it nor the working copies may lie in a file system in memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let trace = &directory.path().join("trace");
    let settings = Settings {
        faults: vec!["slow-rank=5:50".parse().unwrap()],
        ..Settings::new(Program::Halo2d, 64, Length::Calls(12_000_000))
    };
    generate(&settings, trace).unwrap();
    let laggard = process::built("laggard", "LAGGARD_BIN").unwrap();
    let archive = export(trace, &mut Command::new(&laggard));
    forget(trace).unwrap();
    let bytes = forget(archive.parent().unwrap()).unwrap();
    assert!(bytes > 300 << 20, "{bytes}");
    // A fraction of the working copies, too, which are a third of the archive.
    let limit = bytes / 8;
    let group = Limit::new(limit);
    let mut command = limited(group.as_ref(), limit);
    command.args(["timeout", "400"]).arg(laggard);
    let report = analyze(command.env("TMPDIR", directory.path()), &archive);
    if let Some(peak) = group.as_ref().and_then(Limit::peak) {
        assert!(peak <= limit, "{peak} of {limit}");
    }
    check(trace, &report);
}
