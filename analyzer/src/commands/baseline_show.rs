//! A baseline table on the screen, as a picture, or as a table for other tools.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use laggard_baselines::{Entry, Point, Table};
use laggard_files::printable;
use laggard_report::palette;
use laggard_report::units::{duration, size};
use laggard_tables::baseline::{self, Row};
use laggard_trace::calls::{CALLS, GenericType};
use plotters::prelude::*;
use textplots::{Chart, LabelBuilder, LabelFormat, Plot, Shape};

use super::{results, screen};
use crate::cli::Baseline;

/// Operations that are drawn if nobody chooses.
const DRAWN: [&str; 4] = ["MPI_Send", "MPI_Recv", "MPI_Allreduce", "MPI_Alltoall"];
/// Width and height of a picture.
const PICTURE: (u32, u32) = (1000, 640);
/// Times that an axis shows, s.
const SHOWN_S: Range<f64> = 1e-15..1e15;
/// Rows of dots on the screen.
const DOTS: u32 = 48;

/// Shows a table.
pub fn show(options: &Baseline, table: &Table) -> Result<ExitCode> {
    if let Some(file) = &options.parquet {
        baseline::check_target(file)?;
        parquet(table, file)?;
    }
    let wanted = |entry: &&Entry| {
        let mut names = options.only.iter();
        options.only.is_empty() || names.any(|name| name.eq_ignore_ascii_case(&entry.operation))
    };
    let entries: Vec<&Entry> = table.entries.iter().filter(wanted).collect();
    if entries.is_empty() {
        bail!("the table has no {}", options.only.join(" or "));
    }
    let is_drawn =
        |entry: &&&Entry| !options.only.is_empty() || DRAWN.contains(&entry.operation.as_str());
    let drawn: Vec<&Entry> = entries.iter().filter(is_drawn).copied().collect();
    let drawn = if drawn.is_empty() { &entries } else { &drawn };
    if let Some(file) = &options.svg {
        picture(table, drawn, file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if options.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = screen::output();
    writeln!(out, "{}", table.description)?;
    if let Some(machine) = &table.fingerprint {
        let (cpu, network) = (machine.cpu.join(", "), machine.network.join(", "));
        writeln!(
            out,
            "{cpu}, {} cores a host, network {network}",
            machine.cores
        )?;
    }
    for note in &table.notes {
        writeln!(out, "{note}")?;
    }
    writeln!(out)?;
    list(&mut out, &entries)?;
    for entry in drawn.iter().filter(|entry| has_curve(entry)) {
        curve(&mut out, entry)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each entry.
fn list(out: &mut impl Write, entries: &[&Entry]) -> Result<()> {
    let widths = entries.iter().map(|entry| entry.operation.len());
    let width = widths.max().unwrap_or(0).max(9);
    writeln!(
        out,
        "{:width$}  {:>7}  {:10}  {:>9}  {:>9}  {:>9}  {:>11}  {:>6}",
        "Operation", "Members", "Span", "Shortest", "Largest", "Time", "Rate", "Model"
    )?;
    for entry in entries {
        let (Some(first), Some(last)) = (entry.points.first(), entry.points.last()) else {
            continue;
        };
        let rate = rate(entry).map_or(String::new(), |rate| format!("{}/s", size(rate)));
        let model = entry.model.as_ref();
        let model = model.map_or(String::new(), |model| {
            format!("{:.0} %", model.error * 100.0)
        });
        writeln!(
            out,
            "{:width$}  {:>7}  {:10}  {:>9}  {:>9}  {:>9}  {rate:>11}  {model:>6}",
            entry.operation,
            entry.group_size,
            entry.span.map_or("", |span| span.name()),
            duration(first.time_s),
            size(last.bytes),
            duration(last.time_s),
        )?;
    }
    Ok(())
}

/// Bytes per second of its largest size; none of a call that takes only part of the transfer's
/// time, as a start or a completion does.
fn rate(entry: &Entry) -> Option<u64> {
    let last = entry.points.last().filter(|last| last.bytes > 0)?;
    let call = CALLS.iter().find(|call| call.name == entry.operation);
    let is_part = call.is_some_and(|call| call.starts() || call.generic == GenericType::Completion);
    (!is_part).then(|| (last.bytes as f64 / last.time_s) as u64)
}

/// Whether it has times of several sizes.
fn has_curve(entry: &Entry) -> bool {
    entry.points.len() > 2
}

/// Place of a size on an axis: 0 has one, too.
fn place(bytes: u64) -> f32 {
    (bytes as f32 + 1.0).log2()
}

/// Time over size, both as logarithms.
fn curve(out: &mut impl Write, entry: &Entry) -> Result<()> {
    let mut dots: Vec<(f32, f32)> = entry
        .points
        .iter()
        .chain(&entry.checks)
        .map(|point| (place(point.bytes), point.time_s.log10() as f32))
        .collect();
    dots.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = dots.iter().map(|dot| dot.0).fold(1.0, f32::max);
    writeln!(out, "\n{}: time over bytes, as measured", title(entry))?;
    let columns = (screen::width().clamp(40, 120) as u32 - 20) * 2;
    let mut chart = Chart::new(columns, DOTS, 0.0, last);
    let line = Shape::Lines(&dots);
    let chart = chart
        .lineplot(&line)
        .x_label_format(LabelFormat::Custom(Box::new(|place| {
            size((2f64.powf(f64::from(place)) - 1.0).round() as u64)
        })))
        .y_label_format(LabelFormat::Custom(Box::new(|power| {
            duration(10f64.powf(f64::from(power)))
        })));
    chart.axis();
    chart.figures();
    let text = chart.to_string();
    writeln!(out, "{}", text.trim_end())?;
    Ok(())
}

fn title(entry: &Entry) -> String {
    let members = entry.group_size;
    match entry.span {
        Some(span) => format!("{}, {members} members, {}", entry.operation, span.name()),
        None => format!("{}, {members} members", entry.operation),
    }
}

/// Draws measured times, checks and models.
fn picture(table: &Table, entries: &[&Entry], file: &Path) -> Result<()> {
    let mut text = String::new();
    let points = || {
        let all = entries
            .iter()
            .flat_map(|e| e.points.iter().chain(&e.checks));
        all.map(|point| (f64::from(place(point.bytes)), point.time_s))
    };
    let right = points().map(|point| point.0).fold(1.0, f64::max);
    let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.1).fold(0.0, f64::max);
    if !(low > SHOWN_S.start && high < SHOWN_S.end) {
        bail!("its times cannot be on one axis");
    }
    {
        let area = SVGBackend::with_string(&mut text, PICTURE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(printable(&table.description), ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..right, (low / 1.5..high * 1.5).log_scale())?;
        chart
            .configure_mesh()
            .x_desc("bytes")
            .y_desc("time")
            .x_label_formatter(&|place| size((2f64.powf(*place) - 1.0).round() as u64))
            .y_label_formatter(&|time| duration(*time))
            .draw()?;
        for (at, entry) in entries.iter().enumerate() {
            let (r, g, b) = palette::SERIES[at % palette::SERIES.len()];
            let color = RGBColor(r, g, b);
            let dot = |point: &Point| (f64::from(place(point.bytes)), point.time_s);
            chart
                .draw_series(LineSeries::new(entry.points.iter().map(dot), &color))?
                .label(printable(&title(entry)))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
            let measured = entry.points.iter().map(dot);
            chart.draw_series(measured.map(|dot| Circle::new(dot, 2, color.filled())))?;
            let checks = entry.checks.iter().map(dot);
            chart.draw_series(checks.map(|dot| Cross::new(dot, 4, color)))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    results::write_picture(file, &text)
}

/// Writes a table as Parquet.
pub fn parquet(table: &Table, file: &Path) -> Result<()> {
    let row = |entry: &Entry, point: &Point, kind| Row {
        operation: entry.operation.clone(),
        group_size: entry.group_size,
        span: entry.span.map(|span| span.name()),
        bytes: point.bytes,
        kind,
        time: point.time_s,
        median: point.median_s,
        spread: point.spread_s,
        repetitions: point.repetitions,
        skew: point.skew_s,
        model: entry.model.as_ref().map(|model| model.time(point.bytes)),
    };
    let rows = table.entries.iter().flat_map(|entry| {
        let measured = entry.points.iter().map(|p| row(entry, p, "measured"));
        let checks = entry.checks.iter().map(|p| row(entry, p, "check"));
        let mut rows: Vec<Row> = measured.chain(checks).collect();
        rows.sort_by_key(|row| row.bytes);
        rows
    });
    let rows: Vec<Row> = rows.collect();
    let mut about = vec![("description", table.description.clone())];
    if let Some(machine) = &table.fingerprint {
        about.push(("fingerprint", serde_json::to_string(machine)?));
    }
    Ok(baseline::write(file, &rows, &about)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_transfers_have_a_rate() {
        let rate = |operation: &str, bytes| {
            let text = format!(
                r#"{{"schema": "laggard-baseline/1", "entries": [{{"operation": "{operation}",
                "group_size": 2, "points": [{{"bytes": {bytes}, "time_s": 1e-3}}]}}]}}"#
            );
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            super::rate(&Table::read(file.path()).unwrap().entries[0])
        };
        assert_eq!(rate("MPI_Recv", 1000), Some(1_000_000));
        assert_eq!(rate("MPI_Allreduce", 2000), Some(2_000_000));
        assert_eq!(rate("MPI_Recv", 0), None);
        for part in [
            "MPI_Irecv",
            "MPI_Isend",
            "MPI_Wait",
            "MPI_Ibcast",
            "MPI_Put",
        ] {
            assert_eq!(rate(part, 1000), None, "{part}");
        }
    }
}
