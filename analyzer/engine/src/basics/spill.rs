//! Pieces of data that outgrow memory: in a file without a name, which disappears with the process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are kept in memory before they are written.
const KEPT: usize = 256 << 10;
/// A file gives room back in multiples of this: each time costs a system call.
const BLOCK: u64 = 256 << 10;

/// Room that all files take, and the most so far, bytes.
static ROOM: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

/// The most room that this process' files took at a time, bytes.
pub fn most_room() -> u64 {
    MOST.load(Ordering::Relaxed)
}

/// Where a piece is.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    at: u64,
    length: usize,
}

/// The pieces.
#[derive(Debug, Default)]
pub struct Spill {
    file: Option<File>,
    written: u64,
    /// What follows in the file.
    recent: Vec<u8>,
    /// By block: its bytes that nobody needs any more.
    free: Vec<u64>,
    /// Room of the file, bytes.
    room: u64,
    /// The first error. Later pieces are empty.
    pub error: Option<io::Error>,
}

impl Spill {
    /// Stores a piece.
    pub fn put(&mut self, bytes: &[u8]) -> Piece {
        if self.recent.len() + bytes.len() > KEPT
            && let Err(error) = self.write()
        {
            self.error.get_or_insert(error);
        }
        let at = self.written + self.recent.len() as u64;
        if self.error.is_some() {
            return Piece { at, length: 0 };
        }
        self.recent.extend_from_slice(bytes);
        let length = bytes.len();
        Piece { at, length }
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        file.write_all_at(&self.recent, self.written)?;
        let length = self.recent.len() as u64;
        self.written += length;
        self.room += length;
        let all = ROOM.fetch_add(length, Ordering::Relaxed) + length;
        MOST.fetch_max(all, Ordering::Relaxed);
        self.recent.clear();
        Ok(())
    }

    /// A piece's bytes, which are not needed again; none after an error.
    pub fn take(&mut self, piece: Piece) -> Vec<u8> {
        let bytes = self.get(piece);
        let (mut begin, end) = (piece.at, piece.at + piece.length as u64);
        while begin < end {
            let block = begin / BLOCK;
            let next = end.min((block + 1) * BLOCK);
            self.forget(block, next - begin);
            begin = next;
        }
        bytes
    }

    /// Some more bytes of a block are not needed. A file system that cannot give room back keeps it
    /// until the end.
    fn forget(&mut self, block: u64, bytes: u64) {
        let at = block as usize;
        if self.free.len() <= at {
            self.free.resize(at + 1, 0);
        }
        self.free[at] += bytes;
        let (first, until) = (block * BLOCK, (block + 1) * BLOCK);
        let is_free = self.free[at] == BLOCK && until <= self.written;
        let file = self.file.as_ref().filter(|_| is_free);
        if file.is_some_and(|file| punch(file, (first, until))) {
            self.room -= BLOCK;
            ROOM.fetch_sub(BLOCK, Ordering::Relaxed);
        }
    }

    /// A piece's bytes; none after an error.
    pub fn get(&mut self, piece: Piece) -> Vec<u8> {
        if let Some(at) = piece.at.checked_sub(self.written) {
            let recent = self.recent.get(at as usize..).unwrap_or_default();
            return recent.get(..piece.length).unwrap_or_default().to_vec();
        }
        let mut bytes = vec![0; piece.length];
        let read = match &self.file {
            Some(file) => file.read_exact_at(&mut bytes, piece.at),
            None => Ok(()),
        };
        if let Err(error) = read {
            self.error.get_or_insert(error);
            bytes.clear();
        }
        bytes
    }
}

/// Gives back the room of a part of a file. Returns whether the file system can.
fn punch(file: &File, (first, until): (u64, u64)) -> bool {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (begin, length) = (first as i64, (until - first) as i64);
    // SAFETY: the file is open, and nobody maps it.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, begin, length) == 0 }
}

impl Drop for Spill {
    fn drop(&mut self) {
        ROOM.fetch_sub(self.room, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_from_memory_and_from_the_file() {
        let mut spill = Spill::default();
        let piece = |n: usize| vec![n as u8; 1 << 15 | n];
        let put: Vec<_> = (0..20).map(|n| spill.put(&piece(n))).collect();
        assert!(spill.written > 0 && !spill.recent.is_empty());
        for (n, at) in put.into_iter().enumerate().rev() {
            assert!(spill.get(at) == piece(n), "{n}");
        }
        assert!(spill.error.is_none());
    }

    #[test]
    fn a_piece_that_is_taken_gives_its_room_back() {
        use std::os::unix::fs::MetadataExt;
        let piece = |n: usize| vec![n as u8; 1 << 15 | n];
        for backward in [false, true] {
            let mut spill = Spill::default();
            let mut put: Vec<_> = (0..80).map(|n| (n, spill.put(&piece(n)))).collect();
            if backward {
                put.reverse();
            }
            let blocks = |spill: &Spill| spill.file.as_ref().unwrap().metadata().unwrap().blocks();
            let (before, room) = (blocks(&spill), spill.room);
            for &(n, at) in &put[..60] {
                assert!(spill.take(at) == piece(n), "{n}");
            }
            let file = tempfile::tempfile().unwrap();
            file.set_len(2 * BLOCK).unwrap();
            if punch(&file, (0, BLOCK)) {
                assert!(blocks(&spill) * 10 < before * 7, "{before}");
                assert!(spill.room * 10 < room * 7, "{room}");
            }
            for &(n, at) in &put[60..] {
                assert!(spill.get(at) == piece(n), "{n}");
            }
        }
    }
}
