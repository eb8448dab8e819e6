//! Activity of a late party, in a phrase.

use std::cmp::Reverse;

use laggard_patterns::{Late, PatternId};
use laggard_report::units::{count, duration, percent};
use laggard_report::{Factors, RootCounter, RootFunction, words};
use laggard_trace::calls::{self, Shape};

use crate::basics::intern::PathKey;
use crate::findings::places::Places;
use crate::roots::activities::Kind;
use crate::roots::functions::Unnamed;
use crate::roots::sums::Longer;
use crate::waits::sums::{Cause, CauseKey, Other, Parts};

/// Activity of a late party while others waited.
#[derive(Clone, Debug, Default)]
pub struct Reason {
    /// The phrase.
    pub text: String,
    /// The activity as a fact for hints.
    pub late: Late,
    /// Advice about the late rank, if it was delayed itself.
    pub hint: Option<String>,
    /// Whether that is about calls that held it up.
    pub is_held_up: bool,
    /// Whether all that is told was between calls.
    pub is_between: bool,
}

/// Below this factor, it is told in percent.
const FEW_TIMES: f64 = 1.5;
/// Most functions named in the text, and callers of each.
const NAMED: usize = 3;
/// Smaller parts of what was longer are not told.
const LEAST_FACTOR: f64 = 0.1;
/// Beyond this factor, the others count as not having done it.
const MOST_TIMES: f64 = 100.0;

/// What late ranks did more than those that waited for them, from all comparisons of the two, and in
/// which functions.
pub fn of_root(
    (kind, page_faults): (Kind, Option<f64>),
    operation: &str,
    longer: &Longer,
    (functions, unnamed): (&[RootFunction], Option<Unnamed>),
    (factors, counters): (Option<&Factors>, &[RootCounter]),
) -> String {
    let text = more(kind, operation, longer);
    let text = match factors.and_then(told_factors) {
        Some(factors) if !text.is_empty() => format!("{text}; {factors}"),
        _ => text,
    };
    let text = match page_faults.filter(|_| !text.is_empty()) {
        Some(faults) => format!("{text}; {} page faults more", number(faults)),
        None => text,
    };
    let more = counters.iter().filter(|of| is_more(of));
    let more = more.map(|of| {
        format!(
            "{} {} instead of {}",
            of.name,
            number(of.late),
            number(of.others)
        )
    });
    let more: Vec<_> = more.take(NAMED).collect();
    let text = match text.is_empty() || more.is_empty() {
        true => text,
        false => format!("{text}; {}", more.join(", ")),
    };
    let told = functions.iter().take(NAMED);
    let told = told.map(|of| {
        let (time, place) = (duration(of.more_s), words::place(&of.location));
        let callers = of.callers.iter().take(NAMED);
        let callers = callers.map(|of| {
            let share = percent(100.0 * of.share);
            format!("{share} from {}", words::caller(&of.caller))
        });
        match callers.collect::<Vec<_>>().join(", ") {
            callers if callers.is_empty() => format!("{time} more at {place}"),
            callers => format!("{time} more at {place} ({callers})"),
        }
    });
    let told: Vec<_> = told.collect();
    match (text.is_empty(), told.is_empty(), unnamed) {
        (false, false, _) => format!("{text}: {}", told.join(", ")),
        (false, true, Some(Unnamed::TooFew)) => {
            format!("{text}; too few samples to name a function")
        }
        (false, true, Some(Unnamed::Spread)) => format!("{text}; no function stands out"),
        _ => text,
    }
}

