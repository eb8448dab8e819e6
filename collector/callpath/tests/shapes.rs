//! Chains of known shape: recursion, places, jumps, coroutines, threads,
//! unloading, code without tables.

mod common;
use std::collections::HashSet;

use common::{
    DEPTH, Hook, Library, ORACLE, Oracle, TRACER, captured, describe, frames_of, hook, library,
};
use laggard_callpath::{CallSite, PathId, Tracer};

fn functions(path: PathId) -> Vec<String> {
    let name = |address: u64| describe(address).1;
    frames_of(path).into_iter().map(name).collect()
}

fn shapes(name: &str) -> Library {
    library("shapes", name, &["-O2", "-fno-optimize-sibling-calls"])
}

#[test]
fn nested_chain_innermost_first() {
    let library = shapes("nested");
    // SAFETY: the function's type in the source.
    let outer: extern "C" fn(Hook) = unsafe { library.get(c"outer") };
    outer(hook);
    let paths = captured();
    let names = functions(paths[0]);
    assert_eq!(names[..3], ["inner", "middle", "outer"]);
    DEPTH.set(2);
    outer(hook);
    assert_eq!(functions(captured()[0]), ["inner", "middle"]);
    DEPTH.set(1);
    outer(hook);
    assert_eq!(functions(captured()[0]), ["inner"]);
    DEPTH.set(0);
    ORACLE.set(Oracle::Ignore);
    outer(hook);
    assert_eq!(captured(), [PathId::EMPTY]);
}

#[test]
fn deep_recursion_is_cut() {
    let library = shapes("recursion");
    // SAFETY: the function's type in the source.
    let recurse: extern "C" fn(Hook, i32) = unsafe { library.get(c"recurse") };
    DEPTH.set(16);
    for _ in 0..3 {
        recurse(hook, 40);
    }
    let paths = captured();
    assert_eq!(functions(paths[0]), ["recurse"; 16]);
    assert!(paths.iter().all(|&path| path == paths[0]));
    recurse(hook, 30);
    assert_eq!(captured(), [paths[0]], "equal frames, equal path");
    recurse(hook, 3);
    assert_ne!(captured(), [paths[0]]);
}

#[test]
fn one_function_called_from_two_places() {
    let library = shapes("places");
    // SAFETY: the function's type in the source.
    let two_places: extern "C" fn(Hook, i32) = unsafe { library.get(c"two_places") };
    two_places(hook, 100);
    let paths = captured();
    let distinct: HashSet<_> = paths.iter().collect();
    assert_eq!((paths.len(), distinct.len()), (200, 2));
    assert_ne!(paths[0], paths[1]);
    assert_eq!(TRACER.with_borrow(|tracer| tracer.stats().misses), 2);
    // New paths are announced once, in order.
    let new = || TRACER.with_borrow_mut(|tracer| tracer.take_new().collect::<Vec<_>>());
    assert_eq!(new(), [PathId(1), PathId(2)]);
    assert!(new().is_empty());
    assert!(!TRACER.with_borrow(Tracer::has_new));
}

#[test]
fn jumps_between_captures() {
    let library = shapes("jumps");
    // SAFETY: the function's type in the source.
    let jumps: extern "C" fn(Hook, i32) = unsafe { library.get(c"jumps") };
    jumps(hook, 50);
    assert!(captured().len() > 100);
}

#[test]
fn callbacks_from_the_c_library_stay() {
    let library = shapes("sorts");
    // SAFETY: the function's type in the source.
    let sorts: extern "C" fn(Hook) = unsafe { library.get(c"sorts") };
    sorts(hook);
    let names = functions(captured()[0]);
    assert_eq!(names[0], "compare");
    assert!(names.contains(&"sorts".into()), "{names:?}");
    DEPTH.set(2);
    sorts(hook);
    assert!(captured().iter().all(|&path| frames_of(path).len() == 2));
}

