//! Writes small traces with known times, through the crate that the collector uses.

use std::collections::HashMap;
use std::path::Path;

use laggard_comm::Job;
use laggard_engine::AnalyzeOptions;
use laggard_overlay::{LinkJob, link};
use laggard_patterns::{PatternId, of_shape};
use laggard_report::{Agents, Report, RootCause};
use laggard_trace::calls::{Shape, number};
use laggard_trace::*;

/// One rank's (or thread's) calls. Times are ns; lines stand for call paths.
pub struct Calls {
    pub rank: u32,
    pub thread: u32,
    signatures: HashMap<Signature, u32>,
    lines: HashMap<u32, u32>,
    /// Numbers of functions beside the usual one, by name.
    functions: HashMap<String, u32>,
    lists: HashMap<Vec<(u32, u32)>, u32>,
    writer: Option<LocationWriter<MemorySpace>>,
    profile: HashMap<(u16, u32), ProfileEntry>,
    posts: u64,
    /// Computation before the next call: lines, and ns.
    computed: Vec<(u32, u64)>,
    /// Samples before the next call.
    sampled: Vec<Record>,
    /// What else the time before it was, and what the call is beside work.
    beside: Beside,
    inside: Beside,
    last: u64,
    /// Whether the process was killed, so that the file has no end.
    pub is_killed: bool,
}

impl Calls {
    pub fn new(rank: u32, thread: u32, ranks: u32) -> Calls {
        Calls::named(rank, thread, ranks, ["app.c", "work", "./app", "n1"])
    }

    /// The same with other names of the file, the function, the program and the host.
    pub fn named(rank: u32, thread: u32, ranks: u32, names: [&str; 4]) -> Calls {
        Calls::elsewhere(rank, thread, ranks, names, (1, 0))
    }

    /// The same on the host with this number, whose clock was measured so many ns wrong.
    pub fn elsewhere(
        rank: u32,
        thread: u32,
        ranks: u32,
        names: [&str; 4],
        (host_id, wrong_ns): (u64, i64),
    ) -> Calls {
        let mut header = FileHeader::new();
        header.rank = rank;
        header.thread = thread;
        header.ranks = ranks;
        header.run_id = [7; 16];
        header.host_id = host_id;
        let mut writer = LocationWriter::new(MemorySpace::new(), header, None).unwrap();
        let text = |id, text: &str| Definition::String {
            id,
            bytes: text.as_bytes().to_vec(),
        };
        writer.define(&[text(1, names[0]), text(2, names[1])]);
        if thread == 0 {
            // As the collector: a rank's first thread says what holds for all.
            writer.define(&[
                text(3, "program"),
                text(4, names[2]),
                text(5, "host"),
                text(6, names[3]),
                Definition::Property { key: 3, value: 4 },
                Definition::Property { key: 5, value: 6 },
            ]);
        }
        writer.define(&[Definition::Communicator(Communicator {
            id: WORLD,
            size: ranks,
            local_rank: rank,
            members: if rank == 0 {
                (0..ranks).collect()
            } else {
                Vec::new()
            },
            ..Communicator::default()
        })]);
        writer.clock(&[ClockPoint {
            local: 0,
            reference_ns: wrong_ns,
            error_ns: wrong_ns.unsigned_abs(),
            kind: 0,
            reserved: 0,
        }]);
        Calls {
            rank,
            thread,
            signatures: HashMap::new(),
            lines: HashMap::new(),
            functions: HashMap::new(),
            lists: HashMap::new(),
            writer: Some(writer),
            profile: HashMap::new(),
            posts: 0,
            computed: Vec::new(),
            sampled: Vec::new(),
            beside: Beside::default(),
            inside: Beside::default(),
            last: 0,
            is_killed: false,
        }
    }

    fn path(&mut self, line: u32) -> u32 {
        let next = self.lines.len() as u32 + 1;
        let writer = self.writer.as_mut().unwrap();
        *self.lines.entry(line).or_insert_with(|| {
            let frames = vec![Frame::Source {
                file: 1,
                function: 2,
                line,
            }];
            writer.define(&[Definition::CallPath { id: next, frames }]);
            next
        })
    }

    /// Lets a number that stands for a line stand for a call path of several, innermost first.
    pub fn wrapped(&mut self, number: u32, lines: &[u32]) {
        let id = self.lines.len() as u32 + 1;
        let frame = |&line: &u32| Frame::Source {
            file: 1,
            function: 2,
            line,
        };
        let frames = lines.iter().map(frame).collect();
        let writer = self.writer.as_mut().unwrap();
        writer.define(&[Definition::CallPath { id, frames }]);
        self.lines.insert(number, id);
    }

