//! Places of the program, as users name them: a function or region, with `*` for any letters, or a
//! line, `FILE:LINE`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, bail};
use laggard_engine::events::{CallPath, Events};
use rustc_hash::FxHashSet;

use crate::marks::Gap;
use crate::reader::Site;
use crate::sampled::Sampled;

/// Names that are proposed instead of an unknown one.
const PROPOSED: usize = 3;

/// Intervals of a location, ascending and disjoint, ns.
type Intervals = Vec<(i64, i64)>;

/// A place of a run.
pub struct Place {
    /// By call path: whether it passes through this place.
    by_path: Vec<bool>,
    /// By call path: whether it passes through this place, and that is a line.
    by_line: Vec<bool>,
    /// When each location was in a region of this name; empty if there is none.
    regions: Vec<Intervals>,
    /// By location; empty: nobody asks for computation in it.
    sampled: Vec<Sampled>,
}

impl Place {
    /// Finds a place.
    ///
    /// # Errors
    /// There is no such place; the error names similar ones.
    pub fn find(events: &Events, name: &str) -> Result<Place> {
        let paths = || events.call_paths.iter();
        let by_path: Vec<bool> = paths()
            .map(|path| frames(path).any(|(function, line)| fits(name, function, line)))
            .collect();
        let by_line = paths().map(|path| frames(path).any(|(_, line)| is_line(name, line)));
        let by_line = by_line.collect();
        let regions = regions(events, name);
        if !by_path.contains(&true) && regions.is_empty() {
            let near = nearest(events, name);
            bail!(
                "no place of this run is called {name}; there are {}",
                near.join(", ")
            );
        }
        Ok(Place {
            by_path,
            by_line,
            regions,
            sampled: Vec::new(),
        })
    }

    /// The same, to ask for [`part`](Self::part)s.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn computing(events: &Events, name: &str) -> Result<Place> {
        let mut place = Place::find(events, name)?;
        place.sampled = Sampled::of_all(events, |path| place.has_path(path));
        Ok(place)
    }

    /// Whether a call path passes through it.
    pub fn has_path(&self, path: u32) -> bool {
        self.by_path[path as usize]
    }

    /// Whether computation of a location between two calls may lie in it.
    pub fn may_be(&self, before: Option<Site>, after: Site) -> bool {
        let mut sampled = self.sampled.iter();
        self.has_path(after.1)
            || !self.regions.is_empty()
            || sampled.any(|sampled| sampled.may_be((before, after)))
    }

    /// How much of the time before a call lies in it, ns: what lies in regions of that name; else as samples
    /// tell; without any, all if the call does. All of it lies in the line of the call.
    pub fn part(&self, gap: &Gap) -> i64 {
        let Gap { from, to, .. } = *gap;
        let path = gap.after.1;
        if to <= from {
            return 0;
        }
        let of_region = self.regions.get(gap.location);
        let Some(intervals) = of_region.filter(|intervals| !intervals.is_empty()) else {
            let whole = || if self.has_path(path) { to - from } else { 0 };
            let sampled = self.sampled.get(gap.location);
            let sampled = sampled.filter(|_| !self.by_line[path as usize]);
            let part = sampled.and_then(|sampled| sampled.part((gap.before, gap.after), from, to));
            return part.unwrap_or_else(whole);
        };
        if self.has_path(path) {
            return to - from;
        }
        let first = intervals.partition_point(|&(_, end)| end <= from);
        let within = intervals[first..]
            .iter()
            .take_while(|(begin, _)| *begin < to);
        within
            .map(|&(begin, end)| end.min(to) - begin.max(from))
            .sum()
    }
}

/// The functions of a call path with their lines (`file.c:12`), outermost first.
fn frames(path: &CallPath) -> impl Iterator<Item = (&str, &str)> {
    let texts = path.place.callpath.iter();
    texts.map(|text| text.rsplit_once(' ').unwrap_or((text, "")))
}

