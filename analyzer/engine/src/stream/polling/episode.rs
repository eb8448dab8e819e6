//! Looks at a place in vain, with the one that found something.

use laggard_patterns::polled::is_looking;
use smallvec::SmallVec;

use crate::basics::ends::NONE;

/// Most stretches of an episode that are told apart. Those with the least time between them are
/// taken as one, in which looks are spread evenly.
const STRETCHES: usize = 16;

/// A part of an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Its begin, ns.
    pub begin: i64,
    /// Its end, ns.
    pub end: i64,
    /// Time in it that counts as looking, ns.
    pub looked: i64,
    /// Enter of its last look, ns.
    pub last: i64,
    /// Number of requests that the thread had posted before.
    pub(super) posts: u64,
}

/// Looks at a place in vain, with the one that found something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Episode {
    /// One after another; they do not overlap.
    pub(super) stretches: SmallVec<[Stretch; 2]>,
    /// Enter of the look that found something, ns.
    pub found: i64,
    /// Whether looks at other places found nothing meanwhile.
    pub beside: bool,
    /// Looks at other places that waited for the same, each with a signature.
    pub(super) others: Vec<(u32, Episode)>,
}

impl Stretch {
    /// Looking before a moment, ns.
    fn before(&self, moment: i64) -> i64 {
        let whole = self.end - self.begin;
        match moment.saturating_sub(self.begin) {
            ..=0 => 0,
            part if part >= whole => self.looked,
            part => (i128::from(self.looked) * i128::from(part) / i128::from(whole)) as i64,
        }
    }

    /// Adds the next one.
    pub(super) fn join(&mut self, next: &Stretch) {
        self.looked += next.looked;
        (self.end, self.last) = (next.end, next.last);
    }
}

impl Episode {
    pub(super) fn add(&mut self, stretch: Stretch) {
        let is_dense = |s: &Stretch| s.looked == s.end - s.begin;
        let follows = |last: &&mut Stretch| {
            let is_next = (last.end, last.posts) == (stretch.begin, stretch.posts);
            is_next && is_dense(last) && is_dense(&stretch)
        };
        if let Some(last) = self.stretches.last_mut().filter(follows) {
            last.join(&stretch);
            return;
        }
        self.stretches.push(stretch);
        if self.stretches.len() > STRETCHES {
            let gaps = self
                .stretches
                .windows(2)
                .map(|two| two[1].begin - two[0].end);
            let least = (0..).zip(gaps).min_by_key(|&(at, gap)| (gap, at));
            let at = least.map_or(0, |(at, _)| at);
            let next = self.stretches.remove(at + 1);
            self.stretches[at].join(&next);
        }
    }

    /// Takes some of the looks, and leaves the rest.
    pub(super) fn take(&mut self, is_taken: impl Fn(&Stretch) -> bool) -> Episode {
        let all = std::mem::take(&mut self.stretches).into_iter();
        let (taken, rest) = all.partition(is_taken);
        self.stretches = rest;
        Episode {
            stretches: taken,
            ..Episode::default()
        }
    }

    /// Takes the looks since a moment, ns, and leaves the rest. One stretch may be divided, unless it began in the same
    /// turn of looks, of which each takes so long, ns.
    pub(super) fn take_since(&mut self, moment: i64, look: i64) -> Episode {
        let mut since = Episode::default();
        for stretch in std::mem::take(&mut self.stretches) {
            let moment = match is_looking(moment - stretch.begin, look) {
                true => stretch.begin.min(moment),
                false => moment,
            };
            let before = Stretch {
                end: stretch.end.min(moment),
                looked: stretch.before(moment),
                last: stretch.last.min(moment),
                ..stretch
            };
            let after = Stretch {
                begin: stretch.begin.max(moment),
                looked: stretch.looked - before.looked,
                ..stretch
            };
            let (left, taken) = (&mut self.stretches, &mut since.stretches);
            left.extend((before.begin < before.end).then_some(before));
            taken.extend((after.begin < after.end).then_some(after));
        }
        since
    }

    /// When it began at the own place, ns.
    pub fn begin(&self) -> Option<i64> {
        Some(self.stretches.first()?.begin)
    }

    /// The looks at each place. Those elsewhere have a signature of looks there, the others `NONE`.
    pub fn parts(&self) -> impl Iterator<Item = (u32, &Episode)> {
        let others = self.others.iter().map(|(of, part)| (*of, part));
        std::iter::once((NONE, self)).chain(others)
    }

    /// Looking at the own place before a moment, ns.
    pub fn before(&self, moment: i64) -> i64 {
        let parts = self.stretches.iter();
        parts.map(|stretch| stretch.before(moment)).sum()
    }
}
