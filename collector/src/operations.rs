//! Regions that an operation map names. All of their instances are recorded, however short:
//! instances of different ranks match only if none is missing.
//!
//! Functions are identified by their addresses. Their names come from the symbol tables of the
//! loaded files; each file is searched once.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use laggard_trace::operations::OperationMap;

static MAP: OnceLock<OperationMap> = OnceLock::new();
/// The number of unloaded libraries so far, and each searched library with its mapped
/// functions.
static MODULES: Mutex<(u32, Vec<Module>)> = Mutex::new((0, Vec::new()));

struct Module {
    base: usize,
    functions: Vec<u64>,
}

/// Reads the map, before recording begins.
///
/// # Errors
/// A description of the map's fault.
pub fn read(path: &Path) -> Result<(), String> {
    let map = OperationMap::read(path)?;
    MAP.get_or_init(|| map);
    Ok(())
}

/// Whether the map has a region of this name.
pub fn is_named(name: &[u8]) -> bool {
    let map = MAP.get();
    map.is_some_and(|map| map.get(&String::from_utf8_lossy(name)).is_some())
}

/// Whether the map has the function at this address.
pub fn is_function(address: u64) -> bool {
    let Some(map) = MAP.get().filter(|map| !map.is_empty()) else {
        return false;
    };
    // SAFETY: all zero is valid, and remains if dladdr fails.
    let info = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        match libc::dladdr(address as *const c_void, &mut info) {
            0 => return false,
            _ => info,
        }
    };
    let base = info.dli_fbase.addr();
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let unloads = laggard_callpath::unloads();
    if modules.0 != unloads {
        // Another library may have these addresses now.
        *modules = (unloads, Vec::new());
    }
    let at = match modules.1.iter().position(|module| module.base == base) {
        Some(at) => at,
        None => {
            let functions = functions(&file_of(&info), base as u64, map).unwrap_or_default();
            modules.1.push(Module { base, functions });
            modules.1.len() - 1
        }
    };
    modules.1[at].functions.binary_search(&address).is_ok()
}

/// The loaded file. The program's own name may belong to another file by now.
fn file_of(info: &libc::Dl_info) -> PathBuf {
    // SAFETY: reads a value that the kernel passed to the program.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    // SAFETY: all zero is valid; the name is a C string while the library is loaded.
    unsafe {
        let mut own: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(headers as *const c_void, &mut own) != 0;
        if is_known && own.dli_fbase == info.dli_fbase {
            return PathBuf::from("/proc/self/exe");
        }
        match info.dli_fname.is_null() {
            true => PathBuf::new(),
            false => {
                let name = CStr::from_ptr(info.dli_fname).to_bytes();
                PathBuf::from(std::ffi::OsStr::from_bytes(name))
            }
        }
    }
}

/// A file mapped for reading.
struct Mapped {
    start: *mut c_void,
    length: usize,
}

