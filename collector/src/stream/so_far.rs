//! Calls that are meant for the profile alone: the file tells them from time to time, so that a killed process
//! loses no more than the last ones.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Stream;
use crate::call::guarded;
use crate::clock;
use crate::thread::{STATE, state};

/// The profile is told so seldom where that takes no time.
const LEAST: Duration = Duration::from_millis(10);
/// Telling it takes at most this part of the time.
const PART: u64 = 1000;

/// When the profile was told.
#[derive(Default)]
pub struct SoFar {
    /// Whether calls without records may have come since.
    is_due: bool,
    /// Ticks.
    last: u64,
    /// It is not told again for so long, ticks.
    rests: u64,
}

impl Stream {
    /// Tells the profile so far, after a call that returned at `now`, if calls may be in no record.
    pub(super) fn tell_profile(&mut self, now: u64) {
        let is_profile = STATE.load(Ordering::Relaxed) & state::PROFILE != 0;
        let goes_on = is_profile || !self.records || !self.writer.is_recording();
        self.so_far.is_due |= goes_on;
        if !self.so_far.is_due || now.wrapping_sub(self.so_far.last) < self.so_far.rests {
            return;
        }
        // The program looks at `errno` after a call.
        // SAFETY: the calling thread's errno.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            guarded(|| {
                let begin = clock::thread_ns();
                let profile = self.signatures.profile.entries();
                self.writer.profile_so_far(&profile);
                // What others took of the processor does not count, nor does making room the first time.
                let took = match self.so_far.last {
                    0 => 0,
                    _ => clock::thread_ns().saturating_sub(begin),
                };
                let took = clock::ticks(Duration::from_nanos(took));
                self.so_far = SoFar {
                    is_due: goes_on,
                    last: now,
                    rests: clock::ticks(LEAST).max(took.saturating_mul(PART)),
                };
            });
            *errno = before;
        }
    }
}
