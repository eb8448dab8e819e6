//! Builds the report from merged sums, at the head.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laggard_patterns::{Evidence, PatternId, confidence};
use laggard_report::units::duration;
use laggard_report::{
    AnomalySeverity, Bottleneck, CalledOnce, Causality, ClockViolations, Efficiency,
    EfficiencyPart, EndOperation, Hybrid, InCalls, Instance, LocationClass, LocationSums,
    LocationTimes as Times, Metric, OffWork, PhasesOfRun, RankClass, RankShare, Report, Run,
    Settings, Unlisted, percent, ratio, seconds,
};
use laggard_trace::calls::{self, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::basics::anomaly::Level;
use crate::basics::intern::PathKey;
use crate::clock::causality::{Count, Violations};
use crate::findings::fold::{FirstThreads, Folded, FoldedFindings, Locations, Teams};
use crate::findings::merge::Partial;
use crate::findings::places::Places;
use crate::findings::{by_operation, fold, imbalance, left, regions, severe, teams, within};
use crate::input::bounds::is_end;
use crate::input::open::Opened;
use crate::judge::account::Settled;
use crate::judge::detect::Filter;
use crate::judge::profile::{Counters, LocationTimes, Profile, ProfileSums};
use crate::options::AnalyzeOptions;
use crate::report::around::Around;
use crate::report::deadlock::Scene;
use crate::report::hints::{Found, RunFacts, hints};
use crate::report::ids;
use crate::report::once;
use crate::report::path;
use crate::report::reasons::{Reason, because};
use crate::report::roots::{self, Traced};
use crate::report::traffic;
use crate::stream::following::Followers;
use crate::timeline::moments::Moments;
use crate::waits::spread::Spread;
use crate::waits::sums::{FindingKey, Worst};

/// Details of single calls.
pub struct Named<'n> {
    pub places: &'n mut Places,
    /// Activity around the worst ones.
    pub around: &'n Around,
}

/// Most findings with a spread over the ranks.
const SPREAD: usize = 100;