impl Mapped {
    fn open(path: &Path) -> Option<Mapped> {
        let file = File::open(path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping of a file that nobody writes to.
        let start = unsafe {
            let (access, kind) = (libc::PROT_READ, libc::MAP_PRIVATE);
            libc::mmap(
                std::ptr::null_mut(),
                length,
                access,
                kind,
                file.as_raw_fd(),
                0,
            )
        };
        (start != libc::MAP_FAILED).then_some(Mapped { start, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes are mapped while `self` lives. A loaded file does not shrink
        // while it runs.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `open`, and no longer used.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Addresses of the mapped functions in a loaded file, ascending.
fn functions(path: &Path, base: u64, map: &OperationMap) -> Option<Vec<u64>> {
    let file = Mapped::open(path)?;
    let mut found = Vec::new();
    symbols(file.bytes(), |offset, is_absolute, name| {
        if is_mapped(name, map) {
            let from = if is_absolute { 0 } else { base };
            found.push(from.wrapping_add(offset));
        }
    })?;
    found.sort_unstable();
    Some(found)
}

/// Whether the map names the function of this symbol, which the compiler mangled.
fn is_mapped(symbol: &[u8], map: &OperationMap) -> bool {
    let Ok(symbol) = std::str::from_utf8(symbol) else {
        return false;
    };
    let last = |name: &'_ str| name.rsplit("::").next().unwrap_or_default().to_owned();
    let mut names = map.entries().map(|(name, _)| last(name));
    // Demangling is slow, and most symbols cannot match.
    if !names.any(|name| symbol.contains(name.split('(').next().unwrap_or_default())) {
        return false;
    }
    let has = |name: &str| map.get(name).is_some();
    // Fortran: `name_`, and `__module_MOD_name`.
    let in_module = symbol.split_once("_MOD_").map(|(_, name)| name);
    has(symbol)
        || symbol.strip_suffix('_').is_some_and(has)
        || in_module.is_some_and(has)
        || demangled(symbol).is_some_and(|name| has(&name))
}

/// The demangled name of a C++ function, if the program has the C++ library.
fn demangled(symbol: &str) -> Option<String> {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    if !symbol.starts_with("_Z") {
        return None;
    }
    // SAFETY: a lookup by name, in the program's own scope.
    let function = unsafe { crate::lookup::real()(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if function.is_null() {
        // The program's next dlerror() must not report our failed lookup.
        // SAFETY: may be called at any time.
        unsafe { libc::dlerror() };
        return None;
    }
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: the function of the C++ ABI; it returns a C string to be freed.
    unsafe {
        let demangle: Demangle = std::mem::transmute(function);
        let mut status = 0;
        let none = std::ptr::null_mut();
        let name = demangle(symbol.as_ptr(), none, std::ptr::null_mut(), &mut status);
        if name.is_null() {
            return None;
        }
        let text = CStr::from_ptr(name).to_string_lossy().into_owned();
        libc::free(name.cast());
        Some(text)
    }
}

/// Offsets in an ELF header: section table, size of an entry, number of entries, file type.
const HEADER: (usize, usize, usize, usize) = (0x28, 0x3a, 0x3c, 0x10);
/// File type of an executable with fixed addresses.
const EXECUTABLE: u16 = 2;
/// Section type of the full symbol table.
const ALL_SYMBOLS: u32 = 2;
/// Size of a symbol, bytes.
const SYMBOL: usize = 24;
/// Symbol type of a function.
const FUNCTION: u8 = 2;

/// Calls `give` for each function in a file's symbol table, with its value, whether that is an
/// absolute address rather than an offset from the load address, and its name. `None` if the
/// file is not of this kind, or is truncated.
fn symbols(file: &[u8], mut give: impl FnMut(u64, bool, &[u8])) -> Option<()> {
    let u16_at = |at: usize| Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let place = |at: usize| usize::try_from(u64_at(at)?).ok();
    // ELF, 64 bit, little endian.
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, entry) = (place(HEADER.0)?, usize::from(u16_at(HEADER.1)?));
    let count = usize::from(u16_at(HEADER.2)?);
    let is_absolute = u16_at(HEADER.3)? == EXECUTABLE;
    let section = |number: usize| table.checked_add(number.checked_mul(entry)?);
    let body = |at: usize| {
        let from = place(at.checked_add(0x18)?)?;
        file.get(from..from.checked_add(place(at.checked_add(0x20)?)?)?)
    };
    for number in 0..count {
        let at = section(number)?;
        if u32_at(at.checked_add(4)?)? != ALL_SYMBOLS {
            continue;
        }
        let names = body(section(u32_at(at.checked_add(0x28)?)? as usize)?)?;
        for symbol in body(at)?.chunks_exact(SYMBOL) {
            let value = u64::from_le_bytes(symbol[8..16].try_into().ok()?);
            if symbol[4] & 15 == FUNCTION && value != 0 {
                let name = u32::from_le_bytes(symbol[..4].try_into().ok()?) as usize;
                let name = names.get(name..)?.split(|&byte| byte == 0).next()?;
                give(value, is_absolute, name);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> OperationMap {
        OperationMap::parse(text).unwrap()
    }

    #[test]
    fn symbols_are_names_as_compilers_write_them() {
        let map = map("\"meet\" = \"group_sync\"\n\"grid::swap\" = \"group_comm\"");
        for (symbol, expected) in [
            ("meet", true),
            ("meet_", true),
            ("__solver_MOD_meet", true),
            ("meeting", false),
            ("greet", false),
            ("swap", false),
        ] {
            assert_eq!(is_mapped(symbol.as_bytes(), &map), expected, "{symbol}");
        }
    }

    #[inline(never)]
    #[unsafe(no_mangle)]
    extern "C" fn laggard_test_of_symbols() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn functions_of_the_program_are_found() {
        let map = map("laggard_test_of_symbols = 'group_sync'");
        let address = laggard_test_of_symbols as *const c_void;
        // SAFETY: all zero is valid.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: only queries loaded files.
        assert_ne!(unsafe { libc::dladdr(address, &mut info) }, 0);
        let base = info.dli_fbase.addr() as u64;
        let found = functions(&file_of(&info), base, &map).unwrap();
        assert_eq!(found, [address.addr() as u64]);
        assert_eq!(laggard_test_of_symbols(), 7);
    }

    #[test]
    fn what_is_no_program_has_no_symbols() {
        let mut count = 0;
        assert!(symbols(b"", |_, _, _| count += 1).is_none());
        assert!(symbols(b"\x7fELF\x02\x01 and no more", |_, _, _| count += 1).is_none());
        let mut broken = std::fs::read("/proc/self/exe").unwrap();
        broken[HEADER.0 + 3] = 0xff;
        assert!(symbols(&broken, |_, _, _| count += 1).is_none());
        assert_eq!(count, 0);
    }
}
