//! Sums of root causes: nothing of the waiting is lost, and nothing is counted twice.

use std::collections::BTreeMap;

use laggard_patterns::PatternId;

use crate::report::Report;

/// Every number is rounded to a ns, and costs are divided into parts of a ns. Seconds, and a part of
/// the sum.
const ROUNDED: (f64, f64) = (1e-6, 1e-6);

/// What does not add up to all waiting of a report, which is summed up in another way.
pub fn differences(report: &Report) -> Vec<String> {
    let Some((untraced, unlisted)) = report.untraced_s.zip(report.unlisted_s) else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    let mut must = |what: &str, (have, wanted): (f64, f64), slack: f64| {
        let rounded = ROUNDED.0 + ROUNDED.1 * wanted;
        if !(have <= wanted + rounded && have >= wanted - slack - rounded) {
            differences.push(format!("{what}: {have} s instead of {wanted} s"));
        }
    };
    // By class.
    let mut waiting: BTreeMap<&str, f64> = BTreeMap::new();
    for (id, metric) in &report.metrics {
        let pattern = PatternId::from_id(id).filter(|pattern| pattern.is_waiting());
        if let Some(pattern) = pattern {
            *waiting.entry(pattern.class()).or_default() += metric.total_s;
        }
    }
    let all: f64 = waiting.values().sum();
    let roots = report.root_causes.iter();
    let listed: f64 = roots.map(|root| root.severity_s).sum();
    let sum = listed + unlisted + untraced;
    must("listed, unlisted and untraced", (sum, all), 0.0);
    let by_activity = report.waiting_by_activity_s.values().sum();
    must("by activity", (by_activity, all), 0.0);
    for root in &report.root_causes {
        let parts = root.direct_s + root.indirect_s;
        must("direct and indirect", (parts, root.severity_s), 0.0);
    }
    let classes = report.wait_classes.keys().map(String::as_str);
    for name in classes.chain(waiting.keys().copied()) {
        let class = report.wait_classes.get(name).copied().unwrap_or_default();
        let waits = waiting.get(name).copied().unwrap_or(0.0);
        let from = class.direct_s + class.indirect_s + class.untraced_s;
        must(&format!("{name} by what it comes from"), (from, waits), 0.0);
        let to = class.propagating_s + class.terminal_s;
        must(&format!("{name} by what comes of it"), (to, waits), 0.0);
    }
    // Where nobody did anything longer, waits are latency. Of these some may not be listed.
    let latency = report
        .root_causes
        .iter()
        .filter(|root| root.activity == "latency");
    let latency: f64 = latency.map(|root| root.direct_s).sum();
    let costs = report.delay_costs.values();
    let costs: f64 = costs.map(|costs| costs.short_s + costs.long_s).sum();
    let traced = listed + unlisted;
    must(
        "short, long and latency",
        (costs + latency, traced),
        unlisted,
    );
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"schema": "", "anomalies": [], "locations": [], "bottlenecks": [],
        "run": {"program": "a", "ranks": 3, "locations": 3, "models": [], "wall_time_s": 1, "operations": 9},
        "metrics": {"late_sender": {"total_s": 0.5, "percent": 1, "instances": 2},
                    "late_sender_polled": {"total_s": 0.25, "percent": 1, "instances": 2},
                    "nxn_completion": {"total_s": 2, "percent": 1, "instances": 2}},
        "root_causes": [
            {"activity": "computation", "location": {}, "ranks": [], "direct_s": 0.25, "indirect_s": 0.125, "severity_s": 0.375},
            {"activity": "latency", "location": {}, "ranks": [], "direct_s": 0.125, "indirect_s": 0, "severity_s": 0.125}],
        "unlisted_s": 0.0625, "untraced_s": 0.1875,
        "waiting_by_activity_s": {"computation": 0.4375, "latency": 0.125, "untraced": 0.1875},
        "wait_classes": {"late_sender": {"direct_s": 0.4375, "indirect_s": 0.1875, "untraced_s": 0.125,
                                         "propagating_s": 0.3125, "terminal_s": 0.4375}},
        "delay_costs": {"late_sender": {"short_s": 0.3125, "long_s": 0.125}}}"#;

    fn after(from: &str, to: &str) -> usize {
        assert!(REPORT.contains(from), "{from}");
        let report = Report::parse(&REPORT.replacen(from, to, 1)).expect("a report");
        differences(&report).len()
    }

    #[test]
    fn every_sum_is_checked() {
        assert_eq!(after("", ""), 0);
        for (from, to) in [
            ("\"total_s\": 0.25", "\"total_s\": 0.26"),
            ("\"severity_s\": 0.375", "\"severity_s\": 0.374"),
            ("\"unlisted_s\": 0.0625", "\"unlisted_s\": 0"),
            ("\"untraced_s\": 0.1875", "\"untraced_s\": 0.2"),
            ("\"latency\": 0.125", "\"latency\": 0.12"),
            ("\"direct_s\": 0.4375", "\"direct_s\": 0.44"),
            ("\"terminal_s\": 0.4375", "\"terminal_s\": 0.44"),
            ("\"short_s\": 0.3125", "\"short_s\": 0.3225"),
            ("\"long_s\": 0.125", "\"long_s\": 0"),
        ] {
            assert!(after(from, to) > 0, "{from}");
        }
    }
}
