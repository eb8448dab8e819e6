//! What clients ask, and how it is answered: each share answers for its own locations, parts are merged
//! up to the head, and the head makes the answer of them.

mod alike;
mod at_head;
mod call;
mod changes;
mod course;
mod heat;
mod line;
mod matrix;
mod meanwhile;
mod messages;
mod metric;
mod names;
mod overview;
mod path;
mod sampled;
mod selection;
mod topology;
mod tree;
mod what_if;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use laggard_engine::events::Placed;
use laggard_overlay::{Filter, Missing, Reply, Stop, Why, Work};
use laggard_report::{RankSet, list_of_ranks, rank_ranges};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::share::Share;

/// No answer is larger, bytes.
pub const LARGEST: usize = 100_000;
/// Most locations of a time line.
const LOCATIONS: usize = 64;
/// Most parts of all of them together: a byte for each kind of time.
const PARTS: usize = 12_000;
/// Rows of who is missing.
const ROWS: usize = 8;
/// Ranges of ranks in a text.
const RANGES: usize = 6;

/// A question. Times are seconds since the start of the run; locations are positions by rank and thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// What the run is, and what the report found.
    Overview(overview::Overview),
    /// An amount, by locations and time.
    Heat(heat::Heat),
    /// The same, by classes of locations that are alike.
    Alike(alike::Alike),
    /// An amount over time, of locations together.
    Course(course::Course),
    /// In which functions locations were, as samples tell.
    Sampled(sampled::Sampled),
    /// What locations did, call by call where these are few.
    Line(line::Line),
    /// Where the critical path is.
    Path(path::Path),
    /// Who received what was sent.
    Messages(messages::Messages),
    /// Sums of a stretch of time and some locations.
    Selection(selection::Selection),
    /// All about one call.
    Call(call::Call),
    /// Changes of what is recorded.
    Changes(changes::Changes),
    /// What a location waited for while somebody waited for it.
    Meanwhile(meanwhile::Meanwhile),
    /// A metric by place in the program, and by ranks.
    Tree(tree::Tree),
    /// Who sends whom, and who waits for whom.
    Matrix(matrix::Matrix),
    /// A kind of time, by place in a grid of ranks.
    Topology(topology::Topology),
    /// How long the run would take with a change.
    WhatIf(what_if::WhatIf),
}

/// A kind of question.
pub trait Asked {
    /// What one share knows of it.
    type Part: Filter + Serialize + DeserializeOwned;
    /// That part, of the share's own locations.
    ///
    /// # Errors
    /// The question makes no sense, or nobody wants the answer any more. All shares see the former.
    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part>;
    /// The answer, at the head.
    ///
    /// # Errors
    /// As [`part`](Self::part).
    fn answer(&self, share: &Share, part: Self::Part) -> Result<Value>;
}

/// Runs something generic about what a question asks.
macro_rules! with {
    ($question:expr, $asked:ident => $result:expr) => {
        match $question {
            Question::Overview($asked) => $result,
            Question::Heat($asked) => $result,
            Question::Alike($asked) => $result,
            Question::Course($asked) => $result,
            Question::Sampled($asked) => $result,
            Question::Line($asked) => $result,
            Question::Selection($asked) => $result,
            Question::Call($asked) => $result,
            Question::Changes($asked) => $result,
            Question::Meanwhile($asked) => $result,
            Question::Tree($asked) => $result,
            Question::Matrix($asked) => $result,
            Question::Path($asked) => $result,
            Question::Messages($asked) => $result,
            Question::Topology($asked) => $result,
            Question::WhatIf($asked) => $result,
        }
    };
}

impl Question {
    /// Questions of one name are asked one after the other.
    pub fn name(&self) -> &'static str {
        match self {
            Question::Overview(_) => "overview",
            Question::Heat(_) => "heat",
            Question::Alike(_) => "alike",
            Question::Course(_) => "course",
            Question::Sampled(_) => "sampled",
            Question::Line(_) => "line",
            Question::Selection(_) => "selection",
            Question::Call(_) => "call",
            Question::Changes(_) => "changes",
            Question::Meanwhile(_) => "meanwhile",
            Question::Tree(_) => "tree",
            Question::Matrix(_) => "matrix",
            Question::Path(_) => "path",
            Question::Messages(_) => "messages",
            Question::Topology(_) => "topology",
            Question::WhatIf(_) => "what_if",
        }
    }

    /// As it goes to the agents.
    ///
    /// # Errors
    /// None for a question that came as JSON.
    pub fn packed(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }
}

