//! Picture of a finding's loss by rank.

use laggard_report::units::{count, duration};
use laggard_report::{Bottleneck, RankClass, Report, words};
use maud::{Markup, html};

use crate::picture::{px, rank_ticks, time_axis};
use crate::text::{amount, sentence};

/// Size of the picture, and position of the columns.
const SIZE: (f64, f64) = (560.0, 190.0);
const LEFT: f64 = 62.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;
/// Most classes in a report.
const CLASSES: usize = 256;
/// Most ranks with a column each.
const FEW: u64 = 64;
/// Most columns with a text of their own.
const TOLD: usize = 40;

/// A column: successive ranks that lost time.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    first: u32,
    last: u32,
    /// Mean over all ranks of the column.
    mean: f64,
    /// Smallest and largest loss of one of its ranks.
    range: Option<(f64, f64)>,
}

/// The picture.
pub fn figure(report: &Report, found: &Bottleneck) -> Markup {
    let columns = columns(found);
    let ranks = ranks_of_run(report, &columns);
    html! {
        @if !columns.is_empty() {
            figure {
                h3 { "Lost time over ranks" }
                @let without = without(found, &columns, ranks);
                (picture(&columns, &without, ranks, &describe(found)))
                figcaption { (caption(found, &columns, ranks)) }
            }
        }
    }
}

fn columns(found: &Bottleneck) -> Vec<Column> {
    if !found.rank_classes.is_empty() {
        return found
            .rank_classes
            .iter()
            .take(CLASSES)
            .map(of_class)
            .collect();
    }
    let mut columns: Vec<Column> = found
        .ranks
        .iter()
        .map(|share| Column {
            first: share.rank,
            last: share.rank,
            mean: amount(share.severity_s),
            range: None,
        })
        .collect();
    columns.sort_by_key(|column| column.first);
    columns
}

fn of_class(class: &RankClass) -> Column {
    let width = u64::from(class.last_rank.saturating_sub(class.first_rank)) + 1;
    // Ranks without loss are the minimum.
    let is_whole = u64::from(class.ranks) >= width;
    let least = if is_whole { amount(class.least_s) } else { 0.0 };
    Column {
        first: class.first_rank,
        last: class.last_rank.max(class.first_rank),
        mean: amount(class.severity_s) / width as f64,
        range: (width > 1).then(|| (least, amount(class.most_s).max(least))),
    }
}

/// Number of ranks on the axis: those of the run and all drawn ones.
fn ranks_of_run(report: &Report, columns: &[Column]) -> u64 {
    let drawn = columns
        .iter()
        .map(|column| u64::from(column.last) + 1)
        .max();
    drawn.unwrap_or(0).max(report.run.ranks.into())
}

/// Ranks that lost nothing, as ranges; none if that is not known.
fn without(found: &Bottleneck, columns: &[Column], ranks: u64) -> Vec<(u32, u32)> {
    if found.rank_classes.is_empty() && is_cut(found) {
        return Vec::new();
    }
    let (mut gaps, mut next) = (Vec::new(), 0);
    let ends = columns
        .iter()
        .map(|column| (u64::from(column.first), u64::from(column.last)));
    for (first, last) in ends.chain([(ranks, ranks)]) {
        if first > next {
            gaps.push((next as u32, (first - 1) as u32));
        }
        next = next.max(last + 1);
    }
    // Few ranks have a column each.
    match ranks <= FEW {
        true => gaps
            .iter()
            .flat_map(|&(a, b)| (a..=b).map(|rank| (rank, rank)))
            .collect(),
        false => gaps,
    }
}

/// Ranks that lost time, if all are known.
fn losers(found: &Bottleneck, columns: &[Column]) -> Option<u64> {
    match found.rank_classes.is_empty() {
        true => (!is_cut(found)).then_some(columns.len() as u64),
        false => Some(
            found
                .rank_classes
                .iter()
                .map(|class| u64::from(class.ranks))
                .sum(),
        ),
    }
}

fn describe(found: &Bottleneck) -> String {
    sentence(&format!("Time lost by {}", words::ranks(found, 4)))
}

fn caption(found: &Bottleneck, columns: &[Column], ranks: u64) -> String {
    let worst = found.ranks.first();
    let mut text = worst.map_or(String::new(), |worst| {
        format!(
            "Most by rank {}: {}.",
            worst.rank,
            duration(worst.severity_s)
        )
    });
    if let Some(some) = losers(found, columns).filter(|&some| some < ranks) {
        let (some, all) = (count(some), count(ranks));
        text.push_str(&format!(
            " {some} of {all} ranks lost time, the others none."
        ));
    }
    let width = columns
        .iter()
        .map(|column| u64::from(column.last - column.first) + 1)
        .max()
        .unwrap_or(1);
    if width > 1 {
        text.push_str(&format!(
            " Columns are means over {width} ranks, lines go from the least to the most of one of \
             these."
        ));
    } else if is_cut(found) {
        text.push_str(&format!(
            " Only the {} ranks that lost most.",
            found.ranks.len()
        ));
    }
    text
}

