//! Which findings the filters let through: false alarms and misses for a grid of thresholds, on
//! generated programs with known losses.
//!
//! [`corpus`] has the programs. [`verdict`] says which findings of a report are wrong. `exchange`
//! measures what the filters save.

pub mod corpus;
mod exchange;
mod machine;
pub mod verdict;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use laggard_report::{Report, Settings};

use crate::process;
use crate::runs::Outcome;
use crate::table::Table;
use corpus::{Case, NO_FAULT, STRENGTHS};
use laggard_generator::Expected;
use verdict::{MUCH, Oracle};

/// Shares of its location's time from which an operation is looked at, per cent.
const HOTSPOTS: [f64; 5] = [0.2, 0.5, 1.0, 2.0, 5.0];
/// Ratios of the deviation filter.
const DEVIATIONS: [f64; 5] = [1.2, 1.5, 2.0, 3.0, 10.0];
/// Ratios of the baseline filter.
const BASELINES: [f64; 5] = [1.1, 1.5, 2.0, 3.0, 10.0];

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the traces, made one after the other.
    pub directory: PathBuf,
    /// Whether to use the default thresholds only.
    pub only_defaults: bool,
}

/// Thresholds and their results: hotspots down, ratios across.
struct Grid {
    /// The filter that the ratio belongs to.
    filter: &'static str,
    hotspots: Vec<f64>,
    ratios: Vec<f64>,
    /// Default hotspot and ratio of an analysis.
    usual: (f64, f64),
    /// Further options of the command.
    options: Vec<String>,
    cells: Vec<Cell>,
}

impl Grid {
    fn new(
        filter: &'static str,
        (hotspots, ratios): (&[f64], &[f64]),
        usual: (f64, f64),
        options: &[&str],
    ) -> Grid {
        Grid {
            filter,
            hotspots: hotspots.to_vec(),
            ratios: ratios.to_vec(),
            usual,
            options: options.iter().map(|&option| option.to_owned()).collect(),
            cells: vec![Cell::default(); hotspots.len() * ratios.len()],
        }
    }

    /// Hotspot and ratio of each cell.
    fn thresholds(&self) -> Vec<(f64, f64)> {
        let rows = self.hotspots.iter();
        rows.flat_map(|&hotspot| self.ratios.iter().map(move |&ratio| (hotspot, ratio)))
            .collect()
    }

    /// Analyses a trace with all thresholds; returns the report with the defaults.
    fn analyze(
        &mut self,
        analyzer: &Path,
        trace: &Path,
        case: &Case,
        oracle: &Oracle,
    ) -> Result<Option<Report>> {
        let mut at_defaults = None;
        let ratio_option = format!("--{}-ratio", self.filter);
        for (at, (hotspot, ratio)) in self.thresholds().into_iter().enumerate() {
            let thresholds = [hotspot, ratio].map(|value| value.to_string());
            let mut words = vec!["--hotspot-percent", &thresholds[0]];
            words.extend([ratio_option.as_str(), &thresholds[1]]);
            words.extend(self.options.iter().map(String::as_str));
            let report = analyze(analyzer, trace, &words)?;
            let is_right = oracle.missed(&report).is_empty();
            let alarms = oracle.false_alarms(&report, case.is_clean());
            let cell = &mut self.cells[at];
            cell.requests += report.agents.requests;
            cell.missed += u64::from(!is_right);
            match case.is_clean() {
                true => cell.alarms += u64::from(!alarms.is_empty()),
                false => cell.wrong += u64::from(!alarms.is_empty()),
            }
            if (hotspot, ratio) == self.usual {
                at_defaults = Some(report);
            }
        }
        Ok(at_defaults)
    }

    fn table(&self, title: &str, text: impl Fn(&Cell) -> String) -> Table {
        let head: Vec<String> = self
            .ratios
            .iter()
            .map(|ratio| format!("{} {ratio}", self.filter))
            .collect();
        let mut columns = vec!["hotspot, %"];
        columns.extend(head.iter().map(String::as_str));
        let mut table = Table::new(title, &columns);
        let rows = self.cells.chunks(self.ratios.len());
        for (hotspot, cells) in self.hotspots.iter().zip(rows) {
            let first = hotspot.to_string();
            table.row([first].into_iter().chain(cells.iter().map(&text)));
        }
        table
    }
}

