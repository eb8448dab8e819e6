//! The frames of a Python program, read without the GIL.
//!
//! Bindings such as mpi4py release the GIL around a call. The calling thread's frames still
//! stay as they are until the call returns: only the thread itself runs and drops them. The
//! code objects that they refer to, and the names in these, never change. All data read here is
//! therefore stable during the call.
//!
//! A chain of frames is recognised by a 64-bit hash. For each frame it covers the code object,
//! the instruction, and the code's first line, file and name objects. The last three guard
//! against a freed code object whose address is reused: only one with the same line and the
//! same two objects would be mistaken for it.

mod layout;
pub mod moment;
mod text;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hash::BuildHasherDefault;

use crate::paths::{ConstMap, Frame, PathId, PathTable};
use layout::{Instruction, Layout};

/// Frames read beyond the wanted depth, because frames of the import machinery are dropped.
const SLACK: usize = 24;

/// Chains remembered at a time.
const MAX_KNOWN: usize = 1 << 16;

/// The interpreter of the process.
pub(crate) struct Interpreter {
    layout: &'static Layout,
    this_thread: unsafe extern "C" fn() -> *const c_void,
    line: unsafe extern "C" fn(*const c_void, c_int) -> c_int,
    known: ConstMap<u64, PathId>,
}

/// The calling thread's chain of frames.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    innermost: u64,
    hash: u64,
}

/// # Safety
/// A readable, initialised `T` lies `offset` bytes after `base`.
#[inline(always)]
unsafe fn read<T: Copy>(base: u64, offset: usize) -> T {
    // SAFETY: as the caller states.
    unsafe { (base as *const u8).add(offset).cast::<T>().read_unaligned() }
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

impl Interpreter {
    /// The interpreter, if the process has one of a supported version.
    pub(crate) fn find() -> Option<Self> {
        let this_thread = symbol(c"PyGILState_GetThisThreadState")?;
        let line = symbol(c"PyCode_Addr2Line")?;
        let version = symbol(c"Py_GetVersion")?;
        if symbol(c"_Py_PrintReferences").is_some() {
            // Built with Py_TRACE_REFS: every object has a longer header.
            return None;
        }
        // SAFETY: CPython's documented functions, with their signatures; both
        // may be called at any time, the version is a static string.
        unsafe {
            let version: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(version);
            let version = CStr::from_ptr(version());
            Some(Self {
                layout: Layout::of(version.to_str().ok()?)?,
                this_thread: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn() -> *const c_void,
                >(this_thread),
                line: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_void, c_int) -> c_int,
                >(line),
                known: HashMap::with_hasher(BuildHasherDefault::new()),
            })
        }
    }

    /// Forgets all known chains.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// The calling thread's frames; `None` if it is not running Python code.
    pub(crate) fn chain(&self, depth: usize) -> Option<Chain> {
        // SAFETY: needs no GIL; null for threads that the interpreter does not know, and
        // outside its lifetime.
        let thread = unsafe { (self.this_thread)() } as u64;
        if thread == 0 {
            return None;
        }
        // SAFETY: the calling thread's own state, in the layout of its version.
        let innermost = unsafe {
            let frame = read::<u64>(thread, self.layout.thread_frame);
            match self.layout.cframe_frame {
                Some(_) if frame == 0 => 0,
                Some(offset) => read::<u64>(frame, offset),
                None => frame,
            }
        };
        if innermost == 0 {
            return None;
        }
        let mut hash = depth as u64;
        let layout = self.layout;
        for (frame, code) in self.frames(innermost, depth) {
            // SAFETY: a live frame and its code object.
            unsafe {
                let instruction = match layout.instruction_is {
                    Instruction::Number(_) => u64::from(read::<u32>(frame, layout.instruction)),
                    Instruction::Pointer(_) => read::<u64>(frame, layout.instruction),
                };
                hash = mix(hash ^ code, instruction);
                hash = mix(
                    hash ^ read::<u64>(code, layout.file),
                    read::<u64>(code, layout.name)
                        ^ u64::from(read::<u32>(code, layout.first_line)),
                );
            }
        }
        Some(Chain { innermost, hash })
    }

    /// The path of a known chain.
    pub(crate) fn find_path(&self, chain: Chain) -> Option<PathId> {
        self.known.get(&chain.hash).copied()
    }

    /// Resolves a chain and remembers its path.
    pub(crate) fn resolve(&mut self, chain: Chain, depth: usize, paths: &mut PathTable) -> PathId {
        let mut frames = Vec::with_capacity(depth.min(64));
        for (frame, code) in self.frames(chain.innermost, depth) {
            // SAFETY: a live code object and its strings.
            let (file, name) = unsafe {
                (
                    text::text(read(code, self.layout.file), self.layout),
                    text::text(read(code, self.layout.name), self.layout),
                )
            };
            if file.starts_with("<frozen importlib") {
                continue;
            }
            frames.push(Frame::Source {
                file: paths.intern_str(&file),
                function: paths.intern_str(&name),
                // SAFETY: a live frame and its code object.
                line: unsafe { self.line_of(frame, code) },
            });
            if frames.len() == depth {
                break;
            }
        }
        let path = paths.intern(&frames);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(chain.hash, path);
        path
    }

    /// # Safety
    /// A live frame and its code object.
    unsafe fn line_of(&self, frame: u64, code: u64) -> u32 {
        let layout = self.layout;
        // SAFETY: as the caller states. `PyCode_Addr2Line` decodes the code's
        // line table into locals; it neither allocates nor counts references.
        unsafe {
            let offset = match layout.instruction_is {
                Instruction::Number(size) => {
                    read::<i32>(frame, layout.instruction).wrapping_mul(size)
                }
                Instruction::Pointer(start) => {
                    let at = read::<u64>(frame, layout.instruction);
                    at.wrapping_sub(code + start as u64) as i32
                }
            };
            u32::try_from((self.line)(code as *const c_void, offset)).unwrap_or(0)
        }
    }

    /// Frames with their code objects, from `innermost` outwards.
    fn frames(&self, innermost: u64, depth: usize) -> impl Iterator<Item = (u64, u64)> + use<> {
        let layout = self.layout;
        let mut next = innermost;
        std::iter::from_fn(move || {
            while next != 0 {
                let frame = next;
                // SAFETY: frames of the calling thread, all live.
                unsafe {
                    next = read(frame, layout.previous);
                    let internal = layout
                        .owner
                        .is_some_and(|(offset, value)| read::<u8>(frame, offset) == value);
                    let code = read::<u64>(frame, layout.code);
                    if !internal && code != 0 {
                        return Some((frame, code));
                    }
                }
            }
            None
        })
        .take(depth.saturating_add(SLACK))
    }
}

/// Both halves of the product of the inputs, neither of which may be zero.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
}
