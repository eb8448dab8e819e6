//! Room in lists, of which there are many.

/// Makes room for so many more in a list of which it is known how long it will be, about: there
/// is such a list for each of many ranks, most of them short.
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
