//! The rule base: hints as data. A rule has patterns and conditions, a sentence with places for
//! facts, and an upper bound for the time it saves.
//!
//! The product's rules are in `rules.toml`. Those that promise no gain, general advice, are in
//! `advice.toml`. Users add their own (`RULES.md`).

mod base;
mod expression;
mod facts;
mod parse;
mod read;
mod repair;
mod subject;
mod tokens;

pub use base::RuleBase;
pub use expression::{Expression, Type};
pub use facts::{Fact, FactRow, Facts, Kind, Value};
pub use read::{Complaint, read};
pub use repair::Repair;
pub use subject::{Activity, Subject};

use crate::PatternId;
use crate::wrapped::wrap;

/// A hint and when it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Id in reports and on the command line.
    pub id: String,
    /// Patterns of findings that it applies to.
    pub patterns: Vec<PatternId>,
    /// Activities of root causes that it applies to.
    pub roots: Vec<Activity>,
    /// When it holds.
    pub when: Expression,
    /// The text of the condition.
    pub when_text: String,
    /// The advice.
    pub say: Template,
    /// The text of the advice.
    pub say_text: String,
    /// Largest gain of the run, s.
    pub gain: Option<Expression>,
    /// The text of the formula.
    pub gain_text: String,
    /// What is changed, if a replay can tell.
    pub change: Option<Repair>,
    /// Why that gains no less than what is advised, but may gain more; empty if it is just that.
    pub inexact: String,
    /// Why it helps, for the manual.
    pub about: String,
    /// Further reading; empty: the rule's page.
    pub link: String,
    /// Ids of rules that it makes superfluous.
    pub replaces: Vec<String>,
    /// What it advises, in a word that other rules may exclude; may be empty.
    pub action: String,
    /// Ids or actions of rules that say the opposite.
    pub excludes: Vec<String>,
}

/// A sentence with places for facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Fact(Fact),
    /// For a number: words for one, and for any other.
    Plural(Fact, String, String),
}

/// A rule's hint for a finding or root cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// The sentence.
    pub text: String,
    /// Largest gain of the run, s.
    pub gain: Option<f64>,
}

/// A smaller share of the run is not worth a hint.
pub const LEAST_GAIN: f64 = 0.0005;

impl Template {
    /// Reads a sentence with facts in braces.
    ///
    /// # Errors
    /// What is wrong, and its position in bytes.
    pub fn parse(text: &str) -> Result<Template, (usize, String)> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(begin) = text[at..].find(['{', '}']).map(|found| at + found) {
            parts.push(Part::Text(text[at..begin].to_owned()));
            let end = text[begin..].find('}').map(|length| begin + length);
            let Some(end) = end.filter(|&end| end > begin) else {
                return Err((begin, "a brace without its other one".to_owned()));
            };
            let mut words = text[begin + 1..end].split('|').map(str::trim);
            let name = words.next().unwrap_or_default();
            let Some(fact) = Fact::from_name(name) else {
                let like = Fact::like(name);
                return Err((begin, format!("unknown fact {{{name}}}; is it {{{like}}}?")));
            };
            let is_number = fact.row().kind == Kind::Count;
            parts.push(match (words.next(), words.next(), words.next()) {
                (None, ..) => Part::Fact(fact),
                (Some(one), Some(more), None) if is_number => {
                    Part::Plural(fact, one.to_owned(), more.to_owned())
                }
                _ => {
                    let why = "expected {number|word for one|word for more}";
                    return Err((begin, why.to_owned()));
                }
            });
            at = end + 1;
        }
        parts.push(Part::Text(text[at..].to_owned()));
        Ok(Template(parts))
    }

    /// The sentence; `None` if it needs an unknown fact. `show` formats numbers.
    pub fn fill(&self, facts: &Facts, show: &dyn Fn(Kind, f64) -> String) -> Option<String> {
        let part = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Fact(fact) => Some(match facts.get(*fact)? {
                Value::Text(text) => text.clone(),
                Value::Number(number) => show(fact.row().kind, *number),
            }),
            Part::Plural(fact, one, more) => match facts.get(*fact)? {
                Value::Number(1.0) => Some(one.clone()),
                _ => Some(more.clone()),
            },
        };
        let parts: Option<Vec<String>> = self.0.iter().map(part).collect();
        // The text may span several lines.
        let sentence = parts?.concat();
        let words: Vec<&str> = sentence.split_whitespace().collect();
        Some(words.join(" "))
    }
}

impl Rule {
    /// Whether it is about such findings or root causes.
    pub fn is_about(&self, subject: Subject) -> bool {
        match subject {
            Subject::Finding(pattern) => self.patterns.contains(&pattern),
            Subject::Root(activity) => self.roots.contains(&activity),
        }
    }

