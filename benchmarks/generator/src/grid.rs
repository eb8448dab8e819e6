//! Ranks arranged in two or three dimensions, and the communicators of rows and columns.

use laggard_trace::WORLD;

use super::op::Among;

/// Ids of communicators below this are reserved.
const FIRST_ID: u64 = 1 << 32;

/// A grid of ranks; the last dimension varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    sizes: Vec<u32>,
    is_periodic: bool,
}

impl Grid {
    /// As square as the number of ranks allows.
    pub fn new(ranks: u32, dimensions: usize, is_periodic: bool) -> Grid {
        let mut sizes = vec![1; dimensions];
        let mut factors = Vec::new();
        let (mut rest, mut factor) = (ranks, 2);
        while factor * factor <= rest {
            while rest % factor == 0 {
                factors.push(factor);
                rest /= factor;
            }
            factor += 1;
        }
        if rest > 1 {
            factors.push(rest);
        }
        // The largest factor always to the smallest dimension.
        for factor in factors.into_iter().rev() {
            if let Some(size) = sizes.iter_mut().min() {
                *size *= factor;
            }
        }
        sizes.sort_unstable();
        Grid { sizes, is_periodic }
    }

    /// Ranks along each dimension.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// From one rank to the next in a dimension.
    fn stride(&self, dimension: usize) -> u32 {
        self.sizes[dimension + 1..].iter().product()
    }

    /// The rank's place in a dimension.
    pub fn position(&self, rank: u32, dimension: usize) -> u32 {
        rank / self.stride(dimension) % self.sizes[dimension]
    }

    /// The rank before (`false`) or after in a dimension; `None` beyond a border.
    pub fn neighbour(&self, rank: u32, dimension: usize, after: bool) -> Option<u32> {
        let (size, at) = (self.sizes[dimension], self.position(rank, dimension));
        let to = match (at, after) {
            (0, false) => self.is_periodic.then_some(size - 1)?,
            (at, true) if at == size - 1 => self.is_periodic.then_some(0)?,
            (at, true) => at + 1,
            (at, false) => at - 1,
        };
        let stride = self.stride(dimension);
        Some(rank - at * stride + to * stride)
    }

    /// Members of a communicator.
    pub fn size(&self, among: Among) -> u32 {
        let whole = self.sizes.iter().product();
        match among {
            Among::World => whole,
            Among::Row => self.sizes[self.sizes.len() - 1],
            Among::Column => whole / self.sizes[self.sizes.len() - 1],
        }
    }

    /// Its id.
    pub fn group(&self, among: Among, rank: u32) -> u64 {
        let columns = self.size(Among::Row);
        match among {
            Among::World => WORLD,
            Among::Row => FIRST_ID + u64::from(rank / columns),
            Among::Column => {
                FIRST_ID + u64::from(self.size(Among::Column)) + u64::from(rank % columns)
            }
        }
    }

    /// World ranks of its members.
    pub fn members(&self, among: Among, rank: u32) -> impl Iterator<Item = u32> + Clone + use<> {
        let columns = self.size(Among::Row);
        let (first, step) = match among {
            Among::World => (0, 1),
            Among::Row => (rank / columns * columns, 1),
            Among::Column => (rank % columns, columns),
        };
        (0..self.size(among)).map(move |at| first + at * step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_square_as_can_be() {
        let sizes = |ranks, dimensions| Grid::new(ranks, dimensions, false).sizes;
        assert_eq!(sizes(65_536, 2), [256, 256]);
        assert_eq!(sizes(65_536, 3), [32, 32, 64]);
        assert_eq!(sizes(12, 2), [3, 4]);
        assert_eq!(sizes(7, 2), [1, 7]);
        assert_eq!(sizes(1, 3), [1, 1, 1]);
    }

    #[test]
    fn neighbours_and_borders() {
        let grid = Grid::new(12, 2, false);
        let around = |grid: &Grid, rank| {
            [(0, false), (0, true), (1, false), (1, true)]
                .map(|(dimension, after)| grid.neighbour(rank, dimension, after))
        };
        assert_eq!(around(&grid, 5), [Some(1), Some(9), Some(4), Some(6)]);
        assert_eq!(around(&grid, 0), [None, Some(4), None, Some(1)]);
        let torus = Grid::new(12, 2, true);
        assert_eq!(around(&torus, 0), [Some(8), Some(4), Some(3), Some(1)]);
    }

    #[test]
    fn rows_and_columns_are_communicators() {
        let grid = Grid::new(12, 2, false);
        let members = |among| grid.members(among, 6).collect::<Vec<_>>();
        assert_eq!(members(Among::Row), [4, 5, 6, 7]);
        assert_eq!(members(Among::Column), [2, 6, 10]);
        assert_ne!(grid.group(Among::Row, 6), grid.group(Among::Column, 6));
        assert_eq!(grid.group(Among::Row, 6), grid.group(Among::Row, 4));
    }
}
