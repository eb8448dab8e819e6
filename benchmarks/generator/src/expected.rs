//! The findings that an analysis of a generated trace must report, as a file beside it.
//!
//! `expected.json` lies in the trace directory. All times are whole ns, except where a name says
//! otherwise. It has no percentages and texts, since they follow from the rest. Lists are as in a
//! report: largest first, cut where a report cuts them.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::faults::Fault;
use super::ledger::{Pattern, Sums};
use super::location::host_name;
use super::op::Peer;
use super::site::{Place, Site, SiteId};
use super::world::World;

/// The file, beside the location files.
pub const FILE: &str = "expected.json";
/// Value of `schema`.
pub const SCHEMA: &str = "laggard-expected/1";
/// Ranks and causes listed per finding.
pub const LISTED: usize = 32;

/// Everything that is expected of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// `laggard-expected/1`.
    pub schema: String,
    /// What was generated.
    pub run: Run,
    /// By pattern id: sums over all locations.
    pub totals: std::collections::BTreeMap<String, Total>,
    /// By pattern and place, largest first.
    pub findings: Vec<Finding>,
    /// Messages without a partner, by call and place.
    pub unmatched: Vec<Unmatched>,
    /// By rank.
    pub locations: Locations,
}

/// What was generated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the program.
    pub program: String,
    /// Ranks.
    pub ranks: u32,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Steps of the program.
    pub steps: u64,
    /// Faults in it.
    pub faults: Vec<Fault>,
    /// Calls of all ranks.
    pub calls: u64,
    /// Messages that were received.
    pub messages: u64,
    /// Bytes of these messages.
    pub message_bytes: u64,
    /// From the first call's enter to the last one's leave, of all ranks.
    pub wall_ns: u64,
    /// Largest error of a time on one host against one on another, because clocks are measured with
    /// errors. 0 = every severity is exact.
    pub clock_error_ns: u64,
    /// Largest change of a clock's rate, parts per million. Sums of times are off by this where
    /// only sums of ticks are known, as in profiles.
    #[serde(default)]
    pub clock_wander_ppm: f64,
}

/// Sums of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Time lost.
    pub severity_ns: u64,
    /// Calls that lost time.
    pub instances: u64,
}

/// A pattern in the calls at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its id.
    pub pattern: String,
    /// The call.
    pub at: Place,
    /// Time lost, all ranks.
    pub severity_ns: u64,
    /// Calls that lost time.
    pub instances: u64,
    /// Calls there.
    pub calls: u64,
    /// The part lost to ranks on other hosts.
    pub inter_host_ns: u64,
    /// Ranks that lost time, as ranges.
    pub rank_set: String,
    /// The worst ranks; ties by number.
    pub ranks: Vec<RankShare>,
    /// The ranks they waited for, largest share first; ties by rank.
    pub causes: Vec<Cause>,
    /// Number of causes, including those not listed.
    pub all_causes: u64,
    /// The call that lost most; of ties the first, then the lowest rank's.
    pub worst: Worst,
}

/// A rank's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankShare {
    /// World rank.
    pub rank: u32,
    /// Time lost.
    pub severity_ns: u64,
    /// Calls that lost time.
    pub instances: u64,
}

/// A late rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    /// World rank.
    pub rank: u32,
    /// Its late call.
    pub at: Place,
    /// Time that others lost to it.
    pub severity_ns: u64,
}

/// One call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst {
    /// World rank.
    pub rank: u32,
    /// Enter, since the first call of all ranks.
    pub start_ns: u64,
    /// Leave, since the first call of all ranks.
    pub end_ns: u64,
    /// Time lost.
    pub severity_ns: u64,
}

/// Messages that lack an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// `unmatched_send` or `unmatched_receive`.
    pub id: String,
    /// The call.
    pub at: Place,
    /// How many.
    pub count: u64,
    /// Source, destination, tag and bytes of each, in the order of the calls.
    pub messages: Vec<(u32, u32, i32, u64)>,
}

/// Times of all ranks, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locations {
    /// Lost waiting for others.
    pub waiting_ns: Vec<u64>,
    /// Outside of calls, from the first call to the last.
    pub computation_ns: Vec<u64>,
    /// Between start-up and shut-down: from MPI_Init's leave until the last rank enters
    /// MPI_Finalize.
    pub wall_ns: Vec<u64>,
}

