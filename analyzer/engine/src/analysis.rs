//! The phases of an analysis, from a directory of traces to a report.

use crate::replay::preparation;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use laggard_baselines::Used;
use laggard_trace::calls::GenericType;
use rayon::prelude::*;

use crate::basics::anomaly::{Anomalies, Level};
use crate::findings::merge::{Own, Partial};
use crate::findings::per_rank::Rows;
use crate::findings::{hanging, merge, per_rank, places, regions};
use crate::input::open;
use crate::judge::profile::Profiled;
use crate::judge::{account, detect, profile};
use crate::options::{Analysis, AnalyzeOptions};
use crate::phases::Phases;
use crate::replay::rounds::{Rounds, Settled};
use crate::replay::slab;
use crate::report::build::Named;
use crate::report::{around, build};
use crate::symbols::Symbols;
use crate::timeline::moments::Moments;
use crate::timeline::repair::Timeline;
use laggard_comm::{self as comm, Job, merge_up};

/// Analyses a directory; the report is at the head. An error that all agents see is
/// returned; it is the same everywhere.
pub fn analyze(
    job: &dyn Job,
    directory: &Path,
    options: &AnalyzeOptions,
) -> Result<Option<Analysis>> {
    let started = Instant::now();
    let mut phases = Phases::new(job, options);
    let settings = &options.settings;
    let mut anomalies = Anomalies::default();

    phases.begin("open");
    let mut opened = open::open(job, directory, &mut anomalies)?;
    let timeline = Timeline::new(&opened);
    let clocks = timeline.own(&opened);

    known_machine(job, options, &opened, &mut anomalies)?;
    phases.begin("profile");
    let stopped = Moments::new(job, &opened, &timeline).stopped;
    let locations = opened.locations.par_iter().zip(&clocks);
    let locations = locations.zip(&opened.bounds);
    let mut profiled: Vec<_> = locations
        .map(|((location, (clock, _)), bounds)| {
            profile::profile(location, clock, bounds, stopped, &opened)
        })
        .collect();

    let own_clocks: Vec<_> = clocks.iter().map(|(clock, _)| clock.clone()).collect();
    let (mapped, meetings) = regions::apply(
        job,
        &options.operations,
        &mut opened.locations,
        &mut profiled,
        &own_clocks,
        symbols(options),
        &mut anomalies,
    )?;
    let regions = regions::sums(
        &opened.locations,
        &profiled,
        &own_clocks,
        &mapped,
        &mut anomalies,
    );
    drop(own_clocks);

    // What is not needed any more would add up over many ranks; so below.
    let locations = opened.locations.iter_mut();
    locations.for_each(|location| {
        location.profile = Vec::new();
        location.regions = Vec::new();
    });

    phases.begin("detect");
    let entries = profiled
        .iter()
        .flat_map(|location| &location.entries)
        .map(|(_, entry)| entry);
    let transfers = profiled.iter().flat_map(Profiled::fastest);
    let kinds = detect::Kinds::new(job, entries, transfers)?;
    let (verdicts, mut profile) =
        profile::detect(&profiled, settings, options.baseline.as_ref(), &kinds);
    let (numbers, groups) = preparation::groups(job, &opened.locations);
    preparation::note_missing_members(
        &opened.locations,
        &profiled,
        &numbers,
        &groups,
        &mut profile,
    );
    profiled.iter_mut().for_each(|one| {
        let entries = std::mem::take(&mut one.entries);
        one.accounts = account::open(&entries, &kinds, options.baseline.as_ref(), settings);
    });

    phases.begin("causes");
    let round = match options.round_records {
        Some(records) => records,
        None => slab::size(job, opened.locations.len()),
    };
    let rounds = Rounds {
        job,
        opened: &opened,
        profiled: &profiled,
        verdicts: &verdicts,
        numbers: &numbers,
        all: settings.all,
        keeps_writes: options.operations.has(GenericType::WaitOnValue),
        records: round,
    };
    let Settled {
        mut agent,
        timeline,
        before,
        after,
    } = rounds.settle(timeline, groups, &phases)?;
    let end = timeline.end(&opened);
    let moments = Moments::new(job, &opened, &timeline);
    let apart = agent.apart();
    let between = agent.between();
    meetings.check(job, &apart, &mut agent.ranks, &mut anomalies);

    phases.begin("merge");
    let clocks = timeline.own(&opened);
    let settled = profiled.iter().zip(&clocks);
    let settled = settled
        .map(|(location, (clock, _))| location.settled(clock, moments.stopped, &mut profile));
    let locations = settled.collect();
    let mut own = Own {
        profile,
        regions,
        between,
        locations,
        anomalies,
        rows: options
            .per_rank
            .as_ref()
            .map(|_| Rows::new(opened.locations.len())),
        ..Own::default()
    };
    let hanging_in = |rank| hanging::of_rank(rank, &numbers);
    own.hanging = agent.ranks.iter().flat_map(hanging_in).collect();
    let (ranks, locations) = (&agent.ranks, &opened.locations);
    own.known = hanging::ask(job, &own.hanging, ranks, locations, &numbers)?;
    // What is collected is given back at once: there may be many ranks.
    for mut rank in std::mem::take(&mut agent.ranks) {
        merge::collect(&mut rank, &profiled, &mut own);
        merge::unmatched(&rank, &opened.truncated, &mut own.anomalies);
        merge::odd_locks(&rank, &opened.truncated, &mut own.anomalies);
        merge::cut_off(&rank, end, &mut own.anomalies);
    }
    let any_truncated = opened.truncated.iter().any(|&cut| cut);
    merge::incomplete(&agent.owned, any_truncated, &mut own.anomalies);
    let lossy = comm::union(job, merge::lossy(&own))?;
    let paths = merge::paths_of(&own, &lossy);
    let texts = places::paths(job, paths, &opened.locations, &profiled)?;
    let mut places = places::Places::new(texts, symbols(options));
    // Before anything is folded: what is one line of the program is one finding.
    let same = places.same(job)?;
    if !same.is_empty() {
        own.rename_paths(|path| same.get(&path).copied().unwrap_or(path));
    }
    let mut per_rank = Ok(());
    if let (Some(path), Some(rows)) = (&options.per_rank, own.rows.take()) {
        phases.begin("per rank");
        let (times, all) = (&own.locations, settings.all);
        per_rank = per_rank::write(job, path, rows, times, &opened, &mut places, all);
        phases.begin("fold");
    }
    let locations = opened.run.locations as usize;
    let (opened_locations, requests) = (opened.locations.len(), own.requests);
    let percent = match settings.all {
        true => 0.0,
        false => settings.hotspot_percent,
    };
    let partial = own.fold(job, &opened.agent_of, locations, percent)?;
    let mut merged = merge_up(job, partial, |mut sum, other| {
        sum.merge(other, locations);
        sum
    })?;
    let unlisted = merged.as_mut().map(Partial::take_unlisted);
    if let Some(merged) = &merged {
        let mut paths = merge::paths_of_findings(&merged.findings);
        let once = merged.profile.iter().filter(|(_, sums)| sums.once.0 > 0);
        paths.extend(once.map(|((_, path), _)| *path));
        places.tell_apart(paths);
    }
    phases.begin("worst calls");
    let around = around::collect(
        job,
        merged.as_ref().map(|merged| &merged.findings),
        &opened,
        &profiled,
        &clocks,
        &mut places,
    )?;
    let (totals, shares) = phases.finish(opened_locations, requests)?;
    Ok(merged.map(|merged| {
        let violations = (before, after);
        let named = Named {
            places: &mut places,
            around: &around,
        };
        let merged = (merged, unlisted.unwrap_or_default());
        let mut report = build::build(&opened, merged, violations, named, options, (moments, end));
        report.agents.count = job.agents() as u32;
        report.agents.analysis_time_s = started.elapsed().as_secs_f64();
        report.agents.phases = totals;
        report.agents.shares = shares;
        Analysis { report, per_rank }
    }))
}

