//! The global definitions of an archive.

use std::ffi::{CStr, c_char};

use rustc_hash::FxHashMap;

use crate::library::{Callback, Code, Handle, Otf2, SUCCESS, Table};
use crate::metrics::{Member, Metrics};

/// An undefined 32-bit reference.
pub const UNDEFINED: u32 = u32::MAX;

/// Kinds of groups of communicators.
pub mod group_kind {
    /// Members are locations.
    pub const LOCATIONS: u8 = 1;
    /// Members are the locations that communicate, in the order of their ranks.
    pub const COMM_LOCATIONS: u8 = 4;
    /// Members are ranks.
    pub const COMM_GROUP: u8 = 5;
    /// Each process alone.
    pub const COMM_SELF: u8 = 6;
}

/// `OTF2_INTERRUPT_GENERATOR_MODE_TIME`, `OTF2_BASE_BINARY`, `OTF2_BASE_DECIMAL`.
pub const GENERATOR_TIME: u8 = 0;
/// See [`GENERATOR_TIME`].
pub const BASE_BINARY: u8 = 0;
/// See [`GENERATOR_TIME`].
pub const BASE_DECIMAL: u8 = 1;

/// `OTF2_PARADIGM_UNKNOWN`.
pub const PARADIGM_UNKNOWN: u8 = 0;
/// `OTF2_REGION_ROLE_FILE_IO`.
pub const ROLE_FILE_IO: u8 = 27;
/// `OTF2_REGION_ROLE_FILE_IO_METADATA`: files opened and closed.
pub const ROLE_FILE_IO_METADATA: u8 = 38;
/// `OTF2_PARADIGM_OPENMP`.
pub const PARADIGM_OPENMP: u8 = 3;
/// `OTF2_PARADIGM_MPI`.
pub const PARADIGM_MPI: u8 = 4;
/// `OTF2_PARADIGM_MEASUREMENT_SYSTEM`.
pub const PARADIGM_MEASUREMENT_SYSTEM: u8 = 6;
/// `OTF2_PARADIGM_PTHREAD`.
pub const PARADIGM_PTHREAD: u8 = 7;
/// `OTF2_LOCATION_TYPE_UNKNOWN` and `OTF2_LOCATION_TYPE_CPU_THREAD`: locations that make calls.
pub const THREAD_TYPES: [u8; 2] = [0, 1];

/// The clock of all times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Ticks per second.
    pub resolution: u64,
    /// Time of the first event of all, ticks.
    pub global_offset: u64,
    /// Time from the first to the last event, ticks.
    pub length: u64,
    /// `CLOCK_REALTIME` at `global_offset`, ns; `u64::MAX` = unknown.
    pub realtime_ns: u64,
}

/// A stream of events.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// Its number.
    pub id: u64,
    /// Name.
    pub name: u32,
    /// Type: thread of a processor, or another.
    pub kind: u8,
    /// Number of events; may be wrong.
    pub events: u64,
    /// Process.
    pub group: u32,
}

/// A function, or part of one.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// `OTF2_RegionRole`.
    pub role: u8,
    /// `OTF2_Paradigm`.
    pub paradigm: u8,
    /// Name for users.
    pub name: u32,
    /// Name in the compiler or library.
    pub canonical: u32,
    /// Source file.
    pub file: u32,
    /// First line; 0 = unknown.
    pub line: u32,
}

/// A group of processes, threads or other things.
#[derive(Clone, Debug)]
pub struct Group {
    /// See [`group_kind`].
    pub kind: u8,
    /// Paradigm, such as MPI.
    pub paradigm: u8,
    /// Members, in order.
    pub members: Vec<u64>,
}

/// A communicator.
#[derive(Clone, Copy, Debug)]
pub struct Comm {
    /// Its number.
    pub id: u32,
    /// Name.
    pub name: u32,
    /// Group.
    pub group: u32,
    /// The other group of an intercommunicator.
    pub other: Option<u32>,
    /// Parent communicator.
    pub parent: u32,
}

/// A calling context: a region and the place in it that leads on.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Region.
    pub region: u32,
    /// Place in the source, see [`Definitions::places`].
    pub place: u32,
    /// The context from which it was entered.
    pub parent: u32,
}

/// A kind of additional number that events may carry.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Name.
    pub name: u32,
    /// Description.
    pub description: u32,
    /// `OTF2_Type`.
    pub kind: u8,
}

/// `OTF2_TYPE_UINT8`.
pub const BYTE: u8 = 1;
/// `OTF2_TYPE_UINT64`.
pub const LONG: u8 = 4;
/// `OTF2_TYPE_STRING`.
pub const TEXT: u8 = 11;

