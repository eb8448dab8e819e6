//! Traces of programs that never ran, as the collector would have written them.
//!
//! A [`World`] has one [`Location`] for each rank, and each location a clock of its
//! own; [`Program`]s advance those clocks so that times fit together: nobody leaves a
//! receive before the message can have come, nobody a collective before the last has
//! entered. The same [`Settings`] give the same calls and times.

mod location;
mod programs;
mod random;

use std::fs;
use std::io;
use std::path::Path;

use laggard_trace::RUN_FILE;

pub use location::{Location, TICKS_PER_S, ticks};
pub use programs::Program;
use random::Random;

/// Ticks that a call takes by itself, at least.
const CALL: u64 = ticks(100);
/// A message's way.
const LATENCY: u64 = ticks(1_500);
/// What a rank computes in a step, on average.
const COMPUTATION: u64 = ticks(20_000);
/// What the slow rank computes longer, per cent.
const SLOWNESS: u64 = 25;
/// Every how many steps of a rank, on average, something holds it up.
const DISTURBANCE: u64 = 64;

/// What a trace should be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Ranks, from 1.
    pub ranks: u32,
    /// Calls of all ranks together; it becomes the nearest number of whole steps.
    pub calls: u64,
    /// What the ranks do.
    pub program: Program,
    /// Another seed, other times.
    pub seed: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Calls in the trace.
    pub calls: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes a trace into `directory`, which is made and must not hold a trace.
///
/// # Errors
/// What the file system says.
pub fn generate(settings: &Settings, directory: &Path) -> io::Result<Written> {
    fs::create_dir_all(directory)?;
    let mut world = World::new(settings, directory)?;
    world.start();
    programs::run(&mut world, settings);
    world.finish()
}

/// The ranks of a program.
pub struct World {
    locations: Vec<Location>,
    random: Random,
}

impl World {
    fn new(settings: &Settings, directory: &Path) -> io::Result<World> {
        let ranks = settings.ranks;
        let identity = Random::new(settings.seed ^ u64::from(ranks)).next();
        let name = settings.program.name();
        let run_file = format!(
            "{{\n  \"format\": 1,\n  \"run_id\": \"{}\",\n  \"program\": \"{name}\",\n  \
             \"arguments\": [],\n  \"ranks\": {ranks},\n  \"mpi\": \"none\",\n  \
             \"start_unix_ns\": {}\n}}\n",
            location::run_id(identity)
                .map(|byte| format!("{byte:02x}"))
                .concat(),
            location::START_UNIX_NS,
        );
        let path = directory.join(RUN_FILE);
        fs::File::create_new(path)
            .and_then(|mut f| io::Write::write_all(&mut f, run_file.as_bytes()))?;
        let locations =
            (0..ranks).map(|rank| Location::create(directory, name, rank, ranks, identity));
        Ok(World {
            locations: locations.collect::<io::Result<_>>()?,
            random: Random::new(settings.seed),
        })
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.locations.len() as u32
    }

    /// MPI_Init on all ranks, at somewhat different times.
    fn start(&mut self) {
        for location in &mut self.locations {
            location.compute(ticks(1_000_000) + self.random.below(ticks(200_000)));
        }
        let init: Vec<u32> = self.locations.iter_mut().map(Location::init).collect();
        self.meet(&init);
    }

    /// Lets a rank compute for a step: some jitter, the slow rank longer, and now and
    /// then a disturbance.
    #[inline]
    fn compute(&mut self, rank: usize) {
        let jitter = self.random.below(COMPUTATION / 8);
        let mut work = COMPUTATION - COMPUTATION / 16 + jitter;
        if rank == self.locations.len() / 2 {
            work += COMPUTATION * SLOWNESS / 100;
        }
        if self.random.below(DISTURBANCE) == 0 {
            work += COMPUTATION / 2;
        }
        self.locations[rank].compute(work);
    }

    /// What a call takes by itself.
    #[inline]
    fn overhead(&mut self) -> u64 {
        CALL + self.random.below(CALL)
    }

    /// A call that waits for nobody; returns when it was entered.
    #[inline]
    fn call(&mut self, rank: usize, signature: u32) -> u64 {
        let overhead = self.overhead();
        let location = &mut self.locations[rank];
        let enter = location.now();
        location.call(signature, overhead);
        enter
    }

    /// A call that cannot end before `arrival`.
    #[inline]
    fn call_until(&mut self, rank: usize, signature: u32, arrival: u64) {
        let overhead = self.overhead();
        let location = &mut self.locations[rank];
        let waiting = arrival.saturating_sub(location.now());
        location.call(signature, waiting + overhead);
    }

    /// A collective that nobody leaves before the last has entered. `signatures` by rank.
    fn meet(&mut self, signatures: &[u32]) {
        let last = self.locations.iter().map(Location::now).max().unwrap_or(0);
        for (rank, &signature) in signatures.iter().enumerate() {
            self.call_until(rank, signature, last + LATENCY);
        }
    }

    /// A collective in which all but rank 0 wait for its data.
    fn distribute(&mut self, signatures: &[u32]) {
        let sent = self.call(0, signatures[0]);
        for (rank, &signature) in signatures.iter().enumerate().skip(1) {
            self.call_until(rank, signature, sent + LATENCY);
        }
    }

    /// A collective in which rank 0 waits for the data of all.
    fn collect_at_root(&mut self, signatures: &[u32]) {
        let mut last = self.locations[0].now();
        for (rank, &signature) in signatures.iter().enumerate().skip(1) {
            last = last.max(self.call(rank, signature));
        }
        self.call_until(0, signatures[0], last + LATENCY);
    }

    fn finish(mut self) -> io::Result<Written> {
        let finalize: Vec<u32> = self.locations.iter_mut().map(Location::finalize).collect();
        self.meet(&finalize);
        let mut written = Written { calls: 0, bytes: 0 };
        for location in self.locations {
            let (calls, bytes) = location.close()?;
            written.calls += calls;
            written.bytes += bytes;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
