//! A comparison as text for people.

use laggard_report::layout::{
    Column, GLUE, Row, Style, Tone, base_name, columns, count, duration, labelled, paragraph,
    percent, place, plural, table, three_digits,
};

use super::{BottleneckRow, Comparison, RootCauseRow, State, Total};
use crate::layout::TextOptions;
use crate::matching::Matched;
use crate::noise::{Change, Evidence, Sample, Verdict};

/// Least share of all time, percent, that a listed item must have in some revision.
const NEGLIGIBLE_PERCENT: f64 = 0.05;
/// Revisions beside the first in one table.
const BESIDE: usize = 3;

/// The comparison as text, ending in a newline.
pub fn render(comparison: &Comparison, options: &TextOptions) -> String {
    let text = Text {
        comparison,
        screen: columns(options.width),
        style: Style {
            color: options.color,
        },
        top: options.top,
    };
    let mut out = String::new();
    text.head(&mut out);
    let later: Vec<usize> = (1..comparison.revisions.len()).collect();
    for chosen in later.chunks(BESIDE) {
        text.totals(&mut out, chosen);
        text.root_causes(&mut out, chosen);
        text.bottlenecks(&mut out, chosen);
        text.regions(&mut out, chosen);
        text.operations(&mut out, chosen);
    }
    text.notes(&mut out);
    out
}

struct Text<'a> {
    comparison: &'a Comparison,
    screen: usize,
    style: Style,
    top: usize,
}

