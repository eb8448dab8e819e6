//! What calls are beside work, of traces made in memory: only what is no waiting makes them longer.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::Report;
use laggard_trace::calls::number;

const MS: u64 = 1_000_000;

/// Two ranks after their start-up.
fn begun() -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all
}

/// A reduction at rank 0, which rank 1 enters at `came` and rank 0 leaves at `left`; and a barrier, in
/// which rank 1 waits for rank 0. All in ms, from `from` on.
fn reduce(all: &mut [Calls], from: u64, came: u64, left: u64) {
    all[0].collective(10, number::MPI_Reduce, 0, from * MS, left * MS);
    all[1].collective(10, number::MPI_Reduce, 0, came * MS, came * MS + 1000);
    all[0].collective(20, number::MPI_Barrier, -1, left * MS, left * MS + 1000);
    let enter = came * MS + 2000;
    all[1].collective(20, number::MPI_Barrier, -1, enter, left * MS + 1000);
}

fn report(all: Vec<Calls>, end: u64, charge_last: bool) -> Report {
    let options = AnalyzeOptions {
        charge_last,
        ..AnalyzeOptions::default()
    };
    report_with(all, end, options)
}

fn report_with(mut all: Vec<Calls>, end: u64, mut options: AnalyzeOptions) -> Report {
    for rank in &mut all {
        rank.call(40, finalize(), end * MS, end * MS + 1000);
    }
    options.settings.all = true;
    analyze_with(all, &options)
}

/// Waiting that rank 0 starts in its reductions by this, ms.
fn started(report: &Report, activity: &str) -> f64 {
    let all = report.root_causes.as_ref().unwrap().iter();
    let found = all.filter(|root| {
        root.activity == activity
            && (&*root.operation, &*root.rank_set) == ("MPI_Reduce", "0")
            && root.until.is_none()
    });
    1e3 * found.map(|root| root.severity_s).sum::<f64>()
}

/// Time lost in reductions since others had the processor, ms.
fn without_processor(report: &Report) -> f64 {
    1e-6 * total(report, "without_processor") as f64
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.05, "{found} {expected}");
}

#[test]
fn a_call_is_longer_without_a_processor() {
    let run = |charge_last| {
        let mut all = begun();
        all[0].is_off_inside([3 * MS, 18 * MS, 0], 0);
        reduce(&mut all, 2, 2, 27);
        report(all, 40, charge_last)
    };
    let told = run(false);
    near(started(&told, "preempted"), 18.0);
    near(started(&told, "blocked"), 3.0);
    near(started(&told, "call"), 4.0);
    near(without_processor(&told), 18.0);
    let root = &told.root_causes.as_ref().unwrap()[0];
    assert!(
        root.because.starts_with("was without a processor"),
        "{}",
        root.because
    );
    let path = told.critical_path.as_ref().unwrap().profile.iter();
    assert!(
        path.filter(|row| row.operation == "MPI_Reduce")
            .all(|row| row.kind == "call")
    );
    // As in Scalasca, it is all the call.
    let last = run(true);
    near(started(&last, "call"), 25.0);
    near(started(&last, "preempted"), 0.0);
}

/// The other calls at this place had a processor.
#[test]
fn calls_without_a_processor_are_counted() {
    let mut all = begun();
    reduce(&mut all, 2, 2, 3);
    all[0].is_off_inside([0, 18 * MS, 0], 0);
    reduce(&mut all, 4, 4, 30);
    reduce(&mut all, 31, 31, 32);
    let report = report(all, 40, false);
    let mut found = report.bottlenecks.iter();
    let found = found.find(|found| found.pattern == "without_processor");
    assert_eq!(found.unwrap().instances, 1);
}

/// What the late rank of a wait in barriers did, and the advice that follows.
fn because(report: &Report) -> (&str, &[String]) {
    let mut all = report.bottlenecks.iter();
    let found = all.find(|found| found.pattern == "wait_at_barrier");
    let found = found.expect("a wait in a barrier");
    (&found.causes[0].because, &found.hints)
}

/// A finding says so of the late rank, too.
#[test]
fn who_is_late_was_without_a_processor_in_a_call() {
    for (off, said, advice) in [
        (
            [0, 20],
            ", 80 % of it without a processor before it came",
            "takes the processor from rank 0",
        ),
        (
            [25, 0],
            ", 100 % of it asleep or blocked before it came",
            "asleep or blocked in",
        ),
        // Less than half of it.
        ([5, 12], ") before it came", "so long in"),
    ] {
        let mut all = begun();
        all[0].is_off_inside([off[0] * MS, off[1] * MS, 0], 0);
        reduce(&mut all, 2, 2, 27);
        // Where root causes are known, the advice is with these.
        let options = AnalyzeOptions {
            fast: true,
            ..AnalyzeOptions::default()
        };
        let report = report_with(all, 40, options);
        let (because, hints) = because(&report);
        assert!(
            because.starts_with("spent 25.0 ms in MPI_Reduce"),
            "{because}"
        );
        assert!(because.ends_with(said), "{because}");
        assert!(hints.iter().any(|hint| hint.contains(advice)), "{hints:?}");
    }
}