/// Whether a name means this function or line.
fn fits(name: &str, function: &str, line: &str) -> bool {
    glob(name, function) || is_line(name, line)
}

/// Whether a name means this line.
fn is_line(name: &str, line: &str) -> bool {
    let file = Path::new(line).file_name();
    name == line || file.is_some_and(|file| file == name)
}

/// Whether a text fits a pattern in which `*` stands for any letters.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// The time in regions that fit; empty if there is none at all.
fn regions(events: &Events, name: &str) -> Vec<Intervals> {
    let all = (0..events.locations()).map(|location| {
        let named = events.regions(location);
        let named: FxHashSet<&str> = named
            .map(|region| region.name)
            .filter(|region| glob(name, region))
            .collect();
        let mut intervals: Intervals = Vec::new();
        if named.is_empty() {
            return intervals;
        }
        events.operations(location).read(|operation| {
            if operation.is_region && named.contains(operation.name()) {
                // Regions come in order of their ends, the outer ones after those inside.
                let inner = intervals.iter().rev();
                let inner = inner
                    .take_while(|(begin, _)| *begin >= operation.enter)
                    .count();
                intervals.truncate(intervals.len() - inner);
                intervals.push((operation.enter, operation.leave));
            }
            ControlFlow::Continue(())
        });
        intervals
    });
    let all: Vec<Intervals> = all.collect();
    match all.iter().all(Vec::is_empty) {
        true => Vec::new(),
        false => all,
    }
}

/// The names of places that differ least from an unknown one.
fn nearest(events: &Events, name: &str) -> Vec<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for path in &events.call_paths {
        for (function, line) in frames(path) {
            names.insert(function.to_owned());
            let file = Path::new(line).file_name();
            names.extend(file.map(|file| file.to_string_lossy().into_owned()));
        }
    }
    for location in 0..events.locations() {
        names.extend(
            events
                .regions(location)
                .map(|region| region.name.to_owned()),
        );
    }
    names.retain(|name| !name.is_empty());
    nearest_of(names, name)
}

/// The few names that differ least from an unknown one.
pub fn nearest_of(names: impl IntoIterator<Item = String>, name: &str) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_cached_key(|known| (distance(known, name), known.clone()));
    names.truncate(PROPOSED);
    names
}

/// Edits from one text to the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = before + usize::from(a != *b);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_stars() {
        for (pattern, text, fitting) in [
            ("solve", "solve", true),
            ("solve", "solver", false),
            ("solve*", "solver", true),
            ("*solve", "pre_solve", true),
            ("*solve", "solve_all", false),
            ("s*l*e", "solve", true),
            ("s*l*x", "solve", false),
            ("*", "", true),
            ("", "a", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(glob(pattern, text), fitting, "{pattern} {text}");
        }
        assert!(fits("app.c:12", "work", "/src/app.c:12"));
        assert!(!fits("app.c:1", "work", "/src/app.c:12"));
    }

    #[test]
    fn the_nearest_names_are_proposed() {
        let names = ["exchange", "solve", "main"].map(str::to_owned);
        assert_eq!(nearest_of(names, "slove")[0], "solve");
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn part_of_the_time_before_a_call() {
        let place = Place {
            by_path: vec![false, true],
            by_line: vec![false; 2],
            regions: vec![vec![(10, 20), (30, 40)]],
            sampled: Vec::new(),
        };
        let part = |path, from, to| {
            place.part(&Gap {
                location: 0,
                before: None,
                after: (0, path),
                from,
                to,
                beside: Default::default(),
            })
        };
        assert_eq!(part(1, 0, 100), 100);
        assert_eq!(part(0, 0, 100), 20);
        assert_eq!(part(0, 15, 35), 10);
        assert_eq!(part(0, 20, 30), 0);
        assert_eq!(part(0, 5, 5), 0);
    }
}
