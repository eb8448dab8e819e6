//! What is said when a signal ends the command: one line, as for every failure.
//!
//! A trace is read where the system maps it. If somebody shortens a file meanwhile, or its disk
//! fails, the kernel has no other way to say so than SIGBUS. And where an agent dies, the
//! launcher ends the others with SIGTERM.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room for lines of the table of mappings that are read at once.
const BUFFER: usize = 8192;

/// Whether there is a report to come, from this agent.
static UNFINISHED: AtomicBool = AtomicBool::new(false);

/// From now on SIGBUS from a mapped file is an error that is told and ends the process. To be
/// called once MPI has started: it has handlers of its own, which dump the stack.
pub fn watch_files() {
    watch(libc::SIGBUS, lost_file);
}

/// From now on the head says when it is ended before [`is_finished`].
pub fn watch_end() {
    UNFINISHED.store(true, Ordering::Relaxed);
    watch(libc::SIGTERM, ended);
}

/// The report is written, or there will be none for a reason that was said.
pub fn is_finished() {
    UNFINISHED.store(false, Ordering::Relaxed);
}

fn watch(signal: c_int, handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros are a valid `sigaction`, with an empty mask and no handler.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = handler as *const () as usize;
    // A second one, also from within the handler, does what it would do without one.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND | libc::SA_NODEFER;
    // SAFETY: `action` is complete, and the handlers keep to what handlers may do.
    unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
}

/// Says that there will be no report, and ends as the signal wants it.
extern "C" fn ended(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    if UNFINISHED.load(Ordering::Relaxed) {
        say(&[
            b"laggard: ended by a signal before the report was written, as when another agent is killed; a former report is as it was\n",
        ]);
    }
    // SAFETY: plain system call; the default is in force again.
    unsafe { libc::raise(signal) };
}

/// Says which file it was and ends. Uses system calls and the stack only.
extern "C" fn lost_file(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid `info`; of a SIGBUS it has an address.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    let mut name = [0u8; 1024];
    // Sent by somebody, it says nothing of a file.
    let length = match code > 0 {
        true => mapped_file(address, &mut name),
        false => 0,
    };
    if length == 0 {
        // SAFETY: plain system call; the default is in force again.
        unsafe { libc::raise(libc::SIGBUS) };
        return;
    }
    say(&[
        b"laggard: ",
        &name[..length],
        b": was shortened, or cannot be read any more, while it was analysed; analyze it again when nobody changes it\n",
    ]);
    // SAFETY: ends the process without any of its destructors, which is the point.
    unsafe { libc::_exit(1) };
}

/// Writes one line on stderr with one system call, so that lines of several agents stay whole.
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

/// The name of the file that is mapped at `address`; 0 bytes if there is none.
fn mapped_file(address: usize, name: &mut [u8]) -> usize {
    // SAFETY: the path ends with a zero.
    let maps = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY) };
    if maps < 0 {
        return 0;
    }
    let mut buffer = [0u8; BUFFER];
    let mut filled = 0;
    let mut found = 0;
    while found == 0 {
        let room = &mut buffer[filled..];
        // SAFETY: `room` can be written to for its length.
        let read = unsafe { libc::read(maps, room.as_mut_ptr().cast(), room.len()) };
        if read <= 0 {
            break;
        }
        filled += read as usize;
        let mut start = 0;
        while let Some(end) = buffer[start..filled].iter().position(|&byte| byte == b'\n') {
            if let Some(path) = path_of(&buffer[start..start + end], address) {
                found = path.len().min(name.len());
                name[..found].copy_from_slice(&path[..found]);
                break;
            }
            start += end + 1;
        }
        // A line that fills all of the buffer is none that we look for.
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

/// The path in a line `start-end rights offset device inode path`, if the address is there.
fn path_of(line: &[u8], address: usize) -> Option<&[u8]> {
    let mut numbers = line
        .splitn(2, |&byte| byte == b' ')
        .next()?
        .split(|&byte| byte == b'-');
    let (start, end) = (hexadecimal(numbers.next()?)?, hexadecimal(numbers.next()?)?);
    let path = line.iter().position(|&byte| byte == b'/')?;
    (start..end).contains(&address).then(|| &line[path..])
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
        assert_eq!(path_of(line, 0x7f10), Some(&b"/tmp/a trace/rank0.lgt"[..]));
        assert_eq!(path_of(line, 0x7f20), None);
        assert_eq!(path_of(b"7f10-7f20 rw-p 0 00:00 0", 0x7f10), None);
        assert_eq!(path_of(b"no line", 0), None);
    }

    #[test]
    fn knows_its_own_file() {
        let mut name = [0; 1024];
        let address = finds_the_file_that_is_mapped_at_an_address as *const () as usize;
        let length = mapped_file(address, &mut name);
        let own = std::env::current_exe().unwrap();
        assert_eq!(&name[..length], own.as_os_str().as_encoded_bytes());
        assert_eq!(mapped_file(0, &mut name), 0);
    }
}
