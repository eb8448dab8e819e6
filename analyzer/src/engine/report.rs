//! From merged sums to the report, at the head.

use laggard_patterns::{Evidence, PatternId, confidence};
use laggard_report::units::duration;
use laggard_report::{
    AnomalySeverity, Bottleneck, Efficiency, Instance, LocationTimes as Times, Metric, RankShare,
    Report, Run, percent, ratio, seconds,
};
use laggard_trace::calls::{self, Shape};

use super::anomaly::Level;
use super::because::because;
use super::detect::Filter;
use super::finding::{Cause, CauseKey, FindingKey, Sums};
use super::merge::Partial;
use super::open::{Opened, saturating_sum};
use super::places::{Paths, Places};
use super::prepare::LocationTimes;
use super::table::TimeClass;
use crate::options::AnalyzeOptions;
use crate::symbols::Symbols;

/// Ranks and causes of a finding that are listed; the sums are over all.
const LISTED: usize = 32;
/// Locations computing at least this share of the most are those that others wait for.
const BOTTLENECK_SHARE: f64 = 0.95;

/// Builds the report. `end` is when the run ended, ns since its start.
pub fn build(
    opened: &Opened,
    merged: Partial,
    paths: &Paths,
    options: &AnalyzeOptions,
    end: i64,
) -> Report {
    let symbols = match &options.debug_roots {
        Some(roots) => Symbols::with_debug_roots(roots.clone()),
        None => Symbols::new(),
    };
    let mut places = Places::new(paths, symbols);
    let same = places.same();
    let merged = merged.rename_paths(|path| same.get(&path).copied().unwrap_or(path));
    let mut locations = merged.locations;
    locations.sort_by_key(|location| (location.rank, location.thread));
    let total: f64 = locations.iter().map(|location| location.wall as f64).sum();
    let clock_error = opened.clocks.error_ns();
    let any_truncated = opened.truncated.iter().any(|&cut| cut);

    let mut metrics: std::collections::BTreeMap<String, Metric> = Default::default();
    let mut findings: Vec<(FindingKey, Sums)> = merged.findings.into_iter().collect();
    findings.sort_by(|a, b| b.1.severity.cmp(&a.1.severity).then_with(|| a.0.cmp(&b.0)));
    let mut totals: std::collections::BTreeMap<PatternId, (u64, u64)> = Default::default();
    for ((pattern, ..), sums) in &findings {
        if let Some(pattern) = PatternId::from_number(*pattern) {
            let sum = totals.entry(pattern).or_default();
            sum.0 = sum.0.saturating_add(sums.severity);
            sum.1 = sum.1.saturating_add(sums.instances);
        }
    }
    for (pattern, (severity, instances)) in totals {
        metrics.insert(
            pattern.id().to_owned(),
            Metric {
                total_s: seconds(severity as i64),
                percent: percent(severity as f64, total),
                instances,
            },
        );
    }
    let mut bottlenecks = Vec::new();
    let members_missing = merged.profile.values().any(|sums| sums.members_missing);
    for (key, sums) in findings {
        let profile = merged
            .profile
            .get(&(key.1, key.2))
            .copied()
            .unwrap_or_default();
        let context = Context {
            total,
            clock_error,
            any_truncated,
            members_missing,
            single_host: opened.host_names.len() <= 1,
        };
        bottlenecks.extend(bottleneck(key, sums, &profile, &context, &mut places));
    }
    let mut anomalies = merged.anomalies;
    if merged.violations.0 > 0 {
        let (count, worst) = merged.violations;
        let detail = format!(
            "messages received before they were sent, by {} at most",
            duration(worst as f64 / 1e9)
        );
        anomalies.add("clock_violation", Level::Warning, count, detail);
    }
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
    rows.extend(places.symbols.anomalies());
    let first = &opened.infos[0];
    let mut program = first.program.iter().cloned();
    Report {
        schema: laggard_report::SCHEMA.to_owned(),
        run: Run {
            program: program.next().unwrap_or_default(),
            arguments: program.collect(),
            ranks: opened.agent_of.len() as u32,
            locations: locations.len() as u32,
            hosts: opened.host_names.clone(),
            models: vec!["mpi".to_owned()],
            wall_time_s: seconds(end),
            trace_bytes: opened.infos.iter().map(|info| info.size).sum(),
            operations: saturating_sum(locations.iter().map(|location| location.calls)),
            mpi_library: first.mpi_library.clone(),
            clock_error_s: Some(seconds(clock_error as i64)),
        },
        settings: options.settings.clone(),
        agents: laggard_report::Agents {
            bytes_exchanged: merged.bytes_exchanged,
            requests: merged.requests,
            peak_memory_bytes: Some(merged.peak_memory),
            ..Default::default()
        },
        efficiency: efficiency(&locations),
        locations: times(&locations, opened),
        metrics,
        bottlenecks,
        anomalies: rows,
    }
}

/// ns in [`LocationTimes::inside`] of a class.
fn inside(location: &LocationTimes, class: TimeClass) -> u64 {
    location.inside[class as usize]
}

fn computation(location: &LocationTimes) -> u64 {
    location
        .wall
        .saturating_sub(saturating_sum(location.inside.iter().copied()))
}

