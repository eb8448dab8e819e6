//! What no agent can tell from its own locations: the critical path, who received what was sent, and the run
//! replayed with a change. The head opens all of the trace for it, once somebody asks.

use std::panic::{AssertUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use laggard_engine::events::Events;
use laggard_overlay::{Stop, Stopped};

use crate::messages::Messages;

/// What takes longer to make is answered once somebody asks again.
const PATIENCE: Duration = Duration::from_millis(200);

/// How often it is looked whether a replay has ended: one that nobody waits for any more ends soon.
const LOOK: Duration = Duration::from_millis(5);

/// Where the critical path is, by location: begins and ends, ns, ascending.
pub type Stretches = Vec<Vec<(i64, i64)>>;

/// Sizes of the largest traces of which all is read, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Whose messages are joined, and whose critical path is followed. The path takes 24 bytes in memory each time it
    /// goes on with another location, and 32 in a temporary file for each wait; it is found at 60 MB a second.
    /// Messages take some 10 bytes each in a temporary file.
    pub whole: u64,
    /// That are replayed with a change.
    pub replayed: u64,
}

/// A run as a whole.
pub struct Whole {
    trace: PathBuf,
    bytes: u64,
    limits: Limits,
    events: Mutex<Option<Arc<Events>>>,
    path: Arc<Made<Stretches>>,
    messages: Arc<Made<Messages>>,
    replaying: Mutex<()>,
}

/// What is made once somebody asks.
struct Made<T> {
    making: Mutex<Making<T>>,
    is_made: Condvar,
}

/// It, or why there is none.
enum Making<T> {
    NotAsked,
    UnderWay,
    Made(Result<Arc<T>, String>),
}

impl<T: Send + Sync + 'static> Made<T> {
    fn new() -> Arc<Made<T>> {
        Arc::new(Made {
            making: Mutex::new(Making::NotAsked),
            is_made: Condvar::new(),
        })
    }

    /// `None` while it is being made. The first who asks has that begun, and whoever gives up does not end it.
    fn get(
        self: &Arc<Self>,
        make: impl FnOnce() -> Result<T> + Send + UnwindSafe + 'static,
    ) -> Result<Option<Arc<T>>> {
        let mut making = locked(&self.making);
        if matches!(*making, Making::NotAsked) {
            *making = Making::UnderWay;
            let this = self.clone();
            std::thread::spawn(move || {
                let made = std::panic::catch_unwind(make);
                let made = made.unwrap_or_else(|_| Err(anyhow!("reading it failed")));
                let made = made.map(Arc::new).map_err(|error| format!("{error:#}"));
                *locked(&this.making) = Making::Made(made);
                this.is_made.notify_all();
            });
        }
        let waited = self.is_made.wait_timeout_while(making, PATIENCE, |making| {
            !matches!(making, Making::Made(_))
        });
        let (making, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &*making {
            Making::Made(Ok(made)) => Ok(Some(made.clone())),
            Making::Made(Err(why)) => bail!("{why}"),
            _ => Ok(None),
        }
    }
}

/// What others left is still whole: each value is replaced at once.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Whole {
    /// Of a trace of this size that nobody writes any more.
    pub fn new(trace: &Path, bytes: u64, limits: Limits) -> Whole {
        Whole {
            trace: trace.to_owned(),
            bytes,
            limits,
            events: Mutex::new(None),
            path: Made::new(),
            messages: Made::new(),
            replaying: Mutex::new(()),
        }
    }

    /// Whether the trace is too large to replay it.
    pub fn is_beyond_replay(&self) -> bool {
        self.bytes > self.limits.replayed
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

    /// Where the critical path is; `None` while that is being found.
    ///
    /// # Errors
    /// The trace is too large, or there is no room for temporary files.
    pub fn path(self: &Arc<Self>) -> Result<Option<Arc<Stretches>>> {
        let whole = self.readable("to follow its critical path")?;
        let found = self.path.get(move || whole.follow());
        found.context("there is no critical path")
    }

    /// All messages; `None` while they are being joined.
    ///
    /// # Errors
    /// The trace is too large, or there is no room for temporary files.
    pub fn messages(self: &Arc<Self>) -> Result<Option<Arc<Messages>>> {
        let whole = self.readable("to join its messages")?;
        self.messages.get(move || Messages::of(&*whole.events()?))
    }

    /// It, unless the trace is too large.
    fn readable(self: &Arc<Self>, to: &str) -> Result<AssertUnwindSafe<Arc<Self>>> {
        if self.bytes > self.limits.whole {
            bail!("the trace is too large {to}: start laggard serve with a larger --whole-gb");
        }
        // What others left is still whole, see `locked`.
        Ok(AssertUnwindSafe(self.clone()))
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
        let limits = Limits {
            whole: 0,
            replayed: 0,
        };
        let whole = Whole::new(Path::new("/nowhere"), 0, limits);
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
