//! Checks a trace as a whole: `matching DIR`. Sends and receives on each channel must be equal
//! in number. All members of a group must make the same collectives in the same order. Prints
//! mismatches; exit code 1 if there are any.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;

use laggard_trace::{
    Decoder, Event, FILE_EXTENSION, Location, OUTCOME_CANCELLED, Signature, calls, flags,
};

/// Group, source, destination, tag.
type Channel = (u64, i32, i32, i32);
/// Time of entry, operation, root.
type Collective = (u64, u16, i32);

#[derive(Default)]
struct Totals {
    /// Messages and bytes: sent, received.
    channels: HashMap<Channel, [(u64, u64); 2]>,
    /// Operations with their time of entry, by group and rank.
    collectives: BTreeMap<u64, BTreeMap<u32, Vec<Collective>>>,
    sizes: HashMap<u64, u32>,
    calls: u64,
    bytes: u64,
    incomplete: BTreeMap<&'static str, u64>,
    problems: u64,
}

impl Totals {
    fn problem(&mut self, text: String) {
        self.problems += 1;
        if self.problems <= 40 {
            println!("{text}");
        }
    }
}

/// A posted receive that is not completed yet, or a message posted in a location.
struct Post {
    channel: Option<Channel>,
    bytes: u64,
    done: bool,
    signature: Signature,
}

fn main() -> ExitCode {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: matching DIR");
        return ExitCode::from(2);
    };
    let mut totals = Totals::default();
    let mut locations = Vec::new();
    for entry in std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry
            .path()
            .extension()
            .is_some_and(|e| e == FILE_EXTENSION)
        {
            match Location::open(Path::new(&entry.path())) {
                Ok(location) => locations.push(location),
                Err(error) => totals.problem(error.to_string()),
            }
        }
    }
    locations.sort_by_key(|l| (l.header.rank, l.header.thread));
    let mut posts: HashMap<(u32, u32), Vec<Post>> = HashMap::new();
    for location in &locations {
        let key = (location.header.rank, location.header.thread);
        posts.insert(key, gather(location, &mut totals));
    }
    for location in &locations {
        complete(location, &mut posts, &mut totals);
    }
    for ((rank, thread), posts) in &posts {
        for post in posts {
            if let Some(channel) = post.channel {
                let sent = &mut totals.channels.entry(channel).or_default()[1];
                sent.0 += 1;
                sent.1 += post.bytes;
            }
            if !post.done {
                *totals
                    .incomplete
                    .entry(calls::name(post.signature.operation))
                    .or_default() += 1;
            }
            if post.channel.is_none() && post.signature.has(flags::RECEIVES) && !post.done {
                let name = calls::name(post.signature.operation);
                totals.problem(format!("rank {rank}.{thread}: {name} never completed"));
            }
        }
    }
    report(totals)
}

/// Counts the messages in the records themselves; returns the posts.
fn gather(location: &Location, totals: &mut Totals) -> Vec<Post> {
    let rank = location.header.rank;
    let mut posts = Vec::new();
    for c in &location.definitions.communicators {
        let size = totals.sizes.entry(c.id).or_default();
        *size = (*size).max(c.size + c.remote_members.len() as u32);
    }
    for damage in &location.damage {
        totals.problem(format!(
            "rank {rank}: {} at {}",
            damage.what.describe(),
            damage.offset
        ));
    }
    if location.end.is_none() {
        totals.problem(format!("rank {rank}: no end"));
    }
    totals.bytes += location.size();
    each_event(location, |event, s| {
        totals.calls += event.repeated.map_or(1, |(n, _)| u64::from(n));
        if s.has(flags::SENDS) {
            let (peer, tag) = event.send_endpoint.unwrap_or((s.send.peer, s.send.tag));
            let bytes = event.send_bytes.unwrap_or(s.send.bytes);
            let channel = (s.group, rank as i32, peer, tag);
            let sent = &mut totals.channels.entry(channel).or_default()[0];
            sent.0 += 1;
            sent.1 += bytes;
        }
        let (peer, tag) = event
            .receive_endpoint
            .unwrap_or((s.receive.peer, s.receive.tag));
        let bytes = event.receive_bytes.unwrap_or(s.receive.bytes);
        let channel = (peer >= 0 && tag >= 0).then_some((s.group, peer, rank as i32, tag));
        if s.has(flags::POSTS) {
            let channel = channel.filter(|_| s.has(flags::RECEIVES));
            posts.push(Post {
                channel,
                bytes,
                done: false,
                signature: *s,
            });
        } else if s.has(flags::RECEIVES)
            && !s.has(flags::PEEKS)
            && let Some(channel) = channel
        {
            let received = &mut totals.channels.entry(channel).or_default()[1];
            received.0 += 1;
            received.1 += bytes;
        }
        if s.has(flags::COLLECTIVE) {
            let all = totals.collectives.entry(s.group).or_default();
            all.entry(rank)
                .or_default()
                .push((event.enter, s.operation, s.send.peer));
        }
    });
    posts
}

