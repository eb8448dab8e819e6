//! `laggard analyze`: from a trace to a report.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use laggard_baselines::Table;
use laggard_engine::{Analysis, AnalyzeOptions, OperationMap, Rules};
use laggard_report::units::plural;
use laggard_report::{Report, Settings};
use laggard_tables::PerRank;

use super::reports::REPORT;
use super::{ABOVE, is_head, screen, traces};
use crate::cli::{Analyze, Charge, Format};

/// Bottlenecks in the printed table.
const TOP: usize = 10;

/// Analyses a trace, writes the report and prints it. All agents run this; only the
/// head has a report to write.
pub fn analyze(options: &Analyze) -> Result<ExitCode> {
    let directory = &traces::meant(options.directory.as_deref())?;
    let output = options
        .output
        .clone()
        .unwrap_or_else(|| laggard_engine::directory::of(directory).join(REPORT));
    let prepare = || prepare(options, &output);
    let Some(analysis) = laggard_engine::analyze_prepared(directory, options.stall_limit, prepare)?
    else {
        return Ok(ExitCode::SUCCESS);
    };
    let Analysis {
        mut report,
        per_rank,
        rules,
    } = analysis;
    let largest = match options.gains {
        true => u64::MAX,
        false => laggard_whatif::MOST_BYTES,
    };
    if let Err(error) = laggard_whatif::add_gains(directory, &rules, &mut report, largest) {
        let error = format!("what repairs gain is not predicted: {error:#}");
        screen::say(&error);
    }
    let has_roots = report
        .root_causes
        .as_deref()
        .is_some_and(|roots| !roots.is_empty());
    if has_roots && report.run.trace_bytes > largest && !options.quiet {
        screen::say(
            "note: what repairs gain is predicted for traces up to 64 MiB; --gains does it for this one",
        );
    }
    let written = report.write(&output);
    laggard_comm::signals::is_finished();
    let mut files = Vec::new();
    files.extend(written.is_ok().then_some(("Report", output.as_path())));
    let table = options.per_rank.as_deref().filter(|_| per_rank.is_ok());
    files.extend(table.map(|table| ("Table", table)));
    print(options, &report, &output, &files)?;
    written?;
    per_rank?;
    judge(&report, options.fail_above, directory)
}

