//! Parallel regions of OpenMP that a thread is in, call by call.

use laggard_trace::{Event, Signature};

use super::among::Among;
use crate::stream::within::Nest;

/// A parallel region in which a thread makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InRegion {
    /// Number of its team in the process: another one each time it is forked; 0 = not known.
    pub team: u64,
    /// Threads of the team.
    pub threads: u32,
    /// The number of this thread in it.
    pub member: u32,
    /// Where it begins: a call path of the location.
    pub call_path: u32,
}

/// The regions of a thread; `None`: which thread of its team it is, is not known.
#[derive(Clone, Debug, Default)]
pub struct Regions(Nest<Option<InRegion>>);

impl Regions {
    /// Regions that calls with these signatures began, the innermost one last.
    pub fn begun<'s>(by: impl Iterator<Item = &'s Signature>) -> Regions {
        Regions(Nest(by.map(|by| begun(by, &Event::default())).collect()))
    }

    /// The region around the next call of the thread.
    #[inline]
    pub fn around(&mut self, signature: &Signature, event: &Event) -> Option<InRegion> {
        let begun = || begun(signature, event);
        self.0.around(signature.operation, begun).flatten()
    }
}

/// The region that begins after a call.
fn begun(signature: &Signature, event: &Event) -> Option<InRegion> {
    let among = Among::of(signature, event)?;
    Some(InRegion {
        team: among.team.unwrap_or(0),
        threads: among.threads?,
        member: among.member?,
        call_path: signature.call_path,
    })
}

#[cfg(test)]
mod tests {
    use laggard_trace::calls::number;

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
