//! Agents that reach each other over TCP, without a launcher. The head listens, and the others join it
//! with a file that it wrote for them. From then on any two connect when they first have something to
//! say to each other.
//!
//! Both ends of a connection prove that they know the key of the file before anything else is read ([`wire`]).

pub mod wire;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::link::{Arrived, Link, Linked};
use wire::{
    Hello, KEY, PATIENCE, Welcome, frame, introduce, random, read_frame, welcomed, write_frame,
};

/// Largest file with a meeting, bytes.
pub const MEETING: u64 = 4096;

/// Where agents meet, and the key that they prove to know.
#[derive(Clone, Debug)]
pub struct Meeting {
    host: String,
    port: u16,
    key: [u8; KEY],
}

impl Meeting {
    /// The text of a file that only its owner should be able to read.
    pub fn text(&self) -> String {
        let key: String = self.key.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {} {key}\n", self.host, self.port)
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Meeting> {
        let shown = path.display();
        let bytes = laggard_files::read(path, MEETING)
            .with_context(|| format!("{shown}: cannot be read"))?;
        let text = String::from_utf8_lossy(&bytes);
        Meeting::parse(&text)
            .with_context(|| format!("{shown}: no file that laggard serve --meet has written"))
    }

    /// Reads the text of such a file.
    pub fn parse(text: &str) -> Option<Meeting> {
        let [host, port, digits] = text
            .split_whitespace()
            .collect::<Vec<_>>()
            .try_into()
            .ok()?;
        let mut key = [0; KEY];
        let digits: &[u8] = digits.as_bytes();
        if digits.len() != 2 * KEY {
            return None;
        }
        for (byte, digits) in key.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Meeting {
            host: host.to_owned(),
            port: port.parse().ok()?,
            key,
        })
    }
}

/// A head that listens.
pub struct Host {
    listener: TcpListener,
    meeting: Meeting,
}

impl Host {
    /// Listens at an address, port 0 for any. `host` is what the others call this machine.
    ///
    /// # Errors
    /// The address cannot be used, or the system has no random numbers.
    pub async fn listen(address: IpAddr, host: &str) -> Result<Host> {
        let failed = || format!("{address} cannot be listened at");
        let listener = listen(address).with_context(failed)?;
        let meeting = Meeting {
            host: host.to_owned(),
            port: listener.local_addr()?.port(),
            key: random()?,
        };
        Ok(Host { listener, meeting })
    }

    /// How the others find it.
    pub fn meeting(&self) -> &Meeting {
        &self.meeting
    }

    /// Waits until so many agents are there, this one included. Tells `came` how many are.
    ///
    /// # Errors
    /// Those that are there cannot be told who is.
    pub async fn gather(self, agents: usize, mut came: impl FnMut(usize)) -> Result<Linked> {
        let mut joined: Vec<(SocketAddr, TcpStream)> = Vec::new();
        let (found, mut arrivals) = unbounded_channel();
        while joined.len() + 1 < agents {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let Ok((stream, from)) = accepted else {
                        // No more files, as a rule.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    };
                    let (found, key) = (found.clone(), self.meeting.key);
                    // One that says nothing must not keep the others waiting.
                    tokio::spawn(async move {
                        if let Ok((stream, Hello::Joins(port))) = accept(stream, &key).await {
                            let _ = found.send((SocketAddr::new(from.ip(), port), stream));
                        }
                    });
                }
                Some(one) = arrivals.recv() => {
                    joined.push(one);
                    came(joined.len() + 1);
                }
            }
        }
        let addresses: Vec<Option<SocketAddr>> = std::iter::once(None)
            .chain(joined.iter().map(|(address, _)| Some(*address)))
            .collect();
        let (mesh, inbox) = Mesh::new(0, addresses.clone(), &self.meeting);
        for (at, (_, mut stream)) in joined.into_iter().enumerate() {
            let agent = at + 1;
            let welcome = postcard::to_stdvec(&Welcome {
                agent,
                addresses: addresses.clone(),
            })?;
            match write_frame(&mut stream, &welcome).await {
                Ok(()) => mesh.adopt(agent, stream),
                Err(_) => mesh.lose(agent),
            }
        }
        mesh.clone().keep_accepting(self.listener);
        Ok(Linked::new(Arc::new(Peer(mesh)), inbox))
    }
}

/// Listens at any free port. All agents may come at once.
fn listen(address: IpAddr) -> io::Result<TcpListener> {
    const AT_ONCE: u32 = 4096;
    let socket = match address {
        IpAddr::V4(_) => TcpSocket::new_v4(),
        IpAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.bind(SocketAddr::new(address, 0))?;
    socket.listen(AT_ONCE)
}

/// Begins a connection that somebody else has made.
async fn accept(stream: TcpStream, key: &[u8; KEY]) -> Result<(TcpStream, Hello)> {
    stream.set_nodelay(true)?;
    wire::accept(stream, key).await
}

/// Joins a head.
///
/// # Errors
/// It cannot be reached, does not know the key, or is of another version.
pub async fn join(meeting: &Meeting) -> Result<Linked> {
    let at = (meeting.host.as_str(), meeting.port);
    let failed = || format!("{}:{} cannot be joined", at.0, at.1);
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(at)).await;
    let stream = stream.with_context(failed)?.with_context(failed)?;
    stream.set_nodelay(true)?;
    // The same way leads back.
    let listener = listen(stream.local_addr()?.ip())?;
    let hello = Hello::Joins(listener.local_addr()?.port());
    let head = stream.peer_addr()?;
    let mut stream = introduce(stream, &meeting.key, &hello)
        .await
        .with_context(failed)?;
    // The head waits for the others as long as it takes.
    let mut welcome = welcomed(&mut stream).await.with_context(failed)?;
    welcome.addresses[0] = Some(head);
    let (mesh, inbox) = Mesh::new(welcome.agent, welcome.addresses, meeting);
    mesh.adopt(0, stream);
    mesh.clone().keep_accepting(listener);
    Ok(Linked::new(Arc::new(Peer(mesh)), inbox))
}

