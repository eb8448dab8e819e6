//! Picture of the ranks' time by kind.

use std::collections::BTreeSet;

use laggard_report::units::{count, duration};
use laggard_report::{LocationClass, LocationTimes, Report, words};
use maud::{Markup, html};

use crate::picture::{px, rank_ticks, time_axis};
use crate::summary::kinds;
use crate::text::{amount, name, sentence};

/// Width of the picture, and position of the columns.
const WIDE: f64 = 1100.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
/// Heights of the two panels and of the space below them.
const TIMES: f64 = 190.0;
const WAITING: f64 = 70.0;
const GAP: f64 = 34.0;
const BOTTOM: f64 = 36.0;
/// Most columns: more ranks are folded.
const COLUMNS: usize = 64;
/// Most classes in a report.
const CLASSES: usize = 256;
/// Most rows of the table of numbers.
const LISTED: usize = 200;
const KINDS: [&str; 4] = ["computation", "communication", "synchronization", "io"];

/// Some successive locations; times are means over them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Column {
    first: u32,
    last: u32,
    locations: u64,
    /// Computation, communication, synchronisation, I/O.
    times: [f64; 4],
    waiting: f64,
    /// Smallest and largest computation of a location, if there are several.
    range: Option<(f64, f64)>,
}

/// The section.
pub fn section(report: &Report) -> Markup {
    let columns = columns(report);
    let locations: u64 = columns.iter().map(|column| column.locations).sum();
    let is_whole = locations == u64::from(report.run.locations);
    html! {
        section #ranks aria-labelledby="ranks-title" {
            h2 #ranks-title { "Ranks" }
            @if columns.is_empty() {
                p { "No times of ranks are known." }
            } @else {
                figure {
                    (kinds())
                    div.scroll { (picture(report, &columns)) }
                    figcaption { (caption(report, &columns, is_whole)) }
                }
                (numbers(report, is_whole && report.location_classes.is_empty()))
            }
        }
    }
}

fn times(location: &LocationTimes) -> [f64; 4] {
    [
        amount(location.computation_s),
        amount(location.communication_s),
        amount(location.synchronization_s),
        amount(location.io_s),
    ]
}

fn columns(report: &Report) -> Vec<Column> {
    if !report.location_classes.is_empty() {
        return report
            .location_classes
            .iter()
            .take(CLASSES)
            .map(of_class)
            .collect();
    }
    let locations = &report.locations;
    // Equal shares of successive locations.
    let width = locations.len().div_ceil(COLUMNS).max(1);
    locations.chunks(width).map(mean).collect()
}

fn of_class(class: &LocationClass) -> Column {
    let count = class.locations.max(1) as f64;
    let times = [
        class.computation_s,
        class.communication_s,
        class.synchronization_s,
        class.io_s,
    ];
    let least = amount(class.least_computation_s);
    Column {
        first: class.first_rank,
        last: class.last_rank.max(class.first_rank),
        locations: class.locations,
        times: times.map(|time| amount(time) / count),
        waiting: amount(class.wait_s) / count,
        range: (class.locations > 1).then(|| (least, amount(class.most_computation_s).max(least))),
    }
}

fn mean(locations: &[LocationTimes]) -> Column {
    let count = locations.len() as f64;
    let mut column = Column {
        locations: locations.len() as u64,
        first: locations.iter().map(|l| l.rank).min().unwrap_or(0),
        last: locations.iter().map(|l| l.rank).max().unwrap_or(0),
        ..Column::default()
    };
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for location in locations {
        for (sum, part) in column.times.iter_mut().zip(times(location)) {
            *sum += part / count;
        }
        column.waiting += amount(location.wait_s) / count;
        (least, most) = (least.min(times(location)[0]), most.max(times(location)[0]));
    }
    column.range = (locations.len() > 1).then_some((least, most));
    column
}

fn caption(report: &Report, columns: &[Column], is_whole: bool) -> String {
    let mut text = "Time of each rank; below, the part of it that was spent waiting.".to_owned();
    let most = columns
        .iter()
        .map(|column| column.locations)
        .max()
        .unwrap_or(1);
    if most > 1 {
        text = format!(
            "Time of a rank, mean over up to {most} ranks that stand side by side, with the least \
             and the most computation of one of them; below, the part of it that was spent waiting."
        );
    }
    if !is_whole {
        text.push_str(" Only ranks that stand out.");
    }
    let busiest = report.sums().busiest;
    if !busiest.is_empty() {
        let busiest = words::ranks_of_set(&busiest, 8);
        text.push_str(&format!(" Busiest, so that others wait: {busiest}."));
    }
    sentence(&text)
}

