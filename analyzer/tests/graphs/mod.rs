//! Random programs against a direct implementation of the definitions, on one, two and three agents.

mod definition;
mod losses;
mod program;
mod threads;

use std::collections::BTreeMap;

use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_report::{Report, RootSite};
use laggard_whatif::predict;
use proptest::prelude::*;

use definition::{Costs, count_transfers, on_path, path};
use program::{Ends, How, Key, Kind, Machine, Step, run, steps};

fn key(activity: &str, line: u32, until: Option<&RootSite>) -> Key {
    let known = [
        "computation",
        "blocked",
        "preempted",
        "kernel",
        "io",
        "call",
        "latency",
    ];
    let known = known.into_iter().find(|name| *name == activity);
    let until = until.map_or(0, |until| until.location.line);
    (known.expect("an activity"), line, until)
}

fn ns(seconds: f64) -> f64 {
    seconds * 1e9
}

/// Fails unless the numbers are those of the definition, up to rounding.
fn near(found: f64, expected: f64, what: impl std::fmt::Debug) -> Result<(), TestCaseError> {
    let limit = 8.0 + 1e-8 * expected;
    prop_assert!(
        (ns(found) - expected).abs() < limit,
        "{what:?}: {} for {expected}",
        ns(found)
    );
    Ok(())
}

/// The map of waiting has all of it, up to the rounding of its shares.
fn check_map(report: &Report, waiting: f64) -> Result<(), TestCaseError> {
    let load = report.parallelism.as_ref().expect("searched");
    let part = 2.0 * ns(load.bins_s);
    let (mut found, mut rounded) = (0.0, 0.0);
    for row in &load.waiting {
        let of_one = part * row.locations as f64;
        found += of_one * row.shares.iter().sum::<f64>();
        rounded += of_one * row.shares.len() as f64 * 0.5e-3;
    }
    let limit = rounded + 8.0;
    prop_assert!(
        (found - waiting).abs() <= limit,
        "map: {found} for {waiting}"
    );
    Ok(())
}

fn check_roots(machine: &Machine, report: &Report, as_whole: bool) -> Result<(), TestCaseError> {
    let Costs { of, classes } = Costs::new(machine, as_whole);
    let mut sums: BTreeMap<Key, (f64, f64)> = BTreeMap::new();
    let mut of_ranks: BTreeMap<(Key, usize), f64> = BTreeMap::new();
    for ((key, location), cost) in of {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + cost.0, sum.1 + cost.1);
        let rank = if machine.are_threads { 0 } else { location };
        *of_ranks.entry((key, rank)).or_default() += cost.0 + cost.1;
    }
    let roots = report.root_causes.as_ref().expect("root causes");
    // Root causes below 0.01 % of all time are not listed.
    let limit = ns(1e-4 * report.sums().wall_s) + 16.0;
    let mut listed = 0.0;
    for root in roots {
        let key = key(&root.activity, root.location.line, root.until.as_ref());
        listed += ns(root.severity_s);
        let (direct, indirect) = sums.remove(&key).unwrap_or_default();
        near(root.direct_s, direct, (key, "direct"))?;
        near(root.indirect_s, indirect, (key, "indirect"))?;
        for share in &root.ranks {
            let own = of_ranks.get(&(key, share.rank as usize));
            let own = own.copied().unwrap_or(0.0);
            near(share.severity_s, own, (key, share.rank))?;
        }
    }
    for (key, (direct, indirect)) in sums {
        prop_assert!(
            direct + indirect <= limit,
            "{key:?} is missing: {direct} {indirect}"
        );
    }
    let done = machine.done.iter().flatten();
    let waiting = done.map(|call| call.waited()).sum::<i64>() as f64;
    near(report.sums().wait_s, waiting, "all waiting")?;
    check_map(report, waiting)?;
    let untraced = ns(report.untraced_s.expect("known"));
    prop_assert!(untraced < 64.0, "untraced: {untraced}");
    let unlisted = ns(report.unlisted_s.expect("known"));
    let by_activity = report.waiting_by_activity_s.values().copied();
    near(by_activity.sum(), waiting, "by activity")?;
    // Each row is rounded.
    let lost = waiting - (listed + unlisted + untraced);
    let rows = 8.0 + roots.len() as f64;
    prop_assert!(lost.abs() < rows + 1e-8 * waiting, "lost: {lost}");
    for (name, class) in classes {
        let found = report.wait_classes.get(name).copied().unwrap_or_default();
        let costs = report.delay_costs.get(name).copied().unwrap_or_default();
        near(found.direct_s, class.direct, (name, "direct"))?;
        near(found.indirect_s, class.indirect, (name, "indirect"))?;
        near(
            found.propagating_s,
            class.propagating,
            (name, "propagating"),
        )?;
        near(costs.short_s, class.short, (name, "short"))?;
        near(costs.long_s, class.long, (name, "long"))?;
    }
    Ok(())
}

