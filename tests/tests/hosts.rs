//! Runs on several hosts, which are namespaces of this machine: which rank belongs to which host,
//! how much waiting is between hosts, and clocks that are compared over a network.
//!
//! The processor's counter is the same on all hosts, and the differences of their `CLOCK_MONOTONIC`
//! are known. So every trace also holds the truth: as if all ranks had been on one host. Reports
//! are compared with that version of the same recording.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use laggard_patterns::PatternId;
use laggard_tests::attempts::until_undisturbed;
use laggard_tests::directives::Directives;
use laggard_tests::expectations;
use laggard_tests::hosts::{Hosts, Plan, Wires};
use laggard_tests::moved::{self, Change, OtherClock};
use laggard_tests::product::{self, Bench};
use laggard_tests::recorded::{check, near};
use laggard_tests::report::{Bottleneck, Report};
use laggard_trace::{CONTROL_FILE, ClockPoint, Location, NodeFile, RUN_FILE, file_name};

const PROGRAM: &str = "hosts/exchange.c";
const MS: Duration = Duration::from_millis(1);
/// Largest error of reading a clock twice, ns.
const READING_NS: u64 = 2_000;

/// An analysed recording.
struct Recorded {
    bench: Bench,
    trace: PathBuf,
    ranks: u32,
    text: String,
    report: Report,
}

/// Hosts, and the program for them.
struct Setup {
    bench: Bench,
    hosts: Hosts,
    program: PathBuf,
}

impl Setup {
    /// `None` if the machine cannot have such hosts.
    fn new(test: &str, plans: &[Plan], wires: Wires) -> Option<Setup> {
        let bench = Bench::new(test);
        let hosts = Hosts::new(&bench.dir, plans, wires)?;
        let program = bench.compile(PROGRAM, &["-DSCHEDULE_CLOCK=CLOCK_REALTIME"], &[]);
        Some(Setup {
            bench,
            hosts,
            program,
        })
    }

    /// Records. With a name of files, the program waits at its beginning and end.
    fn record(&self, ranks: u32, trace: &str, env: &[(&str, &str)], waits: Option<&Path>) {
        let mut words = vec![self.program.as_os_str()];
        words.extend(waits.map(Path::as_os_str));
        let mut run = self.bench.traced(ranks, &words, trace).on(&self.hosts);
        for (key, value) in env {
            run = run.env(key, *value);
        }
        let outcome = run.run().expect_orderly().expect_success();
        assert_eq!(outcome.messages(), "", "messages of\n{outcome}");
        assert_eq!(outcome.stdout.lines().count(), ranks as usize, "{outcome}");
    }

    fn analysed(self, trace: &str, ranks: u32) -> (Recorded, Hosts) {
        let trace = self.bench.path(trace);
        let text = self.bench.analyze_all(&trace);
        let recorded = Recorded {
            report: parsed(&text),
            text,
            bench: self.bench,
            trace,
            ranks,
        };
        (recorded, self.hosts)
    }
}

fn parsed(text: &str) -> Report {
    Report::parse(text).expect("a report of the promised shape")
}

impl Recorded {
    fn location(&self, rank: u32) -> Location {
        Location::open(&self.trace.join(file_name(rank, 0))).expect("a trace of the rank")
    }

    /// The report of the same recording on one host with rank 0's clock. `ahead` gives how many
    /// ticks the hosts' clocks are ahead of it.
    fn truth(&self, ahead: &dyn Fn(u64) -> i64) -> Report {
        let first = self.location(0).header.host_id;
        let to = self.bench.path("truth");
        moved::rewrite(&self.trace, &to, &|header, name| Change {
            host: (first, name.to_owned()),
            clock: OtherClock {
                offset: -ahead(header.host_id),
                ..OtherClock::default()
            },
            point: match header.host_id == first {
                true => &moved::as_measured,
                false => &moved::no_measurement,
            },
        });
        let report = parsed(&self.bench.analyze_all(&to));
        assert!(report.run.clock_violations.is_none(), "{:?}", report.run);
        report
    }

