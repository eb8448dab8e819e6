//! The commands: each turns its options into calls of the library and into output.

mod analyze;
mod at_once;
mod baseline;
mod baseline_show;
mod call_text;
mod compare;
mod drawn;
mod dump;
mod export;
mod followed;
mod info;
mod launcher;
mod pages;
mod patterns;
mod preload;
mod program;
mod progress;
mod reports;
mod results;
mod run;
mod scale;
mod screen;
mod serve;
mod show;
mod sources;
mod steer;
mod traces;
mod whatif;

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::Command;

/// Exit code: the program waits for longer, or is slower, than the user allows.
const ABOVE: u8 = 3;

pub use screen::{is_broken_pipe, print_usage, say};

/// Does what was asked; the exit code is that of the process.
pub fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(options) => run::run(&options),
        Command::Analyze(options) => analyze::analyze(&options),
        Command::Baseline(options) => baseline::baseline(&options),
        Command::Show(options) => show::show(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Scale(options) => scale::scale(&options),
        Command::WhatIf(options) => whatif::what_if(&options),
        Command::Info(options) => info::info(&options),
        Command::Dump(options) => dump::dump(&options),
        Command::Serve(options) => serve::serve(&options),
        Command::Steer(options) => steer::steer(&options),
        Command::Export(options) => export::export(&options),
        Command::Patterns(options) => patterns::patterns(&options),
        Command::WritePages(options) => pages::write(&options.directory),
    }
}

/// Whether this process speaks for its job: it is rank 0, or there is no job.
pub fn is_head() -> bool {
    laggard_comm::launched_number().is_none_or(|number| number == 0)
}
