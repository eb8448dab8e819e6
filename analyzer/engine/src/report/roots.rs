//! Root causes as rows of the report.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use laggard_patterns::{PatternId, rules};
use laggard_report::{
    Caller, DelayCosts, Factors, RankSet, RootCaller, RootCause, RootCounter, RootFunction,
    RootRank, RootShare, RootSite, SourceLocation, Victim, WaitClass, WorstWait, percent,
    rank_ranges, words,
};
use laggard_trace::calls;
use rustc_hash::FxHashMap;

use crate::findings::places::Places;
use crate::findings::within;
use crate::report::hints::{self, RunFacts};
use crate::report::reasons;
use crate::roots::activities::{Activity, Kind, Site};
use crate::roots::carry::{UNIT, rank_bit, thread_bit};
use crate::roots::functions::{Sampled, Unnamed};
use crate::roots::sums::{Root, Roots, WaitClass as Class, Worst};
use crate::waits::sums::{FindingKey, LISTED};

/// Most root causes that are listed.
const MOST: usize = 100;
/// Smallest root cause that is listed, percent of all time.
const LEAST_PERCENT: f64 = 0.01;
/// Ranks are named until they have this share of a root cause.
const NEARLY_ALL: f64 = 0.9;
/// And those with this share of what the last one of them has.
const ALIKE: f64 = 0.8;
/// Most functions that are listed for each.
const FUNCTIONS: usize = 8;
/// Most waiting calls that are listed for each.
const VICTIMS: usize = 8;

/// Smallest share of a finding's waits, or of what was computed longer, that is listed.
const LEAST_SHARE: f64 = 0.05;
/// The least part of a rank's computation whose stretch a finding tells, percent: less helps nobody.
const LEAST_TOLD: f64 = 10.0;

/// The root causes, and what they are to findings.
pub struct Traced {
    /// The largest.
    pub rows: Vec<RootCause>,
    /// Waiting without a root cause, s.
    pub untraced_s: f64,
    /// Waiting of root causes that are not listed, s.
    pub unlisted_s: f64,
    /// All waiting by the activity that started it, s.
    pub by_activity: BTreeMap<String, f64>,
    roots: Vec<Started>,
    /// By pattern and call: positions in `roots`, and their costs.
    of: FxHashMap<FindingKey, Vec<(usize, u128)>>,
}

/// A root cause.
struct Started {
    all: u128,
    /// By rank, the largest first.
    ranks: Vec<(u32, u128)>,
    /// The same by number of the thread.
    threads: Vec<(u32, u128)>,
    is_latency: bool,
}

impl Started {
    fn new(activity: &Activity, root: &Root) -> Started {
        let by = |number: fn(&(u32, u32)) -> u32| {
            let mut sums: FxHashMap<u32, u128> = FxHashMap::default();
            for (location, amount) in &root.ranks {
                *sums.entry(number(location)).or_default() += amount;
            }
            let mut sums: Vec<_> = sums.into_iter().collect();
            sums.sort_unstable_by_key(|&(number, amount)| (Reverse(amount), number));
            sums
        };
        Started {
            all: root.all(),
            ranks: by(|(rank, _)| *rank),
            threads: by(|(_, thread)| *thread),
            is_latency: activity.kind == Kind::Latency,
        }
    }

    /// An amount as a share of it, 0..=1.
    fn share(&self, amount: u128) -> f64 {
        laggard_report::ratio(amount as f64, self.all as f64)
    }

    /// The fewest ranks or threads with nearly all of it, and those with about as much as the last of these; and their
    /// parts.
    fn most<'a>(&self, parts: &'a [(u32, u128)]) -> &'a [(u32, u128)] {
        let (mut sum, mut last) = (0u128, 0u128);
        let few = parts.iter().take_while(|(_, amount)| {
            if (sum as f64) < NEARLY_ALL * self.all as f64 {
                last = *amount;
            }
            sum += amount;
            *amount > 0 && *amount as f64 >= ALIKE * last as f64
        });
        &parts[..few.count()]
    }

    /// Numbers of the threads that cause nearly all of it, as ranges; empty if the first ones of their
    /// ranks do.
    fn threads(&self) -> String {
        let most = self.most(&self.threads).iter();
        thread_set(most.map(|(number, _)| *number), false)
    }
}

