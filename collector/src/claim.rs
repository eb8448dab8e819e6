//! Where the trace goes: one rank claims a directory for the run.

use std::ffi::c_void;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use laggard_trace::{FILE_EXTENSION, PRIVATE_DIRECTORY, PRIVATE_FILE, RUN_FILE};

use crate::constants::constants;
use crate::exports::real;
use crate::ffi::MPI_Comm;
use crate::hash::Identity;
use crate::log::{error, warning};
use crate::options::{Mode, Options};
use crate::presence;
use crate::program;

/// Identity of a run.
pub type RunId = [u8; 16];

/// The superuser.
const ROOT: libc::uid_t = 0;

/// Number of directory names tried.
const MAX_TRIES: u32 = 10_000;

/// Whether the job has several programs; some may not be recorded.
pub fn is_mixed_job() -> bool {
    let contexts = std::env::var("OMPI_NUM_APP_CTX");
    contexts.is_ok_and(|n| n.trim().parse::<u32>().is_ok_and(|n| n > 1))
}

/// Rank 0 claims the directory and tells the others. `None`: nothing is recorded.
pub fn together(
    options: &Options,
    comm: MPI_Comm,
    rank: i32,
    size: i32,
) -> Option<(PathBuf, RunId)> {
    let claimed = (rank == 0)
        .then(|| at_rank_0(options, random_id(), size))
        .flatten();
    let (mut path, mut run_id) = match claimed {
        Some((path, run_id)) => (path.into_os_string().into_vec(), run_id),
        None => (Vec::new(), RunId::default()),
    };
    let mut length = path.len() as u32;
    broadcast(comm, (&raw mut length).cast(), 4)?;
    broadcast(comm, run_id.as_mut_ptr().cast(), 16)?;
    path.resize(length as usize, 0);
    broadcast(comm, path.as_mut_ptr().cast(), length as i32)?;
    (length > 0).then(|| (PathBuf::from(std::ffi::OsString::from_vec(path)), run_id))
}

/// Broadcasts rank 0's interval between clock measurements.
pub fn agreed(comm: MPI_Comm, interval: Duration) -> Option<Duration> {
    let mut ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    broadcast(comm, (&raw mut ns).cast(), 8)?;
    Some(Duration::from_nanos(ns))
}

fn broadcast(comm: MPI_Comm, buffer: *mut c_void, bytes: i32) -> Option<()> {
    // SAFETY: `buffer` has `bytes` bytes on every rank.
    let result = unsafe { real::MPI_Bcast(buffer, bytes, constants().byte, 0, comm) };
    (result == crate::constants::SUCCESS).then_some(())
}

/// Claims the directory without a message, for a job in which some ranks are not recorded. All
/// ranks derive the run's identity from the job's; the first to arrive claims the directory.
pub fn alone(options: &Options, rank: i32, size: i32) -> Option<(PathBuf, RunId)> {
    if options.mode == Mode::Off {
        return None;
    }
    let run_id = job_id();
    match claim(&options.trace_dir, run_id, size, true) {
        Ok(path) => Some((path, run_id)),
        Err(problem) => {
            let place = options.trace_dir.display();
            error!("{place}: {problem}; rank {rank} is not recorded");
            None
        }
    }
}

fn at_rank_0(options: &Options, run_id: RunId, size: i32) -> Option<(PathBuf, RunId)> {
    if options.mode == Mode::Off {
        return None;
    }
    match claim(&options.trace_dir, run_id, size, false) {
        Ok(path) => Some((path, run_id)),
        Err(problem) => {
            let place = options.trace_dir.display();
            error!(
                "{place}: {problem}; nothing is recorded (LAGGARD_TRACE_DIR chooses another place)"
            );
            None
        }
    }
}

/// Finds a directory without a trace and claims it. Reports a name that differs from the wanted
/// one. `shared`: another process's claim with the same run id counts as ours, and has been
/// reported.
fn claim(wanted: &Path, run_id: RunId, size: i32, shared: bool) -> io::Result<PathBuf> {
    let wanted = std::path::absolute(wanted)?;
    for n in 0..MAX_TRIES {
        let mut name = wanted.clone().into_os_string();
        if n > 0 {
            name.push(format!(".{n}"));
        }
        let directory = PathBuf::from(name);
        make_directory(&directory)?;
        if shared && is_claimed_for(&directory, run_id) {
            return Ok(directory);
        }
        if holds_trace(&directory)? {
            continue;
        }
        match write_run_file(&directory, run_id, size) {
            Ok(()) => {
                if n > 0 {
                    let (wanted, taken) = (wanted.display(), directory.display());
                    warning!("{wanted} already holds a trace; this run goes to {taken}");
                }
                return Ok(directory);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if shared && is_claimed_for(&directory, run_id) {
                    return Ok(directory);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!(
        "{MAX_TRIES} traces are there already"
    )))
}

/// Makes a directory and its missing parents, for the user alone.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    if let Some(above) = directory.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(directory) {
        // An existing directory keeps the permissions that its owner chose.
        Err(_) if directory.is_dir() => refuse_foreign_link(directory),
        made => made,
    }
}

/// Refuses a link to a directory unless the user or root owns it: its owner decides where it
/// leads.
fn refuse_foreign_link(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    // SAFETY: a plain system call.
    let user = unsafe { libc::geteuid() };
    if found.is_symlink() && ![user, ROOT].contains(&found.uid()) {
        return Err(io::Error::other("a link that another user made"));
    }
    Ok(())
}

/// Creates a file for the user alone; fails if the name exists in any form, such as a link.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE_FILE);
    options.open(path)
}

