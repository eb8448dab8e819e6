//! How a connection begins, and packets on it.
//!
//! Both ends tell their version and a random number. Then each proves with that of the other that it knows the
//! key, before anything else is read.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Begins every connection. The last byte is the version of what comes before the end's own version.
const GREETING: [u8; 8] = *b"laggagt\x02";
/// Bytes of the version of an end: all that follows depends on it.
const VERSION: usize = 24;
/// Bytes of a key, and of what is asked to be proved.
pub const KEY: usize = 16;
/// Longest time until a connection stands, and its ends have proved who they are.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// What packets go through.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// Says who connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hello {
    /// An agent that has no number yet, and listens at this port.
    Joins(u16),
    /// This agent.
    Is(usize),
}

/// What the head answers those who join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The number of the one that joins.
    pub agent: usize,
    /// Of all agents. The head's own, which all know, is that of the meeting.
    pub addresses: Vec<Option<SocketAddr>>,
}

/// The version of this end, and spaces.
fn version() -> [u8; VERSION] {
    let mut bytes = [b' '; VERSION];
    let own = env!("CARGO_PKG_VERSION").bytes();
    bytes.iter_mut().zip(own).for_each(|(to, byte)| *to = byte);
    bytes
}

/// A key that nobody can guess.
pub(super) fn random() -> Result<[u8; KEY]> {
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
async fn prove(stream: &mut impl Stream, key: &[u8; KEY], own_end: End) -> Result<()> {
    let other_end = match own_end {
        End::Maker => End::Found,
        End::Found => End::Maker,
    };
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
///
/// # Errors
/// The other end does not know the key, is of another version, or does not answer.
pub async fn introduce<S: Stream>(mut stream: S, key: &[u8; KEY], hello: &Hello) -> Result<S> {
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
///
/// # Errors
/// As [`introduce`].
pub async fn accept<S: Stream>(mut stream: S, key: &[u8; KEY]) -> Result<(S, Hello)> {
    let begin = async {
        prove(&mut stream, key, End::Found).await?;
        let hello = read_frame(&mut stream).await?;
        Ok(postcard::from_bytes(&hello)?)
    };
    let hello = tokio::time::timeout(PATIENCE, begin).await;
    let hello = hello.unwrap_or_else(|_| bail!("it does not answer"))?;
    Ok((stream, hello))
}

/// The head's answer to an agent that joins.
///
/// # Errors
/// It cannot be read, or does not say which agent this one is.
pub async fn welcomed(stream: &mut impl Stream) -> Result<Welcome> {
    let welcome: Welcome = postcard::from_bytes(&read_frame(stream).await?)?;
    if !(1..welcome.addresses.len()).contains(&welcome.agent) {
        bail!("it does not say which agent this one is");
    }
    Ok(welcome)
}

/// Adds a packet as it is sent: its length, then itself.
pub fn frame(to: &mut Vec<u8>, packet: &[u8]) {
    to.extend((packet.len() as u64).to_le_bytes());
    to.extend(packet);
}

pub(super) async fn write_frame(stream: &mut impl Stream, packet: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame(&mut bytes, packet);
    stream.write_all(&bytes).await
}

/// The next packet. Memory grows with what arrives, not with what is announced.
///
/// # Errors
/// The stream ends before the packet does.
pub async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
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
    use std::net::IpAddr;

    use tokio::net::TcpStream;

    use super::super::listen;
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
                let error = agent.await.unwrap().expect_err("no proof");
                assert_eq!(error.to_string(), "it has another key");
            }
        });
    }
}
