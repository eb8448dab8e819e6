//! What a record says of a call, in words.

use std::io::{self, Write};

use laggard_engine::events::{Among, UNNAMED};
use laggard_trace::calls::{self, GenericType, number};
use laggard_trace::{
    ALL_PES, Beside, Communicator, Definitions, Dimension, Endpoint, Event, OUTCOME_CANCELLED,
    PEER_ANY, PEER_FOREIGN, PEER_NONE, PEER_ROOT, Signature, TAG_ANY, WORLD, flags,
};

/// Numbers the requests of a location.
#[derive(Default)]
pub struct Posts(u64);

impl Posts {
    /// Counts the request that a call left behind, if it did.
    pub fn count(&mut self, signature: &Signature) {
        self.0 += u64::from(signature.has(flags::POSTS));
    }
}

/// ns as seconds with all digits: `1.234567890`.
pub fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Writes ` key=value` pairs. `microseconds` turns ticks of the location's clock into times.
pub fn write(
    out: &mut impl Write,
    event: &Event,
    signature: &Signature,
    definitions: &Definitions,
    posts: &Posts,
    microseconds: impl Fn(u64) -> f64,
) -> io::Result<()> {
    let (send, receive) = (event.send(signature), event.receive(signature));
    if signature.has(flags::COLLECTIVE) {
        if send.peer >= 0 || send.peer == PEER_ROOT {
            write!(out, " root={}", peer(send.peer))?;
        }
        if send.bytes + receive.bytes > 0 {
            write!(out, " sent={} received={}", send.bytes, receive.bytes)?;
        }
    } else {
        half(out, "to", send, signature.has(flags::SENDS))?;
        half(out, "from", receive, signature.has(flags::RECEIVES))?;
    }
    if signature.group != 0 {
        write!(out, " {}", group(signature.group, definitions))?;
    }
    if signature.object != 0 {
        write!(out, " object={:#x}", signature.object)?;
        if let Some(found) = definitions.neighbours_in(signature.object) {
            let sources: Vec<String> = found.sources.iter().map(u32::to_string).collect();
            write!(out, " neighbours={}", sources.join(","))?;
        }
        if let Some(found) = definitions.grid_of(signature.object) {
            let list = |number: fn(&Dimension) -> u32| -> Vec<String> {
                let numbers = found.dimensions.iter().map(number);
                numbers.map(|number| number.to_string()).collect()
            };
            let (sizes, own) = (list(|one| one.size), list(|one| one.coordinate));
            write!(out, " grid={} at={}", sizes.join("x"), own.join(","))?;
        }
    }
    if let Some(address) = event.symmetric_address(signature) {
        write!(out, " address={address}")?;
        watched(out, signature)?;
        if let Some(value) = event.value {
            write!(out, " value={}", value as i64)?;
        }
    } else if [number::MPI_Win_post, number::MPI_Win_start].contains(&signature.operation) {
        let parameter = event
            .value
            .map_or(signature.parameter, |value| value as i64);
        let peers = definitions.peers(parameter).iter();
        let peers: Vec<String> = peers.map(|&rank| peer(rank as i32)).collect();
        write!(out, " peers={}", peers.join(","))?;
        if parameter >> 32 != 0 {
            write!(out, " assertion={}", parameter >> 32)?;
        }
    } else if let Some(found) = Among::of(signature, event) {
        among(out, found)?;
    } else {
        if signature.parameter != 0 {
            write!(out, " parameter={}", signature.parameter)?;
        }
        if let Some(value) = event.value {
            write!(out, " value={value}")?;
        }
    }
    if signature.has(flags::POSTS) {
        write!(out, " request=#{}", posts.0)?;
    }
    completions(out, event, signature, definitions, posts)?;
    for (flag, word) in WORDS {
        if signature.has(*flag) {
            write!(out, " {word}")?;
        }
    }
    if let Some((calls, _)) = event.repeated {
        write!(out, " repeated={calls}")?;
    }
    if let Some(ticks) = event.off {
        write!(out, " off_us={:.3}", microseconds(ticks))?;
    }
    beside(out, "", &event.beside, &microseconds)?;
    beside(out, "inside_", &event.inside, &microseconds)?;
    let counted = &event.beside.counted;
    if !counted.is_empty() {
        write!(out, " counted_us={:.3}", microseconds(counted.time))?;
        let names = definitions.properties("counter");
        for (at, count) in counted.iter() {
            let name = names.get(at).map_or("unknown", |name| name);
            write!(out, " {name}={count}")?;
        }
    }
    for (path, ticks) in &event.sampled {
        let time = microseconds(u64::from(*ticks));
        write!(out, " sampled=path {path}:{time:.3}us")?;
    }
    Ok(())
}

/// What a wait among threads is for.
fn among(out: &mut impl Write, found: Among) -> io::Result<()> {
    if let Some(team) = found.team {
        write!(out, " team={team}")?;
    }
    for (name, number) in [
        ("threads", found.threads),
        ("member", found.member),
        ("meeting", found.meeting),
    ] {
        if let Some(number) = number {
            write!(out, " {name}={number}")?;
        }
    }
    match found.object {
        Some(UNNAMED) => write!(out, " of=unnamed")?,
        Some(object) => write!(out, " of={object:#x}")?,
        None => {}
    }
    if found.timed_out {
        write!(out, " timed_out")?;
    }
    Ok(())
}

