//! Captures call paths of one thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::cache::{ANY_SP, Cache};
use crate::modules::{Counters, Snapshot, unloads, while_mapped};
use crate::paths::{Frame, PathId, PathTable, StrId};
use crate::python::{self, Interpreter};
use crate::site::{CallSite, Moment};
use crate::stack::Stack;
use crate::unwind::{Extent, Unwinder, Unwound};

/// Captures between looks at the dynamic linker's counters. They detect an unloaded library of
/// which [`note_unload`](crate::note_unload) was not told.
const LOOK_EVERY: u32 = 4096;

/// Counters of a tracer, to judge its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Captures that had to unwind or to read an interpreter's tables.
    pub misses: u64,
    /// Number of times that all remembered paths were dropped, because of unloading or a change
    /// of depth.
    pub flushes: u64,
}

/// A path on its way from one tracer to another one.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    frames: Vec<Frame>,
    /// File and function of each frame of source code, in their order.
    texts: Vec<[Box<str>; 2]>,
}

/// Captures the call paths of one thread; each thread has its own.
///
/// Creating one costs nothing; memory is allocated by the first capture.
#[repr(C)]
pub struct Tracer {
    // The fields that every call reads come first.
    /// Value of the unload counter that `cache` is valid for.
    unloads: u32,
    until_look: u32,
    /// Depth with which the paths in `cache` were captured.
    depth: usize,
    python: Option<Box<Interpreter>>,
    cache: Cache,
    paths: PathTable,
    snapshot: Option<Arc<Snapshot>>,
    stack: Stack,
    unwinder: Unwinder,
    unwound: Unwound,
    stats: Stats,
}

impl Default for Tracer {
    fn default() -> Self {
        Self::new()
    }
}

