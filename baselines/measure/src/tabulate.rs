//! From recorded times to a table.

use std::collections::BTreeMap;

use laggard_baselines::{Entry, Fingerprint, Point, Span, Table};
use laggard_trace::calls::{self, Shape};

use super::command::Cell;
use super::crowded;
use super::plan::{Done, Plan, Run, is_check};
use super::recorded::Series;
use super::rounds;

/// Members may begin apart by this share of the usual time …
const SKEW_SHARE: f32 = 0.1;
/// … and by this in any case, ns.
const SKEW: f32 = 150.0;
/// Least repetitions of a run that count: if too few began together, the closest ones do.
const LEAST: usize = 3;
/// With more members than cores, one in this many repetitions counts in any case: no members begin
/// together there, and the shortest time of few repetitions is a matter of chance.
const CROWDED: usize = 4;
/// A time is found again if another is at most this many times as long.
const AGAIN: f32 = 1.25;
/// The shortest time is luck if half of the calls took more than this many times as long: their
/// duration depends on who had the cores.
const LUCK: f32 = 3.0;
/// If more than one in this many times of a group was not found again, none of them is used: two
/// passes agree now and then by chance.
const CHANCE: usize = 3;

/// Key of an entry.
type Kind = (u16, Span, u32);
/// For each repetition: duration, and how far apart the members began, ns.
type Times = Vec<(f32, f32)>;
/// Times by bytes.
type Curve = BTreeMap<u64, Measured>;

/// All times of a size.
#[derive(Default)]
struct Measured {
    is_check: bool,
    /// The times of all runs.
    times: Times,
    /// The shortest time of each run, for groups with more members than cores.
    crowded: Vec<f32>,
}

impl Measured {
    /// Whether the shortest time can be used. Where members wait for cores it may be anything. It
    /// then counts if two runs found it, or nearly so, and it is not far from the usual one.
    fn is_stable(&self) -> bool {
        let mut shortest = self.crowded.clone();
        shortest.sort_by(f32::total_cmp);
        match shortest[..] {
            [] => true,
            [least, next, ..] => next <= least * AGAIN && self.median() <= least * LUCK,
            [_] => false,
        }
    }

    fn median(&self) -> f32 {
        let mut times: Vec<f32> = self.times.iter().map(|time| time.0).collect();
        let middle = times.len() / 2;
        times.select_nth_unstable_by(middle, f32::total_cmp);
        times[middle]
    }
}

/// Times in a group with more members than cores: unstable ones, and all.
type Again = (usize, usize);
/// These counts by group.
type Crowded = BTreeMap<(Span, u32), Again>;

/// The table of all runs, with notes on what it lacks.
pub fn table(done: &Done, plan: &Plan, series: Series, machine: Fingerprint) -> Table {
    let (entries, crowded) = entries(&done.runs, plan, series);
    let mut table = Table::new(&description(&machine), entries);
    table.fingerprint = Some(machine);
    let ranks = plan.hosts.len();
    let kept = crowded::note(&done.kept, plan.groups, ranks);
    table.notes.extend(kept);
    table.notes.extend(notes(&crowded, ranks));
    table.fit();
    table
}

/// Whether too many times were not found again for the others to be more than chance.
fn is_chance(&(unstable, all): &Again) -> bool {
    unstable * CHANCE > all
}

/// Sentences on times that were not found again.
fn notes(crowded: &Crowded, ranks: usize) -> Vec<String> {
    let (chance, rest): (Vec<_>, Vec<_>) = crowded.iter().partition(|(_, again)| is_chance(again));
    let mut notes = Vec::new();
    for ((_, size), (unstable, all)) in chance {
        notes.push(format!(
            "of {ranks} ranks groups of {size} are left out: they have more members than a host has \
             cores, and {unstable} of {all} times were not found again within 25 %, or are a third of \
             the usual; their calls are judged by those of smaller and larger groups, if there are both"
        ));
    }
    let sum = |pick: fn(&Again) -> usize| rest.iter().map(|(_, again)| pick(again)).sum();
    let (unstable, all): Again = (sum(|again| again.0), sum(|again| again.1));
    if unstable > 0 {
        notes.push(format!(
            "of {ranks} ranks {unstable} of {all} times in groups that have more members than a host \
             has cores are left out: they were not found again within 25 %, or are a third of the usual"
        ));
    }
    notes
}

fn description(machine: &Fingerprint) -> String {
    let crowded = match machine.oversubscribed {
        true => ", more ranks than cores",
        false => "",
    };
    let hosts = match &machine.hosts[..] {
        [one] => one.clone(),
        hosts => format!("{} hosts", hosts.len()),
    };
    // After the version come details of its build.
    let library = machine.mpi_library.split(',').next().unwrap_or_default();
    format!("{hosts}, {library}, {} ranks{crowded}", machine.ranks)
}

