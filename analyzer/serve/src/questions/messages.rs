//! Messages between the locations of a time line.

use anyhow::{Result, bail};
use laggard_overlay::Stop;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::at_head::{AtHead, heard, made, told, without};
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
    type Part = AtHead;

    fn part(&self, share: &Share, stop: &Stop) -> Result<AtHead> {
        let stretch = share.stretch(self.from_s, self.until_s)?;
        let chosen = share.chosen(self.first, self.last)?;
        if chosen.len() > LOCATIONS {
            bail!("messages are told among {LOCATIONS} locations at most");
        }
        let all = match made(share, Whole::messages) {
            Ok(all) => all,
            Err(without) => return Ok(without),
        };
        let among = chosen.start as u32..chosen.end as u32;
        let messages = all.within(stretch, &among, MESSAGES + 1, stop)?;
        let messages = messages.iter().map(|message| {
            json!([
                message.from,
                message.sent - stretch.0,
                message.to,
                message.received - stretch.0,
                message.bytes
            ])
        });
        let messages: Vec<Value> = messages.collect();
        if messages.len() > MESSAGES {
            let why = format!("more than {MESSAGES} messages: zoom in");
            return Ok(without(&why));
        }
        let answer = json!({
            "is_made": true,
            "from_s": seconds(stretch.0),
            "until_s": seconds(stretch.1),
            "messages": messages,
        });
        Ok(told(&answer))
    }

    fn answer(&self, _: &Share, part: AtHead) -> Result<Value> {
        heard(part)
    }
}
