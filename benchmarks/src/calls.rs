//! What the collector adds to an MPI call.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use laggard_trace::{FileSpace, Record, Space};

use crate::micro::{Bench, COMPUTE, PROGRAMS, Program, Sample, Variant, programs};
use crate::runs::Outcome;
use crate::table::{Table, median};

/// Depths of call paths that are measured.
const DEPTHS: [u32; 3] = [0, 1, 16];
/// Programs of [`PROGRAMS`] that calls are timed with.
const TIMED: usize = 14;

/// All runs of a program: by variant, by round.
type Runs = Vec<Vec<Sample>>;

/// Measures the calls of all programs, in turns: every variant once, then again.
///
/// # Errors
/// See [`Bench::new`] and [`Bench::run`].
pub fn measure(directory: &Path, rounds: usize, outcome: &mut Outcome) -> Result<()> {
    let bench = Bench::new(directory)?;
    let variants = bench.variants(&DEPTHS);
    let mut results = Vec::new();
    let timed = programs().filter(|program| PROGRAMS[..TIMED].contains(program));
    for program in timed {
        let variants = program.of_use(&variants);
        let runs = runs(&bench, program, variants, rounds)?;
        for (runs, variant) in runs.iter().zip(variants) {
            let name = format!("{} {}", program.name, variant.name());
            let mut add = |what: &str, value: fn(&Sample) -> f64| {
                let values = runs.iter().map(value).collect();
                outcome
                    .raw
                    .push((format!("{name}, {what} ns/call"), values));
            };
            add("processor", |sample| sample.cpu_ns);
            add("wall", |sample| sample.wall_ns);
            add("median part", |sample| sample.batch_ns);
        }
        results.push((program, runs));
    }
    let title =
        format!("ns added per call: processor time of the whole loop, medians of {rounds} rounds");
    outcome.table(table(&title, &variants, &results, |runs| {
        median(&runs.iter().map(|sample| sample.cpu_ns).collect::<Vec<_>>())
    }));
    let title = "ns added per call: median part of the loop, quietest round of each";
    outcome.table(table(title, &variants, &results, |runs| {
        least(
            &runs
                .iter()
                .map(|sample| sample.batch_ns)
                .collect::<Vec<_>>(),
        )
    }));
    let steered = steered(&bench, rounds, &mut outcome.raw)?;
    outcome.table(steered);
    let computing = computing(&bench, rounds, &mut outcome.raw)?;
    outcome.table(computing);
    let mut parts = Table::new("ns that every call takes at least", &["part", "ns"]);
    let mut part = |name: &str, values: Vec<f64>| {
        parts.row([name.to_owned(), format!("{:.1}", least(&values))]);
        outcome.raw.push((format!("{name}, ns"), values));
    };
    if let Some(reads) = clock_reads() {
        part("two reads of the clock", reads);
    }
    part("12 bytes of new pages of a file", new_pages(directory)?);
    outcome.table(parts);
    Ok(())
}

/// Settings of what is known of the time between calls.
const BETWEEN: [Variant; 6] = [
    Variant::Bare,
    Variant::With("calls alone", &[("LAGGARD_PROCESSOR_TIME", "0")]),
    Variant::With("off the processor", &[("LAGGARD_COUNTERS", "off")]),
    Variant::With(
        "two counters by the kernel",
        &[("LAGGARD_COUNTERS", "page-faults,task-clock")],
    ),
    Variant::With(
        "100 Hz by perf",
        &[("LAGGARD_SAMPLE_HZ", "100"), ("LAGGARD_SAMPLE_BY", "perf")],
    ),
    Variant::With(
        "100 Hz by signal",
        &[
            ("LAGGARD_SAMPLE_HZ", "100"),
            ("LAGGARD_SAMPLE_BY", "signal"),
        ],
    ),
];

