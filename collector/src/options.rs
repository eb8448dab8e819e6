//! The user's choices: one table of environment variables.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::counters::{self, Wanted};
use crate::log::Level;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every call.
    Trace,
    /// The profile only.
    Profile,
    /// Nothing.
    Off,
}

/// Scope of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePer {
    /// One location.
    Location,
    /// All locations of a host.
    Node,
}

/// How threads are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleBy {
    /// As the kernel permits it.
    Best,
    /// The kernel's rings.
    Perf,
    /// A timer's signal.
    Signal,
    /// A signal of a thread of the collector.
    Thread,
}

/// The choices made for this run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the trace.
    pub trace_dir: PathBuf,
    /// Most frames of a call path.
    pub callpath_depth: usize,
    /// What is recorded.
    pub mode: Mode,
    /// Most bytes of a location's file.
    pub max_trace_bytes: Option<u64>,
    /// Bytes of a location's memory.
    pub buffer: usize,
    /// Scope of a trace file.
    pub file_per: FilePer,
    /// Start paused.
    pub paused: bool,
    /// Whether POSIX I/O is recorded.
    pub posix_io: bool,
    /// Whether it is told what stretches of computation were beside work.
    pub processor_time: bool,
    /// What is counted in them.
    pub counters: Wanted,
    /// Samples of the call stack per second on the processor; 0 = none.
    pub sample_hz: u32,
    /// How they are taken.
    pub sample_by: SampleBy,
    /// Whether waits among threads are recorded.
    pub threads: bool,
    /// Time between clock measurements; zero = only at the start and the end.
    pub sync_interval: Duration,
    /// Operation map: all instances of its regions are recorded.
    pub operation_map: Option<PathBuf>,
    /// Most detailed level of messages shown.
    pub log: Level,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            trace_dir: PathBuf::from("laggard-trace"),
            callpath_depth: 16,
            mode: Mode::Trace,
            max_trace_bytes: None,
            buffer: 1 << 20,
            file_per: FilePer::Location,
            paused: false,
            posix_io: true,
            processor_time: true,
            counters: Wanted::Auto,
            sample_hz: 0,
            sample_by: SampleBy::Best,
            threads: true,
            sync_interval: Duration::ZERO,
            operation_map: None,
            log: Level::Warn,
        }
    }
}

/// One variable: its name, its values, and how it is set and shown.
struct Row {
    name: &'static str,
    values: &'static str,
    set: fn(&mut Options, &OsStr) -> Option<()>,
    show: fn(&Options) -> String,
}

/// Upper limit of the interval, s; longer than any run.
const LONGEST_INTERVAL_S: f64 = 1e9;

