//! Measurements of one operation in one group.

use serde::{Deserialize, Serialize};

use crate::{Growth, Model};

/// Where the members of a group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// All on one host.
    IntraNode,
    /// On several hosts.
    InterNode,
}

impl Span {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Span::IntraNode => "intra_node",
            Span::InterNode => "inter_node",
        }
    }
}

/// Measurements of one operation in one group size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the call.
    pub operation: String,
    /// Members; 2 for a message.
    pub group_size: u32,
    /// Where they were; `None`: it does not matter, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Times by size.
    pub points: Vec<Point>,
    /// Times of sizes between these, with which interpolation and model were checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Point>,
    /// Time as latency and bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// How it goes on in larger groups; of the largest one measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes per call and member.
    pub bytes: u64,
    /// Seconds: the shortest time of the slowest member.
    pub time_s: f64,
    /// Half of the repetitions took no longer, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_s: Option<f64>,
    /// Between a quarter and three quarters of them, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_s: Option<f64>,
    /// How many counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
    /// How far apart the members began in one of these, at most, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew_s: Option<f64>,
}

impl Point {
    /// A time alone.
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

impl Entry {
    /// Times alone; the order does not matter.
    pub fn new(operation: &str, group_size: u32, span: Option<Span>, points: Vec<Point>) -> Entry {
        let mut entry = Entry {
            operation: operation.to_owned(),
            group_size,
            span,
            points,
            checks: Vec::new(),
            model: None,
            growth: None,
        };
        entry.sort();
        entry
    }

    /// What it is about: there is one entry for each.
    pub fn key(&self) -> (&str, Option<Span>, u32) {
        (&self.operation, self.span, self.group_size)
    }

    /// Brings the points in order.
    pub(crate) fn sort(&mut self) {
        self.points.sort_by_key(|point| point.bytes);
        self.checks.sort_by_key(|point| point.bytes);
    }

    /// Seconds for this many bytes: as measured, between two sizes by whichever of
    /// interpolation and model was closer to the checks, and beyond them by the model if that
    /// was close enough.
    pub fn time(&self, bytes: u64) -> Option<f64> {
        let model = self.model.as_ref();
        let above = self.points.partition_point(|point| point.bytes < bytes);
        let Some(upper) = self.points.get(above) else {
            let largest = self.points.last()?;
            let model = model.filter(|model| model.holds() && model.reaches(bytes, largest.bytes));
            return Some(model?.time(bytes));
        };
        if upper.bytes == bytes || above == 0 {
            return Some(upper.time_s);
        }
        match model.filter(|model| model.is_better()) {
            Some(model) => Some(model.time(bytes)),
            None => interpolate(&self.points, bytes),
        }
    }
}

/// The time between two sizes that were measured: its logarithm is linear in that of
/// `bytes + 1`.
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

/// The value at `at` on the curve through two (place, value), straight in the
/// logarithm of the value.
pub(crate) fn between((x0, y0): (f64, f64), (x1, y1): (f64, f64), at: f64) -> f64 {
    let share = (at - x0) / (x1 - x0);
    (y0.ln() + share * (y1.ln() - y0.ln())).exp()
}
