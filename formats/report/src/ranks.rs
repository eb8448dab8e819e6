//! Sets of ranks, and their notation for users.

use serde::{Deserialize, Serialize};

/// Ranks in any order as ranges: `0-3,7`.
pub fn rank_ranges(ranks: impl IntoIterator<Item = u32>) -> String {
    ranges(ranks)
        .into_iter()
        .map(text)
        .collect::<Vec<_>>()
        .join(",")
}

/// Ranks as a phrase with at most `most` ranges: `rank 7`, `ranks 0-3, 7 and 12 more`.
pub fn list_of_ranks(ranks: impl IntoIterator<Item = u32>, most: usize) -> String {
    phrase(&ranges(ranks), most)
}

/// As [`list_of_ranks`], for a set of ranges such as `0-3,7`; malformed ranges are left out.
pub(crate) fn list_of_ranges(set: &str, most: usize) -> String {
    phrase(&parsed(set), most)
}

/// `threads 1-3 of rank 0`: these `ranks` with the numbers of their threads, if any are told.
pub fn with_threads(threads: &str, ranks: String, most: usize) -> String {
    match threads.is_empty() {
        true => ranks,
        false => {
            let threads = list_of_ranges(threads, most).replacen("rank", "thread", 1);
            format!("{threads} of {ranks}")
        }
    }
}

/// Whether a set of ranges such as `0-3,7` has a rank; malformed ranges are left out.
pub fn has_rank(set: &str, rank: u32) -> bool {
    let ranges = parsed(set).into_iter();
    ranges
        .map(|(first, last)| first..=last)
        .any(|range| range.contains(&rank))
}

fn parsed(set: &str) -> Vec<(u32, u32)> {
    let parse = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range: (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (range.0 <= range.1).then_some(range)
    };
    set.split(',').filter_map(parse).collect()
}

fn phrase(ranges: &[(u32, u32)], most: usize) -> String {
    let count =
        |ranges: &[(u32, u32)]| -> u64 { ranges.iter().map(|r| u64::from(r.1 - r.0) + 1).sum() };
    let shown = ranges.len().min(most.max(1));
    let mut phrase = match count(ranges) {
        0 => return "no rank".to_owned(),
        1 => "rank ".to_owned(),
        _ => "ranks ".to_owned(),
    };
    let texts: Vec<String> = ranges[..shown].iter().copied().map(text).collect();
    phrase.push_str(&texts.join(", "));
    let hidden = count(&ranges[shown..]);
    if hidden > 0 {
        phrase.push_str(&format!(" and {hidden} more"));
    }
    phrase
}

fn text((first, last): (u32, u32)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// First and last of each run of consecutive ranks.
fn ranges(ranks: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ranks: Vec<u32> = ranks.into_iter().collect();
    ranks.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some(range) if rank <= range.1.saturating_add(1) => range.1 = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    ranges
}

/// A set of ranks, as ascending ranges that do not touch: first and last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, u32)>")]
pub struct RankSet(Vec<(u32, u32)>);

impl TryFrom<Vec<(u32, u32)>> for RankSet {
    type Error = &'static str;

    fn try_from(ranges: Vec<(u32, u32)>) -> Result<RankSet, &'static str> {
        let are_ranges = ranges.iter().all(|(first, last)| first <= last);
        let mut pairs = ranges.windows(2);
        match are_ranges && pairs.all(|pair| u64::from(pair[0].1) + 1 < pair[1].0.into()) {
            true => Ok(RankSet(ranges)),
            false => Err("these are no ascending ranges"),
        }
    }
}

impl RankSet {
    /// The set of `ranks`, in any order.
    pub fn new(ranks: impl IntoIterator<Item = u32>) -> RankSet {
        let single = ranks.into_iter().map(|rank| (rank, rank));
        RankSet::of_ranges(single.collect())
    }

