//! The phases of an analysis, from a directory of traces to a report.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use laggard_baselines::Used;
use laggard_comm::{self as comm, Job, Serial, merge_up};
use laggard_report::{CallTree, Report};
use laggard_trace::calls::GenericType;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::basics::anomaly::{Anomalies, Level};
use crate::basics::ends::NONE;
use crate::basics::intern::{Interner, PathKey};
use crate::clock::causality::Violations;
use crate::clock::{ClockMap, Moves};
use crate::events::Events;
use crate::findings::call_tree::Known;
use crate::findings::fold::FoldedFindings;
use crate::findings::merge::{Own, Partial};
use crate::findings::odd;
use crate::findings::per_rank::Rows;
use crate::findings::places::Places;
use crate::findings::regions::Regions;
use crate::findings::{functions, hanging, imbalance, merge, per_rank, places, regions};
use crate::input::open::{self, Opened};
use crate::input::regions::regions_of;
use crate::judge::account;
use crate::judge::profile::{self, LocationTimes, Profile, Profiled};
use crate::options::{Analysis, AnalyzeOptions};
use crate::phases::Phases;
use crate::replay::agent::Agent;
use crate::replay::meetings::Meetings;
use crate::replay::preparation::Judged;
use crate::replay::rank::Rank;
use crate::replay::rounds::Rounds;
use crate::replay::slab;
use crate::report::around::{self, Around};
use crate::report::build::{self, Named};
use crate::roots::Search;
use crate::roots::functions::Functions;
use crate::roots::sums::Roots;
use crate::symbols::Symbols;
use crate::timeline::moments::Moments;
use crate::timeline::repair::Timeline;

/// Analyses a directory. The head agent gets the report. An error is the same on all agents.
pub fn analyze(
    job: &dyn Job,
    directory: &Path,
    options: &AnalyzeOptions,
) -> Result<Option<Analysis>> {
    analyze_with(job, directory, options, None)
}

/// The report of a run that is as recorded but for its times, which `moves` tells by location. This
/// process is the only agent.
///
/// # Errors
/// The files cannot be read any more.
pub fn analyze_moved(
    events: &Events,
    moves: Vec<Moves>,
    options: &AnalyzeOptions,
) -> Result<Option<Report>> {
    let (directory, clocks) = events.moved(moves);
    let found = analyze_with(&Serial, directory, options, Some(clocks))?;
    Ok(found.map(|found| found.report))
}

