//! Looks: calls that find nothing or something, and what counts as looking between them.
//!
//! Time between two looks of a thread is looking if it is short or asleep, and so are calls there that do nothing. All
//! else between them is work.

use laggard_patterns::polled::is_looking;
use laggard_trace::{Event, Signature, flags};

use crate::stream::columns::Stream;
use crate::stream::rows::Row;

/// Most spots of a loop of looks that are told apart.
pub const SPOTS: usize = 4;

/// What the looks of a signature have in common, or its calls that do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooksOf {
    /// Whether they look.
    pub looks: bool,
    /// Whether they find nothing.
    pub is_vain: bool,
    /// Whether they do nothing, see [`Row::idles`].
    idles: bool,
    spot: Spot,
}

/// Operation and call path of looks.
type Spot = (u16, u32);

/// What calls of this signature look for. `None`: they do not look, and do something.
pub fn looks(signature: &Signature) -> Option<LooksOf> {
    let row = Row::new(signature);
    row.can_be_looking().then(|| looks_of(&row, signature))
}

fn looks_of(row: &Row, signature: &Signature) -> LooksOf {
    LooksOf {
        looks: row.looks,
        is_vain: is_vain(row),
        idles: row.idles,
        spot: (signature.operation, signature.call_path),
    }
}

/// Whether a look finds nothing. One that fails has found what it fails with.
pub fn is_vain(row: &Row) -> bool {
    row.has(flags::UNSUCCESSFUL) && !row.has(flags::FAILED)
}

/// A record of looks, or of a call between two looks that does nothing: that is looking, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether it found nothing.
    pub is_vain: bool,
    /// Its enter, or the leave of the look before if some of the time between counts as looking, ns.
    pub begin: i64,
    /// That time, ns.
    pub before: i64,
    /// In that time others had the processor for so many ticks.
    pub preempted: u64,
    /// Whether all of the time since the look before counts as looking.
    pub follows: bool,
    /// Number of looks; 0 for a call that does nothing.
    pub calls: u64,
    /// Time between enter and leave that counts as looking, ns.
    pub looked: i64,
    /// Time between looks that counts as looking, ns.
    pub between: i64,
}

/// Where a record of looks belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookAt {
    /// Number of the place among those of the location; `NONE` if no look there was in vain.
    pub place: u32,
    /// Number of the row of looks: one goes on while all time between looks counts as looking.
    pub row: u64,
    /// Whether it ends an episode.
    pub ends: bool,
}

/// A record of looks, as a sweep is told of it.
#[derive(Clone, Copy, Debug)]
pub struct NotedLook {
    /// Its position in the columns.
    pub position: usize,
    /// What counts as looking.
    pub look: Look,
    /// Where it belongs.
    pub at: LookAt,
    /// The shortest look so far, ns.
    pub shortest: i64,
}

/// Follows the looks of a location.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// If the last call that did something was a look that found nothing.
    left: Option<Left>,
    /// The shortest look so far, ns: others may have lost their processor meanwhile.
    shortest: Option<i64>,
    /// Where looks were made since a call that was none, or a look that found something.
    spots: Spots,
}

/// The last call, after a look that found nothing.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// Its leave, ns.
    leave: i64,
    /// The sleep after it, ns.
    off: i64,
    /// Time since the leave of the look until then, without sleep, ns.
    passed: i64,
    /// Whether the look was not the first one at something.
    is_again: bool,
}

/// The first few spots.
#[derive(Clone, Copy, Debug, Default)]
struct Spots {
    list: [Spot; SPOTS],
    len: usize,
}

impl Spots {
    /// Adds one; whether it was there before. `None`: there are more than can be told apart.
    fn add(&mut self, spot: Spot) -> Option<bool> {
        let is_known = self.list[..self.len].contains(&spot);
        if !is_known {
            *self.list.get_mut(self.len)? = spot;
            self.len += 1;
        }
        Some(is_known)
    }
}

impl Looks {
    /// The shortest look so far, ns; 0 before the first one.
    pub fn shortest(&self) -> i64 {
        self.shortest.unwrap_or(0)
    }

    /// Goes on after others of which this was the shortest, ns.
    pub fn after(shortest: Option<i64>) -> Looks {
        Looks {
            shortest,
            ..Looks::default()
        }
    }