/// Flags that are said as a word.
const WORDS: &[(u16, &str)] = &[
    (flags::ANY_SOURCE, "any_source"),
    (flags::ANY_TAG, "any_tag"),
    (flags::PEEKS, "peek"),
    (flags::PERSISTENT, "persistent"),
    (flags::PART, "part"),
    (flags::UNSUCCESSFUL, "unsuccessful"),
    (flags::FAILED, "failed"),
    (flags::PAUSED, "paused"),
    (flags::PROFILED, "profiled"),
];

/// What the time before a call, or in it, was beside work.
fn beside(
    out: &mut impl Write,
    word: &str,
    beside: &Beside,
    microseconds: impl Fn(u64) -> f64,
) -> io::Result<()> {
    for (name, ticks) in [
        ("blocked", beside.blocked),
        ("preempted", beside.preempted),
        ("kernel", beside.kernel),
    ] {
        if ticks > 0 {
            write!(out, " {word}{name}_us={:.3}", microseconds(ticks))?;
        }
    }
    let [minor, major] = beside.faults;
    for (name, number) in [("minor_faults", minor), ("major_faults", major)] {
        if number > 0 {
            write!(out, " {word}{name}={number}")?;
        }
    }
    Ok(())
}

/// What a wait for a value compares by.
fn watched(out: &mut impl Write, signature: &Signature) -> io::Result<()> {
    const COMPARISONS: [&str; 6] = ["eq", "ne", "gt", "le", "lt", "ge"];
    let waits = |call: &calls::Call| call.generic == GenericType::WaitOnValue;
    if !calls::call(signature.operation).is_some_and(waits) {
        return Ok(());
    }
    match COMPARISONS.get(signature.receive.tag as usize) {
        Some(comparison) => write!(out, " until={comparison}"),
        None => write!(out, " until=#{}", signature.receive.tag),
    }
}

/// One half of a message, or the volume of a call that has no partner.
fn half(out: &mut impl Write, word: &str, end: Endpoint, is_message: bool) -> io::Result<()> {
    if !is_message && (end == Endpoint::default() || end.peer == PEER_NONE) {
        return match end.bytes {
            0 => Ok(()),
            bytes => write!(out, " bytes={bytes}"),
        };
    }
    write!(
        out,
        " {word}={} tag={} bytes={}",
        peer(end.peer),
        tag(end.tag),
        end.bytes
    )
}

fn peer(peer: i32) -> String {
    match peer {
        PEER_ANY => "any".to_owned(),
        PEER_NONE => "none".to_owned(),
        PEER_FOREIGN => "outside".to_owned(),
        PEER_ROOT => "self".to_owned(),
        rank => rank.to_string(),
    }
}

fn tag(tag: i32) -> String {
    match tag {
        TAG_ANY => "any".to_owned(),
        tag => tag.to_string(),
    }
}

/// A name as one word, which does not steer the terminal either.
pub fn word(name: &str) -> String {
    name.replace(
        |c: char| c.is_whitespace() || laggard_files::is_steering(c),
        "_",
    )
}

/// `comm=…`, `win=…` or `file=…`: the name, where it has one.
fn group(id: u64, definitions: &Definitions) -> String {
    let or_id = |name: u32| match definitions.string(name) {
        name if name.is_empty() => format!("{id:#x}"),
        name => word(&name),
    };
    if let Some(&(_, _, kind, name)) = definitions.group_handles.iter().find(|h| h.0 == id) {
        let kind = if kind == 1 { "win" } else { "file" };
        return format!("{kind}={}", or_id(name));
    }
    if id == WORLD {
        return "comm=world".to_owned();
    }
    if id == ALL_PES {
        return "comm=all_PEs".to_owned();
    }
    let communicator = definitions.communicators.iter().find(|c| c.id == id);
    format!(
        "comm={}",
        or_id(communicator.map_or(0, |c: &Communicator| c.name))
    )
}

