//! Barriers and collectives that are regions of the program: which operations of the operation map
//! can be matched among ranks, and whether ranks meet in them.
//!
//! The n-th instance of a rank belongs to the n-th of each other rank with any. This is certain
//! only if all instances are in the trace, and every rank has the same number. Nobody leaves a
//! barrier before all have entered it. If a single instance violates this, the ranks are not one
//! group, or it is no barrier, and no waits are charged.

use laggard_comm::Job;
use laggard_trace::Location;
use laggard_trace::calls::user;
use laggard_trace::calls::{self, GenericType};
use laggard_trace::operations::OperationMap;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::basics::anomaly::{Anomalies, Level};
use crate::judge::profile::Profiled;
use crate::replay::rank::Rank;

/// Seed of group ids for the program's own operations.
const SEED: u64 = 0x6c61_6767_6172_6421;

/// The instances of an operation in a location.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instances {
    /// Instances with a record.
    pub recorded: u64,
    /// All instances according to the profile of regions; `None` without it.
    pub counted: u64,
}

/// An operation's instances in all locations of a rank.
#[derive(Clone, Copy, Debug, Default)]
struct OfRank {
    instances: Instances,
    /// Threads with instances.
    threads: u64,
}

/// The instances of an operation on all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    ranks: u64,
    least: u64,
    most: u64,
    threads: u64,
    recorded: u64,
    counted: u64,
}

impl Known {
    /// Why instances cannot be matched.
    fn obstacle(&self) -> Option<String> {
        let Known {
            least,
            most,
            recorded,
            counted,
            ..
        } = self;
        if recorded != counted {
            let missing = counted.saturating_sub(*recorded);
            Some(format!(
                "the trace lacks {missing} of its {counted} instances, as it does of all regions \
                 that last less than 20 us: record with --operation-map, or LAGGARD_OPERATION_MAP"
            ))
        } else if self.threads > 1 {
            Some("several threads of a rank run it".to_owned())
        } else if self.ranks < 2 {
            Some("one rank alone runs it".to_owned())
        } else if least != most {
            Some(format!(
                "ranks run it {least} to {most} times: they are not one group"
            ))
        } else {
            None
        }
    }
}

/// Operations whose instances are matched: number and group.
#[derive(Debug, Default)]
pub struct Meetings(Vec<(u16, u64)>);

/// Whether an operation of this type is a meeting of ranks.
pub fn is_meeting(generic: GenericType) -> bool {
    matches!(generic, GenericType::GroupSync | GenericType::GroupComm)
}

/// The group of all ranks that run an operation.
fn group_of(number: u16) -> u64 {
    xxh3_64_with_seed(calls::name(number).as_bytes(), SEED).max(1)
}

impl Meetings {
    /// Finds the operations, and makes collectives of their instances. `instances` are those of
    /// each location by operation. Collective.
    pub fn find(
        job: &dyn Job,
        map: &OperationMap,
        locations: &mut [Location],
        profiled: &mut [Profiled],
        instances: &[FxHashMap<u16, Instances>],
        anomalies: &mut Anomalies,
    ) -> Meetings {
        let wanted = map.entries().filter(|(_, generic)| is_meeting(*generic));
        let wanted: Vec<u16> = wanted
            .filter_map(|(name, generic)| user::number(name, generic))
            .collect();
        let known = of_all(job, &wanted, locations, instances);
        let mut found = Meetings::default();
        for (&number, known) in wanted.iter().zip(&known).filter(|(_, k)| k.ranks > 0) {
            match known.obstacle() {
                Some(why) if job.agent() == 0 => not_matched(number, &why, anomalies),
                Some(_) => {}
                None => found.0.push((number, group_of(number))),
            }
            if known.obstacle().is_some() {
                continue;
            }
            let members = known.ranks as u32;
            for (at, location) in locations.iter_mut().enumerate() {
                if !instances[at].contains_key(&number) {
                    continue;
                }
                let definitions = &mut location.definitions;
                definitions.make_collective(number, group_of(number), members);
                let entries = profiled[at].entries.iter_mut();
                let own = entries.filter(|(_, entry)| entry.operation == number);
                own.for_each(|(_, entry)| entry.members = members);
            }
        }
        found
    }

