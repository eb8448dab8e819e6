//! Regions that an operation map names: all of their instances are recorded, however short, since
//! ranks' instances can be matched only where none is missing.
//!
//! Functions are told by their addresses. Their names stand in the symbol tables of the files
//! that they come from, each of which is looked through once.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use laggard_trace::operations::OperationMap;

static MAP: OnceLock<OperationMap> = OnceLock::new();
/// Where each library is loaded whose functions are known, and those that the map names.
static MODULES: Mutex<(u32, Vec<Module>)> = Mutex::new((0, Vec::new()));

struct Module {
    base: usize,
    functions: Vec<u64>,
}

/// Reads the map, before anything is recorded.
///
/// # Errors
/// What is wrong with it.
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

/// Whether the map has the function that begins here.
pub fn is_function(address: u64) -> bool {
    let Some(map) = MAP.get().filter(|map| !map.is_empty()) else {
        return false;
    };
    // SAFETY: all zero is valid, and what is left where dladdr fails.
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
        // Another library may be there now.
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

/// The file that is loaded here. The program's own name may be that of another file by now.
fn file_of(info: &libc::Dl_info) -> PathBuf {
    // SAFETY: a look at what the kernel passed to the program.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    // SAFETY: all zero is valid; the name is a string for as long as the library is loaded.
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

/// A file in memory, while it is read.
struct Mapped {
    start: *mut c_void,
    length: usize,
}

impl Mapped {
    fn open(path: &Path) -> Option<Mapped> {
        let file = File::open(path).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping of a file, which nobody writes to.
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
        // SAFETY: so many bytes are mapped, for as long as `self` lives. A loaded file is not
        // made shorter while it runs.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `open`, and used no more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Addresses of the functions of a loaded file that the map names, ascending.
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

/// Whether the map has a function with this symbol, as compilers make them of names.
fn is_mapped(symbol: &[u8], map: &OperationMap) -> bool {
    let Ok(symbol) = std::str::from_utf8(symbol) else {
        return false;
    };
    let last = |name: &'_ str| name.rsplit("::").next().unwrap_or_default().to_owned();
    let mut names = map.entries().map(|(name, _)| last(name));
    // Most are none, and demangling takes long.
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

/// The name of a function of C++, where the program has the library that knows it.
fn demangled(symbol: &str) -> Option<String> {
    type Demangle =
        unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    if !symbol.starts_with("_Z") {
        return None;
    }
    // SAFETY: a lookup by name, where the program itself would find it.
    let function = unsafe { crate::lookup::real()(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr()) };
    if function.is_null() {
        // A failed lookup of ours is not what the program's next dlerror() is about.
        // SAFETY: may be called at any time.
        unsafe { libc::dlerror() };
        return None;
    }
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: the function of the C++ ABI of this type; what it gives is a string to be freed.
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

/// Offset of the table of sections in the header of a file, size of an entry, their number; type
/// of the file.
const HEADER: (usize, usize, usize, usize) = (0x28, 0x3a, 0x3c, 0x10);
/// A file that is loaded where it says.
const EXECUTABLE: u16 = 2;
/// A section that is a table of all symbols.
const ALL_SYMBOLS: u32 = 2;
/// Bytes of a symbol.
const SYMBOL: usize = 24;
/// A symbol that is a function.
const FUNCTION: u8 = 2;

/// Gives the functions in a file's table of symbols: where, whether that is an address or an
/// offset from where it is loaded, and the name. `None` if it is no such file, or ends early.
fn symbols(file: &[u8], mut give: impl FnMut(u64, bool, &[u8])) -> Option<()> {
    let u16_at = |at: usize| Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let place = |at: usize| usize::try_from(u64_at(at)?).ok();
    // Of 64 bits, the least significant byte first.
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
        // SAFETY: a look at what is loaded.
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
