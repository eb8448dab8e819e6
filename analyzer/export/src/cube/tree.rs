//! The call tree: functions of the program, and the calls that they make.

use laggard_cube::CallPath;
use laggard_engine::events::Events;
use laggard_report::layout::base_name;
use laggard_stacks::Frame;
use laggard_trace::calls;
use rustc_hash::FxHashMap;

use crate::stacks::{Site, frame};

/// The call tree in the making.
pub struct Tree<'e> {
    events: &'e Events,
    nodes: Vec<CallPath>,
    /// By caller, function, its file, and the line from which it is called.
    known: FxHashMap<(usize, String, String, u32), usize>,
    /// Nodes of the innermost functions, by number of the call path.
    functions: FxHashMap<u32, usize>,
}

impl<'e> Tree<'e> {
    /// The node of the whole program.
    pub const PROGRAM: usize = 0;

    /// The program alone.
    pub fn new(events: &'e Events) -> Tree<'e> {
        let name = events.program().first();
        let program = CallPath {
            function: name.map_or("program", |name| base_name(name)).to_owned(),
            paradigm: "compiler",
            ..CallPath::default()
        };
        Tree {
            events,
            nodes: vec![program],
            known: FxHashMap::default(),
            functions: FxHashMap::default(),
        }
    }

    /// The nodes, each after its caller.
    pub fn into_nodes(self) -> Vec<CallPath> {
        self.nodes
    }

    /// The innermost function of a call path.
    pub fn function(&mut self, path: u32) -> usize {
        if let Some(&known) = self.functions.get(&path) {
            return known;
        }
        let events = self.events;
        let node = self.function_at(&events.call_paths[path as usize].place.callpath);
        self.functions.insert(path, node);
        node
    }

    /// A call at a call path.
    pub fn call(&mut self, (call, path): Site) -> usize {
        let events = self.events;
        let function = self.function(path);
        let texts = &events.call_paths[path as usize].place.callpath;
        self.call_below(function, call, texts.last())
    }

    /// The innermost of these frames, outermost first.
    pub fn function_at(&mut self, frames: &[String]) -> usize {
        let mut at = Tree::PROGRAM;
        let mut caller = Frame::default();
        for text in frames {
            let frame = frame(text);
            at = self.node(at, &frame, &caller, "compiler");
            caller = frame;
        }
        at
    }

    /// A call below these frames.
    pub fn call_at(&mut self, call: u16, frames: &[String]) -> usize {
        let function = self.function_at(frames);
        self.call_below(function, call, frames.last())
    }

    fn call_below(&mut self, function: usize, call: u16, innermost: Option<&String>) -> usize {
        let caller = innermost.map(|text| frame(text)).unwrap_or_default();
        let paradigm = match calls::call(call) {
            Some(call) if call.is_shmem() => "shmem",
            Some(call) if call.is_threads() && call.name.starts_with("omp_") => "openmp",
            Some(call) if call.is_threads() => "pthread",
            Some(call) if call.is_posix() => "io",
            Some(call) if call.is_user() => "user",
            _ => "mpi",
        };
        let called = Frame::named(calls::name(call));
        self.node(function, &called, &caller, paradigm)
    }

    /// `called` below a node, from the line of `caller`.
    fn node(
        &mut self,
        parent: usize,
        called: &Frame,
        caller: &Frame,
        paradigm: &'static str,
    ) -> usize {
        let key = (
            parent,
            called.function.clone(),
            called.file.clone(),
            caller.line,
        );
        let next = self.nodes.len();
        let node = *self.known.entry(key).or_insert(next);
        if node == next {
            self.nodes.push(CallPath {
                parent: Some(parent),
                function: called.function.clone(),
                file: called.file.clone(),
                paradigm,
                called_in: caller.file.clone(),
                line: caller.line,
            });
        }
        node
    }
}
