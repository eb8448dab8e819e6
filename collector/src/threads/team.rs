//! OpenMP teams: who is in which, and when its regions begin and end.
//!
//! A region begins on the thread that forks it, and calls its function on every thread of the
//! team. In place of that function the runtime is given [`member`], which calls it. What a thread
//! of the runtime did since its last region is known when it begins the next one: it waited for
//! the others of its team until that region was over, then idled.
//!
//! Runtimes with a tools interface say the same by themselves (see [`ompt`](super::ompt)).

use std::ffi::c_void;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laggard_callpath::{CallSite, Carried};
use laggard_trace::calls::number;

use super::births::{Origin, born};
use super::gomp::{Part, runtime};
use super::left_out::is_own;
use super::{MISSED, Place, Waiter, What, is_paused, ompt, signals};
use crate::call::{Call, guarded};
use crate::clock;
use crate::stream::{self, Stream};
use crate::thread::{Thread, slot};

/// The function of a region.
pub type Function = unsafe extern "C-unwind" fn(*mut c_void);

/// Bits of a key for the number of a meeting within its team.
const MEETING_BITS: u32 = 24;
/// The number of the meeting at the begin of a region.
const FORK: u64 = 0;
/// The number of the meeting at its end. Barriers between are numbered in order, from 1.
const JOIN: u64 = (1 << MEETING_BITS) - 1;

/// Stands for the turns in a team's ordered regions.
const TURNS: u64 = JOIN - 1;

/// Teams so far.
static TEAMS: AtomicU64 = AtomicU64::new(0);
/// When threads began to be recorded, ticks: those of the runtime idle since then.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Recording begins, or goes on after a pause: what threads did before is not known.
pub fn begins() {
    BEGUN.store(clock::now(), Ordering::Relaxed);
}

/// When that was.
pub(super) fn begun() -> u64 {
    BEGUN.load(Ordering::Relaxed)
}

/// What a meeting is known by.
fn key(team: u64, meeting: u64) -> u64 {
    team << MEETING_BITS | meeting & JOIN
}

/// The team of a thread.
#[derive(Clone, Copy, Default)]
struct Team {
    /// Number of the team in the process, from 1; 0 = none.
    id: u64,
    /// Number of its threads, and of this one.
    size: u32,
    number: u32,
    /// Barriers that this thread has met.
    met: u64,
    /// The code that forked it; 0 = not known.
    code: u64,
    /// The path of its region, where the runtime tells of itself, on the thread that forked it; 0 = not known.
    path: u32,
}

impl Team {
    /// The calling thread's part in a team, as the runtime tells.
    fn current(id: u64) -> Team {
        Team {
            id,
            size: runtime::threads(),
            number: runtime::number(),
            met: 0,
            code: 0,
            path: 0,
        }
    }

    /// The parameter of its records: size, and number of the thread in the high half.
    fn parameter(&self) -> u64 {
        u64::from(self.size) | u64::from(self.number) << 32
    }

    /// Where the thread forked it, as the runtime tells.
    fn fork(&self) -> Place {
        match self.path {
            0 => Place::Code(self.code),
            path => Place::Path(path),
        }
    }

    /// The record of one of its meetings.
    fn meeting(&self, number: u16, place: Place, meeting: u64) -> What {
        What {
            number,
            place,
            parameter: self.parameter(),
            key: key(self.id, meeting),
        }
    }
}

/// A region that the thread has ended.
#[derive(Clone, Copy)]
struct Done {
    team: Team,
    /// Address of its function.
    function: u64,
    /// Ticks.
    ended: u64,
    /// Whether recording was paused then.
    is_paused: bool,
}

/// Teams around the innermost one that are kept; deeper regions are not recorded.
const DEPTH: usize = 8;

