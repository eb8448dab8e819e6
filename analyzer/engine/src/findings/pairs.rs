//! Who sends whom how many messages, and how much.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Pairs that are listed: those with most bytes.
const MOST: usize = 1024;

/// Messages and bytes.
pub type Sent = (u64, u64);

/// Messages by sending and receiving world rank.
pub type Own = FxHashMap<(u32, u32), Sent>;

/// Messages of some agents' ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// The pairs with most bytes, the first of them first: sender, receiver, what was sent.
    pub listed: Vec<(u32, u32, Sent)>,
    /// Number of pairs.
    pub count: u64,
    /// What all sent.
    pub all: Sent,
}

/// Adds messages.
pub fn add(sum: &mut Sent, (messages, bytes): Sent) {
    sum.0 = sum.0.saturating_add(messages);
    sum.1 = sum.1.saturating_add(bytes);
}

impl Pairs {
    /// The messages of an agent's ranks: no other agent has any of them.
    pub fn new(own: Own) -> Pairs {
        let mut pairs = Pairs {
            count: own.len() as u64,
            ..Pairs::default()
        };
        own.values().for_each(|sent| add(&mut pairs.all, *sent));
        let listed = own.into_iter().map(|((from, to), sent)| (from, to, sent));
        pairs.listed = listed.collect();
        pairs.cut();
        pairs
    }

    /// Adds those of other ranks.
    pub fn merge(&mut self, other: Pairs) {
        self.listed.extend(other.listed);
        self.count += other.count;
        add(&mut self.all, other.all);
        self.cut();
    }

    fn cut(&mut self) {
        let key = |&(from, to, (messages, bytes)): &(u32, u32, Sent)| {
            (Reverse(bytes), Reverse(messages), from, to)
        };
        self.listed.sort_unstable_by_key(key);
        self.listed.truncate(MOST);
    }
}
