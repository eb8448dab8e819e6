//! The detection phase: selects the profile entries that are worth questions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use laggard_baselines::{Baseline, Span};
use laggard_comm::{self as comm, Job};
use laggard_report::Settings;
use laggard_trace::calls::{self, GenericType};
use serde::{Deserialize, Serialize};

use crate::stream::thread::Usual;

/// Profile of one (operation, call path) on one location. ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the call.
    pub operation: u16,
    /// Calls.
    pub count: u64,
    /// Sum of durations.
    pub total: u64,
    /// Shortest.
    pub minimum: u64,
    /// Longest.
    pub maximum: u64,
    /// Bytes sent and received by all calls.
    pub bytes: u64,
    /// Participants of a call: 2 for a message; for a collective, the members of the largest group
    /// that it was called in.
    pub members: u32,
    /// Span of the participants, if known and the same in all calls.
    pub span: Option<Span>,
    /// Of these calls, those that completed file operations and nothing else, and their durations.
    pub on_files: (u64, u64),
}

impl Entry {
    /// Adds calls of the same operation and call path.
    pub fn merge(&mut self, other: &Entry) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.on_files.0 = self.on_files.0.saturating_add(other.on_files.0);
        self.on_files.1 = self.on_files.1.saturating_add(other.on_files.1);
    }
}

/// Cost of a call on a slow network: this for each step of a message from one member to another,
/// plus its bytes. Gigabit Ethernet with TCP takes about as long for a short message and up to
/// eight times as long for a large one; InfiniBand, Omni-Path and shared memory take a tenth or
/// less. A call that takes a multiple of it has waited, even if all of its kind did.
const SLOW_STEP_NS: f64 = 50_000.0;
/// See [`SLOW_STEP_NS`]: 1 GB/s.
const SLOW_NS_PER_BYTE: f64 = 1.0;

impl Entry {
    /// Mean duration, ns.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }

    fn bytes_per_call(&self) -> u64 {
        self.bytes / self.count.max(1)
    }

    /// Time to move the bytes of all calls on a slow network, ns.
    pub fn moving(&self) -> f64 {
        self.bytes as f64 * SLOW_NS_PER_BYTE
    }

    /// Time of a call on a slow network, ns. Collectives by a tree have one step for every doubling
    /// of the group.
    fn on_a_slow_network(&self) -> f64 {
        let steps = f64::from(self.members.max(2)).log2();
        (SLOW_STEP_NS + self.bytes_per_call() as f64 * SLOW_NS_PER_BYTE) * steps
    }
}

/// The filter that flagged an entry, with its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Filter {
    /// No filter: its instances are not asked about.
    #[default]
    None,
    /// A hotspot with one call and without a baseline: nobody can tell whether it was slow, only
    /// for what it waited.
    Once,
    /// A hotspot, and no call of its kind was faster.
    Hotspot,
    /// Slower than its own kind or the table by less than the requested ratio, but the excess of
    /// all calls is a hotspot: the ratio, and the table's value in s.
    Excess(f64, Option<f64>),
    /// Slower than its own kind: the ratio.
    Deviation(f64),
    /// Slower than the table: the ratio, and the table's value in s.
    Baseline(f64, f64),
    /// Filters are off.
    All,
}

/// Decision of the filters about an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The filter that flagged it.
    pub filter: Filter,
    /// Instances at least this long are asked about, ns; `i64::MAX` = none.
    pub threshold: i64,
}

impl Usual {
    /// Usual duration of a transfer. From the table, if it covers such transfers; else from the
    /// fastest of the same function and size; else, for mixed sizes, from a slow network.
    pub fn of(
        operation: u16,
        (bytes, span): (u64, Option<Span>),
        settings: &Settings,
        baseline: &dyn Baseline,
        kinds: &Kinds,
    ) -> Usual {
        let by_table = baseline.lookup_within(calls::name(operation), bytes, 2, span);
        let (expected, ratio) = match by_table {
            Some(seconds) => (seconds * 1e9, settings.baseline_ratio),
            None => {
                let fastest = kinds.transfers.get(&(operation, bytes));
                let on_a_slow_network = SLOW_STEP_NS + bytes as f64 * SLOW_NS_PER_BYTE;
                let expected = fastest.map_or(on_a_slow_network, |&fastest| fastest as f64);
                (expected.max(1.0), settings.deviation_ratio)
            }
        };
        Usual {
            expected: expected as i64,
            slow: (expected * ratio) as i64,
        }
    }
}

