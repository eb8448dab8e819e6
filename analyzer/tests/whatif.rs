//! Predictions for traces made in memory: with nothing changed every time is reproduced, and with a
//! change the times are those of the program that has it.

use crate::support::*;
use laggard_baselines::{Entry, Point, Table};
use laggard_engine::AnalyzeOptions;
use laggard_engine::events::Events;
use laggard_trace::calls::number;
use laggard_trace::{Endpoint, Signature, WORLD, flags};
use laggard_whatif::{Change, Outcome, Prediction, Scenario, predict};
use proptest::prelude::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn changes(words: &[(&str, &str)]) -> Vec<Scenario> {
    let changes = words
        .iter()
        .map(|(kind, words)| Change::parse(kind, words).unwrap());
    changes.map(Scenario::of).collect()
}

/// Writes a trace, analyses it, and predicts. All of it is reproduced.
fn predicted(calls: Vec<Calls>, words: &[(&str, &str)]) -> Result<Prediction, String> {
    predicted_of(calls, &changes(words))
}

fn predicted_of(calls: Vec<Calls>, scenarios: &[Scenario]) -> Result<Prediction, String> {
    let prediction = replayed_of(calls, scenarios)?;
    assert_eq!((prediction.not_reproduced, prediction.circles), (0, 0));
    Ok(prediction)
}

fn replayed(calls: Vec<Calls>, words: &[(&str, &str)]) -> Result<Prediction, String> {
    replayed_of(calls, &changes(words))
}

fn replayed_of(mut calls: Vec<Calls>, scenarios: &[Scenario]) -> Result<Prediction, String> {
    let directory = tempfile::tempdir().unwrap();
    calls
        .iter_mut()
        .for_each(|calls| calls.write(directory.path()));
    let mut options = AnalyzeOptions::default();
    options.settings.all = true;
    let analysis = laggard_engine::analyze(directory.path(), &options);
    let report = analysis.unwrap().unwrap().report;
    let events = Events::open(directory.path()).unwrap();
    predict(&events, Some(&report), scenarios).map_err(|e| e.to_string())
}

/// The predicted gains, ns.
fn gains(calls: Vec<Calls>, words: &[(&str, &str)]) -> Vec<i64> {
    let prediction = predicted(calls, words).unwrap();
    let gains = prediction.scenarios.iter();
    gains
        .map(|outcome| (outcome.gain_s * 1e9).round() as i64)
        .collect()
}

/// Ranks that come to a barrier after so many ms.
fn barrier(late: &[u64]) -> Vec<Calls> {
    let mut all = ranks(late.len() as u32);
    let last = late.iter().max().unwrap();
    for (rank, late) in all.iter_mut().zip(late) {
        rank.call(1, init(), 0, MS);
        rank.collective(10, number::MPI_Barrier, 0, (1 + late) * MS, (2 + last) * MS);
        rank.call(40, finalize(), (3 + last) * MS, (4 + last) * MS);
    }
    all
}

#[test]
fn mending_one_of_two_late_ranks_gains_little() {
    let words = [
        ("speed_up", "rank:3=1000000"),
        ("speed_up", "rank:2=1000000"),
        ("without_cause", "1"),
        ("no_barrier", "app.c:10"),
        ("speed_up", "rank:3=1"),
    ];
    let prediction = predicted(barrier(&[1, 1, 20, 22]), &words).unwrap();
    let gain = |at: usize| (prediction.scenarios[at].gain_s * 1e9).round() as i64;
    let ms = MS as i64;
    assert_eq!((gain(0), gain(1)), (2 * ms, 0));
    // Both come with the others then, which compute 1 ms.
    assert_eq!(gain(2), 21 * ms);
    // Without the barrier they meet in Finalize; the barrier itself took 1 ms.
    assert_eq!((gain(3), gain(4)), (ms, 0));
    let wait = |at: usize| &prediction.scenarios[at].waits[0];
    assert_eq!((wait(0).late_rank, wait(1).late_rank), (2, 3));
    assert_eq!(wait(0).late_location.line, 10);
    assert_eq!(prediction.scenarios[2].waits, []);
    assert_eq!(prediction.recorded.least_waiting_rank, 3);
    assert_eq!(prediction.scenarios[0].least_waiting_rank, 2);
    let waiting = |ns: f64| (ns * 1e3).round() as i64;
    assert_eq!(waiting(prediction.recorded.waiting_s), 21 + 21 + 2);
}

#[test]
fn a_part_of_a_cause_is_mended() {
    let words = ["1=0", "1=0.25", "rc1=0.5", "1=1", "1"].map(|words| ("without_cause", words));
    let ms = MS as i64;
    // Rank 2 computes 19 ms longer than the others.
    let gained = gains(barrier(&[1, 1, 20]), &words);
    assert_eq!(gained, [0, 19 * ms / 4, 19 * ms / 2, 19 * ms, 19 * ms]);
}

