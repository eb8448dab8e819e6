//! What the processor or the kernel counts of a thread: instructions, cycles, and events of the user's
//! choice.
//!
//! *In.* Names. *Out.* How much each counter counted between two readings, in user mode. Counters of the
//! processor are read without the kernel where it permits that (`page`), all others with one call for
//! each group of them. *Not supported.* Events of other threads, or of a whole machine.

mod names;
mod page;

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use laggard_trace::{COUNTERS, Counts};

use crate::perf::{self, Attributes, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, SOFTWARE};
use names::Counted;
pub use names::find;
use page::Page;

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Instructions and cycles, where there are such counters.
    #[default]
    Auto,
    /// These, too.
    Named(Vec<String>),
    /// Nothing.
    Off,
}

impl Wanted {
    /// Most counters that can be named.
    pub const MOST: usize = COUNTERS - names::ALWAYS.len();

    /// Whether the user named a counter.
    pub fn names(&self, name: &str) -> bool {
        match self {
            Wanted::Named(names) => names.iter().any(|named| named == name),
            Wanted::Auto | Wanted::Off => false,
        }
    }
}

/// Why an event cannot be counted.
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL) => {
            "this machine has no such counter".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "the system forbids it (kernel.perf_event_paranoid, or a container)".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A counter, and how long it was to count and did, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    count: u64,
    enabled: u64,
    running: u64,
}

impl Reading {
    /// How much was counted since a reading before. Where others had the counter for some of the time,
    /// as much as it would have counted then; `None` if they always had it.
    fn since(&self, before: &Reading) -> Option<u64> {
        let count = self.count.wrapping_sub(before.count);
        let enabled = self.enabled.wrapping_sub(before.enabled);
        let running = self.running.wrapping_sub(before.running);
        match (enabled, running) {
            _ if enabled == running => Some(count),
            (_, 0) => None,
            _ => {
                let scaled = u128::from(count) * u128::from(enabled) / u128::from(running);
                u64::try_from(scaled).ok()
            }
        }
    }
}

/// Counters that the processor has all at the same time, or none of them.
struct Group {
    /// Numbers of its counters, the first one's and the one after the last.
    first: usize,
    end: usize,
    /// Software counters are never read without the kernel.
    is_software: bool,
    /// One page for each; else a descriptor of the group is read.
    pages: Vec<Page>,
    files: Vec<File>,
}

/// The descriptor of an event.
struct File {
    number: i32,
    /// As the kernel knows the event.
    id: u64,
}

/// Descriptors begin here, or at half of what the process may have where that is less: the kernel's table
/// of them has that many places.
const MOST_FIRST: i32 = 1 << 15;
/// Asks an event for its id; anything else that a descriptor may be refuses that.
const GET_ID: libc::c_ulong = 0x8008_2407;
/// Format of a reading: times enabled and running, and all of a group.
const TIMES_OF_GROUP: u64 = 1 | 1 << 1 | 1 << 3;

impl File {
    /// Takes an open descriptor to where the program hardly meets it: programs use the first numbers.
    fn new(open: i32) -> io::Result<File> {
        // SAFETY: a structure that the call fills in, and a descriptor made by the collector.
        let number = unsafe {
            let mut most: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut most);
            let first = i32::try_from(most.rlim_cur / 2).unwrap_or(i32::MAX);
            libc::fcntl(open, libc::F_DUPFD_CLOEXEC, first.min(MOST_FIRST))
        };
        let error = io::Error::last_os_error();
        perf::close(open);
        if number < 0 {
            return Err(error);
        }
        let mut file = File { number, id: 0 };
        file.id = file.ask().ok_or_else(io::Error::last_os_error)?;
        Ok(file)
    }

    /// The id of the event that this descriptor is now.
    fn ask(&self) -> Option<u64> {
        let mut id = 0u64;
        // SAFETY: a number for the answer; whatever the descriptor is.
        let failed = unsafe { libc::ioctl(self.number, GET_ID, &raw mut id) };
        (failed == 0).then_some(id)
    }

    /// Whether the program has not closed it.
    fn is_ours(&self) -> bool {
        self.ask() == Some(self.id)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.is_ours() {
            perf::close(self.number);
        }
    }
}

