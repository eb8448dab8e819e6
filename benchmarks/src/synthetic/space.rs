//! Where a file's bytes go until there are enough of them to write.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use laggard_trace::Space;

/// Bytes of the first window: enough for a location that makes few calls.
const FIRST_WINDOW: usize = 8 << 10;

/// A file that is appended to, window by window, and open only meanwhile.
///
/// The collector maps its one file; a process that writes the files of 65,536 ranks at
/// once has neither as many mappings nor as many descriptors.
pub struct Buffered {
    path: PathBuf,
    window: Vec<u64>,
    /// Bytes of the next window.
    size: usize,
    /// Bytes of a window at most.
    largest: usize,
    /// Bytes of the windows that are in the file.
    written: u64,
    /// `CLOCK_MONOTONIC` of the host now, ns.
    now: Rc<Cell<u64>>,
}

impl Buffered {
    /// A file that is not there yet, of windows of up to `largest` bytes.
    pub fn new(path: PathBuf, largest: usize, now: Rc<Cell<u64>>) -> Buffered {
        Buffered {
            path,
            window: Vec::new(),
            size: FIRST_WINDOW,
            largest: largest.max(FIRST_WINDOW),
            written: 0,
            now,
        }
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(self.written == 0);
        options.open(&self.path)
    }

    /// Appends the first `length` bytes of the window.
    fn write(&mut self, length: usize) -> io::Result<()> {
        if length > 0 {
            let words = &self.window[..length.div_ceil(8)];
            // SAFETY: all bytes of the words are initialised, and any value will do.
            let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), length) };
            self.open()?.write_all(bytes)?;
            self.written += length as u64;
        }
        Ok(())
    }
}

impl Space for Buffered {
    fn prepare(&mut self, _minimum: usize) -> io::Result<()> {
        // Memory can be had; a full disk shows when the window is written.
        Ok(())
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        self.write(self.window.len() * 8)?;
        let size = minimum.max(self.size).next_multiple_of(4096);
        self.window.clear();
        self.window.resize(size / 8, 0);
        self.window.shrink_to(size / 8);
        self.size = (self.size * 2).min(self.largest);
        Ok((self.window.as_mut_ptr().cast(), size))
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.write((length - self.written) as usize)?;
        self.window = Vec::new();
        Ok(())
    }

    fn monotonic_ns(&self) -> u64 {
        self.now.get()
    }
}
