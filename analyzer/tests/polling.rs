//! Waiting by polling, on traces with known times.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_report::Report;
use laggard_trace::calls::{self, number};
use laggard_trace::{
    Endpoint, Extension, PEER_ANY, PEER_NONE, Record, Signature, TAG_ANY, WORLD, flags,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// The report, which depends neither on where slabs end nor on the number of agents.
fn report(trace: impl Fn() -> Vec<Calls>) -> Report {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let [whole, again] = [[None, Some(1), Some(3)], [Some(3), Some(40), None]]
        .map(|records| analyze_by_agents(trace(), &options, records));
    assert_eq!(again.to_json(), whole.to_json());
    whole
}

#[test]
fn a_test_loop_waits_until_the_send() {
    let report = report(|| {
        let mut r = ranks(2);
        r[0].send(10, 1, 5, 60 * MS, 61 * MS);
        let request = r[1].irecv(20, 0, 5, MS);
        r[1].looks(21, number::MPI_Test, 10 * MS, 61 * MS, 100 * US);
        r[1].test(21, &[request], 61 * MS, 61 * MS + US);
        r
    });
    assert_eq!(total(&report, "late_sender_polled"), 50 * MS as i64);
    assert_eq!(total(&report, "late_sender"), 0);
    let found = &report.bottlenecks[0];
    assert_eq!(
        (found.operation.as_str(), found.location.line),
        ("MPI_Test", 21)
    );
    let cause = &found.causes[0];
    assert_eq!((cause.rank, cause.location.line), (0, 10));
    assert_eq!(cause.because, "computed 50.0 ms before the send");
    let roots = report.root_causes.unwrap();
    let root = &roots[0];
    assert_eq!(
        (root.activity.as_str(), root.rank_set.as_str()),
        ("computation", "0")
    );
    assert_eq!((root.severity_s, report.untraced_s), (0.05, Some(0.0)));
    assert!(report.anomalies.is_empty(), "{:?}", report.anomalies);
}

/// Who looks for a message without data only synchronises.
#[test]
fn looks_for_messages_without_data_have_patterns_of_their_own() {
    let polled = |bytes: u64| {
        let report = report(|| {
            let mut r = ranks(2);
            let mut late = send(number::MPI_Send, 1, 5);
            late.send.bytes = bytes;
            r[0].call(10, late, 60 * MS, 61 * MS);
            let request = r[1].irecv(20, 0, 5, MS);
            r[1].looks(21, number::MPI_Test, 10 * MS, 61 * MS, 100 * US);
            r[1].test(21, &[request], 61 * MS, 61 * MS + US);
            let mut blocked = send(number::MPI_Issend, 0, 6);
            blocked.flags |= flags::POSTS;
            blocked.send.bytes = bytes;
            r[1].call(22, blocked, 62 * MS, 62 * MS + US);
            r[1].looks(23, number::MPI_Test, 70 * MS, 100 * MS, 100 * US);
            r[1].test(23, &[request + 1], 100 * MS, 100 * MS + US);
            r[0].recv(11, 1, 6, 90 * MS, 100 * MS);
            r
        });
        let ids = ["late_sender", "late_receiver"];
        ids.map(|id| ["_polled", "_sync_polled"].map(|end| total(&report, &format!("{id}{end}"))))
    };
    let [sent, posted] = [50, 20].map(|ms| (ms * MS) as i64);
    assert_eq!(polled(0), [[0, sent], [0, posted]]);
    // The receives have the same buffer.
    assert_eq!(polled(4), [[sent, 0], [posted, 0]]);
}

/// The critical path leaves a rank that looks in vain, as it leaves one that waits in one call.
#[test]
fn the_critical_path_leaves_looks_for_the_late_rank() {
    let trace = |looks: bool| {
        move || {
            let mut r = ranks(2);
            r[0].call(1, collective(number::MPI_Barrier, -1), 0, MS);
            r[1].call(1, collective(number::MPI_Barrier, -1), 0, MS);
            r[0].send(10, 1, 5, 60 * MS, 61 * MS);
            let request = r[1].irecv(20, 0, 5, 2 * MS);
            if looks {
                r[1].looks(21, number::MPI_Test, 10 * MS, 61 * MS, 100 * US);
                r[1].test(21, &[request], 61 * MS, 61 * MS + US);
            } else {
                r[1].waitall(21, &[(request, None)], 10 * MS, 61 * MS + US);
            }
            r[0].call(40, collective(number::MPI_Barrier, -1), 62 * MS, 63 * MS);
            r[1].call(40, collective(number::MPI_Barrier, -1), 62 * MS, 63 * MS);
            r
        }
    };
    let of = |report: &Report| {
        let path = report.critical_path.clone().unwrap();
        let rank_0 = path.ranks.iter().find(|share| share.rank == 0);
        let first = &path.profile[0];
        assert_eq!(
            (first.kind.as_str(), first.location.line),
            ("computation", 1)
        );
        let busy = report.parallelism.as_ref().unwrap();
        (rank_0.unwrap().seconds, first.seconds, busy.speedup)
    };
    let (looks, waits) = (of(&report(trace(true))), of(&report(trace(false))));
    assert_eq!((looks.0, looks.1), (waits.0, waits.1));
    assert!((looks.2 - waits.2).abs() < 1e-3, "{looks:?} {waits:?}");
}

#[test]
fn what_was_there_already_is_not_waited_for() {
    let report = report(|| {
        let mut r = ranks(2);
        r[0].send(10, 1, 5, 10 * MS, 11 * MS);
        let request = r[1].irecv(20, 0, 5, MS);
        r[1].looks(21, number::MPI_Test, 20 * MS, 30 * MS, 100 * US);
        r[1].test(21, &[request], 30 * MS, 30 * MS + US);
        r
    });
    assert!(report.bottlenecks.is_empty(), "{:?}", report.bottlenecks);
}

#[test]
fn work_between_looks_is_no_waiting() {
    let trace = |gap: u64| {
        move || {
            let mut r = ranks(2);
            let until = 10 * MS + 100 * (US + gap);
            r[0].send(10, 1, 5, until, until + US);
            let request = r[1].irecv(20, 0, 5, MS);
            for look in 0..100 {
                let begin = 10 * MS + look * (US + gap);
                r[1].call(21, vain(number::MPI_Test), begin, begin + US);
            }
            r[1].test(21, &[request], until, until + US);
            r
        }
    };
    let waited = |gap| total(&report(trace(gap)), "late_sender_polled");
    // Shorter than ten looks, of 1 us each.
    assert_eq!(waited(10 * US - 1), (100 * (US + 10 * US - 1)) as i64);
    assert_eq!(waited(10 * US), 100 * US as i64);
    let report = report(trace(500 * US));
    assert_eq!(total(&report, "late_sender_polled"), 100 * US as i64);
    let location = &report.locations[1];
    assert!(location.computation_s > 0.05, "{location:?}");
}

#[test]
fn records_of_many_looks_say_what_was_inside() {
    let waited = |inside: u64| {
        let report = report(|| {
            let mut r = ranks(2);
            r[0].send(10, 1, 5, 20 * MS, 21 * MS);
            let request = r[1].irecv(20, 0, 5, MS);
            let at = (10 * MS, 20 * MS);
            r[1].merged(21, vain(number::MPI_Test), at, (1001, inside));
            r[1].test(21, &[request], 20 * MS + US, 20 * MS + 2 * US);
            r
        });
        total(&report, "late_sender_polled")
    };
    // Looks of 1 us with 9 us between are all looking, looks of 0.5 us with 9.5 us are not.
    assert_eq!(waited(1001 * US), 10 * MS as i64);
    assert_eq!(waited(1001 * US / 2), 1001 * US as i64 / 2);
}

/// A loop of looks of 1 us, `step` apart, from 10 ms until the message is sent at 20 ms; 1 us after each, rank 1 makes
/// another call of 1 us. How long it waited.
fn waited_with(step: u64, other: impl Fn(&mut [Calls], u64)) -> i64 {
    let report = report(|| {
        let mut r = ranks(2);
        r[0].send(10, 1, 5, 20 * MS, 21 * MS);
        let request = r[1].irecv(20, 0, 5, MS);
        for at in (10 * MS..20 * MS).step_by(step as usize) {
            r[1].looks(21, number::MPI_Test, at, at + US, US);
            other(&mut r, at + 2 * US);
        }
        r[1].test(21, &[request], 20 * MS, 20 * MS + US);
        r
    });
    assert_eq!(report.untraced_s, Some(0.0));
    let computation = report.root_causes.as_ref().unwrap().first();
    let computation = computation.map_or(0.0, |root| root.severity_s);
    let waited = total(&report, "late_sender_polled");
    assert_eq!((computation * 1e9).round() as i64, waited);
    waited
}

#[test]
fn calls_that_do_nothing_between_looks_are_looking() {
    let null = |line, operation| {
        move |r: &mut [Calls], at| {
            let signature = Signature {
                operation,
                ..Signature::default()
            };
            r[1].call(line, signature, at, at + US);
        }
    };
    // At a line of its own, or at that of the looks.
    for line in [21, 22] {
        for operation in [number::MPI_Wait, number::MPI_Test, number::MPI_Testall] {
            assert_eq!(waited_with(5 * US, null(line, operation)), 10 * MS as i64);
            // All but the call and the time before it is work, but for the 7 us before the look that finds it.
            let looked = (334 * 3 + 7) * US as i64;
            assert_eq!(waited_with(30 * US, null(line, operation)), looked);
        }
    }
}

/// The same with looks 5 us apart, of which none is made for 4 ms, when others have the processor for so long, ns. With
/// calls that do nothing, or without.
fn waited_without_processor(preempted: u64, is_idle: bool) -> Report {
    report(|| {
        let mut r = ranks(2);
        r[0].send(10, 1, 5, 20 * MS, 21 * MS);
        let request = r[1].irecv(20, 0, 5, MS);
        let looks = (10 * MS..20 * MS).step_by(5_000);
        for at in looks.filter(|at| !(13 * MS..17 * MS).contains(at)) {
            if at == 17 * MS {
                r[1].is_off([0, preempted, 0]);
            }
            r[1].looks(21, number::MPI_Test, at, at + US, US);
            if is_idle {
                let wait = Signature {
                    operation: number::MPI_Wait,
                    ..Signature::default()
                };
                r[1].call(22, wait, at + 2 * US, at + 3 * US);
            }
        }
        r[1].test(21, &[request], 20 * MS, 20 * MS + US);
        r
    })
}

#[test]
fn who_loses_the_processor_between_looks_goes_on_waiting() {
    for is_idle in [false, true] {
        let told = waited_without_processor(4 * MS, is_idle);
        assert_eq!(total(&told, "late_sender_polled"), 10 * MS as i64);
        // Nothing of it is what rank 1 did itself: rank 0 computed as much longer.
        let root = &told.root_causes.as_ref().unwrap()[0];
        assert_eq!(
            (&*root.activity, (root.severity_s * 1e9).round() as u64),
            ("computation", 10 * MS)
        );
        // A near miss: it works in between.
        let told = waited_without_processor(2 * MS, is_idle);
        let waited = total(&told, "late_sender_polled");
        assert!((5_990_000..6_000_000).contains(&waited), "{waited}");
    }
}

#[test]
fn who_sends_between_looks_does_not_only_look() {
    let serve = |r: &mut [Calls], at| {
        r[1].send(22, 0, 7, at, at + US);
        let later = 20 * MS + at / 4;
        r[0].recv(11, 1, 7, later, later + US);
    };
    assert_eq!(waited_with(5 * US, serve), 2_000 * US as i64);
}

#[test]
fn a_request_is_not_looked_at_before_it_is_posted() {
    let report = report(|| {
        let mut r = ranks(2);
        let first = r[1].irecv(19, 0, 4, MS);
        r[1].looks(21, number::MPI_Test, 10 * MS, 20 * MS, 100 * US);
        let second = r[1].irecv(20, 0, 5, 20 * MS);
        r[1].looks(21, number::MPI_Test, 21 * MS, 40 * MS, 100 * US);
        r[1].test(21, &[second], 40 * MS, 40 * MS + US);
        r[1].waitall(23, &[(first, None)], 60 * MS, 61 * MS);
        r[0].send(10, 1, 5, 40 * MS, 41 * MS);
        r[0].send(10, 1, 4, 50 * MS, 51 * MS);
        r
    });
    assert_eq!(total(&report, "late_sender_polled"), 19 * MS as i64);
}

#[test]
fn loops_over_two_places_share_the_time() {
    let report = report(|| {
        let mut r = ranks(3);
        r[0].send(10, 2, 5, 30 * MS, 31 * MS);
        r[1].recv(15, 2, 6, 50 * MS, 51 * MS);
        let receive = r[2].irecv(20, 0, 5, MS);
        let send = r[2].isend(21, 1, 6, 2 * MS);
        for look in 0..200 {
            let begin = 10 * MS + look * 100 * US;
            r[2].looks(22, number::MPI_Test, begin, begin + 50 * US, 50 * US);
            r[2].looks(
                23,
                number::MPI_Test,
                begin + 50 * US,
                begin + 100 * US,
                50 * US,
            );
        }
        r[2].test(22, &[receive], 30 * MS, 30 * MS + US);
        r[2].looks(23, number::MPI_Test, 30 * MS + US, 51 * MS + US, 50 * US);
        r[2].test(23, &[send], 51 * MS + US, 51 * MS + 2 * US);
        r
    });
    let near = |pattern, ms: u64| {
        let off = total(&report, pattern).abs_diff((ms * MS) as i64);
        assert!(off <= 60 * US, "{pattern}: {}", total(&report, pattern));
    };
    near("late_sender_polled", 10);
    near("late_receiver_polled", 30);
    let victims = report.locations[2].wait_s;
    assert!((0.0399..=0.0401).contains(&victims), "{victims}");
}

/// A probe of a channel of all ranks.
fn probe(from: i32, tag: i32, more: u16) -> Signature {
    Signature {
        operation: number::MPI_Iprobe,
        flags: more,
        group: WORLD,
        receive: Endpoint {
            peer: from,
            tag,
            bytes: 8,
        },
        ..Signature::default()
    }
}

/// Rank 1 looks for three messages in turn that rank 0 sends at `sent`, us, and finds them in this `order`, from 300 us after
/// the last one on: by tests at three lines, or by probes at one.
fn looks_in_turn(sent: [u64; 3], order: [usize; 3], by_tests: bool) -> Vec<Calls> {
    let mut r = ranks(2);
    for (tag, at) in (0..).zip(sent) {
        r[0].send(10 + tag as u32, 1, tag, at * US, (at + 1) * US);
    }
    let requests =
        by_tests.then(|| [0, 1, 2].map(|tag| r[1].irecv(20, 0, tag, (1 + tag as u64) * MS)));
    let places = if by_tests { [30, 31, 32] } else { [30; 3] };
    let last = sent[2] * US;
    let begins = (10 * MS..last + 180 * US).step_by(60_000);
    for begin in begins {
        for (which, &place) in places.iter().enumerate() {
            let begin = begin + which as u64 * 20 * US;
            let look = match by_tests {
                true => vain(number::MPI_Test),
                false => probe(0, which as i32, flags::UNSUCCESSFUL),
            };
            r[1].call(place, look, begin, begin + 20 * US);
        }
    }
    for (at, which) in (0..).zip(order) {
        let enter = last + (300 + 2 * at) * US;
        match requests {
            Some(requests) => r[1].test(places[which], &[requests[which]], enter, enter + US / 2),
            None => {
                let found = probe(0, which as i32, flags::RECEIVES | flags::PEEKS);
                r[1].call(places[which], found, enter, enter + US / 2);
                r[1].recv(40, 0, which as i32, enter + US / 2, enter + US);
            }
        }
    }
    r
}

#[test]
fn who_looks_in_turn_waits_for_the_late_rank_in_all_looks() {
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]];
    let orders = orders
        .iter()
        .flat_map(|order| [(*order, true), (*order, false)]);
    for (order, by_tests) in orders {
        // All three because of the same delay.
        let all = report(|| looks_in_turn([30_000, 30_002, 30_004], order, by_tests));
        let roots = all.root_causes.as_ref().unwrap();
        let told = |root: &laggard_report::RootCause| {
            let until = root.until.as_ref().map_or(0, |until| until.location.line);
            (root.activity.clone(), root.rank_set.clone(), until)
        };
        let of = |until| ("computation".to_owned(), "0".to_owned(), until);
        assert_eq!(told(&roots[0]), of(10), "{order:?}");
        let waited = total(&all, "late_sender_polled");
        assert!(waited.abs_diff(20 * MS as i64) < 100 * US, "{waited}");
        let of_first = (roots[0].severity_s * 1e9) as i64;
        assert!(waited.abs_diff(of_first) < 20 * US, "{order:?}: {of_first}");
        // The other one worked between its first call and its first look, if that is another one.
        let because = match by_tests {
            true => "in the mean 29.0 ms instead of 9.00 ms",
            false => "computed for 20.0 ms in the mean, which those that waited did not",
        };
        assert!(
            roots[0].because.ends_with(because),
            "{:?}",
            roots[0].because
        );
        // The last one comes later by itself.
        let apart = report(|| looks_in_turn([20_000, 20_002, 40_000], order, by_tests));
        let roots = apart.root_causes.as_ref().unwrap();
        let mut all: Vec<_> = roots.iter().map(told).collect();
        all.sort_unstable();
        assert_eq!(all[..2], [of(10), of(12)], "{order:?}");
        let sum: f64 = apart.waiting_by_activity_s.values().sum();
        let waited = total(&apart, "late_sender_polled") as f64 / 1e9;
        assert!((sum - waited).abs() < 1e-6, "{sum} {waited}");
    }
}

