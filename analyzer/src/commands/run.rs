//! `laggard run`: starts a program with the collector preloaded.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result, bail};
use laggard_comm::Family;
use laggard_comm::installed::{self, COLLECTOR};
use laggard_trace::operations::OperationMap;
use laggard_trace::{ENDED_FILE, FILE_EXTENSION};

use super::at_once::{self, Recorded};
use super::followed;
use super::launcher::{self, Launcher};
use super::program;
use super::screen::say;
use super::traces::{self, numbered};
use crate::cli::{FilePer, Mode, Run};

/// Settings of the collector that are handed on to all hosts if they are set.
const VARIABLES: &[&str] = &[
    "LAGGARD_CALLPATH_DEPTH",
    "LAGGARD_MODE",
    "LAGGARD_MAX_TRACE_MB",
    "LAGGARD_BUFFER_KB",
    "LAGGARD_FILE_PER",
    "LAGGARD_OPERATION_MAP",
    "LAGGARD_PAUSED",
    "LAGGARD_POSIX_IO",
    "LAGGARD_THREADS",
    "LAGGARD_PROCESSOR_TIME",
    "LAGGARD_COUNTERS",
    "LAGGARD_SAMPLE_HZ",
    "LAGGARD_SAMPLE_BY",
    "LAGGARD_SYNC_INTERVAL_S",
    "LAGGARD_LOG",
];

/// Runs the command; the exit code is the command's.
pub fn run(options: &Run) -> Result<ExitCode> {
    if let Some(map) = &options.operation_map {
        // Better now than when the program has run.
        OperationMap::read(map).map_err(anyhow::Error::msg)?;
    }
    let wanted = options.output.clone().unwrap_or_else(traces::usual);
    let directory = std::path::absolute(&wanted)
        .with_context(|| format!("{}: not a name for a directory", wanted.display()))?;
    let mut settings = settings(options);
    settings.insert(0, ("LAGGARD_TRACE_DIR", directory.clone().into_os_string()));

    let command = &options.command;
    let kind = launcher::position(command).map(|at| (at, launcher::ask(&command[at])));
    let kind = kind.filter(|(_, launcher)| *launcher != Launcher::Environment);
    let launcher = kind.map(|(at, _)| &command[at..]);
    let library = library(&program::families(command, kind))?;
    let inherited = std::env::var_os("LD_PRELOAD");
    let plan = launcher::plan(
        command,
        kind,
        library.as_os_str(),
        inherited.as_deref(),
        &settings,
    );

    let before = taken(&directory);
    let recorded = numbered(&directory, before);
    // What is in the names after that one is of other runs.
    let is_next = is_taken(&numbered(&directory, before.saturating_add(1)));
    let server = options
        .serve
        .then(|| followed::Server::start(&recorded, options.steer))
        .transpose()?;
    let status = start(&plan)?;
    let code = exit_code(status);
    let is_off = settings
        .iter()
        .any(|(name, value)| *name == "LAGGARD_MODE" && value == "off");
    if code != 0 && !is_off {
        say(&format!("the command failed: {}", ending(status)));
    }
    if files(&recorded).is_empty() {
        if is_off {
            return Ok(ExitCode::from(code));
        }
        if code != 0 {
            say("nothing was recorded: recording begins when MPI_Init has returned");
            return Ok(ExitCode::from(code));
        }
        let option = if options.output.is_some() { "-o " } else { "" };
        bail!(
            "no trace was written to {option}{}: {}",
            wanted.display(),
            reason(&directory)
        );
    }
    let shown = numbered(&wanted, before);
    let passed = Some(PASSED.load(Ordering::Relaxed)).filter(|&signal| signal > 0);
    if code != 0 || passed.is_some() {
        keep_ending(&recorded, status, passed);
    }
    let sizes = files(&recorded);
    say(&trace(&shown, &sizes));
    for number in (before..u32::MAX).skip(1).take_while(|_| !is_next) {
        let sizes = files(&numbered(&directory, number));
        if sizes.is_empty() {
            break;
        }
        let others = trace(&numbered(&wanted, number), &sizes);
        say(&format!(
            "processes that it started have a run of their own: {others}"
        ));
    }
    if options.report || options.open {
        let recorded = Recorded {
            trace: &shown,
            bytes: sizes.iter().sum(),
            ranks: sizes.len(),
            launcher,
        };
        at_once::report(&recorded, options);
    } else {
        say(&format!("next: laggard analyze {}", shown.display()));
    }
    server.into_iter().for_each(followed::Server::stay);
    Ok(ExitCode::from(code))
}

