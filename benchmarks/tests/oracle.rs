//! Generated traces are analysed as their generator expects, to the ns.

use std::path::Path;
use std::process::Command;

use laggard_benchmarks::process;
use laggard_engine::AnalyzeOptions;
use laggard_generator::{Expected, Fault, Length, Program, Settings, Skew, differences, generate};
use laggard_report::{Bottleneck, Report};

/// Sets of faults to try with each program.
const FAULTS: [&[&str]; 9] = [
    &[],
    &["slow-rank=1:60"],
    &["slow-phase=1:3-6:80"],
    &["late-chain=0:2:500"],
    &["alternating=40"],
    &["noise=30"],
    &["bursts=8:100", "noise=5"],
    &["lost-message=1:3", "lost-message=0:4", "lost-receive=1:5"],
    &[
        "slow-rank=1:30",
        "late-chain=0:5:200",
        "alternating=20",
        "noise=15",
        "lost-message=0:1",
    ],
];

fn settings(program: Program, ranks: u32, faults: &[&str]) -> Settings {
    let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    Settings {
        faults,
        ..Settings::new(program, ranks, Length::Steps(12))
    }
}

/// Generates, analyses in this process, and compares.
fn check(settings: &Settings) -> (Expected, Report) {
    let directory = tempfile::tempdir().unwrap();
    generate(settings, directory.path()).unwrap();
    let expected = Expected::read(directory.path()).unwrap();
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    // The ledger charges the last member of a collective.
    options.charge_last = true;
    let analysis = laggard_engine::analyze(directory.path(), &options);
    let report = analysis.unwrap().unwrap().report;
    let found = differences(&expected, &report);
    assert!(found.is_empty(), "{settings:?}\n  {}", found.join("\n  "));
    (expected, report)
}

/// Tries every set of faults on several numbers of ranks.
fn check_program(program: Program) {
    for faults in FAULTS {
        for ranks in [2, 6, 24] {
            check(&settings(program, ranks, faults));
        }
    }
}

/// A test for each program, so that they run side by side.
macro_rules! programs {
    ($($name:ident $program:ident)*) => {
        $(#[test]
        fn $name() {
            check_program(Program::$program);
        })*

        #[test]
        fn every_program_has_a_test() {
            assert_eq!(Program::all(), [$(Program::$program),*]);
        }
    };
}

programs! {
    stencil Stencil
    ring Ring
    collectives Collectives
    pingpong Pingpong
    halo2d Halo2d
    halo3d Halo3d
    halo_nonblocking HaloNonblocking
    halo_wildcard HaloWildcard
    transpose Transpose
    master_worker MasterWorker
    ordered_gather OrderedGather
    wavefront Wavefront
    pipeline Pipeline
}

#[test]
fn ranks_that_make_no_rectangle() {
    for &program in Program::all() {
        for ranks in [1, 3, 7, 64] {
            check(&settings(program, ranks, &["noise=20", "alternating=30"]));
        }
    }
}

#[test]
fn messages_that_wait_for_their_receive() {
    for &program in Program::all() {
        let settings = Settings {
            message_bytes: 100_000,
            eager_limit: 4096,
            ..settings(program, 12, &["noise=30", "slow-rank=1:100"])
        };
        let (expected, _) = check(&settings);
        let sends = matches!(program, Program::Wavefront | Program::Halo3d);
        assert!(!sends || expected.totals["late_receiver"].severity_ns > 0);
    }
}

#[test]
fn halos_that_go_round() {
    for program in [
        Program::Halo2d,
        Program::Halo3d,
        Program::HaloNonblocking,
        Program::HaloWildcard,
    ] {
        for ranks in [1, 2, 12] {
            let settings = Settings {
                periodic: true,
                ..settings(program, ranks, &["noise=30"])
            };
            check(&settings);
        }
    }
}

#[test]
fn clocks_that_differ_change_nothing() {
    for &program in Program::all() {
        let alike = settings(program, 12, &["noise=25", "slow-rank=1:50"]);
        let several = Settings {
            ranks_per_host: 4,
            skew: Skew {
                offset_s: 30.0,
                drift_ppm: 80.0,
                ..Skew::default()
            },
            ..alike.clone()
        };
        let (expected, report) = check(&alike);
        let (skewed, found) = check(&several);
        assert_eq!(expected.totals, skewed.totals);
        // Without the cost of calls, which each clock rounds differently.
        let lost = |report: &Report| -> f64 {
            let metrics = report.metrics.iter().filter(|(id, _)| *id != "unexplained");
            metrics.map(|(_, metric)| metric.total_s).sum()
        };
        assert_eq!(lost(&report), lost(&found));
    }
}

