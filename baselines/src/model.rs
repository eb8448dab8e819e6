//! Time as latency and bandwidth.
//!
//! The model of Hockney, `latency + bytes / bandwidth`, in a few ranges of sizes: libraries change
//! their protocol at some sizes. Among all ways to cut the sizes, the one with the least sum of
//! squared relative errors is taken. One cut fewer is preferred if it is hardly worse.

use serde::{Deserialize, Serialize};

use crate::curve::{Point, interpolate};

/// Largest error of a model that is used, a share of the time.
const CLOSE: f64 = 0.25;
/// A model reaches up to this many times the largest measured size.
const REACH: u64 = 64;
/// Most ranges of sizes.
const MOST_PIECES: usize = 4;
/// Least points in each.
const LEAST_POINTS: usize = 2;
/// A further piece is worth it if it leaves at most this share of the error.
const WORTH: f64 = 0.6;

/// One range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// First size, bytes.
    pub from_bytes: u64,
    /// Latency: seconds for no bytes.
    pub latency_s: f64,
    /// Bytes that each further second moves; `None`: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
}

impl Piece {
    fn time(&self, bytes: u64) -> f64 {
        let rest = self.bytes_per_s.map_or(0.0, |rate| bytes as f64 / rate);
        self.latency_s + rest
    }
}

/// Time as latency and bandwidth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Ranges of sizes, ascending.
    pub pieces: Vec<Piece>,
    /// Median of its relative errors at the checks, or at the points if there are no checks.
    pub error: f64,
    /// The same for the interpolation; `None` without checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpolation_error: Option<f64>,
}

impl Model {
    /// The model of measured points, ascending by size; `None` if there are too few.
    pub fn fit(points: &[Point], checks: &[Point]) -> Option<Model> {
        let pieces = fit(points)?;
        let mut model = Model {
            pieces,
            error: 0.0,
            interpolation_error: None,
        };
        let inside = checks.iter().filter(|check| {
            let first = points.first().is_some_and(|p| p.bytes <= check.bytes);
            first && points.last().is_some_and(|p| p.bytes >= check.bytes)
        });
        let inside: Vec<&Point> = inside.collect();
        let off = |time: f64, point: &Point| (time / point.time_s - 1.0).abs();
        if inside.is_empty() {
            let errors = points.iter().map(|p| off(model.time(p.bytes), p));
            model.error = median(errors.collect());
        } else {
            let errors = inside.iter().map(|p| off(model.time(p.bytes), p));
            let error = median(errors.collect());
            let between = inside.iter().filter_map(|p| {
                let measured = points.iter().find(|other| other.bytes == p.bytes);
                let time = measured.map(|other| other.time_s);
                Some(off(time.or_else(|| interpolate(points, p.bytes))?, p))
            });
            model.interpolation_error = Some(median(between.collect()));
            model.error = error;
        }
        model.flaw().is_none().then_some(model)
    }

    /// Seconds for this many bytes.
    pub fn time(&self, bytes: u64) -> f64 {
        let above = self.pieces.partition_point(|p| p.from_bytes <= bytes);
        let piece = &self.pieces[above.saturating_sub(1)];
        piece.time(bytes)
    }

    /// Whether it is close enough to be used for sizes that were not measured.
    pub(crate) fn holds(&self) -> bool {
        self.error <= CLOSE
    }

    /// Whether a size is not too far beyond the largest measured one.
    pub(crate) fn reaches(&self, bytes: u64, largest: u64) -> bool {
        bytes <= largest.saturating_mul(REACH)
    }

    /// Whether it is closer to the checks than interpolation is.
    pub(crate) fn is_better(&self) -> bool {
        self.holds() && self.interpolation_error.is_some_and(|e| self.error < e)
    }

    /// An impossible value in it, if there is one.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let is_time = |s: f64| s.is_finite() && s >= 0.0;
        if self.pieces.is_empty() {
            return Some("a model without a range of sizes");
        }
        if !self.pieces.is_sorted_by(|a, b| a.from_bytes < b.from_bytes) {
            return Some("a model whose ranges are not in order");
        }
        let good = |piece: &Piece| {
            let rate = piece.bytes_per_s.unwrap_or(1.0);
            let grows =
                piece.latency_s > 0.0 || piece.bytes_per_s.is_some() && piece.from_bytes > 0;
            is_time(piece.latency_s) && rate.is_finite() && rate > 0.0 && grows
        };
        if !self.pieces.iter().all(good) {
            return Some("a model with a latency or bandwidth that is no positive number");
        }
        if !is_time(self.error) || !self.interpolation_error.is_none_or(is_time) {
            return Some("a model whose error is no number");
        }
        None
    }
}

