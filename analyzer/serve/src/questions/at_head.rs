//! Answers that the head makes of the run as a whole, which it reads once somebody asks.

use std::sync::Arc;

use anyhow::{Context, Result};
use laggard_overlay::filters::First;
use serde_json::{Value, json};

use super::short;
use crate::share::Share;
use crate::whole::Whole;

/// The answer, as JSON, at the head; the other agents have no part in it.
pub type AtHead = Option<First<String>>;

/// What the head has made of the run; the part of the answer where there is no such thing: elsewhere, yet, or for
/// a reason.
pub fn made<T>(
    share: &Share,
    get: impl FnOnce(&Arc<Whole>) -> Result<Option<Arc<T>>>,
) -> Result<Arc<T>, AtHead> {
    match share.whole().and_then(|whole| whole.map(get).transpose()) {
        Ok(None) => Err(None),
        Ok(Some(None)) => Err(without("")),
        Ok(Some(Some(made))) => Ok(made),
        Err(why) => Err(without(&format!("{why:#}"))),
    }
}

/// An answer without what was asked for, yet or for a reason.
pub fn without(why: &str) -> AtHead {
    told(&json!({"is_made": false, "why": short(why)}))
}

/// An answer.
pub fn told(answer: &Value) -> AtHead {
    Some(First(answer.to_string()))
}

/// The answer that the head told.
///
/// # Errors
/// It told none.
pub fn heard(part: AtHead) -> Result<Value> {
    let text = part.context("the head has no part in this answer")?;
    Ok(serde_json::from_str(&text.0)?)
}
