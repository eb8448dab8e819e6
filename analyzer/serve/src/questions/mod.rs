//! What clients ask, and how it is answered: each share answers for its own locations, parts are merged
//! up to the head, and the head makes the answer of them.

mod call;
mod heat;
mod line;
mod overview;
mod selection;

use anyhow::{Result, bail};
use laggard_comm::{self as comm, Job};
use laggard_overlay::Stop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::share::Share;

/// No answer is larger, bytes.
pub const LARGEST: usize = 100_000;

/// A question. Times are seconds since the start of the run; locations are positions by rank and thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// What the run is, and what the report found.
    Overview(overview::Overview),
    /// Shares of a kind of time, by locations and time.
    Heat(heat::Heat),
    /// What locations did, call by call where these are few.
    Line(line::Line),
    /// Sums of a stretch of time and some locations.
    Selection(selection::Selection),
    /// All about one call.
    Call(call::Call),
}

/// A kind of question.
pub trait Asked {
    /// What one share knows of it.
    type Part: Serialize + DeserializeOwned;
    /// That part, of the share's own locations.
    ///
    /// # Errors
    /// The question makes no sense, or nobody wants the answer any more. All shares see the former.
    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part>;
    /// The part of two shares, whatever their order.
    fn merge(one: Self::Part, other: Self::Part) -> Self::Part;
    /// The answer, at the head.
    ///
    /// # Errors
    /// As [`part`](Self::part).
    fn answer(&self, share: &Share, part: Self::Part) -> Result<Value>;
}

impl Question {
    /// Questions of one name are asked one after the other.
    pub fn name(&self) -> &'static str {
        match self {
            Question::Overview(_) => "overview",
            Question::Heat(_) => "heat",
            Question::Line(_) => "line",
            Question::Selection(_) => "selection",
            Question::Call(_) => "call",
        }
    }
}

/// The answer of all shares; only the head has it. Collective.
///
/// # Errors
/// The question makes no sense, the trace has changed, or nobody wants the answer any more.
pub fn answer(
    job: &dyn Job,
    share: &Share,
    question: &Question,
    stop: &Stop,
) -> Result<Option<Value>> {
    comm::agree(job, share.check())?;
    let answer = match question {
        Question::Overview(asked) => of(job, share, asked, stop),
        Question::Heat(asked) => of(job, share, asked, stop),
        Question::Line(asked) => of(job, share, asked, stop),
        Question::Selection(asked) => of(job, share, asked, stop),
        Question::Call(asked) => of(job, share, asked, stop),
    }?;
    if let Some(answer) = &answer
        && answer.to_string().len() > LARGEST
    {
        bail!("the answer does not fit on a screen: ask about less");
    }
    Ok(answer)
}

fn of<A: Asked>(job: &dyn Job, share: &Share, asked: &A, stop: &Stop) -> Result<Option<Value>> {
    let part = comm::agree(job, asked.part(share, stop))?;
    let merged = comm::merge_up(job, part, A::merge)?;
    merged.map(|part| asked.answer(share, part)).transpose()
}

/// Seconds of ns.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// A text, cut to what a line of a table shows.
fn short(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
