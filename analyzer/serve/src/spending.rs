//! What a location spent its time on, in equal parts of a stretch of time.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use laggard_engine::events::Operation;
use laggard_trace::flags;

use crate::index::{KINDS, KeptWait, LocationIndex, Moment, few_before, fit, kind, scaled, within};
use crate::looks::{Between, Reader, Waited};
use crate::share::Share;
use laggard_overlay::filters::Sum;
use laggard_overlay::{Stop, Stopped};

/// Calls that are read for one answer, of all its locations together. A location with more of them is
/// answered from the index.
const CALLS: u64 = 1 << 21;

/// Computation, communication, synchronization, files, waiting. Waiting is part of the three before it.
pub const NAMES: [&str; KINDS + 2] = [
    "computation",
    "communication",
    "synchronization",
    "io",
    "waiting",
];
/// Position of waiting among them.
pub const WAITING: usize = KINDS + 1;

/// Position of a kind of time.
///
/// # Errors
/// There is no such one.
pub fn kind_of_time(name: &str) -> Result<usize> {
    let found = NAMES.iter().position(|known| *known == name);
    found.with_context(|| format!("metric is one of {}", NAMES.join(", ")))
}

/// Time by kind, ns.
pub type Times = [i64; NAMES.len()];

/// The borders of `parts` equal parts of a stretch.
pub fn borders((from, until): (i64, i64), parts: usize) -> Vec<i64> {
    let length = i128::from(until) - i128::from(from);
    let border = |at: usize| from + (length * at as i128 / parts.max(1) as i128) as i64;
    (0..=parts).map(border).collect()
}

/// Whether single calls are read of a location, if `locations` are asked about.
pub fn is_exact(share: &Share, at: usize, stretch: (i64, i64), locations: usize) -> bool {
    let most = CALLS / locations.max(1) as u64;
    // Checkpoints tell of too many where there are few.
    let are_few = share.index_of(at).reads(stretch) <= most || share.records(at) <= most;
    are_few && !share.is_profile(at)
}

/// Gives the calls of a location, until `take` breaks: from a few before a moment on.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn read(
    share: &Share,
    at: usize,
    from: i64,
    stop: &Stop,
    mut take: impl FnMut(&Operation) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let mut operations = share.operations_from(at, from);
    loop {
        stop.check()?;
        let read = operations.read_chunk(&mut take);
        if !matches!(read, Some(ControlFlow::Continue(()))) {
            return Ok(());
        }
    }
}

/// Gives the calls of a location that lie at least partly in a stretch.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn calls(
    share: &Share,
    at: usize,
    (from, until): (i64, i64),
    stop: &Stop,
    mut take: impl FnMut(&Operation),
) -> Result<(), Stopped> {
    read(share, at, from, stop, |operation| {
        // Regions end after the calls in them.
        if operation.enter >= until && operation.call.is_none_or(|call| !call.is_user()) {
            return ControlFlow::Break(());
        }
        if operation.leave > from {
            take(operation);
        }
        ControlFlow::Continue(())
    })
}

/// The receiver and the bytes of the message that a call sends, if it does.
pub fn message(call: &Operation) -> Option<(u32, u64)> {
    let without = flags::PAUSED | flags::FAILED | flags::UNSUCCESSFUL;
    let sends = call.has(flags::SENDS) && call.signature.flags & without == 0;
    let to = u32::try_from(call.send().peer).ok().filter(|_| sends)?;
    Some((to, call.send().bytes))
}

/// Gives each message that a location sends in a stretch: its call, receiver and bytes. It counts where its call begins.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn sent(
    share: &Share,
    at: usize,
    stretch: (i64, i64),
    stop: &Stop,
    mut take: impl FnMut(&Operation, u32, u64),
) -> Result<(), Stopped> {
    calls(share, at, stretch, stop, |call| {
        let begins = (stretch.0..stretch.1).contains(&call.enter);
        if let Some((to, bytes)) = message(call).filter(|_| begins) {
            take(call, to, bytes);
        }
    })
}

/// Times of a location in the parts between `borders`; `locations` are asked about in all.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn times(
    share: &Share,
    at: usize,
    borders: &[i64],
    locations: usize,
    stop: &Stop,
) -> Result<Vec<Times>, Stopped> {
    times_and_calls(share, (at, locations), borders, stop, |_| {})
}

