//! Reads rules from a TOML text. A mistake in one does not spoil the others.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::expression::{Expression, Type, Wrong};
use super::{Activity, Repair, Rule, Template};
use crate::{GROUPS, PatternId};

/// A mistake in a text of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// From 1.
    pub line: usize,
    /// The mistake.
    pub text: String,
}

const KEYS: [&str; 12] = [
    "patterns", "roots", "when", "say", "gain", "change", "inexact", "about", "link", "replaces",
    "action", "excludes",
];

type Value<'t> = Spanned<DeValue<'t>>;

/// The sound rules of a text, in their order, and the complaints about the others.
///
/// A line that begins with `[` begins a rule, so that a broken rule ends where the next one begins.
pub fn read(text: &str) -> (Vec<Rule>, Vec<Complaint>) {
    let mut rules: Vec<Rule> = Vec::new();
    let mut complaints = Vec::new();
    let mut line = 1;
    for section in sections(text) {
        let lines = Lines(section);
        let mut wrong = |(at, text): Mistake| {
            complaints.push(Complaint {
                line: line - 1 + lines.of(at),
                text: one_line(&named(section, &text)),
            });
        };
        match DeTable::parse(section) {
            Err(error) => {
                let message = error.message().lines().next().unwrap_or_default();
                let at = error.span().map_or(0, |span| span.start);
                wrong((at, message.to_owned()));
            }
            Ok(table) => {
                for (key, value) in table.get_ref() {
                    match rule(key.get_ref(), key.span(), value, &lines) {
                        Ok(rule) if rules.iter().any(|known| known.id == rule.id) => {
                            wrong((key.span().start, "there is another one".to_owned()));
                        }
                        Ok(rule) => rules.push(rule),
                        Err(mistake) => wrong(mistake),
                    }
                }
            }
        }
        line += section.matches('\n').count();
    }
    (rules, complaints)
}

/// The parts of a text that begin with a `[` line, and the part before them.
fn sections(text: &str) -> Vec<&str> {
    let begins = text.match_indices("\n[").map(|(at, _)| at + 1);
    let bounds: Vec<usize> = begins.chain([text.len()]).collect();
    let parts = bounds.iter().scan(0, |begin, &end| {
        let part = &text[*begin..end];
        *begin = end;
        Some(part)
    });
    parts.collect()
}

/// A complaint with the name of its rule, if the rule has one.
fn named(section: &str, text: &str) -> String {
    let heading = section.lines().next().unwrap_or_default();
    let name = heading
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next());
    match name.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("rule {name}: {text}"),
        None => text.to_owned(),
    }
}

/// Position in bytes, and the mistake.
type Mistake = (usize, String);

fn rule(id: &str, at: Range<usize>, value: &Value, lines: &Lines) -> Result<Rule, Mistake> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.is_empty() || !id.chars().all(is_part) {
        let why = "a rule's name is made of letters, digits, _ and -".to_owned();
        return Err((at.start, why));
    }
    let DeValue::Table(table) = value.get_ref() else {
        return Err((at.start, format!("expected a heading [{id}]")));
    };
    for key in table.keys() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            let known = KEYS.join(", ");
            let why = format!("unknown key {}; a rule has {known}", key.get_ref());
            return Err((key.span().start, why));
        }
    }
    let get = |key: &str| table.get(key);
    let needed = |key: &str| {
        let missing = || (at.start, format!("{key} is missing"));
        get(key).ok_or_else(missing)
    };
    let expression = |value: &Value, wanted| {
        let text = string(value)?;
        let wrong = |Wrong { at, why }| (lines.within(value.span(), &text, at), why);
        let expression = Expression::parse(&text, wanted).map_err(wrong)?;
        Ok((expression, one_line(&text)))
    };
    let optional = |key: &str| get(key).map_or(Ok(String::new()), string);
    let names = |key: &str| {
        let all = get(key).map_or(Ok(Vec::new()), strings)?;
        Ok(all.into_iter().map(|(_, text)| text).collect())
    };
    let when = get("when").map(|value| expression(value, Type::Truth));
    let (when, when_text) = when.transpose()?.unwrap_or_else(Expression::always);
    let gain = get("gain").map(|value| expression(value, Type::Number));
    let (gain, gain_text) = gain.transpose()?.unzip();
    let say = needed("say")?;
    let sentence = string(say)?;
    let wrong = |(at, why)| (lines.within(say.span(), &sentence, at), why);
    if sentence.trim().is_empty() {
        return Err((say.span().start, "the sentence is empty".to_owned()));
    }
    let roots = get("roots").map(roots).transpose()?;
    let of_findings = match (get("patterns"), &roots) {
        (None, Some(_)) => Vec::new(),
        _ => patterns(needed("patterns")?)?,
    };
    Ok(Rule {
        id: id.to_owned(),
        patterns: of_findings,
        roots: roots.unwrap_or_default(),
        when,
        when_text,
        say: Template::parse(&sentence).map_err(wrong)?,
        say_text: one_line(&sentence),
        gain,
        gain_text: gain_text.unwrap_or_default(),
        change: get("change").map(repair).transpose()?,
        inexact: one_line(&optional("inexact")?),
        about: one_line(&optional("about")?),
        link: optional("link")?,
        replaces: names("replaces")?,
        action: optional("action")?,
        excludes: names("excludes")?,
    })
}

