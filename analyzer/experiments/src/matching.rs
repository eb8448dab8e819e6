//! Matches findings, regions and root causes of different runs.
//!
//! Within one revision a finding is identified by its line and call path. A root cause has up to two
//! places, those of the calls before and after it. Between revisions lines
//! move and functions are renamed. So matching takes several rounds, each for the findings left
//! over:
//!
//! 1. the same line, by the same call path;
//! 2. the same line;
//! 3. the same function, by the same functions: nearest lines, in their order;
//! 4. the same function;
//! 5. a function that the other revision does not know, called by the same functions.
//!
//! Pattern and operation, or activity and operations, must be the same in all rounds.

use std::collections::{BTreeMap, BTreeSet};

use laggard_report::{Bottleneck, Region, RootCause, SourceLocation};
use serde::Serialize;

use crate::set::base_name;

/// How two findings were matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// They are at the same line.
    Line,
    /// They are in the same function, at different lines.
    Moved,
    /// They are in functions of different names, called by the same functions.
    Renamed,
}

/// The identity of a finding, region or root cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Must be equal: pattern and operation, the kind of a region, or activity and operations.
    kind: Vec<String>,
    /// Name of a region.
    name: String,
    /// Where it is: of a root cause its begin and its end, as far as they are calls.
    spots: Vec<Spot>,
}

/// A place of an [`Identity`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Spot {
    file: String,
    line: u32,
    /// Without an offset.
    function: String,
    /// Offset in the function, if lines are unknown.
    offset: u64,
    /// Functions, the outermost first.
    path: Vec<String>,
    /// The same with lines.
    whole_path: Vec<String>,
}

impl Identity {
    /// Of a finding.
    pub fn of_finding(finding: &Bottleneck) -> Identity {
        Identity {
            kind: vec![finding.pattern.clone(), finding.operation.clone()],
            name: String::new(),
            spots: vec![Spot::new(&finding.location)],
        }
    }

    /// Of a region.
    pub fn of_region(region: &Region) -> Identity {
        Identity {
            kind: vec![region.kind.clone()],
            name: region.region.clone(),
            spots: vec![Spot::new(&region.location)],
        }
    }

    /// Of a root cause: whichever ranks it is of.
    pub fn of_root_cause(root: &RootCause) -> Identity {
        let until = root.until.as_ref();
        let begin = (!root.operation.is_empty()).then_some(&root.location);
        let end = until.map(|until| &until.location);
        let until = until.map(|until| until.operation.clone());
        Identity {
            kind: vec![
                root.activity.clone(),
                root.operation.clone(),
                until.unwrap_or_default(),
            ],
            name: String::new(),
            spots: begin.into_iter().chain(end).map(Spot::new).collect(),
        }
    }

    /// Positions in their functions or files.
    fn positions(&self) -> Vec<u64> {
        self.spots.iter().map(Spot::position).collect()
    }

    /// How far apart the places of two identities are.
    fn distance(&self, other: &Identity) -> u64 {
        let both = self.spots.iter().zip(&other.spots);
        let apart = both.map(|(one, other)| one.position().abs_diff(other.position()));
        apart.fold(0, u64::saturating_add)
    }
}

impl Spot {
    fn new(place: &SourceLocation) -> Spot {
        let (function, offset) = split_offset(&place.function);
        Spot {
            file: base_name(&place.file).to_owned(),
            line: place.line,
            function: function.to_owned(),
            offset,
            path: place.callpath.iter().map(|f| function_of(f)).collect(),
            whole_path: place.callpath.clone(),
        }
    }

    /// Its position in its function or file.
    fn position(&self) -> u64 {
        match self.line {
            0 => self.offset,
            line => line.into(),
        }
    }

    /// The functions on the path to its own.
    fn callers(&self) -> &[String] {
        let depth = self.path.len().saturating_sub(1);
        &self.path[..depth]
    }
}

