//! What no agent can tell from its own locations: the critical path, and the run replayed with a change. The
//! head opens all of the trace for it, once somebody asks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use laggard_engine::events::Events;
use laggard_overlay::{Stop, Stopped};

/// Size of the largest trace of which the critical path is followed: some seconds, and 16 bytes each time it
/// goes on with another location.
const LARGEST_PATH: u64 = 1 << 30;
/// A path that takes longer is answered once somebody asks again.
const PATIENCE: Duration = Duration::from_millis(200);

/// How often it is looked whether a replay has ended: one that nobody waits for any more ends soon.
const LOOK: Duration = Duration::from_millis(5);

/// Where the critical path is, by location: begins and ends, ns, ascending.
pub type Stretches = Vec<Vec<(i64, i64)>>;

/// A run as a whole.
pub struct Whole {
    trace: PathBuf,
    bytes: u64,
    events: Mutex<Option<Arc<Events>>>,
    path: Mutex<Making>,
    is_made: Condvar,
    replaying: Mutex<()>,
}

/// The path, or why there is none.
enum Making {
    NotAsked,
    UnderWay,
    Made(Result<Arc<Stretches>, String>),
}

/// What others left is still whole: each value is replaced at once.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Whole {
    /// Of a trace of this size that nobody writes any more.
    pub fn new(trace: &Path, bytes: u64) -> Whole {
        Whole {
            trace: trace.to_owned(),
            bytes,
            events: Mutex::new(None),
            path: Mutex::new(Making::NotAsked),
            is_made: Condvar::new(),
            replaying: Mutex::new(()),
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The events of all locations.
    ///
    /// # Errors
    /// The trace cannot be opened any more.
    pub fn events(&self) -> Result<Arc<Events>> {
        let mut known = locked(&self.events);
        if let Some(events) = &*known {
            return Ok(events.clone());
        }
        let events = Arc::new(Events::open(&self.trace)?);
        *known = Some(events.clone());
        Ok(events)
    }

    /// The turn to replay the run, which one has at a time: a replay takes room for a graph of the run, and all
    /// cores that there are. It ends with what is returned.
    ///
    /// # Errors
    /// Nobody wants the answer any more.
    pub fn turn(&self, stop: &Stop) -> Result<MutexGuard<'_, ()>, Stopped> {
        loop {
            stop.check()?;
            match self.replaying.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(left)) => return Ok(left.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            }
        }
    }

    /// Where the critical path is; `None` while that is being found. The first who asks has it begun, and
    /// whoever gives up does not end it.
    ///
    /// # Errors
    /// The trace is too large, or there is no room for temporary files.
    pub fn path(self: &Arc<Self>) -> Result<Option<Arc<Stretches>>> {
        if self.bytes > LARGEST_PATH {
            bail!("the trace is too large to follow its critical path");
        }
        let mut making = locked(&self.path);
        if matches!(*making, Making::NotAsked) {
            *making = Making::UnderWay;
            let whole = self.clone();
            std::thread::spawn(move || {
                let found = std::panic::catch_unwind(|| whole.follow());
                let found = found.unwrap_or_else(|_| Err(anyhow!("following it failed")));
                let found = found.map(Arc::new).map_err(|error| format!("{error:#}"));
                *locked(&whole.path) = Making::Made(found);
                whole.is_made.notify_all();
            });
        }
        let waited = self.is_made.wait_timeout_while(making, PATIENCE, |making| {
            !matches!(making, Making::Made(_))
        });
        let (making, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &*making {
            Making::Made(Ok(stretches)) => Ok(Some(stretches.clone())),
            Making::Made(Err(why)) => bail!("there is no critical path: {why}"),
            _ => Ok(None),
        }
    }

    fn follow(&self) -> Result<Stretches> {
        let events = self.events()?;
        let mut stretches = vec![Vec::new(); events.locations()];
        for one in laggard_export::critical_path(&events)? {
            stretches[one.location as usize].push((one.from, one.until));
        }
        Ok(stretches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_replays_at_a_time() {
        let whole = Whole::new(Path::new("/nowhere"), 0);
        let (first, stop) = (whole.turn(&Stop::default()), Stop::default());
        assert!(first.is_ok());
        std::thread::scope(|scope| {
            let next = scope.spawn(|| whole.turn(&Stop::default()).map(drop));
            let withdrawn = scope.spawn(|| whole.turn(&stop).map(drop));
            stop.stop();
            assert!(withdrawn.join().expect("a thread").is_err());
            assert!(!next.is_finished());
            drop(first);
            assert!(next.join().expect("a thread").is_ok());
        });
    }
}
