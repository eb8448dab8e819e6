//! A trace three times as large as the memory for its analysis.

mod limit;

use laggard_benchmarks::process;
use laggard_generator::{Expected, Length, Program, Settings, differences, generate};
use laggard_report::Report;

use limit::{Limit, forget, limited};

#[test]
fn traces_larger_than_memory_are_analysed() {
    // Not in a file system in memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = Settings {
        faults: vec!["slow-rank=5:50".parse().unwrap()],
        ..Settings::new(Program::Halo2d, 16, Length::Calls(18_000_000))
    };
    generate(&settings, directory.path()).unwrap();
    let bytes = forget(directory.path()).unwrap();
    assert!(bytes > 195 << 20, "{bytes}");
    let limit = bytes / 3;
    let group = Limit::new(limit);
    let output = directory.path().join("report.json");
    let mpirun = process::mpirun(2);
    let mut command = limited(group.as_ref(), limit);
    command.args(["timeout", "400"]);
    command.arg(mpirun.get_program()).args(mpirun.get_args());
    if process::is_open_mpi() {
        command.args(["--mca", "mpi_yield_when_idle", "1"]);
    }
    command.arg(process::built("laggard", "LAGGARD_BIN").unwrap());
    command
        .arg("analyze")
        .arg(directory.path())
        .arg("-o")
        .arg(&output);
    // The ledger charges the last member of a collective.
    command.args(["--all", "--charge", "last", "-q"]);
    command.args(["--format", "none", "--threads", "1"]);
    process::run(&mut command).unwrap();
    if let Some(peak) = group.as_ref().and_then(Limit::peak) {
        assert!(peak <= limit, "{peak} of {limit}");
    }
    let expected = Expected::read(directory.path()).unwrap();
    let found = differences(&expected, &Report::read(&output).unwrap());
    assert!(found.is_empty(), "{}", found.join("\n  "));
}