/// Builds the report. `unlisted` findings are only counted, unless a hint promises more than they
/// lost: calls in which nobody waits may still take long. `end` is the end of the run, ns since its
/// start; `moments` are those of its parts.
pub fn build(
    opened: &Opened,
    (merged, mut unlisted): (Partial, FoldedFindings),
    (before, after): (Violations, Violations),
    Named { places, around }: Named,
    options: &AnalyzeOptions,
    (moments, end): (Moments, i64),
) -> Report {
    let locations = &merged.locations;
    let total = Total {
        measured: locations.sums.wall as f64,
        all: locations.sums.all() as f64,
    };
    // The largest violation of causality is a lower bound of the clock error.
    let clock_error = opened.clocks.error_ns().max(after.all().largest);
    let any_truncated = opened.truncated.iter().any(|&cut| cut);

    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut totals: BTreeMap<PatternId, (u64, u64, u64, Spread)> = BTreeMap::new();
    let all = merged.findings.iter().chain(&unlisted);
    for ((pattern, ..), sums) in all.clone() {
        if let Some(pattern) = PatternId::from_number(*pattern) {
            let sum = totals.entry(pattern).or_default();
            sum.0 = sum.0.saturating_add(sums.severity);
            sum.1 = sum.1.saturating_add(sums.instances);
            sum.2 = sum.2.saturating_add(sums.inter_host);
            sum.3.merge(&sums.spread);
        }
    }
    let single_host = opened.host_names.len() <= 1;
    let between = |ns: u64| (!single_host).then(|| seconds(ns));
    let mut inter_host = 0u64;
    for (pattern, (severity, instances, part, spread)) in totals {
        if pattern.is_waiting() {
            inter_host = inter_host.saturating_add(part);
        }
        metrics.insert(
            pattern.id().to_owned(),
            Metric {
                name: pattern.name().to_owned(),
                total_s: seconds(severity),
                percent: percent(severity as f64, total.of(pattern)),
                instances,
                inter_node_s: between(part),
                quartiles_s: quartiles(&spread),
                worst_instances: Vec::new(),
            },
        );
    }
    for (pattern, instances) in severe::instances(all.clone(), places) {
        if let Some(metric) = metrics.get_mut(pattern.id()) {
            metric.worst_instances = instances;
        }
    }
    let imbalance = imbalance::rows(&merged.computed, total.measured, places);
    let functions = imbalance::functions(&merged.functions, total.measured, places);
    let thread_imbalance = teams::rows(&merged.in_teams, total.measured, places);
    let regions = regions::rows(merged.regions, &options.settings, total.measured, places);
    let waiting = waiting_at(all.clone(), &merged.profile);
    let operations = by_operation::rows(&merged.profile, all, &regions, &merged.caused);
    let called_once = called_once(&merged.profile, total.measured, places);
    let run = RunFacts::new(
        opened,
        &options.rules,
        left::Run::new(
            merged.findings.iter().chain(&unlisted),
            &merged.followers,
            opened.agent_of.len() as u32,
            (&merged.between, end),
        ),
    );
    let ranks = opened.agent_of.len();
    let traced = Traced::new(
        (&merged.roots, &merged.within),
        (total.measured, ranks),
        &run,
        places,
    );
    let context = Context {
        traced: &traced,
        waiting: &waiting,
        total,
        clock_error,
        any_truncated,
        members_missing: merged.profile.values().any(|sums| sums.members_missing),
        single_host,
        run,
        followers: &merged.followers,
        within: &merged.within,
        profile: &merged.profile,
        ranks,
        around,
    };
    let mut told = |key: &FindingKey, sums: &Folded| {
        let profile = merged.profile.get(&(key.1, key.2));
        bottleneck(
            *key,
            sums,
            &profile.copied().unwrap_or_default(),
            &context,
            places,
        )
    };
    let least = options.settings.hotspot_percent;
    let is_promising = |found: &Bottleneck| {
        let mut promised = found.advice.iter().filter_map(|advice| advice.percent);
        promised.any(|percent| percent >= least)
    };
    let mut findings: Vec<(Reverse<u64>, FindingKey, Bottleneck)> = Vec::new();
    for (key, sums) in &merged.findings {
        let found = told(key, sums);
        findings.extend(found.map(|found| (Reverse(sums.severity), *key, found)));
    }
    unlisted.retain(|key, sums| {
        let found = told(key, sums).filter(is_promising);
        let is_left = found.is_none();
        findings.extend(found.map(|found| (Reverse(sums.severity), *key, found)));
        is_left
    });
    let below_hotspot = below_hotspot(&unlisted, total.measured);
    let is_searched = !merged.roots.is_unknown;
    let (wait_classes, delay_costs) = roots::classes(&merged.roots);
    let counts = (locations.count as usize, merged.pairs.all.0);
    let (critical_path, parallelism) = path::rows(&merged.roots, counts, places);
    findings.sort_by_key(|(severity, key, _)| (*severity, *key));
    let findings = findings.into_iter().enumerate();
    let bottlenecks = findings.map(|(at, (.., found))| match at < SPREAD {
        true => found,
        false => Bottleneck {
            rank_classes: Vec::new(),
            ..found
        },
    });
    let mut bottlenecks: Vec<Bottleneck> = bottlenecks.collect();
    once::tell_once(&mut bottlenecks, &options.rules.base);
    ids::add(&mut bottlenecks);
    let mut anomalies = merged.anomalies;
    for (found, remaining, what) in [
        (
            before.messages,
            after.messages,
            "messages received before they were sent",
        ),
        (
            before.collectives,
            after.collectives,
            "collectives left before the last one entered",
        ),
    ] {
        let most = |count: Count| duration(count.largest as f64 / 1e9);
        let is_corrected = before != after;
        let (level, end) = match remaining.count {
            0 => (Level::Info, "; none with corrected clocks".to_owned()),
            left if is_corrected => {
                let most = most(remaining);
                let end = format!("; {left} with corrected clocks, by {most} at most");
                (Level::Warning, end)
            }
            _ => (Level::Warning, String::new()),
        };
        let count = found.count.max(remaining.count);
        if count > 0 {
            let detail = format!("{what}, by {} at most{end}", most(found));
            anomalies.add("clock_violation", level, count, detail);
        }
    }
    for wrong in &options.rules.complaints {
        let detail = format!("line {}: {}; left out", wrong.line, wrong.text);
        anomalies
            .add("rule_error", Level::Warning, 1, detail)
            .origin(options.rules.file.clone());
    }
    let scene = Scene::new(
        merged.hanging,
        merged.known,
        (&opened.agent_of, &opened.truncated),
        end,
    );
    let hanging = scene.rows(|path| places.short(path));
    let rows = anomalies.into_rows().into_iter().map(|row| {
        let place = row.place.map(|(operation, path)| {
            format!(", {} at {}", calls::name(operation), places.short(path))
        });
        laggard_report::Anomaly {
            id: row.id,
            severity: match row.level {
                Level::Info => AnomalySeverity::Info,
                Level::Warning => AnomalySeverity::Warning,
                Level::Error => AnomalySeverity::Error,
            },
            count: row.count,
            detail: row.detail + &place.unwrap_or_default(),
            origin: row.origin,
        }
    });
    let mut rows: Vec<_> = rows.collect();
    // The worst first. Why a program did not end comes before any other warning.
    let is_error = |row: &laggard_report::Anomaly| row.severity == AnomalySeverity::Error;
    let errors = rows.iter().take_while(|row| is_error(row)).count();
    rows.splice(errors..errors, hanging);
    rows.extend(places.symbols.anomalies());
    let mut program = opened.run.program.iter().cloned();
    Report {
        schema: laggard_report::SCHEMA.to_owned(),
        run: Run {
            program: program.next().unwrap_or_default(),
            arguments: program.collect(),
            ranks: opened.agent_of.len() as u32,
            locations: locations.count as u32,
            hosts: opened.host_names.clone(),
            models: models(merged.profile.keys().map(|&(operation, _)| operation)),
            began_unix_s: opened.run.began_unix_ms.map(|ms| ms as f64 / 1e3),
            wall_time_s: seconds(end),
            trace_bytes: opened.run.bytes,
            operations: locations.sums.calls,
            mpi_library: opened.run.mpi_library.clone(),
            clock_error_s: Some(seconds(clock_error)),
            processors: opened.run.rooms.clone(),
            crowd: opened.run.crowd,
            clock_violations: (before.all().count > 0).then(|| ClockViolations {
                before: causality(&before),
                after: causality(&after),
            }),
        },
        settings: Settings {
            fast: options.fast,
            charge_last: options.charge_last,
            ..options.settings.clone()
        },
        agents: laggard_report::Agents {
            bytes_exchanged: merged.bytes_exchanged,
            requests: merged.requests,
            peak_memory_bytes: Some(merged.peak_memory),
            ..Default::default()
        },
        efficiency: efficiency(locations),
        phases_of_run: Some(phases_of_run(&merged.profile, locations, moments, end)),
        messages: traffic::pairs(&merged.pairs),
        rank_matrix: merged.matrix.told(),
        location_sums: Some(LocationSums {
            inter_node_wait_s: between(inter_host),
            ..location_sums(locations)
        }),
        locations: times(locations, opened),
        location_classes: times_classes(locations, opened.agent_of.len()),
        metrics,
        operations,
        call_tree: None,
        root_causes: is_searched.then_some(traced.rows),
        untraced_s: is_searched.then_some(traced.untraced_s),
        unlisted_s: is_searched.then_some(traced.unlisted_s),
        waiting_by_activity_s: traced.by_activity,
        wait_classes,
        delay_costs,
        critical_path: is_searched.then_some(critical_path),
        parallelism: is_searched.then_some(parallelism),
        bottlenecks,
        below_hotspot,
        called_once,
        imbalance,
        functions,
        thread_imbalance,
        regions,
        anomalies: rows,
    }
}

