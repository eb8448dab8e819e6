//! Rules for hints: built-in and from the user's file.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use laggard_patterns::rules::{Complaint, RuleBase, read};

/// Largest file of rules, bytes; nobody types more.
const LARGEST: u64 = 1 << 20;

/// Rules, and complaints about the user's.
#[derive(Clone, Debug)]
pub struct Rules {
    /// All valid rules.
    pub base: RuleBase,
    /// The user's file; empty without one.
    pub file: String,
    /// Errors in the user's file. The rules concerned are left out.
    pub complaints: Vec<Complaint>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            base: RuleBase::built_in().clone(),
            file: String::new(),
            complaints: Vec::new(),
        }
    }
}

impl Rules {
    /// The built-in rules and those of a file.
    ///
    /// # Errors
    /// If the file cannot be read. Errors in single rules are complaints instead.
    pub fn with_file(path: &Path) -> Result<Rules> {
        let shown = path.display();
        let about = || format!("{shown}: cannot read the rules");
        let bytes = laggard_files::read(path, LARGEST).with_context(about)?;
        let text = String::from_utf8(bytes).map_err(|_| anyhow!("{shown}: not a text file"))?;
        let (rules, complaints) = read(&text);
        Ok(Rules {
            base: RuleBase::built_in().with(rules),
            file: shown.to_string(),
            complaints,
        })
    }
}
