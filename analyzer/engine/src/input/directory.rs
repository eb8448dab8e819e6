//! A trace directory, or an archive, as the commands see it: opened whole, by one process.

mod anomalies;

use std::path::Path;

use anyhow::Result;
use laggard_comm::Serial;
use laggard_report::{Anomaly, AnomalySeverity};
use laggard_trace::{Location, ProfileEntry};

use super::{import, open};
use crate::basics::anomaly;
use crate::basics::anomaly::{Anomalies, Level};
use crate::clock::ClockMap;

pub use anomalies::{merge_anomalies, of_location};

/// The directory of a trace: of an archive, that of its anchor file.
pub fn of(trace: &Path) -> &Path {
    match import::is_archive(trace) {
        true => trace.parent().unwrap_or(Path::new("")),
        false => trace,
    }
}

/// All locations of a run.
pub struct Trace {
    /// By rank and thread.
    pub locations: Vec<TracedLocation>,
    /// Size of `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// Program and arguments of the first location.
    pub program: Vec<String>,
    /// Sorted.
    pub hosts: Vec<String>,
    /// Of the first location that knows it.
    pub mpi_library: Option<String>,
    /// Largest error of the clock comparison between two locations, ns.
    pub clock_error_ns: u64,
    /// From the first call to the end of the last, ns.
    pub wall_ns: i64,
    /// What is odd about the files, the worst first.
    pub anomalies: Vec<Anomaly>,
}

/// One location and its clock.
pub struct TracedLocation {
    /// The file.
    pub location: Location,
    /// Host name.
    pub host: String,
    clock: ClockMap,
}

impl TracedLocation {
    /// Time since the start of the run, ns.
    pub fn ns(&self, ticks: u64) -> i64 {
        self.clock.ns(ticks)
    }

    /// Length of so many ticks, ns.
    pub fn length_ns(&self, ticks: u64) -> f64 {
        self.clock.length_ns(ticks)
    }

    /// The runtime profile: as recorded, or summed up from the events of a file that
    /// was not closed.
    pub fn profile(&self) -> Vec<ProfileEntry> {
        open::profile_of(&self.location)
    }
}

impl Trace {
    /// Opens a directory or an archive. Files that cannot be used are anomalies as long as others
    /// can; files of two runs, or none at all, are an error.
    pub fn open(directory: &Path) -> Result<Trace> {
        laggard_comm::signals::watch_files();
        let mut found = Anomalies::default();
        let opened = open::open(&Serial, directory, &mut found)?;
        let spans = || {
            let spans = opened.spans.iter();
            spans.map(|(key, span)| (opened.clocks.of(*key), *span))
        };
        let zero = spans().map(|(clock, span)| clock.ns(span.0)).min();
        let zero = zero.unwrap_or(0);
        let ends = spans().map(|(clock, span)| clock.ns(span.1)).max();
        let wall_ns = ends.unwrap_or(zero).saturating_sub(zero);
        let host = |location: &Location| opened.host_of(location.header.rank).to_owned();
        let hosts: Vec<String> = opened.locations.iter().map(host).collect();
        // One process holds all.
        let locations = opened.locations.into_iter().zip(&opened.own).zip(hosts);
        let locations = locations.map(|((location, (key, _)), host)| TracedLocation {
            location,
            host,
            clock: opened.clocks.of(*key).shifted(zero),
        });
        Ok(Trace {
            locations: locations.collect(),
            ranks: opened.agent_of.len() as u32,
            program: opened.run.program,
            hosts: opened.host_names,
            mpi_library: opened.run.mpi_library,
            clock_error_ns: opened.clocks.error_ns(),
            wall_ns,
            anomalies: merge_anomalies(found.into_rows().into_iter().map(Anomaly::from).collect()),
        })
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
