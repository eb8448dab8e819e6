//! Source lines of the program.

use std::collections::BTreeMap;

use laggard_report::SourceLocation;
use maud::{Markup, html};

use crate::text::{clean, name};

/// Most characters shown of a source line.
const COLUMNS: usize = 200;

/// Some lines of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The file.
    pub path: String,
    /// Number of the first line shown, from 1.
    pub first: u32,
    /// The lines.
    pub lines: Vec<String>,
    /// Number of the line with the call.
    pub here: u32,
    /// The file changed after the run began: its lines may differ.
    pub is_newer: bool,
}

/// Excerpts by file (as named in the report) and line.
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<(String, u32), Excerpt>);

impl Sources {
    /// Adds the excerpt around a place.
    pub fn insert(&mut self, location: &SourceLocation, excerpt: Excerpt) {
        self.0
            .insert((location.file.clone(), location.line), excerpt);
    }

    /// The excerpt around a place, if known.
    pub fn get(&self, location: &SourceLocation) -> Option<&Excerpt> {
        // Once per place shown: making a key is cheap enough.
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
