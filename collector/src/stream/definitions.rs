//! Definitions that a location's records refer to, written to its file at their first use.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use laggard_callpath::ModuleId;
use laggard_trace::calls::{self, GenericType};
use laggard_trace::{ClockPoint, Communicator, Definition, Dimension, Frame, Grid, Neighbours};

use super::{Birth, Settings, Stream};
use crate::counters::{self, Counters};
use crate::ffi::MPI_Group;
use crate::groups::{self, Group, Kind};
use crate::log;
use crate::program;
use crate::signature::{Lookup, Raw};

impl Stream {
    /// Defines a communicator, window or file, unless the file already does.
    pub fn define_group(&mut self, group: &'static Group) {
        if self.defined.insert(group.id) && self.is_writing() {
            self.write_group(group, None, true);
        }
    }

    /// Forgets a group that no record will refer to any more.
    pub fn forget_group(&mut self, group: &'static Group) {
        self.defined.remove(&group.id);
    }

    /// Defines a group again, with its name.
    pub fn define_named(&mut self, group: &'static Group, name: &[u8]) {
        let is_new = self.defined.insert(group.id);
        if self.is_writing() {
            self.write_group(group, Some(name), is_new);
        }
    }

    fn write_group(&mut self, group: &Group, name: Option<&[u8]>, is_new: bool) {
        let mut definitions = Vec::new();
        let name = name.map_or(0, |name| self.string(name, &mut definitions));
        let ranks = |ranks: &[i32]| match group.rank {
            0 => ranks.iter().map(|&rank| rank as u32).collect(),
            _ => Vec::new(),
        };
        definitions.push(match group.kind {
            Kind::Intra | Kind::Inter => Definition::Communicator(Communicator {
                id: group.id,
                parent: group.parent,
                kind: u32::from(group.kind == Kind::Inter),
                size: group.members.len() as u32,
                local_rank: group.rank as u32,
                name,
                members: ranks(group.members),
                remote_members: ranks(group.remote),
            }),
            Kind::Window | Kind::File => Definition::GroupHandle {
                id: group.id,
                communicator: group.parent,
                kind: if group.kind == Kind::Window { 1 } else { 2 },
                name,
            },
        });
        if let Some(topology) = group.topology.filter(|_| is_new) {
            let sources = topology.sources.iter();
            definitions.push(Definition::Neighbours(Neighbours {
                communicator: group.id,
                sources: sources.filter_map(|&rank| rank.try_into().ok()).collect(),
            }));
            let (dimensions, _) = topology.grid.as_chunks();
            if !dimensions.is_empty() {
                let dimension = |&[size, periodic, coordinate]: &[i32; 3]| Dimension {
                    size: size as u32,
                    is_periodic: periodic != 0,
                    coordinate: coordinate as u32,
                };
                definitions.push(Definition::Grid(Grid {
                    communicator: group.id,
                    dimensions: dimensions.iter().map(dimension).collect(),
                }));
            }
        }
        self.writer.define(&definitions);
    }

    /// The id of a text; its definition is added to `definitions` if it is new.
    pub(super) fn string(&mut self, bytes: &[u8], definitions: &mut Vec<Definition>) -> u32 {
        if let Some(&id) = self.strings.get(bytes) {
            return id;
        }
        let id = self.strings.len() as u32 + 1;
        self.strings.insert(bytes.into(), id);
        definitions.push(Definition::String {
            id,
            bytes: bytes.to_vec(),
        });
        id
    }

    /// The id of the list of processes in a valid group.
    pub fn peers(&mut self, group: MPI_Group) -> u32 {
        let ranks = groups::ranks_of(group);
        // An empty list has no address of its own.
        let key = if ranks.is_empty() {
            0
        } else {
            ranks.as_ptr() as usize
        };
        if let Some(&id) = self.peers.get(&key) {
            return id;
        }
        let id = self.peers.len() as u32 + 1;
        self.peers.insert(key, id);
        if self.is_writing() {
            let ranks = ranks.iter().map(|&rank| rank as u32).collect();
            self.writer.define(&[Definition::Peers { id, ranks }]);
        }
        id
    }

    /// Writes properties of the run.
    pub fn properties(&mut self, properties: &[(&str, Vec<u8>)]) {
        let mut definitions = Vec::new();
        for (key, value) in properties {
            let key = self.string(key.as_bytes(), &mut definitions);
            let value = self.string(value, &mut definitions);
            definitions.push(Definition::Property { key, value });
        }
        self.writer.define(&definitions);
    }

    /// Tells when a thread began, which was there before it had a file, and who started it.
    pub fn define_birth(&mut self, born: Option<Birth>) {
        let Some(born) = born else { return };
        self.properties(&[("born_ticks", born.at.to_string().into_bytes())]);
        if let Some(creator) = born.creator.filter(|_| born.is_whole) {
            self.properties(&[("born_by", creator.to_string().into_bytes())]);
        }
    }

    /// Tells from which length on it is known what stretches were beside work.
    pub fn define_least_stretch(&mut self) {
        if let Some(ns) = self.stretches.least_ns() {
            self.properties(&[("least_stretch_ns", ns.to_string().into_bytes())]);
        }
    }

