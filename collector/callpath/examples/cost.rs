//! Cost of a capture, ns: medians over alternating rounds.
//!
//! `cargo run --release -p laggard-callpath --example cost`

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::time::Instant;

use laggard_callpath::{CallSite, Tracer};

const CALLS: u32 = 20_000;
const ROUNDS: usize = 41;
const LEVELS: u32 = 20;

thread_local! {
    static TRACER: RefCell<Tracer> = const { RefCell::new(Tracer::new()) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
}

/// The cost common to all variants: a call, thread-local state, its check.
#[inline(never)]
extern "C" fn nothing() {
    TRACER.with_borrow_mut(|tracer| black_box(tracer.has_new()));
    black_box(DEPTH.get());
}

#[inline(never)]
extern "C" fn capture() {
    let site = CallSite::here();
    // SAFETY: this call has not returned.
    TRACER.with_borrow_mut(|tracer| black_box(unsafe { tracer.capture(&site, DEPTH.get()) }));
}

#[inline(never)]
extern "C" fn glibc() {
    let mut buffer = [std::ptr::null_mut(); 16];
    // SAFETY: the size is the buffer's.
    black_box(unsafe { backtrace(buffer.as_mut_ptr(), 16) });
}

/// ns per call of `hook`, from below `levels` frames.
#[inline(never)]
fn below(levels: u32, hook: extern "C" fn()) -> f64 {
    if levels > 0 {
        return black_box(below(black_box(levels - 1), hook));
    }
    let start = Instant::now();
    for _ in 0..CALLS {
        hook();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn main() {
    type Variant = (&'static str, usize, extern "C" fn());
    let variants: [Variant; 6] = [
        ("nothing (call and thread-local state)", 0, nothing),
        ("capture, depth 1", 1, capture),
        ("capture, depth 4", 4, capture),
        ("capture, depth 16", 16, capture),
        ("capture, depth 64 (whole path)", 64, capture),
        ("backtrace, 16 frames", 16, glibc),
    ];
    let mut times = vec![Vec::new(); variants.len()];
    for _ in 0..ROUNDS {
        for (times, &(_, depth, hook)) in times.iter_mut().zip(&variants) {
            DEPTH.set(depth);
            hook();
            times.push(below(LEVELS, hook));
        }
    }
    for (mut times, (name, ..)) in times.into_iter().zip(variants) {
        times.sort_by(f64::total_cmp);
        let (median, low, high) = (
            times[ROUNDS / 2],
            times[ROUNDS / 10],
            times[ROUNDS - 1 - ROUNDS / 10],
        );
        println!("{name:<40} {median:8.1} ns  ({low:.1} to {high:.1})");
    }
}