#[test]
fn work_is_balanced_from_meeting_to_meeting() {
    // The longest takes 6 of 12 ms once, and 6 of 24 the other time.
    let work = [[1, 6], [2, 6], [3, 6], [6, 6]];
    let mut all = ranks(4);
    for (rank, work) in all.iter_mut().zip(work) {
        rank.call(1, init(), 0, MS);
        rank.collective(10, number::MPI_Allreduce, 0, (1 + work[0]) * MS, 8 * MS);
        rank.collective(20, number::MPI_Allreduce, 0, (8 + work[1]) * MS, 15 * MS);
        rank.call(40, finalize(), 16 * MS, 17 * MS);
    }
    let words = [
        ("balance", "app.c:10"),
        ("balance", "app.c:20"),
        ("balance", "work"),
        ("speed_up", "app.c:20=2"),
    ];
    assert_eq!(
        gains(all, &words),
        [3, 0, 3, 3].map(|gain| gain * MS as i64)
    );
}

/// Two ranks of 1000 samples a second compute in `solve` and in other functions before they meet in another one.
fn solving(solve: [u32; 2], other: [u32; 2]) -> Vec<Calls> {
    let mut all = ranks(2);
    takes_samples(&mut all);
    let end = 1 + (0..2).map(|at| solve[at] + other[at]).max().unwrap();
    let end = u64::from(end);
    for (at, rank) in all.iter_mut().enumerate() {
        for (line, name) in [(7, "solve"), (8, "other"), (10, "meet")] {
            rank.in_function(line, name);
        }
        rank.call(1, init(), 0, MS);
        for (line, samples) in [(7, solve[at]), (8, other[at])] {
            rank.samples(line, samples, samples * MS as u32);
        }
        let enter = 1 + u64::from(solve[at] + other[at]);
        rank.collective(10, number::MPI_Barrier, 0, enter * MS, (end + 1) * MS);
        rank.call(40, finalize(), (end + 2) * MS, (end + 3) * MS);
    }
    all
}

#[test]
fn samples_tell_in_which_functions_computation_lies() {
    let words = [
        ("speed_up", "solve=2"),
        ("speed_up", "sol*=4"),
        ("speed_up", "meet=2"),
        ("speed_up", "app.c:7=2"),
        // All of the time before a call belongs to its line.
        ("speed_up", "app.c:10=2"),
        ("balance", "solve"),
    ];
    let ms = MS as i64;
    let gained = gains(solving([40, 20], [20, 20]), &words);
    assert_eq!(gained, [20, 30, 0, 20, 30, 10].map(|gain| gain * ms));
    // Few samples tell as well.
    let few = gains(solving([6, 2], [2, 2]), &words[..2]);
    assert_eq!(few, [3 * ms, 4 * ms + ms / 2]);
}

#[test]
fn a_chain_ends_where_it_begins() {
    let chain = || {
        let mut all = ranks(4);
        for rank in &mut all {
            rank.call(1, init(), 0, MS);
        }
        all[0].send(10, 1, 0, 301 * MS, 302 * MS);
        all[1].recv(20, 0, 0, 2 * MS, 303 * MS);
        all[1].send(11, 2, 0, 303 * MS, 304 * MS);
        all[2].recv(20, 1, 0, 2 * MS, 305 * MS);
        all[2].send(11, 3, 0, 305 * MS, 306 * MS);
        all[3].recv(20, 2, 0, 2 * MS, 307 * MS);
        for rank in &mut all {
            rank.call(40, finalize(), 308 * MS, 309 * MS);
        }
        all
    };
    let words = [
        ("without_cause", "1"),
        ("speed_up", "rank:1=1000000"),
        ("network", "latency=0"),
    ];
    let gains = gains(chain(), &words);
    // Without rank 0's 300 ms the first receive waits no longer, but is posted 1 ms later.
    assert_eq!(gains[0], 299 * MS as i64);
    // The innocent in the middle: it makes nobody wait.
    assert_eq!(gains[1], 0);
    // The last one has its message 6 ms earlier, but rank 0 computes 6 ms before Finalize.
    assert_eq!(gains[2], MS as i64);
}

/// Two ranks, one of which computes for 100 ms until a barrier. The other one computes for 110 ms before a call that it
/// alone makes, and for 60 ms after it.
fn alone_in_a_call() -> Vec<Calls> {
    let mut all = ranks(2);
    let signature = Signature {
        operation: number::MPI_Alloc_mem,
        ..Signature::default()
    };
    for (at, (rank, enter)) in all.iter_mut().zip([101, 171]).enumerate() {
        rank.call(1, init(), 0, MS);
        if at == 1 {
            rank.call(5, signature, 111 * MS, 111 * MS);
        }
        rank.collective(10, number::MPI_Barrier, 0, enter * MS, 171 * MS);
        rank.call(40, finalize(), 172 * MS, 173 * MS);
    }
    all
}

