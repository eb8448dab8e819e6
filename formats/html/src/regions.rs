//! Regions of the program.

use laggard_report::units::count;
use laggard_report::{Region, Report};
use maud::{Markup, html};

use crate::listing::Column::{Descending, Number, Text};
use crate::listing::{Listing, Row, number, time};
use crate::text::{amount, name, place};

/// Most regions listed.
const LISTED: usize = 100;

/// The section, if the report has regions.
pub fn section(report: &Report) -> Markup {
    let rows = report.regions.iter().take(LISTED);
    let rows: Vec<Row> = rows.map(|region| (None, cells(region))).collect();
    let listing = Listing {
        id: "regions",
        title: "Regions of the program",
        lead: "Time outside of recorded calls and of nested regions, per rank.",
        columns: &[
            Text("Region"),
            Text("Where"),
            Number("Calls"),
            Number("Mean"),
            Number("Most"),
            Text("by"),
            Number("Most / mean"),
            Descending("Others may wait"),
            Number("Longest call"),
        ],
    };
    listing.markup(&rows, report.regions.len(), LISTED)
}

fn cells(region: &Region) -> Markup {
    let imbalance = format!("{:.2}", amount(region.imbalance));
    html! {
        td { (name(&region.region)) }
        td { (place(&region.location)) }
        td.number data-value=(region.calls) { (count(region.calls)) }
        (time(region.mean_s))
        (time(region.max_s))
        td { "rank " (region.worst_rank) }
        (number(region.imbalance, &imbalance))
        (time(region.imbalance_s))
        (time(region.instance_max_s))
    }
}
