//! Code that both plots share.

use laggard_report::palette;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, TextStyle};

/// Why a plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the plot: {0}")]
pub struct PlotError(String);

/// Result of a drawing function.
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;
/// Where it draws.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Of revisions and curves.
pub(crate) const COLORS: [RGBColor; 8] = {
    let mut colors = [rgb(palette::OTHER); 8];
    let mut at = 0;
    while at < colors.len() {
        colors[at] = rgb(palette::SERIES[at]);
        at += 1;
    }
    colors
};

/// A colour for plots.
pub(crate) const fn rgb((r, g, b): palette::Rgb) -> RGBColor {
    RGBColor(r, g, b)
}

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(40, 40, 40);
/// Lines behind the data.
pub(crate) const GRID: RGBColor = RGBColor(225, 225, 225);

/// A picture of this size.
pub(crate) fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, PlotError> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let drawn = area.fill(&WHITE).map_err(Into::into);
        let drawn: Drawn = drawn.and_then(|()| draw(&area));
        drawn.map_err(|error| PlotError(error.to_string()))?;
        let done = area.present();
        done.map_err(|error| PlotError(error.to_string()))?;
    }
    Ok(text)
}

/// Largest number on an axis.
const MOST: f64 = 1e15;

/// Refuses numbers that no axis can show.
pub(crate) fn drawable(mut values: impl Iterator<Item = f64>) -> Drawn {
    match values.all(|value| value.is_finite() && value.abs() < MOST) {
        true => Ok(()),
        false => Err("its numbers are too large for an axis".into()),
    }
}

/// Text of this size that ends at its place, begins there or is around it.
pub(crate) fn font(size: u32, side: HPos) -> TextStyle<'static> {
    TextStyle::from((FontFamily::SansSerif, size).into_font())
        .color(&INK)
        .pos(Pos::new(side, VPos::Center))
}

/// At most this many letters, without those that a picture cannot hold.
pub(crate) fn label(text: &str, most: usize) -> String {
    let letters: Vec<char> = text
        .chars()
        .filter(|&letter| !laggard_files::is_steering(letter))
        .collect();
    match letters.len() > most {
        true => letters[..most - 1].iter().chain(&['…']).collect(),
        false => letters.into_iter().collect(),
    }
}

/// Squares with the meaning of their colours, from left to right.
pub(crate) fn legend(area: &Area<'_>, at: (i32, i32), entries: &[(String, RGBColor)]) -> Drawn {
    let mut x = at.0;
    for (text, color) in entries {
        let square = [(x, at.1 - 5), (x + 10, at.1 + 5)];
        area.draw(&Rectangle::new(square, color.filled()))?;
        let style = font(13, HPos::Left);
        area.draw(&Text::new(text.clone(), (x + 15, at.1), style))?;
        // Letters of this font are some 7 pixels wide.
        x += 35 + 7 * text.chars().count() as i32;
    }
    Ok(())
}
