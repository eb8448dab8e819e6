//! How long the run would take with a change: what `laggard what-if` predicts.

use anyhow::{Result, anyhow, bail};
use laggard_overlay::Stop;
use laggard_overlay::filters::First;
use laggard_whatif::{Change, Scenario, gain};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Asked, short};
use crate::share::Share;

/// Most changes of a scenario.
const CHANGES: usize = 64;

/// A scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WhatIf {
    /// Its changes, each of a kind and its words, as in a file of scenarios.
    pub changes: Vec<(String, String)>,
}

impl WhatIf {
    fn scenario(&self) -> Result<Scenario> {
        if self.changes.is_empty() || self.changes.len() > CHANGES {
            bail!("a scenario has 1 to {CHANGES} changes");
        }
        let changes = self.changes.iter().map(|(kind, words)| {
            match Change::parse(kind, words).map_err(|why| anyhow!(why))? {
                // No question names a file.
                Change::Baseline(_) => bail!("tables of baselines are for laggard what-if alone"),
                change => Ok(change),
            }
        });
        Ok(Scenario::new(
            String::new(),
            changes.collect::<Result<_>>()?,
        ))
    }
}

/// Why no change can be asked about; `None` if some can.
pub fn refused(share: &Share) -> Option<String> {
    match share.whole() {
        Err(why) => Some(format!("{why:#}")),
        Ok(Some(whole)) if whole.is_beyond_replay() => {
            const WHY: &str = "the trace is too large to replay it for a page: use laggard what-if, or start laggard serve with a larger --what-if-mb";
            Some(WHY.to_owned())
        }
        Ok(_) => None,
    }
}

impl Asked for WhatIf {
    /// The answer, as JSON, at the head.
    type Part = Option<First<String>>;

    fn part(&self, share: &Share, stop: &Stop) -> Result<Self::Part> {
        let scenario = self.scenario()?;
        if let Some(why) = refused(share) {
            bail!(why);
        }
        let Some(whole) = share.whole()? else {
            return Ok(None);
        };
        let _turn = whole.turn(stop)?;
        let events = whole.events()?;
        let found = gain(
            &events,
            share.report().ok(),
            scenario,
            &|| Ok(stop.check()?),
        )?;
        let changes = found.changes.iter().map(|change| short(change));
        let answer = json!({
            "changes": changes.collect::<Vec<_>>(),
            "time_s": found.time_s,
            "recorded_s": found.time_s + found.gain_s,
            "gain_s": found.gain_s,
            "gain_percent": found.gain_percent,
            "doubt_s": found.doubt_s,
        });
        Ok(Some(First(answer.to_string())))
    }

    fn answer(&self, _: &Share, part: Self::Part) -> Result<Value> {
        match part {
            Some(text) => Ok(serde_json::from_str(&text.0)?),
            None => bail!("the head replays the run"),
        }
    }
}
