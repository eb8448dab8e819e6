//! The page around its sections.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_report::{palette, words};
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::table::EXPLAINED;
use crate::text::sentence;
use crate::{
    Page, calls, finding, functions, heat, matrix, path, pictures, ranks, regions, remarks, roots,
    summary, table, threads,
};

/// First bytes of every page.
pub const START: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" \
     content=\"laggard ";
/// The style, behind the colours.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The whole page.
pub fn page(page: &Page) -> Markup {
    let report = page.report;
    let command = sentence(&words::command(&report.run));
    let explained = &report.bottlenecks[..report.bottlenecks.len().min(EXPLAINED)];
    let has_roots = report
        .root_causes
        .as_ref()
        .is_some_and(|roots| !roots.is_empty());
    let has_path = report
        .critical_path
        .as_ref()
        .is_some_and(|path| !path.profile.is_empty());
    let has_map = report
        .parallelism
        .as_ref()
        .is_some_and(|load| !load.waiting.is_empty());
    let matrix = matrix::section(report);
    let has_matrix = !matrix.0.is_empty();
    html! {
        (PreEscaped(START)) (PreEscaped(env!("CARGO_PKG_VERSION"))) (PreEscaped("\">"))
        meta http-equiv="Content-Security-Policy" content=(policy(!page.pictures.is_empty()));
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="referrer" content="no-referrer";
        title { (command) " – laggard" }
        style { (PreEscaped(style())) }
        (PreEscaped("</head><body>"))
        a.skip href="#findings" { "Skip to the findings" }
        header.top {
            h1 { (command) }
            p.soft { (sentence(&words::size_of_run(&report.run))) }
        }
        nav aria-label="Sections" {
            ul {
                li { a href="#summary" { "Summary" } }
                @if has_map { li { a href="#waiting" { "Waiting" } } }
                @if has_roots { li { a href="#roots" { "Root causes" } } }
                @if has_path { li { a href="#path" { "Critical path" } } }
                li { a href="#findings" { "Findings" } }
                @if !explained.is_empty() { li { a href="#details" { "In detail" } } }
                @if report.call_tree.is_some() { li { a href="#calls" { "Calls" } } }
                li { a href="#ranks" { "Ranks" } }
                @if has_matrix { li { a href="#matrix" { "Pairs" } } }
                @if !report.functions.is_empty() { li { a href="#functions" { "Functions" } } }
                @if !report.thread_imbalance.is_empty() { li { a href="#threads" { "Threads" } } }
                @if !report.regions.is_empty() { li { a href="#regions" { "Regions" } } }
                @if !page.pictures.is_empty() { li { a href="#pictures" { "Pictures" } } }
                @if !report.anomalies.is_empty() { li { a href="#anomalies" { "Anomalies" } } }
                li { a href="#about" { "About" } }
            }
        }
        main {
            (summary::section(report))
            (heat::section(report))
            (roots::section(report))
            (path::section(report))
            (table::section(report))
            (finding::section(page, explained))
            (calls::section(report))
            (ranks::section(report))
            (matrix)
            (functions::section(report))
            (threads::section(report))
            (regions::section(report))
            (pictures::section(page.pictures))
            (remarks::anomalies(report))
            (remarks::about(report))
        }
        footer {
            "Made by laggard " (env!("CARGO_PKG_VERSION")) " from a report of schema "
            code { (sentence(&report.schema)) } "."
        }
        script { (PreEscaped(SCRIPT)) }
        (PreEscaped("</body></html>\n"))
    }
}

/// The style of the page.
fn style() -> String {
    let colours = palette::properties(&[
        ("computation", palette::COMPUTATION),
        ("communication", palette::COMMUNICATION),
        ("synchronization", palette::SYNCHRONIZATION),
        ("io", palette::IO),
        ("off", palette::OTHER_WAITING),
        ("several", palette::OTHER),
        ("lost", palette::WAITING),
    ]);
    format!("{colours}\n{STYLE}")
}

/// The content security policy: browsers may show the page and its embedded pictures, and run
/// its own script.
fn policy(has_pictures: bool) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'{}",
        hash(&style()),
        hash(SCRIPT),
        if has_pictures { "; img-src data:" } else { "" }
    )
}
