//! Regressions, for tests that should fail on them.

use laggard_report::layout::{GLUE, duration, place};

use super::{BottleneckRow, Comparison, RegionRow};
use crate::noise::{Change, LEAST_PERCENT, Sample, Verdict};

/// Something slower than in the first revision: beyond the noise of the repeats, and by enough to
/// matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Position of the slower revision.
    pub revision: usize,
    /// Its name, with both times, in words.
    pub what: String,
}

impl Comparison {
    /// Regressions: of the wall time, a bottleneck, or a region. A difference counts if it is worse
    /// beyond the noise and by `percent` of the first revision's time or more. For a bottleneck or
    /// region it must also be [`LEAST_PERCENT`] of all time or more: every row is tested by itself,
    /// and of many small ones some would seem to have changed.
    ///
    /// In order of revisions, whole runs first.
    pub fn regressions(&self, percent: f64) -> Vec<Regression> {
        let later = 1..self.revisions.len();
        let of_revision = |at: usize| {
            let slower = self.rows(at).filter(move |row| row.is_slower(at, percent));
            slower.map(move |row| Regression {
                revision: at,
                what: row.in_words(at),
            })
        };
        later.flat_map(of_revision).collect()
    }

    /// All that may have become slower, whole runs first.
    pub(super) fn rows(&self, at: usize) -> impl Iterator<Item = Row<'_>> {
        let all = self.all_time() * LEAST_PERCENT / 100.0;
        let wall = self.totals.iter().find(|total| total.id == "wall_time_s");
        let wall = wall.into_iter().map(|total| Row {
            name: "the run".to_owned(),
            values: &total.values,
            changes: &total.changes,
            least: 0.0,
        });
        let bottlenecks = self.bottlenecks.iter().map(move |row| Row {
            name: bottleneck(row, at),
            values: &row.lost_s,
            changes: &row.changes,
            least: all,
        });
        let regions = self.regions.iter().map(move |row| Row {
            name: region(row, at),
            values: &row.inclusive_s,
            changes: &row.changes,
            least: all,
        });
        wall.chain(bottlenecks).chain(regions)
    }

    /// Time of all ranks together in the first revision, s.
    fn all_time(&self) -> f64 {
        let wall = self.totals.iter().find(|total| total.id == "wall_time_s");
        let ranks = self.revisions.first().map_or(0, |first| first.ranks);
        let wall = wall.map_or(0.0, |total| total.values[0].median);
        wall * f64::from(ranks)
    }
}

/// A time over all revisions.
pub(super) struct Row<'c> {
    pub(super) name: String,
    pub(super) values: &'c [Sample],
    pub(super) changes: &'c [Change],
    /// Least difference that counts, s.
    least: f64,
}

impl Row<'_> {
    pub(super) fn is_slower(&self, at: usize, percent: f64) -> bool {
        let change = &self.changes[at - 1];
        change.verdict == Verdict::Worse
            && change.difference >= self.least
            // A new time exceeds any percentage of zero.
            && change.percent.is_none_or(|more| more >= percent)
    }

    pub(super) fn in_words(&self, at: usize) -> String {
        let [before, after] = [0, at].map(|of| duration(self.values[of].median));
        let more = self.changes[at - 1].percent;
        let more = more.map_or("new".to_owned(), |more| format!("+{more:.1} %"));
        let text = format!("{}: {before} before, {after} now ({more})", self.name);
        text.replace(GLUE, " ")
    }
}

/// A bottleneck by its name and place in a revision, or its last place.
fn bottleneck(row: &BottleneckRow, at: usize) -> String {
    let of = row.places.get(at).and_then(Option::as_ref);
    let of = of.or_else(|| row.places.iter().flatten().next_back());
    let of = of.map_or_else(String::new, |found| {
        format!(" at {}", place(&found.location))
    });
    format!("{} in {}{of}", row.name, row.operation)
}

