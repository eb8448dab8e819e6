//! Jobs of a real Slurm, which `slurm/cluster.sh` starts on this machine: `make test-slurm`.

use std::fs;
use std::path::Path;
use std::process::Command;

use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT};
use laggard_tests::report::Report;

/// Runs a script where Slurm's commands work, with `laggard` on the path.
fn in_slurm(bench: &Bench, script: &str) -> Outcome {
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("slurm/cluster.sh");
    let tools = bench.command.parent().expect("a directory");
    let path = std::env::var("PATH").expect("a path");
    let mut command = Command::new(cluster);
    command.arg(bench.path("slurm"));
    command
        .args(["bash", "-e", "-c", script])
        .current_dir(&bench.dir);
    command.env(
        "PATH",
        format!("{}:{path}:/usr/sbin:/sbin", tools.display()),
    );
    for allowed in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        command.env(allowed, "1");
    }
    process::run(&mut command, TIMEOUT, &bench.path("cluster")).expect_orderly()
}

/// The job script of the book.
fn job() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../collector/docs/batch.md");
    let page = fs::read_to_string(page).expect("a page");
    let (_, behind) = page.split_once("```bash\n").expect("a script");
    behind.split("```").next().expect("its end").to_owned()
}

fn report(trace: &Path) -> Report {
    let text = fs::read_to_string(trace.join("report.json")).expect("a report");
    Report::parse(&text).expect("a report of the promised shape")
}

fn is_late(report: &Report) -> bool {
    let mut found = report.bottlenecks.iter();
    found.any(|found| found.pattern == "late_sender" && found.location.is("wrapped.c", 14))
}

#[test]
#[ignore = "needs root and a Slurm, which make test-slurm installs"]
fn jobs_have_a_report() {
    let bench = Bench::new("slurm-jobs");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    fs::rename(program, bench.path("app")).expect("a program");
    let job = job();
    fs::write(bench.path("job.sh"), &job).expect("a script");
    let by_mpirun = job
        .replace("srun --mpi=pmix", "mpirun")
        .replace("job.out", "mpirun.out");
    fs::write(bench.path("mpirun.sh"), by_mpirun).expect("a script");
    let script = "sbatch --wait job.sh
        sbatch --wait mpirun.sh
        laggard run --report -- srun --mpi=pmix -n 2 ./app
        srun --mpi=pmix -n 2 laggard analyze laggard-trace -q -o agents.json";
    let outcome = in_slurm(&bench, script).expect_success();
    assert!(outcome.stdout.contains("Late sender"), "{outcome}");
    for name in ["laggard-trace", "laggard-trace.1", "laggard-trace.2"] {
        let trace = bench.path(name);
        let report = report(&trace);
        assert!(
            is_late(&report) && report.run.ranks == 2,
            "{name}: {report:#?}"
        );
        assert!(trace.join("report.html").exists(), "{name}");
    }
    for name in ["job.out", "mpirun.out"] {
        let said = fs::read_to_string(bench.path(name)).expect("a job's output");
        assert!(
            said.contains("Late sender") && said.contains("Page written to"),
            "{said}"
        );
    }
    let agents = fs::read_to_string(bench.path("agents.json")).expect("a report");
    let agents = Report::parse(&agents).expect("a report of the promised shape");
    assert!(agents.agents.count == 2 && is_late(&agents), "{agents:#?}");
}

/// A job whose time is nearly up makes its report before it is.
#[test]
#[ignore = "needs root and a Slurm, which make test-slurm installs"]
fn jobs_that_are_ended_have_a_report() {
    let bench = Bench::new("slurm-ended");
    let program = bench.compile("attacks/killed.c", &[], &[]);
    fs::rename(program, bench.path("app")).expect("a program");
    let job = job().replace("./app", "./app 90 counter");
    let job = job
        .replace("TERM@120", "TERM@50")
        .replace("--time=10", "--time=1");
    fs::write(bench.path("job.sh"), job).expect("a script");
    let outcome = in_slurm(&bench, "sbatch --wait job.sh || echo ended with $?");
    assert!(outcome.stdout.contains("ended with 143"), "{outcome}");
    let report = report(&bench.path("laggard-trace"));
    assert_eq!(
        report.anomaly("program_failed"),
        1,
        "{:#?}",
        report.anomalies
    );
    assert!(
        bench.path("laggard-trace/report.html").exists(),
        "{outcome}"
    );
}
