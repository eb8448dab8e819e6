//! Hints for a finding: its facts, and the advice of the rules about them.

use laggard_patterns::rules::{Fact, Facts, Hint, Kind, Rule, RuleBase};
use laggard_patterns::{Late, PatternId};
use laggard_report::units::{count, duration, percent, size};
use laggard_report::{Advice, list_of_ranks, seconds};
use laggard_trace::calls::{self, Call, Shape};

use crate::findings::fold::Folded;
use crate::findings::left;
use crate::findings::places::Places;
use crate::input::open::Opened;
use crate::judge::profile::{Profile, ProfileSums};
use crate::report::eager::{EagerLimit, Library};
use crate::report::reasons::Reason;
use crate::rules::Rules;
use crate::stream::following::Followed;
use crate::waits::sums::FindingKey;

/// Most ranges of ranks in a sentence.
const RANGES: usize = 4;

/// Facts about the run.
pub struct RunFacts<'o> {
    pub rules: &'o Rules,
    ranks: u32,
    hosts: usize,
    crowded: u32,
    eager_limit: Option<EagerLimit>,
    left: left::Run,
}

impl<'o> RunFacts<'o> {
    /// The facts of a run.
    pub fn new(opened: &'o Opened, rules: &'o Rules, left: left::Run) -> Self {
        let run = &opened.run;
        let library = Library {
            name: run.mpi_library.as_deref().unwrap_or_default(),
            device: &run.mpi_device,
            settings: &run.settings,
            hosts: opened.host_names.len(),
        };
        RunFacts {
            rules,
            ranks: opened.agent_of.len() as u32,
            hosts: opened.host_names.len(),
            crowded: run.crowd.map_or(0, |crowd| crowd.ranks),
            eager_limit: library.eager_limit(),
            left,
        }
    }
}

/// One finding, with the facts for hints.
pub struct Found<'f> {
    /// Its pattern and place.
    pub key: FindingKey,
    pub sums: &'f Folded,
    /// Profile of its calls.
    pub profile: &'f ProfileSums,
    /// Profile of all calls.
    pub all: &'f Profile,
    /// Calls after these.
    pub followed: Option<&'f Followed>,
    /// The activity of each cause, in their order.
    pub reasons: &'f [Reason],
}

/// Hints: sentences, and the gains that the rules among them promise.
pub fn hints(found: &Found, run: &RunFacts, places: &mut Places) -> (Vec<String>, Vec<Advice>) {
    let (number, operation, _) = found.key;
    let Some((pattern, call)) = PatternId::from_number(number).zip(calls::call(operation)) else {
        return Default::default();
    };
    let facts = facts(found, pattern, call, run, places);
    let hints = run.rules.base.hints(pattern, &facts, &show);
    // A delay of the late party itself comes first.
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(found.reasons.first().and_then(|first| first.hint.clone()));
    let mut promised = Vec::new();
    for hint in hints {
        if hint.rule.is_general() {
            sentences.push(hint.text);
            continue;
        }
        let advice = advice(hint, run);
        sentences.push(sentence(&advice));
        promised.push(advice);
    }
    (sentences, promised)
}

fn advice(hint: Hint, run: &RunFacts) -> Advice {
    let wall = run.left.wall as f64 / 1e9;
    Advice {
        rule: hint.rule.id.clone(),
        gain_s: hint.gain.map(|gain| seconds((gain * 1e9) as i64)),
        percent: hint.gain.map(|gain| laggard_report::percent(gain, wall)),
        explain: explain(hint.rule, run.rules),
        text: hint.text,
    }
}

/// Reference to more details.
fn explain(rule: &Rule, rules: &Rules) -> String {
    if !rule.link.is_empty() {
        return rule.link.clone();
    }
    let is_built_in = RuleBase::built_in().find(&rule.id) == Some(rule);
    match is_built_in {
        true => format!("laggard patterns --explain {}", rule.id),
        false => format!(
            "laggard patterns --rules {} --explain {}",
            rules.file, rule.id
        ),
    }
}

fn sentence(advice: &Advice) -> String {
    let gain = advice.gain_s.zip(advice.percent);
    let gain = gain.map_or(String::new(), |(gain, share)| {
        let (gain, share) = (duration(gain), percent(share));
        format!(" The run gets shorter by at most {gain} ({share}).")
    });
    format!("{}{gain} ({})", advice.text, advice.explain)
}

fn show(kind: Kind, number: f64) -> String {
    match kind {
        Kind::Time => duration(number),
        Kind::Bytes => match number < 1e5 {
            true => format!("{} bytes", count(number as u64)),
            false => size(number as u64),
        },
        Kind::Share => percent(number * 100.0),
        Kind::Count | Kind::Text => count(number as u64),
    }
}