/// Numbers of threads as ranges. Empty for the ranks' first threads, unless all `are_told`.
pub(super) fn thread_set(numbers: impl Iterator<Item = u32>, are_told: bool) -> String {
    let numbers = rank_ranges(numbers);
    match numbers == "0" && !are_told {
        true => String::new(),
        false => numbers,
    }
}

impl Traced {
    /// `waiting` tells the threads that lost time in a finding; `measured` is the time of all locations, ns; `ranks`
    /// the number of ranks. Without a search, nothing is known.
    pub fn new<'f>(
        (roots, regions): (&Roots, &within::Regions),
        waiting: impl Fn(&FindingKey) -> Option<&'f RankSet>,
        (measured, ranks): (f64, usize),
        run: &RunFacts,
        places: &mut Places,
    ) -> Traced {
        let known = roots.of.iter().filter(|_| !roots.is_unknown);
        let mut all: Vec<_> = known.collect();
        all.sort_unstable_by_key(|(activity, root)| (Reverse(root.all()), **activity));
        let mut traced = Traced {
            rows: Vec::new(),
            untraced_s: seconds(roots.untraced),
            unlisted_s: 0.0,
            by_activity: by_activity(roots),
            roots: Vec::new(),
            of: FxHashMap::default(),
        };
        let share = |root: &Root| percent(ns(root.all()), measured);
        let notable = all
            .iter()
            .take(MOST)
            .filter(|(_, root)| share(root) >= words::NOTABLE_PERCENT);
        tell_apart(notable.map(|(activity, _)| **activity), places);
        let mut unlisted = 0u128;
        for (at, (activity, root)) in all.into_iter().enumerate() {
            for (victim, (amount, _)) in &root.victims {
                if let Some(finding) = victim.finding() {
                    traced.of.entry(finding).or_default().push((at, *amount));
                }
            }
            let started = Started::new(activity, root);
            if at < MOST && share(root) >= LEAST_PERCENT {
                let most = started.most(&started.ranks);
                let mut named: Vec<u32> = most.iter().map(|(rank, _)| *rank).collect();
                named.sort_unstable();
                let shares = most.iter().take(LISTED).map(|&(rank, amount)| RootRank {
                    rank,
                    severity_s: seconds(amount),
                });
                let functions = functions(root, roots.period, places);
                let (factors, counters) = counted(activity.kind, root);
                let page_faults = page_faults(activity.kind, root);
                let because = reasons::of_root(
                    (activity.kind, page_faults),
                    &operation(activity.begin),
                    &root.longer,
                    (&functions, unnamed(activity.kind, root, roots.period)),
                    (factors.as_ref(), &counters),
                );
                let mut row = RootCause {
                    id: format!("rc{}", at + 1),
                    ranks: shares.collect(),
                    activity: name(activity).to_owned(),
                    operation: operation(activity.begin),
                    location: place(activity.begin, places),
                    until: site(activity.until, places),
                    parallel_regions: within::rows(regions, activity.late(), places),
                    direct_s: seconds(root.direct),
                    indirect_s: seconds(root.indirect),
                    severity_s: seconds(root.all()),
                    percent: share(root),
                    because,
                    functions,
                    factors,
                    counters,
                    page_faults,
                    victims: victims((root, &named), &waiting, ranks, places),
                    worst_wait: worst(&root.worst),
                    ..RootCause::default()
                };
                row.rank_set = rank_ranges(named.iter().copied());
                row.thread_set = started.threads();
                row.hints = hints::of_root(&row, &named, subject(activity.kind), run);
                traced.rows.push(row);
            } else {
                unlisted += root.all();
            }
            traced.roots.push(started);
        }
        traced.unlisted_s = seconds(unlisted);
        for of in traced.of.values_mut() {
            of.sort_unstable_by_key(|&(at, amount)| (Reverse(amount), at));
        }
        traced
    }

    /// The listed root causes of a finding, the largest part first.
    pub fn shares(&self, key: &FindingKey) -> Vec<RootShare> {
        let shares = self.parts(key).filter_map(|(at, share)| {
            let row = self.rows.get(at).filter(|_| share >= LEAST_SHARE)?;
            Some(RootShare {
                id: row.id.clone(),
                share,
            })
        });
        shares.collect()
    }

    /// Positions of all root causes of a finding, and their shares of its waits.
    fn parts(&self, key: &FindingKey) -> impl Iterator<Item = (usize, f64)> {
        let of = self.of.get(key).map_or(&[][..], |of| of);
        let all: u128 = of.iter().map(|(_, amount)| amount).sum();
        of.iter()
            .map(move |&(at, amount)| (at, laggard_report::ratio(amount as f64, all as f64)))
    }

    /// Whether root causes of a finding are known.
    pub fn knows(&self, key: &FindingKey) -> bool {
        self.of.contains_key(key)
    }

    /// The part, 0..=1, that a rank started itself of the `share` of a finding's time for which it
    /// was late; `None` if that is not known.
    pub fn started(&self, key: &FindingKey, rank: u32, share: f64) -> Option<f64> {
        let own = self.parts(key).map(|(at, part)| {
            let root = &self.roots[at];
            let mut ranks = root.ranks.iter();
            let own = ranks.find(|(own, _)| *own == rank && !root.is_latency);
            part * own.map_or(0.0, |(_, amount)| root.share(*amount))
        });
        let is_known = self.knows(key) && share > 0.0;
        is_known.then(|| (own.sum::<f64>() / share).min(1.0))
    }

    /// Where a rank was between calls while it caused the largest part of the `share` of a finding's time for which it was late, in
    /// words. If it did something else, too, the share is that in which it computed.
    pub fn mostly(
        &self,
        key: &FindingKey,
        rank: u32,
        (share, is_between): (f64, bool),
    ) -> Option<String> {
        let own = self.parts(key).filter_map(|(at, part)| {
            let (root, row) = (&self.roots[at], self.rows.get(at)?);
            let (_, amount) = root.ranks.iter().find(|(own, _)| *own == rank)?;
            let is_told = is_between || row.activity == "computation";
            let stretch = words::stretch(row).filter(|_| is_told)?;
            Some((part * root.share(*amount), stretch))
        });
        let (own, stretch) = own.max_by(|one, other| one.0.total_cmp(&other.0))?;
        let percent = 100.0 * own / share;
        Some(match is_between {
            true if percent >= 50.0 => format!("mostly {stretch}"),
            true if percent >= LEAST_TOLD => format!("{percent:.0} % of it {stretch}"),
            true => return None,
            false if percent >= 50.0 => format!("computing mostly {stretch}"),
            false => return None,
        })
    }

    /// The largest share of a finding's waits that one rank started; 0 if that is not known.
    pub fn most_of_one(&self, key: &FindingKey) -> f64 {
        let mut by_rank: FxHashMap<u32, f64> = FxHashMap::default();
        for (at, part) in self.parts(key) {
            let root = &self.roots[at];
            for &(rank, amount) in root.ranks.iter().take(LISTED) {
                *by_rank.entry(rank).or_default() += part * root.share(amount);
            }
        }
        by_rank.into_values().fold(0.0, f64::max).min(1.0)
    }

    /// The root cause that starts most of a finding, and its share.
    pub fn first(&self, key: &FindingKey) -> Option<(&RootCause, f64)> {
        let (at, share) = self.parts(key).next()?;
        Some((self.rows.get(at)?, share))
    }
}

