//! Paths from copies of the stack, made earlier: the same as those of the moment itself.
#![cfg(target_arch = "x86_64")]

mod common;

use std::cell::RefCell;
use std::sync::Mutex;

use common::{DEPTH, Hook, TRACER, library};
use laggard_callpath::{CallSite, Moment, PathId};

/// What a sampler keeps of a moment.
struct Kept {
    site: CallSite,
    stack: Vec<u8>,
    path: PathId,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Bytes of stack above the hook: those of the test's own frames.
const COPIED: usize = 2048;

/// Libraries come and go in one test at a time: the next one is mapped where the last one was.
static MAPPED: Mutex<()> = Mutex::new(());

/// Keeps the moment of the call, and its path.
extern "C" fn keep() {
    let site = CallSite::here();
    // SAFETY: the stack of a thread of the test is larger; the site is this function's.
    let (stack, path) = unsafe {
        let stack = std::slice::from_raw_parts(site.sp as *const u8, COPIED).to_vec();
        let capture = |tracer: &mut laggard_callpath::Tracer| tracer.capture(&site, DEPTH.get());
        (stack, TRACER.with_borrow_mut(capture))
    };
    KEPT.set(Some(Kept { site, stack, path }));
}

/// The path of what was kept, of which so many bytes were copied.
fn again(kept: &Kept, bytes: usize) -> PathId {
    let moment = Moment {
        // Within the call instruction.
        pc: kept.site.ra - 1,
        sp: kept.site.sp,
        bp: kept.site.bp,
        stack: &kept.stack[..bytes],
        python: &[],
    };
    TRACER.with_borrow_mut(|tracer| tracer.capture_moment(&moment, DEPTH.get()))
}

#[test]
fn a_copy_tells_the_path_after_its_frames_are_gone() {
    let _alone = MAPPED.lock();
    let library = library("shapes", "moments", &["-O2", "-fno-optimize-sibling-calls"]);
    // SAFETY: the function's type in the source.
    let outer: extern "C" fn(Hook) = unsafe { library.get(c"outer") };
    DEPTH.set(3);
    outer(keep);
    let kept = KEPT.take().expect("a moment");
    // Other frames lie where those were.
    outer(common::hook);
    assert_ne!(kept.path, PathId::EMPTY);
    assert_eq!(again(&kept, COPIED), kept.path);
    library.close();
    laggard_callpath::unloading(|| ());
    assert_eq!(again(&kept, COPIED), PathId::EMPTY, "its code is gone");
}

/// What was not copied and is still there is read where it is.
#[test]
fn callers_that_have_not_returned_need_no_copy() {
    extern "C" fn keep_and_compare() {
        let site = CallSite::here();
        // SAFETY: as in `keep`.
        let path = TRACER.with_borrow_mut(|tracer| unsafe { tracer.capture(&site, DEPTH.get()) });
        let kept = Kept {
            site,
            stack: Vec::new(),
            path,
        };
        assert_eq!(again(&kept, 0), path);
        assert_ne!(path, PathId::EMPTY);
    }
    let _alone = MAPPED.lock();
    let library = library("shapes", "moments-live", &["-O2"]);
    // SAFETY: the function's type in the source.
    let outer: extern "C" fn(Hook) = unsafe { library.get(c"outer") };
    DEPTH.set(16);
    outer(keep_and_compare);
}
