//! What `make install` lays out works there, needs no MPI where it need not, and goes again.
//!
//! `make check-install` tries packages on other systems.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use laggard_tests::folders::target;
use laggard_tests::mpi::Mpi;
use laggard_tests::process::{self, Outcome};
use laggard_tests::product::{Bench, TIMEOUT};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `analyzer/packaging/install.sh`, as `make install` calls it.
fn make(bench: &Bench, what: &str, prefix: &Path, destination: &str) -> Outcome {
    let mut script = Command::new(root().join("analyzer/packaging/install.sh"));
    script.arg(what).arg(target());
    script.env("PREFIX", prefix).env("DESTDIR", destination);
    process::run(&mut script, TIMEOUT, &bench.path(what)).expect_success()
}

fn run(bench: &Bench, command: &mut Command) -> Outcome {
    command.current_dir(&bench.dir).env_remove("LAGGARD_LIB");
    process::run(command, TIMEOUT, &bench.path("said")).expect_orderly()
}

fn files(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, found),
            false => drop(found.insert(path)),
        }
    }
}

fn needed(file: &Path) -> String {
    let output = Command::new("readelf").arg("-d").arg(file).output();
    let text = String::from_utf8_lossy(&output.expect("readelf").stdout).into_owned();
    let lines = text.lines().filter(|line| line.contains("(NEEDED)"));
    let needed: String = lines.collect::<Vec<_>>().join("\n");
    assert!(needed.contains("libc.so"), "{text}");
    needed
}

