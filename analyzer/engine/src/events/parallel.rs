//! Parallel regions of OpenMP that a thread is in, call by call.

use laggard_trace::calls::number;
use laggard_trace::{Event, Signature};

use super::among::Among;

/// A parallel region in which a thread makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InRegion {
    /// Number of its team in the process: another one each time it is forked.
    pub team: u64,
    /// Threads of the team.
    pub threads: u32,
    /// The number of this thread in it.
    pub member: u32,
    /// Where it begins: a call path of the location.
    pub call_path: u32,
}

/// The regions of a thread, the innermost one last; `None`: which thread of its team it is, is not known.
#[derive(Clone, Debug, Default)]
pub struct Regions(Vec<Option<InRegion>>);

impl Regions {
    /// The region around the next call of the thread.
    pub fn around(&mut self, signature: &Signature, event: &Event) -> Option<InRegion> {
        let innermost = |regions: &[Option<InRegion>]| regions.last().copied().flatten();
        match signature.operation {
            number::omp_idle => self.0.clear(),
            number::omp_parallel_end => drop(self.0.pop()),
            number::omp_parallel => {}
            _ => return innermost(&self.0),
        }
        let around = innermost(&self.0);
        if signature.operation != number::omp_parallel_end {
            self.0.push(begun(signature, event));
        }
        around
    }
}

/// The region that begins after a call.
fn begun(signature: &Signature, event: &Event) -> Option<InRegion> {
    let among = Among::of(signature, event)?;
    Some(InRegion {
        team: among.team?,
        threads: among.threads?,
        member: among.member?,
        call_path: signature.call_path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_nest_and_end() {
        let mut regions = Regions::default();
        let mut around = |operation, team: u64, parameter| {
            let signature = Signature {
                operation,
                parameter,
                ..Signature::default()
            };
            let event = Event {
                value: Some(team << 24),
                ..Event::default()
            };
            let found = regions.around(&signature, &event);
            found.map(|found| (found.team, found.threads, found.member))
        };
        let send = number::MPI_Send;
        assert_eq!(around(send, 0, 0), None);
        assert_eq!(around(number::omp_idle, 5, 1 << 32 | 3), None);
        assert_eq!(around(send, 0, 0), Some((5, 3, 1)));
        assert_eq!(around(number::omp_parallel, 6, 2), Some((5, 3, 1)));
        assert_eq!(around(send, 0, 0), Some((6, 2, 0)));
        assert_eq!(around(number::omp_parallel_end, 6, 2), Some((5, 3, 1)));
        assert_eq!(around(send, 0, 0), Some((5, 3, 1)));
        assert_eq!(around(number::omp_parallel_end, 5, 1 << 32 | 3), None);
        assert_eq!(around(send, 0, 0), None);
        // Older traces do not tell which thread of the team it is.
        assert_eq!(around(number::omp_idle, 7, 0), None);
        assert_eq!(around(send, 0, 0), None);
    }
}
