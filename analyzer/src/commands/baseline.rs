//! `laggard baseline`: what operations take on this machine, measured, merged or shown.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use laggard::measure::{self, MeasureOptions};
use laggard_baselines::Table;

use super::{is_head, run};
use crate::cli::Baseline;

/// Where the table goes if nobody says.
const DEFAULT_FILE: &str = "baseline.json";
/// Seconds; quickly.
const TIME_S: (f64, f64) = (60.0, 10.0);
/// Largest message; quickly.
const MAX_BYTES: (u64, u64) = (4 << 20, 256 << 10);
/// Measures, merges or shows a table.
pub fn baseline(options: &Baseline) -> Result<ExitCode> {
    if let Some(file) = &options.show {
        let table = Table::read(file)?;
        return super::baseline_show::show(options, &table);
    }
    let output = options.output.clone();
    let output = output.unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    // By all ranks: if only the first ended here, launchers of MPICH would let the others wait for
    // it in MPI_Init.
    check_target(&output)?;
    if let Some(file) = &options.parquet {
        laggard_tables::baseline::check_target(file)?;
    }
    if !options.merge.is_empty() {
        return match is_head() {
            true => merge(options, &output),
            false => Ok(ExitCode::SUCCESS),
        };
    }
    measure::start(&run::library()?)?;
    let wanted = wanted(options);
    let mut bar = super::progress::Bar::new(!options.quiet);
    let measured = measure::measure(&wanted, &mut |share, what| bar.show(share, what))?;
    drop(bar);
    let Some(measured) = measured else {
        return Ok(ExitCode::SUCCESS);
    };
    let table = measured.table;
    if table.entries.is_empty() {
        match table.notes.first() {
            Some(why) => bail!("nothing was measured: {why}"),
            None => bail!("nothing was measured in that time: give it more with --time"),
        }
    }
    write(options, &table, &output)?;
    if !options.quiet {
        let calls = table.entries.chunk_by(|a, b| a.operation == b.operation);
        let entries = table.entries.len();
        println!(
            "{}: {} calls, {entries} entries, of {}",
            output.display(),
            calls.count(),
            table.description
        );
        if measured.left_out > 0 {
            println!(
                "time was up before {} of {} measurements, those of the largest messages: give it more with --time",
                measured.left_out, measured.cells
            );
        }
        table.notes.iter().for_each(|note| println!("{note}"));
        println!("next: laggard analyze --baseline {} DIR", output.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn wanted(options: &Baseline) -> MeasureOptions {
    let pick = |quickly: bool| match quickly {
        true => (TIME_S.1, MAX_BYTES.1),
        false => (TIME_S.0, MAX_BYTES.0),
    };
    let (time, most) = pick(options.quick);
    let mut sizes = options.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let largest = options.sizes.iter().copied().max();
    MeasureOptions {
        time: Duration::from_secs_f64(options.time.unwrap_or(time)),
        max_bytes: options.max_bytes.or(largest).unwrap_or(most),
        sizes,
        quick: options.quick,
        only: options.only.clone(),
        shmem: options.shmem,
    }
}

fn merge(options: &Baseline, output: &Path) -> Result<ExitCode> {
    let tables = options.merge.iter();
    let tables = tables.map(|file| Ok((file.clone(), Table::read(file)?)));
    let merged = Table::merge(tables.collect::<Result<_>>()?)?;
    write(options, &merged, output)?;
    if !options.quiet {
        println!("{}: {} entries", output.display(), merged.entries.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes sure that a table can be written here, and nothing else is overwritten.
fn check_target(output: &Path) -> Result<()> {
    if output.is_dir() {
        bail!("{}: is a directory; name a file with -o", output.display());
    }
    let is_empty = std::fs::metadata(output).is_ok_and(|file| file.len() == 0);
    if output.exists() && !is_empty && Table::read(output).is_err() {
        bail!(
            "{}: there is a file that is no baseline table; name another one with -o",
            output.display()
        );
    }
    let parent = output
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if !parent.is_dir() {
        bail!("{}: there is no such directory", parent.display());
    }
    Ok(())
}

fn write(options: &Baseline, table: &Table, output: &Path) -> Result<()> {
    table.write(output)?;
    match &options.parquet {
        Some(file) => super::baseline_show::parquet(table, file),
        None => Ok(()),
    }
}
