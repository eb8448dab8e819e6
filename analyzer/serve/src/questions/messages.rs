//! Messages between the locations of a time line.

use anyhow::{Result, bail};
use laggard_overlay::Stop;
use laggard_overlay::filters::First;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::path::without;
use super::{Asked, LOCATIONS, seconds};
use crate::share::Share;
use crate::whole::Whole;

/// Most messages that are told.
const MESSAGES: usize = 800;

/// The messages among some locations in a stretch of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Messages {
    /// From when on; from the start.
    pub from_s: Option<f64>,
    /// Until when; to the end.
    pub until_s: Option<f64>,
    /// First location.
    pub first: Option<usize>,
    /// Last location.
    pub last: Option<usize>,
}

impl Asked for Messages {
    /// The answer, as JSON, at the head.
    type Part = Option<First<String>>;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        if chosen.len() > LOCATIONS {
            bail!("messages are told among {LOCATIONS} locations at most");
        }
        let all = match share
            .whole()
            .and_then(|whole| whole.map(Whole::messages).transpose())
        {
            Ok(None) => return Ok(None),
            Ok(Some(None)) => return Ok(Some(without(""))),
            Ok(Some(Some(all))) => all,
            Err(why) => return Ok(Some(without(&format!("{why:#}")))),
        };
        stop.check()?;
        let is_among = |at: u32| chosen.contains(&(at as usize));
        let among = all
            .within(stretch)
            .filter(|message| is_among(message.from) && is_among(message.to))
            .take(MESSAGES + 1);
        let told = among.map(|message| {
            json!([
                message.from,
                message.sent - stretch.0,
                message.to,
                message.received - stretch.0,
                message.bytes
            ])
        });
        let told: Vec<Value> = told.collect();
        if told.len() > MESSAGES {
            let why = format!("more than {MESSAGES} messages: zoom in");
            return Ok(Some(without(&why)));
        }
        let answer = json!({
            "is_made": true,
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "messages": told,
        });
        Ok(Some(First(answer.to_string())))
    }

    fn answer(&self, _: &Share, part: Self::Part) -> Result<Value> {
        match part {
            Some(text) => Ok(serde_json::from_str(&text.0)?),
            None => bail!("the head has the messages"),
        }
    }
}
