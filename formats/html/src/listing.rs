//! A section with a table that the script sorts.

use laggard_report::units::duration;
use maud::{Markup, html};

use crate::text::amount;

/// A section with a table.
pub struct Listing<'l> {
    /// Its anchor.
    pub id: &'l str,
    pub title: &'l str,
    /// What the table is about.
    pub lead: &'l str,
    pub columns: &'l [Column<'l>],
}

/// A column of a [`Listing`].
pub enum Column<'l> {
    /// Not sorted.
    Plain(&'l str),
    /// Sorted as words.
    Text(&'l str),
    /// Sorted as numbers.
    Number(&'l str),
    /// The numbers that the rows come sorted by, the largest first.
    Descending(&'l str),
}

/// A row: its anchor, if it has one, and its cells.
pub type Row<'r> = (Option<&'r str>, Markup);

impl Listing<'_> {
    /// The section with these of `all` rows; nothing if there are none. The script hides those after
    /// the first `shown` until somebody asks.
    pub fn markup(&self, rows: &[Row], all: usize, shown: usize) -> Markup {
        let title = format!("{}-title", self.id);
        html! {
            @if !rows.is_empty() {
                section #(self.id) aria-labelledby=(title) {
                    h2 #(title) { (self.title) }
                    p.soft { (self.lead) }
                    div.scroll {
                        table data-sorts {
                            thead {
                                tr { @for column in self.columns { (column.head()) } }
                            }
                            tbody {
                                @for (at, (id, cells)) in rows.iter().enumerate() {
                                    tr id=[id] data-number=(at) data-small[at >= shown] { (cells) }
                                }
                            }
                        }
                    }
                    @if all > rows.len() {
                        p.soft { "and " (all - rows.len()) " more in the report file" }
                    }
                }
            }
        }
    }
}

impl Column<'_> {
    fn head(&self) -> Markup {
        match self {
            Column::Plain(title) => html! { th scope="col" { (title) } },
            Column::Text(title) => html! { th scope="col" data-sort="text" { (title) } },
            Column::Number(title) => {
                html! { th.number scope="col" data-sort="number" { (title) } }
            }
            Column::Descending(title) => html! {
                th.number scope="col" data-sort="number" aria-sort="descending" { (title) }
            },
        }
    }
}

/// A cell with seconds.
pub fn time(seconds: f64) -> Markup {
    number(seconds, &duration(seconds))
}

/// A cell with a number, as shown.
pub fn number(value: f64, shown: &str) -> Markup {
    html! { td.number data-value=(amount(value)) { (shown) } }
}
