//! Why reports cannot be compared.

/// Why reports were not compared.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer than two revisions or sizes.
    #[error("{found} given: at least two {what} are needed")]
    TooFew {
        /// Their number.
        found: usize,
        /// Revisions or sizes.
        what: &'static str,
    },
    /// The programs have different names.
    #[error(
        "{one} is of {program}, {other} is of {other_program}: reports of different programs; if \
         they are one program under two names, add --any-program"
    )]
    OtherProgram {
        /// A report.
        one: String,
        /// Its program.
        program: String,
        /// Another report.
        other: String,
        /// Its program.
        other_program: String,
    },
    /// Repeats of one revision or size have different numbers of ranks.
    #[error(
        "{one} has {}, {other} has {}: repeats must be alike (other sizes: laggard scale {one} \
         {other})",
        ranks_of(*.ranks),
        ranks_of(*.other_ranks)
    )]
    OtherRanks {
        /// A report.
        one: String,
        /// Its ranks.
        ranks: u32,
        /// Another report.
        other: String,
        /// Its ranks.
        other_ranks: u32,
    },
    /// Two sizes are the same.
    #[error(
        "{one} and {other} both have {}: join repeats of one size with a comma ({one},{other}), \
         and compare revisions with laggard compare",
        ranks_of(*.ranks)
    )]
    SameSize {
        /// A report.
        one: String,
        /// Another report.
        other: String,
        /// The ranks of both.
        ranks: u32,
    },
    /// A file is given twice as a repeat.
    #[error("{path} is given twice: a repeat is another run")]
    Twice {
        /// The file.
        path: String,
    },
    /// Nothing was recorded.
    #[error("{path}: no time in it: nothing was recorded")]
    NoTime {
        /// The file.
        path: String,
    },
}

fn ranks_of(ranks: u32) -> String {
    let ending = if ranks == 1 { "" } else { "s" };
    format!("{ranks} rank{ending}")
}
