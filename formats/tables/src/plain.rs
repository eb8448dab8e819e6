//! Any table as a Parquet file in memory: what a page shows, for data frames.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

/// The values of a column; absent ones are null.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Numbers(Vec<Option<f64>>),
    /// Yes or no.
    Flags(Vec<Option<bool>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

impl Column {
    fn array(self) -> ArrayRef {
        match self {
            Column::Whole(values) => Arc::new(Int64Array::from(values)),
            Column::Numbers(values) => Arc::new(Float64Array::from(values)),
            Column::Flags(values) => Arc::new(BooleanArray::from(values)),
            Column::Texts(values) => Arc::new(StringArray::from(values)),
        }
    }
}

/// The file of a table with these columns, by name.
///
/// # Errors
/// Columns of different lengths.
pub fn parquet(columns: Vec<(String, Column)>) -> Result<Vec<u8>, ParquetError> {
    let columns = columns.into_iter();
    let (names, values): (Vec<String>, Vec<ArrayRef>) =
        columns.map(|(name, column)| (name, column.array())).unzip();
    let fields = names.into_iter().zip(&values);
    let fields = fields.map(|(name, values)| Field::new(name, values.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema.clone(), values)?;
    let properties = WriterProperties::builder()
        .set_created_by(format!("laggard {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn tables_come_back() {
        let columns = vec![
            ("calls".to_owned(), Column::Whole(vec![Some(3), None])),
            (
                "time_s".to_owned(),
                Column::Numbers(vec![Some(0.5), Some(2.0)]),
            ),
            ("is_late".to_owned(), Column::Flags(vec![None, Some(true)])),
            (
                "place".to_owned(),
                Column::Texts(vec![Some("a.c:3".to_owned()), None]),
            ),
        ];
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("table.parquet");
        std::fs::write(&path, parquet(columns).unwrap()).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let rows = SerializedFileReader::new(file).unwrap();
        let rows: Vec<String> = rows
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().to_string())
            .collect();
        assert_eq!(
            rows,
            [
                "{calls: 3, time_s: 0.5, is_late: null, place: \"a.c:3\"}",
                "{calls: null, time_s: 2.0, is_late: true, place: null}"
            ]
        );
        let uneven = vec![
            ("a".to_owned(), Column::Whole(vec![Some(3)])),
            ("b".to_owned(), Column::Whole(vec![])),
        ];
        assert!(parquet(uneven).is_err());
    }
}