/// Ranks in ascending order as ranges: `0-3,7`.
fn ranges(ranks: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some(last) if last.1 + 1 == rank => last.1 = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    let texts = ranges.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

impl Finding {
    fn new(pattern: Pattern, site: SiteId, sums: &Sums, sites: &[Site], start: u64) -> Finding {
        let place = |site: SiteId| sites[site as usize].place();
        let losers = || (0..).zip(&sums.ranks).filter(|(_, share)| share.1 > 0);
        let mut ranks: Vec<RankShare> = losers()
            .map(|(rank, &(severity_ns, instances))| RankShare {
                rank,
                severity_ns,
                instances,
            })
            .collect();
        ranks.sort_by_key(|share| (std::cmp::Reverse(share.severity_ns), share.rank));
        ranks.truncate(LISTED);
        let mut causes: Vec<_> = sums.causes.iter().collect();
        causes.sort_by_key(|(late, severity)| (std::cmp::Reverse(**severity), **late));
        let listed = causes.iter().take(LISTED);
        Finding {
            pattern: pattern.id().to_owned(),
            at: place(site),
            severity_ns: sums.severity,
            instances: sums.instances,
            calls: 0,
            inter_host_ns: sums.inter_host,
            rank_set: ranges(losers().map(|(rank, _)| rank)),
            ranks,
            causes: listed
                .map(|((rank, late), severity)| Cause {
                    rank: *rank,
                    at: place(*late),
                    severity_ns: **severity,
                })
                .collect(),
            all_causes: causes.len() as u64,
            worst: sums.worst.map_or_else(Worst::default, |loss| Worst {
                rank: loss.rank,
                start_ns: loss.times.0 - start,
                end_ns: loss.times.1 - start,
                severity_ns: loss.severity,
            }),
        }
    }
}

impl Expected {
    /// The expectations that follow from a simulation.
    pub(super) fn new(world: &World, steps: u64) -> Option<Expected> {
        let ledger = world.ledger.as_ref()?;
        let settings = world.settings;
        let starts = world.ranks.iter().map(|rank| rank.times.start);
        let start = starts.min().unwrap_or(0);
        let end = world.ranks.iter().map(|rank| rank.now).max().unwrap_or(0);
        let mut totals: std::collections::BTreeMap<String, Total> = Default::default();
        let mut findings = Vec::new();
        for (pattern, site, sums) in ledger.sums() {
            let total = totals.entry(pattern.id().to_owned()).or_default();
            total.severity_ns += sums.severity;
            total.instances += sums.instances;
            findings.push(Finding {
                calls: world.calls[site as usize],
                ..Finding::new(pattern, site, sums, &world.sites, start)
            });
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity_ns));
        let times = || world.ranks.iter().map(|rank| rank.times);
        // Wall time lasts until the last rank reaches MPI_Finalize.
        let stopped = times().map(|times| times.stopped).max().unwrap_or(0);
        let skew = &settings.skew;
        Some(Expected {
            schema: SCHEMA.to_owned(),
            run: Run {
                program: settings.program.name().to_owned(),
                ranks: settings.ranks,
                hosts: (0..settings.hosts()).map(host_name).collect(),
                steps,
                faults: settings.faults.clone(),
                calls: world.written.calls,
                messages: world.messages,
                message_bytes: world.message_bytes,
                wall_ns: end - start,
                // Both hosts may be off, at the start, the end and between.
                clock_error_ns: if settings.hosts() > 1 {
                    2 * (skew.error_ns + world.bend(end))
                } else {
                    0
                },
                clock_wander_ppm: skew.wander_ppm,
            },
            totals,
            findings,
            unmatched: unmatched(world),
            locations: Locations {
                waiting_ns: ledger.waiting.clone(),
                computation_ns: times().map(|times| times.computation).collect(),
                wall_ns: times().map(|times| stopped - times.started).collect(),
            },
        })
    }

    /// Writes the file into a trace directory.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        fs::write(directory.join(FILE), text + "\n")
    }

    /// Reads the file of a trace directory.
    ///
    /// # Errors
    /// The file is missing, or has another schema.
    pub fn read(directory: &Path) -> io::Result<Expected> {
        let path = directory.join(FILE);
        let name =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let text = fs::read_to_string(&path).map_err(name)?;
        let expected: Expected = serde_json::from_str(&text).map_err(|e| name(e.into()))?;
        if expected.schema != SCHEMA {
            return Err(name(io::Error::other(format!("not of schema {SCHEMA}"))));
        }
        Ok(expected)
    }
}

fn unmatched(world: &World) -> Vec<Unmatched> {
    let mut all: Vec<Unmatched> = Vec::new();
    for lost in &world.unmatched {
        let id = if lost.sends {
            "unmatched_send"
        } else {
            "unmatched_receive"
        };
        let Peer::Rank(peer) = lost.half.peer else {
            continue;
        };
        let (from, to) = if lost.sends {
            (lost.rank, peer)
        } else {
            (peer, lost.rank)
        };
        let at = world.sites[lost.site as usize].place();
        let known = all
            .iter()
            .position(|known| known.id == id && known.at == at);
        let known = known.unwrap_or_else(|| {
            let id = id.to_owned();
            all.push(Unmatched {
                id,
                at,
                ..Unmatched::default()
            });
            all.len() - 1
        });
        all[known].count += 1;
        all[known]
            .messages
            .push((from, to, lost.half.tag, lost.half.bytes));
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn consecutive_ranks_are_ranges() {
        let ranges = |ranks: &[u32]| super::ranges(ranks.iter().copied());
        assert_eq!(ranges(&[0, 1, 3, 5, 6, 7]), "0-1,3,5-7");
        assert_eq!(ranges(&[]), "");
    }
}