const ROWS: &[Row] = &[
    Row {
        name: "LAGGARD_TRACE_DIR",
        values: "a directory",
        set: |options, value| {
            options.trace_dir = PathBuf::from(value);
            (!value.is_empty()).then_some(())
        },
        show: |options| options.trace_dir.display().to_string(),
    },
    Row {
        name: "LAGGARD_CALLPATH_DEPTH",
        values: "a number from 0 to 128",
        set: |options, value| {
            options.callpath_depth = value.to_str()?.parse().ok().filter(|&depth| depth <= 128)?;
            Some(())
        },
        show: |options| options.callpath_depth.to_string(),
    },
    Row {
        name: "LAGGARD_MODE",
        values: "trace, profile or off",
        set: |options, value| {
            options.mode = match value.to_str()? {
                "trace" => Mode::Trace,
                "profile" => Mode::Profile,
                "off" => Mode::Off,
                _ => return None,
            };
            Some(())
        },
        show: |options| format!("{:?}", options.mode).to_lowercase(),
    },
    Row {
        name: "LAGGARD_MAX_TRACE_MB",
        values: "a number of megabytes",
        set: |options, value| {
            let megabytes: u64 = value.to_str()?.parse().ok()?;
            options.max_trace_bytes = Some(megabytes.checked_mul(1_000_000)?);
            Some(())
        },
        show: |options| match options.max_trace_bytes {
            None => "none".to_owned(),
            Some(bytes) => (bytes / 1_000_000).to_string(),
        },
    },
    Row {
        name: "LAGGARD_BUFFER_KB",
        values: "a number from 64 to 1048576",
        set: |options, value| {
            let kilobytes: usize = value.to_str()?.parse().ok()?;
            options.buffer = (64..=1 << 20)
                .contains(&kilobytes)
                .then_some(kilobytes << 10)?;
            Some(())
        },
        show: |options| (options.buffer >> 10).to_string(),
    },
    Row {
        name: "LAGGARD_FILE_PER",
        values: "location or node",
        set: |options, value| {
            options.file_per = match value.to_str()? {
                "location" => FilePer::Location,
                "node" => FilePer::Node,
                _ => return None,
            };
            Some(())
        },
        show: |options| format!("{:?}", options.file_per).to_lowercase(),
    },
    Row {
        name: "LAGGARD_PAUSED",
        values: "0 or 1",
        set: |options, value| {
            options.paused = is_on(value)?;
            Some(())
        },
        show: |options| u8::from(options.paused).to_string(),
    },
    Row {
        name: "LAGGARD_POSIX_IO",
        values: "0 or 1",
        set: |options, value| {
            options.posix_io = is_on(value)?;
            Some(())
        },
        show: |options| u8::from(options.posix_io).to_string(),
    },
    Row {
        name: "LAGGARD_PROCESSOR_TIME",
        values: "0 or 1",
        set: |options, value| {
            options.processor_time = is_on(value)?;
            Some(())
        },
        show: |options| u8::from(options.processor_time).to_string(),
    },
    Row {
        name: "LAGGARD_COUNTERS",
        values: "auto, off, or up to six of perf's events, as cache-misses,page-faults,r01c2",
        set: |options, value| {
            options.counters = match value.to_str()? {
                "auto" => Wanted::Auto,
                "off" => Wanted::Off,
                names => {
                    let mut names: Vec<_> = names.split(',').map(str::trim).collect();
                    names.dedup();
                    let are_known = names.iter().all(|name| counters::find(name).is_some());
                    let names = (are_known && names.len() <= Wanted::MOST).then_some(names)?;
                    Wanted::Named(names.into_iter().map(str::to_owned).collect())
                }
            };
            Some(())
        },
        show: |options| match &options.counters {
            Wanted::Auto => "auto".to_owned(),
            Wanted::Off => "off".to_owned(),
            Wanted::Named(names) => names.join(","),
        },
    },
    Row {
        name: "LAGGARD_SAMPLE_HZ",
        values: "a number from 0 to 10000",
        set: |options, value| {
            options.sample_hz = value.to_str()?.parse().ok().filter(|&hz| hz <= 10_000)?;
            Some(())
        },
        show: |options| options.sample_hz.to_string(),
    },
    Row {
        name: "LAGGARD_SAMPLE_BY",
        values: "best, perf, signal or thread",
        set: |options, value| {
            options.sample_by = match value.to_str()? {
                "best" => SampleBy::Best,
                "perf" => SampleBy::Perf,
                "signal" => SampleBy::Signal,
                "thread" => SampleBy::Thread,
                _ => return None,
            };
            Some(())
        },
        show: |options| format!("{:?}", options.sample_by).to_lowercase(),
    },
    Row {
        name: "LAGGARD_SYNC_INTERVAL_S",
        values: "a number of seconds",
        set: |options, value| {
            let seconds: f64 = value.to_str()?.parse().ok()?;
            let believable = (0.0..=LONGEST_INTERVAL_S).contains(&seconds);
            options.sync_interval = believable.then(|| Duration::from_secs_f64(seconds))?;
            Some(())
        },
        show: |options| options.sync_interval.as_secs_f64().to_string(),
    },
    Row {
        name: "LAGGARD_THREADS",
        values: "0 or 1",
        set: |options, value| {
            options.threads = is_on(value)?;
            Some(())
        },
        show: |options| u8::from(options.threads).to_string(),
    },
    Row {
        name: "LAGGARD_OPERATION_MAP",
        values: "a file",
        set: |options, value| {
            options.operation_map = Some(PathBuf::from(value));
            (!value.is_empty()).then_some(())
        },
        show: |options| match &options.operation_map {
            None => "none".to_owned(),
            Some(path) => path.display().to_string(),
        },
    },
    Row {
        name: "LAGGARD_LOG",
        values: "error, warn, info or debug",
        set: |options, value| {
            options.log = match value.to_str()? {
                "error" => Level::Error,
                "warn" => Level::Warn,
                "info" => Level::Info,
                "debug" => Level::Debug,
                _ => return None,
            };
            Some(())
        },
        show: |options| format!("{:?}", options.log).to_lowercase(),
    },
];

