//! Buffers between locations and files.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

use laggard_trace::{NodePlace, Space};

/// Bytes of the first window: enough for a location with few calls.
const FIRST_WINDOW: usize = 8 << 10;

/// Where the bytes of one location are appended.
pub enum Sink {
    /// To this file, which does not exist yet.
    Own(PathBuf),
    /// To a place in the file of its host.
    Shared(Box<Shared>),
}

/// A place in a node file.
pub struct Shared {
    place: NodePlace,
    path: PathBuf,
    /// Where the next byte goes, and how many more fit there.
    next: (u64, usize),
}

impl Shared {
    /// The place, in the file with this path.
    pub fn new(place: NodePlace, path: PathBuf) -> Shared {
        Shared {
            place,
            path,
            next: (0, 0),
        }
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.next.1 == 0 {
                let (file, offset, size) = self.place.next(0)?;
                self.place.take(&file, size)?;
                self.next = (offset, size);
            }
            let (offset, room) = self.next;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let file = OpenOptions::new().write(true).open(&self.path)?;
            file.write_all_at(now, offset)?;
            self.next = (offset + now.len() as u64, room - now.len());
            bytes = later;
        }
        Ok(())
    }
}

/// A file that is appended to, window by window, and is open only meanwhile.
///
/// The collector maps its one file. A process that writes the files of 65,536 ranks at once has
/// neither that many mappings nor descriptors.
pub struct Buffered {
    sink: Sink,
    window: Vec<u64>,
    /// Bytes of the next window.
    size: usize,
    /// Largest window, bytes.
    largest: usize,
    /// Bytes of the windows already in the file.
    written: u64,
    /// `CLOCK_MONOTONIC` of the host now, ns.
    now: Rc<Cell<u64>>,
}

impl Buffered {
    /// Windows of up to `largest` bytes, written to `sink`.
    pub fn new(sink: Sink, largest: usize, now: Rc<Cell<u64>>) -> Buffered {
        Buffered {
            sink,
            window: Vec::new(),
            size: FIRST_WINDOW,
            largest: largest.max(FIRST_WINDOW),
            written: 0,
            now,
        }
    }

    /// Bytes written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends the first `length` bytes of the window.
    fn write(&mut self, length: usize) -> io::Result<()> {
        if length > 0 {
            let words = &self.window[..length.div_ceil(8)];
            // SAFETY: all bytes of the words are initialised, and bytes may have any value.
            let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), length) };
            match &mut self.sink {
                Sink::Own(path) => {
                    let mut options = OpenOptions::new();
                    options.append(true).create_new(self.written == 0);
                    options.open(path)?.write_all(bytes)?;
                }
                Sink::Shared(shared) => shared.append(bytes)?,
            }
            self.written += length as u64;
        }
        Ok(())
    }
}

impl Space for Buffered {
    fn prepare(&mut self, _minimum: usize) -> io::Result<()> {
        // Nothing to reserve: a full disk shows when the window is written.
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
        match &mut self.sink {
            Sink::Own(_) => Ok(()),
            Sink::Shared(shared) => shared.place.finish(length),
        }
    }

    fn monotonic_ns(&self) -> u64 {
        self.now.get()
    }
}
