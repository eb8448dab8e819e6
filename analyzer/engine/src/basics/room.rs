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

/// The entry at a place of such a list, which becomes as long as that takes.
#[inline]
pub fn at<T: Clone + Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    #[cold]
    #[inline(never)]
    fn grow<T: Clone + Default>(list: &mut Vec<T>, length: usize) {
        make_room(list, length - list.len(), 0);
        list.resize(length, T::default());
    }
    if list.len() <= place {
        grow(list, place + 1);
    }
    &mut list[place]
}
