//! `laggard patterns`: the catalogue, and the rules for hints.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use laggard_engine::Rules;
use laggard_patterns::rules::{RuleBase, facts_page};
use laggard_patterns::{GROUPS, PatternId, explain};
use laggard_report::units::wrap;

use super::screen;
use crate::cli::Patterns;

/// Prints the list of patterns and rules, or the page of one.
pub fn patterns(options: &Patterns) -> Result<ExitCode> {
    let rules = options.rules.as_deref().map(Rules::with_file);
    let rules = rules.transpose()?.unwrap_or_default();
    for wrong in &rules.complaints {
        let (file, line) = (&rules.file, wrong.line);
        screen::say(&format!("{file}:{line}: {}; left out", wrong.text));
    }
    let page = match &options.explain {
        Some(id) => match (PatternId::from_text(id), rules.base.find(id)) {
            (Some(pattern), _) => explain(pattern, &rules.base),
            (None, Some(rule)) => rule.page(),
            (None, None) => bail!("no pattern or rule {id}; laggard patterns lists all"),
        },
        None if options.facts => facts_page(),
        None => list(screen::width(), &rules.base),
    };
    screen::print(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// All patterns, by what they are part of, and the rules.
fn list(screen: usize, rules: &RuleBase) -> String {
    let indented = |pattern: PatternId| format!("{}{}", "  ".repeat(depth(pattern)), pattern.id());
    let widest = PatternId::ALL
        .iter()
        .map(|p| indented(*p).len())
        .max()
        .unwrap_or(0);
    let room = screen.saturating_sub(widest + 4).max(30);
    let mut text = String::new();
    for group in GROUPS {
        let members = || {
            PatternId::ALL
                .iter()
                .copied()
                .filter(|p| p.group() == group.id)
        };
        if members().next().is_none() {
            continue;
        }
        let _ = writeln!(text, "{}", group.name);
        for pattern in members() {
            let mut id = indented(pattern);
            for line in wrap(pattern.row().summary, room) {
                let _ = writeln!(text, "  {id:widest$}  {line}");
                id.clear();
            }
        }
        text.push('\n');
    }
    text.push_str("Rules for hints\n");
    for rule in rules.iter().filter(|rule| !rule.is_general()) {
        let mut id = rule.id.as_str();
        for line in wrap(rule.summary(), room) {
            let _ = writeln!(text, "  {id:widest$}  {line}");
            id = "";
        }
    }
    text.push_str("\nlaggard patterns --explain ID says more.\n");
    text
}

/// Patterns above this one.
fn depth(pattern: PatternId) -> usize {
    PatternId::from_id(pattern.row().parent).map_or(0, |parent| 1 + depth(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_listed_once() {
        let list = list(80, RuleBase::built_in());
        assert!(list.lines().all(|line| line.len() <= 80), "{list}");
        for pattern in PatternId::ALL {
            let lines = list
                .lines()
                .filter(|l| l.split_whitespace().next() == Some(pattern.id()));
            assert_eq!(lines.count(), 1, "{}", pattern.id());
        }
        for rule in RuleBase::built_in().iter() {
            let lines = list
                .lines()
                .filter(|l| l.split_whitespace().next() == Some(&rule.id));
            // General advice is on the patterns' pages.
            let expected = usize::from(!rule.is_general());
            assert_eq!(lines.count(), expected, "{}", rule.id);
        }
    }
}
