//! When a signal ends the command, one line says so, as for every failure.
//!
//! Traces are mapped. If a file is shortened meanwhile, or its disk fails, the kernel's only way to
//! report it is SIGBUS. If an agent dies, the launcher ends the others with SIGTERM.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Bytes of the table of mappings that are read at once.
const BUFFER: usize = 8192;

/// Whether this agent still has to write a report.
static UNFINISHED: AtomicBool = AtomicBool::new(false);

/// Whether part of a mapped file was lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether lost parts of files read as zeros.
static OUTLIVES: AtomicBool = AtomicBool::new(false);

/// How often another thread may have replaced the same part first.
static AGAIN: AtomicU32 = AtomicU32::new(0);
const MOST_AGAIN: u32 = 1 << 16;

/// From now on a SIGBUS from a mapped file prints an error and ends the process, unless it is to
/// [outlive](outlive_files) such files. Must be called after MPI has started: it installs handlers of its
/// own, which dump the stack.
pub fn watch_files() {
    if OUTLIVES.load(Ordering::Relaxed) {
        return;
    }
    watch(libc::SIGBUS, lost_file, libc::SA_RESETHAND);
}

/// From now on the head prints a line if a signal ends it before [`is_finished`].
pub fn watch_end() {
    UNFINISHED.store(true, Ordering::Relaxed);
    watch(libc::SIGTERM, ended, libc::SA_RESETHAND);
}

/// The report is written, or an error has told why there is none.
pub fn is_finished() {
    UNFINISHED.store(false, Ordering::Relaxed);
}

/// From now on a mapped file that loses its end, or cannot be read, reads as zeros from there on. Whoever
/// reads such files looks afterwards whether they are as they were, and [`has_lost`].
pub fn outlive_files() {
    OUTLIVES.store(true, Ordering::Relaxed);
    // Several threads may lose theirs at once.
    watch(libc::SIGBUS, replace_lost_file, 0);
}

/// Whether part of a mapped file was lost: it reads as zeros.
pub fn has_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// As [`has_lost`], and begins anew.
pub fn take_lost() -> bool {
    LOST.swap(false, Ordering::Relaxed)
}

fn watch(
    signal: c_int,
    handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
    once: c_int,
) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros are a valid `sigaction`, with an empty mask and no handler.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handler as *const () as usize;
    // If it serves once, a second signal, even within the handler, has its default effect.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | once;
    // SAFETY: `action` is complete, and the handlers are async-signal-safe.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Prints that there will be no report, and ends by the same signal.
extern "C" fn ended(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    if UNFINISHED.load(Ordering::Relaxed) {
        say(&[
            b"laggard: ended by a signal before the report was written, as when another agent is killed; a former report is as it was\n",
        ]);
    }
    // SAFETY: plain system call; the default action is in force again.
    unsafe { libc::raise(signal) };
}

