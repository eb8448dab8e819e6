//! Rewrites recorded traces as if some ranks had been on another host, with a clock of its own.
//! Findings must not depend on what the clock shows.
//!
//! A clock that is ahead by whole ticks changes nothing, byte for byte. One with another rate
//! rounds times to its own ticks: they are off by [`ROUNDING_S`] a call. Wrong measurements change
//! results by their stated error at most, and effects still follow their causes.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use laggard_tests::moved::{self, Change, OtherClock};
use laggard_tests::mpi::Mpi;
use laggard_tests::product::{Bench, difference, programs};
use laggard_tests::report::{Bottleneck, Report, without_agents};
use laggard_trace::{ClockPoint, FileHeader, Location, file_name};
use serde_json::Value;

/// Patterns of unexplained time, in calls that take more than twice the fastest of their kind, and of the part
/// of it without a processor. The fastest one's rounding counts in each of them.
const UNEXPLAINED: [&str; 2] = ["unexplained", "without_processor"];

/// A tick of another clock at both ends, and truncated ns, seconds.
const ROUNDING_S: f64 = 4e-9;

struct Recorded {
    bench: Bench,
    trace: PathBuf,
    text: String,
    /// Header of rank 0.
    header: FileHeader,
}

/// Difference of the moved ranks' clock, in seconds and parts per million, and errors of its
/// measurements at the start and at the end, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Skew {
    offset_s: i64,
    ppm: i64,
    wrong_ns: [i64; 2],
}

impl Recorded {
    fn new(bench: Bench, ranks: u32, words: &[&OsStr]) -> Recorded {
        let run = bench.traced(ranks, words, "trace").timeout(120);
        run.run().expect_orderly().expect_success();
        let trace = bench.path("trace");
        let text = bench.analyze_all(&trace);
        let first = Location::open(&trace.join(file_name(0, 0))).expect("rank 0's trace");
        Recorded {
            text,
            header: first.header,
            trace,
            bench,
        }
    }

    /// Rank 1 of 3 waits for rank 0, rank 2 for rank 1.
    fn chain(test: &str) -> Recorded {
        let bench = Bench::sharing(test);
        let program = bench.compile("late_sender_chain.c", &[], &[]);
        Recorded::new(bench, 3, &[program.as_os_str()])
    }

    fn hpcc(test: &str) -> Recorded {
        let bench = Bench::sharing(test);
        let input = fs::read_to_string(programs().join("real/hpccinf.txt")).expect("an input");
        let input = input.replace("@P", "2").replace("@Q", "2");
        fs::write(bench.path("hpccinf.txt"), input).expect("an input");
        Recorded::new(bench, 4, &[OsStr::new("hpcc")])
    }

    /// Analyses the trace with the odd ranks on a host of their own.
    fn moved(&self, name: &str, skew: Skew) -> String {
        let to = self.bench.path(name);
        let clock = OtherClock {
            offset: skew.offset_s * self.header.ticks_per_s as i64,
            ppm: skew.ppm,
            from: self.header.start_ticks,
        };
        let error_ns = skew.wrong_ns.map(i64::unsigned_abs).into_iter().max();
        let wrong = |point: &mut ClockPoint| {
            point.reference_ns += skew.wrong_ns[usize::from(point.kind == 1)];
            point.error_ns += error_ns.unwrap_or(0);
        };
        moved::rewrite(&self.trace, &to, &|header, name| match header.rank % 2 {
            0 => Change {
                host: (header.host_id, name.to_owned()),
                clock: OtherClock::default(),
                point: &moved::as_measured,
            },
            _ => Change {
                host: (header.host_id ^ 1, other_name(name)),
                clock,
                point: &wrong,
            },
        });
        self.bench.analyze_all(&to)
    }
}

/// Another name of the same length.
fn other_name(name: &str) -> String {
    let mut bytes = name.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last = if *last == b'2' { b'3' } else { b'2' };
    }
    String::from_utf8(bytes).expect("a name")
}

fn parsed(text: &str) -> Report {
    Report::parse(text).expect("a report of the promised shape")
}

/// A report without data about hosts, and without hints and what a replay tells: the eager limit
/// between hosts differs.
fn without_hosts(text: &str) -> Value {
    let text = text.replace("inter_node_wait_s", "inter_node_s");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                let of_hosts = ["host", "hosts", "processors", "crowd", "inter_node_s"];
                let of_replay = ["transfer", "serialization", "gain_s", "gain_percent"];
                let others = ["agents", "hints", "advice"].into_iter().chain(of_replay);
                for key in of_hosts.into_iter().chain(others) {
                    object.remove(key);
                }
                object.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

/// Offsets of whole ticks change only the names of hosts.
#[track_caller]
fn assert_offsets_do_not_matter(recorded: &Recorded) -> String {
    let there = recorded.moved("other-host", Skew::default());
    assert_eq!(parsed(&there).run.hosts.len(), 2);
    assert!(
        without_hosts(&recorded.text) == without_hosts(&there),
        "another host changes more than its name:\n{}\n{}",
        without_agents(&recorded.text),
        without_agents(&there)
    );
    for (name, offset_s) in [("ahead", 1), ("behind", -1)] {
        let skew = Skew {
            offset_s,
            ..Skew::default()
        };
        let shifted = recorded.moved(name, skew);
        assert_eq!(difference(&there, &shifted), None, "{skew:?}");
    }
    there
}

/// Time lost in an operation at a place, in both reports. Sums all patterns: a ns may decide which
/// pattern a late message has.
fn both<'r>(one: &'r Report, other: &'r Report) -> Vec<(&'r Bottleneck, f64, f64)> {
    let lost = |report: &Report, b: &Bottleneck| -> f64 {
        let key = |b: &Bottleneck| {
            let is_unexplained = UNEXPLAINED.contains(&&*b.pattern);
            (b.operation.clone(), b.location.clone(), is_unexplained)
        };
        let alike = report.bottlenecks.iter().filter(|o| key(o) == key(b));
        alike.map(|o| o.severity_s).sum()
    };
    let all = one.bottlenecks.iter().chain(&other.bottlenecks);
    all.map(|b| (b, lost(one, b), lost(other, b))).collect()
}

