//! With `--charge last` the totals of an archive are those of Scalasca, as `otf2/scalasca.py`
//! computes them from the definitions, wait by wait.
//!
//! They differ only where laggard drops nothing. A class's long-term costs are larger by what
//! Scalasca drops on the way. Waits in Finalize have costs, too, in the class `barrier`. Waits that
//! are none in Scalasca are untraced.

use std::path::Path;
use std::process::Command;

use laggard_tests::archive::Archive;
use laggard_tests::directives::Directives;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT, difference, programs, python};
use serde_json::Value;

/// Totals are rounded to the ns in many steps, s.
const ROUNDED: f64 = 2e-7;

/// Runs both on an archive and compares all totals.
#[track_caller]
fn compare(bench: &Bench, anchor: &Path) -> Value {
    let mut command = Command::new(python());
    command
        .arg(programs().join("../otf2/scalasca.py"))
        .arg(anchor);
    let told = process::run(&mut command, TIMEOUT, &bench.path("scalasca")).expect_success();
    let expected: Value = serde_json::from_str(&told.stdout).expect("totals");
    let reports: Vec<String> = [1, 2, 3]
        .map(|agents| {
            let path = bench.path(&format!("last-{agents}.json"));
            let options = ["--all", "--charge", "last", "-q"];
            let outcome = bench.analyze(anchor, agents, &path, &options);
            outcome.expect_orderly().expect_success();
            std::fs::read_to_string(&path).expect("a report")
        })
        .into();
    for other in &reports[1..] {
        assert_eq!(difference(&reports[0], other), None, "1 and more agents");
    }
    let report: Value = serde_json::from_str(&reports[0]).expect("a report");
    let near = |what: &str, found: &Value, expected: f64| {
        let found = found.as_f64().unwrap_or(0.0);
        let is_near = (found - expected * 1e-9).abs() < ROUNDED;
        assert!(is_near, "{what}: {found} s are not {expected} ns");
    };
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap_or(0.0);
    let has_ends = report["metrics"].get("wait_at_finalize").is_some();
    let classes = expected["classes"].as_object().expect("classes").iter();
    for (name, sums) in classes.filter(|(name, _)| *name != "barrier" || !has_ends) {
        let (class, costs) = (&report["wait_classes"][name], &report["delay_costs"][name]);
        let what = |part: &str| format!("{name}, {part}");
        let long = number(sums, "long") + number(sums, "dropped");
        near(&what("short"), &costs["short_s"], number(sums, "short"));
        near(&what("long"), &costs["long_s"], long);
        for part in ["direct", "indirect"] {
            near(&what(part), &class[format!("{part}_s")], number(sums, part));
        }
        if ["late_sender", "late_receiver"].contains(&name.as_str()) {
            near(
                &what("propagating"),
                &class["propagating_s"],
                number(sums, "propagating"),
            );
            let terminal = number(sums, "terminal") + number(class, "untraced_s") * 1e9;
            near(&what("terminal"), &class["terminal_s"], terminal);
        }
    }
    let (path, sums) = (&report["critical_path"], &expected["path"]);
    for (part, key) in [
        ("length", "length_s"),
        ("activities", "activities_s"),
        ("non_critical", "non_critical_s"),
        ("impact", "imbalance_impact_s"),
        ("inter_partition", "inter_partition_s"),
    ] {
        near(part, &path[key], number(sums, part));
    }
    let rows = path["profile"].as_array().expect("rows");
    let profile = expected["profile"].as_array().expect("rows");
    // Of computation in no function, only the sum is known.
    for row in rows.iter().filter(|row| row.get("until").is_none()) {
        let frames = row["location"]["callpath"].as_array().into_iter().flatten();
        let mut frames: Vec<&str> = frames.filter_map(Value::as_str).collect();
        let call = row["operation"].as_str();
        frames.extend(call.filter(|name| !name.is_empty()));
        let same = profile
            .iter()
            .find(|other| other["path"] == serde_json::json!(frames));
        let same = same.unwrap_or_else(|| panic!("{frames:?} is not on the path: {profile:?}"));
        near("time of a call path", &row["seconds"], number(same, "time"));
        near("its impact", &row["impact_s"], number(same, "impact"));
    }
    report
}

