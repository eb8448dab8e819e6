//! Scaling as text for people.

use laggard_report::layout::{
    Column, Row, Style, Tone, base_name, columns, duration, labelled, paragraph, percent, place,
    plural, table, three_digits,
};

use super::costs::{Cost, Kind, Part};
use super::{Growth, RootGrowth, Scaling, Size};
use crate::layout::TextOptions;

/// The scaling as text, ending in a newline.
pub fn render(scaling: &Scaling, options: &TextOptions) -> String {
    let screen = columns(options.width);
    let style = Style {
        color: options.color,
    };
    let mut out = String::new();
    head(&mut out, scaling, screen, style);
    efficiencies(&mut out, scaling, screen, style);
    parts(&mut out, scaling, screen, style);
    root_causes(&mut out, scaling, options.top, screen, style);
    if let Some(largest) = scaling.sizes.last() {
        costs(&mut out, largest, options.top, screen, style);
        regions(&mut out, scaling, options.top, screen, style);
    }
    let is_said = |note: &&String| scaling.crowded.as_ref() == Some(*note);
    let notes = scaling.notes.iter().filter(|note| !is_said(note));
    let notes: Vec<_> = notes.collect();
    if !notes.is_empty() {
        out.push('\n');
        for note in notes {
            labelled(&mut out, "Note", note, screen, style);
        }
    }
    out
}

fn head(out: &mut String, scaling: &Scaling, screen: usize, style: Style) {
    let (Some(first), Some(last)) = (scaling.sizes.first(), scaling.sizes.last()) else {
        return;
    };
    let head = format!(
        "{}: {} from {} to {}, {} scaling",
        base_name(&scaling.program),
        plural(scaling.sizes.len() as u64, "size"),
        first.ranks,
        plural(last.ranks.into(), "rank"),
        scaling.scaling.name()
    );
    paragraph(out, &head, screen, style, Tone::Strong);
    let text = match scaling.scaling {
        Growth::Strong => format!(
            "On {} times the ranks it is {} times as fast: scaling factor {:.2} (1 is ideal).",
            three_digits(last.ideal_speedup),
            three_digits(last.speedup),
            last.factor
        ),
        Growth::Weak => format!(
            "On {} times the ranks, with as many times the work, it takes {} times as long: \
             scaling factor {:.2} (1 is ideal).",
            three_digits(last.ideal_speedup),
            three_digits(last.ideal_speedup / last.speedup),
            last.factor
        ),
    };
    let tone = match last.factor {
        bad if bad < 0.5 => Tone::Alarm,
        poor if poor < 0.8 => Tone::Caution,
        _ => Tone::Plain,
    };
    paragraph(out, &text, screen, style, tone);
    let roots = scaling.root_causes.iter().flatten();
    if let Some(most) = roots.take(1).find(|root| root.grows() && is_much(root)) {
        let shares = [most.percent.first(), most.percent.last()];
        let [before, after] = shares.map(|share| percent(share.copied().unwrap_or(0.0)));
        let text = format!(
            "The root cause that grows most: {}; waiting for it is {before} of the time on {}, \
             {after} on {}.",
            most.text(),
            plural(first.ranks.into(), "rank"),
            plural(last.ranks.into(), "rank")
        );
        paragraph(out, &text, screen, style, Tone::Plain);
    }
    if let Some(text) = &scaling.crowded {
        paragraph(out, &format!("{text}."), screen, style, Tone::Caution);
    }
    out.push('\n');
    let other = match scaling.scaling {
        Growth::Strong => "the problem grows with the ranks: --scaling weak",
        Growth::Weak => "the problem stays the same: --scaling strong",
    };
    let text = match scaling.assumed {
        true => format!("assumed, since {}; if {other}", scaling.because),
        false => format!("as told; {}", scaling.because),
    };
    labelled(out, "Scaling", &text, screen, style);
    if scaling
        .sizes
        .iter()
        .any(|size| size.startup_shutdown_s > 0.0)
    {
        let ends = scaling.sizes.iter().map(|size| {
            let time = duration(size.startup_shutdown_s);
            format!("{time} on {}", plural(size.ranks.into(), "rank"))
        });
        let text = format!(
            "Start-up and shut-down of all ranks together: {} (not counted here)",
            ends.collect::<Vec<_>>().join(", ")
        );
        labelled(out, "Apart", &text, screen, style);
    }
}