impl Tracer {
    /// A tracer for the calling thread.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cache: Cache::new(),
            unloads: 0,
            depth: 0,
            until_look: LOOK_EVERY,
            python: None,
            snapshot: None,
            paths: PathTable::new(),
            stack: Stack::new(),
            unwinder: Unwinder::new(),
            unwound: Unwound::new(),
            stats: Stats {
                misses: 0,
                flushes: 0,
            },
        }
    }

    /// The path of the call at `site`: at most `depth` frames, from the innermost outwards.
    /// Depth 1 is the calling line only, 0 is nothing.
    ///
    /// Use one depth throughout: a change drops all remembered paths.
    ///
    /// The site is a reference for speed: it was just written word by word, and a copy in
    /// larger pieces would have to wait for these words.
    ///
    /// # Safety
    /// `site` belongs to a call of the current thread that has not returned, so its stack
    /// addresses are valid.
    #[inline(always)]
    pub unsafe fn capture(&mut self, site: &CallSite, depth: usize) -> PathId {
        if depth == 0 {
            return PathId::EMPTY;
        }
        self.until_look = self.until_look.wrapping_sub(1);
        let prepared = self.unloads == unloads() && self.depth == depth && self.until_look != 0;
        if prepared && self.python.is_none() {
            // With depth 1 the return address nearly always decides alone.
            let likely = match depth {
                1 => self.cache.recent(site.ra),
                _ => self.cache.only(site),
            };
            if let Some(path) = likely.or_else(|| self.remembered(site, depth)) {
                return path;
            }
        }
        self.capture_slowly(*site, depth)
    }

    #[inline(never)]
    fn remembered(&mut self, site: &CallSite, depth: usize) -> Option<PathId> {
        if depth == 1
            && let Some(path) = self.cache.find(site, ANY_SP)
        {
            self.cache.note(site.ra, path);
            return Some(path);
        }
        self.cache.find(site, site.sp)
    }

    /// The path of an earlier moment of this thread: at most `depth` frames, of which the innermost
    /// is the interrupted instruction. Frames that were copied in part may end it, unless they have
    /// not returned.
    pub fn capture_moment(&mut self, moment: &Moment<'_>, depth: usize) -> PathId {
        if depth == 0 {
            return PathId::EMPTY;
        }
        // As in `capture_slowly`.
        let path = catch_unwind(AssertUnwindSafe(|| {
            while_mapped(|| self.unwind_moment(moment, depth))
        }));
        path.ok().flatten().unwrap_or(PathId::EMPTY)
    }

    fn unwind_moment(&mut self, moment: &Moment<'_>, depth: usize) -> PathId {
        self.prepare(depth);
        let snapshot = self.up_to_date();
        let here = (&raw const snapshot) as u64;
        let reader = self.stack.copied(moment.sp, moment.stack, here);
        let mut extent = Extent::new(&snapshot, depth);
        self.unwound.clear();
        if self.stack.is_short(here) {
            return PathId::EMPTY;
        }
        // An instruction, where a call would leave the one after it.
        let site = CallSite {
            ra: moment.pc.wrapping_add(1),
            sp: moment.sp,
            bp: moment.bp,
        };
        // SAFETY: `snapshot` was just compared with the linker's counters, and nothing is unloaded.
        unsafe {
            let unwound = &mut self.unwound;
            self.unwinder
                .unwind(site, &snapshot, &reader, &mut extent, unwound);
        }
        let path = self.intern(&extent, &snapshot);
        self.with_python(path, moment.python, &snapshot, depth)
    }

    /// A path of native frames with Python's. What the interpreter does is time of the Python function that it
    /// does it for.
    fn with_python(
        &mut self,
        path: PathId,
        codes: &[u64],
        snapshot: &Snapshot,
        depth: usize,
    ) -> PathId {
        let functions = codes
            .iter()
            .filter_map(|&code| python::moment::function(code));
        let functions: Vec<_> = functions
            .filter(|(file, ..)| !file.starts_with("<frozen importlib"))
            .collect();
        let interpreter = python::moment::inside().and_then(|inside| snapshot.find(inside));
        let Some(interpreter) = interpreter.filter(|_| !functions.is_empty()) else {
            return path;
        };
        let native = self.paths.frames(path).iter();
        let is_outside = |frame: &&Frame| !matches!(frame, Frame::Native { module, .. } if *module == interpreter.id);
        let mut frames: Vec<Frame> = native.take_while(is_outside).copied().collect();
        for (file, function, line) in &functions {
            frames.push(Frame::Source {
                file: self.paths.intern_str(file),
                function: self.paths.intern_str(function),
                line: *line,
            });
        }
        frames.truncate(depth);
        self.paths.intern(&frames)
    }

    /// Whether [`Tracer::take_new`] would return any path.
    #[inline]
    #[must_use]
    pub fn has_new(&self) -> bool {
        self.paths.has_new()
    }

    /// The paths first seen since the last call of this function, in order of their ids. Their
    /// definitions are to be written.
    pub fn take_new(&mut self) -> impl Iterator<Item = PathId> + use<> {
        self.paths.take_new().map(PathId)
    }

    /// The frames of a path, innermost first.
    #[must_use]
    pub fn frames(&self, path: PathId) -> &[Frame] {
        self.paths.frames(path)
    }

    /// The path whose only frame is the entry of a function; empty if no module is at the
    /// address.
    #[must_use]
    pub fn function(&mut self, address: u64) -> PathId {
        let found = catch_unwind(AssertUnwindSafe(|| {
            let snapshot = self.up_to_date();
            let module = snapshot.find(address)?;
            Some(self.paths.intern(&[Frame::Native {
                module: module.id,
                offset: address.wrapping_sub(module.load_bias),
            }]))
        }));
        found.ok().flatten().unwrap_or(PathId::EMPTY)
    }

    /// A path without its innermost frame.
    #[must_use]
    pub fn caller(&mut self, path: PathId) -> PathId {
        let frames = self.paths.frames(path);
        let outer = frames.get(1..).unwrap_or(&[]).to_vec();
        self.paths.intern(&outer)
    }

    /// A path with names of regions added. Each name encloses the given number of the path's
    /// frames; outer names come first.
    #[must_use]
    pub fn with_names(&mut self, path: PathId, names: &[(usize, &str)]) -> PathId {
        let mut frames = self.paths.frames(path).to_vec();
        let file = self.paths.intern_str("");
        for &(at, name) in names {
            let function = self.paths.intern_str(name);
            let line = 0;
            let frame = Frame::Source {
                file,
                function,
                line,
            };
            frames.insert(at.min(frames.len()), frame);
        }
        self.paths.intern(&frames)
    }

    /// A path with another one around it: at most `depth` frames.
    #[must_use]
    pub fn joined(&mut self, path: PathId, around: PathId, depth: usize) -> PathId {
        let inner = self.paths.frames(path);
        let room = depth.saturating_sub(inner.len());
        let outer = self.paths.frames(around).iter().take(room);
        let frames: Vec<Frame> = inner.iter().chain(outer).copied().collect();
        self.paths.intern(&frames)
    }

    /// A path, for the tracer of another thread.
    #[must_use]
    pub fn carry(&self, path: PathId) -> Carried {
        let frames = self.paths.frames(path).to_vec();
        let texts = frames.iter().filter_map(|frame| match *frame {
            Frame::Native { .. } => None,
            Frame::Source { file, function, .. } => {
                Some([file, function].map(|text| self.paths.string(text).into()))
            }
        });
        let texts = texts.collect();
        Carried { frames, texts }
    }

    /// The path that another tracer gave.
    #[must_use]
    pub fn take_over(&mut self, carried: &Carried) -> PathId {
        let mut frames = carried.frames.clone();
        let mut texts = carried.texts.iter();
        for frame in &mut frames {
            if let Frame::Source { file, function, .. } = frame
                && let Some(own) = texts.next()
            {
                [*file, *function] = own.each_ref().map(|text| self.paths.intern_str(text));
            }
        }
        self.paths.intern(&frames)
    }

    /// The text of an interned string.
    #[must_use]
    pub fn string(&self, id: StrId) -> &str {
        self.paths.string(id)
    }

    /// The tracer's counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Makes sure that the remembered paths are valid.
    fn prepare(&mut self, depth: usize) {
        let noted = unloads();
        if self.unloads == noted && self.depth == depth && self.until_look != 0 {
            return;
        }
        if self.unloads != noted || self.depth != depth {
            self.forget();
        }
        if self.snapshot.is_some() {
            self.up_to_date();
        }
        (self.unloads, self.depth, self.until_look) = (noted, depth, LOOK_EVERY);
    }

    fn forget(&mut self) {
        self.stats.flushes += 1;
        self.cache.clear();
        self.unwinder.clear();
        if let Some(python) = &mut self.python {
            python.forget();
        }
    }

    #[cold]
    #[inline(never)]
    fn capture_slowly(&mut self, site: CallSite, depth: usize) -> PathId {
        // Nothing below is known to panic. If it does, the recorded program must not end.
        catch_unwind(AssertUnwindSafe(|| self.miss(site, depth))).unwrap_or(PathId::EMPTY)
    }

    fn miss(&mut self, site: CallSite, depth: usize) -> PathId {
        self.prepare(depth);
        let path = self.python_path(depth);
        if let Some(path) = path.or_else(|| self.remembered(&site, depth)) {
            return path;
        }
        self.stats.misses += 1;
        let had_python = self.python.is_some();
        let snapshot = self.up_to_date();
        if self.python.is_some() != had_python
            && let Some(path) = self.python_path(depth)
        {
            return path;
        }
        self.unwind(site, depth, &snapshot)
    }

    /// The path of the calling thread's Python frames, if it has any.
    fn python_path(&mut self, depth: usize) -> Option<PathId> {
        let python = self.python.as_mut()?;
        let chain = python.chain(depth)?;
        if let Some(path) = python.find_path(chain) {
            return Some(path);
        }
        self.stats.misses += 1;
        Some(python.resolve(chain, depth, &mut self.paths))
    }

    /// The current list of modules; forgets all that depends on an older one.
    fn up_to_date(&mut self) -> Arc<Snapshot> {
        let now = Counters::now();
        match &self.snapshot {
            Some(snapshot) if snapshot.counters == now => return Arc::clone(snapshot),
            Some(snapshot) if snapshot.counters.subs != now.subs => self.forget(),
            _ => self.unwinder.clear(),
        }
        let snapshot = Snapshot::current();
        if self.python.is_none() {
            self.python = Interpreter::find().map(Box::new);
            if self.python.is_some() {
                self.cache.clear();
            }
        }
        self.snapshot = Some(Arc::clone(&snapshot));
        snapshot
    }

    fn unwind(&mut self, site: CallSite, depth: usize, snapshot: &Snapshot) -> PathId {
        let unwound = &mut self.unwound;
        unwound.clear();
        let reader = self.stack.reader(site.sp);
        let mut extent = Extent::new(snapshot, depth);
        let is_short = self.stack.is_short(site.sp);
        if is_short {
            // The calling line is known without reading tables.
            unwound.frames.push(site.ra);
        } else {
            // SAFETY: `snapshot` was just compared with the linker's counters. The code that
            // live frames of this thread return to stays mapped.
            unsafe {
                self.unwinder
                    .unwind(site, snapshot, &reader, &mut extent, unwound);
            }
        }
        let path = self.intern(&extent, snapshot);
        let unwound = &self.unwound;
        let sp = if depth == 1 && unwound.checks.is_empty() && !is_short {
            ANY_SP
        } else {
            site.sp
        };
        self.cache.insert(site.ra, sp, &unwound.checks, path);
        path
    }

    /// The path of the frames just read.
    fn intern(&mut self, extent: &Extent<'_>, snapshot: &Snapshot) -> PathId {
        let kept = extent.kept(&self.unwound.frames);
        let mut frames = Vec::with_capacity(kept.len());
        for &ra in kept {
            let call = ra.wrapping_sub(1);
            // What runs regions of OpenMP is of interest as the innermost frame only.
            let found = snapshot.find(call);
            if let Some(module) = found.filter(|m| frames.is_empty() || !m.is_between()) {
                frames.push(Frame::Native {
                    module: module.id,
                    offset: call.wrapping_sub(module.load_bias),
                });
            }
        }
        frames.truncate(extent.depth);
        self.paths.intern(&frames)
    }
}
