//! How many locations are busy at a time, and the weight of time on the critical path.
//!
//! Time in which few are busy weighs more: `w = dt + (1 - P) (n - 1) dt`, with `P` the busy part of
//! the `n` locations (Jiang: WCPA and a hybrid parallel monitor, UBC 1990). Sums over the run are
//! exact. Within a bin, busy time counts as spread evenly: bins are fine, and how wrong that may be
//! is counted.

use laggard_comm::Job;
use laggard_trace::Location;

use crate::stream::columns::Columns;
use crate::stream::traffic::moved;

/// Bins of the run in a report, and fine ones in each.
const BINS: usize = 200;
const FINE: i64 = 128;

/// Time by fine bin.
pub struct Load {
    /// Of a fine bin, ns.
    width: i64,
    /// Fine bins in each bin.
    fine: i64,
    /// By bin: how much longer locations are busy in it than at its begin; ns.
    parts: Vec<i64>,
    /// Locations that are busy at its begin, less those at the begin of the bin before; ns in a bin.
    steps: Vec<i64>,
    /// Of the last time: where it began, and where it ended.
    last: [Bin; 2],
}

/// Bytes sent by bin.
#[derive(Default)]
pub struct Sent {
    width: i64,
    pub bytes: Vec<u64>,
}

/// What a location sends.
#[derive(Clone)]
pub struct Sending {
    /// By signature: bytes that a call moves.
    moved: Vec<u64>,
    /// Where the last bytes went.
    at: Bin,
}

impl Load {
    /// Of a run that ends at `end`, ns.
    pub fn new(end: i64) -> Self {
        let fine = (end / BINS as i64).clamp(1, FINE);
        let bins = BINS * fine as usize;
        Load {
            width: (end.max(1) - 1) / bins as i64 + 1,
            fine,
            parts: vec![0; bins],
            steps: vec![0; bins + 1],
            last: [Bin::default(); 2],
        }
    }

    /// From `from` to `until`, ns, `count` more locations are busy.
    pub fn add(&mut self, from: i64, until: i64, count: i64) {
        let moments = [(from, count), (until, -count)];
        // Only sums of both are in range.
        for (last, (time, count)) in self.last.iter_mut().zip(moments) {
            if from < until {
                let bin = last.of(self.width, self.parts.len(), time);
                let left = ((bin as i64 + 1) * self.width).wrapping_sub(time);
                self.parts[bin] = self.parts[bin].wrapping_add(count.wrapping_mul(left));
                let whole = count.wrapping_mul(self.width);
                self.steps[bin + 1] = self.steps[bin + 1].wrapping_add(whole);
            }
        }
    }

    /// Adds up the busy time of all agents, and gives the weights of the time from `start` to `end`,
    /// ns, of this many `locations`; and the busy time by bin, ns. Collective.
    pub fn weights(
        &self,
        job: &dyn Job,
        (start, end): (i64, i64),
        locations: u64,
    ) -> (Weights, Vec<i64>) {
        let mut whole = 0i64;
        let own = self.parts.iter().zip(&self.steps).map(|(part, step)| {
            whole = whole.wrapping_add(*step);
            whole.wrapping_add(*part) as u64
        });
        let mut busy: Vec<u64> = own.collect();
        job.reduce_sum(&mut busy);
        let busy: Vec<i64> = busy.into_iter().map(|time| (time as i64).max(0)).collect();
        let locations = i64::try_from(locations.max(1)).unwrap_or(i64::MAX);
        let mut weights = Weights {
            width: self.width,
            span: (start, end),
            locations,
            parts: Vec::with_capacity(busy.len()),
        };
        let square = i128::from(locations) * i128::from(locations);
        let mut sum = 0;
        for (at, &busy) in (0..).zip(&busy) {
            let (begin, length) = weights.bounds(at, self.parts.len());
            let most = locations.saturating_mul(length);
            let busy = busy.min(most);
            let less = i128::from(locations - 1) * i128::from(busy);
            let less = (less << FRACTION) / i128::from(length.max(1));
            let part = Part {
                begin,
                length,
                busy,
                most,
                rate: less - (square << FRACTION),
                sum,
            };
            sum += part.weight(length);
            weights.parts.push(part);
        }
        let bins = busy.chunks(self.fine as usize);
        let bins = bins.map(|fine| {
            fine.iter()
                .fold(0, |sum: i64, time| sum.saturating_add(*time))
        });
        (weights, bins.collect())
    }

    /// No bytes yet.
    pub fn sent(&self) -> Sent {
        Sent {
            width: self.width(),
            bytes: vec![0; BINS],
        }
    }

    /// Of a bin, ns.
    pub fn width(&self) -> i64 {
        self.width.saturating_mul(self.fine)
    }
}

