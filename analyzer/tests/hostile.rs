//! Damaged and crafted traces: the analysis ends with a report or an error, never
//! with a panic or without end.

use crate::support::*;
use laggard_engine::AnalyzeOptions;
use laggard_trace::calls::number;
use laggard_trace::{BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, FileHeader, file_name};
use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

/// Files of a run with messages, wildcards, requests and collectives.
fn files() -> Vec<Vec<u8>> {
    let mut r = ranks(3);
    r[0].neighbours(&[1]);
    r[1].neighbours(&[0, 2, 1, 77]);
    for step in 0..20u64 {
        let at = 1000 + step * 1000;
        let wild = r[0].irecv(20, -1, 5, at);
        let definite = r[0].irecv(21, 1, 6, at + 2);
        r[1].send(10, 0, 6, at + 300, at + 310);
        r[2].send(11, 0, 5, at + 200, at + 210);
        let requests = [(wild, Some((2, 5))), (definite, None)];
        r[0].waitall(22, &requests, at + 10, at + 320);
        for rank in &mut r {
            let late = at + 400 + u64::from(rank.rank) * 50;
            let operation = [
                number::MPI_Barrier,
                number::MPI_Scan,
                number::MPI_Reduce,
                number::MPI_Neighbor_allgather,
            ][step as usize % 4];
            rank.collective(30, operation, 1, late, at + 600);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    r.iter_mut().for_each(|calls| calls.write(directory.path()));
    let read = |rank| std::fs::read(directory.path().join(file_name(rank, 0))).unwrap();
    (0..3).map(read).collect()
}

/// Makes all checksums right again, so that the damage gets past them.
fn reseal(bytes: &mut [u8]) {
    if let Ok((mut header, _)) = FileHeader::read_from_prefix(bytes) {
        header.checksum = header.expected_checksum();
        bytes[..128].copy_from_slice(header.as_bytes());
    }
    let mut at = 128;
    while let Some(Ok(mut header)) = bytes
        .get(at..at + BLOCK_HEADER)
        .map(BlockHeader::read_from_bytes)
    {
        let end = at + BLOCK_HEADER + header.length as usize;
        if header.magic != BLOCK_MAGIC || end > bytes.len() {
            return;
        }
        header.checksum = header.expected_checksum(&bytes[at + BLOCK_HEADER..end]);
        bytes[at..at + BLOCK_HEADER].copy_from_slice(header.as_bytes());
        at = end.next_multiple_of(8);
    }
}

/// A change to one of the files.
#[derive(Clone, Debug)]
enum Damage {
    Set {
        file: usize,
        at: usize,
        value: u8,
    },
    Word {
        file: usize,
        at: usize,
        value: u32,
    },
    Cut {
        file: usize,
        at: usize,
    },
    Remove {
        file: usize,
    },
    Repeat {
        file: usize,
        at: usize,
        length: usize,
    },
}

fn damage() -> impl Strategy<Value = Damage> {
    let file = 0..3usize;
    let at = 0..8192usize;
    prop_oneof![
        4 => (file.clone(), at.clone(), any::<u8>()).prop_map(|(file, at, value)| Damage::Set { file, at, value }),
        4 => (file.clone(), at.clone(), prop_oneof![any::<u32>(), 0..40u32, Just(u32::MAX), Just(0xffff_ff06)])
            .prop_map(|(file, at, value)| Damage::Word { file, at: at / 4 * 4, value }),
        1 => (file.clone(), at.clone()).prop_map(|(file, at)| Damage::Cut { file, at }),
        1 => file.clone().prop_map(|file| Damage::Remove { file }),
        1 => (file, at, 1..300usize).prop_map(|(file, at, length)| Damage::Repeat { file, at, length }),
    ]
}

fn apply(files: &mut [Vec<u8>], damage: &Damage) {
    match *damage {
        Damage::Set { file, at, value } => {
            let length = files[file].len().max(1);
            if let Some(byte) = files[file].get_mut(at % length) {
                *byte = value;
            }
        }
        Damage::Word { file, at, value } => {
            let length = files[file].len().max(4) / 4 * 4;
            if let Some(word) = files[file].get_mut(at % length..at % length + 4) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
        Damage::Cut { file, at } => {
            let length = files[file].len();
            files[file].truncate(at % (length + 1));
        }
        Damage::Remove { file } => files[file].clear(),
        Damage::Repeat { file, at, length } => {
            let at = at % (files[file].len() + 1);
            let piece = files[file][at..(at + length).min(files[file].len())].to_vec();
            files[file].splice(at..at, piece);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_traces_give_a_report_or_an_error(
        damages in prop::collection::vec(damage(), 1..6),
        sealed in any::<bool>(),
        all in any::<bool>(),
    ) {
        let mut files = files();
        for damage in &damages {
            apply(&mut files, damage);
        }
        let directory = tempfile::tempdir().unwrap();
        for (rank, mut bytes) in files.into_iter().enumerate() {
            if bytes.is_empty() {
                continue;
            }
            if sealed && bytes.len() >= 128 {
                reseal(&mut bytes);
            }
            std::fs::write(directory.path().join(file_name(rank as u32, 0)), bytes).unwrap();
        }
        let mut options = AnalyzeOptions::default();
        options.settings.all = all;
        match laggard_engine::analyze(directory.path(), &options) {
            Ok(report) => {
                let report = report.unwrap().report;
                for found in &report.bottlenecks {
                    prop_assert!(found.severity_s >= 0.0);
                }
            }
            Err(error) => {
                let line = format!("{error:#}");
                prop_assert!(!line.contains('\n'), "{}", line);
            }
        }
    }
}
