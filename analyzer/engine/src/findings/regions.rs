//! Regions of the program: sums of each over all locations, and the regions that an operation map
//! turns into operations.

use std::collections::BTreeMap;

use anyhow::Result;
use laggard_comm::{self as comm, Filter, Job};
use laggard_report::{Settings, percent, ratio, seconds};
use laggard_trace::calls::user::{self, REGION};
use laggard_trace::calls::{self, GenericType};
use laggard_trace::operations::OperationMap;
use laggard_trace::{
    Decoder, Definitions, Location, REGION_FUNCTION, REGION_NAMED, REGION_PHASE, Region,
    RegionEntry, flags,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::basics::anomaly::{Anomalies, Level};
use crate::basics::intern::PathKey;
use crate::clock::ClockMap;
use crate::findings::imbalance;
use crate::findings::imbalance::Shares;
use crate::findings::places;
use crate::findings::places::Places;
use crate::judge::detect::Entry;
use crate::judge::profile::{Profiled, Who};
use crate::replay::meetings::{Instances, Meetings, is_meeting};
use crate::stream::rows::TimeClass;
use crate::symbols::Symbols;

/// Most rows of the report.
const MOST_ROWS: usize = 500;
/// Smallest share of all time for a row of a function, percent.
const LEAST_PERCENT: f64 = 0.1;

/// Key of a region: the same in all locations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegionKey {
    kind: u32,
    /// Name, if the program named it.
    name: String,
    /// Entry, if it is a function.
    function: PathKey,
}

/// Sums of a region. ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionSums {
    /// The first of the places of the locations' first instances.
    place: PathKey,
    count: u64,
    untimed: u64,
    inclusive: u64,
    exclusive: u64,
    /// Longest instance.
    longest: u64,
    locations: u64,
    /// Largest time of a location, and the lowest rank with it.
    most: (u64, u32),
    /// Deviation of the instances of a location: longest / mean.
    deviation: f64,
    /// Largest share of a location's time.
    share: f64,
    /// Its type in the operation map, plus one.
    operation_type: u32,
    /// Exclusive time by thread, until it is compared; then how even it is.
    by_thread: BTreeMap<Who, u64>,
    shares: Shares,
}

/// The regions of one or more agents.
pub type Regions = BTreeMap<RegionKey, RegionSums>;

impl RegionSums {
    fn mean(&self) -> f64 {
        self.exclusive as f64 / self.locations.max(1) as f64
    }

    /// Time that the others may have waited for the location with the largest time, ns.
    fn imbalance(&self) -> f64 {
        (self.most.0 as f64 * self.locations as f64 - self.exclusive as f64).max(0.0)
    }
}

impl Filter for RegionSums {
    fn merge(&mut self, other: RegionSums) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        self.place = self.place.min(other.place);
        sum(&mut self.count, other.count);
        sum(&mut self.untimed, other.untimed);
        sum(&mut self.inclusive, other.inclusive);
        sum(&mut self.exclusive, other.exclusive);
        sum(&mut self.locations, other.locations);
        self.longest = self.longest.max(other.longest);
        let rank = |most: (u64, u32)| (most.0, std::cmp::Reverse(most.1));
        if rank(other.most) > rank(self.most) {
            self.most = other.most;
        }
        self.deviation = self.deviation.max(other.deviation);
        self.share = self.share.max(other.share);
        self.operation_type = self.operation_type.max(other.operation_type);
        for (thread, time) in other.by_thread {
            sum(self.by_thread.entry(thread).or_default(), time);
        }
        self.shares.merge(other.shares);
    }
}

/// The sums of the regions of these locations; `mapped` has the numbers of regions in the operation
/// map. Also the anomalies of the regions.
pub fn sums(
    locations: &[Location],
    profiled: &[Profiled],
    clocks: &[ClockMap],
    mapped: &Mapped,
    anomalies: &mut Anomalies,
) -> Regions {
    let mut all = Regions::new();
    for ((location, profiled), clock) in locations.iter().zip(profiled).zip(clocks) {
        let mut own = Regions::new();
        for entry in &location.regions {
            let Some((key, place)) = key_of(location, profiled, entry) else {
                continue;
            };
            note(location, &key, place, entry, anomalies);
            let ns = |ticks: u64| clock.length_ns(ticks) as u64;
            let exclusive = ns(entry.exclusive);
            let mean = entry.exclusive as f64 / entry.count.max(1) as f64;
            let generic = mapped.get(&key).and_then(calls::call).map(|c| c.generic);
            let sums = RegionSums {
                place,
                count: entry.count,
                untimed: entry.untimed,
                inclusive: ns(entry.inclusive),
                exclusive,
                longest: ns(entry.maximum),
                locations: 1,
                most: (exclusive, location.header.rank),
                deviation: ratio(entry.maximum as f64, mean.max(1.0)),
                share: percent(exclusive as f64, profiled.times.wall() as f64),
                operation_type: generic.map_or(0, |generic| generic as u32 + 1),
                by_thread: BTreeMap::from([(profiled.times.who(), exclusive)]),
                shares: Shares::default(),
            };
            // A damaged file may define a region twice.
            Filter::merge(&mut own, Regions::from([(key, sums)]));
        }
        Filter::merge(&mut all, own);
    }
    all
}