/// How a loop of [`exchange`] goes on after its test found that the barrier is complete, at 61 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum After {
    /// It ends, at once or after a last probe. Or it has looked for the message alone before, from 2 to 8 ms.
    Ends,
    Probes,
    EndsLater,
    /// It looks for the message, at once, or after calls that handle what it found.
    Looks,
    Handles,
}

/// Rank 0 looks in turn for a message, and whether a barrier is complete, until 61 ms; rank 1 comes to that at
/// 60 ms. The message comes at 100 ms, and rank 0 looks for it from 80 ms on at the latest.
fn exchange(after: After) -> Vec<Calls> {
    let mut r = ranks(3);
    let post = Signature {
        flags: flags::COLLECTIVE | flags::POSTS,
        ..collective(number::MPI_Ibarrier, PEER_NONE)
    };
    for (rank, enter) in [(0, MS), (1, 60 * MS), (2, 2 * MS)] {
        r[rank].call(10, post, enter, enter + US);
    }
    for rank in [1, 2] {
        r[rank].test(12, &[0], 61 * MS, 61 * MS + US);
    }
    let any = flags::ANY_SOURCE | flags::ANY_TAG;
    let of_any = probe(PEER_ANY, TAG_ANY, flags::UNSUCCESSFUL | any);
    if after == After::EndsLater {
        for at in (2 * MS..8 * MS).step_by(10_000) {
            r[0].call(20, of_any, at, at + 10 * US);
        }
    }
    for at in (10 * MS..61 * MS).step_by(20_000) {
        r[0].call(20, of_any, at, at + 10 * US);
        r[0].call(21, vain(number::MPI_Test), at + 10 * US, at + 20 * US);
    }
    r[0].test(21, &[0], 61 * MS, 61 * MS + US);
    let begin = match after {
        After::Ends | After::Probes | After::EndsLater => 80 * MS,
        After::Looks => 61 * MS + 10 * US,
        After::Handles => 61 * MS + 40 * US,
    };
    match after {
        After::Probes => r[0].call(20, of_any, 61 * MS + US, 61 * MS + 2 * US),
        After::Handles => {
            r[0].send(22, 2, 7, 61 * MS + 20 * US, 61 * MS + 21 * US);
            r[2].recv(30, 0, 7, 70 * MS, 71 * MS);
        }
        _ => {}
    }
    if begin == 80 * MS {
        r[0].send(23, 2, 8, 79 * MS, 79 * MS + US);
        r[2].recv(31, 0, 8, 80 * MS, 81 * MS);
    }
    for at in (begin..100 * MS).step_by(10_000) {
        r[0].call(20, of_any, at, at + 10 * US);
    }
    let found = probe(1, 5, flags::RECEIVES | flags::PEEKS | any);
    r[0].call(20, found, 100 * MS + 20 * US, 100 * MS + 21 * US);
    r[0].recv(24, 1, 5, 100 * MS + 22 * US, 100 * MS + 23 * US);
    r[1].send(11, 0, 5, 100 * MS, 100 * MS + US);
    r
}