/// The median; 0 without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// Latency and bandwidth with the least sum of squared relative errors, neither negative, and that
/// sum.
fn line(points: &[Point]) -> (Piece, f64) {
    // Minimises sum(((a + c b) / t - 1)^2).
    let mut sums = [0.0f64; 5];
    for point in points {
        let (weight, bytes) = (1.0 / point.time_s, point.bytes as f64);
        let (u, v) = (weight, bytes * weight);
        for (sum, term) in sums.iter_mut().zip([u * u, u * v, v * v, u, v]) {
            *sum += term;
        }
    }
    let [uu, uv, vv, u, v] = sums;
    let determinant = uu * vv - uv * uv;
    let (mut latency, mut per_byte) = match determinant > 1e-12 * uu * vv {
        true => (
            (u * vv - v * uv) / determinant,
            (v * uu - u * uv) / determinant,
        ),
        false => (u / uu, 0.0),
    };
    if per_byte <= 0.0 {
        (latency, per_byte) = (u / uu, 0.0);
    }
    if latency <= 0.0 {
        (latency, per_byte) = (0.0, v / vv);
    }
    let piece = Piece {
        from_bytes: points.first().map_or(0, |point| point.bytes),
        latency_s: latency,
        bytes_per_s: (per_byte > 0.0).then(|| 1.0 / per_byte),
    };
    let error = |point: &Point| (piece.time(point.bytes) / point.time_s - 1.0).powi(2);
    (piece, points.iter().map(error).sum())
}

fn fit(points: &[Point]) -> Option<Vec<Piece>> {
    let count = points.len();
    if count < LEAST_POINTS {
        return None;
    }
    // best[k][n]: the first n points in k + 1 pieces, with the error and the last one's begin.
    let mut best = vec![vec![(f64::INFINITY, 0); count + 1]; MOST_PIECES];
    for end in LEAST_POINTS..=count {
        best[0][end] = (line(&points[..end]).1, 0);
    }
    for k in 1..MOST_PIECES {
        for end in (k + 1) * LEAST_POINTS..=count {
            for begin in k * LEAST_POINTS..=end - LEAST_POINTS {
                let error = best[k - 1][begin].0 + line(&points[begin..end]).1;
                if error < best[k][end].0 {
                    best[k][end] = (error, begin);
                }
            }
        }
    }
    let mut pieces = 0;
    for more in 1..MOST_PIECES {
        // A fit that is exact to a percent needs no more pieces.
        let enough = 1e-4 * count as f64;
        let now = best[pieces][count].0;
        if now > enough && best[more][count].0 < now * WORTH.powi((more - pieces) as i32) {
            pieces = more;
        }
    }
    let (mut found, mut end) = (Vec::new(), count);
    for k in (0..=pieces).rev() {
        let begin = best[k][end].1;
        let mut piece = line(&points[begin..end]).0;
        if begin > 0 {
            // The boundary is somewhere between two measured sizes: it is put at their geometric
            // mean.
            let (last, first) = (points[begin - 1].bytes, points[begin].bytes);
            let middle = ((last as f64 + 1.0) * (first as f64 + 1.0)).sqrt() - 1.0;
            piece.from_bytes = (middle as u64).clamp(last + 1, first);
        }
        found.push(piece);
        end = begin;
    }
    found.reverse();
    found[0].from_bytes = 0;
    // Sizes below the first point have its time, never less.
    if found[0].latency_s <= 0.0 {
        found[0] = Piece {
            latency_s: points[0].time_s,
            ..found[0]
        };
    }
    Some(found)
}

/// How the time grows with the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Not at all.
    Constant,
    /// A step for every doubling, as in trees.
    Logarithmic,
    /// A step for each other member.
    Linear,
}

impl Shape {
    const ALL: [Shape; 3] = [Shape::Constant, Shape::Logarithmic, Shape::Linear];

    /// Steps in a group; 1 for two members.
    pub fn steps(self, members: u32) -> f64 {
        match self {
            Shape::Constant => 1.0,
            Shape::Logarithmic => f64::from(members.max(2)).log2(),
            Shape::Linear => f64::from(members.max(2) - 1),
        }
    }
}

