//! Tests about time on busy machines.
//!
//! The expected times of a test assume that ranks run whenever they can. If a run's times are off,
//! the test is repeated with longer delays in its program. Disturbances by the machine do not grow
//! with the delays, errors of the product do. The number of repeats depends on what else used the
//! machine during the recording. [`Watch`] measures that beside the run, never from the product's
//! results.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The variable that tells programs the factor for all their delays.
pub const SCALE: &str = "SCHEDULE_SCALE";

/// The factors of successive attempts; the last one serves for all further ones.
const SCALES: [f64; 3] = [1.0, 2.0, 4.0];

/// Most attempts with wrong times on an undisturbed machine: then the product is at fault.
const QUIET: u32 = 3;

/// Most attempts of any kind.
const MOST: u32 = 6;

/// Processors that others may use in an undisturbed run.
const PROCESSORS_OF_OTHERS: f64 = 0.1;

/// Latest wake-up of a thread in an undisturbed run.
const LATE: Duration = Duration::from_millis(10);

/// Interval between checks for late wake-ups.
const LOOKS: Duration = Duration::from_millis(2);

thread_local! {
    /// The factor for the test of this thread.
    static SCALE_NOW: Cell<f64> = const { Cell::new(1.0) };
    static MET: Cell<Disturbance> = const { Cell::new(Disturbance::NONE) };
}

/// The factor for all delays of programs in this attempt of the thread's test.
pub fn scale() -> f64 {
    SCALE_NOW.get()
}

/// Disturbances of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// Processors that others used meanwhile, or that a host of this machine kept, on average.
    pub others: f64,
    /// The latest wake-up of a thread.
    pub late: Duration,
}

impl Disturbance {
    const NONE: Disturbance = Disturbance {
        others: 0.0,
        late: Duration::ZERO,
    };

    /// Whether it exceeds that of an idle machine.
    pub fn matters(&self) -> bool {
        self.others > PROCESSORS_OF_OTHERS || self.late > LATE
    }

    /// The worse of both.
    fn or(self, other: Disturbance) -> Disturbance {
        Disturbance {
            others: self.others.max(other.others),
            late: self.late.max(other.late),
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.matters() {
            "disturbed"
        } else {
            "not disturbed"
        };
        let ms = self.late.as_secs_f64() * 1e3;
        write!(
            f,
            "{how}: others used {:.2} processors, a thread ran {ms:.1} ms late",
            self.others
        )
    }
}

/// Watches the machine while a program is recorded.
pub struct Watch {
    begin: Instant,
    busy: Option<Duration>,
    end: Arc<AtomicBool>,
    late: JoinHandle<Duration>,
}

impl Watch {
    /// Begins.
    pub fn begin() -> Watch {
        let end = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&end);
        let look = move || {
            let mut late = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                thread::sleep(LOOKS);
                late = late.max(asleep.elapsed().saturating_sub(LOOKS));
            }
            late
        };
        Watch {
            begin: Instant::now(),
            busy: busy(),
            end,
            late: thread::spawn(look),
        }
    }

    /// Ends, and notes the disturbance of the current attempt. `own` is the processor time of the
    /// run itself, if known.
    pub fn end(self, own: Option<Duration>) {
        let wall = self.begin.elapsed().as_secs_f64();
        let used = self
            .busy
            .zip(busy())
            .map(|(from, to)| to.saturating_sub(from));
        let others = used.zip(own).map(|(used, own)| used.saturating_sub(own));
        self.end.store(true, Ordering::Relaxed);
        let late = self.late.join().expect("looks at the machine");
        let met = Disturbance {
            others: others.map_or(0.0, |others| others.as_secs_f64() / wall),
            late,
        };
        MET.set(MET.get().or(met));
    }
}

/// Time that all processors were not idle, as far as the system tells. Who is nice has what others leave.
fn busy() -> Option<Duration> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let mut words = text.lines().next()?.split_whitespace().skip(1);
    let mut next = || words.next()?.parse::<u64>().ok();
    let (user, _nice, system) = (next()?, next()?, next()?);
    let _idle_and_waiting = (next()?, next()?);
    let rest = next()? + next()? + next().unwrap_or(0);
    // SAFETY: never fails for this name.
    let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let ticks = user + system + rest;
    Some(Duration::from_secs_f64(ticks as f64 / ticks_per_s))
}

