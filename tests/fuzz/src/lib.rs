//! Hostile input for everything that reads files.
//!
//! *Purpose.* A [`Target`] is a reader as a function of bytes. For any bytes it must return soon
//! and without a panic.
//!
//! *Data flow.* The fuzzer (`main.rs`, guided by coverage, built by `run.sh`) and the ordinary test
//! (`tests/replay.rs`, on any compiler) run the same targets. Both begin with the inputs in
//! `corpus/TARGET/`, and change them with [`Target::mutate`], which knows how traces are built:
//! most changes get past the checksums.
//!
//! *Where to add.* A reader: a file in `targets/`, a row in [`TARGETS`], a directory in `corpus/`.
//! An input that broke something stays in the corpus under a name that describes it.

pub mod random;
pub mod records;
pub mod shape;
mod targets;

use random::Random;
use shape::{File, Scramble};

/// A reader to attack.
pub struct Target {
    /// Its name, and its corpus's.
    pub name: &'static str,
    /// The reader.
    pub run: fn(&[u8]),
    /// Structure of the input.
    pub input: Input,
    /// Longest input that makes sense, bytes.
    pub limit: usize,
}

/// Structure of a target's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes without a structure known to mutations.
    Plain,
    /// A location's file.
    Location,
    /// [Records](records).
    Records,
    /// A byte of options, then [packed](shape::pack) files.
    Directory,
    /// Text in which numbers matter.
    Numbers,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "location",
        run: targets::location,
        input: Input::Location,
        limit: 32 << 10,
    },
    Target {
        name: "node",
        run: targets::node,
        input: Input::Plain,
        limit: 512,
    },
    Target {
        name: "analysis",
        run: targets::analysis,
        input: Input::Directory,
        limit: 64 << 10,
    },
    Target {
        name: "exports",
        run: targets::exports,
        input: Input::Directory,
        limit: 64 << 10,
    },
    Target {
        name: "anchor",
        run: targets::anchor,
        input: Input::Plain,
        limit: 512,
    },
    Target {
        name: "archive",
        run: targets::archive,
        input: Input::Records,
        limit: 16 << 10,
    },
    Target {
        name: "baseline",
        run: targets::baseline,
        input: Input::Plain,
        limit: 8 << 10,
    },
    Target {
        name: "report",
        run: targets::report,
        input: Input::Plain,
        limit: 16 << 10,
    },
    Target {
        name: "rules",
        run: targets::rules,
        input: Input::Plain,
        limit: 16 << 10,
    },
    Target {
        name: "questions",
        run: targets::questions,
        input: Input::Numbers,
        limit: 4 << 10,
    },
    Target {
        name: "parts",
        run: targets::parts,
        input: Input::Plain,
        limit: 4 << 10,
    },
    Target {
        name: "packets",
        run: targets::packets,
        input: Input::Plain,
        limit: 4 << 10,
    },
    Target {
        name: "connections",
        run: targets::connections,
        input: Input::Plain,
        limit: 4 << 10,
    },
    Target {
        name: "symbols",
        run: targets::symbols,
        input: Input::Plain,
        limit: 64 << 10,
    },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Returns a changed input of at most `limit` bytes. `scramble` changes plain bytes.
    pub fn mutate(
        &self,
        input: &[u8],
        limit: usize,
        random: &mut Random,
        scramble: &mut Scramble<'_>,
    ) -> Vec<u8> {
        let changed = match self.input {
            Input::Plain => None,
            // Only plain changes give kinds and numbers that nobody thought of.
            Input::Records if random.once_in(16) => None,
            Input::Records => Some(records::mutate(input, random)),
            Input::Location => mutate_location(input, random, scramble),
            Input::Directory => mutate_directory(input, random, scramble),
            Input::Numbers if random.once_in(8) => None,
            Input::Numbers => mutate_number(input, random),
        };
        match changed {
            Some(changed) if changed.len() <= limit => changed,
            _ => {
                let mut changed = input.to_vec();
                scramble(&mut changed, limit);
                changed
            }
        }
    }
}

/// Replaces a number of a text.
fn mutate_number(input: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    const ODD: [&str; 12] = [
        "0",
        "1",
        "-1",
        "2",
        "63",
        "64",
        "65",
        "0.001",
        "1e9",
        "-1e300",
        "4294967296",
        "18446744073709551615",
    ];
    let is_part = |byte: &u8| byte.is_ascii_digit() || b".-+eE".contains(byte);
    let begins =
        (1..input.len()).filter(|&at| input[at].is_ascii_digit() && !is_part(&input[at - 1]));
    let begins: Vec<usize> = begins.collect();
    let begin = *begins.get(random.below(begins.len()))?;
    let length = input[begin..]
        .iter()
        .take_while(|byte| is_part(byte))
        .count();
    let number = match random.once_in(3) {
        true => random.below(1000).to_string(),
        false => ODD[random.below(ODD.len())].to_owned(),
    };
    Some([&input[..begin], number.as_bytes(), &input[begin + length..]].concat())
}

fn mutate_location(
    input: &[u8],
    random: &mut Random,
    scramble: &mut Scramble<'_>,
) -> Option<Vec<u8>> {
    // Readers must also cope with wrong checksums.
    if random.once_in(16) {
        return None;
    }
    let mut file = File::parse(input)?;
    for _ in 0..1 + random.below(3) {
        file.mutate(random, scramble);
    }
    Some(file.bytes())
}

fn mutate_directory(
    input: &[u8],
    random: &mut Random,
    scramble: &mut Scramble<'_>,
) -> Option<Vec<u8>> {
    let (options, packed) = input.split_first()?;
    let mut files = shape::unpack(packed);
    let mut options = *options;
    let at = random.below(files.len());
    match random.below(24) {
        0 => options = random.any() as u8,
        1 if files.len() > 1 => drop(files.remove(at)),
        2 if files.len() > 1 => {
            let copy = files[random.below(files.len())].clone();
            files[at] = copy;
        }
        3 => scramble(files.get_mut(at)?, 64 << 10),
        _ => {
            let mut file = File::parse(files.get(at)?)?;
            for _ in 0..1 + random.below(3) {
                file.mutate(random, scramble);
            }
            files[at] = file.bytes();
        }
    }
    let mut changed = vec![options];
    changed.extend(shape::pack(&files));
    Some(changed)
}
