//! Places of calls: gathers the frames of the findings' call paths, and resolves them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{self as comm, Job};
use laggard_report::{Caller, SourceLocation};
use laggard_trace::{Frame, Location};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::intern::PathKey;
use crate::judge::profile::Profiled;
use crate::symbols::{Line, Origin, Symbols, callers, source_location, told_by};

/// One frame of a call path, as sent between agents.
#[derive(Clone, Serialize, Deserialize)]
enum FrameText {
    Native {
        path: String,
        build_id: Vec<u8>,
        offset: u64,
    },
    Source {
        file: String,
        function: String,
        line: u32,
    },
}

/// The frames of call paths by key.
pub type Paths = FxHashMap<PathKey, Vec<Frames>>;
pub struct Frames(FrameText);

/// Gathers the frames of all call paths of all agents' findings at the head; `own` are this
/// agent's. Each path travels once. Collective.
pub fn paths(
    job: &dyn Job,
    own: Vec<PathKey>,
    locations: &[Location],
    profiled: &[Profiled],
) -> Result<Paths> {
    let wanted = comm::union(job, own)?;
    let mut here: FxHashMap<PathKey, (usize, u32)> = FxHashMap::default();
    for (at, location) in profiled.iter().enumerate() {
        for (id, key) in location.paths.iter().enumerate() {
            if wanted.binary_search(key).is_ok() {
                here.entry(*key).or_insert((at, id as u32));
            }
        }
    }
    // The first agent that has a path sends it.
    let me = job.agent() as u64;
    let mut holders: Vec<u64> = wanted
        .iter()
        .map(|key| if here.contains_key(key) { me } else { u64::MAX })
        .collect();
    comm::reduce_min(job, &mut holders);
    let mut told: Vec<(PathKey, Vec<FrameText>)> = Vec::new();
    for (key, holder) in wanted.iter().zip(holders) {
        if holder == me
            && let Some(&(at, id)) = here.get(key)
        {
            told.push((*key, frames(&locations[at], id)));
        }
    }
    let mut parcels = vec![Vec::new(); job.agents()];
    parcels[0] = postcard::to_stdvec(&told)?;
    let mut all = Paths::default();
    for bytes in job.exchange(parcels) {
        if !bytes.is_empty() {
            let told: Vec<(PathKey, Vec<FrameText>)> = postcard::from_bytes(&bytes)?;
            let named = told
                .into_iter()
                .map(|(key, frames)| (key, frames.into_iter().map(Frames).collect()));
            all.extend(named);
        }
    }
    Ok(all)
}

fn frames(location: &Location, id: u32) -> Vec<FrameText> {
    let definitions = &location.definitions;
    let told = definitions
        .call_path(id)
        .iter()
        .filter_map(|frame| match *frame {
            Frame::Native { module, offset } => {
                definitions.module(module).map(|module| FrameText::Native {
                    path: definitions.string(module.path).into_owned(),
                    build_id: module.build_id.clone(),
                    offset,
                })
            }
            Frame::Source {
                file,
                function,
                line,
            } => Some(FrameText::Source {
                file: definitions.string(file).into_owned(),
                function: definitions.string(function).into_owned(),
                line,
            }),
        });
    told.collect()
}

/// Resolves call paths to places, each once.
pub struct Places {
    paths: Paths,
    /// Resolver of addresses.
    pub symbols: Symbols,
    known: FxHashMap<PathKey, SourceLocation>,
    /// Callers of call paths with the same line, innermost first.
    callers: FxHashMap<PathKey, Vec<Caller>>,
}

impl Places {
    /// No place is resolved yet.
    pub fn new(paths: Paths, symbols: Symbols) -> Self {
        Places {
            paths,
            symbols,
            known: FxHashMap::default(),
            callers: FxHashMap::default(),
        }
    }

    /// Adds the frames of more call paths.
    pub fn add(&mut self, paths: Paths) {
        self.paths.extend(paths);
    }

