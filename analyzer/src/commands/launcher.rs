//! How a command starts an MPI program, and how to hand it environment variables.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Words that start MPI programs.
const LAUNCHERS: &[&str] = &[
    "mpirun", "mpiexec", "orterun", "prterun", "oshrun", "shmemrun",
];
/// Commands that may stand before them.
const PREFIXES: &[&str] = &[
    "env", "time", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "numactl", "taskset",
    "sudo", "strace", "perf",
];

/// A way to give the program's processes a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Open MPI: `-x NAME=VALUE`, for each program of the job by itself.
    OpenMpi,
    /// MPICH, Intel MPI and others with Hydra: `-genv NAME VALUE`.
    Hydra,
    /// srun and everything else: its own environment is handed on.
    Environment,
}

/// What is started.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The words.
    pub command: Vec<OsString>,
    /// Variables of the started process itself.
    pub environment: Vec<(&'static str, OsString)>,
}

/// Variable that names libraries to load before all others.
const PRELOAD: &str = "LD_PRELOAD";

/// Position of the launcher in the command, if there is one.
pub fn position(command: &[OsString]) -> Option<usize> {
    let base = |word: &OsString| {
        let name = Path::new(word)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.split('.').next().unwrap_or_default().to_owned()
    };
    let is_launcher = |word: &OsString| LAUNCHERS.contains(&base(word).as_str());
    let first = command.first()?;
    if is_launcher(first) {
        return Some(0);
    }
    let is_prefix = PREFIXES.contains(&base(first).as_str());
    command.iter().position(is_launcher).filter(|_| is_prefix)
}

/// Which MPI a launcher belongs to: what its `--version` says.
pub fn ask(launcher: &OsStr) -> Launcher {
    let output = Command::new(launcher).arg("--version").output();
    let text = output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    });
    of_version(&text)
}

fn of_version(text: &str) -> Launcher {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&[
        "Open MPI",
        "OpenRTE",
        "PRRTE",
        "prte",
        "Open SHMEM",
        "OpenSHMEM",
    ]) {
        Launcher::OpenMpi
    } else if says(&["HYDRA", "Hydra", "MPICH", "Intel(R) MPI", "MVAPICH"]) {
        Launcher::Hydra
    } else {
        Launcher::Environment
    }
}

