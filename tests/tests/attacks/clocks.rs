//! Clocks are compared while the program runs, whatever its ranks do together.

use std::ffi::OsStr;

use laggard_tests::attack::{Attack, assert_same};
use laggard_tests::product::Bench;
use laggard_tests::report::Report;

/// Runs with a short `LAGGARD_SYNC_INTERVAL_S`, as if every rank had a host of its own. Returns the
/// kinds of each rank's clock points, in the order of time.
fn clocks_compared(how: &str, ranks: u32) -> Vec<Vec<u32>> {
    let bench = Bench::sharing(&format!("periodic-{how}-{ranks}"));
    let attack = Attack::on(bench, "periodic.c", &[how]);
    let hosts = attack.library("hosts.c").to_string_lossy().into_owned();
    let words: Vec<&OsStr> = attack.words.iter().map(|w| w.as_os_str()).collect();
    let plain = attack.bench.plain(ranks, &words).run().expect_orderly();
    let run = attack.bench.traced(ranks, &words, "trace");
    // Where they must not be compared it must be late enough when the program agrees on its times.
    let interval_ms: i64 = match how {
        "others" | "few" => 200,
        _ => 40,
    };
    let run = run.env("LAGGARD_SYNC_INTERVAL_S", format!("0.{interval_ms:03}"));
    let traced = run.env("LD_PRELOAD", hosts).run().expect_orderly();
    assert_same(&plain, &traced);
    assert_eq!(traced.stderr, "", "{traced}");
    let text = attack.bench.analyze_agreed(&attack.trace());
    let report = Report::parse(&text).expect("a report of the promised shape");
    let missing = usize::from(how == "uneven");
    assert_eq!(report.errors().len(), missing, "{:#?}", report.anomalies);
    let points = (0..ranks).map(|rank| {
        let path = attack.trace().join(laggard_trace::file_name(rank, 0));
        let Ok(location) = laggard_trace::Location::open(&path) else {
            return Vec::new();
        };
        // The points of the other threads: any of them may have been in the collective.
        let others = (1..8).filter_map(|thread| {
            let path = laggard_trace::file_name(rank, thread);
            laggard_trace::Location::open(&attack.trace().join(path)).ok()
        });
        let mut points = location.clock;
        points.extend(others.flat_map(|other| other.clock));
        points.sort_by_key(|point| point.local);
        let times = points.windows(2);
        let is_forward = |two: &[laggard_trace::ClockPoint]| {
            // Never more often than that, up to the error of clocks. The first interval begins
            // before the comparison at the start, which may take some of it.
            let is_periodic = two[0].kind == 2 && two[1].kind == 2;
            let least = if is_periodic {
                990_000 * interval_ms
            } else {
                1
            };
            two[0].local < two[1].local && two[0].reference_ns + least <= two[1].reference_ns
        };
        assert!(times.into_iter().all(is_forward), "{points:?}");
        points.iter().map(|point| point.kind).collect()
    });
    points.collect()
}

/// Half a second with measurements at least every 40 ms, or as often as the machine allows.
#[track_caller]
fn assert_compared_meanwhile(points: &[Vec<u32>]) {
    for kinds in points {
        let [0, meanwhile @ .., 1] = &kinds[..] else {
            panic!("{points:?}");
        };
        assert!(meanwhile.iter().all(|&kind| kind == 2), "{points:?}");
        assert!(meanwhile.len() >= 3, "{points:?}");
        assert_eq!(kinds.len(), points[0].len(), "{points:?}");
    }
}

#[test]
fn clocks_are_compared_at_collectives() {
    assert_compared_meanwhile(&clocks_compared("world", 3));
}

#[test]
fn clocks_are_compared_at_collectives_of_any_thread() {
    assert_compared_meanwhile(&clocks_compared("threads", 2));
}

/// Clocks are compared only where all ranks surely come.
#[test]
fn clocks_are_not_compared_at_collectives_of_some() {
    let points = clocks_compared("others", 3);
    assert!(points.iter().all(|kinds| *kinds == [0, 1]), "{points:?}");
    let points = clocks_compared("few", 3);
    assert!(points.iter().all(|kinds| *kinds == [0, 1]), "{points:?}");
}

/// If one rank counts other collectives than the rest, only measurements are lost.
#[test]
fn clocks_are_compared_although_a_rank_counts_differently() {
    let points = clocks_compared("uneven", 3);
    assert_eq!(points[1], [0; 0]);
    assert!(
        [&points[0], &points[2]]
            .iter()
            .all(|kinds| kinds.first() == Some(&0))
    );
    assert!(
        [&points[0], &points[2]]
            .iter()
            .all(|kinds| kinds.last() == Some(&1))
    );
}
