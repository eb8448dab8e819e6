//! The machine and the software that figures depend on.

use std::fs;
use std::process::Command;

/// Some lines for a file of raw numbers.
pub fn description() -> String {
    let mut text = String::new();
    let lines = [
        ("processor", processor()),
        (
            "cores",
            std::thread::available_parallelism()
                .map_or(0, usize::from)
                .to_string(),
        ),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("mpi", first_line("mpirun", &["--version"])),
        ("eztrace", installed_version("eztrace")),
        ("compiler", first_line("mpicc", &["--version"])),
        ("laggard", revision()),
        ("load", read("/proc/loadavg")),
    ];
    for (name, value) in lines {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn processor() -> String {
    let text = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    match (field("cpu family"), field("model\t")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name,
    }
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned));
    line.unwrap_or_else(|| "none".to_owned())
}

fn installed_version(package: &str) -> String {
    match first_line("dpkg-query", &["-W", "-f", "${Version}\n", package]) {
        version if version.is_empty() => "none".to_owned(),
        version => version,
    }
}

fn revision() -> String {
    let directory = env!("CARGO_MANIFEST_DIR");
    first_line("git", &["-C", directory, "describe", "--always", "--dirty"])
}
