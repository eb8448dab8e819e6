//! The most severe instances of each pattern, at distinct places.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laggard_patterns::PatternId;
use laggard_report::{SevereInstance, seconds};
use laggard_trace::calls;

use crate::basics::ends::NONE;
use crate::findings::fold::Folded;
use crate::findings::places::Places;
use crate::waits::sums::{FindingKey, Worst};

/// Most instances of a pattern.
const MOST: usize = 5;

/// The worst instances of the patterns, the worst first: each is the worst one of its call and place.
pub fn instances<'f>(
    findings: impl Iterator<Item = (&'f FindingKey, &'f Folded)>,
    places: &mut Places,
) -> Vec<(PatternId, Vec<SevereInstance>)> {
    let mut worst: BTreeMap<u8, Vec<(Worst, FindingKey)>> = BTreeMap::new();
    for (key, folded) in findings {
        let of_pattern = worst.entry(key.0).or_default();
        of_pattern.extend(folded.worst.map(|worst| (worst, *key)));
    }
    let mut row = |(worst, (_, operation, path)): &(Worst, FindingKey)| SevereInstance {
        operation: calls::name(*operation).to_owned(),
        location: places.of(*path),
        rank: worst.rank,
        late_rank: (worst.late != NONE).then_some(worst.late),
        start_s: seconds(worst.enter),
        end_s: seconds(worst.leave),
        severity_s: seconds(worst.severity),
    };
    let rows = worst.into_iter().filter_map(|(number, mut all)| {
        all.sort_by_key(|(worst, key)| (Reverse(worst.severity), worst.enter, worst.rank, *key));
        all.truncate(MOST);
        let rows = all.iter().map(&mut row).collect();
        Some((PatternId::from_number(number)?, rows))
    });
    rows.collect()
}
