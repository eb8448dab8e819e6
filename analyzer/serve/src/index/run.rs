//! Looks in a row, by the rule of a report: whether time between them counts where they never find anything.

use laggard_engine::events::{IN_A_ROW, Look};

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
    /// Whether more looks of this row may make those so far count.
    pub fn is_open(&self, row: u64) -> bool {
        self.row == row && !self.kept.is_empty()
    }

    /// Takes a record of looks in vain, which `lasted` ns. Gives what `of` makes of the records of the run and of their time
    /// before, ns, as soon as there are enough of them.
    pub fn take(
        &mut self,
        (look, row, lasted): (&Look, u64, i64),
        of: impl FnOnce(i64) -> T,
        counts: impl FnMut(T),
    ) {
        let is_dense = look.looked == lasted;
        if look.calls == 0 && self.calls == 0 {
            return;
        }
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
