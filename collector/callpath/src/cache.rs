//! Remembered paths, found again by comparing stack slots.
//!
//! # Why equal slots mean an equal path
//!
//! Unwinding is a function of the call site's registers and of the words it reads. From `(pc,
//! sp, bp)` of a frame, the tables of the module at `pc` give three locations: the caller's
//! stack pointer (`sp` plus a constant, `bp` plus a constant, or a word stored in the frame),
//! the return address (stored below it), and the caller's `bp` if it is stored at all.
//!
//! A remembered path is keyed by `(ra, sp)`. It holds all words that its result depends on
//! ([`Check`]), in the order in which unwinding read them:
//!
//! - every return address;
//! - a saved frame pointer, only if a later step computed an address from it (programs without
//!   frame pointers keep loop counters there);
//! - the register, if a step used the caller's `bp` itself.
//!
//! By induction: if the first *n* checks hold, unwinding now would go through the same `(pc,
//! sp, used bp)` up to there. It would therefore read check *n + 1* at the same address. If
//! that check holds too, the step is the same. So if all checks hold, unwinding now would give
//! the remembered path. The rules stay the same unless another module was mapped at a `pc`; the
//! tracer forgets all paths when the dynamic linker has removed a module.
//!
//! The same argument shows that comparing is safe. A slot is only read after earlier checks
//! have proved that it belongs to a live frame of the current stack, and live frames are
//! mapped. This holds on any stack, even a coroutine's, and after `longjmp`.
//!
//! # Shape
//!
//! Paths with the same key share their first checks. They part at the value of one slot, whose
//! address follows from the shared checks. Each key has a radix tree: a node is a run of
//! checks, then either a path or a slot whose value chooses the next node. If fifty places call
//! a layer that wraps the MPI call, a look-up costs one choice, not fifty comparisons of paths.

use crate::paths::PathId;
use crate::site::CallSite;

/// A word that a path depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// A stack address, or [`BP`].
    pub(crate) address: u64,
    pub(crate) value: u64,
}

/// Stands for an address: the call site's frame pointer register.
pub(crate) const BP: u64 = 0;

/// Stands for a stack pointer: the path depends on the return address only.
pub(crate) const ANY_SP: u64 = 0;

/// Stands for a node: none.
const NONE: u32 = u32::MAX;

const FIRST_ROOTS: usize = 256;
const MAX_ROOTS: usize = 1 << 15;
const MAX_CHECKS: usize = 1 << 18;

/// Holds a copy of its node: most keys have one path. A look-up then reads one cache line and
/// the checks.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Root {
    ra: u64,
    sp: u64,
    node: u32,
    top: Node,
}

const _: () = assert!(size_of::<Root>() == 64);

const FREE: Root = Root {
    ra: 0,
    sp: 0,
    node: NONE,
    top: NO_NODE,
};

/// A node without successor: no run of checks ends before it begins.
const NO_NODE: Node = Node {
    value: 0,
    sibling: NONE,
    first: 1,
    end: 0,
    then: Then::Path(PathId::EMPTY),
};

#[derive(Clone, Copy)]
struct Node {
    /// The value that chose this node among its siblings.
    value: u64,
    sibling: u32,
    /// The run: indices into the checks.
    first: u32,
    end: u32,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    Path(PathId),
    Choose { address: u64, child: u32 },
}

/// Number of places (log2) for paths keyed by the return address only.
const RECENT_LOG2: u32 = 8;

/// The remembered paths of one thread.
#[repr(C)]
pub(crate) struct Cache {
    /// Open addressing, a power of two long, at most half full; `ra` 0: free.
    roots: Vec<Root>,
    checks: Vec<Check>,
    nodes: Vec<Node>,
    /// Return addresses with a root of [`ANY_SP`] and their paths; `ra` 0: none.
    recent: Vec<(u64, PathId)>,
    used: usize,
}

