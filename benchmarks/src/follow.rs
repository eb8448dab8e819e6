//! What following a program costs it: LAMMPS recorded, and recorded and followed, in turns.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{self, Usage};
use crate::runs::Outcome;
use crate::table::Table;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rounds of both.
    pub rounds: usize,
    /// Time steps of the program.
    pub steps: u32,
    /// Directory of the files.
    pub directory: PathBuf,
}

/// Measures with the server on cores of its own, if there are two, and on those of the program.
///
/// # Errors
/// A program or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    if !process::is_installed("lmp") {
        bail!("LAMMPS (lmp) is not installed");
    }
    fs::create_dir_all(&options.directory)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    process::with_analyzer(&options.directory, |analyzer| {
        let directory = analyzer.parent().context("a directory")?;
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/real/melt.in");
        let text = fs::read_to_string(input)?;
        let (before, _) = text.rsplit_once("run").context("no run in melt.in")?;
        fs::write(
            directory.join("melt.in"),
            format!("{before}run {}\n", options.steps),
        )?;
        let mut table = Table::new(
            "LAMMPS, recorded and followed: medians, and of the ratios in pairs",
            &[
                "",
                "wall, s",
                "followed",
                "ratio",
                "processor, s",
                "followed",
                "ratio",
            ],
        );
        let mut rows = Vec::new();
        if cores > 1 {
            rows.push((cores - 1, true, "server on a core of its own"));
        }
        rows.push((cores, false, "server on the program's cores"));
        for (ranks, is_apart, name) in rows {
            let bench = Bench {
                analyzer,
                directory,
                ranks,
                is_apart,
            };
            // The first run reads files for the first time.
            bench.run(false)?;
            let mut pairs = Vec::new();
            for _ in 0..options.rounds {
                pairs.push((bench.run(false)?, bench.run(true)?));
            }
            let name = format!("{ranks} ranks, {name}");
            let row = outcome.pairs(&name, "followed", &pairs);
            table.row(row);
        }
        outcome.table(table);
        Ok(())
    })
}

struct Bench<'b> {
    analyzer: &'b Path,
    directory: &'b Path,
    ranks: usize,
    /// The server has the last core, the program the others.
    is_apart: bool,
}

/// A server, which ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Best effort: as Ctrl-C does.
        // SAFETY: sends a signal to a child that has not been waited for.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) };
        let _ = self.0.wait();
    }
}

impl Bench<'_> {
    /// Runs the program; the usage is of the launcher and the ranks.
    fn run(&self, is_followed: bool) -> Result<Usage> {
        let trace = self.directory.join("trace");
        process::remove(&trace)?;
        let _server = match is_followed {
            true => Some(self.follow(&trace)?),
            false => None,
        };
        let mut command = process::mpirun(self.ranks);
        if process::is_open_mpi() {
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
        }
        let collector = self.directory.join("liblaggard.so");
        command.env("LAGGARD_TRACE_DIR", &trace);
        command.args(["env", &format!("LD_PRELOAD={}", collector.display())]);
        command.args(["lmp", "-in", "melt.in", "-log", "none"]);
        command.current_dir(self.directory);
        self.pin(&mut command, 0..self.ranks);
        process::run(&mut command)
    }

    fn follow(&self, trace: &Path) -> Result<Server> {
        let mut command = Command::new(self.analyzer);
        command.arg("serve").arg(trace).args(["-q", "--follow"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.pin(&mut command, self.ranks..self.ranks + 1);
        Ok(Server(command.spawn()?))
    }

    /// Keeps a command on these cores, where both have cores of their own.
    fn pin(&self, command: &mut Command, cores: std::ops::Range<usize>) {
        if !self.is_apart {
            return;
        }
        // SAFETY: all zeros are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for core in cores {
            // SAFETY: a valid set, and a number below its size.
            unsafe { libc::CPU_SET(core, &mut set) };
        }
        // SAFETY: a plain system call between fork and exec. A refusal leaves it where it is.
        unsafe {
            command.pre_exec(move || {
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
                Ok(())
            });
        }
    }
}
