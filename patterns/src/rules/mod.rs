//! The rule base: hints as data. A rule says for which patterns and under which conditions it
//! holds, a sentence with places for facts, and at most how much shorter the run gets.
//!
//! The rules that the product brings are in `rules.toml`; users add their own (`RULES.md`).

mod expression;
mod facts;
mod read;
mod tokens;

use std::sync::LazyLock;

pub use expression::{Expression, Type};
pub use facts::{Fact, FactRow, Facts, Kind, Value};
pub use read::{Complaint, read};

use crate::PatternId;
use crate::catalogue::wrap;

/// A hint and when it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// In reports and on the command line.
    pub id: String,
    /// Findings of these patterns are looked at.
    pub patterns: Vec<PatternId>,
    /// When it holds.
    pub when: Expression,
    /// The condition as it was written.
    pub when_text: String,
    /// What to try.
    pub say: Template,
    /// The same as it was written.
    pub say_text: String,
    /// By how much the run gets shorter, at most. s
    pub gain: Option<Expression>,
    /// The formula as it was written.
    pub gain_text: String,
    /// Why it helps, for the manual.
    pub about: String,
    /// Where more is said; empty: on the rule's page.
    pub link: String,
    /// General advice of the patterns that need not be given beside it.
    pub replaces: Vec<String>,
}

/// A sentence with places for facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Fact(Fact),
}

/// What a rule says of a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint<'r> {
    /// Which rule.
    pub rule: &'r Rule,
    /// The sentence.
    pub text: String,
    /// By how much the run gets shorter, at most. s
    pub gain: Option<f64>,
}

/// A promise of less than this part of the run is not worth a hint.
const LEAST_GAIN: f64 = 0.0005;

impl Template {
    /// Reads a sentence with facts in braces.
    ///
    /// # Errors
    /// What is wrong, and after how many bytes.
    pub fn parse(text: &str) -> Result<Template, (usize, String)> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(begin) = text[at..].find(['{', '}']).map(|found| at + found) {
            parts.push(Part::Text(text[at..begin].to_owned()));
            let end = text[begin..].find('}').map(|length| begin + length);
            let Some(end) = end.filter(|&end| end > begin) else {
                return Err((begin, "a brace without its other one".to_owned()));
            };
            let name = text[begin + 1..end].trim();
            let Some(fact) = Fact::from_name(name) else {
                let like = Fact::like(name);
                return Err((begin, format!("unknown fact {{{name}}}; is it {{{like}}}?")));
            };
            parts.push(Part::Fact(fact));
            at = end + 1;
        }
        parts.push(Part::Text(text[at..].to_owned()));
        Ok(Template(parts))
    }

    /// The sentence; `None` if a fact in it is not known. `show` writes numbers.
    pub fn fill(&self, facts: &Facts, show: &dyn Fn(Kind, f64) -> String) -> Option<String> {
        let part = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Fact(fact) => Some(match facts.get(*fact)? {
                Value::Text(text) => text.clone(),
                Value::Number(number) => show(fact.row().kind, *number),
            }),
        };
        let parts: Option<Vec<String>> = self.0.iter().map(part).collect();
        // It may have been written on several lines.
        let sentence = parts?.concat();
        let words: Vec<&str> = sentence.split_whitespace().collect();
        Some(words.join(" "))
    }
}

impl Rule {
    /// What it says of a finding of a pattern, if it holds there.
    pub fn hint(
        &self,
        pattern: PatternId,
        facts: &Facts,
        show: &dyn Fn(Kind, f64) -> String,
    ) -> Option<Hint<'_>> {
        if !self.patterns.contains(&pattern) || self.when.holds(facts) != Some(true) {
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

    /// What it is about, in a sentence.
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
        text.push_str("\nFor findings of\n");
        for pattern in &self.patterns {
            text.push_str(&format!("  {} ({})\n", pattern.name(), pattern.id()));
        }
        text.push_str("\nWhen\n");
        wrap(&mut text, "  ", "  ", &self.when_text);
        if self.gain.is_some() {
            text.push_str("\nThe run gets shorter by at most\n");
            wrap(&mut text, "  ", "  ", &self.gain_text);
        }
        text.push_str("\nlaggard patterns --facts says what the words mean.\n");
        text
    }
}

/// The rules that the product brings.
static BUILT_IN: LazyLock<RuleBase> = LazyLock::new(|| {
    let (rules, complaints) = read(include_str!("../../rules.toml"));
    debug_assert!(complaints.is_empty(), "{complaints:?}");
    RuleBase { rules }
});

/// Rules, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleBase {
    rules: Vec<Rule>,
}