/// Which factors made computation longer, those with most first.
fn told_factors(of: &Factors) -> Option<String> {
    let mut parts = [
        (of.instructions_s, "more instructions"),
        (
            of.cycles_per_instruction_s,
            "more cycles for each instruction",
        ),
        (of.frequency_s, "a slower clock"),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = |part: f64| laggard_report::ratio(part, of.excess_s);
    let mut told = parts
        .iter()
        .filter(|(part, _)| share(*part) >= LEAST_FACTOR);
    let (first, name) = told.next()?;
    let (first, all) = (duration(*first), duration(of.excess_s));
    let rest = told.map(|(part, name)| format!(", {name} {}", duration(*part)));
    let rest: String = rest.collect();
    Some(format!("{name} took {first} of the {all} more{rest}"))
}

/// Whether it is worth a word: factors tell of instructions and cycles.
fn is_more(of: &RootCounter) -> bool {
    !matches!(of.name.as_str(), "instructions" | "cycles")
        && of.late >= 1.0
        && of.late > FEW_TIMES * of.others
}

fn number(of: f64) -> String {
    count(of.round() as u64)
}

fn more(kind: Kind, operation: &str, longer: &Longer) -> String {
    if kind == Kind::Latency {
        return "all that was done longer explains only a part of the wait".to_owned();
    }
    if longer.count == 0 {
        return String::new();
    }
    let did = match kind {
        Kind::Computation | Kind::Sampled | Kind::Waited | Kind::Counted => "computed".to_owned(),
        Kind::Blocked => "was asleep or blocked".to_owned(),
        Kind::Preempted => "was without a processor".to_owned(),
        Kind::Kernel => "was in the kernel".to_owned(),
        _ => format!("was in {operation}"),
    };
    let (mean, more) = longer.means();
    let others = (mean - more).max(0.0);
    let times = mean / others;
    let told = |time: f64| duration(time / 1e9);
    let than = match times {
        ..FEW_TIMES => format!("{:.1} % longer than", 100.0 * (times - 1.0)),
        ..MOST_TIMES => format!("{times:.1}x as long as"),
        _ => {
            let time = told(mean);
            return format!("{did} for {time} in the mean, which those that waited did not");
        }
    };
    let (time, others) = (told(mean), told(others));
    format!("{did} {than} those that waited, in the mean {time} instead of {others}")
}

/// Activities with a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Activity {
    Computation,
    Blocked,
    Preempted,
    Io,
    Waiting,
}

/// The activity of the late party while `waiting_ranks` ranks waited in such a finding, for it or
/// for others. `lost` is what the finding lost to all late parties, ns. `waits` says whether findings charge most of an operation's time at a place as
/// waiting.
pub fn because(
    (pattern, operation, path): (PatternId, u16, PathKey),
    key: &CauseKey,
    (cause, lost): (&Cause, u64),
    waiting_ranks: u64,
    waits: impl Fn(u16, PathKey) -> bool,
    places: &mut Places,
) -> Reason {
    if pattern == PatternId::LateSenderWrongOrderSameSource
        && cause.sums.waiting > cause.sums.severity / 2
    {
        return Reason {
            text: format!(
                "messages were received in another order than rank {} sent them",
                key.rank
            ),
            ..Reason::default()
        };
    }
    if matches!(pattern, PatternId::CompetingPut | PatternId::CompetingGet) {
        return Reason {
            text: "transferred to or from the same rank meanwhile".to_owned(),
            ..Reason::default()
        };
    }
    let is_once = is_once(key.operation, cause.instances, waiting_ranks);
    let longest = &cause.longest;
    if cause.sums.known() < cause.sums.severity / 2 {
        let up_to = if is_once { "" } else { "up to " };
        let later = duration(longest.severity as f64 / 1e9);
        return Reason {
            text: format!("came {up_to}{later} later"),
            ..Reason::default()
        };
    }
    // For a single occasion, the longest waiter saw most of the activity: its times are complete.
    // For many, shares of all time are exact, but means over waiters are not. Where several were
    // late, each is charged with a part of the time only.
    let is_alone = cause.sums.severity >= lost - lost / 20;
    let view = match is_once && is_alone && longest.known() >= longest.severity / 2 {
        true => View::Times(longest),
        false => View::Shares(&cause.sums),
    };
    let named = named(view.parts());
    let held = held_in(cause, waits, places);
    let phrases: Vec<String> = named
        .iter()
        .enumerate()
        .map(|(at, activity)| {
            let amount = view.amount(*activity, at == 0);
            match (activity, &held) {
                (Activity::Computation, _) => format!("computed {amount}"),
                (Activity::Blocked, _) => format!("was asleep or blocked for {amount}"),
                (Activity::Preempted, _) => {
                    format!("was without a processor for {amount}")
                }
                (Activity::Io, _) => format!("spent {amount} in file operations"),
                (
                    Activity::Waiting,
                    Some(Held {
                        how,
                        place,
                        waits,
                        off,
                        ..
                    }),
                ) => {
                    let did = if *waits { "itself waited" } else { "spent" };
                    let off =
                        off.map(|(share, state)| format!(", {share:.0} % of it {}", state.text()));
                    format!("{did} {amount}{how} {place}{}", off.unwrap_or_default())
                }
                (Activity::Waiting, None) => format!("spent {amount} inside communication"),
            }
        })
        .collect();
    let before = match pattern.unpolled() {
        PatternId::LateReceiver | PatternId::LateReceiverSync => "before it posted the receive",
        PatternId::LateSender
        | PatternId::LateSenderSync
        | PatternId::LateSenderWrongOrderSameSource
        | PatternId::LateSenderWrongOrderOtherSource => "before the send",
        PatternId::WaitOnValue => "before it wrote",
        PatternId::WaitOnLock | PatternId::LockContention => "while it held the lock",
        PatternId::WaitForProgress => "before it entered MPI",
        _ => "before it came",
    };
    let hint = match (most(view.parts()), &held) {
        // Both are the same place: mending one mends the other.
        (Activity::Waiting, Some(held)) if held.at == (operation, path) => None,
        (
            Activity::Waiting,
            Some(Held {
                place, waits, off, ..
            }),
        ) => {
            let rank = key.rank;
            Some(match off {
                _ if *waits => {
                    format!("First mend what rank {rank} itself waited for, in {place}.")
                }
                Some((_, OffState::Preempted)) => {
                    format!("First see who takes the processor from rank {rank} in {place}.")
                }
                Some((_, OffState::Blocked)) => {
                    format!("First see why rank {rank} is asleep or blocked in {place}.")
                }
                None => format!("First see why rank {rank} is so long in {place}."),
            })
        }
        (Activity::Io, _) => Some(format!(
            "Relieve rank {} of file operations before the call, or make them fewer and larger.",
            key.rank
        )),
        _ => None,
    };
    Reason {
        is_held_up: most(view.parts()) == Activity::Waiting,
        is_between: !named.contains(&Activity::Waiting) && !named.contains(&Activity::Io),
        text: format!("{} {before}", list(&phrases)),
        late: match named.contains(&Activity::Computation) {
            true => Late::Computed,
            false => Late::HeldUp,
        },
        hint,
    }
}

