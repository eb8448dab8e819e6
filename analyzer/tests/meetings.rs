//! From when on ranks are compared that meet in different groups, and one after the other.

use std::collections::BTreeMap;

use crate::roots::key;
use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_trace::calls::number::*;
use laggard_trace::{Communicator, Definition, Signature, flags};

const MS: u64 = 1_000_000;

/// Rows of a run with the times of its ranks. Calls take a tick.
struct Run {
    ranks: Vec<Calls>,
    now: Vec<u64>,
}

impl Run {
    /// Of so many ranks. Groups with these numbers have these members.
    fn new(count: u32, groups: &[(u64, &[u32])]) -> Run {
        let mut ranks = ranks(count);
        for rank in &mut ranks {
            for (id, members) in groups {
                let local = members.iter().position(|member| *member == rank.rank);
                if let Some(local) = local {
                    rank.define(Definition::Communicator(Communicator {
                        id: *id,
                        size: members.len() as u32,
                        local_rank: local as u32,
                        members: members.to_vec(),
                        ..Communicator::default()
                    }));
                }
            }
            rank.call(1, init(), 0, MS);
        }
        let now = vec![MS; count as usize];
        Run { ranks, now }
    }

    /// A rank computes so long, ms.
    fn computes(&mut self, rank: usize, time: u64) {
        self.now[rank] += time * MS;
    }

    /// A collective of some ranks, of which each leaves when those have come that it needs, given by place. They take 10 us more.
    fn collective(
        &mut self,
        line: u32,
        (operation, group, root): (u16, u64, i32),
        members: &[usize],
        needs: impl Fn(usize, usize) -> bool,
    ) {
        let enter: Vec<u64> = members.iter().map(|&rank| self.now[rank]).collect();
        for (own, &rank) in members.iter().enumerate() {
            let needed = (0..members.len()).filter(|&other| other == own || needs(own, other));
            let there = needed.map(|other| enter[other]).max().unwrap_or(0);
            let signature = Signature {
                group,
                ..collective(operation, root)
            };
            self.now[rank] = there + MS / 100;
            self.ranks[rank].call(line, signature, enter[own], self.now[rank]);
        }
    }

    /// A message, whose sender waits for nobody.
    fn message(&mut self, from: usize, to: usize, lines: [u32; 2]) {
        let (sent, posted) = (self.now[from], self.now[to]);
        self.now[from] = sent + MS / 100;
        self.now[to] = sent.max(posted) + MS / 100;
        self.ranks[from].send(lines[0], to as i32, 3, sent, self.now[from]);
        self.ranks[to].recv(lines[1], from as i32, 3, posted, self.now[to]);
    }
}