/// Whether more ranks lost time than are listed.
fn is_cut(found: &Bottleneck) -> bool {
    let listed: f64 = found
        .ranks
        .iter()
        .map(|share| amount(share.severity_s))
        .sum();
    listed < amount(found.severity_s) * 0.999_999
}

fn picture(columns: &[Column], without: &[(u32, u32)], ranks: u64, words: &str) -> Markup {
    let most = columns
        .iter()
        .map(|column| column.range.map_or(column.mean, |range| range.1));
    let most = most.fold(0.0, f64::max);
    let (wide, high) = (SIZE.0 - LEFT - RIGHT, SIZE.1 - TOP - BOTTOM);
    let x = |rank: f64| LEFT + rank / ranks.max(1) as f64 * wide;
    let y = |time: f64| TOP + high - if most > 0.0 { time / most * high } else { 0.0 };
    let bottom = TOP + high;
    html! {
        svg viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) role="img" aria-label=(words) {
            (time_axis(most, (LEFT, SIZE.0 - RIGHT), y, 4))
            @for (first, last) in without {
                @let (from, to) = (x((*first).into()), x(f64::from(*last) + 1.0));
                @let gap = ((to - from) * 0.12).min(4.0);
                rect.none x=(px(from + gap)) y=(px(bottom - 3.0))
                    width=(px((to - from - 2.0 * gap).max(1.0))) height="3" {
                    title { (words::ranks_of_set(&format!("{first}-{last}"), 1)) ": nothing lost" }
                }
            }
            @for column in columns {
                @let (from, to) = (x(column.first.into()), x(f64::from(column.last) + 1.0));
                @let gap = ((to - from) * 0.12).min(4.0);
                rect.lost x=(px(from + gap)) y=(px(y(column.mean)))
                    width=(px((to - from - 2.0 * gap).max(1.0))) height=(px(bottom - y(column.mean))) {
                    @if columns.len() <= TOLD {
                        title { (told(column)) }
                    }
                }
                @if let Some((least, most)) = column.range {
                    @let middle = (from + to) / 2.0;
                    line.range x1=(px(middle)) x2=(px(middle)) y1=(px(y(least))) y2=(px(y(most))) {}
                }
            }
            line.axis x1=(px(LEFT)) x2=(px(SIZE.0 - RIGHT)) y1=(px(bottom)) y2=(px(bottom)) {}
            @for rank in rank_ticks(ranks, 8) {
                text.tick.middle x=(px(x(rank as f64 + middle_of(ranks)))) y=(px(bottom + 15.0)) { (rank) }
            }
            text.tick.middle x=(px(LEFT + wide / 2.0)) y=(px(SIZE.1 - 4.0)) { "rank" }
        }
    }
}

/// Few ranks: the number stands below the middle of the column; many: below its start.
fn middle_of(ranks: u64) -> f64 {
    if ranks <= FEW { 0.5 } else { 0.0 }
}

fn told(column: &Column) -> String {
    let ranks = words::ranks_of_set(&format!("{}-{}", column.first, column.last), 1);
    format!("{ranks}: {}", duration(column.mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_report::RankShare;

    fn lost(ranks: &[u32], severity_s: f64) -> Bottleneck {
        let share = |&rank: &u32| RankShare {
            rank,
            severity_s: 1.0,
            instances: 1,
            ..RankShare::default()
        };
        Bottleneck {
            ranks: ranks.iter().map(share).collect(),
            severity_s,
            ..Bottleneck::default()
        }
    }

    #[test]
    fn ranks_that_lost_nothing_are_drawn_too() {
        let found = lost(&[1, 2, 5], 3.0);
        let columns = columns(&found);
        let single =
            |ranks: &[u32]| -> Vec<(u32, u32)> { ranks.iter().map(|&rank| (rank, rank)).collect() };
        assert_eq!(without(&found, &columns, 8), single(&[0, 3, 4, 6, 7]));
        assert_eq!(without(&found, &columns, 100), [(0, 0), (3, 4), (6, 99)]);
        let said = caption(&found, &columns, 8);
        assert!(
            said.contains("3 of 8 ranks lost time, the others none."),
            "{said}"
        );
        // Of others nothing is known.
        let cut = lost(&[1, 2, 5], 7.0);
        assert_eq!(without(&cut, &columns, 8), []);
        assert!(caption(&cut, &columns, 8).contains("Only the 3 ranks that lost most."));
    }
}
