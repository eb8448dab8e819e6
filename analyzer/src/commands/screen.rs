//! What the output is: a terminal of some width, or not.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;

use laggard_report::{RenderOptions, Report, render_text};

/// Columns where neither a terminal nor `COLUMNS` says.
const DEFAULT_WIDTH: usize = 100;

/// Standard output, buffered. Errors come back to the caller, a closed pipe among them.
pub fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// Writes a text to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = output();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a report for people to standard output; `file` is where it is kept.
pub fn print_report(report: &Report, top: usize, file: &Path) -> io::Result<()> {
    let options = RenderOptions {
        top,
        file: file.to_string_lossy().into_owned(),
        color: is_colorful(),
        width: width(),
    };
    print(&render_text(report, &options))
}

/// Whether somebody watches standard output. Open MPI gives every process a terminal
/// of its own, also where mpirun itself writes into a pipe.
fn is_watched() -> bool {
    io::stdout().is_terminal() && !laggard::comm::launched_by_mpi()
}

/// Whether a progress bar on stderr has somebody to watch it.
pub fn shows_progress() -> bool {
    io::stderr().is_terminal() && !laggard::comm::launched_by_mpi()
}

/// Whether standard output understands colours.
pub fn is_colorful() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    is_watched() && !unwanted && !dumb
}

/// Columns of standard output.
pub fn width() -> usize {
    // SAFETY: all zeros are a window size.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` is valid for writing.
    let asked = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    let columns = match usize::from(size.ws_col) {
        terminal if asked == 0 && terminal > 0 => Some(terminal),
        _ => std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .filter(|&columns| columns > 0),
    };
    columns.unwrap_or(DEFAULT_WIDTH)
}