#[test]
fn what_no_other_rank_does_goes_by_as_much_as_it_starts() {
    // What the other one computes is set against what comes first: 10 ms of that are more.
    let words = [("without_cause", "1"), ("without_cause", "2")];
    let expected = [60, 10].map(|ms| ms * MS as i64);
    assert_eq!(gains(alone_in_a_call(), &words), expected);
}

/// Ranks that are in a call of their own for so many ms, the last of which computes 30 ms then.
fn long_calls(operation: u16, lasts: &[u64]) -> Vec<Calls> {
    let mut all = ranks(lasts.len() as u32);
    let (own, last) = (2 * MS, lasts.len() - 1);
    let end = own + (lasts[last] + 30) * MS;
    for (at, (rank, lasts)) in all.iter_mut().zip(lasts).enumerate() {
        let signature = Signature {
            operation,
            ..Signature::default()
        };
        rank.call(1, init(), 0, MS);
        let left = own + lasts * MS;
        rank.call(5, signature, own, left);
        let enter = if at == last { end } else { left };
        rank.collective(10, number::MPI_Barrier, 0, enter, end + MS);
        rank.call(40, finalize(), end + 2 * MS, end + 3 * MS);
    }
    all
}

#[test]
fn a_long_call_becomes_as_long_as_those_of_others() {
    let words = [("without_cause", "1")];
    for operation in [number::MPI_File_write, number::MPI_Alloc_mem] {
        // The mean of the others is 15 ms.
        let gain = gains(long_calls(operation, &[10, 20, 80]), &words);
        assert_eq!(gain, [65 * MS as i64], "{operation}");
    }
    // The others are in it for no time, just before they wait.
    let alone = long_calls(number::MPI_File_write, &[0, 0, 80]);
    assert_eq!(gains(alone, &words), [80 * MS as i64]);
}

/// Rank 0 computes until it sends, at 59 ms; rank 1 does something from 10 to 60 ms, in which it
/// learns of the message. Both meet at 62 ms.
fn late_by_58_ms(polls: impl FnOnce(&mut Calls)) -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all[0].send(10, 1, 5, 59 * MS, 59 * MS + US);
    polls(&mut all[1]);
    for rank in &mut all {
        rank.call(40, finalize(), 62 * MS, 63 * MS);
    }
    all
}

/// What it gains if rank 0 is faster, and if the first root cause is gone.
const FASTER: [(&str, &str); 3] = [
    ("speed_up", "rank:0=2"),
    ("speed_up", "rank:0=1000000"),
    ("without_cause", "1"),
];

#[test]
fn looks_in_vain_move_with_what_they_wait_for() {
    let polls = |rank: &mut Calls| {
        let request = rank.irecv(20, 0, 5, 2 * MS);
        rank.looks(21, number::MPI_Test, 10 * MS, 60 * MS, 100 * US);
        rank.test(21, &[request], 60 * MS, 60 * MS + US);
    };
    let found = gains(late_by_58_ms(polls), &FASTER);
    // Half of 58 ms; then the looks begin at 10 ms, when the message is there, and go on for the
    // 1 ms that they did after it was sent.
    assert_eq!(found, [29, 49, 49].map(|gain| gain * MS as i64));
    // The same with a call that blocks.
    let waits = |rank: &mut Calls| rank.recv(20, 0, 5, 10 * MS, 60 * MS);
    assert_eq!(gains(late_by_58_ms(waits), &FASTER), found);
}

#[test]
fn work_between_looks_stays() {
    let probe = |more| Signature {
        operation: number::MPI_Iprobe,
        flags: more,
        group: WORLD,
        receive: Endpoint {
            peer: 0,
            tag: 5,
            bytes: 8,
        },
        ..Signature::default()
    };
    let polls = |gap: u64| {
        move |rank: &mut Calls| {
            for at in (10 * MS..60 * MS).step_by((US + gap) as usize) {
                rank.call(20, probe(flags::UNSUCCESSFUL), at, at + US);
            }
            let found = probe(flags::RECEIVES | flags::PEEKS);
            rank.call(20, found, 60 * MS, 60 * MS + US);
            rank.recv(21, 0, 5, 60 * MS + US, 60 * MS + 2 * US);
        }
    };
    // 98 looks of 1 us in 49 ms until the send, with work between.
    let found = gains(late_by_58_ms(polls(499 * US)), &FASTER[1..]);
    assert_eq!(found, [98 * US as i64; 2]);
    // What is shorter than ten looks is looking.
    let found = gains(late_by_58_ms(polls(4 * US)), &FASTER);
    assert_eq!(found, [29, 49, 49].map(|gain| gain * MS as i64));
}

