//! What can be asked about locations: an amount of each, in parts of a stretch of time.

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use laggard_overlay::Stop;
use laggard_overlay::filters::Sum;
use laggard_patterns::PatternId;
use laggard_trace::calls::Call;
use serde_json::{Value, json};

use super::{sampled, seconds, short};
use crate::index::{scaled, within};
use crate::share::Share;
use crate::spending::{NAMES, add_kind, add_waits, is_exact, kind_of_time, read, sent};

/// How samples are asked for.
const SAMPLES: &str = "samples";
/// What locations send.
pub const SENT: [&str; 2] = ["messages", "bytes"];

/// An amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A kind of time: position in [`NAMES`].
    Time(usize),
    /// Messages that a location sends.
    Messages,
    /// What is in them.
    Bytes,
    /// Samples that were taken of what a location did.
    Samples,
    /// Time lost by waiting of one kind.
    Waits(PatternId),
    /// What a counter of this name counts between calls.
    Counted(String),
}

impl Metric {
    /// By name: one of [`NAMES`] or [`SENT`], `samples`, a pattern such as `late_sender`, or `counter:` and its name.
    ///
    /// # Errors
    /// There is no such one.
    pub fn of(name: &str) -> Result<Metric> {
        if let Some(counter) = name.strip_prefix("counter:") {
            return Ok(Metric::Counted(counter.to_owned()));
        }
        Ok(match (name, PatternId::from_id(name)) {
            ("messages", _) => Metric::Messages,
            ("bytes", _) => Metric::Bytes,
            (SAMPLES, _) => Metric::Samples,
            (_, Some(pattern)) => Metric::Waits(pattern),
            _ => match kind_of_time(name) {
                Ok(kind) => Metric::Time(kind),
                Err(_) => bail!(
                    "metric is one of {}, {}, {SAMPLES}, a pattern such as late_sender, or counter: and a name",
                    NAMES.join(", "),
                    SENT.join(", ")
                ),
            },
        })
    }

    /// Adds the amounts of an own location in the parts between `borders` to `sums`; `among` are asked
    /// about in all. Returns whether that is all: single calls may be too many to be read, and not all
    /// waits are kept.
    ///
    /// # Errors
    /// Nobody wants the answer any more.
    pub fn add(
        &self,
        share: &Share,
        (at, among): (usize, usize),
        borders: &[i64],
        sums: &mut [Sum],
        stop: &Stop,
    ) -> Result<bool> {
        let stretch = (borders[0], borders[borders.len() - 1]);
        let is_exact = is_exact(share, at, stretch, among);
        match self {
            Metric::Time(kind) => {
                add_kind(share, (at, among), borders, *kind, sums, stop)?;
                return Ok(true);
            }
            Metric::Waits(pattern) => {
                add_waits(share, (at, among), borders, *pattern as u32, sums, stop)?;
                return Ok(share.index_of(at).has_all_waits());
            }
            _ if !is_exact => return Ok(false),
            Metric::Messages | Metric::Bytes => {
                let is_bytes = *self == Metric::Bytes;
                sent(share, at, stretch, stop, |call, _, bytes| {
                    let amount = if is_bytes { bytes } else { 1 };
                    let part = borders.partition_point(|&border| border <= call.enter) - 1;
                    add(sums, part, i64::try_from(amount).unwrap_or(i64::MAX));
                })?;
            }
            Metric::Samples => {
                sampled::samples(share, at, stretch, stop, |_, time| {
                    let part = borders.partition_point(|&border| border <= time) - 1;
                    add(sums, part, 1);
                    ControlFlow::Continue(())
                })?;
            }
            Metric::Counted(name) => {
                let own = at - share.events().first;
                let names = share.events().counters(own);
                let Some(number) = names.iter().position(|known| known == name) else {
                    return Ok(true);
                };
                let mut after = None;
                read(share, at, stretch.0, stop, |call| {
                    // The record of a region tells of the time up to its end.
                    let until = match call.call.is_some_and(Call::is_user) {
                        true => call.leave,
                        false => call.enter,
                    };
                    let told = share.events().counted(own, call);
                    let count = told.and_then(|(counts, time)| Some((counts.get(number)?, time)));
                    if let Some((count, time)) = count {
                        // What was counted before the first call that is read was counted for so long.
                        let since = after.unwrap_or(until - time);
                        let count = i64::try_from(count).unwrap_or(i64::MAX);
                        // Parts add up to what was counted: each ends where the next one begins.
                        let up_to = |at: i64| scaled(count, at - since, until - since);
                        within(borders, (since, until), |part, time| {
                            let begin = since.max(borders[part]);
                            add(sums, part, up_to(begin + time) - up_to(begin));
                        });
                    }
                    after = Some(call.leave);
                    match until >= stretch.1 {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })?;
            }
        }
        Ok(true)
    }

    /// Whether it is time, of which there is so much as a location has.
    pub fn is_time(&self) -> bool {
        matches!(self, Metric::Time(_) | Metric::Waits(_))
    }

    /// An amount, as it is told: s of ns.
    pub fn told(&self, amount: i64) -> Value {
        match self.is_time() {
            true => seconds(amount).into(),
            false => amount.into(),
        }
    }

    /// `s`, `B` or nothing.
    pub fn unit(&self) -> &'static str {
        match self {
            Metric::Bytes => "B",
            _ if self.is_time() => "s",
            _ => "",
        }
    }

    /// Those that a run may have: how to ask for them, and their names.
    pub fn all(share: &Share, patterns: impl Iterator<Item = PatternId>) -> Value {
        let times = NAMES.iter().chain(&SENT).map(|name| json!([name, name]));
        let patterns = patterns.map(|pattern| json!([pattern.id(), pattern.name()]));
        let events = share.events();
        let is_sampled = (0..events.locations()).any(|own| events.is_sampled(own));
        let samples = is_sampled.then(|| json!([SAMPLES, SAMPLES]));
        // All ranks count the same.
        let counters = (0..events.locations()).map(|own| events.counters(own));
        let counters = counters.max_by_key(Vec::len).unwrap_or_default();
        let counters = counters
            .iter()
            .map(|name| json!([format!("counter:{name}"), short(name)]));
        times
            .chain(patterns)
            .chain(samples)
            .chain(counters)
            .collect()
    }
}

fn add(sums: &mut [Sum], part: usize, amount: i64) {
    sums[part].0 = sums[part].0.saturating_add(amount);
}
