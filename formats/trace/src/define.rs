//! Definitions, to which records refer by id. Layouts as in `FORMAT.md`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Peer: any source.
pub const PEER_ANY: i32 = -1;
/// Peer: `MPI_PROC_NULL`.
pub const PEER_NONE: i32 = -2;
/// Peer: a process outside this run.
pub const PEER_FOREIGN: i32 = -3;
/// `MPI_MODE_NOPRECEDE` in the parameter of a fence.
pub const ASSERT_NO_PRECEDE: i64 = 2 << 32;
/// Root of an intercommunicator collective: `MPI_ROOT`.
pub const PEER_ROOT: i32 = -4;
/// Any tag.
pub const TAG_ANY: i32 = -1;
/// The id of `MPI_COMM_WORLD`.
pub const WORLD: u64 = 1;
/// Identity of the group of all PEs of OpenSHMEM.
pub const ALL_PES: u64 = 2;

/// Flags of a [`Signature`].
pub mod flags {
    /// Creates a request and takes the next post number.
    pub const POSTS: u16 = 1 << 0;
    /// Belongs to the call of the next record without this flag.
    pub const PART: u16 = 1 << 1;
    /// Posted with any source.
    pub const ANY_SOURCE: u16 = 1 << 2;
    /// Posted with any tag.
    pub const ANY_TAG: u16 = 1 << 3;
    /// `send` is a message to be matched.
    pub const SENDS: u16 = 1 << 4;
    /// `receive` is a message to be matched.
    pub const RECEIVES: u16 = 1 << 5;
    /// The message of `receive` stays in the queue.
    pub const PEEKS: u16 = 1 << 6;
    /// The call returned an error.
    pub const FAILED: u16 = 1 << 7;
    /// A Test, Iprobe or Improbe found nothing.
    pub const UNSUCCESSFUL: u16 = 1 << 8;
    /// Started from a persistent request.
    pub const PERSISTENT: u16 = 1 << 9;
    /// Counts as the next collective on `group`.
    pub const COLLECTIVE: u16 = 1 << 10;
    /// Made while recording was paused: kept for matching, left out of the profile.
    pub const PAUSED: u16 = 1 << 11;
    /// All requests that it completed are of file operations.
    pub const ON_FILES: u16 = 1 << 12;
    /// With [`PAUSED`]: in the profile all the same.
    pub const PROFILED: u16 = 1 << 13;
}

/// One half of a message, or a collective's root and volume.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Endpoint {
    /// World rank, or one of the `PEER_` constants.
    pub peer: i32,
    /// Message tag.
    pub tag: i32,
    /// Volume, bytes.
    pub bytes: u64,
}

/// The part of a call that repeats. 80 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Signature {
    /// Counts from 1 in each file.
    pub id: u32,
    /// Number of the call, see [`calls`](crate::calls).
    pub operation: u16,
    /// See [`flags`].
    pub flags: u16,
    /// Call path id.
    pub call_path: u32,
    /// Completion list id, 0 = none.
    pub completes: u32,
    /// Communicator, window or file of the call.
    pub group: u64,
    /// Message sent; in a collective, root and bytes sent.
    pub send: Endpoint,
    /// Message received; in a collective, bytes received.
    pub receive: Endpoint,
    /// Object that the call made or freed.
    pub object: u64,
    /// Meaning depends on the call.
    pub parameter: i64,
    /// Zero.
    pub reserved: u64,
}

const _: () = assert!(size_of::<Signature>() == 80);

impl Signature {
    /// Whether all bits of `flag` are set.
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag == flag
    }

    /// Whether its calls are in the profile.
    pub fn is_profiled(&self) -> bool {
        !self.has(flags::PART) && (!self.has(flags::PAUSED) || self.has(flags::PROFILED))
    }
}