#[test]
fn a_polled_collective_comes_with_its_last_member() {
    let post = Signature {
        flags: flags::COLLECTIVE | flags::POSTS,
        ..collective(number::MPI_Iallreduce, 0)
    };
    let mut all = ranks(3);
    for (rank, comes) in all.iter_mut().zip([40, 59, 2]) {
        rank.call(1, init(), 0, MS);
        rank.call(20, post, comes * MS, comes * MS + US);
        let begin = comes.max(10) * MS + US;
        rank.looks(21, number::MPI_Test, begin, 60 * MS + US, 100 * US);
        rank.test(21, &[0], 60 * MS + US, 60 * MS + 2 * US);
        rank.call(40, finalize(), 62 * MS, 63 * MS);
    }
    // Rank 1 comes at once; then rank 0 is the last one, at 40 ms, and posts for 1 us.
    assert_eq!(
        gains(all, &[("speed_up", "rank:1=1000000")]),
        [(19 * MS - US) as i64]
    );
}

#[test]
fn what_others_depend_on_is_not_moved_and_said_so() {
    // Rank 1 sends in between, which no look waits for.
    let polls = |rank: &mut Calls| {
        let request = rank.irecv(20, 0, 5, 2 * MS);
        rank.looks(21, number::MPI_Test, 10 * MS, 50 * MS, 100 * US);
        rank.send(22, 0, 6, 50 * MS, 50 * MS + US);
        rank.looks(21, number::MPI_Test, 51 * MS, 60 * MS, 100 * US);
        rank.test(21, &[request], 60 * MS, 60 * MS + US);
    };
    let mut all = late_by_58_ms(polls);
    let mut first = ranks(2).swap_remove(0);
    first.call(1, init(), 0, MS);
    first.send(10, 1, 5, 59 * MS, 59 * MS + US);
    first.recv(11, 1, 6, 60 * MS, 60 * MS + US);
    first.call(40, finalize(), 62 * MS, 63 * MS);
    all[0] = first;
    let changes = [FASTER[1], ("speed_up", "rank:1=1000000")];
    let prediction = predicted(all, &changes).unwrap();
    // 8 ms of looking after that send are waiting, and 40 ms before.
    assert_eq!(prediction.scenarios[0].gain_s, 0.008);
    assert_eq!(prediction.looking_as_recorded_s, 0.04);
    // What rank 1 looks for comes earlier in the first of them alone.
    let doubt = prediction.scenarios.iter().map(|found| found.doubt_s);
    assert_eq!(doubt.collect::<Vec<_>>(), [0.04, 0.0]);
}

/// Looking that ends in a wait is over. What never comes is looked for as long as it was.
#[test]
fn looks_that_never_find_anything_stay() {
    let looking = |is_waited_for: bool| {
        let polls = |rank: &mut Calls| {
            let request = rank.irecv(20, 0, 5, 2 * MS);
            rank.looks(21, number::MPI_Test, 10 * MS, 30 * MS, 100 * US);
            if is_waited_for {
                rank.waitall(22, &[(request, None)], 30 * MS, 60 * MS);
            }
        };
        let prediction = predicted(late_by_58_ms(polls), &FASTER[..1]).unwrap();
        prediction.looking_as_recorded_s
    };
    assert_eq!([looking(true), looking(false)], [0.0, 0.02]);
}

#[test]
fn threads_begin_when_their_rank_does() {
    let mut calls = vec![
        Calls::new(0, 0, 2),
        Calls::new(0, 1, 2),
        Calls::new(1, 0, 2),
    ];
    calls[0].call(1, init(), 0, MS);
    calls[0].recv(2, 1, 7, 2 * MS, 6 * MS);
    calls[1].send(3, 1, 5, 8 * MS, 9 * MS);
    calls[2].call(1, init(), 0, MS);
    calls[2].send(4, 0, 7, 5 * MS, 6 * MS);
    calls[2].recv(5, 0, 5, 7 * MS, 10 * MS);
    // Rank 1 computes 2 ms instead of 4, and 0.5 instead of 1; the thread starts 2 ms earlier.
    let found = gains(calls, &[("speed_up", "rank:1=2")]);
    assert_eq!(found, [2 * MS as i64]);
}

/// Each of `count` ranks needs a message that the one before it sends only when it has its own, all at
/// 10 ms. The other ranks compute.
fn circle(count: usize, others: usize) -> Vec<Calls> {
    let mut all = ranks((count + others) as u32);
    for (at, rank) in all.iter_mut().enumerate() {
        rank.call(1, init(), 0, MS);
        if at < count {
            let (before, next) = ((at + count - 1) % count, (at + 1) % count);
            rank.recv(20, before as i32, 0, (2 + at as u64) * MS, 10 * MS);
            rank.send(21, next as i32, 0, 10 * MS, 11 * MS);
        }
        let enter = if at < count { 12 } else { 20 };
        rank.call(40, finalize(), enter * MS, 21 * MS);
    }
    all
}

