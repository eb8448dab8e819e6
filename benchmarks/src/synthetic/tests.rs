use super::*;
use laggard_trace::{Decoder, Location as Read, file_name, flags};

fn settings(program: Program, ranks: u32) -> Settings {
    Settings {
        ranks,
        calls: 3000,
        program,
        seed: 1,
    }
}

/// Calls, sends, receives and collectives of a rank, after checking that time goes on.
fn count(directory: &Path, rank: u32) -> [u64; 4] {
    let location = Read::open(&directory.join(file_name(rank, 0))).unwrap();
    assert!(location.damage.is_empty());
    let mut counts = [0; 4];
    let mut last = 0;
    for chunk in &location.chunks {
        let mut decoder = Decoder::new(location.records(chunk), chunk.base);
        while let Some(event) = decoder.next() {
            assert!(event.enter >= last && event.leave > event.enter);
            last = event.leave;
            let signature = &location.definitions.signatures()[event.signature as usize];
            counts[0] += 1;
            for (count, flag) in [
                (1, flags::SENDS),
                (2, flags::RECEIVES),
                (3, flags::COLLECTIVE),
            ] {
                counts[count] += u64::from(signature.has(flag));
            }
        }
    }
    let end = location.end.unwrap();
    assert_eq!(
        (end.calls, end.recorded, end.lost, end.end_ticks),
        (counts[0], counts[0], 0, last)
    );
    assert_eq!(
        location
            .profile
            .iter()
            .map(|entry| entry.count)
            .sum::<u64>(),
        counts[0]
    );
    counts
}

#[test]
fn every_program_writes_what_was_asked_for() {
    for program in [
        Program::Stencil,
        Program::Ring,
        Program::Collectives,
        Program::Pingpong,
    ] {
        for ranks in [1, 2, 3, 8] {
            let directory = tempfile::tempdir().unwrap();
            let written = generate(&settings(program, ranks), directory.path()).unwrap();
            let counts: Vec<_> = (0..ranks)
                .map(|rank| count(directory.path(), rank))
                .collect();
            let sum = |i: usize| counts.iter().map(|counts| counts[i]).sum::<u64>();
            assert_eq!(sum(0), written.calls);
            assert!(
                (2900..3100).contains(&written.calls),
                "{program:?} {ranks} {written:?}"
            );
            assert_eq!(
                sum(1),
                sum(2),
                "sends and receives of {program:?} on {ranks}"
            );
            assert!(counts.iter().all(|c| c[3] == counts[0][3] && c[3] >= 2));
        }
    }
}

#[test]
fn the_same_settings_give_the_same_bytes() {
    let [a, b] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for directory in [&a, &b] {
        generate(&settings(Program::Stencil, 2), directory.path()).unwrap();
    }
    for rank in 0..2 {
        let [a, b] = [&a, &b].map(|d| fs::read(d.path().join(file_name(rank, 0))).unwrap());
        assert!(a == b);
    }
}

#[test]
fn a_directory_with_a_trace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    generate(&settings(Program::Ring, 2), directory.path()).unwrap();
    let again = generate(&settings(Program::Ring, 2), directory.path());
    assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}
