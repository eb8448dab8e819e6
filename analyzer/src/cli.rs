//! The command line: what can be typed, and what it means.

mod experiments;
mod run;
mod serve;
mod steer;
mod whatif;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
pub use experiments::{Compare, CompareFormat, Output, PlainFormat, REGRESSION_PERCENT, Scale};
use laggard_export::Choice;
use laggard_patterns::PatternId;
use laggard_patterns::rules::RuleBase;
pub use run::{FilePer, Mode, Run};
pub use serve::Serve;
pub use steer::Steer;
pub use whatif::WhatIf;

/// The version, with the commit if that was known to whoever built it.
pub const VERSION: &str = match option_env!("VERSION_AND_COMMIT") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Says who a parallel program is waiting for.
#[derive(Debug, Parser)]
#[command(
    name = "laggard",
    version = VERSION,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What the words mean, or what is wrong with them.
    pub fn parse_words<W>(words: impl IntoIterator<Item = W>) -> Result<Cli, clap::Error>
    where
        W: Into<OsString> + Clone,
    {
        let cli = Cli::try_parse_from(words)?;
        let times = match &cli.command {
            Command::Dump(dump) => (dump.from, dump.until()),
            Command::Export(export) => (export.from, export.until),
            _ => (None, None),
        };
        if let (Some(from), Some(until)) = times
            && from > until
        {
            let text = format!("--from {from} is after --until {until}");
            let mut command = Cli::command();
            return Err(command.error(ErrorKind::ArgumentConflict, text));
        }
        if let Command::Export(export) = &cli.command
            && export.to != ExportFormat::Perfetto
            && export.selects()
        {
            let text = "--ranks, --from, --until, --min-duration, --around and --any-size are for \
                --to perfetto";
            let mut command = Cli::command();
            return Err(command.error(ErrorKind::ArgumentConflict, text));
        }
        // Of the user's rules it is known only when they are read.
        if let Command::Patterns(Patterns {
            explain: Some(id),
            rules: None,
            ..
        }) = &cli.command
            && !is_known_page(id)
        {
            let text = format!("no pattern or rule {id}; laggard patterns lists all");
            return Err(Cli::command().error(ErrorKind::InvalidValue, text));
        }
        Ok(cli)
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program with the collector preloaded
    Run(Run),
    /// Find out who waited for whom in a trace; also as an MPI job:
    /// mpirun -n 4 laggard analyze DIR
    Analyze(Analyze),
    /// Measure what operations take on this machine when nobody waits, as an MPI job:
    /// mpirun -n 4 laggard baseline -o baseline.json
    Baseline(Baseline),
    /// Show a report again
    Show(Show),
    /// Revisions of a program side by side: what got better, what got worse
    Compare(Compare),
    /// Runs of several sizes: what is lost on more ranks, and on what
    Scale(Scale),
    /// What a repair would gain: the run replayed with a change
    WhatIf(WhatIf),
    /// What is in a trace: program, sizes, time by call
    Info(Info),
    /// The calls of a trace, one line each
    Dump(Dump),
    /// A trace for other tools: tables, viewers
    Export(Export),
    /// A run to look around in, with a browser
    Serve(Serve),
    /// Pause the recording of a program that runs, or change what is recorded
    Steer(Steer),
    /// The catalogue of patterns
    Patterns(Patterns),
    /// Manual pages and completions for shells, into a directory
    #[command(hide = true)]
    WritePages(WritePages),
}

