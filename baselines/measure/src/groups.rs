//! Groups of ranks that measure together.

use std::ffi::c_int;

use laggard_baselines::Span;
use mpi::ffi::MPI_Comm;

use super::benchmarks::{call, constant};
use super::world::Members;

/// Longest name of a host.
const NAME: usize = 256;

/// Some ranks of the job, rank 0 among them.
pub struct Group {
    /// World ranks, rank 0 first.
    pub ranks: Vec<usize>,
    /// Whether they are on one host.
    pub span: Span,
    /// Their communicator, if this rank is a member.
    pub members: Option<Members>,
}

impl Group {
    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// Whether they are the first ranks of the job, without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.ranks.iter().enumerate().all(|(at, &rank)| at == rank)
    }
}

/// Name of each rank's host.
pub fn hosts(world: &Members) -> Vec<String> {
    let mut name = [0u8; NAME];
    // SAFETY: the buffer is valid, and its last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), NAME - 1) };
    let all = world.all_gather(&name);
    let names = all.chunks(NAME).map(|name| {
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        String::from_utf8_lossy(&name[..end]).into_owned()
    });
    names.collect()
}

/// Sizes from 2 to `most`: powers of two, midpoints between them, and `most`.
fn sizes(most: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2usize), |size| size.checked_mul(2));
    let between = powers.flat_map(|size| [size, size + size / 2]);
    let mut sizes: Vec<usize> = between.take_while(|&size| size < most).collect();
    sizes.extend((most >= 2).then_some(most));
    sizes
}

/// Ranks of groups, without their communicators: on the host of rank 0, and spread over all hosts.
fn ranks(hosts: &[String]) -> Vec<(Span, Vec<usize>)> {
    let near = |rank: &usize| hosts[*rank] == hosts[0];
    let local: Vec<usize> = (0..hosts.len()).filter(near).collect();
    let mut groups: Vec<(Span, Vec<usize>)> = sizes(local.len())
        .into_iter()
        .map(|size| (Span::IntraNode, local[..size].to_vec()))
        .collect();
    if local.len() < hosts.len() {
        let spread = spread(hosts);
        let far = sizes(hosts.len()).into_iter();
        groups.extend(far.map(|size| (Span::InterNode, spread[..size].to_vec())));
    }
    groups
}

/// All ranks: one of each host, then the next of each.
fn spread(hosts: &[String]) -> Vec<usize> {
    let before = |rank: usize| hosts[..rank].iter().filter(|h| **h == hosts[rank]).count();
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by_key(|&rank| (before(rank), rank));
    order
}

/// All groups, with their communicators. Collective.
pub fn all(world: &Members, hosts: &[String]) -> Vec<Group> {
    let groups = ranks(hosts).into_iter();
    let groups = groups.map(|(span, ranks)| {
        let place = ranks.iter().position(|&rank| rank == world.rank as usize);
        Group {
            ranks,
            span,
            members: split(world, place),
        }
    });
    groups.collect()
}

/// The communicator of the ranks with a place, in the order of places. The collector sees it being
/// made, so it knows the members.
fn split(world: &Members, place: Option<usize>) -> Option<Members> {
    let colour = match place {
        Some(_) => 0,
        None => constant!(RSMPI_UNDEFINED),
    };
    let mut comm: MPI_Comm = constant!(RSMPI_COMM_NULL);
    let key = place.unwrap_or(0) as c_int;
    call!(MPI_Comm_split(world.comm, colour, key, &mut comm));
    place.map(|_| Members::of(comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hosts: &[&str]) -> Vec<(Span, Vec<usize>)> {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        ranks(&hosts)
    }

    #[test]
    fn sizes_are_powers_of_two_and_what_is_between() {
        assert_eq!(sizes(1), [0; 0]);
        assert_eq!(sizes(2), [2]);
        assert_eq!(sizes(4), [2, 3, 4]);
        assert_eq!(sizes(7), [2, 3, 4, 6, 7]);
    }

    #[test]
    fn one_host_has_no_groups_beyond_it() {
        let groups = of(&["a", "a"]);
        assert_eq!(groups, [(Span::IntraNode, vec![0, 1])]);
    }

    #[test]
    fn groups_of_several_hosts_are_spread() {
        let groups = of(&["a", "a", "b", "b"]);
        let expected = [
            (Span::IntraNode, vec![0, 1]),
            (Span::InterNode, vec![0, 2]),
            (Span::InterNode, vec![0, 2, 1]),
            (Span::InterNode, vec![0, 2, 1, 3]),
        ];
        assert_eq!(groups, expected);
    }

    #[test]
    fn hosts_with_a_rank_each_have_far_pairs_only() {
        assert_eq!(of(&["a", "b"]), [(Span::InterNode, vec![0, 1])]);
    }
}
