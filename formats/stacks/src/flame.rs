//! Flame graphs, and the folded lines behind them.

use std::io::Write;

use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{self, Options};
use laggard_files::printable;
use laggard_report::palette;

use crate::{Error, Kind, Stacks};

/// Writes one line per stack: `main app.c:90;exchange app.c:42;[waiting] 1234`, ns.
///
/// # Errors
/// The system refuses to write.
pub fn folded(stacks: &Stacks, mut out: impl Write) -> Result<(), Error> {
    for line in lines(stacks) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Draws a flame graph as SVG.
///
/// # Errors
/// The system refuses to write, or there is nothing to draw.
pub fn flame_graph(stacks: &Stacks, out: impl Write) -> Result<(), Error> {
    let lines = lines(stacks);
    if lines.is_empty() {
        return Err(Error::Empty);
    }
    // Only what the time was spent on has a colour.
    let mut colours = PaletteMap::default();
    let frames = lines.iter().filter_map(|line| line.rsplit_once(' '));
    for name in frames.flat_map(|(stack, _)| stack.split(';')) {
        colours.insert(name.to_owned(), rgb(palette::PLAIN));
    }
    for kind in Kind::ALL {
        colours.insert(format!("[{}]", kind.name()), colour(kind));
    }
    let mut options = Options::default();
    options.title = match stacks.title.as_str() {
        "" => "Time by call path".into(),
        title => format!("{}: time by call path, all ranks", printable(title)),
    };
    options.count_name = "ns".into();
    options.palette_map = Some(&mut colours);
    let lines = lines.iter().map(String::as_str);
    Ok(flamegraph::from_lines(&mut options, lines, out)?)
}

fn colour(kind: Kind) -> Color {
    rgb(match kind {
        Kind::Computation => palette::COMPUTATION,
        Kind::Communication => palette::COMMUNICATION,
        Kind::Waiting => palette::WAITING,
    })
}

fn rgb((r, g, b): palette::Rgb) -> Color {
    Color { r, g, b }
}

fn lines(stacks: &Stacks) -> Vec<String> {
    // Removes separators of frames and lines, and characters that XML cannot hold.
    let clean = |text: String| printable(&text).replace(';', ",");
    let line = |(stack, ns): (&crate::Stack, u64)| {
        let texts: Vec<String> = stack.texts().into_iter().map(clean).collect();
        format!("{} {ns}", texts.join(";"))
    };
    stacks.iter().map(line).collect()
}
