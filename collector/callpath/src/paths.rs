//! Interned call paths of one thread.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::Range;

use crate::modules::ModuleId;

/// A map whose creation is `const`, for tracers in thread-local storage.
pub(crate) type ConstMap<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Most paths kept in full; later ones keep only their innermost frame. Without a limit, a
/// program whose recursion always takes new ways would have any number of them.
const MAX_PATHS: usize = 1 << 16;

/// An interned call path, valid for the [`Tracer`](crate::Tracer) it came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

impl PathId {
    /// The path without frames.
    pub const EMPTY: Self = Self(0);
}

/// An interned string, valid for the [`Tracer`](crate::Tracer) it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(pub u32);

/// One frame of a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// An address in machine code, to be resolved with debug information later.
    Native {
        /// The executable or library that contains the code.
        module: ModuleId,
        /// Virtual address in the ELF file (run-time address minus load bias) of the last byte
        /// of the call instruction: the return address minus one. It resolves to the line of
        /// the call.
        offset: u64,
    },
    /// A line of source code, known without debug information (Python).
    Source {
        /// File name as the interpreter gives it.
        file: StrId,
        /// Qualified name of the function if known, else its plain name.
        function: StrId,
        /// Line of the call, from 1; 0 if unknown.
        line: u32,
    },
}

/// Strings and paths, each stored once. Paths are numbered from 1.
// The fields that every call reads come first.
#[repr(C)]
pub(crate) struct PathTable {
    paths: Vec<Box<[Frame]>>,
    /// Number of paths that `take_new` has returned.
    taken: u32,
    ids: ConstMap<Box<[Frame]>, PathId>,
    string_ids: ConstMap<Box<str>, StrId>,
    strings: Vec<Box<str>>,
}

impl PathTable {
    pub(crate) const fn new() -> Self {
        Self {
            ids: HashMap::with_hasher(BuildHasherDefault::new()),
            paths: Vec::new(),
            string_ids: HashMap::with_hasher(BuildHasherDefault::new()),
            strings: Vec::new(),
            taken: 0,
        }
    }

    /// The id of the path with these frames; equal frames give an equal id.
    pub(crate) fn intern(&mut self, frames: &[Frame]) -> PathId {
        if frames.is_empty() {
            return PathId::EMPTY;
        }
        if let Some(&id) = self.ids.get(frames) {
            return id;
        }
        if self.paths.len() >= MAX_PATHS && frames.len() > 1 {
            return self.intern(&frames[..1]);
        }
        let Ok(next) = u32::try_from(self.paths.len() + 1) else {
            return PathId::EMPTY;
        };
        let id = PathId(next);
        self.paths.push(frames.into());
        self.ids.insert(frames.into(), id);
        id
    }

    pub(crate) fn intern_str(&mut self, text: &str) -> StrId {
        if let Some(&id) = self.string_ids.get(text) {
            return id;
        }
        let id = StrId(u32::try_from(self.strings.len()).unwrap_or(u32::MAX));
        self.strings.push(text.into());
        self.string_ids.insert(text.into(), id);
        id
    }

    pub(crate) fn frames(&self, id: PathId) -> &[Frame] {
        let index = (id.0 as usize).wrapping_sub(1);
        self.paths.get(index).map_or(&[], |frames| frames)
    }

    pub(crate) fn string(&self, id: StrId) -> &str {
        self.strings.get(id.0 as usize).map_or("", |text| text)
    }

    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        self.paths.len() > self.taken as usize
    }

    /// Numbers of the paths interned since the last call.
    pub(crate) fn take_new(&mut self) -> Range<u32> {
        let last = self.paths.len() as u32;
        let first = std::mem::replace(&mut self.taken, last);
        first + 1..last + 1
    }
}
