//! A table of the page as a Parquet file: the page sends its rows, and gets them back.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use laggard_tables::plain::{Column, parquet};
use serde::Deserialize;
use serde_json::Value;

use super::guard;

/// Largest request, bytes: an answer, and names of its columns anew.
pub const LARGEST: usize = 1 << 20;
/// Most columns.
const COLUMNS: usize = 256;

/// Names of columns, and for each row a value of each.
#[derive(Deserialize)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// Answers with the file.
pub async fn table(headers: HeaderMap, body: Bytes) -> Response {
    if !guard::is_json_of_a_page(&headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let made = tokio::task::spawn_blocking(move || made(&body)).await;
    match made {
        Ok(Ok(bytes)) => {
            let kind = [(header::CONTENT_TYPE, "application/vnd.apache.parquet")];
            (kind, bytes).into_response()
        }
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, format!("{error:#}")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn made(body: &[u8]) -> Result<Vec<u8>> {
    let Table { columns, rows } = serde_json::from_slice(body)?;
    let names: BTreeSet<&String> = columns.iter().collect();
    if columns.is_empty() || columns.len() > COLUMNS || names.len() < columns.len() {
        bail!("a table has 1 to {COLUMNS} columns of different names");
    }
    if rows.iter().any(|row| row.len() != columns.len()) {
        bail!("a row has a value for each column");
    }
    let columns = columns.into_iter().enumerate();
    let columns = columns.map(|(at, name)| (name, column(rows.iter().map(|row| &row[at]))));
    Ok(parquet(columns.collect())?)
}

/// Numbers or flags if all that is there is such; else texts.
fn column<'v>(values: impl Iterator<Item = &'v Value> + Clone) -> Column {
    let known = || values.clone().filter(|value| !value.is_null());
    if known().next().is_some() && known().all(Value::is_boolean) {
        return Column::Flags(values.map(Value::as_bool).collect());
    }
    if known().next().is_some() && known().all(Value::is_i64) {
        return Column::Whole(values.map(Value::as_i64).collect());
    }
    if known().next().is_some() && known().all(Value::is_number) {
        return Column::Numbers(values.map(Value::as_f64).collect());
    }
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Column::Texts(values.map(text).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_follow_from_the_values() {
        let of = |values: &[Value]| column(values.iter());
        assert_eq!(
            of(&[json!(1), json!(null)]),
            Column::Whole(vec![Some(1), None])
        );
        assert_eq!(
            of(&[json!(1), json!(0.5)]),
            Column::Numbers(vec![Some(1.0), Some(0.5)])
        );
        assert_eq!(of(&[json!(true)]), Column::Flags(vec![Some(true)]));
        assert_eq!(of(&[json!(null)]), Column::Texts(vec![None]));
        assert_eq!(
            of(&[json!("=1"), json!(2), json!(["rc1"])]),
            Column::Texts(
                ["=1", "2", "[\"rc1\"]"]
                    .map(|text| Some(text.to_owned()))
                    .to_vec()
            )
        );
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        for wrong in [
            json!({"columns": [], "rows": []}),
            json!({"columns": ["a", "a"], "rows": [[1, 2]]}),
            json!({"columns": ["a", "b"], "rows": [[1, 2], [3]]}),
            json!({"columns": "a", "rows": []}),
            json!([]),
        ] {
            assert!(made(wrong.to_string().as_bytes()).is_err(), "{wrong}");
        }
        let right = json!({"columns": ["a"], "rows": []}).to_string();
        assert_eq!(made(right.as_bytes()).unwrap()[..4], *b"PAR1");
    }
}