/// The times of the first member of groups, and of the others.
#[derive(Default)]
struct Roles([Curve; 2]);

/// Entries, and the counts of groups with more members than cores.
fn entries(runs: &[Run], plan: &Plan, series: Series) -> (Vec<Entry>, Crowded) {
    let mut kinds: BTreeMap<Kind, Roles> = BTreeMap::new();
    for ((run, is_first, operation, bytes), times) in series {
        let Some(run) = runs.get(run as usize) else {
            continue;
        };
        let Some(kind) = kind(operation, &run.cell, plan) else {
            continue;
        };
        let skews = run.skews.iter().skip(rounds::WARM_UP);
        let skews = skews.map(|&skew| skew as f32);
        let curve = &mut kinds.entry(kind).or_default().0[usize::from(!is_first)];
        // A call that counts no bytes is the same in cells of all sizes.
        let checks = bytes != 0 && is_check(run.cell.bytes, plan.options);
        let measured = curve.entry(bytes).or_insert(Measured {
            is_check: checks,
            ..Measured::default()
        });
        measured.is_check &= checks;
        let is_crowded = plan.is_crowded(run.cell.group);
        let least = if is_crowded { times.len() / CROWDED } else { 0 };
        let times = together(times.into_iter().zip(skews).collect(), least);
        if is_crowded {
            let shortest = times.iter().map(|time| time.0);
            measured.crowded.extend(shortest.min_by(f32::total_cmp));
        }
        measured.times.extend(times);
    }
    let mut crowded = Crowded::new();
    for ((_, span, size), roles) in &mut kinds {
        for curve in &mut roles.0 {
            curve.retain(|_, measured| {
                let is_stable = measured.is_stable();
                if !measured.crowded.is_empty() {
                    let again = crowded.entry((*span, *size)).or_default();
                    again.0 += usize::from(!is_stable);
                    again.1 += 1;
                }
                is_stable
            });
        }
    }
    kinds.retain(|(_, span, size), _| !crowded.get(&(*span, *size)).is_some_and(is_chance));
    let entries = kinds.into_iter().map(|(kind, roles)| entry(kind, roles));
    let entries = entries.filter(|entry| !entry.points.is_empty());
    (entries.collect(), crowded)
}

/// The key of a time, as the analysis will look it up.
fn kind(operation: u16, cell: &Cell, plan: &Plan) -> Option<Kind> {
    let group = &plan.groups[cell.group];
    let size = group.size() as u32;
    match calls::call(operation)?.shape {
        // Its members are taken to be two, whatever the group.
        Shape::Single if size != 2 => None,
        _ => Some((operation, group.span, size)),
    }
}

fn entry((operation, span, group_size): Kind, roles: Roles) -> Entry {
    let [first, others] = roles.0.map(points);
    let mut all = slower(first, others);
    let mut checks: Vec<Point> = Vec::new();
    // A check must lie between measured sizes.
    let known = |points: &[(bool, Point)]| points.iter().any(|(is_check, _)| !is_check);
    if known(&all) {
        all.retain(|(is_check, point)| {
            if *is_check {
                checks.push(*point);
            }
            !is_check
        });
    }
    let points = all.into_iter().map(|(_, point)| point).collect();
    let mut entry = Entry::new(calls::name(operation), group_size, Some(span), points);
    entry.checks = checks;
    entry
}

/// Statistics of each size, ascending.
fn points(curve: Curve) -> Vec<(bool, Point)> {
    let points = curve.into_iter();
    let points = points.map(|(bytes, all)| (all.is_check, point(bytes, all.times)));
    points.collect()
}

/// The repetitions of a run in which the members began together, or the `least` closest ones. The
/// limit must not depend on the duration of a single repetition, or slow ones would be preferred.
fn together(mut times: Times, least: usize) -> Times {
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let usual = times.get(times.len() / 4).map_or(0.0, |time| time.0);
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let near = times.partition_point(|time| time.1 <= (usual * SKEW_SHARE).max(SKEW));
    times.truncate(near.max(LEAST).max(least));
    times
}

/// Statistics of repetitions.
fn point(bytes: u64, mut times: Times) -> Point {
    let skew = times.iter().map(|time| time.1).fold(0.0, f32::max);
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let seconds = |share: usize| f64::from(times[(times.len() - 1) * share / 4].0.max(1.0)) * 1e-9;
    Point {
        bytes,
        time_s: rounded(seconds(0)),
        median_s: Some(rounded(seconds(2))),
        spread_s: Some(rounded(seconds(3) - seconds(1))),
        repetitions: Some(times.len() as u32),
        skew_s: Some(rounded(f64::from(skew) * 1e-9)),
    }
}