/// Whether the waits look like a single occasion: nobody waited twice.
fn is_once(operation: u16, instances: u64, waiting_ranks: u64) -> bool {
    let shape = calls::call(operation).map(|call| call.shape);
    instances <= waiting_ranks.max(1) || shape.is_some_and(Shape::is_apart)
}

/// Amounts of the activities.
enum View<'c> {
    /// In the longest wait.
    Times(&'c Parts),
    /// Of all waits.
    Shares(&'c Parts),
}

impl View<'_> {
    fn parts(&self) -> &Parts {
        match self {
            View::Times(parts) | View::Shares(parts) => parts,
        }
    }

    fn amount(&self, activity: Activity, is_first: bool) -> String {
        let part = part(self.parts(), activity);
        match self {
            View::Times(_) => duration(part as f64 / 1e9),
            View::Shares(all) => {
                let share = part as f64 / all.severity.max(1) as f64 * 100.0;
                let of = if is_first { "that time" } else { "it" };
                format!("{share:.0} % of {of}")
            }
        }
    }
}

fn part(parts: &Parts, activity: Activity) -> u64 {
    match activity {
        Activity::Computation => parts.computation,
        Activity::Blocked => parts.blocked,
        Activity::Preempted => parts.preempted,
        Activity::Io => parts.io,
        Activity::Waiting => parts.waiting,
    }
}

/// The activities with at least a quarter of the known time.
fn named(parts: &Parts) -> Vec<Activity> {
    let is_much = |activity: &Activity| part(parts, *activity) >= parts.known().div_ceil(4);
    // The wait comes last: its phrase tells the place.
    let all = [
        Activity::Computation,
        Activity::Blocked,
        Activity::Preempted,
        Activity::Io,
        Activity::Waiting,
    ];
    all.into_iter().filter(is_much).collect()
}