fn facts(
    found: &Found,
    pattern: PatternId,
    call: &Call,
    run: &RunFacts,
    places: &mut Places,
) -> Facts {
    let (sums, profile) = (found.sums, found.profile);
    let mut facts = Facts::default();
    let ns = |ns: u64| ns as f64 / 1e9;
    facts.text(Fact::Pattern, pattern.id());
    facts.text(Fact::Operation, call.name);
    facts.text(Fact::OperationType, call.generic.name());
    facts.text(Fact::Model, if call.is_shmem() { "shmem" } else { "mpi" });
    facts.text(Fact::Place, places.short(found.key.2));
    facts.text(Fact::Who, list_of_ranks(sums.rank_set.iter(), RANGES));
    let calls = profile.count.max(1) as f64;
    let rank_loss = sums.ranks.first().map_or(0, |rank| rank.1);
    let all_lose = sums.rank_set.len() >= u64::from(profile.members);
    let least_loss = sums.least.first().filter(|_| all_lose);
    let least_loss = least_loss.map_or(0, |least| least.0);
    let needs = found.followed.map_or(&[][..], |followed| &followed.needs);
    let left = run.left.left((&found.key, sums), needs, found.all);
    for (fact, value) in [
        (Fact::Waiting, sums.rank_set.len() as f64),
        (Fact::Severity, ns(sums.severity)),
        (Fact::RankLoss, ns(rank_loss)),
        (Fact::LeastLoss, ns(least_loss)),
        (Fact::Left, ns(left)),
        (Fact::Calls, profile.count as f64),
        (Fact::Instances, sums.instances as f64),
        (Fact::Mean, ns(profile.total) / calls),
        (Fact::Time, ns(profile.total)),
        (Fact::Bytes, profile.bytes as f64 / calls),
        (Fact::Members, f64::from(profile.members)),
        (Fact::Ranks, f64::from(run.ranks)),
        (Fact::Hosts, run.hosts as f64),
        (Fact::Crowded, f64::from(run.crowded)),
        (
            Fact::Polls,
            f64::from(u8::from(laggard_report::polls(call.name))),
        ),
        (Fact::Wall, run.left.wall as f64 / 1e9),
        (Fact::Causes, sums.late_ranks as f64),
        (Fact::Computed, ns(sums.late.computation)),
        (Fact::Waited, ns(sums.late.waiting)),
        (Fact::Io, ns(sums.late.io)),
    ] {
        facts.number(fact, value);
    }
    if let Some(limit) = &run.eager_limit {
        facts.number(Fact::EagerLimit, limit.bytes);
        facts.text(Fact::EagerSource, limit.source.clone());
    }
    about_cause(found, &mut facts, places);
    about_next(found, &mut facts, places);
    facts
}

/// Facts about the rank that was late for most of the time, with all its late calls.
fn about_cause(found: &Found, facts: &mut Facts, places: &mut Places) {
    let causes = &found.sums.causes;
    let of_rank = |rank: u32| {
        let own = causes.iter().filter(|(key, _)| key.rank == rank);
        own.map(|(_, cause)| cause.sums.severity)
            .fold(0, u64::saturating_add)
    };
    let ranks = causes.iter().map(|(key, _)| key.rank);
    let Some((most, rank)) = ranks
        .map(|rank| (of_rank(rank), std::cmp::Reverse(rank)))
        .max()
    else {
        facts.text(Fact::Late, Late::Unknown.name());
        return;
    };
    let rank = rank.0;
    facts.number(Fact::CauseRank, f64::from(rank));
    about_others(found, rank, facts);
    let own = causes.iter().filter(|(key, _)| key.rank == rank);
    let computed = own.map(|(_, cause)| cause.sums.computation);
    let computed = computed.fold(0, u64::saturating_add);
    facts.number(Fact::CauseComputed, computed as f64 / 1e9);
    let share = most as f64 / found.sums.severity.max(1) as f64;
    facts.number(Fact::CauseShare, share.min(1.0));
    let mut own = causes.iter().zip(found.reasons);
    let Some(((key, _), reason)) = own.find(|((key, _), _)| key.rank == rank) else {
        return;
    };
    facts.text(Fact::CauseOperation, calls::name(key.operation));
    facts.text(Fact::CausePlace, places.short(key.path));
    facts.text(Fact::Because, reason.text.clone());
    facts.text(Fact::Late, reason.late.name());
}

/// Facts about the ranks that lost time, without the `late` rank, which may have waited for others
/// at other times.
fn about_others(found: &Found, late: u32, facts: &mut Facts) {
    let sums = found.sums;
    let is_among = sums.rank_set.contains(late);
    let count = sums.rank_set.len() - u64::from(is_among);
    facts.number(Fact::Others, count as f64);
    if count > 0 {
        let others = sums.rank_set.iter().filter(|&rank| rank != late);
        facts.text(Fact::WhoElse, list_of_ranks(others, RANGES));
    }
    let all_lose = count + 1 >= u64::from(found.profile.members);
    let least = sums.least.iter().find(|(_, rank)| *rank != late);
    let least = least.filter(|_| all_lose).map_or(0, |least| least.0);
    facts.number(Fact::LeastElse, least as f64 / 1e9);
}

/// Facts about the ranks' next calls.
fn about_next(found: &Found, facts: &mut Facts, places: &mut Places) {
    let Some(followed) = found.followed.filter(|followed| followed.calls > 0) else {
        return;
    };
    let calls = followed.calls as f64;
    facts.number(Fact::ComputedAfter, followed.computed as f64 / 1e9 / calls);
    facts.number(Fact::Overlap, followed.overlap as f64 / 1e9);
    facts.number(Fact::Ahead, followed.ahead as f64 / 1e9);
    facts.number(Fact::Alike, followed.alike as f64 / 1e9);
    facts.number(Fact::Repeats, followed.repeats as f64 / calls);
    let Some(next) = followed.most() else {
        return;
    };
    facts.text(Fact::NextOperation, calls::name(next.operation));
    facts.text(Fact::NextPlace, places.short(next.path));
    facts.number(Fact::NextShare, next.calls as f64 / calls);
    facts.number(Fact::NextSameGroup, next.same_group as f64 / calls);
    let shape = calls::call(next.operation).map_or(Shape::Single, |call| call.shape);
    let shape = match shape {
        Shape::Single => "single",
        Shape::Barrier | Shape::PeBarrier | Shape::Fence => "barrier",
        Shape::OneToAll => "one_to_all",
        Shape::AllToOne => "all_to_one",
        Shape::AllToAll | Shape::Neighbourhood => "all_to_all",
        Shape::Prefix => "prefix",
        _ => "other",
    };
    facts.text(Fact::NextShape, shape);
}
