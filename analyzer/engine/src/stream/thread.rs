//! One thread of a rank in pass one: its calls and requests under way.

use rustc_hash::FxHashMap;

use crate::basics::intern::PathKey;
use crate::basics::queue::Queue;
use crate::stream::activity::History;
use crate::stream::columns::{Columns, Stream};
use crate::stream::following::Following;
use crate::stream::polling::Polling;
use crate::stream::rows::Row;
use crate::stream::traffic::Counted;
use crate::stream::within::Within;

/// One thread of a rank.
pub struct Thread<'a> {
    /// Number in the trace.
    pub number: u32,
    /// Its calls, slab by slab.
    pub stream: Stream<'a>,
    /// The calls of this slab.
    pub columns: Columns,
    /// Sums over its calls so far.
    pub(crate) history: History,
    /// Its looks that found nothing.
    pub(crate) polling: Polling,
    /// Its activity after slow calls.
    pub(crate) following: Following,
    /// By signature id.
    pub rows: Vec<Row>,
    /// Completion lists by id.
    pub lists: Vec<Vec<(u32, u32)>>,
    /// Keys of the call paths by signature id.
    pub paths: Vec<PathKey>,
    pub(crate) posted: Queue<Posted>,
    /// Post number of `posted[0]`.
    pub(crate) posted_base: u64,
    /// Calls with undefined signatures.
    pub undefined: u64,
    /// Its calls by signature.
    pub counted: Counted,
    /// Parallel regions around them.
    pub within: Within,
    /// Usual durations of one-sided transfers and of collectives with a root, by signature.
    pub(crate) usual: FxHashMap<u32, Usual>,
}
/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Posted {
    /// Completed, or irrelevant for matching.
    Done,
    Send {
        channel: u32,
        n: u64,
        /// Whether the message has no data.
        is_empty: bool,
    },
    Receive {
        channel: u32,
        n: u64,
    },
    /// A receive without a known number or channel.
    Deferred {
        slot: u64,
    },
    Group {
        group: u32,
        n: u64,
        signature: u32,
        /// Whether the member needs something from others.
        waits: bool,
    },
    /// A one-sided transfer to or from the memory of a world rank.
    Access {
        window: u64,
        target: i32,
    },
}
impl<'a> Thread<'a> {
    /// A thread before its first slab.
    pub fn new(
        number: u32,
        stream: Stream<'a>,
        rows: Vec<Row>,
        lists: Vec<Vec<(u32, u32)>>,
        paths: Vec<PathKey>,
        usual: FxHashMap<u32, Usual>,
    ) -> Self {
        let signatures = stream.location().definitions.signatures();
        let polling = Polling::new(signatures, &rows, &paths);
        Thread {
            number,
            stream,
            columns: Columns::default(),
            history: History::default(),
            polling,
            following: Following::default(),
            rows,
            lists,
            paths,
            posted: Queue::default(),
            posted_base: 0,
            undefined: 0,
            counted: Counted::default(),
            within: Within::default(),
            usual,
        }
    }

    /// Goes on with the tables of the location that was opened again. What was known before keeps its
    /// number there.
    pub fn onto(self, thread: Thread<'_>) -> Thread<'_> {
        let mut polling = self.polling;
        let signatures = thread.stream.location().definitions.signatures();
        polling.know(signatures, &thread.rows, &thread.paths);
        Thread {
            stream: self.stream.onto(thread.stream.location()),
            columns: self.columns,
            history: self.history,
            polling,
            following: self.following,
            posted: self.posted,
            posted_base: self.posted_base,
            undefined: self.undefined,
            counted: self.counted,
            within: self.within,
            ..thread
        }
    }

    /// Adds the calls of the slab to its sums.
    pub(crate) fn sum_up(&mut self) {
        let (columns, rows) = (&self.columns, &self.rows[..]);
        let signatures = self.stream.location().definitions.signatures();
        self.within.extend(columns, rows);
        self.counted.extend(columns, rows, signatures);
        self.history.turn(columns);
        self.following.turn();
        for call in columns.slab() {
            let row = rows.get(call.signature as usize);
            let row = row.unwrap_or(&Row::UNDEFINED);
            self.history.add(&call, row);
            self.following.add(&call, row);
            self.counted.add(&call, row);
        }
    }

    /// Frees what only further calls, or questions about single ones, would need. Of traces without an
    /// end the last calls stay: they tell where it was cut off.
    pub(crate) fn free(&mut self) {
        let location = self.stream.location();
        if location.end.is_some() && location.open_call.is_none() {
            self.columns = Columns::default();
        }
        self.history = History::default();
        self.usual = FxHashMap::default();
        self.posted.shrink();
    }

    #[inline(always)]
    pub(crate) fn post(&mut self, posted: Posted) {
        self.posted.push(posted);
    }

    /// Number of requests on a completion list.
    #[inline]
    pub(crate) fn listed(&self, list: u32) -> usize {
        self.lists.get(list as usize).map_or(0, Vec::len)
    }

    /// Unfinished requests, in order of posting.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &Posted> {
        let posted = self.posted.iter();
        posted.filter(|posted| !matches!(posted, Posted::Done))
    }

    /// The request with this number, if it is under way.
    #[inline]
    pub(crate) fn posted(&mut self, number: u64) -> Option<&mut Posted> {
        let at = number.checked_sub(self.posted_base)?;
        self.posted.get_mut(usize::try_from(at).ok()?)
    }

    /// Ends the request with this number and returns it.
    pub(crate) fn take(&mut self, number: u64) -> Posted {
        match self.posted(number) {
            Some(posted) => std::mem::replace(posted, Posted::Done),
            None => Posted::Done,
        }
    }

    /// Removes a request from the list.
    pub(crate) fn complete(&mut self, number: u64) -> Posted {
        let posted = self.take(number);
        self.trim();
        posted
    }

    /// Drops the ended requests at the front.
    #[inline]
    pub(crate) fn trim(&mut self) {
        let is_open = |posted: &Posted| !matches!(posted, Posted::Done);
        let done = self.posted.iter().position(is_open);
        let done = done.unwrap_or(self.posted.len());
        self.posted.drop_first(done);
        self.posted_base += done as u64;
    }

    #[inline]
    pub(crate) fn next_post(&self) -> u64 {
        self.posted_base + self.posted.len() as u64
    }
}

/// Usual duration of one-sided transfers, or collectives with a root, of one signature, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usual {
    /// Expected duration without competitors, or when nobody is late.
    pub expected: i64,
    /// Shortest slow duration.
    pub slow: i64,
}

impl Usual {
    /// Nothing is slow.
    pub const UNKNOWN: Usual = Usual {
        expected: i64::MAX,
        slow: i64::MAX,
    };
}
