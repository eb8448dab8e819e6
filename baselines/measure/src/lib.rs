//! Measures what operations cost on this machine: `laggard baseline`.
//!
//! *Purpose.* A [`laggard_baselines::Table`] with the time of each call when nobody is late.
//!
//! *Data flow.* The job has the collector preloaded. Rank 0 names one cell after
//! the other: a benchmark (`benchmarks`), a group, a size (`plan`). Its members repeat it, and
//! begin each repetition together (`rounds`). Every rank then reads its own trace (`recorded`), the
//! slowest member of each repetition counts (`merge`), and rank 0 makes the table (`tabulate`). The
//! analysis of a user's program sees the same records: the same clock at the same place, the same
//! signatures, the same count of bytes.
//!
//! *Constraints.* The collector also records the messages between measurements. Marks in the trace
//! enclose the timed part, which holds only measured calls.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod benchmarks;
mod clock;
mod command;
mod cores;
mod crowded;
mod groups;
mod machine;
mod offset;
mod plan;
mod recorded;
mod rounds;
mod tabulate;
mod trace;
mod world;

use anyhow::{Result, bail};
use benchmarks::{Benchmark, Shmem};
use groups::Group;
use laggard_baselines::{MeasureOptions, Measured};
use laggard_comm::{self as comm, Job, MpiJob};
use plan::Plan;
use world::Members;

/// Shows progress: the share that is done, and the current call.
pub type Shown<'s> = &'s mut dyn FnMut(f64, &str);

/// Measures as all ranks of a job whose processes have the collector preloaded, and which `start`
/// starts. Only rank 0 gets the results.
///
/// # Errors
/// Fewer than two ranks, no benchmark of the wanted calls, a collector that recorded nothing.
pub fn measure(
    options: &MeasureOptions,
    start: impl FnOnce() -> Result<MpiJob>,
    shown: Shown,
) -> Result<Option<Measured>> {
    let wanted = wanted(options)?;
    machine::prepare(options.shmem);
    let job = start()?;
    if job.agents() == 1 {
        bail!("what messages cost takes two ranks or more: mpirun -n 4 laggard baseline");
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        of_job(&job, options, &wanted, shown)
    }));
    // It ends MPI, too.
    if Shmem::finish() {
        std::mem::forget(job);
        return result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    match result {
        Ok(result) => result,
        // The other ranks would wait for this one for ever.
        Err(_) => job.abort(1),
    }
}

/// The benchmarks that measure one of the wanted calls.
fn wanted(options: &MeasureOptions) -> Result<Vec<&'static Benchmark>> {
    let all = benchmarks::all(options.shmem);
    let is_known = |name: &String| {
        let known = |call: &&str| call.eq_ignore_ascii_case(name);
        all.iter().any(|row| row.calls.iter().any(&known))
    };
    if let Some(unknown) = options.only.iter().find(|name| !is_known(name)) {
        bail!("{unknown}: no benchmark measures a call of this name");
    }
    let is_wanted = |row: &&Benchmark| {
        let named = |name: &String| row.calls.iter().any(|call| call.eq_ignore_ascii_case(name));
        options.only.is_empty() || options.only.iter().any(named)
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

fn of_job(
    job: &MpiJob,
    options: &MeasureOptions,
    wanted: &[&'static Benchmark],
    shown: Shown,
) -> Result<Option<Measured>> {
    let world = Members::world();
    let started = match options.shmem {
        true => Shmem::start(plan::room(options)),
        false => Ok(()),
    };
    agree(job, &started)?;
    let hosts = groups::hosts(&world);
    let groups: Vec<Group> = groups::all(&world, &hosts);
    let plan = Plan {
        world,
        hosts: &hosts,
        groups: &groups,
        benchmarks: wanted,
        options,
        cores: cores::Cores::new(),
    };
    let done = plan.carry_out(shown);
    let directory = trace::directory(&world);
    let recorded = recorded::read(&directory, world.rank as u32, &done.own);
    agree(job, &recorded)?;
    let recorded = recorded?;
    let facts = machine::gather(job, &recorded.properties)?;
    let merged = comm::merge_up(job, recorded::Slowest(recorded.series))?;
    trace::clean(&directory, world.rank as u32);
    let Some(recorded::Slowest(series)) = merged else {
        return Ok(None);
    };
    Ok(Some(Measured {
        table: tabulate::table(&done, &plan, series, facts),
        left_out: done.left_out,
        cells: done.cells,
    }))
}

/// An error of one rank becomes an error of all. Collective.
fn agree<T>(job: &MpiJob, result: &Result<T>) -> Result<()> {
    let told = match result {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{error:#}")),
    };
    for bytes in job.all_gather(postcard::to_stdvec(&told)?) {
        if let Err(what) = postcard::from_bytes::<Result<(), String>>(&bytes)? {
            bail!(what);
        }
    }
    Ok(())
}