/// Who looks for a message and for the end of a barrier waits in all looks for the last member, if the loop ends then.
#[test]
fn looks_beside_one_that_ends_the_loop_wait_for_the_same() {
    let near = |found: i64, us: u64| {
        assert!(found.abs_diff((us * US) as i64) <= 30 * US, "{found}, {us}");
    };
    let ends = [After::Ends, After::Probes, After::EndsLater];
    for after in ends.into_iter().chain([After::Looks, After::Handles]) {
        let report = report(|| exchange(after));
        let waits = ["wait_at_barrier_polled", "late_sender_polled"];
        let [barrier, message] = waits.map(|pattern| total(&report, pattern));
        let by_probes = |found: &&laggard_report::Bottleneck| {
            found.pattern == waits[0] && found.location.line == 20
        };
        let by_probes = report.bottlenecks.iter().find(by_probes);
        let by_probes = by_probes.map_or(0, |found| (found.severity_s * 1e9) as i64);
        match after {
            After::Ends | After::Probes | After::EndsLater => {
                near(barrier, 50_000);
                near(by_probes, 25_000);
                // What it looked for alone was not for the barrier.
                let alone = if after == After::EndsLater { 6_000 } else { 0 };
                near(message, 20_000 + alone);
            }
            // A near miss: it waits for the message, too.
            After::Looks | After::Handles => {
                near(barrier, 25_000);
                near(by_probes, 0);
                near(message, 25_460 + 39_000);
            }
        }
        assert_eq!(total(&report, "looked_in_vain"), 0, "{after:?}");
        assert_eq!(report.untraced_s, Some(0.0), "{after:?}");
        let roots = report.root_causes.as_ref().unwrap();
        let of_rank_1 = roots.iter().filter(|root| root.rank_set == "1");
        let of_rank_1: f64 = of_rank_1.map(|root| root.severity_s).sum();
        near((of_rank_1 * 1e9) as i64, ((barrier + message) as u64) / US);
        if matches!(after, After::Ends | After::Probes) {
            assert!(roots.iter().all(|root| root.activity == "computation"));
        }
        let sum: f64 = report.waiting_by_activity_s.values().sum();
        let location = &report.locations[0];
        assert!(location.wait_s <= location.communication_s, "{location:?}");
        let waited: f64 = report
            .locations
            .iter()
            .map(|location| location.wait_s)
            .sum();
        assert!((sum - waited).abs() < 1e-6, "{after:?}: {sum} {waited}");
    }
}

