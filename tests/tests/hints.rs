//! Hints. A rule of the product must fire for a program with its flaw, with the program's own names
//! and numbers. It must not fire for the mended program, which is faster by about the promised
//! maximum. The figures are printed (`--nocapture`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use laggard_tests::attempts::until_right;
use laggard_tests::mpi::Mpi;
use laggard_tests::process::Outcome;
use laggard_tests::product::{Bench, difference, programs};
use laggard_tests::report::{Advice, Report, schema_violations};

/// The gain of the mended program, as a share of the promise.
const KEPT: std::ops::RangeInclusive<f64> = 0.6..=1.3;
/// Largest promise, as a share of the run, that may be wrong if little or nothing is gained.
const LITTLE: f64 = 0.05;

/// A program and its rule.
struct Pair {
    rule: &'static str,
    /// The program's name is the rule's with this suffix.
    kind: &'static str,
    /// A macro that gives the program the flaw, but little to gain without it.
    near_miss: Option<&'static str>,
    ranks: u32,
    /// A library to link before the others.
    link: Option<&'static str>,
    libs: &'static [&'static str],
    /// The MPI that cannot run it.
    not_with: Option<Mpi>,
}

const fn pair(rule: &'static str, ranks: u32) -> Pair {
    Pair {
        rule,
        kind: "",
        near_miss: None,
        ranks,
        link: None,
        libs: &[],
        not_with: None,
    }
}

/// A program with a rule's flaw that delays nobody, or only briefly.
const fn near_miss(rule: &'static str, case: &'static str, ranks: u32) -> Pair {
    Pair {
        near_miss: Some(case),
        ..pair(rule, ranks)
    }
}

