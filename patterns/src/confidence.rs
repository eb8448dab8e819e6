//! How sure a finding is.

/// Factor on the confidence of a finding that rests on a truncated trace.
pub const TRUNCATED_FACTOR: f64 = 0.8;
/// Factor on the confidence of a finding about a group with a member that has no trace: that member
/// may have been the late one.
pub const MISSING_FACTOR: f64 = 0.5;

/// Factor on the confidence of a finding about a loop of the program's own. The value that it waits
/// for is unknown, so its cause follows from times.
pub const INFERRED_FACTOR: f64 = 0.8;

/// The evidence for a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Error of the clock comparison behind it, ns; 0 where both parties share a clock.
    pub clock_error_ns: i64,
    /// Whether a trace involved is truncated.
    pub truncated: bool,
    /// Whether a member of the group that it is about has no trace.
    pub members_missing: bool,
    /// Whether its cause is inferred from times alone.
    pub inferred: bool,
}

/// Confidence in a finding, 0..=1.
///
/// With `s` the severity of one instance (for a finding over many, their mean) and
/// `e` the clock error, both in ns:
///
/// ```text
/// confidence = s / (s + e)            · 0.8 if a trace involved is truncated
///                                     · 0.5 if a member of the group has none
///                                     · 0.8 if the cause is inferred from times
/// ```
///
/// 1 for exact matching on one clock, 1/2 where the clock error is as large as
/// the wait, towards 0 where it is larger. A severity of 0 on one clock is certain.
pub fn confidence(severity_ns: i64, evidence: &Evidence) -> f64 {
    let severity = severity_ns.max(0) as f64;
    let error = evidence.clock_error_ns.max(0) as f64;
    let exactness = if error == 0.0 {
        1.0
    } else {
        severity / (severity + error)
    };
    let factor = |applies, factor| if applies { factor } else { 1.0 };
    exactness
        * factor(evidence.truncated, TRUNCATED_FACTOR)
        * factor(evidence.members_missing, MISSING_FACTOR)
        * factor(evidence.inferred, INFERRED_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(clock_error_ns: i64) -> Evidence {
        Evidence {
            clock_error_ns,
            ..Evidence::default()
        }
    }

    #[test]
    fn falls_with_the_clock_error() {
        assert_eq!(confidence(1_000, &error(0)), 1.0);
        assert_eq!(confidence(0, &error(0)), 1.0);
        assert_eq!(confidence(1_000, &error(1_000)), 0.5);
        assert_eq!(confidence(0, &error(1_000)), 0.0);
        assert!(confidence(50_000_000, &error(1_000)) > 0.999);
    }

    #[test]
    fn falls_with_what_is_not_known() {
        let truncated = Evidence {
            truncated: true,
            ..Evidence::default()
        };
        let both = Evidence {
            members_missing: true,
            ..truncated
        };
        assert_eq!(confidence(1_000, &truncated), TRUNCATED_FACTOR);
        assert_eq!(confidence(1_000, &both), TRUNCATED_FACTOR * MISSING_FACTOR);
    }

    proptest! {
        #[test]
        fn is_a_share(severity: i64, clock_error_ns: i64, truncated: bool, members_missing: bool, inferred: bool) {
            let evidence = Evidence { clock_error_ns, truncated, members_missing, inferred };
            prop_assert!((0.0..=1.0).contains(&confidence(severity, &evidence)));
        }
    }
}
