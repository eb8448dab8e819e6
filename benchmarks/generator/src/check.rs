//! Compares a report with the expectations of its generated trace.

use std::collections::{BTreeMap, BTreeSet};

use laggard_report::{AnomalySeverity, Bottleneck, Report, SourceLocation};

use super::expected::{Expected, Finding, LISTED, Total};
use super::site::Place;

/// Tolerance for shares of causes: reports round them.
const SHARE_ERROR: f64 = 1e-6;

/// A cause is clear if the mean loss is more than this many times the error of the clocks …
const CLEAR: i64 = 20;
/// … and there are at least this many losses: in a single one, two ranks may have been late alike.
const MANY: u64 = 100;

/// Reports of up to this many locations list all.
const ALL_LISTED: usize = 1024;

/// A finding in a few words.
fn title(pattern: &str, at: &Place) -> String {
    format!("{pattern} in {} at {}:{}", at.operation, at.file, at.line)
}

/// The pattern, with all kinds of late senders as one.
fn without_order(pattern: &str) -> &str {
    match pattern.starts_with("late_sender") {
        true => "late_sender",
        false => pattern,
    }
}

/// Seconds of a report as ns.
fn ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Expected ns as a report tells them: its numbers cannot hold sums of more than 2⁵³ ns exactly.
fn told(expected: u64) -> i64 {
    ns(expected as f64 / 1e9)
}

/// The place of a finding in a report.
pub fn place_of(found: &Bottleneck) -> Place {
    place(&found.operation, &found.location)
}

fn place(operation: &str, location: &SourceLocation) -> Place {
    Place {
        operation: operation.to_owned(),
        file: location.file.clone(),
        line: location.line,
        callpath: location.callpath.clone(),
    }
}

/// Everything in a report of an analysis with `--all` that differs from the expectation, one line
/// each. Empty if the report is right.
pub fn differences(expected: &Expected, report: &Report) -> Vec<String> {
    let mut check = Check {
        error: expected.run.clock_error_ns as i64,
        found: Vec::new(),
    };
    if !report.settings.all {
        let text = "the report is not from an analysis with --all, so its totals are not exact";
        check.found.push(text.to_owned());
    }
    check.accounts(report);
    // Only the analysis can tell which part of a call is its own cost.
    let report = &explained(report);
    check.run(expected, report);
    if check.is_exact() {
        check.totals(&expected.totals, report);
        check.other_hosts(expected, report);
    }
    check.findings(expected, report);
    check.locations(expected, report);
    check.anomalies(expected, report);
    check.found
}

/// The report without unexplained time.
fn explained(report: &Report) -> Report {
    let mut report = report.clone();
    report.bottlenecks.retain(|found| !found.is_unexplained());
    report.metrics.remove("unexplained");
    report
}

/// A comparison and the differences so far.
struct Check {
    /// Error allowed in each instance, ns.
    error: i64,
    found: Vec<String>,
}

