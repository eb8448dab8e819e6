//! Changes of the recording while it goes on: what a thread does of them, and their records.

use laggard_trace::calls::user::STEER;
use laggard_trace::{Change, Wish, flags};

use super::{Lookup, Raw, Stream};
use crate::call::guarded;
use crate::log;
use crate::options::SampleBy;
use crate::sampling::Wanted;
use crate::steering;

/// What a thread knows of the user's wishes.
pub struct Steered {
    /// Number of the wish that it follows.
    seen: u32,
    wish: Wish,
    /// As it was started.
    depth: usize,
    sampling: Option<Wanted>,
    by: SampleBy,
    /// Changes that are no records yet, and when they were seen, ticks.
    changes: Vec<(Change, u64)>,
}

impl Steered {
    pub fn new(depth: usize, sampling: Option<Wanted>, by: SampleBy) -> Steered {
        Steered {
            seen: 0,
            wish: Wish::default(),
            depth,
            sampling,
            by,
            changes: Vec::new(),
        }
    }
}

impl Stream {
    /// Looks whether the user wants something else, between two calls.
    #[cold]
    #[inline(never)]
    pub(super) fn look_at_wishes(&mut self, now: u64) {
        let Some(news) = steering::news(self.steered.seen) else {
            return;
        };
        // The program looks at `errno` after a call.
        // SAFETY: the calling thread's errno.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            guarded(|| self.follow(news, now));
            *errno = before;
        }
    }

    fn follow(&mut self, news: Result<(u32, Wish), u32>, now: u64) {
        match news {
            Err(number) => {
                self.steered.seen = number;
                self.steered.changes.push((Change::Refused, now));
                if steering::is_first_refused(number) {
                    log::warning!(
                        "what somebody wants of this recording makes no sense, or its file was cut off: all goes on as it was"
                    );
                }
            }
            Ok((number, wish)) => {
                if !steering::apply(number, &wish) {
                    // The next look sees it.
                    return;
                }
                let before = std::mem::replace(&mut self.steered.wish, wish);
                self.steered.seen = number;
                let changes: Vec<Change> = self.steered.wish.changes(&before).collect();
                for change in &changes {
                    match change {
                        Change::Depth(depth) => {
                            self.depth = depth.map_or(self.steered.depth, usize::from);
                        }
                        Change::SampleHz(hz) => self.sample_again(*hz),
                        _ => {}
                    }
                }
                let seen = changes.into_iter().map(|change| (change, now));
                self.steered.changes.extend(seen);
            }
        }
        self.writer.open_call().note_steered(self.steered.seen);
        if !self.steered.changes.is_empty() {
            // They are written with the next record: this call's own comes first.
            self.stretches.pending = 1;
        }
    }

    /// Samples from now on so often; `None`: as it was started.
    fn sample_again(&mut self, hz: Option<u16>) {
        let by = self.steered.by;
        let wanted = match hz {
            None => self.steered.sampling,
            Some(hz) => Some(Wanted { hz: hz.into(), by }),
        };
        let wanted = wanted.filter(|wanted| wanted.hz > 0 && self.records);
        self.stop_samples();
        self.stretches.sample(wanted.is_some());
        if let Some(wanted) = wanted {
            self.begin_samples(wanted);
        }
    }

    /// Writes changes that were seen by the time of the `next` record, after the one that ended `last`:
    /// times in the file ascend.
    pub(super) fn write_changes(&mut self, last: u64, next: u64) {
        let changes = &mut self.steered.changes;
        let due = changes.partition_point(|(_, seen)| *seen <= next);
        if due < changes.len() {
            self.stretches.pending = 1;
        }
        let due: Vec<(Change, u64)> = changes.drain(..due).collect();
        for (change, seen) in due {
            let at = seen.max(last);
            let raw = Raw {
                flags: flags::PAUSED,
                extra: change.parameter() as u64,
                ..Raw::new(STEER, 0)
            };
            let (Lookup::Known(found) | Lookup::New(found)) = self.find_or_make(&raw) else {
                self.lost += 1;
                continue;
            };
            self.signatures.statistics(found).add(0);
            if self.records {
                self.recorded += 1;
                self.writer.push(at, at, found.id);
            }
        }
    }

    /// Whether there are changes without a record.
    #[inline]
    pub(super) fn has_changes(&self) -> bool {
        !self.steered.changes.is_empty()
    }

    /// Writes the looks that are not in the trace yet, and the changes seen by the `next` record, ticks; or at the end.
    pub(super) fn tell_changes(&mut self, next: Option<u64>) {
        let polled = self.polling.leave;
        self.flush_polling(next);
        if self.has_changes() {
            self.write_changes(polled, next.unwrap_or(u64::MAX));
        }
    }
}
