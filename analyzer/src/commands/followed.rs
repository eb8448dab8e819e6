//! `laggard run --serve`: a server that follows the program while it runs, and stays.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// The server, a process of its own: however it ends, the program goes on.
pub struct Server(Child);

impl Server {
    /// Starts one, for a trace that is not there yet; it may let pages steer the recording.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(trace: &Path, steers: bool) -> Result<Server> {
        let own = std::env::current_exe().context("cannot find where laggard itself is")?;
        let mut command = Command::new(own);
        command.arg("serve").arg(trace);
        command.args(["--follow", "--until-input-ends"]);
        command.args(steers.then_some("--steer"));
        // SAFETY: a plain system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // Whatever ends `laggard run` ends the server as Ctrl-C does.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGINT);
                Ok(())
            });
        }
        let child = command.stdin(Stdio::piped()).spawn();
        Ok(Server(child.context("the server cannot be started")?))
    }

    /// The program has ended, and left a trace. Waits until whoever looks at it has ended the server.
    pub fn stay(mut self) {
        drop(self.0.stdin.take());
        // Whatever became of it: the program is what counts.
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it has not ended, it waits for what will never come.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
