//! Teams of threads: which locations are in them.
//!
//! An archive defines a team as a communicator of OpenMP: its group counts the locations that OpenMP
//! uses. Recorders define one for the same threads, however often these are forked.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::definitions::{Definitions, PARADIGM_OPENMP, UNDEFINED, group_kind};

/// Bits of a key for the number of a meeting within its team, and for the number of times that a team
/// was forked, as in the trace format.
const MEETING_BITS: u32 = 24;
const TIMES_BITS: u32 = 28;

/// A team as it is defined.
#[derive(Debug, PartialEq, Eq)]
struct Defined {
    /// Distinguishes it from others of the same process.
    number: u64,
    /// Its locations. Teams of one group share them.
    locations: Arc<Locations>,
}

/// Locations of a group.
#[derive(Debug, Default, PartialEq, Eq)]
struct Locations {
    /// By location: the number of its thread.
    number: FxHashMap<u64, u32>,
    /// That of the first thread.
    first: Option<u64>,
    size: u32,
}

impl Locations {
    fn of(members: impl Iterator<Item = u64>) -> Locations {
        let mut locations = Locations::default();
        for (number, location) in (0..).zip(members) {
            locations.first.get_or_insert(location);
            locations.number.entry(location).or_insert(number);
            locations.size = number + 1;
        }
        locations
    }
}

/// All teams, by the number of their communicator.
#[derive(Debug, Default)]
pub struct Teams(FxHashMap<u32, Defined>);

/// A thread's part in a team.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The communicator.
    pub comm: u32,
    /// Number of the team in the process; another one each time it is forked.
    id: u64,
    /// Number of its threads; 0 = not known.
    pub size: u32,
    /// Number of this one.
    pub number: u32,
    /// Barriers that this thread has met.
    pub met: u64,
}

impl Part {
    /// In a team that is not defined.
    pub fn unknown(comm: u32) -> Part {
        Part {
            comm,
            ..Part::default()
        }
    }

    /// What a meeting of the team is known by: 0 = its begin.
    pub fn key(&self, meeting: u64) -> u64 {
        self.id << MEETING_BITS | meeting & ((1 << MEETING_BITS) - 1)
    }

    /// What turns in its ordered regions are known by.
    pub fn turns(&self) -> u64 {
        self.key((1 << MEETING_BITS) - 2)
    }

    /// What tasks are known by that the thread with this number has made.
    pub fn tasks_of(&self, number: u32) -> u64 {
        self.key(number.into())
    }

    /// The parameter of its records, as in the trace format.
    pub fn parameter(&self) -> u64 {
        u64::from(self.size) | u64::from(self.number) << 32
    }
}

impl Teams {
    /// Interprets definitions.
    pub fn new(definitions: &Definitions) -> Teams {
        let openmp = definitions.groups.values().flatten().find(|group| {
            group.kind == group_kind::COMM_LOCATIONS && group.paradigm == PARADIGM_OPENMP
        });
        let all = openmp.map_or(&[][..], |group| &group.members);
        let process_of: FxHashMap<u64, u32> = definitions
            .locations
            .iter()
            .map(|location| (location.id, location.group))
            .collect();
        let mut of_process: FxHashMap<u32, u64> = FxHashMap::default();
        let mut of_group: FxHashMap<u32, Arc<Locations>> = FxHashMap::default();
        let mut teams = FxHashMap::default();
        for comm in &definitions.comms {
            let Some(group) = definitions.groups.get(&comm.group).and_then(|groups| {
                groups
                    .iter()
                    .find(|group| group.paradigm == PARADIGM_OPENMP)
            }) else {
                continue;
            };
            let location = |member: &u64| match group.kind {
                group_kind::COMM_GROUP => all.get(*member as usize).copied(),
                _ => Some(*member),
            };
            let members = group.members.iter();
            let members = members.map(|member| location(member).unwrap_or(u64::MAX));
            let locations = of_group.entry(comm.group);
            let locations = locations.or_insert_with(|| Arc::new(Locations::of(members)));
            let locations = Arc::clone(locations);
            let process = locations.first.and_then(|first| process_of.get(&first));
            let number = of_process
                .entry(process.copied().unwrap_or(UNDEFINED))
                .or_default();
            let defined = Defined {
                number: *number,
                locations,
            };
            *number += 1;
            teams.entry(comm.id).or_insert(defined);
        }
        Teams(teams)
    }

    /// The part of a location in a team that is forked for the time with this number; `None` if it is not
    /// defined.
    pub fn part(&self, comm: u32, location: u64, times: u64) -> Option<Part> {
        let defined = self.0.get(&comm)?;
        let number = *defined.locations.number.get(&location)?;
        let low = times & ((1 << TIMES_BITS) - 1);
        Some(Part {
            comm,
            id: (defined.number << TIMES_BITS | low) + 1,
            size: defined.locations.size,
            number,
            met: 0,
        })
    }
}