/// The teams of a thread.
#[derive(Default)]
pub struct Membership {
    /// The innermost one that it is in.
    team: Team,
    /// The last one that it was in, if it is the runtime's thread and waits for another one.
    done: Option<Done>,
    /// When its part in a region without records ended last, ticks.
    unknown: u64,
    /// Of runtimes that tell of themselves: the teams around the innermost one, and how many.
    outer: [Team; DEPTH],
    depth: usize,
    /// Where it called a function that forks, until the runtime says that it does; 0 = nowhere.
    called_from: u64,
    /// Function of the region that it is in; 0 if it is in none.
    function: u64,
    /// The team that it has forked last, when, ticks, and the path of its region.
    forked: (u64, u64, u32),
    /// When it began to wait in a meeting or for tasks, ticks; 0 = it does not wait.
    met: u64,
    /// The task that it executes, by an address; 0 = the part of its own in the region.
    pub(super) current: u64,
    /// Where it waits for what a task depends on, as the runtime tells; 0 = it does not.
    pub(super) depends: u64,
    /// The waits around the tasks that it executes (since when, and where), and how many tasks these are.
    around: [(u64, u64); DEPTH],
    tasks: usize,
    /// When it began to wait for its turn in an ordered region, ticks; 0 = it does not.
    pub(super) ordered: u64,
    /// Whether it has wanted its turn and not passed it on yet.
    pub(super) in_order: bool,
    /// Its wait for a critical section.
    pub(super) wait: Option<super::locks::Wait>,
    /// Locks that it waited for and has not given back yet, where the runtime tells of them; 0 = none.
    pub(super) held: [u64; 4],
    /// The lock that it wanted last, and where that call returns to, where the runtime tells of them.
    pub(super) wanted: (u64, u64),
    /// Where it was made.
    pub(super) origin: Origin,
    /// Whether nobody waits for its end.
    pub(super) ends_alone: bool,
}

impl Membership {
    /// That of the calling thread, which becomes a location.
    pub fn own() -> Membership {
        Membership {
            origin: Origin::own(),
            ..Membership::default()
        }
    }

    /// Whether it is in a team of several, or executes tasks of one at the end of a region.
    pub(super) fn is_in_team(&self) -> bool {
        self.team.size > 1 || self.done.is_some()
    }

    /// What turns in its team's ordered regions are known by.
    pub(super) fn turns(&self) -> u64 {
        key(self.team.id, TURNS)
    }

    /// What its team's iterations with this number in the outermost loop are known by, where others depend on them.
    pub(super) fn iteration(&self, number: u64) -> u64 {
        // Far from the other keys, and from addresses.
        1 << 63 | (self.team.id << 40).wrapping_add(number) & (u64::MAX >> 1)
    }

    /// The task that it executes.
    pub(super) fn task(&self) -> u64 {
        match self.current {
            0 => ptr::from_ref(self).addr() as u64,
            task => task,
        }
    }

    /// Since when it waits, ticks; 0 = it does not.
    pub(super) fn waits(&self) -> u64 {
        self.met
    }

    /// It waits since then, or no more.
    pub(super) fn wait_since(&mut self, since: u64) {
        self.met = since;
    }

    /// It begins to execute a task, in a wait or not.
    pub(super) fn begin_task(&mut self) {
        if let Some(around) = self.around.get_mut(self.tasks) {
            *around = (self.met, self.depends);
        }
        self.tasks += 1;
        (self.met, self.depends) = (0, 0);
    }

    /// It ends the task, and waits again if it did before.
    pub(super) fn end_task(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
        (self.met, self.depends) = self.around.get(self.tasks).copied().unwrap_or((0, 0));
    }
}

/// When regions were over, for those who waited: a place for each team, by its number. The time
/// counts if the number fits.
struct Over {
    at: Noted,
    /// The code that forked the team.
    code: Noted,
    /// The address of its region's path, or of an earlier one.
    region: Noted,
}

/// What is noted of a team, and that combined with its number.
struct Noted {
    value: AtomicU64,
    check: AtomicU64,
}

/// More teams than that end at once only where threads outnumber cores by far.
static OVER: [Over; 256] = [const {
    Over {
        at: Noted::new(),
        code: Noted::new(),
        region: Noted::new(),
    }
}; 256];

