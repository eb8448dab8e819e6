//! Agents that reach each other over TCP, without a launcher. The head listens, and the others join it
//! with a file that it wrote for them. From then on any two connect when they first have something to
//! say to each other.
//!
//! Both ends of a connection prove that they know the key of the file before anything else is read.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::link::{Arrived, Link, Linked};

/// Begins every connection. The last byte is the version of what comes before the end's own version.
const GREETING: [u8; 8] = *b"laggagt\x02";
/// Bytes of the version of an end: all that follows depends on it.
const VERSION: usize = 24;
/// Bytes of a key, and of what is asked to be proved.
const KEY: usize = 16;
/// Longest time until a connection stands, and its ends have proved who they are.
const PATIENCE: Duration = Duration::from_secs(30);
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

/// Says who connects.
#[derive(Serialize, Deserialize)]
enum Hello {
    /// An agent that has no number yet, and listens at this port.
    Joins(u16),
    /// This agent.
    Is(usize),
}

/// What the head answers those who join.
#[derive(Serialize, Deserialize)]
struct Welcome {
    agent: usize,
    /// Of all agents. The head's own, which all know, is that of the meeting.
    addresses: Vec<Option<SocketAddr>>,
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

/// Joins a head.
///
/// # Errors
/// It cannot be reached, does not know the key, or is of another version.
pub async fn join(meeting: &Meeting) -> Result<Linked> {
    let at = (meeting.host.as_str(), meeting.port);
    let failed = || format!("{}:{} cannot be joined", at.0, at.1);
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(at)).await;
    let stream = stream.with_context(failed)?.with_context(failed)?;
    // The same way leads back.
    let listener = listen(stream.local_addr()?.ip())?;
    let hello = Hello::Joins(listener.local_addr()?.port());
    let head = stream.peer_addr()?;
    let mut stream = introduce(stream, &meeting.key, &hello)
        .await
        .with_context(failed)?;
    // The head waits for the others as long as it takes.
    let welcome = read_frame(&mut stream).await.with_context(failed)?;
    let mut welcome: Welcome = postcard::from_bytes(&welcome)?;
    if !(1..welcome.addresses.len()).contains(&welcome.agent) {
        bail!("{}: it does not say which agent this one is", failed());
    }
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

/// The version of this end, and spaces.
fn version() -> [u8; VERSION] {
    let mut bytes = [b' '; VERSION];
    let own = env!("CARGO_PKG_VERSION").bytes();
    bytes.iter_mut().zip(own).for_each(|(to, byte)| *to = byte);
    bytes
}

fn random() -> Result<[u8; KEY]> {
    let mut bytes = [0; KEY];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
    Ok(bytes)
}

/// Who made a connection, and who was found. Each proves something else: what one end says to an agent
/// is no proof to another one.
#[derive(Clone, Copy)]
enum End {
    Maker = 1,
    Found = 2,
}

/// What only those can tell who know the key: a keyed hash (as HMAC, RFC 2104) of which end tells it, and
/// of the two random numbers.
fn proof(key: &[u8; KEY], end: End, asked: &[u8], own: &[u8]) -> [u8; 32] {
    let padded = |with: u8| {
        key.iter()
            .map(|byte| byte ^ with)
            .chain([with; 64 - KEY])
            .collect::<Vec<_>>()
    };
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update([end as u8])
        .chain_update(asked)
        .chain_update(own);
    let outer = Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner.finalize());
    outer.finalize().into()
}

/// Both ends prove that they know the key; this one is `own_end`.
async fn prove(stream: &mut TcpStream, key: &[u8; KEY], own_end: End) -> Result<()> {
    let other_end = match own_end {
        End::Maker => End::Found,
        End::Found => End::Maker,
    };
    stream.set_nodelay(true)?;
    let own = random()?;
    stream.write_all(&GREETING).await?;
    stream.write_all(&version()).await?;
    stream.write_all(&own).await?;
    let mut greeting = [0; GREETING.len()];
    stream.read_exact(&mut greeting).await?;
    if greeting != GREETING {
        bail!("it is no agent of this version of laggard");
    }
    let mut other = [0; VERSION];
    stream.read_exact(&mut other).await?;
    if other != version() {
        let other = other.trim_ascii_end().escape_ascii();
        bail!(
            "it is laggard {other}, and this one {}",
            env!("CARGO_PKG_VERSION")
        );
    }
    let mut other = [0; KEY];
    stream.read_exact(&mut other).await?;
    if other == own {
        bail!("it repeats what it is told");
    }
    stream.write_all(&proof(key, own_end, &other, &own)).await?;
    let mut told = [0; 32];
    stream.read_exact(&mut told).await?;
    let differ = told.iter().zip(proof(key, other_end, &own, &other));
    if differ.fold(0, |differ, (a, b)| differ | (a ^ b)) != 0 {
        bail!("it has another key");
    }
    Ok(())
}

