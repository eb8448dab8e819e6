//! What locations moved, and in which role.

use serde::{Deserialize, Serialize};

/// What a location moved, or all of them. Bytes are as the calls asked for: a receive has those of
/// its buffer, unless the call itself knew the message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Messages.
    pub two_sided: Messages,
    /// Collectives.
    pub collective: Collectives,
    /// Windows and symmetric memory.
    pub one_sided: OneSided,
    /// Files.
    pub file: FileAccess,
}

/// Who sends whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePairs {
    /// Pairs of a sending and a receiving rank.
    pub pairs: u64,
    /// Messages of all pairs.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The pairs with most bytes, at most 1024.
    pub largest: Vec<MessagePair>,
}

/// What one rank sent to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePair {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Who sends whom, and who waits for whom. All cells together are all messages, and all waiting
/// for ranks that are known by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankMatrix {
    /// Successive ranks that share a row and a column: a power of two, 1 as long as not more than
    /// 4096 cells have something.
    pub ranks_per_cell: u32,
    /// Cells that are not empty, by row, then by column.
    pub cells: Vec<MatrixCell>,
}

/// What some ranks did to others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// The ranks that send and wait: the first of them.
    pub from: u32,
    /// The ranks that are sent to and waited for: the first of them.
    pub to: u32,
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time waited, all patterns.
    pub waiting_s: f64,
}

/// Messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Messages sent.
    pub sends: u64,
    /// Of these, those without data.
    pub empty_sends: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Receives.
    pub receives: u64,
    /// Bytes received. If the location received all that was sent to its rank, these are as the
    /// senders say; else a receive that was posted before has the bytes of its buffer.
    pub received_bytes: u64,
}

/// Collectives by the role of the location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collectives {
    /// It gave data and got some.
    pub exchanges: u64,
    /// It only gave data.
    pub sources: u64,
    /// It only got data.
    pub destinations: u64,
    /// It did neither.
    pub synchronizations: u64,
    /// Bytes given.
    pub sent_bytes: u64,
    /// Bytes got.
    pub received_bytes: u64,
}

/// Windows and symmetric memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneSided {
    /// Transfers that it made.
    pub transfers: u64,
    /// Bytes written into other ranks' memory.
    pub sent_bytes: u64,
    /// Bytes read from it.
    pub received_bytes: u64,
    /// Access epochs (one for each target) and locks on windows, at their origins.
    pub pair_synchronizations: u64,
    /// Of these, those without a transfer.
    pub unneeded_pair_synchronizations: u64,
}

/// Files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAccess {
    /// Calls that read or wrote.
    pub calls: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
}
