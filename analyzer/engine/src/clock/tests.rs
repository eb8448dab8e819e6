use laggard_trace::ClockPoint;

use super::evidence::{MOST_POINTS, Point};
use super::*;

fn evidence(host: u64) -> ClockEvidence {
    ClockEvidence {
        host,
        clock: 1,
        ticks_per_s: 2_000_000_000,
        ..Default::default()
    }
}

fn with_points(points: &[Point]) -> ClockEvidence {
    ClockEvidence {
        points: points.to_vec(),
        ..evidence(1)
    }
}

fn map(evidence: &ClockEvidence) -> ClockMap {
    Clocks::new([evidence].into_iter()).of(evidence.key())
}

#[test]
fn interpolates_between_start_and_end() {
    let e = with_points(&[
        (1_000, 5_000, 3),
        (1_000 + 2_000_200_000, 5_000 + 1_000_000_000, 7),
    ]);
    let map = map(&e);
    assert_eq!(map.ns(1_000), 5_000);
    let end = map.ns(1_000 + 2_000_200_000);
    assert!((end - 1_000_005_000).abs() <= 1, "{end}");
    assert_eq!(map.error_ns(), 7);
    assert!(map.ns(0) < 5_000);
    assert!(map.is_even());
}

/// Ticks of a clock of about 2 GHz at a time in ns. The clock runs 0 to 200 ppm slow, as with the
/// temperature of a day.
fn wandering(ns: i64) -> u64 {
    let s = ns as f64 / 1e9;
    let slow = 1e-4 * (s + (s / 10.0).sin() * 10.0);
    (1 << 40) + ((s - slow) * 2e9).round() as u64
}

#[test]
fn follows_a_rate_that_changes() {
    let points = |step: i64| -> Vec<Point> {
        let times = (0..=100 / step).map(|n| n * step * 1_000_000_000);
        times.map(|ns| (wandering(ns), ns, 50)).collect()
    };
    let worst = |map: &ClockMap| {
        let times = (0..1000).map(|n| n * 100_000_000 + 12_345);
        let off = times.map(|ns| (map.ns(wandering(ns)) - ns).unsigned_abs());
        off.max().unwrap()
    };
    let often = map(&with_points(&points(1)));
    let seldom = map(&with_points(&points(100)));
    assert!(worst(&seldom) > 500_000, "{}", worst(&seldom));
    assert!(worst(&often) < 2_000, "{}", worst(&often));
    // The bound covers the deviation from a straight line.
    assert!(often.error_ns() >= worst(&often), "{}", often.error_ns());
    assert!(often.error_ns() < 4_000, "{}", often.error_ns());
}

#[test]
fn time_never_goes_back() {
    let mut points = Vec::new();
    for n in 0..40i64 {
        let wrong = (n * 7919 % 13 - 6) * 400_000;
        points.push((
            wandering(n * 100_000_000),
            n * 100_000_000 + wrong,
            3_000_000,
        ));
    }
    let map = map(&with_points(&points));
    let mut last = i64::MIN;
    for ticks in (0..10_000_000_000u64).step_by(999_983) {
        let ns = map.ns((1 << 40) - 1_000_000_000 + ticks);
        assert!(ns >= last, "{ticks}");
        last = ns;
    }
    for segment in &map.segments[1..] {
        let at = map.origin.wrapping_add(segment.since as u64);
        assert!(map.ns(at) >= map.ns(at - 1));
    }
}

#[test]
fn a_bad_measurement_does_not_spoil_good_ones() {
    let at = |s: i64, wrong: i64, error: u64| -> Point {
        (2_000_000_000 * s as u64, s * 1_000_000_000 + wrong, error)
    };
    // One took long, but is right within its error.
    let clean = map(&with_points(&[
        at(0, 0, 900),
        at(1, 0, 900),
        at(2, 0, 900),
        at(4, 0, 900),
    ]));
    let bad = [
        at(0, 0, 900),
        at(1, 0, 900),
        at(2, 0, 900),
        at(3, 300_000, 400_000),
        at(4, 0, 900),
    ];
    let with_bad = map(&with_points(&bad));
    for ticks in (0..9_000_000_000).step_by(123_456_789) {
        assert_eq!(clean.ns(ticks), with_bad.ns(ticks));
    }
    assert_eq!(with_bad.error_ns(), 900);
    // A contradicting point counts as far as it must.
    let bad = [
        at(0, 0, 900),
        at(1, 0, 900),
        at(2, 0, 900),
        at(3, 700_000, 400_000),
        at(4, 0, 900),
    ];
    let with_bad = map(&with_points(&bad));
    assert_eq!(with_bad.ns(6_000_000_000), 3_000_300_000);
    assert!(with_bad.error_ns() >= 400_000);
}

#[test]
fn of_many_measurements_the_best_are_kept() {
    let point = |n: u64| ClockPoint {
        local: n,
        reference_ns: n as i64,
        error_ns: if n % 10 == 3 { 1 } else { 100 },
        kind: if n == 0 { 0 } else { 2 },
        reserved: 0,
    };
    let all: Vec<_> = (0..10_000).map(point).collect();
    let kept = points(&all);
    assert!(kept.len() <= MOST_POINTS, "{}", kept.len());
    assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0, 9_999));
    assert!(kept[1..kept.len() - 1].iter().filter(|p| p.2 == 1).count() > 490);
    assert!(kept.windows(2).all(|two| two[0].0 < two[1].0));
}