/// `function+0x12` as function and 0x12.
fn split_offset(function: &str) -> (&str, u64) {
    let parts = function.rsplit_once("+0x");
    let parsed = parts.and_then(|(name, digits)| {
        let offset = u64::from_str_radix(digits, 16).ok()?;
        Some((name, offset))
    });
    parsed.unwrap_or((function, 0))
}

/// The function of a frame, which is `function file:line` or `function+0x12`.
pub fn function_of(frame: &str) -> String {
    let is_place = |text: &str| {
        let line = text.rsplit_once(':').map(|(_, line)| line);
        line.is_some_and(|line| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()))
    };
    let function = match frame.rsplit_once(' ') {
        Some((function, place)) if is_place(place) => function,
        _ => frame,
    };
    split_offset(function).0.to_owned()
}

/// Must be equal in a round; `None`: not matched in this round.
type Key = Option<(Vec<String>, Vec<u64>)>;
/// A round: the key, and the kind of match.
type Round = (fn(&Identity) -> Key, Matched);

/// The rounds for findings and root causes, in order; within one revision only the first two.
const FINDINGS: [Round; 4] = [
    (
        |i| {
            let key = key(i, |spot| {
                let own = [spot.function.clone(), spot.file.clone()];
                own.into_iter().chain(spot.whole_path.clone()).collect()
            });
            Some((key, i.positions()))
        },
        Matched::Line,
    ),
    (
        |i| {
            let key = key(i, |spot| vec![spot.function.clone(), spot.file.clone()]);
            Some((key, i.positions()))
        },
        Matched::Line,
    ),
    (by_functions, Matched::Moved),
    (
        |i| in_functions(i, |spot| vec![spot.function.clone()]),
        Matched::Moved,
    ),
];
const SAME_REVISION: usize = 2;
/// The last round: renamed functions.
const RENAMED: Round = (
    |i| {
        let known = i.spots.iter().all(|spot| !spot.callers().is_empty());
        known.then(|| (key(i, |spot| spot.callers().to_vec()), Vec::new()))
    },
    Matched::Renamed,
);

/// The rounds for regions: the name, then the place.
const REGIONS: [Round; 2] = [
    (
        |i| {
            let name = || vec![i.name.clone()];
            Some((key(i, |_| name()), Vec::new()))
        },
        Matched::Line,
    ),
    (by_functions, Matched::Renamed),
];

/// By function and the functions that call it.
fn by_functions(identity: &Identity) -> Key {
    in_functions(identity, |spot| {
        let own = [spot.function.clone()];
        own.into_iter().chain(spot.path.clone()).collect()
    })
}

/// If all functions are known.
fn in_functions(identity: &Identity, of: impl Fn(&Spot) -> Vec<String>) -> Key {
    let known = identity.spots.iter().all(|spot| !spot.function.is_empty());
    known.then(|| (key(identity, of), Vec::new()))
}

/// Kind, and words of each place.
fn key(identity: &Identity, of: impl Fn(&Spot) -> Vec<String>) -> Vec<String> {
    let mut words = identity.kind.clone();
    for spot in &identity.spots {
        let own = of(spot);
        // So that lists of different lengths give different keys.
        words.push(own.len().to_string());
        words.extend(own);
    }
    words
}

/// A pair: position in `before`, position in `after`, and kind of match.
pub type Pair = (usize, usize, Matched);

