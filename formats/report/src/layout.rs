//! Layout of texts for users beside reports: numbers, tables, paragraphs. These functions put
//! [`GLUE`] between a number and its unit, and [`wrap`] turns it into a space.

pub use crate::style::{
    GLUE, Style, Tone, base_name, count, duration, percent, plural, size, three_digits,
    tone_of_percent, width, wrap,
};
pub use crate::text::finding::{cause, labelled, place};
pub use crate::text::table::{Column, Row, table};
pub use crate::text::{columns, paragraph};
