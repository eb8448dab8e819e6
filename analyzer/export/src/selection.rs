//! The part of a trace that is drawn: ranks, time, calls of some length.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use laggard_engine::events::{Events, Operation};
use laggard_report::units::{count, duration, plural};
use laggard_report::{Bottleneck, Report, rank_ranges};
use laggard_trace::flags;
use rayon::prelude::*;

/// About the most slices, of calls and waits, that a browser shows; they take 100 MB or less.
const MOST: u64 = 4_000_000;
/// Time before and after a finding's worst call, in lengths of that call …
const AROUND: f64 = 10.0;
/// … and at least, ns.
const AROUND_LEAST: f64 = 1e6;
/// Late ranks drawn with a finding.
const CAUSES: usize = 8;

/// The user's choice; by default everything.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// First and last rank of each range.
    pub ranks: Option<Vec<(u32, u32)>>,
    /// Calls that end at this time or later, seconds since the start of the run.
    pub from: Option<f64>,
    /// Calls that begin before this time, seconds since the start of the run.
    pub until: Option<f64>,
    /// Calls that take this long or longer, seconds.
    pub min_duration: Option<f64>,
    /// The surroundings of a finding's worst call: the finding's number in the report, from 1, or
    /// its id.
    pub around: Option<String>,
    /// Whether a file too large for a browser is allowed.
    pub any_size: bool,
}

/// The selection.
#[derive(Debug)]
pub struct Selection {
    /// First and last rank of each range; none = all.
    ranks: Vec<(u32, u32)>,
    /// From, ns.
    pub from: i64,
    /// To, ns.
    pub until: i64,
    /// Shortest call that is drawn, ns.
    shortest: i64,
}

/// The calls of a location that are drawn.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Ranges of numbers, ascending; the end is exclusive.
    ranges: Vec<(u64, u64)>,
    /// Number of slices, with regions of the program.
    pub count: u64,
    /// Number of the program's calls.
    pub calls: u64,
}

impl Selection {
    /// The selection that the options describe.
    ///
    /// # Errors
    /// There is no such finding.
    pub fn new(options: &Choice, report: &Report) -> Result<Selection> {
        let ns = |seconds: f64| (seconds * 1e9) as i64;
        let mut selection = Selection {
            ranks: options.ranks.clone().unwrap_or_default(),
            from: options.from.map_or(i64::MIN, ns),
            until: options.until.map_or(i64::MAX, ns),
            shortest: options.min_duration.map_or(0, ns),
        };
        if let Some(name) = &options.around {
            let all = report.bottlenecks.len();
            let Some(finding) = finding(name, report) else {
                bail!(
                    "--around {name}: the report has {}",
                    plural(all as u64, "finding")
                );
            };
            selection.look_at(finding, report, options.ranks.is_none());
        }
        Ok(selection)
    }

    /// Selects the time around a finding's worst call and, if ranks may be chosen, its ranks.
    fn look_at(&mut self, finding: &Bottleneck, report: &Report, choose_ranks: bool) {
        let Some(worst) = &finding.worst_instance else {
            return;
        };
        let (start, end) = (worst.start_s * 1e9, worst.end_s * 1e9);
        let margin = ((end - start) * AROUND).max(AROUND_LEAST);
        self.from = self.from.max((start - margin) as i64);
        self.until = self.until.min((end + margin) as i64);
        if choose_ranks {
            let causes = finding.causes.iter().take(CAUSES).map(|cause| cause.rank);
            let roots = report.root_causes.iter().flatten();
            let first = finding.root_causes.first();
            let root = first.and_then(|first| roots.clone().find(|root| root.id == first.id));
            let root = root.and_then(|root| Some(root.ranks.first()?.rank));
            let ranks = causes.chain([worst.rank]).chain(root);
            self.ranks = ranks.map(|rank| (rank, rank)).collect();
        }
    }

    /// Whether a rank is drawn.
    pub fn has_rank(&self, rank: u32) -> bool {
        let ranges = &self.ranks;
        ranges.is_empty() || ranges.iter().any(|r| (r.0..=r.1).contains(&rank))
    }

    /// Whether a call is drawn. A part of the call after it never is.
    pub fn has_call(&self, operation: &Operation) -> bool {
        !operation.has(flags::PART)
            && self.has_time(operation.enter, operation.leave)
            && self.has_length(operation.enter, operation.leave)
    }

