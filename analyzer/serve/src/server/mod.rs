//! HTTP and WebSocket for one trace, on this machine alone.

mod guard;
mod page;
mod socket;
mod steering;
mod strangers;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use laggard_overlay::{Head, Linked, Members, Stream, Wait, node};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};

use crate::shares::Shares;
use strangers::{Door, Shown};

/// Clients at a time; further ones are refused.
const CLIENTS: usize = 64;
/// How often a server looks whether it is idle.
const LOOK: Duration = Duration::from_millis(200);

/// Where to listen, and until when.
#[derive(Clone, Debug)]
pub struct Options {
    /// Port of 127.0.0.1; 0 = any that is free.
    pub port: u16,
    /// Names, beside those of this machine, by which browsers may ask for the port: those of a proxy.
    pub hosts: Vec<String>,
    /// A Unix socket in place of a port.
    pub socket: Option<PathBuf>,
    /// End after this long without clients.
    pub idle: Option<Duration>,
    /// Children of each agent in the tree.
    pub fan_out: usize,
    /// An agent that takes longer for an answer is left out of it; `None`: all are waited for.
    pub wait: Option<Duration>,
    /// The trace directory of a program whose recording pages may steer.
    pub steers: Option<PathBuf>,
    /// … or when this tells.
    pub ended: Ended,
}

/// What all clients share.
pub struct Server {
    shares: Arc<Shares>,
    head: Head,
    /// How questions go to the agents.
    stream: Stream,
    token: String,
    /// Whether clients come by a port, so that a browser may be led here by a foreign name.
    has_port: bool,
    /// … but these.
    hosts: Vec<String>,
    steers: Option<PathBuf>,
    clients: Arc<Semaphore>,
    /// Questions that are worked on at a time.
    work: Arc<Semaphore>,
    /// Of these, replays: those that wait for their turn keep no other question waiting.
    replays: Arc<Semaphore>,
    connected: AtomicUsize,
    last: std::sync::Mutex<Instant>,
}

impl Server {
    fn touch(&self) {
        if let Ok(mut last) = self.last.lock() {
            *last = Instant::now();
        }
    }

    fn is_idle(&self, limit: Duration) -> bool {
        let last = self.last.lock().map(|last| last.elapsed());
        self.connected.load(Relaxed) == 0 && last.is_ok_and(|passed| passed >= limit)
    }
}

/// What an agent's conversation runs in.
///
/// # Errors
/// The system has no more threads.
pub fn runtime() -> Result<Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    Ok(runtime.worker_threads(2).enable_all().build()?)
}

/// Answers the head until it ends: what every other agent does.
pub fn work(runtime: &Runtime, shares: Arc<Shares>, linked: Linked) {
    runtime.block_on(node::run(linked, shares));
}

/// Serves until a signal, or until it is idle for too long. Tells `ready` the address once it listens.
///
/// # Errors
/// The port or the socket is taken, or cannot be opened.
pub fn serve(
    runtime: &Runtime,
    (shares, linked): (Arc<Shares>, Linked),
    options: &Options,
    ready: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let served = runtime.block_on(async {
        let (head, own) = Head::new(linked, shares.clone());
        let own = tokio::spawn(own);
        let served = run(shares, head.clone(), options, ready).await;
        head.end();
        // All agents are told.
        let _ = own.await;
        served
    });
    if let Some(socket) = &options.socket {
        // Best effort: it is in the way of the next server only.
        let _ = std::fs::remove_file(socket);
    }
    served
}

async fn run(
    shares: Arc<Shares>,
    head: Head,
    options: &Options,
    ready: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    let wait = options
        .wait
        .map(|wait| Wait::Until(wait.as_millis() as u64));
    let server = Arc::new(Server {
        stream: Stream {
            members: Members::all(head.agents()),
            fan_out: options.fan_out,
            wait: wait.unwrap_or(Wait::All),
        },
        shares,
        head,
        token: guard::token()?,
        has_port: options.socket.is_none(),
        hosts: options.hosts.clone(),
        steers: options.steers.clone(),
        clients: Arc::new(Semaphore::new(CLIENTS)),
        work: Arc::new(Semaphore::new(rayon::current_num_threads().max(2))),
        replays: Arc::new(Semaphore::new(1)),
        connected: AtomicUsize::new(0),
        last: std::sync::Mutex::new(Instant::now()),
    });
    let router = Router::new()
        .route("/{token}/", get(page::start))
        .route("/{token}/ask", get(socket::upgrade))
        .route("/{token}/steer", post(steering::steer))
        .route(
            "/{token}/parquet",
            post(table::table).layer(DefaultBodyLimit::max(table::LARGEST)),
        )
        .route("/{token}/{file}", get(page::file))
        .layer(middleware::from_fn_with_state(server.clone(), guard::check))
        .with_state(server.clone())
        .into_make_service_with_connect_info::<Shown>();
    let end = end(server.clone(), options);
    match &options.socket {
        Some(path) => {
            let listener = unix(path)?;
            ready(&format!("{}, path /{}/", path.display(), server.token))?;
            tokio::select! {
                served = axum::serve(Door::new(listener), router) => served?,
                () = end => {}
            }
        }
        None => {
            let address = ("127.0.0.1", options.port);
            let listener = TcpListener::bind(address).await;
            let listener = listener.with_context(|| {
                let port = options.port;
                format!("port {port} cannot be used: choose another with --port, or 0 for any")
            })?;
            let port = listener.local_addr()?.port();
            ready(&format!("http://127.0.0.1:{port}/{}/", server.token))?;
            tokio::select! {
                served = axum::serve(Door::new(listener), router) => served?,
                () = end => {}
            }
        }
    }
    Ok(())
}

/// A Unix socket that only its owner can use.
fn unix(path: &Path) -> Result<UnixListener> {
    if laggard_files::exists(path) {
        let path = path.display();
        bail!("{path} exists: choose another name, or remove it");
    }
    let failed = || format!("{} cannot be used as a socket", path.display());
    private(|| UnixListener::bind(path)).with_context(failed)
}

/// Runs something that makes files, which their owner alone can use.
pub fn private<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: changes a number of the process alone.
    let mask = unsafe { libc::umask(0o177) };
    let made = make();
    // SAFETY: as above.
    unsafe { libc::umask(mask) };
    made
}

/// Whether a signal has asked to end: it is heard from when this is made.
#[derive(Clone, Debug)]
pub struct Ended(watch::Receiver<bool>);

impl Ended {
    /// From now on these signals end nothing by themselves.
    pub fn listen(runtime: &Runtime) -> Ended {
        let (tell, ended) = watch::channel(false);
        let _context = runtime.enter();
        for kind in [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ] {
            if let Ok(mut signal) = signal(kind) {
                let tell = tell.clone();
                tokio::spawn(async move {
                    signal.recv().await;
                    tell.send_replace(true);
                });
            }
        }
        Ended(ended)
    }

    /// Returns when one has.
    pub async fn wait(mut self) {
        if self.0.wait_for(|ended| *ended).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Returns when the server is to end.
async fn end(server: Arc<Server>, options: &Options) {
    let idle = options.idle;
    let is_idle = async {
        loop {
            tokio::time::sleep(LOOK).await;
            if idle.is_some_and(|limit| server.is_idle(limit)) {
                return;
            }
        }
    };
    tokio::select! {
        () = options.ended.clone().wait() => {}
        () = is_idle => {}
    }
}