/// One frame of a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// An address in a module: offset in the ELF file's address space, within the call
    /// instruction.
    Native {
        /// Module id.
        module: u32,
        /// ELF virtual address.
        offset: u64,
    },
    /// A line known to the recorder (an interpreter's frame).
    Source {
        /// String id.
        file: u32,
        /// String id.
        function: u32,
        /// Line, from 1.
        line: u32,
    },
}

/// Module number of a source frame.
const SOURCE_FRAME: u32 = u32::MAX;

/// One definition, as written and as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// Text.
    String {
        /// Id.
        id: u32,
        /// Bytes as the system gave them.
        bytes: Vec<u8>,
    },
    /// A loaded object of the program.
    Module {
        /// Id.
        id: u32,
        /// String id.
        path: u32,
        /// Address minus ELF address.
        bias: u64,
        /// First mapped address of its code.
        start: u64,
        /// End of its code.
        end: u64,
        /// GNU build id, may be empty.
        build_id: Vec<u8>,
    },
    /// Frames, innermost first.
    CallPath {
        /// Id.
        id: u32,
        /// Frames.
        frames: Vec<Frame>,
    },
    /// A communicator.
    Communicator(Communicator),
    /// A signature.
    Signature(Signature),
    /// Requests that a call completed.
    CompletionList {
        /// Id.
        id: u32,
        /// (delta, outcome).
        entries: Vec<(u32, u32)>,
    },
    /// A window or a file.
    GroupHandle {
        /// Identity, equal on all its ranks.
        id: u64,
        /// Communicator on which it was made.
        communicator: u64,
        /// 1 window, 2 file.
        kind: u32,
        /// String id, 0 = none.
        name: u32,
    },
    /// A rank's neighbours in a communicator with a topology.
    Neighbours(Neighbours),
    /// A rank's place in a communicator with a Cartesian topology.
    Grid(Grid),
    /// The other side of an epoch of general active target synchronisation.
    Peers {
        /// Id.
        id: u32,
        /// World ranks.
        ranks: Vec<u32>,
    },
    /// A region of the program.
    Region(Region),
    /// A property of the run: program, argument, host…
    Property {
        /// String id.
        key: u32,
        /// String id.
        value: u32,
    },
}

/// A communicator as one of its ranks knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Communicator {
    /// Identity, equal on all its ranks.
    pub id: u64,
    /// Parent communicator, 0 = none.
    pub parent: u64,
    /// 0 intracommunicator, 1 intercommunicator.
    pub kind: u32,
    /// Size of the (local) group.
    pub size: u32,
    /// This rank's number in the group.
    pub local_rank: u32,
    /// String id, 0 = none.
    pub name: u32,
    /// World ranks; only the file of local rank 0 has them, others are empty.
    pub members: Vec<u32>,
    /// World ranks of the remote group of an intercommunicator.
    pub remote_members: Vec<u32>,
}

/// A region of the program, named through `laggard.h` or an instrumented function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Counts from 1 in each file.
    pub id: u32,
    /// One of the `REGION_` kinds.
    pub kind: u32,
    /// String id; 0 for a function.
    pub name: u32,
    /// Call path id of its first begin. For a function: one frame, its entry.
    pub call_path: u32,
}

/// [`Region::kind`]: named by the program.
pub const REGION_NAMED: u32 = 1;
/// [`Region::kind`]: a function that the compiler instrumented.
pub const REGION_FUNCTION: u32 = 2;
/// [`Region::kind`]: from one phase marker to the next.
pub const REGION_PHASE: u32 = 3;

/// The sources of a rank in a communicator's neighbourhood collectives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Id of the communicator.
    pub communicator: u64,
    /// Ranks in the communicator. A rank may occur more than once, as may the own one.
    pub sources: Vec<u32>,
}

/// Where a rank is in a Cartesian communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Id of the communicator.
    pub communicator: u64,
    /// Its dimensions, in MPI's order.
    pub dimensions: Vec<Dimension>,
}

/// A dimension of a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// Processes along it.
    pub size: u32,
    /// Whether the first and the last one are neighbours.
    pub is_periodic: bool,
    /// The coordinate of this rank, below the size.
    pub coordinate: u32,
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

