//! Compresses on a thread of its own: it is about half of all work.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Most pieces that wait for compression.
const WAITING: usize = 4;

/// A compressed file being written.
pub struct Compressor<W> {
    /// Channel for pieces; `None` once closed.
    pieces: Option<SyncSender<Vec<u8>>>,
    /// Returns the output at its end; `None` once joined.
    thread: Option<JoinHandle<io::Result<W>>>,
}

impl<W: Write + Send + 'static> Compressor<W> {
    /// Begins the file.
    pub fn new(out: W) -> io::Result<Compressor<W>> {
        let (pieces, waiting) = sync_channel::<Vec<u8>>(WAITING);
        let compress = move || {
            let mut out = GzEncoder::new(out, Compression::fast());
            for piece in waiting {
                out.write_all(&piece)?;
            }
            out.finish()
        };
        let thread = thread::Builder::new().name("compression".to_owned());
        Ok(Compressor {
            pieces: Some(pieces),
            thread: Some(thread.spawn(compress)?),
        })
    }

    /// Adds a piece. An error may concern an earlier one.
    pub fn write(&mut self, piece: Vec<u8>) -> io::Result<()> {
        let sent = self.pieces.as_ref().map(|pieces| pieces.send(piece));
        match sent {
            Some(Ok(())) => Ok(()),
            // The thread has ended; its result tells why.
            _ => self.end().map(|_| ()),
        }
    }

    /// Completes the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.end()
    }
}

impl<W> Compressor<W> {
    fn end(&mut self) -> io::Result<W> {
        self.pieces = None;
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(written)) => written,
            Some(Err(_)) | None => Err(io::Error::other("compression ended before")),
        }
    }
}

impl<W> Drop for Compressor<W> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Abandoned: the output must be closed or removed before the program ends.
            let _ = self.end();
        }
    }
}
