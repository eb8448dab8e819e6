//! The root causes of a report, found again in the trace.

use std::ops::ControlFlow;

use laggard_engine::events::{Events, OUTSIDE, Operation};
use laggard_patterns::PatternId;
use laggard_report::{Report, RootCause, SourceLocation, has_rank};
use laggard_trace::calls::{CALLS, Call};
use laggard_trace::flags;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A call of the program: number of the call, and of the call path. Nothing: zeros.
type Site = (u16, u32);

/// The root causes of a report.
pub struct Roots<'r> {
    /// In the report's order.
    pub all: &'r [RootCause],
    /// By pattern and call that waited: the one that starts most.
    of_waits: FxHashMap<(u8, Site), usize>,
    /// By the calls before and after a stretch of computation.
    of_stretches: FxHashMap<(Site, Site), usize>,
    /// By call.
    of_calls: FxHashMap<Site, usize>,
}

/// Lines of a place: equal for all call paths with the same number.
type Lines<'l> = (&'l str, u32, &'l str, &'l [String]);

fn lines(place: &SourceLocation) -> Lines<'_> {
    (&place.file, place.line, &place.function, &place.callpath)
}

impl<'r> Roots<'r> {
    /// Of a report about these events.
    pub fn new(events: &Events, report: &'r Report) -> Roots<'r> {
        let all = report.root_causes.as_deref().unwrap_or_default();
        let places = (0..).zip(&events.call_paths).skip(1);
        let places = places.map(|(number, path)| (lines(&path.place), number));
        let path_of: FxHashMap<Lines<'_>, u32> = places.collect();
        let site = |call: &str, place: &SourceLocation| -> Option<Site> {
            let known = CALLS.iter().find(|known| known.name == call);
            let number = known?.number;
            Some((number, path_of.get(&lines(place)).copied().unwrap_or(0)))
        };
        let mut roots = Roots {
            all,
            of_waits: FxHashMap::default(),
            of_stretches: FxHashMap::default(),
            of_calls: FxHashMap::default(),
        };
        for (at, root) in all.iter().enumerate() {
            let begin = match root.operation.is_empty() {
                true => Some((0, 0)),
                false => site(&root.operation, &root.location),
            };
            let until = root.until.as_ref();
            let until = until.and_then(|until| site(&until.operation, &until.location));
            match (&*root.activity, begin, until) {
                (activity, Some(begin), Some(until)) if is_outside(activity) => {
                    roots.of_stretches.entry((begin, until)).or_insert(at);
                }
                ("computation" | "latency", ..) => {}
                (_, Some(call), None) if call != (0, 0) => {
                    roots.of_calls.entry(call).or_insert(at);
                }
                _ => {}
            }
        }
        for found in &report.bottlenecks {
            let first = found.root_causes.first();
            let first = first.and_then(|first| all.iter().position(|root| root.id == first.id));
            let pattern = PatternId::from_id(&found.pattern);
            let call = site(&found.operation, &found.location);
            if let (Some(first), Some(pattern), Some(call)) = (first, pattern, call) {
                let key = (pattern as u8, call);
                roots.of_waits.entry(key).or_insert(first);
            }
        }
        roots
    }

    /// The one that starts most of such waits, by position.
    pub fn of_wait(&self, pattern: u8, call: u16, call_path: u32) -> Option<usize> {
        self.of_waits.get(&(pattern, (call, call_path))).copied()
    }

    /// The longest stretch of each root cause on the rank that causes most of it, if it has any.
    pub fn longest(&self, events: &Events) -> Vec<Option<Longest>> {
        let largest: Vec<Option<u32>> = self.all.iter().map(largest_rank).collect();
        let locations = (0..events.locations()).into_par_iter();
        let locations = locations.filter(|&at| largest.contains(&Some(events.place(at).rank)));
        let of_locations = locations.map(|at| {
            let place = events.place(at);
            let mut longest: Vec<Option<Longest>> = vec![None; self.all.len()];
            self.stretches(events, at, |(root, begin, end)| {
                let is_longer = |known: &Longest| known.end - known.begin < end - begin;
                let is_next = longest[root].as_ref().is_none_or(is_longer);
                if is_next && largest[root] == Some(place.rank) {
                    longest[root] = Some(Longest {
                        rank: place.rank,
                        thread: place.thread,
                        begin,
                        end,
                    });
                }
            });
            longest
        });
        // In the order of locations: of equal ones the first.
        let of_locations: Vec<_> = of_locations.collect();
        let length = |found: &Option<Longest>| found.as_ref().map(|one| one.end - one.begin);
        let none = vec![None; self.all.len()];
        of_locations.into_iter().fold(none, |mut longest, found| {
            for (longest, found) in longest.iter_mut().zip(found) {
                if length(&found) > length(longest) {
                    *longest = found;
                }
            }
            longest
        })
    }

    /// Gives all stretches of root causes on a location to `take`, in the order of its calls.
    pub fn stretches(&self, events: &Events, at: usize, mut take: impl FnMut(Stretch)) {
        let mut follower = self.follow(events.place(at).rank);
        events.operations(at).read(|operation| {
            let stretches = follower.next(operation).into_iter();
            stretches.flatten().for_each(&mut take);
            ControlFlow::Continue(())
        });
    }

    /// Whether a rank is among those of any root cause.
    pub fn has_rank(&self, rank: u32) -> bool {
        self.all.iter().any(|root| has_rank(&root.rank_set, rank))
    }

    /// Follows the calls of a rank.
    fn follow(&self, rank: u32) -> Follower<'_> {
        Follower {
            roots: self,
            rank,
            before: ((0, 0), i64::MIN),
        }
    }
}

