//! Whether a difference is more than noise.
//!
//! Repeats of a run differ. With enough of them a difference is *tested*, two-sided, by the exact
//! Mann-Whitney U test (H. B. Mann and D. R. Whitney, On a test of whether one of two random
//! variables is stochastically larger than the other, Ann. Math. Statist. 18, 1947), as benchstat
//! does. It assumes nothing about the distribution of times, which is never normal. Tied values
//! have the mean of their ranks, and all ways to deal the ranks out are counted. Every row is
//! tested by itself: of twenty unchanged rows one may seem to have changed.
//!
//! With fewer repeats, no test is significant at that level. A difference then has to exceed the
//! *spread* of the repeats. Without repeats the noise is unknown. A difference then has to reach a
//! *threshold*, and remains uncertain.

use serde::Serialize;

/// Significance level: differences that chance gives more often are noise.
pub const ALPHA: f64 = 0.05;
/// Without repeats: least share of the first value, percent, that a difference must have …
pub const THRESHOLD_PERCENT: f64 = 5.0;
/// … and least share of all time, percent.
pub const LEAST_PERCENT: f64 = 1.0;
/// Most runs of both sides for the exact count; beyond, the normal approximation serves.
const EXACT: usize = 60;

/// The evidence for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Only its size: there are no repeats.
    Threshold,
    /// It exceeds the differences of the repeats, which are too few for a test.
    Spread,
    /// The Mann-Whitney U test.
    Test,
}

/// The meaning of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// More than noise, to the better.
    Better,
    /// More than noise, to the worse.
    Worse,
    /// Within the noise, or its estimate.
    Same,
}

/// Values of the repeats of one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// The median; of two in the middle their mean.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// One for each run, in the user's order.
    pub runs: Vec<f64>,
}

impl Sample {
    /// A sample of one value or more.
    pub fn new(runs: Vec<f64>) -> Sample {
        let mut sorted = runs.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() {
            0 => 0.0,
            odd if odd % 2 == 1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Sample {
            median,
            min: sorted.first().copied().unwrap_or(0.0),
            max: sorted.last().copied().unwrap_or(0.0),
            runs,
        }
    }

    fn spread(&self) -> f64 {
        self.max - self.min
    }
}

/// The difference of a revision's value from the first one's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Of the medians.
    pub difference: f64,
    /// The same in percent of the first; absent if that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Its meaning.
    pub verdict: Verdict,
    /// Its evidence.
    pub evidence: Evidence,
    /// Probability of such a difference by chance, if tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Times.
    Less,
    /// Efficiencies.
    More,
}

/// Without repeats: the least difference that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Of the first value, percent.
    pub percent: f64,
    /// In the unit of the values.
    pub least: f64,
}

impl Change {
    /// From `before` to `after`.
    pub fn new(before: &Sample, after: &Sample, aim: Aim, limits: Limits) -> Change {
        let difference = after.median - before.median;
        let percent = (before.median != 0.0).then(|| difference / before.median.abs() * 100.0);
        let (evidence, p) = match evidence(before.runs.len(), after.runs.len()) {
            Evidence::Test => (Evidence::Test, Some(p_value(&before.runs, &after.runs))),
            weaker => (weaker, None),
        };
        let differs = match evidence {
            Evidence::Test => p.is_some_and(|p| p < ALPHA),
            Evidence::Spread => {
                let apart = before.max < after.min || after.max < before.min;
                apart && difference.abs() > before.spread().max(after.spread())
            }
            Evidence::Threshold => {
                let part = before.median.abs() * limits.percent / 100.0;
                let least = limits.least.max(part);
                difference != 0.0 && difference.abs() >= least
            }
        };
        let verdict = match (differs && difference != 0.0, difference < 0.0, aim) {
            (false, ..) => Verdict::Same,
            (true, true, Aim::Less) | (true, false, Aim::More) => Verdict::Better,
            (true, ..) => Verdict::Worse,
        };
        Change {
            difference,
            percent,
            verdict,
            evidence,
            p,
        }
    }
}

