//! Where waiting is: by ranks and time.

use laggard_comm::Job;
use serde::{Deserialize, Serialize};

use crate::roots::load::Bin;

/// Most classes of successive ranks, and the parts of a run.
const CLASSES: usize = 256;
pub const PARTS: usize = 100;

/// Waiting by class of ranks and part of the run.
pub struct WaitMap {
    /// All ranks, and successive ones of a class.
    all: usize,
    ranks: usize,
    /// ns
    width: i64,
    /// By class: waiting by part, ns.
    waited: Vec<u64>,
    /// By class: its locations.
    locations: Vec<u64>,
    /// The part of the last time.
    last: Bin,
}

impl WaitMap {
    /// Of a run of so many ranks, in parts of this `width`, ns.
    pub fn new(ranks: usize, width: i64) -> WaitMap {
        let of_class = ranks.div_ceil(CLASSES).max(1);
        let classes = ranks.div_ceil(of_class);
        WaitMap {
            all: ranks,
            ranks: of_class,
            width,
            waited: vec![0; classes * PARTS],
            locations: vec![0; classes],
            last: Bin::default(),
        }
    }

    /// A rank has one more location.
    pub fn count(&mut self, rank: u32) {
        if let Some(count) = self.locations.get_mut(rank as usize / self.ranks) {
            *count += 1;
        }
    }

    /// A location of a rank waited between two moments, ns.
    pub fn add(&mut self, rank: u32, from: i64, until: i64) {
        let first = rank as usize / self.ranks * PARTS;
        let Some(parts) = self.waited.get_mut(first..first + PARTS) else {
            return;
        };
        let mut from = from.max(0);
        while from < until {
            let part = self.last.of(self.width, PARTS, from);
            let end = until.min(self.last.end());
            parts[part] += (end - from) as u64;
            from = end;
        }
    }

    /// The map of all agents, folded. Collective.
    pub fn gather(mut self, job: &dyn Job) -> Folded {
        job.reduce_sum(&mut self.waited);
        job.reduce_sum(&mut self.locations);
        let width = self.width as f64;
        // A wait for several is told with the end of each, and its parts with each may overlap: what
        // does not fit was before.
        for (waited, locations) in self.waited.chunks_mut(PARTS).zip(&self.locations) {
            let all = locations * self.width as u64;
            for part in (1..PARTS).rev() {
                let over = waited[part].saturating_sub(all);
                waited[part] -= over;
                waited[part - 1] += over;
            }
        }
        let rows = self.waited.chunks(PARTS).zip(&self.locations);
        let rows = rows.zip(0u32..).map(|((waited, &locations), class)| {
            let all = (locations.max(1) as f64) * width;
            let first = class as usize * self.ranks;
            let last = (first + self.ranks).min(self.all) - 1;
            Row {
                ranks: vec![(first as u32, last as u32)],
                locations,
                waited: waited.iter().map(|&time| time as f64 / all).collect(),
            }
        });
        Folded {
            width: self.width,
            rows: fold(rows.filter(|row| row.locations > 0).collect()),
        }
    }
}

/// The map with one row for ranks that wait alike.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Folded {
    /// Length of a part, ns.
    pub width: i64,
    pub rows: Vec<Row>,
}

/// Ranks that wait alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// First and last of successive ranks.
    pub ranks: Vec<(u32, u32)>,
    pub locations: u64,
    /// By part: the share of their time in which they waited.
    pub waited: Vec<f64>,
}

/// Most rows.
const ROWS: usize = 64;

