//! Converts the engine's integers to the numbers of the file.

/// Findings below this share of all time, percent, are counted and not listed. They are not
/// worth a change of the program, and often within the noise of clocks and scheduling.
pub const NEGLIGIBLE_PERCENT: f64 = 0.05;

/// ns as seconds. Sums of a damaged trace may exceed an `i64`; they must not become negative.
pub fn seconds(ns: impl Into<i128>) -> f64 {
    ns.into() as f64 / 1e9
}

/// `part / whole`, rounded to six places; 0 if `whole` is 0.
pub fn ratio(part: f64, whole: f64) -> f64 {
    rounded(part / whole, 1e6)
}

/// `part / whole` in percent, rounded to four places; 0 if `whole` is 0.
pub fn percent(part: f64, whole: f64) -> f64 {
    rounded(part / whole * 100.0, 1e4)
}

fn rounded(value: f64, scale: f64) -> f64 {
    if value.is_finite() {
        (value * scale).round() / scale
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!(seconds(1_250_000_000), 1.25);
        assert_eq!(seconds(1).to_string(), "0.000000001");
        assert_eq!(percent(1.0, 3.0), 33.3333);
        assert_eq!(ratio(2.0, 3.0), 0.666667);
        assert_eq!(ratio(1.0, 0.0), 0.0);
        assert_eq!(percent(0.0, 0.0), 0.0);
    }
}
