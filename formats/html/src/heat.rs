//! Who waited when: a map of waiting by ranks and time.

use laggard_report::units::{duration, percent};
use laggard_report::{Report, WaitingRanks, words};
use maud::{Markup, html};

use crate::picture::{px, ticks};
use crate::text::{amount, sentence};

/// Width, and where the map begins and ends.
const WIDE: f64 = 1000.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// Room above for the label of a flat first row.
const TOP: f64 = 10.0;
/// Height of all rows, and the least and most of one.
const HIGH: f64 = 320.0;
const ROW: (f64, f64) = (6.0, 22.0);
/// Least distance of labels.
const LABEL: f64 = 13.0;
/// Steps of the shade.
const SHADES: usize = 8;
/// Most rows and parts of the run.
const ROWS: usize = 64;
const PARTS: usize = 200;

/// The section, if root causes were searched.
pub fn section(report: &Report) -> Markup {
    let load = report.parallelism.as_ref();
    let rows = load.map_or(&[][..], |load| {
        &load.waiting[..load.waiting.len().min(ROWS)]
    });
    let length = load.map_or(0.0, |load| amount(load.bins_s) * load.busy.len() as f64);
    let parts = rows.iter().map(|row| row.shares.len()).max().unwrap_or(0);
    html! {
        @if parts > 0 {
            section #waiting aria-labelledby="waiting-title" {
                h2 #waiting-title { "Who waited when" }
                figure {
                    (map(rows, parts.min(PARTS), length))
                    figcaption { (caption(report, rows)) }
                }
            }
        }
    }
}

fn caption(report: &Report, rows: &[WaitingRanks]) -> String {
    let mut text = "Rows are ranks. The darker, the more of their time they waited.".to_owned();
    if (rows.len() as u64) < u64::from(report.run.ranks) {
        text.push_str(" Ranks that waited alike share a row.");
    }
    text
}

/// Which shade a share has; none of less than half a step.
fn shade(share: f64) -> usize {
    (amount(share).min(1.0) * SHADES as f64).round() as usize
}

/// The cells of one shade as a path: those side by side are one.
fn cells(rows: &[WaitingRanks], shade_of: usize, (step, high): (f64, f64)) -> String {
    let mut path = String::new();
    for (at, row) in rows.iter().enumerate() {
        let mut begin = 0;
        let shades = row.shares.iter().take(PARTS).map(|share| shade(*share));
        let shades: Vec<usize> = shades.collect();
        for run in shades.chunk_by(|a, b| a == b) {
            if run[0] == shade_of {
                let x = px(LEFT + begin as f64 * step);
                let (y, wide) = (px(at as f64 * high), px(run.len() as f64 * step));
                path.push_str(&format!("M{x} {y}h{wide}v{}h-{wide}z", px(high)));
            }
            begin += run.len();
        }
    }
    path
}

fn map(rows: &[WaitingRanks], parts: usize, wall: f64) -> Markup {
    let high = (HIGH / rows.len() as f64).clamp(ROW.0, ROW.1);
    let bottom = high * rows.len() as f64;
    let step = (WIDE - LEFT - RIGHT) / parts as f64;
    let x = |time: f64| LEFT + time / wall.max(f64::MIN_POSITIVE) * (WIDE - LEFT - RIGHT);
    let labels = (LABEL / high).ceil() as usize;
    html! {
        svg.map viewBox=(format!("0 -{TOP} {WIDE} {}", TOP + bottom + BOTTOM)) role="img" aria-label=(told(rows)) {
            @for shade in 1..=SHADES {
                @let path = cells(rows, shade, (step, high));
                @if !path.is_empty() {
                    path.lost fill-opacity=(shade as f64 / SHADES as f64) d=(path) {}
                }
            }
            @for (at, row) in rows.iter().enumerate() {
                @let y = at as f64 * high;
                @if at % labels == 0 {
                    text.tick.end x=(px(LEFT - 6.0)) y=(px(y + high / 2.0 + 4.0)) { (label(row)) }
                }
                rect.row x=(px(LEFT)) y=(px(y)) width=(px(WIDE - LEFT - RIGHT)) height=(px(high)) {
                    title { (of_row(row)) }
                }
            }
            line.axis x1=(px(LEFT)) x2=(px(WIDE - RIGHT)) y1=(px(bottom)) y2=(px(bottom)) {}
            @for tick in ticks(wall, 8) {
                @let is_last = x(tick) > WIDE - RIGHT - 20.0;
                text.tick.middle[!is_last].end[is_last] x=(px(x(tick))) y=(px(bottom + 15.0)) { (duration(tick)) }
            }
        }
    }
}

/// `0-3,8`, cut short.
fn label(row: &WaitingRanks) -> String {
    let text = sentence(&row.ranks);
    match text.char_indices().nth(12) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn of_row(row: &WaitingRanks) -> String {
    let shares: f64 = row.shares.iter().map(|share| amount(*share)).sum();
    let mean = shares / row.shares.len().max(1) as f64;
    let ranks = words::ranks_of_set(&row.ranks, 8);
    sentence(&format!("{ranks}: {} of the time", percent(100.0 * mean)))
}

/// For those who cannot see it: who waited most.
fn told(rows: &[WaitingRanks]) -> String {
    let sum = |row: &WaitingRanks| row.shares.iter().map(|share| amount(*share)).sum::<f64>();
    let most = rows.iter().max_by(|a, b| sum(a).total_cmp(&sum(b)));
    let most = most.map_or(String::new(), of_row);
    format!("Waiting by ranks and time. Most of it: {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ranks: &str, shares: &[f64]) -> WaitingRanks {
        WaitingRanks {
            ranks: ranks.to_owned(),
            locations: 1,
            shares: shares.to_vec(),
        }
    }

    #[test]
    fn cells_of_a_shade_side_by_side_are_one() {
        let rows = [row("0", &[1.0, 1.0, 0.0]), row("1", &[0.5, 0.01, 1.0])];
        assert_eq!(
            cells(&rows, 8, (10.0, 6.0)),
            "M110 0h20v6h-20zM130 6h10v6h-10z"
        );
        assert_eq!(cells(&rows, 4, (10.0, 6.0)), "M110 6h10v6h-10z");
        // What is not worth a shade is left white.
        assert_eq!(shade(0.01), 0);
        assert_eq!(shade(f64::NAN), 0);
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(label(&row("0-3,8", &[])), "0-3,8");
        assert_eq!(label(&row("0,2,4,6,8,10,12,14", &[])), "0,2,4,6,8,10…");
    }
}