/// A near miss: it waits there, and gives its processor away meanwhile.
#[test]
fn who_waits_without_a_processor_waits() {
    let mut all = begun();
    all[0].is_off_inside([0, 20 * MS, 0], 0);
    reduce(&mut all, 2, 26, 27);
    let report = report(all, 40, false);
    let found = report.bottlenecks.iter().flat_map(|found| &found.causes);
    let told: Vec<_> = found.map(|cause| &cause.because).collect();
    assert!(!told.is_empty());
    assert!(
        told.iter().all(|because| !because.contains("processor")),
        "{told:?}"
    );
}

/// A near miss: whoever yields its processor while it waits is late for nobody.
#[test]
fn waits_without_a_processor_are_waits() {
    let mut all = begun();
    for round in 0..4 {
        let from = 2 + 20 * round;
        all[0].is_off_inside([0, 8 * MS, 0], 0);
        // The last one computes in the reduction, too.
        reduce(
            &mut all,
            from,
            from + 10,
            from + if round == 3 { 14 } else { 10 },
        );
    }
    let report = report(all, 100, false);
    near(started(&report, "preempted"), 0.0);
    near(without_processor(&report), 0.0);
}

/// It waits without a processor as ever, and then it is longer without one.
#[test]
fn what_goes_beyond_the_usual_wait_is_of_the_call() {
    let mut all = begun();
    for round in 0..3 {
        let from = 2 + 20 * round;
        all[0].is_off_inside([0, 8 * MS, 0], 0);
        reduce(&mut all, from, from + 10, from + 10);
    }
    all[0].is_off_inside([0, 20 * MS, 0], 0);
    reduce(&mut all, 62, 72, 87);
    let report = report(all, 100, false);
    near(without_processor(&report), 12.0);
}

/// System calls are how libraries work; new pages are not.
#[test]
fn the_kernel_counts_as_far_as_pages_explain_it() {
    for (faults, kernel) in [(0, 0.0), (4, 2.0), (1000, 9.0)] {
        let mut all = begun();
        all[0].is_off_inside([0, 0, 9 * MS], faults);
        reduce(&mut all, 2, 2, 22);
        let report = report(all, 40, false);
        near(started(&report, "kernel"), kernel);
        near(started(&report, "call"), 20.0 - kernel);
    }
}

/// Nothing beyond a call's own time: clocks and readings may say more.
#[test]
fn no_call_is_longer_without_a_processor_than_it_took() {
    let mut all = begun();
    all[0].is_off_inside([0, u64::MAX, 0], 0);
    reduce(&mut all, 2, 12, 17);
    let report = report(all, 40, false);
    near(without_processor(&report), 5.0);
}

/// A file operation at rank 0 that is asleep in it, without a processor and in the kernel, and `file` of it ends with
/// `operation`.
fn file(operation: u16, off: [u64; 3], waits: u64) -> Report {
    let mut all = begun();
    all[0].collective(10, operation, -1, 2 * MS, 3 * MS);
    all[1].collective(10, operation, -1, 2 * MS, 3 * MS);
    all[0].is_off_inside(off.map(|time| time * MS), 0);
    all[0].collective(10, operation, -1, 4 * MS, (44 + waits) * MS);
    all[1].collective(10, operation, -1, (4 + waits) * MS, (44 + waits) * MS);
    report(all, 100, false)
}

/// Time lost in storage, without a processor, and unexplained, ms.
fn lost(report: &Report) -> [f64; 3] {
    let of = |pattern| 1e-6 * total(report, pattern) as f64;
    ["storage", "without_processor", "unexplained"].map(of)
}

#[test]
fn file_operations_are_asleep_or_in_the_kernel() {
    let write = number::MPI_File_write_all;
    let told = file(write, [20, 5, 8], 0);
    let [storage, preempted, _] = lost(&told);
    near(storage, 28.0);
    near(preempted, 5.0);
    // What other calls sleep is not for a device.
    let [storage, ..] = lost(&file(number::MPI_Allreduce, [20, 5, 8], 0));
    near(storage, 0.0);
    // No more than it took beyond its wait for the other rank.
    let [storage, ..] = lost(&file(write, [90, 0, 0], 30));
    assert!((0.0..=40.0).contains(&storage), "{storage}");
}
