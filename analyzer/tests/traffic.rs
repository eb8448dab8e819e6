//! What ranks moved, in which role, and how often they waited and were waited for.

use crate::support::*;
use laggard_report::{Collectives, FileAccess, LocationTimes, Messages, OneSided, Report};
use laggard_trace::calls::number;
use laggard_trace::{Definition, Endpoint, PEER_NONE, Signature, flags};

const MS: u64 = 1_000_000;

const NONE: Endpoint = Endpoint {
    peer: PEER_NONE,
    tag: 0,
    bytes: 0,
};

fn half(peer: i32, bytes: u64) -> Endpoint {
    Endpoint {
        peer,
        tag: 0,
        bytes,
    }
}

/// A call on a window or a file, 77.
fn on_object(operation: u16, send: Endpoint, receive: Endpoint) -> Signature {
    Signature {
        operation,
        group: 77,
        send,
        receive,
        ..Signature::default()
    }
}

fn sum<const N: usize>(report: &Report, parts: impl Fn(&LocationTimes) -> [u64; N]) -> [u64; N] {
    report
        .locations
        .iter()
        .map(parts)
        .fold([0; N], |mut sum, part| {
            sum.iter_mut()
                .zip(part)
                .for_each(|(sum, part)| *sum += part);
            sum
        })
}

#[test]
fn messages_are_counted_with_and_without_data() {
    let mut r = ranks(2);
    r[0].send(10, 1, 5, MS, 2 * MS);
    let mut empty = send(number::MPI_Send, 1, 5);
    empty.send.bytes = 0;
    r[0].call(11, empty, 3 * MS, 4 * MS);
    // To no process.
    r[0].call(12, send(number::MPI_Send, PEER_NONE, 5), 5 * MS, 6 * MS);
    r[1].recv(20, 0, 5, 10 * MS, 11 * MS);
    r[1].irecv(21, 0, 5, 12 * MS);
    // Looks at the message that it receives next.
    let mut probe = receive(number::MPI_Probe, 0, 5);
    probe.flags |= flags::PEEKS;
    r[1].call(22, probe, 13 * MS, 14 * MS);
    let report = analyze(r);
    let traffic = |rank: usize| report.locations[rank].traffic.clone().unwrap().two_sided;
    let expected = Messages {
        sends: 2,
        empty_sends: 1,
        sent_bytes: 8,
        ..Messages::default()
    };
    assert_eq!(traffic(0), expected);
    let expected = Messages {
        receives: 2,
        // One of the messages had no data.
        received_bytes: 8,
        ..Messages::default()
    };
    assert_eq!(traffic(1), expected);
}

/// A buffer may be larger than the message: the sender knows.
#[test]
fn what_arrived_counts_and_not_the_buffer() {
    let received = |messages: usize, threads: u32| {
        let mut r = ranks(2);
        let mut large = receive(number::MPI_Irecv, 0, 5);
        large.flags |= flags::POSTS;
        large.receive.bytes = 1000;
        r[1].call(20, large, MS, MS + 1);
        r[1].waitall(21, &[(0, None)], 3 * MS, 4 * MS);
        for message in 0..messages as u64 {
            r[0].send(10, 1, 5, (1 + message) * MS, (1 + message) * MS + 1);
        }
        if threads == 2 {
            let mut second = Calls::new(1, 1, 2);
            second.recv(22, 0, 6, 5 * MS, 6 * MS);
            r.push(second);
            r[0].send(11, 1, 6, 7 * MS, 8 * MS);
        }
        let report = analyze(r);
        let locations = report.locations.iter().filter(|one| one.rank == 1);
        let of = |one: &LocationTimes| one.traffic.clone().unwrap().two_sided.received_bytes;
        locations.map(of).collect::<Vec<_>>()
    };
    assert_eq!(received(1, 1), [8]);
    // Which of two messages was received, and by which thread, the sums do not tell.
    assert_eq!(received(2, 1), [1000]);
    assert_eq!(received(1, 2), [1000, 8]);
}

