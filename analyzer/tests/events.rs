//! What those are told who pass a trace on: messages with both ends, collectives, losses, exact
//! to the ns.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::support::*;
use anyhow::Result;
use laggard_comm::Serial;
use laggard_engine::events::{
    Collective, Events, Joined, Mark, Member, Message, ShortWait, SlabOfCalls, Sweep, Wait,
};
use laggard_trace::calls::number::*;
use laggard_trace::flags;

/// Everything, as it comes.
#[derive(Default)]
struct All {
    messages: Vec<Message>,
    members: Vec<Member>,
    collectives: Vec<Collective>,
    waits: Vec<Wait>,
}

impl Joined for All {
    fn message(&mut self, message: &Message) -> Result<()> {
        self.messages.push(*message);
        Ok(())
    }
    fn member(&mut self, member: &Member) -> Result<()> {
        self.members.push(*member);
        Ok(())
    }
    fn collective(&mut self, collective: &Collective) -> Result<()> {
        self.collectives.push(*collective);
        Ok(())
    }
    fn wait(&mut self, wait: &Wait) -> Result<()> {
        self.waits.push(*wait);
        Ok(())
    }
}

fn join(calls: &mut [Calls]) -> (Events, All, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    calls
        .iter_mut()
        .for_each(|calls| calls.write(directory.path()));
    let events = Events::open(directory.path()).unwrap();
    let mut all = All::default();
    events.join(&mut all).unwrap();
    (events, all, directory)
}

/// Sent at, by which call; done for the sender; receive posted at; received in the call from, to.
type Ends = (
    Option<(i64, Option<i64>)>,
    Option<(i64, Option<(i64, i64)>)>,
);

fn ends(message: &Message) -> Ends {
    let send = message
        .send
        .map(|end| (end.enter, end.done.map(|done| done.leave)));
    let receive = message.receive.map(|end| {
        let done = end.done.map(|done| (done.enter, done.leave));
        (end.enter, done)
    });
    (send, receive)
}

#[test]
fn messages_have_both_ends() {
    let mut calls = ranks(3);
    // Late, blocking.
    calls[0].send(1, 1, 5, 100, 110);
    calls[1].recv(2, 0, 5, 20, 120);
    // Posted and waited for on both sides.
    let sent = calls[0].isend(3, 1, 6, 200);
    calls[0].waitall(4, &[(sent, None)], 210, 220);
    let posted = calls[1].irecv(5, 0, 6, 205);
    calls[1].waitall(6, &[(posted, None)], 206, 260);
    // Two wildcards, completed the other way round, and a receive behind them.
    let first = calls[1].irecv(7, -1, 7, 300);
    let second = calls[1].irecv(7, -1, 7, 310);
    calls[1].recv(8, 2, 7, 320, 390);
    calls[1].waitall(9, &[(second, Some((2, 7)))], 400, 410);
    calls[1].waitall(9, &[(first, Some((0, 7)))], 420, 430);
    calls[0].send(10, 1, 7, 305, 306);
    calls[2].send(11, 1, 7, 307, 308);
    calls[2].send(11, 1, 7, 380, 381);
    // Nobody receives, nobody sends.
    calls[2].send(12, 0, 9, 500, 501);
    calls[0].irecv(13, 2, 10, 510);
    let (events, all, _directory) = join(&mut calls);
    let mut found: Vec<_> = all
        .messages
        .iter()
        .map(|m| (m.tag, m.from, m.to, m.number, ends(m)))
        .collect();
    found.sort_unstable();
    let both =
        |sent, done, posted, from, to| (Some((sent, Some(done))), Some((posted, Some((from, to)))));
    // The first call of the run is at 0: all is 20 earlier than written.
    assert_eq!(
        found,
        [
            (5, 0, 1, 0, both(80, 90, 0, 0, 100)),
            (6, 0, 1, 0, both(180, 200, 185, 186, 240)),
            (7, 0, 1, 0, both(285, 286, 280, 400, 410)),
            (7, 2, 1, 0, both(287, 288, 290, 380, 390)),
            (7, 2, 1, 1, both(360, 361, 300, 300, 370)),
            (9, 2, 0, 0, (Some((480, Some(481))), None)),
            (10, 2, 0, 0, (None, Some((490, None)))),
        ]
    );
    let late = all.messages.iter().find(|m| m.tag == 5).unwrap();
    let send = late.send.unwrap();
    assert_eq!((send.call, send.bytes, late.group), (MPI_Send, 8, 0));
    let path = &events.call_paths[send.call_path as usize];
    assert_eq!(
        (path.text(), path.short()),
        ("work app.c:1".into(), "app.c:1 work".into())
    );
    assert_eq!(events.groups[0].label, "world");
}

