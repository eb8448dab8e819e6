//! Ordered regions of OpenMP loops: threads go through them in the order of iterations.
//!
//! Nothing tells whether it is a thread's turn already: its wait is a record if it lasts. While it does,
//! the turn is noted as awaited, and who passes it on gets a record, too. Iterations that depend on others (`depend`) wait
//! for each by its number instead.

use std::time::Duration;

use laggard_callpath::CallSite;
use laggard_trace::calls::number;

use super::locks::{self, is_awaited};
use super::team::in_team;
use super::{Place, Waiter, What, ompt};
use crate::clock;

/// Shorter waits have no record.
const LEAST: Duration = Duration::from_micros(20);

/// The calling thread wants its turn. It counts as one that waits until it passes the turn on itself: who
/// passes it on to this thread may look at the count later than this thread goes on.
pub fn wants(site: CallSite) {
    if let Some(waiter) = in_team(site) {
        let membership = waiter.membership();
        if !std::mem::replace(&mut membership.in_order, true) {
            locks::awaits(membership.turns());
        }
        waiter.enter(|membership, now| membership.ordered = now);
    }
}

/// It has its turn.
pub fn has(site: CallSite, place: Place) {
    let Some(waiter) = in_team(site) else {
        return;
    };
    let membership = waiter.membership();
    let enter = std::mem::take(&mut membership.ordered);
    if enter != 0 {
        record(&waiter, place, (enter, membership.turns()));
    }
}

/// Records a wait for `key` since `enter`, ticks, that is over now, if it has lasted.
fn record(waiter: &Waiter, place: Place, (enter, key): (u64, u64)) {
    let leave = clock::now();
    if leave.saturating_sub(enter) >= clock::ticks(LEAST) {
        let what = What {
            number: number::omp_ordered,
            place,
            parameter: 0,
            key,
        };
        waiter.record(&what, (enter, leave));
    }
}

/// It passes the turn on, or just has. Returns by what others wait for it, if they do.
pub fn passes_on(site: CallSite) -> Option<u64> {
    let membership = in_team(site)?.membership();
    let turns = membership.turns();
    if std::mem::take(&mut membership.in_order) {
        locks::awaits_no_more(turns);
    }
    is_awaited(turns).then_some(turns)
}

/// The calling thread waits, by `wait`, for an iteration with this number in the outermost loop.
pub fn sink(site: CallSite, number: u64, wait: impl FnOnce()) {
    let Some(waiter) = in_team(site) else {
        return wait();
    };
    let key = waiter.membership().iteration(number);
    locks::awaits(key);
    let enter = waiter.enter(|_, _| ());
    wait();
    locks::awaits_no_more(key);
    record(&waiter, Place::here(site), (enter, key));
}

/// It says, by `post`, that such an iteration is done.
pub fn source(site: CallSite, number: u64, post: impl FnOnce()) {
    let key = in_team(site).map(|waiter| waiter.membership().iteration(number));
    let Some(key) = key.filter(|&key| is_awaited(key)) else {
        return post();
    };
    let enter = clock::now();
    post();
    passed_on(site, Place::here(site), (key, enter));
}

/// It has passed on this turn since `enter`, ticks, since others waited for it.
pub fn passed_on(site: CallSite, place: Place, (turns, enter): (u64, u64)) {
    locks::gave_back(site, place, number::omp_ordered_end, turns, enter);
}

/// An ordered region begins. `wait` waits for the turn.
pub fn begin(site: CallSite, wait: impl FnOnce()) {
    if ompt::is_told() {
        return wait();
    }
    wants(site);
    wait();
    has(site, Place::here(site));
}

/// The calling thread goes on to its next part of an ordered loop, by `next`.
pub fn next<T>(site: CallSite, next: impl FnOnce() -> T) -> T {
    let Some(turns) = (!ompt::is_told()).then(|| passes_on(site)).flatten() else {
        return next();
    };
    let enter = clock::now();
    let result = next();
    passed_on(site, Place::here(site), (turns, enter));
    result
}