#[test]
fn clocks_measured_inexactly_are_allowed_for() {
    for &program in Program::all() {
        let settings = Settings {
            ranks_per_host: 4,
            skew: Skew {
                offset_s: 1.0,
                drift_ppm: 20.0,
                error_ns: 300,
                ..Skew::default()
            },
            length: Length::Steps(40),
            ..settings(program, 12, &["noise=25", "slow-rank=5:50"])
        };
        let (expected, report) = check(&settings);
        assert_eq!(expected.run.clock_error_ns, 600);
        assert_confidence(&report);
    }
}

/// Confidence follows the mean loss against the error of the clocks, unless waiting and late ranks
/// share a host, and with it a clock.
fn assert_confidence(report: &Report) {
    let error_s = report.run.clock_error_s.unwrap_or(0.0);
    assert!(error_s > 0.0);
    let is_local =
        |found: &&Bottleneck| found.inter_node_s == Some(0.0) && !found.causes.is_empty();
    let (local, others): (Vec<_>, Vec<_>) = report.bottlenecks.iter().partition(is_local);
    for found in local {
        assert_eq!(found.confidence, 1.0, "{found:?}");
    }
    for found in others {
        let mean = found.severity_s / found.instances as f64;
        let expected = mean / (mean + error_s);
        let is_near = (found.confidence - expected).abs() < 0.01;
        assert!(is_near && found.confidence < 1.0, "{expected} {found:?}");
    }
}

/// Errors larger than the time of a message.
#[test]
fn violated_causality_is_repaired() {
    let mut repaired = 0;
    for &program in Program::all() {
        for error_ns in [4_000, 50_000] {
            let settings = Settings {
                ranks_per_host: 3,
                skew: Skew {
                    offset_s: 1.0,
                    drift_ppm: 100.0,
                    error_ns,
                    ..Skew::default()
                },
                length: Length::Steps(200),
                ..settings(program, 12, &["noise=25", "slow-rank=5:50"])
            };
            let (_, report) = check(&settings);
            let Some(found) = &report.run.clock_violations else {
                continue;
            };
            repaired += 1;
            let after = &found.after;
            assert_eq!(
                (after.messages, after.collectives),
                (0, 0),
                "{program:?} {found:?}"
            );
            assert!(found.before.largest_s <= 2e-9 * error_ns as f64);
        }
    }
    assert!(repaired > 15, "{repaired}");
}

/// Wrong rates on 2 to 8 hosts: clocks drift apart faster than messages go there and back.
#[test]
fn wrong_rates_are_repaired() {
    let mut repaired = 0;
    for (program, steps) in [
        (Program::Stencil, 20_000),
        (Program::Ring, 20_000),
        (Program::Collectives, 10_000),
        (Program::Halo2d, 10_000),
        (Program::HaloNonblocking, 10_000),
        (Program::HaloWildcard, 10_000),
        (Program::Collectives, 1_000),
        (Program::Transpose, 1_000),
    ] {
        for hosts in [2, 4, 8] {
            let settings = Settings {
                ranks_per_host: 2,
                message_bytes: 8,
                latency_ns: 300,
                computation_ns: 4_000,
                skew: Skew {
                    offset_s: 1.0,
                    drift_ppm: 100.0,
                    error_ns: 400_000,
                    ..Skew::default()
                },
                seed: u64::from(hosts),
                length: Length::Steps(steps),
                ..settings(program, 2 * hosts, &["noise=10"])
            };
            let (_, report) = check(&settings);
            let Some(found) = &report.run.clock_violations else {
                continue;
            };
            repaired += 1;
            let after = &found.after;
            assert_eq!(
                (after.messages, after.collectives),
                (0, 0),
                "{program:?}, {hosts} hosts: {found:?}"
            );
        }
    }
    assert!(repaired > 20, "{repaired}");
}

/// Rates change every 25 ms of a run of about 0.2 s.
fn wandering(program: Program, sync_ns: u64) -> Settings {
    Settings {
        ranks_per_host: 4,
        computation_ns: 5_000_000,
        skew: Skew {
            offset_s: 1.0,
            drift_ppm: 100.0,
            wander_ppm: 60.0,
            wander_ns: 25_000_000,
            sync_ns,
            ..Skew::default()
        },
        length: Length::Steps(40),
        ..settings(program, 12, &["noise=25", "slow-rank=5:500"])
    }
}

