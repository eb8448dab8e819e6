//! The critical path of a replay: from the last end of the run back, on a location until it waited,
//! and on with what it waited for.
//!
//! A first replay notes its waits ([`Jumps`]). Followed back, they say when the path is on which
//! location; a second replay adds up what that does then ([`Along`]).

use anyhow::Result;
use rustc_hash::FxHashMap;

use crate::reader::Site;
use crate::slabs::Slabs;

/// Waits, by when they ended.
pub struct Jumps(Slabs);

impl Jumps {
    /// `like` has the borders of slabs of about the same times.
    pub fn new(like: &Slabs) -> Jumps {
        Jumps(like.empty())
    }

    /// A location waited until this time, ns, for another one.
    pub fn add(&mut self, time: i64, location: u32, late: u32) {
        let row = [time as u64, location.into(), late.into(), 0, 0];
        self.0.put(time, row);
    }

    /// When the path is on which location, from its end on: location, begin and end, ns.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn follow(&mut self, (mut location, mut end): (u32, i64)) -> Result<Vec<(u32, i64, i64)>> {
        let mut path = Vec::new();
        for slab in (0..self.0.ends().len()).rev() {
            let mut rows = Vec::new();
            self.0.read(slab, |[time, at, late, ..]| {
                rows.push((time as i64, at as u32, late as u32));
            })?;
            rows.sort_by_key(|(time, ..)| *time);
            for (time, at, late) in rows.into_iter().rev() {
                if at == location && time <= end {
                    path.push((location, time, end));
                    (location, end) = (late, time);
                }
            }
        }
        path.push((location, i64::MIN, end));
        Ok(path)
    }
}

/// A location in a call, or between two: the one before, and the call.
pub type Activity = (u32, Option<Site>, Site);

/// Sums of activities along the path, by column.
pub struct Along {
    columns: usize,
    /// By column and location: when the path is there, ascending; 16 bytes for each jump.
    parts: Vec<Vec<(i64, i64)>>,
    /// The parts that are over.
    over: Vec<usize>,
    sums: FxHashMap<Activity, Vec<i64>>,
}

impl Along {
    pub fn new(columns: usize, locations: usize) -> Along {
        Along {
            columns,
            parts: vec![Vec::new(); columns * locations],
            over: vec![0; columns * locations],
            sums: FxHashMap::default(),
        }
    }

    /// Sets the path of a column.
    pub fn set(&mut self, column: usize, path: Vec<(u32, i64, i64)>) {
        for (location, begin, end) in path.into_iter().rev() {
            self.parts[location as usize * self.columns + column].push((begin, end));
        }
    }

    /// A location does something until the times of `now`, which takes `length` ns.
    #[inline]
    pub fn add(&mut self, column: usize, activity: Activity, (from, to): (i64, i64)) {
        let at = activity.0 as usize * self.columns + column;
        let (parts, over) = (&self.parts[at], &mut self.over[at]);
        let mut sum = 0;
        while let Some(&(begin, end)) = parts.get(*over) {
            sum += (end.min(to) - begin.max(from)).max(0);
            if end > to {
                break;
            }
            *over += 1;
        }
        if sum > 0 {
            let sums = self.sums.entry(activity);
            sums.or_insert_with(|| vec![0; self.columns])[column] += sum;
        }
    }

    /// The sums of a column, ns.
    pub fn sums(&self, column: usize) -> Vec<(Activity, i64)> {
        let all = self
            .sums
            .iter()
            .map(|(activity, sums)| (*activity, sums[column]));
        all.filter(|(_, sum)| *sum > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_goes_back_from_wait_to_wait() {
        let mut jumps = Jumps::new(&Slabs::new(&[10, 20]));
        // Location 1 waits for 0 until 5, 2 for 1 until 15, and 0 for 2 until 25 and 35.
        for (time, location, late) in [(5, 1, 0), (25, 0, 2), (15, 2, 1), (35, 0, 2)] {
            jumps.add(time, location, late);
        }
        let path = jumps.follow((0, 30)).unwrap();
        let begin = (0, i64::MIN, 5);
        assert_eq!(path, [(0, 25, 30), (2, 15, 25), (1, 5, 15), begin]);
        let mut along = Along::new(1, 3);
        along.set(0, path);
        let (first, next) = ((0, Some((1, 1)), (2, 1)), (0, None, (2, 1)));
        along.add(0, first, (0, 4));
        along.add(0, next, (4, 9));
        along.add(0, first, (9, 28));
        along.add(0, next, (28, 40));
        let mut sums = along.sums(0);
        sums.sort_unstable();
        assert_eq!(sums, [(next, 1 + 2), (first, 4 + 3)]);
    }
}
