//! Memory that this process exposes in windows: which of them an address lies in, and at which
//! displacement others name it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::groups::Group;

/// More are not looked for.
const MOST: usize = 4096;

/// The memory of a window.
#[derive(Clone, Copy)]
struct Memory {
    window: &'static Group,
    /// First and last address and one more.
    start: u64,
    end: u64,
    /// Bytes that a displacement counts.
    unit: u64,
    /// Whether memory comes and goes: displacements are addresses, of which any may be in it.
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
/// How many these are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Reads or changes what is known, unless somebody else does so: a signal handler, or the child of a
/// process that was forked meanwhile, must not wait.
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

/// A window has this memory, of so many bytes; others count in units of `unit` bytes in it.
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

/// A window has whatever memory is attached to it.
pub fn dynamic(window: &'static Group) {
    note(Memory {
        window,
        start: 0,
        end: 0,
        unit: 1,
        is_dynamic: true,
    });
}

/// A window is freed: its memory may be that of something else from now on, also where it cannot be
/// taken from what is known at this moment.
pub fn freed(window: &'static Group) {
    window.is_freed.store(true, Ordering::Relaxed);
    with(forget);
}

fn forget(memories: &mut Vec<Memory>) {
    memories.retain(|memory| !memory.is_freed());
}

/// The window that an address lies in, and the displacement. What is in no other is taken for
/// attached to the dynamic one, if there is one alone.
pub fn find(address: usize) -> Option<(&'static Group, u64)> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    with(|memories| among(memories, address as u64)).flatten()
}

fn among(memories: &[Memory], address: u64) -> Option<(&'static Group, u64)> {
    // Of windows with the same memory the last one is in use, most likely.
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

    /// Windows of the test; what is never freed must be known to somebody.
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
        // The same memory in a window that was made later.
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
        // Freed, and not yet forgotten.
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
        // The next one is noted, and the freed one is gone.
        let next = self::window(101);
        exposed(next, start, 16, 1);
        assert_eq!(MEMORIES.lock().unwrap().len(), 1);
        freed(next);
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}