/// What an agent knows, packed.
impl Work for Share {
    fn part(&self, question: &[u8], stop: &Stop) -> Result<Vec<u8>> {
        self.check()?;
        let question: Question = serde_json::from_slice(question)?;
        let part = with!(&question, asked => postcard::to_stdvec(&asked.part(self, stop)?)?);
        // What was read meanwhile may be of another file.
        self.check()?;
        Ok(part)
    }

    fn merge(&self, question: &[u8], one: Vec<u8>, other: Vec<u8>) -> Result<Vec<u8>> {
        merged(question, &one, &other)
    }
}

/// The part of two agents. All that this depends on is the question.
///
/// # Errors
/// They are no parts of an answer to it.
pub fn merged(question: &[u8], one: &[u8], other: &[u8]) -> Result<Vec<u8>> {
    fn of<A: Asked>(_: &A, one: &[u8], other: &[u8]) -> Result<Vec<u8>> {
        let mut part: A::Part = postcard::from_bytes(one)?;
        part.merge(postcard::from_bytes(other)?);
        Ok(postcard::to_stdvec(&part)?)
    }
    let question: Question = serde_json::from_slice(question)?;
    with!(&question, asked => of(asked, one, other))
}

/// The answer to a question that the agents have replied to; only the head makes it. An answer without
/// the parts of some agents says whose are missing.
///
/// # Errors
/// The question makes no sense, or the trace has changed.
pub fn answer(share: &Share, question: &Question, reply: Reply) -> Result<Value> {
    fn of<A: Asked>(share: &Share, asked: &A, part: &[u8]) -> Result<Value> {
        asked.answer(share, postcard::from_bytes(part)?)
    }
    let own = reply.missing.iter().find(|missing| missing.agent == 0);
    match (own.map(|own| &own.why), &reply.part) {
        (Some(Why::Failed(why)), _) => bail!("{why}"),
        (Some(_), _) | (_, None) => {
            bail!("it takes too long: ask about less, or allow more with --wait")
        }
        (None, Some(part)) => {
            let mut answer = with!(question, asked => of(share, asked, part))?;
            if let (Value::Object(fields), false) = (&mut answer, reply.missing.is_empty()) {
                fields.insert("missing".to_owned(), missing(share, &reply.missing));
            }
            if answer.to_string().len() > LARGEST {
                bail!("the answer does not fit on a screen: ask about less");
            }
            Ok(answer)
        }
    }
}

/// Who is missing, and why; those with the same reason together.
fn missing(share: &Share, missing: &[Missing]) -> Value {
    let mut whys: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for one in missing {
        let why = match &one.why {
            Why::Gone => "has ended",
            Why::Late => "did not answer in time",
            Why::Behind => "cannot be reached: the agent before it does not answer",
            Why::Failed(why) => why,
        };
        let why = short(why);
        let is_told = whys.len() < ROWS || whys.contains_key(&why);
        let why = if is_told {
            why
        } else {
            "fails for another reason".to_owned()
        };
        whys.entry(why).or_default().push(one.agent);
    }
    let rows = whys.into_iter().map(|(why, agents)| {
        let held = |placed: &&Placed| agents.contains(&(placed.agent as usize));
        let ranks = share.events().placed.iter().filter(held);
        json!({
            "agents": short(&rank_ranges(agents.iter().map(|&agent| agent as u32))),
            "ranks": short(&list_of_ranks(ranks.map(|placed| placed.rank).collect::<RankSet>().iter(), RANGES)),
            "why": why,
        })
    });
    rows.collect()
}

/// Seconds of ns.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// A text, cut to what a line of a table shows.
pub(crate) fn short(text: &str) -> String {
    cut(text, LONGEST)
}

/// Characters that a line of a table shows.
const LONGEST: usize = 200;

/// A text, cut to so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