impl Text<'_> {
    fn head(&self, out: &mut String) {
        let revisions = &self.comparison.revisions;
        let runs: Vec<String> = revisions
            .iter()
            .map(|r| format!("{} ({})", r.label, plural(r.reports.len() as u64, "run")))
            .collect();
        let first = &revisions[0];
        let head = format!(
            "{} on {}: {}",
            base_name(&first.program),
            plural(first.ranks.into(), "rank"),
            runs.join(", ")
        );
        paragraph(out, &head, self.screen, self.style, Tone::Strong);
        let Some(wall) = self.comparison.totals.first() else {
            return;
        };
        for at in 1..revisions.len() {
            let (text, tone) = headline(self.comparison, wall, at);
            paragraph(out, &text, self.screen, self.style, tone);
            if let Some(text) = self.most_changed(at) {
                paragraph(out, &text, self.screen, self.style, Tone::Plain);
            }
        }
        if let Some(text) = &self.comparison.crowded {
            paragraph(
                out,
                &format!("{text}."),
                self.screen,
                self.style,
                Tone::Caution,
            );
        }
        out.push('\n');
        labelled(
            out,
            "Noise",
            &self.comparison.noise.text,
            self.screen,
            self.style,
        );
    }

    /// Columns of the chosen revisions: the first, and each other one with its change.
    fn columns(&self, chosen: &[usize]) -> Vec<Column<'_>> {
        let number = |title| Column {
            title,
            right: true,
            least: None,
        };
        let labels = &self.comparison.revisions;
        let mut columns = vec![number(&*labels[0].label)];
        for &at in chosen {
            columns.push(number(&*labels[at].label));
            columns.push(number("Change"));
        }
        columns
    }

    fn totals(&self, out: &mut String, chosen: &[usize]) {
        out.push('\n');
        let mut columns = vec![Column {
            title: "All ranks together",
            right: false,
            least: Some(12),
        }];
        columns.extend(self.columns(chosen));
        let row = |name: &str, values: &[Sample], changes: &[Change], number: Number| {
            let mut cells = vec![(name.to_owned(), Tone::Plain)];
            cells.push((shown(&values[0], number), Tone::Plain));
            for &at in chosen {
                cells.push((shown(&values[at], number), Tone::Plain));
                cells.push(changed(&changes[at - 1], State::Both));
            }
            Row { cells, note: None }
        };
        let rows = self.comparison.totals.iter().map(|total| {
            let number = match total.id.ends_with("_s") {
                true => Number::Time,
                false => Number::Share,
            };
            row(total.name, &total.values, &total.changes, number)
        });
        let counters = self.comparison.counters.iter();
        let counters = counters.flat_map(|of| {
            let rate = (!of.per_second.is_empty()).then(|| {
                let name = format!("{} per s", of.name);
                row(&name, &of.per_second, &of.per_second_changes, Number::Count)
            });
            let own = row(&of.name, &of.values, &of.changes, Number::Count);
            std::iter::once(own).chain(rate)
        });
        let rows: Vec<Row> = rows.chain(counters).collect();
        table(out, &columns, &rows, self.screen, self.style);
    }

    /// Time below which an item is not listed.
    fn negligible(&self) -> f64 {
        let id = |id: &str| self.comparison.totals.iter().find(move |t| t.id == id);
        let parts = [
            "computation_s",
            "communication_s",
            "synchronization_s",
            "io_s",
        ];
        let all = parts.iter().filter_map(|part| id(part));
        let all: f64 = all.map(|total| total.values[0].median).sum();
        all * NEGLIGIBLE_PERCENT / 100.0
    }

    /// Title, table, and the number of rows left out.
    fn listing(
        &self,
        out: &mut String,
        title: &str,
        words: &[Column<'_>],
        chosen: &[usize],
        rows: Vec<RowOf<'_>>,
    ) {
        let least = self.negligible();
        let is_listed = |row: &RowOf<'_>| {
            let all = [0].iter().chain(chosen);
            all.map(|&at| row.values[at].median).fold(0.0, f64::max) >= least.max(1e-9)
        };
        let listed: Vec<RowOf<'_>> = rows.into_iter().filter(is_listed).collect();
        if listed.is_empty() {
            return;
        }
        out.push('\n');
        paragraph(out, title, self.screen, self.style, Tone::Strong);
        let mut columns = self.columns(chosen);
        columns.extend_from_slice(words);
        let more = listed.len().saturating_sub(self.top);
        let all = listed.len();
        let shown_rows = listed.into_iter().take(self.top).map(|row| {
            let mut cells = vec![(shown_time(row.values, 0), Tone::Plain)];
            for &at in chosen {
                cells.push((shown_time(row.values, at), Tone::Plain));
                cells.push(changed(&row.changes[at - 1], row.states[at - 1]));
            }
            cells.extend(row.words.into_iter().map(|word| (word, Tone::Plain)));
            let note = Some(row.note).filter(|note| !note.is_empty());
            Row { cells, note }
        });
        let shown_rows: Vec<Row> = shown_rows.collect();
        table(out, &columns, &shown_rows, self.screen, self.style);
        if more > 0 {
            let text = format!("and {more} more with --top {all}");
            paragraph(out, &text, self.screen, self.style, Tone::Faint);
        }
    }

    /// The root cause with the largest change, if it is more than noise.
    fn most_changed(&self, at: usize) -> Option<String> {
        let by = |row: &RootCauseRow| row.severity_s[at].median - row.severity_s[0].median;
        let rows = self.comparison.root_causes.iter().flatten();
        let rows = rows.filter(|row| row.changes[at - 1].is_real());
        let most = rows.max_by(|a, b| by(a).abs().total_cmp(&by(b).abs()))?;
        let what = most.places[at].as_ref().or(most.places[0].as_ref())?;
        let (before, after) = (&most.severity_s[0], &most.severity_s[at]);
        Some(format!(
            "Waiting because {}: {} became {}.",
            what.text,
            duration(before.median),
            duration(after.median)
        ))
    }

    fn root_causes(&self, out: &mut String, chosen: &[usize]) {
        let words = [word("Root cause", Some(24))];
        let rows = self.comparison.root_causes.iter().flatten().map(|row| {
            let found = row.places.iter().flatten().next_back();
            let text = found.map_or("", |found| &found.text);
            // Other ranks, or another line, in revisions before.
            let all = [0].iter().chain(chosen);
            let others = all.filter_map(|&at| {
                let other = row.places[at].as_ref()?;
                let label = &self.comparison.revisions[at].label;
                (other.text != text).then(|| format!("{label}: {}", other.text))
            });
            RowOf {
                values: &row.severity_s,
                changes: &row.changes,
                states: &row.states,
                words: vec![text.to_owned()],
                note: others.collect::<Vec<_>>().join("; "),
            }
        });
        let title = "Root causes (waiting that they start)";
        self.listing(out, title, &words, chosen, rows.collect());
    }

    fn bottlenecks(&self, out: &mut String, chosen: &[usize]) {
        let rows = &self.comparison.bottlenecks;
        if rows.is_empty() {
            out.push('\n');
            paragraph(
                out,
                "No bottleneck in any of them",
                self.screen,
                self.style,
                Tone::Strong,
            );
            return;
        }
        let words = [word("What", Some(24))];
        let rows = rows.iter().map(|row| {
            let place_of = row.places.iter().flatten().next_back();
            RowOf {
                values: &row.lost_s,
                changes: &row.changes,
                states: &row.states,
                words: vec![format!(
                    "{} in {} at {}",
                    row.name,
                    row.operation,
                    place_of.map_or_else(String::new, |found| place(&found.location))
                )],
                note: self.note_of(row, chosen),
            }
        });
        self.listing(
            out,
            "Bottlenecks (time lost)",
            &words,
            chosen,
            rows.collect(),
        );
    }

    /// Where it was before, and the rank that it waited for.
    fn note_of(&self, row: &BottleneckRow, chosen: &[usize]) -> String {
        let mut notes = Vec::new();
        for &at in chosen {
            let before = row.places[..at].iter().flatten().next_back();
            let (Some(before), Some(Some(now))) = (before, row.places.get(at)) else {
                continue;
            };
            let how = match row.matched[at - 1] {
                Some(Matched::Moved) => "moved",
                Some(Matched::Renamed) => "in a function of another name",
                Some(Matched::Line) | None => continue,
            };
            notes.push(format!(
                "{}: {how}, from {} to {}",
                self.comparison.revisions[at].label,
                place(&before.location),
                place(&now.location)
            ));
        }
        // The late rank at its current place, or at its last one.
        let last = row.places.iter().flatten().next_back();
        if let Some(cause) = last.and_then(|found| found.cause.as_ref()) {
            let was = match row.places.last() {
                Some(None) => "was for",
                _ => "for",
            };
            notes.push(format!("{was} {cause}"));
        }
        notes.join("; ")
    }

    fn regions(&self, out: &mut String, chosen: &[usize]) {
        let words = [word("Region", Some(12)), word("Outside of calls", Some(20))];
        let rows = self.comparison.regions.iter().map(|row| {
            let name = row.names.iter().flatten().next_back();
            let mut own = vec![duration(row.exclusive_s[0].median)];
            for &at in chosen {
                let (change, _) = changed(&row.exclusive_changes[at - 1], row.states[at - 1]);
                own.push(format!(
                    "{} ({change})",
                    duration(row.exclusive_s[at].median)
                ));
            }
            let renamed = chosen.iter().filter_map(|&at| {
                let before = row.names[..at].iter().flatten().next_back()?;
                let is_renamed = row.matched[at - 1] == Some(Matched::Renamed);
                let label = &self.comparison.revisions[at].label;
                is_renamed.then(|| format!("{label}: was called {before}"))
            });
            RowOf {
                values: &row.inclusive_s,
                changes: &row.changes,
                states: &row.states,
                words: vec![name.cloned().unwrap_or_default(), own.join(", ")],
                note: renamed.collect::<Vec<_>>().join("; "),
            }
        });
        let title = "Regions (time from begin to end)";
        self.listing(out, title, &words, chosen, rows.collect());
    }

    fn operations(&self, out: &mut String, chosen: &[usize]) {
        let words = [word("Operation", None), word("Calls", None)];
        let rows = self.comparison.operations.iter().map(|row| {
            let calls = |at: usize| count(row.calls[at].median.round() as u64);
            let all = [0].iter().chain(chosen).map(|&at| calls(at));
            let mut calls: Vec<String> = all.collect();
            if calls.iter().all(|number| *number == calls[0]) {
                calls.truncate(1);
            }
            RowOf {
                values: &row.total_s,
                changes: &row.changes,
                states: &row.states,
                words: vec![row.operation.clone(), calls.join(" → ")],
                note: String::new(),
            }
        });
        let title = "Operations (time inside)";
        self.listing(out, title, &words, chosen, rows.collect());
    }

    fn notes(&self, out: &mut String) {
        let is_said = |note: &&String| self.comparison.crowded.as_ref() == Some(*note);
        let notes = self.comparison.notes.iter();
        let notes: Vec<_> = notes.filter(|note| !is_said(note)).collect();
        if notes.is_empty() {
            return;
        }
        out.push('\n');
        for note in notes {
            labelled(out, "Note", note, self.screen, self.style);
        }
    }
}

