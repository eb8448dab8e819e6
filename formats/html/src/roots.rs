//! Root causes: who started the waiting.

use laggard_report::units::percent;
use laggard_report::{Bottleneck, Report, RootCause, words};
use maud::{Markup, html};

use crate::listing::Column::{Descending, Number, Plain, Text};
use crate::listing::{Listing, Row, number, time};
use crate::table::EXPLAINED;
use crate::text::sentence;

/// Most root causes listed.
const LISTED: usize = 50;
/// Root causes shown at first, also if they cause little.
const SHOWN: usize = 5;
/// Most waiting calls listed for each.
const VICTIMS: usize = 3;
/// Most hints of each.
const HINTS: usize = 2;
/// Most findings named for each.
const FINDINGS: usize = 8;

/// The section, if root causes were searched and there are any.
pub fn section(report: &Report) -> Markup {
    let all = report.root_causes.as_deref().unwrap_or_default();
    let rows = all.iter().take(LISTED);
    let rows: Vec<Row> = rows
        .map(|root| {
            (
                Some(&*root.id).filter(|id| is_name(id)),
                cells(report, root),
            )
        })
        .collect();
    let listing = Listing {
        id: "roots",
        title: "Root causes",
        lead: "Who started the waiting, and who waited because of it in the end.",
        columns: &[
            Text("Id"),
            Descending("Waiting"),
            Number("of all time"),
            Number("passed on by others"),
            Text("Root cause"),
            Plain("Who waited"),
            Plain("Findings"),
        ],
    };
    let notable = all.iter().filter(|root| is_notable(root)).count();
    html! {
        (listing.markup(&rows, all.len(), notable.max(SHOWN)))
        @if let Some(by) = words::started_by(report).filter(|_| !all.is_empty()) {
            p { (sentence(&by)) "." }
        }
    }
}

/// Whether it is shown at first, with hints.
fn is_notable(root: &RootCause) -> bool {
    root.percent >= words::NOTABLE_PERCENT
}

/// Whether this is `rc` and a number: others' reports are not trusted.
fn is_name(id: &str) -> bool {
    let number = id.strip_prefix("rc");
    number.is_some_and(|number| {
        number
            .parse::<u32>()
            .is_ok_and(|at| at.to_string() == number)
    })
}

fn cells(report: &Report, root: &RootCause) -> Markup {
    html! {
        td { (sentence(&root.id)) }
        (time(root.severity_s))
        (number(root.percent, &percent(root.percent)))
        (time(root.indirect_s))
        td {
            (sentence(&words::root_cause(root)))
            @if !root.because.is_empty() {
                div { "Because: " (sentence(&root.because)) }
            }
            @if let Some(gain) = words::gain(root) {
                div { (sentence(&gain)) }
            }
            @for hint in root.hints.iter().take(HINTS).filter(|_| is_notable(root)) {
                div.soft { (words::try_it(root)) (sentence(hint)) }
            }
        }
        td {
            @for victim in root.victims.iter().take(VICTIMS) {
                div { (sentence(&words::victim(victim))) }
            }
        }
        td { (findings(report, root)) }
    }
}

/// The findings that it starts, by number.
fn findings(report: &Report, root: &RootCause) -> Markup {
    let is_of = |found: &Bottleneck| found.root_causes.iter().any(|part| part.id == root.id);
    let numbered = (1..).zip(&report.bottlenecks).take(EXPLAINED);
    let numbers = numbered.filter(|(_, found)| is_of(found));
    let numbers: Vec<usize> = numbers.map(|(number, _)| number).collect();
    html! {
        @for number in numbers.iter().take(FINDINGS) {
            a href=(format!("#finding-{number}")) { (number) } " "
        }
        @if numbers.len() > FINDINGS {
            span.soft { "and " (numbers.len() - FINDINGS) " more" }
        }
    }
}

/// Root causes of a finding, with links to them.
pub fn of_finding(report: &Report, found: &Bottleneck) -> Markup {
    let all = report.root_causes.as_deref().unwrap_or_default();
    let listed = &all[..all.len().min(LISTED)];
    let shares = found.root_causes.iter().filter_map(|part| {
        let root = all.iter().find(|root| root.id == part.id)?;
        let is_listed = listed.iter().any(|root| root.id == part.id) && is_name(&part.id);
        Some((part, root, is_listed))
    });
    let shares: Vec<_> = shares.collect();
    html! {
        @if !shares.is_empty() {
            div.block {
                h3 { "Root causes" }
                ul.hints {
                    @for (part, root, is_listed) in shares {
                        li {
                            (percent(part.share * 100.0)) " "
                            @if is_listed {
                                a href=(format!("#{}", root.id)) { (sentence(&root.id)) }
                            } @else {
                                (sentence(&root.id))
                            }
                            ": " (sentence(&words::root_cause(root)))
                        }
                    }
                }
            }
        }
    }
}
