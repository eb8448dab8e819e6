use super::*;
use crate::findings::hanging::Question;

/// A call that rank `rank` of four hangs in.
fn call(rank: u32, operation: u16, wait: Wait) -> Hanging {
    Hanging {
        rank,
        thread: 0,
        operation,
        path: [u64::from(operation), 0],
        enter: 1_000_000_000 + i64::from(rank),
        wait,
        is_certain: true,
    }
}

fn receive(rank: u32, peer: i32, tag: i32) -> Hanging {
    let group = WORLD;
    call(rank, number::MPI_Recv, Wait::Message { group, peer, tag })
}

fn send(rank: u32, peer: i32, tag: i32) -> Hanging {
    let group = WORLD;
    call(rank, number::MPI_Send, Wait::Receiver { group, peer, tag })
}

fn collective(rank: u32, operation: u16, root: i32) -> Hanging {
    let (group, number) = (WORLD, 3);
    let wait = Wait::Members {
        group,
        number,
        root,
    };
    call(rank, operation, wait)
}

/// The rows for these calls; each rank has begun `counts` collectives.
fn said(calls: Vec<Hanging>, counts: [u64; 4], met: &[Question]) -> Vec<(String, String)> {
    let counts = (0..).zip(counts);
    let known = Known {
        collectives: counts.map(|(rank, n)| ((WORLD, rank), n)).collect(),
        met: met.iter().copied().collect(),
        ..Known::default()
    };
    let places = (&[0; 4][..], &[true; 4][..]);
    let scene = Scene::new(calls, known, places, 3_500_000_000);
    let rows = scene.rows(|path| format!("line {}", path[0]));
    rows.into_iter().map(|row| (row.id, row.detail)).collect()
}

fn circles(calls: Vec<Hanging>, counts: [u64; 4], met: &[Question]) -> Vec<String> {
    let rows = said(calls, counts, met).into_iter();
    let circles = rows.filter(|(id, _)| id == "deadlock");
    circles.map(|(_, detail)| detail).collect()
}

#[test]
fn receives_in_a_circle_wait_for_ever() {
    let calls = || {
        vec![
            receive(3, 1, 0),
            receive(1, 2, 0),
            receive(2, 3, 5),
            receive(0, 1, 0),
        ]
    };
    let found = circles(calls(), [3; 4], &[]);
    let at = number::MPI_Recv;
    let expected = format!(
        "ranks 1-3 wait for each other, so that none can go on: rank 1 in MPI_Recv at line \
         {at} for rank 2, rank 2 in MPI_Recv at line {at} for rank 3, rank 3 in MPI_Recv at \
         line {at} for rank 1"
    );
    assert_eq!(found, [expected]);
    // Not if one of the messages was on its way, another thread may send it, or the rank's earlier
    // calls are not all known.
    let sent = Question::Sent(WORLD, 3, 2, 5);
    assert_eq!(circles(calls(), [3; 4], &[sent]), [""; 0]);
    let mut others = calls();
    others[0].is_certain = false;
    assert_eq!(circles(others, [3; 4], &[]), [""; 0]);
    let mut any = calls();
    any[1] = receive(1, -1, 0);
    assert_eq!(circles(any, [3; 4], &[]), [""; 0]);
}

#[test]
fn a_send_and_its_receive_are_no_circle() {
    let circle = |tag, wanted| {
        let calls = vec![send(0, 1, tag), receive(1, 0, wanted)];
        circles(calls, [3; 4], &[]).len()
    };
    assert_eq!(circle(4, 4), 0);
    assert_eq!(circle(4, -1), 0);
    assert_eq!(circle(4, 5), 1);
    let sends = || vec![send(0, 1, 4), send(1, 0, 4)];
    assert_eq!(circles(sends(), [3; 4], &[]).len(), 1);
    let asked = Question::Asked(WORLD, 0, 1, 4);
    assert_eq!(circles(sends(), [3; 4], &[asked]).len(), 0);
    // A call that sends and receives may have sent.
    let both = |rank: u32| Hanging {
        operation: number::MPI_Sendrecv,
        ..receive(rank, 1 - rank as i32, 4)
    };
    assert_eq!(circles(vec![both(0), both(1)], [3; 4], &[]).len(), 0);
    assert_eq!(circles(vec![receive(0, 0, 1)], [3; 4], &[]).len(), 1);
}

