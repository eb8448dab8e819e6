//! Members of groups: who synchronised with whom in a collective.

use anyhow::Result;
use laggard_comm::Job;
use laggard_trace::ALL_PES;
use rustc_hash::FxHashMap;

use crate::basics::intern::Interner;
use crate::input::open::Opened;
use crate::judge::profile::sizes;

/// Members of the groups of this agent's locations.
#[derive(Default)]
pub struct Members {
    /// By the agent's number of a group: world ranks, ascending. Groups of all ranks are empty;
    /// unknown ones are not there.
    of: FxHashMap<u32, Vec<u32>>,
}

impl Members {
    /// Gathers the members from the files that name them. Collective.
    ///
    /// # Errors
    /// Messages that cannot be read.
    pub fn gather(job: &dyn Job, opened: &Opened, numbers: &Interner<u64>) -> Result<Members> {
        let mut members = Members::default();
        let mut own: Vec<(u64, Vec<u32>)> = Vec::new();
        let mut parents: Vec<(u64, u64)> = Vec::new();
        let ranks = opened.agent_of.len();
        for location in &opened.locations {
            let definitions = &location.definitions;
            let between = definitions.communicators.iter().filter(|c| c.kind != 0);
            let between: Vec<u64> = between.map(|communicator| communicator.id).collect();
            for (id, size) in sizes(location) {
                let is_all = size as usize >= ranks && !between.contains(&id) || id == ALL_PES;
                let number = numbers.find(&id).filter(|_| is_all);
                members.of.extend(number.map(|number| (number, Vec::new())));
            }
            // Only some files name the members, of an intercommunicator each its own group.
            for communicator in &definitions.communicators {
                let both = communicator
                    .members
                    .iter()
                    .chain(&communicator.remote_members);
                let both: Vec<u32> = both.copied().collect();
                if !both.is_empty() && (both.len() < ranks || communicator.kind != 0) {
                    own.push((communicator.id, both));
                }
            }
            let handles = definitions.group_handles.iter();
            parents.extend(handles.map(|handle| (handle.0, handle.1)));
        }
        for bytes in job.all_gather(postcard::to_stdvec(&own)?) {
            for (id, ranks) in postcard::from_bytes::<Vec<(u64, Vec<u32>)>>(&bytes)? {
                let number = numbers.find(&id);
                let known = number.and_then(|number| members.of.get(&number));
                if let Some(number) = number.filter(|_| known.is_none_or(|all| !all.is_empty())) {
                    members.of.entry(number).or_default().extend(ranks);
                }
            }
        }
        for ranks in members.of.values_mut() {
            ranks.sort_unstable();
            ranks.dedup();
        }
        // Windows and files have the members of their communicators.
        for (id, communicator) in parents {
            let (number, parent) = (numbers.find(&id), numbers.find(&communicator));
            if let (Some(number), Some(parent)) = (number, parent)
                && let Some(ranks) = members.of.get(&parent).cloned()
            {
                members.of.entry(number).or_insert(ranks);
            }
        }
        Ok(members)
    }

    /// Whether a group is known to have all ranks.
    pub fn is_all(&self, group: u32) -> bool {
        self.of.get(&group).is_some_and(Vec::is_empty)
    }

    /// Whether a rank is known to be in a group.
    pub fn has(&self, group: u32, rank: u32) -> bool {
        let of = self.of.get(&group);
        of.is_some_and(|ranks| ranks.is_empty() || ranks.binary_search(&rank).is_ok())
    }
}