/// The cells of a row.
struct RowOf<'a> {
    values: &'a [Sample],
    changes: &'a [Change],
    states: &'a [State],
    words: Vec<String>,
    note: String,
}

fn word(title: &str, least: Option<usize>) -> Column<'_> {
    Column {
        title,
        right: false,
        least,
    }
}

/// The change of the wall time, in one line: the number of the table, in words.
pub(super) fn headline(comparison: &Comparison, wall: &Total, at: usize) -> (String, Tone) {
    let first = &comparison.revisions[0].label;
    let label = &comparison.revisions[at].label;
    let (before, after) = (&wall.values[0], &wall.values[at]);
    let change = &wall.changes[at - 1];
    let by = percent(change.percent.unwrap_or(0.0).abs());
    let apart = match comparison.is_apart {
        true => ", start-up and shut-down apart",
        false => "",
    };
    let times = format!(
        "{apart}: {} became {}",
        duration(before.median),
        duration(after.median)
    );
    let sure = match (change.evidence, change.p) {
        (Evidence::Test, Some(p)) => format!(" (p = {})", probability(p)),
        (Evidence::Spread, _) => " (more than repeats differ)".to_owned(),
        _ => String::new(),
    };
    match change.verdict {
        Verdict::Better => (
            format!("{label} takes {by} less time than {first}{times}{sure}."),
            Tone::Strong,
        ),
        Verdict::Worse => (
            format!("{label} takes {by} more time than {first}{times}{sure}."),
            Tone::Alarm,
        ),
        Verdict::Same => {
            let why = match (change.evidence, change.p) {
                (Evidence::Test, Some(p)) => format!("p = {}", probability(p)),
                (Evidence::Spread, _) => "repeats differ as much".to_owned(),
                _ => "too little to tell without repeats".to_owned(),
            };
            (
                format!("{label} is as fast as {first}{times} ({why})."),
                Tone::Plain,
            )
        }
    }
}