/// What is read of a location.
pub enum Read<'r, 'c> {
    /// A call.
    Call(&'r Operation<'c>),
    /// Time between looks that counts as looking.
    Between(Between),
    /// In the end, a wait in looks: numbers of parts, and what it lost there, ns.
    Waited(&'r KeptWait, &'r [(usize, i64)]),
}

/// The same. Also gives what is read between the first border and the last, if single calls are.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn times_and_calls(
    share: &Share,
    (at, locations): (usize, usize),
    borders: &[i64],
    stop: &Stop,
    mut take: impl FnMut(Read<'_, '_>),
) -> Result<Vec<Times>, Stopped> {
    stop.check()?;
    let index = share.index_of(at);
    let parts = borders.len().saturating_sub(1);
    let mut times = vec![Times::default(); parts];
    let (Some(&from), Some(&until)) = (borders.first(), borders.last()) else {
        return Ok(times);
    };
    let is_exact = is_exact(share, at, (from, until), locations);
    for kind in (0..KINDS).filter(|_| !is_exact) {
        differences(index, borders, |at| at.inside(kind))
            .zip(&mut times)
            .for_each(|(time, part)| part[1 + kind] = time);
    }
    let mut waited = None;
    if is_exact {
        let mut looked = Waited::new(share, at, (from, until));
        let mut first = 0;
        read_all(share, at, (from, until), stop, |read| {
            let call = match read {
                Read::Waited(..) => return,
                Read::Call(call) => call,
                Read::Between(ref between) => {
                    looked.take(between.site, between.stretch, between.time, borders);
                    within(borders, between.stretch, |part, time| {
                        let (begin, end) = between.stretch;
                        times[part][1 + between.kind] += scaled(between.time, time, end - begin);
                    });
                    return take(read);
                }
            };
            // Most calls are in the part of the one before, or in the next one.
            let passed = few_before(&borders[first..], |&border| border <= call.enter);
            first += passed.saturating_sub(1);
            let from = if borders[first] <= call.enter {
                first
            } else {
                0
            };
            add(&mut times[from..], &borders[from..], index.measured, call);
            if call.look.is_some() {
                let site = (call.signature.operation, call.call_path);
                looked.take(site, (call.enter, call.leave), call.inside, borders);
            }
            take(read);
        })?;
        looked.settle(borders);
        let waits = looked.waits.iter();
        waits.for_each(|(wait, parts)| take(Read::Waited(wait, parts)));
        waited = Some(looked);
    }
    add_waiting(index, borders, waited.as_ref(), &mut times);
    for (part, borders) in times.iter_mut().zip(borders.windows(2)) {
        part[0] = (index.covered((borders[0], borders[1])) - inside(part)).max(0);
    }
    Ok(times)
}

/// Time in calls.
fn inside(times: &Times) -> i64 {
    times[1..=KINDS].iter().sum()
}

/// Gives all that a location did in a stretch.
fn read_all(
    share: &Share,
    at: usize,
    (from, until): (i64, i64),
    stop: &Stop,
    mut take: impl FnMut(Read<'_, '_>),
) -> Result<(), Stopped> {
    let mut looks = Reader::new(share.index_of(at));
    read(share, at, from, stop, |call| {
        let is_open = looks.take(call, |between| take(Read::Between(between)));
        // Regions end after the calls in them.
        if call.enter >= until && call.call.is_none_or(|call| !call.is_user()) {
            return match is_open {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            };
        }
        if call.leave > from {
            take(Read::Call(call));
        }
        ControlFlow::Continue(())
    })
}

/// Adds the waiting to parts of which the time in calls is known. What is lost in looks lies in these, not in the work
/// between them.
/// `waited` are those of calls that are read.
fn add_waiting(
    index: &LocationIndex,
    borders: &[i64],
    waited: Option<&Waited>,
    times: &mut [Times],
) {
    let mut looked = vec![0; times.len()];
    if let Some(waited) = waited.filter(|_| index.has_all_waits()) {
        let waits = index.waits((borders[0], borders[borders.len() - 1]));
        for wait in waits.filter(|wait| !wait.is_spread()) {
            wait.spread(borders, |part, time| times[part][WAITING] += time);
        }
        let parts = waited.waits.iter().flat_map(|(_, parts)| parts);
        parts.for_each(|&(part, time)| looked[part] += time);
    } else {
        let known = differences(index, borders, |at| at.waiting());
        looked
            .iter_mut()
            .zip(known)
            .for_each(|(part, time)| *part = time);
        if index.looks.is_empty() {
            let parts = times.iter_mut().zip(&looked);
            parts.for_each(|(part, time)| part[WAITING] = *time);
            return;
        }
    }
    let more = fit(&mut looked, |part| {
        inside(&times[part]) - times[part][WAITING]
    });
    let parts = times.iter_mut().zip(&looked);
    parts.for_each(|(part, time)| part[WAITING] += time);
    // All of the run has all of it.
    if index.is_all_in((borders[0], borders[borders.len() - 1])) {
        times
            .iter_mut()
            .last()
            .into_iter()
            .for_each(|last| last[WAITING] += more);
    }
}

