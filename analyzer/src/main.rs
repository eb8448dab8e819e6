//! The `laggard` command.

mod cli;
mod commands;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

/// Exit code: the input could not be analysed.
const FAILED: u8 = 1;
/// Exit code: wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            if commands::is_head() {
                // Nobody may be listening any more.
                let _ = usage.print();
            }
            let code = u8::try_from(usage.exit_code()).unwrap_or(USAGE);
            return ExitCode::from(code);
        }
    };
    match commands::execute(cli.command) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// The one place that prints errors: one line, by one agent.
fn complain(error: &anyhow::Error) {
    if commands::is_head() {
        let line = format!("{error:#}").replace(['\n', '\r'], " ");
        let _ = writeln!(std::io::stderr(), "laggard: {line}");
    }
}

/// Whether the reader of the output has gone, as `head` does.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
