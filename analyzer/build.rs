//! What the command needs of the linker, and the commit that it is built from.

use std::process::Command;

/// What git says, if the source is a clone.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}

/// The version with the commit and its day.
fn tell_commit() {
    // Every commit and every change of a branch adds a line to this file.
    let log = git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "logs/HEAD",
    ]);
    if let Some(log) = log.filter(|log| std::path::Path::new(log).exists()) {
        println!("cargo:rerun-if-changed={log}");
    }
    let version = env!("CARGO_PKG_VERSION");
    // Those who build from an archive may say what it is of.
    println!("cargo:rerun-if-env-changed=LAGGARD_COMMIT");
    let commit = std::env::var("LAGGARD_COMMIT").ok();
    if let Some(commit) = commit.or_else(|| git(&["log", "-1", "--format=%h %cs"])) {
        println!("cargo:rustc-env=VERSION_AND_COMMIT={version} ({commit})");
    }
}

fn main() {
    tell_commit();
    // OpenSHMEM, loaded while it runs, looks for the end of the executable's data by this symbol:
    // without it it takes the heap, which differs from process to process, for symmetric memory.
    // Linkers define it only where something asks for it.
    // MPICH finds the second one here before UCX's (`comm/waiting.rs`).
    for symbol in ["_end", "ucp_worker_progress"] {
        println!(
            "cargo:rustc-link-arg-bins=-Wl,--undefined={symbol},--export-dynamic-symbol={symbol}"
        );
    }
    println!("cargo:rerun-if-changed=build.rs");
}
