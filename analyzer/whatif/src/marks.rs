//! What scenarios and what they compare have in common: sets of them, and the computation that they
//! change.

use rustc_hash::FxHashMap;

use laggard_engine::events::OUTSIDE;

use crate::reader::Site;

/// A set of scenarios, or of shares, by number; all from 63 on are one.
pub type Marks = u64;

/// The mark of a number.
pub fn mark(number: usize) -> Marks {
    1 << number.min(63)
}

/// The numbers with these marks, ascending; 63 stands for all from there on.
pub fn numbers(mut marks: Marks) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = (marks != 0).then(|| marks.trailing_zeros() as usize);
        marks &= marks.wrapping_sub(1);
        number
    })
}

/// What was found about two successive calls of a location, by their signatures.
#[derive(Default)]
pub struct Pairs {
    /// By the second signature: the first one, most times the same, and what was found.
    last: Vec<Option<(u32, Marks)>>,
    all: FxHashMap<(u32, u32), Marks>,
}

impl Pairs {
    /// Finds it, if it is new.
    #[inline]
    pub fn of(&mut self, pair: (u32, u32), find: impl FnOnce() -> Marks) -> Marks {
        let at = pair.1 as usize;
        match self.last.get(at) {
            Some(Some((first, marks))) if *first == pair.0 => return *marks,
            Some(_) => {}
            None => self.last.resize(at + 1, None),
        }
        let marks = *self.all.entry(pair).or_insert_with(find);
        self.last[at] = Some((pair.0, marks));
        marks
    }
}

/// The computation before a call. ns.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub location: usize,
    pub before: Option<Site>,
    pub after: Site,
    pub from: i64,
    pub to: i64,
    /// Parts of it, see [`Operation::beside`].
    ///
    /// [`Operation::beside`]: laggard_engine::events::Operation::beside
    pub beside: [i64; OUTSIDE.len()],
}
