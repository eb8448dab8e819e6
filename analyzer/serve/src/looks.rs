//! Time between looks that counts as looking, by the rules of a report: where looks find something in the end, all
//! of it; where they never do, that of enough looks in a row.

use laggard_engine::events::{IN_A_ROW, Look, NONE, Operation};
use rustc_hash::FxHashMap;

use crate::index::{LocationIndex, kind_of};

/// Looks in a row at a place that may never find anything.
#[derive(Clone, Debug)]
pub struct Run<T> {
    row: u64,
    calls: u64,
    /// What counts if there are enough of them.
    pub kept: Vec<T>,
}

impl<T> Default for Run<T> {
    fn default() -> Run<T> {
        Run {
            row: 0,
            calls: 0,
            kept: Vec::new(),
        }
    }
}

impl<T> Run<T> {
    /// Takes a record of looks in vain, which `lasted` ns. Gives what `of` makes of the records of the run and of their time
    /// before, ns, as soon as there are enough of them.
    pub fn take(
        &mut self,
        (look, row, lasted): (&Look, u64, i64),
        of: impl FnOnce(i64) -> T,
        counts: impl FnMut(T),
    ) {
        let is_dense = look.looked == lasted;
        if self.row != row || !is_dense {
            *self = Run::default();
        }
        if !is_dense {
            return;
        }
        self.row = row;
        self.calls = self.calls.saturating_add(look.calls);
        self.kept
            .push(of(if look.follows { look.before } else { 0 }));
        if self.calls >= IN_A_ROW {
            self.kept.drain(..).for_each(counts);
        }
    }
}

/// Time between looks at one place.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// Number of their call, and of its call path.
    pub site: (u16, u32),
    /// The kind of time, see [`kind`](crate::index::kind).
    pub kind: usize,
    /// From when to when it is, ns.
    pub stretch: (i64, i64),
    /// How much of that counts, ns.
    pub time: i64,
}

/// Finds the time between looks of a location that counts, call by call.
pub struct Reader<'i> {
    index: &'i LocationIndex,
    /// By place.
    runs: FxHashMap<u32, Run<[Between; 2]>>,
}

impl<'i> Reader<'i> {
    /// Before the first call that is read.
    pub fn new(index: &'i LocationIndex) -> Reader<'i> {
        Reader {
            index,
            runs: FxHashMap::default(),
        }
    }

    /// Takes the next call. Returns whether more must be read to know what counts of the looks so far.
    pub fn take(&mut self, call: &Operation, mut give: impl FnMut(Between)) -> bool {
        let (Some(look), Some(at)) = (call.look, call.look_at) else {
            return false;
        };
        if at.place == NONE {
            return false;
        }
        // Before it, and in a record of several.
        let parts = |before: i64| {
            let of = |stretch, time| Between {
                site: (call.signature.operation, call.call_path),
                kind: kind_of(call.signature.operation),
                stretch,
                time,
            };
            let inside = look.between - look.before;
            [
                of((look.begin, call.enter), before),
                of((call.enter, call.leave), inside),
            ]
        };
        let mut give = |parts: [Between; 2]| {
            let parts = parts.into_iter();
            parts.filter(|part| part.time > 0).for_each(&mut give);
        };
        if call.enter <= self.index.found(at.place) {
            if look.is_vain || at.ends {
                give(parts(look.before));
            }
        } else if look.is_vain {
            let run = self.runs.entry(at.place).or_default();
            run.take((&look, at.row, call.leave - call.enter), parts, give);
        }
        // Other places may be looked at in the same row.
        self.runs
            .values()
            .any(|run| run.row == at.row && !run.kept.is_empty())
    }
}