/// One rank goes on without its message, which `circles` counts. All times are as recorded.
#[test]
fn a_circle_of_messages_ends() {
    for (count, others) in [(2, 0), (3, 0), (3, 1)] {
        let words = [("speed_up", "rank:0=1")];
        let found = replayed(circle(count, others), &words).unwrap();
        assert_eq!(found.circles, 1, "{count} ranks");
        assert_eq!(found.not_reproduced, 0, "{count} ranks");
        assert_eq!(found.scenarios[0].gain_s, 0.0, "{count} ranks");
    }
}

/// Who only waits for a rank of the circle does so still: rank 2 ends 4 ms earlier if rank 1 computes
/// nothing before it sends, and not at once.
#[test]
fn who_is_not_in_a_circle_waits() {
    let mut all = ranks(3);
    let mut third = all.pop().unwrap();
    for (at, rank) in all.iter_mut().enumerate() {
        let other = 1 - at as i32;
        rank.call(1, init(), 0, MS);
        rank.recv(20, other, 0, (2 + at as u64) * MS, 10 * MS);
        rank.send(21, other, 0, 10 * MS, 11 * MS);
    }
    all[1].send(23, 2, 0, 15 * MS, 16 * MS);
    third.call(1, init(), 0, MS);
    third.recv(20, 1, 0, 3 * MS, 16 * MS);
    all.push(third);
    for rank in &mut all {
        rank.call(40, finalize(), 20 * MS, 21 * MS);
    }
    let found = replayed(all, &[("speed_up", "app.c:23=1000000")]).unwrap();
    assert_eq!((found.circles, found.not_reproduced), (1, 0));
    let waited = |outcome: &Outcome| (outcome.waiting_s * 1e3).round() as i64;
    let late = |outcome: &Outcome| {
        let mut waits = outcome.waits.iter();
        let wait = waits.find(|wait| wait.late_location.line == 23);
        wait.map(|wait| (wait.severity_s * 1e3).round())
    };
    assert_eq!(
        late(&found.recorded),
        Some(12.0),
        "{}",
        waited(&found.recorded)
    );
    assert_eq!(late(&found.scenarios[0]), Some(8.0));
}

#[test]
fn what_cannot_be_told_is_an_error() {
    // Rank 3 of 4 has no trace.
    let three = || {
        let mut all = barrier(&[1, 1, 20, 22]);
        all.truncate(3);
        all
    };
    let error = predicted(three(), &[("speed_up", "rank:3=2")]).unwrap_err();
    assert!(error.contains("no trace of rank 3"), "{error}");
    // Of the ranks, only the first computes there.
    let mut all = barrier(&[1, 1]);
    all[0].call(50, finalize(), 7 * MS, 8 * MS);
    let error = predicted(all, &[("balance", "app.c:50")]).unwrap_err();
    assert!(
        error.contains("to balance app.c:50 cannot be told"),
        "{error}"
    );
}

#[test]
fn what_is_not_there_is_an_error_with_a_proposal() {
    for (kind, words, wanted) in [
        ("speed_up", "wrok=2", "work"),
        ("speed_up", "app.c:1x=2", "app.c:1"),
        ("speed_up", "rank:4=2", "4 ranks"),
        ("speed_up", "host:n2=2", "n1"),
        ("no_barrier", "app.c:40", "no barrier"),
        ("without_cause", "rc7", "no root cause rc7"),
    ] {
        let error = predicted(barrier(&[1, 1, 20, 22]), &[(kind, words)]).unwrap_err();
        assert!(error.contains(wanted), "{words}: {error}");
    }
}

/// Rank 0 sends at these ms, each time for 1 ms, and rank 1 receives from one moment to another;
/// both meet at `end`.
fn messages(sends: &[u64], receives: &[(u64, u64)], end: u64) -> Vec<Calls> {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    for at in sends {
        all[0].send(10, 1, 5, at * MS, (at + 1) * MS);
    }
    for (from, to) in receives {
        all[1].recv(20, 0, 5, from * MS, to * MS);
    }
    for rank in &mut all {
        rank.call(40, finalize(), end * MS, (end + 1) * MS);
    }
    all
}

