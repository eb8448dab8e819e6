//! A comparison for scripts: a comment for a merge request, test cases, and numbers for a monitoring
//! system.

use std::fmt::Write;

use laggard_ci::junit::{self, Case, Verdict};
use laggard_ci::markdown::{Column, escape, number, table, text};
use laggard_ci::metrics::{self, Family, Unit};
use laggard_report::layout::{GLUE, base_name, plural};

use super::text::{changed, headline, shown_time};
use super::{Comparison, State};

/// Rows of a table.
const ROWS: usize = 15;
const COLUMNS: [Column; 4] = [
    number("Before"),
    number("Now"),
    number("Change"),
    text("What"),
];

/// The comparison as Markdown: the headline of each revision, and what takes longest in it. It
/// begins with a line by which a script finds an older comment.
pub fn to_markdown(comparison: &Comparison) -> String {
    let first = &comparison.revisions[0];
    let mut out = String::from("<!-- laggard compare -->\n");
    let ranks = plural(first.ranks.into(), "rank");
    let title = format!("{} on {ranks}", base_name(&first.program));
    let _ = writeln!(out, "### laggard: {}\n", escape(&title));
    for at in 1..comparison.revisions.len() {
        if let Some(wall) = comparison.totals.first() {
            let (said, _) = headline(comparison, wall, at);
            let _ = writeln!(out, "{}\n", escape(&said));
        }
        let mut rows: Vec<_> = comparison.rows(at).skip(1).collect();
        let most =
            |row: &super::regression::Row<'_>| row.values[0].median.max(row.values[at].median);
        rows.retain(|row| most(row) > 0.0);
        rows.sort_by(|a, b| most(b).total_cmp(&most(a)));
        let cells = rows.iter().take(ROWS).map(|row| {
            let states = [row.values[0].max > 0.0, row.values[at].max > 0.0];
            let state = match states {
                [true, false] => State::Gone,
                [false, true] => State::New,
                _ => State::Both,
            };
            let (change, _) = changed(&row.changes[at - 1], state);
            let [before, now] = [0, at].map(|at| shown_time(row.values, at));
            vec![before, now, change, row.name.clone()]
        });
        table(&mut out, &COLUMNS, &cells.collect::<Vec<_>>());
        if rows.len() > ROWS {
            let _ = writeln!(out, "and {} more\n", rows.len() - ROWS);
        }
    }
    let _ = writeln!(out, "Noise: {}\n", escape(&comparison.noise.text));
    for note in &comparison.notes {
        let _ = writeln!(out, "- {}", escape(note));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The comparison as test cases in JUnit's XML: the whole run, each bottleneck and each region of
/// each later revision. Those that [`Comparison::regressions`] names fail; if there are none, `unknown`
/// says why that may be wrong.
pub fn to_junit(comparison: &Comparison, percent: f64, unknown: Option<&str>) -> String {
    let mut cases = Vec::new();
    for (at, revision) in comparison.revisions.iter().enumerate().skip(1) {
        cases.extend(comparison.rows(at).map(|row| {
            let words = row.in_words(at);
            let verdict = match row.is_slower(at, percent) {
                true => Verdict::Failed(format!("slower: {words}")),
                false => Verdict::Passed,
            };
            Case {
                name: format!("{}: {}", revision.label, row.name).replace(GLUE, " "),
                verdict,
                output: words,
            }
        }));
    }
    let failed = |case: &Case| matches!(case.verdict, Verdict::Failed(_));
    if let Some(why) = unknown.filter(|_| !cases.iter().any(failed))
        && let Some(first) = cases.first_mut()
    {
        first.verdict = Verdict::Unknown(why.to_owned());
    }
    let first = &comparison.revisions[0];
    let suite = format!("{} against {}", base_name(&first.program), first.label);
    junit::render(&suite, &cases)
}

/// The comparison in the text format of OpenMetrics: totals, counters, bottlenecks and regions by revision, and
/// how many times [`Comparison::regressions`] names; this only if it `is_known` that there are no
/// others.
pub fn to_openmetrics(comparison: &Comparison, percent: f64, is_known: bool) -> String {
    let seconds = || Some(Unit::Seconds);
    let mut totals = Family::new(
        "compare_total",
        seconds(),
        "Times of whole runs by revision",
    );
    let mut shares = Family::new(
        "compare_efficiency",
        None,
        "Efficiencies by revision, 0 to 1",
    );
    let mut times = Family::new(
        "compare_time",
        seconds(),
        "Bottlenecks and regions by revision",
    );
    let mut counted = Family::new("compare_counted", None, "What counters counted by revision");
    let mut rates = Family::new(
        "compare_counted_per_second",
        None,
        "The same for each second in which they did",
    );
    let mut slower = Family::new("compare_regressions", None, "Times that became longer");
    // One name in all revisions, so that their numbers meet.
    let last = comparison.revisions.len() - 1;
    let found = comparison.regressions(percent);
    for (at, revision) in comparison.revisions.iter().enumerate() {
        let labels = |kind, text: &str| {
            let revision = ("revision", revision.label.clone());
            vec![revision, (kind, text.replace(GLUE, " "))]
        };
        for total in &comparison.totals {
            let value = total.values[at].median;
            match total.id.strip_suffix("_s") {
                Some(kind) => totals = totals.with(labels("kind", kind), value),
                None => {
                    let kind = total.id.trim_end_matches("_efficiency");
                    shares = shares.with(labels("kind", kind), value);
                }
            }
        }
        for row in &comparison.counters {
            counted = counted.with(labels("counter", &row.name), row.values[at].median);
            if let Some(rate) = row.per_second.get(at) {
                rates = rates.with(labels("counter", &row.name), rate.median);
            }
        }
        for row in comparison.rows(last).skip(1) {
            times = times.with(labels("what", &row.name), row.values[at].median);
        }
        let count = found.iter().filter(|one| one.revision == at).count();
        if at > 0 && (is_known || count > 0) {
            let label = vec![("revision", revision.label.clone())];
            slower = slower.with(label, count as f64);
        }
    }
    let program = &comparison.revisions[0].program;
    metrics::render(program, vec![totals, shares, counted, rates, times, slower])
}
