//! Call stacks, and the kinds of time spent in them.

use std::collections::BTreeMap;

/// Kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Outside of recorded calls.
    Computation,
    /// In recorded calls, without waiting.
    Communication,
    /// In recorded calls, waiting for others.
    Waiting,
}

impl Kind {
    /// All.
    pub const ALL: [Kind; 3] = [Kind::Computation, Kind::Communication, Kind::Waiting];

    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Computation => "computation",
            Kind::Communication => "communication",
            Kind::Waiting => "waiting",
        }
    }
}

/// A line of a call path.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Function, or a substitute if unknown.
    pub function: String,
    /// File, may be empty.
    pub file: String,
    /// Line, from 1; 0 = unknown.
    pub line: u32,
}

impl Frame {
    /// A frame without a line of the program.
    pub fn named(function: &str) -> Frame {
        Frame {
            function: function.to_owned(),
            ..Frame::default()
        }
    }

    /// `function file:line`, or the known part of it.
    pub fn text(&self) -> String {
        match (self.file.as_str(), self.line) {
            ("", _) => self.function.clone(),
            (file, 0) => format!("{} {file}", self.function),
            (file, line) => format!("{} {file}:{line}", self.function),
        }
    }
}

/// A call path and the kind of time at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stack {
    /// Outermost first.
    pub frames: Vec<Frame>,
    /// Kind of time.
    pub kind: Kind,
}

impl Stack {
    /// Texts of the frames, the kind last.
    pub fn texts(&self) -> Vec<String> {
        let kind = format!("[{}]", self.kind.name());
        self.frames.iter().map(Frame::text).chain([kind]).collect()
    }
}

/// Stacks with their times.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Name of the run, for titles.
    pub title: String,
    /// Wall time of the run, ns.
    pub wall_ns: i64,
    times: BTreeMap<Stack, u64>,
}

impl Stacks {
    /// Without time yet.
    pub fn new(title: &str, wall_ns: i64) -> Stacks {
        Stacks {
            title: title.to_owned(),
            wall_ns,
            times: BTreeMap::new(),
        }
    }

    /// Adds time, ns.
    pub fn add(&mut self, stack: Stack, ns: u64) {
        if ns > 0 {
            let sum = self.times.entry(stack).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// Stacks and their times, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&Stack, u64)> {
        self.times.iter().map(|(stack, ns)| (stack, *ns))
    }

    /// Sum of one kind of time, ns.
    pub fn total(&self, kind: Kind) -> u64 {
        let of_kind = self.iter().filter(|(stack, _)| stack.kind == kind);
        of_kind.fold(0, |sum, (_, ns)| sum.saturating_add(ns))
    }
}