#[test]
fn clocks_whose_rates_change_are_followed() {
    for &program in Program::all() {
        let (expected, report) = check(&wandering(program, 25_000_000));
        assert_eq!(expected.run.clock_error_ns, 0);
        assert_eq!(report.anomalies, []);
        let (seldom, _) = check(&wandering(program, 75_000_000));
        let (never, _) = check(&wandering(program, 0));
        let [seldom, never] = [seldom, never].map(|expected| expected.run.clock_error_ns);
        assert!(seldom > 0 && never > 0, "{program:?} {seldom} {never}");
    }
}

/// A difference of one ns, of a cause or of a count is found.
#[test]
fn what_is_wrong_is_seen() {
    let settings = settings(Program::Halo2d, 6, &["slow-rank=1:60", "lost-message=1:3"]);
    let (expected, report) = check(&settings);
    type Change = fn(&mut Report);
    let changes: [Change; 8] = [
        |report| report.metrics.get_mut("late_sender").unwrap().total_s += 1e-9,
        |report| report.bottlenecks[0].severity_s += 1e-9,
        |report| report.bottlenecks[0].causes[0].rank += 1,
        |report| report.bottlenecks[0].instances += 1,
        |report| report.bottlenecks[0].location.line += 1,
        |report| drop(report.bottlenecks.pop()),
        |report| report.locations[2].wait_s += 1e-9,
        |report| report.anomalies.clear(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut report = report.clone();
        change(&mut report);
        assert!(
            !differences(&expected, &report).is_empty(),
            "change {number}"
        );
    }
}

/// Runs the built command as a job of several agents.
fn analyze_with_agents(trace: &Path, agents: usize) -> Report {
    // The ledger charges the last member of a collective.
    charged_to("last", trace, agents)
}

fn charged_to(charge: &str, trace: &Path, agents: usize) -> Report {
    let output = trace.join(format!("report-{agents}.json"));
    let mpirun = process::mpirun(agents);
    let mut command = Command::new("timeout");
    command
        .arg("300")
        .arg(mpirun.get_program())
        .args(mpirun.get_args());
    if process::is_open_mpi() {
        command.args(["--mca", "mpi_yield_when_idle", "1"]);
    }
    command.arg(process::built("laggard", "LAGGARD_BIN").unwrap());
    command.arg("analyze").arg(trace).arg("-o").arg(&output);
    command.args([
        "--all",
        "--charge",
        charge,
        "-q",
        "--format",
        "none",
        "--threads",
        "1",
        "--stats",
    ]);
    process::run(&mut command).unwrap();
    Report::read(&output).unwrap()
}

#[test]
fn any_number_of_agents_finds_the_same() {
    for &program in Program::all() {
        let settings = Settings {
            ranks_per_host: 8,
            message_bytes: if program == Program::Halo3d {
                100_000
            } else {
                4096
            },
            ..settings(
                program,
                24,
                &["noise=20", "slow-rank=5:50", "lost-message=7:2"],
            )
        };
        assert_same_for_agents(&settings);
    }
}

/// More ranks than a report lists one by one: the rest is folded.
#[test]
fn any_number_of_agents_finds_the_same_of_many_ranks() {
    for (program, faults) in [
        (Program::Collectives, &["alternating=40", "noise=10"][..]),
        (Program::Transpose, &["slow-rank=700:80", "noise=10"]),
        (Program::MasterWorker, &["noise=30"]),
        (Program::HaloWildcard, &["late-chain=900:2:500", "noise=10"]),
        (Program::Wavefront, &["slow-phase=40:3-5:80"]),
        (
            Program::Halo3d,
            &["lost-message=7:2", "lost-receive=1029:3"],
        ),
    ] {
        let settings = Settings {
            ranks_per_host: 64,
            ..settings(program, 1100, faults)
        };
        let report = assert_same_for_agents(&settings);
        assert!(report.locations.len() < 1100, "{}", report.locations.len());
        assert!(!report.bottlenecks.is_empty());
    }
}

/// One slow rank causes the waiting that there is not without it, however long the chain of those who
/// pass it on.
#[test]
fn the_slow_rank_is_the_root_cause() {
    for program in [Program::Pipeline, Program::Wavefront, Program::Stencil] {
        let roots = |faults: &[&str], agents| {
            let settings = Settings {
                length: Length::Calls(100_000),
                ..settings(program, 16, faults)
            };
            let directory = tempfile::tempdir().unwrap();
            generate(&settings, directory.path()).unwrap();
            let report = charged_to("shared", directory.path(), agents);
            let roots = report.root_causes.unwrap();
            let all: f64 = roots.iter().map(|root| root.severity_s).sum();
            (roots, all)
        };
        let (_, without) = roots(&[], 1);
        for agents in 1..=2 {
            let (roots, all) = roots(&["slow-rank=5:50"], agents);
            let ranks = roots.iter().flat_map(|root| &root.ranks);
            let of_slow: f64 = ranks.filter(|r| r.rank == 5).map(|r| r.severity_s).sum();
            let caused = all - without;
            assert!(caused > 0.5 * all, "{program:?}: {without} of {all} s");
            assert!(
                of_slow >= 0.95 * caused,
                "{program:?}: {of_slow} of {caused} s"
            );
            let first = &roots[0];
            assert_eq!((&*first.activity, &*first.rank_set), ("computation", "5"));
        }
    }
}

/// For a collective, each agent sends one entry, in a message with many others. As many more
/// collectives cost at most twice as much for 600 ranks as for 60.
#[test]
fn collectives_cost_agents_by_instances() {
    let costs = [60, 600].map(|ranks| {
        let [once, twice] = [40, 80].map(|steps| {
            let directory = tempfile::tempdir().unwrap();
            let settings = Settings {
                length: Length::Steps(steps),
                ..settings(Program::Collectives, ranks, &["noise=30", "slow-rank=7:50"])
            };
            generate(&settings, directory.path()).unwrap();
            let report = charged_to("shared", directory.path(), 3);
            assert!(!report.bottlenecks.is_empty());
            report.agents
        });
        let messages = once.phases.iter().map(|phase| phase.messages).sum::<u64>();
        (messages, twice.bytes_exchanged - once.bytes_exchanged)
    });
    let [(few, bytes_of_few), (many, bytes_of_many)] = costs;
    assert!(few > 0 && bytes_of_few > 0, "{costs:?}");
    assert!(many <= few * 2, "{costs:?}");
    assert!(bytes_of_many <= bytes_of_few * 2, "{costs:?}");
}

#[test]
fn any_number_of_agents_repairs_the_same() {
    for (program, latency_ns, error_ns) in [
        (Program::Halo2d, 1_500, 20_000),
        (Program::Collectives, 1_500, 20_000),
        (Program::HaloWildcard, 1_500, 20_000),
        (Program::HaloWildcard, 300, 400_000),
    ] {
        let settings = Settings {
            ranks_per_host: 4,
            latency_ns,
            skew: Skew {
                offset_s: 1.0,
                drift_ppm: 100.0,
                error_ns,
                ..Skew::default()
            },
            length: Length::Steps(300),
            ..settings(program, 24, &["noise=20", "slow-rank=5:50"])
        };
        let report = assert_same_for_agents(&settings);
        let found = report.run.clock_violations.expect("violations");
        let after = &found.after;
        assert_eq!((after.messages, after.collectives), (0, 0), "{found:?}");
    }
}

/// One, two and three agents find the expected, and the same.
fn assert_same_for_agents(settings: &Settings) -> Report {
    let directory = tempfile::tempdir().unwrap();
    generate(settings, directory.path()).unwrap();
    let expected = Expected::read(directory.path()).unwrap();
    let reports = [1, 2, 3].map(|agents| {
        let mut report = analyze_with_agents(directory.path(), agents);
        let found = differences(&expected, &report);
        let found = found.join("\n  ");
        assert!(found.is_empty(), "{settings:?}, {agents} agents\n  {found}");
        report.agents = Default::default();
        report
    });
    let is_same = reports.windows(2).all(|two| two[0] == two[1]);
    assert!(is_same, "{settings:?}");
    let [report, ..] = reports;
    report
}

/// The report is the same for one file per rank and one per host.
#[test]
fn node_files_make_no_difference() {
    let reports = [false, true].map(|file_per_node| {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            ranks_per_host: 7,
            file_per_node,
            ..settings(Program::Halo2d, 24, FAULTS[1])
        };
        generate(&settings, directory.path()).unwrap();
        let names = std::fs::read_dir(directory.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let files = names.filter(|name| name.ends_with(".lgt")).count();
        assert_eq!(files, if file_per_node { 4 } else { 24 });
        [1, 2, 3].map(|agents| {
            let mut report = analyze_with_agents(directory.path(), agents);
            report.agents = Default::default();
            report.to_json()
        })
    });
    assert_eq!(reports[0][0], reports[0][2]);
    assert_eq!(reports[0], reports[1]);
}
