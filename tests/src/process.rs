//! Runs commands with a timeout, so that tests cannot hang.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
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
    /// Whether the timeout ended it.
    pub timed_out: bool,
    /// Processor time of it and all processes that it waited for.
    pub processor: Duration,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Outcome {
    /// Whether it ended by itself with exit code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Fails unless the command succeeded.
    #[track_caller]
    pub fn expect_success(self) -> Outcome {
        assert!(self.success(), "failed:\n{self}");
        self
    }

    /// Its stderr, without a warning that mpirun prints on a busy machine: the agent that it
    /// started was faster than its setpgid.
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

/// A launcher of ranks. If it is dropped while it runs, since a test failed or its program hangs, it ends
/// its ranks.
#[derive(Debug)]
pub struct Launched(Child);

impl Launched {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn new(command: &mut Command) -> Launched {
        Launched(command.spawn().expect("a launcher"))
    }
}

impl Deref for Launched {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Launched {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // Best effort.
        if matches!(self.try_wait(), Ok(None)) {
            // SAFETY: sends a signal to a child that has not been waited for.
            unsafe { libc::kill(self.id() as libc::pid_t, libc::SIGTERM) };
            let _ = self.wait();
        }
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
            ..
        } = self;
        write!(
            f,
            "{command}\nexit code {code:?}, signal {signal:?}, timed out {timed_out}\n\
             stdout: {stdout}\nstderr: {stderr}"
        )
    }
}

/// Runs a command in a process group of its own, without input, its output in `log`.out and
/// `log`.err. After the timeout the whole group is ended.
///
/// # Panics
/// If the command cannot be started or its output cannot be kept.
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
    let child = command.spawn()?;
    let (End { status, processor }, timed_out) = wait(&child, timeout)?;
    let read =
        |path| Ok::<_, io::Error>(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    Ok(Outcome {
        command: format!("{command:?}"),
        code: if timed_out { None } else { status.code() },
        signal: status.signal(),
        timed_out,
        processor,
        stdout: read(&out)?,
        stderr: read(&err)?,
    })
}

struct End {
    status: ExitStatus,
    processor: Duration,
}

fn wait(child: &Child, timeout: Duration) -> io::Result<(End, bool)> {
    if let Some(end) = wait_until(child, Some(Instant::now() + timeout))? {
        return Ok((end, false));
    }
    // mpirun ends its ranks when it is asked to end, not when it is killed.
    let group = -(child.id() as libc::pid_t);
    for (signal, patience) in [(libc::SIGTERM, 3), (libc::SIGKILL, 3)] {
        // SAFETY: plain system call; the group is the child's, which is not yet reaped.
        unsafe { libc::kill(group, signal) };
        let deadline = Instant::now() + Duration::from_secs(patience);
        if let Some(end) = wait_until(child, Some(deadline))? {
            return Ok((end, true));
        }
    }
    let end = wait_until(child, None)?;
    Ok((end.expect("waited until its end"), true))
}