/// Results of analyses with the same thresholds.
#[derive(Clone, Debug, Default)]
struct Cell {
    /// Clean programs with findings.
    alarms: u64,
    /// Other programs with findings of something that is not there.
    wrong: u64,
    /// Faulty programs with missing findings.
    missed: u64,
    /// Requests, all programs together.
    requests: u64,
}

/// Results for a fault of one strength at the defaults.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// Programs in which it must be found.
    must: u64,
    /// Programs among these in which it was found.
    found: u64,
    /// Programs in which it costs less.
    less: u64,
}

/// Analyses the corpus with all thresholds.
///
/// # Errors
/// The analyzer or the file system failed.
pub fn measure(options: &Options, outcome: &mut Outcome) -> Result<()> {
    process::with_analyzer(&options.directory, |analyzer| {
        let trace = analyzer.with_extension("trace");
        let measured = measure_corpus(options.only_defaults, analyzer, &trace, outcome);
        process::remove(&trace)?;
        let measured = measured.and_then(|()| exchange::measure(analyzer, &trace, outcome));
        process::remove(&trace)?;
        measured
    })
}

/// Sums over the corpus.
struct Corpus {
    /// Without and with a table of baselines.
    grids: [Grid; 2],
    /// Requests with `--all`.
    all_requests: u64,
    clean: u64,
    faulty: u64,
    others: u64,
    /// Largest share of its time that a rank of a clean program lost, percent.
    most_clean: f64,
    /// By kind of fault and position in [`STRENGTHS`]; faults without strength use the first.
    fates: BTreeMap<&'static str, [Fate; STRENGTHS.len()]>,
}

fn measure_corpus(
    only_defaults: bool,
    analyzer: &Path,
    trace: &Path,
    outcome: &mut Outcome,
) -> Result<()> {
    let cases = [corpus::without_faults(), corpus::with_faults()].concat();
    let table = analyzer.with_extension("baseline.json");
    machine::write(&table, cases[0].settings.eager_limit)?;
    let defaults = Settings::default();
    let baseline = ["--baseline", &table.display().to_string()];
    let grid = |filter, ratios: &[f64], usual: f64, options: &[&str]| {
        let usual = (defaults.hotspot_percent, usual);
        let thresholds = match only_defaults {
            true => (&[usual.0][..], &[usual.1][..]),
            false => (&HOTSPOTS[..], ratios),
        };
        Grid::new(filter, thresholds, usual, options)
    };
    let mut corpus = Corpus {
        grids: [
            grid("deviation", &DEVIATIONS, defaults.deviation_ratio, &[]),
            grid("baseline", &BASELINES, defaults.baseline_ratio, &baseline),
        ],
        all_requests: 0,
        clean: 0,
        faulty: 0,
        others: 0,
        most_clean: 0.0,
        fates: BTreeMap::new(),
    };
    for case in &cases {
        corpus.take(case, analyzer, trace)?;
    }
    fs::remove_file(&table)?;
    corpus.tables(outcome);
    Ok(())
}

/// Notes the result of a case at the defaults.
fn note(case: &Case, oracle: &Oracle, is_found: bool, fates: &mut [Fate; STRENGTHS.len()]) {
    let at = STRENGTHS.iter().position(|&s| s == case.strength);
    let fate = &mut fates[at.unwrap_or(0)];
    match oracle.is_faulty() {
        true => {
            fate.must += 1;
            fate.found += u64::from(is_found);
        }
        false => fate.less += 1,
    }
}

/// One agent's report.
fn analyze(analyzer: &Path, trace: &Path, options: &[&str]) -> Result<Report> {
    let output = trace.join("report.json");
    let mut command = Command::new(analyzer);
    command.arg("analyze").arg(trace).arg("-o").arg(&output);
    // Without root causes only slow calls are asked about; ledgers charge the last member.
    command.args(["-q", "--threads", "1", "--fast", "--charge", "last"]);
    command.args(options);
    process::run(&mut command)?;
    Ok(Report::read(&output)?)
}