impl Sending {
    /// Before the first call of a location.
    pub fn new(location: &Location) -> Sending {
        let signatures = location.definitions.signatures().iter();
        let moved = signatures.map(|signature| moved(signature, signature.send, signature.receive));
        Sending {
            moved: moved.collect(),
            at: Bin::default(),
        }
    }

    /// Adds the bytes that the calls of a slab move.
    pub fn add(&mut self, columns: &Columns, location: &Location, sent: &mut Sent) {
        let of_signature = |id: u32| self.moved.get(id as usize).copied().unwrap_or(0);
        let signatures = location.definitions.signatures();
        let enters = &columns.enter[..];
        let (mut first, mut at) = (columns.first, self.at);
        while first < enters.len() {
            let bin = at.of(sent.width, BINS, enters[first]);
            let count = enters[first..].partition_point(|&enter| enter < at.end());
            let end = first + count.max(1);
            let own = columns.signature[first..end].iter();
            let bytes = own.fold(0, |sum: u64, &id| sum.saturating_add(of_signature(id)));
            sent.bytes[bin] = sent.bytes[bin].saturating_add(bytes);
            first = end;
        }
        // The records of these say something else than their signature.
        for (place, event) in &columns.extended {
            let signature = signatures.get(event.signature as usize);
            let Some(signature) = signature else { continue };
            let own = moved(signature, event.send(signature), event.receive(signature));
            let bin = &mut sent.bytes[at.of(sent.width, BINS, enters[*place])];
            *bin = bin.saturating_sub(of_signature(event.signature));
            *bin = bin.saturating_add(own);
        }
        self.at = at;
    }
}

impl Sent {
    /// The sum of both.
    pub fn merge(mut self, other: Sent) -> Sent {
        for (sum, bytes) in self.bytes.iter_mut().zip(other.bytes) {
            *sum = sum.saturating_add(bytes);
        }
        self
    }
}

/// The last bin that was looked up: successive times are mostly in the same one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    number: usize,
    /// Its begin, and its end; the last bin has none.
    begin: i64,
    end: i64,
}

impl Bin {
    /// The number of the bin of a time, of so many of this `width`.
    #[inline]
    pub fn of(&mut self, width: i64, bins: usize, time: i64) -> usize {
        let time = time.max(0);
        if time < self.begin || time >= self.end {
            self.number = bin(width, bins, time);
            self.begin = self.number as i64 * width;
            self.end = match self.number + 1 == bins {
                true => i64::MAX,
                false => self.begin + width,
            };
        }
        self.number
    }

    /// The end of the last one; `i64::MAX` if it has none.
    #[inline]
    pub fn end(&self) -> i64 {
        self.end
    }
}

fn bin(width: i64, bins: usize, time: i64) -> usize {
    (time.max(0) / width).min(bins as i64 - 1) as usize
}

/// Bits of a fraction.
const FRACTION: u32 = 32;

/// Weights of the time of a run, in parts of a ns of which there are as many as locations.
pub struct Weights {
    width: i64,
    /// Begin and end of what is weighed, ns.
    span: (i64, i64),
    locations: i64,
    /// The fine bins.
    parts: Vec<Part>,
}

/// The part of a fine bin that is in the span.
struct Part {
    /// ns
    begin: i64,
    length: i64,
    /// Busy time of all locations, and the most that it could be, ns.
    busy: i64,
    most: i64,
    /// What a ns weighs, negative and in fractions.
    rate: i128,
    /// The weight of all time before it.
    sum: i128,
}

impl Weights {
    /// Begin and length of what is in the span of one of so many `bins`, ns.
    fn bounds(&self, bin: usize, bins: usize) -> (i64, i64) {
        let begin = (bin as i64 * self.width).max(self.span.0);
        let end = (bin as i64 + 1) * self.width;
        // The last bin has all that is later.
        let end = match bin + 1 == bins {
            true => self.span.1,
            false => end.min(self.span.1),
        };
        (begin, end.saturating_sub(begin).max(0))
    }

    /// Weight of all time before a moment; `at` is the bin of the moment looked up before. However
    /// time is parted, the weights of its parts add up to that of all of it.
    #[inline]
    pub fn until(&self, at: &mut Bin, time: i64) -> i128 {
        let part = &self.parts[at.of(self.width, self.parts.len(), time)];
        part.sum + part.weight((time - part.begin).clamp(0, part.length))
    }

    /// A weight in ns.
    pub fn ns(&self, weight: i128) -> i128 {
        weight / i128::from(self.locations)
    }

