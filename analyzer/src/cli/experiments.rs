//! Options of the commands that look at several reports.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use laggard_experiments::noise::THRESHOLD_PERCENT;
use laggard_experiments::scale::Growth;

use super::percent;

/// What is slower by this many percent is a regression, if nobody says.
pub const REGRESSION_PERCENT: f64 = 5.0;
/// The same as it is typed.
const REGRESSION_TEXT: &str = "5";

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Reports of two revisions or more, or the trace directories in which they are. The first
    /// revision is what the others are compared with. Repeats of one revision are joined by commas
    /// (before-1.json,before-2.json), or in a directory
    #[arg(value_name = "REPORTS", required = true, num_args = 2..)]
    pub reports: Vec<String>,
    /// Without repeats: a difference of this many percent counts
    #[arg(long, value_name = "P", default_value_t = THRESHOLD_PERCENT, value_parser = percent)]
    pub threshold: f64,
    /// The program may have another name in each of them
    #[arg(long)]
    pub any_program: bool,
    /// Exit with 3 if the run, a bottleneck or a region became slower than in the first revision,
    /// by more than noise, and by this many percent or more [default: 5]
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = percent,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = REGRESSION_TEXT
    )]
    pub fail_on_regression: Option<f64>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub format: CompareFormat,
    /// Where it goes.
    #[command(flatten)]
    pub output: Output,
}

/// What is printed of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// For people
    Text,
    /// The result
    Json,
    /// A comment for a merge request
    Markdown,
    /// Numbers for a monitoring system
    Openmetrics,
    /// Test cases in XML: what --fail-on-regression names fails
    Junit,
    /// Nothing
    None,
}

/// Options of `scale`.
#[derive(Debug, Args)]
pub struct Scale {
    /// Reports of two sizes or more, in any order, or the trace directories in which they are.
    /// Repeats of one size are joined by commas (4-1.json,4-2.json), or in a directory
    #[arg(value_name = "REPORTS", required = true, num_args = 2..)]
    pub reports: Vec<String>,
    /// How the problem grows with the ranks [default: as its computation does]
    #[arg(long, value_enum)]
    pub scaling: Option<Scaling>,
    /// The program may have another name in each of them
    #[arg(long)]
    pub any_program: bool,
    /// What is printed
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub format: PlainFormat,
    /// Where it goes.
    #[command(flatten)]
    pub output: Output,
}

/// What is printed of other results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For people
    Text,
    /// The result
    Json,
    /// Nothing
    None,
}

/// How a problem grows with the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scaling {
    /// Not at all: more ranks should be faster
    Strong,
    /// As they do: more ranks should take as long
    Weak,
}

impl From<Scaling> for Growth {
    fn from(scaling: Scaling) -> Growth {
        match scaling {
            Scaling::Strong => Growth::Strong,
            Scaling::Weak => Growth::Weak,
        }
    }
}

/// Where a result over several reports goes.
#[derive(Debug, Args)]
pub struct Output {
    /// Write the result as JSON
    #[arg(short, long, value_name = "FILE.json")]
    pub output: Option<PathBuf>,
    /// Draw the result
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
}
