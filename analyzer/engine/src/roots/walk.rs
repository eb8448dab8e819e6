//! The forward sweep over the calls of a location: time by activity, and what was done since it
//! last synchronised with another rank.

pub mod births;
mod inside;
mod meeting;
pub mod moments;
mod waiting;

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

use laggard_trace::calls::Shape;
use laggard_trace::{Beside, Event};
use rustc_hash::FxHashMap;

use crate::basics::ends::NONE;
use crate::basics::room;
use crate::clock::ClockMap;
use crate::roots::activities::{Activities, Activity, INSIDE, OfCall, Told, is_call, is_plain};
use crate::roots::counters::InCounters;
use crate::roots::functions::{Functions, InFunctions};
use crate::roots::load::{Sending, Sent};
use crate::roots::members::Members;
use crate::roots::spent::{Spent, Sums};
use crate::roots::sums::{Longer, Worst, WorstWaits};
use crate::roots::synced::{Closed, Synced};
use crate::roots::teams::Team;
use crate::stream::columns::{Columns, Stream};
use crate::stream::looks::Looks;
use crate::stream::thread::Thread;
use crate::stream::traffic::Beyond;
use crate::wire::links::{Blame, Link, More, Waiters, Wholes};
use births::{Heritage, Origin};
use inside::InWaits;
use meeting::{Met, Started};
use moments::Moments;
pub use waiting::team;
use waiting::unknown;

/// The call at a position, if it has extension records. `next` is a position in their list, at which
/// earlier calls end.
#[inline]
fn event_at<'c>(columns: &'c Columns, next: &mut usize, at: usize) -> Option<&'c Event> {
    loop {
        let (position, event) = columns.extended.get(*next)?;
        match position.cmp(&at) {
            Ordering::Less => *next += 1,
            Ordering::Equal => return Some(event),
            Ordering::Greater => return None,
        }
    }
}

/// A wait for a call of this location.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Number of the late call.
    pub event: u64,
    /// Number of the late location at this agent.
    pub lane: u32,
    /// Agent of the waiting location, and number of the wait there.
    pub agent: u32,
    pub index: u32,
    /// Waiting world rank, or one of them, and number of its thread.
    pub rank: u32,
    pub thread: u32,
    /// Who waits.
    pub who: Waiters,
    /// The agent's number of the group whose members wait; `NONE`: one rank waits.
    pub group: u32,
    /// The agent's number of the waiting call and pattern.
    pub victim: u32,
    /// The waiting time, ns.
    pub share: i64,
    /// When the first one left the operation in which the two met, except for the late one, ns.
    pub left: i64,
    /// Whether that is a collective.
    pub is_met: bool,
    /// See [`Link::looked`] and [`Link::beside`].
    pub looked: i64,
    pub beside: bool,
}

/// Time by activity, in a walker's list.
pub type Times = Range<u32>;

/// A wait of a location, and what it did since it last synchronised with the late party.
#[derive(Clone, Debug, Default)]
pub struct Waited {
    /// Position among what happened there.
    pub order: u64,
    /// Number of the wait.
    pub index: u32,
    /// What counts as waiting after the late one had come, ns.
    pub transfer: u32,
    /// Whether its call was found.
    pub is_known: bool,
    pub times: Times,
    /// Sums of these.
    pub wholes: Wholes,
    /// Its activity, if it is a [`Kind::Waited`](crate::roots::activities::Kind::Waited); else
    /// `NONE`.
    pub alike: u32,
}

/// Whom a late location met without the others after their group had met. What the late one did until
/// then is the same for both.
#[derive(Clone, Debug)]
pub struct Alone {
    /// With that, those whom it met say so, too.
    pub met: Activity,
    /// The agent's number of that.
    pub number: u32,
    /// What the late location did.
    pub times: Times,
    /// Sums of these.
    pub wholes: Wholes,
}

/// The last call so far: what it waited for may become known in a later slab.
#[derive(Clone, Copy, Debug)]
struct Open {
    signature: u32,
    number: u64,
    enter: i64,
    leave: i64,
    /// Its enter, or earlier if the time before is part of looking, ns.
    begin: i64,
    /// Work between the looks that the record stands for, ns.
    worked: i64,
    /// Waiting in it, ns, and when that was over, ns.
    waited: i64,
    until: i64,
    /// What counts as waiting after the late one had come, ns.
    transfer: i64,
    /// Whether it waits to its end: later looks go on waiting.
    goes_on: bool,
    /// What its record tells of it beside work, by [`INSIDE`], ns.
    off: [i64; INSIDE.len()],
    /// Whether it was ended already: the next one has yet to begin.
    is_closed: bool,
}