/// The patterns with these ids, and those in groups with these ids.
fn patterns(value: &Value) -> Result<Vec<PatternId>, Mistake> {
    let mut patterns = Vec::new();
    for (at, name) in strings(value)? {
        let is_group = GROUPS.iter().any(|group| group.id == name);
        let is_meant = |pattern: &PatternId| match is_group {
            true => ancestors(*pattern).any(|above| above == name),
            false => pattern.id() == name,
        };
        let before = patterns.len();
        patterns.extend(PatternId::ALL.iter().copied().filter(is_meant));
        if patterns.len() == before {
            let why = format!("unknown pattern {name}; laggard patterns lists all");
            return Err((at, why));
        }
    }
    match patterns.is_empty() {
        true => Err((value.span().start, "patterns is empty".to_owned())),
        false => Ok(patterns),
    }
}

/// The activities with these names.
fn roots(value: &Value) -> Result<Vec<Activity>, Mistake> {
    let names = strings(value)?.into_iter();
    let known = names.map(|(at, name)| {
        Activity::from_name(&name).ok_or_else(|| {
            let known = Activity::ALL.map(Activity::name).join(", ");
            (
                at,
                format!("unknown activity {name}; a root cause has {known}"),
            )
        })
    });
    match known.collect::<Result<Vec<_>, _>>()? {
        none if none.is_empty() => Err((value.span().start, "roots is empty".to_owned())),
        some => Ok(some),
    }
}

/// The change with this name.
fn repair(value: &Value) -> Result<Repair, Mistake> {
    let name = string(value)?;
    Repair::from_name(&name).ok_or_else(|| {
        let known = Repair::ALL.map(Repair::name).join(", ");
        let why = format!("unknown change {name}; a replay knows {known}");
        (value.span().start, why)
    })
}

/// The groups and patterns that enclose a pattern, the nearest first.
fn ancestors(pattern: PatternId) -> impl Iterator<Item = &'static str> {
    let above = |id: &&'static str| {
        let pattern = PatternId::from_id(id).map(|pattern| pattern.row().parent);
        let group = GROUPS.iter().find(|group| group.id == *id);
        let parent = pattern.or_else(|| group.map(|group| group.parent))?;
        Some(parent).filter(|parent| !parent.is_empty())
    };
    std::iter::successors(Some(pattern.row().parent), above)
}

fn string(value: &Value) -> Result<String, Mistake> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err((value.span().start, "expected a text in quotes".to_owned())),
    }
}

/// Texts of a list, or a single one, with their places.
fn strings(value: &Value) -> Result<Vec<(usize, String)>, Mistake> {
    match value.get_ref() {
        DeValue::Array(list) => {
            let texts = list.iter().map(|v| Ok((v.span().start, string(v)?)));
            texts.collect()
        }
        _ => Ok(vec![(value.span().start, string(value)?)]),
    }
}

/// A text of several lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text with numbered lines.
struct Lines<'t>(&'t str);