/// Times of start-up, of the measured part, and of shut-down.
fn phases_of_run(
    profile: &Profile,
    locations: &Locations,
    moments: Moments,
    end: i64,
) -> PhasesOfRun {
    let stopped = moments.stopped.unwrap_or(end).clamp(0, end.max(0));
    let started = moments.started.clamp(0, stopped);
    let mut functions: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    let ends = profile
        .iter()
        .filter(|((operation, _), _)| is_end(*operation));
    for (&(operation, _), sums) in ends {
        let sum = functions.entry(operation).or_default();
        sum.0 = sum.0.saturating_add(sums.count);
        sum.1 = sum.1.saturating_add(sums.ends.min(sums.total));
    }
    let all = locations.sums.all() as f64;
    let mut operations: Vec<_> = functions.into_iter().collect();
    operations.sort_by_key(|&(operation, (_, total))| (Reverse(total), operation));
    let operations = operations
        .into_iter()
        .map(|(operation, (calls, total))| EndOperation {
            operation: calls::name(operation).to_owned(),
            calls,
            total_s: seconds(total),
            share: ratio(total as f64, all),
        });
    PhasesOfRun {
        startup_s: seconds(started),
        measured_s: seconds(stopped - started),
        shutdown_s: seconds(end.max(0) - stopped),
        operations: operations.collect(),
    }
}

