//! Libraries whose locks are not recorded.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lookup;

/// Code whose locks are its own affair: the collector's, that of an allocator that is not the C library's, of OpenMP runtimes,
/// which tell of their waits otherwise, and of MPI libraries. Begin and end.
static LEFT_OUT: [[AtomicUsize; 2]; 256] = [const { [const { AtomicUsize::new(0) }; 2] }; 256];

/// The collector: begin and end.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// File name prefixes of such libraries.
const LIBRARIES: [&str; 13] = [
    "liblaggard",
    "libgomp",
    "libomp",
    "libiomp",
    "libmpi",
    "libopen-",
    "liboshmem",
    "libmca_",
    "mca_",
    "libpmix",
    "libevent",
    "libuc",
    "libfabric",
];

/// Finds the libraries whose locks are left out, as far as they are loaded.
pub fn leave_out() {
    let mut found = Found {
        malloc: malloc().addr(),
        count: 0,
    };
    // SAFETY: `visit` expects the data pointer passed here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
}

/// The allocator. A program that is not position-independent and takes the function's address has a stub that stands
/// for it everywhere: the function itself is in a library then.
fn malloc() -> *mut c_void {
    const SYMBOL: c_int = 1;
    let name = c"malloc".as_ptr();
    // SAFETY: lookups by name, and by address; the linker's symbol lives as long as what it is of.
    unsafe {
        let found = lookup::real()(libc::RTLD_DEFAULT, name);
        let (mut of, mut symbol) = (MaybeUninit::uninit(), ptr::null_mut());
        let is_known = libc::dladdr1(found, of.as_mut_ptr(), &mut symbol, SYMBOL) != 0;
        let symbol = symbol.cast::<libc::Elf64_Sym>();
        // Section 0: defined elsewhere.
        match is_known && !symbol.is_null() && (*symbol).st_shndx == 0 {
            true => lookup::real()(libc::RTLD_NEXT, name),
            false => found,
        }
    }
}

/// What a search of the loaded libraries knows.
struct Found {
    malloc: usize,
    count: usize,
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the linker passes a valid entry, and `found` is that of `leave_out`.
    unsafe {
        let found = &mut *found.cast::<Found>();
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
        let loaded = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD);
        let begin = |header: &libc::Elf64_Phdr| ((*info).dlpi_addr + header.p_vaddr) as usize;
        let start = loaded.clone().map(begin).min().unwrap_or(0);
        let end = loaded
            .map(|header| begin(header) + header.p_memsz as usize)
            .max();
        let end = end.unwrap_or(0);
        let path = match (*info).dlpi_name.is_null() {
            true => &b""[..],
            false => CStr::from_ptr((*info).dlpi_name).to_bytes(),
        };
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let is_library = LIBRARIES
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()));
        let has_malloc = (start..end).contains(&found.malloc) && !name.starts_with(b"libc.so");
        if (start..end).contains(&(leave_out as *const () as usize)) {
            OWN[0].store(start, Ordering::Relaxed);
            OWN[1].store(end, Ordering::Relaxed);
        }
        if is_library || has_malloc {
            let Some([first, last]) = LEFT_OUT.get(found.count) else {
                return 1;
            };
            first.store(start, Ordering::Relaxed);
            last.store(end, Ordering::Relaxed);
            found.count += 1;
        }
    }
    0
}

/// Whether this is an address of the collector.
pub fn is_own(address: u64) -> bool {
    let [first, last] = [0, 1].map(|at| OWN[at].load(Ordering::Relaxed));
    (first..last).contains(&(address as usize))
}

/// Whether the caller at this address is left out.
pub fn is_left_out(address: u64) -> bool {
    library_at(address).is_some()
}

/// Begin and end of the library at this address, if it is left out.
pub fn library_at(address: u64) -> Option<Range<usize>> {
    let ranges = LEFT_OUT.iter().map(|range| {
        let [first, last] = [0, 1].map(|at| range[at].load(Ordering::Relaxed));
        first..last
    });
    let mut known = ranges.take_while(|range| range.end > 0);
    known.find(|range| range.contains(&(address as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_that_are_left_out_are_found() {
        leave_out();
        // The allocator of tests is the C library's.
        assert!(!is_left_out(leave_out as *const () as u64));
        assert!(!is_left_out(0));
    }
}