impl Open {
    /// One of which nothing else is known.
    #[inline]
    fn new(signature: u32, (enter, leave): (i64, i64)) -> Open {
        Open {
            signature,
            number: 0,
            enter,
            leave,
            begin: enter,
            worked: 0,
            waited: 0,
            until: i64::MIN,
            transfer: 0,
            goes_on: false,
            off: [0; INSIDE.len()],
            is_closed: false,
        }
    }

    /// Whether nothing is known of it beside work.
    fn is_work(&self) -> bool {
        self.off == [0; INSIDE.len()]
    }

    /// Whether it did nothing but work in its own time.
    fn is_plain(&self) -> bool {
        self.worked == 0 && self.waited == 0 && self.is_work()
    }
}

/// One location.
#[derive(Clone)]
pub struct Walker<'a> {
    /// World rank, and number of its thread.
    pub name: (u32, u32),
    /// Number of the location at this agent.
    lane: usize,
    /// Its thread.
    pub thread: &'a Thread<'a>,
    stream: Stream<'a>,
    columns: Columns,
    sending: Sending,
    pub activities: Activities,
    spent: Spent,
    synced: Synced,
    open: Option<Open>,
    /// Enter of its first call, or when it was started, ns.
    begin: Option<i64>,
    startup: Option<u32>,
    looks: Looks,
    /// Whom the open call synchronised with.
    partners: Vec<Met>,
    /// When the first one left the collective that is open, ns.
    left: i64,
    /// Whether members of its group waited for the open call, or it for them.
    met_group: bool,
    /// Meetings of its rank's threads that were read: numbers of its calls, and who came.
    teams: VecDeque<(u64, Team)>,
    /// When another thread of its rank started it, ns, and the position of that one, until its first call is read.
    born: Option<(i64, usize)>,
    /// Whether it may meet other ranks.
    talks: bool,
    moments: Moments,
    /// What the threads inherit that it started, what it inherits itself, and where it went on from.
    heirs: Vec<Heritage>,
    heritage: Option<Heritage>,
    origin: Option<Origin>,
    /// Whether it inherits anything.
    inherits: bool,
    /// Requests posted so far.
    posts: u64,
    /// Non-blocking collectives under way, and those that the open call completes.
    started: Vec<Started>,
    completing: Vec<Started>,
    /// When the last of the members was there for whom the open call waited to complete such a one,
    /// ns; `i64::MIN` if it did not.
    all_there: i64,
    /// When this location had waited for all members: looks after that complete the collective.
    met_all: Option<Sums>,
    /// Whether the waits of members of a collective are folded.
    folds: bool,
    /// Whether the open call waited for nobody known.
    waits_alone: bool,
    /// What is known of the end of the open call: its waits for somebody known.
    closed: Closed,
    /// The activities of waits that are told apart by whom they are for: a rank and a thread.
    told_apart: FxHashMap<(u32, u32), u32>,
    /// Looks waited until then, ns, and that much more than the links so far tell.
    looked_on: (i64, i64),
    /// By activity of looks: time without a processor in those that found nothing, and of which nobody knows yet
    /// whether they waited, ns.
    looked_off: FxHashMap<u32, i64>,
    /// What calls are beside work while they wait.
    in_waits: InWaits,
    /// By signature.
    beyond: Vec<Beyond>,
    /// Whether its start-up is over, and when the first rank's was, ns.
    has_begun: bool,
    begun: i64,
    /// Time by activity, before waits and before late calls of this slab.
    times: Vec<(u32, i64)>,
    /// The waits of this slab, and what this location did before.
    pub waits: Vec<Waited>,
    /// By late call of this slab, of those that were found; and places in `alone`.
    pub blames: Vec<(Blame, i64, Times, Range<u32>)>,
    /// Members that it met without others after their group had met.
    pub alone: Vec<Alone>,
    /// By activity.
    longer: Vec<Longer>,
    pub worst: WorstWaits,
    functions: &'a Functions,
    /// What samples say of what it did longer.
    pub in_functions: InFunctions,
    /// What counters say of it.
    pub in_counters: InCounters,
    /// When the last late party of this slab's waits came, and the last late call was entered, ns.
    last: (i64, i64),
    /// Whether this slab's late calls come after what the location waited for before. If that holds
    /// for all locations, waits make no circle: along each chain, time goes back.
    pub is_ordered: bool,
}