/// Whether the user's environment wants waits among threads to be recorded.
pub fn wants_threads() -> bool {
    let (options, _) = Options::from_environment();
    options.threads && options.mode != Mode::Off
}

/// The value of a switch.
fn is_on(value: &OsStr) -> Option<bool> {
    match value.to_str()? {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

impl Options {
    /// Reads the environment; returns the options and the complaints.
    pub fn from_environment() -> (Options, Vec<String>) {
        Options::from_values(|name| env::var_os(name))
    }

    fn from_values(value: impl Fn(&str) -> Option<OsString>) -> (Options, Vec<String>) {
        let (mut options, mut complaints) = (Options::default(), Vec::new());
        for row in ROWS {
            let Some(value) = value(row.name) else {
                continue;
            };
            let mut changed = options.clone();
            // A directory's name may hold any byte but zero.
            let trimmed = OsStr::from_bytes(value.as_bytes().trim_ascii());
            if (row.set)(&mut changed, trimmed).is_some() {
                options = changed;
            } else {
                let used = (row.show)(&options);
                let (name, value, values) = (row.name, value.to_string_lossy(), row.values);
                complaints.push(format!("{name}={value}: not {values}; {used} is used"));
            }
        }
        (options, complaints)
    }

    /// All choices on one line.
    pub fn describe(&self) -> String {
        ROWS.iter().fold(String::new(), |mut line, row| {
            let separator = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{separator}{}={}", row.name, (row.show)(self));
            line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_values_are_taken_and_bad_ones_are_named() {
        let (options, complaints) = Options::from_values(|name| {
            let value = match name {
                "LAGGARD_CALLPATH_DEPTH" => "3",
                "LAGGARD_MODE" => "fast",
                "LAGGARD_MAX_TRACE_MB" => "7",
                "LAGGARD_PAUSED" => "1",
                "LAGGARD_SYNC_INTERVAL_S" => "0.25",
                _ => return None,
            };
            Some(value.into())
        });
        assert_eq!(options.callpath_depth, 3);
        assert_eq!(options.mode, Mode::Trace);
        assert_eq!(options.max_trace_bytes, Some(7_000_000));
        assert!(options.paused);
        assert_eq!(options.sync_interval, Duration::from_millis(250));
        assert_eq!(
            complaints,
            ["LAGGARD_MODE=fast: not trace, profile or off; trace is used"]
        );
    }

    #[test]
    fn a_directory_may_have_any_name() {
        let name = OsStr::from_bytes(b"r\xe9sum\xe9");
        let (options, complaints) =
            Options::from_values(|row| (row == "LAGGARD_TRACE_DIR").then(|| name.to_owned()));
        assert_eq!(options.trace_dir, PathBuf::from(name));
        assert!(complaints.is_empty());
    }

    #[test]
    fn every_default_can_be_given() {
        let defaults = Options::default();
        for row in ROWS {
            let shown = (row.show)(&defaults);
            let mut options = defaults.clone();
            assert!(
                shown == "none" || (row.set)(&mut options, OsStr::new(&shown)).is_some(),
                "{}",
                row.name
            );
        }
        assert!(
            defaults
                .describe()
                .starts_with("LAGGARD_TRACE_DIR=laggard-trace LAGGARD_CALLPATH_DEPTH=16")
        );
    }
}
