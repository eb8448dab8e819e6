//! A comparison as bars.

use laggard_report::layout::{GLUE, base_name, duration, place, wrap};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::Comparison;
use crate::noise::Sample;
use crate::plot::{Area, COLORS, Drawn, GRID, INK, PlotError, drawable, font, label, legend, svg};

/// Width of the picture.
const WIDTH: u32 = 960;
/// From the left edge to the bars.
const NAMES: u32 = 330;
/// Letters of a name.
const LETTERS: usize = 50;
/// Height of a bar.
const BAR: u32 = 16;
/// Around a group of bars.
const GAP: u32 = 14;
/// Above and below the bars of a panel: title, axis.
const AROUND: u32 = 86;
/// Bottlenecks drawn.
const MOST: usize = 12;

/// Share of the largest bottleneck below which none is drawn.
const LEAST: f64 = 0.01;

/// A group of bars: its name in lines, and a value for each revision.
type Group = (Vec<String>, Vec<Sample>);

/// Wall time, time by kind, and losses of bottlenecks, by revision, as SVG.
///
/// # Errors
/// If the drawing library fails.
pub fn draw(comparison: &Comparison) -> Result<String, PlotError> {
    let total = |id: &str| {
        let found = comparison.totals.iter().find(|total| total.id == id);
        found.map(|total| (vec![total.name.to_owned()], total.values.clone()))
    };
    let wall: Vec<Group> = total("wall_time_s").into_iter().collect();
    let ids = [
        "computation_s",
        "communication_s",
        "synchronization_s",
        "io_s",
        "wait_s",
    ];
    let kinds: Vec<Group> = ids.iter().filter_map(|id| total(id)).collect();
    let most = |values: &[Sample]| values.iter().map(|v| v.median).fold(0.0, f64::max);
    let largest = comparison.bottlenecks.first();
    let least = largest.map_or(0.0, |row| LEAST * most(&row.lost_s));
    let roots = comparison.root_causes.iter().flatten();
    let roots = roots
        .filter(|row| most(&row.severity_s) >= least)
        .take(MOST);
    let roots: Vec<Group> = roots
        .map(|row| {
            let found = row.places.iter().flatten().next_back();
            (
                lines(found.map_or("", |found| &found.text)),
                row.severity_s.clone(),
            )
        })
        .collect();
    let rows = comparison.bottlenecks.iter();
    let rows = rows.filter(|row| most(&row.lost_s) >= least).take(MOST);
    let bottlenecks: Vec<Group> = rows
        .map(|row| {
            let at = row.places.iter().flatten().next_back();
            let at = at.map_or_else(String::new, |found| place(&found.location));
            let name = vec![format!("{} in {}", row.name, row.operation), at];
            (name, row.lost_s.clone())
        })
        .collect();
    let regions = comparison.regions.iter().take(MOST);
    let regions: Vec<Group> = regions
        .map(|row| {
            let name = row.names.iter().flatten().next_back();
            (
                vec![name.cloned().unwrap_or_default()],
                row.inclusive_s.clone(),
            )
        })
        .collect();
    let panels = [
        ("Wall time", wall),
        ("All ranks together", kinds),
        ("Root causes: waiting that they start", roots),
        ("Bottlenecks: time lost", bottlenecks),
        ("Regions: time from begin to end", regions),
    ];
    let panels: Vec<(&str, Vec<Group>)> = panels
        .into_iter()
        .filter(|panel| !panel.1.is_empty())
        .collect();
    let revisions = comparison.revisions.len() as u32;
    let height = |groups: &[Group]| AROUND + groups.len() as u32 * (revisions * BAR + GAP);
    let heights: Vec<u32> = panels.iter().map(|panel| height(&panel.1)).collect();
    let head = 64;
    svg((WIDTH, head + heights.iter().sum::<u32>()), |area| {
        let (top, mut rest) = area.split_vertically(head);
        let title = format!("{}: revisions", base_name(&comparison.revisions[0].program));
        top.draw(&Text::new(
            label(&title, 80),
            (16, 18),
            font(18, HPos::Left),
        ))?;
        let labels = comparison.revisions.iter().enumerate();
        let entries: Vec<(String, RGBColor)> = labels
            .map(|(at, revision)| (label(&revision.label, 20), COLORS[at % COLORS.len()]))
            .collect();
        legend(&top, (16, 44), &entries)?;
        for ((title, groups), height) in panels.iter().zip(&heights) {
            let (upper, lower) = rest.split_vertically(*height);
            panel(&upper, title, groups)?;
            rest = lower;
        }
        Ok(())
    })
}

/// At most two lines of a name, broken between words.
fn lines(text: &str) -> Vec<String> {
    let mut lines = wrap(text, LETTERS).into_iter();
    let first: Vec<String> = lines.next().into_iter().collect();
    let rest = lines.collect::<Vec<_>>().join(" ");
    first
        .into_iter()
        .chain(Some(rest).filter(|rest| !rest.is_empty()))
        .collect()
}

/// One panel: groups of horizontal bars over one axis.
fn panel(area: &Area<'_>, title: &str, groups: &[Group]) -> Drawn {
    let values = || groups.iter().flat_map(|group| &group.1);
    drawable(values().flat_map(|value| [value.min, value.max]))?;
    let values = values();
    let most = values.map(|value| value.max).fold(0.0, f64::max).max(1e-9);
    let bars = groups.first().map_or(1, |group| group.1.len()) as f64;
    // In units of a bar.
    let group_height = bars + f64::from(GAP) / f64::from(BAR);
    let rows = groups.len() as f64 * group_height;
    area.draw(&Text::new(title.to_owned(), (16, 22), font(15, HPos::Left)))?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(38)
        .margin_right(80)
        .margin_bottom(8)
        .set_label_area_size(LabelAreaPosition::Left, NAMES)
        .set_label_area_size(LabelAreaPosition::Bottom, AROUND - 38 - 8)
        .build_cartesian_2d(0.0..most, rows..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(6)
        .x_label_formatter(&|seconds| duration(*seconds).replace(GLUE, " "))
        .label_style(font(12, HPos::Center))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .draw()?;
    for (at, (name, values)) in groups.iter().enumerate() {
        let top = at as f64 * group_height + group_height / 2.0 - bars / 2.0;
        for (number, value) in values.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let (upper, lower) = (top + number as f64, top + number as f64 + 0.85);
            let bar = Rectangle::new([(0.0, upper), (value.median, lower)], color.filled());
            chart.draw_series([bar])?;
            let middle = (upper + lower) / 2.0;
            if value.runs.len() > 1 {
                // A whisker from the fastest to the slowest repeat.
                let line = vec![(value.min, middle), (value.max, middle)];
                chart.draw_series([PathElement::new(line, INK)])?;
            }
            let (x, y) = chart.plotting_area().map_coordinate(&(value.max, middle));
            let text = duration(value.median).replace(GLUE, " ");
            let at = area.strip_coord_spec().get_base_pixel();
            let place = (x - at.0 + 5, y - at.1);
            area.draw(&Text::new(text, place, font(11, HPos::Left)))?;
        }
        let middle = (at as f64 + 0.5) * group_height;
        let (_, y) = chart.plotting_area().map_coordinate(&(0.0, middle));
        let y = y - area.strip_coord_spec().get_base_pixel().1;
        for (line, text) in name.iter().enumerate() {
            let above = 8 * (name.len() as i32 - 1);
            let at = (NAMES as i32 - 8, y - above + 16 * line as i32);
            area.draw(&Text::new(label(text, LETTERS), at, font(12, HPos::Right)))?;
        }
    }
    Ok(())
}