/// The collector's file: the one that is set, else one for these families of MPI, the first that
/// there is; for `[]`, any.
pub fn library(families: &[Family]) -> Result<PathBuf> {
    let found = match std::env::var_os("LAGGARD_LIB").filter(|value| !value.is_empty()) {
        Some(set) => {
            let set = PathBuf::from(set);
            let file = if set.is_dir() {
                set.join(COLLECTOR)
            } else {
                set
            };
            file.canonicalize()
                .with_context(|| format!("LAGGARD_LIB: cannot find {}", file.display()))?
        }
        None => {
            let refused = |error| anyhow::anyhow!("{error}: say where it is with LAGGARD_LIB");
            let mut found = installed::find(COLLECTOR, families).map_err(refused)?;
            found.swap_remove(0).1
        }
    };
    let text = found.to_string_lossy();
    if text.contains([' ', ':']) {
        bail!("{text}: a path with a space or colon cannot be preloaded: move it, or link to it");
    }
    Ok(found)
}

/// The collector's settings: options win over variables.
fn settings(options: &Run) -> Vec<(&'static str, OsString)> {
    let text = |number: Option<u64>| number.map(|n| OsString::from(n.to_string()));
    let option = |name: &str| match name {
        "LAGGARD_CALLPATH_DEPTH" => text(options.callpath_depth.map(u64::from)),
        "LAGGARD_MODE" => options.mode.map(|mode: Mode| mode.name().into()),
        "LAGGARD_MAX_TRACE_MB" => text(options.max_trace_mb),
        "LAGGARD_BUFFER_KB" => text(options.buffer_kb),
        "LAGGARD_SAMPLE_HZ" => text(options.sample.map(u64::from)),
        "LAGGARD_FILE_PER" => options.file_per.map(|per: FilePer| per.name().into()),
        "LAGGARD_OPERATION_MAP" => {
            // Ranks may run elsewhere.
            let given = options.operation_map.as_ref();
            given.map(|path| {
                std::path::absolute(path)
                    .unwrap_or_else(|_| path.clone())
                    .into()
            })
        }
        _ => None,
    };
    let value = |name: &'static str| {
        let value = option(name).or_else(|| std::env::var_os(name))?;
        Some((name, value))
    };
    VARIABLES.iter().copied().filter_map(value).collect()
}

/// How many of the names in a row hold a trace already.
fn taken(directory: &Path) -> u32 {
    let is_free = |&number: &u32| !is_taken(&numbered(directory, number));
    (0..u32::MAX).find(is_free).unwrap_or(u32::MAX)
}

/// Whether a directory is of some run.
fn is_taken(directory: &Path) -> bool {
    !files(directory).is_empty() || directory.join(laggard_trace::RUN_FILE).exists()
}

/// Sizes of the trace files in a directory.
fn files(directory: &Path) -> Vec<u64> {
    traces::files(directory, FILE_EXTENSION)
        .map(|file| size(&file))
        .collect()
}

/// Bytes of a trace file: of a node file those in use, since it has holes.
fn size(path: &Path) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if laggard_trace::is_node_file_name(&name)
        && let Ok(file) = laggard_trace::NodeFile::open(path)
    {
        return file.locations().map(|(_, _, size)| size).sum();
    }
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Where the trace is, and how large.
fn trace(directory: &Path, sizes: &[u64]) -> String {
    let size = laggard_report::units::size(sizes.iter().sum());
    let plural = if sizes.len() == 1 { "" } else { "s" };
    let (shown, files) = (directory.display(), sizes.len());
    format!("trace in {shown} ({files} file{plural}, {size})")
}

