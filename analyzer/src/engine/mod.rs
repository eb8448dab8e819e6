//! The analysis engine: phases, from a directory of traces to a report.
//!
//! ```text
//! open ─ profile ─ detect ─ prepare ─ (pass one ─ questions ─ pass two ─ answers ─ name)* ─ merge ─ report
//! ```
//!
//! Every phase runs on all agents at once; [`Job`] is all that they share. What is
//! the same for every number of agents is kept in integers (ns), so that the order
//! of adding does not matter.

mod activity;
mod agent;
pub(crate) mod anomaly;
mod asking;
mod because;
mod calls;
mod causality;
mod channel;
pub(crate) mod clock;
mod columns;
mod completion;
mod detect;
mod exchange;

mod files;
mod finding;
mod fold;
mod group;
mod intern;
mod merge;
pub(crate) mod open;
mod phases;
mod places;
mod polling;
mod prepare;
mod rank;
mod report;
mod slab;
mod table;
mod thread;
mod topology;
mod wildcard;
mod wire;

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use laggard_report::Report;
use rayon::prelude::*;

use crate::comm::{Job, merge_up};
use crate::options::AnalyzeOptions;
use crate::symbols::Symbols;
use agent::Agent;
use anomaly::Anomalies;
use merge::Own;
use phases::Phases;

/// Analyses a directory; the report is at the head. An error that all agents see is
/// returned; it is the same everywhere.
pub fn analyze(
    job: &dyn Job,
    directory: &Path,
    options: &AnalyzeOptions,
) -> Result<Option<Report>> {
    let started = Instant::now();
    let mut phases = Phases::new(job, options);
    let settings = &options.settings;
    let mut anomalies = Anomalies::default();

    phases.begin("open");
    let mut opened = open::open(job, directory, &mut anomalies)?;
    let clocks: Vec<_> = opened
        .locations
        .iter()
        .map(|location| {
            let (rank, thread) = (location.header.rank, location.header.thread);
            let at = opened
                .infos
                .binary_search_by_key(&(rank, thread), |i| (i.rank, i.thread));
            let info = &opened.infos[at.unwrap_or(0)];
            (opened.clocks.of(&info.clock), info.span)
        })
        .collect();
    let zero = opened
        .infos
        .iter()
        .map(|i| opened.clocks.of(&i.clock).ns(i.span.0))
        .min()
        .unwrap_or(0);
    let end = opened
        .infos
        .iter()
        .map(|i| opened.clocks.of(&i.clock).ns(i.span.1))
        .max()
        .unwrap_or(0)
        - zero;
    let clocks: Vec<_> = clocks
        .into_iter()
        .map(|(map, span)| (map.shifted(zero), span))
        .collect();

    phases.begin("profile");
    let mut profiled: Vec<_> = opened
        .locations
        .par_iter()
        .zip(&clocks)
        .map(|(location, (clock, span))| prepare::profile(location, clock, *span))
        .collect();
    let clocks: Vec<_> = clocks.into_iter().map(|(map, _)| map).collect();

    // What is not needed any more would add up over many ranks; so below.
    let locations = opened.locations.iter_mut();
    locations.for_each(|location| location.profile = Vec::new());

    phases.begin("detect");
    let entries = profiled
        .iter()
        .flat_map(|location| &location.entries)
        .map(|(_, entry)| entry);
    let kinds = detect::Kinds::new(job, entries)?;
    let (verdicts, mut profile) =
        prepare::detect(&profiled, settings, options.baseline.as_ref(), &kinds);
    let (numbers, groups) = prepare::groups(job, &opened.locations);
    prepare::note_missing_members(
        &opened.locations,
        &profiled,
        &numbers,
        &groups,
        &mut profile,
    );
    let ranks = prepare::ranks(
        &opened,
        &profiled,
        &verdicts,
        &clocks,
        settings.all,
        &numbers,
    );

    drop(verdicts);
    profiled.iter_mut().for_each(|one| one.entries = Vec::new());

    phases.begin("causes");
    let round = match options.round_records {
        Some(records) => records,
        None => slab::size(job, opened.locations.len()),
    };
    let borders = slab::borders(job, &opened, &clocks, end, round);
    let mut agent = Agent::new(job, ranks, groups, &opened.agent_of, &opened.hosts);
    let progress = phases.bar(borders.len() as u64 + 1);
    for &until in &borders {
        agent.round(until, false);
        progress.inc(1);
    }
    agent.round(i64::MAX, true);
    progress.finish_and_clear();

    phases.begin("merge");
    let mut own = Own {
        profile,
        locations: profiled
            .iter()
            .map(|location| location.times.clone())
            .collect(),
        anomalies,
        ..Own::default()
    };
    // What is collected is given back at once: there may be many ranks.
    for mut rank in std::mem::take(&mut agent.ranks) {
        merge::collect(&mut rank, &mut own);
        merge::unmatched(&rank, &opened.truncated, &mut own.anomalies);
    }
    let any_truncated = opened.truncated.iter().any(|&cut| cut);
    merge::incomplete(&agent.owned, any_truncated, &mut own.anomalies);
    let texts = places::paths(job, &merge::paths_of(&own), &opened.locations, &profiled)?;
    let mut places = places::Places::new(&texts, symbols(options));
    // Before anything is folded: what is one line of the program is one finding.
    let same = places.same(job)?;
    if !same.is_empty() {
        own.rename_paths(|path| same.get(&path).copied().unwrap_or(path));
    }
    let locations = opened.infos.len();
    let (opened_locations, requests) = (opened.locations.len(), own.requests);
    let partial = own.fold(job, &opened.agent_of, locations)?;
    let merged = merge_up(job, partial, |mut sum, other| {
        sum.merge(other, locations);
        sum
    })?;
    let (totals, shares) = phases.finish(opened_locations, requests)?;
    Ok(merged.map(|merged| {
        let mut report = report::build(&opened, merged, &mut places, options, end);
        report.agents.count = job.agents() as u32;
        report.agents.analysis_time_s = started.elapsed().as_secs_f64();
        report.agents.phases = totals;
        report.agents.shares = shares;
        report
    }))
}

fn symbols(options: &AnalyzeOptions) -> Symbols {
    match &options.debug_roots {
        Some(roots) => Symbols::with_debug_roots(roots.clone()),
        None => Symbols::new(),
    }
}