/// Errors of `perf_event_open` that the next thread has as well: there is no such counter, or it is forbidden.
const LASTING: [i32; 6] = [
    libc::ENOENT,
    libc::ENODEV,
    libc::EOPNOTSUPP,
    libc::ENOSYS,
    libc::EACCES,
    libc::EPERM,
];

/// The counters of a thread.
pub struct Counters {
    names: Vec<String>,
    groups: Vec<Group>,
    last: [Option<Reading>; COUNTERS],
    /// By counter: how long it was to count and did between readings so far, ns.
    pub ran: [(u64, u64); COUNTERS],
}

impl Counters {
    /// Begins to count for the calling thread. Returns what is not counted, and why.
    pub fn start(wanted: &Wanted) -> (Option<Box<Counters>>, Vec<(String, io::Error)>) {
        let mut counters = Counters {
            names: Vec::new(),
            groups: Vec::new(),
            last: [None; COUNTERS],
            ran: [(0, 0); COUNTERS],
        };
        /// Why no thread of the process has any of those that are always tried, if that does not change.
        static ABSENT: AtomicI32 = AtomicI32::new(0);
        let absent = ABSENT.load(Ordering::Relaxed);
        let mut missing = Vec::new();
        let named = match wanted {
            Wanted::Auto if absent != 0 => {
                let all = names::ALWAYS;
                let all = all.map(|name| (name.to_owned(), io::Error::from_raw_os_error(absent)));
                return (None, all.into());
            }
            Wanted::Auto if perf::is_filtered() => {
                let filtered = || io::Error::other("system calls are filtered, name it to try");
                let all = names::ALWAYS.map(|name| (name.to_owned(), filtered()));
                return (None, all.into());
            }
            Wanted::Auto => &[][..],
            Wanted::Named(names) => names,
            Wanted::Off => return (None, missing),
        };
        let always = names::ALWAYS.map(str::to_owned);
        for name in always.iter().chain(named).take(COUNTERS) {
            let Some(counted) = find(name).filter(|_| !counters.names.contains(name)) else {
                continue;
            };
            match counters.add(&counted) {
                Ok(()) => counters.names.push(counted.name),
                Err(error) => missing.push((counted.name, error)),
            }
        }
        let lasting = missing.iter().filter_map(|(_, error)| {
            let error = error.raw_os_error()?;
            LASTING.contains(&error).then_some(error)
        });
        if let (Wanted::Auto, true, Some(error)) =
            (wanted, missing.len() == names::ALWAYS.len(), lasting.min())
        {
            ABSENT.store(error, Ordering::Relaxed);
        }
        counters.map();
        counters.read();
        let has_some = !counters.names.is_empty();
        (has_some.then(|| Box::new(counters)), missing)
    }

    /// The counters, in the order of their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Opens a counter, in the last group if that has room.
    fn add(&mut self, counted: &Counted) -> io::Result<()> {
        let exclude = match counted.in_kernel {
            true => 0,
            false => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        };
        let attributes = Attributes {
            kind: counted.kind,
            config: counted.config,
            read_format: TIMES_OF_GROUP,
            flags: exclude,
            ..Attributes::default()
        };
        let number = self.names.len();
        let is_software = counted.kind == SOFTWARE;
        let last = self.groups.last_mut();
        if let Some(group) = last.filter(|group| group.is_software == is_software) {
            let leader = group.files.first().map(|file| file.number);
            if let Ok(open) = perf::open(&attributes, leader) {
                group.files.push(File::new(open)?);
                group.end = number + 1;
                return Ok(());
            }
        }
        let file = File::new(perf::open(&attributes, None)?)?;
        self.groups.push(Group {
            first: number,
            end: number + 1,
            is_software,
            pages: Vec::new(),
            files: vec![file],
        });
        Ok(())
    }