impl Check {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, expected: T, reported: T) {
        if expected != reported {
            let text = format!("{what}: {expected:?} expected, {reported:?} reported");
            self.found.push(text);
        }
    }

    /// Compares times that are sums over this many instances.
    fn time(&mut self, what: &str, instances: u64, expected: u64, reported: f64) {
        let allowed = self.error.saturating_mul(instances.max(1) as i64);
        let off = ns(reported) - told(expected);
        if off.abs() > allowed {
            let reported = ns(reported);
            self.found.push(format!(
                "{what}: {expected} ns expected, {reported} ns reported"
            ));
        }
    }

    fn is_exact(&self) -> bool {
        self.error == 0
    }

    fn run(&mut self, expected: &Expected, report: &Report) {
        let (run, reported) = (&expected.run, &report.run);
        self.same("program", &run.program, &reported.program);
        self.same("ranks", run.ranks, reported.ranks);
        self.same("locations", run.ranks, reported.locations);
        self.same("calls", run.calls, reported.operations);
        self.same("hosts", &run.hosts, &reported.hosts);
        self.time("wall time", 1, run.wall_ns, reported.wall_time_s);
    }

    fn totals(&mut self, expected: &BTreeMap<String, Total>, report: &Report) {
        let ids: BTreeSet<&String> = expected.keys().chain(report.metrics.keys()).collect();
        for id in ids {
            let wanted = expected.get(id).copied().unwrap_or_default();
            let metric = report.metrics.get(id).cloned().unwrap_or_default();
            let instances = wanted.instances.max(metric.instances);
            self.time(
                &format!("total of {id}"),
                instances,
                wanted.severity_ns,
                metric.total_s,
            );
            let what = format!("instances of {id}");
            self.same(&what, wanted.instances, metric.instances);
        }
    }

    /// Time lost to ranks on other hosts, by pattern and over the run.
    fn other_hosts(&mut self, expected: &Expected, report: &Report) {
        let is_single = expected.run.hosts.len() <= 1;
        let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
        for finding in &expected.findings {
            *parts.entry(&finding.pattern).or_default() += finding.inter_host_ns;
        }
        let wanted = |part: u64| (!is_single).then_some(told(part));
        for (id, metric) in &report.metrics {
            let part = parts.get(id.as_str()).copied().unwrap_or(0);
            let what = format!("total of {id}: lost to other hosts");
            self.same(&what, wanted(part), metric.inter_node_s.map(ns));
        }
        let waits = parts.iter().filter(|(id, _)| !id.ends_with("_completion"));
        let sums = report.location_sums.as_ref();
        let reported = sums.and_then(|sums| sums.inter_node_wait_s).map(ns);
        let all = waits.map(|(_, part)| part).sum();
        self.same("waiting for other hosts", wanted(all), reported);
    }

    /// Time in calls is charged to patterns, unexplained, or the cost of calls.
    fn accounts(&mut self, report: &Report) {
        let Some(calls) = report.sums().in_calls else {
            self.found
                .push("the time in calls is not accounted for".to_owned());
            return;
        };
        let total = |is_of: &dyn Fn(&str) -> bool| -> i64 {
            let metrics = report.metrics.iter().filter(|(id, _)| is_of(id));
            metrics.map(|(_, metric)| ns(metric.total_s)).sum()
        };
        let charged = |id: &str| !["unexplained", "init_completion"].contains(&id);
        let explained = ns(calls.explained_s);
        self.same("explained time in calls", total(&charged), explained);
        let unexplained = ns(calls.unexplained_s);
        let of_findings = total(&|id| id == "unexplained");
        self.same("unexplained time in calls", of_findings, unexplained);
        let sum = explained + unexplained + ns(calls.cost_s);
        self.same("time in calls", sum, ns(calls.total_s));
    }

    fn findings(&mut self, expected: &Expected, report: &Report) {
        let key = |found: &Bottleneck| {
            (
                found.pattern.clone(),
                place(&found.operation, &found.location),
            )
        };
        let mut reported: BTreeMap<(String, Place), &Bottleneck> = BTreeMap::new();
        for found in &report.bottlenecks {
            if reported.insert(key(found), found).is_some() {
                self.found.push(format!("reported twice: {:?}", key(found)));
            }
        }
        if !self.is_exact() {
            return self.inexact_findings(expected, report);
        }
        let single_host = expected.run.hosts.len() <= 1;
        for finding in &expected.findings {
            let what = title(&finding.pattern, &finding.at);
            match reported.remove(&(finding.pattern.clone(), finding.at.clone())) {
                Some(found) => self.finding(&what, finding, found, single_host),
                None => self.found.push(format!("not reported: {what}")),
            }
        }
        for ((pattern, at), found) in reported {
            let (what, severity) = (title(&pattern, &at), ns(found.severity_s));
            self.found
                .push(format!("not expected: {what}, {severity} ns"));
        }
    }

    /// Inexact clocks may change which message was there first, and which of nearly simultaneous
    /// ranks came last.
    fn inexact_findings(&mut self, expected: &Expected, report: &Report) {
        let mut sums: BTreeMap<(&str, Place), [(u64, i64); 2]> = BTreeMap::new();
        for finding in &expected.findings {
            let key = (without_order(&finding.pattern), finding.at.clone());
            let [wanted, _] = sums.entry(key).or_default();
            *wanted = (
                wanted.0 + finding.instances,
                wanted.1 + told(finding.severity_ns),
            );
        }
        for found in &report.bottlenecks {
            let at = place(&found.operation, &found.location);
            let key = (without_order(&found.pattern), at);
            let [_, reported] = sums.entry(key).or_default();
            *reported = (
                reported.0 + found.instances,
                reported.1 + ns(found.severity_s),
            );
        }
        for ((pattern, at), [wanted, reported]) in &sums {
            let instances = wanted.0.max(reported.0) as i64;
            if (wanted.1 - reported.1).abs() > self.error.saturating_mul(instances) {
                let (what, wanted, reported) = (title(pattern, at), wanted.1, reported.1);
                self.found.push(format!(
                    "{what}: {wanted} ns expected, {reported} ns reported"
                ));
            }
        }
        for finding in &expected.findings {
            let is_same = |found: &&Bottleneck| {
                found.pattern == finding.pattern
                    && place(&found.operation, &found.location) == finding.at
            };
            let found = report.bottlenecks.iter().find(is_same);
            if let Some((first, found)) = self.clear_cause(finding).zip(found) {
                let what = format!("{}: first cause", title(&finding.pattern, &finding.at));
                self.same(
                    &what,
                    Some(first),
                    found.causes.first().map(|cause| cause.rank),
                );
            }
        }
    }

    /// The rank that a finding is due to, if no error of the clocks can hide it.
    fn clear_cause(&self, finding: &Finding) -> Option<u32> {
        let mean = finding.severity_ns / finding.instances.max(1);
        let first = finding.causes.first()?;
        let rest = finding.severity_ns - first.severity_ns;
        let is_sure = finding.instances >= MANY && mean as i64 > CLEAR * self.error;
        let is_clear = is_sure && first.severity_ns > 2 * rest;
        is_clear.then_some(first.rank)
    }

    fn finding(&mut self, what: &str, wanted: &Finding, found: &Bottleneck, single_host: bool) {
        let instances = wanted.instances.max(found.instances);
        self.time(what, instances, wanted.severity_ns, found.severity_s);
        self.same(&format!("{what}: calls"), wanted.calls, found.calls);
        self.same(
            &format!("{what}: instances"),
            wanted.instances,
            found.instances,
        );
        self.same(
            &format!("{what}: rank set"),
            Some(&wanted.rank_set),
            found.rank_set.as_ref(),
        );
        let other_hosts = found.inter_node_s.map(ns);
        let wanted_there = (!single_host).then_some(told(wanted.inter_host_ns));
        self.same(
            &format!("{what}: lost to other hosts"),
            wanted_there,
            other_hosts,
        );
        let ranks = found.ranks.iter();
        let ranks: Vec<_> = ranks
            .map(|r| (r.rank, ns(r.severity_s), r.instances))
            .collect();
        let wanted_ranks = wanted.ranks.iter();
        let wanted_ranks: Vec<_> = wanted_ranks
            .map(|r| (r.rank, told(r.severity_ns), r.instances))
            .collect();
        self.same(&format!("{what}: ranks"), wanted_ranks, ranks);
        self.causes(what, wanted, found);
        let worst = found.worst_instance.clone().unwrap_or_default();
        let reported = [worst.start_s, worst.end_s, worst.severity_s].map(ns);
        let worst = (worst.rank, reported);
        let expected = &wanted.worst;
        let times = [expected.start_ns, expected.end_ns, expected.severity_ns];
        self.same(
            &format!("{what}: worst instance"),
            (expected.rank, times.map(told)),
            worst,
        );
    }

    fn causes(&mut self, what: &str, wanted: &Finding, found: &Bottleneck) {
        let mut expected: Vec<_> = wanted
            .causes
            .iter()
            .map(|cause| (cause.rank, cause.at.clone(), told(cause.severity_ns)))
            .collect();
        let mut reported: Vec<_> = found
            .causes
            .iter()
            .map(|cause| {
                (
                    cause.rank,
                    place(&cause.operation, &cause.location),
                    ns(cause.severity_s),
                )
            })
            .collect();
        let listed = wanted.all_causes.min(LISTED as u64) as usize;
        self.same(&format!("{what}: number of causes"), listed, reported.len());
        // Of equal causes either may come first, or the list may omit either.
        let least = expected.iter().map(|cause| cause.2).min().unwrap_or(0);
        let is_cut = wanted.all_causes > LISTED as u64;
        for causes in [&mut expected, &mut reported] {
            causes.sort();
            if is_cut {
                causes.retain(|cause| cause.2 > least);
            }
        }
        self.same(&format!("{what}: causes"), expected, reported);
        for cause in &found.causes {
            let share = ns(cause.severity_s) as f64 / wanted.severity_ns.max(1) as f64;
            if (share - cause.share).abs() > SHARE_ERROR {
                let (rank, reported) = (cause.rank, cause.share);
                self.found.push(format!(
                    "{what}: share of rank {rank}: {share} expected, {reported} reported"
                ));
            }
        }
    }

    fn locations(&mut self, expected: &Expected, report: &Report) {
        let wanted = &expected.locations;
        let ranks = wanted.wall_ns.len();
        // Reports of large runs list only some.
        if ranks <= ALL_LISTED {
            self.same("locations listed", ranks, report.locations.len());
        }
        let sums = report.sums();
        let sum = |times: &[u64]| times.iter().sum();
        let calls = expected.run.calls;
        self.time(
            "waiting of all",
            calls,
            sum(&wanted.waiting_ns),
            sums.wait_s,
        );
        let rounding = ranks as u64;
        self.time(
            "wall time of all",
            rounding,
            sum(&wanted.wall_ns),
            sums.wall_s,
        );
        let calls = expected.run.calls / u64::from(expected.run.ranks.max(1)) + 1;
        for location in &report.locations {
            let number = location.rank as usize;
            let times = (
                wanted.waiting_ns.get(number),
                wanted.wall_ns.get(number),
                wanted.computation_ns.get(number),
            );
            let (Some(&waiting), Some(&wall), Some(&computation)) = times else {
                self.found.push(format!("rank {number} is none of the run"));
                continue;
            };
            self.time(
                &format!("waiting of rank {number}"),
                calls,
                waiting,
                location.wait_s,
            );
            let reported = location.wall_s.unwrap_or_default();
            self.time(&format!("wall time of rank {number}"), 1, wall, reported);
            // Reports take it from a profile in ticks, which rounds every call.
            let off = (ns(location.computation_s) - told(computation)).unsigned_abs();
            let ppm = 1.0 + 2.0 * expected.run.clock_wander_ppm;
            let rounding = 2 * expected.run.calls + (wall as f64 * ppm / 1e6) as u64;
            if off > rounding.max(self.error.unsigned_abs()) {
                let reported = ns(location.computation_s);
                self.found.push(format!(
                    "computation of rank {number}: {computation} ns expected, {reported} ns reported"
                ));
            }
        }
    }

    fn anomalies(&mut self, expected: &Expected, report: &Report) {
        let rows = report.anomalies.iter();
        let mut rows: Vec<_> = rows
            .filter(|row| row.severity != AnomalySeverity::Info)
            .collect();
        for wanted in &expected.unmatched {
            let at = format!(
                "{} at {}:{}",
                wanted.at.operation, wanted.at.file, wanted.at.line
            );
            let known = rows
                .iter()
                .position(|row| row.id == wanted.id && row.detail.ends_with(&at));
            let Some(known) = known else {
                self.found
                    .push(format!("not reported: {} of {at}", wanted.id));
                continue;
            };
            let row = rows.remove(known);
            self.same(&format!("{} of {at}", wanted.id), wanted.count, row.count);
            // One message stands for all at a place.
            let is_named = wanted.messages.iter().any(|(from, to, tag, bytes)| {
                row.detail
                    .starts_with(&format!("rank {from} -> {to}, tag {tag}, {bytes} bytes"))
            });
            if !is_named {
                self.found.push(format!(
                    "not among the messages without a partner: {}",
                    row.detail
                ));
            }
        }
        // With inexact clocks messages may seem to travel back in time.
        let is_exact = self.is_exact();
        for row in rows {
            if is_exact || row.id != "clock_violation" {
                self.found.push(format!(
                    "an anomaly that is none: {}: {}",
                    row.id, row.detail
                ));
            }
        }
    }
}