#[test]
fn calls_are_those_that_messages_name() {
    let mut calls = ranks(2);
    for at in 0..10 {
        calls[0].send(1, 1, 5, 100 * at, 100 * at + 1);
        calls[1].recv(2, 0, 5, 100 * at, 100 * at + 9);
    }
    let (events, all, _directory) = join(&mut calls);
    let mut times: Vec<BTreeMap<u64, (i64, i64)>> = Vec::new();
    for location in 0..events.locations() {
        let mut by_number = BTreeMap::new();
        let mut operations = events.operations(location);
        // Stops after each and goes on.
        while operations.read(|operation| {
            let times = (operation.enter, operation.leave);
            assert_eq!(by_number.insert(operation.number, times), None);
            ControlFlow::Break(())
        }) {}
        times.push(by_number);
    }
    assert_eq!((times[0].len(), all.messages.len()), (10, 10));
    for message in &all.messages {
        let (send, done) = (
            message.send.unwrap(),
            message.receive.unwrap().done.unwrap(),
        );
        assert_eq!(times[0][&send.number].0, send.enter);
        assert_eq!(times[1][&done.number], (done.enter, done.leave));
    }
}

#[test]
fn what_is_joined_does_not_depend_on_where_rounds_end() {
    // Some ten rounds; each message is received in a later one than it is sent in.
    const COUNT: u64 = 60_000;
    const LATER: u64 = 1_000_000;
    let mut calls = ranks(2);
    for at in 0..COUNT {
        calls[0].send(1, 1, 5, 10 * at, 10 * at + 1);
        calls[1].send(3, 0, 6, 10 * at, 10 * at + 1);
    }
    for at in 0..COUNT {
        let enter = LATER + 10 * at;
        calls[1].recv(2, 0, 5, enter, enter + 2);
        calls[0].recv(4, 1, 6, enter, enter + 2);
    }
    let (_, all, _directory) = join(&mut calls);
    assert_eq!(all.messages.len() as u64, 2 * COUNT);
    for message in &all.messages {
        let at = 10 * message.number as i64;
        let received = LATER as i64 + at;
        let expected = (
            Some((at, Some(at + 1))),
            Some((received, Some((received, received + 2)))),
        );
        assert_eq!(ends(message), expected);
    }
}

#[test]
fn collectives_have_all_their_members() {
    let mut calls = ranks(3);
    for (rank, calls) in (0u64..).zip(&mut calls) {
        calls.collective(1, MPI_Allreduce, 0, 100 * rank, 250 + rank);
        // The root needs nothing of the others; it is done when its Wait is.
        let mut signature = collective(MPI_Ibcast, 1);
        signature.flags |= flags::POSTS;
        calls.call(2, signature, 300 + rank, 301 + rank);
        let post = calls.posts() - 1;
        calls.waitall(3, &[(post, None)], 400, 410 + rank);
    }
    // One member less: the last rank has ended before.
    calls[0].collective(4, MPI_Barrier, 0, 500, 600);
    calls[1].collective(4, MPI_Barrier, 0, 510, 600);
    let (_, all, _directory) = join(&mut calls);
    let found: Vec<_> = all
        .collectives
        .iter()
        .map(|c| {
            let entries = (c.first_enter, c.first_rank, c.last_enter, c.last_rank);
            (
                c.instance,
                c.call,
                c.members,
                entries,
                c.first_leave,
                c.last_leave,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, MPI_Allreduce, 3, (0, 0, 200, 2), Some(250), Some(252)),
            (1, MPI_Ibcast, 3, (300, 0, 302, 2), Some(410), Some(412)),
            (2, MPI_Barrier, 2, (500, 0, 510, 1), Some(600), Some(600)),
        ]
    );
    assert_eq!(all.members.len(), 8);
    assert!(all.members.iter().all(|member| member.done.is_some()));
    assert!(all.collectives.iter().all(|c| c.expected == 3));
}

