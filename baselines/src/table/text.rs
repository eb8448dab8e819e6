//! A table as text that people can read and compare.

use serde::Serialize;

use crate::{Entry, Table};

/// A value in one line.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// JSON with a line for each point and model, so that `diff` shows what has changed.
pub fn json(table: &Table) -> String {
    let mut text = String::from("{\n");
    text.push_str(&format!("  \"schema\": {},\n", line(&table.schema)));
    text.push_str(&format!(
        "  \"description\": {},\n",
        line(&table.description)
    ));
    if let Some(fingerprint) = &table.fingerprint {
        let pretty = serde_json::to_string_pretty(fingerprint).unwrap_or_default();
        let pretty = pretty.replace('\n', "\n  ");
        text.push_str(&format!("  \"fingerprint\": {pretty},\n"));
    }
    if !table.notes.is_empty() {
        let notes: Vec<String> = table.notes.iter().map(line).collect();
        let notes = notes.join(",\n    ");
        text.push_str(&format!("  \"notes\": [\n    {notes}\n  ],\n"));
    }
    text.push_str("  \"entries\": [");
    let entries: Vec<String> = table.entries.iter().map(entry).collect();
    text.push_str(&entries.join(","));
    text.push_str("\n  ]\n}\n");
    text
}

fn entry(entry: &Entry) -> String {
    let list = |name: &str, items: Vec<String>| {
        format!(
            "\"{name}\": [\n        {}\n      ]",
            items.join(",\n        ")
        )
    };
    let mut fields = vec![
        format!("\"operation\": {}", line(&entry.operation)),
        format!("\"group_size\": {}", entry.group_size),
    ];
    fields.extend(entry.span.map(|span| format!("\"span\": {}", line(&span))));
    fields.push(list("points", entry.points.iter().map(line).collect()));
    if !entry.checks.is_empty() {
        fields.push(list("checks", entry.checks.iter().map(line).collect()));
    }
    let model = entry.model.as_ref();
    fields.extend(model.map(|model| format!("\"model\": {}", line(model))));
    fields.extend(
        entry
            .growth
            .map(|growth| format!("\"growth\": {}", line(&growth))),
    );
    format!("\n    {{\n      {}\n    }}", fields.join(",\n      "))
}
