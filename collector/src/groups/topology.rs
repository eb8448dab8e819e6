//! Neighbours in communicators with a topology.

use crate::constants::constants;
use crate::exports::real;
use crate::ffi::MPI_Comm;

/// A process's neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Ranks from which this process receives in neighbourhood collectives, in MPI's order;
    /// `MPI_PROC_NULL` beyond the border of a Cartesian topology.
    pub sources: &'static [i32],
    /// Number of ranks that receive its data.
    pub destinations: u32,
    /// Of a Cartesian topology: size, whether it is periodic, and coordinate, of each dimension.
    pub grid: &'static [i32],
}

/// Sources and number of destinations of `rank`, this process, in `comm`, and its [`Topology::grid`];
/// `None` without a topology.
pub fn neighbours(comm: MPI_Comm, rank: i32) -> Option<(Vec<i32>, u32, Vec<i32>)> {
    let mut topology = 0;
    // SAFETY: local queries on a valid intracommunicator, here and below.
    unsafe { real::MPI_Topo_test(comm, &mut topology) };
    let c = constants();
    if topology == c.cart {
        Some(in_grid(comm))
    } else if topology == c.graph {
        let (sources, destinations) = in_graph(comm, rank);
        Some((sources, destinations, Vec::new()))
    } else if topology == c.dist_graph {
        let (sources, destinations) = in_distributed_graph(comm);
        Some((sources, destinations, Vec::new()))
    } else {
        None
    }
}

fn in_grid(comm: MPI_Comm) -> (Vec<i32>, u32, Vec<i32>) {
    let mut dimensions = 0;
    // SAFETY: see `neighbours`.
    unsafe { real::MPI_Cartdim_get(comm, &mut dimensions) };
    let sides = (0..dimensions).flat_map(|dimension| {
        let (mut below, mut above) = (0, 0);
        // SAFETY: see `neighbours`.
        unsafe { real::MPI_Cart_shift(comm, dimension, 1, &mut below, &mut above) };
        [below, above]
    });
    let sources: Vec<i32> = sides.collect();
    let destinations = sources.len() as u32;
    let mut room = [(); 3].map(|()| vec![0; dimensions.max(0) as usize]);
    let [sizes, periods, coordinates] = &mut room;
    // SAFETY: see `neighbours`; there is room for `dimensions` numbers of each.
    unsafe {
        real::MPI_Cart_get(
            comm,
            dimensions,
            sizes.as_mut_ptr(),
            periods.as_mut_ptr(),
            coordinates.as_mut_ptr(),
        );
    }
    let grid = (0..sizes.len()).flat_map(|at| room.each_ref().map(|of| of[at]));
    (sources, destinations, grid.collect())
}

fn in_graph(comm: MPI_Comm, rank: i32) -> (Vec<i32>, u32) {
    let mut count = 0;
    // SAFETY: see `neighbours`.
    unsafe { real::MPI_Graph_neighbors_count(comm, rank, &mut count) };
    let mut sources = vec![0; count.max(0) as usize];
    // SAFETY: see `neighbours`; there is room for `count` ranks.
    unsafe { real::MPI_Graph_neighbors(comm, rank, count, sources.as_mut_ptr()) };
    (sources, count.max(0) as u32)
}

fn in_distributed_graph(comm: MPI_Comm) -> (Vec<i32>, u32) {
    let (mut n, mut m, mut weighted) = (0, 0, 0);
    // SAFETY: see `neighbours`.
    unsafe { real::MPI_Dist_graph_neighbors_count(comm, &mut n, &mut m, &mut weighted) };
    let room = |count: i32| vec![0; count.max(0) as usize];
    let (mut sources, mut weights) = (room(n), room(n));
    let (mut destinations, mut other_weights) = (room(m), room(m));
    // SAFETY: see `neighbours`; there is room for `n` and `m` ranks and weights.
    unsafe {
        real::MPI_Dist_graph_neighbors(
            comm,
            n,
            sources.as_mut_ptr(),
            weights.as_mut_ptr(),
            m,
            destinations.as_mut_ptr(),
            other_weights.as_mut_ptr(),
        );
    }
    (sources, m.max(0) as u32)
}
