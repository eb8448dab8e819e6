//! The collector's records of this rank's measurements.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use laggard_comm::Filter;
use laggard_trace::calls::number::MPI_Pcontrol;
use laggard_trace::{Decoder, Location, file_name, flags};
use serde::{Deserialize, Serialize};

use super::plan::Own;
use super::rounds;

/// Key of a time: the run, whether the first member or another spent it, the call, and its bytes as
/// profiles count them.
pub type Key = (u32, bool, u16, u64);

/// Durations by repetition, ns; of several members, the slowest one's.
pub type Series = BTreeMap<Key, Vec<f32>>;

/// Results from a rank's trace.
pub struct Recorded {
    /// Its times.
    pub series: Series,
    /// Values of properties, by name.
    pub properties: BTreeMap<&'static str, String>,
}

/// Names of the properties that describe the machine.
pub const PROPERTIES: [&str; 3] = ["cpu", "mpi_library", "host"];

/// Reads this rank's records of these runs. Its trace is not closed yet; readers accept that, as
/// from killed processes.
///
/// # Errors
/// No trace, or one without these runs.
pub fn read(directory: &Path, rank: u32, runs: &[Own]) -> Result<Recorded> {
    let path = directory.join(file_name(rank, 0));
    let location = Location::open(&path)
        .context("the collector recorded nothing; is it built for another MPI?")?;
    let ns = 1e9 / location.header.ticks_per_s.max(1) as f64;
    let mut series: BTreeMap<Key, Vec<(usize, f32)>> = BTreeMap::new();
    // Run, and number of the repetition in it, that is being read; marks come in order.
    let mut runs_left = runs.iter().filter(|own| own.count > 0);
    let (mut run, mut repetition) = (None::<&Own>, 0);
    let mut is_timed = false;
    for chunk in &location.chunks {
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            let signatures = location.definitions.signatures();
            let Some(signature) = signatures.get(event.signature as usize) else {
                continue;
            };
            if signature.operation == MPI_Pcontrol {
                is_timed = signature.parameter == rounds::BEGIN;
                if is_timed {
                    repetition += 1;
                    if run.is_none_or(|run| repetition > run.count) {
                        (run, repetition) = (runs_left.next(), 1);
                    }
                }
                continue;
            }
            let Some(run) = run.filter(|_| is_timed && !signature.has(flags::PART)) else {
                continue;
            };
            let bytes = event.send(signature).bytes + event.receive(signature).bytes;
            let key = (run.run, run.is_first, signature.operation, bytes);
            let length = (event.leave - event.enter) as f64 * ns;
            let times = series.entry(key).or_default();
            times.push((repetition, length as f32));
        }
    }
    if runs_left.next().is_some() || run.is_some_and(|run| repetition < run.count) {
        bail!(
            "{}: not all measurements were recorded; is there room in this directory?",
            path.display()
        );
    }
    let counts: BTreeMap<u32, usize> = runs.iter().map(|own| (own.run, own.count)).collect();
    let series = series.into_iter().filter_map(|(key, times)| {
        // Only calls that are made once in each repetition are measurements.
        let count = counts[&key.0];
        let numbers = times.iter().map(|(repetition, _)| *repetition);
        let is_regular = numbers.eq(1..=count) && count > rounds::WARM_UP;
        let counted = times.into_iter().skip(rounds::WARM_UP);
        is_regular.then(|| (key, counted.map(|(_, time)| time).collect()))
    });
    let series = series.collect();
    let value = |name: &&'static str| {
        let values = location.definitions.properties(name);
        Some((*name, values.into_iter().next()?))
    };
    Ok(Recorded {
        series,
        properties: PROPERTIES.iter().filter_map(value).collect(),
    })
}

/// Of several members, the slowest one's times.
#[derive(Serialize, Deserialize)]
pub struct Slowest(pub Series);

impl Filter for Slowest {
    fn merge(&mut self, other: Slowest) {
        for (key, times) in other.0 {
            let own = self.0.entry(key).or_default();
            own.resize(own.len().max(times.len()), 0.0);
            let pairs = own.iter_mut().zip(times);
            pairs.for_each(|(own, time)| *own = own.max(time));
        }
    }
}
