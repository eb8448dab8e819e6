//! Clean programs, and programs with every fault at many strengths.

use std::fs;
use std::io;
use std::path::Path;

use laggard_generator::{self as generator, Fault, Length, Program, Settings};

const RANKS: u32 = 8;
/// Steps of all programs: enough for waves and pipelines to fill.
const STEPS: u64 = 1000;
/// What a rank computes in a step, ns.
const COMPUTATION_NS: u64 = 1_000_000;
/// Largest random addition to a computation, per cent.
const NOISE: u64 = 1;
/// Bytes of messages: calls take next to nothing with the first, and a tenth to a half of the time
/// with the second.
const BYTES: [u64; 2] = [4 << 10, 1 << 20];
/// The rank that is late.
const LATE: u32 = 3;
/// How much a fault lengthens the run, per cent.
pub const STRENGTHS: [f64; 7] = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0];

/// Name of no fault but noise.
pub const NO_FAULT: &str = "none";

/// A program of the corpus.
#[derive(Clone, Debug)]
pub struct Case {
    /// The generator's settings.
    pub settings: Settings,
    /// Kind of the fault, or [`NO_FAULT`].
    pub fault: &'static str,
    /// About how much the fault lengthens the run, per cent; 0 if it does not.
    pub strength: f64,
}

impl Case {
    fn new(program: Program, bytes: u64, (fault, strength): (&'static str, f64)) -> Case {
        let faults = vec![Fault::Noise { percent: NOISE }];
        let settings = Settings {
            message_bytes: bytes,
            computation_ns: COMPUTATION_NS,
            faults,
            ..Settings::new(program, RANKS, Length::Steps(STEPS))
        };
        Case {
            settings,
            fault,
            strength,
        }
    }

    /// Whether nothing is wrong: no fault but noise, and all ranks do the same at the same time.
    ///
    /// Some programs wait by their nature. A token goes round one rank at a time. A master has
    /// nothing to do but wait, and so has a rank that gathers. If messages are so large that sends
    /// wait for their receives, roots of collectives wait, too, and both ends of waves and
    /// pipelines.
    pub fn is_clean(&self) -> bool {
        use Program::{Collectives, MasterWorker, OrderedGather, Pipeline, Ring, Wavefront};
        let (program, settings) = (self.settings.program, &self.settings);
        let is_large = settings.message_bytes > settings.eager_limit;
        let waits = match program {
            Ring | MasterWorker | OrderedGather => true,
            Collectives | Wavefront | Pipeline => is_large,
            _ => false,
        };
        self.fault == NO_FAULT && !waits
    }

    /// A unique name.
    pub fn name(&self) -> String {
        let faults: Vec<String> = self.settings.faults.iter().map(Fault::to_string).collect();
        format!(
            "{} {} bytes {}",
            self.settings.program.name(),
            self.settings.message_bytes,
            faults.join(" ")
        )
    }

    /// Writes its trace and expectations, and replaces any that are there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn generate(&self, directory: &Path) -> io::Result<()> {
        if directory.is_dir() {
            fs::remove_dir_all(directory)?;
        }
        generator::generate(&self.settings, directory).map(|_| ())
    }
}

/// Every program with noise only. Waiting in these is natural.
pub fn without_faults() -> Vec<Case> {
    let programs = Program::all().iter();
    let cases = programs.flat_map(|&program| {
        let sizes = BYTES.into_iter();
        sizes.map(move |bytes| Case::new(program, bytes, (NO_FAULT, 0.0)))
    });
    cases.collect()
}

/// Every program with every fault that the generator knows.
pub fn with_faults() -> Vec<Case> {
    let mut cases = Vec::new();
    for &program in Program::all() {
        for bytes in BYTES {
            for (fault, strength) in faults(program) {
                let name = fault_name(&fault);
                let mut case = Case::new(program, bytes, (name, strength));
                case.settings.faults.push(fault);
                cases.push(case);
            }
        }
    }
    cases
}

fn fault_name(fault: &Fault) -> &'static str {
    match fault {
        Fault::SlowRank { .. } => "slow rank",
        Fault::SlowPhase { .. } => "slow phase",
        Fault::LateChain { .. } => "late chain",
        Fault::Alternating { .. } => "alternating",
        Fault::LostMessage { .. } => "lost message",
        Fault::LostReceive { .. } => "lost receive",
        Fault::Noise { .. } => "noise",
        Fault::Bursts { .. } => "bursts",
    }
}

/// All faults at all strengths. Faults in whole per cent have no half ones.
fn faults(program: Program) -> Vec<(Fault, f64)> {
    let rank = LATE;
    let step = STEPS / 2;
    let mut faults = vec![
        (Fault::LostMessage { rank, step }, 0.0),
        (Fault::LostReceive { rank, step }, 0.0),
    ];
    // A step of this program has several computations.
    let parts = match program {
        Program::Collectives => 5,
        _ => 1,
    };
    let run_us = (STEPS * parts * COMPUTATION_NS / 1000) as f64;
    for strength in STRENGTHS {
        let times = |factor: f64| (strength * factor) as u64;
        let (percent, microseconds) = (times(1.0), (run_us * strength / 100.0) as u64);
        let (first, last) = (step - STEPS / 10, step - 1);
        let mut add = |fault| faults.push((fault, strength));
        // A tenth of the steps is slowed by ten times the strength.
        add(Fault::SlowPhase {
            rank,
            first,
            last,
            percent: times(10.0),
        });
        add(Fault::LateChain {
            rank,
            step,
            microseconds,
        });
        // One computation in a hundred is slowed by a hundred times the strength.
        add(Fault::Bursts {
            one_in: 100,
            percent: times(100.0),
        });
        if percent as f64 == strength {
            add(Fault::SlowRank { rank, percent });
            add(Fault::Alternating { percent });
            add(Fault::Noise { percent });
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_is_another_one() {
        let cases = [without_faults(), with_faults()].concat();
        let names: BTreeSet<String> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len());
        let kinds: BTreeSet<&str> = cases.iter().map(|case| case.fault).collect();
        assert_eq!(kinds.len(), 9);
    }
}
