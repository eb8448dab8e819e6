//! Clock measurements in the files, and the part of them that is needed.

use std::collections::{HashMap, HashSet};

use laggard_trace::ClockPoint;
use serde::{Deserialize, Serialize};

/// Kinds of clock points that are measurements of the reference: start, end, periodic.
const LAST_KIND: u32 = 2;

/// A measurement of a clock: ticks, ns of the reference, bound of the error in ns.
pub type Point = (u64, i64, u64);

/// Most measurements kept of a file.
pub(crate) const MOST_POINTS: usize = 512;

/// The measurements in a file: at most `MOST_POINTS`. Of a longer list, the best of each group of
/// successive ones.
pub fn points(points: &[ClockPoint]) -> Vec<Point> {
    let known = points.iter().filter(|point| point.kind <= LAST_KIND);
    let all: Vec<Point> = known
        .map(|point| (point.local, point.reference_ns, point.error_ns))
        .collect();
    if all.len() <= MOST_POINTS {
        return all;
    }
    // The first and the last tell the most.
    let inner = &all[1..all.len() - 1];
    let groups = inner.chunks(inner.len().div_ceil(MOST_POINTS - 2));
    let best = groups.filter_map(|group| group.iter().min_by_key(|point| point.2));
    let ends = [&all[0], &all[all.len() - 1]];
    let kept = ends[..1]
        .iter()
        .copied()
        .chain(best)
        .chain(ends[1..].iter().copied());
    kept.copied().collect()
}

/// Host and kind of a clock.
pub type ClockKey = (u64, u32);

/// Evidence of one file about its clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClockEvidence {
    /// Locations with equal hosts share one clock.
    pub host: u64,
    /// Kind of clock.
    pub clock: u32,
    /// Nominal rate, Hz.
    pub ticks_per_s: u64,
    /// Measurements against the reference, by time.
    pub points: Vec<Point>,
    /// (ticks, local `CLOCK_MONOTONIC` ns) of the first and the last block, if few measurements are there.
    pub span: Option<((u64, i64), (u64, i64))>,
    /// (ticks, `CLOCK_REALTIME` ns) of the file's creation: the last resort.
    pub made: (u64, i64),
}

impl ClockEvidence {
    /// The key of its clock.
    pub fn key(&self) -> ClockKey {
        (self.host, self.clock)
    }
}

/// The part of an agent's evidence that gives the same [`Clocks`]; files in rank order. Kept for
/// each clock: the first file, the file with the longest span, and each measurement once, with the
/// first file that has any. Ranks of a host mostly repeat each other.
pub fn needed<'e>(files: impl Iterator<Item = &'e ClockEvidence> + Clone) -> Vec<ClockEvidence> {
    /// The needed evidence of one clock. Numbers are positions of files.
    #[derive(Default)]
    struct Of {
        first: usize,
        measured: Option<usize>,
        longest: Option<(i64, usize)>,
        points: Vec<Point>,
        known: HashSet<Point>,
    }
    let mut clocks: HashMap<ClockKey, Of> = HashMap::new();
    for (at, file) in files.clone().enumerate() {
        let of = clocks.entry(file.key()).or_insert_with(|| Of {
            first: at,
            ..Of::default()
        });
        let known = &mut of.known;
        let points = file.points.iter().copied();
        let before = of.points.len();
        of.points
            .extend(points.filter(|&point| known.insert(point)));
        if of.points.len() > before {
            of.measured.get_or_insert(at);
        }
        // The last of equally long spans.
        if let Some(((_, n0), (_, n1))) = file.span {
            let span = n1.saturating_sub(n0);
            if of.longest.is_none_or(|(most, _)| span >= most) {
                of.longest = Some((span, at));
            }
        }
    }
    let needed = files.enumerate().filter_map(|(at, file)| {
        let of = clocks.get_mut(&file.key())?;
        let is_measured = of.measured == Some(at);
        let is_longest = of.longest.is_some_and(|(_, longest)| longest == at);
        (of.first == at || is_longest || is_measured).then(|| ClockEvidence {
            points: match is_measured {
                true => std::mem::take(&mut of.points),
                false => Vec::new(),
            },
            host: file.host,
            clock: file.clock,
            ticks_per_s: file.ticks_per_s,
            span: file.span,
            made: file.made,
        })
    });
    needed.collect()
}
