//! How often a trace that grows is opened and analysed.
//!
//! Opening takes as long as there is something new, an analysis as long as the trace is large. Both are done
//! the less often the longer they take: of the time of one core opening has at most a fifth, and analyses
//! a ninth.

use std::time::{Duration, Instant};

/// How often agents look.
pub const LOOK: Duration = Duration::from_millis(500);
/// Least time between two openings.
const OPEN: Duration = Duration::from_secs(1);
/// … and between two analyses.
const ANALYZE: Duration = Duration::from_secs(2);
/// Times that an opening took until the next one.
const OPENINGS: u32 = 4;
/// … and an analysis.
const ANALYSES: u32 = 8;
/// Where nothing goes on, the trace is opened so seldom.
const IDLE: Duration = Duration::from_secs(10);
/// How long ranks that have no trace are waited for.
const LATE: Duration = Duration::from_secs(5);

/// When what was done, and how long it took.
#[derive(Default)]
pub struct Pace {
    opened: Option<(Instant, Duration)>,
    analyzed: Option<(Instant, Duration)>,
    /// Whether it was analysed since everybody stands still.
    knows_standing: bool,
    /// Since when nothing is written any more.
    over: Option<Instant>,
}

impl Pace {
    /// An opening has just ended, maybe with an analysis.
    pub fn took(&mut self, time: Duration, analyzed: bool) {
        let now = Some((Instant::now(), time));
        match analyzed {
            true => (self.opened, self.analyzed) = (now, now),
            false => self.opened = now,
        }
    }

    /// Whether the run is over, if nothing is written any more.
    pub fn is_over(&mut self, is_quiet: bool, has_all: bool) -> bool {
        if !is_quiet {
            self.over = None;
            return false;
        }
        let since = self.over.get_or_insert_with(Instant::now);
        has_all || since.elapsed() >= LATE
    }

    /// What to do now; `stands` if all locations have been in the same calls for some time.
    pub(super) fn next(&mut self, stands: bool) -> super::Step {
        if !stands {
            self.knows_standing = false;
        } else if !self.knows_standing {
            self.knows_standing = true;
            return super::Step::Analyze;
        }
        let is_due = |last: Option<(Instant, Duration)>, times, least: Duration| {
            last.is_none_or(|(end, took)| end.elapsed() >= least.max(took * times))
        };
        let least = if stands { IDLE } else { OPEN };
        match is_due(self.opened, OPENINGS, least) {
            true if !stands && is_due(self.analyzed, ANALYSES, ANALYZE) => super::Step::Analyze,
            true => super::Step::Open,
            false => super::Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Step;
    use super::*;

    #[test]
    fn what_takes_long_is_done_seldom() {
        let mut pace = Pace::default();
        assert_eq!(pace.next(false), Step::Analyze);
        pace.took(Duration::ZERO, true);
        assert_eq!(pace.next(false), Step::Wait);
        let ago = |s| Instant::now().checked_sub(Duration::from_secs(s)).unwrap();
        let took = Duration::from_secs(1);
        pace.opened = Some((ago(3), took));
        assert_eq!(pace.next(false), Step::Wait);
        pace.opened = Some((ago(5), took));
        pace.analyzed = Some((ago(7), took));
        assert_eq!(pace.next(false), Step::Open);
        pace.analyzed = Some((ago(9), took));
        assert_eq!(pace.next(false), Step::Analyze);
    }

    #[test]
    fn who_stands_still_is_analysed_once() {
        let mut pace = Pace::default();
        pace.took(Duration::from_secs(1000), true);
        assert_eq!(pace.next(false), Step::Wait);
        assert_eq!(pace.next(true), Step::Analyze);
        assert_eq!(pace.next(true), Step::Wait);
        assert_eq!(pace.next(false), Step::Wait);
        assert_eq!(pace.next(true), Step::Analyze);
    }

    #[test]
    fn ranks_that_come_late_are_waited_for() {
        let mut pace = Pace::default();
        assert!(!pace.is_over(true, false));
        assert!(pace.is_over(true, true));
        assert!(!pace.is_over(false, true));
    }
}