fn probability(p: f64) -> String {
    match p {
        p if p < 0.0005 => "0.000".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// A time of a revision; a dash if there is none.
pub(super) fn shown_time(values: &[Sample], at: usize) -> String {
    match values[at].max {
        most if most <= 0.0 => "–".to_owned(),
        _ => shown(&values[at], Number::Time),
    }
}

/// What a number is.
#[derive(Clone, Copy)]
enum Number {
    /// s
    Time,
    /// 0 to 1.
    Share,
    Count,
}

/// The median, and the range of the repeats.
fn shown(sample: &Sample, number: Number) -> String {
    let median = match number {
        Number::Time => duration(sample.median),
        Number::Share => percent(sample.median * 100.0),
        Number::Count => count(sample.median.round() as u64),
    };
    let apart = (sample.max - sample.median).max(sample.median - sample.min);
    match sample.runs.len() {
        0 | 1 => median,
        _ if sample.median <= 0.0 => median,
        _ => {
            let share = apart / sample.median * 100.0;
            format!("{median}{GLUE}±{GLUE}{share:.0}{GLUE}%")
        }
    }
}

/// Its change: `-12.3 %`, `gone`, `new`, or `~` if none is known.
pub(super) fn changed(change: &Change, state: State) -> (String, Tone) {
    let tone = match change.verdict {
        Verdict::Better => Tone::Strong,
        Verdict::Worse => Tone::Alarm,
        Verdict::Same => Tone::Faint,
    };
    let text = match (state, change.is_real(), change.percent) {
        (State::Neither, ..) => "–".to_owned(),
        (_, false, _) => "~".to_owned(),
        (State::Gone, ..) => "gone".to_owned(),
        (State::New, ..) | (_, _, None) => "new".to_owned(),
        (State::Both, _, Some(percent)) => {
            let sign = if percent > 0.0 { "+" } else { "" };
            format!("{sign}{}{GLUE}%", three_digits(percent))
        }
    };
    (text, tone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Options, compare};
    use crate::noise::{Aim, Limits};
    use crate::testing::run;

    #[test]
    fn changes_are_signed() {
        let text = |before: f64, after: f64, state| {
            let limits = Limits {
                percent: 5.0,
                least: 0.0,
            };
            let sample = |value| Sample::new(vec![value]);
            let change = Change::new(&sample(before), &sample(after), Aim::Less, limits);
            changed(&change, state).0.replace(GLUE, " ")
        };
        assert_eq!(text(10.0, 5.0, State::Both), "-50.0 %");
        assert_eq!(text(10.0, 12.5, State::Both), "+25.0 %");
        assert_eq!(text(10.0, 10.1, State::Both), "~");
        assert_eq!(text(10.0, 0.0, State::Gone), "gone");
        assert_eq!(text(0.0, 1.0, State::New), "new");
    }

    #[test]
    fn headline_and_table_say_the_same_number() {
        let compared = |before: f64, after: f64| {
            let runs = [run("a", before), run("b", after)].map(|run| vec![run]);
            let found = compare(runs.into(), &Options::default()).unwrap();
            render(&found, &TextOptions::default()).replace(GLUE, " ")
        };
        for (before, after, said, row) in [
            (
                8.0,
                7.0,
                "b takes 12.5 % less time than a: 8.00 s became 7.00 s.",
                "-12.5 %",
            ),
            (
                8.0,
                9.0,
                "b takes 12.5 % more time than a: 8.00 s became 9.00 s.",
                "+12.5 %",
            ),
        ] {
            let text = compared(before, after);
            let wall = text
                .lines()
                .find(|line| line.starts_with("Wall time"))
                .unwrap();
            assert!(text.contains(said) && wall.ends_with(row), "{text}");
        }
    }

    #[test]
    fn start_and_end_are_apart_and_crowds_are_said() {
        let with = |source: &str, wall: f64, startup_s: f64| {
            let mut run = run(source, wall);
            run.report.run.wall_time_s += startup_s;
            run.report.phases_of_run = Some(laggard_report::PhasesOfRun {
                startup_s,
                measured_s: wall,
                ..Default::default()
            });
            let sums = run.report.location_sums.as_mut().unwrap();
            sums.startup_s = Some(4.0 * startup_s);
            run.report.run.crowd = Some(laggard_report::Crowd {
                ranks: 4,
                threads: 4,
                cores: 2,
                hosts: 1,
            });
            vec![run]
        };
        // The start takes longer, what is measured takes shorter.
        let runs = vec![with("a", 8.0, 1.0), with("b", 6.0, 9.0)];
        let found = compare(runs, &Options::default()).unwrap();
        let text = render(&found, &TextOptions::default()).replace(GLUE, " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "b takes 25.0 % less time than a, start-up and shut-down apart: 8.00 s became \
                    6.00 s. 4 ranks share 2 cores in a, b: part of the time is waiting for a core";
        assert!(text.contains(said), "{text}");
        assert_eq!(text.matches("share 2 cores").count(), 1, "{text}");
        assert!(found.notes[0].starts_with("4 ranks share 2 cores in a, b"));
    }

    #[test]
    fn counters_that_all_runs_have_are_compared() {
        let with = |source: &str, counted_s: Option<f64>, counters: &[(&str, u64)]| {
            let mut run = run(source, 8.0);
            let sums = run.report.location_sums.as_mut().unwrap();
            sums.counted_s = counted_s;
            let counters = counters.iter();
            sums.counters = counters
                .map(|(name, of)| ((*name).to_owned(), *of))
                .collect();
            vec![run]
        };
        let runs = vec![
            with(
                "a",
                Some(4.0),
                &[("instructions", 2_000_000), ("page-faults", 7)],
            ),
            with("b", Some(2.0), &[("instructions", 3_000_000)]),
        ];
        let found = compare(runs, &Options::default()).unwrap();
        let names: Vec<_> = found.counters.iter().map(|of| &*of.name).collect();
        assert_eq!(names, ["instructions"]);
        let text = render(&found, &TextOptions::default()).replace(GLUE, " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("instructions 2 000 000 3 000 000 +50.0 %"),
            "{text}"
        );
        // Half of the time was counted, in which more was done.
        assert!(
            text.contains("instructions per s 500 000 1 500 000 +200 %"),
            "{text}"
        );
        assert_eq!(
            found.counters[0].per_second_changes[0].verdict,
            Verdict::Better
        );
        let without = vec![
            with("a", Some(4.0), &[("instructions", 2)]),
            with("b", None, &[("instructions", 3)]),
        ];
        let without = compare(without, &Options::default()).unwrap();
        assert!(without.counters[0].per_second.is_empty());
        let metrics = crate::compare::to_openmetrics(&found, 5.0, true);
        let rate = "laggard_compare_counted_per_second{program=\"app\",revision=\"b\",counter=\"instructions\"} 1500000.0";
        assert!(metrics.contains(rate), "{metrics}");
        let told = "laggard_compare_counted{program=\"app\",revision=\"b\",counter=\"instructions\"} 3000000.0";
        assert!(metrics.contains(told), "{metrics}");
    }

    #[test]
    fn repeats_are_shown_with_their_spread() {
        let text =
            |runs: &[f64]| shown(&Sample::new(runs.to_vec()), Number::Time).replace(GLUE, " ");
        assert_eq!(text(&[2.0]), "2.00 s");
        assert_eq!(text(&[2.0, 2.2, 1.9]), "2.00 s ± 10 %");
    }
}