    /// Measurements of the first rank of each host except the first, and their errors: how much
    /// later the reference clock was, ns.
    fn measured(&self, ahead: &dyn Fn(u64) -> i64) -> Vec<(ClockPoint, i64)> {
        let reference = self.location(0);
        let [start, .., end] = &reference.clock[..] else {
            panic!("no measurements of rank 0");
        };
        let per_tick = (end.reference_ns - start.reference_ns) as f64
            / (end.local as i64 - start.local as i64) as f64;
        let others = (0..self.ranks).map(|rank| self.location(rank));
        let mut hosts = vec![reference.header.host_id];
        let mut found = Vec::new();
        for location in others {
            let host = location.header.host_id;
            if !hosts.contains(&host) {
                hosts.push(host);
                found.extend(location.clock.iter().map(|point| {
                    let ticks = point.local as i64 - ahead(host) - start.local as i64;
                    let truth = start.reference_ns + (ticks as f64 * per_tick) as i64;
                    (*point, truth - point.reference_ns)
                }));
            }
        }
        found
    }

    /// Checks that every measurement is right within its stated error; returns the largest one, ns.
    #[track_caller]
    fn assert_measured_as_stated(&self, ahead: &dyn Fn(u64) -> i64) -> u64 {
        let measured = self.measured(ahead);
        assert!(measured.len() >= 2, "{measured:?}");
        for (point, off) in &measured {
            let most = point.error_ns + READING_NS;
            assert!(off.unsigned_abs() <= most, "{off} ns off: {point:?}");
        }
        let off = measured.iter().map(|(_, off)| off.unsigned_abs());
        let largest = off.max().unwrap_or(0);
        let number = measured.len();
        let name = self.bench.dir.file_name().unwrap_or_default();
        println!("{name:?}: {number} measurements, {largest} ns wrong at most");
        largest
    }

    fn error_s(&self) -> f64 {
        self.report.run.clock_error_s.expect("an error of clocks")
    }

    /// Both reports must agree up to the clocks' stated error. What calls lost together is not
    /// compared: it is relative to the fastest call of its kind, which may change with the clocks.
    #[track_caller]
    fn assert_within_error(&self, truth: &Report) {
        let error = self.error_s() + 1e-6;
        let violations = self.violations();
        let mut largest: f64 = 0.0;
        let all = self.report.bottlenecks.iter().chain(&truth.bottlenecks);
        for b in all.filter(|b| is_of_calls(b)) {
            let [here, there] = [&self.report, truth].map(|report| severity(report, b));
            let most = error * b.calls as f64;
            largest = largest.max((here - there).abs() / b.calls as f64);
            assert!(
                (here - there).abs() <= most,
                "{here} for {there} s, {error} s per call: {b:#?}"
            );
        }
        let name = self.bench.dir.file_name().unwrap_or_default();
        println!("{name:?}: error of clocks {error:.6} s, of findings {largest:.6} s per call");
        println!("{name:?}: violations of causality before and after: {violations:?}");
        for (here, there) in self.report.locations.iter().zip(&truth.locations) {
            assert_eq!((here.rank, here.thread), (there.rank, there.thread));
            // Intervals between two moments of the same clock are the same.
            for (here, there) in [
                (here.computation_s, there.computation_s),
                (here.communication_s, there.communication_s),
                (here.synchronization_s, there.synchronization_s),
            ] {
                assert!(
                    (here - there).abs() <= 1e-3 * there + error,
                    "{here} {there}"
                );
            }
        }
    }

    fn violations(&self) -> (u64, u64) {
        let count = |c: laggard_tests::report::Causality| c.messages + c.collectives;
        let violations = self.report.run.clock_violations;
        violations.map_or((0, 0), |v| (count(v.before), count(v.after)))
    }
}

fn is_of_calls(found: &Bottleneck) -> bool {
    let together = PatternId::TOGETHER.map(PatternId::id);
    !together.contains(&&*found.pattern)
}

