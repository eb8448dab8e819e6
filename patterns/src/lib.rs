//! The pattern catalogue: what is detected, how its cost is defined, and possible remedies.
//!
//! *Purpose.* A pattern is one row ([`Pattern`]) and one pure function that gives its severity. The
//! rows feed the detector, the report and the manual, so the three cannot disagree.
//!
//! *Data flow.* The analysis engine matches instances and calls the functions in [`two_sided`],
//! [`group`] and [`window`] with times in ns on the global clock. An operation has patterns of its
//! shape only ([`of_shape`]). [`confidence`] says how sure the result is.
//!
//! *Constraints.* Every severity is between 0 and the duration of the operation that it is charged
//! to, for any input; of a wait by polling ([`polled`]), that of all looks and the time between. Of traces only the shapes of calls are known here; no function of a pattern
//! allocates.
//!
//! *Hints* are data: [`rules`] reads them, from `rules.toml`, `advice.toml` and users' files, and
//! says which hold for a finding.
//!
//! The definitions follow the usage of KOJAK/EXPERT, Scalasca and PPW, so that totals can be
//! compared tool against tool.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod catalogue;
mod confidence;
mod explain;
pub mod group;
pub mod one_sided;
mod pattern;
pub mod polled;
pub mod progress;
pub mod rules;
mod threads;
pub mod two_sided;
mod unexplained;
pub mod window;
mod wrapped;

pub use catalogue::{GROUPS, LostMetric, MetricGroup, PatternId, lost_metrics, of_shape};
pub use confidence::{Evidence, MISSING_FACTOR, TRUNCATED_FACTOR, confidence};
pub use explain::explain;
pub use pattern::{Late, Part, Pattern, Unit};

/// The time that one location spent in one operation: ns on the global clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// When the program entered the operation.
    pub enter: i64,
    /// When it left.
    pub leave: i64,
}

impl Interval {
    /// An interval from `enter` to `leave`.
    #[inline]
    pub fn new(enter: i64, leave: i64) -> Self {
        Interval { enter, leave }
    }

    /// ns inside; 0 if the interval ends before it begins (clock error).
    #[inline]
    pub fn duration(self) -> i64 {
        self.leave.saturating_sub(self.enter).max(0)
    }

    /// The part of the interval before `moment`.
    #[inline]
    pub(crate) fn before(self, moment: i64) -> i64 {
        self.clip(moment.saturating_sub(self.enter))
    }

    /// `severity` clamped to 0 … the operation's duration.
    #[inline]
    pub(crate) fn clip(self, severity: i64) -> i64 {
        severity.clamp(0, self.duration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_that_ends_before_it_begins_costs_nothing() {
        let backwards = Interval::new(50, 10);
        assert_eq!(backwards.duration(), 0);
        assert_eq!(backwards.before(40), 0);
        assert_eq!(Interval::new(i64::MIN, i64::MAX).duration(), i64::MAX);
    }
}
