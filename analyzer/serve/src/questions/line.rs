//! What locations did: call by call where these are few, else shares of kinds of time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laggard_overlay::{Filter, Stop, Stopped};
use laggard_patterns::PatternId;
use laggard_trace::calls::{self, user::STEER};
use laggard_trace::{Change, Signature};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, LOCATIONS, PARTS, cut, sampled, seconds, short};
use crate::index::{KeptWait, counts, kind};
use crate::share::Share;
use crate::spending::{NAMES, Times, borders, calls as calls_of, times};

/// Most calls that are told one by one, and most waits, of all locations together.
const CALLS: usize = 1200;
const WAITS: usize = 200;
/// Most samples that are told beside these calls, of all locations together.
const SAMPLES: usize = 600;
/// Most characters of where a sample was.
const SAMPLED: usize = 60;

/// A time line of some locations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Line {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
    /// Parts in which time is told where calls are many.
    pub width: usize,
}

/// What one location did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lane {
    calls: Option<Vec<Told>>,
    parts: Vec<Times>,
    /// The longest ones.
    waits: Vec<Waited>,
    waits_in_sight: usize,
    /// Whether others are not kept.
    unknown_waits: bool,
    /// When, and where the thread was then. None if there are too many.
    samples: Option<Vec<(i64, String)>>,
}

impl Filter for Lane {
    /// One agent has the location.
    fn merge(&mut self, _: Lane) {}
}

/// A call.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told {
    number: u64,
    enter: i64,
    leave: i64,
    kind: u8,
    name: String,
    place: String,
}

/// A wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waited {
    since: i64,
    until: i64,
    lost: i64,
    pattern: u32,
    late_location: u32,
    late_rank: u32,
    late_enter: i64,
}

impl Line {
    fn lane(
        &self,
        share: &Share,
        at: usize,
        (stretch, locations): ((i64, i64), usize),
        stop: &Stop,
    ) -> Result<Lane, Stopped> {
        let index = share.index_of(at);
        let mut waits: Vec<&KeptWait> = index.waits(stretch).collect();
        let (waits_in_sight, unknown_waits) = (waits.len(), !index.has_all_waits());
        waits.sort_unstable_by_key(|wait| (-wait.lost, wait.since));
        waits.truncate(WAITS / locations);
        let waits = waits.into_iter().map(|wait| Waited {
            since: wait.since,
            until: wait.until,
            lost: wait.lost,
            pattern: wait.pattern,
            late_location: wait.late_location,
            late_rank: wait.late_rank,
            late_enter: wait.late_enter,
        });
        let waits = waits.collect();
        let most = CALLS / locations;
        // A checkpoint more at each end may be there beside those within.
        let is_few = index.calls(stretch) <= most as u64 + 2 * crate::index::CALLS;
        if is_few && !share.is_profile(at) {
            let mut told = Vec::new();
            calls_of(share, at, stretch, stop, |call| {
                if counts(call.call, call.signature) && told.len() <= most {
                    let signature = call.signature;
                    told.push(Told {
                        number: call.number,
                        enter: call.enter,
                        leave: call.leave,
                        kind: 1 + kind(call.class) as u8,
                        name: name(signature),
                        place: share.events().call_paths[call.call_path as usize].short(),
                    });
                }
            })?;
            if told.len() <= most {
                return Ok(Lane {
                    calls: Some(told),
                    parts: Vec::new(),
                    waits,
                    waits_in_sight,
                    unknown_waits,
                    samples: samples(share, at, (stretch, SAMPLES / locations), stop)?,
                });
            }
        }
        let width = self.width.clamp(1, PARTS / locations);
        Ok(Lane {
            calls: None,
            parts: times(share, at, &borders(stretch, width), locations, stop)?,
            waits,
            waits_in_sight,
            unknown_waits,
            samples: Some(Vec::new()),
        })
    }
}