/// Rank 0 looks in turn for two messages: one of 15, each 40 ms after the one before, and the one that ends it. All of that
/// is because of what rank 1 does before it sends them, however often the two met since the looks for the last one began.
#[test]
fn looks_that_began_many_meetings_ago_wait_for_all_since() {
    let report = report(|| {
        let mut r = ranks(2);
        let look = |tag| probe(1, tag, flags::UNSUCCESSFUL);
        let found = |tag| probe(1, tag, flags::RECEIVES | flags::PEEKS);
        let mut now = 2 * MS;
        for round in 0..15 {
            let sent = 42 * MS + round * 40 * MS;
            r[1].send(10, 0, 7, sent, sent + US);
            for at in (now..sent).step_by(20_000) {
                r[0].call(20, look(8), at, at + 10 * US);
                r[0].call(21, look(7), at + 10 * US, at + 20 * US);
            }
            r[0].call(20, look(8), sent, sent + 10 * US);
            r[0].call(21, found(7), sent + 10 * US, sent + 11 * US);
            r[0].recv(22, 1, 7, sent + 12 * US, sent + 13 * US);
            now = sent + 20 * US;
        }
        r[1].send(11, 0, 8, now, now + US);
        r[0].call(20, found(8), now + 10 * US, now + 11 * US);
        r[0].recv(23, 1, 8, now + 12 * US, now + 13 * US);
        r
    });
    let waited = total(&report, "late_sender_polled");
    assert!(waited.abs_diff(600 * MS as i64) < MS, "{waited}");
    let roots = report.root_causes.as_ref().unwrap();
    let computed = roots
        .iter()
        .filter(|root| (root.activity.as_str(), root.rank_set.as_str()) == ("computation", "1"));
    let computed: f64 = computed.map(|root| root.severity_s).sum();
    assert!((computed - 0.6).abs() < 0.002, "{roots:?}");
}