/// The evidence that these numbers of runs allow.
pub fn evidence(before: usize, after: usize) -> Evidence {
    if before <= 1 && after <= 1 {
        return Evidence::Threshold;
    }
    // The most extreme of all ways to deal ranks out, and its mirror image.
    match 2.0 / ways(before + after, before) < ALPHA {
        true => Evidence::Test,
        false => Evidence::Spread,
    }
}

/// Binomial coefficient.
fn ways(all: usize, chosen: usize) -> f64 {
    (0..chosen.min(all - chosen)).fold(1.0, |ways, at| ways * (all - at) as f64 / (at + 1) as f64)
}

/// The Mann-Whitney U test, two-sided: the share of all ways to deal the values out to two sides
/// that are at least as extreme as this one.
pub fn p_value(before: &[f64], after: &[f64]) -> f64 {
    let ranks = doubled_ranks(before, after);
    let (own, all) = (before.len(), ranks.len());
    let sum: u64 = ranks[..own].iter().sum();
    // The expected sum of doubled ranks, an integer.
    let expected = own as u64 * (all as u64 + 1);
    let apart = |sum: u64| sum.abs_diff(expected);
    if all > EXACT {
        return normal(&ranks, own, apart(sum) as f64 / 2.0);
    }
    // How many choices of n ranks have each sum.
    let most: u64 = ranks.iter().sum();
    let mut count = vec![vec![0.0_f64; most as usize + 1]; own + 1];
    count[0][0] = 1.0;
    for (at, &rank) in ranks.iter().enumerate() {
        for chosen in (1..=own.min(at + 1)).rev() {
            for sum in (rank as usize..=most as usize).rev() {
                count[chosen][sum] += count[chosen - 1][sum - rank as usize];
            }
        }
    }
    let of_own = count[own].iter().enumerate();
    let unlike: f64 = of_own
        .filter(|(other, _)| apart(*other as u64) >= apart(sum))
        .map(|(_, ways)| ways)
        .sum();
    (unlike / ways(all, own)).min(1.0)
}

/// Twice the ranks of all values, those of `before` first; equal values share their mean.
fn doubled_ranks(before: &[f64], after: &[f64]) -> Vec<u64> {
    let values: Vec<f64> = before.iter().chain(after).copied().collect();
    let rank = |value: &f64| {
        let less = values.iter().filter(|v| *v < value).count() as u64;
        let equal = values.iter().filter(|v| *v == value).count() as u64;
        2 * less + equal + 1
    };
    values.iter().map(rank).collect()
}

/// The test for many values: `apart` is the distance of the sum of ranks from its expectation.
fn normal(doubled: &[u64], own: usize, apart: f64) -> f64 {
    let all = doubled.len() as f64;
    let mean = (all + 1.0) / 2.0;
    let squares = doubled.iter().map(|&r| (r as f64 / 2.0 - mean).powi(2));
    let variance = squares.sum::<f64>() / (all * (all - 1.0)) * own as f64 * (all - own as f64);
    if variance <= 0.0 {
        return 1.0;
    }
    // Continuity correction: sums come in steps of one.
    let z = (apart - 0.5).max(0.0) / variance.sqrt();
    complementary_error(z / std::f64::consts::SQRT_2)
}