impl Noted {
    const fn new() -> Noted {
        Noted {
            value: AtomicU64::new(0),
            check: AtomicU64::new(0),
        }
    }

    fn note(&self, team: u64, value: u64) {
        self.value.store(value, Ordering::Relaxed);
        self.check.store(value ^ team, Ordering::Release);
    }

    /// That of the team, if it is known still.
    fn find(&self, team: u64) -> Option<u64> {
        let check = self.check.load(Ordering::Acquire);
        let value = self.value.load(Ordering::Relaxed);
        (check == value ^ team).then_some(value)
    }
}

impl Over {
    fn of(team: u64) -> &'static Over {
        &OVER[team as usize % OVER.len()]
    }

    /// Notes the code that forks a team, and the path of its region.
    fn note(team: u64, code: u64, region: Option<stream::Region>) {
        let over = Over::of(team);
        over.code.note(team, code);
        let region = region.map_or(ptr::null(), ptr::from_ref);
        over.region.note(team, region.expose_provenance() as u64);
    }

    /// That path, if it is known still.
    fn region(team: u64) -> Option<stream::Region> {
        let address = Over::of(team).region.find(team)? as usize;
        // SAFETY: 0, or the address of a path, which lives as long as the process.
        unsafe { ptr::with_exposed_provenance::<Carried>(address).as_ref() }
    }
}

impl Done {
    /// Since when it waits for the end of the region, and when that was, ticks.
    fn times(&self, stream: &Stream, now: u64) -> (u64, u64) {
        let over = Over::of(self.team.id).at.find(self.team.id);
        let over = over.unwrap_or(self.ended);
        let over = over.clamp(self.ended, now.max(self.ended));
        // It does not wait while it executes tasks.
        (stream.left().clamp(self.ended, over), over)
    }

    /// Records that wait.
    fn record(&self, stream: &mut Stream, times: (u64, u64)) {
        let place = Place::Within(self.function, stream.around());
        let what = self.team.meeting(number::omp_parallel_end, place, JOIN);
        what.write_of(stream, self.is_paused, times);
    }
}

/// The thread ends, or its recording does `until` now, ticks: records what it waits for. Threads that
/// the runtime keeps for further regions have idled. Where recording ends, another thread may say so: what this
/// one used of the processor is not known.
pub fn ends(stream: &mut Stream, membership: &mut Membership, until: Option<u64>) {
    let now = until.unwrap_or_else(clock::now);
    if let Some(done) = membership.done.take() {
        let (since, over) = done.times(stream, now);
        if until.is_none() {
            stream.returned(since, over);
        }
        done.record(stream, (since, over));
        if until.is_some() {
            idles(stream, done.function, None, (over, now));
        }
    }
    if let Some(wait) = membership.wait.take() {
        stream.is_back();
        match until {
            Some(_) => wait.goes_on(stream, now),
            // It was cancelled.
            None => wait.is_left(),
        }
    }
    if until.is_none() {
        signals::ends(stream, membership);
    }
}

/// Records that a thread of the runtime had nothing to do until a team needed it; `None`: none did.
fn idles(stream: &mut Stream, function: u64, team: Option<&Team>, (since, now): (u64, u64)) {
    let what = What {
        number: number::omp_idle,
        place: Place::Within(function, stream.around()),
        parameter: team.map_or(0, Team::parameter),
        key: key(team.map_or(0, |team| team.id), FORK),
    };
    what.write_of(stream, is_paused(), (since, now.max(since)));
}

/// Stands for a team that was forked while recording was paused: it has no records.
const UNKNOWN: u64 = u64::MAX;

/// A region under way, on the stack of the thread that forked it.
#[repr(C)]
struct Region {
    part: Part,
    /// Number of its team.
    id: u64,
    forker: *mut Thread,
    site: CallSite,
    /// Its path, and where it lies in the forking thread's program.
    path: Option<stream::Region>,
    place: Place,
    /// When it was forked, ticks.
    forked: u64,
    /// The forking thread's part, and when that ended, ticks.
    team: Team,
    ended: u64,
}