/// Matches findings or root causes; repeats of one revision only by place.
pub fn findings(before: &[Identity], after: &[Identity], same_revision: bool) -> Vec<Pair> {
    if same_revision {
        return pairs(before, after, &FINDINGS[..SAME_REVISION]);
    }
    let mut found = pairs(before, after, &FINDINGS);
    // A function that still exists was not renamed.
    let only = |one: &[Identity], other: &[Identity]| -> Vec<usize> {
        let known: BTreeSet<&String> = other
            .iter()
            .flat_map(|i| &i.spots)
            .flat_map(|spot| spot.path.iter().chain([&spot.function]))
            .collect();
        let is_other = |spot: &Spot| !known.contains(&spot.function);
        let of_one = one.iter().enumerate();
        of_one
            .filter(|(_, identity)| identity.spots.iter().any(is_other))
            .map(|(at, _)| at)
            .collect()
    };
    let (left, right) = (only(before, after), only(after, before));
    let pick = |all: &[Identity], chosen: &[usize]| -> Vec<Identity> {
        chosen.iter().map(|&at| all[at].clone()).collect()
    };
    // Functions that both revisions know are matched already; these are not.
    let renamed = pairs(&pick(before, &left), &pick(after, &right), &[RENAMED]);
    found.extend(
        renamed
            .into_iter()
            .map(|(i, j, how)| (left[i], right[j], how)),
    );
    found.sort_unstable_by_key(|pair| (pair.0, pair.1));
    found
}

/// Matches regions.
pub fn regions(before: &[Identity], after: &[Identity], same_revision: bool) -> Vec<Pair> {
    let rounds = match same_revision {
        true => &REGIONS[..1],
        false => &REGIONS[..],
    };
    pairs(before, after, rounds)
}

fn pairs(before: &[Identity], after: &[Identity], rounds: &[Round]) -> Vec<Pair> {
    let mut left = vec![true; before.len()];
    let mut right = vec![true; after.len()];
    let mut pairs = Vec::new();
    for (key, matched) in rounds {
        let mut groups: BTreeMap<_, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, identity) in before.iter().enumerate().filter(|(at, _)| left[*at]) {
            if let Some(key) = key(identity) {
                groups.entry(key).or_default().0.push(at);
            }
        }
        for (at, identity) in after.iter().enumerate().filter(|(at, _)| right[*at]) {
            if let Some(key) = key(identity) {
                groups.entry(key).or_default().1.push(at);
            }
        }
        for (mut one, mut other) in groups.into_values() {
            one.sort_by_key(|&at| (before[at].positions(), at));
            other.sort_by_key(|&at| (after[at].positions(), at));
            let distance = |(i, j): (usize, usize)| before[one[i]].distance(&after[other[j]]);
            for (i, j) in align(one.len(), other.len(), &distance) {
                left[one[i]] = false;
                right[other[j]] = false;
                pairs.push((one[i], other[j], *matched));
            }
        }
    }
    pairs.sort_unstable_by_key(|pair| (pair.0, pair.1));
    pairs
}

/// Most pairs that are examined.
const MOST_PAIRS: usize = 1_000_000;

