//! Texts and pictures of made-up runs, as kept in `golden/`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p laggard-experiments` rewrites the files.

mod support;

use std::path::Path;

use laggard_experiments::compare::{self, Comparison, Options, TextOptions, compare};
use laggard_experiments::matching::Matched;
use laggard_experiments::noise::{Evidence, Verdict};
use laggard_experiments::scale::{self, Scaling, scale};
use support::{example, improved, repeats, run, smaller};

fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert!(golden == text, "{name} differs:\n{text}");
}

fn two(count: usize) -> Comparison {
    let revisions = vec![
        repeats("before", &example(), count),
        repeats("after", &improved(), count),
    ];
    compare(revisions, &Options::default()).unwrap()
}

fn sizes() -> Scaling {
    let sizes = vec![
        vec![run("4.json", example())],
        repeats("1", &smaller(1, 26.0, 0.2), 3),
        vec![run("2.json", smaller(2, 14.0, 2.0))],
    ];
    scale(sizes, &scale::Options::default()).unwrap()
}

fn at(width: usize) -> TextOptions {
    TextOptions {
        width,
        ..TextOptions::default()
    }
}

#[test]
fn texts_are_as_kept() {
    check("compare.txt", &compare::render(&two(1), &at(100)));
    check("compare-repeats.txt", &compare::render(&two(5), &at(120)));
    check("scale.txt", &scale::render(&sizes(), &at(100)));
}

#[test]
fn lines_fit_the_screen() {
    for width in [80, 100, 120] {
        for text in [
            compare::render(&two(1), &at(width)),
            scale::render(&sizes(), &at(width)),
        ] {
            let fits = |line: &str| line.chars().count() <= width && !line.ends_with(' ');
            assert!(text.lines().all(fits), "{width}:\n{text}");
        }
    }
}

#[test]
fn findings_are_matched_and_judged() {
    let found = two(5);
    assert_eq!(found.noise.evidence, Evidence::Test);
    let row = |pattern: &str, operation: &str| {
        let rows = found.bottlenecks.iter();
        let mut rows = rows.filter(|row| row.pattern == pattern && row.operation == operation);
        rows.next().unwrap()
    };
    let late = row("late_sender", "MPI_Recv");
    assert_eq!(late.matched, [Some(Matched::Moved)]);
    assert_eq!(late.changes[0].verdict, Verdict::Better);
    assert!(
        late.changes[0]
            .percent
            .is_some_and(|p| (p + 90.0).abs() < 0.01)
    );
    let residual = row("wait_at_nxn", "MPI_Allreduce");
    assert_eq!(residual.matched, [Some(Matched::Renamed)]);
    assert_eq!(residual.changes[0].verdict, Verdict::Same);
    let new = row("wait_at_nxn", "MPI_Alltoall");
    assert_eq!(new.states, [compare::State::New]);
    assert_eq!(new.changes[0].verdict, Verdict::Worse);
    let region = &found.regions[0];
    let names: Vec<&str> = region.names.iter().flatten().map(String::as_str).collect();
    assert_eq!(names, ["relax", "smooth"]);
    assert_eq!(region.changes[0].verdict, Verdict::Same);
    // Too few repeats, or none, for a test.
    assert_eq!(two(2).noise.evidence, Evidence::Spread);
    let alone = two(1);
    assert_eq!(alone.noise.evidence, Evidence::Threshold);
    assert!(alone.noise.text.contains("unknown"), "{}", alone.noise.text);
}

#[test]
fn root_causes_are_matched_and_judged() {
    let found = two(5);
    let rows = found.root_causes.as_ref().unwrap();
    let row = |operation: &str| rows.iter().find(|row| row.operation == operation).unwrap();
    let computed = row("MPI_Recv");
    assert_eq!(computed.matched, [Some(Matched::Moved)]);
    assert_eq!(computed.changes[0].verdict, Verdict::Better);
    assert_eq!(row("MPI_File_write_at").states, [compare::State::Gone]);
    assert_eq!(row("MPI_File_write_all").states, [compare::State::New]);
    // The same network as before.
    assert_eq!(row("MPI_Send").activity, "latency");
    assert_eq!(row("MPI_Send").changes[0].verdict, Verdict::Same);
    assert_eq!(row("MPI_Send").matched, [Some(Matched::Line)]);
    // Of reports without root causes nothing is said, but why.
    let mut fast = example();
    fast.root_causes = None;
    let one = vec![run("a.json", example())];
    let found = compare(
        vec![one, vec![run("b.json", fast.clone())]],
        &Options::default(),
    )
    .unwrap();
    assert!(found.root_causes.is_none());
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.starts_with("b.json: root causes were not"))
    );
    let fast = ["c.json", "d.json"].map(|name| vec![run(name, fast.clone())]);
    let found = compare(fast.to_vec(), &Options::default()).unwrap();
    assert!(
        found.root_causes.is_none() && found.notes.is_empty(),
        "{:?}",
        found.notes
    );
}

