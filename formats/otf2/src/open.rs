//! An open MPI call while its events are read, and its conversion to records.

use laggard_trace::calls::number;
use laggard_trace::calls::{GenericType, Shape, call};
use laggard_trace::{Counts, Endpoint, Signature, WORLD, flags};
use smallvec::SmallVec;

use crate::events::{OneSided, Told};
use crate::output::NOBODY;
use crate::pending::{Completed, Done};

/// One message, request, collective or transfer of a call.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Flags of the signature.
    pub flags: u16,
    /// Communicator or window.
    pub group: u64,
    /// As in a signature.
    pub send: Endpoint,
    /// As in a signature.
    pub receive: Endpoint,
    /// Object that the call made or freed.
    pub object: u64,
    /// See [`Signature::parameter`].
    pub parameter: i64,
    /// Request that it left behind.
    pub request: Option<u64>,
    /// Its completion will tell more.
    pub waits: bool,
}

impl Part {
    /// A part with only a group.
    pub fn on(group: u64) -> Part {
        Part {
            flags: 0,
            group,
            send: NOBODY,
            receive: NOBODY,
            object: 0,
            parameter: 0,
            request: None,
            waits: false,
        }
    }

    /// Merges another part, if both are single messages that fit into one signature.
    fn joins(&mut self, other: &Part) -> bool {
        let halves = flags::SENDS | flags::RECEIVES;
        let known = halves | flags::ANY_SOURCE | flags::ANY_TAG;
        let is_half = |part: &Part| part.request.is_none() && part.flags & !known == 0;
        let (own, added) = (self.flags & halves, other.flags & halves);
        let fits = is_half(self)
            && is_half(other)
            && self.group == other.group
            && own | added == halves
            && own & added == 0;
        if fits {
            match added {
                flags::SENDS => self.send = other.send,
                _ => self.receive = other.receive,
            }
            self.flags |= other.flags;
        }
        fits
    }
}

/// Stand-ins for calls, used by messages outside of any call.
pub mod instant {
    pub use laggard_trace::calls::number::{MPI_Irecv, MPI_Isend, MPI_Recv, MPI_Send, MPI_Wait};
}

/// A call that was entered and not left yet.
#[derive(Clone, Debug)]
pub struct Open {
    /// Number of the call.
    pub number: u16,
    /// Entry, ticks.
    pub enter: u64,
    /// Call path in the output.
    pub path: u32,
    /// Number of regions around it.
    pub depth: usize,
    /// Its messages, collectives and transfers.
    pub parts: SmallVec<[Part; 2]>,
    /// Requests that it completed.
    pub completes: SmallVec<[Completed; 2]>,
    /// It tested a request that was not complete.
    pub tested: bool,
    /// Data for which the archive has no records.
    pub told: Told,
    /// Computation before it, see [`Done`].
    pub computed: Vec<(u32, u64)>,
    /// What was counted before it, in all of that time.
    pub counted: Counts,
}

impl Open {
    /// A call that was just entered.
    pub fn new(number: u16, enter: u64, path: u32, depth: usize) -> Open {
        Open {
            number,
            enter,
            path,
            depth,
            parts: SmallVec::new(),
            completes: SmallVec::new(),
            tested: false,
            told: Told::default(),
            computed: Vec::new(),
            counted: Counts::default(),
        }
    }

    /// Dependencies between its ranks.
    pub fn shape(&self) -> Shape {
        call(self.number).map_or(Shape::Single, |call| call.shape)
    }

    /// Whether it begins an epoch for a group of processes.
    pub fn begins_epoch(&self) -> bool {
        [number::MPI_Win_post, number::MPI_Win_start].contains(&self.number)
    }

    /// Whether it reads from its target, rather than writes.
    pub fn is_get(&self, transfer: &OneSided) -> bool {
        let generic = call(self.number).map(|call| call.generic);
        generic == Some(GenericType::OneSidedGet)
            || generic == Some(GenericType::OneSidedAtomic) && transfer.written == 0
    }

    /// Whether its purpose is to complete requests.
    fn completes_requests(&self) -> bool {
        call(self.number).is_some_and(|c| c.generic == GenericType::Completion)
    }

    /// Adds the call's attributes to a part.
    fn add_told(&self, row: &mut Part) {
        match self.told.parameter() {
            Some(1) if self.completes_requests() => row.flags |= flags::ON_FILES,
            Some(parameter) => row.parameter = parameter,
            None => {}
        }
        let waits = call(self.number).is_some_and(|c| c.generic == GenericType::WaitOnValue);
        match self.told.operand() {
            Some((tag, bytes)) if waits => (row.receive.tag, row.receive.bytes) = (tag, bytes),
            Some((tag, _)) => row.send.tag = tag,
            None => {}
        }
    }