impl RuleBase {
    /// The rules that the product brings.
    pub fn built_in() -> &'static RuleBase {
        &BUILT_IN
    }

    /// These and more; one with the same id takes the other's place.
    pub fn with(&self, more: Vec<Rule>) -> RuleBase {
        let mut rules = self.rules.clone();
        for rule in more {
            match rules.iter_mut().find(|known| known.id == rule.id) {
                Some(known) => *known = rule,
                None => rules.push(rule),
            }
        }
        RuleBase { rules }
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The rule with this id.
    pub fn find(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// What the rules say of a finding, those that promise most first. `show` writes numbers.
    pub fn hints(
        &self,
        pattern: PatternId,
        facts: &Facts,
        show: &dyn Fn(Kind, f64) -> String,
    ) -> Vec<Hint<'_>> {
        let found = self.rules.iter();
        let found = found.filter_map(|rule| rule.hint(pattern, facts, show));
        let mut hints: Vec<Hint> = found.collect();
        let gain = |hint: &Hint| hint.gain.unwrap_or(0.0);
        hints.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        hints
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

    fn show(kind: Kind, number: f64) -> String {
        match kind {
            Kind::Time => format!("{:.0} ms", number * 1e3),
            _ => number.to_string(),
        }
    }

    fn one(text: &str) -> RuleBase {
        let (rules, complaints) = read(text);
        assert_eq!(complaints, []);
        RuleBase { rules }
    }

    fn facts(rank_loss: f64) -> Facts {
        let mut facts = Facts::default();
        facts.number(Fact::Wall, 1.0);
        facts.number(Fact::RankLoss, rank_loss);
        facts.text(Fact::Operation, "MPI_Send");
        facts
    }

    const RULE: &str = "[isend]\npatterns = ['late_receiver']\nwhen = \"operation == 'MPI_Send'\"\n\
        say = 'Try {operation} for {rank_loss}.'\ngain = 'rank_loss / 2'\n";

    #[test]
    fn a_rule_says_its_sentence_with_numbers() {
        let rules = one(RULE);
        let (some, none) = (facts(0.2), facts(0.0008));
        let of = |pattern, facts: &Facts| rules.hints(pattern, facts, &show).len();
        let hints = rules.hints(PatternId::LateReceiver, &some, &show);
        assert_eq!(hints[0].text, "Try MPI_Send for 200 ms.");
        assert_eq!(hints[0].gain, Some(0.1));
        assert_eq!(of(PatternId::LateSender, &some), 0);
        // Not worth it.
        assert_eq!(of(PatternId::LateReceiver, &none), 0);
        // Never more than there is.
        let hints = rules
            .hints(PatternId::LateReceiver, &facts(5.0), &show)
            .len();
        assert_eq!(hints, 1);
        let large = facts(5.0);
        let hints = rules.hints(PatternId::LateReceiver, &large, &show);
        assert_eq!(hints[0].gain, Some(1.0));
    }

    #[test]
    fn a_rule_of_the_user_takes_the_place_of_one_with_its_name() {
        let rules = one(RULE);
        let other = RULE.replace("Try", "Use");
        let both = rules.with(read(&other).0);
        assert_eq!(both.iter().count(), 1);
        let facts = facts(0.2);
        let hints = both.hints(PatternId::LateReceiver, &facts, &show);
        assert_eq!(hints[0].text, "Use MPI_Send for 200 ms.");
        assert_eq!(
            rules
                .with(read(&RULE.replace("isend", "other")).0)
                .iter()
                .count(),
            2
        );
    }

    #[test]
    fn those_that_promise_most_come_first() {
        let more = RULE.replace("isend", "more").replace("/ 2", "/ 1");
        let rules = one(RULE).with(read(&more).0);
        let facts = facts(0.2);
        let hints = rules.hints(PatternId::LateReceiver, &facts, &show);
        let ids: Vec<&str> = hints.iter().map(|hint| hint.rule.id.as_str()).collect();
        assert_eq!(ids, ["more", "isend"]);
    }

    #[test]
    fn the_rules_of_the_product_are_sound() {
        let (rules, complaints) = read(include_str!("../../rules.toml"));
        assert_eq!(complaints, []);
        for rule in &rules {
            let id = &rule.id;
            assert!(rule.about.len() > 80, "{id}: says too little");
            assert!(rule.gain.is_some(), "{id}: promises nothing");
            assert!(PatternId::from_text(id).is_none(), "{id}: is a pattern");
            let page = rule.page();
            assert!(
                page.lines().all(|line| line.chars().count() <= 80),
                "{page}"
            );
            for replaced in &rule.replaces {
                let known = rule.patterns.iter().flat_map(|p| p.row().advice);
                let is_known = known.into_iter().any(|advice| advice.text == replaced);
                assert!(is_known, "{id}: nobody says {replaced}");
            }
        }
        assert_eq!(RuleBase::built_in().iter().count(), rules.len());
    }

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
        for rule in RuleBase::built_in().iter() {
            assert!(guide.contains(&format!("`{}`", rule.id)), "{}", rule.id);
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
