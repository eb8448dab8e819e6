//! The fuzzer: libFuzzer over the target that `LAGGARD_FUZZ_TARGET` names. `run.sh` builds and
//! starts it.
#![no_main]

use std::sync::OnceLock;

use laggard_fuzz::random::Random;
use laggard_fuzz::{Target, target};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fn chosen() -> &'static Target {
    static CHOSEN: OnceLock<&Target> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        // As in the ordinary test: an analysis would take this thread as its only one, and others would wait for it.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
        pool.build_global().expect("the only threads");
        let name = std::env::var("LAGGARD_FUZZ_TARGET").unwrap_or_default();
        target(&name).unwrap_or_else(|| panic!("LAGGARD_FUZZ_TARGET={name}: no such target"))
    })
}

/// libFuzzer's own changes of plain bytes.
fn scramble(bytes: &mut Vec<u8>, limit: usize) {
    let size = bytes.len();
    bytes.resize(limit.max(size), 0);
    let size = fuzzer_mutate(bytes, size, limit.max(size));
    bytes.truncate(size);
}

fuzz_target!(|bytes: &[u8]| (chosen().run)(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Random::new(u64::from(seed));
    let changed = chosen().mutate(&data[..size], max_size, &mut random, &mut scramble);
    let size = changed.len().min(max_size);
    data[..size].copy_from_slice(&changed[..size]);
    size
});
