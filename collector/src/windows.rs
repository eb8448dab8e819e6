//! Memory that this process exposes in windows. Maps an address to its window and displacement.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::groups::Group;

/// Most windows searched.
const MOST: usize = 4096;

/// The memory of a window.
#[derive(Clone, Copy)]
struct Memory {
    window: &'static Group,
    /// First address, and the address after the last.
    start: u64,
    end: u64,
    /// Displacement unit, bytes.
    unit: u64,
    /// A dynamic window: displacements are addresses, and any memory may be attached.
    is_dynamic: bool,
}

impl Memory {
    fn is_freed(&self) -> bool {
        self.window.is_freed.load(Ordering::Relaxed)
    }

    fn displacement(&self, address: u64) -> Option<u64> {
        let is_inside = (self.start..self.end).contains(&address);
        is_inside.then(|| (address - self.start) / self.unit)
    }
}

static MEMORIES: Mutex<Vec<Memory>> = Mutex::new(Vec::new());
/// Number of known memories.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Reads or changes the known memories, unless the lock is taken: a signal handler or a forked
/// child must not wait for it.
fn with<T>(act: impl FnOnce(&mut Vec<Memory>) -> T) -> Option<T> {
    let mut memories = MEMORIES.try_lock().ok()?;
    let result = act(&mut memories);
    COUNT.store(memories.len(), Ordering::Relaxed);
    Some(result)
}

fn note(memory: Memory) {
    with(|memories| {
        forget(memories);
        if memories.len() < MOST {
            memories.push(memory);
        }
    });
}

/// Notes the memory of a window: `bytes` bytes at `start`, displacement unit `unit` bytes.
pub fn exposed(window: &'static Group, start: usize, bytes: u64, unit: i32) {
    if bytes > 0 {
        let start = start as u64;
        note(Memory {
            window,
            start,
            end: start.saturating_add(bytes),
            unit: u64::try_from(unit).unwrap_or(1).max(1),
            is_dynamic: false,
        });
    }
}

/// Notes a dynamic window.
pub fn dynamic(window: &'static Group) {
    note(Memory {
        window,
        start: 0,
        end: 0,
        unit: 1,
        is_dynamic: true,
    });
}

/// Notes that a window is freed. Its memory may serve another purpose from now on, even if the
/// lock is taken and the entry stays for now.
pub fn freed(window: &'static Group) {
    window.is_freed.store(true, Ordering::Relaxed);
    with(forget);
}

fn forget(memories: &mut Vec<Memory>) {
    memories.retain(|memory| !memory.is_freed());
}

/// The window and displacement of an address. Memory in no other window counts as attached to
/// the dynamic one, if there is exactly one.
pub fn find(address: usize) -> Option<(&'static Group, u64)> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    with(|memories| among(memories, address as u64)).flatten()
}

fn among(memories: &[Memory], address: u64) -> Option<(&'static Group, u64)> {
    // Windows may share memory; the last one is most likely in use.
    let known = memories.iter().filter(|memory| !memory.is_freed());
    let mut latest = known.clone().rev();
    let found = latest.find_map(|memory| Some((memory.window, memory.displacement(address)?)));
    let mut dynamic = known.filter(|memory| memory.is_dynamic);
    found.or_else(|| match (dynamic.next(), dynamic.next()) {
        (Some(only), None) => Some((only.window, address)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the windows of the test reachable: they are never freed.
    static WINDOWS: Mutex<Vec<&Group>> = Mutex::new(Vec::new());

    fn window(id: u64) -> &'static Group {
        let window = Box::leak(Box::new(Group::test(id, 0, &[0])));
        WINDOWS.lock().unwrap().push(window);
        window
    }

    #[test]
    fn addresses_are_found_in_the_memory_of_windows() {
        let of = |id, start, end, unit| Memory {
            window: window(id),
            start,
            end,
            unit,
            is_dynamic: false,
        };
        let mut memories = vec![of(1, 1000, 2000, 8), of(2, 3000, 3004, 1)];
        let find = |memories: &[Memory], address| {
            among(memories, address).map(|(window, displacement)| (window.id, displacement))
        };
        assert_eq!(find(&memories, 1000), Some((1, 0)));
        assert_eq!(find(&memories, 1020), Some((1, 2)));
        assert_eq!(find(&memories, 3003), Some((2, 3)));
        assert_eq!(find(&memories, 3004), None);
        // The same memory in a later window.
        memories.push(of(3, 900, 1100, 4));
        assert_eq!(find(&memories, 1000), Some((3, 25)));
        let dynamic = |id| Memory {
            is_dynamic: true,
            ..of(id, 0, 0, 1)
        };
        memories.push(dynamic(4));
        assert_eq!(find(&memories, 5000), Some((4, 5000)));
        assert_eq!(find(&memories, 1500), Some((1, 62)));
        memories.push(dynamic(5));
        assert_eq!(find(&memories, 5000), None);
        // Freed, but still in the list.
        memories[4].window.is_freed.store(true, Ordering::Relaxed);
        memories[2].window.is_freed.store(true, Ordering::Relaxed);
        assert_eq!(find(&memories, 5000), Some((4, 5000)));
        assert_eq!(find(&memories, 1000), Some((1, 0)));
    }

    #[test]
    fn a_window_is_freed_while_somebody_looks() {
        static BYTES: [u8; 64] = [0; 64];
        let start = BYTES.as_ptr().addr();
        let window = window(100);
        exposed(window, start, BYTES.len() as u64, 1);
        assert_eq!(find(start + 8).map(|found| found.1), Some(8));
        let looking = MEMORIES.lock().unwrap();
        freed(window);
        drop(looking);
        assert_eq!(find(start + 8).map(|found| found.1), None);
        // The next one is added, and the freed one is removed.
        let next = self::window(101);
        exposed(next, start, 16, 1);
        assert_eq!(MEMORIES.lock().unwrap().len(), 1);
        freed(next);
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}