/// All agents, and the connections between this one and others.
struct Mesh {
    me: usize,
    key: [u8; KEY],
    addresses: Vec<Option<SocketAddr>>,
    /// What is to be sent, by agent; for one that is gone, a channel that nobody reads.
    out: Mutex<Vec<Option<UnboundedSender<Vec<u8>>>>>,
    into: UnboundedSender<Arrived>,
    runtime: Handle,
}

impl Mesh {
    fn new(
        me: usize,
        addresses: Vec<Option<SocketAddr>>,
        meeting: &Meeting,
    ) -> (Arc<Mesh>, UnboundedReceiver<Arrived>) {
        let (into, inbox) = unbounded_channel();
        let mesh = Mesh {
            me,
            key: meeting.key,
            out: Mutex::new(vec![None; addresses.len()]),
            addresses,
            into,
            runtime: Handle::current(),
        };
        (Arc::new(mesh), inbox)
    }

    fn lose(&self, agent: usize) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // Its receiver is dropped at once.
        out[agent] = Some(unbounded_channel().0);
        let _ = self.into.send(Arrived::Gone(agent));
    }

    /// The way to an agent, if there is none yet; else the receiver of what nobody sends.
    fn way(&self, agent: usize) -> UnboundedReceiver<Vec<u8>> {
        let (sender, receiver) = unbounded_channel();
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out[agent].get_or_insert(sender);
        receiver
    }

    /// Uses a connection with an agent: for sending if it is the first.
    fn adopt(self: &Arc<Self>, agent: usize, stream: TcpStream) {
        let (reader, writer) = stream.into_split();
        let packets = self.way(agent);
        self.runtime.spawn(self.clone().read(agent, reader));
        self.runtime
            .spawn(self.clone().write(agent, writer, packets));
    }

    async fn read(self: Arc<Self>, agent: usize, mut reader: OwnedReadHalf) {
        let packets = async {
            while let Ok(packet) = read_frame(&mut reader).await {
                let _ = self.into.send(Arrived::Packet(agent, packet));
            }
        };
        tokio::select! {
            () = packets => self.lose(agent),
            () = self.into.closed() => {}
        }
    }

    async fn write(
        self: Arc<Self>,
        agent: usize,
        mut writer: OwnedWriteHalf,
        mut packets: UnboundedReceiver<Vec<u8>>,
    ) {
        let mut all = Vec::new();
        loop {
            let packet = tokio::select! {
                packet = packets.recv() => packet,
                () = self.into.closed() => packets.try_recv().ok(),
            };
            let Some(packet) = packet else { break };
            // What is ready goes out together.
            all.clear();
            frame(&mut all, &packet);
            while all.len() < 1 << 16
                && let Ok(packet) = packets.try_recv()
            {
                frame(&mut all, &packet);
            }
            if writer.write_all(&all).await.is_err() {
                return self.lose(agent);
            }
        }
        // If another connection is used for sending, this one must stay for reading.
        self.into.closed().await;
    }

    /// Connects, and sends what waits for that.
    async fn connect(self: Arc<Self>, agent: usize, packets: UnboundedReceiver<Vec<u8>>) {
        let connected = async {
            let address = self.addresses[agent].context("no address")?;
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            introduce(stream, &self.key, &Hello::Is(self.me)).await
        };
        match tokio::time::timeout(PATIENCE, connected).await {
            Ok(Ok(stream)) => {
                let (reader, writer) = stream.into_split();
                self.runtime.spawn(self.clone().read(agent, reader));
                self.write(agent, writer, packets).await;
            }
            _ => self.lose(agent),
        }
    }

    /// Takes connections of other agents until this one ends.
    fn keep_accepting(self: Arc<Self>, listener: TcpListener) {
        let runtime = self.runtime.clone();
        runtime.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = self.into.closed() => return,
                };
                let Ok((stream, _)) = accepted else {
                    // No more files, as a rule.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let mesh = self.clone();
                tokio::spawn(async move {
                    if let Ok((stream, Hello::Is(agent))) = accept(stream, &mesh.key).await
                        && agent < mesh.addresses.len()
                        && agent != mesh.me
                    {
                        mesh.adopt(agent, stream);
                    }
                });
            }
        });
    }
}

/// The link of an agent.
struct Peer(Arc<Mesh>);

impl Link for Peer {
    fn agent(&self) -> usize {
        self.0.me
    }

    fn agents(&self) -> usize {
        self.0.addresses.len()
    }

    fn send(&self, to: usize, packet: Vec<u8>) {
        let mut out = self.0.out.lock().unwrap_or_else(PoisonError::into_inner);
        let way = out[to].get_or_insert_with(|| {
            let (sender, packets) = unbounded_channel();
            self.0.runtime.spawn(self.0.clone().connect(to, packets));
            sender
        });
        // Who is gone needs no packet any more.
        let _ = way.send(packet);
    }
}