    /// Where the processor itself may be asked, descriptors are not needed: a map keeps its event.
    fn map(&mut self) {
        for group in &mut self.groups {
            let pages = group.files.iter().map(|file| Page::map(file.number));
            if let Some(pages) = pages.collect() {
                group.pages = pages;
                group.files.clear();
            }
        }
    }

    /// How much was counted since the last reading.
    pub fn read(&mut self) -> Counts {
        // The functions below may fail. `errno` is the program's.
        // SAFETY: the calling thread's errno.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        let before = unsafe { *errno };
        let mut counts = Counts::default();
        for group in &self.groups {
            for (at, now) in (group.first..group.end).zip(group.read()) {
                let (last, ran) = (&mut self.last[at], &mut self.ran[at]);
                let last = std::mem::replace(last, now);
                if let (Some(last), Some(now)) = (last, now) {
                    counts.set(at, now.since(&last));
                    ran.0 += now.enabled.wrapping_sub(last.enabled);
                    ran.1 += now.running.wrapping_sub(last.running);
                }
            }
        }
        // SAFETY: as above.
        unsafe { *errno = before };
        counts
    }
}

impl Group {
    /// All its counters; `None` for what cannot be read any more.
    fn read(&self) -> [Option<Reading>; COUNTERS] {
        let mut readings = [None; COUNTERS];
        for (reading, page) in readings.iter_mut().zip(&self.pages) {
            *reading = Some(page.read());
        }
        let Some(leader) = self.files.first().filter(|leader| leader.is_ours()) else {
            return readings;
        };
        // How many, the two times, and the counters.
        let mut words = [0u64; 3 + COUNTERS];
        // The function of the C library would be a point of cancellation.
        // SAFETY: a buffer of that size.
        let read = unsafe {
            let size = size_of_val(&words);
            libc::syscall(libc::SYS_read, leader.number, words.as_mut_ptr(), size)
        };
        let [count, enabled, running, values @ ..] = words;
        let all = self.end - self.first;
        if usize::try_from(read).is_ok_and(|read| read >= 8 * (3 + all)) && count as usize == all {
            for (reading, count) in readings.iter_mut().zip(values).take(all) {
                *reading = Some(Reading {
                    count,
                    enabled,
                    running,
                });
            }
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_others_had_are_scaled() {
        let reading = |count, enabled, running| Reading {
            count,
            enabled,
            running,
        };
        let since = |now: Reading| now.since(&reading(100, 10, 10));
        assert_eq!(since(reading(150, 30, 30)), Some(50));
        assert_eq!(since(reading(150, 30, 20)), Some(100));
        assert_eq!(since(reading(100, 30, 10)), None);
        assert_eq!(since(reading(100, 10, 10)), Some(0));
    }

    #[test]
    fn faults_are_counted_until_the_program_closes_the_descriptor() {
        let wanted = Wanted::Named(vec!["page-faults".to_owned(), "task-clock".to_owned()]);
        let (counters, _) = Counters::start(&wanted);
        let Some(mut counters) = counters else {
            eprintln!("SKIPPED: this machine permits no perf_event_open");
            return;
        };
        let at = counters
            .names()
            .iter()
            .position(|name| name == "page-faults");
        let at = at.expect("a counter");
        counters.read();
        let bytes = vec![1u8; 4096 * 1000];
        std::hint::black_box(&bytes);
        let faults = counters.read().get(at).expect("a count");
        assert!((900..1100).contains(&faults), "{faults}");
        for group in &counters.groups {
            group.files.iter().for_each(|file| perf::close(file.number));
        }
        assert_eq!(counters.read().get(at), None);
    }
}