/// Runs a region for which the program wants so many threads: `run` gets the function and the data that every thread of
/// the team calls.
#[inline(always)]
pub unsafe fn fork<T>(
    site: CallSite,
    part: Part,
    threads: u32,
    run: impl FnOnce(Function, *mut c_void) -> T,
) -> T {
    static IS_ASKED: AtomicBool = AtomicBool::new(false);
    if !IS_ASKED.load(Ordering::Relaxed) {
        IS_ASKED.store(true, Ordering::Relaxed);
        // Only now some runtimes begin, and say whether they tell of themselves.
        runtime::threads();
    }
    if ompt::is_told() {
        if let Some(waiter) = Waiter::goes_on(site) {
            waiter.membership().called_from = site.ra;
        }
        return run(part.function, part.data);
    }
    let recorded = Waiter::begin(site);
    let Some(waiter) = recorded.or_else(|| Waiter::goes_on(site)) else {
        return run(part.function, part.data);
    };
    let outer = waiter.membership().team;
    let is_alone = recorded.is_some() && runtime::forks_alone(threads, outer.size > 1);
    if recorded.is_none() || is_alone {
        waiter.membership().team = Team::default();
        let member = if is_alone { alone } else { unknown };
        let result = run(member, (&raw const part).cast_mut().cast());
        waiter.membership().team = outer;
        return result;
    }
    let (forked, path) = begins_region(&waiter, false);
    let mut region = Region {
        part,
        id: TEAMS.fetch_add(1, Ordering::Relaxed) + 1,
        forker: waiter.thread,
        site,
        path: path.map(|(region, _)| region),
        place: path.map_or(Place::Call(site), |(_, id)| Place::Path(id)),
        forked,
        team: Team::default(),
        ended: 0,
    };
    let shared = &raw mut region;
    let result = run(member, shared.cast());
    // SAFETY: the region is on this stack, and all others have left it.
    let region = unsafe { &*shared };
    waiter.membership().team = outer;
    waiter.membership().met = 0;
    if region.team.size > 1 {
        let now = clock::now();
        Over::of(region.id).at.note(region.id, now);
        let function = region.part.function as usize as u64;
        let place = match region.place {
            Place::Path(around) => Place::Within(function, around),
            _ => Place::Code(function),
        };
        let what = region.team.meeting(number::omp_parallel_end, place, JOIN);
        waiter.record(&what, (region.ended, now));
    }
    result
}

/// The thread forks a region, by a call of the program, or of the runtime that it has called. Returns when, ticks, and the
/// region's path.
fn begins_region(waiter: &Waiter, is_of_runtime: bool) -> (u64, Option<(stream::Region, u32)>) {
    let mut call = Call::over(waiter.thread, waiter.site, 0, (0, 0));
    if !call.claim() {
        return (clock::now(), None);
    }
    let now = call.stream().ends_stretch();
    let path = guarded(|| call.stream().region(&waiter.site, is_of_runtime));
    call.release();
    (now, path)
}

/// Stands in for the function of a region whose team has no other thread: nobody waits for it, so it has no records.
unsafe extern "C-unwind" fn alone(part: *mut c_void) {
    let site = laggard_callpath::call_site!();
    // SAFETY: as in `unknown`.
    let Part { function, data, .. } = unsafe { part.cast::<Part>().read() };
    let set = |function| {
        let waiter = Waiter::goes_on(site);
        waiter.map_or(0, |waiter| {
            mem::replace(&mut waiter.membership().function, function)
        })
    };
    let outer = set(function as usize as u64);
    // SAFETY: as above.
    unsafe { function(data) };
    set(outer);
}

