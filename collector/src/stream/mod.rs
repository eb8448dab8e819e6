//! One location: its file, and the definitions that its records need.

mod around;
mod definitions;
mod keyed;
mod place;
mod polling;
mod regions;
mod samples;
mod so_far;
mod steered;
mod stretches;

use std::io;

use laggard_callpath::{CallSite, ModuleId, PathId, Tracer};
use laggard_trace::calls::user::STEER;
use laggard_trace::{
    Beside, Definition, End, Extension, FileHeader, LocationWriter, PEER_NONE, Record, Signature,
    Subject,
    calls::{self, Call},
    flags,
};

use crate::call::guarded;
use crate::clock;
use crate::constants::Handle;
use crate::counters::{self, Counters};
use crate::ffi::{MPI_Comm, MPI_Datatype};
use crate::groups::{self, Group, Kind, Lately, Pes};
use crate::hash::{FastMap, FastSet};
use crate::lists::Lists;
use crate::log;
use crate::options::{FilePer, SampleBy};
use crate::sampling::Wanted;
use crate::signature::{Half, Lookup, NOBODY, Raw, Signatures};
use crate::steering;
use crate::types::TypeSizes;
pub use around::Region;
use around::Teams;
use definitions::completes;
use keyed::Codes;
use place::Place;
use polling::{POLLING_GAP, POLLING_LONGEST, Polling};
use regions::Regions;
pub use regions::{Frame, LONGEST_NAME, Moment, Variable};
use samples::Samples;
pub use samples::before_unload;
use so_far::SoFar;
use steered::Steered;
use stretches::Stretches;
pub use stretches::{Used, delay_ns};

/// Settings that the files of all locations share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory of the trace.
    pub directory: std::path::PathBuf,
    /// The header, without thread and times.
    pub header: FileHeader,
    /// Most bytes of a file.
    pub max_bytes: Option<u64>,
    /// Bytes mapped at a time.
    pub window: usize,
    /// Scope of a trace file.
    pub file_per: FilePer,
    /// Most frames of a call path.
    pub depth: usize,
    /// Whether records are written; otherwise only the profile.
    pub records: bool,
    /// Whether it is told what stretches of computation were beside work.
    pub processor_time: bool,
    /// What is counted in them.
    pub counters: counters::Wanted,
    /// Samples of stretches of computation.
    pub sampling: Option<Wanted>,
    /// How they are taken if the user wants some later.
    pub sample_by: SampleBy,
}

/// The recording of one location.
///
/// The fields that every call reads come first, see [`Thread`](crate::thread::Thread).
#[repr(C)]
pub struct Stream {
    records: bool,
    paused: bool,
    /// Node of the innermost open named region, see [`regions`]; 0 = none.
    within: u32,
    /// The call path of the parallel region of another thread that this one is in; empty = none.
    around: PathId,
    depth: usize,
    groups: Lately,
    types: TypeSizes,
    /// Number of requests posted so far.
    posts: u64,
    /// Number of calls that became records.
    recorded: u64,
    stretches: Stretches,
    polling: Polling,
    writer: LocationWriter<Place>,
    signatures: Signatures,
    tracer: Tracer,
    polling_gap: u64,
    polling_longest: u64,
    lists: Lists,
    /// `None` until the first region.
    regions: Option<Box<Regions>>,
    /// `None` if the thread is not sampled.
    samples: Option<Box<Samples>>,
    codes: Codes,
    teams: Teams,
    steered: Steered,
    so_far: SoFar,
    /// Number of calls left out while paused.
    skipped: u64,
    /// Number of calls beyond all limits; nothing else is known of them.
    lost: u64,
    strings: FastMap<Box<[u8]>, u32>,
    modules: FastMap<ModuleId, u32>,
    /// Groups that the file defines, without those freed since.
    defined: FastSet<u64>,
    /// Lists of peers that the file defines, by address.
    peers: FastMap<usize, u32>,
    /// The thread, and the processors that it may run on, as last told.
    thread: u32,
    affinity: String,
}

