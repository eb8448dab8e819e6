//! Merged up any tree, answers are those of a flat one.

use std::collections::BTreeMap;

use laggard_comm::filters::{
    CallTree, Classes, Extremes, Filter, First, Histogram, Ranks, Sum, aligned::Aligned,
};
use proptest::prelude::*;

/// Merges parts along a tree with a fan-out, the last agents first.
fn merged<F: Filter + Clone>(parts: &[F], fan_out: usize) -> F {
    let mut parts: Vec<Option<F>> = parts.iter().cloned().map(Some).collect();
    for at in (1..parts.len()).rev() {
        let own = parts[at].take().unwrap();
        parts[(at - 1) / fan_out].as_mut().unwrap().merge(own);
    }
    parts[0].take().unwrap()
}

/// Every tree has the flat answer, which `expected` makes by itself.
fn same<F: Filter + Clone + PartialEq + std::fmt::Debug>(parts: &[F], expected: &F) {
    for fan_out in [1, 2, 3, 7, parts.len()] {
        assert_eq!(&merged(parts, fan_out), expected, "fan-out {fan_out}");
    }
    let mut backwards = parts.to_vec();
    backwards.reverse();
    assert_eq!(&merged(&backwards, 2), expected, "in another order");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_and_extremes(values in proptest::collection::vec(any::<i64>(), 1..40)) {
        let sums: Vec<_> = values.iter().map(|&value| Sum(value)).collect();
        let sum = values.iter().fold(0i64, |sum, value| sum.wrapping_add(*value));
        same(&sums, &Sum(sum));
        let extremes: Vec<_> = (0u32..).zip(&values).map(|(at, &value)| Extremes::of(value, at)).collect();
        let (least, largest) = (values.iter().min().unwrap(), values.iter().max().unwrap());
        let first = |of: &i64| values.iter().position(|value| value == of).unwrap() as u32;
        same(&extremes, &Extremes {
            least: (*least, first(least)),
            largest: (*largest, first(largest)),
        });
    }

    #[test]
    fn histograms(values in proptest::collection::vec(any::<u64>(), 1..40)) {
        let mut all = Histogram::default();
        let parts = values.iter().map(|&value| {
            all.add(value);
            let mut one = Histogram::default();
            one.add(value);
            one
        });
        let parts: Vec<Histogram> = parts.collect();
        same(&parts, &all);
        for value in values {
            let mut one = Histogram::default();
            one.add(value);
            let range = *one.counts.keys().next().unwrap();
            prop_assert!(Histogram::least(range) <= value);
            prop_assert!(value < Histogram::least(range + 1) || Histogram::least(range + 1) == u64::MAX);
        }
    }

    #[test]
    fn concatenations_classes_and_ranks(kinds in proptest::collection::vec(0u64..4, 1..40)) {
        let texts: Vec<BTreeMap<usize, First<String>>> =
            (0..).zip(&kinds).map(|(at, kind)| BTreeMap::from([(at, First(kind.to_string()))])).collect();
        let all = (0..).zip(&kinds).map(|(at, kind)| (at, First(kind.to_string()))).collect();
        same(&texts, &all);
        // The same text, told once.
        let class = |rank, kind: u64| (kind, (Ranks::of(rank), First(kind.to_string())));
        let parts: Vec<Classes<String>> =
            (0..).zip(&kinds).map(|(rank, &kind)| BTreeMap::from([class(rank, kind)])).collect();
        let mut all = Classes::<String>::new();
        for (rank, &kind) in (0..).zip(&kinds) {
            let of = all.entry(kind).or_insert_with(|| class(rank, kind).1);
            of.0.merge(Ranks::of(rank));
        }
        same(&parts, &all);
    }

    #[test]
    fn call_trees(calls in proptest::collection::vec((0u8..3, 0u8..3, any::<i32>()), 1..40)) {
        let path = |one: u8, other: u8| vec![format!("f{one}"), format!("g{other}")];
        let mut all = CallTree::<Sum>::new();
        let parts = (0..).zip(&calls).map(|(rank, &(one, other, time))| {
            let row = (Sum(time.into()), Ranks::of(rank));
            let sums = all.entry(path(one, other)).or_default();
            sums.0.merge(row.0);
            sums.1.merge(row.1.clone());
            BTreeMap::from([(path(one, other), row)])
        });
        let parts: Vec<CallTree<Sum>> = parts.collect();
        same(&parts, &all);
    }

    /// Samples of other lengths than the common intervals: nothing is lost, and the tree does not matter.
    #[test]
    fn intervals_that_partly_overlap(
        tracks in proptest::collection::vec(proptest::collection::vec((1i64..50, 0i64..1000), 1..20), 1..12),
        width in 1i64..30,
    ) {
        let mut total = 0;
        let parts = tracks.iter().map(|track| {
            let (mut of, mut at) = (Aligned::new(0, width), 7);
            for &(length, value) in track {
                of.add((at, at + length), value);
                total += value;
                at += length;
            }
            of
        });
        let parts: Vec<Aligned> = parts.collect();
        let flat = merged(&parts, parts.len());
        same(&parts, &flat);
        prop_assert_eq!(flat.sums().map(|(_, sum)| sum).sum::<i64>(), total);
    }
}

#[test]
fn shares_are_by_overlap() {
    let mut of = Aligned::new(0, 10);
    // A third before 10, two thirds after it.
    of.add((5, 20), 30);
    of.add((20, 21), 4);
    let found: Vec<_> = of.sums().collect();
    assert_eq!(found, [((0, 10), 10), ((10, 20), 20), ((20, 30), 4)]);
    // Only what all know is complete.
    assert_eq!(of.complete_until(), 20);
    let mut other = Aligned::new(0, 10);
    other.add((0, 13), 26);
    of.merge(other);
    assert_eq!(of.complete_until(), 10);
    assert_eq!(of.take_complete(), [((0, 10), 30)]);
    assert_eq!(
        of.sums().collect::<Vec<_>>(),
        [((10, 20), 26), ((20, 30), 4)]
    );
}
