//! The directory of a trace, and anomalies of its files.

mod anomalies;

use std::path::Path;

use laggard_report::{Anomaly, AnomalySeverity};

use super::import;
use crate::basics::anomaly;
use crate::basics::anomaly::Level;

pub use anomalies::{merge_anomalies, of_location};

/// The directory of a trace; for an archive, that of its anchor file.
pub fn of(trace: &Path) -> &Path {
    match import::is_archive(trace) {
        true => trace.parent().unwrap_or(Path::new("")),
        false => trace,
    }
}

impl From<anomaly::Anomaly> for Anomaly {
    fn from(found: anomaly::Anomaly) -> Anomaly {
        Anomaly {
            id: found.id,
            severity: match found.level {
                Level::Info => AnomalySeverity::Info,
                Level::Warning => AnomalySeverity::Warning,
                Level::Error => AnomalySeverity::Error,
            },
            count: found.count.max(1),
            detail: found.detail,
            origin: found.origin,
        }
    }
}
