//! Events of an archive, in any order, become locations of a trace. Leaves out the library that
//! reads archives, which is not ours.

use std::path::Path;

use laggard_otf2::definitions::{
    Attribute, BYTE, Clock, Comm, Context, Definitions, Group, Location, PARADIGM_MPI,
    PARADIGM_OPENMP, Region, UNDEFINED, group_kind,
};
use laggard_otf2::events::{self, ANY, Any, Batch, Collective, Event, Message, OneSided};
use laggard_otf2::source::{Offsets, Progress, Source, Stream};
use laggard_otf2::{Error, Transcoder};
use laggard_trace::calls::CALLS;

use super::location::look_at;
use crate::records::{Record, records};

const MOST_LOCATIONS: usize = 8;
/// Events per batch.
const BATCH: usize = 16;
/// Records of this kind and above are definitions.
const DEFINITIONS: u8 = 0x80;

/// A made-up archive: typical definitions, changed and extended by some records, and events from
/// the others.
struct Memory {
    definitions: Definitions,
    events: Vec<(u8, u64, Event)>,
    offsets: Vec<(u8, (u64, i64))>,
}

/// Reads everything.
pub fn archive(bytes: &[u8]) {
    let memory = Memory::new(bytes);
    let count = memory.events.len();
    let Ok(transcoder) = Transcoder::new(memory) else {
        return;
    };
    let world = &transcoder.world;
    let memberships = world.memberships(0..world.ranks);
    for thread in world.threads.iter().take(MOST_LOCATIONS) {
        let read = transcoder.location(*thread, &memberships);
        let Some(mut read) = read.expect("a working copy") else {
            continue;
        };
        look_at(&read.location, read.location.size() as usize);
        // The output keeps the format's promises, and follows from the events.
        assert!(read.location.damage.is_empty());
        let ends = read.channels();
        let ends: u64 = ends.values().map(|(sent, received)| sent + received).sum();
        assert!(
            ends <= count as u64,
            "{ends} ends of messages, {count} events"
        );
        for chunk in &read.location.chunks {
            assert!(read.location.verify(chunk));
        }
        let _ = read.begins();
        read.begin_alone();
        let _ = read.forget(|channel| channel.3 % 2 == 0);
    }
}

/// A reference. The largest numbers are those without a meaning, or with a special one.
fn reference(number: u16) -> u32 {
    match number {
        0xff00.. => UNDEFINED - u32::from(u16::MAX - number),
        number => number.into(),
    }
}

impl Memory {
    fn new(bytes: &[u8]) -> Memory {
        let mut memory = Memory {
            definitions: usual(),
            events: Vec::new(),
            offsets: Vec::new(),
        };
        let mut time = [0u64; 256];
        for record in records(bytes) {
            if record.kind >= DEFINITIONS {
                memory.define(&record);
            } else {
                let time = &mut time[usize::from(record.at)];
                *time = time.saturating_add_signed(record.delta.into());
                memory.events.push((record.at, *time, event(&record)));
            }
        }
        memory
    }

    fn define(
        &mut self,
        &Record {
            kind,
            at,
            delta,
            x,
            y,
            z,
        }: &Record,
    ) {
        let known = &mut self.definitions;
        let (id, first, second) = (at.into(), reference(x), reference(y));
        match kind % 12 {
            0 => known.locations.push(Location {
                id: at.into(),
                name: first,
                kind: z as u8,
                events: z.into(),
                group: second,
            }),
            1 => known
                .locations
                .retain(|location| location.id != u64::from(at)),
            2 => {
                let members = z.to_le_bytes();
                let members = members[..usize::from(x) % 5].iter();
                let members = members.map(|member| u64::from(*member)).collect();
                let paradigm = if y == 0 { PARADIGM_MPI } else { y as u8 };
                let group = Group {
                    kind: delta as u8 % 8,
                    paradigm,
                    members,
                };
                known.groups.insert(id, vec![group]);
            }
            3 => {
                let other = (z % 2 != 0).then_some(z >> 1);
                let comm = Comm {
                    id,
                    name: delta as u16 as u32,
                    group: first,
                    other,
                    parent: second,
                };
                known
                    .comms
                    .insert(usize::from(at) % (known.comms.len() + 1), comm);
            }
            4 => drop(known.windows.insert(id, (first, second))),
            5 => drop(known.contexts.insert(
                id,
                Context {
                    region: first,
                    place: z,
                    parent: second,
                },
            )),
            6 => drop(known.places.insert(id, (first, z))),
            7 => {
                let mut new = region(first, second, z);
                if delta % 2 == 1 {
                    (new.role, new.paradigm) = (delta as u8 >> 1, PARADIGM_OPENMP);
                }
                known.regions.insert(id, new);
            }
            8 => drop(known.nodes.insert(id, (first, second, z))),
            9 => drop(known.processes.insert(id, (first, second))),
            10 => self.offsets.push((at, (z.into(), delta.into()))),
            _ => {
                known.clock = (at != 0).then_some(Clock {
                    resolution: u64::from(z) << (x % 32),
                    global_offset: u64::from(y) << (at % 48),
                    length: u64::from(z) * u64::from(x),
                    realtime_ns: u64::from(y),
                });
            }
        }
    }
}

