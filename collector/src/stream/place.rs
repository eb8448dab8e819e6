//! Destination of a location's bytes: a file of its own, or the file of its host.

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use laggard_trace::{FileHeader, FileSpace, NodeSpace, Space, file_name};

use super::Settings;
use crate::call::uncancelled;
use crate::log;
use crate::options::FilePer;

/// One of the two destinations.
pub enum Place {
    Own(FileSpace),
    Shared(NodeSpace),
}

impl Place {
    /// Makes the file of the location with this header, or reserves room in its host's file.
    #[inline(never)]
    pub fn create(settings: &Settings, header: &FileHeader) -> io::Result<Place> {
        static SAID: Once = Once::new();
        let directory = &settings.directory;
        if settings.file_per == FilePer::Node {
            match patiently(|| NodeSpace::create(directory, header, settings.window)) {
                Ok(space) => return Ok(Place::Shared(space)),
                Err(error) if is_of_the_process(&error) => return Err(error),
                // Some file systems cannot share a file; a file per location is better than
                // none.
                Err(error) => SAID.call_once(|| {
                    let place = directory.display();
                    log::warning!(
                        "{place}: no file for all ranks of this host ({error}); locations of this rank get files of their own"
                    );
                }),
            }
        }
        let path = directory.join(file_name(header.rank, header.thread));
        patiently(|| FileSpace::create(&path, settings.window)).map(Place::Own)
    }
}

/// Repeats `make` while the process has no free descriptor. The collector's own threads may
/// cause that: many start at once, and each holds one while it makes its file. With no such
/// thread, it repeats for a short time only.
fn patiently<T>(make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    const TRIES: u32 = 20;
    const TRIES_BESIDE_OTHERS: u32 = 500;
    const PAUSE: Duration = Duration::from_millis(1);
    /// Number of threads that make their files now.
    static MAKING: AtomicU32 = AtomicU32::new(0);
    let (mut alone, mut beside_others) = (0, 0);
    loop {
        MAKING.fetch_add(1, Ordering::Relaxed);
        let made = make();
        match MAKING.fetch_sub(1, Ordering::Relaxed) {
            1 => alone += 1,
            _ => beside_others += 1,
        }
        let is_short = made.as_ref().err().and_then(io::Error::raw_os_error) == Some(libc::EMFILE);
        if !is_short || alone >= TRIES || beside_others >= TRIES_BESIDE_OTHERS {
            return made;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the process has no free descriptor: a file per location would need one, too.
fn is_of_the_process(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl Place {
    /// Runs `f` on it. Files are opened, written and closed there: the program asked to end in its own calls.
    fn uncancelled<T>(&mut self, f: impl FnOnce(&mut dyn Space) -> T) -> T {
        uncancelled(|| match self {
            Place::Own(space) => f(space),
            Place::Shared(space) => f(space),
        })
    }
}

impl Space for Place {
    fn prepare(&mut self, minimum: usize) -> io::Result<()> {
        self.uncancelled(|space| space.prepare(minimum))
    }

    fn advance(&mut self, minimum: usize) -> io::Result<(*mut u8, usize)> {
        self.uncancelled(|space| space.advance(minimum))
    }

    fn first_page(&mut self) -> io::Result<*mut u8> {
        self.uncancelled(|space| space.first_page())
    }

    fn is_cut_off(&self) -> bool {
        match self {
            Place::Own(space) => space.is_cut_off(),
            Place::Shared(space) => space.is_cut_off(),
        }
    }

    fn finish(&mut self, length: u64) -> io::Result<()> {
        self.uncancelled(|space| space.finish(length))
    }

    fn monotonic_ns(&self) -> u64 {
        match self {
            Place::Own(space) => space.monotonic_ns(),
            Place::Shared(space) => space.monotonic_ns(),
        }
    }
}
