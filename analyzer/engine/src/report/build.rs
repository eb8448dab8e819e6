//! Builds the report from merged sums, at the head.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laggard_patterns::PatternId;
use laggard_report::units::duration;
use laggard_report::{
    AnomalySeverity, Bottleneck, CalledOnce, Causality, ClockViolations, EndOperation,
    LocationSums, Metric, PhasesOfRun, Report, Run, Settings, Unlisted, percent, ratio, seconds,
};
use laggard_trace::calls::{self};

use crate::basics::anomaly::Level;
use crate::clock::causality::{Count, Violations};
use crate::findings::fold::{Folded, FoldedFindings, Locations};
use crate::findings::merge::Partial;
use crate::findings::places::Places;
use crate::findings::{by_operation, imbalance, left, regions, severe, teams};
use crate::input::bounds::is_end;
use crate::input::open::Opened;
use crate::judge::profile::{Profile, ProfileSums};
use crate::options::AnalyzeOptions;
use crate::report::around::Around;
use crate::report::deadlock::Scene;
use crate::report::finding::{Context, Total, bottleneck, quartiles, waiting_at};
use crate::report::hints::RunFacts;
use crate::report::ids;
use crate::report::once;
use crate::report::path;
use crate::report::roots::{self, Traced};
use crate::report::times::{efficiency, location_sums, times, times_classes};
use crate::report::traffic;
use crate::timeline::moments::Moments;
use crate::waits::spread::Spread;
use crate::waits::sums::FindingKey;

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
        |key| {
            let folded = merged.findings.get(key).or_else(|| unlisted.get(key));
            folded.map(|folded| &folded.thread_set)
        },
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
    // Waits among threads are no records unless they wait.
    let is_told = |operation| {
        let of_threads = calls::call(operation).is_some_and(|call| call.is_threads());
        !of_threads && !is_end(operation)
    };
    let is_once =
        |((operation, _), sums): &(&(u16, _), &ProfileSums)| sums.once.0 > 0 && is_told(*operation);
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