    /// By how much the weight of some time may be wrong: where it has a part of a bin, nobody
    /// knows how much of the busy time in the bin lies in that part. The bin of its end is `at`.
    #[inline]
    pub fn error(&self, at: Bin, (from, until): (i64, i64)) -> i128 {
        let of = |part: &Part| {
            let own = until.min(part.begin + part.length) - from.max(part.begin);
            let own = self.locations.saturating_mul(own.clamp(0, part.length));
            let most = part.busy.min(own);
            let least = (part.busy - (part.most - own)).max(0);
            i128::from(self.locations - 1) * i128::from((most - least).max(0))
        };
        let last = of(&self.parts[at.number]);
        match from >= at.begin {
            true => last,
            false => of(&self.parts[bin(self.width, self.parts.len(), from)]) + last,
        }
    }
}

impl Part {
    /// The weight of so much time in it: `n time - (n - 1) / n * busy`, times `n`.
    #[inline]
    fn weight(&self, time: i64) -> i128 {
        -((self.rate * i128::from(time)) >> FRACTION)
    }
}

#[cfg(test)]
mod tests {
    use laggard_comm::Serial;

    use super::*;

    const S: i64 = 1_000_000_000;

    /// Three processes; times in s are those of the example in the thesis's digest. Shares of the
    /// weight differ from those of the time: the tail, in which one process is busy, weighs most.
    #[test]
    fn time_with_few_busy_weighs_more() {
        let mut load = Load::new(20 * S);
        let idle = [(11, 12), (13, 14), (1, 5), (1, 6)];
        for until in [20, 12, 14] {
            load.add(0, until * S, 1);
        }
        idle.iter()
            .for_each(|(from, until)| load.add(from * S, until * S, -1));
        let (weights, busy) = load.weights(&Serial, (0, 20 * S), 3);
        assert_eq!(busy.iter().sum::<i64>(), 35 * S);
        let weight = |from: i64, until: i64| {
            let at = &mut Bin::default();
            let before = weights.until(at, from * S);
            let weight = weights.ns(weights.until(at, until * S) - before);
            // Stretches end where the number of busy ones changes, but not bins.
            let error = weights.ns(weights.error(*at, (from * S, until * S)));
            assert!(error < i128::from(S) / 1000);
            weight as f64 / S as f64
        };
        let stretches = [
            (0, 4, 24),
            (4, 5, 7),
            (5, 6, 5),
            (6, 13, 25),
            (13, 14, 7),
            (14, 20, 42),
        ];
        for (from, until, thirds) in stretches {
            let found = weight(from, until);
            assert!(
                (found - f64::from(thirds) / 3.0).abs() < 1e-4,
                "{from}: {found}"
            );
        }
        // T (1 + (n - 1) (1 - E))
        assert!((weight(0, 20) - 20.0 * (1.0 + 2.0 * 25.0 / 60.0)).abs() < 1e-4);
    }

    /// Nobody is busy: a second weighs as many as there are locations.
    #[test]
    fn idle_time_weighs_all() {
        let mut load = Load::new(100);
        let at = &mut Bin::default();
        let (weights, _) = load.weights(&Serial, (0, 100), 100);
        assert_eq!(weights.ns(weights.until(at, 100)), 100 * 100);
        load.add(0, 100, 100);
        let (weights, busy) = load.weights(&Serial, (0, 100), 100);
        assert_eq!(weights.ns(weights.until(at, 100)), 100);
        assert_eq!(busy.iter().sum::<i64>(), 100 * 100);
    }

    /// Sums over the path are exact wherever it begins, ends and is parted. How much of it one part
    /// has is as wrong as is said at most.
    #[test]
    fn weights_are_wrong_by_no_more_than_is_said() {
        let mut load = Load::new(S);
        let width = load.width;
        // Two of four are busy all the time, and two in the first quarter of each second bin.
        load.add(0, S, 2);
        for bin in (1..200 * FINE).step_by(2).take_while(|bin| bin * width < S) {
            load.add(bin * width, bin * width + width / 4, 2);
        }
        let span = (S / 3, S - 12_345);
        let (weights, _) = load.weights(&Serial, span, 4);
        let is_full = |time: i64| (time / width) % 2 == 1 && time % width < width / 4;
        let exact = |from: i64, until: i64| -> f64 {
            let weight = |time: i64| if is_full(time) { 1.0 } else { 1.0 + 0.5 * 3.0 };
            (from..until).map(weight).sum()
        };
        let begin = (span.0 / width + 3) * width;
        for (from, until) in [
            (0, width / 8),
            (width / 8, width),
            (width / 2, 2 * width + 7),
        ] {
            let (from, until) = (begin + from, begin + until);
            let at = &mut Bin::default();
            let before = weights.until(at, from);
            let found = weights.ns(weights.until(at, until) - before) as f64;
            let error = weights.ns(weights.error(*at, (from, until))) as f64;
            assert!(
                (found - exact(from, until)).abs() <= error + 2.0,
                "{found} {error}"
            );
        }
        let at = &mut Bin::default();
        assert!(
            weights.error(*at, (begin, begin + width)) == 0,
            "a whole bin is exact"
        );
    }
}
