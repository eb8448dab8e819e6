//! Faults, and how long ranks compute with them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::random::Random;

/// Something that is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum Fault {
    /// A rank computes longer all the time.
    SlowRank {
        /// The rank.
        rank: u32,
        /// How much longer, per cent.
        percent: u64,
    },
    /// A rank computes longer for some steps.
    SlowPhase {
        /// The rank.
        rank: u32,
        /// The first of the steps, from 0.
        first: u64,
        /// The last of these steps.
        last: u64,
        /// How much longer, per cent.
        percent: u64,
    },
    /// A rank is held up once; ranks that need its data are late for others in turn.
    LateChain {
        /// The rank.
        rank: u32,
        /// The step, from 0.
        step: u64,
        /// How long.
        microseconds: u64,
    },
    /// Even ranks compute longer in even steps, odd ranks in odd steps.
    Alternating {
        /// How much longer, per cent.
        percent: u64,
    },
    /// A rank sends a message that nobody receives.
    LostMessage {
        /// The rank.
        rank: u32,
        /// The step, from 0.
        step: u64,
    },
    /// A rank posts a receive that nobody sends to.
    LostReceive {
        /// The rank.
        rank: u32,
        /// The step, from 0.
        step: u64,
    },
    /// Every computation of every rank takes longer by a random time.
    Noise {
        /// How much longer at most, per cent.
        percent: u64,
    },
    /// Some computations, at random, take longer, as if something held the rank up.
    Bursts {
        /// One in this many, on average.
        one_in: u64,
        /// How much longer, per cent.
        percent: u64,
    },
}

/// The ways to write a fault.
pub const SYNTAX: &str = "\
Faults (each may be given several times, and all may be combined; steps count from 0):
  slow-rank=RANK:PERCENT              computes longer in every step
  slow-phase=RANK:FIRST-LAST:PERCENT  computes longer from step FIRST to step LAST
  late-chain=RANK:STEP:MICROSECONDS   is held up once; who needs its data is late in turn
  alternating=PERCENT                 even ranks compute longer in even steps, odd in odd
  lost-message=RANK:STEP              sends a message that nobody receives
  lost-receive=RANK:STEP              posts a receive that nothing is sent to
  noise=PERCENT                       every computation takes longer by up to so much
  bursts=N:PERCENT                    one computation in N, at random, takes longer";

/// Largest factor by which a fault may lengthen a computation, per cent.
const MOST_PERCENT: u64 = 100_000;

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let wrong = |what: &str| format!("{what} in {text:?}");
        let (name, values) = text.split_once('=').ok_or_else(|| wrong("no '='"))?;
        let values: Vec<&str> = values.split(':').collect();
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong("not a number"));
        let rank = |text: &str| text.parse::<u32>().map_err(|_| wrong("not a rank"));
        let percent = |text: &str| match number(text)? {
            value @ ..=MOST_PERCENT => Ok(value),
            _ => Err(wrong("too many per cent")),
        };
        match (name, values.as_slice()) {
            ("slow-rank", [r, p]) => Ok(Fault::SlowRank {
                rank: rank(r)?,
                percent: percent(p)?,
            }),
            ("slow-phase", [r, steps, p]) => {
                let (first, last) = steps.split_once('-').unwrap_or((steps, steps));
                Ok(Fault::SlowPhase {
                    rank: rank(r)?,
                    first: number(first)?,
                    last: number(last)?,
                    percent: percent(p)?,
                })
            }
            ("late-chain", [r, step, time]) => Ok(Fault::LateChain {
                rank: rank(r)?,
                step: number(step)?,
                microseconds: number(time)?.min(1 << 40),
            }),
            ("alternating", [p]) => Ok(Fault::Alternating {
                percent: percent(p)?,
            }),
            ("lost-message", [r, step]) => Ok(Fault::LostMessage {
                rank: rank(r)?,
                step: number(step)?,
            }),
            ("lost-receive", [r, step]) => Ok(Fault::LostReceive {
                rank: rank(r)?,
                step: number(step)?,
            }),
            ("bursts", [n, p]) => Ok(Fault::Bursts {
                one_in: number(n)?.clamp(1, 1 << 31),
                percent: percent(p)?,
            }),
            ("noise", [p]) => Ok(Fault::Noise {
                percent: percent(p)?,
            }),
            _ => Err(wrong("no such fault")),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Fault::SlowRank { rank, percent } => write!(f, "slow-rank={rank}:{percent}"),
            Fault::SlowPhase {
                rank,
                first,
                last,
                percent,
            } => write!(f, "slow-phase={rank}:{first}-{last}:{percent}"),
            Fault::LateChain {
                rank,
                step,
                microseconds,
            } => write!(f, "late-chain={rank}:{step}:{microseconds}"),
            Fault::Alternating { percent } => write!(f, "alternating={percent}"),
            Fault::LostMessage { rank, step } => write!(f, "lost-message={rank}:{step}"),
            Fault::LostReceive { rank, step } => write!(f, "lost-receive={rank}:{step}"),
            Fault::Noise { percent } => write!(f, "noise={percent}"),
            Fault::Bursts { one_in, percent } => write!(f, "bursts={one_in}:{percent}"),
        }
    }
}

