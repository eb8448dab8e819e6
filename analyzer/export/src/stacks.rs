//! Time by call path: flame graphs, Speedscope, pprof.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use laggard_engine::events::{Events, Joined, OUTSIDE, Wait};
use laggard_patterns::PatternId;
use laggard_report::layout::base_name;
use laggard_report::units::duration;
use laggard_report::words;
use laggard_stacks::{Frame, Kind, Stack, Stacks};
use laggard_trace::calls;
use laggard_trace::calls::user::STEER;
use laggard_trace::flags;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::between;
use super::target::Target;

/// Format of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackFormat {
    /// SVG.
    FlameGraph,
    /// A line per stack.
    Folded,
    /// JSON of Speedscope.
    Speedscope,
    /// `profile.proto`, compressed.
    Pprof,
}

impl StackFormat {
    /// All.
    pub const ALL: [StackFormat; 4] = [
        StackFormat::FlameGraph,
        StackFormat::Folded,
        StackFormat::Speedscope,
        StackFormat::Pprof,
    ];
}

/// Writes the time by call path; returns a summary.
///
/// # Errors
/// The file exists, or cannot be written; or there is no time to draw.
pub fn stacks(events: &Events, format: StackFormat, output: &Path) -> Result<String> {
    let stacks = gathered(events)?;
    let mut target = Target::create(output)?;
    match format {
        StackFormat::FlameGraph => laggard_stacks::flame_graph(&stacks, &mut target)?,
        StackFormat::Folded => laggard_stacks::folded(&stacks, &mut target)?,
        StackFormat::Speedscope => laggard_stacks::speedscope(&stacks, &mut target)?,
        StackFormat::Pprof => laggard_stacks::pprof(&stacks, &mut target)?,
    }
    target.finish()?;
    let [computation, communication, waiting] =
        Kind::ALL.map(|kind| duration(stacks.total(kind) as f64 / 1e9));
    Ok(format!(
        "{}: {computation} of computation, {communication} of communication, {waiting} of waiting",
        output.display()
    ))
}

/// A call and its call path.
pub type Site = (u16, u32);

/// Sums of some locations, ns.
#[derive(Default)]
pub struct Sums {
    /// Inside calls.
    inside: FxHashMap<Site, i64>,
    /// Waiting for others.
    waiting: FxHashMap<Site, i64>,
    /// Between calls, by the calls before and after.
    pub between: FxHashMap<(Site, Site), i64>,
    /// Of that, what was no work of the program, by [`OUTSIDE`].
    beside: FxHashMap<(Site, Site), [i64; OUTSIDE.len()]>,
    /// Of the rest, by the call path in which samples were, number of the path.
    sampled: FxHashMap<((Site, Site), u32), i64>,
}

impl Sums {
    /// The sums of one location, without waiting.
    pub fn of_location(events: &Events, at: usize) -> Sums {
        let mut sums = Sums::default();
        let mut before: Option<(Site, i64)> = None;
        events.operations(at).read(|operation| {
            // Time of regions outside of the calls in them is computation, and so is that around a change of the
            // recording.
            let is_mark = operation
                .call
                .is_some_and(|call| call.is_user() || call.number == STEER);
            if operation.has(flags::PART) || is_mark {
                return ControlFlow::Continue(());
            }
            let site = (operation.signature.operation, operation.call_path);
            *sums.inside.entry(site).or_default() += operation.inside;
            // A repeated call is left and entered again in between.
            let left = operation.leave - operation.enter - operation.inside;
            *sums.between.entry((site, site)).or_default() += left.max(0);
            if let Some((previous, since)) = before {
                for (path, time) in events.samples(at, operation) {
                    *sums.sampled.entry(((previous, site), path)).or_default() += time;
                }
                let between = (operation.enter - since).max(0);
                *sums.between.entry((previous, site)).or_default() += between;
                sums.add_beside((previous, site), operation.beside());
            }
            before = Some((site, operation.leave));
            ControlFlow::Continue(())
        });
        sums
    }

    fn add_beside(&mut self, between: (Site, Site), times: [i64; OUTSIDE.len()]) {
        if times != [0; OUTSIDE.len()] {
            let sums = self.beside.entry(between).or_default();
            for (sum, time) in sums.iter_mut().zip(times) {
                *sum = sum.saturating_add(time);
            }
        }
    }

    /// Of the time between two calls, what was no work of the program, by [`OUTSIDE`], and the rest.
    pub fn beside(&self, between: &(Site, Site)) -> ([i64; OUTSIDE.len()], i64) {
        let mut left = self.between.get(between).copied().unwrap_or(0);
        let times = self.beside.get(between).copied().unwrap_or_default();
        let times = times.map(|ns| {
            let ns = ns.clamp(0, left.max(0));
            left -= ns;
            ns
        });
        (times, left)
    }