/// Time lost at the place of `b`, for all patterns that name a cause.
fn severity(report: &Report, b: &Bottleneck) -> f64 {
    let explained = report.bottlenecks.iter().filter(|other| is_of_calls(other));
    let alike = explained
        .filter(|other| (&other.operation, &other.location) == (&b.operation, &b.location));
    alike.map(|b| b.severity_s).sum()
}

/// Host of each rank in a report.
fn hosts(report: &Report) -> Vec<&str> {
    report.locations.iter().map(|l| l.host.as_str()).collect()
}

/// Losses between hosts are the part of the causes on other hosts: in every finding, in its
/// pattern's total, and over the run.
#[track_caller]
fn assert_shares_add_up(report: &Report) {
    let hosts = hosts(report);
    let other = |a: u32, b: u32| hosts[a as usize] != hosts[b as usize];
    let mut between: std::collections::BTreeMap<&str, f64> = Default::default();
    for b in &report.bottlenecks {
        let part = b.inter_node_s.expect("a part between hosts");
        assert!(part <= b.severity_s, "{b:#?}");
        *between.entry(&b.pattern).or_default() += part;
        // With only one waiting rank, all causes are its own.
        if let [only] = &b.ranks[..] {
            let far = b.causes.iter().filter(|cause| other(cause.rank, only.rank));
            let far: f64 = far.map(|cause| cause.severity_s).sum();
            assert!(
                (far - part).abs() < 2e-9 * b.causes.len() as f64 + 1e-9,
                "{b:#?}"
            );
        }
    }
    let mut all = 0.0;
    for (id, metric) in &report.metrics {
        let part = metric.inter_node_s.expect("a part between hosts");
        let found = between.get(id.as_str()).copied().unwrap_or(0.0);
        assert!((part - found).abs() < 1e-6, "{id}: {part} {found}");
        if !id.ends_with("_completion") {
            all += part;
        }
    }
    let sums = report.location_sums.expect("sums");
    let part = sums.inter_node_wait_s.expect("a part between hosts");
    assert!((part - all).abs() < 1e-6, "{part} {all}");
    assert!(part <= sums.wait_s + 1e-9, "{sums:?}");
}

/// Hosts of the ranks, waiting within hosts and between them, and agreement of agents on both
/// hosts.
#[test]
fn waits_within_hosts_and_between() {
    let plans = [Plan::new("node1"), Plan::new("node2")];
    let Some(setup) = Setup::new("hosts", &plans, Wires::Fast) else {
        return;
    };
    let source = fs::read_to_string(product::programs().join(PROGRAM)).expect("a source");
    let directives = Directives::parse(&source).expect("directives");
    let before = setup.hosts.received("node2");
    let attempts = until_undisturbed("hosts", |attempt| {
        let trace = format!("trace-{attempt}");
        setup.record(4, &trace, &[], None);
        let text = setup.bench.analyze_all(&setup.bench.path(&trace));
        let misses = expectations::misses(&directives, "exchange.c", &parsed(&text));
        expectations::verdict(&misses)?;
        // 0.3 and 0.2 s of 0.65 s are between the hosts, and two of three at the barrier.
        let report = parsed(&text);
        for (pattern, expected) in [("late_sender", 0.5 / 0.65), ("wait_at_barrier", 2.0 / 3.0)] {
            let metric = &report.metrics[pattern];
            let part = metric.inter_node_s.expect("a part between hosts") / metric.total_s;
            check(near(part, expected, 0.03), &(pattern, part))?;
        }
        Ok(attempt)
    });
    let last = format!("trace-{attempts}");
    // One MiB came over the network each time, the neighbour's four did not.
    let received = (setup.hosts.received("node2") - before) / u64::from(attempts);
    assert!((1 << 20..3 << 20).contains(&received), "{received} bytes");

    let (recorded, hosts_) = setup.analysed(&last, 4);
    let report = &recorded.report;
    assert_eq!(report.run.hosts, ["node1", "node2"]);
    assert_eq!(hosts(report), ["node1", "node1", "node2", "node2"]);
    let ids = [0, 1, 2, 3].map(|rank| recorded.location(rank).header.host_id);
    assert!(
        ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2],
        "{ids:?}"
    );
    assert_eq!(report.errors(), [""; 0]);

    assert_shares_add_up(report);

    // Half of a round trip on this machine, measured, not guessed.
    recorded.assert_measured_as_stated(&|_| 0);
    assert!(recorded.error_s() > 0.0, "{:?}", report.run);
    recorded.assert_within_error(&recorded.truth(&|_| 0));
    assert_eq!(recorded.violations().1, 0, "{:?}", report.run);

    // The analysis itself is an MPI job on these hosts.
    for agents in [2, 3] {
        let path = recorded.bench.path("report-hosts.json");
        let outcome = recorded
            .bench
            .analyze_on(&hosts_, &recorded.trace, agents, &path);
        let outcome = outcome.expect_orderly().expect_success();
        assert_eq!(outcome.messages(), "", "{outcome}");
        let text = fs::read_to_string(&path).expect("a report");
        assert_eq!(product::difference(&recorded.text, &text), None);
        let of_agent = |agent: u32| {
            let path = recorded.bench.path(&format!("agent.{agent}"));
            fs::read_to_string(path)
                .expect("where it ran")
                .trim()
                .to_owned()
        };
        let mut names: Vec<String> = (0..agents).map(of_agent).collect();
        names.sort();
        names.dedup();
        assert_eq!(names, ["node1", "node2"]);
    }
}

