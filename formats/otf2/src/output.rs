//! The working copy of a location: calls become records, and repeated data becomes definitions.

use std::collections::BTreeMap;

use laggard_trace::calls::number;
use laggard_trace::{
    Beside, Definition, Endpoint, Extension, Frame, LocationWriter, MOMENT, OUTCOME_CANCELLED,
    PEER_NONE, ProfileEntry, Record, Signature, flags,
};
use rustc_hash::FxHashMap;

use crate::constructs;
use crate::definitions::Definitions;
use crate::file::Unnamed;
use crate::pending::Done;

/// Most signatures before fallbacks are used, and most completion lists.
const MOST: usize = 65_536;
/// Most entries of a completion list that is defined.
const LONGEST_LIST: usize = 4096;

/// The half of a message that a call does not have.
pub const NOBODY: Endpoint = Endpoint {
    peer: PEER_NONE,
    tag: 0,
    bytes: 0,
};

/// Usage of a signature.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    flags: u16,
    /// Sums over its records.
    sums: ProfileEntry,
    /// Number of requests that use it as their outcome.
    outcomes: u64,
}

/// Writes a location's records and definitions.
pub struct Output<'a> {
    writer: LocationWriter<Unnamed>,
    definitions: &'a Definitions,
    strings: FxHashMap<u32, u32>,
    texts: u32,
    call_paths: u32,
    signatures: FxHashMap<Signature, u32>,
    lists: FxHashMap<Vec<(u32, u32)>, u32>,
    peers: FxHashMap<Vec<u32>, u32>,
    /// Usage of the signatures, by number.
    uses: Vec<Use>,
    /// Ticks that a sample stands for.
    pub sample_ticks: u64,
    /// Number of requests posted in records so far.
    posts: u64,
    /// Number of calls.
    pub calls: u64,
    /// End of the last call, ticks.
    pub last: u64,
}

impl<'a> Output<'a> {
    /// Starts after the file's header.
    pub fn new(writer: LocationWriter<Unnamed>, definitions: &'a Definitions) -> Self {
        Output {
            writer,
            definitions,
            strings: FxHashMap::default(),
            texts: 0,
            call_paths: 0,
            signatures: FxHashMap::default(),
            lists: FxHashMap::default(),
            peers: FxHashMap::default(),
            uses: vec![Use::default()],
            sample_ticks: 0,
            posts: 0,
            calls: 0,
            last: 0,
        }
    }

    /// The writer, for data that belongs to no call.
    pub fn writer(&mut self) -> &mut LocationWriter<Unnamed> {
        &mut self.writer
    }

    /// The writer, to be closed.
    pub fn into_writer(self) -> LocationWriter<Unnamed> {
        self.writer
    }

    /// Number of records and of request outcomes, by signature.
    pub fn counts(&self) -> Vec<u64> {
        let counts = self.uses.iter().map(|of| of.sums.count + of.outcomes);
        counts.collect()
    }

    /// The profile of all calls so far.
    pub fn profile(&self) -> Vec<ProfileEntry> {
        let mut profile: BTreeMap<(u16, u16, u32), ProfileEntry> = BTreeMap::new();
        let is_call = |of: &&Use| of.flags & flags::PART == 0 && of.sums.count > 0;
        for Use { sums, .. } in self.uses.iter().filter(is_call) {
            let same = profile.entry((sums.operation, sums.flags, sums.call_path));
            same.and_modify(|all| add(all, sums)).or_insert(*sums);
        }
        profile.into_values().collect()
    }

    /// The id of a text.
    pub fn text(&mut self, bytes: &[u8]) -> u32 {
        self.texts += 1;
        let (id, bytes) = (self.texts, bytes.to_vec());
        self.writer.define(&[Definition::String { id, bytes }]);
        id
    }

