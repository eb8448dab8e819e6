//! Communication of the processes of a job, and how the job ends. Nothing outside this crate knows
//! whether there is an MPI.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::ffi::CStr;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

mod endings;
mod family;
pub mod filters;
pub mod installed;
pub mod library;
mod liveness;
mod mpi_job;
mod serial;
pub mod signals;
mod tree;
pub mod waiting;

pub use endings::Endings;
pub use family::Family;
pub use filters::Filter;
pub use liveness::is_gone;
pub use mpi_job::MpiJob;
pub use serial::Serial;
pub use tree::{Members, Tree};

/// Agents below each one in a tree, if nobody says otherwise: as measured (`laggard-benchmarks overlay`).
pub const FAN_OUT: usize = 8;

/// Messages of an agent to others. A collective operation counts this agent's contribution once for
/// each agent that gets it from here, however the MPI library passes it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// A parcel, and the agent that sends or gets it.
pub type Letter = (usize, Vec<u8>);
/// Work of an agent in a conversation: see [`Job::converse`].
pub type Talk<'t> = dyn FnMut(Option<Letter>, &mut Vec<Letter>) -> bool + 't;

/// What a message between agents is for. Those of one kind from the same agent come in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Of an exchange.
    Parcel,
    /// On its way up or down the tree.
    Tree,
    /// One of many pieces for the head, or a request for one.
    Relay,
    /// Of a conversation. Successive ones differ: some agents may have begun the next one.
    Letter,
    /// See [`Letter`](Kind::Letter).
    OtherLetter,
    /// A question to a tree of agents, or a part of the answer.
    Question,
    /// A packet that is carried for others.
    Carried,
}

/// What the analysis needs from a job of agents. All calls are collective.
///
/// Every message between agents goes through here, so the bytes are counted here.
pub trait Job {
    /// This agent's number; 0 is the head.
    fn agent(&self) -> usize;
    /// Agents in the job.
    fn agents(&self) -> usize;
    /// Sends bytes to another agent, which receives them.
    fn send(&self, to: usize, kind: Kind, bytes: &[u8]);
    /// The next bytes of this kind that another agent sends here.
    fn receive(&self, from: usize, kind: Kind) -> Vec<u8>;
    /// Sends `parcels[a]` to agent `a`; returns the parcels that the agents sent here.
    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
    /// Element-wise maximum over all agents.
    fn reduce_max(&self, values: &mut [u64]);
    /// Element-wise sum over all agents.
    fn reduce_sum(&self, values: &mut [u64]);
    /// Everybody's bytes, by agent.
    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
        self.exchange(vec![mine; self.agents()])
    }
    /// The head's bytes, everywhere.
    fn broadcast(&self, bytes: &mut Vec<u8>);
    /// Brings pieces of all agents to the head: one agent after the other, piece by piece, none of
    /// them empty. A piece is made when the head is ready for it. `next` makes this agent's pieces,
    /// `take` is called at the head. Collective.
    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>)) {
        relay(self, next, take);
    }
    /// A conversation: agents send each other parcels when they have them, and work on with those
    /// that come. `work` gets a parcel and who sent it, at first none. It adds what is to be sent,
    /// with the receivers, and says whether it needs more. Nobody may send what the receiver does
    /// not need. Collective; after the next collective call all have ended it.
    fn converse(&self, work: &mut Talk<'_>);
    /// Messages and bytes that this agent has sent to others so far.
    fn sent(&self) -> Sent;
    /// Ends all agents after an error that only this one saw.
    fn abort(&self, code: i32) -> !;
}

/// See [`Job::relay`].
fn relay<J: Job + ?Sized>(
    job: &J,
    next: &mut dyn FnMut() -> Option<Vec<u8>>,
    take: &mut dyn FnMut(Vec<u8>),
) {
    if job.agent() != 0 {
        loop {
            // Waits until the head has room for it.
            job.receive(0, Kind::Relay);
            let piece = next().unwrap_or_default();
            job.send(0, Kind::Relay, &piece);
            if piece.is_empty() {
                return;
            }
        }
    }
    while let Some(piece) = next() {
        take(piece);
    }
    for agent in 1..job.agents() {
        loop {
            job.send(agent, Kind::Relay, &[]);
            match job.receive(agent, Kind::Relay) {
                piece if piece.is_empty() => break,
                piece => take(piece),
            }
        }
    }
}

/// The tree of all agents of a job.
pub fn tree<J: Job + ?Sized>(job: &J) -> Tree {
    Tree::new(&Members::all(job.agents()), FAN_OUT, |_| false)
}

