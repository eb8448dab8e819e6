//! All about one call.

use anyhow::{Result, bail};
use laggard_engine::events::{NONE, Operation};
use laggard_overlay::Stop;
use laggard_overlay::filters::First;
use laggard_patterns::PatternId;
use laggard_report::{Bottleneck, Report};
use laggard_trace::calls;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, seconds, short};
use crate::index::KeptWait;
use crate::share::Share;
use crate::spending::calls as calls_of;

/// Most frames of a call path.
const FRAMES: usize = 64;

/// Most root causes that are told of a wait.
const ROOTS: usize = 3;

/// A call: its location and when it was entered, as a time line told it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Call {
    /// Position of the location.
    pub location: usize,
    /// Number of the call in its location.
    pub number: u64,
    /// A moment within the call.
    pub at_s: f64,
}

impl Asked for Call {
    /// The answer, as JSON, at the share that has the location.
    type Part = Option<First<String>>;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Option<First<String>>> {
        let Ok(chosen) = share.chosen(Some(self.location), Some(self.location)) else {
            return Ok(None);
        };
        let (at, _) = share.stretch(Some(self.at_s), Some(f64::MAX))?;
        if share.own(&chosen).is_empty() {
            return Ok(None);
        }
        let mut found = None;
        calls_of(share, self.location, (at - 1, at + 1), stop, |call| {
            if call.number == self.number {
                found = Some(First(told(share, self.location, call).to_string()));
            }
        })?;
        Ok(found)
    }

    fn answer(&self, share: &Share, part: Option<First<String>>) -> Result<Value> {
        let Some(text) = part else {
            bail!("no such call")
        };
        let mut call: Value = serde_json::from_str(&text.0)?;
        let Ok(report) = share.report() else {
            return Ok(call);
        };
        let started: Vec<Value> = call["waits"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|wait| started_by(report, &call, wait))
            .collect();
        for (wait, roots) in call["waits"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .zip(started)
        {
            wait["started_by"] = roots;
        }
        Ok(call)
    }
}

/// What starts such waits at the place of a call, as the report tells it: root causes, and their shares.
fn started_by(report: &Report, call: &Value, wait: &Value) -> Value {
    let is_it = |found: &&Bottleneck| {
        let place = &found.location;
        call["call"] == found.operation
            && wait["pattern"] == found.name
            && call["at"] == json!([short(&place.file), place.line, short(&place.function)])
    };
    // One line may have several findings, with other callers.
    let found = report.bottlenecks.iter().find(is_it);
    let all = found.map_or(&[][..], |found| &found.root_causes[..]);
    let (told, others) = all.split_at(all.len().min(ROOTS));
    let told = told.iter().map(|root| json!([root.id, root.share]));
    let share: f64 = others.iter().map(|root| root.share).sum();
    let others = (!others.is_empty()).then(|| json!([format!("{} more", others.len()), share]));
    told.chain(others).collect()
}

fn told(share: &Share, at: usize, call: &Operation) -> Value {
    let events = share.events();
    let (place, path) = (
        share.placed(at),
        &events.call_paths[call.call_path as usize].place,
    );
    let frames = path.callpath.iter().take(FRAMES);
    let mut frames: Vec<String> = frames.map(|one| short(one)).collect();
    if path.callpath.len() > FRAMES {
        frames.push(format!("{} more", path.callpath.len() - FRAMES));
    }
    let index = share.index_of(at);
    let waits = index.waits((call.enter, call.leave));
    let waits = waits.filter(|wait| wait.enter == call.enter);
    let waits: Vec<_> = waits.map(|wait| waited(share, wait)).collect();
    let unknown_waits = waits.is_empty() && !index.has_all_waits();
    let peer = |peer: i32| (peer >= 0).then_some(peer);
    let group = events
        .groups
        .get(call.group as usize)
        .filter(|_| call.group != NONE);
    let region = call.region.map(|region| {
        let begin = &events.call_paths[region.call_path as usize].place;
        json!({
            "at": [short(&begin.file), begin.line, short(&begin.function)],
            "thread": region.member,
            "threads": region.threads,
        })
    });
    json!({
        "location": at,
        "number": call.number,
        "rank": place.rank,
        "thread": place.thread,
        "host": short(share.host(at)),
        "call": call.name(),
        "enter_s": seconds(call.enter),
        "leave_s": seconds(call.leave),
        "inside_s": seconds(call.inside),
        "calls": call.calls,
        "callpath": frames,
        "at": [short(&path.file), path.line, short(&path.function)],
        "sent_bytes": call.send().bytes,
        "received_bytes": call.receive().bytes,
        "to_rank": peer(call.send().peer),
        "from_rank": peer(call.receive().peer),
        "communicator": group.map(|group| short(&group.label)),
        "root_rank": call.root(),
        "parallel_region": region,
        "waits": waits,
        "unknown_waits": unknown_waits,
    })
}

fn waited(share: &Share, wait: &KeptWait) -> Value {
    let pattern = u8::try_from(wait.pattern)
        .ok()
        .and_then(PatternId::from_number);
    let has_late = wait.late_rank != u32::MAX;
    json!({
        "pattern": pattern.map_or("", PatternId::name),
        "since_s": seconds(wait.since),
        "lost_s": seconds(wait.lost),
        "until_s": seconds(wait.until),
        "late_rank": has_late.then_some(wait.late_rank),
        "late_thread": share.thread(wait.late_location).filter(|_| has_late),
        "late_location": (has_late && wait.late_location != u32::MAX).then_some(wait.late_location),
        "late_enter_s": has_late.then(|| seconds(wait.late_enter)),
        "late_call": has_late.then(|| calls::name(wait.late_call as u16)),
    })
}
