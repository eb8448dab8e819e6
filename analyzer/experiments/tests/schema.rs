//! The JSON Schemas and the structs agree.

mod support;

use laggard_experiments::compare::{Options, compare};
use laggard_experiments::scale::{self, scale};
use laggard_experiments::{COMPARE_JSON_SCHEMA, SCALE_JSON_SCHEMA, to_json};
use serde_json::Value;
use support::{example, improved, repeats, run, smaller};

/// Violations of a schema, as it is or with unknown fields forbidden.
fn complaints(schema: &str, value: &Value) -> Vec<String> {
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    close(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let complaint = |e: jsonschema::ValidationError| format!("{}: {e}", e.instance_path());
    validator.iter_errors(value).map(complaint).collect()
}

fn close(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if object.contains_key("properties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        object.values_mut().for_each(close);
    }
    if let Value::Array(list) = schema {
        list.iter_mut().for_each(close);
    }
}

fn compared(repeats_of_each: usize) -> Value {
    let revisions = vec![
        repeats("v1", &example(), repeats_of_each),
        repeats("v2", &improved(), repeats_of_each),
        vec![run("v3.json", example())],
    ];
    let comparison = compare(revisions, &Options::default()).unwrap();
    serde_json::from_str(&to_json(&comparison)).unwrap()
}

fn scaled() -> Value {
    let sizes = vec![
        vec![run("2.json", smaller(2, 14.0, 2.0))],
        vec![run("4.json", example())],
    ];
    let scaling = scale(sizes, &scale::Options::default()).unwrap();
    serde_json::from_str(&to_json(&scaling)).unwrap()
}

#[test]
fn comparisons_are_as_the_schema_says() {
    for count in [1, 2, 5] {
        let value = compared(count);
        assert_eq!(complaints(COMPARE_JSON_SCHEMA, &value), [""; 0]);
    }
    for (path, wrong) in [
        ("/schema", "laggard-compare/2".into()),
        ("/noise/evidence", "feeling".into()),
        ("/root_causes/0/activity", "idling".into()),
        ("/root_causes/0/places/0/until/line", (-1).into()),
        ("/bottlenecks/0/states/0", "lost".into()),
        ("/bottlenecks/0/changes/0/verdict", Value::Null),
        ("/revisions/0/ranks", (-1).into()),
    ] {
        let mut value = compared(1);
        *value.pointer_mut(path).expect(path) = wrong;
        assert_eq!(complaints(COMPARE_JSON_SCHEMA, &value).len(), 1, "{path}");
    }
}

#[test]
fn scalings_are_as_the_schema_says() {
    assert_eq!(complaints(SCALE_JSON_SCHEMA, &scaled()), [""; 0]);
    for (path, wrong) in [
        ("/scaling", "medium".into()),
        ("/sizes/0/ranks", 1.5.into()),
        ("/sizes/1/costs/0/kind", "cost".into()),
        ("/sizes/1/parts/0/id", Value::Null),
        ("/root_causes/0/percent/0", Value::Null),
        ("/root_causes/0/places/1/rank_set", Value::Null),
    ] {
        let mut value = scaled();
        *value.pointer_mut(path).expect(path) = wrong;
        assert_eq!(complaints(SCALE_JSON_SCHEMA, &value).len(), 1, "{path}");
    }
}
