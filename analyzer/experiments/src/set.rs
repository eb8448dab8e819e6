//! Experiments: runs that are repeats of each other, under one label.

use std::collections::BTreeSet;
use std::path::Path;

use laggard_report::layout::GLUE;
use laggard_report::units::plural;
use laggard_report::{Report, words};

use crate::{Error, rounded};

/// A run: its report, and the source file.
#[derive(Clone, Debug)]
pub struct Run {
    /// As the user named it.
    pub source: String,
    /// Its report.
    pub report: Report,
}

/// Runs of one revision or one size, one or more.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Short, and unique among the experiments.
    pub label: String,
    /// The repeats.
    pub runs: Vec<Run>,
}

impl Experiment {
    /// Ranks of the first run, which repeats share.
    pub fn ranks(&self) -> u32 {
        self.runs[0].report.run.ranks
    }

    /// A number of each run.
    pub fn values(&self, value: impl Fn(&Report) -> f64) -> Vec<f64> {
        self.runs.iter().map(|run| value(&run.report)).collect()
    }
}

/// Makes experiments of lists of runs, and checks that they can be compared.
///
/// # Errors
/// See [`Error`].
pub fn experiments(
    lists: Vec<Vec<Run>>,
    any_program: bool,
    what: &'static str,
) -> Result<Vec<Experiment>, Error> {
    let lists: Vec<Vec<Run>> = lists.into_iter().filter(|list| !list.is_empty()).collect();
    if lists.len() < 2 {
        let found = lists.len();
        return Err(Error::TooFew { found, what });
    }
    let first = &lists[0][0];
    for run in lists.iter().flatten() {
        if wall(&run.report) <= 0.0 {
            let path = run.source.clone();
            return Err(Error::NoTime { path });
        }
        let (program, other_program) = (name(&first.report), name(&run.report));
        if program != other_program && !any_program {
            return Err(Error::OtherProgram {
                one: first.source.clone(),
                program,
                other: run.source.clone(),
                other_program,
            });
        }
    }
    for list in &lists {
        let mut seen = BTreeSet::new();
        for run in list {
            if !seen.insert(&run.source) {
                let path = run.source.clone();
                return Err(Error::Twice { path });
            }
            let (one, ranks) = (&list[0].source, list[0].report.run.ranks);
            if run.report.run.ranks != ranks {
                return Err(Error::OtherRanks {
                    one: one.clone(),
                    ranks,
                    other: run.source.clone(),
                    other_ranks: run.report.run.ranks,
                });
            }
        }
    }
    let labels = labels(&lists);
    let experiments = labels.into_iter().zip(lists);
    Ok(experiments
        .map(|(label, runs)| Experiment { label, runs })
        .collect())
}