/// Since when a further thread is known.
#[derive(Clone, Copy)]
pub struct Birth {
    /// Ticks.
    pub at: u64,
    /// Whether it began then; else recording did, or went on.
    pub is_whole: bool,
    /// The number of the location that started it, if one did.
    pub creator: Option<u32>,
}

impl Stream {
    /// Makes the file of a location. Builds the stream in its final place.
    #[inline(never)]
    pub fn create(
        stream: &mut Option<Stream>,
        settings: &Settings,
        (thread, born): (u32, Option<Birth>),
    ) -> io::Result<()> {
        let mut header = settings.header;
        header.thread = thread;
        // SAFETY: they take no arguments.
        (header.tid, header.handle) =
            unsafe { (libc::gettid().cast_unsigned(), libc::pthread_self()) };
        (header.start_ticks, header.start_unix_ns) = (clock::now(), clock::unix_ns());
        let space = Place::create(settings, &header)?;
        let mut writer = LocationWriter::new(space, header, settings.max_bytes)?;
        writer.keep_open_call();
        if !settings.records {
            writer.open_call().note_incomplete();
        }
        let told = settings.records && settings.processor_time;
        let (counters, missing) = match told {
            true => Counters::start(&settings.counters),
            false => (None, Vec::new()),
        };
        *stream = Some(Stream {
            writer,
            records: settings.records,
            depth: settings.depth,
            polling_gap: clock::ticks(POLLING_GAP),
            polling_longest: clock::ticks(POLLING_LONGEST),
            stretches: Stretches::new(
                told,
                settings.records && settings.sampling.is_some(),
                counters,
                born.filter(|born| born.is_whole).map(|born| born.at),
            ),
            samples: None,
            steered: Steered::new(settings.depth, settings.sampling, settings.sample_by),
            so_far: SoFar::default(),
            polling: Polling::default(),
            signatures: Signatures::new(),
            lists: Lists::default(),
            tracer: Tracer::new(),
            regions: None,
            codes: Codes::default(),
            teams: Teams::default(),
            within: 0,
            around: PathId::EMPTY,
            groups: Lately::new(),
            types: TypeSizes::new(),
            posts: 0,
            recorded: 0,
            skipped: 0,
            lost: 0,
            paused: false,
            strings: FastMap::default(),
            modules: FastMap::default(),
            defined: FastSet::default(),
            peers: FastMap::default(),
            thread: header.tid,
            affinity: String::new(),
        });
        if let Some(stream) = stream {
            stream.define_affinity();
            stream.define_counters(&missing, (settings, thread));
            stream.define_birth(born);
            // What is told of calls without records is told then, too.
            if steering::is_on() || !settings.records {
                stream
                    .stretches
                    .end_by_the_time(clock::ticks(steering::LOOK));
            }
        }
        if let (Some(stream), Some(wanted)) =
            (stream, settings.sampling.filter(|_| settings.records))
        {
            stream.begin_samples(wanted);
        }
        Ok(())
    }

    /// The id of a call's path.
    #[inline(always)]
    pub fn path(&mut self, site: &CallSite) -> u32 {
        // SAFETY: the call site of the wrapper that runs now on this thread.
        let path = unsafe { self.tracer.capture(site, self.depth) };
        if self.within != 0 || self.around != PathId::EMPTY || self.tracer.has_new() {
            return self.complete(path);
        }
        path.0
    }

    /// Adds the open named regions to a path, and what is around it, and defines the new parts.
    #[inline(never)]
    fn complete(&mut self, path: PathId) -> u32 {
        let completed = guarded(|| {
            let path = match self.within {
                0 => path,
                _ => self.path_within(path),
            };
            let (around, depth) = (self.around, self.depth);
            let path = self
                .teams
                .path_around(&mut self.tracer, (path, around), depth);
            if self.tracer.has_new() {
                self.define_paths();
            }
            path
        });
        completed.unwrap_or(PathId::EMPTY).0
    }