    /// Passes over calls that are no looks.
    pub fn pass(&mut self) {
        self.left = None;
    }

    /// Takes the next call. `None` if it is no look.
    #[inline]
    pub fn take(
        &mut self,
        (signature, row): (u32, &Row),
        times: (i64, i64),
        event: Option<&Event>,
        stream: &Stream,
    ) -> Option<Look> {
        let signatures = || stream.location().definitions.signatures();
        let looks = row
            .can_be_looking()
            .then(|| looks_of(row, &signatures()[signature as usize]));
        self.look(looks, times, event, |ticks| stream.length_ns(ticks))
    }

    /// The same for a call that `looks`. `length_ns` tells how long ticks are.
    #[inline]
    pub fn look(
        &mut self,
        looks: Option<LooksOf>,
        (enter, leave): (i64, i64),
        event: Option<&Event>,
        length_ns: impl Fn(u64) -> i64,
    ) -> Option<Look> {
        let left = self.left.take();
        let LooksOf {
            looks,
            is_vain,
            idles,
            spot,
        } = looks?;
        let off = || event.and_then(|event| event.off).map_or(0, &length_ns);
        let preempted = event.map_or(0, |event| event.beside.preempted);
        if idles
            && let Some(left) = left
            && event.is_none_or(|event| event.completed.is_empty())
            && let Some(look) = self.idle(
                left,
                (enter, leave),
                off(),
                (preempted, length_ns(preempted)),
            )
        {
            return Some(look);
        }
        if !looks {
            return None;
        }
        if left.is_none() {
            self.spots = Spots::default();
        }
        // Who sleeps before the first look at something does not sleep between looks at it.
        let is_again = self.spots.add(spot).unwrap_or(true);
        if is_vain {
            self.left = Some(Left {
                leave,
                off: off(),
                passed: 0,
                is_again,
            });
        }
        let whole = leave - enter;
        // The collector records a series of close looks as one.
        let (calls, inside) = match event.and_then(|event| event.repeated) {
            Some((calls, ticks)) => {
                let inside = length_ns(u64::from(ticks));
                (i64::from(calls.max(1)), inside.min(whole))
            }
            None => (1, whole),
        };
        let (look, gap) = (inside / calls, (whole - inside) / (calls - 1).max(1));
        let look = self.shortest.map_or(look, |shortest| shortest.min(look));
        self.shortest = Some(look);
        let looked = if is_looking(gap, look) { whole } else { inside };
        let (begin, before, preempted, follows) = left.map_or((enter, 0, 0, false), |left| {
            let (gap, off, rest) = left.until(enter, is_again, length_ns(preempted));
            // To go to sleep and to wake up takes time, too.
            match is_looking(left.passed + rest, look) || rest < gap / 8 {
                true => (enter - gap, gap, preempted, true),
                false if off > 0 => (enter - gap, off, 0, false),
                false => (enter, 0, 0, false),
            }
        });
        Some(Look {
            is_vain,
            begin,
            before,
            preempted,
            follows,
            calls: calls as u64,
            looked,
            between: (looked - inside) + before,
        })
    }

    /// Takes a call that does nothing. `None` if it is too late, or too long, to be part of looking.
    fn idle(
        &mut self,
        left: Left,
        (enter, leave): (i64, i64),
        off: i64,
        (preempted, preempted_ns): (u64, i64),
    ) -> Option<Look> {
        let (gap, _, rest) = left.until(enter, left.is_again, preempted_ns);
        let looked = leave - enter;
        let passed = left.passed + rest + looked;
        if !is_looking(passed, self.shortest?) {
            return None;
        }
        self.left = Some(Left {
            leave,
            off,
            passed,
            ..left
        });
        Some(Look {
            is_vain: true,
            begin: enter - gap,
            before: gap,
            preempted,
            follows: true,
            calls: 0,
            looked,
            between: gap,
        })
    }
}