/// What root causes cost that cost 1 ms or more, in ms: by ranks, activity, and the lines around it.
type Costs = BTreeMap<(String, &'static str, u32, u32), u64>;

/// Those of a run, on each number of agents.
fn costs(run: impl Fn() -> Run) -> Costs {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let report = analyze_by_agents(run().ranks, &options, [None, Some(1), Some(7)]);
    assert_eq!(report.untraced_s, Some(0.0));
    let roots = report.root_causes.iter().flatten();
    let costs = roots.map(|root| {
        let (activity, line, until) = key(root);
        let ranks = root.rank_set.clone();
        let cost = (root.severity_s * 1e3).round() as u64;
        ((ranks, activity, line, until), cost)
    });
    costs.filter(|(_, cost)| *cost > 0).collect()
}

fn expected<const N: usize>(rows: [(&str, u32, u32, u64); N]) -> Costs {
    let row = |(ranks, line, until, cost): (&str, u32, u32, u64)| {
        ((ranks.to_owned(), "computation", line, until), cost)
    };
    rows.into_iter().map(row).collect()
}

/// In each of four rounds, rank 0 is late for one collective of its row, then rank 1 for another one.
#[test]
fn members_are_the_same_on_any_communicator() {
    let run = |groups: [u64; 2]| {
        let mut run = Run::new(4, &[(100, &[0, 1]), (101, &[0, 1]), (102, &[0, 1])]);
        for _ in 0..4 {
            run.computes(0, 60);
            run.collective(10, (MPI_Barrier, groups[0], -1), &[0, 1], |_, _| true);
            run.computes(1, 40);
            run.collective(11, (MPI_Allreduce, groups[1], -1), &[0, 1], |_, _| true);
        }
        run
    };
    let rows = [("0", 1, 10, 60), ("0", 11, 10, 180), ("1", 10, 11, 160)];
    for groups in [[100, 100], [100, 101], [102, 101]] {
        assert_eq!(costs(|| run(groups)), expected(rows), "{groups:?}");
    }
}

/// Ranks 0 and 1 meet by themselves after all three have: only rank 2 waits for what came before that.
#[test]
fn some_members_meet_without_the_others() {
    let run = || {
        let mut run = Run::new(3, &[(100, &[0, 1])]);
        for _ in 0..4 {
            run.computes(0, 50);
            run.collective(10, (MPI_Allreduce, 100, -1), &[0, 1], |_, _| true);
            run.computes(0, 10);
            run.collective(
                11,
                (MPI_Barrier, laggard_trace::WORLD, -1),
                &[0, 1, 2],
                |_, _| true,
            );
        }
        run
    };
    // Rank 2 waits 35 ms for rank 0, and 25 for rank 1, which waited 50 before. In the barrier, rank 1 waits 10 more. Both
    // waits for rank 0 are compared as one: it computed 25 ms longer before the two met, and 10 after that.
    let rows = [("0", 1, 10, 107), ("0", 11, 10, 321), ("0", 10, 11, 51)];
    assert_eq!(costs(run), expected(rows));
}

/// The root of a gather waits for rank 2 for 4 ms, and 40 ms longer for rank 1; then rank 2 waits for the root. All of
/// that is because of rank 1.
#[test]
fn a_root_meets_each_member_when_it_comes() {
    for operation in [MPI_Gather, MPI_Reduce] {
        let run = || {
            let mut run = Run::new(3, &[]);
            for _ in 0..4 {
                run.computes(2, 4);
                run.computes(1, 44);
                let call = (operation, laggard_trace::WORLD, 0);
                run.collective(10, call, &[0, 1, 2], |own, _| own == 0);
                run.message(0, 2, [20, 21]);
                run.message(0, 1, [20, 22]);
            }
            run
        };
        let found = costs(run);
        let of_rank_1: u64 = found
            .iter()
            .filter(|((ranks, ..), _)| ranks == "1")
            .map(|(_, cost)| cost)
            .sum();
        let all: u64 = found.values().sum();
        // In 4 ms of 44 rank 2 was missing, too.
        assert!(all - of_rank_1 <= 4 * 4, "{found:?}");
        assert!(
            found
                .keys()
                .all(|(_, activity, ..)| *activity == "computation"),
            "{found:?}"
        );
    }
}

/// Rank 0 comes to a reduction first, and then computes for 40 ms before it sends the result. What it did before the
/// reduction made nobody wait.
#[test]
fn a_root_that_met_its_members_before_is_compared_from_there() {
    let run = |operation: u16| {
        let mut run = Run::new(3, &[]);
        for _ in 0..4 {
            run.computes(0, 28);
            run.computes(1, 40);
            run.computes(2, 40);
            let call = (operation, laggard_trace::WORLD, 0);
            let is_all = operation == MPI_Allreduce;
            run.collective(10, call, &[0, 1, 2], |own, _| own == 0 || is_all);
            run.computes(0, 40);
            let call = (MPI_Bcast, laggard_trace::WORLD, 0);
            run.collective(11, call, &[0, 1, 2], |_, other| other == 0);
        }
        run
    };
    for operation in [MPI_Reduce, MPI_Gather, MPI_Allreduce] {
        let rows = [("0", 10, 11, 320), ("1-2", 1, 10, 12), ("1-2", 11, 10, 36)];
        assert_eq!(costs(|| run(operation)), expected(rows), "{operation}");
    }
}

/// Rank 1 waits for rank 0 to start an operation, and then, in the same call, to go on with it: both compute for 20 ms
/// between start and end. What rank 1 did before it waited is no reason for that.
#[test]
fn who_has_started_late_may_go_on_late() {
    let run = || {
        let mut run = Run::new(2, &[]);
        for _ in 0..4 {
            run.computes(0, 60);
            let start = Signature {
                flags: flags::COLLECTIVE | flags::POSTS,
                ..collective(MPI_Iallreduce, -1)
            };
            for (rank, now) in run.ranks.iter_mut().zip(&mut run.now) {
                rank.call(10, start, *now, *now + MS / 100);
                *now += MS / 100 + 20 * MS;
            }
            let there = run.now[0];
            for (rank, now) in run.ranks.iter_mut().zip(&mut run.now) {
                let request = rank.posts() - 1;
                rank.waitall(11, &[(request, None)], *now, there + MS / 100);
                *now = there + MS / 100;
            }
        }
        run
    };
    let rows = [("0", 1, 10, 40), ("0", 11, 10, 120), ("0", 10, 11, 80)];
    assert_eq!(costs(run), expected(rows));
}