fn region(name: u32, file: u32, line: u32) -> Region {
    Region {
        role: 1,
        paradigm: 2,
        name,
        canonical: name,
        file,
        line,
    }
}

/// Three ranks and a thread; texts and regions for all calls, and one more.
fn usual() -> Definitions {
    let mut all = Definitions::default();
    let names = CALLS.iter().map(|call| call.name);
    let texts = names.chain(["main", "MPI_COMM_WORLD", "node", ANY]);
    for (id, text) in (0..).zip(texts) {
        all.strings.insert(id, text.as_bytes().into());
        all.regions.insert(id, region(id, id, id));
    }
    // Constructs of OpenMP, by their roles.
    let next = all.regions.len() as u32;
    for (id, role) in (next..).zip([5, 6, 12, 13, 15, 16, 18, 19, 22]) {
        let (paradigm, shown) = (PARADIGM_OPENMP, region(0, 0, id % 2));
        let construct = Region {
            role,
            paradigm,
            ..shown
        };
        all.regions.insert(id, construct);
    }
    all.generators.insert(0, 1 << 20);
    let ranks = 0..3;
    for (id, group) in [(0, 0), (1, 1), (2, 2), (3, 1)] {
        all.locations.push(Location {
            id,
            name: 0,
            kind: 1,
            events: 9,
            group,
        });
    }
    let group = |kind, members: &[u64]| {
        vec![Group {
            kind,
            paradigm: PARADIGM_MPI,
            members: members.to_vec(),
        }]
    };
    let everybody: Vec<u64> = ranks.collect();
    all.groups
        .insert(0, group(group_kind::COMM_LOCATIONS, &everybody));
    all.groups
        .insert(1, group(group_kind::COMM_GROUP, &everybody));
    all.groups.insert(2, group(group_kind::COMM_SELF, &[]));
    all.groups.insert(3, group(group_kind::COMM_GROUP, &[2, 0]));
    all.groups.insert(4, group(group_kind::COMM_GROUP, &[1]));
    for (id, kind, members) in [
        (5, group_kind::COMM_LOCATIONS, vec![0, 1, 2, 3]),
        (6, group_kind::COMM_GROUP, vec![1, 3]),
    ] {
        let paradigm = PARADIGM_OPENMP;
        let team = Group {
            kind,
            paradigm,
            members,
        };
        all.groups.insert(id, vec![team]);
    }
    let comm = |id, group, other, parent| Comm {
        id,
        name: 0,
        group,
        other,
        parent,
    };
    all.comms = vec![
        comm(0, 1, None, UNDEFINED),
        comm(1, 2, None, UNDEFINED),
        comm(2, 3, None, 0),
        comm(3, 3, Some(4), 0),
        comm(4, 6, None, UNDEFINED),
    ];
    all.windows.extend([(0, (0, 0)), (1, (0, 2)), (2, (0, 1))]);
    let context = |region, parent| Context {
        region,
        place: 0,
        parent,
    };
    all.contexts
        .extend([(0, context(0, UNDEFINED)), (1, context(1, 0))]);
    all.attributes.insert(
        0,
        Attribute {
            name: 0,
            description: 0,
            kind: BYTE,
        },
    );
    all.clock = Some(Clock {
        resolution: 1_000_000_000,
        global_offset: 0,
        length: 1 << 30,
        realtime_ns: u64::MAX,
    });
    all
}

