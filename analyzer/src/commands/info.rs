//! `laggard info`: what is in a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use laggard_engine::events::Trace;
use laggard_files::printable;
use laggard_report::units::{count, duration, percent, plural, size};
use laggard_trace::calls;

use super::{screen, traces};
use crate::cli::Info;

/// All calls of one operation, on all locations.
#[derive(Default)]
struct Sum {
    calls: u64,
    seconds: f64,
    bytes: u64,
}

/// Prints what a trace directory holds.
pub fn info(options: &Info) -> Result<ExitCode> {
    let trace = Trace::measured(&traces::meant(options.directory.as_deref())?)?;
    screen::print(&text(&trace))?;
    Ok(ExitCode::SUCCESS)
}

fn text(trace: &Trace) -> String {
    let mut sums: BTreeMap<u16, Sum> = BTreeMap::new();
    for traced in &trace.locations {
        for entry in traced.profile() {
            let sum = sums.entry(entry.operation).or_default();
            sum.calls += entry.count;
            sum.seconds += traced.length_ns(entry.total) / 1e9;
            sum.bytes = sum.bytes.saturating_add(entry.bytes);
        }
    }
    let mut text = String::new();
    head(&mut text, trace);
    operations(&mut text, trace, sums);
    if !trace.anomalies.is_empty() {
        text.push_str("\nAnomalies\n");
    }
    for anomaly in &trace.anomalies {
        let origin = anomaly
            .origin
            .as_ref()
            .map_or(String::new(), |o| format!(" [{o}]"));
        let times = match anomaly.count {
            0 | 1 => String::new(),
            many => format!(" ({} times)", count(many)),
        };
        let id = anomaly.id.replace('_', " ");
        let severity = anomaly.severity.name();
        let _ = writeln!(
            text,
            "  {severity:7}  {id}{times}: {}",
            printable(&format!("{}{origin}", anomaly.detail))
        );
    }
    text
}

fn head(text: &mut String, trace: &Trace) {
    let bytes: u64 = trace
        .locations
        .iter()
        .map(|traced| traced.location.size())
        .sum();
    let calls = trace.locations.iter().fold(0u64, |calls, traced| {
        let profile = traced.profile();
        let profiled = profile.iter().fold(0, |n, e| e.count.saturating_add(n));
        // Those made while recording was paused are in no profile.
        let counted = traced.location.end.map_or(0, |end| end.calls);
        calls.saturating_add(counted.max(profiled))
    });
    // Calls beyond a size limit, or in profile mode, are in no record.
    let recorded: Option<u64> = trace
        .locations
        .iter()
        .map(|traced| Some(traced.location.end?.recorded))
        .sum();
    let mut item = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:10} {}", printable(value));
    };
    item("Program", &trace.program.join(" "));
    item("Ranks", &trace.ranks.to_string());
    item("Locations", &trace.locations.len().to_string());
    item("Hosts", &hosts(&trace.hosts));
    item("MPI", trace.mpi_library.as_deref().unwrap_or("unknown"));
    item("Wall time", &duration(trace.wall_ns as f64 / 1e9));
    match trace.clock_error_ns {
        0 => item("Clock", "one for all"),
        error => item(
            "Clocks",
            &format!("compared within {}", duration(error as f64 / 1e9)),
        ),
    }
    let mut volume = format!("{}, {}", size(bytes), plural(calls, "call"));
    if let Some(recorded) = recorded.filter(|&recorded| recorded != calls) {
        let _ = write!(volume, ", {} of them in records", count(recorded));
    }
    let records = recorded.unwrap_or(calls);
    if records > 0 {
        let _ = write!(
            volume,
            ", {:.1} bytes per call",
            bytes as f64 / records as f64
        );
    }
    item("Trace", &volume);
    if let Some(samples) = samples(trace) {
        item("Samples", &samples);
    }
    if let Some(counters) = counters(trace) {
        item("Counters", &counters);
    }
}

/// How many samples there are, and how they were taken.
fn samples(trace: &Trace) -> Option<String> {
    let (mut ways, mut sum) = (BTreeSet::new(), 0u64);
    for traced in &trace.locations {
        let definitions = &traced.location.definitions;
        ways.extend(definitions.properties("sampled_by"));
        let known = definitions.properties("samples").into_iter();
        sum = known
            .filter_map(|told| told.parse::<u64>().ok())
            .fold(sum, u64::saturating_add);
    }
    let ways: Vec<String> = ways.into_iter().collect();
    (!ways.is_empty()).then(|| format!("{}, by {}", count(sum), ways.join(" and ")))
}

/// What was counted, and what was not.
fn counters(trace: &Trace) -> Option<String> {
    let all = |key: &'static str| -> BTreeSet<String> {
        let locations = trace.locations.iter();
        locations
            .flat_map(|traced| traced.location.definitions.properties(key))
            .collect()
    };
    let (counted, not) = (all("counter"), all("not_counted"));
    let mut parts: Vec<String> = counted.into_iter().collect();
    let not = not.into_iter().chain(all("no_counter"));
    let not = not.map(|why| format!("not {why}"));
    parts.extend(not);
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// All hosts, or the first few.
fn hosts(hosts: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = hosts[..hosts.len().min(SHOWN)].join(", ");
    match hosts.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn operations(text: &mut String, trace: &Trace, sums: BTreeMap<u16, Sum>) {
    if sums.is_empty() {
        return;
    }
    let all = trace.wall_ns as f64 / 1e9 * trace.locations.len() as f64;
    let mut sums: Vec<(u16, Sum)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds).then(a.0.cmp(&b.0)));
    let widest = sums
        .iter()
        .map(|(number, _)| calls::name(*number).len())
        .max()
        .unwrap_or(0);
    let widest = widest.max("Operation".len());
    let _ = writeln!(
        text,
        "\n{:widest$}  {:>12}  {:>9}  {:>7}  {:>9}  {:>9}",
        "Operation", "Calls", "Time", "Share", "Mean", "Bytes"
    );
    for (number, sum) in sums {
        let share = if all > 0.0 {
            sum.seconds / all * 100.0
        } else {
            0.0
        };
        let _ = writeln!(
            text,
            "{:widest$}  {:>12}  {:>9}  {:>7}  {:>9}  {:>9}",
            calls::name(number),
            count(sum.calls),
            duration(sum.seconds),
            percent(share),
            duration(sum.seconds / sum.calls.max(1) as f64),
            size(sum.bytes)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hosts_are_counted() {
        let names = |n: usize| (0..n).map(|i| format!("n{i}")).collect::<Vec<_>>();
        assert_eq!(hosts(&names(2)), "n0, n1");
        assert_eq!(hosts(&names(6)), "n0, n1, n2, n3 and 2 more");
    }
}
