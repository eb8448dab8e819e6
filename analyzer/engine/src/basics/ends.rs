//! Ends of messages, by which ranks and agents speak of calls.

/// No index.
pub const NONE: u32 = u32::MAX;

/// One message's end: a send, or the posting of a receive.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Enter of the call, ns.
    pub time: i64,
    /// Number of the call in its location.
    pub event: u64,
    /// Its signature.
    pub signature: u32,
    /// Its thread, position in the rank.
    pub thread: u32,
}
