//! Root causes where one call sends and waits, of traces made in memory.

use std::collections::VecDeque;

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::Report;
use laggard_trace::Signature;
use laggard_trace::calls::number;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// What takes little time, ns.
const TICK: u64 = 1_000;

fn sendrecv(to: i32, from: i32) -> Signature {
    let (send, receive) = (send(0, to, 0), receive(0, from, 0));
    Signature {
        operation: number::MPI_Sendrecv,
        flags: send.flags | receive.flags,
        receive: receive.receive,
        ..send
    }
}

/// Rank 0 gets a message of rank 1 at 3 ms. In the same call, rank 1 waits 40 ms for rank 2. Both
/// compute for 10 ms then, and rank 0 waits for another message of rank 1.
fn exchanges(charge_last: bool) -> Report {
    let mut all = ranks(3);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all[0].recv(20, 1, 0, 2 * MS, 3 * MS);
    all[1].call(10, sendrecv(0, 2), 3 * MS, 43 * MS);
    all[2].send(30, 1, 0, 43 * MS, 43 * MS);
    all[0].recv(21, 1, 0, 13 * MS, 53 * MS);
    all[1].send(11, 0, 0, 53 * MS, 53 * MS);
    for rank in &mut all {
        rank.call(40, finalize(), 60 * MS, 61 * MS);
    }
    let mut options = AnalyzeOptions {
        charge_last,
        ..AnalyzeOptions::default()
    };
    options.settings.all = true;
    analyze_with(all, &options)
}

/// What rank 1 waited after it had sent to rank 0 is why it is late for that one: nothing took longer.
#[test]
fn a_wait_in_the_call_that_sent_is_passed_on() {
    for charge_last in [false, true] {
        let report = exchanges(charge_last);
        let costs = report.delay_costs["late_sender"];
        let ms = |seconds: f64| (seconds * 1e6).round() / 1e3;
        assert_eq!(ms(costs.short_s), 1.0 + 40.0, "{charge_last}");
        assert_eq!(ms(costs.long_s), 40.0, "{charge_last}");
        let roots = report.root_causes.iter().flatten();
        let roots: Vec<_> = roots
            .map(|root| {
                let rank = root.ranks[0].rank;
                (rank, ms(root.direct_s), ms(root.indirect_s))
            })
            .collect();
        assert_eq!(roots, [(2, 40.0, 40.0), (1, 1.0, 0.0)], "{charge_last}");
    }
}

/// What threads of two ranks do, one step after the other: each rank has two. Times are in ticks.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// One computes.
    Compute(usize, u64),
    /// One sends to one of the other rank. A synchronous send waits for the receive.
    Message { from: usize, to: usize, waits: bool },
    /// The same, but the receive is posted.
    Post { from: usize, to: usize, waits: bool },
    /// One completes its oldest receive: it waits, or takes so long for each look.
    Complete(usize, Option<u64>),
    /// One looks at its two oldest receives in turn, until it has both.
    InTurn(usize, u64),
    /// The first threads of both meet.
    Barrier,
}

/// The same program, as it runs.
struct Run {
    all: Vec<Calls>,
    /// By thread, ns.
    now: [u64; 4],
    /// By thread: posted receives, and when each is complete, ns.
    posted: [VecDeque<(u64, u64)>; 4],
}

impl Run {
    /// World rank of a thread, and its number.
    fn of(thread: usize) -> (u32, u32) {
        (thread as u32 / 2, thread as u32 % 2)
    }

