//! What a location did so far: time by activity, and which of them took some since a moment.
//!
//! Of hundreds of activities few take time between two meetings. They are linked in the order of their last
//! changes, so that nobody looks at the others.

use crate::basics::ends::NONE;
use crate::basics::room;
use crate::roots::members::Set;
use crate::roots::synced::Closed;

/// What a location did so far.
#[derive(Clone, Debug)]
pub struct Spent {
    /// Position among what happened here.
    pub order: u64,
    /// Waiting, ns.
    pub waited: i64,
    /// Number of calls so far that met somebody.
    meetings: u64,
    /// The activity that changed last; the others follow in [`Of::before`].
    latest: u32,
    /// By activity.
    of: Vec<Of>,
    /// Memory of what is found: of as many activities.
    found: Vec<(u32, i64)>,
}

/// One activity.
#[derive(Clone, Copy, Debug)]
struct Of {
    /// In all, ns.
    time: i64,
    /// When it ended last, ns.
    ended: i64,
    /// Number of meetings before its last change, from 1; 0 if there is none.
    changed: u64,
    /// The activities that changed last before it, and first after it; `NONE` at both ends.
    before: u32,
    after: u32,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            order: 0,
            waited: 0,
            meetings: 0,
            latest: NONE,
            of: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl Default for Of {
    fn default() -> Of {
        Of {
            time: 0,
            ended: 0,
            changed: 0,
            before: NONE,
            after: NONE,
        }
    }
}

impl Spent {
    /// A call ends that met somebody: what it spent is added from now on, and what comes later.
    #[inline]
    pub fn meet(&mut self) {
        self.meetings += 1;
    }

    /// Some time was spent until `ended`, ns.
    #[inline]
    pub fn add(&mut self, activity: u32, time: i64, ended: i64) {
        let of = self.change(activity);
        of.time = of.time.saturating_add(time.max(0));
        of.ended = ended;
    }

    /// Some of the time was none, ns.
    pub fn take_back(&mut self, activity: u32, time: i64) {
        let of = self.change(activity);
        of.time -= time.min(of.time);
    }

    /// When an activity ended last, ns.
    pub fn ended(&self, activity: u32) -> i64 {
        self.of.get(activity as usize).map_or(0, |of| of.ended)
    }

    /// The times by activity, ns.
    pub fn times(&self) -> Vec<i64> {
        self.of.iter().map(|of| of.time).collect()
    }

    /// The time by activity that was spent since another moment, ns, of those with any: the one that changed last first.
    #[inline]
    pub fn since(&mut self, since: &Sums) -> &[(u32, i64)] {
        if self.found.len() < self.of.len() {
            self.found.resize(self.of.len(), (NONE, 0));
        }
        let found = &mut self.found[..];
        let (mut next, mut count) = (self.latest, 0);
        while let Some(of) = self.of.get(next as usize)
            && of.changed > since.meetings
        {
            let time = of.time - since.of(next);
            found[count] = (next, time);
            count += usize::from(time > 0);
            next = of.before;
        }
        &found[..count]
    }

    /// Appends the time by activity that was spent between two moments, ns, of those with any.
    pub fn between(&self, since: &Sums, until: &Sums, times: &mut Vec<(u32, i64)>) {
        self.changed(since.meetings, |activity, _| {
            let time = until.of(activity) - since.of(activity);
            if time > 0 {
                times.push((activity, time));
            }
        });
    }

    /// The activities that changed after so many meetings.
    #[inline]
    fn changed(&self, meetings: u64, mut each: impl FnMut(u32, &Of)) {
        let mut next = self.latest;
        while let Some(of) = self.of.get(next as usize) {
            if of.changed <= meetings {
                break;
            }
            each(next, of);
            next = of.before;
        }
    }

    /// Begins with what another location did, whose activities have these `numbers` here.
    pub fn inherit(&mut self, then: &Sums, numbers: &[u32]) {
        (self.order, self.waited) = (then.order, then.waited);
        for (&number, &time) in numbers.iter().zip(&then.times) {
            if number != NONE {
                self.change(number).time = time;
            }
        }
    }

    /// The activity changes.
    #[inline]
    fn change(&mut self, activity: u32) -> &mut Of {
        let now = self.meetings + 1;
        let changed =
            std::mem::replace(&mut room::at(&mut self.of, activity as usize).changed, now);
        if changed != now && self.latest != activity {
            self.link(activity, changed > 0);
        }
        &mut self.of[activity as usize]
    }

    /// Makes an activity the latest one.
    #[inline]
    fn link(&mut self, activity: u32, is_linked: bool) {
        let last = std::mem::replace(&mut self.latest, activity);
        let of = &mut self.of[activity as usize];
        let (before, after) = (of.before, of.after);
        (of.before, of.after) = (last, NONE);
        if is_linked {
            self.of[after as usize].before = before;
            if let Some(before) = self.of.get_mut(before as usize) {
                before.after = after;
            }
        }
        if let Some(last) = self.of.get_mut(last as usize) {
            last.after = activity;
        }
    }
}

/// Sums at a moment.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Position among what happened here.
    pub order: u64,
    /// Waiting so far, ns.
    pub waited: i64,
    /// If this one waited for a message of the other one then: how much later it left, ns.
    pub later: i64,
    /// If this one waited for the root of a collective then, as others may have done: of whom.
    pub team: Option<Set>,
    /// Time by activity so far, ns.
    times: Vec<i64>,
    /// After so many meetings: what changes until the next one may not be in it.
    meetings: u64,
}

