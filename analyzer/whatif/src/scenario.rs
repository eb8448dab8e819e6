//! Changes to a run, from the command line or a file.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use laggard_patterns::rules::Repair;
use laggard_report::{SourceLocation, words};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest file of scenarios, bytes; nobody types more.
const LARGEST: u64 = 1 << 20;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Computation is so many times faster.
    SpeedUp(Where, f64),
    /// Computation in a place takes the mean of all ranks.
    Balance(String),
    /// Transfers take this part of their time.
    Network(f64),
    /// What transfers take beyond the fastest one takes so many times less.
    Bandwidth(f64),
    /// No sender waits for its receiver.
    NoLateReceivers,
    /// Calls take by themselves what the table of baselines in this file says.
    Baseline(PathBuf),
    /// Calls are changed.
    Calls(Repair, Spot),
    /// This part of a root cause, 0..=1, is gone; its number, from 1.
    WithoutCause(usize, f64),
    /// The computation of a root cause, by its number from 1, is shared by the ranks of a set: on
    /// this rank it takes their mean, if that is less.
    Shared(usize, u32, String),
}

/// Calls of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Spot {
    /// In a place.
    Place(String),
    /// Calls of these names, at these places of a report.
    Calls(Vec<(String, SourceLocation)>),
}

/// Where computation becomes faster.
#[derive(Clone, Debug, PartialEq)]
pub enum Where {
    /// In a place.
    Place(String),
    /// On a rank.
    Rank(u32),
    /// On a host.
    Host(String),
}

/// Changes that are made together.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The changes.
    pub changes: Vec<Change>,
    /// If it is from a file: its name, and the lines of the changes.
    pub(crate) file: Option<(String, Vec<usize>)>,
}

/// The kinds of changes, with what is said about each.
const KINDS: [&str; 10] = [
    "speed_up",
    "balance",
    "network",
    "baseline",
    "non_blocking",
    "combine",
    "no_barrier",
    "once",
    "no_waits",
    "without_cause",
];

impl Change {
    /// A change of this kind.
    ///
    /// # Errors
    /// What is wrong with the words.
    pub fn parse(kind: &str, words: &str) -> Result<Change, String> {
        let place = || match words.trim() {
            "" => Err("a place is missing".to_owned()),
            place => Ok(place.to_owned()),
        };
        match kind {
            "speed_up" => speed_up(words),
            "balance" => place().map(Change::Balance),
            "network" => network(words.trim()),
            "baseline" => match words.trim() {
                "" => Err("a file is missing".to_owned()),
                file => Ok(Change::Baseline(file.into())),
            },
            "without_cause" => without_cause(words.trim()),
            _ => match Repair::from_name(kind) {
                Some(repair) => place().map(|place| Change::Calls(repair, Spot::Place(place))),
                None => Err(format!(
                    "unknown change {kind}; there are {}",
                    KINDS.join(", ")
                )),
            },
        }
    }

    /// The change as on the command line.
    pub fn text(&self) -> String {
        match self {
            Change::SpeedUp(Where::Place(place), factor) => format!("--speed-up {place}={factor}"),
            Change::SpeedUp(Where::Rank(rank), factor) => {
                format!("--speed-up rank:{rank}={factor}")
            }
            Change::SpeedUp(Where::Host(host), factor) => {
                format!("--speed-up host:{host}={factor}")
            }
            Change::Balance(place) => format!("--balance {place}"),
            Change::Network(factor) => format!("--network latency={factor}"),
            Change::Bandwidth(factor) => format!("--network bandwidth={factor}"),
            Change::NoLateReceivers => "--network no-late-receivers".to_owned(),
            Change::Baseline(file) => format!("--baseline {}", file.display()),
            Change::Calls(repair, spot) => {
                format!("--{} {}", repair.name().replace('_', "-"), spot.text())
            }
            Change::WithoutCause(number, 1.0) => format!("--without-cause rc{number}"),
            Change::WithoutCause(number, part) => format!("--without-cause rc{number}={part}"),
            Change::Shared(number, rank, set) => {
                format!("rc{number} of rank {rank} shared by ranks {set}")
            }
        }
    }
}