fn number(title: &str) -> Column<'_> {
    Column {
        title,
        right: true,
        least: None,
    }
}

fn efficiencies(out: &mut String, scaling: &Scaling, screen: usize, style: Style) {
    out.push('\n');
    let columns = [
        number("Ranks"),
        number("Time"),
        number("ideal"),
        number("Speedup"),
        number("Factor"),
        number("Parallel"),
        number("Balance"),
        number("Comm."),
        number("Comp."),
    ];
    let plain = |text: String| (text, Tone::Plain);
    let rows = scaling.sizes.iter().map(|size| {
        let share = |part: f64| plain(percent(part * 100.0));
        let spread = (size.wall_time_max_s - size.wall_time_min_s) / size.wall_time_s * 100.0;
        let note = format!(
            "{}: the fastest took {}, the slowest {} ({} apart)",
            plural(size.runs as u64, "run"),
            duration(size.wall_time_min_s),
            duration(size.wall_time_max_s),
            percent(spread)
        );
        Row {
            cells: vec![
                plain(size.ranks.to_string()),
                plain(duration(size.wall_time_s)),
                plain(duration(size.ideal_wall_time_s)),
                plain(three_digits(size.speedup)),
                (format!("{:.2}", size.factor), Tone::Strong),
                share(size.parallel_efficiency),
                share(size.load_balance),
                share(size.communication_efficiency),
                share(size.computation_scaling),
            ],
            note: (size.runs > 1).then_some(note),
        }
    });
    let rows: Vec<Row> = rows.collect();
    table(out, &columns, &rows, screen, style);
    let legend = "Factor: speedup, of the ideal one. Of each run alone: parallel efficiency = load \
                  balance x communication. Computation of an ideal run, of this run's.";
    paragraph(out, legend, screen, style, Tone::Faint);
    let counted = scaling.sizes.iter().filter_map(|size| {
        let of = size.counted_scaling.as_ref()?;
        let [one, two, three] = [of.instructions, of.instructions_per_cycle, of.frequency]
            .map(|factor| format!("{factor:.2}"));
        Some(format!(
            "{}: {one} by instructions x {two} by instructions per cycle x {three} by frequency",
            plural(size.ranks.into(), "rank")
        ))
    });
    let counted: Vec<String> = counted.collect();
    if !counted.is_empty() {
        let text = format!("Counted computation scales, on {}.", counted.join("; on "));
        paragraph(out, &text, screen, style, Tone::Plain);
    }
}

/// A loss, with its sign.
fn lost(seconds: f64) -> String {
    match seconds {
        gain if gain < 0.0 => format!("-{}", duration(-gain)),
        loss => duration(loss),
    }
}

/// Time of ranks that were started up later, or shut down earlier, in words.
const OUTSIDE: &str = "Ranks that started up later or shut down earlier";

/// A part in words.
fn words_of(part: &Part) -> &'static str {
    match part.id {
        "computation" => "More computation",
        "load_imbalance" => "Load imbalance: waiting for ranks that computed",
        "other_waiting" => "Other waiting",
        "communication" => "Communication, without waiting",
        "synchronization" => "Synchronisation, without waiting",
        "io" => "I/O",
        _ => OUTSIDE,
    }
}