/// Stands in for the function of a region.
unsafe extern "C-unwind" fn member(shared: *mut c_void) {
    let site = laggard_callpath::call_site!();
    let region = shared.cast::<Region>();
    // SAFETY: the region lasts until all threads have left its function. Each reads what was
    // there before; only the forking thread writes.
    unsafe {
        let Part { function, data, .. } = (*region).part;
        if *slot() == (*region).forker {
            forker(&mut *region);
            let waiter = Waiter {
                thread: (*region).forker,
                site,
            };
            let membership = waiter.membership();
            let outer = mem::replace(&mut membership.function, function as usize as u64);
            function(data);
            waiter.membership().function = outer;
            (*region).ended = waiter.enter(|membership, now| membership.met = now);
            return;
        }
        let id = (*region).id;
        let team = Team::current(id);
        // Others of the team meet in its records, also if recording is paused since it was forked.
        let waiter = Waiter::goes_on(site).or_else(|| Waiter::begin(site));
        let Some(waiter) = waiter.filter(|_| team.size > 1) else {
            function(data);
            return ends_unknown(site);
        };
        arrive(&waiter, &team, function as usize as u64, (*region).path);
        waiter.membership().function = function as usize as u64;
        function(data);
        waiter.membership().function = 0;
        waiter.enter(|membership, now| {
            membership.done = Some(Done {
                team: membership.team,
                function: function as usize as u64,
                ended: now,
                is_paused: is_paused(),
            });
            membership.team = Team::default();
            membership.met = now;
        });
    }
}

/// Stands in for the function of a region that is begun while recording is paused.
unsafe extern "C-unwind" fn unknown(part: *mut c_void) {
    let site = laggard_callpath::call_site!();
    begins_unknown(site);
    // SAFETY: function and data are on the stack of the thread that forked the team, which lasts until
    // all have left.
    unsafe {
        let Part { function, data, .. } = part.cast::<Part>().read();
        function(data);
    }
    ends_unknown(site);
}

/// The calling thread begins its part in a region that was begun while recording was paused. Who forked it is where it was.
fn begins_unknown(site: CallSite) {
    let waiter = Waiter::goes_on(site).filter(|waiter| waiter.membership().done.is_some());
    if let Some(waiter) = waiter {
        let mut call = Call::over(waiter.thread, waiter.site, 0, (0, 0));
        if call.claim() {
            call.stream().is_in(None);
            call.release();
        }
    }
}

/// The calling thread has done its part in a region that was begun while recording was paused.
fn ends_unknown(site: CallSite) {
    if let Some(waiter) = Waiter::goes_on(site) {
        waiter.membership().unknown = clock::now();
    }
}

/// The forking thread begins its part.
fn forker(region: &mut Region) {
    region.team = Team::current(region.id);
    let waiter = Waiter {
        thread: region.forker,
        site: region.site,
    };
    waiter.membership().team = region.team;
    if region.team.size > 1 {
        let what = region
            .team
            .meeting(number::omp_parallel, region.place, FORK);
        waiter.record(&what, (region.forked, clock::now()));
    }
}

/// A thread of the runtime begins its part in a region with this path.
fn arrive(waiter: &Waiter, team: &Team, function: u64, region: Option<stream::Region>) {
    let now = clock::now();
    let mut call = Call::over(waiter.thread, waiter.site, 0, (now, now));
    if !call.claim() {
        return;
    }
    let done = call.thread().membership.done.take();
    let unknown = call.thread().membership.unknown;
    call.thread().membership.team = *team;
    call.thread().membership.met = 0;
    (
        call.thread().membership.current,
        call.thread().membership.tasks,
    ) = (0, 0);
    guarded(|| {
        let stream = call.stream();
        let done = done.map(|done| (done, done.times(stream, now)));
        let over = done.map_or(0, |(_, (_, over))| over);
        let since = over.max(begun()).max(born().unwrap_or(0));
        let since = since.max(unknown).min(now);
        // Both waits are known only now: what the thread used of the processor meanwhile is read once.
        stream.returned(done.map_or(since, |(_, (since, _))| since), now);
        if let Some((done, times)) = done {
            done.record(stream, times);
        }
        stream.is_in(region);
        idles(stream, function, Some(team), (since, now));
    });
    call.release();
}

