//! In which parallel regions of OpenMP a thread makes its calls.

use laggard_trace::calls::number;
use rustc_hash::FxHashSet;

use crate::stream::columns::Columns;
use crate::stream::roles::Among;
use crate::stream::rows::Row;

/// The regions of a location's calls, by signature.
#[derive(Debug, Default)]
pub struct Within {
    /// Regions that the thread is in: the call with which it began each, the innermost one last.
    open: Vec<u32>,
    /// By call: the region in which it was last, and 1; 0 = none.
    last: Vec<u32>,
    found: FxHashSet<(u32, u32)>,
}

impl Within {
    /// Adds the calls of a slab.
    pub fn extend(&mut self, columns: &Columns, rows: &[Row]) {
        if !rows.iter().any(|row| begins(row.among)) {
            return;
        }
        self.last.resize(rows.len(), 0);
        for &signature in &columns.signature[columns.first..] {
            let Some(row) = rows.get(signature as usize) else {
                continue;
            };
            match row.among {
                Among::Forks => self.open.push(signature),
                // A thread of the runtime: it was in no region until then.
                Among::Idles => self.open = vec![signature],
                _ if row.operation == number::omp_parallel_end => {
                    self.open.pop();
                }
                _ => {
                    let region = self.open.last().map_or(0, |region| region + 1);
                    let last = &mut self.last[signature as usize];
                    if region != 0 && std::mem::replace(last, region) != region {
                        self.found.insert((signature, region - 1));
                    }
                }
            }
        }
    }

    /// Signatures of calls, each with one of a call that began the region around it.
    pub fn found(&self) -> impl Iterator<Item = (u32, u32)> {
        self.found.iter().copied()
    }
}

/// Whether a call with this role begins a region on its thread.
fn begins(role: Among) -> bool {
    matches!(role, Among::Forks | Among::Idles)
}