/// Makes one row of the two that are most alike until few are left. What is like an earlier one
/// goes there. (Agglomerative clustering with the centroids' squared distance, weighted as Ward
/// does.)
fn fold(mut rows: Vec<Row>) -> Vec<Row> {
    let distance = |a: &Row, b: &Row| -> f64 {
        let squares = a
            .waited
            .iter()
            .zip(&b.waited)
            .map(|(a, b)| (a - b) * (a - b));
        let (a, b) = (a.locations as f64, b.locations as f64);
        squares.sum::<f64>() * a * b / (a + b)
    };
    // By row: the later row that is most like it.
    let nearest = |rows: &[Row], at: usize| {
        let later = (at + 1..rows.len()).map(|other| (distance(&rows[at], &rows[other]), other));
        later.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    };
    let mut near: Vec<_> = match rows.len() > ROWS {
        true => (0..rows.len()).map(|at| nearest(&rows, at)).collect(),
        false => return rows,
    };
    while rows.len() > ROWS {
        let pairs = near.iter().enumerate();
        let pairs =
            pairs.filter_map(|(at, near)| near.map(|(distance, other)| (distance, at, other)));
        let Some((_, at, other)) = pairs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        else {
            break;
        };
        let gone = rows.remove(other);
        near.remove(other);
        let row = &mut rows[at];
        let (own, more) = (row.locations as f64, gone.locations as f64);
        for (share, other) in row.waited.iter_mut().zip(&gone.waited) {
            *share = (*share * own + other * more) / (own + more);
        }
        row.locations += gone.locations;
        row.ranks.extend(gone.ranks);
        for before in 0..near.len() {
            let touched = near[before].is_some_and(|(_, near)| near == at || near == other);
            if touched || before == at {
                near[before] = nearest(&rows, before);
                continue;
            }
            if let Some((_, near)) = &mut near[before]
                && *near > other
            {
                *near -= 1;
            }
            if before < at {
                let own = distance(&rows[before], &rows[at]);
                if near[before].is_none_or(|(least, _)| own < least) {
                    near[before] = Some((own, at));
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use laggard_comm::Serial;

    use super::*;

    #[test]
    fn waits_are_where_they_were() {
        let mut map = WaitMap::new(2, 10);
        map.count(0);
        map.count(1);
        map.add(1, 5, 25);
        map.add(1, 995, 1000);
        let folded = map.gather(&Serial);
        assert_eq!((folded.width, folded.rows.len()), (10, 2));
        let shares = &folded.rows[1].waited;
        assert_eq!(shares[..4], [0.5, 1.0, 0.5, 0.0]);
        assert_eq!(shares[99], 0.5);
        assert!(folded.rows[0].waited.iter().all(|share| *share == 0.0));
    }

    /// A rank waits from 0 to 20 ns, for one that came at 10 and one that came at 20: 5 and 15 ns.
    #[test]
    fn no_rank_waits_longer_than_there_is_time() {
        let mut map = WaitMap::new(1, 4);
        map.count(0);
        map.add(0, 5, 10);
        map.add(0, 5, 20);
        let shares = &map.gather(&Serial).rows[0].waited;
        assert_eq!(shares[..6], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    }

    /// Each eighth rank waits in the second half of the run, and one in the first.
    #[test]
    fn ranks_that_wait_alike_are_a_row() {
        let ranks = 256u32;
        let mut map = WaitMap::new(ranks as usize, 10);
        for rank in 0..ranks {
            map.count(rank);
            // Some noise, so that no two are the same.
            map.add(rank, 0, i64::from(rank % 7));
            match rank {
                100 => map.add(rank, 0, 500),
                _ if rank % 8 == 3 => map.add(rank, 500, 1000),
                _ => {}
            }
        }
        let rows = map.gather(&Serial).rows;
        assert_eq!(rows.len(), ROWS);
        let all: u64 = rows.iter().map(|row| row.locations).sum();
        assert_eq!(all, u64::from(ranks));
        for row in &rows {
            let ranks = row.ranks.iter().flat_map(|(first, last)| *first..=*last);
            let kinds: Vec<u32> = ranks
                .map(|rank| {
                    if rank == 100 {
                        2
                    } else {
                        u32::from(rank % 8 == 3)
                    }
                })
                .collect();
            assert!(
                kinds.iter().all(|kind| *kind == kinds[0]),
                "{:?}",
                row.ranks
            );
        }
    }

    #[test]
    fn thousands_of_ranks_are_classes() {
        let mut map = WaitMap::new(65_536, 10);
        (0..65_536).for_each(|rank| map.count(rank));
        map.add(65_535, 0, 1000);
        let rows = map.gather(&Serial).rows;
        let last = rows.iter().find(|row| row.waited[0] > 0.0).unwrap();
        assert_eq!(last.ranks, [(65_280, 65_535)]);
        assert_eq!(last.waited[0], 1.0 / 256.0);
    }
}
