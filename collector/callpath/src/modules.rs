//! The executables and libraries of the process.
//!
//! Ids are assigned once and never change their meaning. A [`Snapshot`] lists the modules
//! mapped at one time. Every tracer holds one and replaces it when the dynamic linker's
//! counters have changed.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of a [`Module`], process-wide, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// An executable or shared library as it is, or was, mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its number.
    pub id: ModuleId,
    /// Path of the file; for the executable the target of `/proc/self/exe`.
    pub path: PathBuf,
    /// Contents of the GNU build-id note; empty if there is none.
    pub build_id: Vec<u8>,
    /// Run-time address minus the virtual address in the file.
    pub load_bias: u64,
    /// Run-time addresses from the first to the last executable segment.
    pub text: Range<u64>,
    pub(crate) role: Role,
    /// Run-time addresses of `.eh_frame_hdr`; empty if there is none.
    pub(crate) eh_frame_hdr: Range<u64>,
    /// The loaded segment that holds `.eh_frame_hdr`, and `.eh_frame` with it.
    pub(crate) eh_segment: Range<u64>,
}

/// The role of a module in call paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// User code, and all libraries not named below.
    Program,
    /// Libraries of MPI, this collector, and the kernel's code: never the innermost frame.
    Mpi,
    /// The C library and the dynamic linker: never the outermost frame.
    System,
}

/// The modules mapped at one time.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) counters: Counters,
    /// Sorted by `text.start`.
    modules: Vec<Arc<Module>>,
}

/// Numbers of objects that the dynamic linker has added and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) adds: u64,
    pub(crate) subs: u64,
}

struct Registry {
    known: Vec<Arc<Module>>,
    current: Option<Arc<Snapshot>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    known: Vec::new(),
    current: None,
});

static UNLOADS: AtomicU32 = AtomicU32::new(0);

/// Notes that a library was unloaded. A remembered path must not be taken for one through a
/// library that is mapped at the same addresses later.
///
/// Call it in a `dlclose` wrapper, after the real function. Otherwise the tracer notices at the
/// next new path, or within a few thousand captures.
pub fn note_unload() {
    UNLOADS.fetch_add(1, Ordering::Release);
}

/// Threads that read the tables of modules whose code they may have left.
static READERS: AtomicU32 = AtomicU32::new(0);
/// Libraries that are being unloaded.
static UNLOADING: AtomicU32 = AtomicU32::new(0);
/// Longest time that unloading waits for readers; they need some microseconds.
const PATIENCE: Duration = Duration::from_millis(200);

/// Unloads a library with `unload`, while no tables of modules are read for earlier moments, and
/// notes it.
pub fn unloading<T>(unload: impl FnOnce() -> T) -> T {
    UNLOADING.fetch_add(1, Ordering::SeqCst);
    let begin = Instant::now();
    while READERS.load(Ordering::SeqCst) != 0 && begin.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    let result = unload();
    UNLOADING.fetch_sub(1, Ordering::SeqCst);
    note_unload();
    result
}

/// Keeps all modules mapped while `read` runs; `None` if one is being unloaded.
pub(crate) fn while_mapped<T>(read: impl FnOnce() -> T) -> Option<T> {
    READERS.fetch_add(1, Ordering::SeqCst);
    let result = match UNLOADING.load(Ordering::SeqCst) {
        0 => Some(read()),
        _ => None,
    };
    READERS.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Changes with each [`note_unload`]: facts about addresses may be wrong then.
#[inline]
#[must_use]
pub fn unloads() -> u32 {
    UNLOADS.load(Ordering::Acquire)
}

/// The module with the given number.
#[must_use]
pub fn module(id: ModuleId) -> Option<Arc<Module>> {
    registry().known.get(id.0 as usize).cloned()
}

/// Number of modules seen so far; their ids are `0..module_count()`.
#[must_use]
pub fn module_count() -> u32 {
    registry().known.len() as u32
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Snapshot {
    /// The modules mapped now.
    pub(crate) fn current() -> Arc<Self> {
        let counters = Counters::now();
        let mut registry = registry();
        match &registry.current {
            Some(current) if current.counters == counters => return Arc::clone(current),
            _ => {}
        }
        let (counters, found) = list_objects();
        let mut modules: Vec<_> = found
            .into_iter()
            .map(|object| register(&mut registry.known, object))
            .collect();
        modules.sort_by_key(|module| module.text.start);
        let snapshot = Arc::new(Self { counters, modules });
        registry.current = Some(Arc::clone(&snapshot));
        snapshot
    }

    /// The module whose code includes `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Arc<Module>> {
        let after = self
            .modules
            .partition_point(|module| module.text.start <= address);
        let module = self.modules.get(after.checked_sub(1)?)?;
        module.text.contains(&address).then_some(module)
    }
}

fn register(known: &mut Vec<Arc<Module>>, mut object: Module) -> Arc<Module> {
    for module in known.iter() {
        object.id = module.id;
        if **module == object {
            return Arc::clone(module);
        }
    }
    object.id = ModuleId(known.len() as u32);
    let module = Arc::new(object);
    known.push(Arc::clone(&module));
    module
}

impl Counters {
    pub(crate) fn now() -> Self {
        unsafe extern "C" fn first(
            info: *mut libc::dl_phdr_info,
            _size: usize,
            data: *mut c_void,
        ) -> c_int {
            // SAFETY: `data` is the `Counters` below, `info` the linker's.
            unsafe { *data.cast::<Counters>() = Counters::of(&*info) };
            1
        }
        let mut counters = Self::default();
        // SAFETY: `first` stays within the objects it is given.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counters).cast()) };
        counters
    }

    fn of(info: &libc::dl_phdr_info) -> Self {
        Self {
            adds: info.dlpi_adds,
            subs: info.dlpi_subs,
        }
    }
}

fn list_objects() -> (Counters, Vec<Module>) {
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the pair below, `info` the linker's. Program headers and the
        // segments they describe stay mapped during the call.
        unsafe {
            let (counters, found) = &mut *data.cast::<(Counters, Vec<Module>)>();
            *counters = Counters::of(&*info);
            found.extend(read_object(&*info));
        }
        0
    }
    let mut result = (Counters::default(), Vec::new());
    // SAFETY: `each` stays within the objects it is given.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut result).cast()) };
    result
}