/// Rank 0 tests in turn what rank 1 never sends, and a message of rank 2.
#[test]
fn tests_beside_one_that_ends_the_loop_wait_for_the_same() {
    let report = report(|| {
        let mut r = ranks(3);
        r[0].irecv(10, 1, 9, MS);
        let request = r[0].irecv(11, 2, 5, 2 * MS);
        for at in (10 * MS..61 * MS).step_by(20_000) {
            r[0].call(20, vain(number::MPI_Test), at, at + 10 * US);
            r[0].call(21, vain(number::MPI_Test), at + 10 * US, at + 20 * US);
        }
        r[0].test(21, &[request], 61 * MS, 61 * MS + US);
        r[2].send(30, 0, 5, 60 * MS, 60 * MS + US);
        r
    });
    let waited = total(&report, "late_sender_polled");
    assert!(waited.abs_diff(50 * MS as i64) < 10 * US, "{waited}");
    assert_eq!(total(&report, "looked_in_vain"), 0);
    assert_eq!(report.untraced_s, Some(0.0));
}

/// Of a process that was killed nobody knows how its loop would have gone on.
#[test]
fn looks_beside_the_last_one_of_a_killed_process_wait_for_nothing_known() {
    let waited = |is_killed| {
        let report = report(|| {
            let mut r = ranks(2);
            r[0].irecv(10, 1, 9, MS);
            let request = r[0].irecv(11, 1, 5, 2 * MS);
            for at in (10 * MS..61 * MS).step_by(20_000) {
                r[0].call(20, vain(number::MPI_Test), at, at + 10 * US);
                r[0].call(21, vain(number::MPI_Test), at + 10 * US, at + 20 * US);
            }
            r[0].test(21, &[request], 61 * MS, 61 * MS + US);
            r[0].is_killed = is_killed;
            r[1].send(30, 0, 5, 60 * MS, 60 * MS + US);
            r
        });
        let patterns = ["late_sender_polled", "looked_in_vain"];
        patterns.map(|pattern| (total(&report, pattern) as u64 + MS / 2) / MS)
    };
    assert_eq!(waited(false), [50, 0]);
    assert_eq!(waited(true), [25, 26]);
}

