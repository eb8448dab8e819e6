//! The tables of a trace, compared with their document and read back.

use std::fs::File;

use super::{Dictionaries, Format, Key, Row, Rows, Tables, WaitRow, schemas};
use crate::Error;
use arrow_schema::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

/// The type of a column, in the document's words.
fn words(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::UInt32 => "uint32",
        DataType::Int32 => "int32",
        DataType::UInt64 => "uint64",
        DataType::Int64 => "int64",
        DataType::Float64 => "double",
        DataType::Boolean => "bool",
        DataType::Utf8 => "string",
        DataType::Dictionary(..) => "text of a dictionary",
        other => panic!("{other}: no word for it"),
    }
}

#[test]
fn the_document_has_every_column_of_every_table() {
    let document = include_str!("../../TABLES.md");
    let mut tables = document.split("\n### `").skip(1);
    for (table, columns) in schemas() {
        let text = tables.next().expect("a section for each table");
        assert!(
            text.starts_with(&format!("{table}`")),
            "{table}: {text:.30}"
        );
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let said: Vec<Vec<&str>> = rows
            .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert_eq!(said.len(), columns.len(), "{table}");
        for (said, (name, data_type, optional)) in said.iter().zip(columns) {
            assert_eq!(said[0].trim_matches('`'), name, "{table}");
            assert_eq!(said[1], words(&data_type), "{table}.{name}");
            assert_eq!(!said[2].is_empty(), optional, "{table}.{name}");
        }
    }
    assert_eq!(tables.next(), None);
}

fn texts() -> Dictionaries {
    let mut texts = Dictionaries::default();
    texts.add(&["pattern"], ["late_sender", "late_receiver"]);
    texts.add(&["call", "cause_call"], ["MPI_Send", "MPI_Recv"]);
    texts
}

fn wait(rank: u32) -> WaitRow {
    WaitRow {
        pattern: Key(rank % 2),
        rank,
        thread: 0,
        call: Key(1),
        enter_ns: -5,
        leave_ns: i64::from(rank),
        lost_ns: 3,
        call_path: 7,
        cause_rank: rank.is_multiple_of(2).then_some(9),
        cause_call: rank.is_multiple_of(2).then_some(Key(0)),
        cause_call_path: None,
        root_cause: None,
    }
}

#[test]
fn rows_are_read_as_they_were_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("out");
    let metadata = [("program", "./app".to_owned())];
    let tables = Tables::create(&path, Format::Parquet, &metadata, texts()).expect("tables");
    let mut table = tables.table::<WaitRow>().expect("a table");
    let mut rows = Rows::default();
    let count = 70_000;
    for rank in 0..count {
        rows.push(wait(rank));
        rows.flush(&mut table, false).expect("rows");
    }
    rows.flush(&mut table, true).expect("rows");
    assert_eq!(table.finish().expect("a table"), u64::from(count));
    assert!(!path.exists());
    tables.finish().expect("tables");
    let file = File::open(path.join("waits.parquet")).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    assert_eq!(reader.num_row_groups(), 2);
    for (rank, row) in (0..).zip(reader.get_row_iter(None).expect("rows")) {
        let row = row.expect("a row");
        let expected = wait(rank);
        let pattern = ["late_sender", "late_receiver"][expected.pattern.0 as usize];
        assert_eq!(row.get_string(0).expect("a pattern"), pattern);
        assert_eq!(row.get_uint(1).expect("a rank"), rank);
        assert_eq!(row.get_long(5).expect("ns"), expected.leave_ns);
        assert_eq!(row.get_uint(8).ok(), expected.cause_rank);
        assert_eq!(row.get_string(9).is_ok(), expected.cause_call.is_some());
    }
}

#[test]
fn nothing_is_written_over() {
    let directory = tempfile::tempdir().expect("a directory");
    for format in [Format::Parquet, Format::Arrow] {
        let refused = Tables::create(directory.path(), format, &[], texts());
        assert!(matches!(refused, Err(Error::Exists { .. })));
        // An unfinished directory leaves nothing behind.
        let path = directory.path().join("out");
        let tables = Tables::create(&path, format, &[], texts()).expect("tables");
        let table = tables.table::<WaitRow>().expect("a table");
        assert_eq!(table.finish().expect("a table"), 0);
        drop(tables);
        let left = directory.path().read_dir().expect("a directory");
        assert_eq!(left.count(), 0);
    }
    assert_eq!(WaitRow::TABLE, "waits");
}