/// All waiting by the activity of its root cause, and what nobody is known to have started; empty without a
/// search.
fn by_activity(roots: &Roots) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    for (activity, root) in roots.of.iter().filter(|_| !roots.is_unknown) {
        *sums.entry(name(activity)).or_default() += root.all();
    }
    if !roots.is_unknown {
        sums.insert(words::UNTRACED, roots.untraced);
    }
    let some = sums.into_iter().filter(|(_, amount)| *amount > 0);
    some.map(|(name, amount)| (name.to_owned(), seconds(amount)))
        .collect()
}

/// What waits come from and what comes of them, by class.
pub fn classes(roots: &Roots) -> (BTreeMap<String, WaitClass>, BTreeMap<String, DelayCosts>) {
    let mut sums: BTreeMap<&str, Class> = BTreeMap::new();
    for (&pattern, class) in &roots.classes {
        let pattern = u8::try_from(pattern).ok().and_then(PatternId::from_number);
        let sum = sums
            .entry(pattern.map_or("", PatternId::class))
            .or_default();
        sum.add(class);
    }
    let waits = sums.iter().map(|(name, sum)| {
        let all = sum.direct + sum.indirect + sum.untraced;
        let class = WaitClass {
            direct_s: seconds(sum.direct),
            indirect_s: seconds(sum.indirect),
            untraced_s: seconds(sum.untraced),
            propagating_s: seconds(sum.propagating),
            terminal_s: seconds(all.saturating_sub(sum.propagating)),
        };
        ((*name).to_owned(), class)
    });
    let costs = sums.iter().map(|(name, sum)| {
        let costs = DelayCosts {
            short_s: seconds(sum.short),
            long_s: seconds(sum.long),
        };
        ((*name).to_owned(), costs)
    });
    (waits.collect(), costs.collect())
}

