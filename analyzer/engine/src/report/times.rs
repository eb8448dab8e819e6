//! Times of locations, of all together, and how efficient these are.

use laggard_report::{
    Efficiency, EfficiencyPart, Hybrid, InCalls, LocationClass, LocationSums,
    LocationTimes as Times, OffWork, ratio, seconds,
};
use rustc_hash::FxHashSet;

use crate::findings::fold;
use crate::findings::fold::{FirstThreads, Locations, Teams};
use crate::input::open::Opened;
use crate::judge::account::Settled;
use crate::judge::profile::{Counters, LocationTimes};
use crate::report::traffic;

/// POP efficiencies over the ranks' first threads: load balance = mean / maximum of
/// the computation, communication = maximum of the computation / time between start-up and
/// shut-down.
pub fn efficiency(locations: &Locations) -> Efficiency {
    let first = &locations.first_threads;
    let most = first.most_computation as f64;
    let mean = first.computation as f64 / first.count.max(1) as f64;
    let load_balance = ratio(mean, most);
    let communication = ratio(most, first.longest_wall as f64);
    Efficiency {
        parallel: ratio(load_balance * communication, 1.0),
        load_balance,
        communication,
        hybrid: (locations.teams.threads > first.count).then(|| hybrid(first, &locations.teams)),
        ..Efficiency::default()
    }
}

/// POP's multiplicative model of hybrid programs. The part of MPI is that of time outside of it, on the
/// ranks' first threads; that of threads is what is left of the efficiency of all.
fn hybrid(first: &FirstThreads, teams: &Teams) -> Hybrid {
    let wall = first.longest_wall as f64;
    let outside = first.outside as f64 / first.count.max(1) as f64;
    let most_outside = first.most_outside as f64;
    let computation = teams.computation as f64 / teams.threads.max(1) as f64;
    let mpi = EfficiencyPart {
        parallel: ratio(outside, wall),
        load_balance: ratio(outside, most_outside),
        communication: ratio(most_outside, wall),
    };
    let load_balance = ratio(teams.computation as f64, teams.as_busiest as f64);
    let parallel = ratio(computation, outside);
    Hybrid {
        parallel: ratio(computation, wall),
        mpi,
        threads: EfficiencyPart {
            parallel,
            load_balance,
            communication: ratio(parallel, load_balance),
        },
    }
}

pub fn location_sums(locations: &Locations) -> LocationSums {
    let sums = &locations.sums;
    LocationSums {
        computation_s: seconds(sums.computation),
        off_work: off_work(sums),
        communication_s: seconds(sums.communication),
        synchronization_s: seconds(sums.synchronization),
        io_s: seconds(sums.io),
        wait_s: seconds(sums.waiting),
        inter_node_wait_s: None,
        in_calls: Some(in_calls(sums)),
        wall_s: seconds(sums.wall),
        startup_s: Some(seconds(sums.startup)),
        shutdown_s: Some(seconds(sums.shutdown)),
        busiest: laggard_report::rank_ranges(locations.busiest.iter()),
        processor_s: processor_s(sums),
        counted_s: counted_s(&locations.counted),
        counters: locations.counted.counts.clone(),
        waits: Some(sums.traffic.waits),
        traffic: Some(traffic::told(&sums.traffic)),
    }
}

/// What computation was beside work.
fn off_work(times: &fold::Times) -> OffWork {
    let [blocked_s, preempted_s, kernel_s] = times.outside.map(seconds);
    OffWork {
        blocked_s,
        preempted_s,
        kernel_s,
    }
}

/// Time on a processor, if it is known.
fn processor_s(times: &fold::Times) -> Option<f64> {
    (times.processor > 0).then(|| seconds(times.processor))
}

/// Time in which counters counted; `None` if there are none.
fn counted_s(counters: &Counters) -> Option<f64> {
    (!counters.counts.is_empty()).then(|| seconds(counters.time))
}

/// Explained and unexplained time in calls.
fn in_calls(times: &fold::Times) -> InCalls {
    let Settled {
        explained,
        unexplained,
    } = times.settled;
    let known = explained.saturating_add(unexplained);
    let total = times.in_calls();
    InCalls {
        total_s: seconds(total),
        explained_s: seconds(explained),
        unexplained_s: seconds(unexplained),
        cost_s: seconds(total.saturating_sub(known)),
    }
}

pub fn times(locations: &Locations, opened: &Opened) -> Vec<Times> {
    let busiest: FxHashSet<u32> = locations.busiest.iter().collect();
    let most = locations.listed.iter().map(LocationTimes::worked);
    let most = most.max().unwrap_or(0) as f64;
    let listed = locations.listed.iter().map(|location| {
        let times = fold::Times::of(location);
        Times {
            rank: location.rank,
            thread: location.thread,
            host: opened.host_of(location.rank).to_owned(),
            computation_s: seconds(times.computation),
            off_work: off_work(&times),
            communication_s: seconds(times.communication),
            synchronization_s: seconds(times.synchronization),
            io_s: seconds(times.io),
            wait_s: seconds(times.waiting),
            bottleneck: busiest.contains(&location.rank)
                && location.worked() as f64 >= most * fold::BOTTLENECK_SHARE,
            wall_s: Some(seconds(times.wall)),
            in_calls: Some(in_calls(&times)),
            startup_s: Some(seconds(times.startup)),
            shutdown_s: Some(seconds(times.shutdown)),
            processor_s: processor_s(&times),
            counted_s: counted_s(&location.counted),
            counters: location.counted.counts.clone(),
            waits: Some(times.traffic.waits),
            caused_waits: Some(times.traffic.caused),
            traffic: Some(traffic::told(&times.traffic)),
        }
    });
    listed.collect()
}

pub fn times_classes(locations: &Locations, ranks: usize) -> Vec<LocationClass> {
    let classes = locations.classes.iter().map(|one| {
        let (first, last) = fold::ranks_of_class(one.class, ranks);
        LocationClass {
            first_rank: first,
            last_rank: last,
            locations: one.locations,
            computation_s: seconds(one.sums.computation),
            communication_s: seconds(one.sums.communication),
            synchronization_s: seconds(one.sums.synchronization),
            io_s: seconds(one.sums.io),
            wait_s: seconds(one.sums.waiting),
            least_computation_s: seconds(one.least_computation),
            most_computation_s: seconds(one.most_computation),
        }
    });
    classes.collect()
}
