//! Threads of a process that wait for each other: regions and events of OpenMP and POSIX threads.
//!
//! Each wait becomes a call with the key of what it waits for, as the trace format has it. A team is
//! known by its communicator, and by how often the thread has been in it: all threads count the
//! same. A thread that executes tasks in a wait does not wait there.

use laggard_trace::calls::number;
use rustc_hash::FxHashMap;

use super::{Calls, DEEPEST, Level};
use crate::constructs::{self, Construct};
use crate::definitions::PARADIGM_PTHREAD;
use crate::events::{Event, Task, Told};
use crate::notes::Kind;
use crate::open::Open;
use crate::teams::Part;
use crate::world::Meaning;

/// First bits of keys that archives number, so that they are no other's.
const LOCK: u64 = 1 << 62;
const THREAD: u64 = 1 << 61;

/// Most tasks of a thread that are not complete.
const MOST_TASKS: usize = 1 << 16;

/// The beginning of the thread's part in a team. Where that lies in the program, the next event tells.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// omp_parallel or omp_idle, ticks.
    call: u16,
    enter: u64,
    leave: u64,
    part: Part,
}

/// A task while the thread executes another one.
#[derive(Debug, Default)]
struct Aside {
    stack: Vec<Level>,
    open: Option<Open>,
}

/// The teams and tasks of a thread.
#[derive(Debug, Default)]
pub struct Threads {
    /// The teams that it is in, the outermost first.
    within: Vec<Part>,
    /// How often it was in each.
    times: FxHashMap<u32, u64>,
    /// When it forked a team whose part it has not begun yet, ticks.
    forked: Option<u64>,
    /// Since when it has nothing to do, ticks.
    idle: Option<u64>,
    begun: Option<Begun>,
    /// Node of its last parallel region.
    region: u32,
    /// Whether the call that is left may be the end of its region: the next event tells.
    may_be_last: bool,
    /// Whether the archive has calls that tell when threads idle, as those of laggard.
    tells_idle: bool,
    /// The record of a barrier, if that may be the end of the region.
    ended: Option<u64>,
    /// The region that it has left last.
    left: Option<Construct>,
    /// The task that it executes; `None` = its own part in the region.
    task: Option<Task>,
    aside: FxHashMap<Option<Task>, Aside>,
}

