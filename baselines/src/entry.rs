//! Measurements of one operation in one group.

use serde::{Deserialize, Serialize};

use crate::curve::{Point, interpolate};
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
    /// Where they were; `None`: irrelevant or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Times by size.
    pub points: Vec<Point>,
    /// Times of sizes between these, which served to check interpolation and model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Point>,
    /// Time as latency and bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// How it goes on in larger groups; only for the largest measured group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

impl Entry {
    /// An entry with only times; their order does not matter.
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

    /// Its key: there is one entry for each.
    pub fn key(&self) -> (&str, Option<Span>, u32) {
        (&self.operation, self.span, self.group_size)
    }

    /// Sorts the points.
    pub(crate) fn sort(&mut self) {
        self.points.sort_by_key(|point| point.bytes);
        self.checks.sort_by_key(|point| point.bytes);
    }

    /// Seconds for this many bytes. A measured size has its measured time. Between two sizes
    /// interpolation or model counts, whichever was closer to the checks. Beyond them the model
    /// counts if it was close enough.
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
