//! Elements of pictures.

use laggard_report::units::duration;
use maud::{Markup, html};

use crate::text::amount;

/// A length in a picture, to a tenth.
pub fn px(value: f64) -> String {
    let value = if value.is_finite() {
        value.clamp(-1e5, 1e5)
    } else {
        0.0
    };
    let rounded = (value * 10.0).round() / 10.0;
    // Turns -0 into 0.
    format!("{}", rounded + 0.0)
}

/// About `about` round numbers from 0 to a little beyond `most`.
pub fn ticks(most: f64, about: usize) -> Vec<f64> {
    let most = amount(most);
    if most <= 0.0 {
        return vec![0.0];
    }
    let rough = most / about.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.iter().map(|step| step * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let count = (most / step * 1.000_001).floor() as usize;
    (0..=count.min(4 * about.max(1)))
        .map(|n| n as f64 * step)
        .collect()
}

/// At most about `about` ranks, from 0 on, in steps of a power of two.
pub fn rank_ticks(ranks: u64, about: u64) -> Vec<u64> {
    let step = ranks.div_ceil(about.max(1)).max(1).next_power_of_two();
    (0..about.max(1))
        .map(|n| n * step)
        .take_while(|rank| *rank < ranks.max(1))
        .collect()
}

/// The vertical axis: for each round time, a line across and a number at its left.
pub fn time_axis(most: f64, x: (f64, f64), y: impl Fn(f64) -> f64, about: usize) -> Markup {
    let all = ticks(most, about);
    html! {
        @for tick in &all {
            line.grid x1=(px(x.0)) x2=(px(x.1)) y1=(px(y(*tick))) y2=(px(y(*tick))) {}
            text.tick.end x=(px(x.0 - 6.0)) y=(px(y(*tick) + 4.0)) { (duration(*tick)) }
        }
    }
}

/// Half of the longest label of a time axis.
const HALF: f64 = 34.0;

/// The classes of a label below a place, so that it ends before the edge at the right.
pub fn below(x: f64, edge: f64) -> &'static str {
    match x + HALF > edge {
        true => "tick end",
        false => "tick middle",
    }
}

/// A legend of colours.
pub fn legend(items: &[(&str, &str)]) -> Markup {
    html! {
        ul.legend {
            @for (class, words) in items {
                li {
                    svg.swatch viewBox="0 0 12 12" aria-hidden="true" {
                        rect class=(class) width="12" height="12" {}
                    }
                    (words)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short() {
        assert_eq!(px(1.0), "1");
        assert_eq!(px(2.06), "2.1");
        assert_eq!(px(-0.001), "0");
        assert_eq!(px(f64::NAN), "0");
        assert_eq!(px(1e300), "100000");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(1.0, 4), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ticks(0.0, 4), [0.0]);
        for most in [1e-9, 3e-4, 0.7, 42.0, 1e12, f64::INFINITY] {
            let all = ticks(most, 4);
            assert!(all.len() <= 6, "{most} {all:?}");
        }
        assert_eq!(rank_ticks(4, 8), [0, 1, 2, 3]);
        assert_eq!(
            rank_ticks(4096, 8),
            [0, 512, 1024, 1536, 2048, 2560, 3072, 3584]
        );
        assert_eq!(rank_ticks(1, 8), [0]);
    }
}