#[test]
fn roles_in_collectives() {
    let mut r = ranks(3);
    for (rank, calls) in r.iter_mut().enumerate() {
        let mut broadcast = collective(number::MPI_Bcast, 0);
        (broadcast.send.bytes, broadcast.receive.bytes) = if rank == 0 { (8, 0) } else { (0, 8) };
        calls.call(20, broadcast, MS, 2 * MS);
        let mut reduce = collective(number::MPI_Allreduce, -1);
        reduce.receive.bytes = 8;
        calls.call(21, reduce, 3 * MS, 4 * MS);
        calls.without_data(22, number::MPI_Barrier, -1, 5 * MS, 6 * MS);
    }
    let report = analyze(r);
    let of = |rank: usize| report.locations[rank].traffic.clone().unwrap().collective;
    let both = Collectives {
        exchanges: 1,
        synchronizations: 1,
        ..Collectives::default()
    };
    let root = Collectives {
        sources: 1,
        sent_bytes: 16,
        received_bytes: 8,
        ..both.clone()
    };
    let other = Collectives {
        destinations: 1,
        sent_bytes: 8,
        received_bytes: 16,
        ..both
    };
    assert_eq!([of(0), of(1), of(2)], [root, other.clone(), other]);
}

#[test]
fn epochs_that_no_transfer_needed() {
    let mut r = ranks(2);
    let peers = |operation, id| Signature {
        parameter: id,
        ..on_object(operation, NONE, NONE)
    };
    let put = on_object(number::MPI_Put, half(1, 100), NONE);
    let get = on_object(number::MPI_Get, NONE, half(1, 40));
    let mut at = 0;
    let mut next = || {
        at += 2 * MS;
        (at, at + MS)
    };
    let mut call = |calls: &mut Calls, line, signature| {
        let (enter, leave) = next();
        calls.call(line, signature, enter, leave);
    };
    r[0].define(Definition::Peers {
        id: 1,
        ranks: vec![1],
    });
    // Two access epochs, one of them with a transfer.
    call(&mut r[0], 10, peers(number::MPI_Win_start, 1));
    call(&mut r[0], 11, put);
    call(&mut r[0], 12, peers(number::MPI_Win_complete, 0));
    call(&mut r[0], 10, peers(number::MPI_Win_start, 1));
    call(&mut r[0], 12, peers(number::MPI_Win_complete, 0));
    // Three locks, one of them with a transfer; a flush is none.
    let lock = |operation| on_object(operation, half(1, 0), NONE);
    for transfer in [Some(get), None, Some(lock(number::MPI_Win_flush))] {
        call(&mut r[0], 13, lock(number::MPI_Win_lock));
        if let Some(transfer) = transfer {
            call(&mut r[0], 14, transfer);
        }
        call(&mut r[0], 15, lock(number::MPI_Win_unlock));
    }
    let write = on_object(number::MPI_File_write, half(PEER_NONE, 1000), NONE);
    call(&mut r[0], 16, write);
    r[1].send(20, 0, 5, MS, 2 * MS);
    let report = analyze(r);
    let traffic = report.locations[0].traffic.clone().unwrap();
    let expected = OneSided {
        transfers: 2,
        sent_bytes: 100,
        received_bytes: 40,
        pair_synchronizations: 5,
        unneeded_pair_synchronizations: 3,
    };
    assert_eq!(traffic.one_sided, expected);
    let expected = FileAccess {
        calls: 1,
        written_bytes: 1000,
        read_bytes: 0,
    };
    assert_eq!(traffic.file, expected);
    let all = report.location_sums.unwrap().traffic.unwrap();
    assert_eq!(all.one_sided, traffic.one_sided);
    assert_eq!(all.two_sided.sends, 1);
}

#[test]
fn wait_states_are_counted_at_the_victim_and_at_the_cause() {
    let mut r = ranks(3);
    // Rank 1 waits for rank 0 twice; ranks 0 and 1 wait in a barrier for rank 2.
    for start in [0, 100] {
        r[0].send(10, 1, 5, (start + 60) * MS, (start + 61) * MS);
        r[1].recv(20, 0, 5, (start + 10) * MS, (start + 62) * MS);
    }
    for (rank, enter) in [(0, 200), (1, 200), (2, 260)] {
        r[rank].collective(30, number::MPI_Barrier, -1, enter * MS, 261 * MS);
    }
    let report = analyze(r);
    let of = |l: &LocationTimes| [l.waits.unwrap(), l.caused_waits.unwrap()];
    let ranks: Vec<_> = report.locations.iter().map(of).collect();
    assert_eq!(ranks, [[1, 2], [3, 0], [0, 2]]);
    assert_eq!(sum(&report, of), [4, 4]);
    assert_eq!(report.location_sums.as_ref().unwrap().waits, Some(4));
    let operation = |name: &str| {
        let mut rows = report.operations.iter();
        let row = rows.find(|row| row.operation == name).unwrap();
        (row.waits.unwrap(), row.caused_waits.unwrap())
    };
    assert_eq!(operation("MPI_Send"), (0, 2));
    assert_eq!(operation("MPI_Recv"), (2, 0));
    assert_eq!(operation("MPI_Barrier"), (2, 2));
}
