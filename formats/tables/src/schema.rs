//! The columns, in the order of the file. `PER_RANK.md` documents them.

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An unsigned number, 32 bit.
    Number,
    /// A number of instances, 64 bit.
    Count,
    /// Seconds.
    Seconds,
    /// Text.
    Text,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Whether a row may have no value.
    pub optional: bool,
}

const fn every(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        optional: false,
    }
}

const fn some(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        optional: true,
    }
}

/// All columns.
pub const COLUMNS: &[Column] = &[
    every("rank", Kind::Number),
    every("thread", Kind::Number),
    every("host", Kind::Text),
    every("kind", Kind::Text),
    every("metric", Kind::Text),
    every("time_s", Kind::Seconds),
    some("instances", Kind::Count),
    some("operation", Kind::Text),
    some("file", Kind::Text),
    some("line", Kind::Number),
    some("function", Kind::Text),
    some("callpath", Kind::Text),
    some("cause_rank", Kind::Number),
    some("cause_operation", Kind::Text),
    some("cause_file", Kind::Text),
    some("cause_line", Kind::Number),
    some("cause_function", Kind::Text),
    some("cause_computation_s", Kind::Seconds),
    some("cause_wait_s", Kind::Seconds),
    some("cause_io_s", Kind::Seconds),
];

/// The schema in Parquet's language.
pub fn message() -> String {
    let mut message = String::from("message per_rank {\n");
    for column in COLUMNS {
        let repetition = if column.optional {
            "OPTIONAL"
        } else {
            "REQUIRED"
        };
        let (physical, logical) = match column.kind {
            Kind::Number => ("INT32", " (INTEGER(32,false))"),
            Kind::Count => ("INT64", ""),
            Kind::Seconds => ("DOUBLE", ""),
            Kind::Text => ("BYTE_ARRAY", " (STRING)"),
        };
        message += &format!("  {repetition} {physical} {}{logical};\n", column.name);
    }
    message + "}\n"
}
