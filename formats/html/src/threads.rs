//! Computation that the threads of a rank share unevenly before they meet.

use laggard_report::{Report, ThreadImbalance, words};
use maud::{Markup, html};

use crate::listing::Column::{Descending, Number, Text};
use crate::listing::{Listing, Row, number, time};
use crate::text::{amount, name, place, sentence};

/// Places shown before somebody asks for all.
const SHOWN: usize = 10;

/// The section, if the report has such places.
pub fn section(report: &Report) -> Markup {
    let rows = report.thread_imbalance.iter();
    let rows: Vec<Row> = rows.map(|row| (None, cells(row))).collect();
    let advice = words::share_among_threads(report);
    let advice = advice.map_or(String::new(), |advice| format!(" What to try: {advice}."));
    let lead = format!(
        "What threads compute before they meet, against the mean over the threads of their rank there.{advice}"
    );
    let listing = Listing {
        id: "threads",
        title: "Threads that share unevenly",
        lead: &sentence(&lead),
        columns: &[
            Text("Before"),
            Text("Where"),
            Number("Threads"),
            Number("Mean of the rank"),
            Number("Most"),
            Text("by"),
            Descending("Uneven"),
            Number("% of time"),
        ],
    };
    listing.markup(&rows, report.thread_imbalance.len(), SHOWN)
}

fn cells(row: &ThreadImbalance) -> Markup {
    let share = format!("{:.2}", amount(row.percent));
    html! {
        td.code { (name(&row.before)) }
        td { (place(&row.location)) }
        td.number { (row.threads) }
        (time(row.rank_mean_s))
        (time(row.max_s))
        td { (words::busiest_thread(row)) }
        (time(row.overload_s))
        (number(row.percent, &share))
    }
}