/// The calling thread, if it is in a recorded team of several.
#[inline(always)]
pub fn in_team(site: CallSite) -> Option<Waiter> {
    Waiter::goes_on(site).filter(|waiter| waiter.membership().team.size > 1)
}

/// The function of a region that ended by a call from this site: compilers make it a jump, and that call
/// returns to what began the function, here.
pub fn ended_in(site: CallSite) -> Option<u64> {
    if !is_own(site.ra) {
        return None;
    }
    let function = Waiter::goes_on(site)?.membership().function;
    (function != 0).then_some(function)
}

/// Where the region begins that the calling thread is in, if its runtime tells.
pub fn begun_at(site: CallSite) -> Option<u64> {
    let code = Waiter::goes_on(site)?.membership().team.code;
    (code != 0).then_some(code)
}

/// The path of the calling thread's region, if it has forked that and the runtime tells of itself; else 0.
pub fn forked_at(site: CallSite) -> u32 {
    Waiter::goes_on(site).map_or(0, |waiter| waiter.membership().team.path)
}

/// Where the calling thread has called the function that forks a team now, if that is known.
pub fn called_from(site: CallSite) -> Option<u64> {
    let waiter = Waiter::goes_on(site)?;
    let code = mem::take(&mut waiter.membership().called_from);
    (code != 0).then_some(code)
}

/// The calling thread forks a team, by a call that returns to `code`. Returns the team's number.
pub fn forks(site: CallSite, code: u64) -> u64 {
    let begun = Waiter::begin(site);
    let is_begun = begun.is_some();
    let Some(waiter) = begun.or_else(|| Waiter::goes_on(site)) else {
        return 0;
    };
    let membership = waiter.membership();
    if membership.depth == DEPTH {
        MISSED.regions.fetch_add(is_begun.into(), Ordering::Relaxed);
        return 0;
    }
    if !is_begun {
        membership.forked = (UNKNOWN, 0, 0);
        return UNKNOWN;
    }
    let id = TEAMS.fetch_add(1, Ordering::Relaxed) + 1;
    let (now, path) = begins_region(&waiter, true);
    membership.forked = (id, now, path.map_or(0, |(_, id)| id));
    Over::note(id, code.wrapping_sub(1), path.map(|(region, _)| region));
    id
}

/// The calling thread begins its part in a team, as the thread with this index of so many.
pub fn enters(site: CallSite, id: u64, (size, number): (u32, u32)) {
    let Some(waiter) = Waiter::goes_on(site).or_else(|| Waiter::begin(site)) else {
        return;
    };
    let code = Over::of(id).code.find(id).unwrap_or(0);
    let team = match id {
        UNKNOWN => Team::default(),
        _ => Team {
            id,
            size,
            number,
            met: 0,
            code,
            path: 0,
        },
    };
    let membership = waiter.membership();
    let (forked, since, path) = membership.forked;
    if forked != id {
        match id {
            0 | UNKNOWN => begins_unknown(site),
            _ => arrive(&waiter, &team, code, Over::region(id)),
        }
        return;
    }
    if id == 0 {
        return;
    }
    membership.forked = (0, 0, 0);
    membership.outer[membership.depth] = membership.team;
    membership.depth += 1;
    let team = Team { path, ..team };
    membership.team = team;
    if team.size > 1 {
        let what = team.meeting(number::omp_parallel, team.fork(), FORK);
        waiter.record(&what, (since, clock::now()));
    }
}

/// Whether a meeting without a kind of its own is the end of the thread's region: the runtime waits in
/// no code of the program then, or in that which forked it.
pub fn is_end(site: CallSite, code: u64) -> bool {
    let team = in_team(site).map(|waiter| waiter.membership().team);
    code == 0 || team.is_some_and(|team| team.code == code.wrapping_sub(1))
}

/// The calling thread has done its part in its team, and waits for the others.
pub fn leaves(site: CallSite) {
    let Some(waiter) = in_team(site) else {
        return ends_unknown(site);
    };
    waiter.enter(|membership, now| {
        let team = membership.team;
        if team.number == 0 {
            membership.met = now;
            return;
        }
        membership.done = Some(Done {
            team,
            function: team.code,
            ended: now,
            is_paused: is_paused(),
        });
        membership.team = Team::default();
        membership.met = now;
    });
}

