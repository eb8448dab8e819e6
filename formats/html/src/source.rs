//! Lines of the program's sources.

use std::collections::BTreeMap;

use laggard_report::SourceLocation;
use maud::{Markup, html};

use crate::text::{clean, name};

/// Characters of a line of source.
const COLUMNS: usize = 200;

/// Some lines of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The file.
    pub path: String,
    /// Number of the first line that is shown, from 1.
    pub first: u32,
    /// The lines.
    pub lines: Vec<String>,
    /// Number of the line that makes the call.
    pub here: u32,
    /// The file was changed after the run began: lines may be others.
    pub is_newer: bool,
}

/// Excerpts by file, as the report names it, and line.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<(String, u32), Excerpt>);

impl Sources {
    /// Adds what is around a place.
    pub fn insert(&mut self, location: &SourceLocation, excerpt: Excerpt) {
        self.0
            .insert((location.file.clone(), location.line), excerpt);
    }

    /// What is around a place, if it is known.
    pub fn get(&self, location: &SourceLocation) -> Option<&Excerpt> {
        // Looked for once per place that is shown: a key may be made for it.
        self.0.get(&(location.file.clone(), location.line))
    }
}

impl Excerpt {
    pub(crate) fn markup(&self, operation: &str) -> Markup {
        html! {
            figure {
                figcaption {
                    code { (name(&self.path)) } ", " (name(operation)) " in line " (self.here)
                    @if self.is_newer {
                        ". " strong { "The file was changed after the run began." }
                    }
                }
                pre.source tabindex="0" aria-label=(format!("Source, lines from {}", self.first)) {
                    @for (at, line) in self.lines.iter().enumerate() {
                        @let number = self.first.saturating_add(at as u32);
                        span.here[number == self.here] { i { (number) } (clean(line, COLUMNS)) "\n" }
                    }
                }
            }
        }
    }
}
