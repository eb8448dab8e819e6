//! Speedscope's JSON (<https://www.speedscope.app/file-format-schema.json>).

use std::io::Write;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::{Error, Frame, Kind, Stack, Stacks};

#[derive(Serialize)]
struct File<'s> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: &'s str,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Default, Serialize)]
struct Shared {
    frames: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Profile {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Writes a file of four profiles: all time, and one for each kind.
///
/// # Errors
/// The system refuses to write.
pub fn speedscope(stacks: &Stacks, out: impl Write) -> Result<(), Error> {
    let mut frames = Frames::default();
    let mut profiles = vec![profile(stacks, None, &mut frames)];
    for kind in Kind::ALL {
        profiles.push(profile(stacks, Some(kind), &mut frames));
    }
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("laggard {}", env!("CARGO_PKG_VERSION")),
        name: &stacks.title,
        active: 0,
        shared: frames.shared,
        profiles,
    };
    serde_json::to_writer(out, &file)?;
    Ok(())
}

/// Frames by number.
#[derive(Default)]
struct Frames {
    shared: Shared,
    numbers: FxHashMap<Frame, u32>,
}

impl Frames {
    fn number(&mut self, frame: &Frame) -> u32 {
        let frames = &mut self.shared.frames;
        *self.numbers.entry(frame.clone()).or_insert_with(|| {
            frames.push(Named {
                name: frame.function.clone(),
                file: (!frame.file.is_empty()).then(|| frame.file.clone()),
                line: (frame.line > 0).then_some(frame.line),
            });
            frames.len() as u32 - 1
        })
    }

    fn numbers(&mut self, stack: &Stack) -> Vec<u32> {
        let kind = Frame::named(&format!("[{}]", stack.kind.name()));
        let frames = stack.frames.iter().chain([&kind]);
        frames.map(|frame| self.number(frame)).collect()
    }
}

/// The profile of one kind of time, or of all.
fn profile(stacks: &Stacks, kind: Option<Kind>, frames: &mut Frames) -> Profile {
    let wanted = stacks.iter();
    let wanted = wanted.filter(|(stack, _)| kind.is_none_or(|kind| stack.kind == kind));
    let (samples, weights): (Vec<_>, Vec<u64>) = wanted
        .map(|(stack, ns)| (frames.numbers(stack), ns))
        .unzip();
    Profile {
        r#type: "sampled",
        name: kind.map_or("all", Kind::name).to_owned(),
        unit: "nanoseconds",
        start: 0,
        end: weights.iter().fold(0, |sum, ns| sum.saturating_add(*ns)),
        samples,
        weights,
    }
}
