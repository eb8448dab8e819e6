//! An agent that makes no progress ends, and its job with it.
//!
//! Agents wait for each other. So an agent that was stopped, or waits for a file server that is
//! gone, would hold the job for ever, and MPI says nothing. Each agent has a watcher, a process
//! that is forked before MPI starts. It wakes up each second and looks whether the agent has used
//! the processor. It talks to no other process, so it works on every host and with every MPI. The
//! agent pays one store for each call of MPI.

use std::ffi::{CStr, CString};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{host, signals};

/// The state of an agent, shared by its own process and its watcher.
#[repr(C)]
struct Shared {
    /// It waits for other agents, which have watchers of their own.
    waits: AtomicBool,
}

/// The watcher of this process, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: NonNull<Shared>,
    watcher: libc::pid_t,
}

impl Watch {
    /// Starts a watcher. It kills this process, with a line on stderr, after `limit` seconds
    /// without progress. `None` if the system refuses. Must be called before MPI starts, while
    /// there is no other thread.
    pub fn start(name: &str, limit: u64) -> Option<Watch> {
        // SAFETY: a new mapping, of zeros, which are a valid `Shared`.
        let shared = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if shared == libc::MAP_FAILED {
            return None;
        }
        let shared = NonNull::new(shared.cast::<Shared>())?;
        let agent = std::process::id();
        // The child keeps to system calls and to values made here.
        let line = |what: &str| {
            format!(
                "laggard: {name} (process {agent} on {}) {what} for {limit} s, and the others waited for it: there is no report; start the analysis again, or allow more with --stall-limit\n",
                host()
            )
        };
        let lines = [line("was stopped"), line("made no progress")];
        let status = CString::new(format!("/proc/{agent}/stat")).ok()?;
        // SAFETY: there is no other thread.
        match unsafe { libc::fork() } {
            -1 => None,
            // SAFETY: the mapping is shared, and stays for as long as the child lives.
            0 => watch(
                agent as libc::pid_t,
                &status,
                unsafe { shared.as_ref() },
                limit,
                &lines,
            ),
            watcher => Some(Watch { shared, watcher }),
        }
    }

    /// Runs a wait for other agents, which may be part of a longer one.
    pub fn waiting<T>(watch: Option<&Watch>, wait: impl FnOnce() -> T) -> T {
        // SAFETY: mapped for as long as `watch` lives.
        let shared = watch.map(|watch| unsafe { watch.shared.as_ref() });
        let set = |waits| shared.is_some_and(|shared| shared.waits.swap(waits, Ordering::Relaxed));
        let before = set(true);
        let result = wait();
        set(before);
        result
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: a child of this process, not reaped before; the mapping is used no more.
        unsafe {
            libc::kill(self.watcher, libc::SIGKILL);
            libc::waitpid(self.watcher, std::ptr::null_mut(), 0);
            libc::munmap(self.shared.as_ptr().cast(), size_of::<Shared>());
        }
    }
}

/// Looks each second; ends with the agent.
fn watch(agent: libc::pid_t, status: &CStr, shared: &Shared, limit: u64, lines: &[String; 2]) -> ! {
    // SAFETY: plain system calls. A signal to this process's group or job ends the watcher, too,
    // and it ends with its parent.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        libc::prctl(libc::PR_SET_NAME, c"laggard-watch".as_ptr());
        // Readers of the agent's output must not wait for the watcher.
        libc::close(libc::STDIN_FILENO);
        libc::close(libc::STDOUT_FILENO);
    }
    let mut idle = Idle::default();
    // SAFETY: plain system call.
    while unsafe { libc::getppid() } == agent {
        let seen = Seen {
            state: state(status),
            used_ns: used_ns(agent),
            waits: shared.waits.load(Ordering::Relaxed),
        };
        if idle.after(&seen) >= limit {
            let [stopped, idle] = lines;
            let line = if seen.state == b'T' { stopped } else { idle };
            signals::say(&[line.as_bytes()]);
            // SAFETY: plain system call on the parent of this process.
            unsafe { libc::kill(agent, libc::SIGKILL) };
            break;
        }
        // Not the clock's seconds: if the whole job was stopped, so was this process.
        std::thread::sleep(Duration::from_secs(1));
    }
    // SAFETY: ends the process without the destructors of its parent's objects.
    unsafe { libc::_exit(0) }
}