    /// Takes the time before a call and marks it as open. Returns the time.
    #[inline(always)]
    pub fn enters(&mut self, number: u16, path: u32, subject: &Subject) -> u64 {
        let enter = self.ends_stretch();
        self.writer.open_call().enter(enter, number, path, subject);
        enter
    }

    /// Whether the stretch that ends now is to be looked at.
    #[inline(always)]
    pub fn is_long(&self, now: u64) -> bool {
        self.stretches.is_long(now)
    }

    /// Takes the time at the end of a stretch outside of calls.
    #[inline(always)]
    pub fn ends_stretch(&mut self) -> u64 {
        let now = clock::now();
        match self.stretches.is_told(now) {
            true => self.look(now),
            false => now,
        }
    }

    /// The same after a call between these times. Returns what it was beside work since.
    pub fn ends_stretch_before(&mut self, enter: u64, leave: u64) -> Beside {
        self.ends_stretch();
        self.stretches.divide(enter, leave)
    }

    /// The stretch that has begun was this beside work so far.
    pub fn goes_on_with(&mut self, beside: &Beside) {
        self.stretches.add(beside);
    }

    /// Looks at the stretch that ends now. Returns when the look was over.
    #[cold]
    #[inline(never)]
    fn look(&mut self, now: u64) -> u64 {
        if self.samples.is_some() {
            let since = self.stretches.left();
            guarded(|| self.take_samples(since));
        }
        if !self.stretches.is_long(now) {
            return clock::now();
        }
        // A short call that comes now finds no old reading when it returns.
        self.look_at_wishes(now);
        self.tell_profile(now);
        self.stretches.look(now)
    }

    /// Marks the open call as returned.
    #[inline(always)]
    pub fn returns(&mut self, enter: u64, leave: u64) {
        self.is_back();
        self.returned(enter, leave);
    }

    /// Marks the open call as returned; its record follows.
    #[inline(always)]
    pub fn is_back(&mut self) {
        self.writer.open_call().leave();
    }

    /// A call returned that was not marked as open.
    #[inline(always)]
    pub fn returned(&mut self, enter: u64, leave: u64) {
        if self.stretches.returned(enter, leave) {
            self.returned_late(enter, leave);
        }
    }

