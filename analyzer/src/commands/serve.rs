//! `laggard serve`: a run to look around in, with a browser.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use laggard_comm::{self as comm, Job, MpiJob, signals};
use laggard_engine::events::Events;
use laggard_overlay::tcp::{self, Host, Meeting};
use laggard_overlay::{LinkJob, Linked, link, mpi};
use laggard_report::Report;
use laggard_serve::follow::{self, Extent, Follow, Growing};
use laggard_serve::server::{self, Ended, Options};
use laggard_serve::{Limits, Share, Shares};

use super::{export, reports, screen, traces};
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
        let begun = begin(options, &job)?;
        mpi::run(&job, |linked| {
            answer(options, (begun, linked), (&server::runtime()?, None))
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
    let begun = begin(options, &job)?;
    if job.agent() == 0 {
        ends.abort();
    }
    answer(options, (begun, job.into_linked()), (&runtime, Some(ended)))?;
    // Nobody waits for what is still being worked on.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// What this agent answers from, and how it goes on if it follows a program.
type Begun = (Arc<Shares>, Option<Follow>);

/// Opens the trace, or what there is of it. Collective.
fn begin(options: &Serve, job: &dyn Job) -> Result<Begun> {
    // An index is made in many short pieces of work: this thread takes part, so that it need not hand them over
    // and wait for them.
    let _threads = rayon::ThreadPoolBuilder::new()
        .num_threads(rayon::current_num_threads())
        .use_current_thread()
        .build()?;
    if !options.follow {
        return Ok((Arc::new(Shares::new(share(options, job)?)), None));
    }
    let mut follow = Follow {
        trace: awaited(options, job)?,
        most_bytes: options.follow_mb << 20,
        limits: limits(options),
        steers: options.steer,
        analyze: Box::new(|job, trace, extent| match extent {
            Extent::SoFar => export::analyzed_so_far(job, trace),
            Extent::Whole => export::analyzed(job, trace),
        }),
        has_ended: Arc::default(),
        growing: Growing::new(options.follow_mb << 20),
    };
    if options.until_input_ends {
        let has_ended = follow.has_ended.clone();
        std::thread::spawn(move || {
            // Whatever is there to be read is not meant for it.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            has_ended.store(true, Ordering::Relaxed);
        });
    }
    let share = follow.begin(job)?;
    Ok((Arc::new(Shares::new(share)), Some(follow)))
}

/// The trace of a program that may not have begun yet. Collective.
fn awaited(options: &Serve, job: &dyn Job) -> Result<PathBuf> {
    const LOOK: Duration = Duration::from_millis(100);
    let is_head = job.agent() == 0;
    if is_head && !options.quiet {
        screen::say("waiting for a trace to follow");
    }
    loop {
        // The others wait for the head.
        let found = match &options.directory {
            Some(directory) => Ok(directory.clone()),
            None => traces::meant(None),
        };
        let is_there = found
            .as_ref()
            .is_ok_and(|trace| traces::holds_locations(trace));
        let mut there = [u64::from(is_head && is_there)];
        job.reduce_max(&mut there);
        if there == [1] {
            return comm::agree(job, found);
        }
        if is_head {
            std::thread::sleep(LOOK);
        }
    }
}

/// Of what the head makes that no agent can make of its part.
fn limits(options: &Serve) -> Limits {
    Limits {
        whole: u64::from(options.whole_gb) << 30,
        replayed: u64::from(options.what_if_mb) << 20,
    }
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
    let other = match &options.against {
        Some(other) if is_head => {
            reports::file(other).and_then(|file| Ok(Some(Report::read(&file)?)))
        }
        _ => Ok(None),
    };
    let other = comm::agree(job, other)?;
    let mut share = Share::new(job, events, report, (&trace, limits(options)))?;
    if let Some(other) = other {
        share.compare(other);
    }
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
    ((shares, follow), linked): (Begun, Linked),
    (runtime, ended): (&tokio::runtime::Runtime, Option<Ended>),
) -> Result<()> {
    let mut steers = None;
    let linked = match follow {
        None => linked,
        Some(follow) => {
            steers = options.steer.then(|| follow.trace.clone());
            let (questions, job, carry) = linked.split();
            runtime.spawn(carry);
            following(follow, job, shares.clone())?;
            questions
        }
    };
    if linked.link.agent() != 0 {
        server::work(runtime, shares, linked);
        return Ok(());
    }
    let wait = u64::from(options.wait);
    let served = Options {
        port: options.port,
        hosts: options.allow_host.clone(),
        socket: options.socket.clone(),
        idle: (options.idle > 0.0).then(|| Duration::from_secs_f64(60.0 * options.idle)),
        fan_out: options.fan_out.into(),
        wait: (wait > 0).then(|| Duration::from_secs(wait)),
        steers,
        ended: ended.unwrap_or_else(|| Ended::listen(runtime)),
    };
    server::serve(runtime, (shares, linked), &served, |address| {
        screen::print(&format!("{address}\n"))?;
        if !options.quiet {
            screen::say("open this address in a browser; Ctrl-C ends");
        }
        Ok(())
    })
}

/// Follows a program in a thread of its own, beside the questions.
fn following(follow: Follow, job: Linked, shares: Arc<Shares>) -> Result<()> {
    // It may need the cores that the program leaves to it, and no others.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .start_handler(|_| follow::nice())
        .build()?;
    std::thread::spawn(move || pool.install(|| follow.run(job, &shares)));
    Ok(())
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
    command.args(options.follow.then_some("--follow"));
    command.args(["--join", "-", "--quiet", "--threads"]);
    command.arg(rayon::current_num_threads().to_string());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut started = Started(child.context("an agent cannot be started")?);
    if let Some(mut input) = started.0.stdin.take() {
        input.write_all(meeting.as_bytes())?;
    }
    Ok(started)
}