/// A network with more latency in one direction: clocks can be compared only to half of the
/// difference, and the report says so.
#[test]
fn asymmetric_latency() {
    let plans = [Plan::new("node1"), Plan::new("node2")];
    let Some(setup) = Setup::new("hosts-latency", &plans, Wires::Delayed) else {
        return;
    };
    setup.hosts.delay("node2", 5 * MS, MS);
    setup.record(4, "trace", &[], None);
    let (recorded, _hosts) = setup.analysed("trace", 4);
    let off = recorded.assert_measured_as_stated(&|_| 0);
    assert!((1_500_000..3_500_000).contains(&off), "{off} ns");
    let error = recorded.error_s();
    assert!((0.003..0.010).contains(&error), "{error} s");
    recorded.assert_within_error(&recorded.truth(&|_| 0));
    assert_shares_add_up(&recorded.report);
    assert_eq!(recorded.violations().1, 0, "{:?}", recorded.report.run);
}

/// Hosts whose clocks are minutes apart, ahead of and behind the first one's.
#[test]
fn shifted_clocks() {
    let ahead_s = [100, 0, 300];
    let plans = [
        Plan::new("node1").ahead(ahead_s[0]).monotonic(),
        Plan::new("node2").monotonic(),
        Plan::new("node3").ahead(ahead_s[2]).monotonic(),
    ];
    let Some(setup) = Setup::new("hosts-shifted", &plans, Wires::Fast) else {
        return;
    };
    setup.record(6, "trace", &[], None);
    let (recorded, hosts_) = setup.analysed("trace", 6);
    let report = &recorded.report;
    let nodes = ["node1", "node1", "node2", "node2", "node3", "node3"];
    assert_eq!(hosts(report), nodes);
    let locations: Vec<Location> = (0..6).map(|rank| recorded.location(rank)).collect();
    assert!(
        locations.iter().all(|l| l.header.clock == 0),
        "no CLOCK_MONOTONIC"
    );
    let ahead = |host: u64| {
        let rank = locations.iter().position(|l| l.header.host_id == host);
        let node = rank.expect("a rank of the host") / 2;
        1_000_000_000 * (i64::from(ahead_s[node]) - i64::from(ahead_s[0]))
    };
    // The times in the files are that far apart.
    for location in &locations {
        let start = location.header.start_ticks as i64 - ahead(location.header.host_id);
        let first = locations[0].header.start_ticks as i64;
        assert!((start - first).abs() < 5_000_000_000, "{start} {first}");
    }
    recorded.assert_measured_as_stated(&ahead);
    recorded.assert_within_error(&recorded.truth(&ahead));
    assert_shares_add_up(report);
    assert_eq!(recorded.violations().1, 0, "{:?}", report.run);
    assert!(report.run.wall_time_s < 60.0, "{:?}", report.run);
    let path = recorded.bench.path("report-hosts.json");
    let outcome = recorded
        .bench
        .analyze_on(&hosts_, &recorded.trace, 3, &path);
    outcome.expect_orderly().expect_success();
    let text = fs::read_to_string(&path).expect("a report");
    assert_eq!(product::difference(&recorded.text, &text), None);
}