/// The samples of a location in a stretch: when, and where. None if they are more than `most`: a part of them
/// would mislead.
fn samples(
    share: &Share,
    at: usize,
    (stretch, most): ((i64, i64), usize),
    stop: &Stop,
) -> Result<Option<Vec<(i64, String)>>, Stopped> {
    let mut found = Vec::new();
    sampled::samples(share, at, stretch, stop, |path, time| {
        found.push((path, time));
        match found.len() > most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if found.len() > most {
        return Ok(None);
    }
    found.sort_by_key(|(_, time)| *time);
    let place = |path: u32| cut(&share.events().call_paths[path as usize].short(), SAMPLED);
    let found = found.into_iter().map(|(path, time)| (time, place(path)));
    Ok(Some(found.collect()))
}

/// The name of a call; a change of the recording says what it is.
fn name(signature: &Signature) -> String {
    let is_change = signature.operation == STEER;
    match Change::of(signature.parameter).filter(|_| is_change) {
        Some(change) => format!("recording: {}", change.text()),
        None => calls::name(signature.operation).to_owned(),
    }
}

impl Asked for Line {
    /// By location.
    type Part = BTreeMap<usize, Lane>;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        if chosen.len() > LOCATIONS {
            bail!("a time line has {LOCATIONS} locations at most");
        }
        let own = share.own(&chosen).into_par_iter();
        let lanes = own.map(|at| Ok((at, self.lane(share, at, (stretch, chosen.len()), stop)?)));
        lanes.collect()
    }

    fn answer(&self, share: &Share, lanes: Self::Part) -> Result<Value> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let mut texts = Texts::default();
        let lanes = lanes.into_iter().map(|(at, lane)| {
            let place = share.named(at)?;
            let calls = lane.calls.map(|calls| {
                let calls = calls.iter().map(|call| {
                    let (name, place) = (texts.number(&call.name), texts.number(&call.place));
                    let (enter, leave) = (call.enter - stretch.0, call.leave - call.enter);
                    json!([call.number, enter, leave, call.kind, name, place])
                });
                calls.collect::<Vec<Value>>()
            });
            let waits = lane.waits.iter().map(|wait| {
                let pattern = u8::try_from(wait.pattern)
                    .ok()
                    .and_then(PatternId::from_number);
                let name = texts.number(pattern.map_or("", PatternId::name));
                let late = (wait.late_rank != u32::MAX).then_some(wait.late_rank);
                let late_at = (wait.late_location != u32::MAX).then_some(wait.late_location);
                let enter = late.map(|_| wait.late_enter - stretch.0);
                json!([
                    wait.since - stretch.0,
                    wait.lost,
                    name,
                    late,
                    late_at,
                    enter,
                    share.thread(wait.late_location),
                    wait.until - wait.since
                ])
            });
            let waits: Vec<Value> = waits.collect();
            let samples = lane.samples.map(|samples| {
                let samples = samples.iter();
                let samples =
                    samples.map(|(time, place)| json!([time - stretch.0, texts.number(place)]));
                samples.collect::<Vec<Value>>()
            });
            let borders = borders(stretch, lane.parts.len());
            let shares = lane
                .parts
                .iter()
                .zip(borders.windows(2))
                .flat_map(|(part, borders)| {
                    let whole = (borders[1] - borders[0]).max(1);
                    part.map(|time| (time.clamp(0, whole) * 255 / whole) as u8)
                });
            let parts = calls
                .is_none()
                .then(|| STANDARD.encode(shares.collect::<Vec<u8>>()));
            Ok(json!({
                "location": at,
                "rank": place.rank,
                "thread": place.thread,
                "calls": calls,
                "parts": parts,
                "waits": waits,
                "waits_in_sight": lane.waits_in_sight,
                "unknown_waits": lane.unknown_waits,
                "samples": samples,
            }))
        });
        let lanes = lanes.collect::<Result<Vec<Value>>>()?;
        Ok(json!({
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "kinds": NAMES,
            "lanes": lanes,
            "texts": texts.all,
        }))
    }
}

/// Texts by number, each told once.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    numbers: FxHashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(text.to_owned()).or_insert(next);
        if number == next {
            self.all.push(short(text));
        }
        number
    }
}