/// Why a command that succeeded left no trace, as far as can be told from here.
fn reason(directory: &Path) -> String {
    let existing = directory.ancestors().find(|path| path.exists());
    let existing = existing.unwrap_or(Path::new("/"));
    let shown = existing.display();
    if !existing.is_dir() {
        return format!("{shown} is no directory; name another one with -o");
    }
    if !is_writable(existing) {
        return format!("{shown} cannot be written to; name another directory with -o");
    }
    "unless the collector said above why, the program did not start MPI, or is linked to it \
     statically"
        .to_owned()
}

fn is_writable(directory: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()) else {
        return false;
    };
    // SAFETY: a string that ends in 0.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// How a command that failed ended.
fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("ended by signal {signal}"),
        None => format!("exit code {}", exit_code(status)),
    }
}

/// Leaves the end of a command that failed, or was ended by the signal that was passed on, beside
/// the trace: ranks do not know of it.
fn keep_ending(trace: &Path, status: ExitStatus, passed: Option<i32>) {
    // Launchers of MPICH succeed then.
    let content = match status.signal().or(passed) {
        Some(signal) => format!("{{\"signal\": {signal}}}\n"),
        None => format!("{{\"code\": {}}}\n", exit_code(status)),
    };
    if let Err(error) = laggard_files::replace(&trace.join(ENDED_FILE), content.as_bytes()) {
        say(&format!(
            "the report will not tell how the command ended: {error}"
        ));
    }
}

/// The command while it runs, for the signal handler.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The last signal that was passed on to it.
static PASSED: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        PASSED.store(signal, Ordering::Relaxed);
        // SAFETY: kill is async-signal-safe.
        unsafe { libc::kill(child, signal) };
    }
}

/// Starts the command and waits for it. What ends this process ends the command.
fn start(plan: &launcher::Plan) -> Result<ExitStatus> {
    let Some((program, arguments)) = plan.command.split_first() else {
        bail!("no command to run");
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(plan.environment.iter().map(|(n, v)| (n, v)));
    let mut child: Child = command
        .spawn()
        .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
    CHILD.store(i32::try_from(child.id()).unwrap_or(0), Ordering::Relaxed);
    let handler = pass_on as extern "C" fn(i32) as libc::sighandler_t;
    // SAFETY: the handler only calls kill. A terminal sends SIGINT and SIGQUIT to the
    // command too: it decides, and this process stays to say where the trace is.
    unsafe {
        libc::signal(libc::SIGTERM, handler);
        libc::signal(libc::SIGHUP, handler);
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
    }
    let status = child.wait();
    CHILD.store(0, Ordering::Relaxed);
    // What follows is ended as any command is.
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the default action, no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    status.with_context(|| format!("cannot wait for {}", program.to_string_lossy()))
}

/// The command's exit code; 128 + signal if one ended it, as shells have it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(1)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_collectors() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = directory.path().join("t");
        assert_eq!(taken(&wanted), 0);
        std::fs::create_dir(&wanted).unwrap();
        assert_eq!(taken(&wanted), 0);
        std::fs::write(wanted.join("rank000000.thread000.lgt"), "12345").unwrap();
        assert_eq!(taken(&wanted), 1);
        assert_eq!(
            numbered(&wanted, taken(&wanted)),
            directory.path().join("t.1")
        );
        assert_eq!(files(&wanted), [5]);
    }

    #[test]
    fn variables_are_explained_to_users() {
        let page = include_str!("../../docs/options.md");
        for name in VARIABLES
            .iter()
            .chain(&["LAGGARD_TRACE_DIR", "LAGGARD_LIB"])
        {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
        let rows = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `LAGGARD_"));
        let told = rows.filter_map(|row| row.split_once('`')).map(|row| row.0);
        let mut told: Vec<String> = told.map(|name| format!("LAGGARD_{name}")).collect();
        told.retain(|name| name != "LAGGARD_TRACE_DIR");
        assert_eq!(told, VARIABLES);
    }

    #[test]
    fn directories_that_cannot_be_made_are_named() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        let said = reason(&file.join("trace"));
        assert!(said.contains("file is no directory"), "{said}");
        let said = reason(&home.path().join("a/b"));
        assert!(said.contains("did not start MPI"), "{said}");
        assert_eq!(ending(ExitStatus::from_raw(3 << 8)), "exit code 3");
        assert_eq!(ending(ExitStatus::from_raw(9)), "ended by signal 9");
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }
}
