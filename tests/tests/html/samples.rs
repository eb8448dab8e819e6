//! Tables of what functions, threads and counters tell, in the browser.

use laggard_report::units::{count, duration, percent};
use laggard_report::{Report, words};
use laggard_tests::threads::FLAGS;

use super::*;

/// A cell: the number by which it sorts, if it has one, and what it shows.
type Cell = (Option<f64>, String);

fn time(seconds: f64) -> Cell {
    (Some(seconds), duration(seconds))
}

fn share(percent: f64) -> Cell {
    (Some(percent), format!("{percent:.2}"))
}

fn text(shown: impl ToString) -> Cell {
    (None, shown.to_string())
}

/// The heads of the columns of a section's table, and its rows.
fn table(browser: &mut Browser, section: &str) -> (Vec<String>, Vec<Vec<Cell>>) {
    let shown = browser.value(&format!(
        "(() => {{ const table = document.querySelector('#{section} table'); \
         return [[...table.tHead.rows[0].cells].map((head) => head.textContent), \
         [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => \
         [cell.dataset.value === undefined ? null : Number(cell.dataset.value), \
         cell.textContent]))]; }})()"
    ));
    serde_json::from_value(shown).expect("a table")
}

#[test]
fn functions_threads_and_counters_are_those_of_the_report() {
    let bench = Bench::sharing("html-samples");
    let program = bench.compile("threads/sampled.c", FLAGS, &[]);
    let run = bench.traced(2, &[program.as_os_str()], "trace");
    let run = run.env("OMP_NUM_THREADS", "2").env(PROCESSOR_TIME, "1");
    let run = run.env("LAGGARD_SAMPLE_HZ", "1000");
    run.env("LAGGARD_COUNTERS", "page-faults,task-clock")
        .run()
        .expect_orderly()
        .expect_success();
    let report = bench.analyze_all(&bench.path("trace"));
    let report: Report = serde_json::from_str(&report).expect("a report");
    let page = page(&bench, &bench.path("report-1.json"));
    let mut browser = Browser::start(&bench.dir);
    open(&mut browser, &page);
    functions(&mut browser, &report);
    threads(&mut browser, &report);
    counters(&mut browser, &report);
    efficiencies(&mut browser, &report);
    look(&mut browser, "samples");
    silent(&browser, &page);
}

fn functions(browser: &mut Browser, report: &Report) {
    let (heads, rows) = table(browser, "functions");
    let expected = [
        "Where most of it",
        "Ranks",
        "All ranks",
        "% of time",
        "Mean",
        "Most",
        "by",
        "Beyond the mean",
    ];
    assert_eq!(heads, expected);
    let expected = report.functions.iter().map(|of| {
        vec![
            text(words::place(&of.location)),
            text(of.ranks),
            time(of.total_s),
            share(of.percent),
            time(of.mean_s),
            time(of.max_s),
            text(format!("rank {}", of.worst_rank)),
            time(of.overload_s),
        ]
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
    assert!(rows.iter().any(|row| row[0].1.contains("sampled.c:")));
}

fn threads(browser: &mut Browser, report: &Report) {
    let (heads, rows) = table(browser, "threads");
    let expected = [
        "Before",
        "Where",
        "Threads",
        "Mean of the rank",
        "Most",
        "by",
        "Uneven",
        "% of time",
    ];
    assert_eq!(heads, expected);
    let expected = report.thread_imbalance.iter().map(|of| {
        vec![
            text(&of.before),
            text(words::place(&of.location)),
            text(of.threads),
            time(of.rank_mean_s),
            time(of.max_s),
            text(words::busiest_thread(of)),
            time(of.overload_s),
            share(of.percent),
        ]
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
    assert!(rows[0][5].1.starts_with("thread 1 of rank "), "{rows:?}");
}

/// Columns of the table of ranks that not every recording has.
fn counters(browser: &mut Browser, report: &Report) {
    let (heads, rows) = table(browser, "ranks");
    assert_eq!(rows.len(), report.locations.len());
    let mut expected: Vec<_> = report.locations.iter().map(|_| Vec::new()).collect();
    for (location, cells) in report.locations.iter().zip(&mut expected) {
        cells.push(time(location.processor_s.expect("a time")));
        cells.extend(["page-faults", "task-clock"].map(|name| {
            let number = location.counters[name];
            (Some(number as f64), count(number))
        }));
    }
    assert_eq!(heads[8..], ["On a core", "page-faults", "task-clock"]);
    let rows: Vec<&[Cell]> = rows.iter().map(|row| &row[8..]).collect();
    assert_eq!(rows, expected);
    let counted = words::counted(report).expect("what was counted");
    let said = browser.value("document.querySelector('#summary').textContent");
    let said = said.as_str().expect("a text");
    assert!(said.contains(&format!("Counted: {counted}.")), "{said}");
}

fn efficiencies(browser: &mut Browser, report: &Report) {
    let hybrid = report.efficiency.hybrid.expect("efficiencies of threads");
    let meters = browser.value(
        "[...document.querySelectorAll('#summary dl.meters > div')].map((one) => \
         [one.querySelector('dt').textContent, one.querySelector('dd.value').textContent])",
    );
    let meters: Vec<(String, String)> = serde_json::from_value(meters).expect("meters");
    let shown: Vec<_> = meters
        .iter()
        .skip_while(|(label, _)| label != "With all threads")
        .take(3)
        .map(|(label, value)| (label.as_str(), value.clone()))
        .collect();
    let expected = [
        ("With all threads", hybrid.parallel),
        ("MPI", hybrid.mpi.parallel),
        ("× Threads", hybrid.threads.parallel),
    ];
    assert_eq!(
        shown,
        expected.map(|(label, value)| (label, percent(100.0 * value)))
    );
}
