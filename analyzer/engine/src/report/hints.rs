//! Hints for a finding: its facts, and the advice of the rules about them.

use laggard_patterns::rules::{Activity, Fact, Facts, Hint, Kind, Rule, RuleBase};
use laggard_patterns::{Late, PatternId};
use laggard_report::units::{count, duration, percent, size};
use laggard_report::{Advice, Crowd, Promise, RootCause, list_of_ranks, seconds, words};
use laggard_trace::calls::{self, Call, Shape};

use crate::findings::fold::Folded;
use crate::findings::left;
use crate::findings::places::Places;
use crate::input::open::Opened;
use crate::judge::profile::{Profile, ProfileSums};
use crate::report::eager::{self, EagerLimit};
use crate::report::reasons::Reason;
use crate::report::roots::Traced;
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
    crowd: Option<Crowd>,
    eager_limit: Option<EagerLimit>,
    left: left::Run,
}

impl<'o> RunFacts<'o> {
    /// The facts of a run.
    pub fn new(opened: &'o Opened, rules: &'o Rules, left: left::Run) -> Self {
        let run = &opened.run;
        RunFacts {
            rules,
            ranks: opened.agent_of.len() as u32,
            hosts: opened.host_names.len(),
            crowd: run.crowd,
            eager_limit: eager::limit_of(opened),
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
    /// The run's root causes.
    pub traced: &'f Traced,
}

/// Parts of a late rank's delays that it started itself: below these, others come first, it has no
/// advice of its own, and it is innocent.
const HALF: f64 = 0.5;
const QUARTER: f64 = 0.25;
const HARDLY: f64 = 0.1;

impl Found<'_> {
    /// Part of the time lost for which a rank was late, 0..=1.
    fn share_of(&self, rank: u32) -> f64 {
        let own = self.sums.causes.iter().filter(|(key, _)| key.rank == rank);
        let lost = own
            .map(|(_, cause)| cause.sums.severity)
            .fold(0, u64::saturating_add);
        (lost as f64 / self.sums.severity.max(1) as f64).min(1.0)
    }

    /// The part of a late rank's delays that it started itself, 0..=1; 1 if that is not known.
    fn started(&self, rank: u32) -> f64 {
        let started = self.traced.started(&self.key, rank, self.share_of(rank));
        started.unwrap_or(1.0)
    }

    /// What comes before all rules: whom to mend first, if not the first late rank for what it did
    /// itself.
    fn first(&self) -> Option<String> {
        let (key, _) = self.sums.causes.first()?;
        let started = self.started(key.rank);
        if started < HALF
            && let Some((root, share)) = self.traced.first(&self.key)
        {
            let how = match started < HARDLY {
                true => "only",
                false => "mostly",
            };
            return Some(format!(
                "Rank {} {how} passes it on. See {}, which starts {} of this: {}.",
                key.rank,
                root.id,
                percent(share * 100.0),
                words::root_cause(root)
            ));
        }
        let first = self.reasons.first()?;
        // Where the search found that it did not pass on what it waited for, it did not.
        let hint = first.hint.clone();
        hint.filter(|_| !first.is_held_up || !self.traced.knows(&self.key))
    }
}

/// Hints: sentences, and the gains that the rules among them promise.
pub fn hints(found: &Found, run: &RunFacts, places: &mut Places) -> (Vec<String>, Vec<Advice>) {
    let (number, operation, _) = found.key;
    let Some((pattern, call)) = PatternId::from_number(number).zip(calls::call(operation)) else {
        return Default::default();
    };
    let facts = facts(found, pattern, call, run, places);
    let hints = run.rules.base.hints(pattern, &facts, &show);
    let (sentences, promised) = said(hints, run);
    (
        found.first().into_iter().chain(sentences).collect(),
        promised,
    )
}

/// Whether mostly other threads of the ranks that cause it wait.
fn is_among_threads(root: &RootCause) -> bool {
    let of_threads = |name: &str| {
        let call = calls::CALLS.iter().find(|call| call.name == name);
        call.is_some_and(|call| call.is_threads())
    };
    let victims = root.victims.iter();
    let among = victims.filter(|victim| of_threads(&victim.operation));
    let among = among.fold(0.0, |sum, victim| sum + victim.severity_s);
    among > 0.5 * root.severity_s
}

/// Hints for a root cause of these ranks, in order.
pub fn of_root(root: &RootCause, ranks: &[u32], about: Activity, run: &RunFacts) -> Vec<String> {
    let mut facts = Facts::default();
    facts.text(Fact::Operation, root.operation.clone());
    facts.text(Fact::Place, words::place(&root.location));
    let who = words::who(root);
    // Verbs agree with threads where some are named.
    let named = match root.thread_set.is_empty() {
        true => ranks.len(),
        false => 1 + usize::from(who.starts_with("threads") || who.contains("ranks ")),
    };
    facts.text(Fact::Who, who);
    let is_among = !root.thread_set.is_empty() || is_among_threads(root);
    facts.number(Fact::Threads, f64::from(u8::from(is_among)));
    let is_inside = root.until.is_none() && !root.operation.is_empty();
    facts.number(Fact::InCall, f64::from(u8::from(is_inside)));
    facts.number(Fact::PageFaults, root.page_faults.unwrap_or(0.0));
    if let Some(until) = &root.until {
        let call = calls::CALLS
            .iter()
            .find(|call| call.name == until.operation);
        facts.text(Fact::NextOperation, until.operation.clone());
        facts.text(Fact::NextType, call.map_or("", |call| call.generic.name()));
        facts.text(Fact::NextPlace, words::place(&until.location));
    }
    if let Some(most) = root.ranks.first() {
        facts.number(Fact::CauseRank, f64::from(most.rank));
        facts.number(Fact::CauseShare, most.severity_s / root.severity_s);
    }
    facts.number(Fact::Waiting, named as f64);
    facts.number(Fact::Severity, root.severity_s);
    about_run(run, &mut facts);
    said(run.rules.base.hints(about, &facts, &show), run).0
}

/// What hints say, and the gains that they promise.
fn said(hints: Vec<Hint>, run: &RunFacts) -> (Vec<String>, Vec<Advice>) {
    let (mut sentences, mut promised) = (Vec::new(), Vec::new());
    for hint in hints {
        if hint.rule.is_general() {
            sentences.push(hint.text);
            continue;
        }
        let advice = advice(hint, run);
        sentences.push(advice.sentence());
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
        promise: hint.gain.map(|_| Promise::Bound),
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
        (
            Fact::Polls,
            f64::from(u8::from(laggard_report::polls(call.name))),
        ),
        (Fact::RootShare, found.traced.most_of_one(&found.key)),
        (Fact::Causes, sums.late_ranks as f64),
        (Fact::Computed, ns(sums.late.computation)),
        (Fact::Waited, ns(sums.late.waiting)),
        (Fact::Io, ns(sums.late.io)),
    ] {
        facts.number(fact, value);
    }
    about_run(run, &mut facts);
    if let Some(limit) = &run.eager_limit {
        facts.number(Fact::EagerLimit, limit.bytes);
        facts.text(Fact::EagerSource, limit.source.clone());
    }
    about_cause(found, &mut facts, places);
    about_next(found, &mut facts, places);
    facts
}

/// Facts about the run.
fn about_run(run: &RunFacts, facts: &mut Facts) {
    facts.number(Fact::Ranks, f64::from(run.ranks));
    facts.number(Fact::Hosts, run.hosts as f64);
    let (ranks, threads, cores) = run
        .crowd
        .map_or((0, 0, 0), |crowd| match crowd.is_of_ranks() {
            true => (crowd.ranks, 0, crowd.cores),
            false => (0, crowd.threads, crowd.cores),
        });
    facts.number(Fact::Crowded, f64::from(ranks));
    facts.number(Fact::CrowdedThreads, f64::from(threads));
    facts.number(Fact::CrowdedCores, f64::from(cores));
    facts.number(Fact::Wall, run.left.wall as f64 / 1e9);
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
    let most = ranks.max_by_key(|&rank| (of_rank(rank), std::cmp::Reverse(rank)));
    let Some(rank) = most else {
        facts.text(Fact::Late, Late::Unknown.name());
        return;
    };
    facts.number(Fact::CauseRank, f64::from(rank));
    about_others(found, rank, facts);
    let own = causes.iter().filter(|(key, _)| key.rank == rank);
    let computed = own.map(|(_, cause)| cause.sums.computation);
    let computed = computed.fold(0, u64::saturating_add);
    facts.number(Fact::CauseComputed, computed as f64 / 1e9);
    facts.number(Fact::CauseShare, found.share_of(rank));
    let mut own = causes.iter().zip(found.reasons);
    let Some(((key, _), reason)) = own.find(|((key, _), _)| key.rank == rank) else {
        return;
    };
    facts.text(Fact::CauseOperation, calls::name(key.operation));
    facts.text(Fact::CausePlace, places.short(key.path));
    facts.text(Fact::Because, reason.text.clone());
    // To mend it gains little.
    let late = match found.started(rank) < QUARTER {
        true => Late::HeldUp,
        false => reason.late,
    };
    facts.text(Fact::Late, late.name());
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
    let generic = calls::call(next.operation).map(|call| call.generic.name());
    facts.text(Fact::NextType, generic.unwrap_or_default());
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
