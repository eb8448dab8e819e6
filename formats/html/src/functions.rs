//! What the program computed, by function.

use laggard_report::{FunctionTimes, Report};
use maud::{Markup, html};

use crate::listing::Column::{Descending, Number, Text};
use crate::listing::{Listing, Row, number, time};
use crate::text::{amount, place};

/// Functions shown before somebody asks for all.
const SHOWN: usize = 10;

/// The section, if there were samples.
pub fn section(report: &Report) -> Markup {
    let rows = report.functions.iter();
    let rows: Vec<Row> = rows.map(|row| (None, cells(row))).collect();
    let listing = Listing {
        id: "functions",
        title: "Computation by function",
        lead: "Time outside of recorded calls, as samples tell, whoever called the function. The line is the one with most samples, the mean over all ranks of the run.",
        columns: &[
            Text("Where most of it"),
            Number("Ranks"),
            Descending("All ranks"),
            Number("% of time"),
            Number("Mean"),
            Number("Most"),
            Text("by"),
            Number("Beyond the mean"),
        ],
    };
    listing.markup(&rows, report.functions.len(), SHOWN)
}

fn cells(row: &FunctionTimes) -> Markup {
    let share = format!("{:.2}", amount(row.percent));
    html! {
        td { (place(&row.location)) }
        td.number { (row.ranks) }
        (time(row.total_s))
        (number(row.percent, &share))
        (time(row.mean_s))
        (time(row.max_s))
        td { "rank " (row.worst_rank) }
        (time(row.overload_s))
    }
}