/// What is added to calls that take next to nothing, with a look at what `laggard steer` wants and without.
fn steered(bench: &Bench, rounds: usize, raw: &mut Vec<(String, Vec<f64>)>) -> Result<Table> {
    let variants = [
        Variant::Bare,
        Variant::With("to be steered", &[]),
        Variant::NotSteered,
    ];
    let [program, ..] = PROGRAMS;
    let runs = runs(bench, program, &variants, rounds)?;
    for (runs, variant) in runs.iter().zip(variants) {
        let name = format!("{} {}, processor ns/call", program.name, variant.name());
        raw.push((name, runs.iter().map(|sample| sample.cpu_ns).collect()));
    }
    let title = format!("ns added per call: processor time, medians of {rounds} rounds");
    Ok(table(&title, &variants, &[(program, runs)], |runs| {
        median(&runs.iter().map(|sample| sample.cpu_ns).collect::<Vec<_>>())
    }))
}

/// What is added to a program that computes most of the time, by what is asked of that time.
fn computing(bench: &Bench, rounds: usize, raw: &mut Vec<(String, Vec<f64>)>) -> Result<Table> {
    let title = format!(
        "a program that computes: processor time of the whole loop, medians of {rounds} rounds"
    );
    let mut table = Table::new(&title, &["variant", "ms per step", "more than bare"]);
    let mut bare = None;
    for (runs, variant) in runs(bench, COMPUTE, &BETWEEN, rounds)?.iter().zip(BETWEEN) {
        let times: Vec<f64> = runs.iter().map(|sample| sample.cpu_ns / 1e6).collect();
        let time = median(&times);
        let more = 100.0 * (time / *bare.get_or_insert(time) - 1.0);
        table.row([
            variant.name(),
            format!("{time:.4}"),
            format!("{more:+.2} %"),
        ]);
        raw.push((
            format!("compute {}, processor ms/step", variant.name()),
            times,
        ));
    }
    Ok(table)
}

/// Time to get a record's share of new windows into memory, ns, several times.
fn new_pages(directory: &Path) -> Result<Vec<f64>> {
    const WINDOW: usize = 1 << 20;
    const BYTES: usize = 64 << 20;
    let path = directory.join(format!("pages.{}", std::process::id()));
    let once = || -> std::io::Result<f64> {
        let mut space = FileSpace::create(&path, WINDOW)?;
        let (start, mut bytes) = (Instant::now(), 0);
        while bytes < BYTES {
            bytes += space.advance(WINDOW)?.1;
        }
        Ok(start.elapsed().as_secs_f64() * 1e9 / bytes as f64 * size_of::<Record>() as f64)
    };
    let mut values = Vec::new();
    for _ in 0..7 {
        let value = once();
        let _ = std::fs::remove_file(&path);
        values.push(value?);
    }
    Ok(values)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Time of two reads of the counter that the collector uses as its clock, ns, several times.
#[cfg(target_arch = "x86_64")]
fn clock_reads() -> Option<Vec<f64>> {
    const PAIRS: u32 = 1_000_000;
    // SAFETY: every x86-64 processor has it.
    let read = || std::hint::black_box(unsafe { std::arch::x86_64::_rdtsc() });
    let once = || {
        let start = Instant::now();
        for _ in 0..PAIRS {
            read();
            read();
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS)
    };
    Some((0..7).map(|_| once()).collect())
}

#[cfg(not(target_arch = "x86_64"))]
fn clock_reads() -> Option<Vec<f64>> {
    None
}

fn runs(bench: &Bench, program: Program, variants: &[Variant], rounds: usize) -> Result<Runs> {
    let mut runs: Runs = vec![Vec::new(); variants.len()];
    for round in 0..rounds {
        // Each variant comes first in some round.
        for at in 0..variants.len() {
            let at = (at + round) % variants.len();
            runs[at].push(bench.run(program, variants[at], program.steps)?);
        }
    }
    Ok(runs)
}

/// The bare program's time, and how much each variant adds.
fn table(
    title: &str,
    variants: &[Variant],
    results: &[(Program, Runs)],
    time: fn(&[Sample]) -> f64,
) -> Table {
    let names: Vec<String> = variants.iter().map(|variant| variant.name()).collect();
    let mut head = vec!["program"];
    head.extend(names.iter().map(String::as_str));
    let mut table = Table::new(title, &head);
    for (program, runs) in results {
        let bare = time(&runs[0]);
        let mut row = vec![program.name.to_owned(), format!("{bare:.1}")];
        row.extend(
            runs[1..]
                .iter()
                .map(|runs| format!("{:+.1}", time(runs) - bare)),
        );
        table.row(row);
    }
    table
}