    /// Maps each call path to the first one with the same lines. A loop unrolled by the compiler
    /// calls from several addresses of one line. Addresses without a line stay apart. The head has
    /// the texts and sends the result; paths without a duplicate are left out. Collective.
    pub fn same(&mut self, job: &dyn Job) -> Result<FxHashMap<PathKey, PathKey>> {
        let mut keys: Vec<PathKey> = self.paths.keys().copied().collect();
        keys.sort_unstable();
        let mut first: FxHashMap<Vec<(Line, u64)>, PathKey> = FxHashMap::default();
        let same = keys
            .into_iter()
            .map(|key| (key, *first.entry(self.lines(key)).or_insert(key)));
        let same: Vec<(PathKey, PathKey)> = same.filter(|(key, first)| key != first).collect();
        let same = comm::from_head(job, same)?;
        Ok(same.into_iter().collect())
    }

    /// By call path, the one that stands for all with the same callers that end in the same function:
    /// that with most samples, and of these the first line, here of those that have `times`. A sample
    /// stands for `period` ns; 0: times are exact. In a parallel region, callers are those in it: in
    /// older traces only the thread that began it has others.
    pub fn functions(
        &mut self,
        times: &BTreeMap<PathKey, u64>,
        period: u64,
    ) -> Vec<(PathKey, PathKey)> {
        type Order = (Reverse<u64>, Option<(u32, String)>);
        let mut first: FxHashMap<Vec<(Line, u64)>, (Order, PathKey)> = FxHashMap::default();
        let mut all = Vec::with_capacity(times.len());
        for (&key, &time) in times {
            let mut lines = self.lines(key);
            // What ticks of a clock round decides nothing.
            let samples = match period {
                0 => time,
                period => time.saturating_add(period / 2) / period,
            };
            let line = lines.first();
            let line = line.map(|(line, _)| (line.line, line.function.clone()));
            let order = (Reverse(samples), line);
            let callers = self
                .paths
                .get(&key)
                .map_or(0, |frames| frames.len().saturating_sub(1));
            let innermost = lines.len().saturating_sub(callers);
            for (line, address) in lines.iter_mut().take(innermost.max(1)) {
                (line.line, *address) = (0, 0);
                if let Some((function, _)) = line.function.rsplit_once("+0x") {
                    line.function = function.to_owned();
                }
            }
            // Of a program without symbols, the tables for unwinding tell where functions begin.
            if let Some((_, address)) = lines.first_mut().filter(|(line, _)| !line.has_source()) {
                *address = self.begin_of_function(key);
            }
            let region = lines.iter().position(|(line, _)| line.is_outlined);
            lines.truncate(region.map_or(lines.len(), |at| at + 1));
            let most = first.entry(lines.clone());
            let most = most.or_insert_with(|| (order.clone(), key));
            if order < most.0 {
                *most = (order, key);
            }
            all.push((key, lines));
        }
        let all = all.into_iter();
        all.map(|(key, lines)| (key, first[&lines].1)).collect()
    }

    /// The lines of a call path, innermost first. Lines without a number have their address.
    fn lines(&mut self, key: PathKey) -> Vec<(Line, u64)> {
        let mut lines: Vec<(Line, u64)> = Vec::new();
        for Frames(frame) in self.paths.get(&key).map_or(&[][..], Vec::as_slice) {
            match frame {
                FrameText::Native {
                    path,
                    build_id,
                    offset,
                } => {
                    let found = self.symbols.resolve(path, build_id, *offset);
                    let address = |line: &Line| if line.has_source() { 0 } else { *offset };
                    lines.extend(found.iter().map(|line| (line.clone(), address(line))));
                }
                FrameText::Source {
                    file,
                    function,
                    line,
                } => {
                    let line = Line {
                        function: function.clone(),
                        file: file.clone(),
                        line: *line,
                        module: "".into(),
                        is_outlined: false,
                    };
                    lines.push((line, 0));
                }
            }
        }
        lines
    }