#[test]
fn looks_at_variables_beside_one_that_ends_the_loop_wait_for_the_same() {
    let trace = |goes_on: bool| {
        move || {
            let mut r = ranks(2);
            let test = shmem("shmem_long_test");
            let vain = |address| on_memory(test, flags::UNSUCCESSFUL, address);
            let turn = [64, 128, 192];
            for at in (10 * MS..61 * MS).step_by(30_000) {
                for (address, at) in turn.into_iter().zip((at..).step_by(10_000)) {
                    r[1].call(21, vain(address), at, at + 10 * US);
                }
            }
            let one = Record::extension_u64(Extension::Value, 1);
            r[0].extended(10, put(64), &[one], (60 * MS, 60 * MS + US));
            let found = on_memory(test, 0, 64);
            r[1].extended(21, found, &[one], (61 * MS, 61 * MS + US));
            // What is left of the turn, and perhaps another one.
            let last = turn.into_iter().cycle().skip(1);
            let last = last.take(if goes_on { 5 } else { 2 });
            for (address, at) in last.zip((61 * MS + US..).step_by(10_000)) {
                r[1].call(21, vain(address), at, at + 10 * US);
            }
            r
        }
    };
    let near = |goes_on, ms: u64| {
        let waited = total(&report(trace(goes_on)), "wait_on_value_polled");
        assert!(waited.abs_diff((ms * MS) as i64) < MS, "{waited}");
    };
    near(false, 50);
    near(true, 17);
}

#[test]
fn probes_look_at_a_channel() {
    let report = report(|| {
        let mut r = ranks(2);
        r[0].send(10, 1, 5, 60 * MS, 61 * MS);
        let vain = flags::UNSUCCESSFUL;
        // What never comes is looked for at the same place.
        r[1].merged(20, probe(0, 9, vain), (5 * MS, 20 * MS), (1000, 15 * MS));
        let any = flags::ANY_SOURCE | flags::ANY_TAG;
        let of_any = probe(PEER_ANY, TAG_ANY, vain | any);
        r[1].merged(20, of_any, (20 * MS, 61 * MS), (1000, 41 * MS));
        let found = probe(0, 5, flags::RECEIVES | flags::PEEKS | any);
        r[1].call(20, found, 61 * MS, 61 * MS + US);
        r[1].recv(21, 0, 5, 62 * MS, 63 * MS);
        r
    });
    assert_eq!(total(&report, "late_sender_polled"), 40 * MS as i64);
    assert_eq!(total(&report, "looked_in_vain"), 15 * MS as i64);
}

/// Looks for what never comes are waits for nobody known, and what others waited for them is, too.
#[test]
fn looks_that_never_find_anything_wait() {
    let trace = |gap: u64| {
        move || {
            let mut r = ranks(2);
            let lonely = r[1].irecv(20, 0, 9, MS);
            for look in 0..1_000 {
                let begin = 10 * MS + look * (US + gap);
                r[1].call(21, vain(number::MPI_Test), begin, begin + US);
            }
            let until = 10 * MS + 1_000 * (US + gap);
            r[1].cancel(22, lonely, until, until + 2 * US);
            r[1].send(23, 0, 5, until + MS, until + MS + US);
            r[0].recv(10, 1, 5, 10 * MS, until + MS + US);
            r
        }
    };
    // Shorter than ten looks of 1 us each. Nothing lies between the last one and the end.
    let found_s = 1_000 * (US + 9 * US) - 9 * US;
    let looked = report(trace(9 * US));
    assert_eq!(total(&looked, "looked_in_vain"), found_s as i64);
    let found = found(&looked, "looked_in_vain");
    assert_eq!((found.location.line, found.causes.len()), (21, 0));
    assert_eq!(total(&looked, "late_sender"), 11 * MS as i64);
    // Rank 0 waited for rank 1, which looked for 10 ms of the 11.
    let untraced = looked.untraced_s.unwrap() * 1e9;
    assert!(
        (untraced - 2.0 * found_s as f64).abs() < 0.02 * MS as f64,
        "{untraced}"
    );
    let location = &looked.locations[1];
    assert_eq!(location.wait_s, found_s as f64 / 1e9);
    assert!(location.wait_s <= location.communication_s, "{location:?}");
    assert_eq!(looked.wait_classes["unknown"].untraced_s, location.wait_s);
    // Now and then is no wait.
    let driven = report(trace(10 * US));
    assert_eq!(total(&driven, "looked_in_vain"), 0);
    assert!(driven.untraced_s.unwrap() < 1e-6, "{:?}", driven.untraced_s);
}

