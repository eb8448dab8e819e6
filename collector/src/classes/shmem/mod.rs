//! The meaning of OpenSHMEM functions: one type for each class of their table.

mod environment;
mod group;
mod memory;

pub use environment::*;
pub use group::*;
pub use memory::*;

use std::ffi::c_void;

use super::Operation;
use crate::call::Call;

/// An argument or result of an OpenSHMEM function as one word: integers with their sign,
/// floating-point numbers as their bits, addresses.
pub trait Word {
    fn word(self) -> u64;
}

macro_rules! words {
    ($($t:ty)*) => {
        $(impl Word for $t {
            #[inline(always)]
            fn word(self) -> u64 {
                self as i64 as u64
            }
        })*
    };
}

words! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

impl Word for () {
    fn word(self) -> u64 {
        0
    }
}

impl Word for f32 {
    fn word(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Word for f64 {
    fn word(self) -> u64 {
        self.to_bits()
    }
}

impl Word for *mut c_void {
    fn word(self) -> u64 {
        self as u64
    }
}

/// `count` times `bytes`; 0 for a count that makes no sense.
#[inline(always)]
pub fn each<N: TryInto<usize>>(bytes: usize, count: N) -> usize {
    bytes.saturating_mul(count.try_into().unwrap_or(0))
}

pub struct Plain;

/// A call that moves no data and synchronises with no PE.
pub fn plain() -> Plain {
    Plain
}

impl Operation for Plain {
    #[inline(never)]
    fn after(&mut self, call: &mut Call) {
        let raw = call.raw();
        call.record_unless_paused(&raw);
    }
}