    /// From now on, adds callers to these call paths where lines alone do not differ, and not to call
    /// paths that have some already.
    pub fn tell_apart(&mut self, mut keys: Vec<PathKey>) {
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| self.callers.get(key).is_none_or(Vec::is_empty));
        let paths = keys.into_iter().map(|key| {
            let lines = self.lines(key).into_iter().map(|(line, _)| line);
            (callers(&lines.collect::<Vec<_>>()), key)
        });
        let told = told_by(paths.collect()).into_iter();
        self.callers
            .extend(told.map(|(key, lines)| (key, lines.into_iter().map(caller).collect())));
        self.known.clear();
    }

    /// The place of a call path.
    pub fn of(&mut self, key: PathKey) -> SourceLocation {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let lines = self.lines(key).into_iter().map(|(line, _)| line);
        let mut place = source_location(&lines.collect::<Vec<_>>());
        place.callers = self.callers.get(&key).cloned().unwrap_or_default();
        self.known.insert(key, place.clone());
        place
    }

    /// The place of computation in a function; or where the region begins that is the innermost frame, which
    /// is the function then.
    pub fn of_function(&mut self, key: PathKey) -> SourceLocation {
        let mut place = self.of(key);
        match self.lines(key).into_iter().next() {
            Some((region, _)) if region.is_region() => place.function = region.function,
            // A function of C++'s standard library is one, too.
            Some((line, _)) if Origin::of(&line) == Origin::Header => {
                (place.file, place.line, place.function) = (line.file, line.line, line.function);
            }
            // And one of a run-time library, where the program's own has no source.
            Some((line, _)) if Origin::of(&line) == Origin::Runtime && place.file.is_empty() => {
                place.function = line.function;
            }
            _ => {}
        }
        place
    }

    /// Which function that is, whoever calls it: its file and name; where these are not known, the module that it
    /// is in and where it begins there.
    pub fn which_function(&mut self, key: PathKey) -> (String, String, u64) {
        let place = self.of_function(key);
        if !place.file.is_empty() {
            return (place.file, place.function, 0);
        }
        let name = place.function.rsplit_once("+0x");
        let name = name.map_or(&*place.function, |(name, _)| name).to_owned();
        (String::new(), name, self.begin_of_function(key))
    }

    /// Where the innermost function of a call path begins in its module; 0 if that is not known.
    fn begin_of_function(&mut self, key: PathKey) -> u64 {
        let start = match self.paths.get(&key).and_then(|frames| frames.first()) {
            Some(Frames(FrameText::Native {
                path,
                build_id,
                offset,
            })) => self.symbols.function_start(path, build_id, *offset),
            _ => None,
        };
        start.unwrap_or(0)
    }

    /// Where the program calls the function of a call path; where it calls itself, where it is called first. A
    /// parallel region has no caller: only the thread that begins it knows one.
    pub fn caller(&mut self, key: PathKey) -> Option<Caller> {
        let place = self.of_function(key);
        let lines = self.lines(key).into_iter().map(|(line, _)| line);
        let mut lines = lines.skip_while(|line| line.function != place.function);
        let own = lines.next().filter(|line| !line.is_outlined)?;
        let name = |line: &Line| {
            let name = line.function.split("+0x").next().unwrap_or_default();
            (line.file.clone(), name.to_owned())
        };
        let own = name(&own);
        let is_caller = |line: &Line| Origin::of(line) == Origin::Program && name(line) != own;
        lines.find(is_caller).map(caller)
    }

    /// The function of a call path with one frame.
    pub fn function(&mut self, key: PathKey) -> String {
        let lines = self.lines(key);
        let function = lines.last().map_or("", |(line, _)| &*line.function);
        function.split("+0x").next().unwrap_or(function).to_owned()
    }

    /// `app.c:42`, or the known part of it; with the caller if the line has several.
    pub fn short(&mut self, key: PathKey) -> String {
        let place = self.of(key);
        let line = |file: &str, line: u32, function: &str| match line {
            0 if function.is_empty() => "an unknown place".to_owned(),
            0 => function.to_owned(),
            line => format!("{}:{line}", crate::symbols::base_name(file)),
        };
        let own = line(&place.file, place.line, &place.function);
        let callers = place.callers.iter();
        let callers = callers.map(|caller| line(&caller.file, caller.line, &caller.function));
        match callers.collect::<Vec<_>>().join(", ") {
            callers if callers.is_empty() => own,
            callers => format!("{own}, called at {callers}"),
        }
    }
}

fn caller(line: Line) -> Caller {
    Caller {
        file: line.file,
        line: line.line,
        function: line.function,
    }
}
