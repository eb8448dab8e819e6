//! From recorded addresses to lines of the program.
//!
//! *Purpose.* Turns frames of call paths into function, file and line, from the
//! debug information of the program's own files, after the run.
//!
//! *Data flow.* [`Symbols`] takes (module path, build id, ELF address), loads each
//! module once, on first use, and remembers every answer. The [`Line`]s of
//! a call path, innermost first, become a report's location with
//! [`source_location`].
//!
//! *Constraints.* A file with another build id than the one that ran is not
//! used. Unresolved frames get the best name known, and one row
//! per module in [`Symbols::anomalies`]; nothing here fails.

mod find;
mod frames;
mod module;
mod names;
mod near;
mod outlined;
mod place;

use std::path::PathBuf;
use std::sync::Arc;

use laggard_report::{Anomaly, AnomalySeverity};
use laggard_trace::{Definitions, Frame};
use module::Module;
pub use place::{Origin, location, shown, source_location};
pub(crate) use place::{callers, told_by};
use rustc_hash::FxHashMap;

/// One line of the program; inlined functions have lines of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Demangled name; `function+0xoffset` where only symbols are known,
    /// `module+0xoffset` where nothing is.
    pub function: String,
    /// As written by the compiler; empty if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// Path of the executable or library; empty if the recorder gave the line itself (a frame of an
    /// interpreter).
    pub module: Arc<str>,
    /// Whether the compiler made its function of a parallel region or a task.
    pub is_outlined: bool,
}

impl Line {
    /// Whether it is a region named by the program instead of a line.
    pub fn is_region(&self) -> bool {
        self.file.is_empty() && self.module.is_empty()
    }

    /// Whether file and line are known.
    pub fn has_source(&self) -> bool {
        !self.file.is_empty() && self.line > 0
    }

    /// `function file.c:42`, or the known part of it.
    pub fn text(&self) -> String {
        let file = base_name(&self.file);
        if self.has_source() {
            format!("{} {file}:{}", self.function, self.line)
        } else if file.is_empty() {
            self.function.clone()
        } else {
            format!("{} {file}", self.function)
        }
    }
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Why a module's addresses have no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The file does not exist here.
    Missing,
    /// The file is not the one that ran.
    Changed,
    /// The file cannot be read, is no ELF file, or claims impossible sizes.
    Unreadable,
    /// The file has no line numbers.
    NoLines,
}

/// Resolves addresses. Loads modules lazily and remembers the answers.
#[derive(Default)]
pub struct Symbols {
    modules: Vec<Module>,
    /// Index in `modules` by path and build id.
    index: FxHashMap<(Arc<str>, Vec<u8>), usize>,
    answers: FxHashMap<(usize, u64), Arc<[Line]>>,
    debug_roots: Vec<PathBuf>,
}

impl Symbols {
    /// Looks for separate debug files in `/usr/lib/debug`.
    pub fn new() -> Self {
        Symbols::with_debug_roots(vec![PathBuf::from("/usr/lib/debug")])
    }

    /// Looks for separate debug files in these directories.
    pub fn with_debug_roots(debug_roots: Vec<PathBuf>) -> Self {
        Symbols {
            debug_roots,
            ..Default::default()
        }
    }

    /// The lines at an ELF address of a module, innermost (inlined) first; never empty. An empty
    /// build id matches any file.
    pub fn resolve(&mut self, path: &str, build_id: &[u8], offset: u64) -> Arc<[Line]> {
        let at = self.module(path, build_id);
        if let Some(known) = self.answers.get(&(at, offset)) {
            return known.clone();
        }
        let lines: Arc<[Line]> = self.modules[at].resolve(offset, &self.debug_roots).into();
        self.answers.insert((at, offset), lines.clone());
        lines
    }

    /// Where the function begins that has this ELF address of a module, as the module's tables for unwinding
    /// tell: those there are without symbols.
    pub fn function_start(&mut self, path: &str, build_id: &[u8], offset: u64) -> Option<u64> {
        let at = self.module(path, build_id);
        self.modules[at].function_start(offset)
    }

    /// The lines of a call path of `definitions`, innermost first.
    pub fn resolve_call_path(&mut self, definitions: &Definitions, call_path: u32) -> Vec<Line> {
        let mut lines = Vec::new();
        for frame in definitions.call_path(call_path) {
            match *frame {
                Frame::Native { module, offset } => {
                    let Some(module) = definitions.module(module) else {
                        continue;
                    };
                    let path = definitions.string(module.path);
                    lines.extend_from_slice(&self.resolve(&path, &module.build_id, offset));
                }
                Frame::Source {
                    file,
                    function,
                    line,
                } => lines.push(Line {
                    function: definitions.string(function).into_owned(),
                    file: definitions.string(file).into_owned(),
                    line,
                    module: Arc::from(""),
                    is_outlined: false,
                }),
            }
        }
        lines
    }

    /// The unresolved modules, ordered by path.
    pub fn anomalies(&self) -> Vec<Anomaly> {
        let mut modules: Vec<&Module> = self.modules.iter().collect();
        modules.sort_by(|a, b| a.key().cmp(&b.key()));
        modules.into_iter().filter_map(anomaly).collect()
    }

    fn module(&mut self, path: &str, build_id: &[u8]) -> usize {
        let key = (Arc::from(path), build_id.to_vec());
        let modules = &mut self.modules;
        *self
            .index
            .entry(key)
            .or_insert_with_key(|(path, build_id)| {
                modules.push(Module::new(path.clone(), build_id.clone()));
                modules.len() - 1
            })
    }
}

fn anomaly(module: &Module) -> Option<Anomaly> {
    let (id, severity, detail) = match module.problem()? {
        Problem::Missing => (
            "module_missing",
            AnomalySeverity::Warning,
            "is not here: its functions and lines are unknown; analyze where the program ran",
        ),
        Problem::Changed => (
            "module_changed",
            AnomalySeverity::Warning,
            "was built again since the run: its functions and lines are unknown; record again",
        ),
        Problem::Unreadable => (
            "module_unreadable",
            AnomalySeverity::Warning,
            "cannot be read as an ELF file: its functions and lines are unknown",
        ),
        Problem::NoLines => (
            "no_line_numbers",
            AnomalySeverity::Info,
            "has no line numbers: compile it with -g",
        ),
    };
    Some(Anomaly {
        id: id.to_owned(),
        severity,
        count: 1,
        detail: format!("{} {detail}", module.path()),
        origin: None,
    })
}

#[cfg(test)]
mod tests;
