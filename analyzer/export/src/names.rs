//! Texts and regions of an OTF2 archive, numbered in order of use.

use laggard_otf2::definitions::{
    Context, Definitions, PARADIGM_MPI, PARADIGM_OPENMP, PARADIGM_PTHREAD, PARADIGM_UNKNOWN,
    ROLE_FILE_IO, Region,
};
use laggard_otf2::role;
use laggard_trace::calls::{self, number};
use rustc_hash::FxHashMap;

/// `OTF2_REGION_ROLE_FUNCTION` and `OTF2_REGION_ROLE_ARTIFICIAL`.
pub const ROLES: (u8, u8) = (1, 31);

/// `OTF2_PARADIGM_COMPILER` and `OTF2_PARADIGM_MEASUREMENT_SYSTEM`.
pub const PARADIGMS: (u8, u8) = (2, 6);

/// `OTF2_REGION_ROLE_CODE` and `OTF2_PARADIGM_USER`: regions that the program named.
pub const NAMED: (u8, u8) = (4, 1);

/// Source file of MPI calls: Scalasca recognises them by it.
pub const MPI_FILE: &[u8] = b"MPI";

/// Texts and regions, numbered in order of use.
#[derive(Default)]
pub struct Names {
    pub strings: FxHashMap<Vec<u8>, u32>,
    pub regions: FxHashMap<(u32, u32, u32), u32>,
    /// Regions of calls, by their numbers in the table of calls.
    pub calls: FxHashMap<u16, u32>,
    /// Places in the source: file and line.
    pub places: FxHashMap<(u32, u32), u32>,
    /// Calling contexts: region, place and parent.
    pub contexts: FxHashMap<(u32, u32, u32), u32>,
    /// Properties of locations: location, name, text.
    pub properties: Vec<(u64, u32, u32)>,
    pub defined: Definitions,
}

impl Names {
    /// The number of a counter's metric.
    pub fn metric(&mut self, name: &[u8]) -> u32 {
        let name = self.string(name);
        let metrics = &mut self.defined.metrics;
        let known = metrics.iter().position(|&known| known == name);
        let at = known.unwrap_or_else(|| {
            metrics.push(name);
            metrics.len() - 1
        });
        at as u32
    }

    /// The number of a text.
    pub fn string(&mut self, text: &[u8]) -> u32 {
        if let Some(&number) = self.strings.get(text) {
            return number;
        }
        let number = self.strings.len() as u32;
        self.strings.insert(text.to_vec(), number);
        self.defined.strings.insert(number, text.into());
        number
    }

    pub fn region(
        &mut self,
        (name, file, line): (&[u8], &[u8], u32),
        role: u8,
        paradigm: u8,
    ) -> u32 {
        let (name, file) = (self.string(name), self.string(file));
        let next = self.regions.len() as u32;
        let number = *self.regions.entry((name, file, line)).or_insert(next);
        if number == next {
            let region = Region {
                role,
                paradigm,
                name,
                canonical: name,
                file,
                line,
            };
            self.defined.regions.insert(number, region);
        }
        number
    }

    /// The number of a function at a line.
    pub fn function(&mut self, name: &[u8], file: &[u8], line: u32) -> u32 {
        self.region((name, file, line), ROLES.0, PARADIGMS.0)
    }

    /// The number of a region that the program named.
    pub fn named(&mut self, name: &[u8]) -> u32 {
        self.region((name, b"", 0), NAMED.0, NAMED.1)
    }

    /// The number of a calling context: a region at a place (file and line) in a `parent`, which may be
    /// `UNDEFINED`.
    pub fn context(&mut self, region: u32, place: (&[u8], u32), parent: u32) -> u32 {
        let place = (self.string(place.0), place.1);
        let next = self.defined.places.len() as u32;
        let place = *self.places.entry(place).or_insert_with(|| {
            self.defined.places.insert(next, place);
            next
        });
        let next = self.defined.contexts.len() as u32;
        *self
            .contexts
            .entry((region, place, parent))
            .or_insert_with(|| {
                let context = Context {
                    region,
                    place,
                    parent,
                };
                self.defined.contexts.insert(next, context);
                next
            })
    }

    /// How many regions of a calling context are new after another one, and one more.
    pub fn distance(&self, before: u32, context: u32) -> u32 {
        let around = |mut context: u32| {
            let mut all = Vec::new();
            while let Some(known) = self.defined.contexts.get(&context) {
                all.push(context);
                context = known.parent;
            }
            all
        };
        let (before, own) = (around(before), around(context));
        let same = before.iter().rev().zip(own.iter().rev());
        let same = same.take_while(|(a, b)| a == b).count();
        (own.len() - same) as u32 + 1
    }

    /// The number of the region that a thread's part in a parallel region is.
    pub fn parallel(&mut self) -> u32 {
        self.region(
            (b"!$omp parallel", b"OpenMP", 0),
            role::PARALLEL,
            PARADIGM_OPENMP,
        )
    }

    /// Gives a region a name for users, besides the one that tells what it is.
    fn show(&mut self, region: u32, shown: &str) {
        let shown = self.string(shown.as_bytes());
        if let Some(region) = self.defined.regions.get_mut(&region) {
            region.name = shown;
        }
    }

    /// Adds a property of a location.
    pub fn property(&mut self, location: u64, name: &str, text: &str) {
        let (name, text) = (self.string(name.as_bytes()), self.string(text.as_bytes()));
        self.properties.push((location, name, text));
    }

    /// The number of a call.
    pub fn call(&mut self, number: u16) -> u32 {
        if let Some(&region) = self.calls.get(&number) {
            return region;
        }
        let name = calls::name(number).as_bytes();
        let region = match calls::call(number) {
            Some(call) if call.is_posix() => {
                self.region((name, b"POSIX I/O", 0), ROLE_FILE_IO, PARADIGM_UNKNOWN)
            }
            Some(call) if call.is_threads() => {
                let (file, paradigm) = match call.name.starts_with("omp_") {
                    true => (&b"OpenMP"[..], PARADIGM_OPENMP),
                    false => (&b"POSIX threads"[..], PARADIGM_PTHREAD),
                };
                let (shown, role) = construct(number).unwrap_or((call.name, ROLES.0));
                let region = self.region((name, file, 0), role, paradigm);
                self.show(region, shown);
                region
            }
            _ => self.region((name, MPI_FILE, 0), ROLES.0, PARADIGM_MPI),
        };
        self.calls.insert(number, region);
        region
    }
}

/// How Score-P names a construct of OpenMP, and its role.
fn construct(call: u16) -> Option<(&'static str, u8)> {
    Some(match call {
        number::omp_barrier => ("!$omp barrier", role::BARRIER),
        number::omp_loop_end | number::omp_sections_end | number::omp_parallel_end => {
            ("!$omp implicit barrier", role::IMPLICIT_BARRIER)
        }
        number::omp_critical => ("!$omp critical", role::CRITICAL),
        number::omp_ordered => ("!$omp ordered", role::ORDERED),
        number::omp_taskwait => ("!$omp taskwait", role::TASK_WAIT),
        number::omp_taskgroup_end => ("!$omp taskgroup", role::TASK_WAIT),
        _ => return None,
    })
}

/// Number of a location, as Score-P has it.
pub fn location_id(rank: u32, thread: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(rank)
}
