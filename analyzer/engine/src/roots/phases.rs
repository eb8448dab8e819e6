//! Time on the critical path by phase of the program.
//!
//! A phase ends with the next one of its location, and is a record where it ends. So no more of the
//! path is kept than one phase has.

use std::collections::VecDeque;

use laggard_trace::{Location, REGION_PHASE, Signature, calls};
use rustc_hash::FxHashMap;

use crate::roots::along::Spent;
use crate::roots::load::{Bin, Weights};
use crate::stream::columns::{Columns, Stream};

/// The phases of a location.
#[derive(Default)]
pub struct Phases {
    /// By signature of their records: the name.
    names: FxHashMap<u32, String>,
    /// Stretches of the path since the last phase ended, ns.
    stretches: VecDeque<(i64, i64)>,
    /// By name: time on the path.
    pub spent: FxHashMap<String, Spent>,
}

impl Phases {
    /// Before the first one.
    pub fn new(location: &Location) -> Phases {
        let definitions = &location.definitions;
        let name = |parameter: i64| {
            let region = definitions
                .regions()
                .get(usize::try_from(parameter).ok()?)?;
            let is_phase = region.kind == REGION_PHASE;
            is_phase.then(|| definitions.string(region.name).into_owned())
        };
        let signatures = definitions.signatures().iter();
        let is_region = |of: &&Signature| calls::call(of.operation).is_some_and(|c| c.is_user());
        let instances = signatures.filter(is_region);
        let names = instances.filter_map(|of| Some((of.id, name(of.parameter)?)));
        Phases {
            names: names.collect(),
            ..Phases::default()
        }
    }

    /// Adds a stretch of the path that follows the others.
    pub fn push(&mut self, stretch: (i64, i64)) {
        if !self.names.is_empty() {
            self.stretches.push_back(stretch);
        }
    }

    /// Adds up the phases that ended in a slab.
    pub fn read(&mut self, columns: &Columns, stream: &Stream<'_>, weights: &Weights) {
        if self.names.is_empty() {
            return;
        }
        for at in columns.first..columns.enter.len() {
            let Some(name) = self.names.get(&columns.signature[at]) else {
                continue;
            };
            let event = columns.event(at);
            let lasted = event.and_then(|event| Some((event.leave, event.value?)));
            let begin = lasted.map_or(columns.enter[at], |(end, ticks)| {
                stream.moment_ns(end.saturating_sub(ticks))
            });
            let spent = along(&mut self.stretches, (begin, columns.leave[at]), weights);
            match self.spent.get_mut(name) {
                Some(sum) => sum.add(&spent),
                None => drop(self.spent.insert(name.clone(), spent)),
            }
        }
    }
}

/// The part of the path that is in a phase; forgets what lies before its end.
fn along(
    stretches: &mut VecDeque<(i64, i64)>,
    (begin, end): (i64, i64),
    weights: &Weights,
) -> Spent {
    let mut spent = Spent::default();
    let mut at = Bin::default();
    while let Some(&(from, until)) = stretches.front() {
        let (first, last) = (from.max(begin), until.min(end));
        if first < last {
            let before = weights.until(&mut at, first);
            spent.time += last - first;
            spent.weight += weights.until(&mut at, last) - before;
            spent.error += weights.error(at, (first, last));
        }
        if until > end {
            break;
        }
        stretches.pop_front();
    }
    spent
}