impl Definition {
    /// The last kind of this version. Readers skip later ones.
    pub const LAST_KIND: u16 = 13;

    /// Appends this definition's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind: u16 = match self {
            Definition::String { .. } => 1,
            Definition::Module { .. } => 2,
            Definition::CallPath { .. } => 3,
            Definition::Communicator(_) => 4,
            Definition::Signature(_) => 5,
            Definition::CompletionList { .. } => 6,
            Definition::GroupHandle { .. } => 7,
            Definition::Property { .. } => 8,
            Definition::Neighbours(_) => 9,
            Definition::Peers { .. } => 11,
            Definition::Region(_) => 12,
            Definition::Grid(_) => 13,
        };
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        let length_at = out.len();
        put_u32(out, 0);
        self.encode_body(out);
        let length = (out.len() - length_at - 4) as u32;
        out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
        out.resize(out.len().next_multiple_of(4), 0);
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Definition::String { id, bytes } => {
                put_u32(out, *id);
                out.extend_from_slice(bytes);
            }
            Definition::Module {
                id,
                path,
                bias,
                start,
                end,
                build_id,
            } => {
                put_u32(out, *id);
                put_u32(out, *path);
                put_u64(out, *bias);
                put_u64(out, *start);
                put_u64(out, *end);
                out.extend_from_slice(build_id);
            }
            Definition::CallPath { id, frames } => {
                put_u32(out, *id);
                put_u32(out, 0);
                for frame in frames {
                    let (module, line, offset) = match *frame {
                        Frame::Native { module, offset } => (module, 0, offset),
                        Frame::Source {
                            file,
                            function,
                            line,
                        } => (
                            SOURCE_FRAME,
                            line,
                            u64::from(file) | u64::from(function) << 32,
                        ),
                    };
                    put_u32(out, module);
                    put_u32(out, line);
                    put_u64(out, offset);
                }
            }
            Definition::Communicator(c) => {
                put_u64(out, c.id);
                put_u64(out, c.parent);
                let sizes = [c.members.len() as u32, c.remote_members.len() as u32];
                for value in [c.kind, c.size, c.local_rank, c.name].iter().chain(&sizes) {
                    put_u32(out, *value);
                }
                for rank in c.members.iter().chain(&c.remote_members) {
                    put_u32(out, *rank);
                }
            }
            Definition::Signature(signature) => out.extend_from_slice(signature.as_bytes()),
            Definition::CompletionList { id, entries } => {
                put_u32(out, *id);
                put_u32(out, 0);
                for (delta, outcome) in entries {
                    put_u32(out, *delta);
                    put_u32(out, *outcome);
                }
            }
            Definition::GroupHandle {
                id,
                communicator,
                kind,
                name,
            } => {
                put_u64(out, *id);
                put_u64(out, *communicator);
                put_u32(out, *kind);
                put_u32(out, *name);
            }
            Definition::Property { key, value } => {
                put_u32(out, *key);
                put_u32(out, *value);
            }
            Definition::Region(region) => {
                for value in [region.id, region.kind, region.name, region.call_path] {
                    put_u32(out, value);
                }
            }
            Definition::Neighbours(neighbours) => {
                put_u64(out, neighbours.communicator);
                for rank in &neighbours.sources {
                    put_u32(out, *rank);
                }
            }
            Definition::Grid(grid) => {
                put_u64(out, grid.communicator);
                for one in &grid.dimensions {
                    put_u32(out, one.size);
                    put_u32(out, one.is_periodic.into());
                    put_u32(out, one.coordinate);
                }
            }
            Definition::Peers { id, ranks } => {
                put_u32(out, *id);
                put_u32(out, 0);
                for rank in ranks {
                    put_u32(out, *rank);
                }
            }
        }
    }

    /// Decodes the definition at the start of `bytes`. Returns the definition and its size with
    /// padding. `None` if its kind is unknown or its body malformed; `Err` if the sizes do not
    /// fit into `bytes`.
    #[allow(clippy::result_unit_err)]
    pub fn decode(bytes: &[u8]) -> Result<(Option<Definition>, usize), ()> {
        let head = bytes.get(..8).ok_or(())?;
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let body = bytes
            .get(8..)
            .and_then(|rest| rest.get(..length))
            .ok_or(())?;
        let size = (8 + length).next_multiple_of(4);
        Ok((decode_body(kind, body), size))
    }
}