    fn of_ranges(mut ranges: Vec<(u32, u32)>) -> RankSet {
        ranges.sort_unstable();
        let mut set: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match set.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => set.push((first, last)),
            }
        }
        RankSet(set)
    }

    /// Adds another set.
    pub fn merge(&mut self, other: RankSet) {
        let mut ranges = std::mem::take(&mut self.0);
        ranges.extend(other.0);
        *self = RankSet::of_ranges(ranges);
    }

    /// Number of ranks.
    pub fn len(&self) -> u64 {
        let sizes = self
            .0
            .iter()
            .map(|&(first, last)| u64::from(last - first) + 1);
        sizes.sum()
    }

    /// Whether a rank is in it.
    pub fn contains(&self, rank: u32) -> bool {
        let after = self.0.partition_point(|&(first, _)| first <= rank);
        after > 0 && rank <= self.0[after - 1].1
    }

    /// The largest of them.
    pub fn max(&self) -> Option<u32> {
        self.0.last().map(|range| range.1)
    }

    /// Whether it has no rank.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All ranks, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// The rank at a position, ascending.
    pub fn nth(&self, mut position: u64) -> Option<u32> {
        for &(first, last) in &self.0 {
            let count = u64::from(last - first) + 1;
            match position < count {
                true => return Some(first + position as u32),
                false => position -= count,
            }
        }
        None
    }

    /// The position of a rank.
    pub fn position(&self, rank: u32) -> Option<u64> {
        let mut before = 0;
        for &(first, last) in &self.0 {
            match (first..=last).contains(&rank) {
                true => return Some(before + u64::from(rank - first)),
                false => before += u64::from(last - first) + 1,
            }
        }
        None
    }
}

impl FromIterator<u32> for RankSet {
    fn from_iter<T: IntoIterator<Item = u32>>(ranks: T) -> RankSet {
        RankSet::new(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ranks_are_ranges() {
        assert_eq!(rank_ranges([7, 0, 1, 3, 2]), "0-3,7");
        assert_eq!(rank_ranges([5, 5]), "5");
        assert_eq!(rank_ranges([]), "");
        let known = [0, 2, 3, 4, 7, 8].map(|rank| has_rank("0-3,x,7", rank));
        assert_eq!(known, [true, true, true, false, true, false]);
        assert!(!has_rank("", 0));
        assert_eq!(
            rank_ranges([u32::MAX, u32::MAX - 1]),
            "4294967294-4294967295"
        );
    }

    #[test]
    fn sets_have_positions() {
        let set = RankSet::new([9, 3, 4, 5, 3]);
        assert_eq!(
            (0..5).map(|at| set.nth(at)).collect::<Vec<_>>(),
            [Some(3), Some(4), Some(5), Some(9), None]
        );
        assert_eq!(
            [3, 5, 9, 8].map(|rank| set.position(rank)),
            [Some(0), Some(2), Some(3), None]
        );
        assert_eq!((set.max(), RankSet::default().max()), (Some(9), None));
    }

    #[test]
    fn what_others_send_is_a_set() {
        let read = |text: &str| serde_json::from_str::<RankSet>(text).ok();
        assert_eq!(read("[[3,5],[9,9]]"), Some(RankSet::new([9, 3, 4, 5])));
        for odd in ["[[5,3]]", "[[3,5],[6,6]]", "[[9,9],[3,5]]", "[[3,5],[4,9]]"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn phrases_are_bounded() {
        assert_eq!(list_of_ranks([3], 2), "rank 3");
        assert_eq!(list_of_ranks([0, 1, 5], 2), "ranks 0-1, 5");
        assert_eq!(list_of_ranks([0, 1, 5, 7, 9], 2), "ranks 0-1, 5 and 2 more");
        assert_eq!(list_of_ranks([], 2), "no rank");
        assert_eq!(list_of_ranges("0-3,7", 3), "ranks 0-3, 7");
        assert_eq!(list_of_ranges("x,2-1,5", 3), "rank 5");
        assert_eq!(
            list_of_ranges("0-4294967295,0-4294967295", 1),
            "ranks 0-4294967295 and 4294967296 more"
        );
    }
}
