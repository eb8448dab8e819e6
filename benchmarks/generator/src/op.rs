//! What a rank does next.

use laggard_trace::{PEER_ANY, PEER_NONE, TAG_ANY};

use super::site::SiteId;

/// The other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A rank of the world.
    Rank(u32),
    /// Any source: `MPI_ANY_SOURCE`.
    Any,
    /// No process, beyond a border: `MPI_PROC_NULL`.
    Nobody,
    /// The source of the message that was received last.
    Last,
}

impl From<Option<u32>> for Peer {
    fn from(rank: Option<u32>) -> Peer {
        rank.map_or(Peer::Nobody, Peer::Rank)
    }
}

impl Peer {
    /// The number in a trace.
    pub fn number(self) -> i32 {
        match self {
            Peer::Rank(rank) => rank as i32,
            Peer::Any => PEER_ANY,
            Peer::Nobody | Peer::Last => PEER_NONE,
        }
    }
}

/// One half of a message on the world.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// The other end.
    pub peer: Peer,
    /// Tag; [`TAG_ANY`] fits any.
    pub tag: i32,
    /// Bytes sent, or room for them.
    pub bytes: u64,
}

impl Half {
    /// A half.
    pub fn new(peer: impl Into<Peer>, tag: i32, bytes: u64) -> Half {
        let peer = peer.into();
        Half { peer, tag, bytes }
    }

    /// Whether a message from `source` with `tag` matches this receive.
    pub fn fits(&self, source: u32, tag: i32) -> bool {
        let peer = self.peer == Peer::Any || self.peer == Peer::Rank(source);
        peer && (self.tag == TAG_ANY || self.tag == tag)
    }
}

impl From<u32> for Peer {
    fn from(rank: u32) -> Peer {
        Peer::Rank(rank)
    }
}

/// A communicator, as seen from a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// All ranks.
    World,
    /// The ranks in its row of the grid.
    Row,
    /// Those in its column.
    Column,
}

/// One thing that a rank does.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Computes for this long, ns, longer with faults.
    Compute(u64),
    /// Computes for exactly this long, ns.
    Pause(u64),
    /// Sends and waits until the buffer can be used again.
    Send(SiteId, Half),
    /// Sends a message that nobody will receive.
    SendLost(SiteId, Half),
    /// Receives and waits.
    Recv(SiteId, Half),
    /// Sends the first half, receives the second, and waits for both.
    Sendrecv(SiteId, Half, Half),
    /// Begins to send.
    Isend(SiteId, Half),
    /// Posts a receive.
    Irecv(SiteId, Half),
    /// Posts a receive that will not be completed.
    IrecvLost(SiteId, Half),
    /// Waits for the oldest request.
    Wait(SiteId),
    /// Waits for all requests.
    Waitall(SiteId),
    /// A collective operation with bytes per member.
    Collective {
        /// The place.
        site: SiteId,
        /// The members.
        among: Among,
        /// Root, world rank; without meaning for operations that have none.
        root: u32,
        /// Bytes to or from each member.
        bytes: u64,
    },
    /// Makes the communicator of rows or columns.
    Split(SiteId, Among),
}

impl Op {
    /// Whether it is an MPI call.
    pub fn is_call(&self) -> bool {
        !matches!(self, Op::Compute(_) | Op::Pause(_))
    }
}
