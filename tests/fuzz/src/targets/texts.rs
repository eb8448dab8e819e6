//! Files in JSON or TOML.

use laggard_baselines::{Baseline, Span, Table};
use laggard_experiments::compare::{self, TextOptions};
use laggard_experiments::{Run, scale, to_json};
use laggard_html::{Page, Sources};
use laggard_patterns::PatternId;
use laggard_patterns::rules::{Fact, Facts, Kind, RuleBase, read};
use laggard_report::{RenderOptions, Report, render_text};
use laggard_trace::operations::OperationMap;

/// A baseline's table: read, queried, written again, and merged with itself.
pub fn baseline(bytes: &[u8]) {
    let Ok(table) = Table::from_json(bytes, "baseline.json".as_ref()) else {
        return;
    };
    let names = table.entries.iter().map(|entry| entry.operation.clone());
    for name in names.chain(["MPI_Send".to_owned()]) {
        for size in [0, 1, 2, 3, 1000, u32::MAX] {
            for bytes in [0, 1, 8, 100_000, u64::MAX] {
                for span in [None, Some(Span::IntraNode), Some(Span::InterNode)] {
                    let time = table.lookup_within(&name, bytes, size, span);
                    assert!(
                        time.is_none_or(|time| time.is_finite() && time > 0.0),
                        "{time:?}"
                    );
                }
            }
        }
    }
    let text = table.to_json();
    let again = Table::from_json(text.as_bytes(), "baseline.json".as_ref());
    // As above.
    if let Ok(again) = again {
        assert!(again == table, "written otherwise than read");
    }
    // The time of a fit grows with the points.
    let points = table.entries.iter().map(|entry| entry.points.len());
    if points.max().unwrap_or(0) <= 40 {
        let both = [table.clone(), table].map(|table| ("baseline.json".into(), table));
        let merged = Table::merge(both.into()).map(|table| table.to_json());
        if let Ok(merged) = merged {
            let read = Table::from_json(merged.as_bytes(), "merged.json".as_ref());
            assert!(read.is_ok(), "{read:?}");
        }
    }
}

/// Rules for hints: read, explained, and applied to a finding with all facts known, and one with
/// none. Operation maps are TOML, too.
pub fn rules(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err((line, why)) = OperationMap::parse(text) {
        assert!((1..=text.lines().count()).contains(&line), "{line}: {why}");
        assert!(!why.contains('\n'), "{why}");
    }
    let (rules, complaints) = read(text);
    for complaint in complaints {
        let lines = text.lines().count() + 1;
        assert!((1..=lines).contains(&complaint.line), "{complaint:?}");
        assert!(!complaint.text.contains('\n'), "{complaint:?}");
    }
    let mut known = Facts::default();
    for &fact in Fact::ALL {
        match fact.row().kind {
            Kind::Text => known.text(fact, "MPI_Send"),
            _ => known.number(fact, 0.5),
        }
    }
    let show = |_: Kind, number: f64| number.to_string();
    let rules = RuleBase::built_in().with(rules);
    for rule in rules.iter() {
        assert!(rule.page().starts_with(&rule.id));
    }
    for &pattern in PatternId::ALL {
        for facts in [&known, &Facts::default()] {
            for hint in rules.hints(pattern, facts, &show) {
                assert!(hint.gain.is_none_or(|gain| (0.0..=0.5).contains(&gain)));
            }
        }
    }
}

/// A report: read, shown in some widths and as a page, written again, and compared with others.
pub fn report(bytes: &[u8]) {
    let Ok(report) = Report::from_json(bytes, "report.json".as_ref()) else {
        return;
    };
    for (top, color, width) in [(0, false, 60), (10, true, 100), (usize::MAX, false, 140)] {
        let file = "report.json".to_owned();
        let options = RenderOptions {
            top,
            file,
            color,
            width,
        };
        let _ = render_text(&report, &options);
    }
    let sources = Sources::default();
    let page = laggard_html::render(&Page {
        report: &report,
        sources: &sources,
        pictures: &[],
    });
    assert!(
        page.matches("<script").count() == 1,
        "the report's texts are not escaped"
    );
    assert!(page.len() < 32_000_000, "a page of {} bytes", page.len());
    let _ = (
        report.waiting_percent(),
        report.unknown_waiting(),
        report.is_sound(),
    );
    let json = report.to_json();
    let again = Report::from_json(json.as_bytes(), "report.json".as_ref());
    // Numbers beyond JSON's range become null, which is no number.
    if let Ok(again) = again {
        assert!(again.to_json() == json, "written otherwise the second time");
    }
    beside_others(&report);
}

/// Compares a report with itself, its findings in another order, and as runs of two sizes.
fn beside_others(report: &Report) {
    let run = |source: &str, report: &Report| Run {
        source: source.to_owned(),
        report: report.clone(),
    };
    let mut other = report.clone();
    other.bottlenecks.reverse();
    other.regions.pop();
    let revisions = vec![
        vec![run("a", report), run("b", report)],
        vec![run("c", &other)],
    ];
    if let Ok(comparison) = compare::compare(revisions, &compare::Options::default()) {
        let _ = compare::render(&comparison, &TextOptions::default());
        let _ = (to_json(&comparison), compare::draw(&comparison));
    }
    other.run.ranks = other.run.ranks.saturating_mul(3).saturating_add(1);
    let sizes = vec![vec![run("a", report)], vec![run("c", &other)]];
    if let Ok(scaling) = scale::scale(sizes, &scale::Options::default()) {
        let _ = scale::render(&scaling, &TextOptions::default());
        let _ = (to_json(&scaling), scale::draw(&scaling));
    }
}
