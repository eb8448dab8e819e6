//! The rules that hints come from: those of the product and those of the user.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use laggard_patterns::rules::{Complaint, RuleBase, read};

/// Bytes of a file of rules; nobody types more.
const LARGEST: u64 = 1 << 20;

/// Rules, and what is wrong with the user's.
#[derive(Clone, Debug)]
pub struct Rules {
    /// All that are sound.
    pub base: RuleBase,
    /// The user's file; "" without one.
    pub file: String,
    /// What is wrong with it; the rules that these are about are left out.
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
    /// The product's rules and those of a file.
    ///
    /// # Errors
    /// If the file cannot be read. What is wrong with single rules is no error.
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