/// Takes numbers from the front of a definition's body.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    fn u32s(&mut self, count: u32) -> Option<Vec<u32>> {
        let size = (count as usize).checked_mul(4)?;
        let (head, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(
            head.chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        )
    }
}

fn decode_body(kind: u16, body: &[u8]) -> Option<Definition> {
    let mut fields = Fields(body);
    Some(match kind {
        1 => Definition::String {
            id: fields.u32()?,
            bytes: fields.0.to_vec(),
        },
        2 => Definition::Module {
            id: fields.u32()?,
            path: fields.u32()?,
            bias: fields.u64()?,
            start: fields.u64()?,
            end: fields.u64()?,
            build_id: fields.0.to_vec(),
        },
        3 => {
            let id = fields.u32()?;
            fields.u32()?;
            let mut frames = Vec::with_capacity(fields.0.len() / 16);
            while !fields.0.is_empty() {
                let (module, line, offset) = (fields.u32()?, fields.u32()?, fields.u64()?);
                frames.push(if module == SOURCE_FRAME {
                    Frame::Source {
                        file: offset as u32,
                        function: (offset >> 32) as u32,
                        line,
                    }
                } else {
                    Frame::Native { module, offset }
                });
            }
            Definition::CallPath { id, frames }
        }
        4 => {
            let (id, parent) = (fields.u64()?, fields.u64()?);
            let (kind, size, local_rank, name) =
                (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
            let (local, remote) = (fields.u32()?, fields.u32()?);
            Definition::Communicator(Communicator {
                id,
                parent,
                kind,
                size,
                local_rank,
                name,
                members: fields.u32s(local)?,
                remote_members: fields.u32s(remote)?,
            })
        }
        5 => Definition::Signature(Signature::read_from_bytes(body).ok()?),
        6 => {
            let id = fields.u32()?;
            fields.u32()?;
            let mut entries = Vec::with_capacity(fields.0.len() / 8);
            while !fields.0.is_empty() {
                entries.push((fields.u32()?, fields.u32()?));
            }
            Definition::CompletionList { id, entries }
        }
        7 => Definition::GroupHandle {
            id: fields.u64()?,
            communicator: fields.u64()?,
            kind: fields.u32()?,
            name: fields.u32()?,
        },
        8 => Definition::Property {
            key: fields.u32()?,
            value: fields.u32()?,
        },
        9 => {
            let communicator = fields.u64()?;
            let count = fields.0.len().div_ceil(4) as u32;
            Definition::Neighbours(Neighbours {
                communicator,
                sources: fields.u32s(count)?,
            })
        }
        11 => {
            let id = fields.u32()?;
            fields.u32()?;
            let count = fields.0.len().div_ceil(4) as u32;
            Definition::Peers {
                id,
                ranks: fields.u32s(count)?,
            }
        }
        12 => Definition::Region(Region {
            id: fields.u32()?,
            kind: fields.u32()?,
            name: fields.u32()?,
            call_path: fields.u32()?,
        }),
        13 => {
            let communicator = fields.u64()?;
            let mut dimensions = Vec::new();
            while !fields.0.is_empty() {
                let one = Dimension {
                    size: fields.u32()?,
                    is_periodic: fields.u32()? != 0,
                    coordinate: fields.u32()?,
                };
                if one.coordinate >= one.size {
                    return None;
                }
                dimensions.push(one);
            }
            Definition::Grid(Grid {
                communicator,
                dimensions,
            })
        }
        _ => return None,
    })
}