/// Why an attempt failed.
#[derive(Debug)]
pub struct Off {
    /// Whether only times are off, so that a busy machine may be the reason.
    pub is_time: bool,
    /// The differences.
    pub text: String,
}

impl From<String> for Off {
    fn from(text: String) -> Off {
        Off {
            is_time: true,
            text,
        }
    }
}

/// One of several attempts; the first is 1.
pub type Number = u32;

/// Whether to repeat the test after a failed attempt.
fn is_repeated(off: &Off, met: Disturbance, number: Number, quiet: Number) -> bool {
    (off.is_time || met.matters()) && number < MOST && (quiet < QUIET || met.matters())
}

/// Repeats a test about time until it passes, see above. [`scale`] is the factor of its delays,
/// which [`crate::report::in_schedule_s`] takes out of a report.
///
/// # Panics
/// If it never passes, or fails for another reason than its times.
#[track_caller]
pub fn until_right<T>(about: &str, attempt: impl FnMut(Number) -> Result<T, Off>) -> T {
    repeat(about, &SCALES, attempt)
}

/// The same with the program's normal delays.
///
/// # Panics
/// As above.
#[track_caller]
pub fn until_undisturbed<T>(about: &str, attempt: impl FnMut(Number) -> Result<T, Off>) -> T {
    repeat(about, &SCALES[..1], attempt)
}

#[track_caller]
fn repeat<T>(about: &str, scales: &[f64], mut attempt: impl FnMut(Number) -> Result<T, Off>) -> T {
    let mut quiet = 0;
    for number in 1.. {
        let at = (number as usize).min(scales.len()) - 1;
        SCALE_NOW.set(scales[at]);
        MET.set(Disturbance::NONE);
        let result = attempt(number);
        SCALE_NOW.set(1.0);
        let off = match result {
            Ok(right) => return right,
            Err(off) => off,
        };
        let met = MET.get();
        quiet += u32::from(!met.matters());
        let text = format!("{about}, attempt {number}, {met}:\n  {}", off.text);
        assert!(is_repeated(&off, met, number, quiet), "{text}");
        eprintln!("{text}");
        // Written directly: tests that pass hide what they print.
        let _ = writeln!(io::stderr(), "REPEATED {about}, attempt {number}, {met}");
        thread::sleep(Duration::from_secs(u64::from(number)));
    }
    unreachable!("the last attempt returns or fails")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn off(is_time: bool) -> Off {
        Off {
            is_time,
            text: String::new(),
        }
    }

    #[test]
    fn a_product_that_is_wrong_fails() {
        let quiet = Disturbance::NONE;
        let disturbed = Disturbance {
            others: 2.0,
            ..quiet
        };
        // Wrong facts fail at once without a disturbance, wrong times after some attempts, both in
        // the end.
        assert!(!is_repeated(&off(false), quiet, 1, 1));
        assert!(is_repeated(&off(true), quiet, 1, 1));
        assert!(!is_repeated(&off(true), quiet, QUIET, QUIET));
        for is_time in [false, true] {
            assert!(is_repeated(&off(is_time), disturbed, 1, 0));
            assert!(is_repeated(&off(is_time), disturbed, MOST - 1, 0));
            assert!(!is_repeated(&off(is_time), disturbed, MOST, 0));
        }
    }

    #[test]
    fn others_are_told_from_the_run_itself() {
        let spin = || {
            let loops = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
            Command::new("sh").args(["-c", loops]).status().expect("sh")
        };
        let met = |own: Option<Duration>| {
            let watch = Watch::begin();
            let from = busy().expect("/proc/stat");
            assert!(spin().success());
            let used = busy().expect("/proc/stat") - from;
            MET.set(Disturbance::NONE);
            watch.end(own.or(Some(used)));
            MET.get()
        };
        // Who is nice does not count as others.
        // SAFETY: about this process.
        let is_nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) } > 0;
        assert!(is_nice || met(Some(Duration::ZERO)).others > 0.3);
        assert!(met(None).others < 0.3);
    }

    #[test]
    fn delays_grow_from_attempt_to_attempt() {
        let mut scales = Vec::new();
        let right = until_right("a test", |number| {
            scales.push(scale());
            match number {
                3 => Ok(number),
                _ => Err("off".to_owned().into()),
            }
        });
        assert_eq!((right, scale()), (3, 1.0));
        assert_eq!(scales, SCALES);
    }
}
