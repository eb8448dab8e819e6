//! `laggard what-if`: what a repair would gain.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use laggard_engine::events::Events;
use laggard_report::{Report, file};
use laggard_whatif::{Change, SCHEMA, Scenario, predict, render};

use super::{reports, results, screen, traces};
use crate::cli::{PlainFormat, WhatIf};

/// Replays a trace with changes.
pub fn what_if(options: &WhatIf) -> Result<ExitCode> {
    let scenarios = scenarios(options)?;
    let is_ours = |content: &[u8]| file::is_of(content, results::family(SCHEMA));
    if let Some(path) = &options.output {
        file::check_target(path, results::RESULT, is_ours)?;
    }
    let directory = traces::meant(options.directory.as_deref())?;
    let events = Events::open(&directory)?;
    super::export::note(&events);
    let changes = || scenarios.iter().flat_map(|scenario| &scenario.changes);
    let is_cause = |change: &Change| matches!(change, Change::WithoutCause(..));
    let report = match changes().any(is_cause) {
        true => Some(report(options, &directory, &events)?),
        false => None,
    };
    let prediction = predict(&events, report.as_ref(), &scenarios)?;
    let json = laggard_experiments::to_json(&prediction);
    if let Some(path) = &options.output {
        file::write(path, json.as_bytes(), results::RESULT, is_ours)?;
    }
    match options.format {
        PlainFormat::Text => screen::print(&render(&prediction, screen::width()))?,
        PlainFormat::Json => screen::print_json(&json)?,
        PlainFormat::None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// All scenarios: one for each option, and those of the file.
fn scenarios(options: &WhatIf) -> Result<Vec<Scenario>> {
    let changes = [
        &options.speed_up,
        &options.balance,
        &options.network,
        &options.baseline,
        &options.non_blocking,
        &options.combine,
        &options.no_barrier,
        &options.once,
        &options.no_waits,
        &options.without_cause,
    ];
    let changes = changes.into_iter();
    let mut scenarios: Vec<Scenario> = changes.flatten().cloned().map(Scenario::of).collect();
    if let Some(path) = &options.scenario {
        scenarios.extend(Scenario::read(path)?);
    }
    Ok(scenarios)
}

/// The report that knows the root causes: the one that is named, or beside the trace.
fn report(options: &WhatIf, directory: &Path, events: &Events) -> Result<Report> {
    let path = match &options.report {
        Some(path) => path.clone(),
        None => reports::file(laggard_engine::directory::of(directory))?,
    };
    let report = Report::read(&path)?;
    super::export::check(&path, &report, events)?;
    if report.root_causes.is_none() {
        bail!(
            "{}: this report has no root causes: analyze without --fast",
            path.display()
        );
    }
    Ok(report)
}
