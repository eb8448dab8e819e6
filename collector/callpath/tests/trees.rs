//! Random call trees: every capture must equal glibc's `backtrace`.

mod common;
use common::{DEPTH, Hook, TRACER, captured, hook, library};

fn compare(name: &str, flags: &[&str]) {
    let library = library("trees", name, flags);
    // SAFETY: the function's type in the source.
    let run: extern "C" fn(Hook, u64, i32) = unsafe { library.get(c"run") };
    for depth in [64, 16, 4, 1] {
        DEPTH.set(depth);
        for seed in 0..200 {
            // Repeated, so that later runs find paths remembered by the first.
            for _ in 0..3 {
                run(hook, seed, 18);
            }
        }
    }
    let (captures, misses) = (
        captured().len() as u64,
        TRACER.with_borrow(|t| t.stats()).misses,
    );
    println!("{name}: {captures} captures, {misses} misses");
    // Enough captures must come from the cache to test it. The number depends on which stacks
    // share a place in it.
    assert!(captures - misses >= captures / 4, "{misses} of {captures}");
}

#[test]
fn optimised_without_frame_pointers() {
    compare("trees-o2", &["-O2", "-fomit-frame-pointer"]);
}

#[test]
fn optimised_with_frame_pointers() {
    compare("trees-fp", &["-O2", "-fno-omit-frame-pointer"]);
}

#[test]
fn not_optimised() {
    compare("trees-o0", &["-O0"]);
}

#[test]
fn vectorised() {
    compare("trees-o3", &["-O3", "-fomit-frame-pointer"]);
}