#[test]
fn an_installation_is_whole_and_can_be_removed() {
    let bench = Bench::sharing("installed");
    let (prefix, name) = (bench.path("opt/laggard"), bench.mpi.name());
    make(&bench, "install", &prefix, "");
    let mut found = BTreeSet::new();
    files(&prefix, &mut found);
    let libraries = format!("lib/laggard/{name}");
    for file in [
        "bin/laggard",
        &format!("{libraries}/liblaggard.so"),
        &format!("{libraries}/liblaggard_mpi.so"),
        "include/laggard.h",
        "include/laggard.f90",
        "share/man/man1/laggard.1",
        "share/man/man1/laggard-what-if.1",
        "share/bash-completion/completions/laggard",
        "share/zsh/site-functions/_laggard",
        "share/fish/vendor_completions.d/laggard.fish",
        "share/laggard/python/pyproject.toml",
        "share/doc/laggard/LICENSE-MIT",
        "share/doc/laggard/CHANGELOG.md",
        "share/doc/laggard/analyzer/docs/options.md",
    ] {
        assert!(found.contains(&prefix.join(file)), "{file}: {found:#?}");
    }
    // Whoever loads a library chooses the MPI.
    for file in [
        "bin/laggard".into(),
        format!("{libraries}/liblaggard_mpi.so"),
    ] {
        let needed = needed(&prefix.join(&file));
        assert!(!needed.contains("libmpi"), "{file}: {needed}");
    }

    // Libraries of others find these in the command: see `analyzer/build.rs`.
    let output = Command::new("nm")
        .arg("-D")
        .arg(prefix.join("bin/laggard"))
        .output();
    let symbols = String::from_utf8_lossy(&output.expect("nm").stdout).into_owned();
    for symbol in [" T ucp_worker_progress", " _end"] {
        assert!(symbols.contains(symbol), "{symbol}: {symbols}");
    }

    // It works, wherever it is moved.
    let moved = bench.path("moved");
    fs::rename(&prefix, &moved).expect("another name");
    let laggard = moved.join("bin/laggard");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let launcher = bench.mpi.mpirun(2);
    let mut recording = Command::new(&laggard);
    recording.args(["run", "-o", "trace", "--"]);
    recording
        .arg(launcher.get_program())
        .args(launcher.get_args());
    let outcome = bench.record(|| run(&bench, recording.arg(&program)));
    let outcome = outcome.expect_success();
    assert!(outcome.stderr.contains("(2 files"), "{outcome}");
    let mut analysis = bench.mpi.mpirun(2);
    analysis.arg(&laggard).args(["analyze", "trace"]);
    let outcome = run(&bench, &mut analysis).expect_success();
    assert!(outcome.stdout.contains("read by 2 agents"), "{outcome}");

    // As packages are made: what is below DESTDIR is the same, and nothing else is written.
    let stage = bench.path("stage");
    make(
        &bench,
        "install",
        Path::new("/usr"),
        &stage.to_string_lossy(),
    );
    let names = |base: &Path| {
        let mut found = BTreeSet::new();
        files(base, &mut found);
        let names = found
            .iter()
            .map(|file| file.strip_prefix(base).expect("below"));
        names.map(Path::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(names(&stage.join("usr")), names(&moved));
    let other = stage.join("usr/bin/other");
    fs::write(&other, "").expect("a file of others");
    make(
        &bench,
        "uninstall",
        Path::new("/usr"),
        &stage.to_string_lossy(),
    );
    assert_eq!(names(&stage), BTreeSet::from(["usr/bin/other".into()]));
}

/// The command alone reads traces. Only agents miss their library, and say where they looked.
#[test]
fn a_command_without_libraries() {
    let bench = Bench::sharing("bare");
    let program = bench.compile("attacks/wrapped.c", &[], &[]);
    let traced = bench.traced(2, &[program.as_os_str()], "trace").run();
    traced.expect_orderly().expect_success();
    let bare = bench.path("bin/laggard");
    fs::create_dir(bench.path("bin")).expect("a directory");
    fs::hard_link(&bench.command, &bare)
        .or_else(|_| fs::copy(&bench.command, &bare).map(drop))
        .expect("a copy");
    run(&bench, Command::new(&bare).args(["analyze", "trace", "-q"])).expect_success();

    let mut agents = bench.mpi.mpirun(2);
    agents.arg(&bare).args(["analyze", "trace", "-q"]);
    let of_agents = run(&bench, &mut agents);
    let mut recording = Command::new(&bare);
    let of_run = run(&bench, recording.args(["run", "--"]).arg(&program));
    let family = match bench.mpi {
        Mpi::OpenMpi => "Open MPI",
        Mpi::Mpich => "MPICH",
    };
    for (outcome, file) in [(of_agents, "liblaggard_mpi.so"), (of_run, "liblaggard.so")] {
        assert_ne!(outcome.code, Some(0), "{outcome}");
        let lines = outcome.stderr.lines();
        let said: Vec<&str> = lines.filter(|line| line.starts_with("laggard: ")).collect();
        assert_eq!(said.len(), 1, "{outcome}");
        let home = bench.path("bin");
        let home = home.canonicalize().expect("a directory");
        let missing = format!("no {file} for {family} in {}", home.display());
        assert!(said[0].contains(&missing), "{missing} in {outcome}");
    }
}

/// Shells accept the completions, and these know every command.
#[test]
fn completions_know_every_command() {
    let bench = Bench::beside("completions");
    let written = run(
        &bench,
        Command::new(&bench.command)
            .arg("write-pages")
            .arg(&bench.dir),
    );
    written.expect_success();
    let help = run(&bench, Command::new(&bench.command).arg("--help")).expect_success();
    let names = help.stdout.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && !name.starts_with('-') && name != "help").then_some(name)
    });
    let names: Vec<&str> = names.collect();
    assert!(names.contains(&"what-if"), "{names:?}");
    let complete = "source laggard.bash; COMP_WORDS=(laggard ''); COMP_CWORD=1; \
                    _laggard laggard '' laggard; echo \"${COMPREPLY[@]}\"";
    let offered = run(&bench, Command::new("bash").args(["-c", complete])).expect_success();
    let offered: BTreeSet<&str> = offered.stdout.split_whitespace().collect();
    for name in names {
        assert!(offered.contains(name), "{name}: {offered:?}");
        let page = bench.path(&format!("laggard-{name}.1"));
        let page = fs::read_to_string(page).expect("a manual page");
        assert!(page.contains(".SH OPTIONS"), "{page}");
    }
    assert!(!offered.contains("write-pages"), "{offered:?}");
    // Every page that the first one names is there.
    let first = fs::read_to_string(bench.path("laggard.1")).expect("a manual page");
    let named = first.lines().filter_map(|line| line.strip_suffix("(1)"));
    let named: Vec<String> = named.map(|name| name.replace('\\', "")).collect();
    assert!(named.len() > 8, "{first}");
    for name in named {
        assert!(
            bench.path(&format!("{name}.1")).is_file(),
            "{name} in {first}"
        );
    }
}

/// The version names the commit.
#[test]
fn the_version_tells_the_commit() {
    let bench = Bench::beside("version");
    let words = [OsStr::new("--version")];
    let said = run(&bench, Command::new(&bench.command).args(words)).expect_success();
    let version = env!("CARGO_PKG_VERSION");
    let commit = said
        .stdout
        .trim()
        .strip_prefix(&format!("laggard {version}"));
    let commit = commit.expect("the version").trim();
    let git = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(root())
        .output();
    if git.is_ok_and(|git| git.status.success()) {
        let hash = commit
            .trim_start_matches('(')
            .split(' ')
            .next()
            .expect("a commit");
        assert!(
            hash.len() >= 7 && hash.bytes().all(|b| b.is_ascii_hexdigit()),
            "{commit}"
        );
    }
}
