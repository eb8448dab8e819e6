//! Pieces of data that outgrow memory: in a file without a name, which disappears with the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are kept in memory before they are written.
const KEPT: usize = 256 << 10;

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
        self.written += self.recent.len() as u64;
        self.recent.clear();
        Ok(())
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
}
