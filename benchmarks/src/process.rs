//! Runs commands and measures their cost.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Resources that a command used, its children included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// From start to end, s.
    pub wall_s: f64,
    /// User and system time of all its processes, s.
    pub cpu_s: f64,
    /// Largest resident memory of any of its processes, bytes.
    pub peak_bytes: u64,
}

/// Runs a command and discards its output.
///
/// # Errors
/// It could not be started, or did not end with success.
pub fn run(command: &mut Command) -> Result<Usage> {
    run_to(command, Stdio::null()).map(|(usage, _)| usage)
}

/// Runs a command; returns its standard output, too.
///
/// # Errors
/// As [`run`].
pub fn run_with_output(command: &mut Command) -> Result<(Usage, String)> {
    run_to(command, Stdio::piped())
}

fn run_to(command: &mut Command, output: Stdio) -> Result<(Usage, String)> {
    let name = format!("{command:?}");
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .spawn()
        .with_context(|| name.clone())?;
    let output = child.stdout.take().map(io::read_to_string);
    let output = output.transpose()?.unwrap_or_default();
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a child of ours that nobody else waits for; both pointers are valid.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) };
    let wall_s = start.elapsed().as_secs_f64();
    if waited < 0 {
        return Err(io::Error::last_os_error()).context(name);
    }
    if !(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0) {
        bail!("{name} failed (wait status {status:#x})");
    }
    // SAFETY: zeroed, and filled in by wait4.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let usage = Usage {
        wall_s,
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        // Kilobytes on Linux.
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    };
    Ok((usage, output))
}

/// Whether `mpirun` is Open MPI's.
pub fn is_open_mpi() -> bool {
    let output = Command::new("mpirun").arg("--version").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).contains("Open MPI")
}

/// `mpirun -n N` with the options to start on any machine, even with more ranks than cores.
pub fn mpirun(ranks: usize) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]);
    if is_open_mpi() {
        command.args(["--bind-to", "none", "--oversubscribe"]);
        // SAFETY: no preconditions.
        if unsafe { libc::geteuid() } == 0 {
            command.arg("--allow-run-as-root");
        }
    }
    command
}

/// Whether a program is on the PATH.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A file of the release build: the one that `variable` names, else beside this program (for a
/// test, above it), else in the workspace.
///
/// # Errors
/// There is none.
pub fn built(name: &str, variable: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Ok(PathBuf::from(path));
    }
    let program = std::env::current_exe()?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release");
    let beside = program.ancestors().skip(1).take(2);
    let places: Vec<PathBuf> = beside
        .chain([workspace.as_path()])
        .map(|directory| directory.join(name))
        .collect();
    let found = places.iter().find(|path| path.is_file());
    found.cloned().with_context(|| {
        format!("{name} is not built; run `cargo build --release` or set {variable}")
    })
}

/// Copies the analyzer into a directory, with the libraries beside it that its agents load. The copy
/// keeps a build meanwhile from changing the measurement.
///
/// # Errors
/// It is not built, or the file system failed.
pub fn copy_analyzer(directory: &Path) -> Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let source = built("laggard", "LAGGARD_BIN")?;
    for library in ["liblaggard.so", "liblaggard_mpi.so"] {
        let beside = source.with_file_name(library);
        if beside.is_file() {
            fs::copy(beside, directory.join(library))?;
        }
    }
    let analyzer = directory.join("laggard");
    fs::copy(source, &analyzer)?;
    Ok(analyzer)
}

/// Calls `measure` with a copy of the analyzer below a directory, which is removed afterwards.
///
/// # Errors
/// The analyzer is not built, the file system failed, or what `measure` says.
pub fn with_analyzer<T>(directory: &Path, measure: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let directory = directory.join(format!("laggard.{}", std::process::id()));
    let measured = measure(&copy_analyzer(&directory)?);
    fs::remove_dir_all(&directory)?;
    measured
}

/// Bytes free for this user on the file system of a directory.
///
/// # Errors
/// What the system says.
pub fn free_bytes(directory: &Path) -> Result<u64> {
    let path = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes())?;
    let mut found = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: a terminated path and room for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error()).context(directory.display().to_string());
    }
    // SAFETY: zeroed, and filled in by statvfs.
    let found = unsafe { found.assume_init() };
    Ok(found.f_bavail * found.f_frsize)
}

/// Bytes of a file, or of all files in a directory and below; 0 if it does not exist.
///
/// # Errors
/// What the file system says.
pub fn bytes_below(path: &Path) -> Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata().map_or(0, |found| found.len()));
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        bytes += bytes_below(&entry?.path())?;
    }
    Ok(bytes)
}

/// Removes a file, or a directory with its content, if it exists.
///
/// # Errors
/// What the file system says.
pub fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)?;
    } else if path.exists() {
        fs::remove_file(path)?;
    }
    Ok(())
}
