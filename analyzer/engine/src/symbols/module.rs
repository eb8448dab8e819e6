//! One executable or library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use memmap2::Mmap;
use object::{Object, ObjectSection};

use super::frames::Functions;
use super::outlined::{self, Regions};
use super::{Line, Origin, Problem, base_name, find, names, near};

/// A module with its symbols and debug information, once they were needed.
pub(crate) struct Module {
    path: Arc<str>,
    build_id: Vec<u8>,
    state: State,
    /// Where functions begin and end, once that was needed.
    functions: Option<Functions>,
}

enum State {
    NotLoaded,
    Loaded(Loaded),
}

/// Debug information of a module.
#[derive(Default)]
struct Loaded {
    /// The file with debug information, then the file itself.
    loaders: Vec<Loader>,
    regions: Regions,
    problem: Option<Problem>,
}

impl Module {
    pub fn new(path: Arc<str>, build_id: Vec<u8>) -> Self {
        Module {
            path,
            build_id,
            state: State::NotLoaded,
            functions: None,
        }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn key(&self) -> (&str, &[u8]) {
        (&self.path, &self.build_id)
    }

    /// Why addresses of this module have no lines. `None` if they may have lines, were not
    /// requested, or are not expected to have any.
    pub fn problem(&self) -> Option<Problem> {
        let State::Loaded(loaded) = &self.state else {
            return None;
        };
        let is_program = Origin::of_module(&self.path) == Origin::Program;
        loaded.problem.filter(|&problem| {
            is_program && (problem != Problem::NoLines || !is_installed(&self.path))
        })
    }

    /// Where the function begins that has this address.
    pub fn function_start(&mut self, offset: u64) -> Option<u64> {
        let functions = self.functions.get_or_insert_with(|| {
            let file = own_file(Path::new(&*self.path), &self.build_id);
            file.map_or_else(|_| Functions::default(), |file| Functions::of(&file))
        });
        functions.start(offset)
    }

    /// The lines at an address; never empty.
    pub fn resolve(&mut self, offset: u64, debug_roots: &[PathBuf]) -> Vec<Line> {
        if let State::NotLoaded = self.state {
            self.state = State::Loaded(load(&self.path, &self.build_id, debug_roots));
        }
        let State::Loaded(loaded) = &mut self.state else {
            return Vec::new();
        };
        let (path, regions) = (&self.path, &mut loaded.regions);
        let loaders = loaded.loaders.iter();
        let lines = loaders
            .clone()
            .find_map(|loader| {
                let mut lines = lines(path, loader, offset, regions)?;
                if let Some(first) = lines.first_mut().filter(|first| first.line == 0) {
                    first.line = near::line(loader, offset).unwrap_or(0);
                }
                Some(lines)
            })
            .or_else(|| {
                let mut symbols = loaders.clone();
                symbols.find_map(|loader| symbol(path, loader, offset))
            });
        lines.unwrap_or_else(|| vec![bare(path, format!("{}+{offset:#x}", base_name(path)))])
    }
}

fn bare(path: &Arc<str>, function: String) -> Line {
    Line {
        function,
        file: String::new(),
        line: 0,
        module: path.clone(),
        is_outlined: false,
    }
}

/// Lines from debug information; `None` if it does not cover the address.
fn lines(
    path: &Arc<str>,
    loader: &Loader,
    offset: u64,
    regions: &mut Regions,
) -> Option<Vec<Line>> {
    let mut frames = loader.find_frames(offset).ok()?;
    let mut lines = Vec::new();
    let mut is_outlined = false;
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref();
        let raw = name.and_then(|name| name.raw_name().ok());
        let was_outlined = is_outlined;
        is_outlined = raw.as_deref().is_some_and(outlined::is_outlined);
        // Debug information of LLVM has the function of a region within another one.
        if is_outlined && was_outlined {
            continue;
        }
        let language = name.and_then(|name| name.language);
        let name = match raw {
            Some(raw) if is_outlined => {
                Some(regions.function(loader, offset, (raw.as_ref(), language)))
            }
            raw => raw.map(|raw| names::plain(&raw, language)),
        };
        let location = frame.location.as_ref();
        let file = location.and_then(|l| l.file);
        if name.is_none() && file.is_none() {
            continue;
        }
        lines.push(Line {
            function: name.unwrap_or_else(|| {
                let symbol = loader.find_symbol(offset).unwrap_or_default();
                demangled(symbol)
            }),
            file: file.unwrap_or_default().to_owned(),
            line: location.and_then(|l| l.line).unwrap_or(0),
            module: path.clone(),
            is_outlined,
        });
    }
    (!lines.is_empty()).then_some(lines)
}