/// The longest stretch of a root cause: its location, from and to, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Longest {
    pub rank: u32,
    pub thread: u32,
    pub begin: i64,
    pub end: i64,
}

fn largest_rank(root: &RootCause) -> Option<u32> {
    root.ranks.first().map(|share| share.rank)
}

/// When a rank did something that others waited for: root cause by position, from and to, ns.
pub type Stretch = (usize, i64, i64);

/// The calls of a rank, one after another.
pub struct Follower<'r> {
    roots: &'r Roots<'r>,
    rank: u32,
    /// The last call, and its end.
    before: (Site, i64),
}

impl Follower<'_> {
    /// Takes the next call. Returns the computation before it, and the call itself, if they are
    /// root causes of this rank.
    pub fn next(&mut self, operation: &Operation) -> [Option<Stretch>; 2] {
        // Regions enclose calls; parts belong to the call after them.
        if operation.has(flags::PART) || operation.call.is_some_and(Call::is_user) {
            return [None; 2];
        }
        let site = (operation.signature.operation, operation.call_path);
        let (before, end) = self.before;
        self.before = (site, operation.leave);
        let of_rank = |at: &&usize| has_rank(&self.roots.all[**at].rank_set, self.rank);
        let stretch = self.roots.of_stretches.get(&(before, site));
        let call = self.roots.of_calls.get(&site);
        [
            stretch
                .filter(of_rank)
                .filter(|_| end < operation.enter && before != (0, 0))
                .map(|&at| (at, end, operation.enter)),
            call.filter(of_rank)
                .map(|&at| (at, operation.enter, operation.leave)),
        ]
    }
}

/// `rc1: computation`, `rc2: MPI_File_write`, `rc3: preempted in MPI_Pack`.
pub fn title(root: &RootCause) -> String {
    match &*root.activity {
        "latency" => format!("{}: latency", root.id),
        activity if is_outside(activity) => match root.until {
            None if !root.operation.is_empty() => {
                format!("{}: {activity} in {}", root.id, root.operation)
            }
            _ => format!("{}: {activity}", root.id),
        },
        _ => format!("{}: {}", root.id, root.operation),
    }
}

/// Whether an activity is between two calls.
fn is_outside(activity: &str) -> bool {
    activity == "computation" || OUTSIDE.iter().any(|part| part.name() == activity)
}
