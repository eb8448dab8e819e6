//! A bar for what goes on, where somebody watches.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::screen;

/// A thousand steps are all.
const STEPS: u64 = 1000;
/// Times a second that it is drawn at most.
const RATE: u8 = 5;
/// How names of processes begin that start MPI programs.
const LAUNCHERS: &[&str] = &[
    "mpirun", "mpiexec", "orterun", "orted", "oshrun", "shmemrun", "prte", "hydra",
];

/// A bar that tells what share is done, of what, and how long the rest takes.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar, if it is wanted and there is a terminal: that of the launcher, which gives its
    /// processes pipes.
    pub fn new(wanted: bool) -> Bar {
        let target = match wanted.then(terminal).flatten() {
            Some(terminal) => ProgressDrawTarget::term(terminal, RATE),
            None => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} % {eta:>4} {msg}") {
            bar.set_style(style);
        }
        Bar(bar)
    }

    /// Shows that this share is done.
    pub fn show(&mut self, share: f64, what: &str) {
        self.0.set_position((share * STEPS as f64) as u64);
        self.0.set_message(what.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The terminal that somebody watches.
fn terminal() -> Option<Term> {
    if screen::shows_progress() {
        return Some(Term::stderr());
    }
    let path = format!("/proc/{}/fd/2", launcher()?);
    let target = fs::read_link(&path).ok()?;
    let is_terminal = target.starts_with("/dev/pts") || is_console(&target);
    let open = |writes: bool| -> Option<File> {
        let mut options = OpenOptions::new();
        #[expect(clippy::disallowed_methods, reason = "a terminal, which is no file")]
        let opened = options.read(!writes).write(writes).open(&target);
        opened.ok()
    };
    if !is_terminal {
        return None;
    }
    Some(Term::read_write_pair(open(false)?, open(true)?))
}

/// Whether this is a terminal without windows.
fn is_console(path: &Path) -> bool {
    path.to_string_lossy().starts_with("/dev/tty")
}

/// The outermost of the processes above this one that start MPI programs, one after the other.
fn launcher() -> Option<u32> {
    let mut found = None;
    let mut process = parent(std::process::id())?;
    while is_launcher(process) {
        found = Some(process);
        process = parent(process)?;
    }
    found
}

/// What the system tells of a process.
fn told(process: u32, what: &str) -> Option<String> {
    let path = format!("/proc/{process}/{what}");
    let text = laggard_files::read(path.as_ref(), 1 << 16).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn is_launcher(process: u32) -> bool {
    let name = told(process, "comm").unwrap_or_default();
    LAUNCHERS.iter().any(|launcher| name.starts_with(launcher))
}

fn parent(process: u32) -> Option<u32> {
    let status = told(process, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line?.trim().parse().ok().filter(|&parent| parent > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_by_their_names() {
        let own = std::process::id();
        let above = std::os::unix::process::parent_id();
        assert_eq!(parent(own), Some(above).filter(|&parent| parent > 1));
        assert!(!is_launcher(own));
        assert_eq!(parent(u32::MAX), None);
    }
}