/// Compares the times of all `ranks` of the run in each region. Collective.
pub fn share(job: &dyn Job, regions: &mut Regions, ranks: u64) -> Result<()> {
    let taken = regions.iter_mut();
    let own = taken.map(|(key, sums)| (key.clone(), std::mem::take(&mut sums.by_thread)));
    let shares = imbalance::shares(job, &own.collect(), ranks)?;
    for (key, shares) in shares {
        if let Some(sums) = regions.get_mut(&key) {
            sums.shares = shares;
        }
    }
    Ok(())
}

fn key_of(
    location: &Location,
    profiled: &Profiled,
    entry: &RegionEntry,
) -> Option<(RegionKey, PathKey)> {
    key(location, profiled, entry.region)
}

/// The key of a location's region, and the call path of its first instance.
fn key(location: &Location, profiled: &Profiled, id: u32) -> Option<(RegionKey, PathKey)> {
    let definitions = &location.definitions;
    let region = definitions.regions().get(id as usize)?;
    let place = profiled.paths.get(region.call_path as usize).copied();
    let place = place.unwrap_or_default();
    let (name, function) = match region.kind {
        REGION_NAMED | REGION_PHASE => (definitions.string(region.name).into_owned(), [0; 2]),
        REGION_FUNCTION => (String::new(), place),
        _ => return None,
    };
    let kind = region.kind;
    let key = RegionKey {
        kind,
        name,
        function,
    };
    Some((key, place))
}

/// Notes begins without an end, and ends without a begin.
fn note(
    location: &Location,
    key: &RegionKey,
    place: PathKey,
    entry: &RegionEntry,
    anomalies: &mut Anomalies,
) {
    let mut odd = |id: &str, count: u64, what: &str| {
        if count > 0 {
            let detail = format!("region \"{}\" {what}", key.name);
            let row = anomalies.add(id, Level::Warning, count, detail);
            row.origin(format!("rank {}", location.header.rank));
            row.place(REGION, place);
        }
    };
    odd(
        "region_not_ended",
        entry.unended,
        "was begun and not ended, or ended after a region around it",
    );
    odd(
        "region_not_begun",
        entry.unbegun,
        "was ended without being begun, or once more",
    );
}

/// Numbers of the regions that are operations.
#[derive(Default)]
pub struct Mapped(FxHashMap<RegionName, u16>);

/// Name of a region, or entry of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
enum RegionName {
    Named(String),
    Function(PathKey),
}

impl Mapped {
    fn get(&self, key: &RegionKey) -> Option<u16> {
        let name = match key.kind {
            REGION_NAMED => RegionName::Named(key.name.clone()),
            REGION_FUNCTION => RegionName::Function(key.function),
            _ => return None,
        };
        self.0.get(&name).copied()
    }
}

/// Names the instances of a location's regions, for exporters of single instances. Each name is an
/// operation of its own.
pub fn name_instances(location: &mut Location, symbols: &mut Symbols) {
    let definitions = &location.definitions;
    let regions = definitions.regions().iter();
    let numbers: Vec<Option<u16>> = regions
        .map(|region| user::number(&name(definitions, region, symbols)?, GenericType::User))
        .collect();
    if numbers.iter().any(Option::is_some) {
        rename(location, |id| numbers.get(id).copied().flatten());
    }
}

/// The name of a region or a function.
pub fn name(definitions: &Definitions, region: &Region, symbols: &mut Symbols) -> Option<String> {
    match region.kind {
        REGION_NAMED => Some(definitions.string(region.name).into_owned()),
        REGION_FUNCTION => {
            let lines = symbols.resolve_call_path(definitions, region.call_path);
            Some(lines.into_iter().next()?.function)
        }
        _ => None,
    }
}

/// The names of a location's regions, functions and phases, by id.
pub fn labels(location: &Location, symbols: &mut Symbols) -> Vec<String> {
    let definitions = &location.definitions;
    let regions = definitions.regions().iter();
    let label = |region| match name(definitions, region, symbols) {
        Some(name) => name,
        None => definitions.string(region.name).into_owned(),
    };
    regions.map(label).collect()
}