    /// Lets a line be in a function of its own.
    pub fn in_function(&mut self, line: u32, name: &str) {
        self.called(line, &[(line, name)]);
    }

    /// Lets a number that stands for a line stand for a call path of lines in functions, innermost first.
    pub fn called(&mut self, number: u32, frames: &[(u32, &str)]) {
        let id = self.lines.len() as u32 + 1;
        let writer = self.writer.as_mut().unwrap();
        let frames = frames.iter().map(|&(line, name)| {
            // Readers refuse numbers that no file of this size has room for.
            let next = 100 + self.functions.len() as u32;
            let function = *self.functions.entry(name.to_owned()).or_insert_with(|| {
                let bytes = name.as_bytes().to_vec();
                writer.define(&[Definition::String { id: next, bytes }]);
                next
            });
            Frame::Source {
                file: 1,
                function,
                line,
            }
        });
        let frames = frames.collect();
        writer.define(&[Definition::CallPath { id, frames }]);
        self.lines.insert(number, id);
    }

    /// The id of a signature at a line.
    pub fn signature(&mut self, line: u32, mut signature: Signature) -> u32 {
        signature.call_path = self.path(line);
        let next = self.signatures.len() as u32 + 1;
        let writer = self.writer.as_mut().unwrap();
        *self.signatures.entry(signature).or_insert_with(|| {
            writer.define(&[Definition::Signature(Signature {
                id: next,
                ..signature
            })]);
            next
        })
    }

    /// A call that is in no profile.
    pub fn unprofiled(&mut self, line: u32, signature: Signature, enter: u64, leave: u64) {
        self.extended(line, signature, &[], (enter, leave));
        if signature.has(flags::POSTS) {
            self.posts += 1;
        }
    }

    /// What was told of the next call and the time before it.
    fn told(&mut self) -> Vec<Record> {
        let computed = std::mem::take(&mut self.computed).into_iter();
        let computed = computed.map(|(line, time)| {
            let path = self.path(line);
            Record::extension(Extension::Computed, path, time as u32)
        });
        let computed: Vec<Record> = computed.collect();
        [
            computed,
            std::mem::take(&mut self.beside).extensions().collect(),
            std::mem::take(&mut self.inside)
                .extensions_inside()
                .collect(),
            std::mem::take(&mut self.sampled),
        ]
        .concat()
    }

    /// Before its next call, it computes for so long in the function at a line, ns.
    pub fn computes(&mut self, line: u32, time: u64) {
        self.computed.push((line, time));
    }

    /// Before its next call, it is sampled so often at a line; the samples stand for so many ns together.
    pub fn samples(&mut self, line: u32, samples: u32, time: u32) {
        let path = self.path(line);
        let moments = (1..=samples).rev();
        self.sampled
            .push(Record::extension(Extension::Sampled, path, time));
        self.sampled
            .extend(moments.map(|before| Record::extension(Extension::SampledAt, path, before)));
    }

    /// Before its next call, it is blocked, preempted, and in the kernel for so long, ns.
    pub fn is_off(&mut self, [blocked, preempted, kernel]: [u64; 3]) {
        self.beside.blocked += blocked;
        self.beside.preempted += preempted;
        self.beside.kernel += kernel;
    }

    /// Before its next call, it has so many page faults.
    pub fn faults(&mut self, faults: u32) {
        self.beside.faults[0] += faults;
    }

    /// In its next call, it is blocked, preempted, and in the kernel for so long, ns, with so many page faults.
    pub fn is_off_inside(&mut self, [blocked, preempted, kernel]: [u64; 3], faults: u32) {
        self.inside = Beside {
            blocked,
            preempted,
            kernel,
            faults: [faults, 0],
            ..Beside::default()
        };
    }

    /// Before its next call, counters count so much in work of `time` ns.
    pub fn counts(&mut self, time: u64, counts: &[u64]) {
        let counted = &mut self.beside.counted;
        counted.time += time;
        for (at, count) in counts.iter().enumerate() {
            counted.set(at, Some(*count));
        }
    }

    /// A call.
    pub fn call(&mut self, line: u32, signature: Signature, enter: u64, leave: u64) {
        self.unprofiled(line, signature, enter, leave);
        self.in_profile(line, signature.operation, (1, leave - enter));
    }