/// Shortest and longest instance of each kind (operation, size class) in the run.
#[derive(Default, Serialize, Deserialize)]
pub struct Kinds {
    /// Shortest and longest instance, ns.
    extremes: BTreeMap<Kind, (u64, u64)>,
    /// The fastest one-sided transfer by function and number of bytes, ns.
    transfers: BTreeMap<(u16, u64), u64>,
}

/// Number of the call, and power of two of the bytes.
type Kind = (u16, u32);

fn kind(entry: &Entry) -> Kind {
    let size = u64::BITS - entry.bytes_per_call().leading_zeros();
    (entry.operation, size)
}

/// Extremes of no instance.
const NONE: (u64, u64) = (u64::MAX, 0);

fn widen(extremes: &mut (u64, u64), (least, most): (u64, u64)) {
    *extremes = (extremes.0.min(least), extremes.1.max(most));
}

fn lower(all: &mut BTreeMap<(u16, u64), u64>, key: (u16, u64), least: u64) {
    let known = all.entry(key).or_insert(least);
    *known = least.min(*known);
}

impl comm::Filter for Kinds {
    fn merge(&mut self, other: Kinds) {
        for (kind, times) in other.extremes {
            widen(self.extremes.entry(kind).or_insert(NONE), times);
        }
        for (key, least) in other.transfers {
            lower(&mut self.transfers, key, least);
        }
    }
}

impl Kinds {
    /// Extremes over all agents. `transfers`: functions, bytes and least times of one-sided
    /// transfers. Collective.
    ///
    /// # Errors
    /// See [`comm::merge_up`].
    pub fn new<'e>(
        job: &dyn Job,
        entries: impl Iterator<Item = &'e Entry>,
        transfers: impl Iterator<Item = (u16, u64, u64)>,
    ) -> Result<Self> {
        let mut fastest: BTreeMap<(u16, u64), u64> = BTreeMap::new();
        for (operation, bytes, least) in transfers {
            lower(&mut fastest, (operation, bytes), least);
        }
        let mut own: BTreeMap<Kind, (u64, u64)> = BTreeMap::new();
        for entry in entries.filter(|entry| entry.count > 0) {
            let times = (entry.minimum, entry.maximum);
            widen(own.entry(kind(entry)).or_insert(NONE), times);
        }
        let own = Kinds {
            extremes: own,
            transfers: fastest,
        };
        let merged = comm::merge_up(job, own)?;
        comm::from_head(job, merged.unwrap_or_default())
    }

    /// Upper bound of the cost of a call of the entry that waits for nobody, and its cost on a slow
    /// network, ns. The bound is the table's value, if the table covers such calls, else the
    /// fastest of its kind, times the ratio from which on a call is slow. The fastest may itself
    /// have waited, if it took longer than on a slow network.
    pub fn cost(&self, entry: &Entry, baseline: &dyn Baseline, settings: &Settings) -> (f64, f64) {
        let (expected, ratio) = self.expected(entry, baseline, settings);
        (expected * ratio, entry.on_a_slow_network())
    }

    /// What a call of the entry takes that waits for nobody. None is slow that would take as long on a slow
    /// network.
    pub fn usual(&self, entry: &Entry, baseline: &dyn Baseline, settings: &Settings) -> Usual {
        let (expected, ratio) = self.expected(entry, baseline, settings);
        Usual {
            expected: expected as i64,
            slow: (expected * ratio).max(entry.on_a_slow_network()) as i64,
        }
    }

    /// See [`Kinds::cost`], without the ratio, and the ratio.
    fn expected(&self, entry: &Entry, baseline: &dyn Baseline, settings: &Settings) -> (f64, f64) {
        let name = calls::name(entry.operation);
        let (bytes, slow) = (entry.bytes_per_call(), entry.on_a_slow_network());
        let by_table = baseline.lookup_within(name, bytes, entry.members, entry.span);
        match by_table {
            Some(seconds) => ((seconds * 1e9).max(1.0), settings.baseline_ratio),
            None => {
                let fastest = self.of(entry).0.max(1) as f64;
                // Transfers are compared only with their own kind, see `Usual::of`.
                let generic = calls::call(entry.operation).map(|call| call.generic);
                let fastest = match generic {
                    Some(GenericType::OneSidedPut | GenericType::OneSidedGet) => fastest,
                    _ => fastest.min(slow),
                };
                (fastest, settings.deviation_ratio)
            }
        }
    }

    /// The fastest and the slowest call of the entry's kind, ns.
    fn of(&self, entry: &Entry) -> (u64, u64) {
        let own = (entry.minimum, entry.maximum);
        self.extremes.get(&kind(entry)).copied().unwrap_or(own)
    }
}

