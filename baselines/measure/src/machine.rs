//! The machine that is measured.

use std::collections::BTreeMap;

use anyhow::Result;
use laggard_baselines::Fingerprint;
use laggard_comm::{self as comm, Filter, Job};
use serde::{Deserialize, Serialize};

/// Sets options of libraries for measuring, before they are initialised.
pub fn prepare(shmem: bool) {
    let set = |name: &str, value: &str| {
        if std::env::var_os(name).is_none() {
            // SAFETY: there is no other thread yet.
            unsafe { std::env::set_var(name, value) };
        }
    };
    // As Open MPI does by itself if it knows of too few cores.
    let yields = if comm::is_crowded() { "1" } else { "0" };
    set(comm::waiting::OPTION, yields);
    if shmem {
        // With them shmem_finalize of Open MPI 4.1.4 fails on Debian 12.
        set("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0");
    }
}

/// What may differ between ranks.
#[derive(Serialize, Deserialize)]
struct Differing {
    /// Processors, hosts and network adapters.
    lists: [Vec<String>; 3],
    /// The least of all hosts.
    cores: u32,
    /// Whether any is.
    is_crowded: bool,
}

impl Filter for Differing {
    fn merge(&mut self, other: Differing) {
        for (own, more) in self.lists.iter_mut().zip(other.lists) {
            own.extend(more);
            own.sort();
            own.dedup();
        }
        self.cores = self.cores.min(other.cores);
        self.is_crowded |= other.is_crowded;
    }
}

/// The machine of the whole job, at rank 0; without meaning on the others. Collective.
///
/// # Errors
/// Properties that cannot be packed.
pub fn gather(job: &dyn Job, own: &BTreeMap<&'static str, String>) -> Result<Fingerprint> {
    let value = |name: &str| own.get(name).cloned().unwrap_or_default();
    let list = |name: &str| Vec::from_iter(own.get(name).cloned());
    let mine = Fingerprint {
        cpu: list("cpu"),
        mpi_library: value("mpi_library"),
        hosts: list("host"),
        network: network(),
        cores: comm::cores() as u32,
        ranks: job.agents() as u32,
        oversubscribed: comm::is_crowded(),
    };
    let lists = [mine.cpu.clone(), mine.hosts.clone(), mine.network.clone()];
    let differing = Differing {
        lists,
        cores: mine.cores,
        is_crowded: mine.oversubscribed,
    };
    let Some(merged) = comm::merge_up(job, differing)? else {
        return Ok(mine);
    };
    let [cpu, hosts, network] = merged.lists;
    Ok(Fingerprint {
        cpu,
        hosts,
        network,
        cores: merged.cores,
        oversubscribed: merged.is_crowded,
        ..mine
    })
}

/// Most bytes of the system's description of an adapter.
const MOST_BYTES: u64 = 1 << 16;

/// Network adapters of this host: cluster adapters, else those that carry TCP, with the rate in
/// Mbit/s if known.
fn network() -> Vec<String> {
    let names = |directory: &str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let fast = names("/sys/class/infiniband");
    if !fast.is_empty() {
        return fast;
    }
    let tell = |name: String| {
        let read = |file: &str| {
            let path = format!("/sys/class/net/{name}/{file}");
            let text = laggard_files::read(path.as_ref(), MOST_BYTES).unwrap_or_default();
            String::from_utf8_lossy(&text).trim().to_owned()
        };
        // Virtual adapters have no device behind them.
        let is_device = std::path::Path::new(&format!("/sys/class/net/{name}/device")).exists();
        if !is_device || read("operstate") != "up" {
            return None;
        }
        match read("speed").parse::<u64>() {
            Ok(rate) => Some(format!("{name} {rate} Mbit/s")),
            Err(_) => Some(name),
        }
    };
    names("/sys/class/net")
        .into_iter()
        .filter_map(tell)
        .collect()
}
