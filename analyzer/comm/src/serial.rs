//! The job of a single agent: no MPI.

use super::{Job, Kind, Sent, Talk};

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

    fn send(&self, _to: usize, _kind: Kind, _bytes: &[u8]) {}

    fn receive(&self, _from: usize, _kind: Kind) -> Vec<u8> {
        Vec::new()
    }

    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        parcels
    }

    fn reduce_max(&self, _values: &mut [u64]) {}

    fn reduce_sum(&self, _values: &mut [u64]) {}

    fn broadcast(&self, _bytes: &mut Vec<u8>) {}

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