/// The worked example of the rules: a rank computes, and two wait one after the other.
#[test]
fn a_chain_has_the_numbers_of_scalasca() {
    let bench = Bench::sharing("otf2-scalasca-chain");
    let mut archive = Archive::new(3);
    for (function, line) in [("work", 10), ("other", 20)] {
        archive.line(&format!("region {function} app.c {line}"));
    }
    let s = |seconds: u64| seconds * 1_000_000_000;
    let compute = |archive: &mut Archive, rank, function: &str, begin, end| {
        archive
            .event(rank, s(begin), &format!("enter {function}"))
            .event(rank, s(end), &format!("leave {function}"));
    };
    let call = |archive: &mut Archive, rank, name, (begin, end), what: &[&str]| {
        archive.call((rank, name, (s(begin), s(end)), what));
    };
    let a = &mut archive;
    (0..3).for_each(|rank| call(a, rank, "MPI_Init", (0, 1), &[]));
    compute(a, 0, "work", 1, 10);
    call(a, 0, "MPI_Send", (10, 11), &["send 1 world 0 8"]);
    compute(a, 0, "work", 11, 12);
    compute(a, 1, "work", 1, 4);
    call(a, 1, "MPI_Recv", (4, 11), &["recv 0 world 0 8"]);
    compute(a, 1, "work", 11, 13);
    call(a, 1, "MPI_Send", (13, 14), &["send 2 world 0 8"]);
    compute(a, 1, "work", 14, 15);
    compute(a, 2, "other", 1, 3);
    call(a, 2, "MPI_Recv", (3, 14), &["recv 1 world 0 8"]);
    compute(a, 2, "other", 14, 16);
    for (rank, enter) in [(0, 12), (1, 15), (2, 16)] {
        call(a, rank, "MPI_Finalize", (enter, 17), &[]);
    }
    let report = compare(&bench, &archive.write(&bench, "archive"));
    let is = |found: &Value, expected: f64| {
        let found = found.as_f64().expect("a number");
        assert!(
            (found - expected).abs() < ROUNDED,
            "{found} is not {expected}"
        );
    };
    is(&report["delay_costs"]["late_sender"]["short_s"], 11.0);
    is(&report["delay_costs"]["late_sender"]["long_s"], 5.0);
    is(&report["wait_classes"]["late_sender"]["propagating_s"], 5.0);
    is(&report["critical_path"]["activities_s"], 23.0);
    is(&report["critical_path"]["intra_partition_s"], 8.0);
}

/// Programs of messages and blocking collectives; and some with waits that Scalasca does not know.
const PROGRAMS: [&str; 15] = [
    "late_broadcast.c",
    "late_receiver_isend_wait.c",
    "late_receiver_rendezvous.c",
    "late_sender_chain.c",
    "late_sender_irecv_wait.c",
    "late_sender_persistent.c",
    "late_sender_probe.c",
    "late_sender_sendrecv_ring.c",
    "late_sender_waitall.c",
    "neighborhood_collectives.c",
    "root_cause_testany.c",
    "root_cause_two.c",
    "wait_at_nxn.c",
    "wait_for_progress_messages.c",
    "waitall_send_and_receive.c",
];

/// Real runs, as archives. Whatever their schedule was, both see the same.
#[test]
fn totals_of_programs_are_those_of_scalasca() {
    let bench = Bench::beside("otf2-scalasca-programs");
    for source in PROGRAMS {
        eprintln!("{source}");
        let text = std::fs::read_to_string(programs().join(source)).expect("a source");
        let directives = Directives::parse(&text).expect("directives");
        let program = bench.compile(source, &[], &[]);
        let name = source.trim_end_matches(".c");
        let words = [program.as_os_str()];
        let trace = format!("{name}-trace");
        let run = bench.traced(directives.run.ranks, &words, &trace);
        run.run().expect_success();
        let archive = bench.path(&format!("{name}-archive"));
        let mut command = Command::new(&bench.command);
        command.arg("export").arg(bench.path(&trace));
        command.args(["--to", "otf2", "-q", "-o"]).arg(&archive);
        process::run(&mut command, TIMEOUT, &bench.path("export")).expect_success();
        compare(&bench, &archive.join("traces.otf2"));
    }
}

/// A run that is made up step by step.
struct Run {
    archive: Archive,
    /// By rank: how far it is, ns.
    now: Vec<u64>,
    state: u64,
    /// Requests so far.
    requests: u64,
}

