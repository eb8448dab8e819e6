//! Activity of ranks around the worst call of a finding: of the waiting rank, the late rank, the
//! rank that this waited for itself, and a few more of collectives.
//!
//! Only the findings with most lost time are looked up, with a few ranks each. The head chooses
//! them from sums that do not depend on the number of agents. The agents of the ranks look up the
//! moment in their files, without reading what is before or after it.

mod lane;

use std::cmp::Reverse;

use anyhow::Result;
use laggard_comm::{self as comm, Job};
use laggard_report::{Lane as LaneOfReport, Segment as SegmentOfReport, Timeline, seconds};
use laggard_trace::calls::{self, GenericType};
use lane::{Kind, Lane};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::ends::NONE;
use crate::clock::ClockMap;
use crate::findings::fold::{Folded, FoldedFindings};
use crate::findings::places;
use crate::findings::places::Places;
use crate::input::open::Opened;
use crate::judge::profile::Profiled;
use crate::waits::sums::{FindingKey, Worst};

/// Most findings that are looked up, those with most lost time.
const FINDINGS: usize = 20;
/// Most ranks per finding.
const RANKS: usize = 4;
/// Most threads of a rank that are searched.
const THREADS: usize = 64;
/// Least time shown before and after the call, ns.
const MARGIN: i64 = 1_000;

/// Role of a rank in the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Role {
    /// It made the call and waited.
    Waiting,
    /// It was late.
    Late,
    /// The late rank waited for it, or it took part.
    Other,
}

/// Request to the agent of a rank.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Wanted {
    /// Index of the finding.
    finding: u32,
    rank: u32,
    role: Role,
    /// Begin and end of the moment, ns.
    from: i64,
    until: i64,
    /// Begin of the call that identifies the thread, if known, ns.
    at: i64,
}

/// Answer to a request.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    /// Index of the request.
    wanted: u32,
    thread: u32,
    lane: Lane,
}

/// The moments around the worst calls, at the head.
#[derive(Debug, Default)]
pub struct Around {
    keys: Vec<FindingKey>,
    wanted: Vec<Wanted>,
    /// By index in `wanted`.
    found: FxHashMap<u32, Found>,
}

/// Looks up the moments; `findings` are those of all agents, at the head. Afterwards the head has
/// the lanes and their places. Collective.
///
/// # Errors
/// Messages of agents cannot be packed or unpacked.
pub fn collect(
    job: &dyn Job,
    findings: Option<&FoldedFindings>,
    opened: &Opened,
    profiled: &[Profiled],
    clocks: &[(ClockMap, (u64, u64))],
    places: &mut Places,
) -> Result<Around> {
    let (keys, wanted) = findings.map(choose).unwrap_or_default();
    let wanted: Vec<Wanted> = comm::from_head(job, wanted)?;
    let look = |(at, wanted): (usize, &Wanted)| {
        let (thread, lane) = look_up(wanted, opened, profiled, clocks)?;
        Some(Found {
            wanted: at as u32,
            thread,
            lane,
        })
    };
    let own: Vec<Found> = wanted.par_iter().enumerate().filter_map(look).collect();
    let paths = own.iter().flat_map(|found| found.lane.paths()).collect();
    places.add(places::paths(job, paths, &opened.locations, profiled)?);
    let mut parcels = vec![Vec::new(); job.agents()];
    parcels[0] = postcard::to_stdvec(&own)?;
    let mut found = FxHashMap::default();
    for bytes in job.exchange(parcels).iter().filter(|b| !b.is_empty()) {
        let told: Vec<Found> = postcard::from_bytes(bytes)?;
        found.extend(told.into_iter().map(|one| (one.wanted, one)));
    }
    Ok(Around {
        keys,
        wanted,
        found,
    })
}

/// The findings that lost most, and the requests for each.
fn choose(findings: &FoldedFindings) -> (Vec<FindingKey>, Vec<Wanted>) {
    let mut all: Vec<(&FindingKey, &Folded)> = findings.iter().collect();
    all.sort_by(|a, b| b.1.severity.cmp(&a.1.severity).then_with(|| a.0.cmp(b.0)));
    all.truncate(FINDINGS);
    let mut wanted = Vec::new();
    for (finding, (key, folded)) in all.iter().enumerate() {
        if let Some(worst) = &folded.worst {
            let before = waited_for(findings, folded, worst.late);
            wanted.extend(wanted_of(finding as u32, key, (folded, worst), before));
        }
    }
    (all.into_iter().map(|(key, _)| *key).collect(), wanted)
}

/// The rank that a late rank itself waited for, if it is certain.
fn waited_for(findings: &FoldedFindings, folded: &Folded, late: u32) -> Option<u32> {
    let causes = folded.causes.iter().filter(|(key, _)| key.rank == late);
    let causes = causes.map(|(_, cause)| cause);
    let cause = causes.max_by_key(|cause| (cause.sums, cause.instances))?;
    if cause.sums.waiting < cause.sums.known() / 4 {
        return None;
    }
    let others = cause.others.iter();
    let longest = others.max_by_key(|other| (other.time, Reverse(other.at)))?;
    let there = findings
        .iter()
        .filter(|(key, _)| (key.1, key.2) == longest.at);
    let (_, found) = there.max_by_key(|(key, found)| (found.severity, Reverse(**key)))?;
    match (&found.worst, &found.causes[..]) {
        (Some(worst), _) if worst.rank == late => Some(worst.late),
        (_, [(only, _)]) => Some(only.rank),
        _ => None,
    }
}

