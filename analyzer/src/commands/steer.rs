//! `laggard steer`: changes of a recording that is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use laggard_engine::events::Trace;
use laggard_files::printable;
use laggard_report::{RankSet, list_of_ranks};
use laggard_serve::steer::{Wanted, follows};
use laggard_trace::Location;

use super::{screen, traces};
use crate::cli::Steer;

/// How often it is looked whether ranks have seen it.
const LOOK: Duration = Duration::from_millis(20);
/// Ranges of ranks in a line.
const RANGES: usize = 20;

/// Wants something else of a program that runs, and says who has heard it; without a change, what is
/// wanted of it.
pub fn steer(options: &Steer) -> Result<ExitCode> {
    let directory = traces::meant(options.directory.as_deref())?;
    let trace = Trace::open(&directory)?;
    let locations = trace.locations.iter().map(|traced| &traced.location);
    let locations: Vec<&Location> = locations.collect();
    let change = options.change();
    if change.is_some() && locations.iter().all(|location| location.end.is_some()) {
        bail!("{}: the program has ended", directory.display());
    }
    let mut wanted = Wanted::default();
    let mut chosen = RankSet::default();
    if let Some(change) = &change {
        let done = change.apply(&directory)?;
        chosen = done.iter().map(|(rank, _)| *rank).collect();
        let begun = Instant::now();
        let has_heard = || {
            let heard = heard(&locations);
            done.iter()
                .all(|(rank, number)| heard.get(rank).is_none_or(|heard| heard == number))
        };
        while !has_heard() && begun.elapsed().as_secs_f64() < options.wait {
            std::thread::sleep(LOOK);
        }
    }
    wanted.read(&directory)?;
    let rows = wanted.rows(&heard(&locations));
    if rows.is_empty() {
        screen::print("nothing was changed since the program was started\n")?;
    }
    for row in rows {
        let unheard = match row.unheard.as_str() {
            "" => String::new(),
            ranks => format!(" ({ranks}: from the end of a call that is still to return)"),
        };
        screen::print(&format!("{}: {}{unheard}\n", row.ranks, row.wish))?;
    }
    tell_others(&chosen, &locations);
    Ok(ExitCode::SUCCESS)
}

/// By rank, the number of the wish that it follows.
fn heard(locations: &[&Location]) -> BTreeMap<u32, u32> {
    let mut heard = BTreeMap::new();
    for location in locations {
        follows(&mut heard, location.header.rank, location.steered_now());
    }
    heard
}

/// Names the chosen ranks that will never hear it.
fn tell_others(chosen: &RankSet, locations: &[&Location]) {
    let here: BTreeSet<u32> = locations
        .iter()
        .map(|location| location.header.rank)
        .collect();
    let others: Vec<u32> = chosen.iter().filter(|rank| !here.contains(rank)).collect();
    if !others.is_empty() {
        let others = list_of_ranks(others, RANGES);
        screen::say(&format!(
            "{others}: no trace here; steer them where their trace is, if they have one"
        ));
    }
    let first = locations.iter().filter(|l| l.header.thread == 0);
    let whys = first.filter_map(|location| {
        let why = location.definitions.properties("not_steered");
        Some((location.header.rank, why.into_iter().next()?))
    });
    for (rank, why) in whys.take(RANGES) {
        screen::say(&format!(
            "rank {rank} cannot be steered: {}",
            printable(&why)
        ));
    }
}
