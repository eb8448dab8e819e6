//! Names of counters: those of perf.

use crate::perf::{CACHE, HARDWARE, RAW, SOFTWARE};

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub name: String,
    pub kind: u32,
    pub config: u64,
    /// It happens in the kernel alone, on behalf of the thread.
    pub in_kernel: bool,
}

/// Instructions and cycles: counted wherever that is permitted.
pub const ALWAYS: [&str; 2] = ["instructions", "cycles"];

/// Names with kind and number, as in `linux/perf_event.h`.
const ROWS: &[(&str, u32, u64)] = &[
    ("cycles", HARDWARE, 0),
    ("cpu-cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branches", HARDWARE, 4),
    ("branch-instructions", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("stalled-cycles-frontend", HARDWARE, 7),
    ("stalled-cycles-backend", HARDWARE, 8),
    ("ref-cycles", HARDWARE, 9),
    ("cpu-clock", SOFTWARE, 0),
    ("task-clock", SOFTWARE, 1),
    ("page-faults", SOFTWARE, 2),
    ("faults", SOFTWARE, 2),
    ("context-switches", SOFTWARE, 3),
    ("cs", SOFTWARE, 3),
    ("cpu-migrations", SOFTWARE, 4),
    ("migrations", SOFTWARE, 4),
    ("minor-faults", SOFTWARE, 5),
    ("major-faults", SOFTWARE, 6),
    ("alignment-faults", SOFTWARE, 7),
    ("emulation-faults", SOFTWARE, 8),
];

/// Caches, and what may be counted of each.
const CACHES: [&str; 7] = [
    "L1-dcache",
    "L1-icache",
    "LLC",
    "dTLB",
    "iTLB",
    "branch",
    "node",
];
const USES: [(&str, u64); 6] = [
    ("loads", 0),
    ("load-misses", 1 << 16),
    ("stores", 1 << 8),
    ("store-misses", 1 << 16 | 1 << 8),
    ("prefetches", 2 << 8),
    ("prefetch-misses", 1 << 16 | 2 << 8),
];

/// The counter with this name.
pub fn find(name: &str) -> Option<Counted> {
    let row = ROWS.iter().find(|(known, ..)| *known == name);
    let of_cache = || {
        let (at, cache) = (0..)
            .zip(CACHES)
            .find(|(_, cache)| name.starts_with(cache))?;
        let wanted = name[cache.len()..].strip_prefix('-')?;
        let (_, bits) = USES.iter().find(|(known, _)| *known == wanted)?;
        Some((CACHE, at | bits))
    };
    let raw = || {
        let digits = name
            .strip_prefix('r')
            .filter(|digits| !digits.starts_with('+'))?;
        u64::from_str_radix(digits, 16)
            .ok()
            .map(|config| (RAW, config))
    };
    let known = row.map(|&(_, kind, config)| (kind, config));
    let (kind, config) = known.or_else(of_cache).or_else(raw)?;
    Some(Counted {
        name: name.to_owned(),
        kind,
        config,
        in_kernel: kind == SOFTWARE && matches!(config, 3 | 4),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_perf() {
        let of = |name| find(name).map(|counted| (counted.kind, counted.config));
        assert_eq!(of("instructions"), Some((HARDWARE, 1)));
        assert_eq!(of("page-faults"), of("faults"));
        assert_eq!(of("L1-dcache-load-misses"), Some((CACHE, 0x10000)));
        assert_eq!(of("LLC-store-misses"), Some((CACHE, 0x10102)));
        assert_eq!(of("r01c2"), Some((RAW, 0x1c2)));
        for wrong in [
            "",
            "r",
            "r+1",
            "rx",
            "cycle",
            "LLC",
            "LLC-",
            "LLC-cycles",
            "instructions:u",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(ALWAYS.iter().all(|name| find(name).is_some()));
    }
}