/// Pairs all of the shorter list, in order, with the least total distance.
fn align(
    one: usize,
    other: usize,
    distance: &dyn Fn((usize, usize)) -> u64,
) -> Vec<(usize, usize)> {
    if one > other {
        let turned = align(other, one, &|(i, j)| distance((j, i)));
        return turned.into_iter().map(|(i, j)| (j, i)).collect();
    }
    if one.saturating_mul(other) > MOST_PAIRS {
        return (0..one).map(|at| (at, at)).collect();
    }
    // least[i][j]: the first i matched with some of the first j.
    let mut least = vec![vec![0u64; other + 1]; one + 1];
    for i in 1..=one {
        for j in 0..=other {
            least[i][j] = match j {
                j if j < i => u64::MAX,
                j => {
                    let with = least[i - 1][j - 1].saturating_add(distance((i - 1, j - 1)));
                    with.min(least[i][j - 1])
                }
            };
        }
    }
    let (mut i, mut j) = (one, other);
    let mut pairs = Vec::new();
    while i > 0 {
        // Of equal sums the one with the first lines.
        if j > i && least[i][j - 1] == least[i][j] {
            j -= 1;
        } else {
            pairs.push((i - 1, j - 1));
            i -= 1;
            j -= 1;
        }
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(function: &str, line: u32, path: &[&str]) -> Identity {
        let mut callpath: Vec<String> = path.iter().map(|f| f.to_string()).collect();
        callpath.push(format!("{function} app.c:{line}"));
        Identity::of_finding(&Bottleneck {
            pattern: "late_sender".to_owned(),
            operation: "MPI_Recv".to_owned(),
            location: SourceLocation {
                file: "/src/app.c".to_owned(),
                line,
                function: function.to_owned(),
                callpath,
                ..SourceLocation::default()
            },
            ..Bottleneck::default()
        })
    }

    fn between(before: &[Identity], after: &[Identity]) -> Vec<Pair> {
        findings(before, after, false)
    }

    #[test]
    fn the_same_line_comes_first() {
        let before = [at("f", 10, &["main a.c:1"]), at("f", 20, &["main a.c:1"])];
        let after = [at("f", 20, &["main a.c:3"]), at("f", 27, &["main a.c:3"])];
        let expected = [(0, 1, Matched::Moved), (1, 0, Matched::Line)];
        assert_eq!(between(&before, &after), expected);
        // Repeats of one revision have no moved lines.
        assert_eq!(findings(&before, &after, true), [(1, 0, Matched::Line)]);
    }

    #[test]
    fn moved_lines_keep_their_order() {
        let before = [at("f", 30, &[]), at("f", 10, &[])];
        let after = [at("f", 15, &[]), at("f", 35, &[])];
        let expected = [(0, 1, Matched::Moved), (1, 0, Matched::Moved)];
        assert_eq!(between(&before, &after), expected);
        // The two nearest of three.
        let after = [at("f", 9, &[]), at("f", 13, &[]), at("f", 31, &[])];
        let expected = [(0, 2, Matched::Moved), (1, 0, Matched::Moved)];
        assert_eq!(between(&before, &after), expected);
    }

    #[test]
    fn call_paths_tell_calls_of_one_line_apart() {
        let from = |caller: &str| at("f", 10, &["main a.c:1", caller]);
        let before = [from("one a.c:4"), from("two a.c:8")];
        let after = [from("two a.c:8"), from("one a.c:4")];
        let expected = [(0, 1, Matched::Line), (1, 0, Matched::Line)];
        assert_eq!(between(&before, &after), expected);
        let moved = |caller: &str| at("f", 12, &["main a.c:2", caller]);
        let after = [moved("two a.c:9"), moved("one a.c:5")];
        let expected = [(0, 1, Matched::Moved), (1, 0, Matched::Moved)];
        assert_eq!(between(&before, &after), expected);
    }

    #[test]
    fn renamed_functions_have_the_same_callers() {
        let before = [at("exchange", 10, &["main a.c:1", "step a.c:5"])];
        let after = [
            at("swap_halo", 44, &["main a.c:1", "step a.c:7"]),
            at("swap_halo", 44, &["main a.c:1", "other a.c:7"]),
        ];
        assert_eq!(between(&before, &after), [(0, 0, Matched::Renamed)]);
        // A function that is still called was not renamed.
        let still = at("f", 9, &["main a.c:1", "step a.c:5", "exchange a.c:20"]);
        assert_eq!(between(&before, &[after[0].clone(), still]), []);
        // Different callers: nothing says that they are the same function.
        let deep = [at("f", 1, &["main a.c:1", "g a.c:2"])];
        assert_eq!(between(&deep, &[at("h", 1, &["main a.c:1"])]), []);
        let mut other = after[0].clone();
        other.kind[0] = "late_receiver".to_owned();
        assert_eq!(between(&before, &[other]), []);
    }

    #[test]
    fn code_without_lines_moves_too() {
        let at = |offset: &str| {
            let mut identity = at("f", 0, &["app+0x11", "ns::g(int, char)+0x2a"]);
            let spot = &mut identity.spots[0];
            spot.whole_path[2] = format!("f+0x{offset}");
            spot.path[2] = function_of(&spot.whole_path[2]);
            spot.offset = u64::from_str_radix(offset, 16).unwrap();
            identity
        };
        assert_eq!(at("1f").spots[0].path, ["app", "ns::g(int, char)", "f"]);
        assert_eq!(between(&[at("1f")], &[at("2f")]), [(0, 0, Matched::Moved)]);
        assert_eq!(function_of("ns::g(int, char) a.c:7"), "ns::g(int, char)");
        assert_eq!(function_of("operator new"), "operator new");
    }

    #[test]
    fn regions_are_known_by_name_then_by_place() {
        let region = |name: &str, function: &str| {
            Identity::of_region(&Region {
                region: name.to_owned(),
                kind: "region".to_owned(),
                location: SourceLocation {
                    function: function.to_owned(),
                    ..SourceLocation::default()
                },
                ..Region::default()
            })
        };
        let before = [region("solve", "main"), region("output", "write")];
        let after = [region("relax", "main"), region("output", "main")];
        let expected = [(0, 0, Matched::Renamed), (1, 1, Matched::Line)];
        assert_eq!(regions(&before, &after, false), expected);
        assert_eq!(regions(&before, &after, true), [(1, 1, Matched::Line)]);
    }

    #[test]
    fn root_causes_have_two_ends() {
        let root = |begin: u32, until: u32| {
            let place = |line| SourceLocation {
                file: "/src/app.c".to_owned(),
                line,
                function: "step".to_owned(),
                callpath: vec!["main a.c:1".to_owned(), format!("step app.c:{line}")],
                ..SourceLocation::default()
            };
            Identity::of_root_cause(&RootCause {
                activity: "computation".to_owned(),
                operation: "MPI_Barrier".to_owned(),
                location: place(begin),
                until: Some(laggard_report::RootSite {
                    operation: "MPI_Send".to_owned(),
                    location: place(until),
                }),
                ..RootCause::default()
            })
        };
        // The same begin, two ends.
        let before = [root(10, 30), root(10, 20)];
        let after = [root(10, 20), root(10, 30)];
        let expected = [(0, 1, Matched::Line), (1, 0, Matched::Line)];
        assert_eq!(findings(&before, &after, true), expected);
        // Only the end moved.
        assert_eq!(
            between(&before[..1], &[root(10, 33)]),
            [(0, 0, Matched::Moved)]
        );
        assert_eq!(findings(&before[..1], &[root(10, 33)], true), []);
        // Nothing before it: only the end counts.
        let mut start = root(0, 20);
        start.spots.remove(0);
        start.kind[1].clear();
        assert_eq!(between(&before, std::slice::from_ref(&start)), []);
        assert_eq!(between(&[start.clone()], &[start]), [(0, 0, Matched::Line)]);
    }

    proptest! {
        #[test]
        fn nothing_is_matched_twice(
            one in prop::collection::vec((0u32..9, 0usize..3), 0..9),
            other in prop::collection::vec((0u32..9, 0usize..3), 0..9),
        ) {
            let list = |places: &[(u32, usize)]| -> Vec<Identity> {
                let functions = ["f", "g", "h"];
                places.iter().map(|&(line, f)| at(functions[f], line, &["main a.c:1"])).collect()
            };
            let pairs = between(&list(&one), &list(&other));
            // Findings of one function all match, as far as numbers allow.
            for f in 0..3 {
                let of = |list: &[(u32, usize)]| list.iter().filter(|p| p.1 == f).count();
                let found = pairs.iter().filter(|p| one[p.0].1 == f && other[p.1].1 == f);
                prop_assert_eq!(found.count(), of(&one).min(of(&other)));
            }
            for side in 0..2 {
                let mut ends: Vec<usize> = pairs
                    .iter()
                    .map(|p| if side == 0 { p.0 } else { p.1 })
                    .collect();
                ends.sort_unstable();
                ends.dedup();
                prop_assert_eq!(ends.len(), pairs.len());
            }
        }
    }
}