/// All global definitions that are used.
///
/// Of repeated definitions the first one counts, except for groups: one known recorder uses the
/// same number for a group of locations and for a group of ranks.
#[derive(Debug, Default)]
pub struct Definitions {
    /// Clock; `None` if it is undefined.
    pub clock: Option<Clock>,
    /// Texts.
    pub strings: FxHashMap<u32, Box<[u8]>>,
    /// Nodes of the machine: name, class, parent node.
    pub nodes: FxHashMap<u32, (u32, u32, u32)>,
    /// Processes: name, node.
    pub processes: FxHashMap<u32, (u32, u32)>,
    /// Locations, in order of definition.
    pub locations: Vec<Location>,
    /// Regions.
    pub regions: FxHashMap<u32, Region>,
    /// Groups; a number may have one of each kind.
    pub groups: FxHashMap<u32, Vec<Group>>,
    /// Communicators, in order of definition.
    pub comms: Vec<Comm>,
    /// Cartesian topologies: communicator, numbers of the dimensions.
    pub grids: FxHashMap<u32, (u32, Vec<u32>)>,
    /// Dimensions of topologies: places along it, and whether the first and the last one are neighbours.
    pub dimensions: FxHashMap<u32, (u32, bool)>,
    /// Places in topologies: topology, rank in its communicator, coordinates.
    pub coordinates: Vec<(u32, u32, Vec<u32>)>,
    /// Windows: name, communicator.
    pub windows: FxHashMap<u32, (u32, u32)>,
    /// Places in the source: file, line.
    pub places: FxHashMap<u32, (u32, u32)>,
    /// Calling contexts.
    pub contexts: FxHashMap<u32, Context>,
    /// How often samples are taken: the time of the processor between two, ns, by number; from a microsecond to
    /// a minute.
    pub generators: FxHashMap<u32, u64>,
    /// Text properties of locations: location, name, text.
    pub properties: Vec<(u64, u32, u32)>,
    /// Attributes.
    pub attributes: FxHashMap<u32, Attribute>,
    /// Metrics: names of counters that grow, in order of their numbers.
    pub metrics: Vec<u32>,
    /// All metrics of an archive that is read.
    pub counting: Metrics,
    /// Number of definitions whose number was already defined.
    pub repeated: u64,
}

impl Definitions {
    /// A text; "" if it is undefined.
    pub fn string(&self, id: u32) -> &[u8] {
        self.strings.get(&id).map_or(&[], |text| text)
    }

    /// The number of the attribute with this name and kind.
    pub fn attribute(&self, name: &str, kind: u8) -> Option<u32> {
        let is_it = |attribute: &Attribute| {
            attribute.kind == kind && self.string(attribute.name) == name.as_bytes()
        };
        let found = self.attributes.iter().filter(|(_, found)| is_it(found));
        found.map(|(id, _)| *id).min()
    }

    /// The group with this number and one of these kinds.
    pub fn group(&self, id: u32, kinds: &[u8]) -> Option<&Group> {
        let groups = self.groups.get(&id)?;
        let mut of_kinds = kinds.iter().filter_map(|kind| {
            let mut groups = groups.iter();
            groups.find(|group| group.kind == *kind)
        });
        of_kinds.next()
    }

    /// Registers callbacks that fill this, for every record of interest.
    pub fn register(otf2: &Otf2, callbacks: Handle) {
        let all: [(&str, Callback); 21] = [
            ("ClockProperties", clock_properties as Callback),
            ("String", string as Callback),
            ("SystemTreeNode", node as Callback),
            ("LocationGroup", process as Callback),
            ("Location", location as Callback),
            ("LocationProperty", property as Callback),
            ("Region", region as Callback),
            ("Group", group as Callback),
            ("Comm", comm as Callback),
            ("InterComm", inter_comm as Callback),
            ("CartDimension", dimension as Callback),
            ("CartTopology", grid as Callback),
            ("CartCoordinate", coordinate as Callback),
            ("RmaWin", window as Callback),
            ("SourceCodeLocation", place as Callback),
            ("CallingContext", context as Callback),
            ("Attribute", attribute as Callback),
            ("InterruptGenerator", generator as Callback),
            ("MetricMember", metric_member as Callback),
            ("MetricClass", metric_class as Callback),
            ("MetricInstance", metric_instance as Callback),
        ];
        for (record, callback) in all {
            otf2.set(Table::Global, callbacks, record, callback);
        }
    }

    /// Keeps the first definition of a number.
    fn first<V>(table: &mut FxHashMap<u32, V>, id: u32, value: V, repeated: &mut u64) {
        use std::collections::hash_map::Entry;
        match table.entry(id) {
            Entry::Vacant(free) => drop(free.insert(value)),
            Entry::Occupied(_) => *repeated += 1,
        }
    }
}

/// Callbacks of the library; each fills the [`Definitions`] at `data`. Parameters that newer
/// versions appended are not declared.
macro_rules! callbacks {
    ($($name:ident($into:ident, $($argument:ident: $kind:ty),*) $body:block)*) => {
        $(unsafe extern "C" fn $name(data: Handle, $($argument: $kind),*) -> Code {
            // SAFETY: `read` in `archive.rs` passes the library a pointer to this, and nothing
            // else uses it until all is read.
            let $into = unsafe { &mut *data.cast::<Definitions>() };
            $body
            SUCCESS
        })*
    };
}

/// An array of the library, which may be nowhere if it is empty.
///
/// # Safety
/// Else it has `count` elements.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: as the caller says.
        _ => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