/// Losses of findings that are not listed.
fn below_hotspot(unlisted: &FoldedFindings, total: f64) -> Option<Unlisted> {
    // Unexplained time has its own sum in the report.
    let found = unlisted
        .iter()
        .filter(|(key, _)| PatternId::from_number(key.0) != Some(PatternId::Unexplained));
    let (count, lost) = found.fold((0u64, 0u64), |(count, lost), (_, folded)| {
        (count + 1, lost.saturating_add(folded.severity))
    });
    (count > 0).then(|| Unlisted {
        findings: count,
        severity_s: seconds(lost),
        percent: percent(lost as f64, total),
    })
}

/// The hotspots with a single call, most time first.
fn called_once(profile: &Profile, total: f64, places: &mut Places) -> Vec<CalledOnce> {
    let is_once =
        |((operation, _), sums): &(&(u16, _), &ProfileSums)| sums.once.0 > 0 && !is_end(*operation);
    let rows = profile.iter().filter(is_once);
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(key, sums)| (Reverse(sums.once.1), **key));
    let rows = rows.into_iter().map(|(&(operation, path), sums)| {
        let (locations, time) = sums.once;
        CalledOnce {
            operation: calls::name(operation).to_owned(),
            location: places.of(path),
            locations,
            total_s: seconds(time),
            percent: percent(time as f64, total),
        }
    });
    rows.collect()
}

fn causality(violations: &Violations) -> Causality {
    Causality {
        messages: violations.messages.count,
        collectives: violations.collectives.count,
        largest_s: seconds(violations.all().largest),
    }
}

/// Programming models of the program's calls.
fn models(operations: impl Iterator<Item = u16>) -> Vec<String> {
    let calls = operations.filter_map(calls::call);
    let (mut mpi, mut shmem) = (false, false);
    for call in calls {
        mpi |= !call.is_shmem() && !call.is_posix() && !call.is_threads();
        shmem |= call.is_shmem();
    }
    let models = [("mpi", mpi || !shmem), ("shmem", shmem)];
    let used = models.into_iter().filter(|(_, used)| *used);
    used.map(|(model, _)| model.to_owned()).collect()
}

