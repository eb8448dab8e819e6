//! What threads do before they are locations: long waits for others, and letting others go on.
//!
//! Waits for signals make no thread a location: most threads that wait so have nothing to do. Some become locations
//! later, at the latest as they end. What they were in until then is kept, and told first.
//!
//! *Constraints.* Programs may have thousands of such threads. So it is kept only if a location waits when it is
//! over, which this may be for; and only what lasts: waits, and calls that end a wait after a stretch of time. If that
//! is much, it is what lasted longest.

use std::mem;
use std::time::Duration;

use laggard_callpath::{CallSite, Carried, Tracer};
use laggard_trace::calls::number;

use super::{births, is_recorded, locks};
use crate::clock;
use crate::posix;
use crate::run;
use crate::signature::Raw;
use crate::stream::{Stream, Used};
use crate::thread::{self, FIRST_CALL, slot};

/// Shorter waits are not kept, nor are calls that end another one's after a shorter stretch.
const LEAST: Duration = Duration::from_millis(1);
/// Most that is kept of a thread.
const MOST: usize = 64;

/// A call of a thread that was no location then.
pub struct Kept {
    number: u16,
    parameter: u64,
    key: u64,
    path: Carried,
    /// Enter and leave, ticks.
    pub times: (u64, u64),
    /// Use of the processor until then.
    pub used: Used,
    /// The length of the wait, or of the stretch before the other one's ended.
    lasted: u64,
}

impl Kept {
    /// As a record, but for its times.
    pub fn raw(&self, stream: &mut Stream) -> (Raw, u64) {
        let raw = Raw {
            extra: self.parameter,
            ..Raw::new(self.number, stream.take_over(&self.path))
        };
        (raw, self.key)
    }
}

/// What a thread did before it was a location.
#[derive(Default)]
pub struct Early {
    tracer: Option<Box<Tracer>>,
    /// In order of time.
    kept: Vec<Kept>,
    /// When the last such call was over, ticks.
    left: u64,
}

impl Early {
    /// Whether it let others go on.
    pub fn has_let_go(&self) -> bool {
        self.kept.iter().any(|kept| !is_wait(kept.number))
    }

    /// The path of a call of the calling thread, which has not returned; `None` where nothing may be looked up.
    fn path(&mut self, site: CallSite) -> Option<Carried> {
        let stack = thread::stack();
        let here = (&raw const stack) as u64;
        let has_room = stack.contains(&here) && here - stack.start >= FIRST_CALL;
        let settings = run::settings().filter(|_| has_room && posix::is_safe(site.sp, &stack))?;
        let tracer = self.tracer.get_or_insert_with(Box::default);
        // SAFETY: as stated.
        let path = unsafe { tracer.capture(&site, settings.depth) };
        Some(tracer.carry(path))
    }

    /// Whether something that lasted so long is to be kept. What is shorter makes room for it.
    fn has_room(&mut self, lasted: u64) -> bool {
        if self.kept.len() < MOST {
            return true;
        }
        let shortest = (0..self.kept.len()).min_by_key(|&at| self.kept[at].lasted);
        let shortest = shortest.filter(|&at| self.kept[at].lasted < lasted);
        shortest.map(|at| self.kept.remove(at)).is_some()
    }
}

fn is_wait(number: u16) -> bool {
    !matches!(
        number,
        number::pthread_cond_signal | number::cnd_signal | number::sem_post | number::futex_wake
    )
}

/// Whether what the calling thread does is kept, which is no location: others know it.
pub fn is_kept() -> bool {
    // SAFETY: the slot belongs to this thread.
    let is_none = unsafe { *slot() }.is_null();
    is_none && births::begin().is_some_and(|begin| begin.may_be_kept())
}

/// The path of a call of the calling thread, which has not returned, without a stream: the thread is no location, or its
/// stream is not to be used now.
pub fn path(site: CallSite) -> Option<Carried> {
    match births::begin() {
        Some(begin) => begin.early.path(site),
        None => Early::default().path(site),
    }
}

/// Such a thread was in this call since `enter`, ticks.
pub fn keep(site: CallSite, (number, key, parameter): (u16, u64, u64), enter: u64) {
    let is_wanted = is_recorded() && locks::is_any_waiting();
    let Some(begin) = births::begin().filter(|_| is_wanted) else {
        return;
    };
    let leave = clock::now();
    let before = mem::replace(&mut begin.early.left, leave).max(begin.born);
    let lasted = match is_wait(number) {
        true => leave.saturating_sub(enter),
        false => enter.saturating_sub(before),
    };
    if lasted < clock::ticks(LEAST) || !begin.early.has_room(lasted) {
        return;
    }
    let Some(path) = begin.early.path(site) else {
        return;
    };
    begin.early.kept.push(Kept {
        number,
        parameter,
        key,
        path,
        times: (enter, leave),
        used: Used::now(),
        lasted,
    });
}

/// The calling thread has become a location, with this stream: tells what it did before.
pub fn tell(stream: &mut Stream) {
    let Some(begin) = births::begin() else {
        return;
    };
    let early = mem::take(&mut begin.early);
    let is_known = births::birth().is_some_and(|birth| birth.is_whole);
    if is_known && !early.kept.is_empty() {
        stream.tell_early(&early.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasted_longest_is_kept_in_order() {
        let mut early = Early::default();
        let of = |lasted| Kept {
            number: number::sem_wait,
            parameter: 0,
            key: 0,
            path: Carried::default(),
            times: (0, 0),
            used: Used::default(),
            lasted,
        };
        let most = MOST as u64;
        for lasted in (1..=most).map(|lasted| lasted * 7 % (most + 1)) {
            assert!(early.has_room(lasted));
            early.kept.push(of(lasted));
        }
        assert!(!early.has_room(1));
        assert!(early.has_room(2));
        early.kept.push(of(2));
        let lasted: Vec<u64> = early.kept.iter().map(|kept| kept.lasted).collect();
        assert_eq!(lasted[..3], [7, 14, 21]);
        assert_eq!((lasted.len(), lasted.last()), (MOST, Some(&2)));
        assert!(!lasted.contains(&1) && !early.has_let_go());
        early.kept.push(Kept {
            number: number::sem_post,
            ..of(1)
        });
        assert!(early.has_let_go());
    }
}