/// A place where the program gave up may find something else later.
#[test]
fn what_is_found_later_was_not_looked_for_before_it_was_posted() {
    let report = report(|| {
        let mut r = ranks(2);
        let lonely = r[1].irecv(20, 0, 9, MS);
        r[1].looks(21, number::MPI_Test, 10 * MS, 20 * MS, 100 * US);
        r[1].cancel(21, lonely, 20 * MS, 20 * MS + US);
        let request = r[1].irecv(20, 0, 5, 21 * MS);
        r[1].looks(21, number::MPI_Test, 30 * MS, 60 * MS, 100 * US);
        r[1].test(21, &[request], 60 * MS, 60 * MS + US);
        r[0].send(10, 1, 5, 60 * MS, 60 * MS + US);
        // Nine looks are too few.
        r[1].looks(21, number::MPI_Test, 70 * MS, 70 * MS + 900 * US, 100 * US);
        r
    });
    assert_eq!(total(&report, "looked_in_vain"), 10 * MS as i64);
    assert_eq!(total(&report, "late_sender_polled"), 30 * MS as i64);
}

#[test]
fn a_polled_collective_waits_for_the_last() {
    let post = Signature {
        flags: flags::COLLECTIVE | flags::POSTS,
        ..collective(number::MPI_Iallreduce, PEER_NONE)
    };
    let report = report(|| {
        let mut r = ranks(3);
        for (rank, enter) in [(0, 1), (1, 41), (2, 61)] {
            r[rank].call(10, post, enter * MS, enter * MS + US);
            let until = (enter + 2).max(62) * MS;
            r[rank].looks(11, number::MPI_Test, enter * MS + US, until, 100 * US);
            r[rank].test(11, &[0], until, until + US);
        }
        r
    });
    // Rank 0 waits 40 ms for both others, and 20 for rank 2; rank 1 waits 20.
    let waited = 80 * MS as i64 - 2 * US as i64;
    assert_eq!(total(&report, "wait_at_nxn_polled"), waited);
    let found = found(&report, "wait_at_nxn_polled");
    let of = |rank| found.causes.iter().find(|cause| cause.rank == rank);
    let close = |rank, ms| (of(rank).unwrap().severity_s * 1e3 - ms as f64).abs() < 0.2;
    assert!(close(1, 20) && close(2, 60), "{:?}", found.causes);
    assert_eq!(report.untraced_s, Some(0.0));
}

/// The finding of a pattern.
fn found<'r>(report: &'r Report, pattern: &str) -> &'r laggard_report::Bottleneck {
    let mut found = report.bottlenecks.iter();
    found.find(|found| found.pattern == pattern).unwrap()
}

/// The number of a function.
fn shmem(name: &str) -> u16 {
    let found = (0..u16::MAX).find(|&number| calls::name(number) == name);
    found.unwrap()
}

fn on_memory(operation: u16, more: u16, address: u64) -> Signature {
    Signature {
        operation,
        flags: more,
        parameter: address as i64,
        receive: Endpoint {
            peer: PEER_NONE,
            tag: 0,
            bytes: 8,
        },
        send: Endpoint {
            peer: PEER_NONE,
            tag: 0,
            bytes: 0,
        },
        ..Signature::default()
    }
}

/// A rank writes a variable of rank 1.
fn put(address: u64) -> Signature {
    Signature {
        send: Endpoint {
            peer: 1,
            tag: 1,
            bytes: 8,
        },
        ..on_memory(shmem("shmem_long_p"), 0, address)
    }
}

#[test]
fn a_variable_is_looked_at_until_it_is_written() {
    let report = report(|| {
        let mut r = ranks(2);
        let one = Record::extension_u64(Extension::Value, 1);
        r[0].extended(10, put(64), &[one], (60 * MS, 60 * MS + US));
        // Another variable, which nobody writes.
        r[1].looks_at(
            21,
            on_memory(shmem("shmem_long_test"), flags::UNSUCCESSFUL, 128),
            5 * MS,
            10 * MS,
        );
        r[1].looks_at(
            21,
            on_memory(shmem("shmem_long_test"), flags::UNSUCCESSFUL, 64),
            10 * MS,
            61 * MS,
        );
        let test = on_memory(shmem("shmem_long_test"), 0, 64);
        r[1].extended(21, test, &[one], (61 * MS, 61 * MS + US));
        r
    });
    assert_eq!(total(&report, "wait_on_value_polled"), 50 * MS as i64);
    let found = found(&report, "wait_on_value_polled");
    assert_eq!((found.causes[0].rank, found.location.line), (0, 21));
    assert_eq!(found.causes[0].because, "computed 50.0 ms before it wrote");
}