fn parts(out: &mut String, scaling: &Scaling, screen: usize, style: Style) {
    let larger = &scaling.sizes[1..];
    out.push('\n');
    let title = "Rank-seconds lost against the smallest run";
    paragraph(out, title, screen, style, Tone::Strong);
    let titles: Vec<String> = larger
        .iter()
        .map(|s| plural(s.ranks.into(), "rank"))
        .collect();
    let titles: Vec<String> = titles.iter().map(|t| t.replace('\u{a0}', " ")).collect();
    // As many of the largest sizes as fit.
    let room = screen.saturating_sub(48) / 20;
    let skipped = larger.len().saturating_sub(room.max(1));
    let mut columns = vec![Column {
        title: "With",
        right: false,
        least: Some(20),
    }];
    columns.extend(titles[skipped..].iter().map(|title| number(title)));
    let shown = &larger[skipped..];
    let cell = |size: &Size, seconds: f64| {
        let all: f64 = size.parts.iter().map(|part| part.observed_s).sum();
        let share = tenths(laggard_report::percent(seconds, all));
        (format!("{} {share:5.1}\u{a0}%", lost(seconds)), Tone::Plain)
    };
    let of = |size: &Size, id: &str| {
        let part = size.parts.iter().find(|part| part.id == id);
        part.map_or(0.0, |part| part.lost_s)
    };
    let mut rows: Vec<Row> = Vec::new();
    let Some(last) = larger.last() else { return };
    for part in &last.parts {
        if shown.iter().all(|size| of(size, part.id) == 0.0) {
            continue;
        }
        let mut cells = vec![(words_of(part).to_owned(), Tone::Plain)];
        cells.extend(shown.iter().map(|size| cell(size, of(size, part.id))));
        rows.push(Row { cells, note: None });
    }
    let mut cells = vec![("All".to_owned(), Tone::Strong)];
    cells.extend(shown.iter().map(|size| cell(size, size.lost_s)));
    rows.push(Row { cells, note: None });
    table(out, &columns, &rows, screen, style);
}

/// Whether it is worth a line.
fn is_much(root: &RootGrowth) -> bool {
    let most = root.percent.iter().copied().fold(0.0, f64::max);
    most >= NEGLIGIBLE_PERCENT
}

fn root_causes(out: &mut String, scaling: &Scaling, top: usize, screen: usize, style: Style) {
    let roots = scaling.root_causes.iter().flatten();
    let listed: Vec<&RootGrowth> = roots.filter(|root| is_much(root)).collect();
    if listed.is_empty() {
        return;
    }
    out.push('\n');
    let title = "Root causes: waiting that they start (rank-seconds, percent of all of them), those \
                 that grow most first";
    paragraph(out, title, screen, style, Tone::Strong);
    let titles = scaling
        .sizes
        .iter()
        .map(|size| plural(size.ranks.into(), "rank"));
    let titles: Vec<String> = titles.map(|title| title.replace('\u{a0}', " ")).collect();
    // The smallest, and as many of the largest sizes as fit.
    let room = (screen.saturating_sub(30) / 20).max(2);
    let skipped = titles.len().saturating_sub(room - 1).max(1);
    let shown: Vec<usize> = [0].into_iter().chain(skipped..titles.len()).collect();
    let mut columns: Vec<Column> = shown.iter().map(|&at| number(&titles[at])).collect();
    columns.push(Column {
        title: "Root cause",
        right: false,
        least: Some(24),
    });
    let rows = listed.iter().take(top).map(|root| {
        let cell = |&at: &usize| {
            let text = match root.places[at] {
                Some(_) => format!(
                    "{} {:5.1}\u{a0}%",
                    duration(root.severity_s[at]),
                    root.percent[at]
                ),
                None => "–".to_owned(),
            };
            (text, Tone::Plain)
        };
        let mut cells: Vec<_> = shown.iter().map(cell).collect();
        cells.push((root.text().to_owned(), Tone::Plain));
        Row { cells, note: None }
    });
    let rows: Vec<Row> = rows.collect();
    table(out, &columns, &rows, screen, style);
    if listed.len() > top {
        let (more, all) = (listed.len() - top, listed.len());
        let text = format!("and {more} more with --top {all}");
        paragraph(out, &text, screen, style, Tone::Faint);
    }
}

/// The cost in words, and its place.
fn what(cost: &Cost) -> (String, String) {
    let at = cost.location.as_ref().map(place).unwrap_or_default();
    let operation = cost.operation.clone().unwrap_or_default();
    match cost.kind {
        Kind::Computation if cost.name.is_empty() => ("Computation".to_owned(), String::new()),
        Kind::Computation => (format!("Computation in {}", cost.name), at),
        Kind::Bottleneck if cost.name.is_empty() => ("Other waiting".to_owned(), String::new()),
        Kind::Bottleneck => (format!("{} in {operation}", cost.name), at),
        Kind::Operation if cost.name.is_empty() => ("Other calls".to_owned(), String::new()),
        Kind::Operation => (format!("{}, without waiting", cost.name), String::new()),
        Kind::Outside => (OUTSIDE.to_owned(), String::new()),
    }
}