/// The region of a team is over that the calling thread has forked.
pub fn joins(site: CallSite, id: u64) {
    let Some(waiter) = Waiter::goes_on(site).filter(|_| id != 0) else {
        return;
    };
    let membership = waiter.membership();
    let team = membership.team;
    let is_known = id != UNKNOWN;
    if team.id != if is_known { id } else { 0 } || membership.depth == 0 {
        return;
    }
    membership.depth -= 1;
    membership.team = membership.outer[membership.depth];
    let ended = mem::take(&mut membership.met);
    if team.size > 1 && ended != 0 {
        let now = clock::now();
        Over::of(id).at.note(id, now);
        let what = team.meeting(number::omp_parallel_end, team.fork(), JOIN);
        waiter.record(&what, (ended, now));
    }
}

/// The calling thread waits in a barrier of its team.
pub fn meets(site: CallSite) {
    if let Some(waiter) = in_team(site) {
        waiter.enter(|membership, now| membership.met = now);
    }
}

/// Its wait is over, in a call that returns to `code`.
pub fn met(site: CallSite, number: u16, code: u64) {
    let Some(waiter) = in_team(site) else {
        return;
    };
    let leave = clock::now();
    let membership = waiter.membership();
    let enter = mem::take(&mut membership.met);
    // All threads count the same barriers.
    membership.team.met += 1;
    if enter == 0 {
        return;
    }
    let team = membership.team;
    let what = team.meeting(number, Place::before(site, code), team.met);
    waiter.record(&what, (enter, leave));
}

/// A barrier of the calling thread's team. `wait` waits there.
#[inline(always)]
pub fn barrier<T>(site: CallSite, number: u16, wait: impl FnOnce() -> T) -> T {
    barrier_if(site, number, wait, |_| true)
}

/// The same where only its result says whether it was one.
#[inline(always)]
pub fn barrier_if<T>(
    site: CallSite,
    number: u16,
    wait: impl FnOnce() -> T,
    has_met: impl FnOnce(&T) -> bool,
) -> T {
    let Some(waiter) = in_team(site).filter(|_| !ompt::is_told()) else {
        return wait();
    };
    let enter = waiter.enter(|membership, now| membership.met = now);
    let result = wait();
    let leave = clock::now();
    let membership = waiter.membership();
    membership.met = 0;
    if !has_met(&result) {
        return result;
    }
    let team = &mut membership.team;
    team.met += 1;
    let what = team.meeting(number, Place::here(site), team.met);
    waiter.record(&what, (enter, leave));
    result
}

const _: () = assert!(!mem::needs_drop::<Region>() && !mem::needs_drop::<Waiter>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_team_is_its_own() {
        let (one, other) = (5, 5 + OVER.len() as u64);
        let path: stream::Region = Box::leak(Box::default());
        let find = |team: u64| {
            let over = Over::of(team);
            (over.at.find(team), over.code.find(team))
        };
        let region = |team| Over::region(team).map(ptr::from_ref);
        Over::note(one, 7, None);
        Over::of(one).at.note(one, 100);
        assert_eq!((find(one), region(one)), ((Some(100), Some(7)), None));
        assert_eq!(find(other), (None, None));
        Over::note(other, 9, Some(path));
        Over::of(other).at.note(other, 200);
        assert_eq!((find(one), region(one)), ((None, None), None));
        assert_eq!(find(other), (Some(200), Some(9)));
        assert_eq!(region(other), Some(ptr::from_ref(path)));
    }

    #[test]
    fn keys_tell_teams_and_meetings_apart() {
        let keys = [
            key(1, FORK),
            key(1, 1),
            key(1, TURNS),
            key(1, JOIN),
            key(2, FORK),
            key(2, 1),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[at + 1..].iter().all(|other| other != one));
        }
    }
}