fn ns(amount: u128) -> f64 {
    (amount / UNIT as u128) as f64
}

fn seconds(amount: u128) -> f64 {
    let ns = i128::try_from(amount / UNIT as u128);
    laggard_report::seconds(ns.unwrap_or(i128::MAX))
}

/// Root causes that would read alike get callers: of the calls that end them, else of both calls.
fn tell_apart(notable: impl Iterator<Item = Activity>, places: &mut Places) {
    let mut alike: BTreeMap<_, Vec<Activity>> = BTreeMap::new();
    for activity in notable {
        let mut reads = |site: Site| (site.0, words::place(&place(site, places)));
        let (begin, until) = (reads(activity.begin), reads(activity.until));
        let same = alike.entry((activity.kind, begin, until)).or_default();
        same.push(activity);
    }
    for same in alike.into_values().filter(|same| same.len() > 1) {
        let paths = |of: fn(&Activity) -> Site| same.iter().map(move |one| of(one).1);
        let ends: BTreeSet<_> = paths(|one| one.until).collect();
        let are_enough = ends.len() == same.len();
        let begins = paths(|one| one.begin).filter(|_| !are_enough);
        places.tell_apart(begins.collect());
        places.tell_apart(ends.into_iter().collect());
    }
}

pub(super) fn name(activity: &Activity) -> &'static str {
    subject(activity.kind).name()
}

fn subject(kind: Kind) -> rules::Activity {
    match kind {
        Kind::Computation | Kind::Sampled | Kind::Waited | Kind::Counted => {
            rules::Activity::Computation
        }
        Kind::Io => rules::Activity::Io,
        Kind::Call => rules::Activity::Call,
        Kind::Latency => rules::Activity::Latency,
        Kind::Blocked => rules::Activity::Blocked,
        Kind::Preempted => rules::Activity::Preempted,
        Kind::Kernel => rules::Activity::Kernel,
    }
}

pub(super) fn operation((operation, _): Site) -> String {
    match operation {
        0 => String::new(),
        known => calls::name(known).to_owned(),
    }
}

pub(super) fn place(site: Site, places: &mut Places) -> SourceLocation {
    match site == Site::default() {
        true => SourceLocation::default(),
        false => places.of(site.1),
    }
}

pub(super) fn site(site: Site, places: &mut Places) -> Option<RootSite> {
    (site.0 != 0).then(|| RootSite {
        operation: operation(site),
        location: place(site, places),
    })
}

