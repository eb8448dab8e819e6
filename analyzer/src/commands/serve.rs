//! `laggard serve`: a run to look around in, with a browser.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use laggard_comm::{self as comm, Job, MpiJob, signals};
use laggard_engine::events::Events;
use laggard_overlay::tcp::{self, Host, Meeting};
use laggard_overlay::{LinkJob, Linked, link, mpi};
use laggard_serve::Share;
use laggard_serve::server::{self, Ended, Options};

use super::{export, screen, traces};
use crate::cli::Serve;

/// Answers the pages of browsers until it is stopped.
pub fn serve(options: &Serve) -> Result<ExitCode> {
    let threads = match (options.threads, options.agents, &options.meet) {
        (Some(threads), ..) => Some(threads.into()),
        (None, Some(agents), None) => Some((comm::cores() / usize::from(agents)).max(1)),
        (None, ..) => None,
    };
    if let Some(threads) = threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global()?;
    }
    if comm::launched() > 1 {
        if options.agents.is_some() || options.join.is_some() {
            bail!("the processes of mpirun are the agents: leave --agents and --join out");
        }
        let job = MpiJob::new(0, || Ok(comm::library::load()?.1))?;
        let share = share(options, &job)?;
        mpi::run(&job, |linked| {
            answer(options, (share, linked), (&server::runtime()?, None))
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = server::runtime()?;
    let ended = Ended::listen(&runtime);
    let (linked, _agents) = match (&options.join, options.agents.unwrap_or(1)) {
        (Some(file), _) => {
            let meeting = meeting(file)?;
            let joined = async {
                tokio::select! {
                    joined = tcp::join(&meeting) => joined,
                    () = ended.clone().wait() => bail!("ended before it had joined"),
                }
            };
            (runtime.block_on(joined)?, Vec::new())
        }
        (None, 1) => {
            let alone = link::threads(1).pop().context("one agent")?;
            (alone, Vec::new())
        }
        (None, agents) => runtime.block_on(gather(options, agents.into(), &ended))?,
    };
    let job = LinkJob::new(linked);
    // Nothing is there yet that has to be put away.
    let asked = ended.clone();
    let ends = runtime.spawn(async {
        asked.wait().await;
        std::process::exit(1);
    });
    let share = share(options, &job)?;
    if job.agent() == 0 {
        ends.abort();
    }
    answer(options, (share, job.into_linked()), (&runtime, Some(ended)))?;
    // Nobody waits for what is still being worked on.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// What this agent has of the trace. Collective.
fn share(options: &Serve, job: &dyn Job) -> Result<Share> {
    let is_head = job.agent() == 0;
    let trace = comm::agree(job, traces::meant(options.directory.as_deref()))?;
    let events = Events::open_share(job, &trace)?;
    if is_head {
        export::note(&events);
    }
    let found = match is_head {
        true => export::found(options.report.as_deref(), options.quiet, &trace, &events),
        false => Ok(None),
    };
    let mut report = comm::agree(job, found)?;
    let mut has = [u64::from(report.is_some())];
    job.reduce_max(&mut has);
    if has == [0] {
        report = export::analyzed(job, &trace)?;
    }
    let share = Share::new(job, events, report, &trace)?;
    if is_head && share.kept.is_none() && !options.quiet {
        screen::say("note: the index cannot be kept: it is made anew each time");
    }
    // A trace that is changed meanwhile must not end what others look at.
    signals::outlive_files();
    Ok(share)
}

/// Serves at the head; works for it elsewhere.
fn answer(
    options: &Serve,
    (share, linked): (Share, Linked),
    (runtime, ended): (&tokio::runtime::Runtime, Option<Ended>),
) -> Result<()> {
    if linked.link.agent() != 0 {
        server::work(runtime, share, linked);
        return Ok(());
    }
    let wait = u64::from(options.wait);
    let served = Options {
        port: options.port,
        socket: options.socket.clone(),
        idle: (options.idle > 0.0).then(|| Duration::from_secs_f64(60.0 * options.idle)),
        fan_out: options.fan_out.into(),
        wait: (wait > 0).then(|| Duration::from_secs(wait)),
        ended: ended.unwrap_or_else(|| Ended::listen(runtime)),
    };
    server::serve(runtime, (share, linked), &served, |address| {
        screen::print(&format!("{address}\n"))?;
        if !options.quiet {
            screen::say("open this address in a browser; Ctrl-C ends");
        }
        Ok(())
    })
}

/// The file of a server that this agent joins.
fn meeting(file: &Path) -> Result<Meeting> {
    if file.as_os_str() != "-" {
        return Meeting::read(file);
    }
    let mut text = String::new();
    std::io::stdin()
        .take(tcp::MEETING)
        .read_to_string(&mut text)?;
    Meeting::parse(&text).context("the input is no file of laggard serve --meet")
}

/// Agents that this process has started, which end with it.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It has ended, as a rule.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns when one of these has ended.
async fn any_ends(started: &mut [Started]) {
    let mut has_ended = || {
        let mut ended = started.iter_mut().map(|agent| agent.0.try_wait());
        ended.any(|ended| !matches!(ended, Ok(None)))
    };
    while !has_ended() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The file of a meeting, until all are there.
struct Placed(PathBuf);

impl Drop for Placed {
    fn drop(&mut self) {
        // Best effort: its key is of no use any more.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits for so many agents in all: those that join, else processes of this machine, which it starts.
async fn gather(options: &Serve, agents: usize, ended: &Ended) -> Result<(Linked, Vec<Started>)> {
    let Some(file) = &options.meet else {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let host = Host::listen(local, "127.0.0.1").await?;
        let meeting = host.meeting().text();
        let start = |_| start(options, &meeting);
        let mut started = (1..agents).map(start).collect::<Result<Vec<_>>>()?;
        let gathered = tokio::select! {
            gathered = host.gather(agents, |_| ()) => gathered?,
            () = any_ends(&mut started) => bail!("an agent has ended before all were there"),
            () = ended.clone().wait() => bail!("ended before all agents were there"),
        };
        return Ok((gathered, started));
    };
    if laggard_files::exists(file) {
        let file = file.display();
        bail!("{file} exists: choose another name, or remove it");
    }
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let host = Host::listen(any, &comm::host()).await?;
    let written =
        server::private(|| laggard_files::replace(file, host.meeting().text().as_bytes()));
    written.with_context(|| format!("{} cannot be written", file.display()))?;
    let _placed = Placed(file.clone());
    if !options.quiet {
        let others = agents - 1;
        screen::say(&format!(
            "waiting for {others} more: laggard serve DIR --join {}",
            file.display()
        ));
    }
    let came = |count| {
        if !options.quiet {
            screen::say(&format!("{count} of {agents} agents are there"));
        }
    };
    tokio::select! {
        gathered = host.gather(agents, came) => Ok((gathered?, Vec::new())),
        () = ended.clone().wait() => bail!("ended before all agents were there"),
    }
}

/// Starts an agent on this machine.
fn start(options: &Serve, meeting: &str) -> Result<Started> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").args(&options.directory);
    command.args(["--join", "-", "--quiet", "--threads"]);
    command.arg(rayon::current_num_threads().to_string());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut started = Started(child.context("an agent cannot be started")?);
    if let Some(mut input) = started.0.stdin.take() {
        input.write_all(meeting.as_bytes())?;
    }
    Ok(started)
}