/// One look at an agent.
struct Seen {
    /// As in `/proc`; 0 if unreadable.
    state: u8,
    /// Time of its threads on processors, ns.
    used_ns: u64,
    waits: bool,
}

/// Looks since the agent's last progress.
#[derive(Default)]
struct Idle {
    looks: u64,
    used_ns: Option<u64>,
}

impl Idle {
    /// The number of looks after one more.
    fn after(&mut self, seen: &Seen) -> u64 {
        let goes_on = match seen.state {
            // Stopped, whatever it did.
            b'T' => false,
            // Ready to run; in a debugger; gone; unknown.
            b'R' | b't' | b'Z' | b'X' | 0 => true,
            _ => seen.waits || self.used_ns != Some(seen.used_ns),
        };
        self.used_ns = Some(seen.used_ns);
        self.looks = if goes_on { 0 } else { self.looks + 1 };
        self.looks
    }
}

/// Whether there is no such process on this host, or one that has ended and whose parent has not looked yet.
pub fn is_gone(process: u32) -> bool {
    let Some(process) = i32::try_from(process).ok().filter(|&process| process > 0) else {
        return false;
    };
    // SAFETY: asks whether a process is there; nothing is sent.
    if unsafe { libc::kill(process, 0) } != 0 {
        return std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    }
    let path = CString::new(format!("/proc/{process}/stat"));
    path.is_ok_and(|path| matches!(state(&path), b'Z' | b'X'))
}

/// The state of a process: the letter after its name, which may contain brackets.
fn state(path: &CStr) -> u8 {
    let mut text = [0u8; 512];
    // SAFETY: plain system calls, and the buffer has room.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    let name_ends = text[..length].iter().rposition(|&byte| byte == b')');
    let at = name_ends.map_or(usize::MAX - 2, |end| end + 2);
    text[..length].get(at).copied().unwrap_or(0)
}

/// Time of a process on processors, ns; 0 if unreadable.
fn used_ns(process: libc::pid_t) -> u64 {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both write to their arguments.
    let is_known = unsafe {
        libc::clock_getcpuclockid(process, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    match is_known {
        true => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(seen: &[(u8, u64, bool)]) -> u64 {
        let mut idle = Idle::default();
        let looks = seen.iter().map(|&(state, used_ns, waits)| {
            let seen = Seen {
                state,
                used_ns,
                waits,
            };
            idle.after(&seen)
        });
        looks.last().unwrap()
    }

    #[test]
    fn who_works_or_waits_for_others_makes_progress() {
        // Computing, also while others have the processors.
        assert_eq!(
            looks(&[(b'S', 1, false), (b'S', 2, false), (b'D', 3, false)]),
            0
        );
        assert_eq!(looks(&[(b'R', 1, false); 9]), 0);
        // Waiting, asleep or not.
        assert_eq!(looks(&[(b'S', 1, true); 9]), 0);
        // In a debugger.
        assert_eq!(looks(&[(b't', 1, false); 9]), 0);
    }

    #[test]
    fn who_is_stopped_or_asleep_makes_none() {
        assert_eq!(looks(&[(b'T', 1, false); 9]), 9);
        assert_eq!(looks(&[(b'T', 1, true); 9]), 9);
        assert_eq!(looks(&[(b'D', 1, false); 9]), 8);
        // Progress since then counts.
        let mut seen = [(b'T', 1, false); 9];
        seen[6] = (b'S', 2, false);
        assert_eq!(looks(&seen), 2);
    }

    #[test]
    fn a_process_is_seen() {
        let path = CString::new(format!("/proc/{}/stat", std::process::id())).unwrap();
        assert!(state(&path).is_ascii_alphabetic());
        assert_eq!(state(c"/proc/0/stat"), 0);
        let before = used_ns(std::process::id() as libc::pid_t);
        while used_ns(std::process::id() as libc::pid_t) == before {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_is_gone() {
        assert!(!is_gone(std::process::id()) && !is_gone(0));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !is_gone(child.id()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(is_gone(child.id()));
    }
}
