//! The table of baselines of the simulated machine: the time of each call when nobody is late.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

/// Largest messages in the table, bytes: 2 to this power.
const LARGEST: u32 = 27;
const GROUPS: [u32; 3] = [2, 4, 8];
/// Average duration of a call without waiting, ns.
const CALL: f64 = 150.0;
/// Time of a message, and what each byte adds, ns.
const WAY: (f64, f64) = (1_500.0, 0.1);

/// Duration of a call with this many bytes, ns; `eager_limit` in bytes.
fn time_ns(operation: &str, bytes: u64, eager_limit: u64) -> f64 {
    let way = |bytes: u64| CALL + WAY.0 + bytes as f64 * WAY.1;
    match operation {
        "MPI_Irecv" | "MPI_Isend" => CALL,
        "MPI_Send" if bytes <= eager_limit => CALL,
        // Half of the bytes arrive, half leave.
        "MPI_Sendrecv" | "MPI_Allreduce" | "MPI_Alltoall" => way(bytes / 2),
        _ => way(bytes),
    }
}

/// Writes the table.
///
/// # Errors
/// What the file system says.
pub fn write(path: &Path, eager_limit: u64) -> Result<()> {
    let sizes: Vec<u64> = [0]
        .into_iter()
        .chain((0..=LARGEST).map(|p| 1 << p))
        .collect();
    let entry = |operation: &str, group: u32| {
        let points = sizes.iter().map(|&bytes| {
            let time_s = time_ns(operation, bytes, eager_limit) / 1e9;
            json!({"bytes": bytes, "time_s": time_s})
        });
        let points: Vec<_> = points.collect();
        json!({"operation": operation, "group_size": group, "points": points})
    };
    let messages = [
        "MPI_Send",
        "MPI_Recv",
        "MPI_Sendrecv",
        "MPI_Isend",
        "MPI_Irecv",
    ];
    // These count no bytes.
    let waits = ["MPI_Wait", "MPI_Waitall", "MPI_Barrier"];
    let collectives = ["MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Alltoall"];
    let mut entries: Vec<_> = messages.iter().map(|name| entry(name, 2)).collect();
    for group in GROUPS {
        let calls = waits.iter().chain(&collectives);
        entries.extend(calls.map(|name| entry(name, group)));
    }
    let table = json!({
        "schema": "laggard-baseline/1",
        "description": "the machine of generated programs",
        "entries": entries,
    });
    fs::write(path, serde_json::to_string(&table)?)?;
    Ok(())
}
