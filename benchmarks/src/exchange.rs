//! The cost of exports to other tools and of imports: speed, bytes, memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, Usage};
use crate::runs::Outcome;
use crate::table::{Table, median};
use crate::traces::{Series, Trace};

/// Export targets; the first one's archive is read again.
pub const TARGETS: [&str; 8] = [
    "otf2",
    "parquet",
    "arrow",
    "perfetto",
    "flamegraph",
    "folded",
    "speedscope",
    "pprof",
];

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the traces, million calls.
    pub sizes: Vec<u64>,
    /// The traces and how often.
    pub series: Series,
    /// Some of [`TARGETS`].
    pub targets: Vec<String>,
    /// Directory of the files.
    pub directory: PathBuf,
}

/// Measures all sizes.
///
/// # Errors
/// A program or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    fs::create_dir_all(&options.directory)?;
    let bench = Bench::new(&options.directory)?;
    for &millions in &options.sizes {
        let series = &options.series;
        let trace = Trace::get(&options.directory, series, millions)?;
        let name = series.title(millions);
        bench.exports(options, &trace.path, (&name, millions), outcome)?;
        if options.targets.iter().any(|target| target == TARGETS[0]) {
            bench.readers(series.rounds, &name, outcome)?;
        }
        trace.done(series.keep)?;
    }
    Ok(())
}

/// Analyzer, reader and files, in a directory of their own that is removed when dropped.
struct Bench {
    directory: PathBuf,
    /// A copy, so that a build meanwhile does not change the measurement.
    analyzer: PathBuf,
    /// A reader that only reads an archive, if it can be compiled.
    bare: Option<PathBuf>,
}

impl Bench {
    fn new(parent: &Path) -> Result<Bench> {
        let directory = parent.join(format!("exchange.{}", std::process::id()));
        let analyzer = process::copy_analyzer(&directory)?;
        let mut bench = Bench {
            directory,
            analyzer,
            bare: None,
        };
        let bare = bench.directory.join("otf2_read");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/otf2_read.c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-O2", "-o"]).arg(&bare).arg(source);
        compiler.arg("-lopen-trace-format2");
        bench.bare = process::run(&mut compiler).is_ok().then_some(bare);
        Ok(bench)
    }

    fn output(&self, target: &str) -> PathBuf {
        self.directory.join(target)
    }

    /// Exports a trace to all targets in turns; the archive stays.
    fn exports(
        &self,
        options: &Options,
        trace: &Path,
        (name, millions): (&str, u64),
        outcome: &mut Outcome,
    ) -> Result<()> {
        let mut runs = vec![(Vec::new(), 0); options.targets.len()];
        for _ in 0..options.series.rounds {
            for (target, (usages, bytes)) in options.targets.iter().zip(&mut runs) {
                let output = self.output(target);
                process::remove(&output)?;
                let mut command = Command::new(&self.analyzer);
                command
                    .arg("export")
                    .arg(trace)
                    .args(["--to", target, "-q"]);
                command.arg("-o").arg(&output);
                if target == "perfetto" {
                    command.arg("--any-size");
                }
                usages.push(process::run(&mut command)?);
                *bytes = process::bytes_below(&output)?;
                if target != TARGETS[0] {
                    process::remove(&output)?;
                }
            }
        }
        let head = [
            "target",
            "time, s",
            "M calls/s",
            "per CPU s",
            "bytes/call",
            "MB",
        ];
        let mut table = Table::new(&format!("Export of {name}"), &head);
        let calls = millions as f64 * 1e6;
        for (target, (usages, bytes)) in options.targets.iter().zip(&runs) {
            let bytes = *bytes as f64 / calls;
            let [time, rate, per_cpu, memory] = figures(usages, calls);
            table.row([
                target.clone(),
                time,
                rate,
                per_cpu,
                format!("{bytes:.2}"),
                memory,
            ]);
            let name = format!("{name}, {target}");
            add_raw(outcome, &name, usages);
            outcome
                .raw
                .push((format!("{name}, bytes/call"), vec![bytes]));
        }
        outcome.table(table);
        Ok(())
    }

    /// Reads the archive with all readers in turns, then removes it.
    fn readers(&self, rounds: u32, name: &str, outcome: &mut Outcome) -> Result<()> {
        let archive = self.output(TARGETS[0]);
        let Some(bare) = &self.bare else {
            println!(
                "The OTF2 library's headers are missing (Debian: libotf2-trace-dev): reading is left out"
            );
            return process::remove(&archive);
        };
        let anchor = archive.join("traces.otf2");
        let reader = |program: &Path, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).arg(&anchor);
            command
        };
        let report = self.directory.join("report.json");
        let report = report.to_string_lossy();
        let analyze = ["analyze", "--all", "-q", "--format", "none", "-o", &report];
        let mut readers = vec![
            ("bare reader in C", reader(bare, &[])),
            ("laggard info", reader(&self.analyzer, &["info"])),
            ("laggard analyze --all", reader(&self.analyzer, &analyze)),
        ];
        if process::is_installed("otf2-print") {
            readers.push(("otf2-print", reader(Path::new("otf2-print"), &[])));
        } else {
            println!("otf2-print is not installed (Debian: otf2-tools): left out");
        }
        let (_, events) = process::run_with_output(&mut readers[0].1)?;
        let events: f64 = events.trim().parse().context("the number of events")?;
        let mut runs = vec![Vec::new(); readers.len()];
        for _ in 0..rounds {
            for ((_, command), usages) in readers.iter_mut().zip(&mut runs) {
                usages.push(process::run(command)?);
            }
        }
        let title = format!(
            "Reading the archive of {name}: {:.1} million events, {:.0} MB",
            events / 1e6,
            process::bytes_below(&archive)? as f64 / 1e6
        );
        let head = ["reader", "time, s", "M events/s", "per CPU s", "MB"];
        let mut table = Table::new(&title, &head);
        for ((reader, _), usages) in readers.iter().zip(&runs) {
            let figures = figures(usages, events);
            table.row([(*reader).to_owned()].into_iter().chain(figures));
            add_raw(outcome, &format!("archive of {name}, {reader}"), usages);
        }
        outcome.table(table);
        process::remove(&archive)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Best effort: it lies among temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Medians: time, millions of `things` per second, the same per second of processor time, memory.
fn figures(usages: &[Usage], things: f64) -> [String; 4] {
    let of = |value: fn(&Usage) -> f64| median(&usages.iter().map(value).collect::<Vec<_>>());
    let (wall, cpu) = (of(|usage| usage.wall_s), of(|usage| usage.cpu_s));
    [
        format!("{wall:.2}"),
        format!("{:.2}", things / wall / 1e6),
        format!("{:.2}", things / cpu / 1e6),
        format!("{:.0}", of(|usage| usage.peak_bytes as f64) / 1e6),
    ]
}

fn add_raw(outcome: &mut Outcome, name: &str, usages: &[Usage]) {
    let mut add = |what: &str, value: fn(&Usage) -> f64| {
        let values = usages.iter().map(value).collect();
        outcome.raw.push((format!("{name}, {what}"), values));
    };
    add("wall s", |usage| usage.wall_s);
    add("CPU s", |usage| usage.cpu_s);
    add("peak MB", |usage| usage.peak_bytes as f64 / 1e6);
}
