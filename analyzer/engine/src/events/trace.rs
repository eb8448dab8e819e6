//! A trace as its files: the records of each location, and their clocks.

use std::path::Path;

use anyhow::Result;
use laggard_comm::{Job, Serial};
use laggard_report::Anomaly;
use laggard_trace::{Location, ProfileEntry};

use crate::basics::anomaly::Anomalies;
use crate::clock::ClockMap;
use crate::input::directory::merge_anomalies;
use crate::input::open::{self, Opened};
use crate::input::profile::profile_of;
use crate::timeline::repair::Timeline;

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
    /// Anomalies of the files, the worst first.
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

    /// Length of `ticks` ticks, ns.
    pub fn length_ns(&self, ticks: u64) -> f64 {
        self.clock.length_ns(ticks)
    }

    /// The runtime profile: as recorded, or the sums of the events if the file was not closed.
    pub fn profile(&self) -> Vec<ProfileEntry> {
        profile_of(&self.location)
    }
}

impl Trace {
    /// Opens a directory or an archive. Times are those of a report.
    ///
    /// # Errors
    /// Files of two runs, or no usable file. Other problems are anomalies.
    pub fn open(directory: &Path) -> Result<Trace> {
        let (opened, anomalies) = open_share(&Serial, directory)?;
        let timeline = super::timeline(&Serial, &opened)?;
        Ok(Trace::new(opened, &timeline, anomalies))
    }

    /// Opens the trace at once, whatever its length: the clocks of hosts are not corrected.
    /// Durations are right; moments on different hosts are as right as measured.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn measured(directory: &Path) -> Result<Trace> {
        let (opened, anomalies) = open_share(&Serial, directory)?;
        let timeline = Timeline::new(&opened);
        Ok(Trace::new(opened, &timeline, anomalies))
    }

    /// The trace of `opened`, with these clocks.
    pub(super) fn new(opened: Opened, timeline: &Timeline, anomalies: Vec<Anomaly>) -> Trace {
        let clocks = timeline.own(&opened);
        let wall_ns = timeline.end(&opened);
        let host = |location: &Location| opened.host_of(location.header.rank).to_owned();
        let hosts: Vec<String> = opened.locations.iter().map(host).collect();
        // One process holds all locations.
        let locations = opened.locations.into_iter().zip(clocks).zip(hosts);
        let locations = locations.map(|((location, (clock, _)), host)| TracedLocation {
            location,
            host,
            clock,
        });
        Trace {
            locations: locations.collect(),
            ranks: opened.agent_of.len() as u32,
            program: opened.run.program,
            hosts: opened.host_names,
            mpi_library: opened.run.mpi_library,
            clock_error_ns: opened.clocks.error_ns(),
            wall_ns,
            anomalies,
        }
    }
}

/// Opens this agent's locations. Also gives the anomalies that it found, the worst first. Collective.
pub(super) fn open_share(job: &dyn Job, directory: &Path) -> Result<(Opened, Vec<Anomaly>)> {
    open_share_as(job, directory, &[])
}

/// The same, where it is known which agent holds a rank.
pub(super) fn open_share_as(
    job: &dyn Job,
    directory: &Path,
    held: &[u32],
) -> Result<(Opened, Vec<Anomaly>)> {
    laggard_comm::signals::watch_files();
    let mut found = Anomalies::default();
    let opened = open::open_as(job, directory, false, held, &mut found)?;
    let anomalies = found.into_rows().into_iter().map(Anomaly::from);
    Ok((opened, merge_anomalies(anomalies.collect())))
}
