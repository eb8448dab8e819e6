//! How many locations are busy at a time, and the weight of time on the critical path.
//!
//! Time in which few are busy weighs more: `w = dt + (1 - P) (n - 1) dt`, with `P` the busy part of
//! the `n` locations (Jiang: WCPA and a hybrid parallel monitor, UBC 1990).

use laggard_comm::Job;

/// Bins of the run.
const BINS: usize = 200;

/// Time by bin.
pub struct Load {
    /// Of a bin, ns.
    width: i64,
    /// Of all locations, not waiting, ns.
    pub busy: Vec<i64>,
}

/// Bytes sent by bin.
#[derive(Clone)]
pub struct Sent {
    width: i64,
    pub bytes: Vec<u64>,
}

impl Load {
    /// Of a run that ends at `end`, ns.
    pub fn new(end: i64) -> Self {
        Load {
            width: (end.max(1) - 1) / BINS as i64 + 1,
            busy: vec![0; BINS],
        }
    }

    /// From `from` to `until`, `count` more locations are busy.
    pub fn add(&mut self, from: i64, until: i64, count: i64) {
        let (first, last) = (bin(self.width, from), bin(self.width, until));
        for bin in first..=last {
            let begin = if bin == first {
                from
            } else {
                bin as i64 * self.width
            };
            let end = if bin == last {
                until
            } else {
                (bin as i64 + 1) * self.width
            };
            let time = count.saturating_mul(end.saturating_sub(begin).max(0));
            self.busy[bin] = self.busy[bin].saturating_add(time);
        }
    }
}

impl Load {
    /// Adds up the busy time of all agents, and gives the weights of the time before `end`, ns, of
    /// this many `locations`. Collective.
    pub fn weights(&mut self, job: &dyn Job, end: i64, locations: u64) -> Weights {
        let mut busy: Vec<u64> = self.busy.iter().map(|&time| time as u64).collect();
        job.reduce_sum(&mut busy);
        self.busy = busy.into_iter().map(|time| (time as i64).max(0)).collect();
        let locations = i128::from(locations.max(1));
        let (mut sum, mut sums, mut rates) = (0, Vec::new(), Vec::new());
        for (at, &busy) in (0..).zip(&self.busy) {
            let length = end.saturating_sub(at * self.width).clamp(0, self.width);
            let all = locations * i128::from(length);
            let idle = (all - i128::from(busy)).max(0) * (locations - 1);
            let rate = match all {
                0 => 1 << POINT,
                _ => (1 << POINT) + (idle << POINT) / all,
            };
            sums.push(sum);
            rates.push(rate);
            sum += (rate * i128::from(length)) >> POINT;
        }
        Weights {
            width: self.width,
            sums,
            rates,
        }
    }

    /// No bytes yet.
    pub fn sent(&self) -> Sent {
        Sent {
            width: self.width,
            bytes: vec![0; BINS],
        }
    }

    /// Of a bin, ns.
    pub fn width(&self) -> i64 {
        self.width
    }
}

impl Sent {
    /// Adds bytes at times that mostly come in order; `at` is where the last ones went.
    #[inline]
    pub fn add(&mut self, at: &mut Bin, time: i64, bytes: u64) {
        let bin = at.of(self.width, time);
        self.bytes[bin] = self.bytes[bin].saturating_add(bytes);
    }

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
    #[inline]
    fn of(&mut self, width: i64, time: i64) -> usize {
        let time = time.max(0);
        if time < self.begin || time >= self.end {
            self.number = bin(width, time);
            self.begin = self.number as i64 * width;
            self.end = match self.number + 1 {
                BINS => i64::MAX,
                _ => self.begin + width,
            };
        }
        self.number
    }
}

fn bin(width: i64, time: i64) -> usize {
    (time.max(0) / width).min(BINS as i64 - 1) as usize
}

/// Binary digits of a weight after the point.
const POINT: u32 = 20;

/// Weights of the time of a run.
pub struct Weights {
    width: i64,
    /// Before each bin, weighted ns.
    sums: Vec<i128>,
    /// In it.
    rates: Vec<i128>,
}

impl Weights {
    /// Weight of all time before a moment, ns; `at` is the bin of the moment looked up before.
    #[inline]
    pub fn until(&self, at: &mut Bin, time: i64) -> i128 {
        let time = time.max(0);
        let bin = at.of(self.width, time);
        let within = i128::from(time - bin as i64 * self.width);
        self.sums[bin] + ((within * self.rates[bin]) >> POINT)
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
        let busy: i64 = load.busy.iter().sum();
        assert_eq!(busy, 35 * S);
        let weights = load.weights(&Serial, 20 * S, 3);
        let weight = |from: i64, until: i64| {
            let at = &mut Bin::default();
            let weight = weights.until(at, until * S) - weights.until(at, from * S);
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
        let weights = load.weights(&Serial, 100, 100);
        assert_eq!(weights.until(&mut Bin::default(), 100), 100 * 100);
        load.add(0, 100, 100);
        let weights = load.weights(&Serial, 100, 100);
        assert_eq!(weights.until(&mut Bin::default(), 100), 100);
    }
}