fn holds_trace(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let is_location = Path::new(&name)
            .extension()
            .is_some_and(|e| e == FILE_EXTENSION);
        if is_location || name == RUN_FILE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the run file under another name and links it to its own. The file therefore appears
/// complete or not at all, and only the first link succeeds.
fn write_run_file(directory: &Path, run_id: RunId, size: i32) -> io::Result<()> {
    let path = directory.join(RUN_FILE);
    let draft = directory.join(format!(".{RUN_FILE}.{}", unique()));
    let text = run_file(run_id, size);
    let linked = create_private(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::hard_link(&draft, &path));
    // A draft that cannot be removed does no harm.
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // The file system has no hard links.
            create_private(&path)?.write_all(text.as_bytes())
        }
        other => other,
    }
}

fn is_claimed_for(directory: &Path, run_id: RunId) -> bool {
    let text = fs::read_to_string(directory.join(RUN_FILE));
    text.is_ok_and(|text| text.contains(&hex(run_id)))
}

fn hex(run_id: RunId) -> String {
    run_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn run_file(run_id: RunId, size: i32) -> String {
    let command = program::command_line();
    let words: Vec<String> = command
        .iter()
        .map(|word| json(&String::from_utf8_lossy(word)))
        .collect();
    let program = words.first().cloned().unwrap_or_else(|| json(""));
    let arguments = words.get(1..).unwrap_or(&[]).join(", ");
    format!(
        "{{\n  \"format\": 1,\n  \"run_id\": \"{}\",\n  \"program\": {program},\n  \
         \"arguments\": [{arguments}],\n  \"ranks\": {size},\n  \"mpi\": {},\n  \
         \"start_unix_ns\": {}\n}}\n",
        hex(run_id),
        json(&program::mpi_library()),
        crate::clock::unix_ns(),
    )
}

fn json(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Part of a name that no other process takes: process ids repeat on other hosts.
pub fn unique() -> String {
    hex(random_id())
}

fn random_id() -> RunId {
    let mut id = RunId::default();
    // SAFETY: `id` has 16 bytes.
    let got = unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) };
    if got != id.len() as isize {
        let seed = Identity::new(crate::clock::unix_ns()).with(u64::from(std::process::id()));
        id[..8].copy_from_slice(&seed.id().to_le_bytes());
        id[8..].copy_from_slice(&seed.with(1).id().to_le_bytes());
    }
    id
}

/// An identity that all processes of the job derive alike.
fn job_id() -> RunId {
    const NAMES: [&str; 6] = [
        "PMIX_NAMESPACE",
        "PMIX_ID",
        "OMPI_MCA_ess_base_jobid",
        "OMPI_MCA_orte_hnp_uri",
        "PMI_JOBID",
        "SLURM_STEP_ID",
    ];
    let mut identity = Identity::new(0x6a6f62);
    for name in NAMES {
        let value = std::env::var_os(name).unwrap_or_default();
        let mut bytes = value.as_bytes();
        if name == "PMIX_ID" {
            // The value is namespace.rank, and the rank differs.
            bytes = bytes
                .rsplitn(2, |&byte| byte == b'.')
                .last()
                .unwrap_or(bytes);
        }
        identity = identity.with_bytes(bytes);
    }
    let identity = identity.with_bytes(presence::job_name().unwrap_or_default().as_bytes());
    let mut id = RunId::default();
    id[..8].copy_from_slice(&identity.id().to_le_bytes());
    id[8..].copy_from_slice(&identity.with(1).id().to_le_bytes());
    id
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn json_strings_are_escaped() {
        assert_eq!(json("a\"b\\c\nd\u{e9}"), "\"a\\\"b\\\\c\\u000ad\u{e9}\"");
    }

    #[test]
    fn a_claimed_directory_is_left_alone() {
        let base = std::env::temp_dir().join(format!("laggard-claim-{}", std::process::id()));
        let wanted = base.join("trace");
        let first = claim(&wanted, [1; 16], 2, false).unwrap();
        assert_eq!(first, wanted);
        let second = claim(&wanted, [2; 16], 2, false).unwrap();
        assert_eq!(second, base.join("trace.1"));
        assert_eq!(claim(&wanted, [1; 16], 2, true).unwrap(), wanted);
        assert_eq!(claim(&wanted, [2; 16], 2, true).unwrap(), second);
        let third = claim(&wanted, [3; 16], 2, true).unwrap();
        assert_eq!(third, base.join("trace.2"));
        assert_eq!(fs::read_dir(&third).unwrap().count(), 1);
        // New directories are the user's alone; existing ones keep their mode.
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&third), mode(&third.join(RUN_FILE))), (0o700, 0o600));
        let shared = base.join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(claim(&shared, [4; 16], 2, false).unwrap(), shared);
        assert_eq!(mode(&shared), 0o750);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn links_of_others_are_not_followed() {
        let base = std::env::temp_dir().join(format!("laggard-link-{}", std::process::id()));
        let (target, link) = (base.join("target"), base.join("link"));
        fs::create_dir_all(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(claim(&link, [1; 16], 2, false).unwrap(), link);
        assert!(target.join(RUN_FILE).is_file());
        fs::remove_file(target.join(RUN_FILE)).unwrap();
        // Only root can give a link away.
        if std::os::unix::fs::lchown(&link, Some(1), None).is_ok() {
            let refused = claim(&link, [2; 16], 2, false).unwrap_err();
            assert_eq!(refused.to_string(), "a link that another user made");
            assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
        }
        fs::remove_dir_all(base).unwrap();
    }
}