/// Options of `write-pages`.
#[derive(Debug, Args)]
pub struct WritePages {
    /// Where they go
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Options of `analyze`.
#[derive(Debug, Args)]
pub struct Analyze {
    /// The trace directory, one above it, or the anchor file of an OTF2 archive [default: the
    /// newest of laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Where the report goes [default: DIR/report.json]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Table of what operations should take on this machine
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Use the table although it is of another machine or MPI
    #[arg(long, requires = "baseline")]
    pub baseline_anyway: bool,
    /// Measure every instance; the filters are off and the totals exact
    #[arg(long)]
    pub all: bool,
    /// Who is charged with waits in a collective to which several ranks come late
    #[arg(long, value_enum, default_value_t = Charge::Shared)]
    pub charge: Charge,
    /// Leave root causes out: with filters, only slow calls are then looked at
    #[arg(long)]
    pub fast: bool,
    /// Say what root causes and hints gain of traces above 64 MiB, too: the replay takes about 0.4
    /// microseconds a call
    #[arg(long, conflicts_with = "fast")]
    pub gains: bool,
    /// Look at operations that take this share of their rank's time or more
    #[arg(long, value_name = "P", default_value_t = 1.0, value_parser = percent)]
    pub hotspot_percent: f64,
    /// … and this many times their baseline or more
    #[arg(long, value_name = "R", default_value_t = 1.5, value_parser = ratio)]
    pub baseline_ratio: f64,
    /// … or, without a baseline, whose mean/min or max/mean is this or more
    #[arg(long, value_name = "R", default_value_t = 2.0, value_parser = ratio)]
    pub deviation_ratio: f64,
    /// Regions and functions of the program that are operations, one a line:
    /// "spin_until" = "wait_on_value"
    #[arg(long, value_name = "FILE.toml")]
    pub operation_map: Option<PathBuf>,
    /// Rules for hints, beside those of laggard (patterns/RULES.md)
    #[arg(long, value_name = "FILE.toml")]
    pub rules: Option<PathBuf>,
    /// Write all that is known of each rank as a table (Parquet)
    #[arg(long, value_name = "FILE.parquet")]
    pub per_rank: Option<PathBuf>,
    /// Threads per agent [default: the cores that the agent may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// End the job if one of several agents makes no progress for this long, 0 = never
    #[arg(long, value_name = "SECONDS", default_value_t = laggard_engine::STALL_LIMIT_S)]
    pub stall_limit: u64,
    /// Show time, memory and communication of the analysis itself
    #[arg(long)]
    pub stats: bool,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Exit with 3 if more than this share of all time was spent waiting
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,
}

/// Who is charged with waits in collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Charge {
    /// All who are still missing, in equal shares
    Shared,
    /// The last one alone
    Last,
}

/// Options of `baseline`.
#[derive(Debug, Args)]
pub struct Baseline {
    /// Where the table goes [default: baseline.json]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure for about this long [default: 60, with --quick 10]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub time: Option<f64>,
    /// Fewer sizes and less time
    #[arg(long)]
    pub quick: bool,
    /// Largest message, bytes; with several blocks all of them together [default: 4194304, with --quick 262144]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    pub max_bytes: Option<u64>,
    /// Messages of these sizes alone, bytes [default: powers of two, and some between them]
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',')]
    pub sizes: Vec<u64>,
    /// Only what measures one of these calls
    #[arg(long, value_name = "CALL,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Measure OpenSHMEM, too; start it with oshrun then
    #[arg(long)]
    pub shmem: bool,
    /// Make one table of several instead of measuring
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "show")]
    pub merge: Vec<PathBuf>,
    /// Show a table instead of measuring
    #[arg(long, value_name = "FILE")]
    pub show: Option<PathBuf>,
    /// With --show: draw the times into an SVG file
    #[arg(long, value_name = "OUT.svg", requires = "show")]
    pub svg: Option<PathBuf>,
    /// Write the table as Parquet, too
    #[arg(long, value_name = "FILE.parquet")]
    pub parquet: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// What is printed of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// The file's content
    Json,
    /// A comment for a merge request
    Markdown,
    /// Numbers for a monitoring system
    Openmetrics,
    /// Test cases in XML: findings above --fail-above fail
    Junit,
    /// Nothing
    None,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// The report file, or the trace directory in which it is [default: the newest of
    /// laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Bottlenecks in the table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "html")]
    pub format: Format,
    /// Exit with 3 if more than this share of all time was spent waiting
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_above: Option<f64>,
    /// Write the report as a page for browsers: one file, which loads nothing
    #[arg(long, value_name = "OUT.html", conflicts_with = "top")]
    pub html: Option<PathBuf>,
    /// A picture to be shown in the page, too; may be given several times
    #[arg(long, value_name = "FILE.svg", requires = "html")]
    pub picture: Vec<PathBuf>,
    /// Show in the page how this run differs from another revision's, as laggard compare does;
    /// repeats are joined by commas, or in a directory; several revisions: the first one first
    #[arg(long, value_name = "REPORTS", requires = "html")]
    pub compare: Vec<String>,
    /// Show in the page what is lost on more ranks, with runs of other sizes, as laggard scale
    /// does; may be given several times
    #[arg(long, value_name = "REPORTS", requires = "html")]
    pub scale: Vec<String>,
    /// With --compare and --scale: the program may have another name in each run
    #[arg(long, requires = "html")]
    pub any_program: bool,
}

