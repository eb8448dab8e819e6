//! `laggard write-pages`: manual pages and completions, for those who make packages.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::cli::{Cli, VERSION};

/// The command line without commands that are for nobody who types.
fn shown() -> Command {
    let all = Cli::command();
    let parts = all.get_subcommands().filter(|part| !part.is_hide_set());
    Command::new("laggard")
        .about(all.get_about().cloned().unwrap_or_default())
        .version(VERSION)
        .disable_help_subcommand(true)
        .subcommands(parts.cloned())
}

/// Writes a manual page for the command and one for each of its commands, and completions for
/// shells. All come from the table that `--help` is printed from.
pub fn write(directory: &Path) -> Result<ExitCode> {
    let mut command = shown();
    command.build();
    let put = |name: &str, bytes: &[u8]| {
        let file = directory.join(name);
        let written = laggard_files::replace(&file, bytes);
        written.with_context(|| format!("{}: cannot be written", file.display()))
    };
    for (shell, name) in [
        (Shell::Bash, "laggard.bash"),
        (Shell::Zsh, "_laggard"),
        (Shell::Fish, "laggard.fish"),
    ] {
        let mut script = Vec::new();
        generate(shell, &mut shown(), "laggard", &mut script);
        put(name, &script)?;
    }
    let page = |command: Command| -> Result<Vec<u8>> {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        Ok(page)
    };
    put("laggard.1", &page(command.clone())?)?;
    for part in command.get_subcommands() {
        let name = format!("laggard-{}", part.get_name());
        // As it is typed in its synopsis, as its page is named.
        let part = part.clone().display_name(&name);
        put(&format!("{name}.1"), &page(part)?)?;
    }
    Ok(ExitCode::SUCCESS)
}
