//! What the filters save: two agents analyse the same traces with and without them, both generated
//! traces and recorded ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use laggard_report::{Bottleneck, Report};

use crate::process;
use crate::runs::Outcome;
use crate::table::Table;
use laggard_generator::{self as generator, Length, Program, Settings};

/// Agents that share the work.
const AGENTS: usize = 2;
/// Calls of generated traces.
const CALLS: u64 = 1_000_000;

struct Trace {
    name: String,
    directory: PathBuf,
}

/// Records and generates traces, and analyses each of them twice.
///
/// # Errors
/// A program, the analyzer or the file system failed.
pub fn measure(analyzer: &Path, directory: &Path, outcome: &mut Outcome) -> Result<()> {
    fs::create_dir_all(directory)?;
    let mut traces = recorded(directory)?;
    for (program, ranks, is_clean) in [
        (Program::Stencil, 4, false),
        (Program::Stencil, 64, false),
        (Program::Halo2d, 64, true),
        (Program::Collectives, 8, false),
    ] {
        traces.push(generated(directory, program, ranks, is_clean)?);
    }
    let head = [
        "trace",
        "findings",
        "with --all",
        "requests",
        "with --all",
        "bytes sent",
        "with --all",
        "of trace, %",
        "with --all",
        "most lost in",
        "with --all the same",
    ];
    let title = format!("Default thresholds and --all, {AGENTS} agents");
    let mut table = Table::new(&title, &head);
    for trace in &traces {
        let reports = [&[][..], &["--all"]].map(|options| analyze(analyzer, trace, options));
        let [filtered, all] = reports;
        let (filtered, all) = (filtered?, all?);
        let part = |report: &Report| {
            let bytes = report.agents.bytes_exchanged as f64;
            format!("{:.2}", 100.0 * bytes / report.run.trace_bytes as f64)
        };
        let top = |report: &Report| report.bottlenecks.first().map(what);
        table.row([
            trace.name.clone(),
            filtered.bottlenecks.len().to_string(),
            all.bottlenecks.len().to_string(),
            filtered.agents.requests.to_string(),
            all.agents.requests.to_string(),
            filtered.agents.bytes_exchanged.to_string(),
            all.agents.bytes_exchanged.to_string(),
            part(&filtered),
            part(&all),
            top(&filtered).unwrap_or_else(|| "nothing".to_owned()),
            (top(&filtered) == top(&all)).to_string(),
        ]);
        for (how, report) in [("filtered", &filtered), ("--all", &all)] {
            let numbers = [
                report.run.trace_bytes,
                report.bottlenecks.len() as u64,
                report.agents.requests,
                report.agents.bytes_exchanged,
            ];
            outcome.raw.push((
                format!(
                    "{}, {how}: trace bytes, findings, requests, bytes sent",
                    trace.name
                ),
                numbers.map(|number| number as f64).to_vec(),
            ));
        }
    }
    outcome.table(table);
    Ok(())
}

fn what(found: &Bottleneck) -> String {
    format!("{} ({:.1} %)", found.operation, found.percent)
}

fn analyze(analyzer: &Path, trace: &Trace, options: &[&str]) -> Result<Report> {
    let output = trace.directory.join("report.json");
    let mut command = process::mpirun(AGENTS);
    command.arg(analyzer).arg("analyze").arg(&trace.directory);
    command.arg("-o").arg(&output);
    command.args(["-q", "--threads", "1"]).args(options);
    process::run(&mut command)?;
    Ok(Report::read(&output)?)
}

fn generated(directory: &Path, program: Program, ranks: u32, is_clean: bool) -> Result<Trace> {
    let name = format!("{} on {ranks} ranks", program.name());
    let path = directory.join(name.replace(' ', "-"));
    let faults = match is_clean {
        true => vec![generator::Fault::Noise { percent: 1 }],
        false => program.usual_faults(ranks),
    };
    let settings = Settings {
        faults,
        expectations: false,
        ..Settings::new(program, ranks, Length::Calls(CALLS))
    };
    generator::generate(&settings, &path)?;
    let kind = if is_clean { "clean" } else { "faulty" };
    Ok(Trace {
        name: format!("{name}, generated, {kind}"),
        directory: path,
    })
}

/// Programs to record: a balanced one of our own, without and with a slow rank, and installed
/// programs of others.
fn recorded(directory: &Path) -> Result<Vec<Trace>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inputs = sources.join("../tests/programs/real");
    let balanced = directory.join("balanced");
    let mut compiler = Command::new("mpicc");
    compiler.args(["-O2", "-g", "-o"]).arg(&balanced);
    compiler.arg(sources.join("programs/balanced.c"));
    process::run(&mut compiler)?;
    let steps = ["300", "10000"].map(str::to_owned).to_vec();
    let slow = [&steps[..], &["5".to_owned()]].concat();
    let mut programs = vec![
        ("balanced", 2, balanced.clone(), steps),
        ("balanced, a rank 5 % slower", 2, balanced, slow),
    ];
    for (name, program, arguments) in [
        ("hpcc", "hpcc", Vec::new()),
        (
            "LAMMPS",
            "lmp",
            vec![
                "-in".to_owned(),
                inputs.join("melt.in").display().to_string(),
            ],
        ),
    ] {
        match process::is_installed(program) {
            true => programs.push((name, 4, PathBuf::from(program), arguments)),
            false => println!("{program} is not installed: left out"),
        }
    }
    let input = fs::read_to_string(inputs.join("hpccinf.txt"))?;
    let input = input.replace("@P", "2").replace("@Q", "2");
    fs::write(directory.join("hpccinf.txt"), input)?;
    let collector = process::built("liblaggard.so", "LAGGARD_LIB")?;
    let mut traces = Vec::new();
    for (at, (name, ranks, program, arguments)) in programs.into_iter().enumerate() {
        let trace = directory.join(format!("recorded-{at}"));
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        let mut command = process::mpirun(ranks);
        if process::is_open_mpi() {
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
        }
        command.arg("env").arg(set("LD_PRELOAD", &collector));
        command.arg(set("LAGGARD_TRACE_DIR", &trace));
        command.arg(program).args(arguments).current_dir(directory);
        process::run(&mut command)?;
        traces.push(Trace {
            name: format!("{name}, {ranks} ranks"),
            directory: trace,
        });
    }
    Ok(traces)
}
