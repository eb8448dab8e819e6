//! A trace three times as large as the memory that its analysis may have.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_benchmarks::process;
use laggard_benchmarks::synthetic::{Expected, Length, Program, Settings, differences, generate};
use laggard_report::Report;

/// A control group with a limit of memory, page cache included.
struct Limit {
    group: PathBuf,
    /// File with the largest use so far.
    peak: &'static str,
}

impl Limit {
    /// Of either version of control groups; `None` where this user may make none.
    fn new(bytes: u64) -> Option<Limit> {
        let versions = [
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.max_usage_in_bytes",
            ),
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ];
        versions.into_iter().find_map(|(root, limit, peak)| {
            let group = Path::new(root).join(format!("laggard-test-{}", std::process::id()));
            fs::create_dir(&group).ok()?;
            let made = Limit { group, peak };
            fs::write(made.group.join(limit), bytes.to_string()).ok()?;
            Some(made)
        })
    }

    /// Most bytes that its processes used at once.
    fn peak(&self) -> Option<u64> {
        let text = fs::read_to_string(self.group.join(self.peak)).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // Refused as long as a process is in it.
        let _ = fs::remove_dir(&self.group);
    }
}

/// The command within the limit: in a control group, else with so much data.
fn limited(limit: Option<&Limit>, bytes: u64) -> Command {
    let mut command = Command::new("sh");
    match limit {
        Some(limit) => {
            let script = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
            command.args(["-c", script]).arg(&limit.group);
        }
        None => {
            eprintln!("no control group can be made here: data is limited, page cache is not");
            let script = format!(r#"ulimit -d {} && exec "$0" "$@""#, bytes / 1024);
            command.args(["-c", &script]);
        }
    }
    command
}

/// Takes the trace out of the page cache: who reads it pays for it.
fn forget(trace: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(trace)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        bytes += file.metadata()?.len();
        // SAFETY: a file of ours that is open; the call changes no memory of this process.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    Ok(bytes)
}

#[test]
fn traces_larger_than_memory_are_analysed() {
    // Not in a file system that is memory itself.
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
    command.args(["--all", "-q", "--format", "none", "--threads", "1"]);
    process::run(&mut command).unwrap();
    if let Some(peak) = group.as_ref().and_then(Limit::peak) {
        assert!(peak <= limit, "{peak} of {limit}");
    }
    let expected = Expected::read(directory.path()).unwrap();
    let found = differences(&expected, &Report::read(&output).unwrap());
    assert!(found.is_empty(), "{}", found.join("\n  "));
}
