//! Metrics that count what a thread does: from their values in events, how much was counted between two calls.
//!
//! Values are sums since the thread began, told before it enters or leaves a region. In archives of laggard they
//! grow between calls alone, and are told at the enter of the call that ends such a time.

use laggard_trace::{COUNTERS, Counts};
use rustc_hash::{FxHashMap, FxHashSet};

/// `OTF2_METRIC_VALUE_MASK`: the part of a mode that says what values are.
const VALUE_MASK: u8 = 15;
/// `OTF2_METRIC_VALUE_ACCUMULATED`: sums.
const ACCUMULATED: u8 = 0;
/// `OTF2_METRIC_ASYNCHRONOUS`: values come at any time.
const ASYNCHRONOUS: u8 = 2;

/// Counters of PAPI that are laggard's own ones: by these, it tells more work from slower work.
const OWN: [(&str, &str); 2] = [("PAPI_TOT_INS", "instructions"), ("PAPI_TOT_CYC", "cycles")];

/// Texts of an archive by number.
type Texts = FxHashMap<u32, Box<[u8]>>;

/// By number of a metric: for each of its values, the position of the counter among all.
pub type CountersOf = FxHashMap<u32, Vec<Option<u32>>>;

/// One value of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Name.
    pub name: u32,
    /// `OTF2_MetricMode`.
    pub mode: u8,
    /// The unit is multiplied by this base (2, or else 10) to this power.
    pub scale: (u8, i64),
    /// Unit.
    pub unit: u32,
}

/// The metrics of an archive.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Values, by number.
    pub members: FxHashMap<u32, Member>,
    /// By number of the metric: numbers of its values, and `OTF2_MetricOccurrence`.
    pub classes: FxHashMap<u32, (Vec<u32>, u8)>,
    /// Metrics about something else than who records them.
    pub instances: u64,
    /// Those that are counters.
    pub counters: CountersOf,
    /// How many values are no counters.
    pub others: u64,
}

impl Metrics {
    fn is_counter(&self, member: u32, occurrence: u8) -> bool {
        let known = self.members.get(&member);
        let is_sum = known.is_some_and(|known| known.mode & VALUE_MASK == ACCUMULATED);
        is_sum && occurrence != ASYNCHRONOUS
    }

    /// Finds the counters: sums of what the recording thread does, told where it enters and leaves regions. Returns
    /// their names in order, numbers among the archive's texts.
    pub fn find_counters(&mut self, texts: &mut Texts) -> Vec<u32> {
        let mut names = Vec::new();
        let mut numbers: Vec<u32> = self.classes.keys().copied().collect();
        numbers.sort_unstable();
        let mut of: FxHashMap<u32, u32> = FxHashMap::default();
        let mut others: FxHashSet<u32> = FxHashSet::default();
        for number in numbers {
            let (members, occurrence) = &self.classes[&number];
            let mut counters = Vec::with_capacity(members.len());
            for &member in members {
                let is_counter = self.is_counter(member, *occurrence);
                if is_counter && !of.contains_key(&member) && of.len() < COUNTERS {
                    of.insert(member, names.len() as u32);
                    names.push(self.members[&member].shown(texts));
                }
                let counter = of.get(&member).copied().filter(|_| is_counter);
                if counter.is_none() {
                    others.insert(member);
                }
                counters.push(counter);
            }
            self.counters.insert(number, counters);
        }
        self.others = others.len() as u64 + self.instances;
        names
    }
}

impl Member {
    /// The text with its name, and with its unit if it has one: `ru_utime (10^-6 s)`.
    fn shown(&self, texts: &mut Texts) -> u32 {
        let text = |number| {
            let bytes = texts.get(&number).map_or(&[][..], |bytes| bytes);
            String::from_utf8_lossy(bytes)
        };
        let (name, unit) = (text(self.name), text(self.unit));
        let own = OWN.iter().find(|(theirs, _)| *theirs == name);
        let name = match (own, self.scale, unit.trim()) {
            (Some((_, own)), ..) => (*own).to_owned(),
            (None, (_, 0), "" | "#") => return self.name,
            (None, (_, 0), unit) => format!("{name} ({unit})"),
            (None, (base, exponent), unit) => {
                format!(
                    "{name} ({})",
                    format!("{base}^{exponent} {unit}").trim_end()
                )
            }
        };
        // Numbers of texts are used from 0 on.
        let free = (0..u32::MAX)
            .rev()
            .find(|number| !texts.contains_key(number));
        let free = free.unwrap_or(self.name);
        texts
            .entry(free)
            .or_insert_with(|| name.into_bytes().into());
        free
    }
}

/// A value of a metric as the library passes it: what the union holds, as bits of its type.
pub fn value(kind: u8, bits: u64) -> u64 {
    /// `OTF2_TYPE_INT64`, `OTF2_TYPE_DOUBLE`.
    const SIGNED: u8 = 8;
    const REAL: u8 = 10;
    match kind {
        SIGNED => (bits as i64).max(0) as u64,
        REAL => f64::from_bits(bits).max(0.0).round() as u64,
        _ => bits,
    }
}

/// The counters of a thread.
#[derive(Debug, Default)]
pub struct Counting {
    /// The last value of each, and when that was, ticks.
    values: [Option<(u64, u64)>; COUNTERS],
    /// The values when it left the last call, and when that was.
    left: [Option<u64>; COUNTERS],
    since: u64,
}

impl Counting {
    /// A counter has this value.
    pub fn take(&mut self, time: u64, counter: u32, value: u64) {
        if let Some(of) = self.values.get_mut(counter as usize) {
            *of = Some((value, time));
        }
    }

    /// The thread leaves a call.
    pub fn leaves(&mut self, time: u64) {
        self.left = self.values.map(|value| value.map(|(value, _)| value));
        self.since = time;
    }

    /// The thread enters a call: what was counted since the one before, in all of that time. Values from before
    /// this moment do not tell.
    pub fn enters(&self, time: u64) -> Counts {
        let mut counts = Counts::default();
        counts.time = time.saturating_sub(self.since);
        for (at, (now, left)) in self.values.iter().zip(self.left).enumerate() {
            let now = now.filter(|(_, told)| *told == time);
            let counted = now
                .zip(left)
                .and_then(|((now, _), left)| now.checked_sub(left));
            if counted.is_some() {
                counts.set(at, counted);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(counts: &Counts) -> Vec<(usize, u64)> {
        counts.iter().collect()
    }

    #[test]
    fn what_is_counted_in_calls_is_left_out() {
        let mut counting = Counting::default();
        counting.take(10, 0, 500);
        // Nobody knows since when.
        assert_eq!(known(&counting.enters(10)), []);
        counting.take(20, 0, 700);
        counting.leaves(20);
        counting.take(50, 0, 1000);
        let counts = counting.enters(50);
        assert_eq!((known(&counts), counts.time), (vec![(0, 300)], 30));
        // A value that is not told at the enter, and one that is less than before.
        assert_eq!(known(&counting.enters(60)), []);
        counting.take(60, 0, 600);
        assert_eq!(known(&counting.enters(60)), []);
    }

    #[test]
    fn values_are_what_their_types_say() {
        assert_eq!(value(4, 7), 7);
        assert_eq!(value(8, -7i64 as u64), 0);
        assert_eq!(value(10, 2.6f64.to_bits()), 3);
        assert_eq!(value(10, f64::NAN.to_bits()), 0);
    }
}