/// # Safety
/// `address` is [`BP`] or the address of a word in a live frame of this thread.
#[inline(always)]
unsafe fn word(address: u64, site: &CallSite) -> u64 {
    // Chooses the address to read, without a branch.
    let place = match address {
        BP => &raw const site.bp,
        _ => address as *const u64,
    };
    // SAFETY: as the caller states.
    unsafe { place.read_volatile() }
}

impl Cache {
    pub(crate) const fn new() -> Self {
        Self {
            recent: Vec::new(),
            roots: Vec::new(),
            used: 0,
            nodes: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Forgets all paths.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.roots.fill(FREE);
        self.used = 0;
        self.nodes.clear();
        self.checks.clear();
    }

    /// The last path that [`note`](Self::note) got for a return address.
    #[inline(always)]
    pub(crate) fn recent(&self, ra: u64) -> Option<PathId> {
        let &(known, path) = self.recent.get(Self::place(ra))?;
        (known == ra).then_some(path)
    }

    /// Remembers a path that depends on the return address only.
    pub(crate) fn note(&mut self, ra: u64, path: PathId) {
        self.recent.resize(1 << RECENT_LOG2, (0, PathId::EMPTY));
        self.recent[Self::place(ra)] = (ra, path);
    }

    #[inline(always)]
    fn place(ra: u64) -> usize {
        (hash(ra, 0) >> (32 - RECENT_LOG2)) & ((1 << RECENT_LOG2) - 1)
    }

    /// The remembered path of `site`, if it is the only one of its key and at the first place
    /// probed. Most calls of most programs end here.
    #[inline(never)]
    pub(crate) fn only(&self, site: &CallSite) -> Option<PathId> {
        let mask = self.roots.len().wrapping_sub(1);
        let root = self.roots.get(hash(site.ra, site.sp) & mask)?;
        let Then::Path(path) = root.top.then else {
            return None;
        };
        if (root.ra ^ site.ra) | (root.sp ^ site.sp) != 0 {
            return None;
        }
        let checks = self
            .checks
            .get(root.top.first as usize..root.top.end as usize)?;
        // SAFETY: the checks before it held; see the module's text.
        let holds = |check: &Check| unsafe { word(check.address, site) } == check.value;
        checks.iter().all(holds).then_some(path)
    }

    /// The remembered path of `site`, with `sp` as key in place of its stack pointer.
    #[inline]
    pub(crate) fn find(&self, site: &CallSite, sp: u64) -> Option<PathId> {
        let mut at = &self.root(site.ra, sp)?.top;
        loop {
            for check in self.checks.get(at.first as usize..at.end as usize)? {
                // SAFETY: the earlier checks held; see the module's text.
                if unsafe { word(check.address, site) } != check.value {
                    return None;
                }
            }
            at = match at.then {
                Then::Path(path) => return Some(path),
                Then::Choose { address, child } => {
                    // SAFETY: as above.
                    let value = unsafe { word(address, site) };
                    self.nodes.get(self.chosen(child, value)? as usize)?
                }
            }
        }
    }

    #[inline]
    fn root(&self, ra: u64, sp: u64) -> Option<&Root> {
        let mask = self.roots.len().wrapping_sub(1);
        let mut index = hash(ra, sp) & mask;
        loop {
            let root = self.roots.get(index)?;
            if root.ra == ra && root.sp == sp {
                return Some(root);
            }
            if root.ra == 0 {
                return None;
            }
            index = (index + 1) & mask;
        }
    }

    #[inline]
    fn chosen(&self, mut child: u32, value: u64) -> Option<u32> {
        loop {
            let node = self.nodes.get(child as usize)?;
            if node.value == value {
                return Some(child);
            }
            child = node.sibling;
        }
    }

    /// Remembers `path` for the call site `(ra, sp)` when all `checks` hold.
    pub(crate) fn insert(&mut self, ra: u64, sp: u64, checks: &[Check], path: PathId) {
        if ra == 0 {
            return;
        }
        let full = self.checks.len() + checks.len() > MAX_CHECKS
            || self.nodes.len() > MAX_CHECKS
            || self.used >= MAX_ROOTS;
        if full {
            self.clear();
        }
        let mut node = match self.root(ra, sp) {
            Some(root) => root.node,
            None => self.add_root(ra, sp),
        };
        if self.graft(node, checks, path).is_none() {
            // The tree is empty or contradicts (a stack read failed then or now): start anew.
            node = self.add_node(0, checks, path);
        }
        self.set_root(ra, sp, node);
    }

    /// Adds a path to the tree at `at`; `None` if it does not fit in.
    fn graft(&mut self, mut at: u32, mut checks: &[Check], path: PathId) -> Option<()> {
        loop {
            let node = *self.nodes.get(at as usize)?;
            let run = self.checks.get(node.first as usize..node.end as usize)?;
            let same = run.iter().zip(checks).take_while(|(a, b)| a == b).count();
            if same < run.len() {
                let (old, new) = (run[same], *checks.get(same)?);
                if old.address != new.address {
                    return None;
                }
                self.split(at, same as u32, old);
                return self.graft(at, checks, path);
            }
            checks = &checks[same..];
            match node.then {
                Then::Path(_) if checks.is_empty() => {
                    self.nodes[at as usize].then = Then::Path(path);
                    return Some(());
                }
                Then::Path(_) => return None,
                Then::Choose { address, child } => {
                    let (next, rest) = checks.split_first()?;
                    if next.address != address {
                        return None;
                    }
                    if let Some(found) = self.chosen(child, next.value) {
                        at = found;
                        checks = rest;
                        continue;
                    }
                    let added = self.add_node(next.value, rest, path);
                    self.nodes[added as usize].sibling = child;
                    self.nodes[at as usize].then = Then::Choose {
                        address,
                        child: added,
                    };
                    return Some(());
                }
            }
        }
    }

    /// Cuts the run of `at` before its check number `keep`, which is `cut`.
    fn split(&mut self, at: u32, keep: u32, cut: Check) {
        let node = self.nodes[at as usize];
        let tail = self.nodes.len() as u32;
        self.nodes.push(Node {
            value: cut.value,
            sibling: NONE,
            first: node.first + keep + 1,
            ..node
        });
        let node = &mut self.nodes[at as usize];
        node.end = node.first + keep;
        node.then = Then::Choose {
            address: cut.address,
            child: tail,
        };
    }

    fn add_node(&mut self, value: u64, checks: &[Check], path: PathId) -> u32 {
        let first = self.checks.len() as u32;
        self.checks.extend_from_slice(checks);
        self.nodes.push(Node {
            value,
            sibling: NONE,
            first,
            end: self.checks.len() as u32,
            then: Then::Path(path),
        });
        self.nodes.len() as u32 - 1
    }

    fn add_root(&mut self, ra: u64, sp: u64) -> u32 {
        if (self.used + 1) * 2 > self.roots.len() {
            let size = (self.roots.len() * 2).max(FIRST_ROOTS);
            let old = std::mem::replace(&mut self.roots, vec![FREE; size]);
            for root in old.into_iter().filter(|root| root.ra != 0) {
                self.set_root(root.ra, root.sp, root.node);
            }
        }
        self.used += 1;
        self.set_root(ra, sp, NONE);
        NONE
    }

    fn set_root(&mut self, ra: u64, sp: u64, node: u32) {
        let top = self.nodes.get(node as usize).copied().unwrap_or(NO_NODE);
        let mask = self.roots.len().wrapping_sub(1);
        let mut index = hash(ra, sp) & mask;
        while let Some(root) = self.roots.get_mut(index) {
            if root.ra == 0 || (root.ra == ra && root.sp == sp) {
                *root = Root { ra, sp, node, top };
                return;
            }
            index = (index + 1) & mask;
        }
    }
}

#[inline]
fn hash(ra: u64, sp: u64) -> usize {
    let mixed = (ra ^ sp.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}
