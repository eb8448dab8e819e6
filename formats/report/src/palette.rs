//! Colours of what time is spent on: one for each, on the page, in flame graphs and in all other
//! pictures.
//!
//! They are those of M. Okabe and K. Ito (Color universal design, 2008), which people who do not
//! see red and green apart tell apart, too.

/// Red, green and blue.
pub type Rgb = (u8, u8, u8);

/// Outside of recorded calls.
pub const COMPUTATION: Rgb = (0, 114, 178);
/// In calls that move data.
pub const COMMUNICATION: Rgb = (230, 159, 0);
/// In calls whose purpose is that ranks meet.
pub const SYNCHRONIZATION: Rgb = (204, 121, 167);
/// In file operations.
pub const IO: Rgb = (0, 158, 115);
/// Waiting for others.
pub const WAITING: Rgb = (213, 94, 0);
/// Waiting of another kind, where there are two.
pub const OTHER_WAITING: Rgb = (86, 180, 233);
/// Of several kinds, or of none.
pub const OTHER: Rgb = (100, 106, 112);
/// Without a meaning, light.
pub const PLAIN: Rgb = (225, 229, 233);
/// For what comes in any number, as revisions and curves.
pub const SERIES: [Rgb; 8] = [
    COMPUTATION,
    WAITING,
    COMMUNICATION,
    OTHER_WAITING,
    IO,
    SYNCHRONIZATION,
    (120, 94, 60),
    OTHER,
];

/// `#0072b2`.
pub fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The colours as custom properties of a style sheet: `:root { --name: #rrggbb; … }`.
pub fn properties(colours: &[(&str, Rgb)]) -> String {
    let one = |(name, colour): &(&str, Rgb)| format!("--{name}: {};", hex(*colour));
    let all: Vec<String> = colours.iter().map(one).collect();
    format!(":root {{ {} }}", all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What people without one kind of cones see, in linear light (G. M. Machado et al., A
    /// physiologically-based model for simulation of color vision deficiency, 2009).
    const SEEN: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// In CIELAB, where distances are about as large as they look.
    fn lab((r, g, b): Rgb, seen: &[[f64; 3]; 3]) -> [f64; 3] {
        let linear = [r, g, b].map(|part| {
            let part = f64::from(part) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        });
        let times = |rows: &[[f64; 3]; 3], by: [f64; 3]| {
            rows.map(|row| row.iter().zip(by).map(|(a, b)| a * b).sum::<f64>())
        };
        let linear = times(seen, linear).map(|part| part.clamp(0.0, 1.0));
        let xyz = times(
            &[
                [0.4124, 0.3576, 0.1805],
                [0.2126, 0.7152, 0.0722],
                [0.0193, 0.1192, 0.9505],
            ],
            linear,
        );
        let f = |part: f64| match part > 0.008856 {
            true => part.cbrt(),
            false => 7.787 * part + 16.0 / 116.0,
        };
        let [x, y, z] = [xyz[0] / 0.9505, xyz[1], xyz[2] / 1.089].map(f);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// The least distance of two, however they are seen.
    fn closest(colors: &[Rgb]) -> f64 {
        let mut least = f64::INFINITY;
        for seen in &SEEN {
            for (at, one) in colors.iter().enumerate() {
                for other in &colors[..at] {
                    let pairs = lab(*one, seen).into_iter().zip(lab(*other, seen));
                    let apart = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    least = least.min(apart);
                }
            }
        }
        least
    }

    #[test]
    fn kinds_are_told_apart_by_everybody() {
        let kinds = [
            COMPUTATION,
            COMMUNICATION,
            SYNCHRONIZATION,
            IO,
            WAITING,
            OTHER,
            PLAIN,
        ];
        assert!(closest(&kinds) > 15.0, "{}", closest(&kinds));
        assert!(closest(&SERIES[..6]) > 15.0, "{}", closest(&SERIES[..6]));
        // Blue and purple that look different to most people only.
        assert!(closest(&[(95, 143, 191), (168, 116, 176)]) < 10.0);
        assert_eq!(hex(COMPUTATION), "#0072b2");
    }
}