fn analyze_with(
    job: &dyn Job,
    directory: &Path,
    options: &AnalyzeOptions,
    clocks: Option<Timeline>,
) -> Result<Option<Analysis>> {
    let started = Instant::now();
    let mut phases = Phases::new(job, options);
    let mut anomalies = Anomalies::default();

    phases.begin("open");
    let mut opened = open::open(job, directory, options.charge_last, &mut anomalies)?;
    let timeline = clocks.unwrap_or_else(|| Timeline::new(&opened));
    known_machine(job, options, &opened, &mut anomalies)?;

    phases.begin("profile");
    let mut profiles = profile_all(job, options, &mut opened, &timeline, &mut anomalies)?;

    phases.begin("detect");
    let judged = judge_all(job, options, &opened, &mut profiles.locations)?;

    phases.begin("causes");
    let round = options.round_records;
    let rounds = Rounds {
        job,
        opened: &opened,
        profiled: &profiles.locations,
        verdicts: &judged.verdicts,
        numbers: &judged.numbers,
        all: options.settings.all,
        keeps_writes: options.operations.has(GenericType::WaitOnValue),
        shares: !options.charge_last,
        roots: !options.fast,
        is_bare: false,
        records: round.unwrap_or_else(|| slab::size(job, opened.locations.len())),
    };
    let settled = rounds.settle(timeline, judged.groups, &phases)?;
    let run = Settling {
        job,
        options,
        opened: &opened,
        profiled: &profiles.locations,
        numbers: &judged.numbers,
        clocks: settled.timeline.own(&opened),
        moments: Moments::new(job, &opened, &settled.timeline),
        end: settled.timeline.end(&opened),
        violations: (settled.before, settled.after),
    };
    let meetings = &profiles.meetings;
    let mut agent = run.check_meetings(settled.agent, meetings, &mut anomalies);

    phases.begin("root causes");
    let (named, symbols) = functions::gather(
        job,
        &agent.ranks,
        (&opened.locations, &profiles.locations),
        symbols(options),
    )?;
    let roots = run.roots(&mut agent, &named, &mut anomalies);

    phases.begin("merge");
    let sums = (judged.profile, profiles.regions);
    let mut own = run.collect(agent, sums, &named, anomalies)?;
    own.roots = roots;
    let (mut places, same) = run.name_places(&mut own, symbols)?;
    // Without samples they are the regions, which have a list of their own.
    if named.period > 0 {
        own.functions = functions::by_function(job, &own.in_functions, &mut places)?;
    }
    let tree = run.call_tree(&own, &same, &mut places)?;
    let per_rank = run.write_rows(&mut own, &mut places, &mut phases);
    let requests = own.requests;
    let merged = run.merge(own, &mut places)?;

    phases.begin("worst calls");
    let around = run.around(merged.as_ref(), &mut places)?;
    let (totals, shares) = phases.finish(opened.locations.len(), requests)?;
    Ok(merged.map(|merged| {
        let mut report = run.report(merged, &mut places, &around);
        report.call_tree = tree;
        report.agents.count = job.agents() as u32;
        report.agents.analysis_time_s = started.elapsed().as_secs_f64();
        report.agents.phases = totals;
        report.agents.shares = shares;
        Analysis {
            report,
            per_rank,
            rules: options.rules.base.clone(),
        }
    }))
}

/// Profiles of the locations, before the rounds.
struct Profiles {
    locations: Vec<Profiled>,
    meetings: Meetings,
    regions: Regions,
}

fn profile_all(
    job: &dyn Job,
    options: &AnalyzeOptions,
    opened: &mut Opened,
    timeline: &Timeline,
    anomalies: &mut Anomalies,
) -> Result<Profiles> {
    let clocks = timeline.own(opened);
    let stopped = Moments::new(job, opened, timeline).stopped;
    let mut profiled = profile::of_all(opened, &clocks, stopped);
    let clocks: Vec<_> = clocks.into_iter().map(|(clock, _)| clock).collect();
    opened.locations.par_iter_mut().for_each(|location| {
        location.regions = regions_of(location).into_owned();
    });
    let (mapped, meetings) = regions::apply(
        job,
        &options.operations,
        &mut opened.locations,
        &mut profiled,
        &clocks,
        symbols(options),
        anomalies,
    )?;
    let mut regions = regions::sums(&opened.locations, &profiled, &clocks, &mapped, anomalies);
    let ranks = opened.agent_of.iter().filter(|&&agent| agent != NONE);
    regions::share(job, &mut regions, ranks.count() as u64)?;
    // Free at once: with many ranks, unused memory adds up. The same applies below.
    let locations = opened.locations.iter_mut();
    locations.for_each(|location| {
        location.profile = Vec::new();
        location.regions = Vec::new();
    });
    Ok(Profiles {
        locations: profiled,
        meetings,
        regions,
    })
}

fn judge_all(
    job: &dyn Job,
    options: &AnalyzeOptions,
    opened: &Opened,
    profiled: &mut [Profiled],
) -> Result<Judged> {
    let (settings, baseline) = (&options.settings, options.baseline.as_ref());
    let mut judged = Judged::new(job, opened, profiled, settings, baseline, &[])?;
    judged.note_missing_members(opened, profiled);
    profiled.iter_mut().for_each(|one| {
        let entries = std::mem::take(&mut one.entries);
        one.accounts = account::open(&entries, &judged.kinds, baseline, settings);
    });
    Ok(judged)
}

