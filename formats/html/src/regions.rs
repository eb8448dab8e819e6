//! Regions of the program.

use laggard_report::units::{count, duration};
use laggard_report::{Region, Report};
use maud::{Markup, html};

use crate::text::{amount, name, place};

/// Most regions listed.
const LISTED: usize = 100;

/// The section, if the report has regions.
pub fn section(report: &Report) -> Markup {
    let all = &report.regions;
    html! {
        @if !all.is_empty() {
            section #regions aria-labelledby="regions-title" {
                h2 #regions-title { "Regions of the program" }
                p.soft { "Time outside of recorded calls and of nested regions, per rank." }
                div.scroll {
                    table data-sorts {
                        thead {
                            tr {
                                th scope="col" data-sort="text" { "Region" }
                                th scope="col" data-sort="text" { "Where" }
                                th.number scope="col" data-sort="number" { "Calls" }
                                th.number scope="col" data-sort="number" { "Mean" }
                                th.number scope="col" data-sort="number" { "Most" }
                                th scope="col" data-sort="text" { "by" }
                                th.number scope="col" data-sort="number" { "Most / mean" }
                                th.number scope="col" data-sort="number" aria-sort="descending" {
                                    "Others may wait"
                                }
                                th.number scope="col" data-sort="number" { "Longest call" }
                            }
                        }
                        tbody {
                            @for (at, region) in all.iter().take(LISTED).enumerate() {
                                (row(at, region))
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

fn row(number: usize, region: &Region) -> Markup {
    let time = |seconds: f64| {
        html! { td.number data-value=(amount(seconds)) { (duration(seconds)) } }
    };
    html! {
        tr data-number=(number) {
            td { (name(&region.region)) }
            td { (place(&region.location)) }
            td.number data-value=(region.calls) { (count(region.calls)) }
            (time(region.mean_s))
            (time(region.max_s))
            td { "rank " (region.worst_rank) }
            td.number data-value=(amount(region.imbalance)) { (format!("{:.2}", amount(region.imbalance))) }
            (time(region.imbalance_s))
            (time(region.instance_max_s))
        }
    }
}
