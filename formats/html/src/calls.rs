//! Where time goes: the tree of call paths with what happened there, over all ranks and of each.

use laggard_report::units::{count, duration, size};
use laggard_report::{Amount, CallNode, Report, Spread};
use maud::{Markup, html};

use crate::text::{amount, name, share};

/// Most nodes and levels.
const NODES: usize = 128;
const LEVELS: usize = 32;
/// Most classes of ranks.
const CLASSES: usize = 64;
/// Nodes with this share of all time show what is below them at first.
const OPEN: f64 = 0.1;
/// Height of a picture over ranks.
const HIGH: f64 = 12.0;

/// A column: what it shows, and how.
struct Column {
    id: &'static str,
    title: &'static str,
    told: fn(f64) -> String,
    of: fn(&CallNode) -> Option<Shown>,
    colour: &'static str,
}

/// An amount, whatever its unit.
struct Shown {
    inclusive: f64,
    exclusive: f64,
    ranks: Option<Spread<f64>>,
}

/// The one whose spread over ranks is shown at first.
const FIRST: &str = "time";

const COLUMNS: [Column; 5] = [
    Column {
        id: "calls",
        title: "Calls",
        told: |value| count(value as u64),
        of: |node| Some(counted(&node.calls)),
        colour: "whole",
    },
    Column {
        id: FIRST,
        title: "Time",
        told: duration,
        of: |node| Some(timed(&node.time_s)),
        colour: "computation",
    },
    Column {
        id: "waiting",
        title: "Waiting",
        told: duration,
        of: |node| Some(timed(&node.waiting_s)),
        colour: "lost",
    },
    Column {
        id: "caused",
        title: "Caused",
        told: duration,
        of: |node| node.caused_s.as_ref().map(timed),
        colour: "late",
    },
    Column {
        id: "bytes",
        title: "Bytes",
        told: |value| size(value as u64),
        of: |node| Some(counted(&node.bytes)),
        colour: "communication",
    },
];

fn timed(of: &Amount<f64>) -> Shown {
    Shown {
        inclusive: amount(of.inclusive),
        exclusive: amount(of.exclusive),
        ranks: of.ranks.clone(),
    }
}

fn counted(of: &Amount<u64>) -> Shown {
    timed(&of.as_f64())
}

/// The section, if the report has a tree.
pub fn section(report: &Report) -> Markup {
    let Some(tree) = report
        .call_tree
        .as_ref()
        .filter(|tree| !tree.nodes.is_empty())
    else {
        return html! {};
    };
    let nodes = &tree.nodes[..tree.nodes.len().min(NODES)];
    let has = |column: &&Column| nodes.iter().any(|node| (column.of)(node).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    let all = amount(nodes[0].time_s.inclusive);
    html! {
        section #calls aria-labelledby="calls-title" {
            h2 #calls-title { "Where time goes" }
            p.soft {
                "Call paths, all ranks together. A number contains what is below; own is what is not. Own "
                "time of a line is computation after a call that it made. Caused is waiting of any rank "
                "that started here."
            }
            (controls(&columns))
            div.scroll {
                table.tree data-tree {
                    caption.unseen { "Call paths and their calls, the most time first" }
                    thead {
                        tr {
                            th scope="col" { "Call path" }
                            @for column in &columns { th.number scope="col" { (column.title) } }
                            @for column in &columns {
                                th scope="col" data-spread=(column.id) hidden[column.id != FIRST] {
                                    (column.title) " by rank"
                                }
                            }
                        }
                    }
                    tbody {
                        @for (node, level) in nodes.iter().zip(levels(nodes)) {
                            (row(node, level, &columns, all))
                        }
                    }
                }
            }
            @if tree.ranks_per_class > 1 {
                p.soft {
                    "Columns over ranks are means of " (tree.ranks_per_class)
                    " successive ranks; least, median and most are of single ranks."
                }
            }
        }
    }
}

