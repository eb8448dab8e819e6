//! Waits with their late parties, by slab.

use std::io;

use crate::basics::spill::{Piece, Spill};
use crate::wire::links::{Link, Linked};
use crate::wire::parcels::Parcel;

/// Links by the slab in which their late party came.
#[derive(Debug)]
pub struct Links {
    /// The ends of all slabs but the last, ns.
    borders: Vec<i64>,
    slabs: Vec<Slab>,
    /// Slabs with links in memory.
    open: Vec<usize>,
    /// The slab of the last link, and its begin and end, ns.
    last: (usize, i64, i64),
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
            last: (0, 0, 0),
            spare: Vec::new(),
            spill: Spill::default(),
        }
    }

    /// The ends of all slabs but the last, ns.
    pub fn borders(&self) -> &[i64] {
        &self.borders
    }

    /// Adds links.
    pub fn extend(&mut self, links: impl Iterator<Item = Link>) {
        for link in links {
            let (_, begin, end) = self.last;
            if link.time < begin || link.time >= end {
                self.last = self.find(link.time);
            }
            let slab = &mut self.slabs[self.last.0];
            if slab.links.is_empty() {
                self.open.push(self.last.0);
                slab.links = self.spare.pop().unwrap_or_default();
            }
            slab.links.push(link);
        }
    }

    fn find(&self, time: i64) -> (usize, i64, i64) {
        let at = self.borders.partition_point(|&border| border <= time);
        let begin = at.checked_sub(1).map_or(i64::MIN, |at| self.borders[at]);
        let end = self.borders.get(at).copied().unwrap_or(i64::MAX);
        (at, begin, end)
    }

    /// Puts the links of earlier slabs away.
    pub fn end_round(&mut self, until: i64) {
        let (slabs, spill, spare) = (&mut self.slabs, &mut self.spill, &mut self.spare);
        let last = self.borders.partition_point(|&border| border < until);
        self.open.retain(|&at| {
            let is_past = at < last;
            if is_past {
                let mut links = std::mem::take(&mut slabs[at].links);
                links.iter_mut().for_each(|link| *link = link.relative());
                let mut parcel = Linked { links };
                slabs[at].pieces.push(spill.put(&parcel.pack()));
                parcel.clear();
                spare.push(parcel.links);
            }
            !is_past
        });
    }

    /// The links of a slab; none of one after the last.
    pub fn take(&mut self, slab: usize) -> Vec<Link> {
        self.spare = Vec::new();
        let of = self.slabs.get_mut(slab).map(std::mem::take);
        let of = of.unwrap_or_default();
        let mut links = of.links;
        for piece in of.pieces {
            let mut kept = Linked::unpack(&self.spill.take(piece)).links;
            kept.iter_mut().for_each(|link| *link = link.absolute());
            match links.is_empty() {
                true => links = kept,
                false => links.extend(kept),
            }
        }
        links
    }

    /// The error that lost links.
    pub fn error(&mut self) -> Option<io::Error> {
        self.spill.error.take()
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
