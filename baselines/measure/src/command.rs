//! What rank 0 tells the members of the group that is at work.

use std::time::Duration;

/// A benchmark in a group with messages of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Size; the smallest are measured first.
    pub bytes: u64,
    /// Position of the group.
    pub group: usize,
    /// Position of the benchmark.
    pub benchmark: usize,
}

/// What rank 0 tells the members of a group: which cell, for how long; or that others are next.
#[derive(Clone, Copy)]
pub struct Command {
    /// Which; `None`: others are next.
    pub cell: Option<Cell>,
    /// Number of the run in the job.
    pub run: u32,
    /// For about so long.
    pub time: Duration,
    /// Whether clocks are compared before.
    pub compares: bool,
}

impl Command {
    /// Bytes of a packed one.
    pub const BYTES: usize = 6 * size_of::<u64>();

    /// As bytes.
    pub fn pack(&self) -> [u8; Self::BYTES] {
        let cell = self.cell.unwrap_or(Cell {
            bytes: 0,
            group: 0,
            benchmark: 0,
        });
        let what = u64::from(self.cell.is_some()) | u64::from(self.compares) << 1;
        let words = [
            what,
            cell.bytes,
            cell.group as u64,
            cell.benchmark as u64,
            self.time.as_nanos() as u64,
            u64::from(self.run),
        ];
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_mut(size_of::<u64>()).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// From bytes.
    pub fn unpack(bytes: &[u8; Self::BYTES]) -> Command {
        let word = |at: usize| {
            const WORD: usize = size_of::<u64>();
            let mut word = [0; WORD];
            word.copy_from_slice(&bytes[at * WORD..(at + 1) * WORD]);
            u64::from_ne_bytes(word)
        };
        let cell = Cell {
            bytes: word(1),
            group: word(2) as usize,
            benchmark: word(3) as usize,
        };
        Command {
            cell: (word(0) & 1 != 0).then_some(cell),
            time: Duration::from_nanos(word(4)),
            compares: word(0) & 2 != 0,
            run: word(5) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_back() {
        let cell = Cell {
            bytes: 1 << 40,
            group: 3,
            benchmark: 70,
        };
        let command = Command {
            cell: Some(cell),
            run: 9,
            time: Duration::from_micros(7),
            compares: true,
        };
        let back = Command::unpack(&command.pack());
        assert_eq!((back.cell, back.time), (Some(cell), command.time));
        assert_eq!(back.run, 9);
        assert!(back.compares);
        let over = Command {
            cell: None,
            ..command
        };
        assert_eq!(Command::unpack(&over.pack()).cell, None);
    }
}