/// Whether the table of baselines is of the machine that the run was on. The error is the same
/// on all agents.
fn known_machine(
    job: &dyn Job,
    options: &AnalyzeOptions,
    opened: &open::Opened,
    anomalies: &mut Anomalies,
) -> Result<()> {
    let Some(file) = &options.baseline_file else {
        return Ok(());
    };
    let used = Used {
        cpu: &opened.run.processors,
        mpi_library: opened.run.mpi_library.as_deref().unwrap_or(""),
    };
    let table = options.baseline.fingerprint();
    let (id, level, detail) = match table.and_then(|table| table.differs(&used)) {
        Some(other) if !options.baseline_anyway => bail!(
            "{}: the table is not of the machine that the run was on: {other}; measure a new one with laggard baseline, or insist with --baseline-anyway",
            file.display()
        ),
        Some(other) => (
            "foreign_baseline",
            Level::Warning,
            format!("the table of baselines is not of the machine that the run was on: {other}"),
        ),
        None if table.is_some_and(|table| table.can_be_compared(&used)) => return Ok(()),
        None => (
            "unknown_baseline",
            Level::Info,
            "whether the table of baselines is of the machine that the run was on is unknown: \
             one of them does not tell its processor or MPI library"
                .to_owned(),
        ),
    };
    if job.agent() == 0 {
        let row = anomalies.add(id, level, 1, detail);
        row.origin(file.display().to_string());
    }
    Ok(())
}

fn symbols(options: &AnalyzeOptions) -> Symbols {
    match &options.debug_roots {
        Some(roots) => Symbols::with_debug_roots(roots.clone()),
        None => Symbols::new(),
    }
}
