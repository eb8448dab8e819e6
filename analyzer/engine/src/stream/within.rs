//! In which parallel regions of OpenMP a thread makes its calls.

use laggard_trace::calls::number;
use rustc_hash::FxHashSet;

use crate::stream::columns::Columns;
use crate::stream::rows::Row;

/// Parallel regions that a thread is in, the innermost one last.
#[derive(Clone, Debug, Default)]
pub struct Nest<T>(pub Vec<T>);

impl<T: Copy> Nest<T> {
    /// The innermost region around the next call. A call that begins a region is `begun`.
    #[inline]
    pub fn around(&mut self, operation: u16, begun: impl FnOnce() -> T) -> Option<T> {
        match operation {
            // A thread of the runtime: it was in no region until then.
            number::omp_idle => self.0.clear(),
            number::omp_parallel_end => drop(self.0.pop()),
            _ => {}
        }
        let around = self.0.last().copied();
        if begins_region(operation) {
            self.0.push(begun());
        }
        around
    }
}

/// Whether calls of an operation begin a region on their thread.
#[inline]
pub fn begins_region(operation: u16) -> bool {
    matches!(operation, number::omp_parallel | number::omp_idle)
}

/// The regions of a location's calls, by signature.
#[derive(Debug, Default)]
pub struct Within {
    /// The call with which the thread began each.
    nest: Nest<u32>,
    /// By call: the region in which it was last, and 1; 0 = none.
    last: Vec<u32>,
    found: FxHashSet<(u32, u32)>,
}

impl Within {
    /// Adds the calls of a slab.
    pub fn extend(&mut self, columns: &Columns, rows: &[Row]) {
        if !rows.iter().any(|row| begins_region(row.operation)) {
            return;
        }
        self.last.resize(rows.len(), 0);
        for &signature in &columns.signature[columns.first..] {
            let Some(row) = rows.get(signature as usize) else {
                continue;
            };
            let Some(region) = self.nest.around(row.operation, || signature) else {
                continue;
            };
            let last = &mut self.last[signature as usize];
            if std::mem::replace(last, region + 1) != region + 1 {
                self.found.insert((signature, region));
            }
        }
    }

    /// Signatures of calls, each with one of a call that began the region around it.
    pub fn found(&self) -> impl Iterator<Item = (u32, u32)> {
        self.found.iter().copied()
    }
}
