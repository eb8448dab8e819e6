//! Matching against a brute-force simulation of message passing on random programs.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use proptest::prelude::*;

/// One step of a rank's program.
#[derive(Clone, Debug)]
enum Step {
    Compute(u64),
    Send {
        to: usize,
        tag: i32,
    },
    Recv {
        from: i32,
        tag: i32,
    },
    Irecv {
        from: i32,
        tag: i32,
    },
    /// Waits for the first `n` receives that are under way.
    Wait(usize),
}

#[derive(Clone, Debug)]
struct Message {
    from: usize,
    tag: i32,
    sent: u64,
}

#[derive(Clone, Debug)]
struct Posted {
    from: i32,
    tag: i32,
    matched: Option<Message>,
}

fn fits(posted: &Posted, message: &Message) -> bool {
    (posted.from < 0 || posted.from as usize == message.from)
        && (posted.tag < 0 || posted.tag == message.tag)
}

#[derive(Default)]
struct Process {
    now: u64,
    next: usize,
    posted: Vec<Posted>,
    unexpected: Vec<Message>,
    /// Receives under way: index in `posted`, post number (`None` = blocking).
    open: Vec<(usize, Option<u64>)>,
    /// Blocked since, on this many of `open`.
    blocked: Option<(u64, usize)>,
}

impl Process {
    fn post(&mut self, from: i32, tag: i32) -> usize {
        let mut posted = Posted {
            from,
            tag,
            matched: None,
        };
        if let Some(at) = self
            .unexpected
            .iter()
            .position(|message| fits(&posted, message))
        {
            posted.matched = Some(self.unexpected.remove(at));
        }
        self.posted.push(posted);
        self.posted.len() - 1
    }

    fn arrive(&mut self, message: Message) {
        match self
            .posted
            .iter_mut()
            .find(|p| p.matched.is_none() && fits(p, &message))
        {
            Some(posted) => posted.matched = Some(message),
            None => self.unexpected.push(message),
        }
    }
}

/// Runs the programs, writes what happened, and gives the late-sender time of all
/// receives; `None` if the program cannot end.
fn simulate(programs: &[Vec<Step>], calls: &mut [Calls]) -> Option<u64> {
    let mut processes: Vec<Process> = programs.iter().map(|_| Process::default()).collect();
    let mut late = 0;
    loop {
        // Blocked calls that can return.
        for (rank, process) in processes.iter_mut().enumerate() {
            let Some((since, n)) = process.blocked else {
                continue;
            };
            let done: Vec<Message> = process.open[..n]
                .iter()
                .filter_map(|o| process.posted[o.0].matched.clone())
                .collect();
            if done.len() < n {
                continue;
            }
            let last = done.iter().map(|m| m.sent).max().unwrap_or(0);
            let leave = last.max(since) + 7;
            late += last.saturating_sub(since);
            let finished: Vec<_> = process.open.drain(..n).collect();
            if let [(at, None)] = finished[..] {
                let message = process.posted[at].matched.clone()?;
                calls[rank].recv(20, message.from as i32, message.tag, since, leave);
            } else {
                let requests: Vec<_> = finished
                    .iter()
                    .map(|&(at, post)| {
                        let posted = &process.posted[at];
                        let message = posted.matched.clone()?;
                        let wild = posted.from < 0 || posted.tag < 0;
                        Some((post?, wild.then_some((message.from as i32, message.tag))))
                    })
                    .collect::<Option<_>>()?;
                calls[rank].waitall(30, &requests, since, leave);
            }
            process.now = leave + 1;
            process.blocked = None;
        }
        let ready = processes
            .iter()
            .enumerate()
            .filter(|(rank, p)| p.blocked.is_none() && p.next < programs[*rank].len())
            .min_by_key(|(_, p)| p.now)
            .map(|(rank, _)| rank);
        let Some(rank) = ready else {
            let ended = processes.iter().all(|p| p.blocked.is_none());
            let left = processes
                .iter()
                .any(|p| !p.unexpected.is_empty() || !p.open.is_empty());
            return (ended && !left).then_some(late);
        };
        let step = programs[rank][processes[rank].next].clone();
        processes[rank].next += 1;
        let now = processes[rank].now;
        match step {
            Step::Compute(time) => processes[rank].now += time,
            Step::Send { to, tag } => {
                calls[rank].send(10, to as i32, tag, now, now + 3);
                processes[rank].now += 4;
                processes[to].arrive(Message {
                    from: rank,
                    tag,
                    sent: now,
                });
            }
            Step::Recv { from, tag } => {
                let at = processes[rank].post(from, tag);
                processes[rank].open.insert(0, (at, None));
                processes[rank].blocked = Some((now, 1));
            }
            Step::Irecv { from, tag } => {
                let at = processes[rank].post(from, tag);
                let post = calls[rank].irecv(40, from, tag, now);
                processes[rank].open.push((at, Some(post)));
                processes[rank].now += 2;
            }
            Step::Wait(n) => {
                let n = n.min(processes[rank].open.len());
                if n > 0 {
                    processes[rank].blocked = Some((now, n));
                }
            }
        }
    }
}

/// Programs in which every message has a receive that could take it.
fn programs() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let message = (
        0..3usize,
        0..3usize,
        0..2i32,
        0..4u8,
        any::<bool>(),
        1..500u64,
        1..500u64,
        0..4usize,
    );
    prop::collection::vec(message, 1..60).prop_map(|messages| {
        let mut programs = vec![Vec::new(); 3];
        for (from, to, tag, wild, blocking, before, after, wait) in messages {
            if from == to {
                continue;
            }
            programs[from].push(Step::Compute(before));
            programs[from].push(Step::Send { to, tag });
            let source = if wild & 1 != 0 { -1 } else { from as i32 };
            let posted_tag = if wild & 2 != 0 { -1 } else { tag };
            programs[to].push(Step::Compute(after));
            programs[to].push(match blocking {
                true => Step::Recv {
                    from: source,
                    tag: posted_tag,
                },
                false => Step::Irecv {
                    from: source,
                    tag: posted_tag,
                },
            });
            if wait == 0 {
                programs[to].push(Step::Wait(2));
            }
        }
        programs
            .iter_mut()
            .for_each(|program| program.push(Step::Wait(usize::MAX)));
        programs
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn late_senders_add_up_to_what_happened(programs in programs()) {
        let mut calls = ranks(3);
        let late = simulate(&programs, &mut calls);
        prop_assume!(late.is_some());
        let report = analyze(calls);
        let found: i64 = ["late_sender", "late_sender_wrong_order_same_source", "late_sender_wrong_order_other_source"]
            .iter()
            .map(|pattern| total(&report, pattern))
            .sum();
        prop_assert_eq!(found, late.unwrap() as i64);
        prop_assert!(report.anomalies.is_empty(), "{:?}", report.anomalies);
        // What is in flight over the border of a round is carried, not lost.
        let mut again = ranks(3);
        simulate(&programs, &mut again);
        let mut options = AnalyzeOptions { round_records: Some(3), ..AnalyzeOptions::default() };
        options.settings.all = true;
        let mut in_rounds = analyze_with(again, &options);
        in_rounds.agents = report.agents.clone();
        prop_assert_eq!(in_rounds.to_json(), report.to_json());
    }
}