/// Clocks with other rates, from another moment on.
#[track_caller]
fn assert_rates_do_not_matter(recorded: &Recorded, there: &str) {
    let there = parsed(there);
    let operations = there.run.operations as f64;
    for (name, offset_s, ppm) in [("fast", 1, 100), ("slow", -1, -100)] {
        let skew = Skew {
            offset_s,
            ppm,
            ..Skew::default()
        };
        let here = parsed(&recorded.moved(name, skew));
        assert!(!here.bottlenecks.is_empty(), "{skew:?}");
        for (b, here, there) in both(&here, &there) {
            // Reports are in ns.
            let mut most = ROUNDING_S * b.calls as f64 + 1e-9;
            if UNEXPLAINED.contains(&&*b.pattern) {
                most = 4.0 * most + 0.05 * there;
            }
            assert!(
                (here - there).abs() <= most,
                "{skew:?}: {here} for {there} s: {b:#?}"
            );
        }
        assert_eq!(here.run.operations, there.run.operations);
        assert!((here.run.wall_time_s - there.run.wall_time_s).abs() < 1e-8);
        for (here, there) in here.locations.iter().zip(&there.locations) {
            for (here, there) in [
                (here.computation_s, there.computation_s),
                (here.communication_s, there.communication_s),
                (here.synchronization_s, there.synchronization_s),
            ] {
                // Every call's length may be rounded.
                let most = ROUNDING_S * operations;
                assert!(
                    (here - there).abs() <= most,
                    "{skew:?}: {here} for {there} s"
                );
            }
        }
    }
}

#[test]
fn chain_on_two_hosts() {
    let recorded = Recorded::chain("moved-chain");
    let there = assert_offsets_do_not_matter(&recorded);
    assert_rates_do_not_matter(&recorded, &there);
    let wrong = [[1, 1], [-1, -1], [1, -1], [0, 1]];
    assert_wrong_measurements_are_corrected(&recorded, &there, &wrong);
    // All awaited ranks are on the other host.
    let report = parsed(&there);
    let metric = &report.metrics["late_sender"];
    assert_eq!(metric.inter_node_s, Some(metric.total_s));
    assert!(metric.total_s > 0.1, "{metric:?}");
}

/// Names do not distinguish hosts.
#[test]
fn hosts_of_one_name() {
    let recorded = Recorded::chain("moved-names");
    let to = recorded.bench.path("same-name");
    moved::rewrite(&recorded.trace, &to, &|header, name| Change {
        host: (header.host_id ^ u64::from(header.rank % 2), name.to_owned()),
        clock: OtherClock::default(),
        point: &moved::as_measured,
    });
    let there = recorded.bench.analyze_all(&to);
    assert_eq!(without_hosts(&recorded.text), without_hosts(&there));
    let report = parsed(&there);
    assert_eq!(report.run.hosts.len(), 2, "{:?}", report.run.hosts);
    let metric = &report.metrics["late_sender"];
    assert_eq!(metric.inter_node_s, Some(metric.total_s));
}

#[test]
fn hpcc_on_two_hosts() {
    if Mpi::is_left_out(Mpi::Mpich, "hpcc, which Debian builds for Open MPI alone") {
        return;
    }
    let recorded = Recorded::hpcc("moved-hpcc");
    let there = assert_offsets_do_not_matter(&recorded);
    assert_rates_do_not_matter(&recorded, &there);
    assert_wrong_measurements_are_corrected(&recorded, &there, &[[-1, -1], [1, -1], [-1, 1]]);
    let sums = parsed(&there).location_sums.expect("sums");
    let part = sums.inter_node_wait_s.expect("a part between hosts");
    assert!(part > 0.0 && part < sums.wait_s, "{sums:?}");
}

/// Clocks measured with their full stated error, late or early, at the start and at the end.
/// Effects follow their causes, and findings are within the error.
#[track_caller]
fn assert_wrong_measurements_are_corrected(recorded: &Recorded, there: &str, signs: &[[i64; 2]]) {
    let there = parsed(there);
    assert!(there.run.clock_violations.is_none(), "{:?}", there.run);
    let mut seen = 0;
    for (at, signs) in signs.iter().enumerate() {
        let skew = Skew {
            offset_s: 1,
            ppm: 100,
            wrong_ns: signs.map(|sign| sign * 400_000),
        };
        let here = parsed(&recorded.moved(&format!("wrong-{at}"), skew));
        let Some(violations) = here.run.clock_violations else {
            // On a busy machine all messages may have travelled longer.
            continue;
        };
        seen += 1;
        let (before, after) = (violations.before, violations.after);
        println!("{skew:?}: {violations:?}");
        assert!(before.messages + before.collectives > 0, "{skew:?}");
        assert_eq!(
            (after.messages, after.collectives),
            (0, 0),
            "{skew:?} {violations:?}"
        );
        let error = here.run.clock_error_s.expect("an error");
        assert!((0.0004..0.000_401).contains(&error), "{error}");
        for (b, here, there) in both(&here, &there) {
            let most = (error + ROUNDING_S) * b.calls as f64;
            let off = (here - there).abs();
            assert!(off <= most, "{skew:?}: {here} for {there} s: {b:#?}");
        }
    }
    assert!(seen > 0, "no violations, whatever was wrong");
}
