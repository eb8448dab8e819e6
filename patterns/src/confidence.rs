//! How sure a finding is.

/// Factor on the confidence of a finding that rests on a truncated trace.
pub const TRUNCATED_FACTOR: f64 = 0.8;

/// Confidence in a finding, 0..=1.
///
/// With `s` the severity of one instance (for a finding over many, their mean) and
/// `e` the error of the clock comparison behind it (0 where both parties share a
/// clock), both in ns:
///
/// ```text
/// confidence = s / (s + e)            · 0.8 if a trace involved is truncated
/// ```
///
/// 1 for exact matching on one clock, 1/2 where the clock error is as large as
/// the wait, towards 0 where it is larger. A severity of 0 on one clock is certain.
pub fn confidence(severity_ns: i64, clock_error_ns: i64, truncated: bool) -> f64 {
    let severity = severity_ns.max(0) as f64;
    let error = clock_error_ns.max(0) as f64;
    let exactness = if error == 0.0 {
        1.0
    } else {
        severity / (severity + error)
    };
    if truncated {
        exactness * TRUNCATED_FACTOR
    } else {
        exactness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn falls_with_the_clock_error() {
        assert_eq!(confidence(1_000, 0, false), 1.0);
        assert_eq!(confidence(0, 0, false), 1.0);
        assert_eq!(confidence(1_000, 1_000, false), 0.5);
        assert_eq!(confidence(0, 1_000, false), 0.0);
        assert!(confidence(50_000_000, 1_000, false) > 0.999);
        assert_eq!(confidence(1_000, 0, true), TRUNCATED_FACTOR);
    }

    proptest! {
        #[test]
        fn is_a_share(severity: i64, error: i64, truncated: bool) {
            let confidence = confidence(severity, error, truncated);
            prop_assert!((0.0..=1.0).contains(&confidence));
        }
    }
}