    /// The group of a handle, which may be invalid; `None` if unknown.
    #[inline(always)]
    pub fn known_communicator(&mut self, comm: MPI_Comm) -> Option<&'static Group> {
        let handle = comm.bits();
        self.groups
            .group(handle, || groups::known(Kind::Intra, handle))
    }

    /// The group of a valid communicator.
    #[inline(always)]
    pub fn communicator(&mut self, comm: MPI_Comm) -> &'static Group {
        let known = self
            .groups
            .group(comm.bits(), || Some(groups::communicator(comm)));
        // SAFETY: the look-up always yields a group.
        unsafe { known.unwrap_unchecked() }
    }

    /// The group of a window or file; `None` if unknown.
    pub fn attached(&mut self, kind: Kind, handle: usize) -> Option<&'static Group> {
        groups::known(kind, handle)
    }

    /// The group of these PEs, if this process is one of them.
    #[inline(always)]
    pub fn pes(&mut self, pes: Pes) -> Option<&'static Group> {
        self.groups.group(pes.key(), || groups::of_pes(pes))
    }

    /// Bytes of `count` elements of a valid datatype.
    #[inline(always)]
    pub fn volume(&mut self, count: i64, datatype: MPI_Datatype) -> u64 {
        (count as u64).wrapping_mul(self.types.size(datatype))
    }

    /// Post number of the next request.
    #[inline(always)]
    pub fn posts(&self) -> u64 {
        self.posts
    }

    /// Notes that recording was paused here.
    pub fn note_paused(&mut self) {
        self.paused = true;
        self.writer.open_call().note_incomplete();
    }

    /// Forgets what is told of the stretch before a call without a record.
    fn drop_pending(&mut self) {
        if self.stretches.pending != 0 && self.has_changes() {
            self.tell_changes(Some(clock::now()));
        }
        self.drop_samples();
        self.drop_computed();
    }

    /// Counts a call left out while paused.
    pub fn skip(&mut self) {
        self.note_paused();
        self.drop_pending();
        self.skipped += 1;
    }

    /// Adds a call without a record to the statistics.
    pub fn count(&mut self, raw: &Raw, enter: u64, leave: u64) {
        self.drop_pending();
        match self.find_or_make(raw) {
            Lookup::Known(found) | Lookup::New(found) | Lookup::Fallback { found, .. } => {
                let statistics = self.signatures.statistics(found);
                statistics.add(leave.wrapping_sub(enter));
            }
            Lookup::Full => self.lost += 1,
        }
    }

    /// Records a call and adds it to the statistics.
    #[inline(always)]
    pub fn record(&mut self, raw: &Raw, enter: u64, leave: u64) {
        if let Some(found) = self.signatures.find_recorded(raw) {
            self.signatures
                .statistics(found)
                .add(leave.wrapping_sub(enter));
            self.posts += u64::from(raw.flags & flags::POSTS);
            self.push(enter, leave, found.id);
        } else {
            // A copy, so that `raw` itself can stay in registers.
            let raw = *raw;
            self.record_slowly(&raw, &[], enter, leave);
        }
    }

    /// Records a call on symmetric memory. An address that repeats becomes part of the
    /// signature; any other goes into an extension record.
    #[inline(always)]
    pub fn record_on_memory(
        &mut self,
        raw: &Raw,
        address: u64,
        value: Option<u64>,
        enter: u64,
        leave: u64,
    ) {
        let with_address = Raw {
            extra: address,
            ..*raw
        };
        let Some(found) = self.signatures.find(&with_address) else {
            let raw = *raw;
            return self.record_on_memory_slowly(&raw, address, value, enter, leave);
        };
        let statistics = self.signatures.statistics(found);
        statistics.add(leave.wrapping_sub(enter));
        self.posts += u64::from(raw.flags & flags::POSTS);
        match value.map(|value| Record::extension_u64(Extension::Value, value)) {
            Some(value) => self.push_extended(&[value], enter, leave, found.id),
            None => self.push(enter, leave, found.id),
        }
    }

    #[cold]
    #[inline(never)]
    fn record_on_memory_slowly(
        &mut self,
        raw: &Raw,
        address: u64,
        value: Option<u64>,
        enter: u64,
        leave: u64,
    ) {
        let mut extensions = [Record::default(); 2];
        let mut count = 0;
        let mut extend = |kind, value| {
            extensions[count] = Record::extension_u64(kind, value);
            count += 1;
        };
        let with_address = Raw {
            extra: address,
            ..*raw
        };
        let repeats = self.signatures.repeats(&with_address);
        if !repeats {
            extend(Extension::Address, address);
        }
        if let Some(value) = value {
            extend(Extension::Value, value);
        }
        let raw = if repeats { &with_address } else { raw };
        self.record_slowly(raw, &extensions[..count], enter, leave);
    }

    /// As [`record`](Self::record), with extension records before the call's own record.
    #[cold]
    #[inline(never)]
    pub fn record_slowly(&mut self, raw: &Raw, extensions: &[Record], enter: u64, leave: u64) {
        let duration = leave.wrapping_sub(enter);
        match self.find_or_make(raw) {
            Lookup::Known(found) | Lookup::New(found) => {
                self.signatures.statistics(found).add(duration);
                self.posts += u64::from(raw.flags & flags::POSTS);
                self.push_extended(extensions, enter, leave, found.id);
            }
            Lookup::Fallback { found, .. } => {
                let statistics = self.signatures.statistics(found);
                statistics.add(duration);
                let bytes = raw.send.bytes.wrapping_add(raw.receive.bytes);
                statistics.bytes = statistics.bytes.wrapping_add(bytes);
                self.posts += u64::from(raw.flags & flags::POSTS);
                let mut all = self.missing(raw);
                all.extend_from_slice(extensions);
                self.push_extended(&all, enter, leave, found.id);
            }
            Lookup::Full => self.lost += 1,
        }
    }

    /// Records one of several operations that a call started, without duration: the last one
    /// carries it.
    pub fn record_part(&mut self, raw: &Raw, enter: u64) {
        let found = match self.signature(raw) {
            Lookup::Known(found) | Lookup::New(found) => {
                self.push_extended(&[], enter, enter, found.id);
                found
            }
            Lookup::Fallback { found, .. } => {
                let missing = self.missing(raw);
                self.push_extended(&missing, enter, enter, found.id);
                found
            }
            Lookup::Full => {
                self.lost += 1;
                return;
            }
        };
        self.recorded -= u64::from(self.records);
        self.posts += u64::from(raw.flags & flags::POSTS);
        let bytes = raw.send.bytes.wrapping_add(raw.receive.bytes);
        let statistics = self.signatures.statistics(found);
        statistics.bytes = statistics.bytes.wrapping_add(bytes);
    }

    /// Records a call whose signature never repeats, because the call made an object.
    pub fn record_single(&mut self, signature: Signature, enter: u64, leave: u64) {
        let paused = signature.flags & (flags::PAUSED | flags::PROFILED);
        let found = self
            .signatures
            .single(signature.operation, signature.call_path, paused);
        self.signatures
            .statistics(found)
            .add(leave.wrapping_sub(enter));
        self.posts += u64::from(signature.flags & flags::POSTS);
        if self.is_writing() {
            let id = found.id;
            self.writer
                .define(&[Definition::Signature(Signature { id, ..signature })]);
        }
        self.push(enter, leave, found.id);
    }

    #[inline(always)]
    fn find_or_make(&mut self, raw: &Raw) -> Lookup {
        match self.signatures.find(raw) {
            Some(found) => Lookup::Known(found),
            None => self.signature(raw),
        }
    }

    #[inline(always)]
    fn push(&mut self, enter: u64, leave: u64, signature: u32) {
        if self.polling.count | self.stretches.pending != 0 {
            return self.push_after(&[], enter, leave, signature);
        }
        if self.records {
            self.recorded += 1;
            self.writer.push(enter, leave, signature);
        }
    }

    #[inline(always)]
    fn push_extended(&mut self, extensions: &[Record], enter: u64, leave: u64, signature: u32) {
        if extensions.is_empty() {
            return self.push(enter, leave, signature);
        }
        if self.polling.count | self.stretches.pending != 0 {
            return self.push_after(extensions, enter, leave, signature);
        }
        if self.records {
            self.recorded += 1;
            self.writer
                .push_extended(extensions, enter, leave, signature);
        }
    }

    /// As [`push_extended`](Self::push_extended), after what is not in the trace yet.
    #[cold]
    #[inline(never)]
    fn push_after(&mut self, extensions: &[Record], enter: u64, leave: u64, signature: u32) {
        let ends_stretch = self.stretches.pending != 0;
        self.tell_changes(Some(enter));
        let before = self.stretches.take();
        let inside = self.stretches.take_inside(enter, leave);
        if self.records {
            self.recorded += 1;
            let mut all: Vec<Record> = before.extensions().collect();
            all.extend(inside.extensions_inside());
            self.add_samples(enter, &mut all);
            if ends_stretch {
                self.add_computed(&before, &mut all);
            }
            all.extend_from_slice(extensions);
            self.writer.push_extended(&all, enter, leave, signature);
        }
        self.write_changes(leave, leave);
    }

    /// Whether records, and so their definitions, are written.
    fn is_writing(&self) -> bool {
        self.records && self.writer.is_recording()
    }

    /// The signature of a call, defined in the file.
    fn signature(&mut self, raw: &Raw) -> Lookup {
        let found = self.signatures.look_up(raw);
        match found {
            Lookup::New(found) => self.define_signature(raw, found.id),
            Lookup::Fallback { found, new: true } => {
                let bare = Raw {
                    send: NOBODY,
                    receive: NOBODY,
                    extra: 0,
                    ..*raw
                };
                self.define_signature(&bare, found.id);
            }
            _ => {}
        }
        found
    }

    fn define_signature(&mut self, raw: &Raw, id: u32) {
        // A profile alone tells by the definition that the recording was changed.
        let is_told = self.records || raw.operation == STEER;
        if !is_told || !self.writer.is_recording() {
            return;
        }
        if let Some(group) = raw.group() {
            self.define_group(group);
        }
        let signature = Signature {
            id,
            ..raw.translated(completes(raw.operation))
        };
        self.writer.define(&[Definition::Signature(signature)]);
    }

    /// Extension records for the parts that a fallback signature leaves out.
    fn missing(&self, raw: &Raw) -> Vec<Record> {
        let mut records = Vec::new();
        let mut half = |half: Half, endpoint, bytes| {
            let peer = raw
                .group()
                .map_or(half.peer(), |group| group.world_rank(half.peer()));
            if peer != PEER_NONE || half.tag() != 0 {
                records.push(Record::extension(endpoint, peer as u32, half.tag() as u32));
            }
            if half.bytes != 0 {
                records.push(Record::extension_u64(bytes, half.bytes));
            }
        };
        half(raw.send, Extension::SendEndpoint, Extension::SendBytes);
        half(
            raw.receive,
            Extension::ReceiveEndpoint,
            Extension::ReceiveBytes,
        );
        if completes(raw.operation) {
            let list = self.lists.entries(raw.extra as u32).iter();
            records.extend(
                list.map(|&(delta, outcome)| {
                    Record::extension(Extension::Completed, delta, outcome)
                }),
            );
        } else if raw.extra != 0 {
            let has_address = calls::call(raw.operation).is_some_and(Call::has_address);
            let kind = match has_address {
                true => Extension::Address,
                false => Extension::Value,
            };
            records.push(Record::extension_u64(kind, raw.extra));
        }
        records
    }

    /// Writes profile and end, and closes the file. `inside`: ticks in calls.
    pub fn close(mut self, reason: u32, limits: u32, unrecorded_threads: u64, inside: u64) {
        let (in_regions, are_left_out) = self.close_regions(inside);
        self.tell_changes(None);
        let processor_ns = self.stretches.processor_ns();
        self.define_delay();
        self.define_affinity();
        self.stop_samples();
        self.end_counters();
        let profile = self.signatures.profile.entries();
        // Small blocks: the reserve of memory must suffice for one.
        for entries in profile.chunks(256) {
            self.writer.profile(entries);
        }
        let mut limits = limits;
        if self.paused {
            limits |= laggard_trace::LIMIT_PAUSED;
        }
        if are_left_out {
            limits |= laggard_trace::LIMIT_REGIONS;
        }
        let unwritten = self.writer.lost();
        if self.writer.is_cut_off() {
            log::warning!(
                "the trace of this rank is cut short: somebody cut its file off while it was written; nothing more is kept of it"
            );
        } else if self.writer.limits() & laggard_trace::LIMIT_WRITE != 0 {
            log::warning!(
                "the trace of this rank is cut short: its file could not grow; {unwritten} calls are in the profile only"
            );
        }
        self.writer.finish(End {
            calls: self.signatures.profile.calls() + self.skipped + self.lost,
            recorded: self.recorded.saturating_sub(in_regions + unwritten),
            lost: self.lost,
            end_ticks: clock::now(),
            reason,
            limits,
            unrecorded_threads,
            processor_ns,
            reserved: 0,
        });
    }
}
