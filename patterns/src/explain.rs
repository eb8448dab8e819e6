//! The output of `laggard patterns --explain`.

use crate::catalogue::PatternId;
use crate::rules::RuleBase;
use crate::wrapped::wrap;

/// The manual's page of a pattern, with the advice of these rules.
pub fn explain(pattern: PatternId, rules: &RuleBase) -> String {
    let row = pattern.row();
    let mut page = format!("{} ({})\n\n", row.name, row.id);
    wrap(&mut page, "", "", row.summary);
    page.push('\n');
    wrap(&mut page, "", "", row.description);
    page.push_str("\nWhen it counts\n");
    wrap(&mut page, "  ", "  ", row.condition);
    page.push_str("\nWhat it costs\n");
    wrap(&mut page, "  ", "  ", row.severity);
    page.push_str("\nWhat to try\n");
    let rules = rules.iter().filter(|rule| rule.is_about(pattern.into()));
    let (general, with_numbers): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.is_general());
    for rule in general {
        wrap(&mut page, "  - ", "    ", &rule.say_text);
    }
    let ids: Vec<&str> = with_numbers.iter().map(|rule| rule.id.as_str()).collect();
    if !ids.is_empty() {
        page.push_str("\nHints with numbers, if their conditions hold\n");
        wrap(&mut page, "  ", "  ", &ids.join(", "));
    }
    page.push_str(&format!(
        "\nMeasured in {}, part of {}.\n",
        row.unit.name(),
        row.parent
    ));
    page
}
