//! Compares two builds of `laggard` on the same traces, byte for byte: for changes after which
//! nothing that a user sees may differ.
//!
//! ```text
//! golden BEFORE AFTER DIRECTORY...
//! ```
//!
//! Both builds analyse every trace and every OTF2 archive below the directories: with the default
//! filters and one agent, and with `--all` and three. They also export it as a time line. Exit
//! codes, printed text, and files are compared, except `agents` in reports. The corpus is real
//! programs, generated traces, and the traces of the test suite, which keeps them if
//! `LAGGARD_TEST_KEEP` names a directory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use laggard_tests::process::run;
use laggard_tests::report::without_agents;

const PATIENCE: Duration = Duration::from_secs(600);

/// Finds traces to analyse: the files of one directory, or an archive.
fn traces_below(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut is_trace = false;
    let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let is_directory = fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
        match path.extension().and_then(|name| name.to_str()) {
            _ if is_directory => traces_below(&path, found),
            Some("lgt" | "lgn") => is_trace = true,
            Some("otf2") => found.push(path),
            _ => {}
        }
    }
    if is_trace {
        found.push(directory.to_path_buf());
    }
}

/// The output of one build for a trace: each part with its name.
fn said_of(laggard: &Path, trace: &Path, work: &Path) -> Vec<(&'static str, String)> {
    let _ = fs::remove_dir_all(work);
    fs::create_dir_all(work).expect("a directory to work in");
    let out = work.join("out");
    let mut said = Vec::new();
    let mut keep = |names: [&'static str; 3], command: &mut Command| {
        let outcome = run(command, PATIENCE, &work.join("log"));
        // Leaves out how launchers number their jobs.
        let told = outcome.stderr.lines();
        let told: Vec<_> = told
            .filter(|line| !line.contains("Process name:"))
            .collect();
        let end = format!("{:?}\n{}", outcome.code, told.join("\n"));
        said.push((names[0], end));
        said.push((names[1], outcome.stdout));
        let bytes = fs::read(&out).unwrap_or_default();
        said.push((names[2], String::from_utf8_lossy(&bytes).into_owned()));
        let _ = fs::remove_file(&out);
    };
    let analyze = |command: &mut Command| {
        command.args(["analyze", "-o"]).arg(&out).arg(trace);
    };
    let mut one = Command::new(laggard);
    analyze(&mut one);
    keep(
        ["analyze: end", "analyze: text", "analyze: report"],
        &mut one,
    );
    let mut three = Command::new("mpirun");
    three.args(["--allow-run-as-root", "--oversubscribe", "-n", "3"]);
    three
        .args(["--mca", "mpi_yield_when_idle", "1"])
        .arg(laggard);
    analyze(&mut three);
    three.args(["--all", "--threads", "1"]);
    keep(["--all: end", "--all: text", "--all: report"], &mut three);
    let mut export = Command::new(laggard);
    export.args(["export", "--to", "perfetto", "-o"]);
    export.arg(&out).arg(trace);
    keep(["export: end", "export: text", "export: file"], &mut export);
    for (name, text) in &mut said {
        if name.ends_with("report") {
            *text = without_agents(text);
        } else if name.ends_with("text") {
            // Leaves out who read it, and how fast.
            let lines = text.lines().filter(|line| !line.starts_with("   Trace "));
            *text = lines.collect::<Vec<_>>().join("\n");
        }
    }
    said
}

fn main() -> ExitCode {
    let words: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [before, after, directories @ ..] = &words[..] else {
        eprintln!("golden BEFORE AFTER DIRECTORY...");
        return ExitCode::from(2);
    };
    let mut traces = Vec::new();
    for directory in directories {
        traces_below(directory, &mut traces);
    }
    if traces.is_empty() {
        eprintln!("golden: no trace in {directories:?}");
        return ExitCode::from(2);
    }
    // The same paths for both, since they are part of the output.
    let work = env::temp_dir().join(format!("laggard-golden-{}", std::process::id()));
    let mut different = 0;
    for trace in &traces {
        let [old, new] = [before, after].map(|laggard| said_of(laggard, trace, &work));
        let parts = old.iter().zip(&new).filter(|(old, new)| old != new);
        let parts: Vec<_> = parts.map(|((name, _), _)| *name).collect();
        if !parts.is_empty() {
            different += 1;
            println!("{}: different: {}", trace.display(), parts.join(", "));
        }
    }
    let _ = fs::remove_dir_all(&work);
    println!("{} traces, {different} with differences", traces.len());
    ExitCode::from(u8::from(different > 0))
}
