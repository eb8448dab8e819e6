//! Runs programs with less memory than they want.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A control group with a limit of memory, page cache included.
pub struct Limit {
    group: PathBuf,
    /// File with the peak so far.
    peak: &'static str,
}

impl Limit {
    /// In either version of control groups; `None` where this user may create none.
    pub fn new(bytes: u64) -> Option<Limit> {
        let versions = [
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.max_usage_in_bytes",
            ),
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ];
        versions.into_iter().find_map(|(root, limit, peak)| {
            let name = format!("laggard-test-{}-{bytes}", std::process::id());
            let group = Path::new(root).join(name);
            fs::create_dir(&group).ok()?;
            let made = Limit { group, peak };
            fs::write(made.group.join(limit), bytes.to_string()).ok()?;
            Some(made)
        })
    }

    /// Peak of its processes, bytes.
    pub fn peak(&self) -> Option<u64> {
        let text = fs::read_to_string(self.group.join(self.peak)).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // Refused while a process is in it.
        let _ = fs::remove_dir(&self.group);
    }
}

/// The command within the limit: in a control group, else with a limit of its data segment.
pub fn limited(limit: Option<&Limit>, bytes: u64) -> Command {
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

/// Takes a directory's files out of the page cache, so that their reader pays for them. Returns
/// their bytes.
pub fn forget(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            bytes += forget(&path)?;
            continue;
        }
        let file = File::open(path)?;
        file.sync_all()?;
        bytes += file.metadata()?.len();
        // SAFETY: the file is ours and open; the call changes no memory of this process.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    Ok(bytes)
}