/// Smallest part of what was done longer that counters must tell of.
const COUNTED: f64 = 0.5;

/// What counters say of a root cause.
fn counted(kind: Kind, root: &Root) -> (Option<Factors>, Vec<RootCounter>) {
    let counted = &root.counted;
    if counted.times == 0 || (counted.more as f64) < COUNTED * root.longer.more as f64 {
        return (None, Vec::new());
    }
    let times = counted.times as f64;
    let rows = counted
        .counts
        .iter()
        .map(|(name, [late, others])| RootCounter {
            name: name.clone(),
            late: *late as f64 / times,
            others: *others as f64 / times,
        });
    let rows: Vec<_> = rows.collect();
    let of = |name: &str| {
        counted
            .counts
            .get(name)
            .map(|of| of.map(|count| count as f64))
    };
    let factors = of("instructions").zip(of("cycles"));
    let factors = factors.filter(|_| kind == Kind::Computation);
    let factors = factors.and_then(|(instructions, cycles)| {
        let time = counted.time.map(|time| time as f64);
        let side = |side: usize| [time[side], instructions[side], cycles[side]];
        let occasions = root.longer.count.max(1) as f64;
        let excess_s = root.longer.more as f64 / occasions / 1e9;
        Factors::of(excess_s, side(0), side(1))
    });
    (factors, rows)
}

/// Most time for a page fault with a page of the usual size, ns. Calls of the system may have some, too.
const FAULT_NS: i64 = 10_000;

/// How many page faults more late ranks had, in the mean of all times, if these take half of the time in the kernel
/// or more.
fn page_faults(kind: Kind, root: &Root) -> Option<f64> {
    let (longer, [late, others]) = (&root.longer, root.counted.faults);
    let more = late.saturating_sub(others);
    let explains = more > 0 && more.saturating_mul(FAULT_NS) >= longer.more / 2;
    let is_told = kind == Kind::Kernel && longer.count > 0 && explains;
    is_told.then(|| more as f64 / longer.count as f64)
}

/// Why samples name none of a root cause's functions.
fn unnamed(kind: Kind, root: &Root, period: i64) -> Option<Unnamed> {
    let mut samples = Sampled::default();
    root.functions.values().for_each(|of| samples.add(of));
    let unnamed = Unnamed::of(samples, root.longer.more, period);
    unnamed.filter(|_| kind == Kind::Computation)
}

/// A function, whoever calls it.
struct Function {
    location: SourceLocation,
    sampled: Sampled,
    callers: BTreeMap<Option<Caller>, Sampled>,
}

/// The functions in which late ranks were longer, as far as that is more than chance. Where one has
/// several callers, these are told.
fn functions(root: &Root, period: i64, places: &mut Places) -> Vec<RootFunction> {
    let mut paths: Vec<_> = root.functions.iter().collect();
    paths.sort_unstable_by_key(|(path, sampled)| (Reverse(sampled.more), **path));
    // The first path of a function has most.
    let mut all: BTreeMap<(String, String, u64), Function> = BTreeMap::new();
    for (path, sampled) in paths {
        let function = all.entry(places.which_function(*path));
        let function = function.or_insert_with(|| Function {
            location: places.of_function(*path),
            sampled: Sampled::default(),
            callers: BTreeMap::new(),
        });
        function.sampled.add(sampled);
        let caller = function.callers.entry(places.caller(*path));
        caller.or_default().add(sampled);
    }
    // Without samples nobody tells of what was in no region.
    let least = match period {
        0 => root.longer.more,
        _ => 0,
    };
    let all = all.into_values().map(|of| (of.sampled, of));
    let (largest, sum) = largest(all, least, period);
    // As long as it was in the mean that is told of the whole: not each time counts alike.
    let all_more = root.longer.more.max(sum).max(1) as f64;
    let (_, mean_more) = root.longer.means();
    let told = largest.map(|(of, share)| RootFunction {
        location: of.location,
        more_s: of.sampled.more as f64 / all_more * mean_more / 1e9,
        share,
        callers: told_callers(of.callers, of.sampled, period),
    });
    told.collect()
}

