//! The calls of a location, one after the other, with what the replay needs of each.

use std::ops::ControlFlow;

use laggard_engine::events::{Events, GroupKind, NONE, OUTSIDE, Operation, Operations};
use laggard_trace::calls::{GenericType, Shape};
use laggard_trace::flags;

/// The call and its call path, by number.
pub type Site = (u16, u32);

/// What calls of a signature have in common.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub site: Site,
    pub shape: Shape,
    /// Whether it moves data or synchronises: not files, not handles.
    pub communicates: bool,
    /// Whether all ranks of the run wait for all.
    pub is_of_all: bool,
    /// Whether it sends or receives a message, or begins to …
    pub is_message: bool,
    /// … and is done when it returns; or looks for one until it is there.
    pub blocks: bool,
    /// Whether it looks for a message until it is there.
    pub probes: bool,
    /// Whether it receives a message, or begins to.
    pub receives: bool,
    /// Whether it ends what others began.
    pub completes: bool,
    /// Members of its group; 2 for a message.
    pub members: u32,
}

/// A call. ns.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number of its first part in the location.
    pub first: u64,
    /// Its own number.
    pub number: u64,
    pub enter: i64,
    pub leave: i64,
    /// Time inside of the library, or, if it looks, all that counts as looking.
    pub inside: i64,
    /// Time before it that counts as looking.
    pub looked: i64,
    /// Whether it looks and finds nothing, …
    pub is_vain: bool,
    /// … or something.
    pub finds: bool,
    /// Bytes sent and received.
    pub bytes: u64,
    /// The other rank of a message.
    pub peer: i32,
    /// Its signature, by number in its location.
    pub signature: u32,
    /// Parts of the time since the call before, see [`Operation::beside`].
    pub beside: [i64; OUTSIDE.len()],
    /// Parts of the call itself, see [`Operation::off_its_work`].
    pub off: [i64; OUTSIDE.len()],
    pub kind: Kind,
}

/// Reads the calls of a location.
pub struct Reader<'e> {
    events: &'e Events,
    operations: Operations<'e>,
    /// By signature.
    kinds: Vec<Option<Kind>>,
    /// Calls that were read, and where the next one is.
    read: Vec<Call>,
    at: usize,
}

/// Calls that are read at once: to begin costs as much as two or three of them.
const AT_ONCE: usize = 16;

impl<'e> Reader<'e> {
    pub fn new(events: &'e Events, location: usize) -> Reader<'e> {
        Reader {
            events,
            operations: events.operations(location),
            kinds: Vec::new(),
            read: Vec::new(),
            at: 0,
        }
    }

    /// The next call. Regions of the program are not calls.
    #[inline]
    pub fn next(&mut self) -> Option<Call> {
        if self.at == self.read.len() {
            self.read_on(|count, _| count < AT_ONCE);
        }
        let next = self.read.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    /// Reads all calls that end before `end`, ns, and one more: several locations may do so beside each
    /// other.
    pub fn fill(&mut self, end: i64) {
        if self.read[self.at..]
            .last()
            .is_none_or(|last| last.leave < end)
        {
            self.read_on(|_, leave| leave < end);
        }
    }

    /// Reads on while the number of calls that were read, and the end of the last one, ns, say so.
    fn read_on(&mut self, goes_on: impl Fn(usize, i64) -> bool) {
        self.read.drain(..std::mem::take(&mut self.at));
        let (events, kinds, read) = (self.events, &mut self.kinds, &mut self.read);
        let mut first = None;
        // The first part of a call tells of the time before all of it.
        let mut beside = [0; OUTSIDE.len()];
        self.operations.read(|operation| {
            first.get_or_insert(operation.number);
            let told = beside.iter_mut().zip(operation.beside());
            told.for_each(|(sum, part)| *sum += part);
            if operation.has(flags::PART) || operation.is_region {
                return ControlFlow::Continue(());
            }
            let signature = operation.signature.id;
            let at = signature as usize;
            if kinds.len() <= at {
                kinds.resize(at + 1, None);
            }
            let kind = *kinds[at].get_or_insert_with(|| kind(events, operation));
            let look = operation.look;
            read.push(Call {
                first: first.take().unwrap_or(operation.number),
                number: operation.number,
                enter: operation.enter,
                leave: operation.leave,
                inside: look.map_or(operation.inside, |look| look.looked),
                looked: look.map_or(0, |look| look.before),
                is_vain: look.is_some_and(|look| look.is_vain),
                finds: look.is_some_and(|look| !look.is_vain),
                bytes: operation
                    .send()
                    .bytes
                    .saturating_add(operation.receive().bytes),
                peer: match operation.has(flags::SENDS) {
                    true => operation.send().peer,
                    false => operation.receive().peer,
                },
                signature,
                beside: std::mem::take(&mut beside),
                off: operation.off_its_work(),
                kind,
            });
            match goes_on(read.len(), operation.leave) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
    }
}

fn kind(events: &Events, operation: &Operation) -> Kind {
    use GenericType::{Io, Setup, User};
    let row = operation.call;
    let shape = row.map_or(Shape::Single, |row| row.shape);
    let generic = row.map_or(GenericType::Setup, |row| row.generic);
    let is_end = shape.is_apart();
    let meets = matches!(shape, Shape::Barrier | Shape::PeBarrier | Shape::AllToAll)
        && operation.has(flags::COLLECTIVE)
        && !operation.has(flags::POSTS);
    let is_message = (operation.has(flags::SENDS) || operation.has(flags::RECEIVES))
        && !operation.has(flags::PEEKS)
        && !operation.has(flags::COLLECTIVE);
    let probes = operation.has(flags::PEEKS) && operation.look.is_none();
    let group = events.groups.get(operation.group as usize);
    Kind {
        is_message,
        blocks: is_message && !operation.has(flags::POSTS) || probes,
        probes,
        receives: is_message && operation.has(flags::RECEIVES),
        completes: generic == GenericType::Completion,
        members: match is_message {
            true => 2,
            false => group.map_or(1, |group| group.size),
        },
        site: (operation.signature.operation, operation.call_path),
        shape,
        communicates: !is_end && !matches!(generic, Io | Setup | User),
        is_of_all: meets && is_of_all(events, operation.group),
    }
}

/// Whether all ranks are members of a group.
fn is_of_all(events: &Events, group: u32) -> bool {
    if group == NONE {
        return false;
    }
    let group = &events.groups[group as usize];
    group.kind == GroupKind::Communicator && group.size == events.ranks()
}