    /// `started` is when the second thread of each rank was, ticks after the first one has begun.
    fn of_steps(started: [Option<u64>; 2], steps: &[Step]) -> Vec<Calls> {
        let calls = (0..4).map(Run::of);
        let mut run = Run {
            all: calls
                .map(|(rank, thread)| Calls::new(rank, thread, 2))
                .collect(),
            now: [TICK; 4],
            posted: Default::default(),
        };
        for first in [0, 2] {
            run.all[first].call(1, init(), 0, TICK);
        }
        for (second, started) in [1, 3].into_iter().zip(started) {
            if let Some(ticks) = started {
                run.now[second] += ticks * TICK;
                run.all[second].was_started(run.now[second], Some(0));
            }
        }
        steps.iter().for_each(|step| run.step(*step));
        for thread in 0..4 {
            while !run.posted[thread].is_empty() {
                run.complete(thread, None);
            }
        }
        let end = run.now.into_iter().max().unwrap_or(0);
        for first in [0, 2] {
            run.all[first].call(99, finalize(), end, end + TICK);
        }
        run.all
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Compute(thread, ticks) => self.now[thread] += ticks * TICK,
            Step::Message { from, to, waits } => {
                let posted = self.now[to] + TICK;
                let sent = self.send((from, to), posted, waits);
                self.now[to] = sent.max(posted) + TICK;
                let (rank, tag) = (Run::of(from).0 as i32, tag(from, to));
                self.all[to].recv(30 + to as u32, rank, tag, posted, self.now[to]);
            }
            Step::Post { from, to, waits } => {
                let posted = self.now[to];
                let sent = self.send((from, to), posted, waits);
                let (rank, tag) = (Run::of(from).0 as i32, tag(from, to));
                let post = self.all[to].irecv(40 + to as u32, rank, tag, posted);
                self.now[to] += TICK;
                self.posted[to].push_back((post, sent.max(posted) + TICK));
            }
            Step::Complete(thread, looks) => self.complete(thread, looks),
            Step::InTurn(thread, each) => self.look_in_turn(thread, each * TICK),
            Step::Barrier => {
                let enters = [self.now[0] + TICK, self.now[2] + TICK];
                for (first, enter) in [0, 2].into_iter().zip(enters) {
                    let leave = enters[0].max(enters[1]) + TICK;
                    self.now[first] = leave;
                    self.all[first].without_data(50, number::MPI_Barrier, 0, enter, leave);
                }
            }
        }
    }

    /// Sends what is received from `posted` on, ns. Returns when, ns.
    fn send(&mut self, (from, to): (usize, usize), posted: u64, waits: bool) -> u64 {
        let sent = self.now[from] + TICK;
        let (operation, done) = match waits {
            true => (number::MPI_Ssend, sent.max(posted)),
            false => (number::MPI_Send, sent),
        };
        self.now[from] = done + TICK;
        let signature = send(operation, Run::of(to).0 as i32, tag(from, to));
        self.all[from].call(20 + from as u32, signature, sent, self.now[from]);
        sent
    }

    fn complete(&mut self, thread: usize, looks: Option<u64>) {
        let Some((post, ready)) = self.posted[thread].pop_front() else {
            return;
        };
        let (calls, now, line) = (&mut self.all[thread], &mut self.now[thread], thread as u32);
        let enter = *now + TICK;
        match looks {
            Some(each) => {
                let found = enter + ready.saturating_sub(enter).div_ceil(each * TICK) * each * TICK;
                calls.looks(60 + line, number::MPI_Test, enter, found, each * TICK);
                *now = found + each * TICK;
                calls.test(60 + line, &[post], found, *now);
            }
            None => {
                *now = enter.max(ready) + TICK;
                calls.waitall(70 + line, &[(post, None)], enter, *now);
            }
        }
    }

    fn look_in_turn(&mut self, thread: usize, each: u64) {
        let posted = &mut self.posted[thread];
        let mut left: Vec<_> = (0..).zip(posted.drain(..posted.len().min(2))).collect();
        let (calls, now, line) = (&mut self.all[thread], &mut self.now[thread], thread as u32);
        *now += TICK;
        while !left.is_empty() {
            left.retain(|&(at, (post, ready))| {
                let (enter, line) = (*now, 80 + 10 * at + line);
                *now += each;
                if enter < ready {
                    calls.call(line, vain(number::MPI_Test), enter, *now);
                    return true;
                }
                calls.test(line, &[post], enter, *now);
                false
            });
        }
    }
}

/// Of messages between two threads.
fn tag(from: usize, to: usize) -> i32 {
    (2 * Run::of(from).1 + Run::of(to).1) as i32
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let other = |from: usize, to: usize| 2 - from / 2 * 2 + to;
    let ends = || (0..4usize, 0..2usize, any::<bool>());
    let step = prop_oneof![
        4 => (0..4usize, 1..20u64).prop_map(|(thread, ticks)| Step::Compute(thread, ticks)),
        4 => ends().prop_map(move |(from, to, waits)| {
            let to = other(from, to);
            Step::Message { from, to, waits }
        }),
        2 => ends().prop_map(move |(from, to, waits)| {
            let to = other(from, to);
            Step::Post { from, to, waits }
        }),
        2 => (0..4usize, prop::option::of(1..4u64)).prop_map(|(thread, looks)| Step::Complete(thread, looks)),
        2 => (0..4usize, 1..4u64).prop_map(|(thread, each)| Step::InTurn(thread, each)),
        1 => Just(Step::Barrier),
    ];
    prop::collection::vec(step, 1..100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// What is known of a slab depends on what is in it; what is found does not.
    #[test]
    fn threads_that_exchange_have_the_same_causes_in_all_slabs(started in prop::array::uniform2(prop::option::of(1..50u64)), steps in steps()) {
        let mut options = AnalyzeOptions::default();
        options.settings.all = true;
        let report = analyze_by_agents(Run::of_steps(started, &steps), &options, [None, Some(2), Some(7)]);
        let roots = report.root_causes.as_ref().expect("searched");
        let beside = [&report.unlisted_s, &report.untraced_s].map(|seconds| seconds.expect("known"));
        let found = roots.iter().map(|root| root.severity_s).chain(beside).sum::<f64>();
        let lost = (report.sums().wait_s - found).abs() * 1e9;
        // Each row is rounded.
        prop_assert!(lost < roots.len() as f64 + 8.0, "lost: {} ns", lost);
    }
}
