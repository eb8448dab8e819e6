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
            let at = match self.open.last() {
                Some(&last) if self.holds(last, link.time) => last,
                _ => self.borders.partition_point(|&border| border <= link.time),
            };
            let slab = &mut self.slabs[at];
            if slab.links.is_empty() {
                self.open.push(at);
            }
            slab.links.push(link);
        }
    }

    fn holds(&self, slab: usize, time: i64) -> bool {
        let begin = slab.checked_sub(1).map(|before| self.borders[before]);
        let end = self.borders.get(slab);
        begin.is_none_or(|begin| begin <= time) && end.is_none_or(|&end| time < end)
    }

    /// Puts the links of earlier slabs away.
    pub fn end_round(&mut self, until: i64) {
        let (slabs, spill) = (&mut self.slabs, &mut self.spill);
        let last = self.borders.partition_point(|&border| border < until);
        self.open.retain(|&at| {
            let is_past = at < last;
            if is_past {
                let links = std::mem::take(&mut slabs[at].links);
                let links = links.iter().map(Link::relative).collect();
                slabs[at].pieces.push(spill.put(&Linked { links }.pack()));
            }
            !is_past
        });
    }

    /// The links of a slab; none of one after the last.
    pub fn take(&mut self, slab: usize) -> Vec<Link> {
        let of = self.slabs.get_mut(slab).map(std::mem::take);
        let of = of.unwrap_or_default();
        let mut links = of.links;
        for piece in of.pieces {
            let kept = Linked::unpack(&self.spill.take(piece)).links;
            links.extend(kept.iter().map(Link::absolute));
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
            left: match self.left {
                i64::MAX => i64::MAX,
                left => left.wrapping_sub(self.time),
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
                i64::MAX => i64::MAX,
                left => left.wrapping_add(self.time),
            },
            ..*self
        }
    }
}