/// The program's name: its file, or for a script the script's file.
pub fn name(report: &Report) -> String {
    let run = &report.run;
    let base = base_name(&run.program);
    let script = run.arguments.iter().find(|word| !word.starts_with('-'));
    match script {
        Some(script) if base.starts_with("python") => base_name(script).to_owned(),
        _ => base.to_owned(),
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// Longest label.
const LABEL: usize = 16;

/// Labels from the names of the files, or of their directories if these tell more.
fn labels(lists: &[Vec<Run>]) -> Vec<String> {
    let of_files: Vec<String> = lists.iter().map(|list| of_files(list)).collect();
    let of_directories: Vec<String> = lists.iter().map(|list| directory(&list[0])).collect();
    let all_differ = |labels: &[String]| {
        let distinct: BTreeSet<&String> = labels.iter().filter(|l| !l.is_empty()).collect();
        distinct.len() == labels.len()
    };
    let labels = match all_differ(&of_directories) && !all_differ(&of_files) {
        true => of_directories,
        false => of_files,
    };
    let mut distinct: BTreeSet<String> = BTreeSet::new();
    let labels = labels.into_iter().enumerate().map(|(at, mut label)| {
        if label.chars().count() > LABEL {
            let end: String = label.chars().rev().take(LABEL - 1).collect();
            label = format!("…{}", end.chars().rev().collect::<String>());
        }
        if label.is_empty() || !distinct.insert(label.clone()) {
            label = format!("{label} #{}", at + 1);
            distinct.insert(label.clone());
        }
        label
    });
    labels.collect()
}

/// The name of the directory that a report is in.
fn directory(run: &Run) -> String {
    let parent = Path::new(&run.source).parent().and_then(Path::file_name);
    parent.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The name of the report's file, or of the trace; for numbered repeats, their common part.
fn of_files(list: &[Run]) -> String {
    let of_run = |run: &Run| {
        let stem = Path::new(&run.source).file_stem().unwrap_or_default();
        match (stem.to_string_lossy().into_owned(), directory(run)) {
            (stem, directory) if stem == "report" && !directory.is_empty() => directory,
            (stem, _) => stem,
        }
    };
    let first = of_run(&list[0]);
    if list.len() == 1 {
        return first;
    }
    let others = list[1..].iter().map(of_run);
    let common = others.fold(first, |common, other| {
        let same = common.chars().zip(other.chars());
        let same = same.take_while(|(a, b)| a == b);
        same.map(|(letter, _)| letter).collect()
    });
    common.trim_end_matches(['-', '_', '.', ' ']).to_owned()
}

/// The run's time without start-up and shut-down, of which a report's shares are: these take about
/// equally long whatever the program does.
pub(crate) fn wall(report: &Report) -> f64 {
    let apart = report.phases_of_run.as_ref();
    let apart = apart.map_or(0.0, |phases| phases.startup_s + phases.shutdown_s);
    rounded((report.run.wall_time_s - apart).max(0.0))
}

/// Whether a report knows start-up and shut-down.
pub(crate) fn are_ends_known(experiments: &[Experiment]) -> bool {
    let mut runs = experiments.iter().flat_map(|experiment| &experiment.runs);
    runs.any(|run| start_and_end(&run.report) > 0.0)
}

/// Which runs had more ranks than cores, and what that means for their times.
pub(crate) fn crowded(experiments: &[Experiment]) -> Option<String> {
    let crowded = experiments.iter().filter_map(|experiment| {
        let mut runs = experiment.runs.iter();
        let crowd = runs.find_map(|run| words::crowd(&run.report))?;
        Some((crowd.replace(GLUE, " "), experiment.label.as_str()))
    });
    let mut by_crowd: Vec<(String, Vec<&str>)> = Vec::new();
    for (crowd, label) in crowded {
        match by_crowd.iter_mut().find(|(other, _)| *other == crowd) {
            Some((_, labels)) => labels.push(label),
            None => by_crowd.push((crowd, vec![label])),
        }
    }
    let said = by_crowd
        .iter()
        .map(|(crowd, labels)| format!("{crowd} in {}", labels.join(", ")));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| {
        format!(
            "{}: part of the time is waiting for a core, so with cores enough the result may be another",
            said.join("; ")
        )
    })
}

/// Start-up and shut-down within all time; 0 in reports that do not separate them.
pub(crate) fn start_and_end(report: &Report) -> f64 {
    let sums = report.sums();
    sums.startup_s.unwrap_or(0.0) + sums.shutdown_s.unwrap_or(0.0)
}

/// Whether root causes were searched in all runs.
pub(crate) fn have_roots(experiments: &[Experiment]) -> bool {
    let mut runs = experiments.iter().flat_map(|experiment| &experiment.runs);
    runs.all(|run| run.report.root_causes.is_some())
}

/// Caveats for numbers with different meanings in the runs.
pub(crate) fn notes(experiments: &[Experiment]) -> Vec<String> {
    let mut notes: Vec<String> = crowded(experiments).into_iter().collect();
    let runs = || experiments.iter().flat_map(|experiment| &experiment.runs);
    let Some(first) = runs().next() else {
        return notes;
    };
    let other = |differs: &dyn Fn(&Report) -> bool| runs().find(|run| differs(&run.report));
    if let Some(run) = other(&|report| report.settings != first.report.settings) {
        notes.push(format!(
            "{} and {} were analysed with different options: what is missing in one may be below \
             its limits only",
            first.source, run.source
        ));
    }
    if let Some(run) = other(&|report| report.run.hosts.len() != first.report.run.hosts.len()) {
        notes.push(format!(
            "{} ran on {}, {} on {}",
            first.source,
            plural(first.report.run.hosts.len() as u64, "host"),
            run.source,
            run.report.run.hosts.len()
        ));
    }
    let lacking = runs().find(|run| run.report.root_causes.is_none());
    if let Some(run) = lacking.filter(|_| runs().any(|run| run.report.root_causes.is_some())) {
        notes.push(format!(
            "{}: root causes were not searched, so they are not compared (laggard analyze without \
             --fast searches them)",
            run.source
        ));
    }
    for run in runs() {
        let unknown = run.report.unknown_waiting();
        if !unknown.is_empty() {
            notes.push(format!(
                "{}: there may have been more waiting ({unknown})",
                run.source
            ));
        }
        if run.report.is_cut_off() {
            notes.push(format!("{}: the traces are cut off", run.source));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    fn lists(sources: &[&[&str]]) -> Vec<Vec<Run>> {
        let list = |sources: &&[&str]| sources.iter().map(|source| run(source, 1.0)).collect();
        sources.iter().map(list).collect()
    }

    #[test]
    fn labels_are_short_and_distinct() {
        let label = |sources: &[&[&str]]| {
            let found = experiments(lists(sources), false, "revisions").unwrap();
            let labels: Vec<String> = found.into_iter().map(|e| e.label).collect();
            labels.join("|")
        };
        assert_eq!(label(&[&["a.json"], &["b.json"]]), "a|b");
        assert_eq!(label(&[&["v1-1.json", "v1-2.json"], &["v2.json"]]), "v1|v2");
        assert_eq!(label(&[&["v1/report.json"], &["v2/report.json"]]), "v1|v2");
        assert_eq!(label(&[&["v1/a.json"], &["v2/a.json"]]), "v1|v2");
        assert_eq!(label(&[&["v/a.json"], &["v/a.json"]]), "a|a #2");
        let repeats: [&[&str]; 2] = [&["old/1.json", "old/2.json"], &["new/1.json"]];
        assert_eq!(label(&repeats), "old|new");
        let long = label(&[&["a.json"], &["the-name-of-a-branch.json"]]);
        assert_eq!(long, "a|…ame-of-a-branch");
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let refused = |lists| experiments(lists, false, "revisions").unwrap_err();
        let error = refused(lists(&[&["a"]]));
        assert_eq!(
            error.to_string(),
            "1 given: at least two revisions are needed"
        );
        let mut two = lists(&[&["a"], &["b"]]);
        two[1][0].report.run.program = "/opt/other".to_owned();
        assert!(experiments(two.clone(), true, "revisions").is_ok());
        let error = refused(two).to_string();
        assert!(
            error.contains("a is of app, b is of other: reports of different programs"),
            "{error}"
        );
        let error = refused(lists(&[&["a", "a"], &["b"]])).to_string();
        assert!(error.contains("a is given twice"), "{error}");
        let mut repeats = lists(&[&["a", "c"], &["b"]]);
        repeats[0][1].report.run.ranks = 1;
        let error = refused(repeats).to_string();
        assert!(error.contains("a has 4 ranks, c has 1 rank:"), "{error}");
        let mut empty = lists(&[&["a"], &["b"]]);
        empty[1][0].report.run.wall_time_s = 0.0;
        assert!(refused(empty).to_string().contains("nothing was recorded"));
    }

    #[test]
    fn scripts_are_programs() {
        let mut report = run("a", 1.0).report;
        report.run.program = "/usr/bin/python3.11".to_owned();
        report.run.arguments = ["-u", "/home/me/heat.py", "7"].map(str::to_owned).to_vec();
        assert_eq!(name(&report), "heat.py");
    }
}
