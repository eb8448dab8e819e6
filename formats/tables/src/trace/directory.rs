//! The directory of tables. Any thread encodes rows; one thread writes the bytes.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriter, compute_leaves,
};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;

use super::SCHEMA;
use super::cell::{Dictionaries, Row};
use crate::Error;

/// Rows of a row group; limits the memory for a table to about 7 MB.
pub const ROWS: usize = 1 << 16;

/// The file format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// Arrow IPC, the file format (Feather 2).
    Arrow,
}

impl Format {
    /// Extension of files.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }
}

/// A directory of tables being written, under a temporary name until it is complete.
#[derive(Debug)]
pub struct Tables {
    format: Format,
    metadata: Vec<(String, String)>,
    texts: Dictionaries,
    /// Requested path.
    path: PathBuf,
    /// Temporary path; `None` once the directory has its final name.
    part: Option<PathBuf>,
}

impl Tables {
    /// Begins a directory that does not exist yet. `metadata` goes into every file, with names
    /// below `laggard.`; `texts` are the dictionaries of all key columns.
    ///
    /// # Errors
    /// The name is taken, or the directory cannot be made.
    pub fn create(
        path: &Path,
        format: Format,
        metadata: &[(&str, String)],
        texts: Dictionaries,
    ) -> Result<Tables, Error> {
        if laggard_files::exists(path) {
            return Err(Error::Exists {
                path: path.to_owned(),
            });
        }
        let failed = |source| Error::write(path, source);
        let name = path.file_name();
        let name = name.ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
        let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
        let part = path.with_file_name(name);
        fs::create_dir(&part).map_err(failed)?;
        let named = metadata
            .iter()
            .map(|(name, value)| (format!("laggard.{name}"), value.clone()));
        let schema = ("laggard.schema".to_owned(), SCHEMA.to_owned());
        Ok(Tables {
            format,
            metadata: std::iter::once(schema).chain(named).collect(),
            texts,
            path: path.to_owned(),
            part: Some(part),
        })
    }

    /// Begins a table.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn table<R: Row>(&self) -> Result<Table, Error> {
        let name = format!("{}.{}", R::TABLE, self.format.extension());
        let part = self.part.as_deref().unwrap_or(&self.path).join(&name);
        let path = self.path.join(name);
        let columns = R::columns().into_iter();
        let fields =
            columns.map(|(name, data_type, optional)| Field::new(name, data_type, optional));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let schema = Arc::new(schema.with_metadata(self.metadata.iter().cloned().collect()));
        #[expect(
            clippy::disallowed_methods,
            reason = "in a directory that was just made"
        )]
        let file = File::create_new(&part).map_err(|source| Error::write(&path, source))?;
        let sink = Sink::new(self, BufWriter::new(file), &schema);
        Ok(Table {
            sink: sink.map_err(|source| Error::encode(&path, source))?,
            schema,
            texts: self.texts.clone(),
            path,
            rows: 0,
        })
    }

    /// Gives the complete directory its final name.
    ///
    /// # Errors
    /// Another process was faster, or the system refuses.
    pub fn finish(mut self) -> Result<(), Error> {
        if let Some(part) = self.part.take()
            && let Err(source) = fs::rename(&part, &self.path)
        {
            self.part = Some(part);
            return Err(Error::write(&self.path, source));
        }
        Ok(())
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Best effort: only the error already reported matters.
            let _ = fs::remove_dir_all(part);
        }
    }
}

enum Sink {
    Parquet(
        Box<SerializedFileWriter<BufWriter<File>>>,
        Arc<ArrowRowGroupWriterFactory>,
    ),
    Arrow(Box<FileWriter<BufWriter<File>>>),
}

impl Sink {
    fn new(
        tables: &Tables,
        file: BufWriter<File>,
        schema: &SchemaRef,
    ) -> Result<Sink, ParquetError> {
        if tables.format == Format::Arrow {
            return Ok(Sink::Arrow(Box::new(FileWriter::try_new(file, schema)?)));
        }
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties(schema)))?;
        let (writer, factory) = writer.into_serialized_writer()?;
        Ok(Sink::Parquet(Box::new(writer), Arc::new(factory)))
    }
}

