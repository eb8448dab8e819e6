//! Times of operations on a machine, one row per size. `BASELINE.md` documents the columns.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::Error;
use crate::target::{self, Target};

/// Value of `laggard.schema` in the metadata of this table.
pub const SCHEMA: &str = "laggard-baseline-table/1";
/// Prefix of that value in every version.
const FAMILY: &str = "laggard-baseline-table/";

/// One size of an operation in a group. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Name of the call.
    pub operation: String,
    /// Members.
    pub group_size: u32,
    /// `intra_node` or `inter_node`, if known.
    pub span: Option<&'static str>,
    /// Bytes per call and member.
    pub bytes: u64,
    /// `measured`, or `check` for a size between the measured ones.
    pub kind: &'static str,
    /// Shortest time of the slowest member.
    pub time: f64,
    /// Median over the repetitions.
    pub median: Option<f64>,
    /// Interquartile range of the repetitions.
    pub spread: Option<f64>,
    /// Number of repetitions that count.
    pub repetitions: Option<u32>,
    /// Largest difference between the members' starts.
    pub skew: Option<f64>,
    /// Time of the fitted model.
    pub model: Option<f64>,
}

/// Makes sure that a table can be written here.
///
/// # Errors
/// One line that names the obstacle.
pub fn check_target(path: &Path) -> Result<(), Error> {
    target::check(path, FAMILY)
}

/// Writes a table; `about` goes into its metadata.
///
/// # Errors
/// As [`check_target`]; or the file cannot be written.
pub fn write(path: &Path, rows: &[Row], about: &[(&str, String)]) -> Result<(), Error> {
    let target = Target::open(path, FAMILY)?;
    let failed = |source| Error::encode(path, source);
    let batch = batch(rows).map_err(failed)?;
    let schema = ("schema", SCHEMA.to_owned());
    let metadata = std::iter::once(&schema).chain(about);
    let metadata =
        metadata.map(|(key, value)| KeyValue::new(format!("laggard.{key}"), value.clone()));
    let properties = WriterProperties::builder()
        .set_created_by(format!("laggard {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.collect()))
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer =
        ArrowWriter::try_new(target, batch.schema(), Some(properties)).map_err(failed)?;
    writer.write(&batch).map_err(failed)?;
    writer.into_inner().map_err(failed)?.finish()
}

fn batch(rows: &[Row]) -> Result<RecordBatch, ParquetError> {
    let texts = |of: &dyn Fn(&Row) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&Row) -> Option<u32>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<UInt32Array>())
    };
    let times = |of: &dyn Fn(&Row) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Float64Array>())
    };
    let bytes: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| r.bytes)));
    let columns = [
        (
            "operation",
            false,
            texts(&|row| Some(row.operation.clone())),
        ),
        ("group_size", false, numbers(&|row| Some(row.group_size))),
        ("span", true, texts(&|row| row.span.map(str::to_owned))),
        ("bytes", false, bytes),
        ("kind", false, texts(&|row| Some(row.kind.to_owned()))),
        ("time_s", false, times(&|row| Some(row.time))),
        ("median_s", true, times(&|row| row.median)),
        ("spread_s", true, times(&|row| row.spread)),
        ("repetitions", true, numbers(&|row| row.repetitions)),
        ("skew_s", true, times(&|row| row.skew)),
        ("model_s", true, times(&|row| row.model)),
    ];
    let field = |(name, optional, values): &(&str, bool, ArrayRef)| {
        let data_type: DataType = values.data_type().clone();
        Field::new(*name, data_type, *optional)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let values = columns.into_iter().map(|(_, _, values)| values).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), values)?)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn rows_come_back_and_other_files_stay() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("b.parquet");
        let row = |bytes, median| Row {
            operation: "MPI_Send".into(),
            group_size: 2,
            bytes,
            kind: "measured",
            time: 1e-6,
            median,
            ..Row::default()
        };
        let rows = [row(0, None), row(8, Some(2e-6))];
        write(&path, &rows, &[("description", "x".into())]).unwrap();
        // Again, over an existing table.
        write(&path, &rows, &[("description", "y".into())]).unwrap();
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let metadata = file
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap();
        let description = metadata.iter().find(|kv| kv.key == "laggard.description");
        assert_eq!(description.unwrap().value.as_deref(), Some("y"));
        let found: Vec<_> = file
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].get_ulong(3).unwrap(), 8);
        assert_eq!(found[1].get_double(6).unwrap(), 2e-6);
        assert!(found[0].get_double(6).is_err());
        std::fs::write(&path, "notes").unwrap();
        let error = write(&path, &rows, &[]).unwrap_err().to_string();
        assert!(error.contains("is not a laggard table"), "{error}");
    }
}
