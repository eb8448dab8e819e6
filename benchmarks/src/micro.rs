//! Small MPI programs that time a loop of calls, and ways to run them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A program of `programs/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file without extension.
    pub name: &'static str,
    /// Ranks that it runs on.
    pub ranks: usize,
    /// Steps that take some tenths of a second.
    pub steps: u64,
    /// What it calls.
    pub calls: Calls,
}

/// What a program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// MPI alone.
    Mpi,
    /// OpenSHMEM, too. Not every tracer knows it.
    Shmem,
    /// An OpenMP runtime that does nothing (`programs/runtime.c`), and mutexes.
    Threads,
    /// An OpenMP runtime with a tools interface: LLVM's.
    OpenMp,
}

impl Program {
    const fn new(name: &'static str, ranks: usize, steps: u64) -> Program {
        Program {
            name,
            ranks,
            steps,
            calls: Calls::Mpi,
        }
    }

    const fn shmem(name: &'static str, steps: u64) -> Program {
        Program {
            calls: Calls::Shmem,
            ..Program::new(name, 1, steps)
        }
    }

    const fn threads(name: &'static str, steps: u64) -> Program {
        Program {
            calls: Calls::Threads,
            ..Program::new(name, 1, steps)
        }
    }

    const fn open_mp(name: &'static str, steps: u64) -> Program {
        Program {
            calls: Calls::OpenMp,
            ..Program::new(name, 1, steps)
        }
    }

    /// The variants that see its calls.
    pub fn of_use<'v>(&self, variants: &'v [Variant]) -> &'v [Variant] {
        match (variants, self.calls) {
            ([rest @ .., Variant::EzTrace], Calls::Shmem | Calls::Threads) => rest,
            (all, _) => all,
        }
    }
}

/// A program that computes most of the time.
pub const COMPUTE: Program = Program::new("compute", 1, 1_000);

/// Programs that make calls; calls are timed with the first fourteen.
pub const PROGRAMS: [Program; 16] = [
    Program::new("send_null", 1, 2_000_000),
    Program::new("iprobe", 1, 1_000_000),
    Program::new("self", 1, 200_000),
    Program::new("exchange", 2, 100_000),
    Program::new("pingpong", 2, 100_000),
    // A step is two thousand rows.
    Program::new("wavefront", 2, 150),
    Program::shmem("shmem_put", 2_000_000),
    Program::shmem("shmem_get", 2_000_000),
    Program::shmem("shmem_atomic", 1_000_000),
    Program::threads("region", 1_000_000),
    Program::threads("barrier", 100_000),
    Program::threads("mutex", 5_000_000),
    Program::open_mp("omp_barrier", 100_000),
    Program::open_mp("omp_team", 20_000),
    Program::new("halo", 2, 50_000),
    Program::new("allreduce", 2, 50_000),
];

/// The programs that can be built: the MPI library may lack OpenSHMEM, and there may be no Clang.
pub fn programs() -> impl Iterator<Item = Program> {
    let (has_shmem, has_clang) = (
        process::is_installed("oshrun"),
        process::is_installed("clang"),
    );
    let can_be = move |program: &Program| match program.calls {
        Calls::Shmem => has_shmem,
        Calls::OpenMp => has_clang,
        Calls::Mpi | Calls::Threads => true,
    };
    PROGRAMS.into_iter().filter(can_be)
}

/// The tracer that watches the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Nothing.
    Bare,
    /// The collector with call paths of this many frames.
    Collector(u32),
    /// The collector with these settings: its name, and variables with their values.
    With(&'static str, &'static [(&'static str, &'static str)]),
    /// The collector, which finds something else in place of the block that `laggard steer` writes.
    NotSteered,
    /// EZTrace.
    EzTrace,
}

impl Variant {
    /// Name in a table's head.
    pub fn name(self) -> String {
        match self {
            Variant::Bare => "bare".to_owned(),
            Variant::Collector(depth) => format!("depth {depth}"),
            Variant::With(name, _) => name.to_owned(),
            Variant::NotSteered => "not to be steered".to_owned(),
            Variant::EzTrace => "eztrace".to_owned(),
        }
    }
}

/// Results of one run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Calls of all ranks from Init to Finalize.
    pub calls: f64,
    /// Processor time per call of the loop, ns.
    pub cpu_ns: f64,
    /// Wall time per call of the loop, ns.
    pub wall_ns: f64,
    /// Wall time per call of the median part of the loop, ns.
    pub batch_ns: f64,
    /// Bytes of the trace.
    pub trace_bytes: u64,
}

/// Name of the OpenMP runtime that does nothing: the collector looks for such a library.
const RUNTIME: &str = "gomp_nothing";

/// A directory with the compiled programs and a copy of the collector, so that a build meanwhile
/// does not change the measurement. Removed when dropped.
pub struct Bench {
    directory: PathBuf,
    collector: PathBuf,
}

