//! Use of the processor by the calling thread, to tell sleep from work between two looks.

use std::time::Duration;

use crate::clock;

/// Use of the processor by a thread so far.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// Time on the processor, ns.
    processor: u64,
    /// How often it left the processor by itself.
    left: i64,
    /// How often another one took its place.
    pushed: i64,
}

impl Used {
    /// The use by the calling thread.
    pub fn now() -> Used {
        // SAFETY: all zero is a value of this struct of integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writing.
        if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) } != 0 {
            return Used::default();
        }
        Used {
            processor: clock::thread_ns(),
            left: usage.ru_nvcsw,
            pushed: usage.ru_nivcsw,
        }
    }

    /// At least so many of the last `gap` ticks the thread slept, if its use was `before` when they
    /// began, or earlier. 0 if others took its processor more often than it left it, since it may
    /// have worked then.
    pub fn off(&self, before: &Used, gap: u64) -> u64 {
        if self.left == before.left || self.pushed - before.pushed > self.left - before.left {
            return 0;
        }
        let used = self.processor.saturating_sub(before.processor);
        gap.saturating_sub(clock::ticks(Duration::from_nanos(used)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_told_from_work() {
        let before = Used::now();
        assert_ne!(before.processor, 0);
        let used = |processor, left, pushed| Used {
            processor: before.processor + processor,
            left: before.left + left,
            pushed: before.pushed + pushed,
        };
        let gap = clock::ticks(Duration::from_millis(2));
        let part = clock::ticks(Duration::from_millis(1));
        assert_eq!(used(1_000_000, 1, 0).off(&before, gap), gap - part);
        assert_eq!(used(3_000_000, 1, 0).off(&before, gap), 0);
        // It never left the processor, or was pushed from it.
        assert_eq!(used(1_000, 0, 0).off(&before, gap), 0);
        assert_eq!(used(1_000, 1, 2).off(&before, gap), 0);
    }
}
