//! Compiling C programs into libraries, and an oracle for native call paths.
#![allow(dead_code, reason = "every test uses a part of it")]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;

use laggard_callpath::{CallSite, Frame, PathId, Tracer, module};

pub type Hook = extern "C" fn();

/// A loaded library, never unloaded unless asked.
pub struct Library(*mut c_void);

pub fn scratch() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Compiles `tests/programs/<source>.c` into `<name>`.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let output = scratch().join(format!("{name}-{}", std::process::id()));
    let source = format!("{}/tests/programs/{source}.c", env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("cc")
        .args(["-g", "-shared", "-fPIC", "-w"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&output)
        .status()
        .unwrap();
    assert!(status.success());
    output
}

impl Library {
    pub fn open(path: &std::path::Path) -> Self {
        let path = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the name ends with a zero; test libraries do nothing when loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?}");
        Self(handle)
    }

    /// # Safety
    /// `F` is a function pointer of the symbol's type.
    pub unsafe fn get<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the handle is open as long as this is.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        // SAFETY: the caller states that `F` is the symbol's type.
        unsafe { std::mem::transmute_copy(&address) }
    }

    pub fn close(self) {
        // SAFETY: the handle is open, and closed once.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }
}

/// Compiles and loads.
pub fn library(source: &str, name: &str, flags: &[&str]) -> Library {
    let file = compile(source, name, flags);
    let library = Library::open(&file);
    std::fs::remove_file(file).unwrap();
    library
}

thread_local! {
    pub static TRACER: RefCell<Tracer> = const { RefCell::new(Tracer::new()) };
    pub static DEPTH: Cell<usize> = const { Cell::new(64) };
    pub static PATHS: RefCell<Vec<PathId>> = const { RefCell::new(Vec::new()) };
    pub static ORACLE: Cell<Oracle> = const { Cell::new(Oracle::Exact) };
}

/// The expected relation of the captured path to glibc's `backtrace`.
#[derive(Clone, Copy, PartialEq)]
pub enum Oracle {
    /// All frames up to the depth, without the frames that start the thread.
    Exact,
    /// The innermost frames; it may end early.
    Prefix,
    /// Not compared.
    Ignore,
}

/// The wrapper function of the tests: captures, and compares.
pub extern "C" fn hook() {
    let site = CallSite::here();
    let depth = DEPTH.get();
    let (path, frames) = TRACER.with_borrow_mut(|tracer| {
        // SAFETY: the site is this function's, which has not returned.
        let path = unsafe { tracer.capture(&site, depth) };
        (path, addresses(tracer.frames(path)))
    });
    PATHS.with_borrow_mut(|paths| paths.push(path));
    if ORACLE.get() == Oracle::Ignore {
        return;
    }
    let expected = backtrace_from(site.ra);
    let kept = frames.len();
    assert!(
        kept <= expected.len() && frames == expected[..kept],
        "captured {} expected {}",
        names(&frames),
        names(&expected)
    );
    if ORACLE.get() == Oracle::Exact && kept < depth {
        for &address in &expected[kept..] {
            let (object, function) = describe(address);
            assert!(
                object.contains("libc.so") || function == "_start",
                "cut off: {object} {function}; captured {}",
                names(&frames)
            );
        }
    }
}

/// Run-time return addresses of native frames.
pub fn addresses(frames: &[Frame]) -> Vec<u64> {
    let address = |frame: &Frame| match *frame {
        Frame::Native { module: id, offset } => module(id).unwrap().load_bias + offset + 1,
        Frame::Source { .. } => panic!("not native"),
    };
    frames.iter().map(address).collect()
}

fn backtrace_from(ra: u64) -> Vec<u64> {
    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
    }
    let mut buffer = [std::ptr::null_mut(); 512];
    // SAFETY: the buffer has room for 512.
    let count = unsafe { backtrace(buffer.as_mut_ptr(), 512) } as usize;
    let all: Vec<u64> = buffer[..count].iter().map(|&at| at as u64).collect();
    let first = all.iter().position(|&at| at == ra).expect("own frame");
    all[first..].to_vec()
}

/// Object and function of an address.
pub fn describe(address: u64) -> (String, String) {
    let text = |at: *const c_char| {
        if at.is_null() {
            String::new()
        } else {
            // SAFETY: not null, so a C string of the loader.
            unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
        }
    };
    // SAFETY: `info` is valid for writing, and zeros are a valid value.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr((address - 1) as *const c_void, &mut info);
        (text(info.dli_fname), text(info.dli_sname))
    }
}

pub fn names(frames: &[u64]) -> String {
    let name = |&address: &u64| format!("{address:x} {:?}\n", describe(address));
    frames.iter().map(name).collect()
}

/// The paths that the hook captured on this thread since the last call.
pub fn captured() -> Vec<PathId> {
    PATHS.with_borrow_mut(std::mem::take)
}

pub fn frames_of(path: PathId) -> Vec<u64> {
    TRACER.with_borrow(|tracer| addresses(tracer.frames(path)))
}
