//! What a call takes in a trace.

use std::path::Path;

use anyhow::Result;

use crate::micro::{Bench, Variant, programs};
use crate::runs::Outcome;
use crate::table::Table;

/// Measures the traces of all programs.
///
/// # Errors
/// See [`Bench::new`] and [`Bench::run`].
pub fn measure(directory: &Path, outcome: &mut Outcome) -> Result<()> {
    let bench = Bench::new(directory)?;
    let variants = &bench.variants(&[16])[1..];
    let names: Vec<String> = variants.iter().map(|variant| variant.name()).collect();
    let mut head = vec!["program", "calls"];
    head.extend(names.iter().map(String::as_str));
    let mut table = Table::new("bytes per call in the trace", &head);
    for program in programs() {
        let mut row = vec![program.name.to_owned()];
        for &variant in program.of_use(variants) {
            let sample = bench.run(program, variant, program.steps)?;
            let bytes = sample.trace_bytes as f64 / sample.calls;
            if variant != Variant::EzTrace {
                row.push(format!("{}", sample.calls));
            }
            row.push(format!("{bytes:.2}"));
            let name = format!("{} {}, bytes/call", program.name, variant.name());
            outcome.raw.push((name, vec![bytes]));
        }
        table.row(row);
    }
    outcome.table(table);
    Ok(())
}
