//! Scaling as a picture: observed against ideal speedup, and time by part.

use laggard_report::layout::base_name;
use laggard_report::palette;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Growth, Scaling, Size};
use crate::plot::{
    Area, COLORS, Drawn, GRID, INK, PlotError, drawable, font, label, legend, rgb, svg,
};

const SIZE: (u32, u32) = (1080, 520);

/// Parts in order, with their words and colours.
const PARTS: [(&str, &str, RGBColor); 7] = [
    ("computation", "computation", rgb(palette::COMPUTATION)),
    ("load_imbalance", "load imbalance", rgb(palette::WAITING)),
    (
        "other_waiting",
        "other waiting",
        rgb(palette::OTHER_WAITING),
    ),
    (
        "communication",
        "communication",
        rgb(palette::COMMUNICATION),
    ),
    (
        "synchronization",
        "synchronisation",
        rgb(palette::SYNCHRONIZATION),
    ),
    ("io", "I/O", rgb(palette::IO)),
    ("outside", "outside", rgb(palette::OTHER)),
];

/// Observed against ideal speedup, and time by part, as SVG.
///
/// # Errors
/// If the drawing library fails.
pub fn draw(scaling: &Scaling) -> Result<String, PlotError> {
    svg(SIZE, |area| {
        let (top, rest) = area.split_vertically(44);
        let title = format!(
            "{}: {} scaling",
            base_name(&scaling.program),
            scaling.scaling.name()
        );
        top.draw(&Text::new(
            label(&title, 90),
            (16, 22),
            font(18, HPos::Left),
        ))?;
        let (left, right) = rest.split_horizontally(SIZE.0 / 2);
        speedup(&left, scaling)?;
        parts(&right, scaling)
    })
}

fn speedup(area: &Area<'_>, scaling: &Scaling) -> Drawn {
    let sizes = &scaling.sizes;
    let (first, last) = (&sizes[0], &sizes[sizes.len() - 1]);
    drawable(sizes.iter().map(|size| size.speedup))?;
    let ranks = |size: &Size| f64::from(size.ranks);
    let values = sizes.iter().map(|size| size.speedup);
    let least = values.clone().fold(1.0, f64::min);
    let most = values.fold(last.ideal_speedup, f64::max);
    let what = match scaling.scaling {
        Growth::Strong => "Speedup",
        Growth::Weak => "Speedup, scaled by the ranks",
    };
    area.draw(&Text::new(what.to_owned(), (16, 12), font(14, HPos::Left)))?;
    let entries = [
        ("observed".to_owned(), COLORS[1]),
        ("ideal".to_owned(), COLORS[0]),
    ];
    legend(area, (70, 38), &entries)?;
    // Logarithms have no zero.
    let above_zero = |value: f64| value.max(1e-6);
    let x = above_zero(ranks(first) * 0.9)..ranks(last) * 1.15;
    let y = above_zero(least * 0.85)..most * 1.15;
    let (x, y) = (x.log_scale().base(2.0), y.log_scale().base(2.0));
    let mut chart = ChartBuilder::on(area)
        .margin_top(56)
        .margin_right(30)
        .margin_bottom(8)
        .set_label_area_size(LabelAreaPosition::Left, 60)
        .set_label_area_size(LabelAreaPosition::Bottom, 46)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc("Ranks")
        .x_label_formatter(&|ranks| format!("{ranks:.0}"))
        .y_label_formatter(&|speedup| number(*speedup))
        .label_style(TextStyle::from(("sans-serif", 12).into_font()).color(&INK))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .draw()?;
    let ideal = sizes.iter().map(|size| (ranks(size), size.ideal_speedup));
    chart.draw_series(LineSeries::new(ideal, COLORS[0].stroke_width(2)))?;
    let observed = || {
        sizes
            .iter()
            .map(|size| (ranks(size), above_zero(size.speedup)))
    };
    chart.draw_series(LineSeries::new(observed(), COLORS[1].stroke_width(2)))?;
    chart.draw_series(observed().map(|point| Circle::new(point, 4, COLORS[1].filled())))?;
    let base = area.strip_coord_spec().get_base_pixel();
    for size in &sizes[1..] {
        let (x, y) = chart
            .plotting_area()
            .map_coordinate(&(ranks(size), above_zero(size.speedup)));
        let text = format!("factor {:.2}", size.factor);
        // Below the point: the lines come from the left and go to the right.
        let style = font(12, HPos::Center);
        area.draw(&Text::new(text, (x - base.0, y - base.1 + 20), style))?;
    }
    Ok(())
}

/// With as few digits as suffice.
fn number(value: f64) -> String {
    match value {
        v if v >= 10.0 => format!("{v:.0}"),
        v => {
            let text = format!("{v:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

fn parts(area: &Area<'_>, scaling: &Scaling) -> Drawn {
    let title = "Rank-seconds, in percent of those of an ideal run".to_owned();
    area.draw(&Text::new(title, (16, 12), font(14, HPos::Left)))?;
    let entries = PARTS.iter();
    let entries: Vec<(String, RGBColor)> = entries
        .map(|(_, words, color)| ((*words).to_owned(), *color))
        .collect();
    legend(area, (16, 36), &entries[..4])?;
    legend(area, (16, 54), &entries[4..])?;
    let percent = |size: &Size, seconds: f64| {
        let ideal: f64 = size.parts.iter().map(|part| part.expected_s).sum();
        if ideal > 0.0 {
            seconds / ideal * 100.0
        } else {
            0.0
        }
    };
    let observed = |size: &Size| -> f64 { size.parts.iter().map(|part| part.observed_s).sum() };
    let all = scaling
        .sizes
        .iter()
        .map(|size| percent(size, observed(size)));
    let most = all.fold(100.0, f64::max) * 1.05;
    let count = scaling.sizes.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(70)
        .margin_right(30)
        .margin_bottom(8)
        .set_label_area_size(LabelAreaPosition::Left, 60)
        .set_label_area_size(LabelAreaPosition::Bottom, 46)
        .build_cartesian_2d(0.0..count, 0.0..most)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_label_formatter(&|percent| format!("{percent:.0} %"))
        .label_style(TextStyle::from(("sans-serif", 12).into_font()).color(&INK))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(WHITE)
        .draw()?;
    let base = area.strip_coord_spec().get_base_pixel();
    for (at, size) in scaling.sizes.iter().enumerate() {
        let (left, right) = (at as f64 + 0.2, at as f64 + 0.8);
        let mut below = 0.0;
        for (id, _, color) in &PARTS {
            let part = size.parts.iter().find(|part| part.id == *id);
            let part = part.map_or(0.0, |part| percent(size, part.observed_s));
            if part <= 0.0 {
                continue;
            }
            let bar = [(left, below), (right, below + part)];
            chart.draw_series([Rectangle::new(bar, color.filled())])?;
            below += part;
        }
        let (x, y) = chart
            .plotting_area()
            .map_coordinate(&(at as f64 + 0.5, 0.0));
        let ending = if size.ranks == 1 { "" } else { "s" };
        let text = format!("{} rank{ending}", size.ranks);
        let place = (x - base.0, y - base.1 + 16);
        area.draw(&Text::new(text, place, font(12, HPos::Center)))?;
    }
    let ideal = vec![(0.0, 100.0), (count, 100.0)];
    chart.draw_series([PathElement::new(ideal, INK.stroke_width(2))])?;
    Ok(())
}
