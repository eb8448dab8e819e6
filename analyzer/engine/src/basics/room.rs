//! Growth of the many lists of an analysis.

/// Reserves room for `more` entries in a list of about `expected` entries in the end. Each of many
/// ranks has such a list, and most are short.
#[inline(always)]
pub fn make_room<T>(list: &mut Vec<T>, more: usize, expected: usize) {
    #[cold]
    #[inline(never)]
    fn reserve<T>(list: &mut Vec<T>, more: usize, expected: usize) {
        let expected = expected.saturating_sub(list.len());
        list.reserve_exact(more.max(expected).max(list.len() / 4 + 2));
    }
    if list.capacity() - list.len() < more {
        reserve(list, more, expected);
    }
}