/// Adds what a location lost by waiting of one kind to `sums` of the parts between `borders`, as far as its waits are
/// kept; `locations` are asked about in all.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn add_waits(
    share: &Share,
    (at, locations): (usize, usize),
    borders: &[i64],
    pattern: u32,
    sums: &mut [Sum],
    stop: &Stop,
) -> Result<(), Stopped> {
    let index = share.index_of(at);
    let stretch = (borders[0], borders[borders.len() - 1]);
    let waits = index.waits(stretch);
    let waits: Vec<_> = waits.filter(|wait| wait.pattern == pattern).collect();
    let has_spread = waits.iter().any(|wait| wait.is_spread());
    let reads = has_spread && is_exact(share, at, stretch, locations);
    for wait in waits.iter().filter(|wait| !reads || !wait.is_spread()) {
        wait.spread(borders, |part, time| sums[part].0 += time);
    }
    if reads {
        times_and_calls(share, (at, locations), borders, stop, |read| {
            if let Read::Waited(wait, parts) = read
                && wait.pattern == pattern
            {
                parts.iter().for_each(|&(part, time)| sums[part].0 += time);
            }
        })?;
    }
    Ok(())
}

/// Adds what a location spent on one kind of time to `sums` of the parts between `borders`; `locations` are
/// asked about in all.
///
/// # Errors
/// Nobody wants the answer any more.
pub fn add_kind(
    share: &Share,
    (at, locations): (usize, usize),
    borders: &[i64],
    metric: usize,
    sums: &mut [Sum],
    stop: &Stop,
) -> Result<(), Stopped> {
    let index = share.index_of(at);
    let stretch = (borders[0], borders[borders.len() - 1]);
    let is_exact = is_exact(share, at, stretch, locations);
    stop.check()?;
    match metric {
        // Where nobody looks, each wait is in its call.
        WAITING if index.looks.is_empty() => {
            let mut times = vec![Times::default(); sums.len()];
            let none = Waited::new(share, at, stretch);
            add_waiting(index, borders, Some(&none).filter(|_| is_exact), &mut times);
            let parts = sums.iter_mut().zip(times);
            parts.for_each(|(sum, part)| sum.0 += part[WAITING]);
        }
        1..=KINDS if !is_exact => {
            let times = differences(index, borders, |at| at.inside(metric - 1));
            let parts = sums.iter_mut().zip(times);
            parts.for_each(|(sum, time)| sum.0 += time);
        }
        _ => {
            let times = times(share, at, borders, locations, stop)?;
            let parts = sums.iter_mut().zip(times);
            parts.for_each(|(sum, part)| sum.0 += part[metric]);
        }
    }
    Ok(())
}

/// What the index knows of the parts between `borders`.
fn differences<'i>(
    index: &'i LocationIndex,
    borders: &'i [i64],
    known: impl Fn(&Moment) -> i64 + 'i,
) -> impl Iterator<Item = i64> + 'i {
    let mut sums = index.at(borders).map(move |at| known(&at));
    let mut before = sums.next().unwrap_or(0);
    sums.map(move |sum| sum - std::mem::replace(&mut before, sum))
}

/// Adds a call to the parts that it is in.
fn add(times: &mut [Times], borders: &[i64], measured: (i64, i64), call: &Operation) {
    if !crate::index::counts(call.call, call.signature) {
        return;
    }
    let lasted = call.leave - call.enter;
    let own = (call.enter.max(measured.0), call.leave.min(measured.1));
    if own.0 >= own.1 {
        return;
    }
    within(borders, own, |part, time| {
        times[part][1 + kind(call.class)] += scaled(call.inside, time, lasted);
    });
}
