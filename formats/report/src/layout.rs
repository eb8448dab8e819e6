//! How texts for people are set, for all that is printed beside reports: numbers, tables,
//! paragraphs. Between a number and its unit these functions put [`GLUE`], which [`wrap`] turns
//! into a space.

pub use crate::text::finding::{cause, labelled, place};
pub use crate::text::style::{
    GLUE, Style, Tone, base_name, count, duration, percent, size, three_digits, tone_of_percent,
    width, wrap,
};
pub use crate::text::table::{Column, Row, table};
pub use crate::text::{columns, paragraph, plural};