    /// The id of a text of the archive; 0 if it is empty or undefined.
    pub fn string(&mut self, number: u32) -> u32 {
        let text = constructs::shown(self.definitions.string(number));
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

    /// The id of a list of world ranks; 0 if there are too many lists.
    pub fn peers(&mut self, ranks: Vec<u32>) -> u32 {
        if let Some(&id) = self.peers.get(&ranks) {
            return id;
        }
        if self.peers.len() >= MOST {
            return 0;
        }
        let id = self.peers.len() as u32 + 1;
        self.peers.insert(ranks.clone(), id);
        self.writer.define(&[Definition::Peers { id, ranks }]);
        id
    }

    /// Writes a property of the run.
    pub fn property(&mut self, key: &str, value: &[u8]) {
        let (key, value) = (self.text(key.as_bytes()), self.text(value));
        self.writer.define(&[Definition::Property { key, value }]);
    }

    /// Defines a call path, innermost frame first: function, file (text numbers of the archive)
    /// and line.
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
            (delta, one.outcome)
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
        let told = [
            (Extension::Address, done.told.address()),
            (Extension::Value, done.told.value()),
            (Extension::Off, done.told.off().filter(|&off| off > 0)),
        ];
        let told = told.into_iter();
        let before = Beside {
            counted: done.counted,
            ..done.told.before()
        };
        extensions.extend(before.extensions());
        extensions.extend(done.told.inside().extensions_inside());
        extensions
            .extend(told.filter_map(|(kind, value)| Some(Record::extension_u64(kind, value?))));
        for &(path, ticks) in &done.computed {
            extensions.extend(Record::of_ticks(Extension::Computed, path, ticks));
        }
        self.add_samples(done, &mut extensions);
        let id = self.signature(&signature, &mut extensions);
        match extensions.is_empty() {
            true => self.writer.push(done.enter, done.leave, id),
            false => self
                .writer
                .push_extended(&extensions, done.enter, done.leave, id),
        }
        add(&mut self.uses[id as usize].sums, &once(done));
        let told = completed.iter().map(|(_, outcome)| *outcome);
        for outcome in told.filter(|outcome| ![0, OUTCOME_CANCELLED].contains(outcome)) {
            self.uses[outcome as usize].outcomes += 1;
        }
        self.posts += u64::from(signature.has(flags::POSTS));
        self.calls += u64::from(!signature.has(flags::PART));
        self.last = self.last.max(done.leave);
    }

    /// The samples before a call: by call path, then in order of time.
    fn add_samples(&self, done: &Done, to: &mut Vec<Record>) {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for &(path, _) in &done.sampled {
            let sum = sums.entry(path).or_default();
            *sum = sum.saturating_add(self.sample_ticks);
        }
        for (path, mut ticks) in sums {
            while ticks > 0 {
                let part = u32::try_from(ticks).unwrap_or(u32::MAX);
                to.push(Record::extension(Extension::Sampled, path, part));
                ticks -= u64::from(part);
            }
        }
        for &(path, time) in &done.sampled {
            let before = done.enter.saturating_sub(time) / MOMENT;
            let before = u32::try_from(before).unwrap_or(u32::MAX);
            to.push(Record::extension(Extension::SampledAt, path, before));
        }
    }

    /// The id of a completion list, 0 if it is empty; `None` if it gets no definition.
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

    /// The id of a signature. Their number is limited to bound memory; beyond the limit, data
    /// that differs from call to call goes into extension records.
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

    /// The signature with the actual message of a receive posted with a wildcard; 0 if there
    /// are too many signatures.
    pub fn received(&mut self, group: u64, receive: Endpoint) -> u32 {
        let signature = Signature {
            operation: number::MPI_Irecv,
            flags: flags::POSTS | flags::RECEIVES,
            group,
            receive,
            ..Signature::default()
        };
        match self.signatures.get(&signature) {
            Some(&id) => id,
            None if self.signatures.len() < MOST => self.define(signature),
            None => 0,
        }
    }

    fn define(&mut self, signature: Signature) -> u32 {
        let id = self.uses.len() as u32;
        let nothing = ProfileEntry {
            operation: signature.operation,
            flags: signature.flags & flags::ON_FILES,
            call_path: signature.call_path,
            minimum: u64::MAX,
            ..ProfileEntry::default()
        };
        self.uses.push(Use {
            flags: signature.flags,
            sums: nothing,
            outcomes: 0,
        });
        self.signatures.insert(signature, id);
        let defined = Signature { id, ..signature };
        self.writer.define(&[Definition::Signature(defined)]);
        id
    }
}

/// The profile of a single call.
fn once(done: &Done) -> ProfileEntry {
    let ticks = done.leave.saturating_sub(done.enter);
    let (sent, received) = (done.signature.send.bytes, done.signature.receive.bytes);
    ProfileEntry {
        count: 1,
        total: ticks,
        minimum: ticks,
        maximum: ticks,
        bytes: sent.saturating_add(received),
        sum_of_squares: u128::from(ticks).saturating_mul(ticks.into()),
        ..ProfileEntry::default()
    }
}

/// Adds calls of the same kind to a sum.
fn add(sum: &mut ProfileEntry, more: &ProfileEntry) {
    sum.count += more.count;
    sum.total = sum.total.saturating_add(more.total);
    sum.minimum = sum.minimum.min(more.minimum);
    sum.maximum = sum.maximum.max(more.maximum);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
    let squares = sum.sum_of_squares;
    sum.sum_of_squares = squares.saturating_add(more.sum_of_squares);
}
