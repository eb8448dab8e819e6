//! Questions that nobody waits for any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Tells those who work on an answer that nobody wants it any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Nobody wants the answer any more.
#[derive(Clone, Copy, Debug)]
pub struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("asked anew")
    }
}

impl std::error::Error for Stopped {}

impl Stop {
    /// Nobody wants the answer any more.
    pub fn stop(&self) {
        self.0.store(true, Relaxed);
    }

    /// # Errors
    /// If so.
    pub fn check(&self) -> Result<(), Stopped> {
        match self.0.load(Relaxed) {
            true => Err(Stopped),
            false => Ok(()),
        }
    }
}
