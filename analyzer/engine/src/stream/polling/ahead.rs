//! Whether a loop of looks goes on after one that found something.

use laggard_trace::{Event, flags};
use smallvec::SmallVec;

use super::IN_TURN;
use crate::stream::columns::{Columns, Stream};
use crate::stream::looks::is_vain;
use crate::stream::rows::Row;

/// Most records after a look that found something in which it is searched how its loop goes on.
const AHEAD: usize = 64;
/// Who works for so long before a call that is no look does more than to handle what it found, ns.
const HANDLING_NS: i64 = 50_000;

/// Whether a loop of looks goes on after the one at a position, which found something.
#[cold]
pub(super) fn goes_on((columns, at): (&Columns, usize), rows: &[Row], stream: &Stream) -> bool {
    let found = &rows[columns.signature[at] as usize];
    let mut ahead = Ahead {
        rows,
        leave: columns.leave[at],
        may_receive: found.has(flags::PEEKS),
        count: 0,
        vain: SmallVec::new(),
    };
    let mut next = at + 1..columns.enter.len();
    let known = next.find_map(|at| {
        let times = (columns.enter[at], columns.leave[at]);
        ahead.take(columns.signature[at], times, columns.event(at))
    });
    // The slab may end in between.
    let further = |event: &Event, times| ahead.take(event.signature, times, Some(event));
    let known = known.or_else(|| stream.peek(AHEAD, further));
    // A trace that has no end tells of none.
    known.unwrap_or(stream.location().end.is_none())
}

/// Calls after a look that found something.
struct Ahead<'r> {
    rows: &'r [Row],
    /// The leave of the last one, ns.
    leave: i64,
    /// Whether the next one may receive what was found.
    may_receive: bool,
    count: usize,
    /// Looks that found nothing: their signatures, and what else tells their places apart.
    vain: SmallVec<[LookedAt; IN_TURN]>,
}

/// A signature, and the address and source of an event that differ from it.
type LookedAt = (u32, Option<u64>, Option<(i32, i32)>);

impl Ahead<'_> {
    /// Takes the next call. Returns whether the loop goes on, once that is known.
    fn take(
        &mut self,
        signature: u32,
        (enter, leave): (i64, i64),
        event: Option<&Event>,
    ) -> Option<bool> {
        self.count += 1;
        if self.count > AHEAD {
            return Some(true);
        }
        let row = self.rows.get(signature as usize)?;
        if row.is_mark() {
            return None;
        }
        let before = enter - std::mem::replace(&mut self.leave, leave);
        let may_receive = std::mem::take(&mut self.may_receive);
        if !row.looks || row.idles && event.is_none_or(|event| event.completed.is_empty()) {
            // Others need this thread in a collective.
            let receives = may_receive && row.has(flags::RECEIVES);
            let is_over = before >= HANDLING_NS && !receives || row.has(flags::COLLECTIVE);
            return is_over.then_some(false);
        }
        // What is left of the last turn looks at each place once, and finds nothing.
        let is_series = event.is_some_and(|event| event.repeated.is_some());
        let of = |event: &Event| (signature, event.address, event.receive_endpoint);
        let look = event.map_or((signature, None, None), of);
        if is_series || !is_vain(row) || self.vain.contains(&look) {
            return Some(true);
        }
        self.vain.push(look);
        None
    }
}