    /// Calls that are in the profile, and their time, beside the records of them.
    pub fn in_profile(&mut self, line: u32, operation: u16, (count, time): (u64, u64)) {
        let path = self.path(line);
        let key = (operation, path);
        let entry = self.profile.entry(key).or_insert(ProfileEntry {
            operation: key.0,
            call_path: key.1,
            minimum: u64::MAX,
            ..ProfileEntry::default()
        });
        entry.count += count;
        entry.total += time;
        entry.minimum = entry.minimum.min(time / count);
        entry.maximum = entry.maximum.max(time / count);
    }

    /// It ends then; nothing is recorded of the time before.
    pub fn ends(&mut self, at: u64) {
        self.last = at;
    }

    /// The list of these requests, given by post number, with outcomes.
    pub fn list(&mut self, requests: &[(u64, u32)]) -> u32 {
        let entries: Vec<(u32, u32)> = requests
            .iter()
            .map(|&(post, outcome)| ((self.posts - post) as u32, outcome))
            .collect();
        let next = self.lists.len() as u32 + 1;
        let writer = self.writer.as_mut().unwrap();
        *self.lists.entry(entries.clone()).or_insert_with(|| {
            writer.define(&[Definition::CompletionList { id: next, entries }]);
            next
        })
    }

    /// The ranks of the world whose data this one gets in neighbourhood collectives.
    pub fn neighbours(&mut self, sources: &[u32]) {
        let neighbours = Neighbours {
            communicator: WORLD,
            sources: sources.to_vec(),
        };
        let writer = self.writer.as_mut().unwrap();
        writer.define(&[Definition::Neighbours(neighbours)]);
    }

    /// The thread was started then, ticks, and by which. As the collector: with its first definitions.
    pub fn was_started(&mut self, at: u64, by: Option<u32>) {
        let text = |id, text: &str| Definition::String {
            id,
            bytes: text.as_bytes().to_vec(),
        };
        let writer = self.writer.as_mut().unwrap();
        let at = text(8, &at.to_string());
        let property = Definition::Property { key: 7, value: 8 };
        writer.define(&[text(7, "born_ticks"), at, property]);
        if let Some(by) = by {
            let property = Definition::Property { key: 9, value: 10 };
            writer.define(&[text(9, "born_by"), text(10, &by.to_string()), property]);
        }
    }

    /// Writes a definition.
    pub fn define(&mut self, definition: Definition) {
        self.writer.as_mut().unwrap().define(&[definition]);
    }

    /// Leave of the last call.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Posts so far.
    pub fn posts(&self) -> u64 {
        self.posts
    }

    pub fn send(&mut self, line: u32, to: i32, tag: i32, enter: u64, leave: u64) {
        self.call(line, send(number::MPI_Send, to, tag), enter, leave);
    }

    pub fn recv(&mut self, line: u32, from: i32, tag: i32, enter: u64, leave: u64) {
        self.call(line, receive(number::MPI_Recv, from, tag), enter, leave);
    }

    /// Posts a receive; gives its post number.
    pub fn irecv(&mut self, line: u32, from: i32, tag: i32, enter: u64) -> u64 {
        let mut signature = receive(number::MPI_Irecv, from, tag);
        signature.flags |= flags::POSTS;
        self.call(line, signature, enter, enter + 1);
        self.posts - 1
    }

    /// Posts a send; gives its post number.
    pub fn isend(&mut self, line: u32, to: i32, tag: i32, enter: u64) -> u64 {
        let mut signature = send(number::MPI_Isend, to, tag);
        signature.flags |= flags::POSTS;
        self.call(line, signature, enter, enter + 1);
        self.posts - 1
    }

    /// Waits for requests; wildcard receives with what they turned out to be.
    pub fn waitall(
        &mut self,
        line: u32,
        requests: &[(u64, Option<(i32, i32)>)],
        enter: u64,
        leave: u64,
    ) {
        let requests: Vec<(u64, u32)> = requests
            .iter()
            .map(|&(post, outcome)| {
                let outcome = outcome.map_or(0, |(from, tag)| {
                    let mut signature = receive(number::MPI_Irecv, from, tag);
                    signature.flags |= flags::POSTS;
                    self.signature(line + 1000, signature)
                });
                (post, outcome)
            })
            .collect();
        let completes = self.list(&requests);
        let signature = Signature {
            operation: number::MPI_Waitall,
            group: WORLD,
            completes,
            ..Signature::default()
        };
        self.call(line, signature, enter, leave);
    }

    /// A collective on the world.
    pub fn collective(&mut self, line: u32, operation: u16, root: i32, enter: u64, leave: u64) {
        self.call(line, collective(operation, root), enter, leave);
    }