/// ` completes=[#3 #4(from=1 tag=7 bytes=8) #5(cancelled)]`
fn completions(
    out: &mut impl Write,
    event: &Event,
    signature: &Signature,
    definitions: &Definitions,
    posts: &Posts,
) -> io::Result<()> {
    let listed = definitions.completion_list(signature.completes);
    if listed.is_empty() && event.completed.is_empty() {
        return Ok(());
    }
    let listed = listed
        .iter()
        .map(|&(delta, outcome)| (delta, outcome, None));
    let extra = event
        .completed
        .iter()
        .map(|c| (c.delta, c.outcome, c.thread));
    write!(out, " completes=[")?;
    for (at, (delta, outcome, thread)) in listed.chain(extra).enumerate() {
        if at > 0 {
            write!(out, " ")?;
        }
        match thread {
            Some(thread) => write!(out, "thread{thread}#{delta}")?,
            None => match posts.0.checked_sub(u64::from(delta)) {
                Some(number) => write!(out, "#{number}")?,
                None => write!(out, "#?")?,
            },
        }
        match outcome {
            0 => {}
            OUTCOME_CANCELLED => write!(out, "(cancelled)")?,
            outcome => {
                let found = definitions.signatures().get(outcome as usize);
                let end = found.map_or(Endpoint::default(), |found| found.receive);
                let bytes = end.bytes;
                write!(
                    out,
                    "(from={} tag={} bytes={bytes})",
                    peer(end.peer),
                    tag(end.tag)
                )?;
            }
        }
    }
    write!(out, "]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::{Definition, Neighbours, SymmetricAddress};

    fn text(signature: Signature, event: Event, definitions: &Definitions, posts: u64) -> String {
        let mut out = Vec::new();
        write(
            &mut out,
            &event,
            &signature,
            definitions,
            &Posts(posts),
            |ticks| ticks as f64,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    fn end(peer: i32, tag: i32, bytes: u64) -> Endpoint {
        Endpoint { peer, tag, bytes }
    }

    #[test]
    fn messages_say_peer_tag_and_bytes() {
        let signature = Signature {
            flags: flags::RECEIVES | flags::ANY_SOURCE,
            receive: end(PEER_ANY, 7, 64),
            group: WORLD,
            ..Default::default()
        };
        let event = Event {
            receive_endpoint: Some((3, 7)),
            ..Default::default()
        };
        assert_eq!(
            text(signature, event, &Definitions::default(), 0),
            " from=3 tag=7 bytes=64 comm=world any_source"
        );
    }

    #[test]
    fn completions_name_requests_and_what_they_received() {
        let mut definitions = Definitions::default();
        assert!(definitions.insert(Definition::Signature(Signature {
            id: 1,
            receive: end(2, 5, 8),
            ..Default::default()
        })));
        let entries = vec![(2, 0), (1, 1), (3, OUTCOME_CANCELLED), (99, 0)];
        assert!(definitions.insert(Definition::CompletionList { id: 1, entries }));
        let signature = Signature {
            completes: 1,
            ..Default::default()
        };
        assert_eq!(
            text(signature, Event::default(), &definitions, 10),
            " completes=[#8 #9(from=2 tag=5 bytes=8) #7(cancelled) #?]"
        );
    }

    #[test]
    fn collectives_say_root_and_volume() {
        let signature = Signature {
            flags: flags::COLLECTIVE,
            send: end(1, 0, 8),
            group: 0x1234,
            ..Default::default()
        };
        assert_eq!(
            text(signature, Event::default(), &Definitions::default(), 0),
            " root=1 sent=8 received=0 comm=0x1234"
        );
    }

    #[test]
    fn symmetric_addresses_say_segment_and_offset() {
        let wait = calls::CALLS.iter();
        let mut wait = wait.filter(|call| call.name == "shmem_int_wait_until");
        let signature = Signature {
            operation: wait.next().unwrap().number,
            receive: end(PEER_NONE, 5, 4),
            parameter: SymmetricAddress::new(SymmetricAddress::HEAP, 0xd0).0 as i64,
            ..Default::default()
        };
        let event = Event {
            value: Some(-1i64 as u64),
            ..Default::default()
        };
        assert_eq!(
            text(signature, event.clone(), &Definitions::default(), 0),
            " bytes=4 address=heap+0xd0 until=ge value=-1"
        );
        let event = Event {
            address: Some(SymmetricAddress::new(SymmetricAddress::DATA, 0x40).0),
            ..event
        };
        assert_eq!(
            text(signature, event, &Definitions::default(), 0),
            " bytes=4 address=data+0x40 until=ge value=-1"
        );
    }

    #[test]
    fn what_makes_a_topology_says_the_neighbours() {
        let mut definitions = Definitions::default();
        assert!(definitions.insert(Definition::Neighbours(Neighbours {
            communicator: 0x77,
            sources: vec![3, 1],
        })));
        let signature = Signature {
            object: 0x77,
            send: end(PEER_ANY, 0, 0),
            flags: flags::COLLECTIVE,
            ..Default::default()
        };
        assert_eq!(
            text(signature, Event::default(), &definitions, 0),
            " object=0x77 neighbours=3,1"
        );
    }

    #[test]
    fn calls_without_a_partner_say_their_volume() {
        let signature = Signature {
            send: end(PEER_NONE, 0, 4),
            receive: end(PEER_NONE, 0, 0),
            ..Default::default()
        };
        assert_eq!(
            text(signature, Event::default(), &Definitions::default(), 0),
            " bytes=4"
        );
    }

    #[test]
    fn samples_say_the_time_that_they_stand_for() {
        let event = Event {
            sampled: vec![(7, 1500), (0, 20)],
            ..Default::default()
        };
        assert_eq!(
            text(Signature::default(), event, &Definitions::default(), 0),
            " sampled=path 7:1500.000us sampled=path 0:20.000us"
        );
    }

    #[test]
    fn seconds_have_all_digits() {
        assert_eq!(seconds(1_234_567_890), "1.234567890");
        assert_eq!(seconds(-5), "-0.000000005");
    }
}
