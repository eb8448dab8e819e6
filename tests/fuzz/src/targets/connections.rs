//! How connections between agents begin, and what goes through them.

use std::collections::BTreeMap;
use std::time::Duration;

use laggard_overlay::tcp::Meeting;
use laggard_overlay::tcp::wire::{Hello, KEY, accept, introduce, read_frame, welcomed};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy, duplex, sink, split};

/// Options, by bit: whether the attacked end has made the connection, whether the other one does not know the key,
/// and whether what follows is the text of a meeting.
const IS_MAKER: u8 = 1;
const IS_STRANGER: u8 = 2;
const IS_MEETING: u8 = 4;
/// The key of the meeting.
const OWN: [u8; KEY] = [7; KEY];
/// Bytes of an end until it has proved that it knows the key.
const PROVED: usize = 80;
/// Bytes that are under way at most: fewer than an end says at a time.
const UNDER_WAY: usize = 24;
/// A second of a clock that goes on when nothing else does.
const SECOND: Duration = Duration::from_secs(1);

/// Options, how many bytes of the other end are changed on their way, for each its position in two bytes and what
/// differs, then what that end says once the connection stands. An agent hears nobody who does not know the key, and
/// nothing but what comes.
pub fn connections(bytes: &[u8]) {
    let [options, count, rest @ ..] = bytes else {
        return;
    };
    if options & IS_MEETING != 0 {
        if let Some(meeting) = Meeting::parse(&String::from_utf8_lossy(rest)) {
            let text = meeting.text();
            let again = Meeting::parse(&text).expect("a meeting that was written");
            assert_eq!(again.text(), text);
        }
        return;
    }
    let (changes, said) = rest.split_at(rest.len().min(3 * usize::from(*count)));
    let mut differs = BTreeMap::new();
    for &[low, high, by] in changes.as_chunks().0 {
        *differs
            .entry(u16::from_le_bytes([low, high]).into())
            .or_default() ^= by;
    }
    differs.retain(|_, by| *by != 0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let ((own, to_own), (to_other, other)) = (duplex(UNDER_WAY), duplex(UNDER_WAY));
    let ended = runtime.expect("a runtime").block_on(async {
        let all = async {
            tokio::join!(
                attacked(own, *options),
                says(other, *options, said),
                between(to_own, to_other, &differs),
            )
        };
        tokio::time::timeout(SECOND, all).await
    });
    let (heard, (), came) = ended.expect("both ends end");
    let is_changed = differs.range(..PROVED).next().is_some();
    match heard {
        Some(_) if options & IS_STRANGER != 0 || is_changed => panic!("a stranger is heard"),
        Some(heard) => assert_eq!(heard, packets(&came[PROVED..])[1..]),
        None => {}
    }
}

/// The end that is attacked: what it hears after the packet that tells who is there.
async fn attacked(own: DuplexStream, options: u8) -> Option<Vec<Vec<u8>>> {
    let mut own = if options & IS_MAKER == 0 {
        accept(own, &OWN).await.ok()?.0
    } else {
        let mut own = introduce(own, &OWN, &Hello::Joins(1)).await.ok()?;
        let welcome = welcomed(&mut own).await.ok()?;
        assert!(welcome.agent < welcome.addresses.len());
        own
    };
    let mut heard = Vec::new();
    while let Ok(packet) = read_frame(&mut own).await {
        heard.push(packet);
    }
    Some(heard)
}

/// The other end.
async fn says(mut other: DuplexStream, options: u8, said: &[u8]) {
    if options & IS_STRANGER == 0 {
        let begun = match options & IS_MAKER {
            0 => introduce(&mut other, &OWN, &Hello::Is(1)).await.is_ok(),
            _ => accept(&mut other, &OWN).await.is_ok(),
        };
        if !begun {
            return;
        }
    }
    // Who is not heard cannot say more.
    let _ = other.write_all(said).await;
}

/// Carries what both ends say until they end, with changes of what comes from the other one: that is returned.
async fn between(
    to_own: DuplexStream,
    to_other: DuplexStream,
    differs: &BTreeMap<usize, u8>,
) -> Vec<u8> {
    let (mut from_own, mut into_own) = split(to_own);
    let (mut from_other, mut into_other) = split(to_other);
    let back = async move {
        let _ = copy(&mut from_own, &mut into_other).await;
        let _ = into_other.shutdown().await;
        // Who says more than the other one hears must not wait for that.
        let _ = copy(&mut from_own, &mut sink()).await;
    };
    let there = async move {
        let (mut came, mut some) = (Vec::new(), [0; UNDER_WAY]);
        while let Ok(count @ 1..) = from_other.read(&mut some).await {
            for byte in &mut some[..count] {
                *byte ^= differs.get(&came.len()).copied().unwrap_or(0);
                came.push(*byte);
            }
            if into_own.write_all(&some[..count]).await.is_err() {
                break;
            }
        }
        let _ = into_own.shutdown().await;
        let _ = copy(&mut from_other, &mut sink()).await;
        came
    };
    tokio::join!(there, back).0
}

/// The whole packets in these bytes.
fn packets(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((packet, rest)) = rest.split_at_checked(length) else {
            break;
        };
        packets.push(packet);
        bytes = rest;
    }
    packets
}