fn wanted_of(
    finding: u32,
    key: &FindingKey,
    (folded, worst): (&Folded, &Worst),
    before: Option<u32>,
) -> Vec<Wanted> {
    let length = worst.leave.saturating_sub(worst.enter);
    let (from, until) = (
        worst.enter.saturating_sub((length / 4).max(MARGIN)),
        worst.leave.saturating_add((length / 8).max(MARGIN)),
    );
    let mut ranks = vec![(worst.rank, Role::Waiting, worst.enter)];
    let mut add = |rank: u32, role, at| {
        let is_there = ranks.iter().any(|(known, ..)| *known == rank);
        if rank != NONE && !is_there && ranks.len() < RANKS {
            ranks.push((rank, role, at));
        }
    };
    // Most waits end with an action of the late rank.
    let lost = i64::try_from(worst.severity).unwrap_or(i64::MAX);
    add(worst.late, Role::Late, worst.enter.saturating_add(lost));
    if let Some(rank) = before {
        add(rank, Role::Other, i64::MIN);
    }
    let generic = calls::call(key.1).map(|call| call.generic);
    if matches!(
        generic,
        Some(GenericType::GroupSync | GenericType::GroupComm)
    ) {
        for (rank, ..) in &folded.ranks {
            add(*rank, Role::Other, i64::MIN);
        }
    }
    let asked = ranks.into_iter().map(|(rank, role, at)| Wanted {
        finding,
        rank,
        role,
        from,
        until,
        at,
    });
    asked.collect()
}

/// The lane of the right thread: the one that began a call at the moment, else the first that made
/// any call. `None` unless the rank is here.
fn look_up(
    wanted: &Wanted,
    opened: &Opened,
    profiled: &[Profiled],
    clocks: &[(ClockMap, (u64, u64))],
) -> Option<(u32, Lane)> {
    let locations = &opened.locations;
    let first = locations.partition_point(|location| location.header.rank < wanted.rank);
    let threads = (first..locations.len())
        .take_while(|&at| locations[at].header.rank == wanted.rank)
        .take(THREADS);
    let lanes = threads.map(|at| {
        let (clock, span) = &clocks[at];
        let moment = (wanted.from, wanted.until);
        let lane = lane::read(
            &locations[at],
            clock,
            *span,
            &profiled[at].paths,
            moment,
            wanted.at,
        );
        (locations[at].header.thread, lane)
    });
    // The first of equal fits.
    lanes.reduce(|best, next| if next.1.fit > best.1.fit { next } else { best })
}

impl Around {
    /// The moment around the worst call of a finding, if it was looked up.
    pub fn timeline(&self, key: &FindingKey, places: &mut Places) -> Option<Timeline> {
        let finding = self.keys.iter().position(|known| known == key)? as u32;
        let wanted = self.wanted.iter().enumerate();
        let mine: Vec<_> = wanted
            .filter(|(_, wanted)| wanted.finding == finding)
            .collect();
        let (from, until) = mine
            .first()
            .map(|(_, wanted)| (wanted.from, wanted.until))?;
        let lanes = mine.iter().filter_map(|(at, wanted)| {
            let found = self.found.get(&(*at as u32))?;
            Some(LaneOfReport {
                rank: wanted.rank,
                thread: found.thread,
                role: match wanted.role {
                    Role::Waiting => "waiting",
                    Role::Late => "late",
                    Role::Other => "other",
                }
                .to_owned(),
                known_from_s: (found.lane.known_from > from)
                    .then(|| seconds(found.lane.known_from)),
                segments: segments(&found.lane, places),
            })
        });
        let lanes: Vec<LaneOfReport> = lanes.collect();
        (!lanes.is_empty()).then(|| Timeline {
            start_s: seconds(from),
            end_s: seconds(until),
            lanes,
        })
    }
}

fn segments(lane: &Lane, places: &mut Places) -> Vec<SegmentOfReport> {
    let all = lane.segments.iter().map(|segment| {
        let is_call = !matches!(segment.kind, Kind::Computation | Kind::Several);
        let kind = match segment.kind {
            Kind::Computation => "computation",
            Kind::Communication => "communication",
            Kind::Synchronization => "synchronization",
            Kind::Io => "io",
            Kind::Several => "several",
        };
        SegmentOfReport {
            start_s: seconds(segment.start),
            end_s: seconds(segment.end),
            kind: kind.to_owned(),
            operation: is_call.then(|| calls::name(segment.operation).to_owned()),
            place: is_call.then(|| places.short(segment.path)),
            calls: (segment.calls > 1).then_some(segment.calls),
            inside_s: (segment.kind == Kind::Several).then(|| seconds(segment.inside)),
        }
    });
    all.collect()
}
