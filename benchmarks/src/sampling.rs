//! What samples cost real programs: each recorded, and recorded and sampled, in turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, Usage};
use crate::runs::Outcome;
use crate::table::Table;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds of both.
    pub rounds: usize,
    /// Samples per second on the processor.
    pub hz: u32,
    /// Directory of the files.
    pub directory: PathBuf,
}

/// A program, as it is started.
struct Program {
    name: String,
    ranks: usize,
    words: Vec<String>,
}

/// Size of hpcc's problem; steps of LAMMPS and of the grid: some seconds each.
const HPCC: u32 = 1200;
const LAMMPS: u32 = 3000;
const GRID: u32 = 1000;

/// Measures hpcc and LAMMPS, if they are installed, with a rank for each core, and a grid with a thread for each.
///
/// # Errors
/// A program or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    fs::create_dir_all(&options.directory)?;
    process::with_analyzer(&options.directory, |analyzer| {
        let directory = analyzer.parent().context("a directory")?;
        let mut table = Table::new(
            &format!(
                "Recorded, and with {} samples per second: medians, and of the ratios in pairs",
                options.hz
            ),
            &[
                "",
                "wall, s",
                "sampled",
                "ratio",
                "processor, s",
                "sampled",
                "ratio",
            ],
        );
        for program in programs(directory)? {
            // The first run reads files for the first time.
            run(&program, directory, 0)?;
            let mut pairs = Vec::new();
            for _ in 0..options.rounds {
                let alone = run(&program, directory, 0)?;
                pairs.push((alone, run(&program, directory, options.hz)?));
            }
            let row = outcome.pairs(&program.name, "sampled", &pairs);
            table.row(row);
        }
        outcome.table(table);
        Ok(())
    })
}

/// The programs that are there, with their inputs in the directory.
fn programs(directory: &Path) -> Result<Vec<Program>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inputs = here.join("../tests/programs/real");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let mut all = Vec::new();
    if process::is_installed("hpcc") {
        let text = fs::read_to_string(inputs.join("hpccinf.txt"))?;
        let text = text.replace("200          Ns", &format!("{HPCC} Ns"));
        let text = text.replace("@P", "1").replace("@Q", &cores.to_string());
        fs::write(directory.join("hpccinf.txt"), text)?;
        all.push(Program {
            name: format!("hpcc, {cores} ranks"),
            ranks: cores,
            words: words("hpcc"),
        });
    }
    if process::is_installed("lmp") {
        let text = fs::read_to_string(inputs.join("melt.in"))?;
        let (before, _) = text.rsplit_once("run").context("no run in melt.in")?;
        fs::write(directory.join("melt.in"), format!("{before}run {LAMMPS}\n"))?;
        all.push(Program {
            name: format!("LAMMPS, {cores} ranks"),
            ranks: cores,
            words: words("lmp -in melt.in -log none"),
        });
    }
    let mut compiler = Command::new("mpicc");
    compiler.args(["-O2", "-fopenmp", "-o"]);
    compiler.arg(directory.join("grid"));
    process::run(compiler.arg(here.join("programs/grid.c")))?;
    all.push(Program {
        name: format!("grid, 1 rank, {cores} threads"),
        ranks: 1,
        words: words(&format!("./grid {GRID}")),
    });
    Ok(all)
}

/// Runs a program with the collector; the usage is of the launcher and the ranks. Without samples if there are to be 0.
fn run(program: &Program, directory: &Path, hz: u32) -> Result<Usage> {
    let trace = directory.join("trace");
    process::remove(&trace)?;
    let mut command = process::mpirun(program.ranks);
    command.env("LAGGARD_TRACE_DIR", &trace);
    if hz > 0 {
        command.env("LAGGARD_SAMPLE_HZ", hz.to_string());
    }
    let collector = directory.join("liblaggard.so");
    command.args(["env", &format!("LD_PRELOAD={}", collector.display())]);
    command.args(&program.words).current_dir(directory);
    process::run(&mut command)
}