/// POP efficiencies over the ranks' first threads: load balance = mean / maximum of
/// the computation, communication = maximum of the computation / time between start-up and
/// shut-down.
fn efficiency(locations: &Locations) -> Efficiency {
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

fn location_sums(locations: &Locations) -> LocationSums {
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

fn times(locations: &Locations, opened: &Opened) -> Vec<Times> {
    let busiest: FxHashSet<u32> = locations.busiest.iter().collect();
    let most = locations.listed.iter().map(LocationTimes::computation);
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
                && times.computation as f64 >= most * fold::BOTTLENECK_SHARE,
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

fn times_classes(locations: &Locations, ranks: usize) -> Vec<LocationClass> {
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

/// The time of all locations, ns.
#[derive(Clone, Copy)]
struct Total {
    /// Between start-up and shut-down.
    measured: f64,
    /// Including start-up and shut-down.
    all: f64,
}

impl Total {
    /// The time that a pattern's percentages refer to.
    fn of(self, pattern: PatternId) -> f64 {
        if pattern.is_startup() {
            self.all
        } else {
            self.measured
        }
    }
}

/// Operations and call paths with mostly waiting time.
fn waiting_at<'f>(
    findings: impl Iterator<Item = (&'f FindingKey, &'f Folded)>,
    profile: &Profile,
) -> FxHashSet<(u16, PathKey)> {
    let mut sums: FxHashMap<(u16, PathKey), u64> = FxHashMap::default();
    for (&(pattern, operation, path), folded) in findings {
        if PatternId::from_number(pattern).is_some_and(PatternId::is_waiting) {
            let sum = sums.entry((operation, path)).or_default();
            *sum = sum.saturating_add(folded.severity);
        }
    }
    let is_most = |(place, lost): &((u16, PathKey), u64)| {
        let total = profile.get(place).map_or(0, |sums| sums.total);
        *lost >= total.div_ceil(2)
    };
    let waiting = sums.into_iter().filter(is_most);
    waiting.map(|(place, _)| place).collect()
}

/// Context that all findings share.
struct Context<'c> {
    traced: &'c Traced,
    /// See [`waiting_at`].
    waiting: &'c FxHashSet<(u16, PathKey)>,
    total: Total,
    clock_error: u64,
    any_truncated: bool,
    members_missing: bool,
    single_host: bool,
    /// Number of ranks of the run.
    ranks: usize,
    around: &'c Around,
    run: RunFacts<'c>,
    followers: &'c Followers,
    within: &'c within::Regions,
    profile: &'c Profile,
}

fn bottleneck(
    key: FindingKey,
    sums: &Folded,
    profile: &ProfileSums,
    context: &Context,
    places: &mut Places,
) -> Option<Bottleneck> {
    let (pattern, operation, path) = key;
    let pattern = PatternId::from_number(pattern)?;
    let call = calls::call(operation)?;
    let severity = sums.severity;
    let mean_loss = severity / sums.instances.max(1);
    // All late parties are on the waiting rank's own host, with one clock.
    let is_local = sums.inter_host == 0 && !sums.causes.is_empty();
    let error = match context.single_host || is_local {
        true => 0,
        false => context.clock_error,
    };
    let evidence = Evidence {
        clock_error_ns: error as i64,
        truncated: context.any_truncated,
        // The wait for a non-blocking collective does not tell its group.
        members_missing: match call.shape {
            Shape::Single => context.members_missing && pattern.is_about_group(),
            _ => profile.members_missing,
        },
        inferred: call.is_user(),
    };
    let mean = profile.total as f64 / profile.count.max(1) as f64 / 1e9;
    let (filter, measured, baseline) = match profile.filter {
        Filter::None | Filter::Once | Filter::Hotspot => ("hotspot", None, None),
        Filter::Excess(ratio, expected) => ("hotspot", Some(ratio), expected),
        Filter::Deviation(ratio) => ("deviation", Some(ratio), None),
        Filter::Baseline(ratio, expected) => ("baseline", Some(ratio), Some(expected)),
        Filter::All => ("all", None, None),
    };
    let waiting_ranks = sums.rank_set.len();
    let mut reasons: Vec<Reason> = Vec::new();
    let waits = |operation, path| context.waiting.contains(&(operation, path));
    let is_of_threads = calls::call(operation).is_some_and(|call| call.is_threads());
    let causes = sums.causes.iter().map(|(key, cause)| {
        let reason = because(
            (pattern, operation, path),
            key,
            (cause, severity),
            waiting_ranks,
            waits,
            places,
        );
        let share = ratio(cause.sums.severity as f64, severity as f64);
        let tells = reason.is_between || reason.late == laggard_patterns::Late::Computed;
        let finding = (pattern as u8, operation, path);
        let computed = ratio(cause.sums.computation as f64, severity as f64);
        let part = if reason.is_between { share } else { computed };
        let of = (part, reason.is_between);
        let mostly = context.traced.mostly(&finding, key.rank, of);
        let because = match mostly.filter(|_| tells) {
            Some(mostly) => format!("{}, {mostly}", reason.text),
            None => reason.text.clone(),
        };
        reasons.push(reason);
        let part = |ns: u64| Some(seconds(ns));
        laggard_report::Cause {
            rank: key.rank,
            thread: (key.thread > 0 || is_of_threads).then_some(key.thread.into()),
            operation: calls::name(key.operation).to_owned(),
            location: places.of(key.path),
            parallel_regions: within::rows(context.within, (key.operation, key.path), places),
            severity_s: seconds(cause.sums.severity),
            share,
            because,
            computation_s: part(cause.sums.computation),
            wait_s: part(cause.sums.waiting),
            io_s: part(cause.sums.io),
            blocked_s: part(cause.sums.blocked).filter(|time| *time > 0.0),
            preempted_s: part(cause.sums.preempted).filter(|time| *time > 0.0),
        }
    });
    let causes: Vec<_> = causes.collect();
    // Of other patterns, it is waiting for nobody known.
    let is_of_members = pattern.is_about_group() && pattern.is_waiting() && !causes.is_empty();
    let several = severity.saturating_sub(sums.late.severity);
    let several = Some(several).filter(|time| is_of_members && *time > 0);
    let found = Found {
        key,
        sums,
        profile,
        all: context.profile,
        followed: context.followers.get(&(operation, path)),
        reasons: &reasons,
        traced: context.traced,
    };
    let (hints, advice) = hints(&found, &context.run, places);
    // Many short calls that took too long only together have no bad one.
    let of_single_calls = |worst: &Worst| {
        let most = worst.severity.saturating_mul(sums.instances);
        pattern != PatternId::Unexplained || most >= severity / 2
    };
    let worst = sums.worst.filter(of_single_calls);
    Some(Bottleneck {
        id: String::new(),
        pattern: pattern.id().to_owned(),
        name: pattern.name().to_owned(),
        operation: call.name.to_owned(),
        operation_type: call.generic.name().to_owned(),
        location: places.of(path),
        parallel_regions: within::rows(context.within, (operation, path), places),
        severity_s: seconds(severity),
        percent: percent(severity as f64, context.total.of(pattern)),
        rank_percent: Some(ratio(sums.rank_percent, 1.0)),
        confidence: ratio(
            confidence(mean_loss as i64, &evidence)
                * (1.0 - sums.doubt as f64 / severity.max(1) as f64),
            1.0,
        ),
        calls: profile.count,
        instances: sums.instances,
        mean_s: mean,
        min_s: profile.range.map(|(least, _)| seconds(least)),
        max_s: profile.range.map(|(_, most)| seconds(most)),
        baseline_s: baseline,
        ratio: measured.map(|value| ratio(value, 1.0)),
        filter: filter.to_owned(),
        ranks: sums
            .ranks
            .iter()
            .map(|&(rank, severity, instances)| RankShare {
                rank,
                severity_s: seconds(severity),
                instances,
            })
            .collect(),
        rank_set: Some(laggard_report::rank_ranges(sums.rank_set.iter())),
        rank_classes: loss_classes(sums, context.ranks),
        inter_node_s: (!context.single_host).then(|| seconds(sums.inter_host)),
        quartiles_s: quartiles(&sums.spread),
        several_s: several.map(seconds),
        causes,
        root_causes: context.traced.shares(&key),
        worst_instance: worst.map(|worst| Instance {
            rank: worst.rank,
            start_s: seconds(worst.enter),
            end_s: seconds(worst.leave),
            severity_s: seconds(worst.severity),
            timeline: context.around.timeline(&key, places),
        }),
        hints,
        advice,
    })
}

fn quartiles(spread: &Spread) -> Option<[f64; 3]> {
    Some(spread.quartiles()?.map(seconds))
}

fn loss_classes(sums: &Folded, ranks: usize) -> Vec<RankClass> {
    let classes = sums.classes.iter().map(|one| {
        let (first, last) = fold::ranks_of_class(one.class, ranks);
        RankClass {
            first_rank: first,
            last_rank: last,
            ranks: one.ranks,
            severity_s: seconds(one.severity),
            least_s: seconds(one.least),
            most_s: seconds(one.most),
        }
    });
    classes.collect()
}
