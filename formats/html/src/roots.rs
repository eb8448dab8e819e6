//! Root causes: who started the waiting.

use laggard_report::units::{duration, percent};
use laggard_report::{Report, RootCause, words};
use maud::{Markup, html};

use crate::text::{amount, sentence};

/// Most root causes listed.
const LISTED: usize = 50;
/// Most waiting calls listed for each.
const VICTIMS: usize = 3;

/// The section, if root causes were searched and there are any.
pub fn section(report: &Report) -> Markup {
    let all = report.root_causes.as_deref().unwrap_or_default();
    html! {
        @if !all.is_empty() {
            section #roots aria-labelledby="roots-title" {
                h2 #roots-title { "Root causes" }
                p.soft { "Who started the waiting, and who waited because of it in the end." }
                div.scroll {
                    table data-sorts {
                        thead {
                            tr {
                                th.number scope="col" data-sort="number" aria-sort="descending" { "Waiting" }
                                th.number scope="col" data-sort="number" { "of all time" }
                                th.number scope="col" data-sort="number" { "passed on by others" }
                                th scope="col" data-sort="text" { "Root cause" }
                                th scope="col" { "Who waited" }
                            }
                        }
                        tbody {
                            @for (at, root) in all.iter().take(LISTED).enumerate() {
                                (row(at, root))
                            }
                        }
                    }
                }
                @if all.len() > LISTED {
                    p.soft { "and " (all.len() - LISTED) " more in the report file" }
                }
            }
        }
    }
}

fn row(number: usize, root: &RootCause) -> Markup {
    let time = |seconds: f64| {
        html! { td.number data-value=(amount(seconds)) { (duration(seconds)) } }
    };
    html! {
        tr data-number=(number) {
            (time(root.severity_s))
            td.number data-value=(amount(root.percent)) { (percent(root.percent)) }
            (time(root.indirect_s))
            td { (sentence(&words::root_cause(root))) }
            td {
                @for victim in root.victims.iter().take(VICTIMS) {
                    div { (sentence(&words::victim(victim))) }
                }
            }
        }
    }
}
