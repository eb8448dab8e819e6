//! The critical path, and how busy the run was.

use laggard_report::units::{duration, percent};
use laggard_report::{CriticalPath, Parallelism, PathPhase, PathRow, Report, words};
use maud::{Markup, PreEscaped, html};

use crate::text::{amount, sentence};

/// Most activities listed.
const LISTED: usize = 50;
/// Activities shown at first: so many, and all with this share of the path.
const SHOWN: usize = 5;
const NOTABLE: f64 = 0.01;
/// Size of the curve, in its own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// The section, if the path was followed.
pub fn section(report: &Report) -> Markup {
    let path = report.critical_path.as_ref();
    html! {
        @if let Some(path) = path.filter(|path| !path.profile.is_empty()) {
            section #path aria-labelledby="path-title" {
                h2 #path-title { "Critical path" }
                p.soft {
                    "Only what is on it makes the run shorter: "
                    (duration(path.length_s - path.startup_s)) " without start-up, mostly on "
                    (ranks(report)) "."
                }
                @if let Some(load) = &report.parallelism {
                    (curve(load, report.run.locations))
                }
                div.scroll {
                    table data-sorts {
                        thead {
                            tr {
                                th.number scope="col" data-sort="number" aria-sort="descending" { "On the path" }
                                th.number scope="col" data-sort="number" { "of it" }
                                th.number scope="col" data-sort="number" title="A second in which few locations are busy weighs more." { "of its weight" }
                                th.number scope="col" data-sort="number" { "longer than the mean" }
                                th scope="col" data-sort="text" { "Activity" }
                            }
                        }
                        tbody {
                            @for (at, row) in rows(path).take(LISTED).enumerate() {
                                (activity(at, row))
                            }
                        }
                    }
                }
                @if !path.phases.is_empty() {
                    div.scroll {
                        table data-sorts {
                            thead {
                                tr {
                                    th.number scope="col" data-sort="number" aria-sort="descending" { "On the path" }
                                    th.number scope="col" data-sort="number" { "of it" }
                                    th.number scope="col" data-sort="number" title="A second in which few locations are busy weighs more." { "of its weight" }
                                    th scope="col" data-sort="text" { "Phase" }
                                }
                            }
                            tbody {
                                @for (at, phase) in path.phases.iter().take(LISTED).enumerate() {
                                    (of_phase(at, phase))
                                }
                            }
                        }
                    }
                }
                @if rows(path).count() > LISTED {
                    p.soft { "and " (rows(path).count() - LISTED) " more in the report file" }
                }
            }
        }
    }
}

/// Its activities without start-up.
fn rows(path: &CriticalPath) -> impl Iterator<Item = &PathRow> {
    path.profile.iter().filter(|row| row.share > 0.0)
}

/// `rank 3 (58 %) and rank 0 (41 %)`.
fn ranks(report: &Report) -> String {
    let path = report.critical_path.as_ref();
    let ranks = path.iter().flat_map(|path| {
        path.ranks.iter().take(2).map(|part| {
            let share = percent(laggard_report::percent(
                part.seconds,
                path.length_s - path.startup_s,
            ));
            format!("rank {} ({share})", part.rank)
        })
    });
    ranks.collect::<Vec<_>>().join(" and ")
}

fn time(seconds: f64) -> Markup {
    html! { td.number data-value=(amount(seconds)) { (duration(seconds)) } }
}

fn part(share: f64) -> Markup {
    html! { td.number data-value=(amount(share)) { (percent(100.0 * share)) } }
}

fn of_phase(number: usize, phase: &PathPhase) -> Markup {
    html! {
        tr data-number=(number) {
            (time(phase.seconds))
            (part(phase.share))
            (part(phase.weight_share))
            td { (phase.phase) }
        }
    }
}

fn activity(number: usize, row: &PathRow) -> Markup {
    let is_small = number >= SHOWN && row.share < NOTABLE;
    html! {
        tr data-number=(number) data-small[is_small] {
            (time(row.seconds))
            (part(row.share))
            (part(row.weight_share))
            (time(row.imbalance_s))
            td { (sentence(&words::on_path(row))) }
        }
    }
}

/// Busy locations over time, as an area.
fn curve(load: &Parallelism, locations: u32) -> Markup {
    let step = WIDTH / load.busy.len().max(1) as f64;
    let most = f64::from(locations.max(1));
    let mut points = format!("M0 {HEIGHT}");
    for (at, busy) in load.busy.iter().enumerate() {
        let top = HEIGHT * (1.0 - (busy / most).clamp(0.0, 1.0));
        let (left, right) = (at as f64 * step, (at + 1) as f64 * step);
        points.push_str(&format!(" L{left:.1} {top:.1} L{right:.1} {top:.1}"));
    }
    points.push_str(&format!(" L{WIDTH} {HEIGHT} Z"));
    let length = load.bins_s * load.busy.len() as f64;
    let mean = format!(
        "Busy locations over the run: {:.1} of {locations} in the mean of the critical path",
        load.speedup
    );
    html! {
        figure.curve {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(mean) {
                (PreEscaped(format!("<path d=\"{points}\"/>")))
            }
            figcaption.soft { (mean) " (0 to " (duration(length)) ", 0 to " (locations) " locations)" }
        }
    }
}
