//! The table per rank: its rows, and their file.

use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::group::{Cell, Group};
use crate::schema::{COLUMNS, Kind, message};
use crate::target::{self, Target};
use crate::{Error, SCHEMA, SCHEMA_FAMILY};

/// Facts about the run, for a table's metadata.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r> {
    /// Id of the recording.
    pub run_id: [u8; 16],
    /// Program.
    pub program: &'r str,
    /// Its arguments.
    pub arguments: &'r [String],
    /// Size of the world.
    pub ranks: u32,
    /// Whether every instance was measured, so that lost times are complete.
    pub all: bool,
}

/// A text registered with [`PerRank::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text(u32);

/// A call site.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Name of the call.
    pub operation: Text,
    /// Source file, if known.
    pub file: Option<Text>,
    /// Line, from 1; 0 = unknown.
    pub line: u32,
    /// Function, or an address in it, if known.
    pub function: Option<Text>,
    /// Call path, outermost first, if known.
    pub callpath: Option<Text>,
}

/// A late rank and its activities meanwhile. Times are ns.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// World rank.
    pub rank: u32,
    /// Its late call; the table leaves out this call's path.
    pub call: Call,
    /// Part of the lost time in which it computed.
    pub computation: u64,
    /// Part in which it was inside communication.
    pub waiting: u64,
    /// Part in which it was inside file operations.
    pub io: u64,
}

/// Content of a row for its rank and thread.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Time by kind.
    Time,
    /// What a counter counted in the time.
    Counted(u64),
    /// Time lost in a pattern.
    Lost {
        /// Number of instances.
        instances: u64,
        /// The losing call.
        call: Call,
        /// The late rank, if there was one.
        late: Option<Late>,
    },
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// World rank.
    pub rank: u32,
    /// Thread.
    pub thread: u32,
    /// Host name.
    pub host: Text,
    /// Kind of time, or pattern.
    pub metric: Text,
    /// Time, ns.
    pub time: u64,
    /// Further content.
    pub value: Value,
}

/// A table being written.
pub struct PerRank {
    file: SerializedFileWriter<BufWriter<Target>>,
    group: Group,
    texts: Vec<ByteArray>,
    kinds: [Text; 3],
}

impl PerRank {
    /// Makes sure that a table can be written here. The file may be missing, an older table,
    /// empty, or not a regular file, and a file beside it must be possible.
    ///
    /// # Errors
    /// One line that names the obstacle.
    pub fn check_target(path: &Path) -> Result<(), Error> {
        target::check(path, SCHEMA_FAMILY)
    }

    /// Begins a table.
    ///
    /// # Errors
    /// As [`PerRank::check_target`]; or the file cannot be written.
    pub fn create(path: &Path, run: &Run) -> Result<PerRank, Error> {
        let target = Target::open(path, SCHEMA_FAMILY)?;
        let failed = |source| Error::encode(path, source);
        let schema = Arc::new(parse_message_type(&message()).map_err(failed)?);
        let properties = Arc::new(properties(run));
        let file = SerializedFileWriter::new(BufWriter::new(target), schema, properties);
        let mut table = PerRank {
            file: file.map_err(failed)?,
            group: Group::new(),
            texts: Vec::new(),
            kinds: [Text(0); 3],
        };
        table.kinds = ["time", "counted", "lost"].map(|kind| table.text(kind));
        Ok(table)
    }

    /// Registers a text for use in any number of rows. A repeated text takes memory again.
    pub fn text(&mut self, text: &str) -> Text {
        self.texts.push(ByteArray::from(text.as_bytes().to_vec()));
        Text(self.texts.len() as u32 - 1)
    }

