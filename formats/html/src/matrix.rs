//! Who sends whom, and who waits for whom, as a matrix of ranks.

use std::cmp::Reverse;

use laggard_report::units::{count, size};
use laggard_report::{MatrixCell, RankMatrix, Report, words};
use maud::{Markup, html};

use crate::listing::{number, time};
use crate::picture::{px, rank_ticks};
use crate::text::amount;

/// Most cells.
const CELLS: usize = 4096;
/// Most rows that are drawn here; more are drawn by the script, as points of a canvas.
const ROWS: u64 = 256;
/// Most rows of a canvas.
const POINTS: u64 = 4096;
/// Most cells listed as numbers, by bytes and by waiting.
const LISTED: usize = 25;
/// Length of a side, room for labels, and the largest side of a cell.
const SIDE: f64 = 360.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 18.0;
const CELL: f64 = 28.0;
/// Steps of the shade.
const SHADES: usize = 8;

/// What a cell shows: its id, its name, and its amount.
type Metric = (&'static str, &'static str, fn(&MatrixCell) -> f64);

const METRICS: [Metric; 3] = [
    ("waiting", "Waiting", |cell| cell.waiting_s),
    ("bytes", "Bytes", |cell| cell.bytes as f64),
    ("messages", "Messages", |cell| cell.messages as f64),
];

/// The section, if there is anything.
pub fn section(report: &Report) -> Markup {
    let Some(matrix) = report.rank_matrix.as_ref() else {
        return html! {};
    };
    let cells = &matrix.cells[..matrix.cells.len().min(CELLS)];
    let has = |metric: &&Metric| cells.iter().any(|cell| metric.2(cell) > 0.0);
    let metrics: Vec<&Metric> = METRICS.iter().filter(has).collect();
    let Some(first) = metrics.first() else {
        return html! {};
    };
    let rows = rows(report, matrix);
    html! {
        section #matrix aria-labelledby="matrix-title" {
            h2 #matrix-title { "Who with whom" }
            p.soft {
                "A row is who waits or sends, a column whom for. The darker, the more."
                @if matrix.ranks_per_cell > 1 {
                    " A row is " (matrix.ranks_per_cell) " successive ranks."
                }
            }
            form.filter hidden data-of-matrix aria-label="Matrix" {
                label {
                    "Show "
                    select name="metric" {
                        @for (id, title, _) in &metrics { option value=(id) { (title) } }
                    }
                }
                output role="status" {}
            }
            figure.matrix data-rows=(rows) data-ranks=(matrix.ranks_per_cell) data-cells=(data(cells)) {
                @if rows <= ROWS {
                    (drawn(cells, &metrics, (rows, matrix.ranks_per_cell)))
                } @else {
                    canvas hidden width=(rows) height=(rows) role="img" aria-label=(told(cells, first)) {}
                    noscript { p { "Its picture needs the page's script." } }
                }
            }
            details {
                summary { "In numbers" }
                (table(cells, matrix.ranks_per_cell))
            }
        }
    }
}

/// Rows and columns: those of the run, and all that are drawn.
fn rows(report: &Report, matrix: &RankMatrix) -> u64 {
    let last = matrix.cells.iter().map(|cell| cell.from.max(cell.to));
    let ranks = last.map(|rank| u64::from(rank) + 1).max().unwrap_or(0);
    let ranks = ranks.max(report.run.ranks.into());
    ranks
        .div_ceil(matrix.ranks_per_cell.max(1).into())
        .min(POINTS)
}

/// Row, column, messages, bytes and ns of each cell, for the script.
fn data(cells: &[MatrixCell]) -> String {
    let of = |cell: &MatrixCell| {
        let ns = (amount(cell.waiting_s) * 1e9).round();
        let MatrixCell {
            from,
            to,
            messages,
            bytes,
            ..
        } = cell;
        format!("{from} {to} {messages} {bytes} {ns}")
    };
    cells.iter().map(of).collect::<Vec<_>>().join(",")
}

/// Which shade an amount has, from 1; what is there is seen.
fn shade(value: f64, most: f64) -> usize {
    match amount(value) {
        value if value > 0.0 && most > 0.0 => {
            ((value / most * SHADES as f64).ceil() as usize).clamp(1, SHADES)
        }
        _ => 0,
    }
}

fn most(cells: &[MatrixCell], (_, _, of): &Metric) -> f64 {
    cells
        .iter()
        .map(|cell| amount(of(cell)))
        .fold(0.0, f64::max)
}