/// Options of `info`.
#[derive(Debug, Args)]
pub struct Info {
    /// The trace directory, one above it, or the anchor file of an OTF2 archive [default: the
    /// newest of laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// Options of `dump`.
#[derive(Debug, Args)]
pub struct Dump {
    /// The trace directory, one above it, or the anchor file of an OTF2 archive [default: the
    /// newest of laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// These ranks only, as 0-3,8
    #[arg(long, visible_alias = "rank", value_name = "LIST", value_parser = rank_list)]
    pub ranks: Option<RankList>,
    /// This thread only
    #[arg(long, value_name = "T")]
    pub thread: Option<u32>,
    /// At most this many calls of each rank and thread
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Calls that end at this time or later, seconds since the start of the run
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub from: Option<f64>,
    /// Calls that begin before this time, seconds since the start of the run
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub until: Option<f64>,
    /// The former name of --until
    #[arg(long, value_name = "S", value_parser = seconds, hide = true, conflicts_with = "until")]
    pub to: Option<f64>,
}

impl Dump {
    /// The end of the time that was asked for, by either name.
    pub fn until(&self) -> Option<f64> {
        self.until.or(self.to)
    }
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The trace directory, one above it, or the anchor file of an OTF2 archive [default: the
    /// newest of laggard-trace, laggard-trace.1, …]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: ExportFormat,
    /// Where it goes: a directory for tables, else a file; nothing may be there yet
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The findings, for time lines, tables, profiles for Cube and archives [default: report.json beside the trace; if
    /// there is none, an analysis now, for archives none]
    #[arg(long, value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Time line: these ranks only, as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = rank_list)]
    pub ranks: Option<RankList>,
    /// Time line: calls that end at this time or later, seconds since the start of the run
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub from: Option<f64>,
    /// Time line: calls that begin before this time, seconds since the start of the run
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub until: Option<f64>,
    /// Time line: calls that take this long or longer, seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub min_duration: Option<f64>,
    /// Time line: what is around the worst call of a finding, by its number in the report or its id
    #[arg(long, value_name = "FINDING", value_parser = finding)]
    pub around: Option<String>,
    /// Time line: also if it is too large for a browser; needs about 70 bytes of memory for
    /// each call
    #[arg(long)]
    pub any_size: bool,
    /// Threads [default: the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

impl Export {
    /// Whether a part of the trace is chosen.
    fn selects(&self) -> bool {
        let times = [self.from, self.until, self.min_duration];
        self.ranks.is_some()
            || self.around.is_some()
            || self.any_size
            || times.iter().any(Option::is_some)
    }

    /// Which part that is.
    pub fn choice(&self) -> Choice {
        Choice {
            ranks: self.ranks.clone().map(|ranks| ranks.0),
            from: self.from,
            until: self.until,
            min_duration: self.min_duration,
            around: self.around.clone(),
            any_size: self.any_size,
        }
    }
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Tables, one Parquet file each
    Parquet,
    /// Tables, one Arrow IPC (Feather) file each
    Arrow,
    /// A time line for ui.perfetto.dev
    Perfetto,
    /// A flame graph of time by call path (SVG)
    Flamegraph,
    /// Time by call path, a line for each
    Folded,
    /// Time by call path for speedscope.app (JSON)
    Speedscope,
    /// Time by call path for pprof
    Pprof,
    /// A profile for the Cube tools: metrics by call path and thread
    Cubex,
    /// An OTF2 archive, for Scalasca, Vampir and others
    Otf2,
}

/// Ranges of ranks: first and last of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankList(pub Vec<(u32, u32)>);

impl RankList {
    /// Whether a rank is in it.
    pub fn has(&self, rank: u32) -> bool {
        self.0
            .iter()
            .any(|&(first, last)| (first..=last).contains(&rank))
    }
}

/// Options of `patterns`.
#[derive(Debug, Args)]
pub struct Patterns {
    /// Explain a pattern (when it counts, what it costs, what to try) or a rule for hints
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// Your rules beside those of laggard; what is wrong with them is said
    #[arg(long, value_name = "FILE.toml")]
    pub rules: Option<PathBuf>,
    /// What rules may ask about a finding
    #[arg(long, conflicts_with = "explain")]
    pub facts: bool,
}

/// Whether a page of the manual has this name.
fn is_known_page(id: &str) -> bool {
    PatternId::from_text(id).is_some() || RuleBase::built_in().find(id).is_some()
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err("not a finite number".to_owned())
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = number(text)?;
    if (0.0..=100.0).contains(&percent) {
        Ok(percent)
    } else {
        Err("not between 0 and 100".to_owned())
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let number = number(text)?;
    if number > 0.0 && number <= 1e6 {
        Ok(number)
    } else {
        Err("not a number of seconds above 0".to_owned())
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = number(text)?;
    if ratio >= 1.0 {
        Ok(ratio)
    } else {
        Err("less than 1".to_owned())
    }
}

fn rank_list(text: &str) -> Result<RankList, String> {
    let rank = |text: &str| -> Result<u32, String> {
        let rank = text.trim().parse();
        rank.map_err(|_| "not a list of ranks such as 0-3,8".to_owned())
    };
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (rank(first)?, rank(last)?);
        match first <= last {
            true => Ok((first, last)),
            false => Err(format!("{first} is after {last}")),
        }
    };
    let ranges: Result<Vec<_>, String> = text.split(',').map(range).collect();
    Ok(RankList(ranges?))
}

/// A finding by its number or id; which ones there are only the report knows.
fn finding(text: &str) -> Result<String, String> {
    let is_one = match text.parse::<usize>() {
        Ok(number) => number > 0,
        Err(_) => text.starts_with('f'),
    };
    match is_one {
        true => Ok(text.to_owned()),
        false => Err("neither a number from 1 nor an id such as f3a9c1e".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    number(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Command, clap::Error> {
        let words = std::iter::once("laggard").chain(words.iter().copied());
        Cli::parse_words(words).map(|cli| cli.command)
    }

    #[test]
    fn table_of_options_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_report() {
        let Ok(Command::Analyze(options)) = parse(&["analyze", "DIR"]) else {
            panic!("analyze DIR is a command");
        };
        let defaults = laggard_report::Settings::default();
        assert_eq!(options.hotspot_percent, defaults.hotspot_percent);
        assert_eq!(options.baseline_ratio, defaults.baseline_ratio);
        assert_eq!(options.deviation_ratio, defaults.deviation_ratio);
        assert_eq!(options.all, defaults.all);
    }

    #[test]
    fn program_keeps_its_own_options() {
        for words in [
            &[
                "run", "-o", "d", "--", "mpirun", "-n", "4", "./a", "-o", "x",
            ][..],
            &["run", "-o", "d", "mpirun", "-n", "4", "./a", "-o", "x"],
        ] {
            let Ok(Command::Run(run)) = parse(words) else {
                panic!("{words:?}");
            };
            assert_eq!(run.output, Some(PathBuf::from("d")));
            assert_eq!(run.command, ["mpirun", "-n", "4", "./a", "-o", "x"]);
        }
    }

    #[test]
    fn wrong_usage_exits_with_2() {
        for words in [
            &["analyze", "d", "--hotspot-percent", "101"][..],
            &["analyze", "d", "--baseline-ratio", "0.5"],
            &["analyze", "d", "--deviation-ratio", "nan"],
            &["analyze", "d", "--threads", "0"],
            &["dump", "d", "--from", "soon"],
            &["dump", "d", "--from", "3", "--until", "2"],
            &["dump", "d", "--from", "3", "--to", "2"],
            &["dump", "d", "--until", "3", "--to", "2"],
            &["dump", "d", "--rank", "two"],
            &["show", "r.json", "--html"],
            &["show", "r.json", "--format", "yaml"],
            &["show", "r.json", "--format", "junit", "--html", "r.html"],
            &["scale", "a", "b", "--format", "junit"],
            &["scale", "a", "b", "--format", "openmetrics"],
            &["show", "r.json", "--picture", "p.svg"],
            &["show", "r.json", "--compare", "b.json"],
            &["show", "r.json", "--scale", "b.json"],
            &["show", "r.json", "--html", "r.html", "--compare"],
            &["show", "r.json", "--html", "r.html", "--top", "3"],
            &["patterns", "--explain", "late_sandwich"],
            &["patterns", "--explain", "late_sender", "--facts"],
            &["export", "d", "-o", "x", "--to", "papyrus"],
            &["export", "d", "--to", "parquet"],
            &[
                "export", "d", "-o", "x", "--to", "perfetto", "--ranks", "3-1",
            ],
            &[
                "export", "d", "-o", "x", "--to", "perfetto", "--around", "0",
            ],
            &[
                "export", "d", "-o", "x", "--to", "perfetto", "--from", "3", "--until", "2",
            ],
            &["export", "d", "-o", "x", "--to", "pprof", "--ranks", "3"],
            &["run", "--mode", "some", "--", "x"],
            &["run"],
            &["compare", "one.json"],
            &["compare", "a", "b", "--threshold", "-1"],
            &["compare", "a", "b", "--fail-on-regression=some"],
            &["scale", "one.json"],
            &["scale", "a", "b", "--scaling", "some"],
            &["what-if", "d"],
            &["what-if", "d", "--speed-up", "solve"],
            &["what-if", "d", "--network", "jitter=2"],
            &["what-if", "d", "--without-cause", "0"],
            &["frobnicate"],
        ] {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }
}