    /// Takes computation of which samples tell the call path out of that between two calls. It is no
    /// more than that.
    pub fn in_functions(&mut self) -> Vec<(u32, i64)> {
        let mut of: FxHashMap<(Site, Site), (i64, i64)> = FxHashMap::default();
        for ((between, _), ns) in &self.sampled {
            of.entry(*between).or_default().0 += ns;
        }
        for (between, (all, most)) in &mut of {
            *most = self.beside(between).1.clamp(0, *all);
        }
        let sampled = std::mem::take(&mut self.sampled).into_iter();
        let parts = sampled.map(|((between, path), ns)| {
            let (all, most) = of[&between];
            let part = i128::from(ns) * i128::from(most) / i128::from(all.max(1));
            let rest = self.between.entry(between).or_default();
            *rest -= part as i64;
            (path, part as i64)
        });
        parts.collect()
    }

    fn merge(mut self, other: Sums) -> Sums {
        let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
        for (key, ns) in other.inside {
            add(self.inside.entry(key).or_default(), ns);
        }
        for (key, ns) in other.between {
            add(self.between.entry(key).or_default(), ns);
        }
        for (key, times) in other.beside {
            self.add_beside(key, times);
        }
        for (key, ns) in other.sampled {
            add(self.sampled.entry(key).or_default(), ns);
        }
        self
    }
}

impl Joined for Sums {
    fn wants_messages(&self) -> bool {
        false
    }

    fn wait(&mut self, wait: &Wait) -> Result<()> {
        let pattern = PatternId::from_number(wait.pattern);
        if pattern.is_some_and(PatternId::is_waiting) {
            let sum = self.waiting.entry((wait.call, wait.call_path)).or_default();
            *sum = sum.saturating_add(wait.lost);
        }
        Ok(())
    }
}

fn gathered(events: &Events) -> Result<Stacks> {
    let locations = (0..events.locations()).into_par_iter();
    let mut sums = locations
        .map(|at| Sums::of_location(events, at))
        .reduce(Sums::default, Sums::merge);
    events.join(&mut sums)?;
    let frames: Vec<Vec<Frame>> = events
        .call_paths
        .iter()
        .map(|path| path.place.callpath.iter().map(|text| frame(text)).collect())
        .collect();
    let mut program = events.program().iter().map(String::as_str);
    let name = program.next().map(base_name);
    let command: Vec<&str> = name.into_iter().chain(program).collect();
    let mut stacks = Stacks::new(&command.join(" "), events.end_ns());
    let time = |ns: i64| ns.max(0) as u64;
    for (&(call, path), &inside) in &sums.inside {
        let waiting = sums.waiting.get(&(call, path)).copied().unwrap_or(0);
        let waiting = waiting.clamp(0, inside.max(0));
        let mut stack = frames[path as usize].clone();
        stack.push(Frame::named(calls::name(call)));
        for (kind, ns) in [
            (Kind::Communication, inside - waiting),
            (Kind::Waiting, waiting),
        ] {
            let frames = stack.clone();
            stacks.add(Stack { frames, kind }, time(ns));
        }
    }
    let name = |(call, path): Site| {
        let place = &events.call_paths[path as usize].place;
        format!("{} at {}", calls::name(call), words::place(place))
    };
    for (function, ns) in sums.in_functions() {
        let mut frames = frames[function as usize].clone();
        if let Some(last) = frames.last_mut() {
            // Samples are at many lines of it.
            last.line = 0;
        }
        let kind = Kind::Computation;
        stacks.add(Stack { frames, kind }, time(ns));
    }
    for &(before, after) in sums.between.keys() {
        let end = |site: Site| (frames[site.1 as usize].as_slice(), name(site));
        let ((from, from_name), (to, to_name)) = (end(before), end(after));
        let stack = Stack {
            frames: between::stack((from, &from_name), (to, &to_name)),
            kind: Kind::Computation,
        };
        let (beside, left) = sums.beside(&(before, after));
        for (part, ns) in OUTSIDE.into_iter().zip(beside) {
            let mut stack = stack.clone();
            stack.frames.push(Frame::named(part.name()));
            stacks.add(stack, time(ns));
        }
        stacks.add(stack, time(left));
    }
    Ok(stacks)
}

/// `exchange app.c:42` as a frame.
pub fn frame(text: &str) -> Frame {
    let place = text.rsplit_once(' ').and_then(|(function, place)| {
        let (file, line) = place.rsplit_once(':')?;
        Some(Frame {
            function: function.to_owned(),
            file: file.to_owned(),
            line: line.parse().ok()?,
        })
    });
    place.unwrap_or_else(|| Frame::named(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_what_the_texts_say() {
        let of = |text: &str| {
            let frame = frame(text);
            (frame.function, frame.file, frame.line)
        };
        let expected = |f: &str, file: &str, line| (f.to_owned(), file.to_owned(), line);
        assert_eq!(of("main app.c:90"), expected("main", "app.c", 90));
        assert_eq!(of("lmp+0x11fc"), expected("lmp+0x11fc", "", 0));
        let cplusplus = "Run::command(int, char**)+0x6a9";
        assert_eq!(of(cplusplus), expected(cplusplus, "", 0));
    }
}
