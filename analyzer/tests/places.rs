//! Findings at one line of a wrapper, told apart by who calls that.

use crate::support::*;
use laggard_report::{RenderOptions, Report, render_text, words};

const MS: u64 = 1_000_000;

/// Rank 1 receives too early in one wrapper, in three ways, and at a line of its own; rank 0
/// sends in another wrapper.
fn wrappers() -> Report {
    let mut r = ranks(2);
    for (number, lines) in [
        (101, [8, 91, 200]),
        (102, [8, 95, 200]),
        (103, [8, 95, 210]),
    ] {
        r[1].wrapped(number, &lines);
    }
    r[0].wrapped(110, &[9, 91, 200]);
    r[0].wrapped(111, &[9, 95, 200]);
    for (at, (sends, receives)) in [(110, 101), (111, 102), (111, 103), (30, 40)]
        .iter()
        .enumerate()
    {
        let start = 100 * at as u64;
        let (post, late) = ((start + 10) * MS, (start + 90 - at as u64) * MS);
        r[1].recv(*receives, 0, 5, post, late + 2 * MS);
        r[0].send(*sends, 1, 5, late, late + MS);
    }
    analyze(r)
}

#[test]
fn no_two_findings_have_the_same_place() {
    let report = wrappers();
    let places = report
        .bottlenecks
        .iter()
        .map(|found| words::place(&found.location));
    let expected = [
        "app.c:91 work via app.c:8 work",
        "app.c:95 work via app.c:8 work",
        "app.c:210 work via app.c:8 work",
    ];
    let mut places: Vec<String> = places.collect();
    assert_eq!(places.pop().as_deref(), Some("app.c:40 work"));
    // Of the two that line 95 calls both have a caller that the other has not.
    assert_eq!(
        places,
        [expected[0], "app.c:200 work via app.c:8 work", expected[2]]
    );
    // What the line is, is said as ever.
    assert!(
        report.bottlenecks[..3]
            .iter()
            .all(|found| found.location.line == 8)
    );
    let causes = report
        .bottlenecks
        .iter()
        .map(|found| words::place(&found.causes[0].location));
    let causes: Vec<String> = causes.collect();
    assert_eq!(
        causes[..2],
        [
            "app.c:91 work via app.c:9 work",
            "app.c:95 work via app.c:9 work"
        ]
    );
    assert_eq!(causes[3], "app.c:30 work");
    let text = render_text(&report, &RenderOptions::default());
    for place in places {
        assert!(text.contains(&place), "{text}");
    }
}

/// Rank 0 computes twice before the same line of a wrapper, which two lines call.
#[test]
fn no_two_root_causes_read_alike() {
    let mut r = ranks(2);
    r[0].wrapped(120, &[9, 91, 200]);
    r[0].wrapped(121, &[9, 95, 200]);
    r[1].recv(40, 0, 5, 3 * MS, 6 * MS);
    r[0].send(30, 1, 5, 4 * MS, 5 * MS);
    for (at, wrapper) in [(100, 120), (200, 121)] {
        r[1].recv(40, 0, 5, (at - 90) * MS, (at - at / 50) * MS);
        r[0].isend(wrapper, 1, 9, (at - at / 20) * MS);
        r[0].send(30, 1, 5, (at - at / 25) * MS, (at - at / 50) * MS);
    }
    let said = analyze(r).root_causes.unwrap();
    let said: Vec<String> = said.iter().take(2).map(words::root_cause).collect();
    let before = |line| {
        format!(
            "rank 0 computed between MPI_Send at app.c:30 work and MPI_Isend at app.c:{line} work \
             via app.c:9 work"
        )
    };
    assert_eq!(said, [before(91), before(95)]);
}

/// A message to itself that comes too late, and one to another rank.
#[test]
fn a_rank_that_waits_for_its_own_thread_does_so_in_words() {
    let mut r = ranks(2);
    let post = r[0].irecv(20, 0, 5, 10 * MS);
    let mut thread = Calls::new(0, 1, 2);
    thread.send(21, 0, 5, 60 * MS, 61 * MS);
    r[0].waitall(22, &[(post, None)], 11 * MS, 62 * MS);
    r.push(thread);
    let report = analyze(r);
    let found = &report.bottlenecks[0];
    assert_eq!((found.ranks[0].rank, found.causes[0].rank), (0, 0));
    let text = render_text(&report, &RenderOptions::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("for thread 1 of rank 0, MPI_Send at app.c:21"),
        "{text}"
    );
    let headline = "the others before MPI_Send at app.c:21 work.";
    assert!(text.contains(headline), "{text}");
    assert!(!text.contains("for rank 0"), "{text}");
    // Without root causes, the largest finding is in the headline.
    let without = Report {
        root_causes: None,
        ..report
    };
    let text = render_text(&without, &RenderOptions::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("at app.c:22 work, for thread 1 of rank 0."),
        "{text}"
    );
}
