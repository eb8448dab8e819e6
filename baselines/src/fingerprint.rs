//! The machine that a table was measured on.

use serde::{Deserialize, Serialize};

/// The machine that a table was measured on, and how the job was placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Models of the processors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<String>,
    /// Name and version of the MPI library.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mpi_library: String,
    /// Names of the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Network adapters, as far as the first host tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    /// Cores of a host.
    #[serde(default)]
    pub cores: u32,
    /// Ranks of the job.
    #[serde(default)]
    pub ranks: u32,
    /// Whether a host had more ranks than cores.
    #[serde(default)]
    pub oversubscribed: bool,
}

/// The machine and library of a run; empty if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used<'r> {
    /// Models of its processors.
    pub cpu: &'r [String],
    /// Name and version of its MPI library.
    pub mpi_library: &'r str,
}

impl Fingerprint {
    /// How the run's machine differs; `None` if no known property differs.
    pub fn differs(&self, run: &Used) -> Option<String> {
        let known = |a: &str, b: &str| !a.is_empty() && !b.is_empty();
        if known(&self.mpi_library, run.mpi_library) && self.mpi_library != run.mpi_library {
            return Some(format!(
                "it was measured with {}, the run used {}",
                self.mpi_library, run.mpi_library
            ));
        }
        let other = run.cpu.iter().find(|cpu| !self.cpu.contains(cpu));
        let other = other.filter(|_| !self.cpu.is_empty());
        other.map(|other| {
            let own = self.cpu.join(", ");
            format!("it was measured on {own}, the run was on {other}")
        })
    }

    /// Whether the run has any known property to compare.
    pub fn can_be_compared(&self, run: &Used) -> bool {
        let mpi = !self.mpi_library.is_empty() && !run.mpi_library.is_empty();
        mpi && !self.cpu.is_empty() && !run.cpu.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_or_library_is_told() {
        let table = Fingerprint {
            cpu: vec!["A".into(), "B".into()],
            mpi_library: "Open MPI v4.1.4".into(),
            ..Fingerprint::default()
        };
        let (a, c) = (["A".to_owned()], ["C".to_owned()]);
        let run = |cpu, mpi_library| Used { cpu, mpi_library };
        assert_eq!(table.differs(&run(&a, "Open MPI v4.1.4")), None);
        assert!(table.can_be_compared(&run(&a, "Open MPI v4.1.4")));
        let other = table.differs(&run(&a, "Open MPI v5.0.0")).unwrap();
        assert!(other.contains("v4.1.4, the run used Open MPI v5.0.0"));
        let other = table.differs(&run(&c, "Open MPI v4.1.4")).unwrap();
        assert!(other.contains("on A, B, the run was on C"), "{other}");
        assert_eq!(table.differs(&Used::default()), None);
        assert!(!table.can_be_compared(&Used::default()));
        assert!(!Fingerprint::default().can_be_compared(&run(&a, "x")));
    }
}