impl Bench {
    /// Compiles the programs into a new directory within `parent`.
    ///
    /// # Errors
    /// There is no compiler or no collector, or the file system failed.
    pub fn new(parent: &Path) -> Result<Bench> {
        let directory = parent.join(format!("micro.{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let collector = directory.join("liblaggard.so");
        let bench = Bench {
            directory,
            collector,
        };
        fs::copy(
            process::built("liblaggard.so", "LAGGARD_LIB")?,
            &bench.collector,
        )?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let mut runtime = Command::new("mpicc");
        runtime.args(["-O2", "-shared", "-fPIC", "-o"]);
        runtime.arg(bench.directory.join(format!("lib{RUNTIME}.so")));
        process::run(runtime.arg(sources.join("runtime.c")))?;
        for program in programs().chain([COMPUTE]) {
            let mut compiler = Command::new("mpicc");
            compiler
                .args(["-O2", "-g", "-o"])
                .arg(bench.directory.join(program.name));
            compiler.arg(sources.join(program.name).with_extension("c"));
            match program.calls {
                Calls::Mpi => {}
                Calls::Shmem => {
                    compiler.arg("-loshmem");
                }
                Calls::OpenMp => {
                    compiler.env("OMPI_CC", "clang").env("MPICH_CC", "clang");
                    compiler.arg("-fopenmp");
                }
                Calls::Threads => {
                    let here = bench.directory.display();
                    compiler
                        .arg(format!("-L{here}"))
                        .arg(format!("-l{RUNTIME}"));
                    compiler.arg(format!("-Wl,-rpath,{here}"));
                }
            }
            process::run(&mut compiler)?;
        }
        Ok(bench)
    }

    /// The variants that can run here. Prints which are left out.
    pub fn variants(&self, depths: &[u32]) -> Vec<Variant> {
        let mut variants = vec![Variant::Bare];
        variants.extend(depths.iter().map(|&depth| Variant::Collector(depth)));
        if process::is_installed("eztrace") {
            variants.push(Variant::EzTrace);
        } else {
            println!("EZTrace is not installed (Debian: eztrace): left out");
        }
        variants
    }

    /// Runs a program once.
    ///
    /// # Errors
    /// It failed, or wrote no trace where it should.
    pub fn run(&self, program: Program, variant: Variant, steps: u64) -> Result<Sample> {
        let trace = self.directory.join("trace");
        let mut command = process::mpirun(program.ranks);
        // Who waits for others keeps its core: to wake up takes longer than all that is measured.
        command.env("OMP_WAIT_POLICY", "active");
        match variant {
            Variant::Bare => {}
            Variant::Collector(_) | Variant::With(..) | Variant::NotSteered => {
                if variant == Variant::NotSteered {
                    fs::create_dir_all(trace.join("control"))?;
                }
                let set = |name: &str, value: &OsStr| {
                    let mut variable = std::ffi::OsString::from(name);
                    variable.push("=");
                    variable.push(value);
                    variable
                };
                command
                    .arg("env")
                    .arg(set("LD_PRELOAD", self.collector.as_os_str()));
                command.arg(set("LAGGARD_TRACE_DIR", trace.as_os_str()));
                if let Variant::Collector(depth) = variant {
                    command.arg(set("LAGGARD_CALLPATH_DEPTH", depth.to_string().as_ref()));
                }
                if let Variant::With(_, settings) = variant {
                    for (name, value) in settings {
                        command.arg(set(name, value.as_ref()));
                    }
                }
            }
            Variant::EzTrace => {
                let mut modules = String::from(match process::is_open_mpi() {
                    true => "openmpi",
                    false => "mpich",
                });
                if program.calls == Calls::OpenMp {
                    modules += " ompt";
                }
                command.args(["eztrace", "-t", &modules, "-o"]).arg(&trace);
            }
        }
        command
            .arg(self.directory.join(program.name))
            .arg(steps.to_string());
        let (_, output) = process::run_with_output(&mut command)?;
        let trace_bytes = process::bytes_below(&trace)?;
        process::remove(&trace)?;
        if (variant == Variant::Bare) != (trace_bytes == 0) {
            bail!(
                "{} as {}: a trace of {trace_bytes} bytes",
                program.name,
                variant.name()
            );
        }
        // EZTrace prints lines of its own.
        let numbers = output.lines().find_map(|line| {
            let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
            <[f64; 4]>::try_from(numbers.ok()?).ok()
        });
        let [calls, cpu_ns, wall_ns, batch_ns] =
            numbers.with_context(|| format!("no times in {output:?}"))?;
        Ok(Sample {
            calls,
            cpu_ns,
            wall_ns,
            batch_ns,
            trace_bytes,
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Best effort: it lies among temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