/// The exit code for the share of waiting that is allowed.
pub fn judge(report: &Report, limit: Option<f64>, source: &Path) -> Result<ExitCode> {
    let Some(limit) = limit else {
        return Ok(ExitCode::SUCCESS);
    };
    let (share, unknown) = (report.waiting_percent(), report.unknown_waiting());
    if share > limit {
        screen::say(&format!(
            "{share:.1} % of the time was spent waiting, more than --fail-above {limit}"
        ));
        return Ok(ExitCode::from(ABOVE));
    }
    // A recording that is broken must not pass for a program that is fast.
    if !unknown.is_empty() && !report.is_sound() {
        bail!(
            "{}: whether --fail-above {limit} holds is unknown: {unknown}; record it again",
            source.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What is known to be wrong is said before the work, not after it; an output that is no report is
/// not touched.
fn prepare(options: &Analyze, output: &Path) -> Result<AnalyzeOptions> {
    let settings = settings(options)?;
    if is_head() && (options.output.is_some() || laggard_files::exists(output)) {
        Report::check_target(output)?;
        // Nobody named it: it lies in a directory that may be anybody's.
        if options.output.is_none() && !output.is_file() {
            bail!(
                "{}: not a regular file; name another one with -o",
                output.display()
            );
        }
    }
    if is_head()
        && let Some(table) = &options.per_rank
    {
        if std::path::absolute(table)? == std::path::absolute(output)? {
            bail!(
                "{}: the report goes there; choose another file for --per-rank",
                table.display()
            );
        }
        PerRank::check_target(table)?;
    }
    Ok(settings)
}

fn settings(options: &Analyze) -> Result<AnalyzeOptions> {
    let table = options.baseline.as_deref().map(Table::read).transpose()?;
    let map = options.operation_map.as_deref().map(OperationMap::read);
    let rules = options.rules.as_deref().map(Rules::with_file);
    let mut settings = AnalyzeOptions {
        rules: rules.transpose()?.unwrap_or_default(),
        operations: map
            .transpose()
            .map_err(anyhow::Error::msg)?
            .unwrap_or_default(),
        settings: Settings {
            all: options.all,
            hotspot_percent: options.hotspot_percent,
            baseline_ratio: options.baseline_ratio,
            deviation_ratio: options.deviation_ratio,
            baseline: table.as_ref().map(|table| table.description.clone()),
            ..Settings::default()
        },
        charge_last: options.charge == Charge::Last,
        fast: options.fast,
        threads: options.threads.map(usize::from),
        per_rank: options.per_rank.clone(),
        stats: options.stats,
        progress: !options.quiet && screen::shows_progress(),
        ..AnalyzeOptions::default()
    };
    if let Some(table) = table {
        settings.baseline = Arc::new(table);
        settings.baseline_file = options.baseline.clone();
        settings.baseline_anyway = options.baseline_anyway;
    }
    Ok(settings)
}

/// Prints the report and which files, of what kind, were written.
fn print(options: &Analyze, report: &Report, output: &Path, files: &[(&str, &Path)]) -> Result<()> {
    let is_text = options.format == Format::Text && !options.quiet;
    if options.stats && !is_text {
        // Asked for by name: beside what is, or is not, printed.
        let _ = std::io::stderr().write_all(stats(report).trim_start().as_bytes());
    }
    if options.quiet {
        return Ok(());
    }
    match options.format {
        Format::Text => {
            screen::print_report(report, TOP, output)?;
            if options.stats {
                screen::print(&stats(report))?;
            }
            let mut out = screen::output();
            for (at, (what, file)) in files.iter().enumerate() {
                let gap = if at == 0 { "\n" } else { "" };
                writeln!(out, "{gap}{what} written to {}", file.display())?;
            }
            out.flush()?;
        }
        other => print_as(report, other, TOP, options.fail_above)?,
    }
    Ok(())
}

/// Prints a report for other programs, or not at all. People get more than its text.
pub fn print_as(report: &Report, format: Format, top: usize, limit: Option<f64>) -> Result<()> {
    match format {
        Format::Text | Format::None => {}
        Format::Json => screen::print_json(&report.to_json())?,
        Format::Markdown => screen::print(&laggard_ci::to_markdown(report, top))?,
        Format::Openmetrics => screen::print(&laggard_ci::to_openmetrics(report))?,
        Format::Junit => screen::print(&laggard_ci::to_junit(report, limit))?,
    }
    Ok(())
}

/// What the analysis itself cost.
fn stats(report: &Report) -> String {
    let agents = &report.agents;
    let mut text = format!(
        "\nAnalysis by {}: {:.3} s, {}, {} exchanged",
        plural(agents.count.into(), "agent"),
        agents.analysis_time_s,
        plural(agents.requests, "request"),
        plural(agents.bytes_exchanged, "byte")
    );
    if agents.count > 1 && report.run.trace_bytes > 0 {
        let part = 100.0 * agents.bytes_exchanged as f64 / report.run.trace_bytes as f64;
        text.push_str(&format!(" ({part:.1} % of the trace's)"));
    }
    if let Some(peak) = agents.peak_memory_bytes {
        text.push_str(&format!(", at most {:.1} MB per agent", peak as f64 / 1e6));
    }
    text.push('\n');
    let row = |name: &str, time_s: f64, messages: u64, bytes: u64, peak: u64| {
        format!(
            "   {name:<16} {time_s:>9.3} s {messages:>9} messages {bytes:>13} bytes sent {:>9.1} MB\n",
            peak as f64 / 1e6
        )
    };
    for phase in &agents.phases {
        let (messages, bytes) = (phase.messages, phase.bytes_exchanged);
        let peak = phase.peak_memory_bytes;
        text.push_str(&row(&phase.name, phase.time_s, messages, bytes, peak));
    }
    let room = agents
        .phases
        .last()
        .map_or(0, |phase| phase.temporary_bytes);
    text.push_str(&format!(
        "Temporary files: at most {:.1} MB\n",
        room as f64 / 1e6
    ));
    if agents.count > 1 {
        for share in &agents.shares {
            text.push_str(&format!(
                "Agent {}: {}, {}\n",
                share.agent,
                plural(share.locations, "location"),
                plural(share.requests, "request")
            ));
            for (phase, cost) in agents.phases.iter().zip(&share.phases) {
                let (messages, bytes) = (cost.messages, cost.bytes_sent);
                let peak = cost.peak_memory_bytes;
                text.push_str(&row(&phase.name, cost.time_s, messages, bytes, peak));
            }
        }
    }
    text
}
