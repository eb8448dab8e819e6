//! What a wait among the threads of a rank is for, as its record tells it.

use laggard_trace::calls::number;
use laggard_trace::{Event, Signature};

/// Bits of a key for the number of a meeting within its team, as in the trace format.
const MEETING_BITS: u32 = 24;
/// From here on these numbers are no meetings: they stand for turns, and for the end of a region.
const NO_MEETING: u64 = (1 << MEETING_BITS) - 2;
/// The key of critical sections without a name.
pub const UNNAMED: u64 = 1;

/// A team of OpenMP threads, or what threads wait for one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Among {
    /// Number of the team in its process: another one each time it is forked.
    pub team: Option<u64>,
    /// How many threads meet.
    pub threads: Option<u32>,
    /// The number of this thread in the team.
    pub member: Option<u32>,
    /// Which meeting of the team it is, from 1.
    pub meeting: Option<u32>,
    /// Address of the lock, barrier, condition, task or thread in its process; [`UNNAMED`] for all critical sections
    /// without a name.
    pub object: Option<u64>,
    /// Whether it ended since it had lasted as long as it may.
    pub timed_out: bool,
}

impl Among {
    /// Of a record; `None` if it is no wait among threads.
    pub fn of(signature: &Signature, event: &Event) -> Option<Among> {
        let key = event.value.unwrap_or(0);
        let parameter = signature.parameter as u64;
        let team = Some(key >> MEETING_BITS).filter(|team| *team > 0);
        let none = Among::default();
        let about = Among {
            object: Some(key).filter(|key| *key > 0),
            ..none
        };
        Some(match signature.operation {
            number::omp_parallel
            | number::omp_parallel_end
            | number::omp_barrier
            | number::omp_loop_end
            | number::omp_sections_end => {
                let meeting = key & ((1 << MEETING_BITS) - 1);
                let is_one = (1..NO_MEETING).contains(&meeting);
                Among {
                    team,
                    threads: Some(parameter as u32),
                    member: Some((parameter >> 32) as u32),
                    meeting: is_one.then_some(meeting as u32),
                    ..none
                }
            }
            // Of older traces, it does not tell the thread's part in the team.
            number::omp_idle if parameter != 0 => Among {
                team,
                threads: Some(parameter as u32),
                member: Some((parameter >> 32) as u32),
                ..none
            },
            number::omp_idle | number::omp_ordered | number::omp_ordered_end => {
                Among { team, ..none }
            }
            number::pthread_barrier_wait => Among {
                threads: Some(parameter as u32),
                ..about
            },
            number::pthread_cond_wait
            | number::cnd_wait
            | number::sem_wait
            | number::futex_wait => Among {
                timed_out: parameter == 1,
                ..about
            },
            900..1000 => about,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: u16, key: u64, parameter: i64) -> Option<Among> {
        let signature = Signature {
            operation,
            parameter,
            ..Signature::default()
        };
        let event = Event {
            value: Some(key),
            ..Event::default()
        };
        Among::of(&signature, &event)
    }

    #[test]
    fn teams_are_told_from_locks() {
        let none = Among::default();
        let team = Among {
            team: Some(5),
            threads: Some(3),
            member: Some(2),
            meeting: Some(7),
            ..none
        };
        assert_eq!(
            of(number::omp_barrier, 5 << 24 | 7, 2 << 32 | 3),
            Some(team)
        );
        let end = Among {
            meeting: None,
            ..team
        };
        assert_eq!(
            of(number::omp_parallel_end, 5 << 24 | 0xff_ffff, 2 << 32 | 3),
            Some(end)
        );
        assert_eq!(of(number::omp_idle, 0, 0), Some(none));
        let lock = Among {
            object: Some(0x7f01),
            ..none
        };
        assert_eq!(of(number::pthread_mutex_lock, 0x7f01, 0), Some(lock));
        let late = Among {
            timed_out: true,
            ..lock
        };
        assert_eq!(of(number::pthread_cond_wait, 0x7f01, 1), Some(late));
        let barrier = Among {
            threads: Some(4),
            ..lock
        };
        assert_eq!(of(number::pthread_barrier_wait, 0x7f01, 4), Some(barrier));
        assert_eq!(of(number::MPI_Barrier, 0, 0), None);
    }
}