fn picture(report: &Report, columns: &[Column]) -> Markup {
    let whole = |column: &Column| -> f64 { column.times.iter().sum() };
    let most = columns.iter().map(whole).fold(0.0, f64::max);
    let waiting = columns
        .iter()
        .map(|column| column.waiting)
        .fold(0.0, f64::max);
    let scale = |most: f64, high: f64, time: f64| if most > 0.0 { time / most * high } else { 0.0 };
    let bottom = TOP + TIMES;
    let low = bottom + GAP + WAITING;
    let y = |time: f64| bottom - scale(most, TIMES, time);
    let below = |time: f64| low - scale(waiting, WAITING, time);
    // Threads of a rank are next to each other.
    let step = (WIDE - LEFT - RIGHT) / columns.len() as f64;
    let width = (step * 0.86).min(60.0);
    let x = |at: usize| LEFT + step * at as f64 + (step - width) / 2.0;
    let high = low + BOTTOM;
    let described = format!(
        "Computation, communication, synchronisation and waiting of {} ranks",
        report.run.ranks
    );
    html! {
        svg.wide viewBox=(format!("0 0 {WIDE} {high}")) role="img" aria-label=(described) {
            (time_axis(most, (LEFT, WIDE - RIGHT), y, 4))
            @for (at, column) in columns.iter().enumerate() {
                (stack(column, (x(at), width), y))
            }
            line.axis x1=(px(LEFT)) x2=(px(WIDE - RIGHT)) y1=(px(bottom)) y2=(px(bottom)) {}
            text.strong x=(px(LEFT)) y=(px(bottom + GAP - 8.0)) { "waiting" }
            (time_axis(waiting, (LEFT, WIDE - RIGHT), below, 2))
            @for (at, column) in columns.iter().enumerate() {
                rect.lost x=(px(x(at))) y=(px(below(column.waiting))) width=(px(width))
                    height=(px(low - below(column.waiting))) {}
            }
            line.axis x1=(px(LEFT)) x2=(px(WIDE - RIGHT)) y1=(px(low)) y2=(px(low)) {}
            @for at in rank_ticks(columns.len() as u64, 16) {
                text.tick.middle x=(px(x(at as usize) + width / 2.0)) y=(px(low + 15.0)) {
                    (columns[at as usize].first)
                }
            }
            text.tick.middle x=(px(WIDE / 2.0)) y=(px(high - 4.0)) { "rank" }
        }
    }
}

fn stack(column: &Column, (x, width): (f64, f64), y: impl Fn(f64) -> f64) -> Markup {
    let mut below = 0.0;
    let parts = column.times.iter().zip(KINDS).map(|(time, kind)| {
        let from = below;
        below += time;
        (kind, y(below), y(from) - y(below))
    });
    let parts: Vec<(&str, f64, f64)> = parts.filter(|part| part.2 > 0.05).collect();
    html! {
        g {
            title { (told(column)) }
            @for (kind, top, height) in parts {
                rect class=(kind) x=(px(x)) y=(px(top)) width=(px(width)) height=(px(height)) {}
            }
            @if let Some((least, most)) = column.range {
                @let middle = px(x + width / 2.0);
                line.range x1=(middle) x2=(middle) y1=(px(y(least))) y2=(px(y(most))) {}
            }
        }
    }
}

fn told(column: &Column) -> String {
    let ranks = words::ranks_of_set(&format!("{}-{}", column.first, column.last), 1);
    let [computation, communication, synchronization, io] = column.times.map(duration);
    format!(
        "{ranks}: {computation} computation, {communication} communication, {synchronization} \
         synchronisation, {io} I/O, {} waiting",
        duration(column.waiting)
    )
}

/// The same as numbers, for all ranks or for outliers only.
fn numbers(report: &Report, is_all: bool) -> Markup {
    let time = |seconds: f64| {
        html! { td.number data-value=(amount(seconds)) { (duration(seconds)) } }
    };
    let shown = &report.locations[..report.locations.len().min(LISTED)];
    let counters: BTreeSet<&str> = shown
        .iter()
        .flat_map(|location| location.counters.keys().map(String::as_str))
        .collect();
    let has_processors = shown.iter().any(|location| location.processor_s.is_some());
    html! {
        details.block {
            summary {
                @if is_all { "The same in numbers" } @else { "Ranks that stand out, in numbers" }
            }
            div.scroll {
                table data-sorts {
                    thead {
                        tr {
                            th.number scope="col" data-sort="number" { "Rank" }
                            th.number scope="col" data-sort="number" { "Thread" }
                            th scope="col" data-sort="text" { "Host" }
                            th.number scope="col" data-sort="number" { "Computation" }
                            th.number scope="col" data-sort="number" { "Communication" }
                            th.number scope="col" data-sort="number" { "Synchronisation" }
                            th.number scope="col" data-sort="number" { "I/O" }
                            th.number scope="col" data-sort="number" { "Waiting" }
                            @if has_processors {
                                th.number scope="col" data-sort="number" { "On a core" }
                            }
                            @for counter in &counters {
                                th.number scope="col" data-sort="number" { (name(counter)) }
                            }
                        }
                    }
                    tbody {
                        @for (at, location) in shown.iter().enumerate() {
                            tr data-number=(at) {
                                td.number { (location.rank) }
                                td.number { (location.thread) }
                                td { (name(&location.host)) }
                                @for part in times(location) { (time(part)) }
                                (time(location.wait_s))
                                @if has_processors {
                                    @match location.processor_s {
                                        Some(seconds) => (time(seconds)),
                                        None => td.number {},
                                    }
                                }
                                @for counter in &counters {
                                    @match location.counters.get(*counter) {
                                        Some(&number) => td.number data-value=(number) { (count(number)) },
                                        None => td.number {},
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if report.locations.len() > LISTED {
                p.soft { "and " (report.locations.len() - LISTED) " more in the report file" }
            }
        }
    }
}
