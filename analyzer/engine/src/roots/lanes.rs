//! Lists by location.

use rayon::prelude::*;

/// A list by lane and key, and where the entries of each lane are.
pub fn by_lane<T: Copy + Sync, K: Ord>(
    list: &[T],
    lanes: usize,
    lane: impl FnMut(&T) -> u32,
    key: impl Fn(&T) -> K + Sync,
) -> (Vec<T>, Vec<(usize, usize)>) {
    let mut ends = vec![0; lanes];
    let of: Vec<u32> = list.iter().map(lane).collect();
    of.iter().for_each(|&lane| ends[lane as usize] += 1);
    let mut end = 0;
    let mut ranges = Vec::with_capacity(lanes);
    for count in &mut ends {
        ranges.push((end, end + *count));
        end += *count;
        *count = end - *count;
    }
    let mut order = vec![0u32; list.len()];
    for (at, &lane) in (0..).zip(&of) {
        let next = &mut ends[lane as usize];
        order[*next] = at;
        *next += 1;
    }
    let mut parts = Vec::with_capacity(lanes);
    let mut rest = &mut order[..];
    for (begin, end) in &ranges {
        let part;
        (part, rest) = rest.split_at_mut(end - begin);
        parts.push(part);
    }
    // Most entries come in order, or as a few lists that are: a stable sort merges these.
    let parts = parts.into_par_iter();
    parts.for_each(|part| part.sort_by_key(|at| key(&list[*at as usize])));
    (order.iter().map(|&at| list[at as usize]).collect(), ranges)
}