    /// Whether it leaves a request that completes with its transfer.
    pub fn posts_transfer(&self) -> bool {
        use number::{MPI_Raccumulate, MPI_Rget, MPI_Rget_accumulate, MPI_Rput};
        [MPI_Rput, MPI_Rget, MPI_Raccumulate, MPI_Rget_accumulate].contains(&self.number)
    }

    /// Whether it is a probe without a known result.
    pub fn is_probe(&self) -> bool {
        let probes = [number::MPI_Probe, number::MPI_Iprobe, number::MPI_Improbe];
        probes.contains(&self.number) && self.parts.is_empty() && self.completes.is_empty()
    }

    /// Whether it is a collective without any data.
    pub fn lacks_group(&self) -> bool {
        let silent = self.shape() == Shape::Single || self.shape().is_apart();
        // A PE that gets no symmetric memory synchronises with none.
        let name = laggard_trace::calls::name(self.number);
        let takes_memory = self.shape() == Shape::PeBarrier
            && ["alloc", "align"].iter().any(|word| name.contains(word));
        !silent
            && !takes_memory
            && self
                .parts
                .iter()
                .all(|part| part.flags & flags::COLLECTIVE == 0)
    }

    /// Whether it may have sent, or received, a message that the archive lacks. A call with
    /// `MPI_PROC_NULL` looks the same.
    pub fn lacks_message(&self) -> (bool, bool) {
        let has = |flag: u16| self.parts.iter().any(|part| part.flags & flag != 0);
        let posts = has(flags::POSTS);
        let (sends, receives) = match self.number {
            number::MPI_Send
            | number::MPI_Bsend
            | number::MPI_Ssend
            | number::MPI_Rsend
            | number::MPI_Isend
            | number::MPI_Ibsend
            | number::MPI_Issend
            | number::MPI_Irsend => (true, false),
            number::MPI_Recv | number::MPI_Irecv | number::MPI_Mrecv | number::MPI_Imrecv => {
                (false, true)
            }
            number::MPI_Sendrecv | number::MPI_Sendrecv_replace => (true, true),
            number::MPI_Start | number::MPI_Startall => (!posts, !posts),
            _ => (false, false),
        };
        (
            sends && !has(flags::SENDS),
            receives && !has(flags::RECEIVES),
        )
    }

    /// The records of the call, which ended at `leave`. Each comes with the request that it
    /// posted, and whether more will be known of it.
    pub fn close(mut self, leave: u64) -> SmallVec<[(Done, Option<u64>, bool); 2]> {
        if self.shape().is_apart() && self.parts.is_empty() {
            // All processes of the job take part, even if the archive does not say so.
            let root = Endpoint {
                peer: laggard_trace::PEER_ANY,
                ..NOBODY
            };
            self.parts.push(Part {
                flags: flags::COLLECTIVE,
                send: root,
                ..Part::on(WORLD)
            });
        }
        let mut rows: SmallVec<[Part; 2]> = SmallVec::new();
        for part in &self.parts {
            if !rows.last_mut().is_some_and(|last| last.joins(part)) {
                rows.push(*part);
            }
        }
        let posts = rows.iter().any(|row| row.request.is_some());
        // A record completes only requests posted before it.
        if rows.is_empty() || posts && !self.completes.is_empty() {
            rows.push(Part::on(0));
        }
        let last = rows.len() - 1;
        self.add_told(&mut rows[last]);
        let persistent = match self.number {
            number::MPI_Start | number::MPI_Startall => flags::PERSISTENT,
            _ => 0,
        };
        // Nothing is counted off the processor, and in the kernel.
        let before = self.told.before();
        let off = before.blocked + before.preempted + before.kernel;
        let all = self.counted.time;
        self.counted.time = self.told.counted().unwrap_or(all.saturating_sub(off));
        let mut records = SmallVec::new();
        for (at, row) in rows.into_iter().enumerate() {
            let mut own = row.flags;
            if row.request.is_some() {
                own |= flags::POSTS | persistent;
            }
            let is_last = at == last;
            if !is_last {
                own |= flags::PART;
            } else if own & flags::ON_FILES == 0
                && (self.tested && self.completes.is_empty() || self.told.off().is_some())
            {
                own |= flags::UNSUCCESSFUL;
            }
            let signature = Signature {
                operation: self.number,
                flags: own,
                call_path: self.path,
                group: row.group,
                send: row.send,
                receive: row.receive,
                object: row.object,
                parameter: row.parameter,
                ..Signature::default()
            };
            let done = Done {
                enter: self.enter,
                leave: if is_last { leave } else { self.enter },
                signature,
                completes: match is_last {
                    true => std::mem::take(&mut self.completes),
                    false => SmallVec::new(),
                },
                told: match at {
                    _ if is_last => self.told,
                    0 => Told::default().beside(&self.told.before()),
                    _ => Told::default(),
                },
                computed: std::mem::take(&mut self.computed),
                counted: std::mem::take(&mut self.counted),
                sampled: Vec::new(),
            };
            records.push((done, row.request, row.waits));
        }
        records
    }
}
