//! Prints the contents of location files: `dump FILE…`, or `dump -s FILE…` for a summary only.

use std::path::Path;

use laggard_trace::{Decoder, Endpoint, Frame, Location, Signature, calls, flags};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let summary = arguments.first().is_some_and(|first| first == "-s");
    if summary {
        arguments.remove(0);
    }
    for file in arguments {
        match Location::open(Path::new(&file)) {
            Ok(location) => dump(&location, !summary),
            Err(error) => eprintln!("{error}"),
        }
    }
}

fn dump(location: &Location, all: bool) {
    let h = &location.header;
    let (rank, ranks, thread) = (h.rank, h.ranks, h.thread);
    println!(
        "== rank {rank} of {ranks}, thread {thread}, {} bytes",
        location.size()
    );
    println!(
        "clock {} at {} Hz, end {:?}",
        h.clock, h.ticks_per_s, location.end
    );
    for point in &location.clock {
        println!("{point:?}");
    }
    for damage in &location.damage {
        println!("DAMAGE at {}: {}", damage.offset, damage.what.describe());
    }
    if all {
        definitions(location);
    }
    let calls = records(location, all);
    println!("{calls} records in {} chunks", location.chunks.len());
    for entry in location.profile.iter().filter(|_| all) {
        let (count, total) = (entry.count, entry.total);
        let name = calls::name(entry.operation);
        println!(
            "profile {name} path {} count {count} ticks {total}",
            entry.call_path
        );
    }
}

fn definitions(location: &Location) {
    let d = &location.definitions;
    for communicator in &d.communicators {
        println!("{communicator:x?} {:?}", d.string(communicator.name));
    }
    for neighbours in &d.neighbours {
        println!("{neighbours:x?}");
    }
    for grid in &d.grids {
        println!("{grid:x?}");
    }
    for handle in &d.group_handles {
        println!("window or file {handle:x?}");
    }
    for id in 1..d.call_path_count() as u32 {
        let frames = d.call_path(id).iter().map(|frame| match *frame {
            Frame::Native { module, offset } => {
                let path = d.module(module).map_or(0, |module| module.path);
                let path = d.string(path).into_owned();
                format!("{}+{offset:#x}", path.rsplit('/').next().unwrap_or(""))
            }
            Frame::Source {
                file,
                function,
                line,
            } => {
                format!("{} {}:{line}", d.string(function), d.string(file))
            }
        });
        println!("path {id}: {}", frames.collect::<Vec<_>>().join(" < "));
    }
}

fn records(location: &Location, all: bool) -> u64 {
    let mut calls = 0;
    for chunk in &location.chunks {
        if !location.verify(chunk) {
            println!("chunk at {}: checksum", chunk.offset);
        }
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            calls += 1;
            if !all {
                continue;
            }
            let signatures = location.definitions.signatures();
            let Some(s) = signatures.get(event.signature as usize) else {
                println!("UNDEFINED signature {}", event.signature);
                continue;
            };
            let at = event.enter.wrapping_sub(location.header.start_ticks) as i64;
            println!(
                "{at:>14} +{:<10} {}",
                event.leave - event.enter,
                describe(location, s)
            );
            let plain = laggard_trace::Event {
                enter: event.enter,
                leave: event.leave,
                signature: event.signature,
                ..Default::default()
            };
            if *event != plain {
                println!("{:>27}{event:?}", "");
            }
        }
    }
    calls
}

fn describe(location: &Location, s: &Signature) -> String {
    let names = [
        (flags::POSTS, "posts"),
        (flags::PART, "part"),
        (flags::ANY_SOURCE, "any_source"),
        (flags::ANY_TAG, "any_tag"),
        (flags::SENDS, "sends"),
        (flags::RECEIVES, "receives"),
        (flags::PEEKS, "peeks"),
        (flags::FAILED, "failed"),
        (flags::UNSUCCESSFUL, "unsuccessful"),
        (flags::PERSISTENT, "persistent"),
        (flags::COLLECTIVE, "collective"),
        (flags::PAUSED, "paused"),
        (flags::ON_FILES, "on_files"),
    ];
    let set: Vec<&str> = names
        .iter()
        .filter(|(bit, _)| s.has(*bit))
        .map(|(_, n)| *n)
        .collect();
    let half = |e: Endpoint| format!("{}/{}/{}", e.peer, e.tag, e.bytes);
    let mut text = format!(
        "#{} {} [{}] path {} group {:x} send {} receive {}",
        s.id,
        calls::name(s.operation),
        set.join(" "),
        s.call_path,
        s.group,
        half(s.send),
        half(s.receive),
    );
    if s.object != 0 {
        text += &format!(" object {:x}", s.object);
    }
    if s.parameter != 0 {
        text += &format!(" parameter {}", s.parameter);
    }
    for (delta, outcome) in location.definitions.completion_list(s.completes) {
        text += &format!(" completes {delta}");
        if let Some(o) = location
            .definitions
            .signatures()
            .get(*outcome as usize)
            .filter(|_| *outcome > 0)
        {
            text += &format!(" ({} as {})", calls::name(o.operation), half(o.receive));
        } else if *outcome != 0 {
            text += &format!(" (outcome {outcome:x})");
        }
    }
    text
}