impl<'a> Walker<'a> {
    /// A location before its first call. Without start-up of its own, it has computed since `start`,
    /// ns. The first rank's start-up was over at `begun`, ns.
    pub fn new(
        (lane, rank, thread): (usize, u32, &'a Thread<'a>),
        clock: ClockMap,
        (folds, functions): (bool, &'a Functions),
        (start, begun): (Option<i64>, i64),
    ) -> Self {
        let mut activities = Activities::new(folds);
        activities.note_samples(thread, functions);
        Walker {
            name: (rank, thread.number),
            lane,
            thread,
            stream: Stream::new(thread.stream.location(), clock),
            columns: Columns::without_look_back(),
            sending: Sending::new(thread.stream.location()),
            activities,
            spent: Spent::default(),
            synced: Synced::default(),
            open: start.map(|start| Open::new(NONE, (start, start))),
            begin: start,
            startup: None,
            looks: Looks::default(),
            partners: Vec::new(),
            left: i64::MAX,
            met_group: false,
            teams: VecDeque::new(),
            born: None,
            talks: moments::talks(&thread.rows),
            moments: Moments::default(),
            heirs: Vec::new(),
            heritage: None,
            origin: None,
            inherits: false,
            posts: 0,
            started: Vec::new(),
            completing: Vec::new(),
            all_there: i64::MIN,
            met_all: None,
            folds,
            waits_alone: false,
            told_apart: FxHashMap::default(),
            closed: Closed::default(),
            looked_off: FxHashMap::default(),
            looked_on: (i64::MIN, 0),
            in_waits: InWaits::default(),
            beyond: Vec::new(),
            has_begun: false,
            begun,
            times: Vec::new(),
            waits: Vec::new(),
            blames: Vec::new(),
            alone: Vec::new(),
            longer: Vec::new(),
            worst: WorstWaits::default(),
            functions,
            in_functions: InFunctions::default(),
            in_counters: InCounters::default(),
            last: (i64::MIN, i64::MIN),
            is_ordered: true,
        }
    }

    /// Reads the calls entered before `until`, ns, and adds the bytes that they move.
    pub fn read(&mut self, until: i64, sent: &mut Sent) {
        self.stream.fill(until, false, &mut self.columns);
        let location = self.stream.location();
        self.sending.add(&self.columns, location, sent);
    }

    /// Leave of the call with this number, ns; `i64::MAX` if it is not at hand.
    pub fn leave_of(&self, event: u64) -> i64 {
        let position = self.columns.position(event);
        position.map_or(i64::MAX, |at| self.columns.leave[at])
    }

    /// Walks over the calls that were read. `own` are the slab's waits of this location,
    /// by enter; the first one has the number `first`. `leaves` are the leaves of their late calls.
    /// `lates` are the waits for it, by event; the first one has the number `first_late`, which
    /// stands for the sources in what comes of it.
    pub fn walk(
        &mut self,
        (own, first): (&[Link], usize),
        leaves: &[i64],
        (lates, first_late): (&[Late], usize),
        members: &Members,
    ) {
        self.times.clear();
        self.waits.clear();
        self.blames.clear();
        self.alone.clear();
        (self.last, self.is_ordered) = ((i64::MIN, i64::MIN), true);
        let (mut due, mut looked, mut late) = (0, 0, 0);
        let columns = std::mem::take(&mut self.columns);
        let thread = self.thread;
        let end = columns.enter.len();
        let is_call = is_call(&thread.rows);
        let is_defined = |at: &usize| is_call(columns.signature[*at]);
        // Position in `columns.extended`.
        let mut extended = 0;
        let mut next = (columns.first..end).find(is_defined);
        // Most calls neither wait nor are late: no call is copied.
        loop {
            if let Some((times, number)) = self.entered() {
                while let Some(this) = lates.get(late).filter(|this| this.event <= number) {
                    self.blame(((first_late + late) as u32, this), members);
                    late += 1;
                }
                let next_enter = next.map_or(i64::MAX, |at| columns.enter[at]);
                // Of looks in vain, the one at that time waited. Calls entered at the same time as
                // the one that waited, before it, took no time.
                let is_due = |link: &&Link| match link.is_polled() {
                    true => link.enter < next_enter,
                    false => (link.enter, link.leave) <= times,
                };
                while let Some(link) = own.get(due).filter(is_due) {
                    if due >= looked {
                        looked = due + self.wait_looking(&own[due..]);
                    }
                    self.wait((first + due) as u32, (link, leaves[due]), members);
                    due += 1;
                }
                let late = lates.get(late).map_or(u64::MAX, |late| late.event);
                let (mut entered, mut until) = (i64::MAX, self.moments.next().saturating_sub(1));
                match own.get(due) {
                    Some(link) if link.is_polled() => until = until.min(link.enter),
                    Some(link) => entered = link.enter,
                    None => {}
                }
                let stop = next.map(|at| {
                    let calls = (at, &mut extended);
                    self.pass(&columns, calls, (late, entered, until), members)
                });
                if stop > next {
                    next = stop.and_then(|at| (at..end).find(is_defined));
                    continue;
                }
            }
            let Some(at) = next else {
                break;
            };
            next = (at + 1..end).find(is_defined);
            let number = columns.number + at as u64;
            let times = (columns.enter[at], columns.leave[at]);
            let event = event_at(&columns, &mut extended, at);
            self.enter(columns.signature[at], times, (number, event), members);
        }
        // Waits of calls that were not found.
        let left = (first + due) as u32..(first + own.len()) as u32;
        self.waits.extend(left.map(unknown));
        self.columns = columns;
    }

    /// Some of the times of this slab.
    #[inline]
    pub fn listed(&self, times: &Times) -> &[(u32, i64)] {
        &self.times[times.start as usize..times.end as usize]
    }

    /// The last call ends, and the next one begins.
    #[inline]
    fn enter(
        &mut self,
        signature: u32,
        times: (i64, i64),
        (number, event): (u64, Option<&Event>),
        members: &Members,
    ) {
        self.close(members);
        let thread = self.thread;
        let row = &thread.rows[signature as usize];
        let (enter, leave) = times;
        let look = match self.folds {
            true => {
                let call = (signature, row);
                self.looks.take(call, times, event, &thread.stream)
            }
            false => None,
        };
        let begin = look.map_or(enter, |look| look.begin);
        if let Some((born, _)) = self.born.take() {
            self.live(born, signature);
        }
        if let Some(last) = &self.open {
            let (time, before) = (begin - last.leave, last.signature);
            let around = (before, signature);
            if time > 0 && self.moments.next() <= begin {
                self.compute_meanwhile(around, event, (begin, time), members);
            } else if time > 0 {
                self.compute(around, event, (enter, time));
            }
        }
        self.begin.get_or_insert(enter);
        self.complete(row, event);
        let mut off = self.off_inside(signature, event);
        let preempted = look.map_or(0, |look| look.preempted);
        if preempted > 0 {
            off[1] += thread.stream.length_ns(preempted);
        }
        // What does nothing between looks is time of the look before.
        let before = self
            .open
            .as_ref()
            .filter(|_| look.is_some_and(|look| look.calls == 0));
        let signature = before.map_or(signature, |before| before.signature);
        self.open = Some(Open {
            number,
            begin,
            worked: look.map_or(0, |look| leave - begin - look.before - look.looked),
            off,
            ..Open::new(signature, times)
        });
    }

    /// Some `time` passed between two calls, ns, until `enter`. The `event` is the one after it.
    #[inline]
    fn compute(&mut self, around: (u32, u32), event: Option<&Event>, (enter, time): (i64, i64)) {
        if event.is_none() && self.activities.has_no_counters() {
            let number = self.activities.of_gap(self.thread, around.0, around.1);
            self.spent.add(number, time, enter);
            return;
        }
        self.compute_parts(around, Told::by(event, self.folds), (enter, time));
    }

    /// The same with all that a record may tell of it.
    fn compute_parts(&mut self, around: (u32, u32), told: Told<'_>, (enter, time): (i64, i64)) {
        let spent = &mut self.spent;
        let mut part = |number, time| spent.add(number, time, enter);
        let activities = &mut self.activities;
        activities.of_gap_in(self.thread, around, told, time, &mut part);
        activities.of_samples(self.thread, (told, self.functions), &mut part);
        let Beside {
            blocked,
            preempted,
            kernel,
            ref counted,
            faults,
            ..
        } = told.beside;
        let away = self.thread.stream.length_ns(blocked + preempted + kernel);
        activities.of_faults(faults, &mut part);
        activities.of_counts(self.thread, counted, (time - away).max(0), part);
    }

    /// Whether calls met nobody that do not do so by their kind.
    fn is_alone(&self) -> bool {
        self.partners.is_empty()
            && !self.met_group
            && !self.waits_alone
            && self.started.is_empty()
            && self.completing.is_empty()
    }

    /// Ends the open call, and passes over calls that do nothing but take time, from `at` on: until the call with the number
    /// `late` is open, or one entered at `due` or later, ns, and never beyond those entered at `until`, ns. Returns where it
    /// stopped.
    fn pass(
        &mut self,
        columns: &Columns,
        (at, extended): (usize, &mut usize),
        (late, due, until): (u64, i64, i64),
        members: &Members,
    ) -> usize {
        let rows = &self.thread.rows;
        // The call there, if it was known before, and whether it may be passed over.
        let look = |activities: &Activities, at: usize| {
            let known = activities.known(columns.signature[at]);
            let is_plain = match known {
                Some(call) => call.is_plain,
                None => rows
                    .get(columns.signature[at] as usize)
                    .is_some_and(is_plain),
            };
            (known, is_plain && columns.enter[at] <= until)
        };
        let (mut known, may_pass) = look(&self.activities, at);
        if !may_pass {
            return at;
        }
        self.close(members);
        let open = self.open.as_ref().filter(|_| self.started.is_empty());
        let Some(&Open {
            mut signature,
            mut leave,
            ..
        }) = open
        else {
            return at;
        };
        let end = columns.enter.len();
        let mut stop = at;
        self.looks.pass();
        loop {
            let before = (signature, leave);
            let enter = columns.enter[stop];
            (signature, leave) = (columns.signature[stop], columns.leave[stop]);
            let number = columns.number + stop as u64;
            let event = event_at(columns, extended, stop);
            let off = self.off_inside(signature, event);
            if enter > before.1 {
                self.compute((before.0, signature), event, (enter, enter - before.1));
            }
            let call = known.unwrap_or_else(|| self.activities.of_call(self.thread, signature));
            stop += 1;
            let is_over = number >= late || enter >= due || call.meets || off != [0; INSIDE.len()];
            let may_pass;
            (known, may_pass) = match is_over || stop == end {
                true => (None, false),
                false => look(&self.activities, stop),
            };
            if !may_pass {
                self.open = Some(Open {
                    number,
                    off,
                    ..Open::new(signature, (enter, leave))
                });
                return stop;
            }
            self.spent.add(call.number, leave - enter, leave);
            self.posts += u64::from(call.posts);
        }
    }

    /// Others waited for `share` ns each because it did this longer than they, of so much `time` in all, ns.
    pub fn did_longer(&mut self, more: &More, time: i64, share: i64) {
        let longer = room::at(&mut self.longer, more.activity as usize);
        longer.add(&Longer::once(time, more.time, share));
    }

    /// Enter and leave of the open call, and its number.
    #[inline]
    fn entered(&self) -> Option<((i64, i64), u64)> {
        let open = self.open.as_ref().filter(|open| open.signature != NONE)?;
        Some(((open.enter, open.leave), open.number))
    }

    /// Ends the open call, if it was not: another one begins.
    #[inline]
    fn close(&mut self, members: &Members) {
        let open = self.open.as_mut();
        let open = open.filter(|open| open.signature != NONE && !open.is_closed);
        let Some(open) = open else {
            return;
        };
        open.is_closed = true;
        let (is_plain, begin, leave) = (open.is_plain(), open.begin, open.leave);
        let call = self.activities.of_call(self.thread, open.signature);
        if !call.meets && is_plain && self.is_alone() && leave < self.moments.next() {
            self.spent.add(call.number, leave - begin, leave);
            self.posts += u64::from(call.posts);
        } else if let Some(open) = self.open {
            self.close_among_others(&open, call, members);
        }
    }

    /// Ends a call that may have waited, or met others.
    fn close_among_others(&mut self, open: &Open, of_call: OfCall, members: &Members) {
        let Open {
            signature,
            leave,
            begin,
            worked,
            waited,
            until,
            transfer,
            goes_on,
            ..
        } = *open;
        let number = of_call.number;
        let meets = of_call.meets || self.met_group || !self.partners.is_empty();
        if meets || self.moments.next() <= leave {
            self.spent.meet();
        }
        if worked > 0 {
            let number = self.activities.of_gap(self.thread, signature, signature);
            self.spent.add(number, worked, leave);
        }
        let waited = waited.saturating_add(transfer);
        let mut inside = leave - begin - worked;
        inside -= waited.min(inside);
        if goes_on {
            self.looked_on.1 = std::mem::take(&mut inside);
        }
        let mut call = std::mem::take(&mut self.closed);
        self.parts(open, number, inside, &mut call.parts);
        for &(number, time) in &call.parts {
            self.spent.add(number, time, leave);
        }
        // As much as the waits are charged with: they take their parts of costs by that.
        self.spent.waited = self.spent.waited.saturating_add(waited);
        for &(number, time) in &call.alike {
            self.spent.add(number, time, leave);
        }
        let order = self.spent.order;
        (call.number, call.leave) = (number, leave);
        (call.waited, call.until, call.transfer) = (waited, until, transfer);
        self.meet_meanwhile(&call, members);
        if meets {
            let row = self.thread.rows.get(signature as usize);
            self.synchronise(row, members, &call);
        }
        // What is late from now on comes after this wait.
        if std::mem::take(&mut self.waits_alone) && self.spent.order == order {
            self.spent.order += 2;
        }
        self.meet(signature, members, &call);
        // The lists are used again.
        call.alike.clear();
        call.parts.clear();
        self.closed = call;
    }
}

/// A location after the last slab.
pub struct Walked<'a> {
    pub thread: &'a Thread<'a>,
    pub activities: Activities,
    /// Time by activity, without waiting, ns. What a call was beside work is of the call.
    pub spent: Vec<i64>,
    /// By signature.
    pub beyond: Vec<Beyond>,
    /// What it did longer than those that waited for it, by activity.
    pub longer: Vec<Longer>,
    /// When others waited most for it, by activity.
    pub worst: Vec<Worst>,
    /// In which functions, by samples.
    pub in_functions: InFunctions,
    /// And how much was counted.
    pub in_counters: InCounters,
    /// Enter of its first call, or when it was started, ns; `i64::MAX` if there is none.
    pub begin: i64,
    /// The activity of its start-up.
    pub startup: Option<u32>,
    /// Where it went on from the thread that started it.
    pub origin: Option<Origin>,
    /// Leave of its last call, or enter of its shutdown, ns; `i64::MIN` if there is none.
    pub end: i64,
}

