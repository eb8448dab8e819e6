//! pprof's profile (`profile.proto`), compressed with gzip.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::{Error, Frame, Kind, Stacks};

/// Writes a profile whose samples have one value per kind of time, and the sum.
///
/// # Errors
/// The system refuses to write.
pub fn pprof(stacks: &Stacks, out: impl Write) -> Result<(), Error> {
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&profile(stacks).encode_to_vec())?;
    out.finish()?.flush()?;
    Ok(())
}

fn profile(stacks: &Stacks) -> Profile {
    let mut tables = Tables::default();
    // The format requires "" as the first text.
    tables.text("");
    let unit = tables.text("nanoseconds");
    let names = Kind::ALL.map(Kind::name);
    let kinds = names.into_iter().chain(["time"]);
    let types: Vec<ValueType> = kinds
        .map(|name| ValueType {
            r#type: tables.text(name),
            unit,
        })
        .collect();
    let samples = stacks.iter().map(|(stack, ns)| {
        // The innermost frame comes first.
        let locations = stack.frames.iter().rev();
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        let of_kind = Kind::ALL.map(|kind| if kind == stack.kind { ns } else { 0 });
        Sample {
            location_id: locations.map(|frame| tables.location(frame)).collect(),
            value: of_kind.into_iter().chain([ns]).collect(),
        }
    });
    let sample = samples.collect();
    let comment = tables.text(&stacks.title);
    Profile {
        sample_type: types,
        sample,
        location: tables.locations,
        function: tables.functions,
        default_sample_type: tables.texts.get("time").copied().unwrap_or(0),
        string_table: tables.all_texts,
        duration_nanos: stacks.wall_ns,
        comment: vec![comment],
    }
}

/// Tables that samples refer to.
#[derive(Default)]
struct Tables {
    texts: FxHashMap<String, i64>,
    all_texts: Vec<String>,
    functions: Vec<Function>,
    function_of: FxHashMap<(String, String), u64>,
    locations: Vec<Location>,
    location_of: FxHashMap<Frame, u64>,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.texts.get(text) {
            return known;
        }
        self.all_texts.push(text.to_owned());
        let number = self.all_texts.len() as i64 - 1;
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let key = (frame.function.clone(), frame.file.clone());
        if let Some(&known) = self.function_of.get(&key) {
            return known;
        }
        let id = self.functions.len() as u64 + 1;
        let name = self.text(&frame.function);
        let filename = self.text(&frame.file);
        self.functions.push(Function {
            id,
            name,
            system_name: name,
            filename,
        });
        self.function_of.insert(key, id);
        id
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        if let Some(&known) = self.location_of.get(frame) {
            return known;
        }
        let function_id = self.function(frame);
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location {
            id,
            line: vec![Line {
                function_id,
                line: i64::from(frame.line),
            }],
        });
        self.location_of.insert(frame.clone(), id);
        id
    }
}

// The needed messages of `profile.proto`, with their names and numbers.

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}
