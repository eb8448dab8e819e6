//! What it gains to do what a report says: to be without its root causes, and to follow its hints.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use laggard_engine::events::Events;
use laggard_patterns::rules::{LEAST_GAIN, Repair, Rule, RuleBase};
use laggard_report::{Advice, Bottleneck, Promise, Report, RootCause, has_rank, ratio};

use crate::graph::Graph;
use crate::scenario::Spot;
use crate::shares::Sites;
use crate::targets::is_known;
use crate::{Change, Outcome, Scenario, replayed_with, together, with_effects};

/// Root causes that are answered, the largest first.
const FIRST: usize = 10;
/// Hints that are answered, the most promising first.
const FIRST_HINTS: usize = 20;
/// Of a cause's waiting: if it may gain so much more, its gain is unknown.
const MOST_DOUBT: f64 = 0.1;

/// A hint of a finding, by numbers.
struct Asked {
    finding: usize,
    advice: usize,
    /// Whether just what the hint says is changed; else it gains no more.
    is_exact: bool,
}

/// Adds to the report of a trace what its first root causes and hints gain, and what the network
/// costs; nothing if the trace has more than `largest` bytes, some of it lies elsewhere, or there was
/// no search for root causes. `rules` are those of the hints.
///
/// # Errors
/// The trace cannot be read, or there is no room for temporary files.
pub fn add_gains(trace: &Path, rules: &RuleBase, report: &mut Report, largest: u64) -> Result<()> {
    if report.root_causes.is_none() || report.run.trace_bytes > largest {
        return Ok(());
    }
    let events = &Events::open(trace)?;
    if events.locations() != report.run.locations as usize {
        return Ok(());
    }
    let causes = report.root_causes.as_deref().unwrap_or_default();
    let is_told = |&number: &usize| can_be_told(&causes[number - 1]);
    let known = (1..=causes.len().min(FIRST)).filter(is_told);
    let known: Vec<usize> = known.collect();
    let mut scenarios: Vec<_> = known
        .iter()
        .map(|&number| Scenario::of(Change::WithoutCause(number, 1.0)))
        .collect();
    let (asked, of_hints) = hints(rules, report);
    scenarios.extend(of_hints);
    let mut graph = Graph::new(events, &|| Ok(()))?;
    let mut replayed = |report: &Report, scenarios: &[Scenario]| {
        let parts = with_effects(events, Some(report), scenarios, &|| Ok(()))?;
        replayed_with(events, Some(report), parts, &mut graph, false)
    };
    let mut prediction = replayed(report, &scenarios)?;
    let of_hints = prediction.scenarios.split_off(known.len());
    // As all shares of a report, and as what hints promise.
    let phases = report.phases_of_run.as_ref();
    let measured = phases.map_or(report.run.wall_time_s, |phases| phases.measured_s);
    let mut causes = report.root_causes.clone().unwrap_or_default();
    for (number, outcome) in known.into_iter().zip(prediction.scenarios) {
        let cause = &mut causes[number - 1];
        if outcome.doubt_s > MOST_DOUBT * cause.severity_s {
            continue;
        }
        cause.gain_s = Some(outcome.gain_s);
        cause.gain_percent = Some(100.0 * ratio(outcome.gain_s, measured).min(1.0));
    }
    together::add(&mut causes, measured, |scenarios| {
        Ok(replayed(report, scenarios)?.scenarios)
    })?;
    report.root_causes = Some(causes);
    let told = asked.into_iter().zip(of_hints);
    for (asked, outcome) in told {
        let found = &mut report.bottlenecks[asked.finding];
        if outcome.doubt_s <= MOST_DOUBT * found.severity_s {
            promise(found, &asked, &outcome);
        }
    }
    report.bottlenecks.iter_mut().for_each(order);
    let (found, transfer) = (
        &mut report.efficiency,
        prediction.recorded.efficiency.transfer,
    );
    if transfer > 0.0 {
        found.transfer = Some(transfer);
        found.serialization = Some(ratio(found.communication, transfer).min(1.0));
    }
    Ok(())
}

/// Whether a replay can tell what it gains to be without a root cause.
pub fn can_be_told(root: &RootCause) -> bool {
    root.can_go() && !root.rank_set.is_empty() && is_known(root)
}