/// Renumbers instances of regions, by the ids of the regions.
fn rename(location: &mut Location, number: impl Fn(usize) -> Option<u16>) {
    location.definitions.rename_operations(|signature| {
        let id = usize::try_from(signature.parameter).ok();
        let id = id.filter(|_| signature.operation == REGION);
        id.and_then(&number).unwrap_or(signature.operation)
    });
}

/// Turns the mapped regions into operations: in the signatures, and in the profiles of their
/// locations. Collective; only the head knows the names of functions.
pub fn apply(
    job: &dyn Job,
    map: &OperationMap,
    locations: &mut [Location],
    profiled: &mut [Profiled],
    clocks: &[ClockMap],
    symbols: Symbols,
    anomalies: &mut Anomalies,
) -> Result<(Mapped, Meetings)> {
    let mut mapped = Mapped::default();
    if map.is_empty() {
        return Ok((mapped, Meetings::default()));
    }
    for (name, generic) in map.entries() {
        // All agents name all operations in the same order, so the numbers agree.
        if let Some(number) = user::number(name, generic) {
            let name = RegionName::Named(name.to_owned());
            mapped.0.insert(name, number);
        }
    }
    for (function, name) in functions(job, map, locations, profiled, symbols)? {
        let number = map
            .get(&name)
            .and_then(|(name, generic)| user::number(name, generic));
        if let Some(number) = number {
            mapped.0.insert(RegionName::Function(function), number);
        }
    }
    let mut seen = vec![0u64; map.entries().count()];
    let mut instances = Vec::new();
    for ((location, profiled), clock) in locations.iter_mut().zip(&mut *profiled).zip(clocks) {
        let count = location.definitions.regions().len() as u32;
        let numbers: Vec<Option<u16>> = (0..count)
            .map(|id| key(location, profiled, id).and_then(|(key, _)| mapped.get(&key)))
            .collect();
        for number in numbers.iter().flatten() {
            let name = calls::name(*number);
            let at = map.entries().position(|(known, _)| known == name);
            seen[at.unwrap_or(0)] = 1;
        }
        instances.push(make_operations(location, profiled, clock, &numbers));
    }
    job.reduce_max(&mut seen);
    let meetings = Meetings::find(job, map, locations, profiled, &instances, anomalies);
    if job.agent() == 0 {
        let is_diagnosed =
            |generic: GenericType| generic == GenericType::WaitOnValue || is_meeting(generic);
        let known = map.entries().zip(&seen).filter(|(_, seen)| **seen != 0);
        for ((name, generic), _) in known.filter(|((_, generic), _)| !is_diagnosed(*generic)) {
            let detail = format!(
                "the time in \"{name}\" counts as {}, as the operation map says; who its ranks \
                 waited for there is not looked for: that is done for wait_on_value, group_sync \
                 and group_comm",
                generic.name()
            );
            anomalies.add("operation_not_diagnosed", Level::Info, 1, detail);
        }
        for ((name, _), _) in map.entries().zip(&seen).filter(|(_, seen)| **seen == 0) {
            let detail = format!(
                "no region or function of the program is called \"{name}\", which the operation \
                 map names"
            );
            anomalies.add("unknown_operation", Level::Warning, 1, detail);
        }
    }
    Ok((mapped, meetings))
}

/// The names of all instrumented functions in the map, by entry. Collective.
fn functions(
    job: &dyn Job,
    map: &OperationMap,
    locations: &[Location],
    profiled: &[Profiled],
    symbols: Symbols,
) -> Result<Vec<(PathKey, String)>> {
    let mut own: Vec<PathKey> = Vec::new();
    for (location, profiled) in locations.iter().zip(profiled) {
        let regions = location.definitions.regions().iter();
        let functions = regions.filter(|region| region.kind == REGION_FUNCTION);
        own.extend(functions.filter_map(|f| profiled.paths.get(f.call_path as usize)));
    }
    let texts = places::paths(job, own, locations, profiled)?;
    let mut named: Vec<(PathKey, String)> = Vec::new();
    if job.agent() == 0 {
        let mut keys: Vec<PathKey> = texts.keys().copied().collect();
        let mut places = Places::new(texts, symbols);
        keys.sort_unstable();
        let names = keys.into_iter().map(|key| (key, places.function(key)));
        named.extend(names.filter(|(_, name)| map.get(name).is_some()));
    }
    comm::from_head(job, named)
}

