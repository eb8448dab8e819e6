//! Waiting by polling: successive calls that find nothing.

use laggard_trace::flags;

use crate::stream::columns::Columns;
use crate::stream::rows::Row;

/// Calls that begin within this time of the previous one, ns, are one wait: there is hardly any
/// computation in between.
const GAP: i64 = 100_000;
/// Least share of a location's time for polling at one place to be reported.
const SHARE: f64 = 0.05;
/// Fewer calls are no polling.
const CALLS: u64 = 10;

/// Polling in calls with one signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Calls that found nothing.
    pub calls: u64,
    /// From the first to the last of each series of close calls, ns.
    pub time: u64,
}

impl Polled {
    /// Whether it is much for a location that ran `wall` ns.
    pub fn is_much(&self, wall: u64) -> bool {
        self.calls >= CALLS && self.time as f64 >= SHARE * wall as f64
    }
}

/// Polling of a location.
#[derive(Debug, Default)]
pub struct Polling {
    /// Whether any signature is that of a call that found nothing; unknown before the first slab.
    any: Option<bool>,
    /// By signature.
    sums: Vec<Polled>,
}

impl Polling {
    /// Takes the calls of a new slab.
    pub fn extend(&mut self, columns: &Columns, rows: &[Row]) {
        let is_poll = |at: usize| {
            let row = rows.get(columns.signature[at] as usize);
            row.is_some_and(|row| row.has(flags::UNSUCCESSFUL))
        };
        let any = || rows.iter().any(|row| row.has(flags::UNSUCCESSFUL));
        if !*self.any.get_or_insert_with(any) {
            return;
        }
        self.sums.resize(rows.len(), Polled::default());
        let mut extended = columns.extended.iter().peekable();
        for at in (columns.first..columns.enter.len()).filter(|&at| is_poll(at)) {
            let (enter, leave) = (columns.enter[at], columns.leave[at]);
            let before = at.checked_sub(1).filter(|&before| {
                is_poll(before) && (0..GAP).contains(&(enter - columns.leave[before]))
            });
            let begin = before.map_or(enter, |before| columns.leave[before]);
            while extended.next_if(|(position, _)| *position < at).is_some() {}
            // The collector records a series of close calls as one.
            let repeated = extended.peek().filter(|(position, _)| *position == at);
            let repeated = repeated.and_then(|(_, event)| event.repeated);
            let sum = &mut self.sums[columns.signature[at] as usize];
            let calls = repeated.map_or(1, |(calls, _)| u64::from(calls));
            sum.calls = sum.calls.saturating_add(calls);
            sum.time = sum.time.saturating_add((leave - begin).max(0) as u64);
        }
    }

    /// Signatures with their sums.
    pub fn sums(&self) -> impl Iterator<Item = (usize, Polled)> {
        let sums = self.sums.iter().copied().enumerate();
        sums.filter(|(_, sum)| sum.calls > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> [Row; 3] {
        let poll = Row {
            flags: flags::UNSUCCESSFUL,
            ..Row::UNDEFINED
        };
        [Row::UNDEFINED, poll, poll]
    }

    /// The sums of signatures 1 and 2 over calls in slabs.
    fn sums(slabs: &[&[(i64, i64, u32)]]) -> [Polled; 2] {
        let mut polling = Polling::default();
        let mut columns = Columns::default();
        for slab in slabs {
            columns.turn();
            for &(enter, leave, signature) in *slab {
                columns.push(enter, leave, signature);
            }
            polling.extend(&columns, &rows());
        }
        [polling.sums[1], polling.sums[2]]
    }

    fn polled(calls: u64, time: u64) -> Polled {
        Polled { calls, time }
    }

    #[test]
    fn calls_close_to_each_other_are_one_wait() {
        let calls = [
            (0, 10, 1),
            // Two requests in turn.
            (50_000, 50_010, 2),
            (90_000, 90_010, 1),
            // Too long after the one before.
            (300_000, 300_010, 1),
            // Another call is in between.
            (300_020, 300_030, 0),
            (300_040, 300_050, 1),
        ];
        let expected = [polled(4, 10 + 40_000 + 10 + 10), polled(1, 50_000)];
        assert_eq!(sums(&[&calls]), expected);
        // Slabs may end anywhere.
        for at in 0..calls.len() {
            assert_eq!(sums(&[&calls[..at], &calls[at..]]), expected, "{at}");
        }
    }

    #[test]
    fn few_calls_and_short_times_are_no_polling() {
        assert!(polled(10, 50).is_much(1_000));
        assert!(!polled(9, 900).is_much(1_000));
        assert!(!polled(1_000, 49).is_much(1_000));
    }
}