#[test]
fn bandwidth_is_what_transfers_take_beyond_the_fastest() {
    // 1 ms of latency, and 4 ms more the second time; rank 0 computes 7 ms before it ends.
    let all = || messages(&[2, 4], &[(6, 7), (8, 13)], 14);
    let words = [
        ("network", "bandwidth=2"),
        ("network", "bandwidth=4"),
        ("speed_up", "rank:0=1000000"),
    ];
    let found = gains(all(), &words[..2]);
    // Rank 0 comes as late as rank 1 did.
    assert_eq!(found, [0, 0]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("both.toml");
    let text = "[both]\nnetwork = [\"bandwidth=2\"]\nspeed_up = \"rank:0=1000000\"\n";
    std::fs::write(&file, text).unwrap();
    let both = Scenario::read(&file).unwrap();
    let alone = Scenario::of(Change::parse("speed_up", "rank:0=1000000").unwrap());
    let found = predicted_of(all(), &[both, vec![alone]].concat()).unwrap();
    let times = found
        .scenarios
        .iter()
        .map(|outcome| (outcome.gain_s * 1e3).round());
    assert_eq!(times.collect::<Vec<_>>(), [2.0, 0.0]);
}

/// Whatever is slowed down again and again: refused before times are no numbers any more.
#[test]
fn slow_downs_beyond_all_numbers_are_refused() {
    let slowed = |wheres: &[&str], factor: f64| {
        let words = wheres.iter().enumerate();
        let words = words.map(|(at, place)| format!("{place}={}", factor + at as f64 * 1e-6));
        let parsed = words.map(|words| Change::parse("speed_up", &words).unwrap());
        let scenario = Scenario::new("slowed".to_owned(), parsed.collect());
        predicted_of(messages(&[2, 4], &[(6, 7), (8, 13)], 14), &[scenario])
    };
    // The place has all that rank 0 computes, however often its name is said.
    let found = slowed(&["rank:0", "*", "*"], 0.5).unwrap();
    assert!(found.scenarios[0].gain_s < -14e-3);
    for (wheres, factor) in [(vec!["rank:0"; 9], 0.001), (vec!["host:n1"; 99], 0.5)] {
        let error = slowed(&wheres, factor).unwrap_err();
        assert!(error.contains("more than can be told"), "{error}");
    }
    let places = vec!["*"; 1000];
    assert!(slowed(&places, 0.001).is_ok_and(|found| found.scenarios[0].gain_s < -1e3));
}

#[test]
fn senders_do_not_wait_for_receivers_on_request() {
    let mut all = ranks(2);
    for rank in &mut all {
        rank.call(1, init(), 0, MS);
    }
    all[0].call(10, send(number::MPI_Ssend, 1, 5), 2 * MS, 11 * MS);
    all[1].recv(20, 0, 5, 10 * MS, 11 * MS);
    all[0].call(40, finalize(), 20 * MS, 21 * MS);
    all[1].call(40, finalize(), 12 * MS, 21 * MS);
    // Rank 0 is done at 3 ms, computes 9 ms, and comes with rank 1.
    let found = gains(all, &[("network", "no-late-receivers")]);
    assert_eq!(found, [8 * MS as i64]);
}

#[test]
fn calls_take_what_a_table_says() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("other.json");
    let points = vec![Point::new(8, 5e-4)];
    let table = Table::new("other", vec![Entry::new("MPI_Recv", 2, None, points)]);
    table.write(&file).unwrap();
    let all = messages(&[2], &[(6, 10)], 11);
    let words = [
        ("baseline", file.to_str().unwrap()),
        ("speed_up", "rank:0=1000000"),
    ];
    let changes = words.map(|(kind, words)| Change::parse(kind, words).unwrap());
    let both = Scenario::new("both".to_owned(), changes.to_vec());
    // 0.5 ms instead of 4.
    let found = predicted_of(all, &[both]).unwrap();
    assert_eq!((found.scenarios[0].gain_s * 1e6).round(), 3500.0);
    // A table of other calls would gain nothing, silently.
    let foreign = directory.path().join("foreign.json");
    let points = vec![Point::new(8, 5e-4)];
    let table = Table::new("other", vec![Entry::new("MPI_Scan", 2, None, points)]);
    table.write(&foreign).unwrap();
    for (file, wanted) in [
        ("no.json", "no.json"),
        (
            foreign.to_str().unwrap(),
            "no row of this table fits a call of this run",
        ),
    ] {
        let error = predicted(messages(&[2], &[(6, 10)], 11), &[("baseline", file)]);
        let error = error.unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_message_that_does_not_block_is_waited_for_later() {
    let mut all = messages(&[10], &[(2, 11)], 21);
    let mut first = ranks(2).swap_remove(0);
    first.call(1, init(), 0, MS);
    first.send(10, 1, 5, 10 * MS, 11 * MS);
    first.call(40, finalize(), 12 * MS, 22 * MS);
    all[0] = first;
    // Rank 1 computes 10 ms meanwhile, and takes 1 ms to get the message.
    let found = gains(all, &[("non_blocking", "app.c:20")]);
    assert_eq!(found, [8 * MS as i64]);
}

#[test]
fn messages_to_the_same_rank_are_combined() {
    let all = messages(&[2, 4, 6], &[(2, 3), (4, 5), (6, 7)], 8);
    // Of three sends and receives the first takes its 1 ms.
    let both = ["app.c:10", "app.c:20"].map(|place| Change::parse("combine", place).unwrap());
    let both = Scenario::new("both".to_owned(), both.to_vec());
    let found = predicted_of(all, &[both]).unwrap();
    assert_eq!((found.scenarios[0].gain_s * 1e3).round(), 2.0);
}

#[test]
fn the_next_bottleneck_is_on_the_critical_path() {
    let words = [("speed_up", "rank:3=1000000")];
    let prediction = predicted(barrier(&[1, 1, 20, 22]), &words).unwrap();
    let first = |outcome: &Outcome| {
        let first = &outcome.critical_path[0];
        let after = first.after.as_ref().map(|after| after.location.line);
        let ms = (first.time_s * 1e3).round() as u64;
        (first.rank, first.activity, after, first.location.line, ms)
    };
    assert_eq!(
        first(&prediction.recorded),
        (3, "computation", Some(1), 10, 22)
    );
    assert_eq!(
        first(&prediction.scenarios[0]),
        (2, "computation", Some(1), 10, 20)
    );
    let path = prediction.recorded.critical_path.iter();
    let whole: f64 = path.map(|stretch| stretch.time_s).sum();
    assert!((whole - prediction.recorded.time_s).abs() < 1e-9, "{whole}");
    let text = laggard_whatif::render(&prediction, 140);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = "Then the next bottleneck is: rank 2 is between MPI_Init at app.c:1 work and \
         MPI_Barrier at app.c:10 work, 20.0 ms of the critical path.";
    assert!(text.contains(wanted), "{text}");
}

/// Start-up is apart, however long it takes.
#[test]
fn start_up_is_no_bottleneck() {
    let mut r = ranks(2);
    for (rank, calls) in r.iter_mut().enumerate() {
        calls.call(1, init(), 0, 100 * MS);
        let enter = (110 + 10 * rank as u64) * MS;
        calls.collective(10, number::MPI_Barrier, 0, enter, 121 * MS);
        calls.call(40, finalize(), 122 * MS, 200 * MS);
    }
    let prediction = predicted(r, &[("speed_up", "rank:1=1")]).unwrap();
    let longest = &prediction.recorded.critical_path[0];
    assert_eq!(longest.operation, "MPI_Init");
    let text = laggard_whatif::render(&prediction, 140);
    let wanted = "bottleneck is: rank 1 is between MPI_Init at app.c:1 work and MPI_Barrier";
    assert!(text.contains(wanted), "{text}");
}

/// What ranks do, one after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A rank computes so many ns.
    Compute(usize, u64),
    /// One rank sends to another: at once, or with a synchronous send that waits for the receive.
    Message(usize, usize, bool),
    /// Two ranks exchange messages without blocking.
    Exchange(usize, usize),
    /// All ranks, with a root.
    Collective(u16, usize),
}

fn steps(ranks: usize) -> impl Strategy<Value = Vec<Step>> {
    use number::*;
    let compute =
        (0..ranks, 100_000..10_000_000u64).prop_map(|(rank, time)| Step::Compute(rank, time));
    let pair = (0..ranks, 1..ranks).prop_map(move |(a, by)| (a, (a + by) % ranks));
    let message = (pair.clone(), any::<bool>())
        .prop_map(|((from, to), waits)| Step::Message(from, to, waits));
    let exchange = pair.prop_map(|(a, b)| Step::Exchange(a, b));
    let kinds = prop::sample::select(vec![
        MPI_Barrier,
        MPI_Allreduce,
        MPI_Bcast,
        MPI_Reduce,
        MPI_Scan,
    ]);
    let collective = (kinds, 0..ranks).prop_map(|(kind, root)| Step::Collective(kind, root));
    let step = prop_oneof![4 => compute, 3 => message, 2 => exchange, 2 => collective];
    prop::collection::vec(step, 1..60)
}

/// Runs the steps. `change` says how long the computation of a rank takes. Returns the end.
fn run(steps: &[Step], calls: &mut [Calls], change: impl Fn(usize, u64) -> u64) -> u64 {
    let count = calls.len();
    let (mut left, mut work) = (vec![1_000u64; count], vec![0u64; count]);
    calls
        .iter_mut()
        .for_each(|calls| calls.call(1, init(), 0, 1_000));
    // When a rank enters its next call.
    let enter = |rank: usize, left: &[u64], work: &mut [u64]| {
        left[rank] + change(rank, std::mem::take(&mut work[rank]) + 10)
    };
    let last = [Step::Collective(number::MPI_Finalize, 0)];
    for step in steps.iter().chain(&last) {
        match *step {
            Step::Compute(rank, time) => work[rank] += time,
            Step::Message(from, to, waits) => {
                let sent = enter(from, &left, &mut work);
                let posted = enter(to, &left, &mut work);
                let (operation, sender) = match waits {
                    true => (number::MPI_Ssend, sent.max(posted) + 30),
                    false => (number::MPI_Send, sent),
                };
                let got = sent.max(posted) + 70;
                calls[from].call(10, send(operation, to as i32, 0), sent, sender);
                calls[to].recv(20, from as i32, 0, posted, got);
                (left[from], left[to]) = (sender, got);
            }
            Step::Exchange(a, b) => {
                let ends = [(a, b), (b, a)].map(|(own, other)| {
                    let posted = enter(own, &left, &mut work);
                    let receive = calls[own].irecv(30, other as i32, 1, posted);
                    left[own] = posted + 1;
                    let sent = enter(own, &left, &mut work);
                    let sending = calls[own].isend(31, other as i32, 1, sent);
                    left[own] = sent + 1;
                    (
                        own,
                        [(receive, None), (sending, None)],
                        sent,
                        enter(own, &left, &mut work),
                    )
                });
                for (at, (own, requests, _, waiting)) in ends.iter().enumerate() {
                    let end = ends[1 - at].2.max(*waiting) + 30;
                    calls[*own].waitall(32, requests, *waiting, end);
                    left[*own] = end;
                }
            }
            Step::Collective(kind, root) => {
                let enters: Vec<u64> = (0..count).map(|r| enter(r, &left, &mut work)).collect();
                let all = *enters.iter().max().unwrap();
                for rank in 0..count {
                    let own = enters[rank];
                    let needed = match kind {
                        number::MPI_Bcast => own.max(enters[root]),
                        number::MPI_Reduce if rank != root => own,
                        number::MPI_Scan => *enters[..=rank].iter().max().unwrap(),
                        _ => all,
                    };
                    let signature = match kind {
                        number::MPI_Finalize => finalize(),
                        kind => collective(kind, root as i32),
                    };
                    left[rank] = needed + 20 + 7 * rank as u64;
                    calls[rank].call(50, signature, own, left[rank]);
                }
            }
        }
    }
    *left.iter().max().unwrap()
}

fn made(count: usize, steps: &[Step], change: impl Fn(usize, u64) -> u64) -> (Vec<Calls>, i64) {
    let mut calls = ranks(count as u32);
    let end = run(steps, &mut calls, change);
    (calls, end as i64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The program with a faster rank takes as long as predicted from the one without, and has the
    /// root causes that were predicted.
    #[test]
    fn predictions_are_what_happens(
        (steps, fast) in (2..6usize).prop_flat_map(|n| (steps(n), (0..n, Just(n)))),
    ) {
        let (fast, count) = fast;
        let (calls, end) = made(count, &steps, |_, time| time);
        let one = format!("rank:{fast}=2");
        let words = [
            ("speed_up", one.as_str()),
            ("speed_up", "work=4"),
            ("speed_up", "rank:0=1"),
        ];
        let half = |time: u64| (time as f64 / 2.0).round() as u64;
        let quarter = |time: u64| (time as f64 / 4.0).round() as u64;
        let expected = [
            made(count, &steps, |rank, time| if rank == fast { half(time) } else { time }),
            made(count, &steps, |_, time| quarter(time)),
            made(count, &steps, |_, time| time),
        ];
        let prediction = predicted(calls, &words).unwrap();
        for (outcome, (mended, last)) in prediction.scenarios.iter().zip(expected) {
            prop_assert_eq!((outcome.gain_s * 1e9).round() as i64, end - last);
            prop_assert_eq!(outcome.root_causes.as_deref(), Some(&first_causes(analyze(mended))[..]));
        }
    }
}

/// What is wrong with a change of a file is told with its line, also if only the run can tell.
#[test]
fn what_a_run_does_not_have_is_told_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("s.toml");
    for (text, line, words) in [
        (
            "[a]\nnetwork = 'latency=0.5'\nspeed_up = 'rank:9=2'\n",
            3,
            "a: there is no rank 9",
        ),
        (
            "[a]\nspeed_up = 'wrk=2'\n",
            2,
            "a: no place of this run is called wrk",
        ),
        (
            "[a]\nnetwork = 'latency=0.5'\n[b]\nspeed_up = ['rank:0=2', 'rank:0=2']\n",
            4,
            "b: --speed-up rank:0=2 is said twice",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let scenarios = Scenario::read(&file).unwrap();
        let calls = messages(&[2, 4], &[(6, 7), (8, 13)], 14);
        let said = predicted_of(calls, &scenarios).unwrap_err();
        let told = format!("{}:{line}: {words}", file.display());
        assert!(said.starts_with(&told), "{said}");
    }
}
