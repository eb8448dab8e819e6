//! The report as a page for browsers.
//!
//! *Purpose.* One file to open from disk, send by mail or keep beside the run. It has a summary
//! and findings to sort and filter. For each finding it shows who waited for whom, in words and
//! pictures.
//!
//! *Data flow.* [`render`] is a function of a [`Page`]: the report, and further data of the
//! caller such as source lines. [`write()`] puts the page into a file.
//!
//! *Constraints.* The page loads nothing and runs only its own script; a content security
//! policy with hashes tells browsers so. Without scripts it only lacks sorting and filtering. A
//! report is hostile input: its texts are escaped by construction, cut to a length, and freed
//! of characters that reverse text. The page's size grows with the findings up to a bound, and
//! not with the ranks, which are folded into classes. The same report gives the same bytes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod calls;
mod error;
mod file;
mod finding;
mod functions;
mod heat;
mod listing;
mod matrix;
mod moment;
mod page;
mod path;
mod picture;
mod pictures;
mod ranks;
mod regions;
mod remarks;
mod roots;
mod source;
mod spread;
mod summary;
mod table;
mod text;
mod threads;

use laggard_report::Report;

pub use error::Error;
pub use file::{check_target, write};
pub use moment::FROM_START;
pub use pictures::Picture;
pub use source::{Excerpt, Sources};

/// The content of a page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'p> {
    /// The report.
    pub report: &'p Report,
    /// Source lines of the program, as far as known.
    pub sources: &'p Sources,
    /// Pictures from other sources.
    pub pictures: &'p [Picture],
}

/// The page, from `<!DOCTYPE html>` to its end.
pub fn render(page: &Page) -> String {
    page::page(page).into_string()
}