/// The largest callers of a function; none if only one is known. Long call paths are cut off, so that of a
/// function that calls itself often nobody knows who called it first.
fn told_callers(
    mut of: BTreeMap<Option<Caller>, Sampled>,
    function: Sampled,
    period: i64,
) -> Vec<RootCaller> {
    of.remove(&None);
    if of.len() < 2 {
        return Vec::new();
    }
    let of = of.into_iter().map(|(caller, sampled)| (sampled, caller));
    let (told, _) = largest(of, function.more, period);
    let told = told.filter_map(|(caller, share)| {
        let caller = caller?;
        Some(RootCaller { caller, share })
    });
    told.collect()
}

/// The largest parts that are more than chance, with their shares of all that were longer; and how much that is,
/// at least `least`.
fn largest<T>(
    parts: impl Iterator<Item = (Sampled, T)>,
    least: i64,
    period: i64,
) -> (impl Iterator<Item = (T, f64)>, i64) {
    let mut longer: Vec<_> = parts.filter(|(of, _)| of.more > 0).collect();
    // The sort keeps the order of names.
    longer.sort_by_key(|(of, _)| Reverse(of.more));
    let sum = longer.iter().map(|(of, _)| of.more);
    let sum = sum.fold(0, i64::saturating_add).max(least);
    let told = longer
        .into_iter()
        .filter(move |(of, _)| of.is_certain(period));
    let told =
        told.map(move |(of, part)| (part, laggard_report::ratio(of.more as f64, sum as f64)));
    let told = told.filter(|(_, share)| *share >= LEAST_SHARE);
    (told.take(FUNCTIONS), sum)
}

/// When a root cause cost most at once, if somebody waited for it directly.
fn worst(worst: &Worst) -> Option<WorstWait> {
    let seconds = |ns: i64| laggard_report::seconds(ns);
    (worst.cost > 0).then(|| WorstWait {
        rank: worst.rank,
        start_s: seconds(worst.until - worst.waited / i64::from(worst.waits.max(1))),
        end_s: seconds(worst.until),
        severity_s: seconds(worst.cost),
    })
}

/// Who waits because of it, where these ranks are `named` as those that cause it. One that is named alone waits there
/// for others that cause a little of it.
fn victims<'f>(
    (root, named): (&Root, &[u32]),
    waiting: impl Fn(&FindingKey) -> Option<&'f RankSet>,
    ranks: usize,
    places: &mut Places,
) -> Vec<Victim> {
    let mut victims: Vec<_> = root.victims.iter().collect();
    victims.sort_unstable_by_key(|(victim, (amount, _))| (Reverse(*amount), **victim));
    let rows = victims
        .into_iter()
        .take(VICTIMS)
        .map(|(victim, &(amount, who))| {
            let pattern = u8::try_from(victim.pattern)
                .ok()
                .and_then(PatternId::from_number);
            let of_these = |rank: &u32| who.ranks & rank_bit(*rank, ranks) != 0;
            let threads = victim.finding().and_then(|finding| waiting(&finding));
            let threads = threads.into_iter().flat_map(RankSet::iter);
            let threads = threads.filter(|number| who.threads & thread_bit(*number) != 0);
            let of_threads = calls::call(victim.call.0).is_some_and(|call| call.is_threads());
            let thread_set = thread_set(threads, of_threads);
            let mut waits: Vec<u32> = (0..ranks as u32).filter(of_these).collect();
            let is_other = |rank: &u32| [*rank] != *named;
            if thread_set.is_empty() && waits.iter().any(is_other) {
                waits.retain(is_other);
            }
            Victim {
                pattern: pattern.map_or("", PatternId::id).to_owned(),
                operation: operation(victim.call),
                location: place(victim.call, places),
                rank_set: rank_ranges(waits),
                thread_set,
                severity_s: seconds(amount),
            }
        });
    rows.collect()
}
