//! What the output is: a terminal of some width, or not.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;

use laggard_files::{is_steering, printable};
use laggard_report::{RenderOptions, Report, render_text};

/// Columns where neither a terminal nor `COLUMNS` says.
const DEFAULT_WIDTH: usize = 100;

/// Standard output, buffered. Errors come back to the caller, a closed pipe among them.
pub fn output() -> Screen {
    Screen {
        out: BufWriter::with_capacity(64 * 1024, io::stdout().lock()),
        is_colorful: is_colorful(),
    }
}

/// Standard output for text: what files and arguments say does not steer the terminal. To be
/// written to in whole texts.
pub struct Screen {
    out: BufWriter<StdoutLock<'static>>,
    is_colorful: bool,
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(&harmless(bytes, self.is_colorful))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text of lines, whose only escape sequences are colours, if any are wanted.
fn harmless(bytes: &[u8], is_colorful: bool) -> Cow<'_, [u8]> {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return Cow::Borrowed(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(letter) = rest.chars().next() {
        let colour = if is_colorful { colour(rest) } else { "" };
        let taken = colour.len().max(letter.len_utf8());
        match letter {
            _ if !colour.is_empty() => clean.push_str(colour),
            '\n' | '\t' => clean.push(letter),
            letter if is_steering(letter) => clean.push('\u{fffd}'),
            letter => clean.push(letter),
        }
        rest = &rest[taken..];
    }
    Cow::Owned(clean.into_bytes())
}

/// The escape sequence for a colour that a text begins with, or "".
fn colour(text: &str) -> &str {
    let Some(parameters) = text.strip_prefix("\x1b[") else {
        return "";
    };
    let is_parameter = |letter: char| letter.is_ascii_digit() || letter == ';';
    let end = parameters.find(|letter| !is_parameter(letter));
    match end.filter(|&end| parameters[end..].starts_with('m')) {
        Some(end) => &text[..end + 3],
        None => "",
    }
}

/// Writes a text to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = output();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Whether the reader of the output has gone, as `head` does.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Writes JSON to standard output: what would steer a terminal, which is in strings only, as `\u…`.
pub fn print_json(text: &str) -> io::Result<()> {
    let mut out = output();
    let mut rest = text;
    let is_odd = |letter: char| letter != '\n' && is_steering(letter);
    while let Some(at) = rest.find(is_odd) {
        out.write_all(&rest.as_bytes()[..at])?;
        let mut letters = rest[at..].chars();
        let letter = letters.next().map_or(0, u32::from);
        write!(out, "\\u{letter:04x}")?;
        rest = letters.as_str();
    }
    out.write_all(rest.as_bytes())?;
    out.flush()
}

/// Says something in one line on stderr.
pub fn say(text: &str) {
    // A closed stderr must not change the exit code.
    let _ = writeln!(io::stderr(), "laggard: {}", printable(text));
}

/// Prints what clap says of the command line: help, or what is wrong with it.
pub fn print_usage(usage: &clap::Error) {
    // Nobody may be listening any more.
    let _ = match usage.use_stderr() {
        false => usage.print(),
        true => {
            let is_colorful = io::stderr().is_terminal();
            let text = match is_colorful {
                true => usage.render().ansi().to_string(),
                false => usage.render().to_string(),
            };
            io::stderr().write_all(&harmless(text.as_bytes(), is_colorful))
        }
    };
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
    io::stdout().is_terminal() && !laggard_comm::launched_by_mpi()
}

/// Whether a progress bar on stderr has somebody to watch it.
pub fn shows_progress() -> bool {
    io::stderr().is_terminal() && !laggard_comm::launched_by_mpi()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_reach_the_terminal() {
        let of = |text: &str, colours| {
            let clean = harmless(text.as_bytes(), colours).into_owned();
            String::from_utf8(clean).unwrap()
        };
        let text = "\x1b[1;31mred\x1b[0m\x1b[2J\x1b]0;title\x07\u{9b}\u{202e}\tµ\n";
        let odd = "\u{fffd}[2J\u{fffd}]0;title\u{fffd}\u{fffd}\u{fffd}\tµ\n";
        assert_eq!(of(text, true), format!("\x1b[1;31mred\x1b[0m{odd}"));
        assert_eq!(
            of(text, false),
            format!("\u{fffd}[1;31mred\u{fffd}[0m{odd}")
        );
        assert_eq!(of("\x1b[", true), "\u{fffd}[");
        assert_eq!(of("\x1b", true), "\u{fffd}");
    }
}