impl Run {
    /// A number below `bound`, different for each seed.
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound
    }

    fn call(&mut self, rank: usize, name: &str, (enter, leave): (u64, u64), inside: &[&str]) {
        self.archive
            .call((rank as u32, name, (enter, leave), inside));
        self.now[rank] = leave;
    }

    /// A rank is in a function, and in one that this calls.
    fn compute(&mut self, rank: usize) {
        let function = ["work", "other"][self.below(2) as usize];
        let times = [(); 3].map(|()| self.below(2_000_000));
        let mut time = self.now[rank];
        let words = ["enter", "enter", "leave", "leave"];
        let names = [function, "inner", "inner", function];
        for (at, (word, name)) in words.into_iter().zip(names).enumerate() {
            time += at.checked_sub(1).map_or(7, |at| times[at]);
            self.archive
                .event(rank as u32, time, &format!("{word} {name}"));
        }
        self.now[rank] = time;
    }

    fn message(&mut self, from: usize, to: usize) {
        let kind = self.below(3);
        let (sent, posted) = (self.now[from] + 10, self.now[to] + 10);
        let send = format!("send {to} world 0 8");
        let receive = format!("recv {from} world 0 8");
        match kind {
            0 => self.call(from, "MPI_Send", (sent, sent + 50), &[&send]),
            1 => self.call(from, "MPI_Ssend", (sent, sent.max(posted) + 90), &[&send]),
            _ => {
                self.requests += 1;
                let number = self.requests;
                let (begun, done) = (
                    format!("isend {to} world 0 8 {number}"),
                    format!("isend_complete {number}"),
                );
                self.call(from, "MPI_Isend", (sent, sent + 20), &[&begun]);
                self.compute(from);
                let wait = self.now[from] + 10;
                let leave = wait.max(posted) + 60;
                self.call(from, "MPI_Wait", (wait, leave), &[&done]);
            }
        }
        self.call(to, "MPI_Recv", (posted, sent.max(posted) + 70), &[&receive]);
    }

    /// Everybody sends to the next rank, and waits for the one before.
    fn shift(&mut self, ranks: usize) {
        let enters: Vec<u64> = self.now.iter().map(|now| now + 10).collect();
        for rank in 0..ranks {
            let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            let send = format!("send {next} world 1 8");
            let receive = format!("recv {before} world 1 8");
            let leave = enters[rank].max(enters[before]) + 80;
            self.call(
                rank,
                "MPI_Sendrecv",
                (enters[rank], leave),
                &[&send, &receive],
            );
        }
    }

    fn collective(&mut self, ranks: usize) {
        let (name, code) =
            [("MPI_Barrier", 0), ("MPI_Allreduce", 11), ("MPI_Bcast", 1)][self.below(3) as usize];
        let root = self.below(ranks as u64) as usize;
        let enters: Vec<u64> = self.now.iter().map(|now| now + 10).collect();
        let last = enters.iter().copied().max().unwrap_or(0);
        for rank in 0..ranks {
            let (leave, root) = match name {
                "MPI_Bcast" if rank == root => (enters[rank] + 30, root.to_string()),
                "MPI_Bcast" => (
                    enters[rank].max(enters[root]) + 40 + rank as u64,
                    root.to_string(),
                ),
                _ => (last + 20 + 7 * rank as u64, "none".to_owned()),
            };
            let bytes = if name == "MPI_Barrier" { 0 } else { 8 };
            let end = format!("end {code} world {root} {bytes} {bytes}");
            self.call(rank, name, (enters[rank], leave), &["begin", &end]);
        }
    }
}

/// A run of four ranks with messages of all kinds and collectives.
fn made_up(seed: u64) -> Archive {
    let ranks = 4;
    let mut run = Run {
        archive: Archive::new(ranks as u32),
        now: vec![0; ranks],
        state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        requests: 0,
    };
    for (at, function) in ["main", "work", "other", "inner"].into_iter().enumerate() {
        run.archive
            .line(&format!("region {function} app.c {}", 10 * (at + 1)));
    }
    for rank in 0..ranks {
        let enter = run.below(1_000_000);
        run.call(rank, "MPI_Init", (enter, 1_000_000 + rank as u64), &[]);
        run.archive.event(rank as u32, run.now[rank], "enter main");
    }
    for _ in 0..60 {
        match run.below(9) {
            0 => run.collective(ranks),
            8 => run.shift(ranks),
            1..4 => {
                let from = run.below(4) as usize;
                let by = 1 + run.below(3) as usize;
                run.message(from, (from + by) % ranks);
            }
            _ => {
                let rank = run.below(4) as usize;
                run.compute(rank);
            }
        }
    }
    // Waits in Finalize are a class of their own in Scalasca, without costs: here there are none.
    let last = run.now.iter().copied().max().unwrap_or(0) + 10;
    for rank in 0..ranks {
        run.archive.event(rank as u32, last, "leave main");
        run.call(rank, "MPI_Finalize", (last, last + 1_000), &[]);
    }
    run.archive
}

#[test]
fn all_totals_are_those_of_scalasca() {
    let bench = Bench::sharing("otf2-scalasca");
    for seed in 1..=8 {
        let archive = made_up(seed).write(&bench, &format!("archive-{seed}"));
        eprintln!("seed {seed}");
        let report = compare(&bench, &archive);
        let classes = report["wait_classes"].as_object().expect("classes");
        let seen = ["late_sender", "late_receiver"].map(|name| classes.contains_key(name));
        assert_eq!(seen, [true; 2], "{seed}");
    }
}
