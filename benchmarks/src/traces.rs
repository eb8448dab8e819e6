//! Generated traces that measurements share.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use crate::process;
use laggard_generator::{self as generator, Length, Program, Settings};

/// Most bytes per call of a trace.
const BYTES_PER_CALL: u64 = 13;

/// Which traces are measured, and how often.
#[derive(Clone, Debug, Args)]
pub struct Series {
    /// Ranks of the traces
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub ranks: u32,
    /// What the ranks did
    #[arg(long, value_enum, default_value_t = Program::Stencil)]
    pub program: Program,
    /// Rounds of everything
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Leave new traces there, to be used again
    #[arg(long)]
    pub keep: bool,
}

impl Default for Series {
    fn default() -> Series {
        Series {
            ranks: 4,
            program: Program::Stencil,
            rounds: 3,
            keep: false,
        }
    }
}

impl Series {
    /// The trace's name in tables.
    pub fn title(&self, millions: u64) -> String {
        let (program, ranks) = (self.program.name(), self.ranks);
        format!("{millions} million calls, {program} on {ranks} ranks")
    }
}

/// A trace.
#[derive(Debug)]
pub struct Trace {
    /// Its directory.
    pub path: PathBuf,
    /// Size of its locations.
    pub bytes: u64,
    is_new: bool,
}

impl Trace {
    /// The trace of `millions` of calls in `directory`, an existing one or a new one.
    ///
    /// # Errors
    /// There is no room for it, or the file system failed.
    pub fn get(directory: &Path, series: &Series, millions: u64) -> Result<Trace> {
        let (program, ranks) = (series.program, series.ranks);
        let name = format!("{}-{ranks}-{millions}m", program.name());
        let path = directory.join(&name);
        if path.is_dir() {
            return Trace::of(path, false);
        }
        let calls = millions * 1_000_000;
        let (needed, free) = (calls * BYTES_PER_CALL, process::free_bytes(directory)?);
        if needed + needed / 4 > free {
            let place = directory.display();
            bail!(
                "{millions} million calls need {} MB in {place}",
                needed / 1_000_000
            );
        }
        let settings = Settings {
            faults: program.usual_faults(ranks),
            // Nobody reads them, and the disk is needed for the calls.
            expectations: false,
            ..Settings::new(program, ranks, Length::Calls(calls))
        };
        // Under another name until it is complete.
        let part = directory.join(format!("{name}.part"));
        if part.is_dir() {
            fs::remove_dir_all(&part)?;
        }
        generator::generate(&settings, &part)?;
        // The disk must not be busy with it during a measurement.
        for entry in fs::read_dir(&part)? {
            fs::File::open(entry?.path())?.sync_all()?;
        }
        fs::rename(&part, &path)?;
        Trace::of(path, true)
    }

    fn of(path: PathBuf, is_new: bool) -> Result<Trace> {
        let mut bytes = 0;
        for entry in fs::read_dir(&path)? {
            let file = entry?.path();
            if file.extension().is_some_and(|extension| extension == "lgt") {
                bytes += file.metadata()?.len();
            }
        }
        Ok(Trace {
            path,
            bytes,
            is_new,
        })
    }

    /// Removes the trace if it is new and `keep` is false.
    ///
    /// # Errors
    /// What the file system says.
    pub fn done(self, keep: bool) -> Result<()> {
        if self.is_new && !keep {
            fs::remove_dir_all(&self.path)?;
        }
        Ok(())
    }
}