impl Pair {
    const fn link(self, library: &'static str, libs: &'static [&'static str]) -> Pair {
        Pair {
            link: Some(library),
            libs,
            ..self
        }
    }

    const fn not_with(self, mpi: Mpi) -> Pair {
        Pair {
            not_with: Some(mpi),
            ..self
        }
    }

    /// The same flaw in a program of OpenSHMEM.
    const fn shmem(self) -> Pair {
        Pair {
            kind: "_shmem",
            ..self.not_with(Mpi::Mpich)
        }
    }

    fn program(&self) -> String {
        format!("{}{}", self.rule, self.kind)
    }

    fn name(&self) -> String {
        let case = self.near_miss.map(|case| format!(" {case} {}", self.ranks));
        self.program() + &case.unwrap_or_default()
    }
}

/// One of the two programs' runs, and its report.
struct Run {
    elapsed: f64,
    report: Report,
}

impl Run {
    /// The rule's most promising hint.
    fn advice(&self, rule: &str) -> Option<&Advice> {
        let all = self.report.bottlenecks.iter().flat_map(|b| &b.advice);
        let of_rule = all.filter(|advice| advice.rule == rule);
        of_rule.max_by(|a, b| a.gain_s.unwrap_or(0.0).total_cmp(&b.gain_s.unwrap_or(0.0)))
    }
}

/// The report of this many agents, as text.
fn analyze(bench: &Bench, trace: &Path, agents: u32, options: &[&str]) -> String {
    let path = bench.path(&format!("report-{agents}.json"));
    let options = [&["-q"], options].concat();
    let outcome = bench.analyze(trace, agents, &path, &options);
    outcome.expect_orderly().expect_success();
    fs::read_to_string(&path).expect("a report")
}

fn elapsed(outcome: &Outcome) -> f64 {
    let line = outcome
        .stdout
        .lines()
        .find_map(|l| l.strip_prefix("elapsed "));
    line.and_then(|text| text.parse().ok()).expect("a time")
}

fn run(bench: &Bench, pair: &Pair, mended: bool, attempt: u32) -> Run {
    let library = pair.link.map(|source| bench.library(source));
    let first = library.iter().filter_map(|path| path.to_str());
    let libs: Vec<&str> = first.chain(pair.libs.iter().copied()).collect();
    let case = pair.near_miss.map(|case| format!("-D{case}"));
    let mending = mended.then_some("-DMENDED");
    let cflags: Vec<&str> = mending.into_iter().chain(case.as_deref()).collect();
    let program = bench.compile(&format!("hints/{}.c", pair.program()), &cflags, &libs);
    let name = format!("{}-{attempt}", if mended { "mended" } else { "flawed" });
    let run = bench.traced(pair.ranks, &[program.as_os_str()], &name);
    // Without it shmem_finalize of Open MPI 4.1.4 fails on Debian 12.
    let run = run.env("OMPI_MCA_opal_common_ucx_opal_mem_hooks", "0");
    let outcome = run.run();
    let outcome = outcome.expect_orderly().expect_success();
    let trace = bench.path(&name);
    let text = analyze(bench, &trace, 1, &[]);
    if !mended && attempt == 1 {
        // The others are in the test of users' rules; together they would take long.
        let agents = 2 + pair.ranks % 2;
        let other = analyze(bench, &trace, agents, &[]);
        assert_eq!(difference(&text, &other), None, "1 and {agents} agents");
        assert_eq!(schema_violations(&text), [""; 0]);
    }
    Run {
        elapsed: elapsed(&outcome),
        report: Report::parse(&text).expect("a report of the promised shape"),
    }
}

/// Why a pair fails, if a busy machine may be the reason.
fn wrong(pair: &Pair, flawed: &Run, mended: &Run) -> Option<String> {
    let advice = flawed.advice(pair.rule);
    if advice.is_none() && pair.near_miss.is_none() {
        return Some("silent where the flaw is".to_owned());
    }
    let promised = advice.map_or(0.0, |advice| advice.gain_s.expect("a promise"));
    let gained = flawed.elapsed - mended.elapsed;
    eprintln!(
        "| `{}` | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms | {:.2} |",
        pair.name(),
        advice
            .and_then(|advice| advice.promise.as_deref())
            .unwrap_or("silent"),
        flawed.elapsed * 1e3,
        mended.elapsed * 1e3,
        promised * 1e3,
        gained * 1e3,
        gained / promised
    );
    if pair.near_miss.is_some() {
        let kept = promised * KEPT.start() <= gained + LITTLE * flawed.elapsed;
        return (!kept).then(|| format!("{gained} s gained: {advice:?}"));
    }
    if let Some(still) = mended.advice(pair.rule) {
        return Some(format!("not silent where it is mended: {still:?}"));
    }
    let share = gained / promised;
    (!KEPT.contains(&share)).then(|| format!("{gained} s of {promised} s gained"))
}

/// Checks that do not depend on times.
fn check_text(bench: &Bench, pair: &Pair, flawed: &Run) {
    let advice = flawed.advice(pair.rule).expect("an advice");
    let place = format!("{}.c:", pair.program());
    assert!(advice.text.contains(&place), "no place: {}", advice.text);
    assert!(advice.text.contains("rank"), "no rank: {}", advice.text);
    assert!(!advice.text.contains(['{', '}']), "{}", advice.text);
    let hints = flawed.report.bottlenecks.iter().flat_map(|b| &b.hints);
    let is_hint = |hint: &&String| {
        let said = match advice.promise.as_deref() {
            Some("replay") => " Replayed so, the run is ",
            _ => " The run gets shorter by at most ",
        };
        hint.starts_with(&advice.text) && hint.contains(said) && hint.contains(&advice.explain)
    };
    assert!(hints.clone().any(|hint| is_hint(&hint)), "{advice:?}");
    let words: Vec<&str> = advice.explain.split(' ').collect();
    assert_eq!(words, ["laggard", "patterns", "--explain", pair.rule]);
    let mut command = std::process::Command::new(&bench.command);
    let page = command.args(&words[1..]).output().expect("a page");
    assert!(page.status.success());
    assert!(String::from_utf8_lossy(&page.stdout).starts_with(pair.rule));
}

fn check(pair: &Pair) {
    if pair.not_with == Some(Mpi::chosen()) {
        eprintln!("SKIPPED with {}: {}", Mpi::chosen().name(), pair.program());
        return;
    }
    let bench = Bench::new(&format!("hint-{}", pair.name().replace(' ', "-")));
    let flawed = until_right(&pair.name(), |attempt| {
        let flawed = run(&bench, pair, false, attempt);
        let mended = run(&bench, pair, true, attempt);
        match wrong(pair, &flawed, &mended) {
            None => Ok(flawed),
            Some(wrong) => Err(wrong.into()),
        }
    });
    if pair.near_miss.is_none() {
        check_text(&bench, pair, &flawed);
    }
}

macro_rules! pairs {
    ($($name:ident: $pair:expr;)*) => {
        const PAIRS: &[Pair] = &[$($pair),*];
        $(
            #[test]
            fn $name() {
                check(&$pair);
            }
        )*
    };
}

pairs! {
    overlap_receive: pair("overlap_receive", 2);
    overlap_send: pair("overlap_send", 2);
    eager_limit: pair("eager_limit", 3);
    receive_without_probe: pair("receive_without_probe", 2);
    combine_messages: pair("combine_messages", 2);
    receive_as_they_come: pair("receive_as_they_come", 3);
    receive_in_order: pair("receive_in_order", 2);
    balance_work: pair("balance_work", 4);
    relieve_root: pair("relieve_root", 4);
    synchronise_less: pair("synchronise_less", 4);
    barrier_before_rooted: pair("barrier_before_rooted", 3);
    barrier_before_all: pair("barrier_before_all", 2).link("lib/slow_calls.c", &[]);
    combine_alltoall: pair("combine_alltoall", 4);
    create_once: pair("create_once", 4);
    io_outside_lock: pair("io_outside_lock", 3).link("lib/slow_calls.c", &[]).not_with(Mpi::Mpich);
    io_outside_lock_shmem: pair("io_outside_lock", 4).link("lib/slow_calls.c", &["-loshmem"]).shmem();
    stagger_transfers: pair("stagger_transfers", 4).link("lib/slow_link.c", &["-loshmem"]).not_with(Mpi::Mpich);
    stagger_transfers_shmem: pair("stagger_transfers", 4).link("lib/slow_link.c", &["-loshmem"]).shmem();
    overlap_receive_where_another_is_as_late: near_miss("overlap_receive", "AS_LATE", 3);
    overlap_receive_where_others_are_as_late: near_miss("overlap_receive", "AS_LATE", 4);
    eager_limit_where_another_is_as_late: near_miss("eager_limit", "AS_LATE", 3);
    eager_limit_before_a_later_need: near_miss("eager_limit", "NEEDS_NEXT", 3);
    eager_limit_while_the_receiver_computes: near_miss("eager_limit", "AWAY", 3);
    receive_without_probe_and_nothing_else_to_do: near_miss("receive_without_probe", "NOTHING_ELSE", 2);
    combine_messages_that_are_computed: near_miss("combine_messages", "COMPUTED", 2);
    receive_as_they_come_where_both_are_needed: near_miss("receive_as_they_come", "BOTH_NEEDED", 3);
    receive_in_order_where_both_are_needed: near_miss("receive_in_order", "BOTH_NEEDED", 2);
    balance_work_where_another_is_as_late: near_miss("balance_work", "AS_LATE", 4);
    relieve_root_where_another_is_as_late: near_miss("relieve_root", "AS_LATE", 4);
    synchronise_less_where_another_is_as_late: near_miss("synchronise_less", "AS_LATE", 5);
}

/// The run's own eager limit counts. A message below it is sent whether or not its receive is
/// there. One above it waits. The hint tells the limit and its origin, unless the message is so
/// much larger that no limit is worth raising.
#[test]
fn messages_wait_above_the_eager_limit_of_the_run() {
    let bench = Bench::new("hint-limit-of-the-run");
    // Messages as long as UCX's threshold wait.
    let (name, largest) = match Mpi::chosen() {
        Mpi::OpenMpi => ("OMPI_MCA_btl_vader_eager_limit", "2 048"),
        Mpi::Mpich => ("UCX_RNDV_THRESH", "2 047"),
    };
    // Messages of 6400 bytes, 12800 with MPICH, or half of that.
    for (cflag, limit, waits, hint) in [
        ("-UMENDED", 2048, true, true),
        ("-UMENDED", 16384, false, false),
        ("-DMENDED", 2048, true, true),
        ("-DMENDED", 8192, false, false),
        ("-UMENDED", 320, true, false),
    ] {
        let case = format!("{cflag} {limit}");
        let program = bench.compile("hints/eager_limit.c", &[cflag], &[]);
        let run = bench.traced(3, &[program.as_os_str()], &case);
        let run = run.env(name, limit.to_string());
        run.run().expect_orderly().expect_success();
        let trace = bench.path(&case);
        let text = analyze(&bench, &trace, 1, &[]);
        for agents in [2, 3] {
            let other = analyze(&bench, &trace, agents, &[]);
            assert_eq!(difference(&text, &other), None, "{case}, {agents} agents");
        }
        let report = Report::parse(&text).expect("a report of the promised shape");
        let all = report.bottlenecks.iter();
        let mut late = all.filter(|b| b.pattern == "late_receiver" && b.operation == "MPI_Send");
        let late = late.next();
        assert_eq!(late.is_some(), waits, "{case}: {:?}", report.bottlenecks);
        let mut advice = late.iter().flat_map(|late| &late.advice);
        let advice = advice.find(|advice| advice.rule == "eager_limit");
        assert_eq!(advice.is_some(), hint, "{case}: {late:?}");
        if let Some(advice) = advice {
            let told = format!("{largest} bytes (as {name} says)");
            assert!(advice.text.contains(&told), "{case}: {advice:?}");
        }
    }
}

/// Rules of the user stand beside those of the product, or replace them. A mistake in one is an
/// anomaly with its line, for any number of agents, and the rest is used.
#[test]
fn users_bring_rules_of_their_own() {
    let bench = Bench::sharing("hint-users-rules");
    let program = bench.compile("hints/overlap_receive.c", &[], &[]);
    let outcome = bench.traced(2, &[program.as_os_str()], "trace").run();
    outcome.expect_orderly().expect_success();
    let rules = bench.path("mine.toml");
    let text = "# mine\n\
        [mine]\n\
        patterns = ['two_sided']\n\
        when = \"operation == 'MPI_Recv' and cause_rank == 0 and severity > 60 ms\"\n\
        say = 'Ask the others about {operation} ({place}).'\n\
        gain = 'rank_loss / 2'\n\
        link = 'https://example.org/recv'\n\
        [broken]\n\
        patterns = ['two_sided']\n\
        when = 'severty > 60 ms'\n\
        say = 'Never said.'\n\
        [overlap_receive]\n\
        patterns = ['late_sender']\n\
        when = 'false'\n\
        say = 'Never said.'\n\
        [less_before_send]\n\
        patterns = ['late_sender']\n\
        say = 'Ask rank {cause_rank} to send earlier.'\n";
    fs::write(&rules, text).expect("a file");
    let options = ["--rules", "mine.toml"];
    let trace = bench.path("trace");
    let one = analyze(&bench, &trace, 1, &options);
    for agents in [2, 3] {
        let other = analyze(&bench, &trace, agents, &options);
        assert_eq!(difference(&one, &other), None, "1 and {agents} agents");
    }
    assert_eq!(schema_violations(&one), [""; 0]);
    let report = Report::parse(&one).expect("a report of the promised shape");
    let advice: Vec<&Advice> = report.bottlenecks.iter().flat_map(|b| &b.advice).collect();
    let mine = advice.iter().find(|advice| advice.rule == "mine");
    let mine = mine.expect("what the user's rule says");
    assert!(
        mine.text
            .starts_with("Ask the others about MPI_Recv (overlap_receive.c:")
    );
    assert_eq!(mine.explain, "https://example.org/recv");
    assert!(mine.gain_s.is_some_and(|gain| gain > 0.03), "{mine:?}");
    assert!(!one.contains("Never said"));
    assert!(advice.iter().all(|advice| advice.rule != "overlap_receive"));
    // General advice is rules as well; it promises nothing.
    let mut hints = report.bottlenecks.iter().flat_map(|b| &b.hints);
    assert!(hints.any(|hint| hint == "Ask rank 0 to send earlier."));
    assert!(!one.contains("Give the sender less"));
    assert!(
        advice
            .iter()
            .all(|advice| advice.rule != "less_before_send")
    );
    assert_eq!(report.anomaly("rule_error"), 1);
    let wrong = "line 10: rule broken: unknown fact severty; is it severity?; left out";
    assert!(one.contains(wrong), "{one}");

    let outcome = bench.analyze(
        &trace,
        1,
        &bench.path("none.json"),
        &["--rules", "none.toml"],
    );
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("none.toml: cannot read the rules"),
        "{}",
        outcome.stderr
    );
    assert!(!bench.path("none.json").exists());
}

#[test]
fn every_rule_has_its_programs() {
    let text = fs::read_to_string(programs().join("../../patterns/rules.toml"));
    let text = text.expect("the rules");
    let heading = |line: &'_ str| Some(line.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    let rules: BTreeSet<String> = text.lines().filter_map(heading).collect();
    let tested = PAIRS.iter().map(|pair| pair.rule.to_owned());
    assert_eq!(rules, tested.collect());
    let entries = fs::read_dir(programs().join("hints")).expect("programs");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let sources = files.filter(|path| path.extension() == Some(OsStr::new("c")));
    let programs: BTreeSet<String> = PAIRS.iter().map(Pair::program).collect();
    assert_eq!(sources.count(), programs.len());
}
