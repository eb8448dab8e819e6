//! Damage of an archive is an error that describes it, or an anomaly and the rest.

use std::fs;
use std::path::Path;

use laggard_otf2::LIBRARY_NAMES;
use laggard_tests::archive::{Archive, Call};
use laggard_tests::process::Outcome;
use laggard_tests::product::Bench;

use super::{patterns, refused, reported};

/// Two ranks; one waits 40 ms for the other.
fn late_sender() -> Archive {
    let mut archive = Archive::new(2);
    archive.line("region main app.c 3");
    let calls: [Call<'_>; 2] = [
        (0, "MPI_Send", (40_000, 40_005), &["send 1 world 7 64"]),
        (1, "MPI_Recv", (0, 40_010), &["recv 0 world 7 64"]),
    ];
    archive.function("late", 10, 1_000_000, 90_000_000, &calls);
    archive
}

#[test]
fn without_the_library_its_package_is_named() {
    let bench = Bench::beside("otf2-no-library");
    let anchor = late_sender().write(&bench, "archive");
    // Found before the real library, but not a library.
    let empty = bench.path("libraries");
    fs::create_dir(&empty).expect("a directory");
    for name in LIBRARY_NAMES {
        fs::write(empty.join(name), "").expect("a file");
    }
    let trace = bench.path("none");
    let commands: [&[&Path]; 2] = [
        &[Path::new("info"), &anchor],
        &[Path::new("analyze"), &anchor, Path::new("-o"), &trace],
    ];
    for words in commands {
        let mut command = std::process::Command::new(&bench.command);
        command.args(words).env("LD_LIBRARY_PATH", &empty);
        let outcome = laggard_tests::process::run(
            &mut command,
            laggard_tests::product::TIMEOUT,
            &bench.path("command"),
        );
        let Outcome { code, stderr, .. } = outcome.expect_orderly();
        assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
        assert!(stderr.contains("libopen-trace-format2"), "{stderr}");
    }
}

#[test]
fn times_that_go_backward_are_told_and_taken_for_simultaneous() {
    let bench = Bench::beside("otf2-backward");
    let mut archive = late_sender();
    // Moves the end of the receive before its beginning.
    archive.line("moved 1 41010000 500000");
    let report = reported(&bench, &archive.write(&bench, "archive"));
    // The received message, too.
    assert_eq!(report.anomaly("times_backward"), 2);
    assert_eq!(report.run.operations, 2);
}

#[test]
fn values_that_there_are_none_of_do_not_matter() {
    let bench = Bench::beside("otf2-odd");
    let mut archive = late_sender();
    archive.line("odd").line("kind 8 1 77");
    for (rank, enter) in [(0, 100_000_000), (1, 130_000_000)] {
        let over: &[&str] = &["begin", "end 99 world none 0 0"];
        archive.call((rank, "MPI_Barrier", (enter, 130_010_000), over));
    }
    let report = reported(&bench, &archive.write(&bench, "archive"));
    for (pattern, seconds) in [("late_sender", 0.04), ("wait_at_barrier", 0.03)] {
        let found = report.metrics.get(pattern).map_or(0.0, |m| m.total_s);
        assert!((found - seconds).abs() < 1e-9, "{pattern}: {found} s");
    }
    assert_eq!(report.anomaly("other_locations"), 1);
}

#[test]
fn files_of_locations_that_are_not_defined_are_told() {
    let bench = Bench::beside("otf2-stray");
    let mut archive = late_sender();
    archive.line("thread 10 1").line("lost 10");
    archive
        .event(10, 5, "enter main")
        .event(10, 9, "leave main");
    let report = reported(&bench, &archive.write(&bench, "archive"));
    assert_eq!(report.anomaly("undefined_locations"), 1);
    assert!(report.metrics.contains_key("late_sender"));
}

#[test]
fn anchors_that_lead_elsewhere_or_promise_too_much_are_refused() {
    let bench = Bench::beside("otf2-anchor");
    let anchor = late_sender().write(&bench, "archive");
    // Its files would be those of the parent directory.
    let inside = anchor.with_file_name("traces").join("...otf2");
    fs::copy(&anchor, &inside).expect("a copy");
    refused(&bench, &inside, &["...otf2", "leads out of"]);
    let mut bytes = fs::read(&anchor).expect("an anchor file");
    // Three texts, empty here, begin at 46.
    for count in [u32::MAX, 1 << 31, 12] {
        bytes[49..53].copy_from_slice(&count.to_le_bytes());
        fs::write(&anchor, &bytes).expect("written");
        refused(&bench, &anchor, &["traces.otf2", "properties"]);
    }
}

/// The period of samples says how long each one is: at a hundred years, one would be any number of records.
#[test]
fn samples_are_of_periods_that_there_are() {
    let bench = Bench::beside("otf2-periods");
    for (period, is_told) in [
        ("10 -3 10", true),
        ("2 5 1", true),
        ("10 0 100", false),
        ("10 -12 1", false),
    ] {
        let mut archive = late_sender();
        archive
            .line("region work app.c 5")
            .line("context in_work work app.c 6")
            .line(&format!("period {period}"))
            .event(0, 91_000_000, "sample in_work 1")
            .event(0, 92_000_000, "enter MPI_Iprobe")
            .event(0, 92_010_000, "leave MPI_Iprobe");
        let dump = bench.dump(&archive.write(&bench, "archive"));
        assert_eq!(dump.contains(" sampled=path "), is_told, "{period}: {dump}");
        fs::remove_dir_all(bench.path("archive")).expect("the archive goes");
    }
}

/// Teams within teams without end are told, and take no memory without end.
#[test]
fn teams_are_nested_to_a_bound() {
    const TEAMS: u64 = (1 << 16) + 10;
    let bench = Bench::beside("otf2-nested");
    let mut archive = late_sender();
    archive.line("team first 0");
    for begin in 0..TEAMS {
        archive.event(0, 95_000_000 + begin, "team_begin first");
    }
    let report = reported(&bench, &archive.write(&bench, "archive"));
    assert_eq!(report.anomaly("unmatched_regions"), 10);
    assert!(report.metrics.contains_key("late_sender"));
}

/// Any wrong bytes are reported or do not matter, and do not take long.
#[test]
fn any_byte_of_any_file_may_be_wrong() {
    let bench = Bench::beside("otf2-bytes");
    let (archive, _) = patterns();
    let anchor = archive.write(&bench, "archive");
    let local = anchor.with_file_name("traces").join("1.def");
    for file in [anchor.clone(), anchor.with_extension("def"), local] {
        let whole = fs::read(&file).expect("a file");
        for at in (0..whole.len()).step_by(whole.len().div_ceil(16)) {
            let mut spoiled = whole.clone();
            spoiled[at] ^= 0xff;
            fs::write(&file, &spoiled).expect("written");
            let report = bench.path("report.json");
            let outcome = bench.analyze(&anchor, 1, &report, &["--all", "-q"]);
            let code = outcome.expect_orderly().code;
            let name = file.display();
            assert!(matches!(code, Some(0 | 1)), "{name}, byte {at}: {code:?}");
        }
        fs::write(&file, &whole).expect("written");
    }
}
