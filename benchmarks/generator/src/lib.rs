//! Traces of programs that never ran, as the collector would write them, and beside them the
//! findings that an analysis must report.
//!
//! *How.* A [`Program`] is a script of calls for each rank. A simulation runs all ranks in the
//! order of time, with [`Fault`]s. It knows both ends of every message and all members of every
//! collective. Calls go to the files through the crate that the collector writes with. Losses are
//! booked from the catalogue's specification, and become [`Expected`]. The same [`Settings`] give
//! the same bytes.
//!
//! *Size.* Any number of ranks. Files are open only while a buffer is written to them, and memory
//! grows with the ranks, not with the calls.
//!
//! *Not simulated.* Real networks and libraries. A message takes a fixed time plus a time per byte.
//! Messages larger than the eager limit wait for their receive.

mod check;
mod clock;
mod expected;
mod faults;
mod grid;
mod ledger;
mod location;
mod op;
mod programs;
mod random;
mod rank;
mod site;
mod space;
mod world;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use laggard_trace::RUN_FILE;

pub use check::{differences, place_of};
pub use clock::Skew;
pub use expected::{Cause, Expected, FILE as EXPECTED_FILE, Finding};
pub use faults::{Fault, SYNTAX as FAULT_SYNTAX};
pub use programs::Program;
pub use site::Place;

use clock::{HostClock, START_UNIX_NS};
use location::{Location, Run};
use random::Random;
use rank::Rank;
use world::World;

/// How long the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Steps of the program.
    Steps(u64),
    /// Calls of all ranks together, rounded to whole steps.
    Calls(u64),
}

/// What a trace should be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the ranks do.
    pub program: Program,
    /// Ranks, from 1.
    pub ranks: u32,
    /// Ranks on each host; 0 = all on one.
    pub ranks_per_host: u32,
    /// How long the program is.
    pub length: Length,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Time of a message without the part for its bytes, ns.
    pub latency_ns: u64,
    /// Messages up to this many bytes are buffered. The sender of a larger one waits.
    pub eager_limit: u64,
    /// What a rank computes in a step, ns.
    pub computation_ns: u64,
    /// Whether halo exchanges have no borders.
    pub periodic: bool,
    /// Faults.
    pub faults: Vec<Fault>,
    /// How clocks differ.
    pub skew: Skew,
    /// Another seed gives other times.
    pub seed: u64,
    /// Whether to write the expectations.
    pub expectations: bool,
    /// Whether ranks of a host share a file.
    pub file_per_node: bool,
}

impl Settings {
    /// Default settings for a program on this many ranks.
    pub fn new(program: Program, ranks: u32, length: Length) -> Settings {
        Settings {
            program,
            ranks,
            ranks_per_host: 0,
            length,
            message_bytes: 4096,
            latency_ns: 1_500,
            eager_limit: 65_536,
            computation_ns: 20_000,
            periodic: false,
            faults: Vec::new(),
            skew: Skew::default(),
            seed: 1,
            expectations: true,
            file_per_node: false,
        }
    }

    /// Largest number of ranks that share a host.
    fn ranks_on_host(&self) -> u32 {
        match self.ranks_per_host {
            0 => self.ranks,
            some => some,
        }
    }

    fn hosts(&self) -> u32 {
        self.ranks.div_ceil(self.ranks_on_host())
    }

    /// Why the settings are impossible, if they are.
    fn problem(&self) -> Option<String> {
        let ranks = self.ranks;
        if ranks == 0 {
            return Some("no ranks".to_owned());
        }
        let beyond = |fault: &&Fault| fault.rank().is_some_and(|rank| rank >= ranks);
        let fault = self.faults.iter().find(beyond)?;
        Some(format!("{fault}: there are ranks 0 to {} only", ranks - 1))
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Calls in the trace.
    pub calls: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes a trace into `directory`, which is created and must not hold a trace.
///
/// # Errors
/// What the file system says, contradicting settings, or a program that comes to a standstill with
/// them (sends that wait for each other).
pub fn generate(settings: &Settings, directory: &Path) -> io::Result<Written> {
    if let Some(problem) = settings.problem() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    fs::create_dir_all(directory)?;
    let steps = match settings.length {
        Length::Steps(steps) => steps,
        Length::Calls(calls) => settings.program.steps(settings, calls),
    };
    let script = settings.program.script(settings, steps);
    let sites = [&site::COMMON[..], script.sites()].concat();
    let ranks = begin(settings, directory, &sites)?;
    let grid = settings.program.grid(settings);
    let mut world = World::new(settings, script, sites, steps, grid, ranks);
    world.run()?;
    if let Some(expected) = Expected::new(&world, steps) {
        expected.write(directory)?;
    }
    Ok(world.written)
}

/// Claims the directory, and begins the files of all ranks.
fn begin(settings: &Settings, directory: &Path, sites: &[site::Site]) -> io::Result<Vec<Rank>> {
    let (seed, ranks) = (settings.seed, settings.ranks);
    let id = location::run_id(Random::part(seed, u64::from(ranks)).next());
    let run = Run {
        directory,
        program: settings.program.name(),
        ranks,
        id,
        sites,
        file_per_node: settings.file_per_node,
    };
    let text = format!(
        "{{\n  \"format\": 1,\n  \"run_id\": \"{}\",\n  \"program\": \"{}\",\n  \
         \"arguments\": [],\n  \"ranks\": {ranks},\n  \"mpi\": \"none\",\n  \
         \"start_unix_ns\": {START_UNIX_NS}\n}}\n",
        id.map(|byte| format!("{byte:02x}")).concat(),
        run.program,
    );
    fs::File::create_new(directory.join(RUN_FILE))?.write_all(text.as_bytes())?;
    let clock = |host| Rc::new(HostClock::new(&settings.skew, host, seed));
    let clocks: Vec<_> = (0..settings.hosts()).map(clock).collect();
    let ranks = (0..ranks).map(|rank| {
        let host = rank / settings.ranks_on_host();
        let leads = rank % settings.ranks_on_host() == 0;
        let location = Location::create(&run, rank, clocks[host as usize].clone(), host, leads)?;
        Ok(Rank::new(
            location,
            Random::part(seed, (1 << 32) + u64::from(rank)),
        ))
    });
    ranks.collect()
}

#[cfg(test)]
mod tests;
