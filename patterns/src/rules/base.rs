//! The rules of the product and of users, in one order.

use std::sync::LazyLock;

use super::{Facts, Hint, Kind, Rule, Subject, read};

/// The product's rules: rules that promise a gain, and general advice.
const PRODUCT: [&str; 2] = [
    include_str!("../../rules.toml"),
    include_str!("../../advice.toml"),
];

static BUILT_IN: LazyLock<RuleBase> = LazyLock::new(|| {
    let texts = PRODUCT.map(read);
    debug_assert!(texts.iter().all(|(_, complaints)| complaints.is_empty()));
    RuleBase {
        rules: texts.into_iter().flat_map(|(rules, _)| rules).collect(),
    }
});

/// Rules, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleBase {
    rules: Vec<Rule>,
}

impl RuleBase {
    /// The product's rules.
    pub fn built_in() -> &'static RuleBase {
        &BUILT_IN
    }

    /// These rules and more. A rule with the same id replaces the old one.
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

    /// All rules.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The rule with this id.
    pub fn find(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// Hints for a finding or root cause: rules that promise most first, general advice last. Of rules that
    /// exclude each other the first counts. `show` formats numbers.
    pub fn hints(
        &self,
        subject: impl Into<Subject>,
        facts: &Facts,
        show: &dyn Fn(Kind, f64) -> String,
    ) -> Vec<Hint<'_>> {
        let subject = subject.into();
        let found = self.rules.iter();
        let found = found.filter_map(|rule| rule.hint(subject, facts, show));
        let mut hints: Vec<Hint> = found.collect();
        let replaced: Vec<&String> = hints.iter().flat_map(|hint| &hint.rule.replaces).collect();
        hints.retain(|hint| !replaced.contains(&&hint.rule.id));
        let gain = |hint: &Hint| hint.gain.unwrap_or(0.0);
        hints.sort_by(|a, b| {
            let general_last = a.rule.is_general().cmp(&b.rule.is_general());
            general_last.then_with(|| gain(b).total_cmp(&gain(a)))
        });
        let mut said: Vec<Hint> = Vec::new();
        for hint in hints {
            if !said.iter().any(|other| other.rule.excludes(hint.rule)) {
                said.push(hint);
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use laggard_trace::calls::{CALLS, GenericType};

    use super::*;
    use crate::rules::{Activity, Fact, Repair};
    use crate::{Late, PatternId, of_shape};

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
        // Never more than all there is.
        let hints = rules
            .hints(PatternId::LateReceiver, &facts(5.0), &show)
            .len();
        assert_eq!(hints, 1);
        let large = facts(5.0);
        let hints = rules.hints(PatternId::LateReceiver, &large, &show);
        assert_eq!(hints[0].gain, Some(1.0));
    }

    #[test]
    fn who_shares_cores_with_its_own_threads_needs_fewer_of_them() {
        let said = |crowded, crowded_threads| {
            let mut facts = facts(0.2);
            facts.text(Fact::Who, "ranks 0-1");
            facts.number(Fact::Crowded, crowded);
            facts.number(Fact::CrowdedThreads, crowded_threads);
            facts.number(Fact::CrowdedCores, 2.0);
            let hints = RuleBase::built_in().hints(Activity::Preempted, &facts, &show);
            hints
                .into_iter()
                .map(|hint| hint.text)
                .collect::<Vec<_>>()
                .concat()
        };
        assert!(said(0.0, 4.0).starts_with("Use fewer threads for each rank"));
        assert!(said(0.0, 4.0).contains("4 threads share the 2 cores of a host"));
        assert!(said(4.0, 0.0).starts_with("Give each rank a core of its own: 4 ranks"));
        assert!(said(0.0, 0.0).starts_with("Look who else runs"));
    }

    #[test]
    fn only_what_sends_is_told_to_send_less() {
        for generic in GenericType::ALL {
            for crowded in [0.0, 4.0] {
                let mut facts = facts(0.2);
                facts.number(Fact::Crowded, crowded);
                facts.text(Fact::NextOperation, "it");
                facts.text(Fact::NextPlace, "there");
                facts.text(Fact::NextType, generic.name());
                let hints = RuleBase::built_in().hints(Activity::Latency, &facts, &show);
                let said: Vec<&str> = hints.iter().map(|hint| &*hint.text).collect();
                let said = said.concat();
                assert!(!said.is_empty());
                let sends = !matches!(
                    generic,
                    GenericType::Threads
                        | GenericType::Io
                        | GenericType::GroupSync
                        | GenericType::Setup
                );
                assert_eq!(said.contains("Send less"), sends, "{said}");
                let meets = matches!(generic, GenericType::GroupSync | GenericType::Setup);
                assert_eq!(said.contains("network"), sends || meets, "{said}");
                if generic == GenericType::Threads {
                    assert!(!said.contains("rank"), "{said}");
                }
            }
        }
    }

    #[test]
    fn general_advice_stands_last_unless_it_is_replaced() {
        let general = "[general]\npatterns = ['late_receiver']\nsay = 'Send less.'\n";
        let facts = facts(0.2);
        let said = |rules: &RuleBase| {
            let hints = rules.hints(PatternId::LateReceiver, &facts, &show);
            let ids = hints.iter().map(|hint| hint.rule.id.clone());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(
            said(&one(&format!("{general}{RULE}"))),
            ["isend", "general"]
        );
        let replacing = format!("{general}{RULE}replaces = ['general']\n");
        assert_eq!(said(&one(&replacing)), ["isend"]);
        let silent = replacing.replace("== 'MPI_Send'", "== 'MPI_Recv'");
        assert_eq!(said(&one(&silent)), ["general"]);
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
        let texts = PRODUCT.map(read);
        for (_, complaints) in &texts {
            assert_eq!(complaints, &[]);
        }
        let [with_numbers, general] = texts.map(|(rules, _)| rules);
        assert!(general.iter().all(Rule::is_general));
        let all = || with_numbers.iter().chain(&general);
        let ids: HashSet<&str> = all().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), all().count());
        assert!(ids.iter().all(|id| PatternId::from_text(id).is_none()));
        for rule in &with_numbers {
            let id = &rule.id;
            assert!(rule.about.len() > 80, "{id}: says too little");
            assert!(rule.gain.is_some(), "{id}: promises nothing");
            assert!(rule.change.is_some(), "{id}: no replay tells what it gains");
            // No program is without waits: this alone is never what is advised.
            let is_exact = rule.inexact.is_empty();
            assert!(!is_exact || rule.change != Some(Repair::NoWaits), "{id}");
            let page = rule.page();
            assert!(
                page.lines().all(|line| line.chars().count() <= 80),
                "{page}"
            );
            for replaced in &rule.replaces {
                let of_same = |other: &&Rule| {
                    let mut patterns = other.patterns.iter();
                    other.id == *replaced && patterns.any(|p| rule.patterns.contains(p))
                };
                let known = general.iter().find(of_same);
                assert!(known.is_some(), "{id}: no {replaced} of its patterns");
            }
        }
        assert_eq!(RuleBase::built_in().iter().count(), ids.len());
    }

    /// Facts of a finding that are all known, with the same number everywhere.
    fn known(number: f64) -> Facts {
        let mut facts = Facts::default();
        for &fact in Fact::ALL {
            match fact.row().kind {
                Kind::Text => facts.text(fact, "unknown"),
                _ => facts.number(fact, number),
            }
        }
        facts
    }

    #[test]
    fn nothing_is_promised_where_nothing_is_left() {
        // All time of the calls is lost while the late ranks compute, and the data that the rank
        // needs next comes no earlier.
        let mut facts = known(0.5);
        for (fact, value) in [
            (Fact::Left, 0.0),
            (Fact::ComputedAfter, 0.0),
            (Fact::Instances, 9.0),
        ] {
            facts.number(fact, value);
        }
        let all = RuleBase::built_in().iter();
        for rule in all.filter(|rule| !rule.is_general()) {
            let gain = rule.gain.as_ref().and_then(|gain| gain.number(&facts));
            assert!(
                gain.is_some_and(|gain| gain < 1e-4),
                "{}: {gain:?}",
                rule.id
            );
        }
    }

    #[test]
    fn of_two_that_exclude_each_other_the_more_promising_one_speaks() {
        let other = RULE.replace("isend", "other").replace("/ 2", "/ 1");
        let general = "[general]\npatterns = ['late_receiver']\nsay = 'Send less.'\n";
        let all = |excludes: [&str; 2]| {
            let of = |rule: &str, name: &str| match name {
                "" => rule.to_owned(),
                name => format!("{rule}excludes = ['{name}']\n"),
            };
            let text = [
                of(RULE, excludes[0]),
                of(&other, excludes[1]),
                general.to_owned(),
            ];
            let rules = one(&text.concat());
            let facts = facts(0.2);
            let hints = rules.hints(PatternId::LateReceiver, &facts, &show);
            let ids = hints.iter().map(|hint| hint.rule.id.clone());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(all(["", ""]), ["other", "isend", "general"]);
        assert_eq!(all(["other", ""]), ["other", "general"]);
        assert_eq!(all(["", "isend"]), ["other", "general"]);
        assert_eq!(all(["", "general"]), ["other", "isend"]);
    }

    /// Actions, with phrases of rules that advise them, and the actions that say the opposite.
    const ACTIONS: [(&str, &[&str], &[&str]); 4] = [
        (
            "balance",
            &[
                "balance the work",
                "part of its work",
                "share of the work",
                "part of what",
                "more work, or the others less",
            ],
            &["balancing the work does not help"],
        ),
        (
            "combine",
            &["combine messages", "pack what"],
            &["make the messages smaller"],
        ),
        (
            "hold_less",
            &["hold the lock for less", "out of the lock"],
            &["lock once for the whole run"],
        ),
        (
            "one_call",
            &["let it wait in one call"],
            &["look with", "poll with"],
        ),
    ];

    #[test]
    fn no_two_rules_say_opposite_things() {
        let says = |rule: &Rule, phrases: &[&str]| {
            let text = [&*rule.say_text, &*rule.about].join(" ").to_lowercase();
            phrases.iter().any(|phrase| text.contains(phrase))
        };
        let all: Vec<&Rule> = RuleBase::built_in().iter().collect();
        let known = ACTIONS.map(|(action, ..)| action);
        for (action, told, denied) in ACTIONS {
            let advising = all.iter().filter(|rule| says(rule, told));
            let advising: Vec<&&Rule> = advising.filter(|rule| !says(rule, denied)).collect();
            let denying: Vec<&&Rule> = all.iter().filter(|rule| says(rule, denied)).collect();
            assert!(!advising.is_empty() && !denying.is_empty(), "{action}");
            for rule in &advising {
                assert_eq!(rule.action, action, "{}", rule.id);
            }
            for (one, other) in denying
                .iter()
                .flat_map(|one| advising.iter().map(move |other| (one, other)))
            {
                assert!(one.excludes(other), "{} and {}", one.id, other.id);
            }
        }
        let ids: HashSet<&str> = all.iter().map(|rule| rule.id.as_str()).collect();
        for rule in &all {
            assert!(
                rule.action.is_empty() || known.contains(&&*rule.action),
                "{}: {}",
                rule.id,
                rule.action
            );
            for name in &rule.excludes {
                let is_known = ids.contains(&**name) || known.contains(&&**name);
                assert!(is_known, "{}: no {name}", rule.id);
            }
        }
    }

    #[test]
    fn an_action_is_excluded_whoever_advises_it() {
        let others = ["one", "other"].map(|id| {
            let rule = RULE.replace("isend", id).replace("/ 2", "/ 4");
            format!("{rule}action = 'send'\n")
        });
        let against = format!("{RULE}excludes = ['send']\n");
        let rules = one(&[&others.concat(), &*against].concat());
        let ids = |rules: &RuleBase| {
            let facts = facts(0.2);
            let hints = rules.hints(PatternId::LateReceiver, &facts, &show);
            let ids = hints.iter().map(|hint| hint.rule.id.clone());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(ids(&rules), ["isend"]);
        // Rules of the same action go together.
        assert_eq!(ids(&one(&others.concat())), ["one", "other"]);
    }

    #[test]
    fn there_is_advice_for_every_root_cause() {
        for activity in Activity::ALL {
            for (waiting, share) in [(1.0, 1.0), (4.0, 0.3), (4.0, 0.7)] {
                let mut facts = known(0.0);
                for (fact, value) in [
                    (Fact::Ranks, 4.0),
                    (Fact::Waiting, waiting),
                    (Fact::CauseRank, 2.0),
                    (Fact::CauseShare, share),
                ] {
                    facts.number(fact, value);
                }
                facts.text(Fact::Who, "ranks 0-3");
                let hints = RuleBase::built_in().hints(activity, &facts, &show);
                assert!(!hints.is_empty(), "{activity:?}");
                let balances = hints.iter().any(|hint| hint.rule.action == "balance");
                let expected = activity == Activity::Computation && share > 0.4;
                assert_eq!(balances, expected, "{activity:?}");
                // Where all ranks are to blame, there are no others than one of them.
                let of_all = |hint: &Hint| hint.text.contains("ranks 0-3 compute");
                assert!(waiting < 4.0 || !hints.iter().any(of_all), "{hints:?}");
            }
        }
    }

    /// General advice for a pattern in a call of this type, of a model.
    fn general(pattern: PatternId, call: GenericType, late: Late, model: &str) -> Vec<String> {
        let mut facts = Facts::default();
        facts.text(Fact::OperationType, call.name());
        facts.text(Fact::Late, late.name());
        facts.text(Fact::Model, model);
        let hints = RuleBase::built_in().hints(pattern, &facts, &show);
        assert!(hints.iter().all(|hint| hint.rule.is_general()));
        hints.into_iter().map(|hint| hint.text).collect()
    }

    #[test]
    fn there_is_advice_against_every_pattern() {
        for &pattern in PatternId::ALL {
            for call in [GenericType::TwoSidedReceive, GenericType::Completion] {
                let all = general(pattern, call, Late::Unknown, "mpi");
                assert!(!all.is_empty(), "{}", pattern.id());
                let computed = general(pattern, call, Late::Computed, "mpi");
                assert_eq!(all, computed, "{}", pattern.id());
            }
        }
    }

    #[test]
    fn waits_are_not_told_to_be_non_blocking() {
        let says = |call, text: &str| {
            let hints = general(PatternId::LateReceiver, call, Late::Unknown, "mpi");
            hints.iter().any(|hint| hint.contains(text))
        };
        assert!(says(GenericType::TwoSidedSend, "MPI_Isend"));
        assert!(!says(GenericType::Completion, "MPI_Isend"));
        assert!(says(
            GenericType::Completion,
            "between the send and the wait"
        ));
    }

    #[test]
    fn who_is_held_up_is_not_told_to_compute_less() {
        let hints = |pattern, late| general(pattern, GenericType::GroupSync, late, "mpi");
        for &pattern in PatternId::ALL {
            let of_work = ["Balance", "work", "computation that delays"];
            for hint in hints(pattern, Late::HeldUp) {
                let about_work = of_work.iter().any(|word| hint.contains(word));
                let independent = hint.contains("independent work");
                assert!(!about_work || independent, "{}: {hint}", pattern.id());
            }
        }
        let first = |late| hints(PatternId::WaitAtBarrier, late).swap_remove(0);
        assert!(first(Late::Computed).contains("Balance"));
        assert!(first(Late::HeldUp).contains("barrier is needed"));
    }

    #[test]
    fn functions_of_the_other_model_are_none_to_try() {
        for call in CALLS.iter().filter(|call| call.is_shmem()) {
            for &pattern in of_shape(call.shape) {
                let hints = general(pattern, call.generic, Late::Unknown, "shmem");
                let of_mpi = hints.iter().find(|hint| hint.contains("MPI_"));
                assert_eq!(of_mpi, None, "{}", call.name);
            }
        }
    }

    #[test]
    fn no_advice_names_a_call_twice() {
        for &pattern in PatternId::ALL {
            let general = RuleBase::built_in().iter().filter(|rule| rule.is_general());
            let general = general.filter(|rule| rule.patterns.contains(&pattern));
            let words = general.flat_map(|rule| {
                let text = rule
                    .say_text
                    .split(|c: char| !c.is_alphanumeric() && c != '_');
                text.filter(|word| word.starts_with("MPI_"))
            });
            let named: Vec<&str> = words.collect();
            let different: HashSet<&&str> = named.iter().collect();
            assert_eq!(named.len(), different.len(), "{}: {named:?}", pattern.id());
        }
    }

    /// What whoever is named does: in the number of these.
    #[test]
    fn verbs_agree_with_whom_they_are_about() {
        // Of several, and of the past.
        const OTHERS: [&str; 6] = ["did", "go", "use", "out", "before", "that"];
        for rule in RuleBase::built_in().iter() {
            for (who, number) in [("thread 2 of rank 0", 1.0), ("threads 2-3 of rank 0", 2.0)] {
                let mut facts = known(number);
                facts.text(Fact::Who, who);
                facts.text(Fact::WhoElse, who);
                let Some(text) = rule.say.fill(&facts, &show) else {
                    panic!("{}: a fact is not known", rule.id);
                };
                for after in text.split(who).skip(1) {
                    let Some(word) = after.strip_prefix(' ') else {
                        continue;
                    };
                    let word = word.split(|c: char| !c.is_alphanumeric()).next();
                    let word = word.unwrap_or_default();
                    let is_of_one = word.ends_with('s');
                    assert!(
                        OTHERS.contains(&word) || is_of_one == (number < 2.0),
                        "{}: {text}",
                        rule.id
                    );
                }
            }
        }
    }
}
