//! A location on its way through the run.

use laggard_engine::events::{Events, Moves};

use crate::effects::{Changed, Effects};
use crate::graph::{BY_ENTER, Consumer, Provider};
use crate::marks::{Marks, Pairs};
use crate::reader::{Call, Reader};
use crate::shares::Ahead;

/// What is known of a call with a number.
pub trait Numbered {
    /// The number.
    fn number(&self) -> u64;
}

impl Numbered for Provider {
    fn number(&self) -> u64 {
        self.number
    }
}

impl Numbered for Consumer {
    fn number(&self) -> u64 {
        self.number
    }
}

/// A look that found something.
pub struct Found {
    /// That of its enter.
    pub number: u64,
    /// Looking in vain before it that waited, ns.
    pub lost: i64,
    /// When that began, ns.
    pub since: i64,
}

impl Numbered for Found {
    fn number(&self) -> u64 {
        self.number
    }
}

/// What is known of a location's calls, ascending by number, until they have been passed.
pub struct Queue<T> {
    rows: Vec<T>,
    at: usize,
}

impl<T: Numbered> Queue<T> {
    fn new() -> Queue<T> {
        Queue {
            rows: Vec::new(),
            at: 0,
        }
    }

    /// Adds a row, in any order.
    pub fn push(&mut self, row: T) {
        self.rows.push(row);
    }

    /// Forgets rows that were passed, and puts the others in order.
    fn settle(&mut self) {
        self.rows.drain(..self.at);
        self.at = 0;
        // They come as a few lists in order: a stable sort merges these.
        self.rows.sort_by_key(T::number);
    }

    /// Goes on to this number. Gives where its rows, up to `last`, begin and end.
    #[inline]
    fn find(&mut self, first: u64, last: u64) -> (usize, usize) {
        let rows = &self.rows;
        while rows.get(self.at).is_some_and(|row| row.number() < first) {
            self.at += 1;
        }
        let mut end = self.at;
        while rows.get(end).is_some_and(|row| row.number() <= last) {
            end += 1;
        }
        (self.at, end)
    }
}

/// A location.
pub struct Lane<'e> {
    pub location: u32,
    pub reader: Reader<'e>,
    pub next: Option<Call>,
    pub has_entered: bool,
    pub is_done: bool,
    pub is_blocked: bool,
    /// The junction that it is blocked by.
    pub needs: u64,
    pub gives_way: bool,
    /// A thread begins when its rank has come so far.
    pub start: Option<u64>,
    pub providers: Queue<Provider>,
    by_number: Queue<Consumer>,
    by_enter: Queue<Consumer>,
    pub found: Queue<Found>,
    /// When another thread of its rank started it, ns.
    pub born: Option<i64>,
    /// The call before, and its recorded end.
    pub before: Option<Call>,
    pub since: i64,
    /// Where it is, by column, ns.
    pub now: Vec<i64>,
    pub ahead: Ahead<'e>,
    /// Looking in vain since others last depended on it, by column, ns; empty before the first.
    pub looked: Vec<i64>,
    /// The same before that.
    pub settled: i64,
    /// Looking in vain in a row, and what little lies between these looks, ns.
    pub in_a_row: (i64, i64),
    /// Enter of the first look in vain since another call waited, or may have, ns; `i64::MAX` before one.
    pub began: i64,
    /// Looking in vain since it last found something, or had it otherwise, ns.
    pub vain: i64,
    /// What is waited for before the next call.
    pub deferred: Vec<Deferred>,
    /// By scenario that combines messages: to whom, since the last call elsewhere.
    pub peers: Vec<(usize, Vec<i32>)>,
    /// Scenarios in which the call at hand is combined with those before it.
    pub repeated: Marks,
    /// Scenarios in which the message that was looked for last is waited for later.
    pub probed: Marks,
    /// Calls that are made once in a scenario, and have been.
    pub once: Vec<u32>,
    pub is_measured: bool,
    /// New times by scenario; empty: nobody asks.
    pub moves: Vec<Moves>,
    pub times: Times,
    pub pairs: Pairs,
    /// By signature.
    pub known: Vec<Option<Known>>,
}

/// The end of a call that is waited for before the next one.
#[derive(Clone, Copy)]
pub struct Deferred {
    pub column: usize,
    /// When what it needs is there, ns.
    pub bound: i64,
    /// What that is.
    pub late: u32,
    /// The call.
    pub site: u32,
    /// What it takes by itself, ns.
    pub own: i64,
}

/// What is known of calls of a signature.
#[derive(Clone, Copy)]
pub struct Known {
    pub changed: Changed,
    /// Number of the call at its place and location.
    pub site: u32,
}