    /// Adds a row. Rows must ascend by rank and thread.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        self.group.push(&self.cells(row));
        match self.group.is_full() {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    /// Completes the file and gives it its final name.
    ///
    /// # Errors
    /// The file cannot be written; an older file of this name then remains.
    pub fn finish(mut self) -> Result<(), Error> {
        self.write_group()?;
        let path = self.file.inner().get_ref().path().to_owned();
        let failed = |source| Error::encode(&path, source);
        // Includes the footer at the end of the file.
        let buffer = self.file.into_inner().map_err(failed)?;
        let target = buffer.into_inner();
        target
            .map_err(|error| Error::write(&path, error.into_error()))?
            .finish()
    }

    fn write_group(&mut self) -> Result<(), Error> {
        let written = self.group.write(&mut self.file, &self.texts);
        written.map_err(|source| Error::encode(self.file.inner().get_ref().path(), source))
    }

    /// A row in the order of the columns.
    fn cells(&self, row: &Row) -> [Cell; COLUMNS.len()] {
        let text = |text: Option<Text>| text.map_or(Cell::Null, |text| Cell::Text(text.0));
        let line = |line: u32| match line {
            0 => Cell::Null,
            line => Cell::Number(line),
        };
        let mut cells = [Cell::Null; COLUMNS.len()];
        let [rank, thread, host, kind, metric, time, rest @ ..] = &mut cells;
        (*rank, *thread) = (Cell::Number(row.rank), Cell::Number(row.thread));
        (*host, *metric) = (Cell::Text(row.host.0), Cell::Text(row.metric.0));
        *time = Cell::Ns(row.time);
        let [times, counted, lost] = self.kinds.map(|kind| Cell::Text(kind.0));
        let (instances, call, late) = match row.value {
            Value::Time => {
                *kind = times;
                return cells;
            }
            Value::Counted(count) => {
                (*kind, rest[0]) = (counted, Cell::Count(count));
                return cells;
            }
            Value::Lost {
                instances,
                call,
                late,
            } => (instances, call, late),
        };
        *kind = lost;
        let (of_call, of_late) = rest.split_at_mut(6);
        of_call.copy_from_slice(&[
            Cell::Count(instances),
            Cell::Text(call.operation.0),
            text(call.file),
            line(call.line),
            text(call.function),
            text(call.callpath),
        ]);
        if let Some(late) = late {
            of_late.copy_from_slice(&[
                Cell::Number(late.rank),
                Cell::Text(late.call.operation.0),
                text(late.call.file),
                line(late.call.line),
                text(late.call.function),
                Cell::Ns(late.computation),
                Cell::Ns(late.waiting),
                Cell::Ns(late.io),
            ]);
        }
        cells
    }
}

/// Settings of the file; they depend only on the rows and the run.
fn properties(run: &Run) -> WriterProperties {
    let hex = |bytes: [u8; 16]| -> String {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    };
    let metadata = [
        ("laggard.schema", SCHEMA.to_owned()),
        ("laggard.run_id", hex(run.run_id)),
        ("laggard.program", run.program.to_owned()),
        ("laggard.arguments", run.arguments.join(" ")),
        ("laggard.ranks", run.ranks.to_string()),
        ("laggard.all", run.all.to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let ascending = |column_idx| SortingColumn {
        column_idx,
        descending: false,
        nulls_first: false,
    };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("laggard {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.to_vec()))
        .set_sorting_columns(Some(vec![ascending(0), ascending(1)]))
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    // Times hardly repeat, so a dictionary is useless.
    for column in COLUMNS.iter().filter(|column| column.kind == Kind::Seconds) {
        let path = ColumnPath::from(column.name);
        properties = properties.set_column_dictionary_enabled(path, false);
    }
    properties.build()
}

#[cfg(test)]
mod tests {
    use parquet::errors::ParquetError;

    use super::*;

    #[test]
    fn errors_of_the_system_keep_their_words() {
        let full = std::io::Error::from_raw_os_error(28);
        let error = Error::encode(Path::new("t"), ParquetError::External(Box::new(full)));
        assert!(error.to_string().starts_with("cannot write t: No space"));
    }
}