/// Small entries or findings may add up. Those that the filters skip for their size cost a location
/// less than this multiple of the hotspot's share in all.
pub const REST: f64 = 1.5;

/// Time from which on an entry of a location is a hotspot, ns; `totals` are those of all its
/// entries. It is the hotspot's share of the location's run time. It is less if the smaller entries
/// add up to [`REST`] times as much, so that the largest of them are included.
pub fn hotspot_share(totals: impl Iterator<Item = u64>, wall: f64, percent: f64) -> f64 {
    let share = wall * percent / 100.0;
    let mut small: Vec<u64> = totals.filter(|&total| (total as f64) < share).collect();
    small.sort_unstable_by_key(|&total| Reverse(total));
    let mut rest = small.iter().copied().fold(0, u64::saturating_add);
    let mut least = share;
    for total in small {
        if (rest as f64) < REST * share {
            break;
        }
        least = total as f64;
        rest = rest.saturating_sub(total);
    }
    least
}

/// Fast instances of an entry are left out only if all of them together cannot have lost more than
/// this part of the hotspot's share.
const LEFT_OUT: f64 = 0.5;

/// Duration from which on instances are asked about, ns, in an entry with calls of `usual` ns. The
/// entry is a hotspot from `share` ns on.
fn threshold(entry: &Entry, usual: f64, ratio: f64, share: f64) -> i64 {
    let each = LEFT_OUT * share / entry.count.max(1) as f64;
    (usual + (usual * (ratio - 1.0)).clamp(0.0, each)) as i64
}