    /// A member that moves no data in a collective on the world.
    pub fn without_data(&mut self, line: u32, operation: u16, root: i32, enter: u64, leave: u64) {
        let mut signature = collective(operation, root);
        signature.send.bytes = 0;
        self.call(line, signature, enter, leave);
    }

    /// A collective on the world whose signature leaves root and bytes to the record.
    pub fn fallback(&mut self, line: u32, operation: u16, root: i32, enter: u64, leave: u64) {
        let none = Endpoint {
            peer: PEER_NONE,
            ..Endpoint::default()
        };
        let signature = Signature {
            send: none,
            receive: none,
            ..collective(operation, root)
        };
        let extensions = [
            Record::extension(Extension::SendEndpoint, root as u32, 0),
            Record::extension_u64(Extension::ReceiveBytes, 8),
        ];
        self.extended(line, signature, &extensions, (enter, leave));
    }

    /// A call with extension records, in no profile.
    pub fn extended(
        &mut self,
        line: u32,
        signature: Signature,
        extensions: &[Record],
        (enter, leave): (u64, u64),
    ) {
        let id = self.signature(line, signature);
        let mut told = self.told();
        told.extend_from_slice(extensions);
        let writer = self.writer.as_mut().unwrap();
        match told.is_empty() {
            true => writer.push(enter, leave, id),
            false => writer.push_extended(&told, enter, leave, id),
        }
        self.last = leave;
    }

    /// Looks in vain, one directly after the other, each so long.
    pub fn looks(&mut self, line: u32, operation: u16, from: u64, until: u64, each: u64) {
        let begins = (from..until).step_by(each as usize);
        begins.for_each(|begin| self.call(line, vain(operation), begin, begin + each));
    }

    /// The same looks of this signature, 100 us each.
    pub fn looks_at(&mut self, line: u32, signature: Signature, from: u64, until: u64) {
        let begins = (from..until).step_by(100_000);
        begins.for_each(|begin| self.call(line, signature, begin, begin + 100_000));
    }

    /// Looks in vain as one record, `inside` of which is in looks: how many, and that time.
    pub fn merged(&mut self, line: u32, signature: Signature, at: (u64, u64), of: (u32, u64)) {
        let repeated = Record::extension(Extension::Repeated, of.0, of.1 as u32);
        self.extended(line, signature, &[repeated], at);
    }

    /// A test that completes requests.
    pub fn test(&mut self, line: u32, requests: &[u64], enter: u64, leave: u64) {
        let requests: Vec<(u64, u32)> = requests.iter().map(|&post| (post, 0)).collect();
        let signature = Signature {
            operation: number::MPI_Test,
            completes: self.list(&requests),
            ..Signature::default()
        };
        self.call(line, signature, enter, leave);
    }

    /// A test that finds a receive cancelled.
    pub fn cancel(&mut self, line: u32, request: u64, enter: u64, leave: u64) {
        let signature = Signature {
            operation: number::MPI_Test,
            completes: self.list(&[(request, OUTCOME_CANCELLED)]),
            ..Signature::default()
        };
        self.call(line, signature, enter, leave);
    }

    /// Writes the file.
    pub fn write(&mut self, directory: &Path) {
        let mut writer = self.writer.take().unwrap();
        let entries: Vec<ProfileEntry> = self.profile.values().copied().collect();
        writer.profile(&entries);
        let end = End {
            end_ticks: self.last,
            ..End::default()
        };
        let space = match self.is_killed {
            true => writer.leave_open(),
            false => writer.finish(end),
        };
        let bytes = space.into_bytes();
        std::fs::write(directory.join(file_name(self.rank, self.thread)), bytes).unwrap();
    }
}

/// A look in vain.
pub fn vain(operation: u16) -> Signature {
    Signature {
        operation,
        flags: flags::UNSUCCESSFUL,
        ..Signature::default()
    }
}

pub fn send(operation: u16, to: i32, tag: i32) -> Signature {
    let send = Endpoint {
        peer: to,
        tag,
        bytes: 8,
    };
    Signature {
        operation,
        flags: flags::SENDS,
        group: WORLD,
        send,
        ..Signature::default()
    }
}

pub fn receive(operation: u16, from: i32, tag: i32) -> Signature {
    let receive = Endpoint {
        peer: from,
        tag,
        bytes: 8,
    };
    Signature {
        operation,
        flags: flags::RECEIVES,
        group: WORLD,
        receive,
        ..Signature::default()
    }
}

