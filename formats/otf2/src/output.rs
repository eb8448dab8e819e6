//! The working copy of a location: calls become records, and what repeats is defined once.

use laggard_trace::{
    Definition, Endpoint, Extension, Frame, LocationWriter, OUTCOME_CANCELLED, PEER_NONE, Record,
    Signature, flags,
};
use rustc_hash::FxHashMap;

use crate::definitions::Definitions;
use crate::file::Unnamed;
use crate::pending::Done;

/// Signatures before fallbacks take over, and completion lists.
const MOST: usize = 65_536;
/// Entries of a completion list that is worth defining.
const LONGEST_LIST: usize = 4096;

/// The half of a message that a call does not have.
pub const NOBODY: Endpoint = Endpoint {
    peer: PEER_NONE,
    tag: 0,
    bytes: 0,
};

/// Writes a location's records and definitions.
pub struct Output<'a> {
    writer: LocationWriter<Unnamed>,
    definitions: &'a Definitions,
    strings: FxHashMap<u32, u32>,
    texts: u32,
    call_paths: u32,
    signatures: FxHashMap<Signature, u32>,
    lists: FxHashMap<Vec<(u32, u32)>, u32>,
    /// Records by signature.
    pub counts: Vec<u64>,
    /// Requests posted in records so far.
    posts: u64,
    /// Calls.
    pub calls: u64,
    /// Ticks at which the last call ended.
    pub last: u64,
}

impl<'a> Output<'a> {
    /// Nothing written yet but the file's header.
    pub fn new(writer: LocationWriter<Unnamed>, definitions: &'a Definitions) -> Self {
        Output {
            writer,
            definitions,
            strings: FxHashMap::default(),
            texts: 0,
            call_paths: 0,
            signatures: FxHashMap::default(),
            lists: FxHashMap::default(),
            counts: vec![0],
            posts: 0,
            calls: 0,
            last: 0,
        }
    }

    /// The writer, for what is no call.
    pub fn writer(&mut self) -> &mut LocationWriter<Unnamed> {
        &mut self.writer
    }

    /// The writer, to be closed.
    pub fn into_writer(self) -> LocationWriter<Unnamed> {
        self.writer
    }

    /// The id of a text.
    pub fn text(&mut self, bytes: &[u8]) -> u32 {
        self.texts += 1;
        let (id, bytes) = (self.texts, bytes.to_vec());
        self.writer.define(&[Definition::String { id, bytes }]);
        id
    }

    /// The id of a text of the archive; 0 if it is empty or not defined.
    pub fn string(&mut self, number: u32) -> u32 {
        let text = self.definitions.string(number);
        if text.is_empty() {
            return 0;
        }
        if let Some(&id) = self.strings.get(&number) {
            return id;
        }
        let id = self.text(text);
        self.strings.insert(number, id);
        id
    }

    /// Tells something about the run.
    pub fn property(&mut self, key: &str, value: &[u8]) {
        let (key, value) = (self.text(key.as_bytes()), self.text(value));
        self.writer.define(&[Definition::Property { key, value }]);
    }

    /// Defines a call path, innermost frame first: functions, files and lines, as the archive
    /// numbers their texts.
    pub fn call_path(&mut self, frames: &[(u32, u32, u32)]) -> u32 {
        let frames = frames.iter().map(|&(function, file, line)| Frame::Source {
            file: self.string(file),
            function: self.string(function),
            line,
        });
        let frames: Vec<Frame> = frames.collect();
        self.call_paths += 1;
        let id = self.call_paths;
        self.writer.define(&[Definition::CallPath { id, frames }]);
        id
    }

    /// Writes a call, or one of several requests that it posted.
    pub fn record(&mut self, done: &Done) {
        let mut signature = done.signature;
        let mut extensions: Vec<Record> = Vec::new();
        let completed = done.completes.iter().map(|one| {
            let delta = u32::try_from(self.posts.saturating_sub(one.post)).unwrap_or(u32::MAX);
            (delta, if one.cancelled { OUTCOME_CANCELLED } else { 0 })
        });
        let completed: Vec<(u32, u32)> = completed.collect();
        match self.list(&completed) {
            Some(list) => signature.completes = list,
            None => {
                extensions.extend(completed.iter().map(|&(delta, outcome)| {
                    Record::extension(Extension::Completed, delta, outcome)
                }))
            }
        }
        let id = self.signature(&signature, &mut extensions);
        match extensions.is_empty() {
            true => self.writer.push(done.enter, done.leave, id),
            false => self
                .writer
                .push_extended(&extensions, done.enter, done.leave, id),
        }
        self.counts[id as usize] += 1;
        self.posts += u64::from(signature.has(flags::POSTS));
        self.calls += u64::from(!signature.has(flags::PART));
        self.last = self.last.max(done.leave);
    }

    /// The id of a completion list, 0 if it is empty; `None` if it is not worth one.
    fn list(&mut self, entries: &[(u32, u32)]) -> Option<u32> {
        if entries.is_empty() {
            return Some(0);
        }
        if let Some(&id) = self.lists.get(entries) {
            return Some(id);
        }
        if self.signatures.len() >= MOST || self.lists.len() >= MOST || entries.len() > LONGEST_LIST
        {
            return None;
        }
        let id = self.lists.len() as u32 + 1;
        let entries = entries.to_vec();
        self.lists.insert(entries.clone(), id);
        self.writer
            .define(&[Definition::CompletionList { id, entries }]);
        Some(id)
    }

    /// The id of a signature. There are not more of them than memory should hold: what
    /// differs from call to call beyond that goes into extension records.
    fn signature(&mut self, wanted: &Signature, extensions: &mut Vec<Record>) -> u32 {
        if let Some(&id) = self.signatures.get(wanted) {
            return id;
        }
        if self.signatures.len() < MOST {
            return self.define(*wanted);
        }
        let bare = Signature {
            send: NOBODY,
            receive: NOBODY,
            parameter: 0,
            ..*wanted
        };
        for (half, endpoint, bytes) in [
            (wanted.send, Extension::SendEndpoint, Extension::SendBytes),
            (
                wanted.receive,
                Extension::ReceiveEndpoint,
                Extension::ReceiveBytes,
            ),
        ] {
            if half.peer != PEER_NONE || half.tag != 0 {
                extensions.push(Record::extension(
                    endpoint,
                    half.peer as u32,
                    half.tag as u32,
                ));
            }
            if half.bytes != 0 {
                extensions.push(Record::extension_u64(bytes, half.bytes));
            }
        }
        if wanted.parameter != 0 {
            extensions.push(Record::extension_u64(
                Extension::Value,
                wanted.parameter as u64,
            ));
        }
        match self.signatures.get(&bare) {
            Some(&id) => id,
            None => self.define(bare),
        }
    }

    fn define(&mut self, signature: Signature) -> u32 {
        let id = self.counts.len() as u32;
        self.counts.push(0);
        self.signatures.insert(signature, id);
        let defined = Signature { id, ..signature };
        self.writer.define(&[Definition::Signature(defined)]);
        id
    }
}