/// The run once its rounds are over.
struct Settling<'a> {
    job: &'a dyn Job,
    options: &'a AnalyzeOptions,
    opened: &'a Opened,
    profiled: &'a [Profiled],
    numbers: &'a Interner<u64>,
    clocks: Vec<(ClockMap, (u64, u64))>,
    moments: Moments,
    end: i64,
    /// Causality violations: with the clocks as measured, and with those used.
    violations: (Violations, Violations),
}

impl<'a> Settling<'a> {
    /// Removes the findings of regions in which ranks do not meet.
    fn check_meetings(
        &self,
        mut agent: Agent<'a>,
        meetings: &Meetings,
        anomalies: &mut Anomalies,
    ) -> Agent<'a> {
        let apart = agent.apart();
        meetings.check(self.job, &apart, &mut agent.ranks, anomalies);
        agent
    }

    /// Finds who started the waits. If there is no room for temporary files, the report does without.
    fn roots(
        &self,
        agent: &mut Agent<'_>,
        functions: &Functions,
        anomalies: &mut Anomalies,
    ) -> Roots {
        let Some(links) = agent.links.take() else {
            return Roots::unknown();
        };
        // With many ranks, it is most of the memory.
        agent.ranks.par_iter_mut().for_each(Rank::free);
        let clocks: Vec<_> = self.clocks.iter().map(|own| own.0.clone()).collect();
        let search = Search {
            job: self.job,
            opened: self.opened,
            clocks: &clocks,
            numbers: self.numbers,
            folds: !self.options.charge_last,
            functions,
            end: self.end,
        };
        let found = search.find(&agent.ranks, links);
        agent.ranks.par_iter_mut().for_each(Rank::bring_back);
        match found {
            Ok((roots, beyond)) => {
                let ranks = agent.ranks.iter_mut();
                let threads = ranks.flat_map(|rank| &mut rank.recorded.threads);
                for (thread, beyond) in threads.zip(beyond) {
                    thread.counted.beyond = beyond;
                }
                roots
            }
            Err(error) => {
                if self.job.agent() == 0 {
                    let detail = format!("{error:#}: set TMPDIR to a directory with more room");
                    anomalies.add("no_root_causes", Level::Warning, 1, detail);
                }
                Roots::unknown()
            }
        }
    }

    /// Collects the results of all ranks of this agent.
    fn collect(
        &self,
        mut agent: Agent<'a>,
        (mut profile, regions): (Profile, Regions),
        functions: &Functions,
        anomalies: Anomalies,
    ) -> Result<Own> {
        let opened = self.opened;
        let settled = self.profiled.iter().zip(&self.clocks);
        let stopped = self.moments.stopped;
        let mut beside = Vec::new();
        let settled = settled.map(|(location, (clock, _))| {
            location.settled(clock, stopped, (&mut profile, &mut beside))
        });
        let locations = settled.collect();
        let rows = self.options.per_rank.as_ref();
        let mut own = Own {
            profile,
            beside,
            regions,
            between: agent.between(),
            locations,
            anomalies,
            rows: rows.map(|_| Rows::new(opened.locations.len())),
            ..Own::default()
        };
        let hanging_in = |rank| hanging::of_rank(rank, self.numbers);
        own.hanging = agent.ranks.iter().flat_map(hanging_in).collect();
        own.known = hanging::ask(
            self.job,
            &own.hanging,
            &agent.ranks,
            &opened.locations,
            self.numbers,
        )?;
        // Each rank is freed as soon as it is collected: there may be many.
        for mut rank in std::mem::take(&mut agent.ranks) {
            merge::collect(&mut rank, self.profiled, functions, &mut own);
            odd::unmatched(&rank, &opened.truncated, &mut own.anomalies);
            odd::beyond_window(&rank, &mut own.anomalies);
            odd::odd_locks(&rank, &opened.truncated, &mut own.anomalies);
            odd::cut_off(&rank, self.end, &mut own.anomalies);
        }
        let any_truncated = opened.truncated.iter().any(|&cut| cut);
        odd::incomplete(&agent.owned, any_truncated, &mut own.anomalies);
        Ok(own)
    }

    /// Names the places of findings. From here on, one source line is one finding. Returns also the
    /// new names of call paths.
    fn name_places(
        &self,
        own: &mut Own,
        symbols: Symbols,
    ) -> Result<(Places, FxHashMap<PathKey, PathKey>)> {
        let walls = own.locations.iter().map(LocationTimes::wall);
        let walls = walls.fold(0, u64::saturating_add);
        imbalance::keep_notable(self.job, &mut own.computed, walls)?;
        let computed = &own.computed;
        own.off_work
            .retain(|(after, _), _| computed.contains_key(after));
        let lossy = comm::union(self.job, merge::lossy(own))?;
        let paths = merge::paths_of(own, &lossy);
        let texts = places::paths(self.job, paths, &self.opened.locations, self.profiled)?;
        let mut places = Places::new(texts, symbols);
        let same = places.same(self.job)?;
        if !same.is_empty() {
            own.rename_paths(|path| same.get(&path).copied().unwrap_or(path));
        }
        Ok((places, same))
    }

    /// What happens where, at the head; `same` has the new names of call paths.
    fn call_tree(
        &self,
        own: &Own,
        same: &FxHashMap<PathKey, PathKey>,
        places: &mut Places,
    ) -> Result<Option<CallTree>> {
        let known = Known {
            own,
            opened: self.opened,
            profiled: self.profiled,
            name: |path| same.get(&path).copied().unwrap_or(path),
        };
        known.tree(self.job, places)
    }

    /// Writes the table per rank, if requested.
    fn write_rows(&self, own: &mut Own, places: &mut Places, phases: &mut Phases) -> Result<()> {
        let (Some(path), Some(rows)) = (&self.options.per_rank, own.rows.take()) else {
            return Ok(());
        };
        phases.begin("per rank");
        let (times, all) = (&own.locations, self.options.settings.all);
        let written = per_rank::write(self.job, path, rows, times, self.opened, places, all);
        phases.begin("fold");
        written
    }

    /// Folds the results of each agent and merges them up the tree of agents. The head gets the
    /// merged results and the findings that are not listed.
    fn merge(&self, own: Own, places: &mut Places) -> Result<Option<(Partial, FoldedFindings)>> {
        let locations = self.opened.run.locations as usize;
        let settings = &self.options.settings;
        let percent = match settings.all {
            true => 0.0,
            false => settings.hotspot_percent,
        };
        let partial = own.fold(self.job, &self.opened.agent_of, locations, percent)?;
        let merged = merge_up(self.job, partial)?;
        Ok(merged.map(|mut merged| {
            let unlisted = merged.take_unlisted();
            let mut paths = merge::paths_of_findings(&merged.findings);
            let once = merged.profile.iter().filter(|(_, sums)| sums.once.0 > 0);
            paths.extend(once.map(|((_, path), _)| *path));
            places.tell_apart(paths);
            (merged, unlisted)
        }))
    }

    /// Activity of ranks around the worst calls.
    fn around(
        &self,
        merged: Option<&(Partial, FoldedFindings)>,
        places: &mut Places,
    ) -> Result<Around> {
        let findings = merged.map(|(merged, _)| &merged.findings);
        let (opened, profiled) = (self.opened, self.profiled);
        around::collect(self.job, findings, opened, profiled, &self.clocks, places)
    }

    fn report(
        self,
        merged: (Partial, FoldedFindings),
        places: &mut Places,
        around: &Around,
    ) -> Report {
        let named = Named { places, around };
        let end = (self.moments, self.end);
        build::build(
            self.opened,
            merged,
            self.violations,
            named,
            self.options,
            end,
        )
    }
}

/// Whether the table of baselines was measured on the machine of the run. The error is the same on
/// all agents.
fn known_machine(
    job: &dyn Job,
    options: &AnalyzeOptions,
    opened: &Opened,
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
