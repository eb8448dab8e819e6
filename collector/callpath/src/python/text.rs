//! The text of Python's string objects, without the interpreter's help.
//!
//! `PyUnicode_AsUTF8` may store its result in the object, which needs the GIL. Reading needs no
//! GIL, because strings do not change.

use super::layout::Layout;
use super::read;

const LENGTH: usize = 16;
const STATE: usize = 32;
const LONGEST: usize = 4096;

/// The text of a copied `str` object, as far as it was copied. `None` if it has another form.
pub(super) fn copied(bytes: &[u8], layout: &Layout) -> Option<String> {
    let number = |offset: usize, size: usize| {
        let mut number = [0; 8];
        number[..size].copy_from_slice(bytes.get(offset..offset + size)?);
        Some(u64::from_le_bytes(number))
    };
    let (length, state) = (number(LENGTH, 8)? as usize, number(STATE, 4)?);
    let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
    let size = kind as usize;
    if compact == 0 || ![1, 2, 4].contains(&size) {
        return None;
    }
    let data = if ascii == 1 {
        layout.ascii
    } else {
        layout.wide
    };
    let character = |index: usize| number(data + size * index, size);
    let characters = (0..length.min(LONGEST)).map_while(character);
    let text = characters.map(|code| {
        let code = char::from_u32(code as u32);
        code.unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    Some(text.collect())
}

/// The text of the `str` object at `object`, at most [`LONGEST`] characters. Empty if it has a
/// form that Python's compiler does not produce.
///
/// # Safety
/// `object` is null or a live `str` of an interpreter with this layout.
pub(super) unsafe fn text(object: u64, layout: &Layout) -> String {
    if object == 0 {
        return String::new();
    }
    // SAFETY: fields of every string object.
    let (length, state) = unsafe {
        (
            read::<u64>(object, LENGTH) as usize,
            read::<u32>(object, STATE),
        )
    };
    // Bits: interned 2, kind 3 (bytes per character), compact 1, ASCII 1.
    let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
    if compact == 0 {
        return String::new();
    }
    let data = object
        + if ascii == 1 {
            layout.ascii
        } else {
            layout.wide
        } as u64;
    let character = |index: usize| {
        // SAFETY: a compact string's characters follow its header.
        unsafe {
            match kind {
                1 => u32::from(read::<u8>(data, index)),
                2 => u32::from(read::<u16>(data, 2 * index)),
                _ => read::<u32>(data, 4 * index),
            }
        }
    };
    (0..length.min(LONGEST))
        .map(|index| char::from_u32(character(index)).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