fn most(parts: &Parts) -> Activity {
    let off = parts.blocked.saturating_add(parts.preempted);
    let outside = parts.computation.saturating_add(off);
    if outside >= parts.waiting.max(parts.io) {
        let off = [
            (Activity::Blocked, parts.blocked),
            (Activity::Preempted, parts.preempted),
        ];
        let found = off
            .into_iter()
            .find(|(_, time)| *time > outside - outside / 2);
        found.map_or(Activity::Computation, |(activity, _)| activity)
    } else if parts.io >= parts.waiting {
        Activity::Io
    } else {
        Activity::Waiting
    }
}

/// The call that delayed the late party.
struct Held {
    /// Its share of the time in calls, as words with a preposition.
    how: &'static str,
    at: (u16, PathKey),
    place: String,
    /// Whether findings count it as waiting.
    waits: bool,
    /// Its share off the processor, in percent, if that is most of it. Who waits may give its processor
    /// away: that is no reason.
    off: Option<(f64, OffState)>,
}

/// Why a rank is off the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OffState {
    Blocked,
    Preempted,
}

impl OffState {
    fn text(self) -> &'static str {
        match self {
            OffState::Blocked => "asleep or blocked",
            OffState::Preempted => "without a processor",
        }
    }
}

/// The call that delayed the late party most.
fn held_in(
    cause: &Cause,
    waits: impl Fn(u16, PathKey) -> bool,
    places: &mut Places,
) -> Option<Held> {
    let mut others = cause.others.clone();
    others.sort_by_key(|other| (Reverse(other.time), other.at));
    let &Other { at, time: ns, .. } = others.first()?;
    let (operation, path) = at;
    let waiting = cause.sums.waiting;
    let how = if ns >= waiting / 10 * 9 {
        " in"
    } else if ns >= waiting / 2 {
        ", mostly in"
    } else if ns >= waiting / 4 {
        ", partly in"
    } else {
        // With many calls, only the last ones are told apart.
        ", at last in"
    };
    let waits = waits(operation, path);
    let states = [
        (OffState::Blocked, others[0].blocked),
        (OffState::Preempted, others[0].preempted),
    ];
    let off = states.into_iter().find(|(_, time)| *time > ns / 2);
    Some(Held {
        how,
        at,
        place: format!("{} ({})", calls::name(operation), places.short(path)),
        waits,
        off: off
            .filter(|_| !waits)
            .map(|(state, time)| (100.0 * time as f64 / ns as f64, state)),
    })
}

/// `a`, `a and b`, `a, b and c`.
fn list(phrases: &[String]) -> String {
    match phrases {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => phrases.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_trace::calls::number;

    const MS: u64 = 1_000_000;

    fn parts(severity: u64, computation: u64, waiting: u64, io: u64) -> Parts {
        Parts {
            severity: severity * MS,
            computation: computation * MS,
            waiting: waiting * MS,
            io: io * MS,
            ..Parts::default()
        }
    }

    fn names(parts: &Parts) -> String {
        let view = View::Times(parts);
        let amounts = named(parts).into_iter().map(|activity| {
            let letter = match activity {
                Activity::Computation => "computed",
                Activity::Blocked | Activity::Preempted => "off",
                Activity::Io => "io",
                Activity::Waiting => "waited",
            };
            format!("{letter} {}", view.amount(activity, true))
        });
        list(&amounts.collect::<Vec<_>>())
    }

    #[test]
    fn all_large_parts_are_named() {
        assert_eq!(
            names(&parts(32, 14, 18, 0)),
            "computed 14.0 ms and waited 18.0 ms"
        );
        assert_eq!(names(&parts(32, 6, 26, 0)), "waited 26.0 ms");
        assert_eq!(
            names(&parts(30, 10, 10, 10)),
            "computed 10.0 ms, io 10.0 ms and waited 10.0 ms"
        );
    }

    #[test]
    fn shares_are_of_all_waits() {
        let sums = parts(50, 30, 10, 0);
        let view = View::Shares(&sums);
        assert_eq!(
            view.amount(Activity::Computation, true),
            "60 % of that time"
        );
        assert_eq!(view.amount(Activity::Waiting, false), "20 % of it");
    }

    #[test]
    fn one_occasion_is_told_from_many() {
        assert!(is_once(number::MPI_Barrier, 3, 3));
        assert!(!is_once(number::MPI_Barrier, 4, 3));
        assert!(is_once(number::MPI_Finalize, 4, 3));
        assert!(is_once(number::MPI_Send, 1, 0));
    }
}