/// Whether a system package installed this file: then users do not compile it.
fn is_installed(path: &str) -> bool {
    let below = |root: &str| path.starts_with(root);
    below("/lib") || (below("/usr/") && !below("/usr/local/"))
}

/// `function+0xoffset` from the symbol table.
fn symbol(path: &Arc<str>, loader: &Loader, offset: u64) -> Option<Vec<Line>> {
    let symbol = loader.find_symbol_info(offset)?;
    let distance = offset.checked_sub(symbol.address())?;
    let line = bare(path, format!("{}+{distance:#x}", demangled(symbol.name())));
    let is_outlined = outlined::is_outlined(symbol.name());
    Some(vec![Line {
        is_outlined,
        ..line
    }])
}

fn demangled(symbol: &str) -> String {
    names::plain(symbol, None)
}

/// Finds and loads the debug information of a module.
fn load(path: &str, build_id: &[u8], debug_roots: &[PathBuf]) -> Loaded {
    if path.is_empty() || path.starts_with('[') || path.starts_with("linux-vdso") {
        return Loaded::default();
    }
    let mut loaded = Loaded::default();
    let own = own_file(Path::new(path), build_id);
    let debug = find::debug_file(Path::new(path), build_id, own.as_ref().ok(), debug_roots);
    let mut has_lines = false;
    if let Some(debug) = debug.filter(|debug| can_be_unpacked(debug)) {
        let supplement = find::supplement(&debug, debug_roots);
        let supplement = supplement.filter(|supplement| can_be_unpacked(supplement));
        if let Ok(loader) = Loader::new_with_sup(&debug, supplement.as_deref()) {
            has_lines |= loader.get_section_range(b".debug_line").is_some();
            loaded.loaders.push(loader);
        }
    }
    match own {
        Ok(_) if !can_be_unpacked(Path::new(path)) => loaded.problem = Some(Problem::Unreadable),
        Ok(_) => match Loader::new(path) {
            Ok(loader) => {
                has_lines |= loader.get_section_range(b".debug_line").is_some();
                loaded.loaders.push(loader);
                loaded.problem = (!has_lines).then_some(Problem::NoLines);
            }
            Err(_) => loaded.problem = Some(Problem::Unreadable),
        },
        // Separate debug information with the right build id replaces the file.
        Err(_) if !loaded.loaders.is_empty() => {}
        Err(problem) => loaded.problem = Some(problem),
    }
    loaded
}

/// Whether the claimed sizes of compressed sections are possible: memory for them is allocated
/// before anything is unpacked.
fn can_be_unpacked(path: &Path) -> bool {
    /// Largest ratio. Debug information shrinks to a third or a tenth.
    const MOST_TIMES: u64 = 64;
    /// Sections up to this size, bytes, may have any ratio: those full of zeros are small.
    const SMALL: u64 = 16 << 20;
    let Ok(map) = map(path) else {
        return false;
    };
    let Some(object) = parse(&map) else {
        return false;
    };
    object.sections().all(|section| {
        let Ok(range) = section.compressed_file_range() else {
            return true;
        };
        let most = range.compressed_size.saturating_mul(MOST_TIMES);
        range.format == object::CompressionFormat::None
            || range.uncompressed_size <= most.max(SMALL)
    })
}

/// The module's file, if it is the one that ran.
fn own_file(path: &Path, build_id: &[u8]) -> Result<Mmap, Problem> {
    let map = map(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Problem::Missing,
        _ => Problem::Unreadable,
    })?;
    let found = find::build_id(&map).ok_or(Problem::Unreadable)?;
    if build_id.is_empty() || found == build_id {
        Ok(map)
    } else {
        Err(Problem::Changed)
    }
}

/// Maps a file for reading.
pub(crate) fn map(path: &Path) -> std::io::Result<Mmap> {
    // A trace may name any file.
    let (file, _) = laggard_files::open(path)?;
    // SAFETY: only read. If the file is truncated meanwhile, the process gets SIGBUS, as every
    // reader of mapped files does.
    unsafe { Mmap::map(&file) }
}

/// Parses a mapped ELF file.
pub(crate) fn parse(map: &Mmap) -> Option<impl Object<'_>> {
    object::File::parse(&**map).ok()
}
