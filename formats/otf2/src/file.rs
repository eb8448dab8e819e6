//! Storage of a location's working copy: a file without a name.
//!
//! Nobody else can open it, and it disappears with the process, whatever its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use laggard_trace::Space;

/// First window, bytes: many threads make only a few calls.
const FIRST_WINDOW: usize = 16 << 10;
/// Largest window, bytes.
const LARGEST_WINDOW: usize = 1 << 20;

/// A file that is written window by window.
pub struct Unnamed {
    file: File,
    window: Vec<u64>,
    /// Size of the next window, bytes.
    size: usize,
    /// Number of bytes written to the file.
    written: u64,
    /// The error that kept it from growing.
    refused: Option<io::Error>,
}

impl Unnamed {
    /// Makes an empty file in the directory for temporary files (`TMPDIR`).
    pub fn new() -> io::Result<Unnamed> {
        Ok(Unnamed {
            file: tempfile::tempfile()?,
            window: Vec::new(),
            size: FIRST_WINDOW,
            written: 0,
            refused: None,
        })
    }

    /// The file, or the reason why it is incomplete.
    pub fn into_file(self) -> io::Result<File> {
        match self.refused {
            Some(error) => Err(error),
            None => Ok(self.file),
        }
    }

    fn write(&mut self, length: usize) -> io::Result<()> {
        let bytes = zerocopy::IntoBytes::as_bytes(self.window.as_slice());
        let result = self.file.write_all_at(&bytes[..length], self.written);
        if let Err(error) = &result {
            // The writer counts the losses; the reason is kept here.
            self.refused = Some(io::Error::new(error.kind(), error.to_string()));
        }
        self.written += length as u64;
        result
    }
}

impl Space for Unnamed {
    fn prepare(&mut self, _minimum: usize) -> io::Result<()> {
        // Memory is available; a full disk shows when the window is written.
        Ok(())
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        self.write(self.window.len() * 8)?;
        let size = minimum.max(self.size).next_multiple_of(4096);
        self.window.clear();
        self.window.resize(size / 8, 0);
        self.size = (self.size * 2).min(LARGEST_WINDOW);
        Ok((self.window.as_mut_ptr().cast(), size))
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.write((length.saturating_sub(self.written) as usize).min(self.window.len() * 8))
    }

    fn monotonic_ns(&self) -> u64 {
        // An archive has no clock but that of its events.
        0
    }
}
