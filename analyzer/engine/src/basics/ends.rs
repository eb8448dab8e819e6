//! Ends of messages, as ranks and agents exchange them.

/// No index.
pub const NONE: u32 = u32::MAX;

/// One end of a message: a send, or the posting of a receive.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Enter of the call, ns.
    pub time: i64,
    /// Number of the call in its location.
    pub event: u64,
    pub signature: u32,
    /// Position of its thread in the rank.
    pub thread: u32,
}