#[test]
fn collectives_wait_for_those_that_they_need() {
    let barrier = |rank| collective(rank, number::MPI_Barrier, -1);
    let stuck = |at: u64| {
        let calls = vec![barrier(0), barrier(1), barrier(2), receive(3, 0, 1)];
        circles(calls, [3, 3, 3, at], &[]).len()
    };
    assert_eq!(stuck(3), 1);
    // It has left the barrier already.
    assert_eq!(stuck(4), 0);
    let root = |root| {
        let broadcast = collective(0, number::MPI_Bcast, root);
        circles(vec![broadcast, receive(3, 0, 1)], [3; 4], &[]).len()
    };
    assert_eq!((root(3), root(2), root(0)), (1, 0, 0));
    let rows = said(
        vec![barrier(0), barrier(2), collective(1, number::MPI_Bcast, 3)],
        [3, 3, 3, 4],
        &[],
    );
    let text = &rows[0].1;
    assert!(
        text.contains("but rank 1 in another one, MPI_Bcast at"),
        "{text}"
    );
}

#[test]
fn a_sentence_tells_whom_the_longest_waits_for() {
    let calls = vec![receive(0, 2, 7), receive(1, 2, -1)];
    let at = number::MPI_Recv;
    let expected = format!(
        "ranks 0-1 were in MPI_Recv at line {at} when their traces ended, rank 0 since 1.000 \
         s, so for at least 2.50 s, waiting for a message with tag 7 of rank 2; rank 2 was in \
         no call that is known"
    );
    let rows = said(calls, [3; 4], &[]);
    assert_eq!(rows, [("cut_off_in".to_owned(), expected)]);
}

/// Rows and sentences are bounded, however many ranks hang.
#[test]
fn many_are_few_rows() {
    let ranks = 20_000u32;
    let next = |rank: u32| ((rank + 1) % ranks) as i32;
    let calls = (0..ranks).map(|rank| Hanging {
        path: [u64::from(rank), 1],
        ..receive(rank, next(rank), 0)
    });
    let (agents, cut) = (vec![0; ranks as usize], vec![true; ranks as usize]);
    let scene = Scene::new(calls.collect(), Known::default(), (&agents, &cut), 0);
    let rows = scene.rows(|_| "here".to_owned());
    assert_eq!(rows.len(), 1 + ROWS);
    assert!(rows.iter().all(|row| row.detail.len() < 1000));
    let hang = rows.iter().filter(|row| row.id == "cut_off_in");
    assert_eq!(hang.map(|row| row.count).sum::<u64>(), u64::from(ranks));
}

/// Calls that come back whatever others do, as those of a program that is killed while it looks for messages.
#[test]
fn who_looks_or_begins_something_is_in_no_circle() {
    let all = calls::CALLS.iter().map(|call| call.number);
    let at_once = |number: u16| {
        let one = |rank, peer| Hanging {
            operation: number,
            ..receive(rank, peer, 1)
        };
        circles(vec![one(0, 1), one(1, 0)], [3; 4], &[]).is_empty()
    };
    let names: Vec<&str> = all
        .filter(|&number| at_once(number))
        .map(calls::name)
        .collect();
    for name in [
        "MPI_Iprobe",
        "MPI_Irecv",
        "MPI_Ibarrier",
        "MPI_Testany",
        "MPI_Start",
        "shmem_test_lock",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for name in [
        "MPI_Recv",
        "MPI_Probe",
        "MPI_Wait",
        "MPI_Intercomm_create",
        "MPI_Init",
        "MPI_Barrier",
    ] {
        assert!(!names.contains(&name), "{name}: {names:?}");
    }
}

#[test]
fn threads_that_want_each_others_mutexes_wait_for_ever() {
    let at = number::pthread_mutex_lock;
    let waits = |thread, (other, ends), has_limit| {
        let wait = Wait::Thread {
            thread: other,
            ends,
            has_limit,
        };
        Hanging {
            thread,
            is_certain: false,
            ..call(2, at, wait)
        }
    };
    let wants = |thread, holder| waits(thread, (holder, false), false);
    let found = circles(vec![wants(0, 3), wants(3, 0)], [3; 4], &[]);
    let expected = format!(
        "threads 0, 3 of rank 2 wait for each other, so that none can go on: rank 2 in pthread_mutex_lock at line \
         {at} for thread 3 of rank 2, thread 3 of rank 2 in pthread_mutex_lock at line {at} for rank 2"
    );
    assert_eq!(found, [expected]);
    // So does the one that waits for the end of who wants its mutex, unless one of them gives up.
    for (has_limit, count) in [(false, 1), (true, 0)] {
        let both = vec![waits(0, (3, true), false), waits(3, (0, false), has_limit)];
        assert_eq!(circles(both, [3; 4], &[]).len(), count, "{has_limit}");
    }
    // The third one has it, and is in a call that may return.
    assert_eq!(
        circles(vec![wants(0, 3), wants(1, 0)], [3; 4], &[]),
        [""; 0]
    );
}
