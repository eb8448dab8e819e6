//! What a rule advises to change, as far as a replay of the run can tell what that gains.

/// A change at the calls of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Blocking messages only begin; they are waited for before the rank's next call.
    NonBlocking,
    /// Successive messages to the same rank are one.
    Combine,
    /// Barriers are not there.
    NoBarrier,
    /// Each rank makes the call once; later ones are not there.
    Once,
    /// The calls wait for nobody.
    NoWaits,
    /// What the late rank computes is shared by all ranks of the finding.
    Balance,
}

impl Repair {
    /// All.
    pub const ALL: [Repair; 6] = [
        Repair::NonBlocking,
        Repair::Combine,
        Repair::NoBarrier,
        Repair::Once,
        Repair::NoWaits,
        Repair::Balance,
    ];

    /// The word in rules and scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Repair::NonBlocking => "non_blocking",
            Repair::Combine => "combine",
            Repair::NoBarrier => "no_barrier",
            Repair::Once => "once",
            Repair::NoWaits => "no_waits",
            Repair::Balance => "balance",
        }
    }

    /// The repair with this name.
    pub fn from_name(name: &str) -> Option<Repair> {
        let mut all = Repair::ALL.into_iter();
        all.find(|repair| repair.name() == name)
    }
}