/// Judges an entry of a location. Hotspots take `share` ns, see [`hotspot_share`].
pub fn judge(
    entry: &Entry,
    share: f64,
    settings: &Settings,
    baseline: &dyn Baseline,
    kinds: &Kinds,
) -> Verdict {
    if settings.all {
        return Verdict {
            filter: Filter::All,
            threshold: 0,
        };
    }
    let rejected = Verdict {
        filter: Filter::None,
        threshold: i64::MAX,
    };
    if entry.count == 0 || (entry.total as f64) < share {
        return rejected;
    }
    // Time of all calls beyond the usual one: an upper bound of their waiting.
    let excess = |usual: f64| entry.total as f64 - usual * entry.count as f64;
    let name = calls::name(entry.operation);
    let (bytes, members) = (entry.bytes_per_call(), entry.members);
    if let Some(expected) = baseline.lookup_within(name, bytes, members, entry.span) {
        let usual = (expected * 1e9).max(1.0);
        let ratio = entry.mean() / usual;
        let filter = if ratio >= settings.baseline_ratio {
            Filter::Baseline(ratio, expected)
        } else if excess(usual) >= share {
            Filter::Excess(ratio, Some(expected))
        } else {
            return rejected;
        };
        let threshold = threshold(entry, usual, settings.baseline_ratio, share);
        return Verdict { filter, threshold };
    }
    if entry.count == 1 {
        return Verdict {
            filter: Filter::Once,
            threshold: 0,
        };
    }
    let (least, most) = kinds.of(entry);
    let fastest = least.max(1) as f64;
    let spread = most as f64 / fastest;
    // The fastest of its kind may itself have waited.
    let reference = fastest.min(entry.on_a_slow_network());
    let threshold = threshold(entry, reference, settings.deviation_ratio, share);
    let ratio = (entry.mean() / entry.minimum.max(1) as f64)
        .max(entry.maximum as f64 / entry.mean().max(1.0))
        .max(entry.mean() / fastest);
    if ratio >= settings.deviation_ratio {
        return Verdict {
            filter: Filter::Deviation(ratio),
            threshold,
        };
    }
    if entry.mean() >= reference * settings.deviation_ratio {
        // All calls are alike, and slow.
        return Verdict {
            filter: Filter::Hotspot,
            threshold,
        };
    }
    if spread < settings.deviation_ratio {
        // All calls of the run are alike, and there is no table to compare with.
        return Verdict {
            filter: Filter::Hotspot,
            threshold: 0,
        };
    }
    if excess(reference) >= share {
        return Verdict {
            filter: Filter::Excess(ratio, None),
            threshold,
        };
    }
    // Only others of its kind were slow.
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_baselines::Empty;
    use laggard_comm::Serial;

    fn entry(count: u64, minimum: f64, total: f64, maximum: f64) -> Entry {
        let (minimum, total, maximum) = (minimum as u64, total as u64, maximum as u64);
        Entry {
            operation: calls::number::MPI_Recv,
            count,
            total,
            minimum,
            maximum,
            bytes: 0,
            members: 2,
            span: None,
            on_files: (0, 0),
        }
    }

    fn judged(entry: &Entry, all: &[Entry]) -> Verdict {
        let kinds = Kinds::new(&Serial, all.iter(), [].into_iter()).unwrap();
        judge(entry, 1e7, &Settings::default(), &Empty, &kinds)
    }

    fn verdict(entry: &Entry, all: &[Entry]) -> Filter {
        judged(entry, all).filter
    }

    #[test]
    fn an_entry_below_the_hotspot_share_is_left_alone() {
        let small = entry(10, 1e3, 9e6, 8e6);
        assert_eq!(verdict(&small, &[small]), Filter::None);
    }

    #[test]
    fn a_slow_instance_among_fast_ones_deviates() {
        let mixed = entry(10, 1e6, 60e6, 50e6);
        assert!(matches!(verdict(&mixed, &[mixed]), Filter::Deviation(r) if r > 8.0));
    }

    #[test]
    fn entries_slow_throughout_are_compared_with_their_kind() {
        let slow = entry(5, 60e6, 300e6, 60e6);
        let fast = entry(500, 3e4, 16e6, 4e4);
        assert!(matches!(verdict(&slow, &[slow, fast]), Filter::Deviation(r) if r > 500.0));
        assert_eq!(verdict(&fast, &[slow, fast]), Filter::None);
        assert_eq!(verdict(&slow, &[slow]), Filter::Hotspot);
    }

    #[test]
    fn waits_that_are_the_fastest_of_their_kind_are_asked_about() {
        let many = entry(10, 39e6, 400e6, 43e6);
        let one = entry(1, 90e6, 90e6, 90e6);
        let verdict = judged(&many, &[many, one]);
        assert_eq!(verdict.filter, Filter::Hotspot);
        // The threshold includes the shortest of them.
        assert!(verdict.threshold < 1_000_000, "{verdict:?}");
    }

    #[test]
    fn large_messages_and_groups_may_take_longer() {
        let mut bytes = entry(1, 0.0, 0.0, 0.0);
        bytes.bytes = 1_000_000;
        assert_eq!(bytes.on_a_slow_network(), 1_050_000.0);
        bytes.members = 8;
        assert_eq!(bytes.on_a_slow_network(), 3_150_000.0);
        let large = Entry {
            bytes: 200_000_000,
            ..entry(2, 60e6, 120e6, 60e6)
        };
        let larger = Entry {
            bytes: 260_000_000,
            ..entry(2, 130e6, 260e6, 130e6)
        };
        assert_eq!(verdict(&large, &[large, larger]), Filter::None);
    }

    #[test]
    fn small_entries_are_hotspots_if_they_are_many() {
        let share = |totals: &[u64]| hotspot_share(totals.iter().copied(), 1000.0, 1.0);
        assert_eq!(share(&[500, 8, 6]), 10.0);
        assert_eq!(share(&[500, 9, 8, 7, 6]), 8.0);
        assert_eq!(share(&[1; 100]), 1.0);
        assert_eq!(hotspot_share([5].into_iter(), 1000.0, 0.0), 0.0);
    }

    /// Calls that take a tenth of the time without a late partner, and at most twice as long.
    #[test]
    fn what_long_calls_may_have_waited_is_a_hotspot() {
        let large = |count, minimum, total, maximum| Entry {
            bytes: 1_000_000 * count,
            ..entry(count, minimum, total, maximum)
        };
        let usual = large(1000, 1e5, 102e6, 2e5);
        let late = large(1000, 1e5, 150e6, 2e5);
        let other = large(2, 3e5, 6e5, 3e5);
        let all = [usual, late, other];
        // 2 ms more than 1000 of the fastest; a hotspot starts at 10.
        assert_eq!(verdict(&usual, &all), Filter::None);
        let found = judged(&late, &all);
        assert_eq!(found.filter, Filter::Excess(1.5, None));
        // Half of the hotspot's share, 10 ms, may be left out of 1000 calls.
        assert_eq!(found.threshold, 105_000);
    }

    #[test]
    fn what_is_called_once_cannot_be_judged() {
        let once = entry(1, 60e6, 60e6, 60e6);
        let fast = entry(500, 3e4, 16e6, 4e4);
        // Asked about even if others of its kind, called elsewhere, were faster.
        let verdict = judged(&once, &[once, fast]);
        assert_eq!((verdict.filter, verdict.threshold), (Filter::Once, 0));
        let small = entry(1, 9e6, 9e6, 9e6);
        assert_eq!(judged(&small, &[small]).filter, Filter::None);
        let settings = Settings::default();
        let kinds = Kinds::new(&Serial, [].iter(), [].into_iter()).unwrap();
        let covered = judge(&once, 1e7, &settings, &Fixed, &kinds);
        assert_eq!(covered.filter, Filter::Baseline(3.0, 0.02));
    }

    struct Fixed;
    impl Baseline for Fixed {
        fn lookup(&self, _: &str, _: u64, _: u32) -> Option<f64> {
            Some(0.02)
        }
    }

    #[test]
    fn the_table_decides_where_it_covers() {
        let settings = Settings::default();
        let kinds = Kinds::new(&Serial, [].iter(), [].into_iter()).unwrap();
        let judged = |entry: &Entry| judge(entry, 1e7, &settings, &Fixed, &kinds);
        let slow = judged(&entry(5, 60e6, 300e6, 60e6));
        assert_eq!(slow.filter, Filter::Baseline(3.0, 0.02));
        // Five instances that take 1.5 times as long would be 5 % of the time; half of 1 % may be
        // left out.
        assert_eq!(slow.threshold, 21_000_000);
        let small = judged(&entry(500, 60e6, 30e9, 60e6));
        assert_eq!(small.threshold, 20_010_000);
        assert_eq!(judged(&entry(5, 20e6, 100e6, 20e6)).filter, Filter::None);
    }

    #[test]
    fn a_transfer_is_compared_with_its_size_or_the_table() {
        let settings = Settings::default();
        let put = calls::number::MPI_Put;
        let fastest = [(put, 8, 900), (put, 8, 500), (put, 64, 700)].into_iter();
        let kinds = Kinds::new(&Serial, [].iter(), fastest).unwrap();
        let usual = |bytes, baseline: &dyn Baseline| {
            let usual = Usual::of(put, (bytes, None), &settings, baseline, &kinds);
            (usual.expected, usual.slow)
        };
        assert_eq!(usual(8, &Empty), (500, 1000));
        assert_eq!(usual(1_000_000, &Empty), (1_050_000, 2_100_000));
        assert_eq!(usual(8, &Fixed), (20_000_000, 30_000_000));
    }
}