impl Walked<'_> {
    /// The number of a call's activity.
    pub fn of_call(&mut self, signature: u32) -> u32 {
        self.activities.of_call(self.thread, signature).number
    }

    /// The number of the computation between two calls.
    pub fn of_gap(&mut self, before: u32, signature: u32) -> u32 {
        self.activities.of_gap(self.thread, before, signature)
    }
}

impl<'a> Walker<'a> {
    /// Ends the sweep.
    pub fn finish(mut self, members: &Members) -> Walked<'a> {
        self.close(members);
        let open = self.open.filter(|open| open.signature != NONE);
        let is_shutdown = |open: &Open| {
            let row = self.thread.rows.get(open.signature as usize);
            row.is_some_and(|row| row.shape == Shape::Finalize)
        };
        // Samples, counters and waits tell of time that is there beside them.
        let mut spent = self.spent.times();
        // The creator of a thread has that itself.
        let inherited = self.activities.inherited();
        let own = spent.iter_mut().take(inherited.end);
        own.skip(inherited.start).for_each(|time| *time = 0);
        for (inside, call) in self.activities.calls_around() {
            let time = spent.get_mut(inside as usize).map_or(0, std::mem::take);
            add(&mut spent, call, time);
        }
        for (time, activity) in spent.iter_mut().zip(&self.activities.list.values) {
            if !activity.kind.is_cause() {
                *time = 0;
            }
        }
        Walked {
            thread: self.thread,
            activities: self.activities,
            spent,
            beyond: self.beyond,
            longer: self.longer,
            worst: self.worst.finish(),
            in_functions: self.in_functions,
            in_counters: self.in_counters,
            begin: self.begin.unwrap_or(i64::MAX),
            startup: self.startup,
            origin: self.origin,
            end: open.map_or(i64::MIN, |open| match is_shutdown(&open) {
                true => open.enter,
                false => open.leave,
            }),
        }
    }
}

#[inline]
fn add(sums: &mut Vec<i64>, number: u32, time: i64) {
    let sum = room::at(sums, number as usize);
    *sum = sum.saturating_add(time.max(0));
}