#[test]
fn coroutines_on_stacks_of_their_own() {
    let library = shapes("coroutines");
    type Coroutines = extern "C" fn(Hook, *mut u8, usize);
    // SAFETY: the function's type in the source.
    let coroutines: Coroutines = unsafe { library.get(c"coroutines") };
    let mut stack = vec![0u8; 1 << 18];
    ORACLE.set(Oracle::Prefix);
    for _ in 0..3 {
        coroutines(hook, stack.as_mut_ptr(), stack.len());
    }
    let paths = captured();
    assert_eq!(paths.len(), 9);
    assert!(paths.iter().all(|&path| path == paths[0]));
    assert_eq!(functions(paths[0])[..2], ["inner", "middle"]);
}

#[test]
fn a_coroutine_at_the_end_of_mapped_memory() {
    let library = shapes("edge");
    type Coroutines = extern "C" fn(Hook, *mut u8, usize);
    // SAFETY: the function's type in the source.
    let coroutines: Coroutines = unsafe { library.get(c"coroutines") };
    ORACLE.set(Oracle::Ignore);
    // SAFETY: the mapping is the test's own, and `coroutines` stays in its first half.
    unsafe {
        let size = 1 << 16;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let all = libc::PROT_READ | libc::PROT_WRITE;
        let area = libc::mmap(std::ptr::null_mut(), 2 * size, all, flags, -1, 0);
        assert_ne!(area, libc::MAP_FAILED);
        libc::munmap(area.cast::<u8>().add(size).cast(), size);
        coroutines(hook, area.cast(), size);
        coroutines(hook, area.cast(), size);
    }
    assert_eq!(functions(captured()[5])[..2], ["inner", "middle"]);
}

#[test]
fn threads_have_their_own_tracers() {
    let library = shapes("threads");
    // SAFETY: the function's type in the source.
    let outer: extern "C" fn(Hook) = unsafe { library.get(c"outer") };
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..1000 {
                    outer(hook);
                }
                let paths = captured();
                assert!(paths.iter().all(|&path| path == paths[0]));
                functions(paths[0])
            })
        })
        .collect();
    for thread in threads {
        let names = thread.join().unwrap();
        assert_eq!(names[..3], ["inner", "middle", "outer"]);
        assert!(!names.iter().any(|name| name.contains("clone")));
    }
}

#[test]
fn code_without_tables_ends_the_path() {
    let bare = library(
        "bare",
        "bare",
        &[
            "-O2",
            "-fno-asynchronous-unwind-tables",
            "-fno-unwind-tables",
        ],
    );
    // SAFETY: the function's type in the source.
    let bare: extern "C" fn(Hook) = unsafe { bare.get(c"bare") };
    ORACLE.set(Oracle::Ignore);
    for _ in 0..5 {
        bare(hook);
    }
    let paths = captured();
    assert_eq!(functions(paths[0]), ["bare"]);
    assert!(paths.iter().all(|&path| path == paths[0]));
}

#[test]
fn garbage_registers_do_no_harm() {
    let mut tracer = Tracer::new();
    let here = CallSite::here();
    for site in [
        CallSite {
            ra: 0,
            sp: 0,
            bp: 0,
        },
        CallSite { ra: 0, ..here },
        CallSite { ra: 1, ..here },
        CallSite {
            ra: u64::MAX,
            ..here
        },
        CallSite { sp: 8, ..here },
        CallSite {
            sp: u64::MAX - 7,
            ..here
        },
        CallSite {
            sp: u64::MAX,
            ..here
        },
        CallSite {
            sp: here.sp + 1,
            ..here
        },
        CallSite { bp: 0, ..here },
        CallSite {
            bp: u64::MAX,
            ..here
        },
        CallSite { bp: 0x10, ..here },
    ] {
        for depth in [1, 16, usize::MAX] {
            // SAFETY: the site is invented, but all stack memory that is read is mapped.
            let first = unsafe { tracer.capture(&site, depth) };
            // SAFETY: as above.
            let again = unsafe { tracer.capture(&site, depth) };
            assert_eq!(again, first, "{site:?}");
        }
    }
    // SAFETY: without known code, no address of the site is read.
    let nowhere = unsafe { tracer.capture(&CallSite { ra: 1, ..here }, 8) };
    assert_eq!(nowhere, PathId::EMPTY);
}
