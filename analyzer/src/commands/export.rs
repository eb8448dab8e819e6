//! `laggard export`: a trace for other tools.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use laggard_comm::{Job, Serial};
use laggard_engine::events::Events;
use laggard_engine::{Analysis, AnalyzeOptions};
use laggard_export::{self as export, StackFormat, TableFormat};
use laggard_files::printable;
use laggard_report::units::plural;
use laggard_report::{AnomalySeverity, Report, seconds, words};

use super::{reports, screen, traces};
use crate::cli::{Export, ExportFormat};

/// Writes a trace in another format.
pub fn export(options: &Export) -> Result<ExitCode> {
    // Said before the work, not after it.
    export::check(&options.output)?;
    if let Some(threads) = options.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads));
        pool.build_global()?;
    }
    let directory = &traces::meant(options.directory.as_deref())?;
    let events = || -> Result<Events> {
        let events = Events::open(directory)?;
        note(&events);
        Ok(events)
    };
    let output = &options.output;
    let found = |events: &Events| {
        let named = options.report.as_deref();
        report(named, options.quiet, directory, events)
    };
    let tables = |format| {
        let events = events()?;
        export::tables(&events, &found(&events)?, format, output)
    };
    let stacks = |format| export::stacks(&events()?, format, output);
    let written = match options.to {
        ExportFormat::Parquet => tables(TableFormat::Parquet)?,
        ExportFormat::Arrow => tables(TableFormat::Arrow)?,
        ExportFormat::Perfetto => {
            let events = events()?;
            let report = found(&events)?;
            let written = export::perfetto(&events, &report, &options.choice(), output)?;
            written + &around(options, &report)
        }
        ExportFormat::Flamegraph => stacks(StackFormat::FlameGraph)?,
        ExportFormat::Folded => stacks(StackFormat::Folded)?,
        ExportFormat::Speedscope => stacks(StackFormat::Speedscope)?,
        ExportFormat::Pprof => stacks(StackFormat::Pprof)?,
        ExportFormat::Cubex => {
            let events = events()?;
            export::cube(&events, &found(&events)?, output)?
        }
        ExportFormat::Otf2 => {
            let events = events()?;
            let report = report_beside(options, directory, &events)?;
            let anchor = export::otf2(events, output, report.as_ref())?;
            format!("{}: an OTF2 archive", anchor.display())
        }
    };
    if !options.quiet {
        eprintln!("{}", printable(&written));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says on stderr what of the trace is missing from what is written.
pub fn note(events: &Events) {
    for anomaly in &events.anomalies {
        if anomaly.severity >= AnomalySeverity::Warning {
            let origin = anomaly.origin.as_ref();
            let origin = origin.map_or(String::new(), |origin| format!(" [{origin}]"));
            screen::say(&format!("note: {}{origin}", anomaly.detail));
        }
    }
}

/// Which finding a time line is about.
fn around(options: &Export, report: &Report) -> String {
    let name = options.around.as_deref();
    let found = name.and_then(|name| export::finding(name, report));
    found.map_or(String::new(), |found| {
        format!(
            "; around {} in {} at {}",
            found.name,
            found.operation,
            words::place(&found.location)
        )
    })
}

/// The findings of the trace, numbered as the user knows them: of a report that is there, or of an
/// analysis as `analyze` does it.
pub fn report(
    named: Option<&Path>,
    is_quiet: bool,
    directory: &Path,
    events: &Events,
) -> Result<Report> {
    match found(named, is_quiet, directory, events)? {
        Some(report) => Ok(report),
        None => analyzed(&Serial, directory)?.context("one agent is the head"),
    }
}

/// The report that is named, or a usable one beside the trace.
pub fn found(
    named: Option<&Path>,
    is_quiet: bool,
    directory: &Path,
    events: &Events,
) -> Result<Option<Report>> {
    if let Some(path) = named {
        return read(path, events).map(Some);
    }
    let beside = laggard_engine::directory::of(directory);
    if laggard_files::exists(&beside.join("report.json")) {
        match reports::file(beside).and_then(|path| read(&path, events)) {
            Ok(report) => {
                if report.root_causes.is_none() && !is_quiet {
                    screen::say("note: the report beside the trace has no root causes");
                }
                return Ok(Some(report));
            }
            Err(error) => screen::say(&format!("note: {error}; analyzed now")),
        }
    }
    Ok(None)
}

/// The report about what there is of a run, at the head: what repairs gain is not predicted. Collective.
pub fn analyzed_so_far(job: &dyn Job, directory: &Path) -> Result<Option<Report>> {
    let analysis = laggard_engine::analyze_as(job, directory, &AnalyzeOptions::default())?;
    Ok(analysis.map(|analysis| analysis.report))
}

/// The report of an analysis as `analyze` does it, at the head. Collective.
pub fn analyzed(job: &dyn Job, directory: &Path) -> Result<Option<Report>> {
    let settings = AnalyzeOptions::default();
    let Some(analysis) = laggard_engine::analyze_as(job, directory, &settings)? else {
        return Ok(None);
    };
    let Analysis {
        mut report, rules, ..
    } = analysis;
    if let Err(error) =
        laggard_whatif::add_gains(directory, &rules, &mut report, laggard_whatif::MOST_BYTES)
    {
        screen::say(&format!(
            "note: what repairs gain is not predicted: {error:#}"
        ));
    }
    Ok(Some(report))
}

/// The report that is named, or that lies beside the trace. Without one nothing is marked in an
/// archive, which is said.
fn report_beside(options: &Export, directory: &Path, events: &Events) -> Result<Option<Report>> {
    if let Some(path) = &options.report {
        return read(path, events).map(Some);
    }
    let found = reports::file(laggard_engine::directory::of(directory))
        .and_then(|path| read(&path, events));
    if let Err(error) = &found
        && !options.quiet
    {
        screen::say(&format!("note: no findings are marked: {error}"));
    }
    Ok(found.ok())
}

/// A report about this trace.
fn read(path: &Path, events: &Events) -> Result<Report> {
    let report = Report::read(path)?;
    check(path, &report, events)?;
    Ok(report)
}

/// A trace that ends later than its report by this factor and this time has gone on: clocks may be corrected anew.
const LATER: f64 = 1.002;
const MOMENT_S: f64 = 0.001;

/// Refuses a report that is not about this trace.
pub fn check(path: &Path, report: &Report, events: &Events) -> Result<()> {
    let run = &report.run;
    let program = events.program().first().map_or("", String::as_str);
    let is_same = run.ranks == events.ranks()
        && run.locations as usize == events.placed.len()
        && run.trace_bytes == events.bytes()
        && run.program == program;
    if !is_same {
        bail!(
            "{}: this report is about another trace ({} on {}): analyze this one again",
            path.display(),
            run.program,
            plural(run.ranks.into(), "rank")
        );
    }
    // It may have been made while the program still ran: files have their size in advance.
    let end_s = seconds(events.end_ns());
    if end_s > LATER * run.wall_time_s + MOMENT_S {
        let path = path.display();
        bail!(
            "{path}: this report is about the first {:.3} s of {end_s:.3} s: analyze the trace again",
            run.wall_time_s
        );
    }
    Ok(())
}