/// Settings of a Parquet file's columns.
fn properties(schema: &Schema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("laggard {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        let column = ColumnPath::from(field.name().as_str());
        if matches!(field.data_type(), DataType::Dictionary(..)) {
            // Nobody searches for a range of texts, and comparing them all is slow.
            properties = properties.set_column_statistics_enabled(column, EnabledStatistics::None);
        } else if field.data_type().is_integer() && !field.name().starts_with("bytes") {
            // Each value is close or equal to the one before.
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// A table being written.
pub struct Table {
    sink: Sink,
    schema: SchemaRef,
    texts: Dictionaries,
    path: PathBuf,
    rows: u64,
}

/// A row group, ready to write.
pub struct Encoded {
    parts: Parts,
    rows: usize,
}

enum Parts {
    Parquet(Vec<ArrowColumnChunk>),
    Arrow(RecordBatch),
}

/// Encodes rows of a table, on any thread.
pub struct Encoder {
    factory: Option<Arc<ArrowRowGroupWriterFactory>>,
    schema: SchemaRef,
    texts: Dictionaries,
    path: PathBuf,
}

impl Table {
    /// The encoder of its rows.
    pub fn encoder(&self) -> Encoder {
        Encoder {
            factory: match &self.sink {
                Sink::Parquet(_, factory) => Some(factory.clone()),
                Sink::Arrow(_) => None,
            },
            schema: self.schema.clone(),
            texts: self.texts.clone(),
            path: self.path.clone(),
        }
    }

    /// Writes a row group.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, encoded: Encoded) -> Result<(), Error> {
        self.rows += encoded.rows as u64;
        let written = match (&mut self.sink, encoded.parts) {
            (Sink::Parquet(file, _), Parts::Parquet(columns)) => {
                file.next_row_group().and_then(|mut group| {
                    for column in columns {
                        column.append_to_row_group(&mut group)?;
                    }
                    group.close().map(|_| ())
                })
            }
            (Sink::Arrow(file), Parts::Arrow(batch)) => file.write(&batch).map_err(in_parquet),
            _ => Err(ParquetError::General("rows of another format".into())),
        };
        written.map_err(|source| Error::encode(&self.path, source))
    }

    /// Number of rows written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Completes the file; returns its number of rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<u64, Error> {
        let buffer = match self.sink {
            Sink::Parquet(file, _) => file.into_inner(),
            // `into_inner` completes the file first.
            Sink::Arrow(file) => file.into_inner().map_err(in_parquet),
        };
        let buffer = buffer.map_err(|source| Error::encode(&self.path, source))?;
        let file = buffer
            .into_inner()
            .map_err(|error| Error::write(&self.path, error.into_error()))?;
        file.sync_data()
            .map_err(|source| Error::write(&self.path, source))?;
        Ok(self.rows)
    }
}

impl Encoder {
    /// Encodes the rows collected in `rows` and clears them; `None` if there are none.
    ///
    /// # Errors
    /// The encoder refuses.
    pub fn encode<R: Row>(&self, rows: &mut Rows<R>) -> Result<Option<Encoded>, Error> {
        let count = std::mem::take(&mut rows.count);
        if count == 0 {
            return Ok(None);
        }
        let parts = self.parts::<R>(&mut rows.columns);
        let parts = parts.map_err(|source| Error::encode(&self.path, source))?;
        Ok(Some(Encoded { parts, rows: count }))
    }

    fn parts<R: Row>(&self, columns: &mut R::Columns) -> Result<Parts, ParquetError> {
        let arrays = R::finish(columns, &self.texts);
        let Some(factory) = &self.factory else {
            let batch = RecordBatch::try_new(self.schema.clone(), arrays)?;
            return Ok(Parts::Arrow(batch));
        };
        // No column is nested, so each has one writer.
        let writers = factory.create_column_writers(0)?;
        let fields = self.schema.fields().par_iter();
        let columns = writers.into_par_iter().zip(arrays).zip(fields);
        let encoded = columns.map(|((mut writer, array), field)| {
            for leaf in compute_leaves(field, &array)? {
                writer.write(&leaf)?;
            }
            writer.close()
        });
        Ok(Parts::Parquet(encoded.collect::<Result<_, _>>()?))
    }
}

/// Rows of a table, not encoded yet.
pub struct Rows<R: Row> {
    columns: R::Columns,
    count: usize,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Rows {
            columns: R::Columns::default(),
            count: 0,
        }
    }
}

impl<R: Row> Rows<R> {
    /// Adds a row.
    pub fn push(&mut self, row: R) {
        row.append(&mut self.columns);
        self.count += 1;
    }

    /// Whether there are enough rows for a row group.
    pub fn is_full(&self) -> bool {
        self.count >= ROWS
    }

    /// Writes the rows if there are enough, or at the `end`.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn flush(&mut self, table: &mut Table, end: bool) -> Result<(), Error> {
        if !end && !self.is_full() {
            return Ok(());
        }
        match table.encoder().encode(self)? {
            Some(encoded) => table.write(encoded),
            None => Ok(()),
        }
    }
}

fn in_parquet(error: ArrowError) -> ParquetError {
    match error {
        ArrowError::IoError(_, source) => ParquetError::External(Box::new(source)),
        error => ParquetError::from(error),
    }
}