    /// Removes the findings of operations in which ranks do not meet. `apart` counts, by group, the
    /// instances that a rank left before all had entered. Collective.
    pub fn check(
        &self,
        job: &dyn Job,
        apart: &FxHashMap<u64, u64>,
        ranks: &mut [Rank],
        anomalies: &mut Anomalies,
    ) {
        let count = |(_, group): &(u16, u64)| apart.get(group).copied().unwrap_or(0);
        let mut counts: Vec<u64> = self.0.iter().map(count).collect();
        job.reduce_sum(&mut counts);
        let wrong = self.0.iter().zip(counts).filter(|(_, count)| *count > 0);
        for (&(number, _), count) in wrong {
            for rank in &mut *ranks {
                let threads = rank.recorded.threads.iter();
                for (thread, charged) in threads.zip(&mut rank.messages.asker.charged) {
                    let is_wrong = |at: u32| thread.rows[at as usize].operation == number;
                    charged.findings.forget(is_wrong);
                }
            }
            if job.agent() == 0 {
                let why = format!(
                    "{count} times somebody left it before all who run it had entered: they are \
                     not one group, or do not wait for each other"
                );
                not_matched(number, &why, anomalies);
            }
        }
    }
}

/// Notes an operation without matched instances: only its time is known.
fn not_matched(number: u16, why: &str, anomalies: &mut Anomalies) {
    let call = calls::call(number);
    let generic = call.map_or("user", |call| call.generic.name());
    let detail = format!(
        "the time in \"{}\" counts as {generic}, as the operation map says; who its ranks waited \
         for there is not known: {why}",
        calls::name(number)
    );
    anomalies.add("operation_not_diagnosed", Level::Info, 1, detail);
}

/// The instances of operations on all agents. Collective.
fn of_all(
    job: &dyn Job,
    wanted: &[u16],
    locations: &[Location],
    instances: &[FxHashMap<u16, Instances>],
) -> Vec<Known> {
    let mut sums: Vec<u64> = Vec::new();
    let mut extremes: Vec<u64> = Vec::new();
    for number in wanted {
        let mut ranks: FxHashMap<u32, OfRank> = FxHashMap::default();
        for (location, instances) in locations.iter().zip(instances) {
            if let Some(more) = instances.get(number) {
                let of_rank = ranks.entry(location.header.rank).or_default();
                of_rank.threads += 1;
                of_rank.instances.recorded += more.recorded;
                of_rank.instances.counted += more.counted;
            }
        }
        let all = || ranks.values();
        let most = |of: &dyn Fn(&OfRank) -> u64| all().map(of).max().unwrap_or(0);
        sums.push(ranks.len() as u64);
        sums.push(all().map(|of| of.instances.recorded).sum());
        sums.push(all().map(|of| of.instances.counted).sum());
        extremes.push(most(&|of| of.instances.counted));
        extremes.push(most(&|of| u64::MAX - of.instances.counted));
        extremes.push(most(&|of| of.threads));
    }
    job.reduce_sum(&mut sums);
    job.reduce_max(&mut extremes);
    let known = sums.chunks_exact(3).zip(extremes.chunks_exact(3));
    let known = known.map(|(sums, extremes)| Known {
        ranks: sums[0],
        recorded: sums[1],
        counted: sums[2],
        most: extremes[0],
        least: u64::MAX - extremes[1],
        threads: extremes[2],
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::group::is_apart;
    use crate::wire::parcels::Fold;
    use laggard_trace::calls::NUMBERS;

    #[test]
    fn what_cannot_be_matched_is_said() {
        let good = Known {
            ranks: 4,
            least: 10,
            most: 10,
            threads: 1,
            recorded: 40,
            counted: 40,
        };
        assert_eq!(good.obstacle(), None);
        let why = |known: Known| known.obstacle().unwrap();
        let lacks = Known {
            recorded: 31,
            ..good
        };
        assert!(why(lacks).contains("lacks 9 of its 40"));
        assert!(why(Known { threads: 2, ..good }).contains("threads"));
        assert!(why(Known { ranks: 1, ..good }).contains("alone"));
        assert!(why(Known { least: 7, ..good }).contains("7 to 10 times"));
    }

    #[test]
    fn who_leaves_before_others_enter_does_not_meet_them() {
        let mut fold = Fold {
            operation: NUMBERS as u32 + 3,
            first_leave: 100,
            ..Fold::default()
        };
        fold.last.enter = 100;
        assert!(!is_apart(&fold, 0));
        fold.last.enter = 130;
        assert!(is_apart(&fold, 0) && !is_apart(&fold, 30));
        // Calls of libraries are not checked.
        fold.operation = 5;
        assert!(!is_apart(&fold, 0));
    }
}
