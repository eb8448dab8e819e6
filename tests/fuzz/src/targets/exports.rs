//! All export formats except OTF2, whose library is not ours.

use std::fs;
use std::path::Path;

use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_export::{self as export, Choice, StackFormat, TableFormat};
use laggard_files::is_steering;
use laggard_report::Report;

use super::analysis::write;
use super::scratch;
use crate::shape::unpack;

/// Writes the files, and exports them in all formats. The options have no effect.
pub fn exports(bytes: &[u8]) {
    let Some((_, packed)) = bytes.split_first() else {
        return;
    };
    let directory = scratch().join("exported");
    write(&directory, &unpack(packed));
    let settings = AnalyzeOptions {
        threads: Some(1),
        debug_roots: Some(Vec::new()),
        ..AnalyzeOptions::default()
    };
    let Ok(Some(analysis)) = laggard_engine::analyze(&directory, &settings) else {
        return;
    };
    let Ok(events) = Events::open(&directory) else {
        return;
    };
    let out = scratch().join("out");
    all(&events, &analysis.report, &out);
}

fn all(events: &Events, report: &Report, out: &Path) {
    let write = |result: &mut dyn FnMut() -> anyhow::Result<String>| {
        // The last output is a directory, or a file.
        let _ = fs::remove_dir_all(out);
        let _ = fs::remove_file(out);
        let written = result();
        assert_eq!(out.exists(), written.is_ok(), "{written:?}");
        written.is_ok()
    };
    for format in [TableFormat::Parquet, TableFormat::Arrow] {
        write(&mut || export::tables(events, report, format, out));
    }
    for around in [None, Some("1".to_owned())] {
        let choice = Choice {
            around,
            ..Choice::default()
        };
        write(&mut || export::perfetto(events, report, &choice, out));
    }
    for format in StackFormat::ALL {
        let is_written = write(&mut || export::stacks(events, format, out));
        let is_text = matches!(format, StackFormat::FlameGraph | StackFormat::Folded);
        if is_written && is_text {
            let text = fs::read_to_string(out).expect("text");
            let odd = text
                .chars()
                .find(|&c| !matches!(c, '\n' | '\t') && is_steering(c));
            assert!(odd.is_none(), "{odd:?} in {format:?}");
        }
    }
}