fn region(row: &RegionRow, at: usize) -> String {
    let name = row.names.get(at).and_then(Option::as_ref);
    let name = name.or_else(|| row.names.iter().flatten().next_back());
    format!("{} {}", row.kind, name.map_or("", String::as_str))
}

#[cfg(test)]
mod tests {
    use crate::compare::{Options, compare};
    use crate::set::Run;
    use crate::testing::{add_region, add_wait, run};

    /// Repeats of a run with these wall times, s, with a loss in a barrier and time in a region.
    fn repeats(name: &str, walls: &[f64], lost: f64, solve: f64) -> Vec<Run> {
        let runs = walls.iter().enumerate().map(|(at, &wall)| {
            let mut run = run(&format!("{name}-{at}.json"), wall);
            // Repeats differ by a hundredth.
            let noise = 1.0 + 0.01 * at as f64;
            add_wait(&mut run.report, "solve", 42, lost * noise, lost / 2.0);
            add_region(&mut run.report, "solve", solve * noise);
            run
        });
        runs.collect()
    }

    fn of(revisions: Vec<Vec<Run>>, percent: f64) -> Vec<(usize, String)> {
        let comparison = compare(revisions, &Options::default()).unwrap();
        let found = comparison.regressions(percent).into_iter();
        found.map(|found| (found.revision, found.what)).collect()
    }

    const WALLS: [f64; 4] = [10.0, 10.1, 10.2, 10.3];

    #[test]
    fn what_is_as_fast_or_faster_is_none() {
        let before = || repeats("before", &WALLS, 4.0, 8.0);
        assert_eq!(
            of(vec![before(), repeats("same", &WALLS, 4.0, 8.0)], 0.0),
            []
        );
        let faster = WALLS.map(|wall| wall * 0.8);
        assert_eq!(
            of(vec![before(), repeats("after", &faster, 2.0, 4.0)], 0.0),
            []
        );
    }

    #[test]
    fn each_that_is_slower_is_named_with_its_revision() {
        let slower = WALLS.map(|wall| wall * 1.2);
        let revisions = || {
            vec![
                repeats("before", &WALLS, 4.0, 8.0),
                repeats("same", &WALLS, 4.0, 8.0),
                repeats("after", &slower, 8.0, 16.0),
            ]
        };
        let found = of(revisions(), 5.0);
        let expected = [
            "the run: 10.1 s before, 12.2 s now (+20.0 %)",
            "Wait at barrier in MPI_Barrier at app.c:42",
            "region solve: ",
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((revision, what), start) in found.iter().zip(expected) {
            assert!(*revision == 2 && what.starts_with(start), "{found:?}");
        }
        // The run is slower by less, the region and its bottleneck by more.
        let found = of(revisions(), 30.0);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(of(revisions(), 150.0), []);
    }

    #[test]
    fn what_is_new_counts_if_it_is_not_little() {
        let with = |name: &str, lost: f64| {
            let mut runs = WALLS.map(|wall| run(&format!("{name}-{wall}.json"), wall));
            for run in &mut runs {
                if lost > 0.0 {
                    add_wait(&mut run.report, "solve", 42, lost, lost);
                }
            }
            runs.to_vec()
        };
        // 1 % of all time is 0.4 s.
        assert_eq!(of(vec![with("a", 0.0), with("b", 0.3)], 5.0), []);
        let found = of(vec![with("a", 0.0), with("b", 0.6)], 500.0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1.ends_with("(new)"), "{found:?}");
    }

    #[test]
    fn what_is_within_the_noise_is_none() {
        let noisy = [9.0, 10.0, 11.0, 12.0];
        let found = of(
            vec![
                repeats("before", &noisy, 4.0, 8.0),
                repeats("after", &noisy.map(|wall| wall * 1.06), 4.0, 8.0),
            ],
            5.0,
        );
        assert_eq!(found, []);
    }
}