/// POP efficiencies over the ranks' first threads: load balance = mean / maximum of
/// the computation, communication = maximum of the computation / wall time.
fn efficiency(locations: &[LocationTimes]) -> Efficiency {
    let first: Vec<&LocationTimes> = locations.iter().filter(|l| l.thread == 0).collect();
    let most = first.iter().map(|l| computation(l)).max().unwrap_or(0) as f64;
    let sum = saturating_sum(first.iter().map(|l| computation(l)));
    let wall = first.iter().map(|l| l.wall).max().unwrap_or(0) as f64;
    let load_balance = ratio(sum as f64 / first.len().max(1) as f64, most);
    let communication = ratio(most, wall);
    Efficiency {
        parallel: ratio(load_balance * communication, 1.0),
        load_balance,
        communication,
    }
}

fn times(locations: &[LocationTimes], opened: &Opened) -> Vec<Times> {
    let most = locations.iter().map(computation).max().unwrap_or(0) as f64;
    let least = locations.iter().map(computation).min().unwrap_or(0) as f64;
    // Where all compute alike, nobody holds the others up.
    let uneven = least < most * BOTTLENECK_SHARE;
    let seconds = |ns: u64| seconds(ns as i64);
    let host = |rank: u32| opened.hosts.get(rank as usize).copied().unwrap_or(0) as usize;
    locations
        .iter()
        .map(|location| Times {
            rank: location.rank,
            thread: location.thread,
            host: opened
                .host_names
                .get(host(location.rank))
                .cloned()
                .unwrap_or_default(),
            computation_s: seconds(computation(location)),
            communication_s: seconds(
                inside(location, TimeClass::Communication)
                    .saturating_add(inside(location, TimeClass::Setup)),
            ),
            synchronization_s: seconds(inside(location, TimeClass::Synchronization)),
            io_s: seconds(inside(location, TimeClass::Io)),
            wait_s: seconds(location.waiting),
            bottleneck: uneven && computation(location) as f64 >= most * BOTTLENECK_SHARE,
            wall_s: Some(seconds(location.wall)),
        })
        .collect()
}

/// What all findings share.
struct Context {
    total: f64,
    clock_error: u64,
    any_truncated: bool,
    members_missing: bool,
    single_host: bool,
}

fn bottleneck(
    key: FindingKey,
    sums: Sums,
    profile: &super::prepare::ProfileSums,
    context: &Context,
    places: &mut Places,
) -> Option<Bottleneck> {
    let (pattern, operation, path) = key;
    let pattern = PatternId::from_number(pattern)?;
    let call = calls::call(operation)?;
    let severity = sums.severity;
    let mean_loss = severity / sums.instances.max(1);
    let error = if context.single_host {
        0
    } else {
        context.clock_error
    };
    let evidence = Evidence {
        clock_error_ns: error as i64,
        truncated: context.any_truncated,
        // The wait for a non-blocking collective does not say which group that was in.
        members_missing: match call.shape {
            Shape::Single => context.members_missing && pattern.is_about_group(),
            _ => profile.members_missing,
        },
    };
    let mean = profile.total as f64 / profile.count.max(1) as f64 / 1e9;
    let (filter, measured, baseline) = match profile.filter {
        Filter::None => ("hotspot", None, None),
        Filter::Hotspot => ("hotspot", None, None),
        Filter::Deviation(ratio) => ("deviation", Some(ratio), None),
        Filter::Baseline(ratio, expected) => ("baseline", Some(ratio), Some(expected)),
        Filter::All => ("all", None, None),
    };
    let mut causes: Vec<(CauseKey, Cause)> = sums.causes.into_iter().collect();
    causes.sort_by(|a, b| b.1.severity.cmp(&a.1.severity).then_with(|| a.0.cmp(&b.0)));
    let causes = causes
        .iter()
        .take(LISTED)
        .map(|(key, cause)| laggard_report::Cause {
            rank: key.rank,
            operation: calls::name(key.operation).to_owned(),
            location: places.of(key.path),
            severity_s: seconds(cause.severity as i64),
            share: ratio(cause.severity as f64, severity as f64),
            because: because(pattern, key, cause, places),
        });
    let causes: Vec<_> = causes.collect();
    let mut ranks = sums.ranks.clone();
    ranks.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    Some(Bottleneck {
        pattern: pattern.id().to_owned(),
        name: pattern.name().to_owned(),
        operation: call.name.to_owned(),
        operation_type: call.generic.name().to_owned(),
        location: places.of(path),
        severity_s: seconds(severity as i64),
        percent: percent(severity as f64, context.total),
        confidence: ratio(confidence(mean_loss as i64, &evidence), 1.0),
        calls: profile.count,
        instances: sums.instances,
        mean_s: mean,
        baseline_s: baseline,
        ratio: measured.map(|value| ratio(value, 1.0)),
        filter: filter.to_owned(),
        ranks: ranks
            .iter()
            .take(LISTED)
            .map(|&(rank, severity, instances)| RankShare {
                rank,
                severity_s: seconds(severity as i64),
                instances,
            })
            .collect(),
        rank_set: Some(laggard_report::rank_ranges(
            sums.ranks.iter().map(|rank| rank.0),
        )),
        inter_node_s: (!context.single_host).then(|| seconds(sums.inter_host as i64)),
        causes,
        worst_instance: sums.worst.map(|worst| Instance {
            rank: worst.rank,
            start_s: seconds(worst.enter),
            end_s: seconds(worst.leave),
            severity_s: seconds(worst.severity as i64),
        }),
        hints: pattern.hints(call.generic).map(str::to_owned).collect(),
    })
}
