//! The types of a catalogue row.

/// Unit of a pattern's total.
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

/// The part of a call in which a pattern loses time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From its enter on, until another party came.
    Begin,
    /// Somewhere in it, waiting for another party.
    Within,
    /// Up to its leave: all had come, and the library took the time.
    End,
    /// It is not known what the time went into.
    Unknown,
}

/// What the late party did, as far as it matters for advice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// Unknown, or there is no such party.
    #[default]
    Unknown,
    /// It computed for a good part of the time.
    Computed,
    /// It was held up itself, by others or by files.
    HeldUp,
}

impl Late {
    /// The name in rules.
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
    /// Id in reports and on the command line.
    pub id: &'static str,
    /// The enclosing metric: a pattern's id or a [`MetricGroup`](crate::MetricGroup)'s.
    pub parent: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// What happens, and why it costs time.
    pub description: &'static str,
    /// When an instance counts.
    pub condition: &'static str,
    /// The formula of the severity.
    pub severity: &'static str,
    /// Unit of totals.
    pub unit: Unit,
    /// Where in the call the time is lost.
    pub part: Part,
}