#[test]
fn losses_are_those_of_the_report() {
    let program = || {
        let mut calls = ranks(2);
        for at in 0..100u64 {
            let start = 1000 * at;
            calls[0].send(1, 1, 5, start + 300, start + 310);
            calls[1].recv(2, 0, 5, start, start + 320);
            calls[0].collective(3, MPI_Barrier, 0, start + 500, start + 620);
            calls[1].collective(3, MPI_Barrier, 0, start + 600, start + 610);
        }
        calls
    };
    let report = analyze(program());
    let (_, all, _directory) = join(&mut program());
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for wait in &all.waits {
        let pattern = laggard_patterns::PatternId::from_number(wait.pattern).unwrap();
        *sums.entry(pattern.id()).or_default() += wait.lost;
    }
    assert_eq!(sums["late_sender"], 100 * 300);
    assert_eq!(sums.len(), report.metrics.len());
    for (pattern, sum) in sums {
        assert_eq!(sum, total(&report, pattern), "{pattern}");
    }
    let late = all.waits.iter().find(|wait| wait.call == MPI_Recv).unwrap();
    let cause = late.cause.unwrap();
    let late = (cause.rank, cause.call, late.leave - late.enter);
    assert_eq!(late, (0, MPI_Send, 320));
    // The first call of rank 0.
    assert_eq!((cause.location, cause.number, cause.enter), (0, 0, 300));
}

/// What a sweep gives of a location.
#[derive(Default)]
struct Swept {
    calls: Vec<(i64, i64)>,
    /// Enters of first calls.
    chunks: Vec<(Mark, i64)>,
    waits: Vec<ShortWait>,
}

impl Sweep for Swept {
    fn calls(&mut self, calls: &SlabOfCalls<'_>) {
        for (number, at, chunk) in calls.chunks().filter(|(_, at, _)| *at < calls.len()) {
            assert_eq!(number, (self.calls.len() + at) as u64);
            let (enter, ..) = calls.some(at..at + 1).next().unwrap();
            self.chunks.push((Mark { chunk, number }, enter));
        }
        let all = calls.some(0..calls.len());
        self.calls
            .extend(all.map(|(enter, leave, _)| (enter, leave)));
    }

    fn wait(&mut self, wait: &ShortWait) {
        assert!(self.calls.contains(&(wait.enter, wait.leave)));
        self.waits.push(*wait);
    }
}

#[test]
fn a_sweep_gives_the_same_calls_and_waits() {
    let mut calls = ranks(2);
    for at in 0..9000u64 {
        let start = 1000 * at;
        calls[0].send(1, 1, 5, start + at % 300, start + 310);
        calls[1].recv(2, 0, 5, start + 100, start + 320);
        if at % 100 == 0 {
            calls[0].collective(3, MPI_Barrier, 0, start + 500, start + 620);
            calls[1].collective(3, MPI_Barrier, 0, start + 600, start + 610);
        }
    }
    let (events, all, _directory) = join(&mut calls);
    let mut swept: Vec<Swept> = (0..2).map(|_| Swept::default()).collect();
    events.sweep(&Serial, &mut swept).unwrap();
    for (at, swept) in swept.iter().enumerate() {
        let mut calls = Vec::new();
        events.operations(at).read(|call| {
            calls.push((call.enter, call.leave));
            ControlFlow::Continue(())
        });
        assert!(swept.calls == calls && swept.chunks.len() > 1);
        for &(mark, enter) in &swept.chunks {
            events.operations_from(at, mark, (&[], None)).read(|call| {
                assert_eq!((call.number, call.enter), (mark.number, enter));
                ControlFlow::Break(())
            });
        }
        let waits = all.waits.iter().filter(|wait| wait.location == at as u32);
        let short = |wait: &ShortWait| {
            let late = wait.late.map(|late| (late.rank, late.call, late.enter));
            (
                wait.pattern as u8,
                wait.enter,
                wait.leave,
                wait.since,
                wait.lost,
                late,
            )
        };
        let mut waits: Vec<_> = waits
            .map(|wait| {
                let late = wait.cause.map(|late| (late.rank, late.call, late.enter));
                (
                    wait.pattern,
                    wait.enter,
                    wait.leave,
                    wait.since,
                    wait.lost,
                    late,
                )
            })
            .collect();
        let mut found: Vec<_> = swept.waits.iter().map(short).collect();
        waits.sort_unstable();
        found.sort_unstable();
        assert!(!found.is_empty() && found == waits);
    }
}