/// Sums of a location, by column. ns.
#[derive(Clone, Default)]
pub struct Times {
    /// When it was first left the start of the library.
    pub begin: Vec<i64>,
    /// When it entered the end of the library.
    pub end: Vec<i64>,
    /// When its last call ended.
    pub last: Vec<i64>,
    pub computed: Vec<i64>,
    pub waited: Vec<i64>,
    /// New times, by scenario.
    pub moves: Vec<Moves>,
}

impl<'e> Lane<'e> {
    pub fn new(
        events: &'e Events,
        effects: &Effects,
        location: usize,
        start: Option<u64>,
        columns: usize,
    ) -> Lane<'e> {
        let place = events.place(location);
        let first = place.first_ns;
        Lane {
            location: location as u32,
            reader: Reader::new(events, location),
            next: None,
            has_entered: false,
            is_done: false,
            is_blocked: false,
            needs: 0,
            gives_way: false,
            start,
            providers: Queue::new(),
            by_number: Queue::new(),
            by_enter: Queue::new(),
            found: Queue::new(),
            born: place.born_ns(),
            before: None,
            since: first,
            now: vec![first; columns],
            ahead: effects.ahead(events, location),
            looked: Vec::new(),
            settled: 0,
            in_a_row: (0, 0),
            began: i64::MAX,
            vain: 0,
            deferred: Vec::new(),
            peers: Vec::new(),
            repeated: 0,
            probed: 0,
            once: Vec::new(),
            is_measured: false,
            moves: Vec::new(),
            times: Times {
                begin: vec![first; columns],
                end: Vec::new(),
                last: Vec::new(),
                computed: vec![0; columns],
                waited: vec![0; columns],
                moves: Vec::new(),
            },
            pairs: Pairs::default(),
            known: Vec::new(),
        }
    }

    /// The moments that others need of this location and that have not come, with their calls.
    pub fn open(&self) -> impl Iterator<Item = &Provider> {
        self.providers.rows[self.providers.at..].iter()
    }

    /// Whether a moment of this location has not come yet.
    pub fn is_open(&self, number: u64, is_by_time: bool) -> bool {
        let Some(call) = &self.next else {
            return false;
        };
        number > call.number || number >= call.first && (is_by_time || !self.has_entered)
    }

    /// A call of this location needs something.
    pub fn needs(&mut self, consumer: Consumer) {
        match consumer.number & BY_ENTER {
            0 => self.by_number.push(consumer),
            _ => self.by_enter.push(consumer),
        }
    }

    /// A slab has been read.
    pub fn settle(&mut self) {
        self.providers.settle();
        self.by_number.settle();
        self.by_enter.settle();
        self.found.settle();
    }

    /// A slab has been read that ends at `end`, ns: reads its calls, too. Several locations may do so
    /// beside each other.
    pub fn prepare(&mut self, end: i64) {
        self.settle();
        self.reader.fill(end);
        self.ahead.fill(end);
    }

    /// What a call needs, in the order of numbers.
    #[inline]
    pub fn needed(&mut self, call: &Call, needed: &mut Vec<Consumer>) {
        needed.clear();
        let (from, to) = self.by_number.find(call.first, call.number);
        needed.extend_from_slice(&self.by_number.rows[from..to]);
        let enter = BY_ENTER | call.enter as u64;
        if call.leave > call.enter && !self.by_enter.rows.is_empty() {
            let (from, to) = self.by_enter.find(enter, enter);
            needed.extend_from_slice(&self.by_enter.rows[from..to]);
        }
    }

    /// How long this call, a look, had looked in vain and waited, and since when, ns.
    #[inline]
    pub fn lost(&mut self, call: &Call) -> Option<(i64, i64)> {
        if self.found.rows.is_empty() || call.leave <= call.enter {
            return None;
        }
        let enter = BY_ENTER | call.enter as u64;
        let (from, to) = self.found.find(enter, enter);
        let rows = &self.found.rows[from..to];
        let since = rows.iter().map(|found| found.since).min()?;
        Some((rows.iter().map(|found| found.lost).sum(), since))
    }

    /// A moment that others need and that has come now.
    #[inline]
    pub fn provider(
        &mut self,
        call: &Call,
        is_now: impl Fn(&Provider) -> bool,
    ) -> Option<Provider> {
        let (from, to) = self.providers.find(call.first, call.number);
        let rows = &mut self.providers.rows;
        let found = (from..to).find(|&at| is_now(&rows[at]))?;
        rows.swap(from, found);
        self.providers.at += 1;
        Some(rows[from])
    }

    pub fn finished(mut self) -> Times {
        if self.times.end.is_empty() {
            self.times.end.clone_from(&self.now);
        }
        self.times.last = self.now;
        self.times.moves = self.moves;
        self.times
    }
}
