use laggard_trace::{Decoder, Location as Read, file_name, flags};

use super::*;

fn settings(program: Program, ranks: u32) -> Settings {
    Settings {
        faults: program.usual_faults(ranks),
        ..Settings::new(program, ranks, Length::Calls(3000))
    }
}

/// Counts calls, sends, receives and collectives of a rank. Checks that time goes on.
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
    for &program in Program::all() {
        for ranks in [1, 2, 3, 8] {
            let directory = tempfile::tempdir().unwrap();
            let written = generate(&settings(program, ranks), directory.path()).unwrap();
            let counts: Vec<_> = (0..ranks)
                .map(|rank| count(directory.path(), rank))
                .collect();
            let sum = |i: usize| counts.iter().map(|counts| counts[i]).sum::<u64>();
            assert_eq!(sum(0), written.calls);
            // Without a border, a worker or a successor a rank has nothing to do.
            let is_idle = ranks == 1 && written.calls < 100;
            assert!(
                is_idle || (2850..3150).contains(&written.calls),
                "{program:?} {ranks} {written:?}"
            );
            assert_eq!(
                sum(1),
                sum(2),
                "sends and receives of {program:?} on {ranks}"
            );
            assert!(counts.iter().all(|c| c[3] == counts[0][3] && c[3] >= 2));
            let expected = Expected::read(directory.path()).unwrap();
            assert_eq!(expected.run.calls, written.calls);
            assert_eq!(expected.run.messages, sum(1));
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

#[test]
fn a_fault_of_a_rank_that_is_not_there_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let faults = vec!["slow-rank=4:10".parse().unwrap()];
    let settings = Settings {
        faults,
        ..settings(Program::Halo2d, 4)
    };
    let error = generate(&settings, directory.path()).unwrap_err();
    assert!(error.to_string().contains("ranks 0 to 3 only"), "{error}");
}

#[test]
fn sends_that_wait_for_each_other_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        eager_limit: 0,
        ..settings(Program::Ring, 1)
    };
    let error = generate(&settings, directory.path()).unwrap_err();
    assert!(error.to_string().contains("stuck"), "{error}");
}