    /// Whether a call is long enough.
    pub fn has_length(&self, enter: i64, leave: i64) -> bool {
        leave - enter >= self.shortest
    }

    /// Whether an interval overlaps the time that is drawn.
    pub fn has_time(&self, enter: i64, leave: i64) -> bool {
        leave >= self.from && enter < self.until
    }

    /// The calls that are drawn, by location. Reads all calls.
    ///
    /// # Errors
    /// There are none, or too many for a browser; the message proposes another choice.
    pub fn calls(&self, events: &Events, options: &Choice, report: &Report) -> Result<Vec<Drawn>> {
        let locations = (0..events.locations()).into_par_iter();
        let drawn: Vec<Drawn> = locations.map(|at| self.of_location(events, at)).collect();
        let calls: u64 = drawn.iter().map(|drawn| drawn.count).sum();
        if calls == 0 {
            bail!("no call is left by --ranks, --from, --until, --min-duration or --around");
        }
        if calls > MOST && !options.any_size {
            bail!("{}", self.too_many(calls, events, report));
        }
        Ok(drawn)
    }

    fn of_location(&self, events: &Events, at: usize) -> Drawn {
        let mut drawn = Drawn::default();
        let place = events.place(at);
        if !self.has_rank(place.rank) || !self.has_time(place.first_ns, place.last_ns) {
            return drawn;
        }
        let mut parts = None;
        events.operations(at).read(|operation| {
            if operation.has(flags::PART) {
                parts.get_or_insert(operation.number);
                return ControlFlow::Continue(());
            }
            let first = parts.take().unwrap_or(operation.number);
            if self.has_call(operation) {
                drawn.add(first, operation.number);
                drawn.calls += u64::from(operation.calls);
            }
            ControlFlow::Continue(())
        });
        drawn
    }

    /// The error for too many calls, with a proposal.
    fn too_many(&self, calls: u64, events: &Events, report: &Report) -> String {
        // A margin, since calls are not spread evenly.
        let share = 0.9 * MOST as f64 / calls as f64;
        let (from, until) = (self.from.max(0), self.until.min(events.end_ns()));
        let length = ((until - from) as f64 * share) / 1e9;
        let ranks: Vec<u32> = (0..events.ranks()).filter(|&r| self.has_rank(r)).collect();
        let mut proposals = Vec::new();
        if !report.bottlenecks.is_empty() {
            proposals.push("--around 1 (the worst finding)".to_owned());
        }
        let some = (ranks.len() as f64 * share) as usize;
        if some > 0 {
            let some = rank_ranges(ranks[..some].iter().copied());
            proposals.push(format!("--ranks {some}"));
        }
        let from = from as f64 / 1e9;
        proposals.push(format!("--from {from:.6} --until {:.6}", from + length));
        proposals.push("--min-duration 1e-5".into());
        let (calls, all) = (count(calls), duration((until as f64) / 1e9 - from));
        format!(
            "{calls} calls in {all} are more than a browser shows (about {}): choose some by {}; \
             --any-size writes them all the same",
            count(MOST),
            proposals.join(", or ")
        )
    }
}

/// The finding with a number, from 1, or an id.
pub fn finding<'r>(name: &str, report: &'r Report) -> Option<&'r Bottleneck> {
    let all = &report.bottlenecks;
    match name.parse::<usize>() {
        Ok(number) => all.get(number.checked_sub(1)?),
        Err(_) => all.iter().find(|finding| finding.id == name),
    }
}

impl Drawn {
    /// Adds the next call and its parts, which begin at number `first`.
    fn add(&mut self, first: u64, number: u64) {
        match self.ranges.last_mut() {
            Some((_, end)) if *end == first => *end = number + 1,
            _ => self.ranges.push((first, number + 1)),
        }
        self.count += 1;
    }

    /// Whether a call is drawn.
    pub fn has(&self, number: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= number);
        after > 0 && number < self.ranges[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_calls_are_those_that_were_added() {
        let mut drawn = Drawn::default();
        [3, 4, 5, 9]
            .iter()
            .for_each(|&number| drawn.add(number, number));
        drawn.add(12, 13);
        assert_eq!((drawn.count, drawn.ranges.len()), (5, 3));
        let has: Vec<u64> = (0..20).filter(|&number| drawn.has(number)).collect();
        assert_eq!(has, [3, 4, 5, 9, 12, 13]);
    }
}
