//! One change to the program is one hint: messages that are combined are combined at both ends.

use laggard_patterns::rules::{Repair, RuleBase};
use laggard_report::Bottleneck;

/// Of findings at both ends of the same messages, only the one with the larger promise keeps a hint
/// that changes both ends.
pub fn tell_once(all: &mut [Bottleneck], rules: &RuleBase) {
    let changes_both = |rule: &str| {
        let rule = rules.find(rule);
        rule.is_some_and(|rule| rule.change == Some(Repair::Combine))
    };
    let mut said: Vec<(f64, usize, String)> = Vec::new();
    for (at, found) in all.iter().enumerate() {
        let of_both = found
            .advice
            .iter()
            .filter(|advice| changes_both(&advice.rule));
        said.extend(of_both.map(|one| (one.gain_s.unwrap_or(0.0), at, one.rule.clone())));
    }
    said.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<(usize, String)> = Vec::new();
    for (_, at, rule) in said {
        let is_other_end = |(other, known): &(usize, String)| {
            *known == rule && knows(&all[*other], &all[at]) && knows(&all[at], &all[*other])
        };
        if !kept.iter().any(is_other_end) {
            kept.push((at, rule));
            continue;
        }
        let found = &mut all[at];
        let gone: Vec<String> = found
            .advice
            .extract_if(.., |advice| advice.rule == rule)
            .map(|advice| advice.sentence())
            .collect();
        found.hints.retain(|hint| !gone.contains(hint));
    }
}

/// Whether a finding is about the call of another one, or waits for that.
fn knows(found: &Bottleneck, other: &Bottleneck) -> bool {
    let call = (&other.operation, &other.location);
    let mut causes = found.causes.iter();
    call == (&found.operation, &found.location)
        || causes.any(|cause| call == (&cause.operation, &cause.location))
}
