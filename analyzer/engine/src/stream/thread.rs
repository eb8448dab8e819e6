//! One thread of a rank in pass one: its calls, and the requests that it has under way.

use rustc_hash::FxHashMap;

use crate::basics::intern::PathKey;
use crate::basics::queue::Queue;
use crate::stream::activity::History;
use crate::stream::columns::{Columns, Stream};
use crate::stream::following::Following;
use crate::stream::rows::Row;

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
    /// What it did after slow calls.
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
    /// What one-sided transfers should take, by signature.
    pub(crate) usual: FxHashMap<u32, Usual>,
}
/// A request that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Posted {
    /// Completed, or nothing to match.
    Done,
    Send {
        channel: u32,
        n: u64,
    },
    Receive {
        channel: u32,
        n: u64,
    },
    /// A receive whose number is not known yet, or whose channel.
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
        Thread {
            number,
            stream,
            columns: Columns::default(),
            history: History::default(),
            following: Following::default(),
            rows,
            lists,
            paths,
            posted: Queue::default(),
            posted_base: 0,
            undefined: 0,
            usual,
        }
    }

    #[inline(always)]
    pub(crate) fn post(&mut self, posted: Posted) {
        self.posted.push(posted);
    }

    /// How many requests a completion list names.
    #[inline]
    pub(crate) fn listed(&self, list: u32) -> usize {
        self.lists.get(list as usize).map_or(0, Vec::len)
    }

    /// Requests that did not end, in order of posting.
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

    /// The request with this number, which ended.
    pub(crate) fn take(&mut self, number: u64) -> Posted {
        match self.posted(number) {
            Some(posted) => std::mem::replace(posted, Posted::Done),
            None => Posted::Done,
        }
    }

    /// Takes a request off the list.
    pub(crate) fn complete(&mut self, number: u64) -> Posted {
        let posted = self.take(number);
        self.trim();
        posted
    }

    /// Forgets the first requests that ended.
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

/// What transfers of one signature should take, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usual {
    /// Nobody else in the way.
    pub expected: i64,
    /// Those at least this long are slow.
    pub slow: i64,
}
