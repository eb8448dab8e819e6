//! What the kernel is told about pages of mapped files.

use std::ops::Range;

use crate::block::PAGE;

/// Tells the kernel that the whole pages of these mapped bytes will not be needed again soon.
pub(super) fn forget(bytes: &[u8]) {
    let start = (bytes.as_ptr() as usize).next_multiple_of(PAGE);
    let end = (bytes.as_ptr() as usize + bytes.len()) / PAGE * PAGE;
    advise(&(start..end), libc::MADV_DONTNEED);
}

/// Addresses of the pages that contain these mapped bytes.
pub(super) fn pages_around(bytes: &[u8]) -> Range<usize> {
    let start = bytes.as_ptr() as usize;
    start / PAGE * PAGE..(start + bytes.len()).next_multiple_of(PAGE)
}

/// Advises the kernel about pages of a mapped file that is only read.
pub(super) fn advise(pages: &Range<usize>, advice: libc::c_int) {
    if !pages.is_empty() {
        // SAFETY: whole pages of such a mapping. Whatever the advice, a touch reloads them from
        // the file. A refusal changes nothing.
        unsafe { libc::madvise(pages.start as *mut _, pages.len(), advice) };
    }
}