impl Lines<'_> {
    /// The line of a position, from 1.
    fn of(&self, at: usize) -> usize {
        let before = &self.0.as_bytes()[..at.min(self.0.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The position `at` bytes into a string's value. If the string's source differs from its
    /// value, the start of the string.
    fn within(&self, span: Range<usize>, value: &str, at: usize) -> usize {
        let written = self.0.get(span.clone()).unwrap_or_default();
        match written.find(value).filter(|_| !value.is_empty()) {
            Some(start) => span.start + start + at,
            None => span.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "[good]\npatterns = 'late_sender'\nwhen = 'true'\nsay = 'x {place}'\ngain = '1'\n";

    /// The ids read and the complaints for a bad rule between two good ones.
    fn between(bad: &str) -> (Vec<String>, Vec<Complaint>) {
        let text = format!("{GOOD}{bad}\n{}", GOOD.replace("good", "better"));
        let (rules, complaints) = read(&text);
        (rules.into_iter().map(|rule| rule.id).collect(), complaints)
    }

    #[test]
    fn a_mistake_names_its_line_and_spoils_nothing_else() {
        let rule = |key: &str, value: &str| {
            let mut keys = vec![
                ("patterns", "['late_sender']"),
                ("when", "'true'"),
                ("say", "'x'"),
            ];
            keys.retain(|(known, _)| *known != key);
            keys.push((key, value));
            let lines: Vec<String> = keys.iter().map(|(k, v)| format!("{k} = {v}")).collect();
            format!("[bad]\n{}", lines.join("\n"))
        };
        // The bad rule's heading is line 6, its last key line 9.
        for (bad, line, why) in [
            (
                rule("when", "'byts > 1'"),
                9,
                "rule bad: unknown fact byts; is it bytes?",
            ),
            (
                rule("when", "\"\"\"\ntrue and\nbyts > 1\"\"\""),
                11,
                "rule bad: unknown fact byts",
            ),
            (rule("when", "1"), 9, "rule bad: expected a text in quotes"),
            (
                rule("gain", "'severity > 1'"),
                10,
                "rule bad: this is a condition",
            ),
            (
                rule("say", "'{plac}'"),
                9,
                "rule bad: unknown fact {plac}; is it {place}?",
            ),
            (rule("say", "' '"), 9, "rule bad: the sentence is empty"),
            (
                rule("patterns", "['late_sander']"),
                9,
                "rule bad: unknown pattern late_sander",
            ),
            (rule("patterns", "[]"), 9, "rule bad: patterns is empty"),
            (rule("roots", "[]"), 10, "rule bad: roots is empty"),
            (
                rule("roots", "'idling'"),
                10,
                "rule bad: unknown activity idling; a root cause has computation, io",
            ),
            (
                rule("change", "'nothing'"),
                10,
                "rule bad: unknown change nothing; a replay knows non_blocking, combine",
            ),
            (
                rule("wehn", "'true'"),
                10,
                "rule bad: unknown key wehn; a rule has patterns, roots, when",
            ),
            (
                "[bad]\nwhen = 'true'\nsay = 'x'".to_owned(),
                6,
                "rule bad: patterns is missing",
            ),
            ("[bad]\nwhen = 'true\nsay = 'x'".to_owned(), 7, "rule bad: "),
            (
                "[bad]\nwhen = \"\"\"true\nsay = 'x'".to_owned(),
                9,
                "rule bad: ",
            ),
            ("[bad\nwhen = 'true'\nsay = 'x'".to_owned(), 6, "rule bad: "),
            ("[bad]\nwhen = true and false".to_owned(), 7, "rule bad: "),
            (
                GOOD.trim_end().to_owned(),
                6,
                "rule good: there is another one",
            ),
            (
                "['b d']\nwhen = 'true'".to_owned(),
                6,
                "rule 'b d': a rule's name is made of",
            ),
        ] {
            let (ids, complaints) = between(&bad);
            assert_eq!(complaints.len(), 1, "{bad}: {complaints:?}");
            assert_eq!(complaints[0].line, line, "{bad}: {complaints:?}");
            assert!(complaints[0].text.starts_with(why), "{bad}: {complaints:?}");
            assert!(!complaints[0].text.is_empty() && !complaints[0].text.contains('\n'));
            assert_eq!(ids, ["good", "better"], "{bad}");
        }
    }

    #[test]
    fn groups_stand_for_their_patterns() {
        let of = |name: &str| {
            read(&GOOD.replace("late_sender", name))
                .0
                .remove(0)
                .patterns
        };
        assert_eq!(of("late_sender"), [PatternId::LateSender]);
        assert!(of("two_sided").contains(&PatternId::LateSenderWrongOrderSameSource));
        assert!(!of("two_sided").contains(&PatternId::WaitAtNxn));
        assert!(of("lost").len() > of("two_sided").len() + of("group_comm").len());
    }

    proptest::proptest! {
        /// Any file gives rules and complaints.
        #[test]
        fn any_text_is_read(text in "(\\[|\\]|=|'|\"|when|say|patterns|true|\n| |[a-z]|\\PC){0,60}") {
            let lines = text.lines().count();
            for complaint in read(&text).1 {
                proptest::prop_assert!((1..=lines + 1).contains(&complaint.line));
            }
        }
    }
}