fn event(&Record { kind, x, y, z, .. }: &Record) -> Event {
    let (first, second) = (reference(x), reference(y));
    // Few numbers, so that requests match.
    let request = u64::from(z % 8);
    let (tag, bytes) = (z >> 3, u64::from(z) << 1);
    let message = Message {
        peer: first,
        comm: second,
        tag,
        bytes,
    };
    let collective = Collective {
        operation: z as u8,
        on: second,
        root: first,
        sent: bytes,
        received: z.into(),
    };
    let any = Any::of_byte(z as u8);
    match kind % 32 {
        0 | 1 => Event::Enter(first),
        2 | 3 => Event::Leave(first),
        4 => Event::EnterContext(first, z, Box::default()),
        5 => Event::LeaveContext(first),
        6 => Event::Send(message),
        7 => Event::Isend(message, request),
        8 => Event::IsendComplete(request),
        9 => Event::IrecvRequest(request, any),
        10 => Event::Receive(message, any),
        11 => Event::Ireceived(message, request),
        12 => Event::RequestTest(request),
        13 => Event::RequestCancelled(request),
        14 => Event::CollectiveBegin,
        15 => Event::CollectiveEnd(collective),
        16 => Event::CollectiveRequest(request),
        17 => Event::CollectiveComplete(collective, request),
        18 => Event::WindowCollectiveEnd(collective),
        19 => Event::WindowCreate(second),
        20 => Event::WindowDestroy(second),
        21 => Event::Window(second),
        22 => Event::OneSided(OneSided {
            window: second,
            target: first,
            written: bytes,
            read: 0,
            matching: request,
        }),
        23 => Event::OneSided(OneSided {
            window: second,
            target: first,
            written: 0,
            read: bytes,
            matching: request,
        }),
        24 => Event::Lock(second, first, z % 2 == 0),
        25 => Event::OnTarget(second, first),
        26 => Event::Measurement(z % 2 == 0),
        27 => Event::Program(first, vec![second; z as usize % 4].into()),
        28 => of_threads(z, (first, second)),
        29 => Event::WindowCollectiveBegin,
        30 => match z % 4 {
            0 => Event::Flush(second, first),
            1 => Event::TransferComplete(second, request),
            2 => Event::Lock(second, UNDEFINED, false),
            _ => Event::Nothing,
        },
        _ => {
            let operand = Some((tag as i32, bytes));
            let told = events::Told::of_memory(Some(z.into()), Some(bytes), operand);
            Event::EnterCall(
                first,
                Box::new(if z % 2 == 0 {
                    told
                } else {
                    events::Told::of_window(-1)
                }),
            )
        }
    }
}

/// An event of threads, of samples, or the end.
fn of_threads(z: u32, (first, second): (u32, u32)) -> Event {
    let task = events::Task {
        team: second,
        creator: first,
        generation: z >> 4 & 3,
    };
    match z % 12 {
        1 => Event::Fork(PARADIGM_OPENMP, first),
        2 => Event::Join(PARADIGM_OPENMP),
        3 => Event::TeamBegin(second),
        4 => Event::TeamEnd(second),
        5 => Event::Acquire(PARADIGM_OPENMP, first, second),
        6 => Event::Release((z >> 4) as u8 % 8, first, second),
        7 => Event::TaskSwitch(task),
        8 => Event::TaskComplete(task),
        9 => Event::ThreadWait(first, second.into()),
        10 => Event::ThreadEnd(first, second.into()),
        11 => Event::Sample(first, second),
        _ => Event::ProgramEnd,
    }
}

impl Source for Memory {
    fn path(&self) -> &Path {
        Path::new("fuzzed.otf2")
    }

    fn id(&self) -> u64 {
        7
    }

    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn location(&self, id: u64) -> Result<Box<dyn Stream + '_>, Error> {
        let own = self.events.iter().filter(|(at, ..)| u64::from(*at) == id);
        Ok(Box::new(Told {
            events: own.map(|(_, time, event)| (*time, event.clone())).collect(),
            batch: Batch::new(),
            progress: Progress {
                offsets: self.offsets(id),
                ..Progress::default()
            },
        }))
    }

    fn offsets(&self, id: u64) -> Option<Offsets> {
        let own = self.offsets.iter().filter(|(at, _)| u64::from(*at) == id);
        Some(own.map(|(_, offset)| *offset).collect())
    }

    fn strays(&self) -> &[u64] {
        &[]
    }
}

/// Events of a location, in batches.
struct Told {
    events: Batch,
    batch: Batch,
    progress: Progress,
}

impl Stream for Told {
    fn next(&mut self) -> &Batch {
        let rest = self.events.split_off(BATCH.min(self.events.len()));
        self.batch = std::mem::replace(&mut self.events, rest);
        &self.batch
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }
}