impl Fault {
    /// The rank that it affects, if it affects only one.
    pub fn rank(&self) -> Option<u32> {
        match *self {
            Fault::SlowRank { rank, .. }
            | Fault::SlowPhase { rank, .. }
            | Fault::LateChain { rank, .. }
            | Fault::LostMessage { rank, .. }
            | Fault::LostReceive { rank, .. } => Some(rank),
            Fault::Alternating { .. } | Fault::Noise { .. } | Fault::Bursts { .. } => None,
        }
    }

    /// ns that it adds to a computation of `ns`.
    fn delay(&self, rank: u32, step: u64, ns: u64, random: &mut Random) -> u64 {
        let part = |of: u64, applies: bool| if applies { ns * of / 100 } else { 0 };
        match self {
            Fault::SlowRank {
                rank: slow,
                percent,
            } => part(*percent, rank == *slow),
            Fault::SlowPhase {
                rank: slow,
                first,
                last,
                percent,
            } => {
                let steps: RangeInclusive<u64> = *first..=*last;
                part(*percent, rank == *slow && steps.contains(&step))
            }
            Fault::Alternating { percent } => part(*percent, u64::from(rank) % 2 == step % 2),
            Fault::Noise { percent } => random.up_to(ns * percent / 100),
            Fault::Bursts { one_in, percent } => part(*percent, random.below(*one_in) == 0),
            Fault::LateChain { .. } | Fault::LostMessage { .. } | Fault::LostReceive { .. } => 0,
        }
    }
}

/// Duration of a computation of `ns` with all faults, ns.
pub fn computation(faults: &[Fault], rank: u32, step: u64, ns: u64, random: &mut Random) -> u64 {
    let delays = faults
        .iter()
        .map(|fault| fault.delay(rank, step, ns, random));
    ns + delays.sum::<u64>()
}

/// ns for which a rank is held up at the begin of a step.
pub fn hold_up(faults: &[Fault], rank: u32, step: u64) -> u64 {
    let times = faults.iter().map(|fault| match fault {
        Fault::LateChain {
            rank: late,
            step: at,
            microseconds,
        } if (*late, *at) == (rank, step) => microseconds * 1000,
        _ => 0,
    });
    times.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for text in [
            "slow-rank=3:50",
            "slow-phase=3:2-7:50",
            "late-chain=0:4:1500",
            "alternating=30",
            "lost-message=2:5",
            "lost-receive=2:5",
            "noise=10",
            "bursts=64:50",
        ] {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), text);
        }
        for text in [
            "",
            "noise",
            "noise=x",
            "slow-rank=1",
            "sleepy=1",
            "noise=1:2",
        ] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }

    #[test]
    fn faults_add_up() {
        let faults = ["slow-rank=1:50", "slow-phase=1:2-3:10", "alternating=100"];
        let faults = faults.map(|fault| fault.parse().unwrap());
        let mut random = Random::new(1);
        let mut time = |rank, step| computation(&faults, rank, step, 1000, &mut random);
        assert_eq!([time(0, 0), time(0, 1)], [2000, 1000]);
        assert_eq!(
            [time(1, 0), time(1, 1), time(1, 2), time(1, 3)],
            [1500, 2500, 1600, 2600]
        );
    }
}
