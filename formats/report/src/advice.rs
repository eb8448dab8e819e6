//! What a rule for hints says of a finding, and what it promises.

use serde::{Deserialize, Serialize};

use crate::units::{duration, percent};

/// Something to try, and what it may bring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Id of the rule.
    pub rule: String,
    /// A sentence.
    pub text: String,
    /// By how much the run gets shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_s: Option<f64>,
    /// The same in percent of the run's duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// What says so; with a gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
    /// Where more is said: a command or an address.
    pub explain: String,
}

/// What a hint's promise is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// The run was replayed with what the hint says.
    Replay,
    /// It is not more than that.
    Bound,
}

impl Advice {
    /// The hint.
    pub fn sentence(&self) -> String {
        let gain = self.gain_s.zip(self.percent);
        let gain = gain.map_or(String::new(), |(gain, share)| {
            let gain = format!("{} ({})", duration(gain), percent(share));
            match self.promise {
                Some(Promise::Replay) => format!(" Replayed so, the run is {gain} shorter."),
                _ => format!(" The run gets shorter by at most {gain}."),
            }
        });
        format!("{}{gain} ({})", self.text, self.explain)
    }
}
