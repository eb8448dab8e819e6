//! What the catalogue says of a pattern.

/// What a pattern's total is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time lost.
    Seconds,
    /// Occurrences; the pattern costs no time of its own.
    Occurrences,
}

impl Unit {
    /// The name in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Occurrences => "occurrences",
        }
    }
}

/// What the party did that others waited for, as far as it matters for what to try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// Not known, or there is no such party.
    #[default]
    Unknown,
    /// It computed, for a good part of the time.
    Computed,
    /// It was held up itself: by others, or by files.
    HeldUp,
}

impl Late {
    /// As rules say it.
    pub fn name(self) -> &'static str {
        match self {
            Late::Unknown => "unknown",
            Late::Computed => "computed",
            Late::HeldUp => "held_up",
        }
    }
}

/// One row of the catalogue.
#[derive(Debug)]
pub struct Pattern {
    /// In reports and on the command line.
    pub id: &'static str,
    /// The metric that this one is part of: a pattern's id or a [`MetricGroup`](crate::MetricGroup)'s.
    pub parent: &'static str,
    /// For people.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What happens, and why it costs time.
    pub description: &'static str,
    /// When an instance counts.
    pub condition: &'static str,
    /// The formula of the severity.
    pub severity: &'static str,
    /// What totals are measured in.
    pub unit: Unit,
}
