//! The JSON Schema and the structs say the same.

use std::path::Path;

use laggard_report::{
    Anomaly, Bottleneck, JSON_SCHEMA, LocationSums, Report, RootCaller, RootFunction,
};
use serde_json::Value;

const EXAMPLE: &str = include_str!("example.json");

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::draft202012::new(&schema).unwrap()
}

fn complaints(report: &Value) -> Vec<String> {
    let complaint = |e: jsonschema::ValidationError| format!("{}: {e}", e.instance_path());
    validator().iter_errors(report).map(complaint).collect()
}

fn example() -> Report {
    Report::from_json(EXAMPLE.as_bytes(), Path::new("example.json")).unwrap()
}

#[test]
fn example_is_valid_and_survives_the_structs() {
    let value: Value = serde_json::from_str(EXAMPLE).unwrap();
    assert_eq!(complaints(&value), Vec::<String>::new());
    let written: Value = serde_json::from_str(&example().to_json()).unwrap();
    assert_eq!(complaints(&written), Vec::<String>::new());
    assert_eq!(written, value);
}

#[test]
fn fields_keep_their_order() {
    let text = example().to_json();
    let position = |key: &str| text.find(&format!("\n  \"{key}\"")).expect(key);
    let keys = [
        "schema",
        "run",
        "settings",
        "agents",
        "efficiency",
        "phases_of_run",
        "locations",
        "metrics",
        "operations",
        "bottlenecks",
        "anomalies",
    ];
    assert!(
        keys.windows(2)
            .all(|pair| position(pair[0]) < position(pair[1]))
    );
    assert!(text.starts_with("{\n  \"schema\": \"laggard-report/1\""));
}

#[test]
fn functions_of_root_causes_are_valid() {
    let mut report = example();
    let roots = report.root_causes.as_mut().unwrap();
    let location = roots[0].location.clone();
    roots[0].functions.push(RootFunction {
        location,
        more_s: 0.0024,
        share: 0.96,
        callers: vec![RootCaller {
            share: 0.5,
            ..RootCaller::default()
        }],
    });
    let written: Value = serde_json::from_str(&report.to_json()).unwrap();
    let read: Report = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(read, report);
    assert_eq!(complaints(&written), Vec::<String>::new());
}

#[test]
fn least_report_is_valid() {
    let mut report = example();
    report.run.mpi_library = None;
    report.run.clock_error_s = None;
    report.run.clock_violations = None;
    report.run.processors.clear();
    report.agents.phases.clear();
    report.agents.peak_memory_bytes = None;
    report.locations.clear();
    report.metrics.clear();
    report.operations.clear();
    report.bottlenecks = vec![Bottleneck {
        filter: "all".to_owned(),
        ..Default::default()
    }];
    report.anomalies = vec![Anomaly {
        count: 1,
        ..Default::default()
    }];
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(complaints(&value), Vec::<String>::new());
}

#[test]
fn schema_names_every_field() {
    // A field that the schema does not list would pass unseen: close all objects first.
    let mut schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    close(&mut schema);
    let closed = jsonschema::draft202012::new(&schema).unwrap();
    let mut report = example();
    report.location_sums = Some(LocationSums {
        inter_node_wait_s: Some(12.8),
        startup_s: Some(2.0),
        shutdown_s: Some(0.4),
        ..report.sums()
    });
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    let unknown: Vec<String> = closed.iter_errors(&value).map(|e| e.to_string()).collect();
    assert_eq!(unknown, Vec::<String>::new());
}

fn close(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        object.values_mut().for_each(close);
    }
}

#[test]
fn wrong_reports_are_refused() {
    let spoilt = |path: &str, value: Value| {
        let mut report: Value = serde_json::from_str(EXAMPLE).unwrap();
        *report.pointer_mut(path).expect(path) = value;
        !complaints(&report).is_empty()
    };
    assert!(spoilt("/schema", "laggard-report/2".into()));
    assert!(spoilt("/run/ranks", (-1).into()));
    assert!(spoilt("/bottlenecks/0/confidence", 1.5.into()));
    assert!(spoilt("/bottlenecks/0/filter", "guess".into()));
    assert!(spoilt("/anomalies/0/severity", "fatal".into()));
    assert!(spoilt("/metrics/late_sender", Value::Null));
}
