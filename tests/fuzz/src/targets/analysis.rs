//! The whole analysis of a directory of files.

use std::fs;
use std::path::PathBuf;

use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Trace;
use laggard_report::{RenderOptions, Report, render_text};
use laggard_trace::{FileHeader, file_name};
use zerocopy::FromBytes;

use super::scratch;
use crate::shape::unpack;

const MOST_FILES: usize = 8;

/// Options, by bit.
const ALL: u8 = 1;
const SHORT_ROUNDS: u8 = 2;
const COMMANDS: u8 = 4;

/// Writes the files, analyses them, and checks the report.
pub fn analysis(bytes: &[u8]) {
    let Some((options, packed)) = bytes.split_first() else {
        return;
    };
    let directory = scratch().join("trace");
    write(&directory, &unpack(packed));
    let mut settings = AnalyzeOptions {
        threads: Some(1),
        // Installed debug information is the business of another target.
        debug_roots: Some(Vec::new()),
        round_records: (options & SHORT_ROUNDS != 0).then_some(16),
        ..AnalyzeOptions::default()
    };
    settings.settings.all = options & ALL != 0;
    match laggard_engine::analyze(&directory, &settings) {
        Ok(analysis) => look_at(&analysis.expect("the only agent has the report").report),
        Err(error) => assert!(!format!("{error:#}").contains('\n'), "{error:#}"),
    }
    if options & COMMANDS != 0
        && let Ok(trace) = Trace::open(&directory)
    {
        for traced in &trace.locations {
            let profile = traced.profile();
            assert!(profile.len() <= bytes.len());
            let _ = laggard_engine::directory::of_location(&traced.location);
        }
    }
}

/// Writes files under the names in their headers.
pub(super) fn write(directory: &PathBuf, files: &[Vec<u8>]) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).expect("a directory");
    for (n, file) in files.iter().take(MOST_FILES).enumerate() {
        let header = FileHeader::read_from_prefix(file);
        let (rank, thread) =
            header.map_or((n as u32, 0), |(header, _)| (header.rank, header.thread));
        fs::write(directory.join(file_name(rank, thread)), file).expect("a file");
    }
}

/// Any report must be sound: times are times, and it can be shown and read.
fn look_at(report: &Report) {
    for found in &report.bottlenecks {
        assert!(found.severity_s >= 0.0, "{} s", found.severity_s);
        assert!(found.mean_s.is_finite());
    }
    let json = report.to_json();
    let again = Report::from_json(json.as_bytes(), "report.json".as_ref());
    assert!(again.expect("what was written is read").to_json() == json);
    let options = RenderOptions {
        top: 10,
        file: "report.json".to_owned(),
        color: false,
        width: 100,
    };
    let _ = render_text(report, &options);
}
