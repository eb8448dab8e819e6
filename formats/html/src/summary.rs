//! The run as a whole.

use laggard_report::units::{duration, percent};
use laggard_report::{Metric, Report, words};
use maud::{Markup, html};

use crate::picture::{legend, px};
use crate::text::{name, sentence, share};

/// Most patterns listed.
const PATTERNS: usize = 8;
/// Width of a bar.
const WIDE: f64 = 200.0;

/// The section.
pub fn section(report: &Report) -> Markup {
    html! {
        section #summary aria-labelledby="summary-title" {
            h2 #summary-title hidden { "Summary" }
            p.verdict { (sentence(&words::verdict(report))) }
            div.three {
                (efficiencies(report))
                (time(report))
                (waiting(report))
            }
        }
    }
}

fn efficiencies(report: &Report) -> Markup {
    let efficiency = &report.efficiency;
    let hybrid = efficiency.hybrid;
    let rows = [
        ("Parallel efficiency", Some(efficiency.parallel), false),
        ("Load balance", Some(efficiency.load_balance), true),
        ("× Communication", Some(efficiency.communication), true),
        ("= Serialization", efficiency.serialization, true),
        ("× Transfer", efficiency.transfer, true),
        ("With all threads", hybrid.map(|all| all.parallel), false),
        ("MPI", hybrid.map(|all| all.mpi.parallel), true),
        ("× Threads", hybrid.map(|all| all.threads.parallel), true),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(label, value, is_part)| Some((label, value?, is_part)));
    html! {
        figure {
            h3 { "Efficiency" }
            dl.meters {
                @for (label, value, is_part) in rows {
                    div {
                        dt.part[is_part] { (label) }
                        dd { (meter("computation", share(value, 1.0))) }
                        dd.value { (percent(share(value, 1.0) * 100.0)) }
                    }
                }
            }
            figcaption {
                "Share of the time in which ranks compute: how evenly, times how little of the \
                 run communication takes from the busiest."
            }
        }
    }
}

fn time(report: &Report) -> Markup {
    let sums = report.sums();
    let parts = [
        ("computation", "Computation", sums.computation_s),
        ("communication", "Communication", sums.communication_s),
        ("synchronization", "Synchronisation", sums.synchronization_s),
        ("io", "I/O", sums.io_s),
    ];
    html! {
        figure {
            h3 { "Time of all ranks" }
            dl.meters {
                @for (class, label, value) in parts {
                    div {
                        dt { (label) }
                        dd { (meter(class, share(value, sums.wall_s))) }
                        dd.value { (percent(share(value, sums.wall_s) * 100.0)) }
                    }
                }
                div {
                    dt.part { "Spent waiting" }
                    dd { (meter("lost", share(sums.wait_s, sums.wall_s))) }
                    dd.value { (percent(share(sums.wait_s, sums.wall_s) * 100.0)) }
                }
            }
            @if let Some(between) = sums.inter_node_wait_s && sums.wait_s > 0.0 {
                figcaption {
                    (percent(share(between, sums.wait_s) * 100.0))
                    " of the waiting was for ranks on other hosts."
                }
            }
            @if let Some(text) = words::start_and_end(report) {
                figcaption { (sentence(&text)) "." }
            }
            @if let Some(text) = words::cores(report) {
                figcaption { (sentence(&text)) "." }
            }
            @if let Some(text) = words::on_processors(report) {
                figcaption { "On cores: " (text) "." }
            }
            @if let Some(text) = words::counted(report) {
                figcaption { "Counted: " (sentence(&text)) "." }
            }
            @if let Some(text) = words::moved(report) {
                figcaption { "Moved: " (text) "." }
            }
        }
    }
}

fn waiting(report: &Report) -> Markup {
    let mut patterns: Vec<_> = report.metrics.iter().collect();
    patterns.sort_by(|a, b| b.1.total_s.total_cmp(&a.1.total_s).then(a.0.cmp(b.0)));
    let most = patterns.first().map_or(0.0, |(_, metric)| metric.total_s);
    let title = |id: &str, metric: &Metric| match metric.name.is_empty() {
        true => name(id),
        false => name(&metric.name),
    };
    html! {
        figure {
            h3 { "Lost time by pattern" }
            @if patterns.is_empty() { p.soft { "None was found." } }
            dl.meters {
                @for (id, metric) in patterns.iter().take(PATTERNS) {
                    div {
                        dt { (title(id, metric)) }
                        dd { (meter("lost", share(metric.total_s, most))) }
                        dd.value { (duration(metric.total_s)) }
                    }
                }
            }
            @if patterns.len() > PATTERNS {
                figcaption { "and " (patterns.len() - PATTERNS) " more" }
            }
        }
    }
}

/// A bar filled to a share.
pub fn meter(class: &str, share: f64) -> Markup {
    html! {
        svg viewBox="0 0 200 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="200" height="10" {}
            rect class=(class) width=(px(share * WIDE)) height="10" {}
        }
    }
}

/// Legend of the kinds of a rank's time.
pub fn kinds() -> Markup {
    legend(&[
        ("computation", "computation"),
        ("communication", "communication"),
        ("synchronization", "synchronisation"),
        ("io", "I/O"),
    ])
}
