//! What a call was beside work: which of it is its own, and which part of its waiting.

use laggard_trace::Event;

use super::{Open, Walker, room};
use crate::roots::activities::{INSIDE, Kind};
use crate::roots::synced::Parts;
use crate::stream::traffic::InCalls;

/// Calls that did little but wait, from this share of their time on.
const WAITING: (i64, i64) = (3, 4);

/// Time beside work in the waiting of such calls, ns.
#[derive(Clone, Default)]
pub(super) struct InWaits {
    /// By [`INSIDE`], at least.
    times: [i64; INSIDE.len()],
    /// How long they waited.
    all: i64,
}

impl InWaits {
    /// Of the `time` beside work in a call that waited so long, what is not expected of its waiting.
    fn beyond(&self, at: usize, time: i64, waited: i64) -> i64 {
        let in_waits = i128::from(self.times[at]) * i128::from(waited);
        time - (in_waits / i128::from(self.all.max(1))) as i64
    }
}

impl Walker<'_> {
    /// What a call's record tells of it, by [`INSIDE`], ns.
    #[inline]
    pub(super) fn off_inside(
        &mut self,
        signature: u32,
        event: Option<&Event>,
    ) -> [i64; INSIDE.len()] {
        match event.filter(|event| self.folds && !event.inside.is_work()) {
            Some(event) => self.told_inside(signature, event),
            None => [0; INSIDE.len()],
        }
    }

    fn told_inside(&mut self, signature: u32, event: &Event) -> [i64; INSIDE.len()] {
        let call = self.activities.of_call(self.thread, signature);
        let length = |ticks| self.thread.stream.length_ns(ticks);
        let mut times = event.inside.of_call(length);
        if call.stores {
            times[2] = length(event.inside.kernel);
            return times;
        }
        for (time, tells) in times.iter_mut().zip(call.tells) {
            *time *= i64::from(tells);
        }
        times
    }

    /// Appends the parts of the `own` time of a call that ends, ns: beside work, then the rest.
    ///
    /// Where in the call a rank was off its processor is not recorded. Libraries that yield or sleep in
    /// waits are off it there, too: by as much as in the calls so far that did little but wait. What goes
    /// beyond is of the call itself, and never more than that.
    #[inline]
    pub(super) fn parts(&mut self, open: &Open, number: u32, mut own: i64, parts: &mut Parts) {
        if !open.is_work() {
            self.beside_work(open, &mut own, parts);
        }
        parts.push((number, own));
        let waited = i128::from(open.waited) * i128::from(WAITING.1);
        let whole = open.leave - open.begin;
        if waited > 0 && waited >= i128::from(whole) * i128::from(WAITING.0) {
            // Who waits without a processor goes on late: what comes after the waiting is off it first.
            let rest = (whole - open.waited).max(0);
            if !open.is_work() {
                for (sum, time) in self.in_waits.times.iter_mut().zip(open.off) {
                    *sum = sum.saturating_add((time.min(whole) - rest).max(0));
                }
            }
            self.in_waits.all = self.in_waits.all.saturating_add(open.waited);
        }
    }

    /// Takes the parts beside work from a call's `own` time, ns.
    fn beside_work(&mut self, open: &Open, own: &mut i64, parts: &mut Parts) {
        let whole = open.leave - open.begin;
        let call = self.activities.of_call(self.thread, open.signature);
        let (mut left, mut stored) = (*own, 0);
        for (at, &time) in open.off.iter().enumerate().filter(|(_, time)| **time > 0) {
            let part = self.in_waits.beyond(at, time.min(whole), open.waited);
            let part = part.clamp(0, left);
            if part == 0 {
                continue;
            }
            left -= part;
            if !call.tells[at] {
                stored += part;
                continue;
            }
            let inside = self
                .activities
                .inside(self.thread, INSIDE[at], open.signature);
            parts.push((inside, part));
            *own -= part;
            if INSIDE[at] == Kind::Preempted {
                let beyond = room::at(&mut self.beyond, open.signature as usize);
                count(&mut beyond.preempted, part);
                if call.looks && open.waited == 0 {
                    let looked = self.looked_off.entry(call.number).or_default();
                    *looked = looked.saturating_add(part);
                }
            }
        }
        if stored > 0 {
            let beyond = room::at(&mut self.beyond, open.signature as usize);
            count(&mut beyond.stored, stored);
        }
    }
}

/// Adds a call.
fn count((time, calls): &mut InCalls, more: i64) {
    *time = time.saturating_add(more);
    *calls += 1;
}