/// The complementary error function, to 1.2e-7 (W. H. Press et al., Numerical Recipes, 6.2).
fn complementary_error(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c);
    t * (-x * x + series).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
    }

    #[test]
    fn known_probabilities() {
        // All of one side below all of the other: 2 of C(8, 4) ways.
        near(
            p_value(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]),
            2.0 / 70.0,
        );
        // U = 1 of 4 and 4: 4 of 70.
        near(
            p_value(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0]),
            4.0 / 70.0,
        );
        near(p_value(&[1.0, 4.0], &[2.0, 3.0]), 1.0);
        // Ties: ranks 1, 2.5, 2.5, 4 in 6 ways, sums 3.5 3.5 5 5 6.5 6.5.
        near(p_value(&[1.0, 2.0], &[2.0, 3.0]), 4.0 / 6.0);
        near(p_value(&[5.0; 4], &[5.0; 4]), 1.0);
    }

    #[test]
    fn many_values_are_tested_as_well() {
        let before: Vec<f64> = (0..40).map(f64::from).collect();
        let shifted = |by: f64| before.iter().map(|v| v + by).collect::<Vec<f64>>();
        assert!(p_value(&before, &shifted(20.0)) < 1e-4);
        assert!(p_value(&before, &shifted(0.5)) > 0.8);
        near(p_value(&[1.0; 40], &[1.0; 40]), 1.0);
        // Just below the limit the exact and the approximate value agree.
        let (one, other) = (&before[..30], &shifted(6.5)[..30]);
        let ranks = doubled_ranks(one, other);
        let apart = ranks[..30].iter().sum::<u64>().abs_diff(30 * 61) as f64 / 2.0;
        assert!((p_value(one, other) - normal(&ranks, 30, apart)).abs() < 0.002);
    }

    #[test]
    fn what_repeats_can_tell() {
        assert_eq!(evidence(1, 1), Evidence::Threshold);
        assert_eq!(evidence(3, 3), Evidence::Spread);
        assert_eq!(evidence(1, 3), Evidence::Spread);
        assert_eq!(evidence(4, 4), Evidence::Test);
        assert_eq!(evidence(3, 5), Evidence::Test);
    }

    fn change(before: &[f64], after: &[f64]) -> Change {
        let limits = Limits {
            percent: 5.0,
            least: 0.1,
        };
        let sample = |runs: &[f64]| Sample::new(runs.to_vec());
        Change::new(&sample(before), &sample(after), Aim::Less, limits)
    }

    #[test]
    fn without_repeats_size_alone_counts() {
        let found = change(&[10.0], &[9.0]);
        assert_eq!(found.verdict, Verdict::Better);
        assert_eq!((found.evidence, found.p), (Evidence::Threshold, None));
        near(found.percent.unwrap(), -10.0);
        assert_eq!(change(&[10.0], &[10.4]).verdict, Verdict::Same);
        assert_eq!(change(&[10.0], &[10.6]).verdict, Verdict::Worse);
        // Twice as much as next to nothing.
        assert_eq!(change(&[0.04], &[0.08]).verdict, Verdict::Same);
        let new = change(&[0.0], &[0.2]);
        assert_eq!((new.verdict, new.percent), (Verdict::Worse, None));
        assert_eq!(change(&[0.0], &[0.0]).verdict, Verdict::Same);
    }

    #[test]
    fn few_repeats_have_to_be_apart() {
        assert_eq!(change(&[10.0, 10.2], &[9.5, 9.6]).verdict, Verdict::Better);
        assert_eq!(change(&[10.0, 11.0], &[9.5, 9.9]).verdict, Verdict::Same);
        assert_eq!(change(&[10.0, 11.0], &[9.5, 10.5]).verdict, Verdict::Same);
        assert_eq!(change(&[10.0, 10.2], &[11.0]).verdict, Verdict::Worse);
    }

    #[test]
    fn many_repeats_are_tested() {
        let before = [10.0, 10.1, 10.2, 10.3];
        let found = change(&before, &[10.4, 10.5, 10.6, 10.7]);
        assert_eq!(found.verdict, Verdict::Worse);
        near(found.p.unwrap(), 2.0 / 70.0);
        let noise = change(&before, &[10.05, 10.15, 10.25, 10.35]);
        assert_eq!(noise.verdict, Verdict::Same);
    }

    proptest! {
        #[test]
        fn sides_may_be_exchanged(
            one in prop::collection::vec(0u8..20, 1..8),
            other in prop::collection::vec(0u8..20, 1..8),
        ) {
            let floats = |v: &[u8]| v.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
            let (one, other) = (floats(&one), floats(&other));
            let (p, q) = (p_value(&one, &other), p_value(&other, &one));
            prop_assert!((p - q).abs() < 1e-9 && p > 0.0 && p <= 1.0, "{} {}", p, q);
        }
    }
}