fn drawn(cells: &[MatrixCell], metrics: &[&Metric], (rows, ranks): (u64, u32)) -> Markup {
    let step = (SIDE / rows.max(1) as f64).min(CELL);
    let side = step * rows as f64;
    let at = |rank: u32| f64::from(rank / ranks.max(1)) * step;
    let path = |metric: &Metric, wanted: usize| {
        let most = most(cells, metric);
        let of = cells
            .iter()
            .filter(|cell| shade(metric.2(cell), most) == wanted);
        let of = of.filter(|cell| at(cell.from.max(cell.to)) < side);
        let side = px(step);
        let square = |cell: &MatrixCell| {
            let (x, y) = (px(LEFT + at(cell.to)), px(TOP + at(cell.from)));
            format!("M{x} {y}h{side}v{side}h-{side}z")
        };
        of.map(square).collect::<String>()
    };
    let (right, bottom) = (LEFT + side, TOP + side);
    html! {
        svg.map viewBox=(format!("0 0 {} {}", px(right + 24.0), px(bottom + 6.0)))
            width=(px(right + 24.0)) height=(px(bottom + 6.0)) {
            rect.ground x=(px(LEFT)) y=(px(TOP)) width=(px(side)) height=(px(side)) {}
            @for (number, metric) in metrics.iter().enumerate() {
                g data-metric=(metric.0) role="img" aria-label=(told(cells, metric)) display=[(number > 0).then_some("none")] {
                    @for shade in 1..=SHADES {
                        @let path = path(metric, shade);
                        @if !path.is_empty() {
                            path class=(if metric.0 == "waiting" { "lost" } else { "communication" })
                                fill-opacity=(shade as f64 / SHADES as f64) d=(path) {}
                        }
                    }
                }
            }
            @for row in rank_ticks(rows, (side / CELL).max(1.0) as u64) {
                @let middle = (row as f64 + 0.5) * step;
                @let rank = row * u64::from(ranks);
                text.tick.end x=(px(LEFT - 6.0)) y=(px(TOP + middle + 4.0)) { (rank) }
                text.tick.middle x=(px(LEFT + middle)) y=(px(TOP - 6.0)) { (rank) }
            }
        }
    }
}

/// The ranks of a row or column.
fn named(first: u32, ranks: u32) -> String {
    let last = first.saturating_add(ranks.max(1) - 1);
    words::ranks_of_set(&format!("{first}-{last}"), 1)
}

/// For those who cannot see it: where most is.
fn told(cells: &[MatrixCell], metric: &Metric) -> String {
    let most = cells.iter().max_by(|a, b| {
        let order = amount(metric.2(a)).total_cmp(&amount(metric.2(b)));
        order.then(Reverse((a.from, a.to)).cmp(&Reverse((b.from, b.to))))
    });
    let most = most.map_or(String::new(), |cell| {
        format!(". Most from rank {} to rank {}", cell.from, cell.to)
    });
    format!("{} by pairs of ranks{most}", metric.1)
}

/// The cells with most waiting and with most bytes.
fn table(cells: &[MatrixCell], ranks: u32) -> Markup {
    let mut listed: Vec<usize> = Vec::new();
    let orders: [fn(&MatrixCell) -> f64; 2] = [|cell| cell.waiting_s, |cell| cell.bytes as f64];
    for of in orders {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by(|a, b| {
            amount(of(&cells[*b]))
                .total_cmp(&amount(of(&cells[*a])))
                .then(a.cmp(b))
        });
        order.truncate(LISTED);
        listed.extend(order);
    }
    let mut seen = vec![false; cells.len()];
    listed.retain(|&at| !std::mem::replace(&mut seen[at], true));
    listed.sort_by(|a, b| {
        let [a, b] = [a, b].map(|&at| amount(cells[at].waiting_s));
        b.total_cmp(&a)
    });
    html! {
        div.scroll {
            table data-sorts {
                caption.unseen { "Pairs of ranks with most waiting, and with most bytes" }
                thead {
                    tr {
                        th scope="col" data-sort="text" { "From" }
                        th scope="col" data-sort="text" { "To" }
                        th.number scope="col" data-sort="number" aria-sort="descending" { "Waited for" }
                        th.number scope="col" data-sort="number" { "Messages" }
                        th.number scope="col" data-sort="number" { "Bytes" }
                    }
                }
                tbody {
                    @for (number_of_row, cell) in listed.iter().map(|&at| &cells[at]).enumerate() {
                        tr data-number=(number_of_row) {
                            td { (named(cell.from, ranks)) }
                            td { (named(cell.to, ranks)) }
                            (time(cell.waiting_s))
                            (number(cell.messages as f64, &count(cell.messages)))
                            (number(cell.bytes as f64, &size(cell.bytes)))
                        }
                    }
                }
            }
        }
        @if cells.len() > listed.len() {
            p.soft { "and " (count((cells.len() - listed.len()) as u64)) " more in the report file" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(from: u32, to: u32, waiting_s: f64) -> MatrixCell {
        MatrixCell {
            from,
            to,
            waiting_s,
            ..MatrixCell::default()
        }
    }

    #[test]
    fn what_is_there_has_a_shade() {
        assert_eq!(shade(1e-9, 1.0), 1);
        assert_eq!(shade(1.0, 1.0), SHADES);
        assert_eq!(shade(0.0, 1.0), 0);
        assert_eq!(shade(f64::NAN, 1.0), 0);
    }

    #[test]
    fn rows_are_those_of_the_run_and_of_all_cells() {
        let matrix = RankMatrix {
            ranks_per_cell: 4,
            cells: vec![cell(0, 40, 1.0)],
        };
        let text = include_bytes!("../../report/tests/example.json");
        let mut report = Report::from_json(text, std::path::Path::new("example.json")).unwrap();
        report.run.ranks = 16;
        assert_eq!(rows(&report, &matrix), 11);
        report.run.ranks = u32::MAX;
        assert_eq!(rows(&report, &matrix), POINTS);
        assert_eq!(
            told(&matrix.cells, &METRICS[0]),
            "Waiting by pairs of ranks. Most from rank 0 to rank 40"
        );
    }
}