/// Hosts with a processor's counter, one of them with a shifted `CLOCK_MONOTONIC`, the reference of
/// clock comparisons.
#[test]
fn shifted_reference() {
    let plans = [Plan::new("node1").ahead(1000), Plan::new("node2")];
    let Some(setup) = Setup::new("hosts-reference", &plans, Wires::Fast) else {
        return;
    };
    setup.record(4, "trace", &[], None);
    let (recorded, _hosts) = setup.analysed("trace", 4);
    if recorded.location(0).header.clock == 0 {
        // Without such a counter this is the previous test.
        return;
    }
    recorded.assert_measured_as_stated(&|_| 0);
    recorded.assert_within_error(&recorded.truth(&|_| 0));
    assert_eq!(recorded.violations().1, 0, "{:?}", recorded.report.run);
}

/// Records on a network with a latency of 12 ms in one direction while MPI starts and ends, and
/// none in between. Clocks are measured wrongly by 6 ms, and messages show it.
fn misled(test: &str, env: &[(&str, &str)]) -> Option<Recorded> {
    let plans = [Plan::new("node1"), Plan::new("node2")];
    let setup = Setup::new(test, &plans, Wires::Delayed)?;
    let waits = setup.bench.path("waits");
    let file = |name: &str| waits.with_extension(name);
    let appears = |path: &Path| {
        let found = (0..6000).find(|_| {
            thread::sleep(Duration::from_millis(5));
            path.exists()
        });
        found.is_some()
    };
    thread::scope(|scope| {
        let hosts = &setup.hosts;
        hosts.delay("node2", 12 * MS, Duration::ZERO);
        scope.spawn(move || {
            if appears(&file("begin")) {
                hosts.delay("node2", Duration::ZERO, Duration::ZERO);
                // Messages under way have arrived.
                thread::sleep(30 * MS);
                let _ = fs::remove_file(file("begin"));
            }
            if appears(&file("end")) {
                hosts.delay("node2", 12 * MS, Duration::ZERO);
                thread::sleep(30 * MS);
                let _ = fs::remove_file(file("end"));
            }
        });
        setup.record(4, "trace", env, Some(&waits));
    });
    Some(setup.analysed("trace", 4).0)
}

#[test]
fn violated_causality() {
    let Some(recorded) = misled("hosts-violations", &[]) else {
        return;
    };
    let off = recorded.assert_measured_as_stated(&|_| 0);
    assert!(off > 4_000_000, "{off} ns");
    let (before, after) = recorded.violations();
    assert!(before > 0 && after == 0, "{:?}", recorded.report.run);
    recorded.assert_within_error(&recorded.truth(&|_| 0));
    assert_shares_add_up(&recorded.report);
}

/// Measurements during the run are better than those at start and end, and count.
#[test]
fn clocks_compared_meanwhile() {
    let env = [("LAGGARD_SYNC_INTERVAL_S", "0.1")];
    let Some(recorded) = misled("hosts-periodic", &env) else {
        return;
    };
    recorded.assert_measured_as_stated(&|_| 0);
    let measured = recorded.measured(&|_| 0);
    let good = measured.iter().filter(|(point, _)| point.kind == 2);
    let off: Vec<i64> = good.map(|(_, off)| *off).collect();
    assert!(
        off.len() >= 2 && off.iter().all(|off| off.abs() < 3_000_000),
        "{off:?}"
    );
    assert_eq!(recorded.violations().1, 0, "{:?}", recorded.report.run);
    let truth = recorded.truth(&|_| 0);
    recorded.assert_within_error(&truth);
    // Between the first and the last of them, findings are as accurate as these measurements.
    let all = recorded.report.bottlenecks.iter();
    for b in all.filter(|b| b.severity_s > 0.1 && b.location.is("exchange.c", line("forth"))) {
        let there = severity(&truth, b);
        assert!(
            (b.severity_s - there).abs() < 0.003 * b.calls as f64,
            "{there} {b:#?}"
        );
    }
}

