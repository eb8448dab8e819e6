//! Collects rows column by column until they fill a row group.

use std::io::Write;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::schema::{COLUMNS, Kind};

/// Rows of a row group; limits memory to about 7 MB.
pub const ROWS: usize = 1 << 16;

/// Values of a column.
#[derive(Debug)]
enum Values {
    Number(Vec<i32>),
    Count(Vec<i64>),
    Seconds(Vec<f64>),
    /// Numbers of texts.
    Text(Vec<u32>),
}

/// A column of a group.
#[derive(Debug)]
struct Cells {
    values: Values,
    /// 1 = the row has a value; empty if every row has one.
    levels: Vec<i16>,
}

/// Rows not written yet.
#[derive(Debug)]
pub struct Group {
    columns: Vec<Cells>,
    rows: usize,
}

/// A value of one row.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    Number(u32),
    Count(u64),
    /// ns; seconds in the file.
    Ns(u64),
    /// Number of a text.
    Text(u32),
    Null,
}

impl Group {
    /// An empty group.
    pub fn new() -> Group {
        let columns = COLUMNS.iter().map(|column| Cells {
            values: match column.kind {
                Kind::Number => Values::Number(Vec::new()),
                Kind::Count => Values::Count(Vec::new()),
                Kind::Seconds => Values::Seconds(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
            },
            levels: Vec::new(),
        });
        Group {
            columns: columns.collect(),
            rows: 0,
        }
    }

    /// Adds a row; its cells are in the order of the columns.
    pub fn push(&mut self, row: &[Cell; COLUMNS.len()]) {
        for ((cell, column), cells) in row.iter().zip(COLUMNS).zip(&mut self.columns) {
            if column.optional {
                cells.levels.push(i16::from(!matches!(cell, Cell::Null)));
            }
            match (&mut cells.values, *cell) {
                // A cast of bits: Parquet's physical types are signed.
                (Values::Number(values), Cell::Number(value)) => values.push(value as i32),
                (Values::Count(values), Cell::Count(value)) => {
                    values.push(i64::try_from(value).unwrap_or(i64::MAX));
                }
                // Converted as in the report.
                (Values::Seconds(values), Cell::Ns(ns)) => values.push(ns as f64 / 1e9),
                (Values::Text(values), Cell::Text(text)) => values.push(text),
                (_, Cell::Null) if column.optional => {}
                (_, cell) => unreachable!("{cell:?} in column {}", column.name),
            }
        }
        self.rows += 1;
    }

    /// Whether the group must be written.
    pub fn is_full(&self) -> bool {
        self.rows >= ROWS
    }

    /// Writes the rows, if there are any, and empties the group.
    pub fn write<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
        texts: &[ByteArray],
    ) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        for cells in &mut self.columns {
            write_column(&mut group, cells, texts)?;
            cells.clear();
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Cells {
    fn clear(&mut self) {
        self.levels.clear();
        match &mut self.values {
            Values::Number(values) => values.clear(),
            Values::Count(values) => values.clear(),
            Values::Seconds(values) => values.clear(),
            Values::Text(values) => values.clear(),
        }
    }
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &Cells,
    texts: &[ByteArray],
) -> Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than planned".into()));
    };
    let levels = (!cells.levels.is_empty()).then_some(&cells.levels[..]);
    match (&cells.values, column.untyped()) {
        (Values::Number(values), ColumnWriter::Int32ColumnWriter(writer)) => {
            writer.write_batch(values, levels, None)?;
        }
        (Values::Count(values), ColumnWriter::Int64ColumnWriter(writer)) => {
            writer.write_batch(values, levels, None)?;
        }
        (Values::Seconds(values), ColumnWriter::DoubleColumnWriter(writer)) => {
            writer.write_batch(values, levels, None)?;
        }
        (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            // Cheap: the texts are shared.
            let values = values.iter().map(|&text| texts[text as usize].clone());
            writer.write_batch(&values.collect::<Vec<_>>(), levels, None)?;
        }
        _ => return Err(ParquetError::General("another type than planned".into())),
    }
    column.close()
}