#[test]
fn near_a_base_times_are_the_same() {
    let e = ClockEvidence {
        ticks_per_s: 2_345_678_901,
        points: vec![(1_000_000, -77, 0)],
        ..evidence(1)
    };
    let map = map(&e);
    for base in [0, 999_999, 5_000_000_000, u64::MAX] {
        let near = map.near(base, 0, 1 << 33).unwrap();
        for ticks in [0, 1, 7, 1_234_567, 1 << 33] {
            let exact = map.ns(base.wrapping_add(ticks));
            assert_eq!(near.ns(ticks), exact);
        }
        // Also before it, and too far away to be near.
        for ticks in [0, 7, 1 << 33, 1 << 40, u64::MAX] {
            let moment = base.wrapping_add(ticks);
            assert_eq!(map.after(base)(moment), map.ns(moment));
        }
    }
    assert!(map.near(1 << 63, 0, 0).is_none());
}

#[test]
fn near_a_border_each_side_has_its_map() {
    let s = 2_000_000_000;
    let e = with_points(&[
        (s, 0, 0),
        (2 * s, 1_000_000_100, 0),
        (3 * s, 2_000_000_000, 0),
    ]);
    let map = map(&e).shifted(17);
    let base = 2 * s - 1000;
    assert!(map.near(base, 0, 999).is_some());
    assert!(map.near(base, 0, 1000).is_none());
    assert!(map.near(base, 1000, 2000).is_some());
    for (first, last) in [(0, 999), (1000, 50_000)] {
        let near = map.near(base, first, last).unwrap();
        for ticks in [first, first + 1, (first + last) / 2, last] {
            assert_eq!(near.ns(ticks), map.ns(base + ticks));
        }
    }
}

#[test]
fn all_files_of_a_host_share_one_map() {
    let measured = with_points(&[(0, 0, 0)]);
    let bare = evidence(1);
    let clocks = Clocks::new([&bare, &measured].into_iter());
    assert_eq!(clocks.of(bare.key()), clocks.of(measured.key()));
    assert_eq!(clocks.unsynchronised, 0);
}

#[test]
fn a_killed_run_takes_its_rate_from_the_blocks() {
    let mut e = with_points(&[(0, 0, 0)]);
    e.span = Some(((0, 0), (3_000_000_000, 1_000_000_000)));
    let map = map(&e);
    assert!((map.ns(3_000_000_000) - 1_000_000_000).abs() <= 1);
}

/// Times since 1970 are beyond those of a map.
#[test]
fn without_measurements_a_run_begins_near_0() {
    let started = ClockEvidence {
        made: (7_000_000_000, 1_795_000_000_000_000_000),
        ..evidence(1)
    };
    let other = ClockEvidence {
        made: (5, 1_795_000_000_500_000_000),
        ..evidence(2)
    };
    let clocks = Clocks::new([&started, &other].into_iter());
    let ends = [&started, &other].map(|e| clocks.of(e.key()).ns(e.made.0 + 2_000_000_000));
    assert!(ends[0].abs_diff(1_000_000_000) <= 1, "{ends:?}");
    assert!(ends[1].abs_diff(1_500_000_000) <= 1, "{ends:?}");
}

#[test]
fn corrections_are_added_evenly() {
    let s = 2_000_000_000;
    let e = with_points(&[
        (s, 0, 5),
        (2 * s, 1_000_000_100, 0),
        (3 * s, 2_000_000_000, 0),
    ]);
    let map = map(&e).shifted(1_000);
    let width = 250_000_000;
    let corrections = [0, 0, 700, 1_400, 900, 900, 900, 30_000, 30_000];
    let corrected = map.corrected(width, &corrections);
    assert_eq!(corrected.error_ns(), map.error_ns());
    let mut last = i64::MIN;
    for ticks in (0..4 * s).step_by(7_654_321) {
        let (before, after) = (map.ns(ticks), corrected.ns(ticks));
        let at = (before as f64 / width as f64).clamp(0.0, 7.999_999);
        let (from, part) = (at as usize, at.fract());
        let by = corrections[from] as f64 * (1.0 - part) + corrections[from + 1] as f64 * part;
        assert!(
            (after - before - by as i64).abs() <= 3,
            "{ticks} {by} {}",
            after - before
        );
        assert!(after > last);
        last = after;
    }
    assert_eq!(map.corrected(width, &[0; 9]), map);
}

#[test]
fn what_is_needed_gives_the_same_clocks() {
    let point = |n: u64| (n * 2_000_200_000, n as i64 * 1_000_000_000, 50 + n % 3);
    let file = |rank: u64| ClockEvidence {
        // Ranks of two hosts; a third host was never measured.
        host: if rank == 11 { 3 } else { 1 + rank % 2 },
        points: match rank {
            0 | 11 => Vec::new(),
            // A rank's last measurement is its own.
            _ => vec![point(0), point(rank % 2 + 1), point(rank + 4)],
        },
        span: (rank != 4).then_some(((7, 9), (rank * 1000, (rank as i64 % 5) << 30))),
        made: (rank * 77, rank as i64 * 1_000_003),
        ..evidence(1)
    };
    let files: Vec<ClockEvidence> = (0..12).map(file).collect();
    let whole = Clocks::new(files.iter());
    for agents in 1..=4 {
        let parts = files.chunks(files.len().div_ceil(agents));
        let needed: Vec<ClockEvidence> = parts.flat_map(|part| needed(part.iter())).collect();
        let clocks = Clocks::new(needed.iter());
        assert_eq!(clocks.maps, whole.maps, "{agents}");
        assert_eq!(clocks.unsynchronised, 1);
        assert!(agents > 1 || needed.len() < files.len());
    }
}
