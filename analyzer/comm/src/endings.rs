//! When processes of this machine end.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::event::{Timespec, epoll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How often a thread looks whether anybody wants to know any more.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Processes that are watched. A thread of its own sleeps until one ends, so that it is known which was first.
pub struct Endings {
    /// `None` where the system cannot tell, or has no thread for it.
    watcher: Option<Arc<Watcher>>,
    watched: HashMap<u32, OwnedFd>,
}

struct Watcher {
    all: OwnedFd,
    /// When processes had ended, since the epoch. Those that were seen together have the same time.
    ended: Mutex<BTreeMap<u32, Duration>>,
}

impl Endings {
    /// Of none yet.
    pub fn new() -> Endings {
        let all = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
        let watcher = all.and_then(|all| {
            let watcher = Arc::new(Watcher {
                all,
                ended: Mutex::default(),
            });
            let watches = watcher.clone();
            let thread = std::thread::Builder::new().spawn(move || watches.run());
            thread.is_ok().then_some(watcher)
        });
        Endings {
            watcher,
            watched: HashMap::new(),
        }
    }

    /// From now on its end is seen, if it has not ended yet.
    pub fn watch(&mut self, process: u32) {
        let Some(watcher) = &self.watcher else { return };
        if self.watched.contains_key(&process) {
            return;
        }
        let id = i32::try_from(process).ok().and_then(Pid::from_raw);
        let Some(file) = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok()) else {
            return;
        };
        let wanted = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        let told = epoll::EventData::new_u64(process.into());
        if epoll::add(&watcher.all, &file, told, wanted).is_ok() {
            self.watched.insert(process, file);
        }
    }

    /// When it ended, since the epoch; `None` if it was not seen to end.
    pub fn ended(&self, process: u32) -> Option<Duration> {
        let watcher = self.watcher.as_ref()?;
        watcher.ended().get(&process).copied()
    }
}

impl Default for Endings {
    fn default() -> Endings {
        Endings::new()
    }
}

impl Watcher {
    /// What others left is still whole: entries are inserted at once.
    fn ended(&self) -> MutexGuard<'_, BTreeMap<u32, Duration>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees processes end as long as somebody watches.
    fn run(self: Arc<Self>) {
        let mut seen = Vec::with_capacity(64);
        while Arc::strong_count(&self) > 1 {
            seen.clear();
            match epoll::wait(
                &self.all,
                rustix::buffer::spare_capacity(&mut seen),
                Some(&LOOK),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let mut ended = self.ended();
            for event in &seen {
                ended.insert(event.data.u64() as u32, now.clone().unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn child() -> Child {
        Command::new("cat").stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn who_ends_first_is_known() {
        let mut children = [child(), child(), child()];
        let ids: Vec<u32> = children.iter().map(Child::id).collect();
        let mut endings = Endings::new();
        ids.iter().for_each(|&id| endings.watch(id));
        assert!(ids.iter().all(|&id| endings.ended(id).is_none()));
        for (child, id) in children.iter_mut().zip(&ids).rev() {
            child.kill().unwrap();
            // Nobody has waited for it yet.
            while endings.ended(*id).is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(ids.is_sorted_by(|one, next| endings.ended(*one) > endings.ended(*next)));
        // Too late.
        children
            .iter_mut()
            .for_each(|child| assert!(!child.wait().unwrap().success()));
        let mut late = Endings::new();
        late.watch(ids[0]);
        assert_eq!(late.ended(ids[0]), None);
    }
}
