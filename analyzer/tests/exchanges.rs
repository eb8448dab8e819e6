//! Root causes where one call sends and waits, of traces made in memory.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::Report;
use laggard_trace::Signature;
use laggard_trace::calls::number;

const MS: u64 = 1_000_000;

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
