//! In which functions the computation of root causes was, by samples.

use crate::roots::key;
use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::RootCause;
use laggard_trace::calls::number;

const MS: u64 = 1_000_000;

/// A call path, innermost first, and how many samples there are of it, one a ms.
type Samples = (Vec<(u32, &'static str)>, u32);

/// Both ranks compute for 20 ms, and so much longer, ms, with such samples. The root cause.
fn compared(longer: [u64; 2], samples: [&[Samples]; 2], is_sampled: bool) -> RootCause {
    let mut all = ranks(2);
    if is_sampled {
        takes_samples(&mut all);
    }
    for (rank, of) in all.iter_mut().zip(samples) {
        rank.call(1, init(), 0, MS);
        if is_sampled {
            rank.samples(7, 20, 20 * MS as u32);
        }
        for (number, (path, samples)) in (100..).zip(of) {
            rank.called(number, path);
            rank.samples(number, *samples, samples * MS as u32);
        }
    }
    let [late, other] = longer.map(|longer| 21 + longer);
    for (rank, enter) in all.iter_mut().zip([late, other]) {
        rank.collective(10, number::MPI_Barrier, 0, enter * MS, late * MS + 1);
        rank.call(40, finalize(), late * MS + 1, (late + 1) * MS);
    }
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(all, &options, [None, Some(1), Some(1)]);
    let mut roots = report.root_causes.iter().flatten();
    let root = roots.find(|root| key(root) == ("computation", 1, 10));
    let root = root.expect("a root cause").clone();
    let text = laggard_report::render_text(&report, &laggard_report::RenderOptions::default());
    let words: Vec<&str> = text.split_whitespace().collect();
    let told: Vec<&str> = root.because.split_whitespace().collect();
    assert!(words.join(" ").contains(&told.join(" ")), "{text}");
    root
}

/// What it says if rank 0 alone has samples, in functions of its own.
fn sampled(longer: u64, functions: &[u32], is_sampled: bool) -> String {
    const NAMES: [&str; 20] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t",
    ];
    let of = functions.iter().zip(NAMES).zip(100..);
    let of = of.map(|((&samples, name), line)| (vec![(line, name)], samples));
    let of: Vec<Samples> = of.collect();
    compared([longer, 0], [&of, &[]], is_sampled).because
}

/// Samples of a function that is called from so many lines.
fn called_from(callers: u32, samples: u32) -> Vec<Samples> {
    let of = (0..callers).map(|caller| vec![(8, "late"), (200 + caller, "caller"), (9, "main")]);
    of.map(|path| (path, samples)).collect()
}

/// A function counts whoever calls it; callers with a twentieth of it are told below.
#[test]
fn functions_of_root_causes_count_whoever_calls_them() {
    const LATE: &str = ": 80.0 ms more at app.c:8 late";
    let many = compared([80, 0], [&called_from(40, 2), &[]], true);
    assert!(many.because.ends_with(LATE), "{}", many.because);
    assert!(
        (many.functions[0].share - 1.0).abs() < 1e-9,
        "{:?}",
        many.functions
    );
    assert_eq!(many.functions[0].callers, []);

    let few = compared([80, 0], [&called_from(8, 10), &[]], true);
    let callers: Vec<String> = (200..203)
        .map(|line| format!("12.5 % from app.c:{line} caller"))
        .collect();
    let told = format!("{LATE} ({})", callers.join(", "));
    assert!(few.because.ends_with(&told), "{}", few.because);
    let shares = few.functions[0].callers.iter().map(|of| of.share);
    assert_eq!(shares.collect::<Vec<_>>(), [0.125; 8]);

    let one = compared([80, 0], [&called_from(1, 80), &[]], true);
    assert!(one.because.ends_with(LATE), "{}", one.because);
}

/// A function that calls itself has the callers of its first call, whatever its depth.
#[test]
fn recursion_counts_once() {
    let walk = |callers: [(u32, &'static str); 2]| {
        let levels = (1..=20).map(move |level| {
            let own = std::iter::repeat_n((8, "walk"), level);
            own.chain([callers[level % 2], (9, "main")]).collect()
        });
        levels.map(|path| (path, 4)).collect::<Vec<Samples>>()
    };
    let one = compared([80, 0], [&walk([(9, "main"); 2]), &[]], true);
    let told = ": 80.0 ms more at app.c:8 walk";
    assert!(one.because.ends_with(told), "{}", one.because);
    let two = compared([80, 0], [&walk([(20, "even"), (21, "odd")]), &[]], true);
    let told = format!("{told} (50.0 % from app.c:20 even, 50.0 % from app.c:21 odd)");
    assert!(two.because.ends_with(&told), "{}", two.because);
}

/// Near miss: those that waited were in the function as long, by other callers.
#[test]
fn functions_that_others_call_elsewhere_are_compared() {
    let path = |caller| vec![(8, "alike"), (9, caller)];
    let own = [(path("one"), 40), (vec![(30, "late")], 40)];
    let others = [(path("two"), 40)];
    let root = compared([80, 40], [&own, &others], true);
    let told = ": 40.0 ms more at app.c:30 late";
    assert!(root.because.ends_with(told), "{}", root.because);
}

/// Functions have their part of the mean that is told of the whole, also where rounds differ: that of a long one counts by
/// what it cost.
#[test]
fn functions_and_the_whole_have_one_mean() {
    let mut all = ranks(2);
    takes_samples(&mut all);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
        rank.collective(10, number::MPI_Barrier, 0, MS, 2 * MS);
    }
    all[0].wrapped(100, &[8, 100]);
    let mut now = 2;
    for longer in [90, 4, 4, 4] {
        all[0].samples(100, longer, longer * MS as u32);
        let end = now + 2 + u64::from(longer);
        for (rank, enter) in all.iter_mut().zip([end, now + 2]) {
            rank.collective(10, number::MPI_Barrier, 0, enter * MS, end * MS + 1);
        }
        now = end;
    }
    for rank in &mut all {
        rank.call(40, finalize(), now * MS + 1, (now + 1) * MS);
    }
    let report = analyze(all);
    let mut roots = report.root_causes.iter().flatten();
    let root = roots.find(|root| key(root) == ("computation", 10, 10));
    let root = root.expect("a root cause");
    let [only] = &root.functions[..] else {
        panic!("{:?}", root.functions);
    };
    // (90 x 90 + 3 x 4 x 4) / 102, and 2 more in the mean.
    assert_eq!(only.share, 1.0);
    assert!((only.more_s - 79.9e-3).abs() < 1e-4, "{only:?}");
    assert!(
        root.because
            .contains("in the mean 81.9 ms instead of 2.00 ms: 79.9 ms more at"),
        "{}",
        root.because
    );
}

/// Why no function is named, if samples could name one: a reader can take more.
#[test]
fn root_causes_say_why_they_name_no_function() {
    const FEW: &str = "; too few samples to name a function";
    const SPREAD: &str = "; no function stands out";
    let few = sampled(3, &[3], true);
    assert!(few.ends_with(FEW), "{few}");
    let spread = sampled(40, &[2; 20], true);
    assert!(spread.ends_with(SPREAD), "{spread}");
    let enough = sampled(40, &[40], true);
    assert!(enough.contains(": 40.0 ms more at app.c:100 "), "{enough}");
    // Near misses: not sampled, and asleep where that is not told.
    for because in [enough, sampled(3, &[], false), sampled(40, &[], true)] {
        let is_said = because.contains("samples") || because.contains("stands out");
        assert!(!is_said, "{because}");
    }
}
