//! Points of a measured curve, and interpolation between them.

use serde::{Deserialize, Serialize};

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes per call and member.
    pub bytes: u64,
    /// Seconds: the shortest time of the slowest member.
    pub time_s: f64,
    /// Median of the repetitions, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_s: Option<f64>,
    /// Interquartile range of the repetitions, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_s: Option<f64>,
    /// Repetitions that counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
    /// Largest difference between the members' beginnings in one of these, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew_s: Option<f64>,
}

impl Point {
    /// A point with only a time.
    pub fn new(bytes: u64, time_s: f64) -> Point {
        Point {
            bytes,
            time_s,
            median_s: None,
            spread_s: None,
            repetitions: None,
            skew_s: None,
        }
    }
}

/// The time between two measured sizes. Its logarithm is linear in the logarithm of `bytes + 1`.
pub(crate) fn interpolate(points: &[Point], bytes: u64) -> Option<f64> {
    let above = points.partition_point(|point| point.bytes < bytes);
    let (upper, lower) = (points.get(above)?, points.get(above.checked_sub(1)?)?);
    let place = |bytes: u64| (bytes as f64 + 1.0).ln();
    Some(between(
        (place(lower.bytes), lower.time_s),
        (place(upper.bytes), upper.time_s),
        place(bytes),
    ))
}

/// The value at `at` on the curve through two points (place, value). The logarithm of the value is
/// linear.
pub(crate) fn between((x0, y0): (f64, f64), (x1, y1): (f64, f64), at: f64) -> f64 {
    let share = (at - x0) / (x1 - x0);
    (y0.ln() + share * (y1.ln() - y0.ln())).exp()
}
