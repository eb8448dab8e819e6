//! A report beside those of other runs, as pictures for its page.

use std::path::Path;

use anyhow::Result;
use laggard_experiments::compare::{self, TextOptions};
use laggard_experiments::{Run, scale};
use laggard_html::Picture;
use laggard_report::Report;

use super::reports;
use crate::cli::Show;

/// How it is told beside the picture: all rows, no colours.
const TEXT: TextOptions = TextOptions {
    top: usize::MAX,
    color: false,
    width: 120,
};

/// The other runs as the user names them, each list a revision or a size.
fn others(words: &[String]) -> Result<Vec<Vec<Run>>> {
    words.iter().map(|words| reports::runs(words)).collect()
}

fn own(report: &Report, file: &Path) -> Vec<Run> {
    vec![Run {
        report: report.clone(),
        source: file.display().to_string(),
    }]
}

/// How it differs from earlier revisions.
///
/// # Errors
/// What is no report, or cannot be compared.
pub fn comparison(report: &Report, file: &Path, options: &Show) -> Result<Picture> {
    let mut revisions = others(&options.compare)?;
    revisions.push(own(report, file));
    let how = compare::Options {
        any_program: options.any_program,
        ..compare::Options::default()
    };
    let found = compare::compare(revisions, &how)?;
    Ok(Picture {
        name: "Beside other revisions".to_owned(),
        svg: compare::draw(&found)?.into_bytes(),
        text: compare::render(&found, &TEXT),
    })
}

/// What is lost on more ranks, it and runs of other sizes together.
///
/// # Errors
/// What is no report, or cannot be compared.
pub fn scaling(report: &Report, file: &Path, options: &Show) -> Result<Picture> {
    let mut all = others(&options.scale)?;
    all.push(own(report, file));
    let how = scale::Options {
        any_program: options.any_program,
        ..scale::Options::default()
    };
    let found = scale::scale(all, &how)?;
    Ok(Picture {
        name: "Beside runs of other sizes".to_owned(),
        svg: scale::draw(&found)?.into_bytes(),
        text: scale::render(&found, &TEXT),
    })
}