callbacks! {
    clock_properties(into, resolution: u64, global_offset: u64, length: u64, realtime_ns: u64) {
        into.clock.get_or_insert(Clock { resolution, global_offset, length, realtime_ns });
    }
    string(into, id: u32, text: *const c_char) {
        if !text.is_null() {
            // SAFETY: the library passes a text that ends with a zero.
            let text = unsafe { CStr::from_ptr(text) }.to_bytes();
            Definitions::first(&mut into.strings, id, text.into(), &mut into.repeated);
        }
    }
    node(into, id: u32, name: u32, class: u32, parent: u32) {
        Definitions::first(&mut into.nodes, id, (name, class, parent), &mut into.repeated);
    }
    process(into, id: u32, name: u32, _kind: u8, node: u32) {
        Definitions::first(&mut into.processes, id, (name, node), &mut into.repeated);
    }
    location(into, id: u64, name: u32, kind: u8, events: u64, group: u32) {
        into.locations.push(Location { id, name, kind, events, group });
    }
    property(into, location: u64, name: u32, kind: u8, value: u64) {
        if kind == TEXT {
            // The number of a text is in the first half of the union.
            into.properties.push((location, name, value as u32));
        }
    }
    region(into, id: u32, name: u32, canonical: u32, _about: u32, role: u8, paradigm: u8,
        _flags: u32, file: u32, line: u32, _end: u32) {
        let region = Region { role, paradigm, name, canonical, file, line };
        Definitions::first(&mut into.regions, id, region, &mut into.repeated);
    }
    group(into, id: u32, _name: u32, kind: u8, paradigm: u8, _flags: u32, count: u32,
        members: *const u64) {
        // SAFETY: the library passes an array of `count` members.
        let members = unsafe { array(members, count as usize) }.to_vec();
        let known = into.groups.entry(id).or_default();
        match known.iter().any(|known| known.kind == kind) {
            true => into.repeated += 1,
            false => known.push(Group { kind, paradigm, members }),
        }
    }
    comm(into, id: u32, name: u32, group: u32, parent: u32) {
        into.comms.push(Comm { id, name, group, other: None, parent });
    }
    inter_comm(into, id: u32, name: u32, group: u32, other: u32, parent: u32) {
        into.comms.push(Comm { id, name, group, other: Some(other), parent });
    }
    dimension(into, id: u32, _name: u32, size: u32, periodicity: u8) {
        Definitions::first(&mut into.dimensions, id, (size, periodicity != 0), &mut into.repeated);
    }
    grid(into, id: u32, _name: u32, comm: u32, count: u8, dimensions: *const u32) {
        // SAFETY: the library passes an array of `count` numbers.
        let dimensions = unsafe { array(dimensions, count.into()) };
        Definitions::first(&mut into.grids, id, (comm, dimensions.to_vec()), &mut into.repeated);
    }
    coordinate(into, grid: u32, rank: u32, count: u8, coordinates: *const u32) {
        // SAFETY: as above.
        let coordinates = unsafe { array(coordinates, count.into()) };
        into.coordinates.push((grid, rank, coordinates.to_vec()));
    }
    window(into, id: u32, name: u32, comm: u32) {
        Definitions::first(&mut into.windows, id, (name, comm), &mut into.repeated);
    }
    place(into, id: u32, file: u32, line: u32) {
        Definitions::first(&mut into.places, id, (file, line), &mut into.repeated);
    }
    attribute(into, id: u32, name: u32, description: u32, kind: u8) {
        let attribute = Attribute { name, description, kind };
        Definitions::first(&mut into.attributes, id, attribute, &mut into.repeated);
    }
    generator(into, id: u32, _name: u32, mode: u8, base: u8, exponent: i64, period: u64) {
        // In units of a power of seconds, unless it counts something else.
        let base = if base == BASE_BINARY { 2.0_f64 } else { 10.0 };
        let seconds = period as f64 * base.powi(exponent.clamp(-99, 99) as i32);
        if mode == GENERATOR_TIME && (1e-6..=60.0).contains(&seconds) {
            let ns = (seconds * 1e9).round() as u64;
            Definitions::first(&mut into.generators, id, ns, &mut into.repeated);
        }
    }
    metric_member(into, id: u32, name: u32, _about: u32, _kind: u8, mode: u8, _value: u8, base: u8,
        exponent: i64, unit: u32) {
        let base = if base == BASE_BINARY { 2 } else { 10 };
        let member = Member { name, mode, scale: (base, exponent), unit };
        Definitions::first(&mut into.counting.members, id, member, &mut into.repeated);
    }
    metric_class(into, id: u32, count: u8, members: *const u32, occurrence: u8) {
        // SAFETY: the library passes an array of `count` numbers.
        let members = unsafe { array(members, count.into()) }.to_vec();
        Definitions::first(&mut into.counting.classes, id, (members, occurrence), &mut into.repeated);
    }
    metric_instance(into, _id: u32) {
        into.counting.instances += 1;
    }
    context(into, id: u32, region: u32, place: u32, parent: u32) {
        let context = Context { region, place, parent };
        Definitions::first(&mut into.contexts, id, context, &mut into.repeated);
    }
}
