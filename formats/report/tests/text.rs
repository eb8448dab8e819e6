//! The text of the example report, as kept in `golden/`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p laggard-report` writes the files anew.

use std::path::Path;

use laggard_report::{GainAfter, RenderOptions, Report, RootFunction, SourceLocation, render_text};

fn example() -> Report {
    let bytes = include_bytes!("example.json");
    Report::from_json(bytes, Path::new("example.json")).unwrap()
}

/// The example of an analysis that did not search root causes.
fn without_roots() -> Report {
    Report {
        root_causes: None,
        untraced_s: None,
        unlisted_s: None,
        ..example()
    }
}

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

fn text(width: usize) -> String {
    render_text(
        &example(),
        &RenderOptions {
            width,
            ..Default::default()
        },
    )
}

#[test]
fn text_is_as_kept() {
    check("example-80.txt", &text(80));
    check("example-120.txt", &text(120));
}

#[test]
fn lines_fit_the_screen() {
    for width in [80, 100, 120] {
        let text = text(width);
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let options = RenderOptions {
        width: 80,
        color: true,
        ..Default::default()
    };
    let mut colored = render_text(&example(), &options);
    while let Some(start) = colored.find('\x1b') {
        let end = colored[start..].find('m').unwrap();
        colored.replace_range(start..=start + end, "");
    }
    assert_eq!(colored, text(80));
}

#[test]
fn top_cuts_the_table() {
    let options = RenderOptions {
        top: 1,
        ..Default::default()
    };
    let text = render_text(&without_roots(), &options);
    assert!(
        text.contains("and 2 more: laggard show REPORT --top 3"),
        "{text}"
    );
    let options = RenderOptions {
        file: "trace/report.json".to_owned(),
        ..options
    };
    let known = render_text(&without_roots(), &options);
    assert!(
        known.contains("and 2 more: laggard show trace/report.json --top 3"),
        "{known}"
    );
    assert!(!text.contains("Wait at N x N"), "{text}");
}

#[test]
fn a_report_without_findings_says_so() {
    let mut report = without_roots();
    report.bottlenecks.clear();
    report.anomalies.clear();
    report.locations.clear();
    let text = render_text(&report, &RenderOptions::default());
    assert!(
        text.contains("0 % of rank time is waiting: nothing to report."),
        "{text}"
    );
}

#[test]
fn anomalies_of_many_locations_are_one_line() {
    let mut report = without_roots();
    let one = report.anomalies[1].clone();
    for rank in 0..5 {
        let mut other = one.clone();
        other.origin = Some(format!("rank {rank}"));
        report.anomalies.push(other);
    }
    let text = render_text(&report, &RenderOptions::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.matches("truncated trace").count(), 1, "{text}");
    assert!(text.contains("truncated trace (6 times)"), "{text}");
    assert!(
        text.contains("[rank000002.thread000.lgt and 5 more]"),
        "{text}"
    );
}

/// The text with single spaces.
fn words(report: &Report) -> String {
    let text = render_text(report, &RenderOptions::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn negligible_findings_are_counted() {
    let mut report = without_roots();
    for percent in [0.049, 0.001] {
        let mut small = report.bottlenecks[0].clone();
        small.percent = percent;
        small.name = "Small fry".to_owned();
        report.bottlenecks.push(small);
    }
    let text = words(&report);
    assert!(
        text.contains("and 2 more below 0.05 % of all time"),
        "{text}"
    );
    assert!(!text.contains("Small fry"), "{text}");
    report.bottlenecks.drain(..3);
    report.anomalies.clear();
    let text = words(&report);
    assert!(
        text.contains("2 findings below 0.05 % of all time"),
        "{text}"
    );
    assert!(text.contains("waiting: nothing to report."), "{text}");
}

#[test]
fn what_was_not_recorded_is_unknown_not_zero() {
    let mut report = without_roots();
    report.anomalies[0].id = "no_events".to_owned();
    let text = words(&report);
    assert!(text.contains("At least 40.1 % of rank time"), "{text}");
    assert!(
        text.contains("unknown: only a profile was recorded)"),
        "{text}"
    );
    report.anomalies[1].id = "missing_ranks".to_owned();
    report.bottlenecks.clear();
    let text = words(&report);
    let unknown = "How much of rank time is waiting is unknown: only a profile was \
                   recorded, ranks have no trace.";
    assert!(text.contains(unknown), "{text}");
}

#[test]
fn what_killed_programs_did_in_the_end_is_not_nothing() {
    let mut report = without_roots();
    report.anomalies.remove(0);
    report.bottlenecks.clear();
    report.locations.clear();
    let text = words(&report);
    let headline = "0 % of rank time is waiting, as far as the traces reach. What happened in \
                     the end is not known: traces are cut off";
    assert!(text.contains(headline), "{text}");
    assert!(!text.contains("nothing to report"), "{text}");
}

#[test]
fn where_a_run_hung_is_the_headline() {
    let mut report = without_roots();
    let mut add = |id: &str, detail: &str| {
        report.anomalies.push(laggard_report::Anomaly {
            id: id.to_owned(),
            detail: detail.to_owned(),
            ..Default::default()
        });
        words(&report)
    };
    let text = add("cut_off_in", "rank 1 was in MPI_Recv");
    let headline = "It did not end by itself: rank 1 was in MPI_Recv.";
    assert!(text.contains(headline), "{text}");
    let text = add("cut_off_in", "rank 2 was in MPI_Send");
    let headline = "rank 1 was in MPI_Recv (1 more such call below).";
    assert!(text.contains(headline), "{text}");
    let text = add("deadlock", "ranks 0-1 wait for each other");
    let headline = "It ended in a deadlock: ranks 0-1 wait for each other.";
    assert!(text.contains(headline), "{text}");
    assert!(!text.contains("It did not end by itself"), "{text}");
}

#[test]
fn polling_is_said_in_the_headline_but_is_no_defect_of_the_recording() {
    let mut report = without_roots();
    report.anomalies.clear();
    report.bottlenecks.clear();
    report.anomalies.push(laggard_report::Anomaly {
        id: "polling".to_owned(),
        count: 1_000,
        ..Default::default()
    });
    let text = words(&report);
    assert!(text.contains("unknown: ranks waited by polling."), "{text}");
    assert!(report.is_sound());
}

#[test]
fn the_headline_names_the_cause_and_who_only_passes_it_on() {
    let mut report = example();
    let text = words(&report);
    let said = "40.1 % of rank time is waiting. Main cause (30.9 %): rank 0 computes 3.0x as long \
                as the others before MPI_Send at exchange.c:137 exchange_halo. Ranks 1-3 wait in \
                MPI_Recv at exchange.c:142 exchange_halo; rank 2 only passes the delay on.";
    assert!(text.contains(said), "{text}");
    // Nobody else waits for rank 2: then it passes the delay back to rank 0.
    let mut two = report.clone();
    for found in &mut two.bottlenecks {
        found.ranks.retain(|share| matches!(share.rank, 0 | 2));
    }
    let text = words(&two);
    assert!(text.contains("exchange_halo."), "{text}");
    assert!(!text.contains("passes the delay on"), "{text}");
    let roots = report.root_causes.as_mut().unwrap();
    roots[0].severity_s = report.locations.iter().map(|l| l.wait_s).sum();
    roots[0].rank_set = "0,2".to_owned();
    let text = words(&report);
    let said = "Cause: ranks 0, 2 compute 3.0x as long as the others before MPI_Send";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains("passes the delay on"), "{text}");
    let roots = report.root_causes.as_mut().unwrap();
    roots[0].victims[0].rank_set = "3".to_owned();
    roots[0].activity = "io".to_owned();
    roots[0].because =
        "was in MPI_Recv 45.1 % longer than those that waited, in the mean".to_owned();
    let text = words(&report);
    let said = "ranks 0, 2 take 45.1 % longer in MPI_Recv at exchange.c:142 exchange_halo than the \
                others. Rank 3 waits in MPI_Recv";
    assert!(text.contains(said), "{text}");
}

#[test]
fn the_headline_names_what_gains_more() {
    let mut report = example();
    let roots = report.root_causes.as_mut().unwrap();
    let mut other = roots[0].clone();
    other.id = "rc2".to_owned();
    other.rank_set = "0,2".to_owned();
    roots.insert(1, other);
    let mut said = |gains: [Option<f64>; 2]| {
        let roots = report.root_causes.as_mut().unwrap();
        for (root, gain) in roots.iter_mut().zip(gains) {
            root.gain_percent = gain;
        }
        let text = words(&report);
        let begin = text.find("Most to gain")?;
        let end = text.find("Efficiency").unwrap();
        Some(text[begin..end].trim_end().to_owned())
    };
    let first = said([Some(1.2), Some(3.4)]).unwrap();
    assert!(
        first.starts_with("Most to gain (3.4 %): ranks 0, 2 compute"),
        "{first}"
    );
    assert!(
        first.contains(" Main cause (30.9 %): rank 0 computes"),
        "{first}"
    );
    assert!(first.contains(" Mending that gains 1.2 %."), "{first}");
    let first = said([Some(-0.1), Some(3.4)]).unwrap();
    assert!(first.contains(" Mending that gains nothing."), "{first}");
    // About as much, little, or not known.
    assert_eq!(said([Some(3.0), Some(3.4)]), None);
    assert_eq!(said([Some(0.1), Some(0.9)]), None);
    assert_eq!(said([None, Some(3.4)]), None);
    assert_eq!(said([Some(3.4), None]), None);
}

/// What does not make the run shorter is not called the thing to mend, and nothing is promised of it.
#[test]
fn what_gains_nothing_is_said_to() {
    let mut report = example();
    let mut said = |gain: f64, after: Option<GainAfter>| {
        let root = &mut report.root_causes.as_mut().unwrap()[0];
        (root.gain_s, root.gain_percent) = (Some(gain), Some(gain));
        root.gain_after = after;
        words(&report)
    };
    let text = said(5.0, None);
    assert!(text.contains(" Try: "), "{text}");
    assert!(!text.contains("Mending that alone"), "{text}");
    let text = said(0.0, None);
    assert!(
        text.contains(" Mending that alone gains nothing. "),
        "{text}"
    );
    assert!(text.contains(" would not be shorter "), "{text}");
    let after = GainAfter {
        mended: ["rc2", "rc3", "rc4"].map(str::to_owned).to_vec(),
        gain_s: 0.02,
        gain_percent: 4.0,
    };
    let text = said(0.0, Some(after));
    let once = "; once rc2, rc3 and rc4 are mended, by 20.0 ms (4.0 %)";
    for before in ["Mending that alone gains nothing", "would not be shorter"] {
        assert!(text.contains(&format!("{before}{once}")), "{text}");
    }
    assert!(text.contains(" Then try: "), "{text}");
}

#[test]
fn all_waiting_is_told_by_what_started_it() {
    let mut report = example();
    assert!(!words(&report).contains("Of all waiting"));
    report.waiting_by_activity_s = [
        ("call", 0.5),
        ("computation", 6.0),
        ("io", 1e-6),
        ("latency", 0.5),
        ("preempted", 2.0),
        ("untraced", 1.0),
    ]
    .map(|(activity, time)| (activity.to_owned(), time))
    .into();
    let said = "Of all waiting, 60.0 % starts with computation, 20.0 % with ranks without a processor, 10.0 % \
                with nobody known, 5.0 % with calls that take longer, 5.0 % with latency rc1";
    let text = words(&report);
    assert!(text.contains(said), "{text}");
}

#[test]
fn the_headline_names_the_function_that_samples_tell() {
    let mut report = example();
    let place = SourceLocation {
        file: "src/step.c".to_owned(),
        line: 52,
        function: "relax".to_owned(),
        ..SourceLocation::default()
    };
    let mut function = RootFunction {
        location: place,
        more_s: 0.0024,
        share: 0.96,
        callers: Vec::new(),
    };
    let said = "rank 0 computes 3.0x as long as the others, mostly at step.c:52 relax, before \
                MPI_Send at exchange.c:137 exchange_halo.";
    let roots = report.root_causes.as_mut().unwrap();
    roots[0].functions = vec![function.clone()];
    assert!(words(&report).contains(said));
    // One of several.
    function.share = 0.4;
    let roots = report.root_causes.as_mut().unwrap();
    roots[0].functions = vec![function; 2];
    assert!(!words(&report).contains("mostly"));
}

#[test]
fn where_ranks_share_cores_the_headline_names_what_the_program_does() {
    let mut report = example();
    let mut call = report.root_causes.as_ref().unwrap()[0].clone();
    (call.id, call.rank_set) = ("rc0".to_owned(), "3".to_owned());
    (call.activity, call.until) = ("call".to_owned(), None);
    call.because = "was in MPI_Recv 3.8x as long as those that waited, in the mean".to_owned();
    call.percent += 1.0;
    report.root_causes.as_mut().unwrap().insert(0, call);
    let text = words(&report);
    assert!(
        text.contains("cause (31.9 %): rank 3 takes 3.8x as long"),
        "{text}"
    );
    report.run.crowd = Some(laggard_report::Crowd {
        ranks: 4,
        threads: 4,
        cores: 2,
        hosts: 1,
    });
    let text = words(&report);
    let own = "cause (30.9 %): rank 0 computes 3.0x as long as the others before MPI_Send";
    let other = "31.9 %: rank 3 takes 3.8x as long in MPI_Recv at exchange.c:142 exchange_halo as the \
                 others, probably waiting for a core.";
    assert!(text.contains(own) && text.contains(other), "{text}");
    // What is small beside that is not worth the place.
    report.root_causes.as_mut().unwrap()[1].severity_s /= 10.0;
    assert!(!words(&report).contains(own), "{text}");
}

#[test]
fn what_computation_was_beside_work_is_told_if_it_is_much() {
    let mut report = without_roots();
    assert!(!words(&report).contains("computation (of it"));
    let mut sums = report.sums();
    sums.off_work.preempted_s = 0.5 * sums.computation_s;
    sums.off_work.kernel_s = 0.01 * sums.computation_s;
    report.location_sums = Some(sums);
    let text = words(&report);
    assert!(
        text.contains("computation (of it 50.0 % without a processor), "),
        "{text}"
    );
}

#[test]
fn ratios_are_told_where_they_say_something() {
    let mut report = without_roots();
    let text = words(&report);
    assert!(
        text.contains(
            "a call takes 90.0 µs to 72.0 ms, 4.47 ms on average, 49.7 times the baseline"
        ),
        "{text}"
    );
    let found = &mut report.bottlenecks[0];
    found.ratio = Some(20_044.0);
    found.quartiles_s = Some([0.001, 0.002, 0.003]);
    let text = words(&report);
    let said = "4.47 ms on average, the baseline is 90.0 µs; the median loss is 2.00 ms";
    assert!(text.contains(said) && !text.contains("20044"), "{text}");
    let found = &mut report.bottlenecks[0];
    (found.calls, found.instances) = (1, 1);
    let text = words(&report);
    assert!(
        text.contains("in 1 of 1 call;") || text.contains("in 1 of 1 call "),
        "{text}"
    );
}

#[test]
fn the_headline_is_about_waiting_for_somebody() {
    let mut report = without_roots();
    report.bottlenecks.swap(0, 2);
    let text = words(&report);
    assert!(
        text.contains("is waiting. The largest part of it is in MPI_Allreduce"),
        "{text}"
    );
}

/// Much waiting for those without a processor is told in one line, whether ranks share cores or others have them.
#[test]
fn waiting_for_processors_is_told_once() {
    let mut report = example();
    let told = |report: &Report| {
        words(report)
            .matches("the waiting starts with a rank")
            .count()
    };
    assert_eq!(told(&report), 0);
    // Of root causes that are not listed, too.
    let mut started = |preempted: f64| {
        report.waiting_by_activity_s = [("computation", 1.0), ("preempted", preempted)]
            .map(|(activity, time)| (activity.to_owned(), time))
            .into();
        report.clone()
    };
    let (much, little) = (started(1.0), started(0.01));
    report = much;
    assert_eq!(told(&report), 1);
    assert!(words(&report).contains("rank whose processor others have"));
    report.run.crowd = Some(laggard_report::Crowd {
        ranks: 4,
        threads: 4,
        cores: 2,
        hosts: 1,
    });
    assert_eq!(told(&report), 1);
    assert!(words(&report).contains("rank that has none; gains suppose a core for each"));
    report.waiting_by_activity_s = little.waiting_by_activity_s;
    assert_eq!(told(&report), 0);
    assert!(words(&report).contains("ranks wait for these, too"));
}

#[test]
fn the_largest_consumer_is_in_the_headline() {
    let mut report = without_roots();
    let largest = report.bottlenecks[0].clone();
    let mut nobodys = largest.clone();
    nobodys.name = "N x N completion".to_owned();
    nobodys.pattern = "nxn_completion".to_owned();
    nobodys.causes.clear();
    nobodys.severity_s *= 2.0;
    assert!(!words(&report).contains("nobody was late"));
    report.bottlenecks.insert(0, nobodys);
    let text = words(&report);
    assert!(
        text.contains("while nobody was late (N x N completion)."),
        "{text}"
    );
    assert!(!text.contains("without any waiting"), "{text}");
    // What others did is not known of all patterns.
    report.bottlenecks[0].pattern = "without_processor".to_owned();
    let text = words(&report);
    assert!(
        text.contains("while nobody is known to have been late"),
        "{text}"
    );
    // The cost of calls is not a finding.
    let wall = report.sums().wall_s;
    let mut sums = report.sums();
    sums.in_calls = Some(laggard_report::InCalls {
        total_s: wall,
        cost_s: wall,
        ..Default::default()
    });
    report.location_sums = Some(sums);
    report.operations[0].cost_s = Some(0.8 * wall);
    let text = words(&report);
    let cost = format!(
        "100 % of all time is what calls cost without any waiting, most of it {}",
        report.operations[0].operation
    );
    assert!(text.contains(&format!("{cost}.")), "{text}");
    // Where ranks share cores, the shortest call may have waited for one.
    report.run.crowd = Some(laggard_report::Crowd {
        ranks: 4,
        threads: 4,
        cores: 2,
        hosts: 1,
    });
    let text = words(&report);
    let shared = "; 4 ranks share 2 cores on one host, so part of it may be waiting for a core.";
    assert!(text.contains(&format!("{cost}{shared}")), "{text}");
    assert!(text.contains("gains suppose a core for each"), "{text}");
}

#[test]
fn waiting_between_hosts_is_said_where_it_is_known() {
    let mut report = without_roots();
    assert!(!words(&report).contains("of the waiting was for ranks"));
    report.location_sums = Some(laggard_report::LocationSums {
        inter_node_wait_s: Some(7.9),
        ..report.sums()
    });
    let text = words(&report);
    let part = "40.0 % of the waiting was for ranks on other hosts";
    assert!(text.contains(part), "{text}");
    let part = "66.5 % of it for ranks on other hosts";
    assert!(text.contains(part), "{text}");
}
