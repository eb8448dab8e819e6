//! A typed view of the parts of `report.json` that the tests use.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The whole report.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// Name and version of the format.
    pub schema: String,
    /// The recorded run.
    pub run: Run,
    /// Times of every location.
    pub locations: Vec<Location>,
    /// Sums over all locations.
    pub location_sums: Option<LocationSums>,
    /// Totals by pattern.
    pub metrics: BTreeMap<String, Metric>,
    /// The largest first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Who started the waiting.
    #[serde(default)]
    pub root_causes: Vec<RootCause>,
    /// Waiting that nobody is known to have started; absent if root causes were not searched.
    pub untraced_s: Option<f64>,
    /// Root causes that are not listed.
    pub unlisted_s: Option<f64>,
    /// All waiting by the activity that started it.
    #[serde(default)]
    pub waiting_by_activity_s: BTreeMap<String, f64>,
    /// Waits by class.
    #[serde(default)]
    pub wait_classes: BTreeMap<String, WaitClass>,
    /// Costs of what ranks did longer, by class.
    #[serde(default)]
    pub delay_costs: BTreeMap<String, DelayCosts>,
    /// The critical path, if it was followed.
    pub critical_path: Option<CriticalPath>,
    /// Cost of the analysis.
    #[serde(default)]
    pub agents: Agents,
    /// By function.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Oddities of the run or its trace.
    pub anomalies: Vec<Anomaly>,
}

/// Messages between agents.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Agents {
    pub count: u32,
    pub requests: u64,
    pub bytes_exchanged: u64,
}

/// The critical path.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct CriticalPath {
    pub length_s: f64,
    pub startup_s: f64,
    #[serde(default)]
    pub phases: Vec<PathPhase>,
}

/// A phase on it.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct PathPhase {
    pub phase: String,
    pub seconds: f64,
    pub share: f64,
}

/// The recorded run.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Run {
    pub program: String,
    pub ranks: u32,
    pub locations: u32,
    pub models: Vec<String>,
    pub wall_time_s: f64,
    pub operations: u64,
    #[serde(default)]
    pub hosts: Vec<String>,
    pub clock_error_s: Option<f64>,
    pub clock_violations: Option<ClockViolations>,
}

/// Effects that came before their causes, before and after clocks were corrected.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct ClockViolations {
    pub before: Causality,
    pub after: Causality,
}

/// Their number.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Causality {
    pub messages: u64,
    pub collectives: u64,
    pub largest_s: f64,
}

/// Times of all locations together.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct LocationSums {
    pub wait_s: f64,
    pub inter_node_wait_s: Option<f64>,
    pub in_calls: InCalls,
}

/// The parts of the time in calls.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct InCalls {
    pub total_s: f64,
    pub explained_s: f64,
    pub unexplained_s: f64,
    pub cost_s: f64,
}

/// One thread of one rank.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Location {
    pub rank: u32,
    pub thread: u32,
    #[serde(default)]
    pub host: String,
    pub computation_s: f64,
    pub communication_s: f64,
    pub synchronization_s: f64,
    pub io_s: f64,
    pub wait_s: f64,
}

/// The total of a pattern.
#[derive(Clone, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Metric {
    pub total_s: f64,
    pub percent: f64,
    pub instances: u64,
    pub inter_node_s: Option<f64>,
}

/// Who started some of the waiting.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct RootCause {
    pub activity: String,
    pub location: Place,
    pub until: Option<Place>,
    #[serde(default)]
    pub functions: Vec<RootFunction>,
    pub gain_s: Option<f64>,
    pub ranks: Vec<RootRank>,
    pub direct_s: f64,
    pub indirect_s: f64,
    pub severity_s: f64,
}

/// A function or region in which ranks were longer.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct RootFunction {
    pub function: String,
    pub share: f64,
}

/// Waits by what they come from, and by what comes of them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct WaitClass {
    pub direct_s: f64,
    pub indirect_s: f64,
    pub untraced_s: f64,
    pub propagating_s: f64,
    pub terminal_s: f64,
}

/// Costs of what ranks did longer than others.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct DelayCosts {
    pub short_s: f64,
    pub long_s: f64,
}

/// The part of one rank.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct RootRank {
    pub rank: u32,
    pub severity_s: f64,
}

/// One operation that waits at one place.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Bottleneck {
    pub pattern: String,
    pub operation: String,
    pub location: Place,
    pub severity_s: f64,
    pub percent: f64,
    pub confidence: f64,
    pub baseline_s: Option<f64>,
    pub ratio: Option<f64>,
    #[serde(default)]
    pub filter: String,
    pub calls: u64,
    pub instances: u64,
    pub ranks: Vec<RankShare>,
    pub inter_node_s: Option<f64>,
    pub causes: Vec<Cause>,
    pub worst_instance: Option<Instance>,
    #[serde(default)]
    pub hints: Vec<String>,
    #[serde(default)]
    pub advice: Vec<Advice>,
}

/// Hint of a rule.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Advice {
    pub rule: String,
    pub text: String,
    pub gain_s: Option<f64>,
    pub percent: Option<f64>,
    pub promise: Option<String>,
    pub explain: String,
}

/// A place in the program's source; empty if unknown.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Place {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub callpath: Vec<String>,
}

impl Place {
    /// Whether this is line `line` of a file with this name.
    pub fn is(&self, file: &str, line: u32) -> bool {
        self.line == Some(line) && self.file.as_deref().is_some_and(|f| base_name(f) == file)
    }

