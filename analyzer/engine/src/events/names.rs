//! Call paths, and communicators, windows and files, numbered once for all locations.

use std::collections::BTreeMap;

use laggard_report::SourceLocation;
use laggard_trace::{Location, WORLD};
use rustc_hash::FxHashMap;

use crate::basics::intern::{PathKey, path_key, size_of};
use crate::symbols::{Symbols, base_name, source_location};

/// A call path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPath {
    /// The line of the call, and the frames, outermost first.
    pub place: SourceLocation,
}

impl CallPath {
    /// `main app.c:90 > exchange app.c:42`; empty if unknown.
    pub fn text(&self) -> String {
        self.place.callpath.join(" > ")
    }

    /// `app.c:42 exchange`, or the known part of it.
    pub fn short(&self) -> String {
        let SourceLocation {
            file,
            line,
            function,
            ..
        } = &self.place;
        match (base_name(file), line) {
            ("", _) | (_, 0) => function.clone(),
            (file, line) => format!("{file}:{line} {function}"),
        }
    }
}

/// Call paths of all locations.
pub struct CallPaths {
    /// Call paths by number; 0 is the unknown one.
    pub all: Vec<CallPath>,
    /// Numbers by location and the location's id.
    pub numbers: Vec<Vec<u32>>,
    /// Numbers by key, which is the same in all processes.
    pub of_key: FxHashMap<PathKey, u32>,
}

/// Numbers the call paths and resolves each once. Call paths with the same lines share a number.
pub fn call_paths(locations: &[Location], symbols: &mut Symbols) -> CallPaths {
    let mut all = vec![CallPath::default()];
    let mut of_key: FxHashMap<PathKey, u32> = FxHashMap::default();
    let mut of_text: FxHashMap<(String, String), u32> = FxHashMap::default();
    let numbers = locations.iter().map(|location| {
        let definitions = &location.definitions;
        let numbers = (0..definitions.call_path_count() as u32).map(|id| {
            if definitions.call_path(id).is_empty() {
                return 0;
            }
            let key = path_key(definitions, id);
            *of_key.entry(key).or_insert_with(|| {
                let lines = symbols.resolve_call_path(definitions, id);
                let path = CallPath {
                    place: source_location(&lines),
                };
                let text = (path.place.file.clone(), path.text());
                *of_text.entry(text).or_insert_with(|| {
                    all.push(path);
                    all.len() as u32 - 1
                })
            })
        });
        numbers.collect()
    });
    let numbers = numbers.collect();
    CallPaths {
        all,
        numbers,
        of_key,
    }
}

/// Kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKind {
    /// A communicator of one group.
    Communicator,
    /// A communicator between two groups.
    Intercommunicator,
    /// A window.
    Window,
    /// A file.
    File,
}

impl GroupKind {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            GroupKind::Communicator => "communicator",
            GroupKind::Intercommunicator => "intercommunicator",
            GroupKind::Window => "window",
            GroupKind::File => "file",
        }
    }
}

/// A communicator, window or file.
#[derive(Clone, Debug)]
pub struct Group {
    /// The same on all its ranks.
    pub id: u64,
    /// Its kind.
    pub kind: GroupKind,
    /// Its name if that is unique, else its id, `#1f2e…`. Labels are unique.
    pub label: String,
    /// Id of the communicator that it was made from; 0 = none.
    pub parent: u64,
    /// Members (of both groups), 0 = unknown.
    pub size: u32,
}

/// All communicators, windows and files, ascending by id.
pub fn groups(locations: &[Location]) -> Vec<Group> {
    let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
    let begin = |id: u64| Group {
        id,
        kind: GroupKind::Communicator,
        label: String::new(),
        parent: 0,
        size: 0,
    };
    for location in locations {
        let definitions = &location.definitions;
        for found in &definitions.communicators {
            let group = groups.entry(found.id).or_insert_with(|| begin(found.id));
            if found.kind != 0 {
                group.kind = GroupKind::Intercommunicator;
            }
            group.size = group.size.max(size_of(found));
            group.parent = group.parent.max(found.parent);
            // The last name is the final one.
            let name = definitions.string(found.name);
            if !name.is_empty() {
                group.label = name.into_owned();
            }
        }
        for &(id, communicator, kind, name) in &definitions.group_handles {
            let group = groups.entry(id).or_insert_with(|| begin(id));
            group.kind = match kind {
                1 => GroupKind::Window,
                _ => GroupKind::File,
            };
            group.parent = communicator;
            let name = definitions.string(name);
            if !name.is_empty() {
                group.label = name.into_owned();
            }
        }
        for signature in definitions.signatures() {
            if signature.group != 0 {
                groups
                    .entry(signature.group)
                    .or_insert_with(|| begin(signature.group));
            }
        }
        let world = groups.entry(WORLD).or_insert_with(|| begin(WORLD));
        world.size = world.size.max(location.header.ranks);
        world.label = "world".into();
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    let mut named: FxHashMap<String, u32> = FxHashMap::default();
    for group in &groups {
        *named.entry(group.label.clone()).or_default() += 1;
    }
    for group in &mut groups {
        if group.label.is_empty() {
            group.label = format!("#{:x}", group.id);
        } else if named.get(&group.label).is_some_and(|&count| count > 1) {
            group.label = format!("{}#{:x}", group.label, group.id);
        }
    }
    groups
}