/// The line of a mark in the program.
fn line(mark: &str) -> u32 {
    let source = fs::read_to_string(product::programs().join(PROGRAM)).expect("a source");
    let marked = |line: &str| line.contains(&format!("MARK {mark} "));
    let at = source.lines().position(marked).expect("a mark");
    at as u32 + 1
}

/// `laggard run` on hosts passes the collector's settings to all of them.
#[test]
fn laggard_run_on_hosts() {
    let plans = [Plan::new("node1"), Plan::new("node2")];
    let Some(setup) = Setup::new("hosts-run", &plans, Wires::Fast) else {
        return;
    };
    let mut launcher = setup.hosts.mpirun(4);
    launcher.arg(&setup.program);
    let words: Vec<&OsStr> = launcher.get_args().collect();
    let at = words
        .iter()
        .position(|&word| word == "mpirun")
        .expect("mpirun");
    // On the login host: `laggard run … -- mpirun …`.
    let mut command = std::process::Command::new(launcher.get_program());
    command.args(&words[..at]).arg(&setup.bench.command);
    command
        .args(["run", "-o"])
        .arg(setup.bench.path("trace"))
        .arg("--");
    command.args(&words[at..]).current_dir(&setup.bench.dir);
    for (key, value) in launcher.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    command.env("LAGGARD_CALLPATH_DEPTH", "3");
    let log = setup.bench.path("run");
    let outcome = laggard_tests::process::run(&mut command, product::TIMEOUT, &log);
    outcome.expect_orderly().expect_success();
    let (recorded, _hosts) = setup.analysed("trace", 4);
    assert_eq!(
        hosts(&recorded.report),
        ["node1", "node1", "node2", "node2"]
    );
    for rank in 0..4 {
        let definitions = recorded.location(rank).definitions;
        assert_eq!(
            definitions.properties("callpath_depth"),
            ["3"],
            "rank {rank}"
        );
    }
}

/// `LAGGARD_FILE_PER=node`: one file for each host, with its ranks and no others.
#[test]
fn a_file_for_each_host() {
    let plans = [Plan::new("node1"), Plan::new("node2")];
    let Some(setup) = Setup::new("hosts-files", &plans, Wires::Fast) else {
        return;
    };
    setup.record(4, "trace", &[("LAGGARD_FILE_PER", "node")], None);
    let trace = setup.bench.path("trace");
    let entries = fs::read_dir(&trace).expect("a trace");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| !path.ends_with(RUN_FILE) && !path.ends_with(CONTROL_FILE));
    let mut found: Vec<(Vec<u32>, u64)> = files
        .map(|path| {
            let file = NodeFile::open(&path).expect("a node file");
            let mut ranks: Vec<u32> = file.locations().map(|(rank, ..)| rank).collect();
            ranks.sort_unstable();
            let first = file.location(ranks[0], 0).expect("a location");
            (ranks, first.header.host_id)
        })
        .collect();
    found.sort();
    let ranks: Vec<&[u32]> = found.iter().map(|(ranks, _)| &ranks[..]).collect();
    assert_eq!(ranks, [[0, 1], [2, 3]]);
    assert!(found[0].1 != found[1].1, "{found:?}");
    let text = setup.bench.analyze_all(&trace);
    let report = parsed(&text);
    assert_eq!(hosts(&report), ["node1", "node1", "node2", "node2"]);
    assert_eq!(report.errors(), [""; 0]);
    assert_shares_add_up(&report);
    let path = setup.bench.path("report-hosts.json");
    let outcome = setup.bench.analyze_on(&setup.hosts, &trace, 2, &path);
    outcome.expect_orderly().expect_success();
    let there = fs::read_to_string(&path).expect("a report");
    assert_eq!(product::difference(&text, &there), None);
}