pub fn collective(operation: u16, root: i32) -> Signature {
    let send = Endpoint {
        peer: root,
        tag: 0,
        bytes: 8,
    };
    Signature {
        operation,
        flags: flags::COLLECTIVE,
        group: WORLD,
        send,
        ..Signature::default()
    }
}

pub fn init() -> Signature {
    Signature {
        operation: number::MPI_Init,
        ..Signature::default()
    }
}

pub fn finalize() -> Signature {
    Signature {
        operation: number::MPI_Finalize,
        flags: flags::COLLECTIVE,
        group: WORLD,
        ..Signature::default()
    }
}

/// Ranks 0..n, one thread each.
pub fn ranks(n: u32) -> Vec<Calls> {
    (0..n).map(|rank| Calls::new(rank, 0, n)).collect()
}

/// Writes all and analyses with everything measured.
pub fn analyze(calls: Vec<Calls>) -> Report {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    analyze_with(calls, &options)
}

/// The first root causes of a report, without advice: as many as a prediction has.
pub fn first_causes(report: Report) -> Vec<RootCause> {
    let causes = report.root_causes.unwrap().into_iter().take(5);
    let bare = causes.map(|cause| RootCause {
        hints: Vec::new(),
        ..cause
    });
    bare.collect()
}

/// The same without what is unexplained: calls of these traces take as long as they like.
pub fn analyze_with(calls: Vec<Calls>, options: &AnalyzeOptions) -> Report {
    explained(analyze_whole(calls, options))
}

/// A report without the findings that are unexplained.
pub fn explained(mut report: Report) -> Report {
    report.bottlenecks.retain(|found| !found.is_unexplained());
    report.metrics.remove("unexplained");
    report
}

/// The whole report.
pub fn analyze_whole(mut calls: Vec<Calls>, options: &AnalyzeOptions) -> Report {
    let directory = tempfile::tempdir().unwrap();
    calls
        .iter_mut()
        .for_each(|calls| calls.write(directory.path()));
    let analysis = laggard_engine::analyze(directory.path(), options);
    let report = analysis.unwrap().unwrap().report;
    for found in &report.bottlenecks {
        let mut calls = calls::CALLS.iter();
        let call = calls.find(|call| call.name == found.operation);
        let pattern = PatternId::from_id(&found.pattern).unwrap();
        // A call that completes requests waits for whatever they are about.
        let own = call.filter(|call| pattern.is_about_group() && call.shape != Shape::Single);
        if let Some(call) = own {
            let possible = of_shape(call.shape);
            assert!(possible.contains(&pattern), "{pattern:?} in {}", call.name);
        }
    }
    report
}

/// The report of one, two and three agents, without what they say about themselves. They decode
/// about so many records in one round.
///
/// # Panics
/// If it differs between them.
pub fn analyze_by_agents(
    mut calls: Vec<Calls>,
    options: &AnalyzeOptions,
    records: [Option<u64>; 3],
) -> Report {
    let directory = tempfile::tempdir().unwrap();
    calls
        .iter_mut()
        .for_each(|calls| calls.write(directory.path()));
    let mut reports = (1..).zip(records).map(|(count, round_records)| {
        let options = AnalyzeOptions {
            round_records,
            ..options.clone()
        };
        let analyze = |job: &dyn Job| laggard_engine::analyze_as(job, directory.path(), &options);
        let analyses = LinkJob::run_all(link::threads(count), |job| analyze(job).unwrap());
        let mut heads = analyses.into_iter().flatten();
        let mut report = explained(heads.next().expect("the head's report").report);
        assert!(heads.next().is_none(), "one head");
        report.agents = Agents::default();
        report
    });
    let first = reports.next().unwrap();
    for report in reports {
        assert_eq!(report.to_json(), first.to_json());
    }
    first
}

/// Total of a pattern in ns.
pub fn total(report: &Report, pattern: &str) -> i64 {
    report
        .metrics
        .get(pattern)
        .map_or(0, |metric| (metric.total_s * 1e9).round() as i64)
}

/// A run that takes samples, 1000 a second by `perf`.
pub fn takes_samples(run: &mut [Calls]) {
    let texts = [
        (90, "sample_hz"),
        (91, "1000"),
        (92, "sampled_by"),
        (93, "perf"),
    ];
    for calls in run {
        for (id, text) in texts {
            let bytes = text.as_bytes().to_vec();
            calls.define(Definition::String { id, bytes });
        }
        calls.define(Definition::Property { key: 90, value: 91 });
        calls.define(Definition::Property { key: 92, value: 93 });
    }
}