/// # Safety
/// `info` is what `dl_iterate_phdr` passes, during that call.
unsafe fn read_object(info: &libc::dl_phdr_info) -> Option<Module> {
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: the linker's own table.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr;
    let range = |header: &libc::Elf64_Phdr| {
        let start = bias.wrapping_add(header.p_vaddr);
        start..start.saturating_add(header.p_memsz)
    };
    let loaded = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD;
    let (mut first, mut last) = (u64::MAX, 0);
    for header in headers.iter().filter(loaded) {
        if header.p_flags & libc::PF_X != 0 {
            let segment = range(header);
            (first, last) = (first.min(segment.start), last.max(segment.end));
        }
    }
    if first >= last {
        return None;
    }
    let mut eh_frame_hdr = 0..0;
    let mut build_id = Vec::new();
    for header in headers {
        match header.p_type {
            libc::PT_GNU_EH_FRAME => eh_frame_hdr = range(header),
            libc::PT_NOTE if build_id.is_empty() => {
                let notes = range(header);
                // SAFETY: notes are part of a loaded, readable segment.
                let bytes = unsafe { mapped_bytes(&notes) };
                build_id = find_build_id(bytes, header.p_align).unwrap_or_default();
            }
            _ => {}
        }
    }
    let eh_segment = headers
        .iter()
        .filter(loaded)
        .map(range)
        .find(|segment| segment.contains(&eh_frame_hdr.start))
        .unwrap_or(0..0);
    let name = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: a C string of the linker's.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let path = if name.is_empty() {
        std::fs::read_link("/proc/self/exe").unwrap_or_default()
    } else if name.contains(&b'/') {
        // The name may be relative, and the program may change its directory.
        let path = Path::new(OsStr::from_bytes(name));
        std::path::absolute(path).unwrap_or_else(|_| path.into())
    } else {
        PathBuf::from(OsStr::from_bytes(name))
    };
    Some(Module {
        id: ModuleId(0),
        role: Role::of(&path),
        path,
        build_id,
        load_bias: bias,
        text: first..last,
        eh_frame_hdr,
        eh_segment,
    })
}

/// # Safety
/// The range is mapped and readable, and stays so while the slice is used.
pub(crate) unsafe fn mapped_bytes<'a>(range: &Range<u64>) -> &'a [u8] {
    if range.is_empty() {
        return &[];
    }
    let length = (range.end - range.start) as usize;
    // SAFETY: as the caller states.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, length) }
}

/// The build id in a note segment. Each entry has a header of three words (sizes of name and
/// contents, type), the name and the contents, each padded.
fn find_build_id(mut notes: &[u8], align: u64) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (name_size, size) = (word(0)? as usize, word(4)? as usize);
        let contents = (12 + name_size).next_multiple_of(align);
        let found = notes.get(contents..contents + size)?;
        if word(8)? == NT_GNU_BUILD_ID && notes.get(12..16)? == b"GNU\0" {
            return Some(found.to_vec());
        }
        notes = notes.get((contents + size).next_multiple_of(align)..)?;
    }
}

impl Module {
    /// Whether its functions only stand between those of the program: this collector, and OpenMP
    /// runtimes.
    pub(crate) fn is_between(&self) -> bool {
        const BETWEEN: [&str; 4] = ["liblaggard", "libgomp", "libomp", "libiomp"];
        let name = self.path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| BETWEEN.iter().any(|prefix| name.starts_with(prefix)))
    }
}

impl Role {
    fn of(path: &Path) -> Self {
        const MPI: [&str; 9] = [
            "libmpi",
            "libpmpi",
            "libfmpich",
            "libopen-",
            "liboshmem",
            "mca_",
            "libmca_",
            "liblaggard",
            // The kernel's part of the C library: clocks.
            "linux-vdso",
        ];
        const SYSTEM: [&str; 6] = [
            "libc.so",
            "libc-2.",
            "libpthread",
            "ld-linux",
            "ld-2.",
            "ld-musl",
        ];
        let name = path
            .file_name()
            .map_or_else(Default::default, OsStr::to_string_lossy);
        let starts = |prefix: &&str| name.starts_with(*prefix);
        if MPI.iter().any(starts) {
            Self::Mpi
        } else if SYSTEM.iter().any(starts) {
            Self::System
        } else {
            Self::Program
        }
    }
}
