//! How the command ended that ran the program, if it failed: ranks do not know.

use std::io::Read;
use std::path::Path;

use laggard_trace::ENDED_FILE;
use serde::Deserialize;

use crate::basics::anomaly::{Anomalies, Level};

/// More are not read, bytes.
const MOST_BYTES: u64 = 4096;

/// What `laggard run` left beside the trace.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    /// Exit code.
    Code(u8),
    /// The signal that ended it.
    Signal(u8),
}

/// Adds the end of a command that failed.
pub fn note(directory: &Path, anomalies: &mut Anomalies) {
    let Some(ended) = read(directory) else {
        return;
    };
    let detail = match ended {
        Ended::Code(code) => format!("its command ended with exit code {code}"),
        Ended::Signal(signal) => format!("its command ended by signal {signal}"),
    };
    anomalies.add("program_failed", Level::Warning, 1, detail);
}

fn read(directory: &Path) -> Option<Ended> {
    let (file, _, _) = laggard_files::open_beside(&directory.join(ENDED_FILE)).ok()?;
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(content: &str) -> Vec<String> {
        let trace = tempfile::tempdir().unwrap();
        std::fs::write(trace.path().join(ENDED_FILE), content).unwrap();
        let mut anomalies = Anomalies::default();
        note(trace.path(), &mut anomalies);
        let rows = anomalies.into_rows().into_iter();
        rows.map(|row| row.detail).collect()
    }

    #[test]
    fn only_an_end_is_told() {
        assert_eq!(
            noted("{\"code\": 3}"),
            ["its command ended with exit code 3"]
        );
        assert_eq!(noted("{\"signal\": 9}"), ["its command ended by signal 9"]);
        for other in [
            "",
            "{}",
            "{\"code\": 300}",
            "[1]",
            "\u{1b}[2J",
            &"9".repeat(9000),
        ] {
            assert_eq!(noted(other), [""; 0], "{other}");
        }
        let mut anomalies = Anomalies::default();
        note(Path::new("/nonexistent"), &mut anomalies);
        assert!(anomalies.into_rows().is_empty());
    }
}
