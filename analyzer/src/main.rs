//! The `laggard` command.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod cli;
mod commands;

use std::process::ExitCode;

/// Exit code: the input could not be analysed.
const FAILED: u8 = 1;
/// Exit code: wrong usage.
const USAGE: u8 = 2;

/// With tens of thousands of ranks half of the time went into the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::parse_words(std::env::args_os()) {
        Ok(cli) => cli,
        Err(usage) => {
            if commands::is_head() {
                commands::print_usage(&usage);
            }
            let code = u8::try_from(usage.exit_code()).unwrap_or(USAGE);
            return ExitCode::from(code);
        }
    };
    match commands::execute(cli.command) {
        Ok(code) => code,
        Err(error) if commands::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            failure()
        }
    }
}

/// How memory is taken from the kernel and given back, in numbers of `mimalloc.h` that its
/// bindings do not name.
///
/// Rounds of the analysis free and need the same buffers again and again; giving them back in
/// between costs more than everything done with them. An arena that is committed as a whole is
/// cleared by the kernel in larger pieces than are needed.
extern "C" fn set_up_allocator() {
    const ARENA_EAGER_COMMIT: std::ffi::c_int = 4;
    const PURGE_DELAY_MS: std::ffi::c_int = 15;
    // SAFETY: both only write a number into the library's table of options, before anything
    // reads it.
    unsafe {
        libmimalloc_sys::mi_option_set(ARENA_EAGER_COMMIT, 0);
        libmimalloc_sys::mi_option_set(PURGE_DELAY_MS, 100);
    }
}

/// Before the first allocation, which comes before `main`: a section of functions that are
/// called at the start, those with a number before those without.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static SET_UP_ALLOCATOR: extern "C" fn() = set_up_allocator;

/// The head fails for all: a launcher kills the job at the first process that fails,
/// and with it, were that another agent, the head before it has said what is wrong.
fn failure() -> ExitCode {
    if commands::is_head() {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    }
}

/// The one place that prints errors: one line, by one agent.
fn complain(error: &anyhow::Error) {
    if commands::is_head() {
        commands::say(&line(error));
    }
}

/// The error and its causes in one line; causes that are in it already are not repeated.
fn line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn errors_are_one_line_that_says_things_once() {
        let error = anyhow!("b\nc").context("a");
        assert_eq!(line(&error), "a: b c");
        let error = anyhow!("no such file").context("x: no such file");
        assert_eq!(line(&error), "x: no such file");
    }

    #[test]
    fn closed_pipes_are_told_from_other_errors() {
        let of = |kind: std::io::ErrorKind| anyhow::Error::from(std::io::Error::from(kind));
        assert!(commands::is_broken_pipe(
            &of(std::io::ErrorKind::BrokenPipe).context("writing")
        ));
        assert!(!commands::is_broken_pipe(&of(std::io::ErrorKind::NotFound)));
    }
}