/// Share of the time of all ranks below which a cost is not listed, percent.
const NEGLIGIBLE_PERCENT: f64 = 0.05;

fn costs(out: &mut String, size: &Size, top: usize, screen: usize, style: Style) {
    let all: f64 = size.parts.iter().map(|part| part.observed_s).sum();
    let share = |cost: &Cost| laggard_report::percent(cost.lost_s, all);
    let listed: Vec<&Cost> = size
        .costs
        .iter()
        .filter(|cost| share(cost).abs() >= NEGLIGIBLE_PERCENT)
        .collect();
    if listed.is_empty() {
        return;
    }
    out.push('\n');
    let ranks = plural(size.ranks.into(), "rank");
    let title = format!("What costs the most on {ranks} (rank-seconds, percent of all of them)");
    paragraph(out, &title, screen, style, Tone::Strong);
    let column = |title, least| Column {
        title,
        right: false,
        least: Some(least),
    };
    let columns = [
        number("Lost"),
        number("%"),
        number("Took"),
        number("ideal"),
        column("What", 20),
        column("Where", 16),
    ];
    let plain = |text: String| (text, Tone::Plain);
    let rows = listed.iter().take(top).map(|cost| {
        let (what, place) = what(cost);
        let computed = laggard_report::percent(cost.to_computation_s, cost.lost_s);
        let note = format!(
            "{} of it for ranks that computed",
            percent(computed.min(100.0))
        );
        Row {
            cells: vec![
                (
                    lost(cost.lost_s),
                    laggard_report::layout::tone_of_percent(share(cost)),
                ),
                plain(format!("{:.1}", tenths(share(cost)))),
                plain(duration(cost.observed_s)),
                plain(duration(cost.expected_s)),
                plain(what),
                plain(place),
            ],
            note: (cost.to_computation_s > 0.0 && cost.lost_s > 0.0).then_some(note),
        }
    });
    let rows: Vec<Row> = rows.collect();
    table(out, &columns, &rows, screen, style);
    if listed.len() > top {
        let text = format!(
            "and {} more with --top {}",
            listed.len() - top,
            listed.len()
        );
        paragraph(out, &text, screen, style, Tone::Faint);
    }
}

fn regions(out: &mut String, scaling: &Scaling, top: usize, screen: usize, style: Style) {
    let larger = &scaling.sizes[1..];
    let Some(last) = larger.last().filter(|size| !size.regions.is_empty()) else {
        return;
    };
    out.push('\n');
    let title = "Regions: scaling factor of the time in them";
    paragraph(out, title, screen, style, Tone::Strong);
    let titles: Vec<String> = larger
        .iter()
        .map(|size| plural(size.ranks.into(), "rank").replace('\u{a0}', " "))
        .collect();
    let room = screen.saturating_sub(30) / 12;
    let skipped = larger.len().saturating_sub(room.max(1));
    let mut columns = vec![Column {
        title: "Region",
        right: false,
        least: Some(12),
    }];
    columns.extend(titles[skipped..].iter().map(|title| number(title)));
    let rows = last.regions.iter().take(top).map(|region| {
        let mut cells = vec![(region.region.clone(), Tone::Plain)];
        for size in &larger[skipped..] {
            let found = size.regions.iter().find(|r| r.region == region.region);
            let factor = found.and_then(|found| found.factor);
            let text = factor.map_or_else(|| "–".to_owned(), |factor| format!("{factor:.2}"));
            cells.push((text, Tone::Plain));
        }
        Row { cells, note: None }
    });
    let rows: Vec<Row> = rows.collect();
    table(out, &columns, &rows, screen, style);
}

/// Rounded to a tenth, and never -0.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0 + 0.0
}
