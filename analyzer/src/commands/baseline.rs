//! `laggard baseline`: what operations take on this machine, measured, merged or shown.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use laggard_baselines::{MeasureOptions, Measured, Table};
use laggard_files::Place;

use super::{is_head, preload, run, screen};
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
    if !laggard_comm::launched_by_mpi() {
        bail!("what messages cost takes two ranks or more: mpirun -n 4 laggard baseline");
    }
    let (family, mpi) = laggard_comm::library::load()?;
    preload::with_collector(&run::library(&[family])?)?;
    let wanted = serde_json::to_vec(&wanted(options))?;
    let mut bar = super::progress::Bar::new(!options.quiet);
    let measured = mpi.measure(&wanted, &mut |share, what| bar.show(share, what))?;
    drop(bar);
    if measured.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let measured: Measured = serde_json::from_slice(&measured)?;
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
        let mut out = screen::output();
        writeln!(
            out,
            "{}: {} calls, {entries} entries, of {}",
            output.display(),
            calls.count(),
            table.description
        )?;
        if measured.left_out > 0 {
            writeln!(
                out,
                "time was up before {} of {} measurements, those of the largest messages: give it more with --time",
                measured.left_out, measured.cells
            )?;
        }
        for note in &table.notes {
            writeln!(out, "{note}")?;
        }
        writeln!(
            out,
            "next: laggard analyze --baseline {} DIR",
            output.display()
        )?;
        out.flush()?;
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
        let (file, entries) = (output.display(), merged.entries.len());
        screen::print(&format!("{file}: {entries} entries\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes sure that a table can be written here, and nothing else is overwritten.
fn check_target(output: &Path) -> Result<()> {
    let refused = || format!("{}: no table can be written there", output.display());
    let place = laggard_files::check(output).with_context(refused)?;
    if place == Place::File && Table::read(output).is_err() {
        bail!(
            "{}: there is a file that is no baseline table; name another one with -o",
            output.display()
        );
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