fn wait_until(child: &Child, deadline: Option<Instant>) -> io::Result<Option<End>> {
    loop {
        if let Some(end) = ended(child)? {
            return Ok(Some(end));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How it ended, if it did. Must not be called again after that.
fn ended(child: &Child) -> io::Result<Option<End>> {
    let mut status = 0;
    // SAFETY: a structure of numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is not yet reaped; both are written to.
    let pid = unsafe { libc::wait4(child.id() as i32, &mut status, libc::WNOHANG, &mut used) };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
    match pid {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Some(End {
            status: ExitStatus::from_raw(status),
            processor: time(used.ru_utime) + time(used.ru_stime),
        })),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// All steps of `make test` run, and failures are printed at the end: tests by name,
    /// executables that did not finish, and other steps.
    #[test]
    fn steps_go_on_and_tell_what_failed() {
        let scratch = crate::product::scratch().join("steps");
        fs::create_dir_all(&scratch).expect("a directory");
        let list = scratch.join("failed");
        let _ = fs::remove_file(&list);
        let step = |words: &[&str]| {
            let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut command = Command::new(tests.join("step.sh"));
            command.arg(&list).args(words);
            run(&mut command, Duration::from_secs(60), &scratch.join("step"))
        };
        let cargo = "echo '     Running tests/one.rs (target/one-1)' >&2\n\
            echo 'test first ... FAILED'\n\
            echo 'test second ... ok'\n\
            echo 'test result: FAILED. 1 passed; 1 failed'\n\
            echo '     Running unittests src/lib.rs (target/two-2)' >&2\n\
            echo 'test result: ok. 1 passed; 0 failed'\n\
            echo '     Running tests/three.rs (target/three-3)' >&2\n\
            exit 101";
        let told = step(&["tests", "sh", "-c", cargo]).expect_success().stdout;
        assert!(told.contains("test second ... ok\n"), "{told}");
        step(&["right", "true"]).expect_success();
        step(&["wrong", "false"]).expect_success();
        let end = step(&[]);
        assert_eq!(end.code, Some(1));
        let failed = "3 failed:\n    tests: tests/one.rs first\n    \
            tests: tests/three.rs did not run to its end\n    wrong\n";
        assert_eq!(end.stdout.trim_start(), failed);
        fs::write(&list, "").expect("written");
        assert_eq!(step(&["right", "true"]).code, Some(0));
        assert_eq!(step(&[]).code, Some(0));
    }

    /// A test that failed beside others but passes twice alone does not count. A test that is not
    /// found alone counts.
    #[test]
    fn steps_repeat_alone_what_failed_beside_others() {
        let scratch = crate::product::scratch().join("steps-alone");
        fs::create_dir_all(&scratch).expect("a directory");
        let list = scratch.join("failed");
        for file in ["failed", "failed.alone"] {
            let _ = fs::remove_file(scratch.join(file));
        }
        let step = |words: &[&str]| {
            let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
            let mut command = Command::new(tests.join("step.sh"));
            command.arg(&list).args(words);
            run(&mut command, Duration::from_secs(60), &scratch.join("step"))
        };
        let cargo = "echo '     Running tests/one.rs (target/one-1)' >&2\n\
            echo \"with $*\"\n\
            [ $# -gt 0 ] || echo 'test busy ... FAILED'\n\
            [ $# -gt 0 ] || echo 'test src/lib.rs - page (line 3) ... FAILED'\n\
            [ $# -eq 0 ] || echo 'test busy ... ok'\n\
            echo 'test wrong ... FAILED'\n\
            echo 'test result: FAILED.'\n\
            exit 101";
        let told = step(&["tests", "sh", "-c", cargo]).expect_success().stdout;
        let alone = "with --exact --test-threads=1 busy src/lib.rs wrong\n";
        assert_eq!(told.matches(alone).count(), 2, "{told}");
        let end = step(&[]);
        assert_eq!(end.code, Some(1));
        let said = "1 failed beside other tests and passed twice alone:\n    \
            tests: tests/one.rs busy\n\n2 failed:\n    tests: tests/one.rs src/lib.rs\n    \
            tests: tests/one.rs wrong\n";
        assert_eq!(end.stdout.trim_start(), said);
        fs::write(&list, "").expect("written");
        assert_eq!(step(&[]).code, Some(0));
    }

    #[test]
    fn the_time_of_what_a_command_waited_for_is_its_own() {
        let loops = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let scratch = crate::product::scratch();
        fs::create_dir_all(&scratch).expect("a directory");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sh -c '{loops}'; exit 3")]);
        let log = scratch.join("processor-time");
        let outcome = run(&mut command, Duration::from_secs(60), &log);
        assert_eq!(outcome.code, Some(3));
        assert!(outcome.processor > Duration::from_millis(20), "{outcome:?}");
    }
}
