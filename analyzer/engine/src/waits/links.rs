//! Waits with their late parties, by slab.

use std::io;

use crate::basics::spill::{Piece, Spill};
use crate::wire::links::{Link, Linked};
use crate::wire::parcels::Parcel;

/// Most links of a slab in memory.
const MOST: usize = 1 << 15;

/// Links by the slab in which their late party came.
#[derive(Debug)]
pub struct Links {
    /// The ends of all slabs but the last, ns.
    borders: Vec<i64>,
    slabs: Vec<Slab>,
    /// Slabs with links in memory.
    open: Vec<usize>,
    /// Earlier slabs are over: few links follow.
    over: usize,
    /// Memory of lists that were put away.
    spare: Vec<Vec<Link>>,
    spill: Spill,
}

#[derive(Debug, Default)]
struct Slab {
    links: Vec<Link>,
    pieces: Vec<Piece>,
}

impl Links {
    /// `borders` are the ends of all slabs but the last, ns.
    pub fn new(borders: &[i64]) -> Self {
        Links {
            borders: borders.to_vec(),
            slabs: (0..=borders.len()).map(|_| Slab::default()).collect(),
            open: Vec::new(),
            over: 0,
            spare: Vec::new(),
            spill: Spill::default(),
        }
    }

    /// The ends of all slabs but the last, ns.
    pub fn borders(&self) -> &[i64] {
        &self.borders
    }

    /// Adds links: successive ones are mostly of one slab.
    pub fn extend(&mut self, mut links: &[Link]) {
        while let [first, others @ ..] = links {
            let at = self.borders.partition_point(|&border| border <= first.time);
            let begin = at.checked_sub(1).map_or(i64::MIN, |at| self.borders[at]);
            let last = self.borders.get(at).map_or(i64::MAX, |end| end - 1);
            let of_slab = &mut self.slabs[at].links;
            if of_slab.is_empty() {
                self.open.push(at);
                *of_slab = self.spare.pop().unwrap_or_default();
            }
            let room = others.iter().take(MOST - 1 - of_slab.len());
            let own = room.take_while(|link| (begin..=last).contains(&link.time));
            let (own, rest) = links.split_at(1 + own.count());
            of_slab.extend_from_slice(own);
            links = rest;
            if of_slab.len() == MOST {
                self.open.retain(|&open| open != at);
                self.put(at);
            }
        }
    }

    /// The calls entered before `until`, ns, are named.
    pub fn end_round(&mut self, until: i64) {
        self.over = self.borders.partition_point(|&border| border < until);
    }

    /// Puts the links of slabs that are over away.
    pub fn put_over_away(&mut self) {
        let over = self.open.extract_if(.., |at| *at < self.over);
        let over: Vec<usize> = over.collect();
        over.into_iter().for_each(|at| self.put(at));
    }

    fn put(&mut self, slab: usize) {
        let slab = &mut self.slabs[slab];
        let mut links = std::mem::take(&mut slab.links);
        links.iter_mut().for_each(|link| *link = link.relative());
        let mut parcel = Linked { links };
        slab.pieces.push(self.spill.put(&parcel.pack()));
        parcel.clear();
        self.spare.push(parcel.links);
    }

    /// The links of a slab; none of one after the last.
    pub fn take(&mut self, slab: usize) -> Vec<Link> {
        self.spare = Vec::new();
        let of = self.slabs.get_mut(slab).map(std::mem::take);
        let of = of.unwrap_or_default();
        let mut links = Vec::new();
        for piece in of.pieces {
            let mut kept = Linked::unpack(&self.spill.take(piece)).links;
            kept.iter_mut().for_each(|link| *link = link.absolute());
            append(&mut links, kept);
        }
        append(&mut links, of.links);
        links
    }

    /// The error that lost links.
    pub fn error(&mut self) -> Option<io::Error> {
        self.spill.error.take()
    }
}

/// Appends more links; one list is not copied.
fn append(links: &mut Vec<Link>, mut more: Vec<Link>) {
    match links.is_empty() {
        true => *links = more,
        false => links.append(&mut more),
    }
}

impl Link {
    /// Times after each other, so that they take little room: most calls wait from their enter until
    /// the party comes.
    fn relative(&self) -> Link {
        let waited = self.time.wrapping_sub(self.enter);
        Link {
            enter: waited,
            leave: self.leave.wrapping_sub(self.time),
            share: waited.wrapping_sub(self.share),
            // Whether it is a collective changes often: a small number says so.
            left: match self.left.wrapping_sub(self.time) {
                _ if self.left == i64::MAX => 0,
                after @ 0.. => after.wrapping_add(1),
                before => before,
            },
            ..*self
        }
    }

    /// See [`Link::relative`].
    fn absolute(&self) -> Link {
        Link {
            enter: self.time.wrapping_sub(self.enter),
            leave: self.leave.wrapping_add(self.time),
            share: self.enter.wrapping_sub(self.share),
            left: match self.left {
                0 => i64::MAX,
                after @ 1.. => (after - 1).wrapping_add(self.time),
                before => before.wrapping_add(self.time),
            },
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links of three slabs, of which the first has more than may be in memory. They come back in the
    /// order in which they were added.
    #[test]
    fn links_come_back_by_slab() {
        let link = |n: i64| Link {
            time: (n * 37) % 200,
            enter: (n * 37) % 200 - n % 50,
            leave: (n * 37) % 200 + 7,
            share: n % 50,
            left: match n % 4 {
                0 => i64::MAX,
                kind => (n * 37) % 200 + kind - 2,
            },
            event: n as u64,
            ..Link::default()
        };
        let added: Vec<Link> = (0..3 * MOST as i64).map(link).collect();
        let mut links = Links::new(&[150, 190]);
        links.extend(&added);
        assert!(links.slabs.iter().all(|slab| slab.links.len() < MOST));
        assert!(links.slabs[0].pieces.len() >= 2);
        links.end_round(160);
        links.put_over_away();
        assert!(links.slabs[0].links.is_empty() && links.open.len() == 2);
        links.extend(&[link(0)]);
        let slabs = [(i64::MIN, 150), (150, 190), (190, i64::MAX)];
        for (slab, (begin, end)) in slabs.into_iter().enumerate() {
            let own = added.iter().chain(&added[..1]);
            let own = own.filter(|link| (begin..end).contains(&link.time));
            assert!(
                links.take(slab) == own.copied().collect::<Vec<_>>(),
                "{slab}"
            );
        }
        assert!(links.take(3).is_empty());
    }
}