fn each_event(location: &Location, mut f: impl FnMut(&Event, &Signature)) {
    for chunk in &location.chunks {
        assert!(location.verify(chunk), "chunk at {}", chunk.offset);
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            let signatures = location.definitions.signatures();
            match signatures.get(event.signature as usize) {
                Some(s) if s.operation != 0 => f(event, s),
                _ => println!("undefined signature {}", event.signature),
            }
        }
    }
}

/// Applies the completions of a location to the posts of all locations.
fn complete(location: &Location, posts: &mut HashMap<(u32, u32), Vec<Post>>, totals: &mut Totals) {
    let (rank, thread) = (location.header.rank, location.header.thread);
    let mut so_far = 0u64;
    each_event(location, |event, s| {
        let list = location.definitions.completion_list(s.completes).iter();
        let own =
            list.map(|&(delta, outcome)| (thread, so_far.wrapping_sub(u64::from(delta)), outcome));
        let extended = event.completed.iter().map(|c| match c.thread {
            Some(thread) => (thread, u64::from(c.delta), c.outcome),
            None => (thread, so_far.wrapping_sub(u64::from(c.delta)), c.outcome),
        });
        for (thread, post, outcome) in own.chain(extended).collect::<Vec<_>>() {
            let place = posts
                .get_mut(&(rank, thread))
                .and_then(|all| all.get_mut(post as usize));
            let Some(post) = place else {
                totals.problem(format!(
                    "rank {rank}.{thread}: completion of post {post}, which is not there"
                ));
                continue;
            };
            if std::mem::replace(&mut post.done, true) {
                let name = calls::name(post.signature.operation);
                totals.problem(format!("rank {rank}.{thread}: {name} completed twice"));
            }
            if outcome == OUTCOME_CANCELLED {
                post.channel = None;
            } else if outcome != 0 {
                let signatures = location.definitions.signatures();
                if let Some(o) = signatures.get(outcome as usize) {
                    let r = o.receive;
                    post.channel = Some((o.group, r.peer, rank as i32, r.tag));
                    post.bytes = r.bytes;
                }
            }
        }
        so_far += u64::from(s.has(flags::POSTS));
    });
}

fn report(mut totals: Totals) -> ExitCode {
    let mut messages = 0;
    for (channel, [sent, received]) in std::mem::take(&mut totals.channels) {
        messages += sent.0;
        if sent != received {
            let (group, from, to, tag) = channel;
            totals.problem(format!(
                "group {group:x} {from} -> {to} tag {tag}: sent {sent:?}, received {received:?}"
            ));
        }
    }
    let mut collectives = 0;
    for (group, mut by_rank) in std::mem::take(&mut totals.collectives) {
        let mut shared: Option<Vec<(u16, i32)>> = None;
        let members = by_rank.len() as u32;
        for (rank, operations) in &mut by_rank {
            operations.sort_unstable();
            let operations: Vec<_> = operations.iter().map(|&(_, o, root)| (o, root)).collect();
            match &shared {
                None => {
                    collectives += operations.len();
                    shared = Some(operations);
                }
                Some(first) if first.iter().map(|f| f.0).eq(operations.iter().map(|o| o.0)) => {}
                Some(first) => {
                    let (a, b) = (first.len(), operations.len());
                    totals.problem(format!("group {group:x}: rank {rank} did {b} collectives, others {a}, or in another order"));
                }
            }
        }
        if totals
            .sizes
            .get(&group)
            .is_some_and(|&size| size != members)
        {
            totals.problem(format!("group {group:x}: collectives of {members} members"));
        }
    }
    println!(
        "{} calls, {} bytes ({:.1} per call), {messages} messages, {collectives} collectives, posts without completion {:?}, {} problems",
        totals.calls,
        totals.bytes,
        totals.bytes as f64 / totals.calls.max(1) as f64,
        totals.incomplete,
        totals.problems
    );
    ExitCode::from(u8::from(totals.problems > 0))
}