/// Begins a connection that this agent has made.
async fn introduce(mut stream: TcpStream, key: &[u8; KEY], hello: &Hello) -> Result<TcpStream> {
    let begin = async {
        prove(&mut stream, key, End::Maker).await?;
        write_frame(&mut stream, &postcard::to_stdvec(hello)?).await?;
        Ok(())
    };
    tokio::time::timeout(PATIENCE, begin)
        .await
        .unwrap_or_else(|_| bail!("it does not answer"))?;
    Ok(stream)
}

/// Begins a connection that somebody else has made.
async fn accept(mut stream: TcpStream, key: &[u8; KEY]) -> Result<(TcpStream, Hello)> {
    let begin = async {
        prove(&mut stream, key, End::Found).await?;
        let hello = read_frame(&mut stream).await?;
        Ok(postcard::from_bytes(&hello)?)
    };
    let hello = tokio::time::timeout(PATIENCE, begin).await;
    let hello = hello.unwrap_or_else(|_| bail!("it does not answer"))?;
    Ok((stream, hello))
}

/// Adds a packet as it is sent: its length, then itself.
fn frame(to: &mut Vec<u8>, packet: &[u8]) {
    to.extend((packet.len() as u64).to_le_bytes());
    to.extend(packet);
}

async fn write_frame(stream: &mut TcpStream, packet: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame(&mut bytes, packet);
    stream.write_all(&bytes).await
}

/// The next packet. Memory grows with what arrives, not with what is announced.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = stream.read_u64_le().await?;
    let mut packet = Vec::new();
    stream.take(length).read_to_end(&mut packet).await?;
    match packet.len() as u64 == length {
        true => Ok(packet),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_told_apart() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = listen(IpAddr::from([127, 0, 0, 1])).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let (mut other, _) = listener.accept().await.unwrap();
            let mut older = [b' '; VERSION];
            older[..5].copy_from_slice(b"0.0.9");
            other.write_all(&GREETING).await.unwrap();
            other.write_all(&older).await.unwrap();
            let hello = Hello::Is(1);
            let told = introduce(stream, &[7; KEY], &hello).await.unwrap_err();
            let told = told.to_string();
            assert!(
                told.starts_with("it is laggard 0.0.9, and this one"),
                "{told}"
            );
        });
    }

    /// Somebody without the key connects to two agents, and passes on what each of them says.
    #[test]
    fn what_one_agent_says_is_no_proof_to_another() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let key = [7; KEY];
            let listener = listen(IpAddr::from([127, 0, 0, 1])).unwrap();
            let address = listener.local_addr().unwrap();
            let (mut streams, mut agents) = (Vec::new(), Vec::new());
            for _ in 0..2 {
                streams.push(TcpStream::connect(address).await.unwrap());
                let (stream, _) = listener.accept().await.unwrap();
                agents.push(tokio::spawn(async move { accept(stream, &key).await }));
            }
            for length in [GREETING.len() + VERSION + KEY, 32] {
                let mut said = [vec![0; length], vec![0; length]];
                for (stream, said) in streams.iter_mut().zip(&mut said) {
                    stream.read_exact(said).await.unwrap();
                }
                said.reverse();
                for (stream, said) in streams.iter_mut().zip(&said) {
                    stream.write_all(said).await.unwrap();
                }
            }
            for agent in agents {
                let error = agent.await.unwrap().err().expect("no proof");
                assert_eq!(error.to_string(), "it has another key");
            }
        });
    }
}
