//! What agents of a tree tell each other.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use laggard_overlay::{Arrived, Head, Link, Linked, Members, Stop, Stream, Wait, Work, node};
use tokio::sync::mpsc::unbounded_channel;

/// Agents of the tree.
const AGENTS: usize = 5;
/// Options, by bit: whether this is the head, how long it waits, and whether the tree is flat.
const IS_HEAD: u8 = 1;
const WAITS: u8 = 2;
const IS_FLAT: u8 = 4;
/// A sender with this bit has ended.
const GONE: u8 = 8;
/// A second of a clock that goes on when nothing else does.
const SECOND: Duration = Duration::from_secs(1);

/// The way to agents that hear nothing.
struct Deaf(usize);

impl Link for Deaf {
    fn agent(&self) -> usize {
        self.0
    }

    fn agents(&self) -> usize {
        AGENTS
    }

    fn send(&self, to: usize, _: Vec<u8>) {
        assert!(to < AGENTS && to != self.0, "a packet for agent {to}");
    }
}

/// Sums of bytes.
struct Sums;

impl Work for Sums {
    fn part(&self, question: &[u8], _: &Stop) -> Result<Vec<u8>> {
        ensure!(!question.is_empty(), "nothing is asked");
        Ok(vec![question.len() as u8])
    }

    fn merge(&self, _: &[u8], one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
        ensure!(one.len() == 1 && other.len() == 1, "no part");
        Ok(vec![one[0].wrapping_add(other[0])])
    }
}

/// Options, then packets: who sends it, its length, and itself. Whatever comes, each agent ends with the others, and
/// the head has a reply that names agents of its tree.
pub fn packets(bytes: &[u8]) {
    let Some((&options, mut rest)) = bytes.split_first() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(async {
        let (others, inbox) = unbounded_channel();
        let me = usize::from(options & IS_HEAD == 0);
        let linked = Linked::new(Arc::new(Deaf(me)), inbox);
        let stream = Stream {
            members: Members::all(AGENTS),
            fan_out: if options & IS_FLAT == 0 { 2 } else { AGENTS },
            wait: if options & WAITS == 0 {
                Wait::Until(5000)
            } else {
                Wait::None
            },
        };
        let (node, asking) = if me == 0 {
            let (head, node) = Head::new(linked, Arc::new(Sums));
            let asking = tokio::spawn(async move {
                let reply = head.ask(&stream, b"how many").await;
                assert!(reply.missing.iter().all(|one| one.agent < AGENTS));
                head.end();
            });
            (tokio::spawn(node), Some(asking))
        } else {
            (tokio::spawn(node::run(linked, Arc::new(Sums))), None)
        };
        tokio::time::sleep(SECOND / 100).await;
        while let [from, length, packet @ ..] = rest {
            let packet = &packet[..packet.len().min((*length).into())];
            rest = &rest[2 + packet.len()..];
            let agent = usize::from(*from) % AGENTS;
            let arrived = match from & GONE {
                _ if agent == me => continue,
                0 => Arrived::Packet(agent, packet.to_vec()),
                _ => Arrived::Gone(agent),
            };
            // Nobody takes it any more.
            if others.send(arrived).is_err() {
                break;
            }
            tokio::time::sleep(SECOND / 100).await;
        }
        // In the end all are gone.
        for agent in (0..AGENTS).filter(|&agent| agent != me) {
            let _ = others.send(Arrived::Gone(agent));
        }
        if let Some(asking) = asking {
            asking.await.expect("a reply");
        }
        drop(others);
        let ended = tokio::time::timeout(SECOND, node).await;
        ended.expect("an agent that ends").expect("no panic");
    });
}
