//! Numbers for a monitoring system: of a report, or of other results.

use std::collections::BTreeMap;
use std::fmt;

use laggard_report::layout::base_name;
use laggard_report::{Bottleneck, Report, RootCause, SourceLocation};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::markdown::MOST;

pub use prometheus_client::registry::Unit;

/// Labels of a number.
pub type Labels = Vec<(&'static str, String)>;

/// Numbers with one name.
#[derive(Debug)]
pub struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    /// By labels, since these must not repeat: what has the same ones is added.
    values: BTreeMap<Labels, f64>,
}

impl Family {
    /// Without numbers yet; such ones are left out.
    pub fn new(name: &'static str, unit: Option<Unit>, help: &'static str) -> Family {
        Family {
            name,
            help,
            unit,
            values: BTreeMap::new(),
        }
    }

    /// With one more number. Texts of labels are cut to a length.
    pub fn with(mut self, labels: Labels, value: f64) -> Family {
        let labels = labels.into_iter();
        let labels = labels.map(|(name, text)| (name, clean(&text))).collect();
        *self.values.entry(labels).or_default() += value;
        self
    }
}

/// All numbers of a report, and the program as a label of each.
#[derive(Debug)]
struct Numbers(Vec<Family>);

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in self.0.iter().filter(|family| !family.values.is_empty()) {
            let unit = family.unit.as_ref();
            let mut metric =
                encoder.encode_descriptor(family.name, family.help, unit, MetricType::Gauge)?;
            for (labels, &value) in &family.values {
                ConstGauge::new(value).encode(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

/// The report in the text format of OpenMetrics: gauges of the whole run, of patterns, findings and
/// root causes.
pub fn to_openmetrics(report: &Report) -> String {
    render(&report.run.program, families(report))
}

/// Gauges of a program in the text format of OpenMetrics.
pub fn render(program: &str, families: Vec<Family>) -> String {
    let program = clean(base_name(program));
    let labels = [("program".into(), program.into())];
    let mut registry = Registry::with_prefix_and_labels("laggard", labels.into_iter());
    registry.register_collector(Box::new(Numbers(families)));
    let mut text = String::new();
    // Memory takes all that is written.
    let _ = encode(&mut text, &registry);
    text
}

fn families(report: &Report) -> Vec<Family> {
    let (run, sums) = (&report.run, report.sums());
    let efficiency = &report.efficiency;
    let seconds = || Some(Unit::Seconds);
    let of_run = |name, unit, help, value| Family::new(name, unit, help).with(Vec::new(), value);
    let efficiencies = [
        ("parallel", Some(efficiency.parallel)),
        ("load_balance", Some(efficiency.load_balance)),
        ("communication", Some(efficiency.communication)),
        ("serialization", efficiency.serialization),
        ("transfer", efficiency.transfer),
        ("hybrid", efficiency.hybrid.map(|all| all.parallel)),
        ("hybrid_mpi", efficiency.hybrid.map(|all| all.mpi.parallel)),
        (
            "hybrid_threads",
            efficiency.hybrid.map(|all| all.threads.parallel),
        ),
    ];
    let known = efficiencies
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)));
    let efficiencies = known.fold(
        Family::new("efficiency", None, "Efficiency of the run, 0 to 1"),
        |family, (kind, value)| family.with(vec![("kind", kind.to_owned())], value),
    );
    let times = [
        ("computation", sums.computation_s),
        ("communication", sums.communication_s),
        ("synchronization", sums.synchronization_s),
        ("io", sums.io_s),
    ];
    let times = times.into_iter().fold(
        Family::new("time", seconds(), "Time of all ranks by kind"),
        |family, (kind, value)| family.with(vec![("kind", kind.to_owned())], value),
    );
    let counters = sums.counters.iter().fold(
        Family::new(
            "counted",
            None,
            "What counters counted in computation, all ranks",
        ),
        |family, (name, count)| family.with(vec![("counter", name.clone())], *count as f64),
    );
    let functions = report.functions.iter().fold(
        Family::new(
            "function",
            seconds(),
            "Computation by function, all ranks, as samples tell",
        ),
        |family, of| family.with(of_place(&of.location), of.total_s),
    );
    let patterns = report.metrics.iter().fold(
        Family::new("pattern", seconds(), "Time lost by pattern, all ranks"),
        |family, (id, metric)| family.with(vec![("pattern", id.clone())], metric.total_s),
    );
    let findings = report.bottlenecks.iter().fold(
        Family::new("finding", seconds(), "Time lost by finding, all ranks"),
        |family, found| family.with(of_finding(found), found.severity_s),
    );
    let roots = report.root_causes.iter().flatten().fold(
        Family::new("root_cause", seconds(), "Waiting by root cause, all ranks"),
        |family, root| family.with(of_root(root), root.severity_s),
    );
    let anomalies = report.anomalies.iter().fold(
        Family::new("anomalies", None, "What is odd about the run"),
        |family, anomaly| {
            let severity = anomaly.severity.name().to_owned();
            let labels = vec![("id", anomaly.id.clone()), ("severity", severity)];
            family.with(labels, anomaly.count as f64)
        },
    );
    vec![
        of_run("ranks", None, "Ranks of the run", f64::from(run.ranks)),
        of_run("wall_time", seconds(), "From start to end", run.wall_time_s),
        of_run(
            "waiting",
            seconds(),
            "Time spent waiting, all ranks",
            sums.wait_s,
        ),
        of_run(
            "waiting_share",
            None,
            "The same, of all time",
            report.waiting_percent() / 100.0,
        ),
        efficiencies,
        times,
        counters,
        functions,
        patterns,
        findings,
        roots,
        anomalies,
    ]
}

fn of_finding(found: &Bottleneck) -> Labels {
    let mut labels = vec![
        ("pattern", found.pattern.clone()),
        ("operation", found.operation.clone()),
    ];
    labels.extend(of_place(&found.location));
    labels
}

fn of_root(root: &RootCause) -> Labels {
    let mut labels = vec![
        ("activity", root.activity.clone()),
        ("operation", root.operation.clone()),
        ("ranks", root.rank_set.clone()),
    ];
    labels.extend(of_place(&root.location));
    labels
}

fn of_place(location: &SourceLocation) -> Labels {
    vec![
        ("file", base_name(&location.file).to_owned()),
        ("line", location.line.to_string()),
        ("function", location.function.clone()),
    ]
}

/// A value of a label: of bounded length, and on one line for readers that know no escapes.
fn clean(text: &str) -> String {
    let short: String = text.chars().take(MOST).collect();
    laggard_files::printable(&short).into_owned()
}