impl Calls<'_> {
    /// Before an event: what it tells of those before.
    pub(super) fn settle_threads(&mut self, event: &Event) {
        let contexts = &self.definitions.contexts;
        let (entered, left) = match *event {
            Event::Enter(region) | Event::EnterCall(region, _) => (Some(region), None),
            Event::EnterContext(context, ..) => (contexts.get(&context).map(|c| c.region), None),
            Event::Leave(region) => (None, Some(region)),
            Event::LeaveContext(context) => (None, contexts.get(&context).map(|c| c.region)),
            _ => (None, None),
        };
        let parallel = |region: &u32| {
            self.world.meaning(*region) == Some(Meaning::Threads(Construct::Parallel))
        };
        let (entered, left) = (entered.filter(parallel), left.filter(parallel));
        if let Some(record) = self.threads.ended.take() {
            self.pending.settle(record, |signature| {
                if left.is_some() {
                    signature.operation = number::omp_parallel_end;
                }
            });
            self.write_settled();
        }
        if let Some(begun) = self.threads.begun.take() {
            let above = self.stack.last().map_or(0, |level| level.node);
            let node = match entered {
                Some(region) => self.paths.enter(above, region, self.definitions),
                None => above,
            };
            self.threads.region = node;
            if begun.part.size > 1 {
                self.begin_part(begun, node);
            }
        }
    }

    /// Records that a team was forked, or that the thread idled until then.
    fn begin_part(&mut self, begun: Begun, node: u32) {
        let told = Told::of_threads(begun.part.key(0), begun.part.parameter());
        self.spent(begun.call, node, (begun.enter, begun.leave), told);
    }

    /// Records a call between these times.
    fn spent(&mut self, call: u16, node: u32, (enter, leave): (u64, u64), told: Told) {
        let path = self.paths.call_path(node, &mut self.output);
        let mut open = Open::new(call, enter, path, self.stack.len());
        open.computed = self.take_computed();
        open.told = told;
        self.close(open, leave);
    }

    /// Records a call that takes no time.
    fn instant(&mut self, time: u64, call: u16, told: Told) {
        self.within(time, call, |open| {
            if open.number == call {
                open.told = told.or(&open.told);
            }
        });
    }

    /// Handles the events of threads.
    pub(super) fn of_threads(&mut self, time: u64, event: &Event) {
        match *event {
            Event::Fork(..) => {
                if self.open.is_none() {
                    self.compute(time);
                }
                self.threads.forked = Some(time);
            }
            Event::TeamBegin(comm) => self.begin_team(time, comm),
            Event::TeamEnd(comm) => self.end_team(time, comm),
            Event::Acquire(_, lock, _) => {
                let key = LOCK | u64::from(lock);
                self.acquire(time, Told::of_threads(key, 0));
            }
            Event::Release(paradigm, lock, _) => self.release(time, paradigm, lock),
            Event::TaskSwitch(task) => self.switch_task(time, task),
            Event::TaskComplete(task) => self.complete_task(time, task),
            Event::ThreadWait(contingent, count) => {
                let told = Told::of_threads(thread_key(contingent, count), 0);
                if let Some(open) = &mut self.open {
                    open.told = told.or(&open.told);
                }
            }
            Event::ThreadEnd(contingent, count) => {
                let told = Told::of_threads(thread_key(contingent, count), 0);
                self.instant(time, number::pthread_exit, told);
            }
            _ => {}
        }
    }

    fn begin_team(&mut self, time: u64, comm: u32) {
        let threads = &mut self.threads;
        let times = threads.times.entry(comm).or_default();
        *times += 1;
        let times = *times;
        let (forked, idle) = (threads.forked.take(), threads.idle.take());
        if threads.within.len() >= DEEPEST {
            return self.note(Kind::Unbalanced);
        }
        let Some(part) = self.world.teams.part(comm, self.thread.location, times) else {
            self.threads.within.push(Part::unknown(comm));
            return self.note(Kind::Undefined);
        };
        self.threads.within.push(part);
        if self.threads.tells_idle {
            return;
        }
        let is_first = self.output.calls == 0;
        let (call, enter) = match (forked, idle) {
            (Some(forked), _) => (number::omp_parallel, forked),
            (None, Some(idle)) => (number::omp_idle, idle),
            (None, None) if is_first => (number::omp_idle, self.span.0.min(time)),
            (None, None) => return,
        };
        self.threads.begun = Some(Begun {
            call,
            enter,
            leave: time,
            part,
        });
    }

    fn end_team(&mut self, time: u64, comm: u32) {
        let within = &mut self.threads.within;
        let Some(at) = within.iter().rposition(|part| part.comm == comm) else {
            return self.note(Kind::Unbalanced);
        };
        let part = within[at];
        within.truncate(at);
        self.compute(time);
        self.threads.task = None;
        self.threads.aside.clear();
        // Of a recorder that tells of no wait at the end of a region, nobody knows when it is over.
        let is_idle = part.number > 0 && at == 0 && part.met > 0;
        if is_idle && !self.threads.tells_idle {
            self.threads.idle = Some(time);
        }
    }

    /// The innermost team.
    fn part(&self) -> Part {
        self.threads.within.last().copied().unwrap_or_default()
    }

    /// A region of threads is entered: the call that it opens, and what is known of it.
    pub(super) fn opens(&mut self, construct: Construct) -> Option<(u16, Told)> {
        let call = match construct {
            Construct::Call(call) => call,
            Construct::ImplicitBarrier => {
                let around = self.stack.last().map(|level| level.region);
                let around = around.and_then(|region| self.world.meaning(region));
                let sections = Construct::Sections;
                match self.threads.left {
                    _ if around == Some(Meaning::Threads(sections)) => number::omp_sections_end,
                    Some(Construct::Sections) => number::omp_sections_end,
                    _ => number::omp_loop_end,
                }
            }
            _ => return None,
        };
        let part = self.part();
        let told = match call {
            _ if constructs::meets(call) && part.size > 0 => {
                let innermost = self.threads.within.last_mut();
                let met = innermost.map_or(0, |part| {
                    part.met += 1;
                    part.met
                });
                Told::of_threads(part.key(met), part.parameter())
            }
            number::omp_ordered => Told::of_threads(part.turns(), 0),
            _ if constructs::awaits_tasks(call) => Told::of_threads(part.tasks_of(part.number), 0),
            _ => Told::default(),
        };
        Some((call, told))
    }

    /// The code begins that a lock or a turn protects.
    pub(super) fn enter_body(&mut self, time: u64) {
        self.acquire(time, Told::default());
    }

    /// A region of threads is left.
    pub(super) fn left_construct(&mut self, time: u64, construct: Construct) {
        self.threads.left = Some(construct);
        let idles = [number::omp_parallel, number::omp_idle].map(Construct::Call);
        self.threads.tells_idle |= idles.contains(&construct);
        if construct == Construct::OrderedBody {
            let told = Told::of_threads(self.part().turns(), 0);
            self.instant(time, number::omp_ordered_end, told);
        }
    }

    /// A wait is over that was for a lock, or for a turn.
    fn acquire(&mut self, time: u64, told: Told) {
        let waits =
            |open: &&Open| constructs::locks(open.number) || open.number == number::omp_ordered;
        if self.open.as_ref().filter(waits).is_some()
            && let Some(mut open) = self.open.take()
        {
            open.told = open.told.or(&told);
            self.close(open, time);
        }
    }

    fn release(&mut self, time: u64, paradigm: u8, lock: u32) {
        let told = Told::of_threads(LOCK | u64::from(lock), 0);
        let ordered = Meaning::Threads(Construct::Call(number::omp_ordered));
        let innermost = self.stack.last().map(|level| level.region);
        match &mut self.open {
            Some(open) if constructs::unlocks(open.number) => open.told = told.or(&open.told),
            // A wait for a condition gives its mutex back.
            Some(_) => {}
            // Turns are no locks, though they may have numbers of some.
            None if innermost.and_then(|region| self.world.meaning(region)) == Some(ordered) => {}
            None if paradigm == PARADIGM_PTHREAD => {
                self.instant(time, number::pthread_mutex_unlock, told);
            }
            None => self.instant(time, number::omp_critical_end, told),
        }
    }

    fn switch_task(&mut self, time: u64, task: Task) {
        let next = Some(task).filter(|task| task.generation != 0);
        let before = self.threads.task;
        if next == before {
            return;
        }
        let waits =
            |open: &Open| constructs::meets(open.number) || constructs::awaits_tasks(open.number);
        match self.open.take() {
            Some(mut open) if waits(&open) => {
                let mut idle = Open::new(
                    number::omp_task_idle,
                    open.enter,
                    open.path,
                    self.stack.len(),
                );
                idle.computed = std::mem::take(&mut open.computed);
                idle.told = Told::of_threads(0, 0);
                self.close(idle, time);
                self.open = Some(open);
            }
            Some(open) => self.open = Some(open),
            None => self.compute(time),
        }
        let aside = Aside {
            stack: std::mem::take(&mut self.stack),
            open: self.open.take(),
        };
        let is_over = before.is_some() && aside.stack.is_empty();
        if !is_over && self.threads.aside.len() < MOST_TASKS {
            self.threads.aside.insert(before, aside);
        }
        let resumed = self.threads.aside.remove(&next).unwrap_or_default();
        self.stack = resumed.stack;
        self.open = match resumed.open {
            Some(open) if waits(&open) => Some(Open {
                enter: time,
                computed: self.take_computed(),
                ..open
            }),
            open => open,
        };
        self.threads.task = next;
    }

    fn complete_task(&mut self, time: u64, task: Task) {
        let part = self.part();
        // Who executes its own tasks while it waits for them does not wait for itself.
        if part.number != task.creator && part.comm == task.team {
            let told = Told::of_threads(part.tasks_of(task.creator), 0);
            self.instant(time, number::omp_task_end, told);
        }
    }

    /// After the last event.
    pub(super) fn finish_threads(&mut self) {
        self.settle_threads(&Event::Nothing);
        let Some(idle) = self.threads.idle.take() else {
            return;
        };
        let end = self.span.1.max(idle);
        self.spent(
            number::omp_idle,
            self.threads.region,
            (idle, end),
            Told::of_threads(0, 0),
        );
    }

    /// A call is left: its region tells what it is.
    pub(super) fn close_left(&mut self, region: u32, open: Open, time: u64) {
        let implicit = Meaning::Threads(Construct::ImplicitBarrier);
        self.threads.may_be_last =
            open.number == number::omp_loop_end && self.world.meaning(region) == Some(implicit);
        let record = self.close(open, time);
        if std::mem::take(&mut self.threads.may_be_last) {
            self.threads.ended = Some(record);
        }
    }

    /// Whether more will be known of the call that is being closed.
    pub(super) fn is_unsettled(&self) -> bool {
        self.threads.may_be_last
    }
}

/// What the end of a thread is known by.
fn thread_key(contingent: u32, count: u64) -> u64 {
    THREAD | u64::from(contingent) << 32 | count & u64::from(u32::MAX)
}