impl Sums {
    /// As they are now.
    pub fn now(spent: &Spent) -> Sums {
        let mut sums = Sums::default();
        sums.note(spent);
        sums
    }

    /// Becomes what there is now: only what changed is copied.
    pub fn note(&mut self, now: &Spent) {
        if self.times.len() < now.of.len() {
            self.times.resize(now.of.len(), 0);
        }
        let times = &mut self.times[..];
        now.changed(self.meetings, |activity, of| {
            times[activity as usize] = of.time;
        });
        (self.order, self.waited, self.later) = (now.order, now.waited, 0);
        (self.team, self.meetings) = (None, now.meetings);
    }

    /// Becomes the same as others, in the memory that is there.
    pub fn copy(&mut self, other: &Sums) {
        (self.order, self.waited, self.later) = (other.order, other.waited, 0);
        (self.team, self.meetings) = (None, other.meetings);
        self.times.clone_from(&other.times);
    }

    /// Activities have these `numbers` from now on, by those they had.
    pub fn renumber(&mut self, numbers: &[u32]) {
        let mut times = Vec::new();
        let known = numbers.iter().zip(&self.times);
        for (&number, &time) in known.filter(|(number, _)| **number != NONE) {
            let at = number as usize;
            if times.len() <= at {
                times.resize(at + 1, 0);
            }
            times[at] = time;
        }
        // All of it may have changed since.
        (self.times, self.meetings) = (times, 0);
    }

    /// What two locations did is compared from when the first of them `left` the call in which
    /// they met. This one may have left it later, but it waited for the other one until then.
    pub fn begin_at(&mut self, left: i64, call: &Closed) {
        let later = call.leave.saturating_sub(left);
        let mut later = later.saturating_sub(call.transfer).max(0);
        for &(number, time) in &call.parts {
            let spent = &mut self.times[number as usize];
            let part = later.min(time);
            *spent -= part.clamp(0, *spent);
            later -= part;
        }
    }

    /// They are those before a call.
    pub fn begin_before(&mut self, call: &Closed) {
        self.order -= 1;
        self.waited -= call.waited.min(self.waited);
        for &(number, time) in call.alike.iter().chain(&call.parts) {
            let spent = &mut self.times[number as usize];
            *spent -= time.clamp(0, *spent);
        }
    }

    /// The same, if this one had sent the other one something, and then waited for somebody else: that
    /// comes later, for `after` ns of it since the first of them left.
    pub fn begin_before_wait(&mut self, left: i64, after: i64, call: &Closed) {
        self.order -= 1;
        self.waited -= call.waited.min(self.waited);
        for &(number, time) in &call.alike {
            let spent = &mut self.times[number as usize];
            *spent -= time.clamp(0, *spent);
        }
        self.begin_at(left.saturating_add(after - call.transfer), call);
    }

    /// In the rules of Scalasca a wait after the meeting is taken off the whole time of its call's
    /// path since then, also if it began before: what is `time` longer than the call was since, ns, is taken off
    /// later calls there.
    pub fn owe(&mut self, activity: u32, time: i64) {
        self.times[activity as usize] += time.max(0);
    }

    #[inline]
    fn of(&self, activity: u32) -> i64 {
        self.times.get(activity as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    /// Positions of moments may be those of any call.
    #[derive(Clone, Debug)]
    enum Step {
        Meet,
        Add(u32, i64),
        TakeBack(u32, i64),
        Note(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Meet),
            (0..9u32, 0..5i64).prop_map(|(activity, time)| Step::Add(activity, time)),
            (0..9u32, 0..3i64).prop_map(|(activity, time)| Step::TakeBack(activity, time)),
            (0..3usize).prop_map(Step::Note),
        ]
    }

    proptest! {
        #[test]
        fn what_changed_is_found_without_a_look_at_the_rest(steps in prop::collection::vec(step(), 0..200)) {
            let mut spent = Spent::default();
            let mut now = [0i64; 9];
            let mut noted: [(Sums, [i64; 9]); 3] = Default::default();
            for step in steps {
                match step {
                    Step::Meet => spent.meet(),
                    Step::Add(activity, time) => {
                        spent.add(activity, time, 0);
                        now[activity as usize] += time;
                    }
                    Step::TakeBack(activity, time) => {
                        spent.take_back(activity, time);
                        let of = &mut now[activity as usize];
                        *of -= time.min(*of);
                    }
                    Step::Note(at) => {
                        noted[at].0.note(&spent);
                        noted[at].1 = now;
                    }
                }
                for (sums, then) in &noted {
                    let mut found = spent.since(sums).to_vec();
                    let changed = |&(activity, _): &(u32, i64)| Reverse(spent.of[activity as usize].changed);
                    prop_assert!(found.is_sorted_by_key(changed), "the latest come first");
                    found.sort_unstable();
                    let more = (0..).zip(now.iter().zip(then)).map(|(at, (now, then))| (at, now - then));
                    let more: Vec<(u32, i64)> = more.filter(|(_, time)| *time > 0).collect();
                    prop_assert_eq!(found, more);
                }
            }
        }
    }
}