fn check_path(machine: &Machine, report: &Report, by_call_path: bool) -> Result<(), TestCaseError> {
    let found = report.critical_path.as_ref().expect("a path");
    let (times, ranks) = path(machine);
    let length: i64 = times.values().sum();
    near(found.length_s, length as f64, "the length")?;
    near(
        found.activities_s,
        on_path(machine, &times, by_call_path) as f64,
        "the activities",
    )?;
    let mut left = ranks;
    for part in &found.ranks {
        let time = left.remove(&(part.rank as usize)).unwrap_or(0);
        near(part.seconds, time as f64, ("rank", part.rank))?;
    }
    prop_assert!(left.values().all(|&time| time == 0), "{left:?}");
    let inner: f64 = found.ranks.iter().map(|part| part.seconds).sum();
    near(found.startup_s, length as f64 - ns(inner), "start-up")?;
    let mut left = times;
    for row in &found.profile {
        let key = key(&row.kind, row.location.line, row.until.as_ref());
        near(row.seconds, left.remove(&key).unwrap_or(0) as f64, key)?;
        prop_assert!(
            row.share == 0.0 || (row.share * inner - row.seconds).abs() < 1e-6 * inner,
            "{row:?} of {inner}"
        );
    }
    // Smaller parts are not listed.
    let is_small = |time: i64| (time as f64) < 1.1e-3 * length as f64;
    prop_assert!(left.values().all(|&time| is_small(time)), "{left:?}");
    let locations = machine.done.len() as f64 * found.length_s;
    let sum = found.activities_s + found.imbalance_impact_s + found.non_critical_s;
    prop_assert!(sum >= locations - 1e-8, "{sum} {locations}");
    Ok(())
}

/// The report of a program.
fn report(machine: &mut Machine, charge_last: bool) -> Report {
    let mut options = AnalyzeOptions {
        charge_last,
        ..AnalyzeOptions::default()
    };
    options.settings.all = true;
    // Slabs of any size make no difference.
    let records = [None, Some(3), Some(40)];
    let calls = std::mem::take(&mut machine.calls);
    crate::support::analyze_by_agents(calls, &options, records)
}

fn check(count: usize, steps: &[Step], charge_last: bool) -> Result<(), TestCaseError> {
    let mut machine = run(count, steps, !charge_last);
    count_transfers(&mut machine);
    let report = report(&mut machine, charge_last);
    check_roots(&machine, &report, !charge_last)?;
    check_path(&machine, &report, charge_last)
}

fn programs() -> impl Strategy<Value = (usize, Vec<Step>)> {
    (3..=6usize).prop_flat_map(|count| (Just(count), steps(count)))
}

proptest! {
    #[test]
    fn all_late_ones_share_the_blame((count, steps) in programs()) {
        check(count, &steps, false)?;
    }

    /// Threads of a rank meet at barriers for all, or for some of them.
    #[test]
    fn threads_met_only_those_that_came((count, steps) in programs(), charge_last in any::<bool>()) {
        let mut machine = threads::run(count, &steps, !charge_last);
        let report = report(&mut machine, charge_last);
        check_roots(&machine, &report, !charge_last)?;
    }

    /// With nothing changed, each call begins and ends as recorded.
    #[test]
    fn a_replay_reproduces_all((count, steps) in programs()) {
        let mut machine = run(count, &steps, true);
        let directory = tempfile::tempdir().unwrap();
        for calls in &mut machine.calls {
            calls.write(directory.path());
        }
        let events = Events::open(directory.path()).unwrap();
        let replayed = predict(&events, None, &[]).unwrap();
        prop_assert_eq!((replayed.not_reproduced, replayed.circles), (0, 0));
    }

    /// Scalasca knows no costs of waits at reductions, and no waits in looks and in non-blocking collectives:
    /// these are checked with shares alone.
    #[test]
    fn the_last_one_has_all_the_blame((count, mut steps) in programs()) {
        for step in &mut steps {
            match step {
                Step::Collective { kind, posts, .. } => {
                    *posts = false;
                    if matches!(kind, Kind::Reduce(_) | Kind::Held(_)) {
                        *kind = Kind::Exchange;
                    }
                }
                Step::Complete(_, how @ How::Look(_)) => *how = How::Wait,
                _ => {}
            }
        }
        check(count, &steps, true)?;
    }
}

/// Looks of a reduction's root wait for a late member in two patterns: none of that is work when the
/// other one begins.
#[test]
fn two_waits_of_a_look_are_both_known_before_either_is_compared() {
    let steps = [
        Step::Compute(3, 160_660, [0, 0, 17_851]),
        Step::Message {
            from: 1,
            to: 0,
            waits: false,
        },
        Step::Collective {
            group: 0,
            kind: Kind::Reduce(2),
            posts: true,
        },
        Step::Complete(2, How::Look(50_000)),
    ];
    check(4, &steps, false).unwrap();
}

/// Looks that go on waiting for others are not left when the first one has come: the two met when that
/// one left its call.
#[test]
fn who_goes_on_looking_has_not_left() {
    let steps = [
        Step::Compute(0, 17_293_873, [0, 0, 0]),
        Step::Message {
            from: 0,
            to: 2,
            waits: true,
        },
        Step::Collective {
            group: 0,
            kind: Kind::Barrier,
            posts: true,
        },
        Step::Post {
            from: 1,
            to: 2,
            waits: false,
            ends: Ends::Send,
        },
        Step::Complete(1, How::Look(83_154)),
        Step::Post {
            from: 1,
            to: 0,
            waits: false,
            ends: Ends::Send,
        },
    ];
    check(4, &steps, false).unwrap();
}

/// Two collectives that are complete in one call, whose last members came at the same time: it is charged with one of
/// them, by the operation.
#[test]
fn of_equal_waits_the_operation_decides() {
    let steps = [
        Step::Compute(1, 300_000, [0, 0, 0]),
        Step::Post {
            from: 3,
            to: 1,
            waits: false,
            ends: Ends::Send,
        },
        Step::Compute(3, 313_000, [0, 0, 0]),
        Step::Message {
            from: 3,
            to: 1,
            waits: false,
        },
        Step::Complete(3, How::Wait),
        Step::Collective {
            group: 0,
            kind: Kind::Exchange,
            posts: true,
        },
        Step::Collective {
            group: 2,
            kind: Kind::Barrier,
            posts: true,
        },
    ];
    check(5, &steps, false).unwrap();
}
