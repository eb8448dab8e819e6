//! The findings in detail.

use laggard_report::units::{count, duration, percent};
use laggard_report::{Bottleneck, Cause, words};
use maud::{Markup, html};

use crate::picture::{legend, px};
use crate::text::{late_call, name, place, sentence, share};
use crate::{Page, moment, roots, spread};

/// Findings open at first.
const OPEN: usize = 3;
/// Most causes listed.
const CAUSES: usize = 8;
/// Most lines of a call path.
const FRAMES: usize = 32;
/// Most hints.
const HINTS: usize = 6;
/// Most places with source lines: the finding's, and those of late calls.
const SOURCES: usize = 3;

/// The section.
pub fn section(page: &Page, explained: &[Bottleneck]) -> Markup {
    html! {
        @if !explained.is_empty() {
            section #details aria-labelledby="details-title" {
                h2 #details-title { "In detail" }
                p.filter {
                    button type="button" data-opens hidden aria-pressed="false" { "Open all" }
                }
                @for (at, found) in explained.iter().enumerate() {
                    (finding(page, at + 1, found))
                }
            }
        }
    }
}

fn finding(page: &Page, number: usize, found: &Bottleneck) -> Markup {
    html! {
        details.finding #(format!("finding-{number}")) open[number <= OPEN] {
            summary {
                h3 {
                    (number) ". " (name(&found.name)) " in " (name(&found.operation)) " at "
                    (place(&found.location))
                    @if !found.id.is_empty() { span.soft { " " (name(&found.id)) } }
                }
                span.number { (duration(found.severity_s)) " lost" }
                span.number.soft { (percent(found.percent)) }
            }
            div.body {
                p { (sentence(&capital(&words::lost(found)))) "." }
                div.two {
                    div {
                        (causes(found))
                        (roots::of_finding(page.report, found))
                        (hints(found))
                        (path(found))
                    }
                    div { (spread::figure(page.report, found)) }
                }
                (moment::figure(found))
                (sources(page, found))
            }
        }
    }
}

/// The text with a capital first letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn causes(found: &Bottleneck) -> Markup {
    let most = found.causes.first().map_or(0.0, |cause| cause.severity_s);
    html! {
        @if found.is_unexplained() {
            div {
                h3 { "Waits for" }
                p { (capital(words::whom_unexplained(found))) "." }
            }
        }
        @if !found.causes.is_empty() {
            div {
                h3 { "Waits for" }
                (legend(&[
                    ("computation", "it computed"),
                    ("communication", "was in communication itself"),
                    ("io", "in I/O"),
                    ("off", "off its processor"),
                    ("several", "not known"),
                ]))
                div.scroll {
                    table {
                        caption.unseen { "Who was late" }
                        thead.unseen { tr { th { "Share" } th {} th { "Who and why" } } }
                        tbody {
                            @for cause in found.causes.iter().take(CAUSES) { (cause_row(found, cause, most)) }
                        }
                    }
                }
                @if found.causes.len() > CAUSES {
                    p.soft { "and " (found.causes.len() - CAUSES) " more in the report file" }
                }
            }
        }
    }
}

fn cause_row(found: &Bottleneck, cause: &Cause, most: f64) -> Markup {
    html! {
        tr {
            td.number { (percent(share(cause.share, 1.0) * 100.0)) }
            td.bar { (parts(cause, most)) }
            td {
                strong { (words::late_rank(found, cause)) } ", " (late_call(cause))
                @if !cause.because.is_empty() { ": " (sentence(&cause.because)) }
            }
        }
    }
}

/// Activities of a late rank while others waited for it, as a bar. Its length is relative to
/// the longest wait for one rank.
fn parts(cause: &Cause, most: f64) -> Markup {
    let whole = share(cause.severity_s, most) * 200.0;
    let part = |seconds: Option<f64>| share(seconds.unwrap_or(0.0), cause.severity_s) * whole;
    let parts = [
        ("computation", part(cause.computation_s)),
        ("communication", part(cause.wait_s)),
        ("io", part(cause.io_s)),
        ("off", part(cause.blocked_s) + part(cause.preempted_s)),
    ];
    let mut at = 0.0;
    html! {
        svg viewBox="0 0 200 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="200" height="10" {}
            rect.several width=(px(whole)) height="10" {}
            @for (class, width) in parts {
                @let from = at;
                @if width > 0.0 {
                    rect class=(class) x=(px(from)) width=(px(width)) height="10" {}
                }
                ({ at += width; "" })
            }
        }
    }
}

fn hints(found: &Bottleneck) -> Markup {
    html! {
        @if !found.hints.is_empty() {
            div.block {
                h3 { "Try" }
                ul.hints {
                    @for hint in found.hints.iter().take(HINTS) { li { (sentence(hint)) } }
                }
            }
        }
    }
}

fn path(found: &Bottleneck) -> Markup {
    let path = &found.location.callpath;
    html! {
        @if !path.is_empty() {
            div.block {
                h3 { "Call path" }
                ol.path.code {
                    @for frame in path.iter().take(FRAMES) { li { (name(frame)) } }
                }
                @if path.len() > FRAMES {
                    p.soft { "and " (count((path.len() - FRAMES) as u64)) " more" }
                }
            }
        }
        @if !found.parallel_regions.is_empty() {
            div.block {
                h3 { "In parallel regions" }
                ol.path.code {
                    @for region in found.parallel_regions.iter().take(FRAMES) {
                        li { (name(&words::parallel_region(region))) }
                    }
                }
            }
        }
    }
}

/// Source lines around the finding's call and around late calls.
fn sources(page: &Page, found: &Bottleneck) -> Markup {
    let own = (found.operation.as_str(), &found.location);
    let late = found
        .causes
        .iter()
        .take(CAUSES)
        .map(|cause| (cause.operation.as_str(), &cause.location));
    let mut shown = Vec::new();
    for (operation, location) in std::iter::once(own).chain(late) {
        let is_there = shown
            .iter()
            .any(|(_, other): &(_, &laggard_report::SourceLocation)| {
                (&other.file, other.line) == (&location.file, location.line)
            });
        if !is_there && page.sources.get(location).is_some() && shown.len() < SOURCES {
            shown.push((operation, location));
        }
    }
    html! {
        @if !shown.is_empty() {
            div.block {
                h3 { "Source" }
                @for (operation, location) in shown {
                    @if let Some(excerpt) = page.sources.get(location) {
                        (excerpt.markup(operation))
                    }
                }
            }
        }
    }
}