/// Plans the start of `command` with `library` preloaded into the program and
/// `settings` in its environment. `at` is where the launcher stands; `inherited` is
/// the LD_PRELOAD that is set already.
pub fn plan(
    command: &[OsString],
    launcher: Option<(usize, Launcher)>,
    library: &OsStr,
    inherited: Option<&OsStr>,
    settings: &[(&'static str, OsString)],
) -> Plan {
    let preload = |more: Option<&OsStr>| {
        let mut value = library.to_owned();
        if let Some(more) = more.filter(|more| !more.is_empty()) {
            value.push(":");
            value.push(more);
        }
        value
    };
    match launcher {
        Some((at, Launcher::OpenMpi)) => Plan {
            command: open_mpi(command, at, inherited, settings, &preload),
            environment: Vec::new(),
        },
        Some((at, Launcher::Hydra)) => Plan {
            command: hydra(command, at, inherited, settings, &preload),
            environment: Vec::new(),
        },
        _ => {
            let mut environment = settings.to_vec();
            environment.push((PRELOAD, preload(inherited)));
            Plan {
                command: command.to_vec(),
                environment,
            }
        }
    }
}

fn assignment(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

/// `-x` counts for one program of the job only: those after a `:` get it again.
fn open_mpi(
    command: &[OsString],
    at: usize,
    inherited: Option<&OsStr>,
    settings: &[(&'static str, OsString)],
    preload: &dyn Fn(Option<&OsStr>) -> OsString,
) -> Vec<OsString> {
    let (before, job) = command.split_at(at + 1);
    let mut words = before.to_vec();
    for (number, program) in job.split(|word| word == ":").enumerate() {
        if number > 0 {
            words.push(":".into());
        }
        for (name, value) in settings {
            words.extend(["-x".into(), assignment(name, value)]);
        }
        let mut rest = program.to_vec();
        let own = rest.windows(2).position(|pair| {
            pair[0] == "-x" && (pair[1] == PRELOAD || begins(&pair[1], "LD_PRELOAD="))
        });
        match own {
            Some(at) => {
                let value = rest[at + 1].to_string_lossy().into_owned();
                let value = value.strip_prefix("LD_PRELOAD=").map(OsString::from);
                let value = preload(value.as_deref().or(inherited));
                rest[at + 1] = assignment(PRELOAD, &value);
            }
            None => words.extend(["-x".into(), assignment(PRELOAD, &preload(inherited))]),
        }
        words.extend(rest);
    }
    words
}

/// `-genv` counts for all programs of the job.
fn hydra(
    command: &[OsString],
    at: usize,
    inherited: Option<&OsStr>,
    settings: &[(&'static str, OsString)],
    preload: &dyn Fn(Option<&OsStr>) -> OsString,
) -> Vec<OsString> {
    let (before, job) = command.split_at(at + 1);
    let mut words = before.to_vec();
    for (name, value) in settings {
        words.extend(["-genv".into(), (*name).into(), value.clone()]);
    }
    let mut rest = job.to_vec();
    let mut is_set = false;
    for at in 0..rest.len().saturating_sub(2) {
        if (rest[at] == "-genv" || rest[at] == "-env") && rest[at + 1] == PRELOAD {
            rest[at + 2] = preload(Some(&rest[at + 2].clone()));
            is_set |= rest[at] == "-genv";
        }
    }
    if !is_set {
        words.extend(["-genv".into(), PRELOAD.into(), preload(inherited)]);
    }
    words.extend(rest);
    words
}

fn begins(word: &OsStr, start: &str) -> bool {
    word.as_encoded_bytes().starts_with(start.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn planned(text: &str, launcher: Launcher, inherited: Option<&str>) -> String {
        let command = words(text);
        let launcher = position(&command).map(|at| (at, launcher));
        let settings = [("LAGGARD_TRACE_DIR", OsString::from("/t"))];
        let plan = plan(
            &command,
            launcher,
            "/l.so".as_ref(),
            inherited.map(OsStr::new),
            &settings,
        );
        let environment = plan
            .environment
            .iter()
            .map(|(name, value)| assignment(name, value));
        let all: Vec<OsString> = environment.chain(plan.command).collect();
        all.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn launchers_are_found_where_they_may_stand() {
        let at = |text: &str| position(&words(text));
        assert_eq!(at("mpirun -n 4 ./a"), Some(0));
        assert_eq!(at("/usr/bin/mpiexec.hydra -n 4 ./a"), Some(0));
        assert_eq!(at("timeout 60 env A=1 mpirun.openmpi ./a"), Some(4));
        assert_eq!(at("srun -n 4 ./a"), None);
        assert_eq!(at("./a mpirun"), None);
        assert_eq!(at(""), None);
    }

    #[test]
    fn versions_tell_the_mpi() {
        assert_eq!(of_version("mpirun (Open MPI) 4.1.4\n"), Launcher::OpenMpi);
        assert_eq!(
            of_version("HYDRA build details:\n  Version: 4.0.2"),
            Launcher::Hydra
        );
        assert_eq!(
            of_version("Intel(R) MPI Library for Linux"),
            Launcher::Hydra
        );
        assert_eq!(of_version(""), Launcher::Environment);
        assert_eq!(ask("/nonexistent/mpirun".as_ref()), Launcher::Environment);
    }

    #[test]
    fn open_mpi_gets_x_options() {
        assert_eq!(
            planned("mpirun -n 4 ./a b", Launcher::OpenMpi, None),
            "mpirun -x LAGGARD_TRACE_DIR=/t -x LD_PRELOAD=/l.so -n 4 ./a b"
        );
    }

    #[test]
    fn open_mpi_gets_them_for_each_program() {
        assert_eq!(
            planned(
                "mpirun -n 1 ./a : -n 2 ./b",
                Launcher::OpenMpi,
                Some("/m.so")
            ),
            "mpirun -x LAGGARD_TRACE_DIR=/t -x LD_PRELOAD=/l.so:/m.so -n 1 ./a \
             : -x LAGGARD_TRACE_DIR=/t -x LD_PRELOAD=/l.so:/m.so -n 2 ./b"
        );
    }

    #[test]
    fn what_the_user_preloads_stays() {
        assert_eq!(
            planned(
                "mpirun -x LD_PRELOAD=/m.so ./a",
                Launcher::OpenMpi,
                Some("/n.so")
            ),
            "mpirun -x LAGGARD_TRACE_DIR=/t -x LD_PRELOAD=/l.so:/m.so ./a"
        );
        assert_eq!(
            planned("mpirun -x LD_PRELOAD ./a", Launcher::OpenMpi, Some("/n.so")),
            "mpirun -x LAGGARD_TRACE_DIR=/t -x LD_PRELOAD=/l.so:/n.so ./a"
        );
        assert_eq!(
            planned("mpiexec -genv LD_PRELOAD /m.so ./a", Launcher::Hydra, None),
            "mpiexec -genv LAGGARD_TRACE_DIR /t -genv LD_PRELOAD /l.so:/m.so ./a"
        );
        assert_eq!(
            planned(
                "mpiexec -n 1 -env LD_PRELOAD /m.so ./a : ./b",
                Launcher::Hydra,
                None
            ),
            "mpiexec -genv LAGGARD_TRACE_DIR /t -genv LD_PRELOAD /l.so \
             -n 1 -env LD_PRELOAD /l.so:/m.so ./a : ./b"
        );
    }

    #[test]
    fn everything_else_gets_the_environment() {
        assert_eq!(
            planned("srun -n 4 ./a", Launcher::Environment, Some("/m.so")),
            "LAGGARD_TRACE_DIR=/t LD_PRELOAD=/l.so:/m.so srun -n 4 ./a"
        );
    }
}
