//! The table of findings.

use std::collections::BTreeMap;

use laggard_report::units::{count, duration};
use laggard_report::{Bottleneck, Report, words};
use maud::{Markup, html};

use crate::summary::meter;
use crate::text::{amount, name, place, sentence, share};

/// Most findings explained.
pub const EXPLAINED: usize = 100;

/// Most findings listed.
const LISTED: usize = 500;

/// The section.
pub fn section(report: &Report) -> Markup {
    let all = &report.bottlenecks;
    let listed = &all[..all.len().min(LISTED)];
    html! {
        section #findings aria-labelledby="findings-title" {
            h2 #findings-title { "Findings" }
            @if listed.is_empty() {
                p { "Nothing was found that waited." }
            } @else {
                (filter(listed))
                div.scroll { (table(listed)) }
            }
            @if all.len() > listed.len() {
                p.soft {
                    "and " (count((all.len() - listed.len()) as u64)) " more in the report file"
                }
            }
            @for text in [words::below_hotspot(report), words::called_once(report)] {
                @if let Some(text) = text { p.soft { (sentence(&text)) "." } }
            }
        }
    }
}

/// Shown by the script.
fn filter(listed: &[Bottleneck]) -> Markup {
    let names = listed.iter().map(|found| (&found.pattern, &found.name));
    let patterns: BTreeMap<_, _> = names.collect();
    html! {
        form.filter hidden role="search" aria-label="Findings" {
            label {
                "Filter "
                input type="search" name="words" placeholder="operation, file, function, rank 3 …"
                    autocomplete="off";
            }
            label {
                "Pattern "
                select name="pattern" {
                    option value="" { "all" }
                    @for (id, title) in patterns { option value=(name(id)) { (name(title)) } }
                }
            }
            output role="status" {}
        }
    }
}

fn table(listed: &[Bottleneck]) -> Markup {
    let most = listed.first().map_or(0.0, |found| found.severity_s);
    html! {
        table data-sorts {
            caption.unseen { "Findings, the most time lost first" }
            thead {
                tr {
                    th.number scope="col" data-sort="number" { "#" }
                    th.number scope="col" data-sort="number" aria-sort="descending" { "Lost" }
                    th scope="col" { span.unseen { "Share" } }
                    th.number scope="col" data-sort="number" { "% of time" }
                    th scope="col" data-sort="text" { "Pattern" }
                    th scope="col" data-sort="text" { "Operation" }
                    th scope="col" data-sort="text" { "Where" }
                    th scope="col" data-sort="text" { "Lost by" }
                    th scope="col" data-sort="text" { "Waits for" }
                }
            }
            tbody {
                @for (at, found) in listed.iter().enumerate() { (row(at + 1, found, most)) }
            }
        }
    }
}

fn row(number: usize, found: &Bottleneck, most: f64) -> Markup {
    html! {
        tr data-number=(number) data-pattern=(name(&found.pattern)) {
            td.number.soft { (number) }
            td.number data-value=(amount(found.severity_s)) { (duration(found.severity_s)) }
            td.bar { (meter("lost", share(found.severity_s, most))) }
            td.number data-value=(amount(found.percent)) { (format!("{:.2}", amount(found.percent))) }
            td {
                @if number <= EXPLAINED {
                    a href=(format!("#finding-{number}")) { (name(&found.name)) }
                } @else {
                    (name(&found.name))
                }
            }
            td.code { (name(&found.operation)) }
            td { (place(&found.location)) }
            td { (sentence(&words::ranks(found, 3))) }
            td {
                @if let Some(cause) = found.causes.first() {
                    (words::late_rank(found, cause))
                    @if found.causes.len() > 1 {
                        span.soft { " and " (found.causes.len() - 1) " more" }
                    }
                }
            }
        }
    }
}
