//! The wait states of a thread, for the search for root causes: who waited for whom, and when.

use crate::basics::ends::NONE;
use crate::waits::charging::{Loss, Sink, WaitState, Whom};
use crate::wire::links::Link;
use crate::wire::parcels::Detail;

/// See [`Link::beside`].
const ELSEWHERE: u16 = 2;

/// Every wait for another party, one link for each of them.
#[derive(Debug, Default)]
pub struct Trail(Vec<Link>);

impl Sink for Trail {
    #[inline]
    fn take(&mut self, wait: &WaitState<'_>) {
        let loss = &wait.loss;
        if !loss.pattern.is_waiting() {
            return;
        }
        let waiting = &wait.waiting;
        // Looks in vain are many: the one at that time waited.
        let is_polled = waiting.since < waiting.enter;
        let at = |time: i64| match is_polled {
            true => (time, time - waiting.since),
            false => (waiting.enter, 0),
        };
        let (enter, looked) = at(waiting.leave);
        let nobody = Link {
            rank: waiting.rank,
            thread: waiting.thread,
            enter,
            leave: waiting.leave,
            looked,
            signature: waiting.signature,
            pattern: loss.pattern as u16,
            share: loss.severity,
            late_rank: NONE,
            time: waiting.leave,
            left: loss.left,
            beside: match loss.looked {
                Some(looked) if looked.elsewhere != NONE => ELSEWHERE,
                looked => u16::from(looked.is_some_and(|looked| looked.beside)),
            },
            ..Link::default()
        };
        let (first, mut left) = (self.0.len(), loss.severity);
        for (share, late) in shares(loss) {
            let share = share.clamp(0, left);
            // A party that was late before or after the call is due to clocks.
            let is_within = (waiting.since..=waiting.leave).contains(&late.time);
            if share == 0 || late.rank == NONE || late.operation == 0 || !is_within {
                continue;
            }
            left -= share;
            let (enter, looked) = at(late.time);
            self.0.push(Link {
                share,
                enter,
                looked,
                late_rank: late.rank,
                late_thread: late.thread,
                event: late.event,
                time: late.time,
                ..nobody
            });
        }
        let known = &mut self.0[first..];
        let is_group = loss.left != i64::MAX && matches!(loss.whom, Whom::Several(_));
        match known.len() as i64 {
            _ if left == 0 => {}
            1.. if is_group => divide(known, left),
            _ => self.0.push(Link {
                share: left,
                ..nobody
            }),
        }
        if is_polled && self.0.len() > first + 1 {
            tell_looking(&mut self.0[first..]);
        }
    }
}

/// Of looks that waited for several: looking until a party came is shared by all that were missing.
fn tell_looking(links: &mut [Link]) {
    links.sort_by_key(|link| link.time);
    let (mut missing, mut before) = (links.len() as i64, 0);
    for link in links {
        link.beyond = missing * (link.share - before) - link.share;
        (missing, before) = (missing - 1, link.share);
        link.goes_on = u16::from(missing > 0);
    }
}

/// Divides time in which more members of a collective were missing than are known: those that are
/// known were missing, too.
fn divide(known: &mut [Link], time: i64) {
    let count = known.len() as i64;
    known.iter_mut().for_each(|link| link.share += time / count);
    known
        .iter_mut()
        .take((time % count) as usize)
        .for_each(|link| link.share += 1);
}

/// The late parties with their shares of a loss, ns.
fn shares<'a>(loss: &Loss<'a>) -> impl Iterator<Item = (i64, &'a Detail)> {
    let (whom, all) = (loss.whom, loss.severity);
    (0..).map_while(move |at| match whom {
        Whom::Nobody => None,
        Whom::One(late) => (at == 0).then_some((all, late)),
        Whom::Several(shares) => shares.get(at).map(|(share, late)| (*share, late)),
    })
}

impl Link {
    /// Whether looks in vain waited.
    pub fn is_polled(&self) -> bool {
        self.looked > 0
    }

    /// Whether they looked for something else than what ended the wait.
    pub fn is_elsewhere(&self) -> bool {
        self.beside == ELSEWHERE
    }

    /// When the wait began, ns.
    pub fn since(&self) -> i64 {
        self.enter.saturating_sub(self.looked)
    }
}

impl IntoIterator for Trail {
    type Item = Link;
    type IntoIter = std::vec::IntoIter<Link>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Trail {
    /// Hands over the links since the last call. Memory for as many is kept, unless ranks `are_many`.
    pub fn drain(&mut self, are_many: bool, to: impl FnOnce(&[Link])) {
        to(&self.0);
        match are_many {
            true => self.0 = Vec::new(),
            false => self.0.clear(),
        }
    }
}