/// The hints that a replay can tell of, and the scenario of each.
fn hints(rules: &RuleBase, report: &Report) -> (Vec<Asked>, Vec<Scenario>) {
    let mut all = Vec::new();
    for (finding, found) in report.bottlenecks.iter().enumerate() {
        for (advice, said) in found.advice.iter().enumerate() {
            let rule = rules.find(&said.rule).filter(|_| said.gain_s.is_some());
            let Some((changes, is_exact)) = rule.and_then(|rule| changes(rule, found, report))
            else {
                continue;
            };
            let scenario = Scenario::new(said.rule.clone(), changes);
            let asked = Asked {
                finding,
                advice,
                is_exact,
            };
            all.push((said.gain_s.unwrap_or_default(), asked, scenario));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(FIRST_HINTS);
    all.into_iter()
        .map(|(_, asked, scenario)| (asked, scenario))
        .unzip()
}

/// What a rule changes for a finding, and whether that is just what it says.
fn changes(rule: &Rule, found: &Bottleneck, report: &Report) -> Option<(Vec<Change>, bool)> {
    let repair = rule.change.filter(|_| Sites::are_known(&found.operation))?;
    let own = (found.operation.clone(), found.location.clone());
    let is_exact = rule.inexact.is_empty();
    if repair == Repair::Balance {
        let shared = shared(found, report);
        if !shared.is_empty() {
            return Some((shared, is_exact));
        }
        let waits = Change::Calls(Repair::NoWaits, Spot::Calls(vec![own]));
        return Some((vec![waits], false));
    }
    let mut calls = vec![own];
    if repair == Repair::Combine {
        // Both sides of the messages.
        let others = found.causes.iter();
        calls.extend(others.map(|cause| (cause.operation.clone(), cause.location.clone())));
    }
    Some((vec![Change::Calls(repair, Spot::Calls(calls))], is_exact))
}

/// What the rank computes that a finding mostly waits for, as far as it is its root cause: shared
/// by all ranks of the finding.
fn shared(found: &Bottleneck, report: &Report) -> Vec<Change> {
    let mut lost: BTreeMap<u32, f64> = BTreeMap::new();
    for cause in &found.causes {
        *lost.entry(cause.rank).or_default() += cause.severity_s;
    }
    let late = lost.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
    let (Some((&late, _)), Some(ranks)) = (late, &found.rank_set) else {
        return Vec::new();
    };
    let set = match has_rank(ranks, late) {
        true => ranks.clone(),
        false => format!("{ranks},{late}"),
    };
    let causes = report.root_causes.as_deref().unwrap_or_default();
    let starts = |root: &&RootCause| {
        let mut victims = root.victims.iter();
        root.activity == "computation"
            && can_be_told(root)
            && has_rank(&root.rank_set, late)
            && victims.any(|victim| {
                victim.pattern == found.pattern
                    && victim.operation == found.operation
                    && victim.location == found.location
            })
    };
    let numbered = (1..).zip(causes).filter(|(_, root)| starts(root));
    numbered
        .map(|(number, _)| Change::Shared(number, late, set.clone()))
        .collect()
}

/// A hint promises what its replay gains.
fn promise(found: &mut Bottleneck, asked: &Asked, outcome: &Outcome) {
    let advice = &mut found.advice[asked.advice];
    let (before, bound) = (advice.sentence(), advice.gain_s.unwrap_or_default());
    let gain = match asked.is_exact {
        true => outcome.gain_s,
        false => outcome.gain_s.min(bound),
    };
    let percent = advice.percent.unwrap_or_default() * ratio(gain, bound);
    advice.gain_s = Some(gain);
    advice.percent = Some(percent);
    if asked.is_exact {
        advice.promise = Some(Promise::Replay);
    }
    let sentence = found.hints.iter_mut().find(|hint| **hint == before);
    if let Some(sentence) = sentence {
        *sentence = advice.sentence();
    }
}

/// Hints that promise most come first; what gains nothing is no hint.
fn order(found: &mut Bottleneck) {
    let is_said = |advice: &Advice| {
        let percent = advice.percent.unwrap_or(100.0);
        percent >= LEAST_GAIN * 100.0
    };
    let places = |hint: &String| found.advice.iter().any(|advice| advice.sentence() == *hint);
    let first = found.hints.iter().position(places).unwrap_or(0);
    let mut others = found.hints.clone();
    others.retain(|hint| !places(hint));
    found.advice.retain(is_said);
    let gain = |advice: &Advice| advice.gain_s.unwrap_or(0.0);
    found.advice.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    let sentences = found.advice.iter().map(Advice::sentence);
    others.splice(first..first, sentences);
    found.hints = others;
}