/// Shown by the script.
fn controls(columns: &[&Column]) -> Markup {
    html! {
        form.filter hidden data-of-tree aria-label="Call paths" {
            label {
                "By rank "
                select name="spread" {
                    @for column in columns {
                        option value=(column.id) selected[column.id == FIRST] { (column.title) }
                    }
                }
            }
            button type="button" hidden value="open" { "Open all" }
            button type="button" hidden { "Close all" }
        }
    }
}

/// How deep each node is, from 1.
fn levels(nodes: &[CallNode]) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::new();
    for node in nodes {
        let parent = node.parent.and_then(|parent| levels.get(parent as usize));
        levels.push(parent.map_or(1, |level| (level + 1).min(LEVELS)));
    }
    levels
}

fn row(node: &CallNode, level: usize, columns: &[&Column], all: f64) -> Markup {
    let is_open = share(node.time_s.inclusive, all) >= OPEN;
    html! {
        tr data-level=(level) data-open[is_open] {
            th scope="row" {
                @for _ in 1..level { span.in {} }
                span.node { (title(node)) }
            }
            @for column in columns { (number(column, (column.of)(node))) }
            @for column in columns {
                td.spread data-spread=(column.id) hidden[column.id != FIRST] {
                    @if let Some(ranks) = (column.of)(node).and_then(|shown| shown.ranks) {
                        (spread(column, &ranks))
                    }
                }
            }
        }
    }
}

fn title(node: &CallNode) -> Markup {
    html! {
        @match node.kind.as_str() {
            "run" => { "all" }
            "rest" => span.soft { "everything else" }
            "call" => span.code { (name(&node.name)) }
            _ => { (name(&node.name)) }
        }
    }
}

fn number(column: &Column, shown: Option<Shown>) -> Markup {
    html! {
        @match shown {
            Some(Shown { inclusive, exclusive, .. }) => {
                td.number data-value=(inclusive) data-own=(exclusive) {
                    @if inclusive > 0.0 { ((column.told)(inclusive)) }
                    @if exclusive > 0.0 && exclusive < inclusive {
                        div.soft { "own " ((column.told)(exclusive)) }
                    }
                }
            }
            None => td {}
        }
    }
}

/// Least, median and most of a rank, and a picture of all.
fn spread(column: &Column, ranks: &Spread<f64>) -> Markup {
    let classes = &ranks.classes[..ranks.classes.len().min(CLASSES)];
    let [min, median, max] = [ranks.min, ranks.median, ranks.max].map(amount);
    let most = format!("most by rank {}", ranks.max_rank);
    html! {
        svg viewBox=(format!("0 0 {} {HIGH}", classes.len().max(1))) preserveAspectRatio="none"
            role="img" aria-label=(most) {
            title { (most) }
            path class=(column.colour) d=(bars(classes, max)) {}
        }
        div.soft {
            ((column.told)(min)) " – " ((column.told)(median)) " – " ((column.told)(max))
            ", rank " (ranks.max_rank)
        }
    }
}

/// Bars side by side, `most` is the highest.
fn bars(values: &[f64], most: f64) -> String {
    let tops = values
        .iter()
        .map(|&value| HIGH - (share(value, most) * HIGH * 10.0).round() / 10.0);
    let bars = tops.map(|top| format!("V{top}h1"));
    format!("M0 {HIGH}{}V{HIGH}z", bars.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_values() {
        assert_eq!(bars(&[0.0, 2.0, 1.0], 2.0), "M0 12V12h1V0h1V6h1V12z");
        assert_eq!(bars(&[f64::NAN], 0.0), "M0 12V12h1V12z");
    }

    #[test]
    fn levels_of_odd_trees_are_bounded() {
        let node = |parent| CallNode {
            parent,
            ..CallNode::default()
        };
        let nodes = [None, Some(0), Some(1), Some(0), Some(9), Some(5)];
        assert_eq!(levels(&nodes.map(node)), [1, 2, 3, 2, 1, 1]);
    }
}
