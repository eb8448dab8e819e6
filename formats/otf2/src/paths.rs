//! Call paths: a tree of regions by their enclosing regions.

use rustc_hash::FxHashMap;

use crate::definitions::{Definitions, UNDEFINED};
use crate::output::Output;

/// Most frames of a call path; the innermost ones are kept.
const DEEPEST: usize = 128;
/// Most nodes of the tree; bounds memory for any recursion.
const MOST: usize = 1 << 20;

/// A region as it was entered from its parent.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u32,
    /// Text numbers of the archive.
    function: u32,
    file: u32,
    line: u32,
    /// Id of its call path in the output; 0 = not defined yet.
    call_path: u32,
}

/// The tree. Node 0 lies outside of all regions.
pub struct Paths {
    nodes: Vec<Node>,
    entered: FxHashMap<(u32, u32), u32>,
    contexts: FxHashMap<u32, u32>,
    /// Number of regions left out for lack of room.
    pub cut: u64,
}

impl Paths {
    /// An empty tree.
    pub fn new() -> Paths {
        Paths {
            nodes: vec![Node::default()],
            entered: FxHashMap::default(),
            contexts: FxHashMap::default(),
            cut: 0,
        }
    }

    /// The node of a region that is entered from `parent`.
    pub fn enter(&mut self, parent: u32, region: u32, definitions: &Definitions) -> u32 {
        if let Some(&node) = self.entered.get(&(parent, region)) {
            return node;
        }
        let Some(known) = definitions.regions.get(&region) else {
            return parent;
        };
        let node = Node {
            parent,
            function: known.name,
            file: known.file,
            line: known.line,
            call_path: 0,
        };
        let Some(number) = self.add(node) else {
            return parent;
        };
        self.entered.insert((parent, region), number);
        number
    }

    fn add(&mut self, node: Node) -> Option<u32> {
        if self.nodes.len() >= MOST {
            self.cut += 1;
            return None;
        }
        self.nodes.push(node);
        Some(self.nodes.len() as u32 - 1)
    }

    /// The node of a calling context.
    pub fn context(&mut self, context: u32, definitions: &Definitions) -> u32 {
        // From the inside out, up to a known context; the limit ends a cycle, too.
        let mut chain = Vec::new();
        let mut at = context;
        let mut node = loop {
            if at == UNDEFINED {
                break 0;
            }
            if let Some(&node) = self.contexts.get(&at) {
                break node;
            }
            let Some(found) = definitions.contexts.get(&at) else {
                break 0;
            };
            chain.push((at, *found));
            if chain.len() > definitions.contexts.len() {
                break 0;
            }
            at = found.parent;
        };
        for (number, context) in chain.into_iter().rev() {
            let Some(region) = definitions.regions.get(&context.region) else {
                continue;
            };
            let place = definitions.places.get(&context.place);
            let &(file, line) = place.unwrap_or(&(region.file, region.line));
            let new = Node {
                parent: node,
                function: region.name,
                file,
                line,
                call_path: 0,
            };
            node = self.add(new).unwrap_or(node);
            self.contexts.insert(number, node);
        }
        node
    }

    /// The id of a node's call path, defined in the output; 0 outside of all regions.
    pub fn call_path(&mut self, node: u32, output: &mut Output) -> u32 {
        if node == 0 || self.nodes[node as usize].call_path != 0 {
            return self.nodes[node as usize].call_path;
        }
        let mut frames = Vec::new();
        let mut at = node;
        while at != 0 && frames.len() < DEEPEST {
            let node = self.nodes[at as usize];
            frames.push((node.function, node.file, node.line));
            at = node.parent;
        }
        let id = output.call_path(&frames);
        self.nodes[node as usize].call_path = id;
        id
    }
}
