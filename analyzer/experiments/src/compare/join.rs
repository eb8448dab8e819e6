//! Joins items of all runs into rows: repeats first, then revisions.

use laggard_report::Report;

use super::{Experiment, Matched, Sample, State, sample};
use crate::matching::{Identity, Pair};

/// One item over all revisions.
pub struct Joined<'a, T> {
    /// By revision and run.
    found: Vec<Vec<Option<&'a T>>>,
    /// By revision except the first.
    pub matched: Vec<Option<Matched>>,
}

impl<'a, T> Joined<'a, T> {
    /// A number by revision, 0 in runs that lack the item.
    pub fn samples(&self, value: impl Fn(&T) -> f64) -> Vec<Sample> {
        let of_run = |found: &Option<&T>| found.map_or(0.0, &value);
        let of_revision = |runs: &Vec<Option<&T>>| sample(runs.iter().map(of_run).collect());
        self.found.iter().map(of_revision).collect()
    }

    /// By revision, a value of the run in which `value` is largest.
    pub fn worst<V>(&self, value: impl Fn(&T) -> f64, of: impl Fn(&T) -> V) -> Vec<Option<V>> {
        let of_revision = |runs: &Vec<Option<&'a T>>| {
            let found = runs.iter().flatten();
            let worst = found.max_by(|a, b| value(a).total_cmp(&value(b)));
            worst.map(|found| of(found))
        };
        self.found.iter().map(of_revision).collect()
    }

    /// The item of the first run that has it.
    pub fn any(&self) -> Option<&'a T> {
        self.found.iter().flatten().flatten().next().copied()
    }

    /// By revision except the first.
    pub fn states(&self) -> Vec<State> {
        let is_in = |runs: &Vec<Option<&T>>| runs.iter().any(Option::is_some);
        let first = is_in(&self.found[0]);
        let later = self.found[1..].iter();
        later
            .map(|runs| match (first, is_in(runs)) {
                (true, true) => State::Both,
                (false, true) => State::New,
                (true, false) => State::Gone,
                (false, false) => State::Neither,
            })
            .collect()
    }
}

/// Joins the `items` of reports. `pairs` matches two lists of identities, and is told whether they
/// are of one revision.
pub fn join<'a, T>(
    experiments: &'a [Experiment],
    items: fn(&'a Report) -> Vec<&'a T>,
    identity: fn(&T) -> Identity,
    pairs: fn(&[Identity], &[Identity], bool) -> Vec<Pair>,
) -> Vec<Joined<'a, T>> {
    let mut rows: Vec<(Identity, Joined<'a, T>)> = Vec::new();
    for (at, experiment) in experiments.iter().enumerate() {
        let union = union(experiment, items, identity, pairs);
        let (mut known, mut runs): (Vec<Identity>, Vec<_>) = union.into_iter().unzip();
        let before: Vec<Identity> = rows.iter().map(|row| row.0.clone()).collect();
        let found = pairs(&before, &known, false);
        for (_, row) in &mut rows {
            row.found.push(vec![None; experiment.runs.len()]);
            row.matched.push(None);
        }
        let mut is_new = vec![true; known.len()];
        for (row, item, matched) in found {
            is_new[item] = false;
            let (own, row) = &mut rows[row];
            *own = std::mem::take(&mut known[item]);
            row.found[at] = std::mem::take(&mut runs[item]);
            row.matched[at] = Some(matched);
        }
        for item in (0..known.len()).filter(|&item| is_new[item]) {
            let missing = |e: &Experiment| vec![None; e.runs.len()];
            let mut found: Vec<Vec<Option<&T>>> = experiments[..at].iter().map(missing).collect();
            found.push(std::mem::take(&mut runs[item]));
            let matched = vec![None; at + 1];
            rows.push((std::mem::take(&mut known[item]), Joined { found, matched }));
        }
    }
    let rows = rows.into_iter().map(|(_, mut row)| {
        // Nothing is before the first revision.
        row.matched.remove(0);
        row
    });
    rows.collect()
}

/// The items of one revision's runs, by run.
fn union<'a, T>(
    experiment: &'a Experiment,
    items: fn(&'a Report) -> Vec<&'a T>,
    identity: fn(&T) -> Identity,
    pairs: fn(&[Identity], &[Identity], bool) -> Vec<Pair>,
) -> Vec<(Identity, Vec<Option<&'a T>>)> {
    let mut union: Vec<(Identity, Vec<Option<&T>>)> = Vec::new();
    for (at, run) in experiment.runs.iter().enumerate() {
        let found = items(&run.report);
        let identities: Vec<Identity> = found.iter().map(|item| identity(item)).collect();
        let known: Vec<Identity> = union.iter().map(|row| row.0.clone()).collect();
        let mut is_new = vec![true; found.len()];
        for (row, item, _) in pairs(&known, &identities, true) {
            is_new[item] = false;
            union[row].1[at] = Some(found[item]);
        }
        for (item, identity) in identities.into_iter().enumerate() {
            if is_new[item] {
                let mut runs = vec![None; experiment.runs.len()];
                runs[at] = Some(found[item]);
                union.push((identity, runs));
            }
        }
    }
    union
}

/// Joins items with the same name.
pub fn by_name<'a, T>(
    experiments: &'a [Experiment],
    items: fn(&'a Report) -> Vec<&'a T>,
    name: fn(&T) -> String,
) -> Vec<Joined<'a, T>> {
    let mut names: Vec<String> = Vec::new();
    let runs = experiments.iter().flat_map(|experiment| &experiment.runs);
    for item in runs.flat_map(|run| items(&run.report)) {
        let name = name(item);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rows = names.into_iter().map(|wanted| {
        let of_run = |report: &'a Report| {
            let found = items(report).into_iter();
            let mut found = found.filter(|item| name(item) == wanted);
            found.next()
        };
        let of_revision = |experiment: &'a Experiment| {
            experiment
                .runs
                .iter()
                .map(|run| of_run(&run.report))
                .collect()
        };
        Joined {
            found: experiments.iter().map(of_revision).collect(),
            matched: Vec::new(),
        }
    });
    rows.collect()
}
