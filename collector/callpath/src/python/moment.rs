//! The Python frames of an interrupted moment.
//!
//! A signal comes between any two instructions of the interpreter. So memory is read through the kernel, which
//! refuses what is not there: [`note`] calls nothing else. What a chain of code objects was is read when the
//! moment is unwound, later: one that was freed meanwhile is recognised by its type. Lines are those where
//! functions begin.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::layout::Layout;
use super::{Interpreter, symbol, text};

/// Most frames that are noted.
pub const MOST: usize = 16;

/// Bytes of a code object that are read, and of a string.
const CODE: usize = 192;
const STRING: usize = 512;
/// Where an object has its type.
const TYPE: usize = 8;

/// What is known of the interpreter.
struct Known {
    layout: &'static Layout,
    this_thread: unsafe extern "C" fn() -> *const c_void,
    /// Types of code objects and of strings.
    code: u64,
    string: u64,
    /// An address in the interpreter's module.
    inside: u64,
}

static KNOWN: OnceLock<Option<Known>> = OnceLock::new();

/// Finds the interpreter; returns whether there is one whose frames can be noted.
pub fn prepare() -> bool {
    KNOWN.get_or_init(find).is_some()
}

fn known() -> Option<&'static Known> {
    KNOWN.get()?.as_ref()
}

fn find() -> Option<Known> {
    let interpreter = Interpreter::find()?;
    Some(Known {
        layout: interpreter.layout,
        this_thread: interpreter.this_thread,
        code: symbol(c"PyCode_Type")?.addr() as u64,
        string: symbol(c"PyUnicode_Type")?.addr() as u64,
        inside: symbol(c"Py_GetVersion")?.addr() as u64,
    })
}

/// An address in the interpreter's module.
pub(crate) fn inside() -> Option<u64> {
    known().map(|known| known.inside)
}

/// Copies memory of this process; returns how many bytes there were.
fn peek(from: u64, to: &mut [MaybeUninit<u8>]) -> usize {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(from as usize),
        iov_len: to.len(),
    };
    // SAFETY: a system call that fails where there is no memory, and the calling thread's errno.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let read = libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0);
        *errno = before;
        read.max(0) as usize
    }
}

/// Bytes of this process, as far as they are there.
fn bytes<const SIZE: usize>(from: u64) -> ([u8; SIZE], usize) {
    let mut copy = [0; SIZE];
    // SAFETY: initialised bytes, which stay so.
    let to = unsafe { std::slice::from_raw_parts_mut(copy.as_mut_ptr().cast(), SIZE) };
    let read = peek(from, to);
    (copy, read)
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let word = bytes.get(offset..offset + 8)?;
    Some(u64::from_ne_bytes(word.try_into().ok()?))
}

fn word_at(address: u64) -> Option<u64> {
    let (word, read) = bytes::<8>(address);
    (read == 8).then(|| u64::from_ne_bytes(word))
}

/// Notes the calling thread's Python frames, innermost first: the addresses of their code objects. Returns how
/// many there are. A signal handler may call it, after [`prepare`].
pub fn note(to: &mut [u64; MOST]) -> usize {
    note_frames(to).unwrap_or(0)
}

fn note_frames(to: &mut [u64; MOST]) -> Option<usize> {
    /// Bytes of a frame in which all fields that are read lie.
    const FRAME: usize = 80;
    let known = known()?;
    let layout = known.layout;
    // SAFETY: reads what belongs to the thread; null for threads that the interpreter does not know.
    let thread = unsafe { (known.this_thread)() }.addr() as u64;
    if thread == 0 {
        return None;
    }
    let mut frame = word_at(thread + layout.thread_frame as u64)?;
    if let Some(offset) = layout.cframe_frame.filter(|_| frame != 0) {
        frame = word_at(frame + offset as u64)?;
    }
    let mut count = 0;
    // Frames of the interpreter itself are between others.
    for _ in 0..2 * MOST {
        if frame == 0 || count == MOST {
            break;
        }
        let (copy, read) = bytes::<FRAME>(frame);
        let copy = &copy[..read];
        let own = layout.owner;
        let internal = own.is_some_and(|(offset, value)| copy.get(offset) == Some(&value));
        let code = word(copy, layout.code)?;
        if !internal && code != 0 {
            to[count] = code;
            count += 1;
        }
        frame = word(copy, layout.previous)?;
    }
    Some(count)
}

/// A function as its code object tells: file, name, and first line. `None` if that is none any more.
pub(crate) fn function(code: u64) -> Option<(String, String, u32)> {
    let known = known()?;
    let (copy, read) = bytes::<CODE>(code);
    let copy = &copy[..read];
    if word(copy, TYPE)? != known.code {
        return None;
    }
    let text = |offset: usize| string(word(copy, offset)?, known);
    let line = copy.get(known.layout.first_line..known.layout.first_line + 4)?;
    let line = i32::from_ne_bytes(line.try_into().ok()?);
    Some((
        text(known.layout.file)?,
        text(known.layout.name)?,
        u32::try_from(line).unwrap_or(0),
    ))
}

fn string(object: u64, known: &Known) -> Option<String> {
    let (copy, read) = bytes::<STRING>(object);
    if word(&copy[..read], TYPE)? != known.string {
        return None;
    }
    text::copied(&copy[..read], known.layout)
}
