//! What root causes gain that gain nothing by themselves: others come as late as these do.

use anyhow::Result;
use laggard_report::words::{NEGLIGIBLE_PERCENT, NOTABLE_PERCENT};
use laggard_report::{GainAfter, RootCause, percent};

use crate::{Change, Outcome, Scenario};

/// Says of those of `causes` that gain nothing, and start much waiting, once which others are mended they
/// do: one other, or else all others whose gain is known. `measured` is the run's time, s; `replayed` tells
/// what scenarios gain. What gains nothing in any case has no hints.
pub fn add(
    causes: &mut [RootCause],
    measured: f64,
    mut replayed: impl FnMut(&[Scenario]) -> Result<Vec<Outcome>>,
) -> Result<()> {
    let known: Vec<usize> = (1..=causes.len())
        .filter(|&number| causes[number - 1].gain_percent.is_some())
        .collect();
    let is_asked = |cause: &RootCause| cause.gains_nothing() && cause.percent >= NOTABLE_PERCENT;
    let asked: Vec<usize> = known
        .iter()
        .copied()
        .filter(|&number| is_asked(&causes[number - 1]))
        .collect();
    let sets = sets(&known, &asked);
    let gains = match sets.is_empty() {
        true => Vec::new(),
        false => replayed(&sets.iter().map(|set| without(set)).collect::<Vec<_>>())?,
    };
    let gain_of = |set: &[usize]| {
        if let [number] = set {
            return causes[number - 1].gain_s;
        }
        let mut told = sets.iter().zip(&gains);
        told.find(|(own, _)| *own == set)
            .map(|(_, outcome)| outcome.gain_s)
    };
    let least = NEGLIGIBLE_PERCENT / 100.0 * measured;
    let mut found = Vec::new();
    for &number in &asked {
        let after = |mended: Vec<usize>| {
            let (before, after) = (gain_of(&mended)?, gain_of(&with(&mended, number))?);
            let gain = after - before.max(0.0);
            (gain >= least).then_some((mended, gain))
        };
        let others: Vec<usize> = known.iter().copied().filter(|&of| of != number).collect();
        let one = others.iter().filter_map(|&other| after(vec![other]));
        let best = one.max_by(|a, b| a.1.total_cmp(&b.1));
        found.extend(best.or_else(|| after(others)).map(|best| (number, best)));
    }
    for (number, (mended, gain_s)) in found {
        let ids = mended.iter().map(|other| causes[other - 1].id.clone());
        let mended = ids.collect();
        causes[number - 1].gain_after = Some(GainAfter {
            mended,
            gain_s,
            gain_percent: percent(gain_s, measured),
        });
    }
    let in_vain = causes
        .iter_mut()
        .filter(|cause| cause.gains_nothing() && cause.gain_after.is_none());
    in_vain.for_each(|cause| cause.hints.clear());
    Ok(())
}

/// The sets of causes to be mended together: each of those `asked` with one other, with all `known`, and all
/// without it.
fn sets(known: &[usize], asked: &[usize]) -> Vec<Vec<usize>> {
    let mut sets = Vec::new();
    for &number in asked {
        let others = known.iter().copied().filter(|&other| other != number);
        sets.extend(others.clone().map(|other| with(&[other], number)));
        sets.push(others.collect());
    }
    if !asked.is_empty() {
        sets.push(known.to_vec());
    }
    sets.retain(|set| set.len() > 1);
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// The same with one more, in order.
fn with(set: &[usize], number: usize) -> Vec<usize> {
    let mut all = [set, &[number]].concat();
    all.sort_unstable();
    all
}

fn without(set: &[usize]) -> Scenario {
    let changes = set.iter().map(|&number| Change::WithoutCause(number, 1.0));
    Scenario::new(String::new(), changes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Causes that start much waiting, with hints, and gain so much by themselves; `together` tells what sets
    /// gain. What each gains after which others, if anything, and whether it has hints.
    fn told(alone: &[f64], together: impl Fn(&[usize]) -> f64) -> Vec<(String, f64, bool)> {
        let causes = alone.iter().enumerate().map(|(at, &gain)| RootCause {
            id: format!("rc{}", at + 1),
            percent: 10.0,
            gain_s: Some(gain),
            gain_percent: Some(gain),
            hints: vec!["mend it".to_owned()],
            ..RootCause::default()
        });
        let mut causes: Vec<_> = causes.collect();
        add(&mut causes, 100.0, |scenarios| {
            let of = scenarios.iter().map(|scenario| {
                let number = |change: &Change| match change {
                    Change::WithoutCause(number, _) => *number,
                    other => unreachable!("{other:?}"),
                };
                let set: Vec<_> = scenario.changes.iter().map(number).collect();
                Outcome {
                    gain_s: together(&set),
                    ..Outcome::default()
                }
            });
            Ok(of.collect())
        })
        .unwrap();
        let rows = causes.iter().map(|cause| {
            let after = cause.gain_after.clone().unwrap_or_default();
            let mended = after.mended.join(" ");
            (mended, after.gain_s, !cause.hints.is_empty())
        });
        rows.collect()
    }

    fn row(mended: &str, gain: f64, has_hints: bool) -> (String, f64, bool) {
        (mended.to_owned(), gain, has_hints)
    }

    /// All three come equally late: only all together gain. Nothing gains anything in the end: no hints.
    #[test]
    fn what_gains_nothing_names_what_must_go_with_it() {
        let pair = |set: &[usize]| match set.contains(&1) && set.contains(&2) {
            true => 19.0,
            false => 0.0,
        };
        let expected = [row("rc2", 19.0, true), row("rc1", 19.0, true)];
        assert_eq!(told(&[0.0, 0.0], pair), expected);
        let three = told(&[0.0; 3], |set| f64::from(u8::from(set.len() == 3)));
        let expected = [
            row("rc2 rc3", 1.0, true),
            row("rc1 rc3", 1.0, true),
            row("rc1 rc2", 1.0, true),
        ];
        assert_eq!(three, expected);
        assert_eq!(
            told(&[0.0; 2], |_| 0.0),
            [row("", 0.0, false), row("", 0.0, false)]
        );
        assert_eq!(told(&[-1.0], |_| 0.0), [row("", 0.0, false)]);
    }

    /// What the other gains by itself is none of its own.
    #[test]
    fn what_the_other_gains_does_not_count() {
        let first = |set: &[usize]| if set.contains(&1) { 5.0 } else { 0.0 };
        assert_eq!(
            told(&[5.0, 0.0], first),
            [row("", 0.0, true), row("", 0.0, false)]
        );
        let both = |set: &[usize]| if set == [1, 2] { 9.0 } else { 5.0 };
        assert_eq!(
            told(&[5.0, 0.0], both),
            [row("", 0.0, true), row("rc1", 4.0, true)]
        );
    }
}
