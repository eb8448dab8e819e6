//! Frames of Python programs, in every version of CPython installed. Each version runs in its
//! own process, which executes this test again.

mod common;

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use common::{TRACER, scratch};
use laggard_callpath::{CallSite, Frame, MOST_PYTHON, Moment, Tracer, note_python, prepare_python};

/// File, function and line; the file of native frames is empty.
type Line = (String, String, u32);

static SEEN: Mutex<Vec<Vec<Line>>> = Mutex::new(Vec::new());

/// Whether frames of moments can be noted.
static PREPARED: Mutex<bool> = Mutex::new(false);

/// A moment with noted frames has the same functions.
fn noted(tracer: &mut Tracer, site: CallSite, lines: &[Line]) {
    let mut python = [0; MOST_PYTHON];
    let count = note_python(&mut python);
    let moment = Moment {
        pc: site.ra - 1,
        sp: site.sp,
        bp: site.bp,
        stack: &[],
        python: &python[..count],
    };
    let path = tracer.capture_moment(&moment, 64);
    let of = |frame: &Frame| match *frame {
        Frame::Native { .. } => None,
        Frame::Source { file, function, .. } => Some((
            tracer.string(file).to_owned(),
            tracer.string(function).to_owned(),
        )),
    };
    let found: Vec<_> = tracer.frames(path).iter().filter_map(of).collect();
    let own = lines.iter().filter(|line| !line.0.is_empty());
    let own: Vec<_> = own.map(|line| (line.0.clone(), line.1.clone())).collect();
    let most = found.len().min(own.len());
    assert!(
        most == own.len() || most == MOST_PYTHON,
        "{found:?} of {own:?}"
    );
    assert_eq!(found[..most], own[..most]);
}

extern "C" fn python_hook() {
    let site = CallSite::here();
    let lines = TRACER.with_borrow_mut(|tracer| {
        // SAFETY: the site is this function's, which has not returned.
        let path = unsafe { tracer.capture(&site, 16) };
        // SAFETY: as above.
        assert_eq!(unsafe { tracer.capture(&site, 16) }, path);
        let line = |frame: &Frame| match *frame {
            Frame::Native { offset, .. } => (String::new(), String::new(), offset as u32),
            Frame::Source {
                file,
                function,
                line,
            } => (
                tracer.string(file).into(),
                tracer.string(function).into(),
                line,
            ),
        };
        let lines: Vec<Line> = tracer.frames(path).iter().map(line).collect();
        if *PREPARED.lock().unwrap() {
            noted(tracer, site, &lines);
        }
        lines
    });
    SEEN.lock().unwrap().push(lines);
}

fn seen() -> Vec<Vec<Line>> {
    std::mem::take(&mut SEEN.lock().unwrap())
}

/// Environment variable from parent to child: path of the Python library.
const LIBRARY: &str = "CALLPATH_TEST_LIBPYTHON";

fn library_of(minor: u32) -> Option<(PathBuf, Option<PathBuf>)> {
    let system = PathBuf::from(format!(
        "/usr/lib/x86_64-linux-gnu/libpython3.{minor}.so.1.0"
    ));
    if system.exists() {
        return Some((system, None));
    }
    let versions = Path::new(&std::env::var("HOME").ok()?).join(".pyenv/versions");
    let prefix = format!("3.{minor}.");
    std::fs::read_dir(versions)
        .ok()?
        .flatten()
        .find_map(|entry| {
            let home = entry.path();
            let library = home.join(format!("lib/libpython3.{minor}.so.1.0"));
            let name = entry.file_name().to_string_lossy().into_owned();
            (name.starts_with(&prefix) && library.exists()).then_some((library, Some(home)))
        })
}

