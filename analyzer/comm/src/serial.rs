//! The job of a single agent: no MPI.

use super::{Job, Sent, Talk};

/// One agent that is the head and talks to itself.
#[derive(Debug, Default)]
pub struct Serial;

impl Job for Serial {
    fn agent(&self) -> usize {
        0
    }

    fn agents(&self) -> usize {
        1
    }

    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        parcels
    }

    fn reduce_max(&self, _values: &mut [u64]) {}

    fn reduce_sum(&self, _values: &mut [u64]) {}

    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
        vec![mine]
    }

    fn broadcast(&self, _bytes: &mut Vec<u8>) {}

    fn tree(
        &self,
        mine: Vec<u8>,
        _combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        Some(mine)
    }

    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        while let Some(piece) = next() {
            take(piece);
        }
    }

    fn converse(&self, work: &mut Talk<'_>) {
        work(None, &mut Vec::new());
    }

    fn sent(&self) -> Sent {
        Sent::default()
    }

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
