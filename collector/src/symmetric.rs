//! Symmetric memory: the segment and offset of an address.
//!
//! Variables of the executable and the symmetric heap exist on all PEs, at different addresses
//! but equal offsets in their segments. The executable's data segment is where the linker put
//! it. The heap is the mapping that contains the memory of `shmem_malloc`.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use laggard_trace::SymmetricAddress;

use crate::call::uncancelled;

/// A range of addresses and the base of its offsets.
struct Segment {
    number: u64,
    start: AtomicU64,
    end: AtomicU64,
    origin: AtomicU64,
}

impl Segment {
    const fn new(number: u64) -> Self {
        Segment {
            number,
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            origin: AtomicU64::new(0),
        }
    }

    fn set(&self, start: u64, end: u64, origin: u64) {
        self.origin.store(origin, Ordering::Relaxed);
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Release);
    }

    #[inline(always)]
    fn find(&self, address: u64) -> Option<u64> {
        let end = self.end.load(Ordering::Acquire);
        if address >= end || address < self.start.load(Ordering::Relaxed) {
            return None;
        }
        let offset = address.wrapping_sub(self.origin.load(Ordering::Relaxed));
        Some(SymmetricAddress::new(self.number, offset).0)
    }
}

static HEAP: Segment = Segment::new(SymmetricAddress::HEAP);
static DATA: Segment = Segment::new(SymmetricAddress::DATA);

/// The symmetric address, equal on all PEs for one variable; see [`SymmetricAddress`].
#[inline(always)]
pub fn address(address: usize) -> u64 {
    let address = address as u64;
    let found = HEAP.find(address).or_else(|| DATA.find(address));
    found.unwrap_or(SymmetricAddress::new(SymmetricAddress::UNKNOWN, address).0)
}

/// Locates the executable's data.
pub fn find_data() {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        _: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker passes a valid entry with the given number of headers.
        let (bias, headers) = unsafe {
            let info = &*info;
            let count = usize::from(info.dlpi_phnum);
            (
                info.dlpi_addr,
                std::slice::from_raw_parts(info.dlpi_phdr, count),
            )
        };
        let is_data =
            |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W != 0;
        let data = headers.iter().filter(is_data);
        let start = data.clone().map(|h| h.p_vaddr).min();
        let end = data.map(|h| h.p_vaddr.saturating_add(h.p_memsz)).max();
        if let (Some(start), Some(end)) = (start, end) {
            DATA.set(bias.wrapping_add(start), bias.wrapping_add(end), bias);
        }
        // The executable comes first, and nothing else is needed.
        1
    }
    // SAFETY: `visit` expects the data pointer passed here.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
}

/// Locates the heap from an address in it.
pub fn note_heap(address: u64) {
    if address == 0 || HEAP.end.load(Ordering::Relaxed) != 0 {
        return;
    }
    let maps = uncancelled(|| std::fs::read_to_string("/proc/self/maps")).unwrap_or_default();
    if let Some((start, end)) = mapping(&maps, address) {
        HEAP.set(start, end, start);
    }
}

/// The mapping in which an address lies.
fn mapping(maps: &str, address: u64) -> Option<(u64, u64)> {
    let number = |text| u64::from_str_radix(text, 16).ok();
    let ranges = maps.lines().filter_map(|line| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        Some((number(start)?, number(end)?))
    });
    ranges
        .into_iter()
        .find(|&(start, end)| (start..end).contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found() {
        let maps = "00400000-00452000 r-xp 00000000 08:02 1 /bin/a\n\
            ff000000-10f200000 rw-s 00000000 00:01 2 /SYSV (deleted)\nnonsense\n";
        assert_eq!(
            mapping(maps, 0xff00_00d0),
            Some((0xff00_0000, 0x1_0f20_0000))
        );
        assert_eq!(mapping(maps, 0x0045_2000), None);
    }

    #[test]
    fn offsets_count_from_the_origin() {
        let segment = Segment::new(SymmetricAddress::DATA);
        assert_eq!(segment.find(0), None);
        segment.set(0x5000, 0x6000, 0x1000);
        assert_eq!(segment.find(0x5010), Some(2 << 48 | 0x4010));
        assert_eq!(segment.find(0x6000), None);
    }

    #[test]
    fn the_executables_data_is_found() {
        static VARIABLE: AtomicU64 = AtomicU64::new(1);
        find_data();
        let found = SymmetricAddress(address((&raw const VARIABLE) as usize));
        assert_eq!(found.segment(), SymmetricAddress::DATA);
        assert_eq!(
            SymmetricAddress(address(16)).segment(),
            SymmetricAddress::UNKNOWN
        );
    }
}