impl Corpus {
    /// Generates a program and analyses it with all thresholds.
    fn take(&mut self, case: &Case, analyzer: &Path, trace: &Path) -> Result<()> {
        case.generate(trace)?;
        let expected = Expected::read(trace)?;
        let oracle = Oracle::new(&expected);
        match (case.is_clean(), oracle.is_faulty()) {
            (true, _) => {
                self.clean += 1;
                self.most_clean = self.most_clean.max(oracle.lost);
            }
            (false, true) => self.faulty += 1,
            (false, false) => self.others += 1,
        }
        self.all_requests += analyze(analyzer, trace, &["--all"])?.agents.requests;
        let fates = self.fates.entry(case.fault).or_default();
        for (at, grid) in self.grids.iter_mut().enumerate() {
            let Some(report) = grid.analyze(analyzer, trace, case, &oracle)? else {
                continue;
            };
            let missed = oracle.missed(&report);
            for line in &missed {
                println!("{}, {}: missed: {line}", case.name(), grid.filter);
            }
            for line in oracle.false_alarms(&report, case.is_clean()) {
                println!("{}, {}: false alarm: {line}", case.name(), grid.filter);
            }
            if at == 0 {
                note(case, &oracle, missed.is_empty(), fates);
            }
        }
        Ok(())
    }

    fn tables(&self, outcome: &mut Outcome) {
        let (clean, faulty, others) = (self.clean, self.faulty, self.others);
        println!(
            "{clean} clean programs, in which ranks lose at most {:.2} % of their time; {faulty} \
             in which one loses {MUCH} % or more; {others} more",
            self.most_clean
        );
        for grid in &self.grids {
            let title = format!(
                "Clean programs of {clean} with false alarms / faulty ones of {faulty} with misses"
            );
            outcome.table(grid.table(&title, |cell| format!("{} / {}", cell.alarms, cell.missed)));
            let title = format!(
                "Programs of the other {} with findings of what is not there",
                faulty + others
            );
            outcome.table(grid.table(&title, |cell| cell.wrong.to_string()));
            let all = self.all_requests as f64;
            outcome.table(grid.table("Requests, % of those with --all", |cell| {
                format!("{:.1}", 100.0 * cell.requests as f64 / all)
            }));
            for ((hotspot, ratio), cell) in grid.thresholds().iter().zip(&grid.cells) {
                let name = format!(
                    "hotspot {hotspot} %, {} {ratio}: false alarms, wrong, missed, requests",
                    grid.filter
                );
                let values = [cell.alarms, cell.wrong, cell.missed, cell.requests];
                let values = values.map(|value| value as f64).to_vec();
                outcome.raw.push((name, values));
            }
        }
        outcome.table(self.by_fault());
        let sizes = [clean, faulty, others, self.all_requests];
        outcome.raw.push((
            "clean programs, faulty, others, requests with --all".to_owned(),
            sizes.map(|value| value as f64).to_vec(),
        ));
        let name = "largest part of its time that a rank of a clean program lost, %";
        outcome.raw.push((name.to_owned(), vec![self.most_clean]));
    }

    /// Results of each fault at the defaults.
    fn by_fault(&self) -> Table {
        let title = "At the defaults: programs found of those that lose much, + those that lose \
                     less, by what the fault makes the run longer";
        let head = STRENGTHS.map(|strength| format!("{strength} %"));
        let mut columns = vec!["fault"];
        columns.extend(head.iter().map(String::as_str));
        let mut table = Table::new(title, &columns);
        for (fault, fates) in &self.fates {
            let texts = fates.iter().map(|fate| match fate.must + fate.less {
                0 => String::new(),
                _ => format!("{}/{} + {}", fate.found, fate.must, fate.less),
            });
            let fault = match *fault {
                NO_FAULT => "none: by their nature",
                fault => fault,
            };
            table.row([fault.to_owned()].into_iter().chain(texts));
        }
        table
    }
}
