//! What a location says of itself while it is written.

use std::os::unix::fs::FileExt;

use super::read::{Bytes, Location, header_at, open_file};
use crate::OpenCall;
use crate::block::*;

impl Location {
    /// The call that is open now: the process may still write the file. `None` if it is in no call,
    /// or enters and leaves calls all the time.
    pub fn open_call_now(&self) -> Option<OpenCall> {
        self.first_block_now(OpenCall::read)?
    }

    /// The number of the user's wish that the location follows now, see [`Control`](crate::Control); 0:
    /// as it was started.
    pub fn steered_now(&self) -> u32 {
        self.first_block_now(OpenCall::steered).unwrap_or(0)
    }

    /// What the payload of the first block says now, if it is one of an open call.
    fn first_block_now<T>(&self, says: impl Fn(&[u8]) -> T) -> Option<T> {
        const BEGIN: usize = size_of::<FileHeader>() + BLOCK_HEADER;
        // The first block of the file, if it has one.
        const END: usize = BEGIN + OpenCall::PAYLOAD;
        let mut copy = [0; END];
        let first = match &self.bytes {
            Bytes::Owned(..) => {
                let (path, begin) = match &self.within {
                    Some((node, begin)) => (node, *begin),
                    None => (&self.path, 0),
                };
                let (file, _) = open_file(path).ok()?;
                file.read_exact_at(&mut copy, begin).ok()?;
                &copy[..]
            }
            mapped => mapped.get().get(..END)?,
        };
        let header = header_at(first, size_of::<FileHeader>())?;
        let is_one = header.magic == BLOCK_MAGIC && header.kind == BlockKind::OpenCall as u16;
        is_one.then(|| says(&first[BEGIN..]))
    }
}