impl Left {
    /// Time until the next call, the part of it that counts as sleep between looks, and the rest but for time
    /// `preempted`, ns.
    fn until(&self, enter: i64, is_again: bool, preempted: i64) -> (i64, i64, i64) {
        let gap = (enter - self.leave).max(0);
        let off = if is_again { self.off.clamp(0, gap) } else { 0 };
        (gap, off, (gap - off - preempted).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::calls::number;
    use laggard_trace::{Beside, Completion};

    const MS: i64 = 1_000_000;

    /// Looks of 1 us in vain at these calls, in a row, 10 ms apart, of which the program sleeps all
    /// but 100 us: how much of the time between each and the one before counts as looking, ns.
    fn between(calls: &[u16]) -> Vec<i64> {
        let event = Event {
            off: Some(9_900_000),
            ..Event::default()
        };
        let mut looks = Looks::default();
        let taken = (0..).zip(calls).map(|(at, &operation)| {
            let of = LooksOf {
                looks: true,
                is_vain: true,
                idles: false,
                spot: (operation, 1),
            };
            let enter = at * 10 * MS;
            let times = (enter, enter + 1_000);
            looks.look(Some(of), times, Some(&event), |ticks| ticks as i64)
        });
        taken.map(|look| look.map_or(-1, |l| l.before)).collect()
    }

    #[test]
    fn sleep_before_the_first_look_is_none_between_looks() {
        let (probe, test) = (number::MPI_Iprobe, number::MPI_Test);
        let gap = 10 * MS - 1_000;
        assert_eq!(between(&[probe, probe, probe]), [0, gap, gap]);
        assert_eq!(between(&[probe, test]), [0, 0]);
        assert_eq!(between(&[probe, test, probe, test]), [0, 0, gap, gap]);
        // More than can be told apart: looks at them again.
        assert_eq!(between(&[1, 2, 3, 4, 5, 1]), [0, 0, 0, 0, gap, gap]);
    }

    /// A look of 100 ns in vain, a call that does nothing from `idle` on and until, and a look that enters at `again`,
    /// ns after the first one's end: what counts as looking at each of the last two.
    fn around(
        idle: (i64, i64),
        again: i64,
        event: Option<&Event>,
    ) -> [Option<(i64, i64, bool)>; 2] {
        let of = |looks, idles| LooksOf {
            looks,
            is_vain: looks,
            idles,
            spot: (number::MPI_Test, 1),
        };
        let (test, wait) = (of(true, false), of(false, true));
        let mut looks = Looks::default();
        let mut take = |of, times, event| {
            let look = looks.look(Some(of), times, event, |ticks| ticks as i64);
            look.map(|look| (look.before, look.looked, look.follows))
        };
        take(test, (-100, 0), None);
        [
            take(wait, idle, event),
            take(test, (again, again + 100), None),
        ]
    }

    /// Two looks 10 ms apart, of which others had the processor so long: how much of that counts as looking, ns.
    fn without_processor(preempted: i64) -> i64 {
        let of = LooksOf {
            looks: true,
            is_vain: true,
            idles: false,
            spot: (number::MPI_Test, 1),
        };
        let mut looks = Looks::default();
        looks.look(Some(of), (-100, 0), None, |ticks| ticks as i64);
        let event = Event {
            beside: Beside {
                preempted: preempted as u64,
                ..Beside::default()
            },
            ..Event::default()
        };
        let times = (10 * MS, 10 * MS + 100);
        let look = looks.look(Some(of), times, Some(&event), |ticks| ticks as i64);
        look.map_or(-1, |look| look.before)
    }

    #[test]
    fn who_looks_without_a_processor_in_between_looks_all_the_time() {
        assert_eq!(without_processor(10 * MS - 900), 10 * MS);
        // Or it works in between, and others take its processor then.
        assert_eq!(without_processor(5 * MS), 0);
        assert_eq!(without_processor(20 * MS), 10 * MS);
    }

    #[test]
    fn calls_between_looks_that_do_nothing_are_looking() {
        let (all, some) = (Some((900, 100, true)), Some((500, 200, true)));
        assert_eq!(around((500, 700), 1_600, None), [some, all]);
        // All that is between two looks must be short, with the call.
        let none = Some((0, 100, false));
        assert_eq!(around((500, 700), 2_100, None), [some, none]);
        assert_eq!(around((500, 2_600), 2_700, None), [None, none]);
        assert_eq!(around((2_500, 2_600), 2_700, None), [None, none]);
        // It completes something.
        let completes = Event {
            completed: vec![Completion {
                delta: 1,
                outcome: 0,
                thread: None,
            }],
            ..Event::default()
        };
        assert_eq!(around((500, 700), 800, Some(&completes)), [None, none]);
    }
}