/// How the time grows in groups larger than those measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Growth with the members.
    pub shape: Shape,
    /// Median of the relative errors when the next smaller group predicts the largest one's times.
    pub error: f64,
}

/// A growth reaches up to this many times the largest measured group.
const GROUP_REACH: u32 = 4;

impl Growth {
    /// The growth that best predicts the largest group's times from the next smaller one's.
    /// `groups` are ascending by size, with their points. `None` for fewer than three, too few
    /// to be certain.
    pub fn fit(groups: &[(u32, &[Point])]) -> Option<Growth> {
        let [.., (middle, known), (largest, points)] = groups else {
            return None;
        };
        if groups.len() < 3 {
            return None;
        }
        let error = |shape: Shape| {
            let factor = shape.steps(*largest) / shape.steps(*middle);
            let errors = points.iter().filter_map(|point| {
                let before = known.iter().find(|p| p.bytes == point.bytes)?.time_s;
                Some((before * factor / point.time_s - 1.0).abs())
            });
            let errors: Vec<f64> = errors.collect();
            let error = (!errors.is_empty()).then(|| median(errors))?;
            error.is_finite().then_some(error)
        };
        let fits = Shape::ALL.iter().filter_map(|&shape| {
            Some(Growth {
                shape,
                error: error(shape)?,
            })
        });
        fits.min_by(|a, b| a.error.total_cmp(&b.error))
    }

    /// The factor from a group to a larger one, if it is certain enough.
    pub(crate) fn factor(&self, from: u32, to: u32) -> Option<f64> {
        let near = to <= from.saturating_mul(GROUP_REACH);
        (near && self.error <= CLOSE).then(|| self.shape.steps(to) / self.shape.steps(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(time: impl Fn(u64) -> f64) -> Vec<Point> {
        let sizes = std::iter::once(0).chain((0..=22).map(|power| 1 << power));
        sizes.map(|bytes| Point::new(bytes, time(bytes))).collect()
    }

    /// Two protocols: from 8 KiB on a handshake, and twice the bandwidth.
    fn two_protocols(bytes: u64) -> f64 {
        match bytes {
            0..8192 => 1e-6 + bytes as f64 / 2e9,
            _ => 6e-6 + bytes as f64 / 4e9,
        }
    }

    #[test]
    fn a_line_comes_back() {
        let model = Model::fit(&points(|bytes| 2e-6 + bytes as f64 / 1e9), &[]).unwrap();
        assert_eq!(model.pieces.len(), 1, "{model:?}");
        assert!((model.pieces[0].latency_s / 2e-6 - 1.0).abs() < 1e-6);
        assert!((model.pieces[0].bytes_per_s.unwrap() / 1e9 - 1.0).abs() < 1e-6);
        assert!(model.error < 1e-6);
    }

    #[test]
    fn another_protocol_is_a_piece_of_its_own() {
        let checks = [3u64, 48, 768, 49_152, 786_432].map(|b| Point::new(b, two_protocols(b)));
        let model = Model::fit(&points(two_protocols), &checks).unwrap();
        assert_eq!(model.pieces.len(), 2, "{model:?}");
        assert!(
            (4097..=8192).contains(&model.pieces[1].from_bytes),
            "{model:?}"
        );
        assert!(model.error < 0.01, "{model:?}");
        assert!(model.is_better() && model.flaw().is_none());
    }

    #[test]
    fn times_that_follow_no_line_have_a_large_error() {
        let noise = |bytes: u64| 1e-6 * [1.0, 7.0, 3.0, 11.0][(bytes % 7 % 4) as usize];
        let checks = [3u64, 48, 768].map(|b| Point::new(b, 5e-5));
        let model = Model::fit(&points(noise), &checks).unwrap();
        assert!(!model.holds(), "{model:?}");
    }

    #[test]
    fn growth_is_told_from_three_groups_or_not_at_all() {
        let times = |members: u32| {
            points(move |bytes| (1e-6 + bytes as f64 / 1e9) * Shape::Logarithmic.steps(members))
        };
        let (two, four, eight) = (times(2), times(4), times(8));
        let groups: [(u32, &[Point]); 3] = [(2, &two), (4, &four), (8, &eight)];
        let growth = Growth::fit(&groups).unwrap();
        assert_eq!(growth.shape, Shape::Logarithmic);
        assert!((growth.factor(8, 16).unwrap() - 4.0 / 3.0).abs() < 1e-9);
        assert_eq!(growth.factor(8, 64), None);
        assert_eq!(Growth::fit(&groups[..2]), None);
    }
}