/// Merges all agents' values on their way up the tree; the whole is at the head. Nobody may be missing, unlike
/// in answers to questions: an analysis needs each rank. Collective.
///
/// # Errors
/// A value that cannot be packed, or unpacked.
pub fn merge_up<T>(job: &dyn Job, mut mine: T) -> Result<Option<T>>
where
    T: Filter + Serialize + DeserializeOwned,
{
    let (me, tree) = (job.agent(), tree(job));
    // The others wait for a message even after an error.
    let mut read = Ok(());
    for child in tree.children(me) {
        match unpacked(child, &job.receive(child, Kind::Tree)) {
            Ok(part) => mine.merge(part),
            Err(error) => read = Err(error),
        }
    }
    let Some(parent) = tree.parent(me) else {
        return read.map(|()| Some(mine));
    };
    let packed = postcard::to_stdvec(&mine);
    job.send(parent, Kind::Tree, packed.as_deref().unwrap_or_default());
    read?;
    packed?;
    Ok(None)
}

/// The head's value, everywhere. Collective.
///
/// # Errors
/// As [`merge_up`].
pub fn from_head<T>(job: &dyn Job, value: T) -> Result<T>
where
    T: Serialize + DeserializeOwned,
{
    if job.agents() == 1 {
        return Ok(value);
    }
    let mut bytes = match job.agent() {
        0 => postcard::to_stdvec(&value)?,
        _ => Vec::new(),
    };
    job.broadcast(&mut bytes);
    unpacked(0, &bytes)
}

/// What an agent said.
///
/// # Errors
/// It is something else.
pub fn unpacked<T: DeserializeOwned>(agent: usize, bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).with_context(|| format!("what agent {agent} said cannot be read"))
}

/// Values in order, each once.
#[derive(Serialize, Deserialize)]
struct Union<T>(Vec<T>);

impl<T: Ord> Union<T> {
    fn new(mut all: Vec<T>) -> Union<T> {
        all.sort_unstable();
        all.dedup();
        Union(all)
    }
}

impl<T: Ord> Filter for Union<T> {
    fn merge(&mut self, other: Self) {
        let mut all = std::mem::take(&mut self.0);
        all.extend(other.0);
        *self = Union::new(all);
    }
}

/// The union of all agents' values, everywhere, ascending. Collective.
///
/// # Errors
/// As [`merge_up`].
pub fn union<T>(job: &dyn Job, own: Vec<T>) -> Result<Vec<T>>
where
    T: Ord + Serialize + DeserializeOwned,
{
    let all = merge_up(job, Union::new(own))?;
    from_head(job, all.map_or(Vec::new(), |all| all.0))
}

/// Makes an error of any agent an error of all: an agent's own, or the first agent's that has one.
/// Collective.
///
/// # Errors
/// That one.
pub fn agree<T>(job: &dyn Job, result: Result<T>) -> Result<T> {
    let told = result.as_ref().err().map(|error| format!("{error:#}"));
    let all = job.all_gather(postcard::to_stdvec(&told)?);
    for (agent, bytes) in all.iter().enumerate() {
        if let Some(message) = unpacked::<Option<String>>(agent, bytes)? {
            return result.and(Err(anyhow::Error::msg(message)));
        }
    }
    result
}

/// Element-wise minimum over all agents.
pub fn reduce_min(job: &dyn Job, values: &mut [u64]) {
    values.iter_mut().for_each(|v| *v = !*v);
    job.reduce_max(values);
    values.iter_mut().for_each(|v| *v = !*v);
}

/// Whether this process was started by an MPI launcher.
pub fn launched_by_mpi() -> bool {
    !Family::of_launcher().is_empty()
}

/// The number of this process in the job, from the launcher.
pub fn launched_number() -> Option<u32> {
    let names = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
    let ranks = names.iter().filter_map(|name| std::env::var(name).ok());
    let mut ranks = ranks.filter_map(|rank| rank.trim().parse().ok());
    ranks.next()
}

/// Processes that the launcher started together; 1 if it does not say.
pub fn launched() -> usize {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
        .unwrap_or(1)
}

/// Largest resident memory of this process so far, bytes.
pub fn peak_memory() -> u64 {
    // SAFETY: an all-zero `rusage` is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    usage.ru_maxrss as u64 * 1024
}

/// Agents of the job on this host, from the launcher.
pub fn local_agents() -> usize {
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
        .unwrap_or(1)
        .max(1)
}

/// Name of this host.
pub fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the length is the buffer's, whose last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    laggard_files::printable(&name.to_string_lossy()).into_owned()
}

/// Cores of this host.
pub fn cores() -> usize {
    // SAFETY: a query without pointers.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(cores).unwrap_or(1).max(1)
}

/// Whether this host has more processes of the job than cores.
pub fn is_crowded() -> bool {
    local_agents() > cores()
}