fn run_version(minor: u32) {
    let Some((library, home)) = library_of(minor) else {
        eprintln!("no CPython 3.{minor} here");
        return;
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "child", "--nocapture", "--include-ignored"])
        .env(LIBRARY, library)
        .env("CALLPATH_TEST_MINOR", minor.to_string());
    if let Some(home) = home {
        child.env("PYTHONHOME", home);
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

macro_rules! versions {
    ($($name:ident $minor:literal)*) => {$(
        #[test]
        fn $name() {
            run_version($minor);
        }
    )*};
}
versions! { python_3_9 9 python_3_10 10 python_3_11 11 python_3_12 12 python_3_13 13 }

#[test]
#[ignore = "run by the other tests, in a process with an interpreter"]
fn child() {
    let Ok(library) = std::env::var(LIBRARY) else {
        return;
    };
    let minor: u32 = std::env::var("CALLPATH_TEST_MINOR")
        .unwrap()
        .parse()
        .unwrap();
    python_hook();
    assert!(
        seen()[0][0].0.is_empty(),
        "native before there is an interpreter"
    );

    let script = scratch().join(format!("calls-{minor}-{}.py", std::process::id()));
    let address = format!("{}", python_hook as *const () as usize);
    let program = include_str!("programs/calls.py").replace("ADDRESS", &address);
    std::fs::write(&script, program).unwrap();
    let file = script.to_str().unwrap().to_owned();
    let start = format!("exec(compile(open({file:?}, encoding='utf-8').read(), {file:?}, 'exec'))");
    // SAFETY: names and types are those of the interpreter's C interface.
    unsafe {
        let name = CString::new(library).unwrap();
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        assert!(!handle.is_null());
        let symbol = |name: &std::ffi::CStr| libc::dlsym(handle, name.as_ptr());
        let initialize: extern "C" fn(c_int) =
            std::mem::transmute::<*mut c_void, _>(symbol(c"Py_InitializeEx"));
        let run: extern "C" fn(*const c_char) -> c_int =
            std::mem::transmute::<*mut c_void, _>(symbol(c"PyRun_SimpleString"));
        let finalize: extern "C" fn() -> c_int =
            std::mem::transmute::<*mut c_void, _>(symbol(c"Py_FinalizeEx"));
        initialize(0);
        *PREPARED.lock().unwrap() = prepare_python();
        assert!(*PREPARED.lock().unwrap());
        python_hook();
        assert!(seen()[0][0].0.is_empty(), "native outside of Python code");
        let start = CString::new(start).unwrap();
        assert_eq!(run(start.as_ptr()), 0);
        check(&seen(), &file, minor);
        *PREPARED.lock().unwrap() = false;
        finalize();
        python_hook();
        assert!(
            seen()[0][0].0.is_empty(),
            "native after the interpreter's end"
        );
    }
    std::fs::remove_file(script).unwrap();
}

fn check(seen: &[Vec<Line>], file: &str, minor: u32) {
    let at = |function: &str, line| (file.to_owned(), function.to_owned(), line);
    let module = |line| at("<module>", line);
    let turn = at(if minor >= 11 { "Ring.turn" } else { "turn" }, 12);
    let starts = |index: usize, expected: &[Line]| {
        let path: &[Line] = &seen[index];
        assert_eq!(
            &path[..expected.len().min(path.len())],
            expected,
            "capture {index}"
        );
    };
    starts(0, &[at("inner", 7), module(36)]);
    assert_eq!(seen[0].len(), 3, "and the line that runs the file");
    starts(
        1,
        &[
            at("inner", 7),
            turn.clone(),
            at("größe_日本", 16),
            module(37),
        ],
    );
    starts(2, &[at("inner", 7), turn, at("größe_日本", 16), module(38)]);
    assert_eq!(seen[3].len(), 16);
    assert_eq!(seen[3][0], at("recurse", 21));
    assert!(seen[3][1..].iter().all(|line| *line == at("recurse", 23)));
    starts(4, &[at("generator", 27), module(40)]);
    let first = |index: usize| seen[index][0].clone();
    for round in 0..3 {
        let line = first(5 + 2 * round);
        assert!(line == at("several_lines", 31), "{line:?}");
        assert_eq!(first(6 + 2 * round), at("several_lines", 33));
    }
    let threaded = &seen[11];
    assert_eq!(threaded[0], at("inner", 7));
    assert!(threaded[1].0.ends_with("threading.py"), "{threaded:?}");
    assert_eq!(seen.len(), 212);
    for (n, path) in (0..).zip(&seen[12..]) {
        assert_eq!(path[0], ("made.py".into(), "f".into(), n + 2));
        assert_eq!(path[1], ("made.py".into(), "<module>".into(), n + 3));
    }
}