/// Turns a location's regions into operations: `numbers` by id. Returns the instances of each
/// region in which ranks may meet.
fn make_operations(
    location: &mut Location,
    profiled: &mut Profiled,
    clock: &ClockMap,
    numbers: &[Option<u16>],
) -> FxHashMap<u16, Instances> {
    let mut instances: FxHashMap<u16, Instances> = FxHashMap::default();
    if numbers.iter().all(Option::is_none) {
        return instances;
    }
    let number = |id: usize| numbers.get(id).copied().flatten();
    rename(location, number);
    let ns = |ticks: u64| clock.length_ns(ticks) as u64;
    for entry in &location.regions {
        if let Some(number) = number(entry.region as usize) {
            // The profile has the calls inside already.
            let inside = &mut profiled.times.inside[TimeClass::of(number) as usize];
            *inside = inside.saturating_add(ns(entry.exclusive));
            let known = instances.entry(number).or_default();
            known.counted = known.counted.saturating_add(entry.count);
        }
    }
    let mut entries: BTreeMap<(u16, u32), Entry> = BTreeMap::new();
    for chunk in &location.chunks {
        if !location.verify(chunk) {
            continue;
        }
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            let signatures = location.definitions.signatures();
            let Some(signature) = signatures.get(event.signature as usize) else {
                continue;
            };
            let call = calls::call(signature.operation);
            let is_mapped = signature.operation != REGION && call.is_some_and(|c| c.is_user());
            if !is_mapped || signature.has(flags::PAUSED) {
                continue;
            }
            let ticks = event.value.unwrap_or(event.leave - event.enter);
            let time = ns(ticks);
            let key = (signature.operation, signature.call_path);
            let entry = entries.entry(key).or_insert(Entry {
                operation: signature.operation,
                minimum: u64::MAX,
                members: 2,
                ..Entry::default()
            });
            entry.count += 1;
            entry.total = entry.total.saturating_add(time);
            entry.minimum = entry.minimum.min(time);
            entry.maximum = entry.maximum.max(time);
        }
        location.release(chunk);
    }
    for ((_, path), entry) in entries {
        instances.entry(entry.operation).or_default().recorded += entry.count;
        profiled.times.calls = profiled.times.calls.saturating_add(entry.count);
        profiled.entries.push((path, entry));
    }
    instances
}

/// Call paths that the report needs.
pub fn paths(regions: &Regions) -> impl Iterator<Item = PathKey> {
    regions.values().map(|sums| sums.place)
}

/// The rows of the report, the largest differences between ranks first. `total` is all time, ns.
pub fn rows(
    regions: Regions,
    settings: &Settings,
    total: f64,
    places: &mut Places,
) -> Vec<laggard_report::Region> {
    let mut rows: Vec<(u64, RegionKey, RegionSums)> = regions
        .into_iter()
        .map(|(key, sums)| (sums.imbalance() as u64, key, sums))
        .filter(|(_, key, sums)| {
            let share = percent(sums.inclusive as f64, total);
            key.kind != REGION_FUNCTION || share >= LEAST_PERCENT || settings.all
        })
        .collect();
    rows.sort_by(|a, b| {
        let time = b.2.exclusive.cmp(&a.2.exclusive);
        b.0.cmp(&a.0).then(time).then_with(|| a.1.cmp(&b.1))
    });
    rows.truncate(MOST_ROWS);
    let rows = rows.into_iter().map(|(imbalance, key, sums)| {
        let is_hot = sums.share >= settings.hotspot_percent;
        let lost = percent(imbalance as f64, total);
        let filter = match () {
            () if is_hot && lost >= settings.hotspot_percent => "imbalance",
            () if is_hot && sums.deviation >= settings.deviation_ratio => "deviation",
            () => "none",
        };
        let generic = (sums.operation_type as usize).checked_sub(1);
        let generic = generic.and_then(|at| GenericType::ALL.get(at));
        laggard_report::Region {
            region: match key.kind {
                REGION_FUNCTION => places.function(key.function),
                _ => key.name,
            },
            kind: match key.kind {
                REGION_FUNCTION => "function",
                REGION_PHASE => "phase",
                _ => "region",
            }
            .to_owned(),
            operation_type: generic.map(|generic| generic.name().to_owned()),
            location: places.of(sums.place),
            calls: sums.count,
            untimed_calls: (sums.untimed > 0).then_some(sums.untimed),
            locations: sums.locations,
            inclusive_s: seconds(sums.inclusive),
            exclusive_s: seconds(sums.exclusive),
            mean_s: seconds(sums.mean() as i64),
            max_s: seconds(sums.most.0),
            worst_rank: sums.most.1,
            imbalance: ratio(sums.most.0 as f64, sums.mean()),
            imbalance_s: seconds(imbalance),
            overload_s: Some(seconds(sums.shares.overload())),
            non_participation_s: Some(seconds(sums.shares.non_participation())),
            single_participant_s: Some(seconds(sums.shares.single_participant())),
            percent: lost,
            instance_mean_s: seconds(sums.exclusive / sums.count.max(1)),
            instance_max_s: seconds(sums.longest),
            filter: filter.to_owned(),
        }
    });
    rows.collect()
}