#[test]
fn root_causes_grow_with_the_ranks() {
    let found = sizes();
    let rows = found.root_causes.as_ref().unwrap();
    let row = |operation: &str| rows.iter().find(|row| row.operation == operation).unwrap();
    let computed = row("MPI_Recv");
    assert_eq!(rows[0].operation, computed.operation);
    // Of three repeats the one in the middle.
    assert_eq!(computed.severity_s, [0.2 * 1.004, 2.0, 15.2]);
    assert_eq!(computed.lost_s, [0.0, 1.7992, 14.9992]);
    assert!((computed.percent[2] - 15.2 / (4.0 * 12.3) * 100.0).abs() < 0.2);
    assert!(computed.grows());
    let written = row("MPI_File_write_at");
    assert!(written.places[0].is_none() && written.places[2].is_some());
    assert_eq!(written.severity_s, [0.0, 0.0, 1.4]);
    // Weak scaling: four times the work, four times the waiting are no loss.
    let weak = scale::Options {
        growth: Some(scale::Growth::Weak),
        ..scale::Options::default()
    };
    let mut four = example();
    four.root_causes.as_mut().unwrap()[0].severity_s = 0.8;
    let one = smaller(1, four.run.wall_time_s, 0.2);
    let lists = vec![vec![run("1.json", one)], vec![run("4.json", four)]];
    let found = scale(lists, &weak).unwrap();
    let rows = found.root_causes.unwrap();
    let same = rows.iter().find(|row| row.operation == "MPI_Recv").unwrap();
    assert_eq!(same.lost_s, [0.0, 0.0]);
    assert!(!same.grows());
}

#[test]
fn a_finding_that_comes_back_is_one() {
    let mut without = example();
    without.bottlenecks.remove(0);
    let revisions = vec![
        vec![run("a", example())],
        vec![run("b", without)],
        vec![run("c", improved())],
    ];
    let found = compare(revisions, &Options::default()).unwrap();
    let late = found
        .bottlenecks
        .iter()
        .filter(|row| row.pattern == "late_sender");
    let late: Vec<_> = late.collect();
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].states, [compare::State::Gone, compare::State::Both]);
    assert_eq!(late[0].matched, [None, Some(Matched::Moved)]);
}

/// A picture is well-formed, and contains the given words.
fn is_picture(svg: &str, words: &[&str]) {
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    for word in words {
        assert!(svg.contains(word), "{word} is not in\n{svg}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let opened = svg.matches("<text").count();
    assert_eq!(opened, svg.matches("</text>").count());
}

#[test]
fn pictures_show_the_numbers() {
    let mut comparison = two(3);
    comparison.revisions[1].label = "a<b & \u{1b}c".to_owned();
    let svg = compare::draw(&comparison).unwrap();
    let words = [
        "heat: revisions",
        "before",
        "a&lt;b &amp; c",
        "rank 0 computed between MPI_Recv at",
        "Late sender in MPI_Recv",
        "exchange.c:151 exchange_halo",
        "smooth",
        "18.0 s",
        "1.80 s",
    ];
    is_picture(&svg, &words);
    let svg = scale::draw(&sizes()).unwrap();
    let words = [
        "strong scaling",
        "observed",
        "ideal",
        "factor 0.52",
        "4 ranks",
        "load imbalance",
    ];
    is_picture(&svg, &words);
}

#[test]
fn pictures_of_odd_numbers_are_pictures() {
    let mut nothing = example();
    nothing.run.wall_time_s = 1e-9;
    nothing.phases_of_run = None;
    nothing.bottlenecks.clear();
    nothing.locations.clear();
    nothing.location_sums = Some(Default::default());
    nothing.operations.clear();
    let lists = || {
        vec![
            vec![run("a", nothing.clone())],
            vec![run("b", nothing.clone())],
        ]
    };
    let comparison = compare(lists(), &Options::default()).unwrap();
    is_picture(&compare::draw(&comparison).unwrap(), &["Wall time"]);
    let mut lists = lists();
    lists[1][0].report.run.ranks = 64;
    let scaling = scale(lists, &scale::Options::default()).unwrap();
    is_picture(&scale::draw(&scaling).unwrap(), &["64 ranks"]);
    assert!(!scale::render(&scaling, &at(80)).contains("NaN"));
}