    /// The rule's hint for a finding or root cause, if it holds there.
    pub fn hint(
        &self,
        subject: Subject,
        facts: &Facts,
        show: &dyn Fn(Kind, f64) -> String,
    ) -> Option<Hint<'_>> {
        if !self.is_about(subject) || self.when.holds(facts) != Some(true) {
            return None;
        }
        let gain = match &self.gain {
            None => None,
            Some(formula) => {
                let wall = match facts.get(Fact::Wall)? {
                    Value::Number(wall) => *wall,
                    Value::Text(_) => return None,
                };
                let gain = formula.number(facts)?.min(wall);
                Some(gain).filter(|gain| *gain >= LEAST_GAIN * wall)?;
                Some(gain)
            }
        };
        let text = self.say.fill(facts, show)?;
        Some(Hint {
            rule: self,
            text,
            gain,
        })
    }

    /// Whether one of the two says the opposite of the other.
    pub fn excludes(&self, other: &Rule) -> bool {
        let one = |one: &Rule, other: &Rule| {
            let mut names = one.excludes.iter();
            names.any(|name| *name == other.id || *name == other.action)
        };
        one(self, other) || one(other, self)
    }

    /// Whether it promises nothing and has no explanation beyond its sentence.
    pub fn is_general(&self) -> bool {
        self.gain.is_none() && self.about.is_empty() && self.link.is_empty()
    }

    /// Its subject, in a sentence.
    pub fn summary(&self) -> &str {
        let text = if self.about.is_empty() {
            &self.say_text
        } else {
            &self.about
        };
        text.find(". ").map_or(text, |end| &text[..=end])
    }

    /// The manual's page.
    pub fn page(&self) -> String {
        let mut text = format!("{}\n\n", self.id);
        if !self.about.is_empty() {
            wrap(&mut text, "", "", &self.about);
            text.push('\n');
        }
        text.push_str("What it says\n");
        wrap(&mut text, "  ", "  ", &self.say_text);
        if !self.patterns.is_empty() {
            text.push_str("\nFor findings of\n");
        }
        for pattern in &self.patterns {
            text.push_str(&format!("  {} ({})\n", pattern.name(), pattern.id()));
        }
        if !self.roots.is_empty() {
            let names: Vec<&str> = self.roots.iter().map(|root| root.name()).collect();
            text.push_str(&format!("\nFor root causes of\n  {}\n", names.join(", ")));
        }
        text.push_str("\nWhen\n");
        wrap(&mut text, "  ", "  ", &self.when_text);
        if self.gain.is_some() {
            text.push_str("\nThe run gets shorter by at most\n");
            wrap(&mut text, "  ", "  ", &self.gain_text);
        }
        if let Some(change) = self.change {
            text.push_str(&format!("\nReplayed with\n  {}\n", change.name()));
            if !self.inexact.is_empty() {
                wrap(
                    &mut text,
                    "  ",
                    "  ",
                    &format!("That is a bound: {}.", self.inexact),
                );
            }
        }
        text.push_str("\nlaggard patterns --facts says what the words mean.\n");
        text
    }
}

/// The list of facts, for the manual.
pub fn facts_page() -> String {
    let mut text = String::from("What rules may ask about a finding\n\n");
    for fact in Fact::ALL {
        let row = fact.row();
        let first = format!("  {:<16} {:<7} ", row.name, row.kind.unit());
        let meaning = row.meaning;
        wrap(&mut text, &first, &" ".repeat(27), meaning);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_lists_every_fact() {
        let guide = include_str!("../../RULES.md");
        let page = facts_page();
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        for fact in Fact::ALL {
            let row = fact.row();
            assert!(page.contains(row.name));
            let meaning = row.meaning.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = format!("| `{}` | {} | {meaning} |", row.name, row.kind.unit());
            assert!(guide.contains(&line), "RULES.md lacks: {line}");
        }
        let with_numbers = RuleBase::built_in()
            .iter()
            .filter(|rule| !rule.is_general());
        for rule in with_numbers {
            assert!(guide.contains(&format!("`{}`", rule.id)), "{}", rule.id);
        }
    }

    #[test]
    fn words_agree_with_numbers() {
        let template = Template::parse("{who} {waiting|waits|wait}.").unwrap();
        let say = |who: &str, waiting: f64| {
            let mut facts = Facts::default();
            facts.text(Fact::Who, who);
            facts.number(Fact::Waiting, waiting);
            template.fill(&facts, &|_, number| number.to_string())
        };
        assert_eq!(say("rank 1", 1.0).unwrap(), "rank 1 waits.");
        assert_eq!(say("ranks 0-2", 3.0).unwrap(), "ranks 0-2 wait.");
        for text in ["{calls|call}", "{calls|a|b|c}", "{who|waits|wait}"] {
            let (at, why) = Template::parse(text).unwrap_err();
            assert_eq!(at, 0, "{text}");
            assert!(why.starts_with("expected {number|"), "{text}: {why}");
        }
    }

    #[test]
    fn braces_hold_facts() {
        let wrong = |text| Template::parse(text).unwrap_err();
        assert_eq!(
            wrong("a {rank_los}").1,
            "unknown fact {rank_los}; is it {rank_loss}?"
        );
        assert_eq!(wrong("ab {rank_loss").0, 3);
        assert_eq!(wrong("ab }").0, 3);
        assert!(Template::parse("nothing").is_ok());
    }
}
