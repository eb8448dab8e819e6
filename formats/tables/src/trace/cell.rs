//! Types of columns, and tables declared as lists of columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;

/// A text, as its position in the column's dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u32);

/// The dictionaries of the [`Key`] columns, by column name. All row groups of a table share
/// them.
#[derive(Clone, Debug, Default)]
pub struct Dictionaries(HashMap<&'static str, ArrayRef>);

impl Dictionaries {
    /// Sets the dictionary of these columns.
    pub fn add<T: AsRef<str>>(
        &mut self,
        columns: &[&'static str],
        texts: impl IntoIterator<Item = T>,
    ) {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        self.0
            .extend(columns.iter().map(|&column| (column, texts.clone())));
    }

    pub(crate) fn of(&self, column: &str) -> ArrayRef {
        let empty = || Arc::new(StringArray::from_iter_values([""; 0])) as ArrayRef;
        self.0.get(column).cloned().unwrap_or_else(empty)
    }
}

/// A value of a column.
pub trait Cell {
    /// Collects the values of a row group.
    type Builder: Default;
    /// Whether a row may have no value.
    const OPTIONAL: bool;
    /// The type in the file.
    fn data_type() -> DataType;
    /// Adds a value.
    fn append(self, builder: &mut Self::Builder);
    /// The values, which the builder clears; `texts` is the dictionary of a key column.
    fn finish(builder: &mut Self::Builder, texts: impl FnOnce() -> ArrayRef) -> ArrayRef;
}

/// Takes the values and leaves an empty vector of the same capacity.
fn renew<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

macro_rules! primitive {
    ($($value:ty, $type:ty;)*) => {$(
        impl Cell for $value {
            type Builder = Vec<$value>;
            const OPTIONAL: bool = false;
            fn data_type() -> DataType {
                <$type>::DATA_TYPE
            }
            fn append(self, builder: &mut Self::Builder) {
                builder.push(self);
            }
            fn finish(builder: &mut Self::Builder, _: impl FnOnce() -> ArrayRef) -> ArrayRef {
                Arc::new(PrimitiveArray::<$type>::from(renew(builder)))
            }
        }
        impl Cell for Option<$value> {
            type Builder = PrimitiveBuilder<$type>;
            const OPTIONAL: bool = true;
            fn data_type() -> DataType {
                <$type>::DATA_TYPE
            }
            fn append(self, builder: &mut Self::Builder) {
                builder.append_option(self);
            }
            fn finish(builder: &mut Self::Builder, _: impl FnOnce() -> ArrayRef) -> ArrayRef {
                Arc::new(builder.finish())
            }
        }
    )*};
}

primitive! {
    u32, UInt32Type;
    i32, Int32Type;
    u64, UInt64Type;
    i64, Int64Type;
    f64, Float64Type;
}

impl Cell for bool {
    type Builder = BooleanBuilder;
    const OPTIONAL: bool = false;
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn append(self, builder: &mut Self::Builder) {
        builder.append_value(self);
    }
    fn finish(builder: &mut Self::Builder, _: impl FnOnce() -> ArrayRef) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Cell for String {
    type Builder = StringBuilder;
    const OPTIONAL: bool = false;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn append(self, builder: &mut Self::Builder) {
        builder.append_value(self);
    }
    fn finish(builder: &mut Self::Builder, _: impl FnOnce() -> ArrayRef) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Cell for Option<String> {
    type Builder = StringBuilder;
    const OPTIONAL: bool = true;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn append(self, builder: &mut Self::Builder) {
        builder.append_option(self);
    }
    fn finish(builder: &mut Self::Builder, _: impl FnOnce() -> ArrayRef) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

/// Dictionaries have signed keys, because pandas rejects unsigned ones.
fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn dictionary(keys: PrimitiveArray<Int32Type>, texts: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::new(keys, texts))
}

impl Cell for Key {
    type Builder = Vec<i32>;
    const OPTIONAL: bool = false;
    fn data_type() -> DataType {
        dictionary_type()
    }
    fn append(self, builder: &mut Self::Builder) {
        builder.push(self.0 as i32);
    }
    fn finish(builder: &mut Self::Builder, texts: impl FnOnce() -> ArrayRef) -> ArrayRef {
        dictionary(renew(builder).into(), texts())
    }
}

impl Cell for Option<Key> {
    type Builder = PrimitiveBuilder<Int32Type>;
    const OPTIONAL: bool = true;
    fn data_type() -> DataType {
        dictionary_type()
    }
    fn append(self, builder: &mut Self::Builder) {
        builder.append_option(self.map(|key| key.0 as i32));
    }
    fn finish(builder: &mut Self::Builder, texts: impl FnOnce() -> ArrayRef) -> ArrayRef {
        dictionary(builder.finish(), texts())
    }
}

/// A row type, which stands for a table.
pub trait Row: Sized {
    /// Name of the table.
    const TABLE: &'static str;
    /// Collects rows.
    type Columns: Default;
    /// The columns: name, type, whether a row may have no value.
    fn columns() -> Vec<(&'static str, DataType, bool)>;
    /// Adds a row.
    fn append(self, columns: &mut Self::Columns);
    /// The collected rows, which are cleared.
    fn finish(columns: &mut Self::Columns, texts: &Dictionaries) -> Vec<ArrayRef>;
}

/// Column name of a field: without the `_` that avoids a Rust keyword.
pub(crate) fn name_of(field: &'static str) -> &'static str {
    field.strip_suffix('_').unwrap_or(field)
}

macro_rules! tables {
    ($($(#[$doc:meta])* $row:ident / $columns:ident = $table:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $row { $($(#[$field_doc])* pub $field: $type,)* }

            #[doc = concat!("Rows of the table `", $table, "`, column by column.")]
            #[derive(Default)]
            pub struct $columns { $($field: <$type as Cell>::Builder,)* }

            impl Row for $row {
                const TABLE: &'static str = $table;
                type Columns = $columns;
                fn columns() -> Vec<(&'static str, DataType, bool)> {
                    vec![$((
                        name_of(stringify!($field)),
                        <$type as Cell>::data_type(),
                        <$type as Cell>::OPTIONAL,
                    ),)*]
                }
                fn append(self, columns: &mut $columns) {
                    $(self.$field.append(&mut columns.$field);)*
                }
                fn finish(columns: &mut $columns, texts: &Dictionaries) -> Vec<ArrayRef> {
                    vec![$(<$type as Cell>::finish(
                        &mut columns.$field,
                        || texts.of(name_of(stringify!($field))),
                    ),)*]
                }
            }
        )*

        /// Name and columns of every table.
        pub fn schemas() -> Vec<(&'static str, Vec<(&'static str, DataType, bool)>)> {
            vec![$(($table, <$row as Row>::columns()),)*]
        }
    };
}
pub(crate) use tables;
