//! Runs commands that cannot hang the tests.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How a command ended.
#[derive(Debug)]
pub struct Outcome {
    /// The command, for messages.
    pub command: String,
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it had to be ended.
    pub timed_out: bool,
    /// What it wrote.
    pub stdout: String,
    /// What it wrote there.
    pub stderr: String,
}

impl Outcome {
    /// Whether it ended by itself with exit code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// The outcome of a command that must not fail.
    #[track_caller]
    pub fn expect_success(self) -> Outcome {
        assert!(self.success(), "failed:\n{self}");
        self
    }

    /// What it said on stderr, but for a warning that mpirun gives on a busy machine: the agent
    /// that it started was faster than its setpgid.
    pub fn messages(&self) -> String {
        let is_about_race = |line: &&str| line.contains("plm:rsh: Warning: setpgid(");
        let lines = self.stderr.lines().filter(|line| !is_about_race(line));
        lines.collect::<Vec<&str>>().join("\n")
    }

    /// Panics if the command hung or a Rust panic ended any of its processes.
    #[track_caller]
    pub fn expect_orderly(self) -> Outcome {
        let panicked = self.stderr.contains("panicked at") || self.stdout.contains("panicked at");
        assert!(!self.timed_out, "hung:\n{self}");
        assert!(!panicked, "panicked:\n{self}");
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome {
            command,
            code,
            signal,
            timed_out,
            stdout,
            stderr,
        } = self;
        write!(
            f,
            "{command}\nexit code {code:?}, signal {signal:?}, timed out {timed_out}\n\
             stdout: {stdout}\nstderr: {stderr}"
        )
    }
}

/// Runs a command in a process group of its own, without an input, its output in
/// `log`.out and `log`.err. After the timeout the whole group is ended.
///
/// # Panics
/// If the command cannot be started or its output not be kept.
#[track_caller]
pub fn run(command: &mut Command, timeout: Duration, log: &Path) -> Outcome {
    let text = format!("{command:?}");
    match try_run(command, timeout, log) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn try_run(command: &mut Command, timeout: Duration, log: &Path) -> io::Result<Outcome> {
    let (out, err) = (log.with_extension("out"), log.with_extension("err"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .process_group(0);
    // SAFETY: setrlimit is async-signal-safe and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    let (status, timed_out) = wait(&mut child, timeout)?;
    let read =
        |path| Ok::<_, io::Error>(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    Ok(Outcome {
        command: format!("{command:?}"),
        code: if timed_out { None } else { status.code() },
        signal: status.signal(),
        timed_out,
        stdout: read(&out)?,
        stderr: read(&err)?,
    })
}

fn wait(child: &mut Child, timeout: Duration) -> io::Result<(ExitStatus, bool)> {
    if let Some(status) = wait_until(child, Instant::now() + timeout)? {
        return Ok((status, false));
    }
    // mpirun ends its ranks when it is asked to end, not when it is killed.
    let group = -(child.id() as libc::pid_t);
    for (signal, patience) in [(libc::SIGTERM, 3), (libc::SIGKILL, 3)] {
        // SAFETY: plain system call; the group is the child's, which is not yet reaped.
        unsafe { libc::kill(group, signal) };
        let deadline = Instant::now() + Duration::from_secs(patience);
        if let Some(status) = wait_until(child, deadline)? {
            return Ok((status, true));
        }
    }
    Ok((child.wait()?, true))
}

fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