impl Spot {
    fn text(&self) -> String {
        match self {
            Spot::Place(place) => place.clone(),
            Spot::Calls(calls) => {
                let name = |(name, at): &(String, _)| format!("{name} at {}", words::place(at));
                calls.iter().map(name).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

fn without_cause(words: &str) -> Result<Change, String> {
    let (number, part) = words.split_once('=').unwrap_or((words, "1"));
    let part = match part.trim().parse::<f64>() {
        // Nobody means a smaller part; and no zero is below zero.
        Ok(part) if (0.0..=1.0).contains(&part) => (part * 1e6).round() / 1e6 + 0.0,
        _ => return Err(format!("{part} is no part from 0 to 1")),
    };
    let number = number.trim();
    match number.strip_prefix("rc").unwrap_or(number).parse() {
        Ok(number @ 1..) => Ok(Change::WithoutCause(number, part)),
        _ => Err(format!("{words} is no root cause such as 1 or rc1")),
    }
}

fn network(words: &str) -> Result<Change, String> {
    let factor = |text: &str, range: std::ops::RangeInclusive<f64>| match text.trim().parse() {
        Ok(factor) if range.contains(&factor) => Ok(factor),
        _ => Err(format!(
            "{text} is no factor from {} to {}",
            range.start(),
            range.end()
        )),
    };
    match words.split_once('=') {
        Some(("latency", text)) => Ok(Change::Network(factor(text, 0.0..=1000.0)?)),
        Some(("bandwidth", text)) => Ok(Change::Bandwidth(factor(text, 0.001..=1e6)?)),
        None if words == "no-late-receivers" => Ok(Change::NoLateReceivers),
        _ => Err("expected latency=FACTOR, bandwidth=FACTOR or no-late-receivers".to_owned()),
    }
}

fn speed_up(words: &str) -> Result<Change, String> {
    let Some((place, factor)) = words.rsplit_once('=') else {
        return Err(format!("{words} says no factor: expected WHERE=FACTOR"));
    };
    let factor = match factor.trim().parse::<f64>() {
        Ok(factor) if (1e-3..=1e6).contains(&factor) => factor,
        _ => return Err(format!("{factor} is no factor from 0.001 to 1000000")),
    };
    let place = match (place.strip_prefix("rank:"), place.strip_prefix("host:")) {
        (Some(rank), _) => {
            let rank = rank.parse();
            Where::Rank(rank.map_err(|_| format!("{place} is no rank such as rank:3"))?)
        }
        (None, Some(host)) => Where::Host(host.to_owned()),
        (None, None) if place.is_empty() => return Err("a place is missing".to_owned()),
        (None, None) => Where::Place(place.to_owned()),
    };
    Ok(Change::SpeedUp(place, factor))
}

impl Scenario {
    /// Of changes that are in no file.
    pub fn new(name: String, changes: Vec<Change>) -> Scenario {
        Scenario {
            name,
            changes,
            file: None,
        }
    }

    /// What is wrong with a change, with file and line if it is from a file.
    pub(crate) fn complaint(&self, change: usize, why: anyhow::Error) -> anyhow::Error {
        let line = |(file, lines): &(String, Vec<usize>)| Some((file.clone(), *lines.get(change)?));
        match self.file.as_ref().and_then(line) {
            Some((file, line)) => anyhow!("{file}:{line}: {}: {why:#}", self.name),
            None => why,
        }
    }

    /// Whether all calls stay, with what they wait for.
    pub(crate) fn keeps_calls(&self) -> bool {
        let stays = |change: &Change| match change {
            Change::Calls(repair, _) => matches!(repair, Repair::NonBlocking | Repair::Balance),
            _ => true,
        };
        self.changes.iter().all(stays)
    }

    /// A scenario of one change.
    pub fn of(change: Change) -> Scenario {
        Scenario::new(change.text(), vec![change])
    }

    /// Reads a file of scenarios.
    ///
    /// # Errors
    /// What is wrong, with file and line.
    pub fn read(path: &Path) -> Result<Vec<Scenario>> {
        let shown = path.display();
        let bytes = match laggard_files::read(path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) => bail!("{shown}: cannot read the scenarios: {error}"),
        };
        let Ok(text) = String::from_utf8(bytes) else {
            bail!("{shown}: not a text file");
        };
        match Scenario::parse(&text) {
            Ok(mut scenarios) => {
                let files = scenarios.iter_mut().filter_map(|s| s.file.as_mut());
                files.for_each(|(file, _)| *file = shown.to_string());
                Ok(scenarios)
            }
            Err((line, why)) => bail!("{shown}:{line}: {why}"),
        }
    }

    /// Reads a text: a section for each scenario, with its name and its changes.
    ///
    /// # Errors
    /// The line, from 1, and what is wrong there.
    pub fn parse(text: &str) -> Result<Vec<Scenario>, (usize, String)> {
        let line = |at: usize| {
            1 + text.as_bytes()[..at.min(text.len())]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
        };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().lines().next().unwrap_or_default();
            (line(at), message.to_owned())
        })?;
        let mut sections: Vec<_> = table.get_ref().iter().collect();
        sections.sort_by_key(|(name, _)| name.span().start);
        let mut scenarios = Vec::new();
        for (name, value) in sections {
            let at = line(name.span().start);
            let name = name.get_ref().to_string();
            let DeValue::Table(changes) = value.get_ref() else {
                return Err((at, format!("{name} is no scenario; expected [NAME]")));
            };
            let mut entries: Vec<_> = changes.iter().collect();
            entries.sort_by_key(|(kind, _)| kind.span().start);
            let (mut changes, mut lines) = (Vec::new(), Vec::new());
            for (kind, value) in entries {
                let at = line(kind.span().start);
                let parsed = all(kind.get_ref(), value);
                changes.extend(
                    parsed.map_err(|why| (at, format!("{name}: {}: {why}", kind.get_ref())))?,
                );
                lines.resize(changes.len(), at);
            }
            if changes.is_empty() {
                return Err((at, format!("{name} changes nothing")));
            }
            let file = Some((String::new(), lines));
            scenarios.push(Scenario {
                name,
                changes,
                file,
            });
        }
        match scenarios.is_empty() {
            true => Err((1, "there is no scenario".to_owned())),
            false => Ok(scenarios),
        }
    }
}

/// The changes of a kind: one, or a list.
fn all(kind: &str, value: &Spanned<DeValue>) -> Result<Vec<Change>, String> {
    match value.get_ref() {
        DeValue::Array(list) => list.iter().map(|value| one(kind, value)).collect(),
        _ => Ok(vec![one(kind, value)?]),
    }
}

fn one(kind: &str, value: &Spanned<DeValue>) -> Result<Change, String> {
    match value.get_ref() {
        DeValue::String(words) => Change::parse(kind, words),
        DeValue::Integer(number) => Change::parse(kind, number.as_str()),
        _ => Err("expected a text or a list of texts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_written() {
        for (kind, words, text) in [
            ("speed_up", "solve*=2", "--speed-up solve*=2"),
            (
                "speed_up",
                "operator==(a)=1.5",
                "--speed-up operator==(a)=1.5",
            ),
            ("speed_up", "rank:3=2", "--speed-up rank:3=2"),
            ("speed_up", "host:n1=0.5", "--speed-up host:n1=0.5"),
            ("balance", "work", "--balance work"),
            ("network", "latency=0", "--network latency=0"),
            ("network", "bandwidth=2", "--network bandwidth=2"),
            (
                "network",
                "no-late-receivers",
                "--network no-late-receivers",
            ),
            ("baseline", "other.json", "--baseline other.json"),
            ("non_blocking", "app.c:12", "--non-blocking app.c:12"),
            ("combine", "app.c:12", "--combine app.c:12"),
            ("no_barrier", "app.c:12", "--no-barrier app.c:12"),
            ("once", "app.c:12", "--once app.c:12"),
            ("no_waits", "app.c:12", "--no-waits app.c:12"),
            ("without_cause", "2", "--without-cause rc2"),
            ("without_cause", "rc2=0.25", "--without-cause rc2=0.25"),
            ("without_cause", "2=1", "--without-cause rc2"),
        ] {
            assert_eq!(Change::parse(kind, words).unwrap().text(), text);
        }
        for (kind, words) in [
            ("speed_up", "solve"),
            ("speed_up", "solve=0"),
            ("speed_up", "=2"),
            ("speed_up", "rank:x=2"),
            ("speed_up", "solve=nan"),
            ("balance", " "),
            ("network", "latency=-1"),
            ("network", "bandwidth=0"),
            ("network", "no-receivers"),
            ("baseline", ""),
            ("combine", ""),
            ("without_cause", "0"),
            ("without_cause", "1=1.5"),
            ("without_cause", "1=nan"),
            ("without_cause", "1="),
            ("speedup", "solve=2"),
        ] {
            assert!(Change::parse(kind, words).is_err(), "{kind} {words}");
        }
    }

    #[test]
    fn scenarios_stand_in_sections() {
        let text = "# two\n[faster]\nspeed_up = [\"a=2\", \"rank:1=3\"]\nnetwork = \"latency=0\"\n\n\
            [mended]\nwithout_cause = 1\n";
        let read = Scenario::parse(text).unwrap();
        let names: Vec<_> = read
            .iter()
            .map(|s| (s.name.as_str(), s.changes.len()))
            .collect();
        assert_eq!(names, [("faster", 3), ("mended", 1)]);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, at, word) in [
            ("", 1, "no scenario"),
            ("[a]\nspeed_up = \"solve\"\n", 2, "factor"),
            (
                "[a]\nbalance = \"x\"\n[b]\nslow_down = \"x\"\n",
                4,
                "unknown change",
            ),
            ("[a]\nbalance = \n", 2, ""),
            ("\nbalance = \"x\"\n", 2, "no scenario"),
            ("[a]\n", 1, "nothing"),
            ("[a]\nbalance = true\n", 2, "text"),
            ("[a]\n\nnetwork = \"speed=2\"\n", 3, "no-late-receivers"),
            ("[a]\ncombine = [\"x\", \"\"]\n", 2, "place"),
        ] {
            let (line, why) = Scenario::parse(text).unwrap_err();
            assert!(line == at && why.contains(word), "{text}: {line}: {why}");
        }
    }
}
