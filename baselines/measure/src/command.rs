//! Commands from rank 0 to the members of the group at work.

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

/// A command from rank 0 to the members of a group: measure a cell, or make way for another group.
#[derive(Clone, Copy)]
pub struct Command {
    /// The cell; `None`: another group is next.
    pub cell: Option<Cell>,
    /// Number of the run in the job.
    pub run: u32,
    /// Approximate duration.
    pub time: Duration,
    /// Whether clocks are compared before.
    pub compares: bool,
}

impl Command {
    /// Packed size, bytes.
    pub const BYTES: usize = 6 * size_of::<u64>();

    /// Packs it.
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

    /// Unpacks it.
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
