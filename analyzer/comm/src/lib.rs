//! Communication of the processes of a job, and how the job ends. Nothing outside this crate knows
//! whether there is an MPI.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::ffi::CStr;

use anyhow::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

mod family;
pub mod installed;
pub mod library;
mod liveness;
mod mpi_job;
mod serial;
pub mod signals;
pub mod waiting;

pub use family::Family;
pub use mpi_job::MpiJob;
pub use serial::Serial;

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

/// What the analysis needs from a job of agents. All calls are collective.
///
/// Every message between agents goes through here, so the bytes are counted here.
pub trait Job {
    /// This agent's number; 0 is the head.
    fn agent(&self) -> usize;
    /// Agents in the job.
    fn agents(&self) -> usize;
    /// Sends `parcels[a]` to agent `a`; returns the parcels that the agents sent here.
    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
    /// Element-wise maximum over all agents.
    fn reduce_max(&self, values: &mut [u64]);
    /// Element-wise sum over all agents.
    fn reduce_sum(&self, values: &mut [u64]);
    /// Everybody's bytes, by agent.
    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>>;
    /// The head's bytes, everywhere.
    fn broadcast(&self, bytes: &mut Vec<u8>);
    /// Combines all agents' values up a binary tree; the result is at the head.
    fn tree(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Option<Vec<u8>>;
    /// Brings pieces of all agents to the head: one agent after the other, piece by piece, none of
    /// them empty. A piece is made when the head is ready for it. `next` makes this agent's pieces,
    /// `take` is called at the head. Collective.
    fn relay(&self, next: &mut dyn FnMut() -> Option<Vec<u8>>, take: &mut dyn FnMut(Vec<u8>));
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

/// Combines all agents' values up the tree; the result is at the head. Collective.
///
/// # Errors
/// A value that cannot be packed, or unpacked.
pub fn merge_up<T: Serialize + DeserializeOwned>(
    job: &dyn Job,
    mine: T,
    mut combine: impl FnMut(T, T) -> T,
) -> Result<Option<T>> {
    if job.agents() == 1 {
        return Ok(Some(mine));
    }
    let mut failed = None;
    let merged = job.tree(postcard::to_stdvec(&mine)?, &mut |a, b| {
        let unpacked =
            postcard::from_bytes(&a).and_then(|one| Ok((one, postcard::from_bytes(&b)?)));
        let packed = unpacked.and_then(|(one, other)| postcard::to_stdvec(&combine(one, other)));
        packed.unwrap_or_else(|error| {
            failed = Some(error);
            a
        })
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok(merged
        .map(|bytes| postcard::from_bytes(&bytes))
        .transpose()?)
}

/// The union of all agents' values, everywhere, ascending. Collective.
///
/// # Errors
/// As [`merge_up`].
pub fn union<T>(job: &dyn Job, own: Vec<T>) -> Result<Vec<T>>
where
    T: Ord + Serialize + DeserializeOwned,
{
    let sorted = |mut all: Vec<T>| {
        all.sort_unstable();
        all.dedup();
        all
    };
    let all = merge_up(job, sorted(own), |mut all, more| {
        all.extend(more);
        sorted(all)
    })?;
    let mut bytes = all.map_or(Ok(Vec::new()), |all| postcard::to_stdvec(&all))?;
    job.broadcast(&mut bytes);
    Ok(postcard::from_bytes(&bytes)?)
}

/// Makes an error of any agent an error of all: an agent's own, or the first agent's that has one.
/// Collective.
///
/// # Errors
/// That one.
pub fn agree<T>(job: &dyn Job, result: Result<T>) -> Result<T> {
    let told = result.as_ref().err().map(|error| format!("{error:#}"));
    for bytes in job.all_gather(postcard::to_stdvec(&told)?) {
        if let Some(message) = postcard::from_bytes::<Option<String>>(&bytes)? {
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