/// Puts memory in the place of what is lost, up to the end of the file's mapping. Uses system calls and
/// the stack only.
extern "C" fn replace_lost_file(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as below.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    let mut name = [0u8; 1024];
    let (length, end) = match code > 0 {
        true => mapped_file(address, &mut name),
        false => (0, 0),
    };
    // SAFETY: a number of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let first = address & !(page.wrapping_sub(1));
    // SAFETY: replaces pages of a mapped file that nobody can read any more.
    let replaced = length > 0
        && unsafe {
            libc::mmap(
                first as *mut c_void,
                end - first,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        } != libc::MAP_FAILED;
    // There is no file any more where another thread was quicker.
    let is_there = || {
        length == 0
            && code > 0
            && LOST.load(Ordering::Relaxed)
            && AGAIN.fetch_add(1, Ordering::Relaxed) < MOST_AGAIN
    };
    match replaced || is_there() {
        true => LOST.store(true, Ordering::Relaxed),
        false => {
            watch(libc::SIGBUS, lost_file, libc::SA_RESETHAND);
            lost_file(signal, info, context);
        }
    }
}

/// Prints which file it was, and ends. Uses system calls and the stack only.
extern "C" fn lost_file(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid `info`; for SIGBUS it has an
    // address.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    let mut name = [0u8; 1024];
    // A SIGBUS from another process says nothing about a file.
    let length = match code > 0 {
        true => mapped_file(address, &mut name).0,
        false => 0,
    };
    if length == 0 {
        // SAFETY: plain system call; the default action is in force again.
        unsafe { libc::raise(libc::SIGBUS) };
        return;
    }
    say(&[
        b"laggard: ",
        &name[..length],
        b": was shortened, or cannot be read any more, while it was analysed; analyze it again when nobody changes it\n",
    ]);
    // SAFETY: ends the process; skipping its destructors is the point.
    unsafe { libc::_exit(1) };
}

/// Writes a line to stderr with one system call, so that lines of several agents stay whole.
pub(crate) fn say(parts: &[&[u8]]) {
    let mut line = [0u8; 1280];
    let mut length = 0;
    for part in parts {
        let taken = part.len().min(line.len() - length);
        line[length..length + taken].copy_from_slice(&part[..taken]);
        length += taken;
    }
    // SAFETY: `line` has `length` bytes.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
}

/// Writes the name of the file that is mapped at `address` into `name`. Returns its length, 0 if
/// there is none, and where the mapping ends.
fn mapped_file(address: usize, name: &mut [u8]) -> (usize, usize) {
    // SAFETY: the path ends with a zero.
    let maps = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY) };
    if maps < 0 {
        return (0, 0);
    }
    let mut buffer = [0u8; BUFFER];
    let mut filled = 0;
    let mut found = (0, 0);
    while found.0 == 0 {
        let room = &mut buffer[filled..];
        // SAFETY: `room` can be written to for its length.
        let read = unsafe { libc::read(maps, room.as_mut_ptr().cast(), room.len()) };
        if read <= 0 {
            break;
        }
        filled += read as usize;
        let mut start = 0;
        while let Some(end) = buffer[start..filled].iter().position(|&byte| byte == b'\n') {
            if let Some((path, until)) = path_of(&buffer[start..start + end], address) {
                let length = path.len().min(name.len());
                name[..length].copy_from_slice(&path[..length]);
                found = (length, until);
                break;
            }
            start += end + 1;
        }
        // A line that fills the whole buffer is not one to look for.
        let start = if start == 0 && filled == BUFFER {
            filled
        } else {
            start
        };
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
    // SAFETY: opened above.
    unsafe { libc::close(maps) };
    found
}

/// The path in a line `start-end rights offset device inode path`, and the end, if the address is
/// there.
fn path_of(line: &[u8], address: usize) -> Option<(&[u8], usize)> {
    let mut numbers = line
        .splitn(2, |&byte| byte == b' ')
        .next()?
        .split(|&byte| byte == b'-');
    let (start, end) = (hexadecimal(numbers.next()?)?, hexadecimal(numbers.next()?)?);
    let path = line.iter().position(|&byte| byte == b'/')?;
    (start..end)
        .contains(&address)
        .then(|| (&line[path..], end))
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |value, &digit| {
        let digit = (digit as char).to_digit(16)?;
        Some(value.checked_mul(16)? | digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_file_that_is_mapped_at_an_address() {
        let line = b"7f10-7f20 r--s 00000000 00:1b 12    /tmp/a trace/rank0.lgt";
        let found = Some((&b"/tmp/a trace/rank0.lgt"[..], 0x7f20));
        assert_eq!(path_of(line, 0x7f10), found);
        assert_eq!(path_of(line, 0x7f20), None);
        assert_eq!(path_of(b"7f10-7f20 rw-p 0 00:00 0", 0x7f10), None);
        assert_eq!(path_of(b"no line", 0), None);
    }

    #[test]
    fn knows_its_own_file() {
        let mut name = [0; 1024];
        let address = finds_the_file_that_is_mapped_at_an_address as *const () as usize;
        let (length, end) = mapped_file(address, &mut name);
        assert!(end > address);
        let own = std::env::current_exe().unwrap();
        assert_eq!(&name[..length], own.as_os_str().as_encoded_bytes());
        assert_eq!(mapped_file(0, &mut name).0, 0);
    }
}