    /// Tells how long the thread waited for a processor.
    pub(super) fn define_delay(&mut self) {
        let delay = self.stretches.delay_ns();
        if delay > 0 {
            self.properties(&[("delay_ns", delay.to_string().into_bytes())]);
        }
    }

    /// Tells which processors the thread may run on, if that is not what was told before. OpenMP runtimes bind threads
    /// before MPI begins, programs after that.
    pub(super) fn define_affinity(&mut self) {
        let now = program::processors_of(self.thread);
        if !now.is_empty() && now != self.affinity {
            self.properties(&[("affinity", now.clone().into_bytes())]);
            self.affinity = now;
        }
    }

    /// The id of a signature that describes the end of a receive.
    pub fn outcome(&mut self, raw: &Raw) -> u32 {
        match self.find_or_make(raw) {
            Lookup::Known(found) | Lookup::New(found) => found.id,
            // Not remembered beyond the limit: the file grows, memory does not.
            Lookup::Fallback { .. } | Lookup::Full => {
                let id = self.signatures.next_id();
                self.define_signature(raw, id);
                id
            }
        }
    }

    /// The id of a completion list; `None` if its entries must go into extension records.
    pub fn completion_list(&mut self, entries: &[(u32, u32)]) -> Option<u32> {
        let (id, new) = self.lists.intern(entries)?;
        if new && self.is_writing() {
            let entries = entries.to_vec();
            self.writer
                .define(&[Definition::CompletionList { id, entries }]);
        }
        Some(id)
    }

    /// Names what is counted, and says what is not: once for the whole run on the terminal, too.
    pub(super) fn define_counters(
        &mut self,
        missing: &[(String, io::Error)],
        (settings, thread): (&Settings, u32),
    ) {
        let names = self.stretches.counters().map_or(&[][..], Counters::names);
        let named = names
            .iter()
            .map(|name| ("counter", name.clone().into_bytes()));
        let mut properties: Vec<_> = named.collect();
        let (mut wanted, mut usual) = (Vec::new(), Vec::new());
        for (name, error) in missing {
            let text = format!("{name}: {}", counters::reason(error));
            let (key, texts) = match settings.counters.names(name) {
                true => ("not_counted", &mut wanted),
                false => ("no_counter", &mut usual),
            };
            properties.push((key, text.clone().into_bytes()));
            texts.push(text);
        }
        if (settings.header.rank, thread) == (0, 0) {
            if !wanted.is_empty() {
                log::warning!("not counted: {}", wanted.join("; "));
            }
            if !usual.is_empty() {
                log::info!("no hardware counters here: {}", usual.join("; "));
            }
        }
        self.properties(&properties);
    }

    /// Says which counters others had for some of the time.
    pub(super) fn end_counters(&mut self) {
        let Some(counters) = self.stretches.counters() else {
            return;
        };
        let shares = counters.names().iter().zip(counters.ran);
        let shares = shares.filter(|(_, (enabled, running))| running < enabled);
        let shares = shares.map(|(name, (enabled, running))| {
            let share = running as f64 / enabled as f64;
            ("counter_ran", format!("{name} {share:.3}").into_bytes())
        });
        let shares: Vec<_> = shares.collect();
        self.properties(&shares);
    }

    /// Writes clock points.
    pub fn clock(&mut self, points: &[ClockPoint]) {
        self.writer.clock(points);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn define_paths(&mut self) {
        let mut definitions = Vec::new();
        for path in self.tracer.take_new() {
            let frames = self.tracer.frames(path).to_vec();
            let frames = frames
                .iter()
                .map(|frame| self.frame(frame, &mut definitions))
                .collect();
            definitions.push(Definition::CallPath { id: path.0, frames });
        }
        self.writer.define(&definitions);
    }

    fn frame(
        &mut self,
        frame: &laggard_callpath::Frame,
        definitions: &mut Vec<Definition>,
    ) -> Frame {
        match *frame {
            laggard_callpath::Frame::Native { module, offset } => {
                let module = self.module(module, definitions);
                Frame::Native { module, offset }
            }
            laggard_callpath::Frame::Source {
                file,
                function,
                line,
            } => {
                let file = self.tracer.string(file).to_owned();
                let function = self.tracer.string(function).to_owned();
                Frame::Source {
                    file: self.string(file.as_bytes(), definitions),
                    function: self.string(function.as_bytes(), definitions),
                    line,
                }
            }
        }
    }

    fn module(&mut self, module: ModuleId, definitions: &mut Vec<Definition>) -> u32 {
        if let Some(&id) = self.modules.get(&module) {
            return id;
        }
        let id = self.modules.len() as u32 + 1;
        self.modules.insert(module, id);
        let known = laggard_callpath::module(module);
        let path: &Path = known.as_ref().map_or(Path::new(""), |module| &module.path);
        let path = OsStr::as_bytes(path.as_os_str());
        let path = self.string(path, definitions);
        if let Some(module) = known {
            definitions.push(Definition::Module {
                id,
                path,
                bias: module.load_bias,
                start: module.text.start,
                end: module.text.end,
                build_id: module.build_id.clone(),
            });
        }
        id
    }
}

/// Whether the extra word of this operation names a completion list.
pub(super) fn completes(operation: u16) -> bool {
    calls::call(operation).is_some_and(|call| call.generic == GenericType::Completion)
}
