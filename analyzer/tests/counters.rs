//! What counters say of root causes and locations, in traces made in memory.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::{Report, RootCause};
use laggard_trace::calls::number;
use laggard_trace::{COUNTERS, Definition};

const MS: u64 = 1_000_000;

/// What a rank computes before a barrier: for how long, how long its counters saw, ns, and its counts.
type Work<'w> = (u64, u64, &'w [u64]);

/// Two ranks that compute before barriers.
fn run(names: &[&str], rounds: &[[Work; 2]]) -> Report {
    let mut all = ranks(2);
    for (rank, calls) in all.iter_mut().enumerate() {
        let text = |id, text: &str| Definition::String {
            id,
            bytes: text.as_bytes().to_vec(),
        };
        calls.define(text(7, "counter"));
        for (id, name) in (8..).zip(names) {
            calls.define(text(id, name));
            calls.define(Definition::Property { key: 7, value: id });
        }
        calls.call(1, init(), 0, MS);
        let mut begin = MS;
        for works in rounds {
            let (time, seen, counts) = works[rank];
            if !counts.is_empty() {
                calls.counts(seen, counts);
            }
            let last = works.iter().map(|work| work.0).max().unwrap();
            calls.collective(
                10,
                number::MPI_Barrier,
                -1,
                begin + time,
                begin + last + 1000,
            );
            begin += last + 1000;
        }
        calls.call(40, finalize(), begin, begin + MS);
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    analyze_by_agents(all, &options, [None, None, None])
}

/// The computation before the barrier.
fn cause(report: &Report) -> &RootCause {
    let mut causes = report.root_causes.iter().flatten();
    let found = causes.find(|cause| cause.activity == "computation" && cause.rank_set == "0");
    found.expect("a cause")
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
}

const BOTH: [&str; 2] = ["instructions", "cycles"];

/// Four times as long: 2 times the instructions, 1.6 times the cycles for each, at 2.4 instead of 3 GHz.
#[test]
fn factors_divide_what_was_longer() {
    let late: Work = (40 * MS, 40 * MS, &[40_000_000, 96_000_000]);
    let other: Work = (10 * MS, 10 * MS, &[20_000_000, 30_000_000]);
    for rounds in [1, 3] {
        let report = run(&BOTH, &vec![[late, other]; rounds]);
        let cause = cause(&report);
        let factors = cause.factors.expect("factors");
        let part = |ratio: f64| 0.030 * ratio.ln() / 4f64.ln();
        near(factors.excess_s, 0.030);
        near(factors.instructions_s, part(2.0));
        near(factors.cycles_per_instruction_s, part(1.6));
        near(factors.frequency_s, part(1.25));
        let told = "; more instructions took 15.0 ms of the 30.0 ms more, more cycles for each instruction \
                    10.2 ms, a slower clock 4.83 ms";
        assert!(cause.because.contains(told), "{}", cause.because);
        let [cycles, instructions] = &cause.counters[..] else {
            panic!("{:?}", cause.counters)
        };
        assert_eq!(
            (&*cycles.name, cycles.late, cycles.others),
            ("cycles", 96e6, 30e6)
        );
        assert_eq!(instructions.late, 40e6);
        let first = &report.locations[0];
        near(first.counted_s.expect("time"), 0.040 * rounds as f64);
        assert_eq!(first.counters["cycles"], 96_000_000 * rounds as u64);
        let sums = report.sums();
        assert_eq!(sums.counters["instructions"], 60_000_000 * rounds as u64);
    }
}

/// A factor may work against the others: fewer instructions, and each takes much longer.
#[test]
fn a_factor_may_make_it_shorter() {
    let late: Work = (40 * MS, 40 * MS, &[10_000_000, 120_000_000]);
    let other: Work = (10 * MS, 10 * MS, &[20_000_000, 30_000_000]);
    let report = run(&BOTH, &[[late, other]]);
    let cause = cause(&report);
    let factors = cause.factors.expect("factors");
    near(factors.instructions_s, -0.015);
    near(factors.cycles_per_instruction_s, 0.045);
    near(factors.frequency_s, 0.0);
    let told = "; more cycles for each instruction took 45.0 ms of the 30.0 ms more";
    assert!(cause.because.contains(told), "{}", cause.because);
    assert!(
        !cause.because.contains("more instructions"),
        "{}",
        cause.because
    );
}

/// Others that did nothing executed nothing.
#[test]
fn all_of_it_is_instructions_where_the_others_did_nothing() {
    let late: Work = (40 * MS, 40 * MS, &[40_000_000, 96_000_000]);
    let report = run(&BOTH, &[[late, (10_000, 0, &[])]]);
    let factors = cause(&report).factors.expect("factors");
    near(factors.instructions_s, factors.excess_s);
    near(factors.cycles_per_instruction_s, 0.0);
}

/// Near misses: half of the other's work was not counted; none of the late one's; one counter alone.
#[test]
fn what_counters_did_not_see_they_do_not_explain() {
    let late: Work = (40 * MS, 40 * MS, &[40_000_000, 96_000_000]);
    let half: Work = (10 * MS, 5 * MS, &[10_000_000, 15_000_000]);
    let other: Work = (10 * MS, 10 * MS, &[20_000_000, 30_000_000]);
    for works in [[late, half], [(40 * MS, 0, &[]), other]] {
        let report = run(&BOTH, &[works]);
        let cause = cause(&report);
        assert_eq!((cause.factors, cause.counters.len()), (None, 0));
        assert!(!cause.because.contains("instructions"), "{}", cause.because);
    }
    let one: [Work; 2] = [(40 * MS, 40 * MS, &[7000]), (10 * MS, 10 * MS, &[50])];
    let report = run(&["page-faults"], &[one]);
    let cause = cause(&report);
    assert_eq!(cause.factors, None);
    assert!(
        cause.because.contains("page-faults 7 000 instead of 50"),
        "{}",
        cause.because
    );
}

/// Time in the kernel is that of page faults if these can have taken it. A near miss: there are few.
#[test]
fn page_faults_explain_time_in_the_kernel() {
    for (faults, told) in [(10_000, Some(9_990.0)), (500, None)] {
        let mut all = ranks(2);
        for (calls, (kernel, faults)) in all.iter_mut().zip([(20 * MS, faults), (0, 10)]) {
            calls.call(1, init(), 0, MS);
            calls.is_off([0, 0, kernel]);
            calls.faults(faults);
            calls.collective(10, number::MPI_Barrier, -1, 2 * MS + kernel, 23 * MS);
            calls.call(40, finalize(), 23 * MS, 24 * MS);
        }
        let mut options = AnalyzeOptions::default();
        options.settings.all = true;
        let report = analyze_by_agents(all, &options, [None, None, None]);
        let mut causes = report.root_causes.iter().flatten();
        let cause = causes
            .find(|cause| cause.activity == "kernel")
            .expect("a cause");
        assert_eq!(cause.page_faults, told, "{cause:?}");
        let is_told = told.is_some();
        let texts = [&cause.because, &laggard_report::words::root_cause(cause)];
        for text in texts {
            assert_eq!(text.contains("page faults"), is_told, "{text}");
        }
        let hint = &cause.hints[0];
        assert_eq!(hint.contains("page faults"), is_told, "{hint}");
        assert_eq!(hint.contains("system calls"), !is_told, "{hint}");
    }
}

/// Who sleeps before others wait is late, and not busy.
#[test]
fn who_sleeps_is_not_busy() {
    let mut all = ranks(2);
    for (rank, calls) in all.iter_mut().enumerate() {
        calls.call(1, init(), 0, MS);
        calls.is_off([[0, 30 * MS][rank], 0, 0]);
        let enter = [21 * MS, 41 * MS][rank];
        calls.collective(10, number::MPI_Barrier, -1, enter, 42 * MS);
        calls.call(40, finalize(), 43 * MS, 44 * MS);
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(all, &options, [None, None, None]);
    let busy: Vec<bool> = report.locations.iter().map(|of| of.bottleneck).collect();
    assert_eq!(busy, [true, false]);
    assert_eq!(report.sums().busiest, "0");
}

/// Numbers without a name, and counts that fill their bits.
#[test]
fn odd_counts_are_no_error() {
    let counts = [u64::MAX; COUNTERS];
    let work: Work = (40 * MS, u64::MAX >> 1, &counts);
    let report = run(&["cycles"], &[[work, (10 * MS, MS, &[0])]]);
    assert_eq!(report.locations[0].counters.len(), 1);
}

/// Counters that took turns, and samples without room or a function, are told of all threads together.
#[test]
fn what_is_lost_is_said() {
    let mut all = ranks(2);
    for calls in &mut all {
        let told = [
            "counter_ran",
            "cycles 0.497",
            "samples_lost",
            "17",
            "samples_nowhere",
            "3",
        ];
        for (id, text) in (7..).zip(told) {
            let bytes = text.as_bytes().to_vec();
            calls.define(Definition::String { id, bytes });
        }
        for key in [7, 9, 11] {
            calls.define(Definition::Property {
                key,
                value: key + 1,
            });
        }
        calls.call(1, init(), 0, MS);
        calls.call(40, finalize(), MS, 2 * MS);
    }
    let report = analyze_by_agents(all, &AnalyzeOptions::default(), [None, None, None]);
    let told = |id: &str| {
        let rows = report.anomalies.iter().filter(|row| row.id == id);
        rows.map(|row| row.count).collect::<Vec<_>>()
    };
    assert_eq!(told("counters_scaled"), [1, 1]);
    assert_eq!(told("samples_lost"), [17, 17]);
    assert_eq!(told("samples_nowhere"), [3, 3]);
    let scaled = report
        .anomalies
        .iter()
        .find(|row| row.id == "counters_scaled");
    assert!(scaled.is_some_and(|row| row.detail.ends_with("cycles 0.497")));
}