/// Rounded to a tenth of a ns: a clock shows no more, and people read the files.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e10).round() / 1e10
}

/// The slower of the first member and the others, since the analysis does not know which one made a
/// call. Between its sizes a curve is interpolated.
fn slower(first: Vec<(bool, Point)>, others: Vec<(bool, Point)>) -> Vec<(bool, Point)> {
    if first.is_empty() || others.is_empty() {
        return if first.is_empty() { others } else { first };
    }
    let curves = [&first, &others].map(|points| {
        let points = points.iter().filter(|(is_check, _)| !is_check);
        let points = points.map(|(_, point)| *point).collect();
        Entry::new("", 2, None, points)
    });
    let mut sizes: BTreeMap<u64, (bool, Point)> = BTreeMap::new();
    for (own, other) in [(&first, &curves[1]), (&others, &curves[0])] {
        for &(is_check, point) in own {
            let least = other.points.first().map_or(u64::MAX, |point| point.bytes);
            let beside = other.time(point.bytes).filter(|_| point.bytes >= least);
            if beside.is_some_and(|time| time > point.time_s) {
                // The other one is slower at this size, which may not have been measured for it.
                continue;
            }
            sizes.insert(point.bytes, (is_check, point));
        }
    }
    sizes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_that_began_apart_do_not_count() {
        let mut times: Times = (0..10).map(|i| (1000.0 + i as f32, 50.0)).collect();
        // A late member whose message had arrived, and a slow one.
        times.extend([(200.0, 900.0), (9000.0, 800.0)]);
        let point = super::point(8, together(times, 0));
        assert_eq!((point.time_s, point.repetitions), (1e-6, Some(10)));
        assert_eq!(point.median_s, Some(1.004e-6));
        assert_eq!(point.skew_s, Some(5e-8));
    }

    #[test]
    fn where_none_began_together_the_closest_count() {
        let times: Times = (1..=20).map(|i| (500.0, 1000.0 * i as f32)).collect();
        let point = super::point(8, together(times.clone(), 0));
        assert_eq!((point.repetitions, point.skew_s), (Some(3), Some(3e-6)));
        let point = super::point(8, together(times, 5));
        assert_eq!((point.repetitions, point.skew_s), (Some(5), Some(5e-6)));
    }

    #[test]
    fn where_members_wait_for_cores_a_shortest_time_was_found_twice() {
        let is_stable = |crowded: &[f32], usual: f32| {
            let measured = Measured {
                crowded: crowded.to_vec(),
                times: vec![(1000.0, 0.0), (usual, 0.0), (40000.0, 0.0)],
                ..Measured::default()
            };
            measured.is_stable()
        };
        assert!(is_stable(&[], 1000.0));
        assert!(!is_stable(&[1000.0], 1000.0));
        assert!(is_stable(&[9000.0, 1000.0, 1200.0], 2900.0));
        assert!(!is_stable(&[9000.0, 1000.0, 1300.0], 2900.0));
        assert!(!is_stable(&[9000.0, 1000.0, 1200.0], 3100.0));
    }

    #[test]
    fn groups_in_which_chance_decides_are_left_out() {
        let groups = [(3, (40, 100)), (4, (20, 100))];
        let groups = groups.map(|(size, again)| ((Span::IntraNode, size), again));
        let notes = notes(&groups.into_iter().collect(), 4);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("of 4 ranks groups of 3 are left out"));
        assert!(notes[0].contains("40 of 100 times were not found again"));
        assert!(notes[1].starts_with("of 4 ranks 20 of 100 times"));
        assert!(super::notes(&Crowded::new(), 4).is_empty());
    }

    #[test]
    fn the_slower_of_two_roles_counts() {
        let curve = |points: &[(u64, f64)]| {
            let points = points.iter();
            let points = points.map(|&(bytes, time)| (false, Point::new(bytes, time)));
            points.collect::<Vec<_>>()
        };
        // A root with three times the bytes, which takes longer, and the others.
        let root = curve(&[(3, 4e-6), (24, 4e-6), (192, 9e-6)]);
        let others = curve(&[(1, 1e-6), (8, 1e-6), (64, 20e-6)]);
        let found = slower(root, others);
        let found: Vec<(u64, f64)> = found.iter().map(|(_, p)| (p.bytes, p.time_s)).collect();
        assert_eq!(
            found,
            // For 24 bytes the others take 4.7 µs, by the curve between 8 and 64.
            [(1, 1e-6), (3, 4e-6), (64, 20e-6), (192, 9e-6)]
        );
    }
}
