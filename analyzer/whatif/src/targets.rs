//! What scenarios are about: calls, root causes and ranks of a run.

use anyhow::{Result, bail};
use laggard_engine::events::Events;
use laggard_patterns::rules::Repair;
use laggard_report::{Report, RootCause, Victim, has_rank, words};
use laggard_trace::calls::{self, GenericType, Shape};

use crate::place::Place;
use crate::reader::Site;
use crate::scenario::Spot;
use crate::shares::Sites;

/// Calls that are changed.
pub enum Calls {
    Place(Place),
    Sites(Vec<Sites>),
}

impl Calls {
    /// Those that a repair is about.
    ///
    /// # Errors
    /// There are none.
    pub fn of(events: &Events, spot: &Spot, repair: Repair) -> Result<Calls> {
        Ok(match spot {
            Spot::Place(name) => Calls::Place(calls_at(events, name, repair)?),
            Spot::Calls(all) => {
                let all = all.iter();
                Calls::Sites(all.map(|(name, at)| Sites::new(events, name, at)).collect())
            }
        })
    }

    /// Whether this call is one of them.
    pub fn has(&self, site: Site) -> bool {
        match self {
            Calls::Place(place) => place.has_path(site.1),
            Calls::Sites(all) => all.iter().any(|sites| sites.has(Some(site))),
        }
    }
}

/// Most ranges of ranks in a sentence.
const RANGES: usize = 4;

/// A place with calls that a repair is about.
fn calls_at(events: &Events, name: &str, repair: Repair) -> Result<Place> {
    let (what, is_it): (_, fn(u16) -> bool) = match repair {
        Repair::NonBlocking => ("blocking message", is_blocking),
        Repair::Combine => ("message", is_message),
        Repair::NoBarrier => ("barrier", is_barrier),
        _ => ("call", is_optional),
    };
    let place = Place::find(events, name)?;
    let mut rows = (0..events.locations()).flat_map(|at| events.profile(at));
    if !rows.any(|row| is_it(row.call) && place.has_path(row.call_path)) {
        bail!("there is no {what} at {name}");
    }
    Ok(place)
}

/// A root cause of a report, by its number from 1.
pub fn root_cause(report: Option<&Report>, number: usize) -> Result<&RootCause> {
    let causes = report.and_then(|report| report.root_causes.as_deref());
    let causes = causes.unwrap_or_default();
    match causes.get(number - 1) {
        Some(cause) if is_known(cause) => Ok(cause),
        Some(cause) => bail!(
            "what it gains to be without {} cannot be told: its calls are operations of the program",
            cause.id
        ),
        None => bail!(
            "there is no root cause rc{number}: the report has {}",
            causes.len()
        ),
    }
}

/// Whether a replay knows the calls of a root cause.
pub fn is_known(root: &RootCause) -> bool {
    let until = root.until.as_ref();
    Sites::are_known(&root.operation)
        && until.is_none_or(|until| Sites::are_known(&until.operation))
}

/// The calls before and after the computation of a root cause.
pub fn stretch(events: &Events, root: &RootCause) -> Result<(Sites, Sites)> {
    let Some(until) = &root.until else {
        bail!("{} is of the network: use --network latency=0", root.id);
    };
    let begin = Sites::new(events, &root.operation, &root.location);
    Ok((begin, Sites::new(events, &until.operation, &until.location)))
}

/// [`locations_of`]; some of the ranks must be there.
pub fn recorded(events: &Events, set: &str) -> Result<Vec<bool>> {
    let members = locations_of(events, set);
    if !members.contains(&true) {
        let ranks = words::ranks_of_set(set, RANGES);
        bail!("what this gains cannot be told: there is no trace of {ranks}");
    }
    Ok(members)
}

/// By location: whether it is a further thread that starts a root cause; `None`: first threads do.
pub fn threads_of(events: &Events, root: &RootCause) -> Option<Vec<bool>> {
    let is_such = |at: usize| has_rank(&root.thread_set, events.place(at).thread);
    let ranks = locations_of(events, &root.rank_set).into_iter().enumerate();
    let members = || ranks.map(|(at, is_of)| is_of && is_such(at)).collect();
    (!root.thread_set.is_empty()).then(members)
}

/// By location: whether it is a first thread that starts a root cause for which mostly further threads wait;
/// `None`: other ranks do.
pub fn first_threads(events: &Events, root: &RootCause) -> Option<Vec<bool>> {
    let all = |victims: &dyn Fn(&Victim) -> bool| -> f64 {
        let victims = root.victims.iter().filter(|of| victims(of));
        victims.map(|of| of.severity_s).sum()
    };
    let further = all(&|victim| !victim.thread_set.is_empty());
    let ranks = locations_of(events, &root.rank_set).into_iter().enumerate();
    let members = || ranks.map(|(at, is_of)| is_of && events.place(at).thread == 0);
    (2.0 * further > all(&|_| true)).then(|| members().collect())
}

/// By location: whether its rank is of a set such as `0-3,8`.
pub fn locations_of(events: &Events, set: &str) -> Vec<bool> {
    let ranges: Vec<_> = ranges(set).collect();
    let is_of = |rank: u32| ranges.iter().any(|range| range.contains(&rank));
    let locations = 0..events.locations();
    locations.map(|at| is_of(events.place(at).rank)).collect()
}

fn is_message(call: u16) -> bool {
    use GenericType::{TwoSidedReceive, TwoSidedSend};
    let generic = calls::call(call).map(|call| call.generic);
    matches!(generic, Some(TwoSidedSend | TwoSidedReceive))
}

fn is_blocking(call: u16) -> bool {
    is_message(call) && !calls::name(call).starts_with("MPI_I")
}

/// A program is thinkable without it.
pub fn is_optional(call: u16) -> bool {
    let shape = calls::call(call).map(|call| call.shape);
    shape.is_some_and(|shape| !shape.is_apart())
}

/// Whether all wait for all in it, and nothing else.
pub fn is_barrier(call: u16) -> bool {
    let shape = calls::call(call).map(|call| call.shape);
    matches!(shape, Some(Shape::Barrier | Shape::PeBarrier))
}

/// The ranges of a set of ranks such as `0-3,8`.
fn ranges(set: &str) -> impl Iterator<Item = std::ops::RangeInclusive<u32>> {
    set.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}