/// Nobody is known to have written it: as in a single call that waits for a value.
#[test]
fn looks_at_a_variable_that_nobody_wrote_are_unexplained() {
    let trace = |writes: u64| {
        move || {
            let mut r = ranks(2);
            let one = Record::extension_u64(Extension::Value, 1);
            for write in 0..writes {
                let address = if write == 0 { 64 } else { 128 };
                let begin = 50 * MS + write * 10 * US;
                r[0].extended(10, put(address), &[one], (begin, begin + US));
            }
            let vain = on_memory(shmem("shmem_long_test"), flags::UNSUCCESSFUL, 64);
            r[1].looks_at(21, vain, 10 * MS, 60 * MS);
            let test = on_memory(shmem("shmem_long_test"), 0, 64);
            r[1].extended(21, test, &[one], (60 * MS, 60 * MS + US));
            r
        }
    };
    let of = |report: &Report| {
        let unexplained = report.sums().in_calls.unwrap().unexplained_s * 1e9;
        (
            total(report, "wait_on_value_polled"),
            unexplained.round() as i64,
        )
    };
    assert_eq!(of(&report(trace(0))), (0, 50 * MS as i64));
    assert_eq!(of(&report(trace(16))).0, 40 * MS as i64);
    // More are forgotten if a slab ended meanwhile, but the wait is not.
    let with = |round_records| {
        let mut options = AnalyzeOptions {
            round_records,
            ..AnalyzeOptions::default()
        };
        options.settings.all = true;
        of(&analyze_with(trace(17)(), &options))
    };
    assert_eq!(with(None).0, 40 * MS as i64);
    assert_eq!(with(Some(1)), (0, 50 * MS as i64));
}

/// Only the last holders are known, but the lock was held all the time.
#[test]
fn forgotten_holders_of_a_lock_are_nobody() {
    let report = report(|| {
        let mut r = ranks(3);
        let lock = |operation, more| on_memory(operation, more, 64);
        for hold in 0..20 {
            let holder = &mut r[(hold % 2) as usize];
            let begin = (5 + 5 * hold) * MS;
            let end = begin + 5 * MS - 3 * US;
            holder.call(10, lock(shmem("shmem_set_lock"), 0), begin, begin + US);
            holder.call(11, lock(shmem("shmem_clear_lock"), 0), end, end + US);
        }
        let vain = lock(shmem("shmem_test_lock"), flags::UNSUCCESSFUL);
        r[2].looks_at(20, vain, 10 * MS, 105 * MS);
        let end = 105 * MS + 2 * US;
        r[2].call(20, lock(shmem("shmem_test_lock"), 0), 105 * MS, end);
        r[2].call(21, lock(shmem("shmem_clear_lock"), 0), 106 * MS, 107 * MS);
        r
    });
    let waited = total(&report, "wait_on_lock_polled");
    assert_eq!(waited, (95 * MS - 3 * US) as i64);
    let found = found(&report, "wait_on_lock_polled");
    let known: f64 = found.causes.iter().map(|cause| cause.severity_s).sum();
    // 16 of 5 ms.
    assert!((known - 0.080).abs() < 20e-6, "{:?}", found.causes);
}

#[test]
fn a_lock_is_tried_until_its_holders_gave_it_back() {
    let report = report(|| {
        let mut r = ranks(3);
        let lock = |operation, more| on_memory(operation, more, 64);
        r[0].call(10, lock(shmem("shmem_set_lock"), 0), 5 * MS, 5 * MS + US);
        r[0].call(
            11,
            lock(shmem("shmem_clear_lock"), 0),
            40 * MS,
            40 * MS + US,
        );
        r[1].call(
            12,
            lock(shmem("shmem_set_lock"), 0),
            40 * MS + US,
            40 * MS + 2 * US,
        );
        r[1].call(
            13,
            lock(shmem("shmem_clear_lock"), 0),
            60 * MS,
            60 * MS + US,
        );
        let vain = lock(shmem("shmem_test_lock"), flags::UNSUCCESSFUL);
        r[2].looks_at(20, vain, 10 * MS, 60 * MS);
        r[2].call(
            20,
            lock(shmem("shmem_test_lock"), 0),
            60 * MS,
            60 * MS + 2 * US,
        );
        r[2].call(
            21,
            lock(shmem("shmem_clear_lock"), 0),
            61 * MS,
            61 * MS + US,
        );
        r
    });
    assert_eq!(total(&report, "wait_on_lock_polled"), 50 * MS as i64);
    let found = found(&report, "wait_on_lock_polled");
    let of = |rank| found.causes.iter().find(|cause| cause.rank == rank);
    let shares = [0, 1].map(|rank| of(rank).unwrap().severity_s);
    assert_eq!(shares, [0.03, 0.02]);
    assert_eq!(total(&report, "wait_on_lock"), 0);
}

#[test]
fn time_in_and_between_looks_adds_up() {
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let mut r = ranks(2);
    r[0].send(10, 1, 5, 60 * MS, 60 * MS + US);
    let request = r[1].irecv(20, 0, 5, 10 * MS - 1);
    for look in 0..5_000 {
        // 1 us each, and 9 us between.
        let begin = 10 * MS + look * 10 * US;
        r[1].call(21, vain(number::MPI_Test), begin, begin + US);
    }
    r[1].test(21, &[request], 60 * MS, 60 * MS + US);
    let report = analyze_whole(r, &options);
    let location = &report.locations[1];
    assert_eq!(total(&report, "late_sender_polled"), 50 * MS as i64);
    assert!(location.wait_s <= location.communication_s, "{location:?}");
    assert!(location.computation_s < 1e-3, "{location:?}");
    let mut found = report.bottlenecks.iter();
    assert!(found.all(|found| found.pattern == "late_sender_polled"));
}
