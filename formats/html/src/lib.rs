//! The report as a page for browsers.
//!
//! *Purpose.* One file that is opened from disk, sent by mail or put beside the run: summary,
//! findings that can be sorted and filtered, and for each of them who waited for whom, in
//! words and pictures.
//!
//! *Data flow.* [`render`] is a function of a [`Page`]: the report, and what the caller knows
//! besides, such as lines of the program's sources. [`write()`] puts the page into a file.
//!
//! *Constraints.* The page loads nothing and runs only its own script, which a policy of
//! content security tells browsers by hashes; without scripts it only does not sort and
//! filter. A report is hostile input: what it says is escaped by construction, cut to a length
//! and without characters that turn text around. The page grows with the findings up to a
//! bound, and not with the ranks: these are folded into classes. The same report gives the
//! same bytes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod error;
mod file;
mod finding;
mod moment;
mod page;
mod picture;
mod pictures;
mod ranks;
mod regions;
mod remarks;
mod source;
mod spread;
mod summary;
mod table;
mod text;

use laggard_report::Report;

pub use error::Error;
pub use file::{check_target, write};
pub use pictures::Picture;
pub use source::{Excerpt, Sources};

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub struct Page<'p> {
    /// The report.
    pub report: &'p Report,
    /// Lines of the program's sources, as far as they are known.
    pub sources: &'p Sources,
    /// What others drew.
    pub pictures: &'p [Picture],
}

/// The page, from `<!DOCTYPE html>` to its end.
pub fn render(page: &Page) -> String {
    page::page(page).into_string()
}
