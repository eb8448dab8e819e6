//! Functions that compilers make of parallel regions and tasks of OpenMP.
//!
//! Their names are in no source. A region belongs to the function that it is written in: GCC says
//! which one in the name, and so does LLVM from 16 on. Before, that function is the one with other code on
//! the line of the pragma, where it forks the team. Of Fortran's main program GCC says the symbol, which has another
//! name in the source.

use addr2line::Loader;
use addr2line::gimli::DwLang;
use rustc_hash::FxHashMap;

use super::names;

/// What such names have after that of the function, or alone. Reductions have functions of their own.
const MARKS: [&str; 4] = [
    "._omp_fn.",
    ".omp_outlined",
    ".omp_task_entry.",
    ".omp.reduction.",
];

/// The symbol of Fortran's main program.
const MAIN_PROGRAM: &str = "MAIN__";

/// How far the function of a region may be from that of its program, bytes: one source file makes both.
const FARTHEST: u64 = 16 << 20;

/// The name of the function that a region is written in, empty if the name does not say it; `None` for
/// other functions.
fn written(name: &str) -> Option<&str> {
    let at = MARKS.iter().find_map(|mark| name.find(mark))?;
    Some(&name[..at])
}

/// Whether a function is a region or a task.
pub fn is_outlined(name: &str) -> bool {
    written(name).is_some()
}

/// The functions of regions whose names do not tell them, by their addresses.
#[derive(Default)]
pub struct Regions(FxHashMap<u64, Option<String>>);

impl Regions {
    /// The function that a region with code at this address is written in; else the compiler's name for
    /// the region.
    pub fn function(
        &mut self,
        loader: &Loader,
        offset: u64,
        (name, language): (&str, Option<DwLang>),
    ) -> String {
        let plain = |name| names::plain(name, language);
        let (function, find): (_, fn(&Loader, u64) -> Option<String>) = match written(name) {
            Some("") => (name, at_pragma),
            Some(MAIN_PROGRAM) => (MAIN_PROGRAM, main_program),
            Some(function) => return plain(function),
            None => return plain(name),
        };
        let begin = loader.find_symbol_info(offset);
        let begin = begin.map_or(offset, |symbol| symbol.address());
        let known = self.0.entry(begin);
        let found = known.or_insert_with(|| find(loader, begin));
        found.clone().unwrap_or_else(|| plain(function))
    }
}

/// The function with other code on the line at which a region begins.
fn at_pragma(loader: &Loader, begin: u64) -> Option<String> {
    let pragma = loader.find_location(begin).ok()??;
    let (low, high) = (
        begin.saturating_sub(FARTHEST),
        begin.saturating_add(FARTHEST),
    );
    let near = loader.find_location_range(low, high).ok()?;
    let on_line = near.filter(|(.., found)| found.line == pragma.line && found.file == pragma.file);
    on_line
        .filter_map(|(address, ..)| {
            let frame = loader.find_frames(address).ok()?.next().ok()??;
            let function = frame.function?;
            let name = function.raw_name().ok()?;
            (!is_outlined(&name)).then(|| names::plain(&name, function.language))
        })
        .next()
}

/// The name of the main program that the region which begins there is written in.
fn main_program(loader: &Loader, begin: u64) -> Option<String> {
    let (low, high) = (
        begin.saturating_sub(FARTHEST),
        begin.saturating_add(FARTHEST),
    );
    let file = loader.find_location(begin).ok()??.file;
    let near = loader.find_location_range(low, high).ok()?;
    let mut of_file = near.filter(|(.., found)| found.file == file);
    of_file.find_map(|(address, ..)| {
        let symbol = loader.find_symbol_info(address)?;
        let mut frames = loader.find_frames(address).ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            outermost = frame.function;
        }
        let function = outermost.filter(|_| symbol.name() == MAIN_PROGRAM)?;
        let name = function.raw_name().ok()?;
        Some(names::plain(&name, function.language))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_are_told_from_others() {
        assert_eq!(written("force._omp_fn.3"), Some("force"));
        assert_eq!(written("loop_._omp_fn.0"), Some("loop_"));
        assert_eq!(written("force.omp_outlined_debug__"), Some("force"));
        assert_eq!(written(".omp_outlined._debug__.10"), Some(""));
        assert_eq!(written(".omp_task_entry."), Some(""));
        assert_eq!(written(".omp.reduction.reduction_func.137"), Some(""));
        assert_eq!(
            written("dot.omp_outlined.omp.reduction.reduction_func"),
            Some("dot")
        );
        assert_eq!(written("omp_outlined"), None);
        assert_eq!(written("main"), None);
    }
}
