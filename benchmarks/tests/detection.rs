//! With default thresholds, clean programs have no findings. Faulty ones have every finding that
//! costs a rank much of its time, for any number of agents.

use std::path::Path;
use std::process::Command;

use laggard_benchmarks::detection::corpus::{self, Case};
use laggard_benchmarks::detection::verdict::Oracle;
use laggard_benchmarks::process;
use laggard_engine::AnalyzeOptions;
use laggard_generator::{Expected, Program};
use laggard_patterns::rules::RuleBase;
use laggard_report::Report;

/// Everything wrong with a report, a line each.
fn wrong(case: &Case, expected: &Expected, report: &Report) -> Vec<String> {
    let oracle = Oracle::new(expected);
    let mut wrong = oracle.missed(report);
    wrong.extend(oracle.false_alarms(report, case.is_clean()));
    wrong
}

/// The ledger charges the last member of a collective.
fn last_alone() -> AnalyzeOptions {
    AnalyzeOptions {
        charge_last: true,
        ..AnalyzeOptions::default()
    }
}

/// Generates and analyses in this process; returns the trace, too.
fn check(case: &Case, options: &AnalyzeOptions) -> (tempfile::TempDir, Expected, Report) {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    case.generate(&trace).unwrap();
    let expected = Expected::read(&trace).unwrap();
    let analysis = laggard_engine::analyze(&trace, options).unwrap().unwrap();
    let found = wrong(case, &expected, &analysis.report).join("\n  ");
    assert!(found.is_empty(), "{}\n  {found}", case.name());
    (directory, expected, analysis.report)
}

/// Runs the built command with the defaults, as a job of several agents.
fn with_agents(trace: &Path, agents: usize) -> Report {
    let output = trace.join(format!("report-{agents}.json"));
    let mpirun = process::mpirun(agents);
    let mut command = Command::new("timeout");
    command.arg("300").arg(mpirun.get_program());
    command.args(mpirun.get_args());
    if process::is_open_mpi() {
        command.args(["--mca", "mpi_yield_when_idle", "1"]);
    }
    command.arg(process::built("laggard", "LAGGARD_BIN").unwrap());
    command.arg("analyze").arg(trace).arg("-o").arg(&output);
    command.args(["-q", "--threads", "1", "--charge", "last"]);
    process::run(&mut command).unwrap();
    Report::read(&output).unwrap()
}

/// One, two and three agents report the same, and nothing wrong.
fn check_agents(case: &Case) {
    let (directory, expected, mut report) = check(case, &last_alone());
    let trace = directory.path().join("trace");
    laggard_whatif::add_gains(&trace, RuleBase::built_in(), &mut report, u64::MAX).unwrap();
    for agents in [1, 2, 3] {
        let mut other = with_agents(&trace, agents);
        let found = wrong(case, &expected, &other).join("\n  ");
        assert!(found.is_empty(), "{} by {agents}\n  {found}", case.name());
        other.agents = report.agents.clone();
        assert!(other == report, "{}, {agents} agents", case.name());
    }
}

fn case(cases: &[Case], program: Program, bytes: u64, fault: &str, strength: f64) -> Case {
    let is_it = |case: &&Case| {
        (case.settings.program, case.settings.message_bytes) == (program, bytes)
            && (case.fault, case.strength) == (fault, strength)
    };
    cases.iter().find(is_it).unwrap().clone()
}

#[test]
fn nothing_is_reported_of_clean_programs() {
    let clean: Vec<Case> = corpus::without_faults()
        .into_iter()
        .filter(Case::is_clean)
        .collect();
    assert_eq!(clean.len(), 17);
    let mut unlisted = 0;
    for case in &clean {
        let (_, _, report) = check(case, &last_alone());
        assert_eq!(report.bottlenecks, [], "{}", case.name());
        // Findings that are not listed are counted, and part of the sums.
        if let Some(below) = &report.below_hotspot {
            unlisted += below.findings;
            let metrics = report.metrics.iter().filter(|(id, _)| *id != "unexplained");
            let sums: f64 = metrics.map(|(_, metric)| metric.total_s).sum();
            assert!((below.severity_s - sums).abs() < 1e-9, "{}", case.name());
        }
        let all = {
            let mut options = last_alone();
            options.settings.hotspot_percent = 0.0;
            let trace = tempfile::tempdir().unwrap();
            let trace = trace.path().join("trace");
            case.generate(&trace).unwrap();
            laggard_engine::analyze(&trace, &options)
                .unwrap()
                .unwrap()
                .report
        };
        assert!(!all.bottlenecks.is_empty(), "{}", case.name());
        assert_eq!(all.below_hotspot, None);
    }
    assert!(unlisted > 0);
    for at in [0, 8, 16] {
        check_agents(&clean[at]);
    }
}

#[test]
fn faults_are_found_by_any_number_of_agents() {
    let cases = corpus::with_faults();
    for (program, bytes, fault, strength) in [
        (Program::Stencil, 4 << 10, "slow rank", 3.0),
        (Program::Halo3d, 1 << 20, "slow phase", 5.0),
        (Program::Collectives, 4 << 10, "late chain", 3.0),
        (Program::HaloWildcard, 1 << 20, "alternating", 5.0),
        (Program::Transpose, 4 << 10, "bursts", 10.0),
        (Program::Pipeline, 4 << 10, "lost message", 0.0),
    ] {
        let case = case(&cases, program, bytes, fault, strength);
        check_agents(&case);
        let (_, expected, _) = check(&case, &last_alone());
        assert!(Oracle::new(&expected).is_faulty(), "{}", case.name());
    }
}
