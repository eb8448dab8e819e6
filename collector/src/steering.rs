//! What the user wants of the recording while it goes on: `laggard steer` writes it into the control block
//! of the trace directory.
//!
//! *When.* A thread looks at it where it reads the use of its processor anyway: after a long stretch between two calls, after
//! a long call, or after any when the last reading is a millisecond old ([`LOOK`] where that use is not told). So calls pay nothing
//! for it. What is wanted holds from the next call on, and is a record of each thread that has seen it
//! ([`crate::stream`]).
//!
//! *No harm.* The block is only read, and refused if somebody else may have written it. If it is cut off
//! or makes no sense, all goes on as it was.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use laggard_trace::calls::NUMBERS;
use laggard_trace::{CONTROL_FILE, ControlSlot, Detail, FileHeader, Wish};

use crate::run;
use crate::thread::{STATE, state};

/// Threads that do not read the use of their processor look so seldom.
pub const LOOK: Duration = Duration::from_millis(10);

/// Words of a set of numbers of calls.
const WORDS: usize = NUMBERS / 64;

static SLOT: OnceLock<ControlSlot> = OnceLock::new();
/// Whether recording began paused.
static PAUSED: OnceLock<bool> = OnceLock::new();
/// What the process does now of what concerns all of its threads, and the number of that wish.
static DONE: Mutex<Option<(u32, Wish)>> = Mutex::new(None);
/// The number of the last wish that was refused; threads see it one after the other.
static REFUSED: AtomicU32 = AtomicU32::new(0);
static LEFT_OUT: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Finds the slot of this rank; makes the block if there is none.
///
/// # Errors
/// This rank cannot be steered; the reason.
pub fn begin(directory: &Path, header: &FileHeader, paused: bool) -> Result<(), String> {
    let path = directory.join(CONTROL_FILE);
    let draft = directory.join(format!(".{CONTROL_FILE}.{}", crate::claim::unique()));
    let opened = || ControlSlot::open(&path, header.run_id, header.rank);
    let is_missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let slot = opened().or_else(|error| match is_missing(&error) {
        true => laggard_trace::create_control(&path, &draft, header.run_id, header.ranks)
            .and_then(|()| opened()),
        false => Err(error),
    });
    let slot = slot.map_err(|error| format!("{}: {error}", path.display()))?;
    let _ = PAUSED.set(paused);
    let _ = SLOT.set(slot);
    Ok(())
}

/// Whether this rank can be steered.
pub fn is_on() -> bool {
    SLOT.get().is_some()
}

/// What is wanted now, if that is another number than the one `seen`.
///
/// # Errors
/// It makes no sense, or the block is cut off; the number of that.
pub fn news(seen: u32) -> Option<Result<(u32, Wish), u32>> {
    /// Of a block that is cut off. Numbers of wishes are even.
    const CUT_OFF: u32 = u32::MAX;
    let slot = SLOT.get().filter(|_| seen != CUT_OFF)?;
    let Some(number) = slot.sequence() else {
        return Some(Err(CUT_OFF));
    };
    if number == seen {
        return None;
    }
    // Whoever steers never writes 0: the file is shorter than it was.
    if number == 0 {
        return Some(Err(CUT_OFF));
    }
    let wish = slot.wish(number)?;
    Some(match wish {
        Ok(wish) => Ok((number, wish)),
        // Memory in place of the file is all zero.
        Err(()) if slot.sequence().is_none() => Err(CUT_OFF),
        Err(()) => Err(number),
    })
}

/// Whether the calling thread is the first one that refuses the wish with this number.
pub fn is_first_refused(number: u32) -> bool {
    REFUSED.swap(number, Ordering::Relaxed) != number
}

/// Does what concerns the whole process: the first thread that sees a wish does it. A pause that the
/// program ended since stays ended. Returns whether it is done; if not, another wish came meanwhile, or another
/// thread is at it.
pub fn apply(number: u32, wish: &Wish) -> bool {
    let Ok(mut done) = DONE.try_lock() else {
        return false;
    };
    if SLOT.get().and_then(ControlSlot::sequence) != Some(number) {
        return false;
    }
    let (last, before) = done.take().unwrap_or_default();
    if last == number {
        *done = Some((last, before));
        return true;
    }
    if (wish.detail, wish.said) != (before.detail, before.said) {
        let started = *PAUSED.get().unwrap_or(&false);
        run::set_paused(match wish.detail {
            Some(detail) => detail == Detail::Paused,
            None => started,
        });
        run::set(state::PROFILE, wish.detail == Some(Detail::Profile));
    }
    for (at, word) in LEFT_OUT.iter().enumerate() {
        let numbers = wish.left_out.iter().map(|&number| usize::from(number));
        let of_word = numbers.filter(|number| number / 64 == at);
        let bits = of_word.fold(0, |bits, number| bits | 1 << (number % 64));
        word.store(bits, Ordering::Relaxed);
    }
    run::set(state::LEFT_OUT, !wish.left_out.is_empty());
    *done = Some((number, wish.clone()));
    true
}

/// Whether the user wants to leave calls with this number out.
pub fn is_left_out(number: u16) -> bool {
    let word = LEFT_OUT.get(usize::from(number) / 64);
    STATE.load(Ordering::Relaxed) & state::LEFT_OUT != 0
        && word.is_some_and(|word| word.load(Ordering::Relaxed) >> (number % 64) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use laggard_trace::Control;

    use super::*;

    /// A thread that has read a wish finds that another one came meanwhile.
    #[test]
    fn an_older_wish_never_wins() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut header = FileHeader::new();
        header.ranks = 1;
        begin(directory.path(), &header, false).expect("a block");
        let control = Control::open(directory.path()).expect("the block");
        let [first, second] = [1u16, 2].map(|number| Wish {
            left_out: vec![number],
            ..Wish::default()
        });
        control.set(0, &first).expect("written");
        let (older, wish) = news(0).expect("news").expect("a wish");
        assert_eq!(wish, first);
        control.set(0, &second).expect("written");
        assert!(!apply(older, &wish));
        let (newer, wish) = news(0).expect("news").expect("a wish");
        assert!(apply(newer, &wish));
        // Neither after it.
        assert!(!apply(older, &first));
        let done = DONE.lock().expect("nobody panicked");
        assert_eq!(*done, Some((newer, second)));
        let bit = |number: u16| {
            let word = LEFT_OUT[usize::from(number) / 64].load(Ordering::Relaxed);
            word >> (number % 64) & 1
        };
        assert_eq!([bit(1), bit(2)], [0, 1]);
    }
}
