//! The records of one rank.

use crate::basics::ends::End;
use crate::stream::activity;
use crate::stream::activity::{Activity, Other};
use crate::stream::call::CallAt;
use crate::stream::columns::LOOK_BACK;
use crate::stream::rows::Row;
use crate::stream::thread::Thread;
use crate::wire::parcels::{Detail, Party, WHOLE};

/// The calls of one rank.
pub struct Recorded<'a> {
    /// World rank.
    pub rank: u32,
    /// Its threads in order.
    pub threads: Vec<Thread<'a>>,
    /// The agent of each world rank.
    pub agent_of: &'a [u32],
    /// Whether nobody asks what the rank did beside its late calls.
    pub is_bare: bool,
}

impl Recorded<'_> {
    pub fn signature(&self, call: &CallAt) -> &laggard_trace::Signature {
        &self.threads[call.thread as usize]
            .stream
            .location()
            .definitions
            .signatures()[call.signature as usize]
    }

    pub fn group_id(&self, call: &CallAt) -> u64 {
        self.signature(call).group
    }

    pub fn posted_endpoint(
        &self,
        call: &CallAt,
        overridden: Option<(i32, i32)>,
    ) -> (u64, i32, i32) {
        let signature = self.signature(call);
        let (peer, tag) = overridden.unwrap_or((signature.receive.peer, signature.receive.tag));
        (signature.group, peer, tag)
    }

    /// A call as that of a party which others wait for.
    pub fn party(&self, call: &CallAt) -> Party {
        Party {
            enter: call.enter,
            event: call.number,
            rank: self.rank,
            thread: self.threads[call.thread as usize].number,
            signature: call.signature,
        }
    }

    /// The position of the thread with this number.
    pub fn position(&self, number: u32) -> Option<u32> {
        let found = self.threads.binary_search_by_key(&number, |one| one.number);
        found.ok().map(|at| at as u32)
    }

    /// The begin of a region with recorded calls: its record is at its end.
    pub fn begun_before(&self, call: &CallAt, ticks: u64, row: &Row) -> CallAt {
        let stream = &self.threads[call.thread as usize].stream;
        let enter = call.leave.saturating_sub(stream.length_ns(ticks));
        CallAt {
            enter,
            asks: call.leave - enter >= row.asks_from,
            ..*call
        }
    }

    /// The late call of this end, and its rank's activity before it and after `since`. With a
    /// moment `by` which it is asked about, the call may be in an earlier slab. Which calls of it are
    /// in memory depends on where slabs end. So only the [`LOOK_BACK`] calls before that moment
    /// count.
    #[inline(always)]
    pub fn late(&self, end: &End, since: i64, by: Option<i64>) -> Detail {
        let is_at_hand = match by {
            _ if self.is_bare => false,
            None => true,
            Some(by) => self.is_at_hand(end.thread, end.event, by),
        };
        let detail = match is_at_hand {
            true => self.detail_at(end.thread, end.event, since),
            false => None,
        };
        let mut detail = detail.unwrap_or_else(|| self.detail_alone(end));
        detail.time = end.time;
        detail
    }

    /// The late call with this number and the activity before it, if it is still in memory.
    #[inline(always)]
    pub fn detail_at(&self, thread: u32, event: u64, since: i64) -> Option<Detail> {
        let found = self.threads.get(thread as usize)?;
        let position = found.columns.position(event)?;
        let activity = activity::before(
            &found.columns,
            &found.rows,
            &found.paths,
            &found.history,
            position,
            since,
        );
        let call = End {
            time: found.columns.enter[position],
            event,
            signature: found.columns.signature[position],
            thread,
        };
        Some(self.detail(found, &call, &activity))
    }

    /// The late call without activity.
    pub fn detail_alone(&self, call: &End) -> Detail {
        let thread = &self.threads[call.thread as usize];
        self.detail(thread, call, &Activity::default())
    }

    #[inline(always)]
    fn detail(&self, thread: &Thread, call: &End, activity: &Activity) -> Detail {
        let path = |signature: u32| {
            let path = thread.paths.get(signature as usize);
            path.copied().unwrap_or_default()
        };
        let operation = |signature: u32| {
            let row = thread.rows.get(signature as usize);
            row.map_or(0, |row| row.operation)
        };
        let other = activity.other.as_ref();
        let of_other = other.map_or(0, |other| other.signature);
        let part = |other: &Other, off: i64| {
            let parts = i128::from(off) * i128::from(WHOLE) / i128::from(other.time.max(1));
            parts.clamp(0, WHOLE.into()) as u8
        };
        let off = other.map_or([0; 2], |other| other.off.map(|off| part(other, off)));
        let [other_blocked, other_preempted] = off;
        Detail {
            computation: activity.computation,
            waiting: activity.waiting,
            other: other.map_or(0, |other| other.time),
            path: path(call.signature),
            operation: operation(call.signature),
            other_path: other.map_or_else(Default::default, |_| path(of_other)),
            other_operation: other.map_or(0, |_| operation(of_other)),
            other_blocked,
            other_preempted,
            io: activity.io,
            blocked: activity.blocked,
            preempted: activity.preempted,
            time: call.time,
            event: call.event,
            rank: self.rank,
            thread: thread.number,
            empty: thread
                .rows
                .get(call.signature as usize)
                .is_some_and(|row| row.is_empty)
                .into(),
        }
    }

    /// Whether a call is at most [`LOOK_BACK`] calls before this moment.
    fn is_at_hand(&self, thread: u32, event: u64, by: i64) -> bool {
        let columns = &self.threads[thread as usize].columns;
        columns.position(event).is_some_and(|position| {
            let limit = columns.enter.get(position + LOOK_BACK);
            columns.enter[position] >= by || limit.is_none_or(|&enter| enter >= by)
        })
    }

    /// Activity of this rank before it entered a collective. The calls in memory depend on when the
    /// collective was settled. So only the [`LOOK_BACK`] calls before the moment when it was
    /// `complete` count.
    pub fn before_entry(&self, party: &Party, since: i64, complete: i64) -> Option<Detail> {
        let call = End {
            time: party.enter,
            event: party.event,
            signature: party.signature,
            thread: self.position(party.thread)?,
        };
        let is_at_hand = !self.is_bare && self.is_at_hand(call.thread, call.event, complete);
        let detail = match is_at_hand {
            true => self.detail_at(call.thread, call.event, since),
            false => None,
        };
        Some(detail.unwrap_or_else(|| self.detail_alone(&call)))
    }
}