    /// Whether the call path contains this line.
    pub fn leads_over(&self, file: &str, line: u32) -> bool {
        let wanted = format!("{file}:{line}");
        let position =
            |frame: &str| frame.split_whitespace().last().map(base_name) == Some(&wanted);
        self.callpath.iter().any(|frame| position(frame))
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The loss of one rank.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct RankShare {
    pub rank: u32,
    pub severity_s: f64,
    pub instances: u64,
}

/// A cause of a bottleneck.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Cause {
    pub rank: u32,
    pub operation: String,
    pub location: Place,
    pub severity_s: f64,
    pub share: f64,
    #[serde(default)]
    pub because: String,
}

/// One occurrence.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Instance {
    pub rank: u32,
    pub start_s: f64,
    pub end_s: f64,
    pub severity_s: f64,
}

/// All calls of one function.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Operation {
    pub operation: String,
    pub calls: u64,
    pub cost_s: Option<f64>,
}

/// Something odd.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Anomaly {
    pub id: String,
    pub severity: String,
    pub count: u64,
    #[serde(default)]
    pub detail: String,
}

impl Report {
    /// Reads a report.
    ///
    /// # Errors
    /// Not JSON, or not of the promised shape.
    pub fn parse(text: &str) -> Result<Report, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Anomalies with this id, added up.
    pub fn anomaly(&self, id: &str) -> u64 {
        let fitting = self.anomalies.iter().filter(|a| a.id == id);
        fitting.map(|a| a.count).sum()
    }

    /// Details of the anomalies that report errors of the recording.
    pub fn errors(&self) -> Vec<String> {
        let fitting = self.anomalies.iter().filter(|a| a.severity == "error");
        fitting.map(|a| format!("{}: {}", a.id, a.detail)).collect()
    }
}

const SCHEMA: &str = include_str!("../../formats/report/schema/laggard-report-1.schema.json");

/// Violations of the JSON Schema in a report.
///
/// # Panics
/// If the text is not JSON.
pub fn schema_violations(text: &str) -> Vec<String> {
    let parse = |text| serde_json::from_str(text).expect("JSON");
    let validator = jsonschema::draft202012::new(&parse(SCHEMA)).expect("a schema");
    let report = parse(text);
    let violations = validator.iter_errors(&report);
    violations
        .map(|v| format!("{}: {v}", v.instance_path()))
        .collect()
}

/// A report, or another JSON result, of a program with delays `scale` times as long; all its times
/// are converted back to the program's own.
///
/// # Panics
/// If it is not JSON.
pub fn in_schedule_s(text: &str, scale: f64) -> String {
    fn shrink(value: &mut Value, is_time: bool, scale: f64) {
        match value {
            Value::Number(number) if is_time => {
                let seconds = number.as_f64().expect("a number of JSON");
                *value = (seconds / scale).into();
            }
            Value::Array(list) => list.iter_mut().for_each(|v| shrink(v, is_time, scale)),
            Value::Object(rows) => rows
                .iter_mut()
                .for_each(|(key, v)| shrink(v, is_time || key.ends_with("_s"), scale)),
            _ => {}
        }
    }
    if scale == 1.0 {
        return text.to_owned();
    }
    let mut value = serde_json::from_str(text).expect("JSON");
    shrink(&mut value, false, scale);
    value.to_string()
}

/// The first difference of two reports outside their `agents` objects.
pub fn difference(one: &str, other: &str) -> Option<String> {
    let one = without_agents(one);
    let other = without_agents(other);
    if one == other {
        return None;
    }
    let same = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let bytes = &text.as_bytes()[same.saturating_sub(80)..text.len().min(same + 80)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    Some(format!("{:?} against {:?}", around(&one), around(&other)))
}

/// The text of a report without its `agents` object, the only part that may differ between numbers
/// of agents.
pub fn without_agents(text: &str) -> String {
    let Some((start, end)) = top_level_value(text, "agents") else {
        return text.to_string();
    };
    format!("{}{}", &text[..start], &text[end..])
}

/// The byte range of a key and its value in the outermost object.
fn top_level_value(text: &str, key: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let quoted = format!("\"{key}\"");
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    let mut start = None;
    for (at, &byte) in bytes.iter().enumerate() {
        if in_string {
            in_string = byte != b'"' || escaped;
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => {
                in_string = true;
                if depth == 1 && start.is_none() && text[at..].starts_with(&quoted) {
                    start = Some(at);
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 1
                    && let Some(start) = start
                {
                    return Some((start, at + 1));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_agents_object_is_left_out() {
        let text = r#"{"run": {"agents": {"a": 1}}, "agents": {"count": 2, "x": ["}"]}, "z": "\"agents\""}"#;
        let expected = r#"{"run": {"agents": {"a": 1}}, , "z": "\"agents\""}"#;
        assert_eq!(without_agents(text), expected);
    }

    #[test]
    fn places_are_compared_by_file_name() {
        let place = Place {
            file: Some("src/app.c".into()),
            line: Some(42),
            function: None,
            callpath: vec!["main /home/me/app.c:90".into(), "exchange app.c:42".into()],
        };
        assert!(place.is("app.c", 42) && !place.is("p.c", 42));
        assert!(place.leads_over("app.c", 90) && !place.leads_over("app.c", 9));
    }
}
