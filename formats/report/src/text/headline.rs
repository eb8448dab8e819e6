//! The headline: how much waiting there is, and who is to blame for it in the end.

use super::roots::Outside;
use super::{MUCH_PERCENT, NOTABLE_PERCENT, crowd, finding, listed, roots};
use crate::style::percent;
use crate::style::plural;
use crate::{Bottleneck, OperationTimes, Report, RootCause, Victim, has_rank, list_of_ranks};

/// Ranges of ranks named.
const RANGES: usize = 4;
/// A root cause that starts nearly all waiting.
const NEARLY_ALL: f64 = 0.9;
/// So many times the gain of the largest cause comes first.
const GAINS_MORE: f64 = 2.0;
/// Part of a root cause that is worth a word.
const NOTABLE: f64 = 0.05;
/// A pattern's whole time is told where it is so many times that of its largest finding.
const MANY_PLACES: f64 = 2.0;
/// Part of the time for which a rank was late, in which it waited itself, from which on it only
/// passes that on.
const PASSED_ON: f64 = 0.5;
/// Part of the largest root cause, from which on what the program itself does is named before waiting
/// for cores.
const WORTH: f64 = 0.25;

/// Share of waiting, its certainty, its cause, and who waits for it.
pub(crate) fn waiting(report: &Report) -> String {
    let unknown = report.unknown_waiting();
    let wait = report.sums().wait_s;
    let share = percent(report.waiting_percent());
    // Only waits for a rank count, not slow calls of the library itself.
    let worst = listed(report).iter().find(|found| !found.causes.is_empty());
    let root = cause(report, wait).map(|text| format!(" {text}"));
    let found = worst.map(|worst| {
        let part = part_of(worst.severity_s, wait);
        format!(
            " {}{} of it is in {} at {}, {}for {}.",
            part[..1].to_uppercase(),
            &part[1..],
            worst.operation,
            finding::place(&worst.location),
            by_itself(worst),
            finding::late_rank(worst, &worst.causes[0])
        )
    });
    let place = root.or(found);
    let unexplained = unexplained(report);
    let mut text = match (place, unknown.is_empty()) {
        (Some(place), true) => format!("{share} of rank time is waiting.{place}"),
        (Some(place), false) => format!(
            "At least {share} of rank time is waiting (the rest is unknown: {unknown}).{place}"
        ),
        (None, true) if report.is_cut_off() => {
            format!("{share} of rank time is waiting, as far as the traces reach.")
        }
        (None, true) if unexplained.is_some() => format!("{share} of rank time is waiting."),
        (None, true) => format!("{share} of rank time is waiting: nothing to report."),
        (None, false) => format!("How much of rank time is waiting is unknown: {unknown}."),
    };
    text.push_str(
        &of_nobody(report, worst.map_or(0.0, |worst| worst.severity_s)).unwrap_or_default(),
    );
    text.push_str(&unexplained.unwrap_or_default());
    text.push_str(&costly(report).unwrap_or_default());
    text.push_str(&how_it_ended(report));
    text
}

/// The root cause to mend first. As a rule it is the largest one, but what starts much waiting need not gain
/// much. Where ranks share cores, calls take longer because their rank waits for one,
/// whatever the program does. So the largest cause outside of communication counts as the largest there.
fn cause(report: &Report, wait: f64) -> Option<String> {
    let all = roots::listed(report);
    let first = all.first()?;
    let is_own = |root: &&RootCause| {
        let is_outside = matches!(
            root.activity.as_str(),
            "computation" | "blocked" | "kernel" | "io"
        );
        is_outside && root.severity_s >= WORTH * first.severity_s
    };
    let own = crowd(report).and_then(|_| all.iter().find(is_own));
    let own = own.filter(|own| own.id != first.id);
    let (largest, lesser) = match own {
        Some(own) => (own, "Largest cause outside of communication"),
        None => (first, "Largest cause"),
    };
    let which = which(largest, lesser, wait);
    let shown = &all[..all.len().min(roots::SHOWN)];
    let best = gains_more(shown, largest);
    let mut text = match best {
        Some((best, gain)) => {
            let little = match largest.gain_percent {
                Some(gain) if gain > 0.0 => format!("gains {}", percent(gain)),
                _ => "gains nothing".to_owned(),
            };
            format!(
                "{} {which}: {}. Mending that {little}.",
                blamed(report, best, &format!("Most to gain ({})", percent(gain))),
                doing(largest, report.run.ranks)
            )
        }
        None => format!(
            "{}{}",
            blamed(report, largest, &which),
            in_vain(largest).unwrap_or_default()
        ),
    };
    let is_told = best.is_some_and(|(best, _)| best.id == first.id);
    if own.is_some() && !is_told {
        // Who is known to have no processor needs no guess.
        let why = match first.activity.as_str() {
            "preempted" => "",
            _ => ", probably waiting for a core",
        };
        let doing = doing(first, report.run.ranks);
        text.push_str(&format!(" {}: {doing}{why}.", percent(first.percent)));
    }
    Some(text)
}

/// The cause with most to gain, and how much shorter the run would be, %, if the waiting that the `largest` one
/// starts says little about that.
fn gains_more<'r>(all: &'r [RootCause], largest: &RootCause) -> Option<(&'r RootCause, f64)> {
    let gain = largest.gain_percent?;
    let gains = all
        .iter()
        .filter_map(|root| Some((root, root.gain_percent?)));
    let best = gains.max_by(|a, b| a.1.total_cmp(&b.1));
    best.filter(|(_, most)| *most >= NOTABLE_PERCENT && *most > GAINS_MORE * gain)
}

/// ` Mending that alone gains nothing.`, if it is so.
fn in_vain(root: &RootCause) -> Option<String> {
    let after = root.gain_after.as_ref().map(roots::after);
    let after = after.map_or_else(String::new, |after| format!("; {after}"));
    let alone = || format!(" Mending that alone gains nothing{after}.");
    root.gains_nothing().then(alone)
}

/// How much of the waiting a root cause starts.
fn which(root: &RootCause, lesser: &str, wait: f64) -> String {
    if root.severity_s >= NEARLY_ALL * wait {
        return "Cause".to_owned();
    }
    let which = match root.severity_s > 0.5 * wait {
        true => "Main cause",
        false => lesser,
    };
    format!("{which} ({})", percent(root.percent))
}

/// `Cause: rank 3 computes 3.0x as long as the others before MPI_Send at stencil.c:12 main. Ranks
/// 0-2 wait in MPI_Waitall at stencil.c:14 main; rank 1 only passes the delay on.`
fn blamed(report: &Report, root: &RootCause, which: &str) -> String {
    let mut text = format!("{which}: {}.", doing(root, report.run.ranks));
    // Ranks that take longer in the call in which they wait for each other are named once.
    let is_other = |victim: &&Victim| {
        (&victim.operation, &victim.location) != (&root.operation, &root.location)
            || root.until.is_some()
    };
    if let Some(victim) = root.victims.first().filter(is_other) {
        let ranks = roots::who_waits(victim, RANGES);
        text.push_str(&format!(
            " {}{} {} in {} at {}",
            ranks[..1].to_uppercase(),
            &ranks[1..],
            agree(&ranks, "waits", "wait"),
            victim.operation,
            finding::place(&victim.location)
        ));
        let between = passing_on(report, root);
        if !between.is_empty() {
            let ranks = list_of_ranks(between, RANGES);
            let passes = agree(&ranks, "passes", "pass");
            text.push_str(&format!("; {ranks} only {passes} the delay on"));
        }
        text.push('.');
    }
    text
}

/// What these ranks do.
fn doing(root: &RootCause, all: u32) -> String {
    let ranks = roots::who(root);
    let others = match (0..all).all(|rank| has_rank(&root.rank_set, rank)) {
        true => "those that wait",
        false => "the others",
    };
    let (begin, until) = roots::ends(&root.operation, &root.location, root.until.as_ref());
    match (roots::did(root), until) {
        (Some(does), until) => {
            let does = match does {
                Outside::Computed => agree(&ranks, "computes", "compute").to_owned(),
                Outside::Was(what) => format!("{} {what}", agree(&ranks, "is", "are")),
            };
            let ((longer, than), mostly) = (longer(root), mostly(root));
            // Others do not wait where these were.
            match until {
                Some(until) => {
                    format!("{ranks} {does} {longer} {than} {others}{mostly} before {until}")
                }
                None if root.operation.is_empty() => {
                    let place = finding::place(&root.location);
                    format!("{ranks} {does} {longer} in {place} {than} {others}{mostly}")
                }
                None => format!("{ranks} {does} {longer} in {begin} {than} {others}"),
            }
        }
        (None, Some(until)) if root.activity == "latency" => {
            format!("waits in {until} last longer than the delay of {ranks} before {begin}")
        }
        _ => {
            let takes = agree(&ranks, "takes", "take");
            let (longer, than) = longer(root);
            format!("{ranks} {takes} {longer} in {begin} {than} {others}")
        }
    }
}

/// `, mostly at solve.c:17 solve,`: the function with most of it, if anything tells.
fn mostly(root: &RootCause) -> String {
    let first = root.functions.first().filter(|of| of.share > 0.5);
    first.map_or_else(String::new, |of| {
        format!(", mostly at {},", finding::place(&of.location))
    })
}

/// `3.0x as long`, as far as that is known, and `as`.
fn longer(root: &RootCause) -> (&str, &str) {
    // `computed 3.0x as long as those that waited, in the mean …`
    let did = root.because.split_once(" those that waited,");
    let longer = did.map(|(did, _)| {
        let (begin, _) = did.rmatch_indices(' ').nth(3).unwrap_or((0, ""));
        did[begin..].trim_start()
    });
    let parts = longer.and_then(|did| did.rsplit_once(' '));
    let is_known = |(longer, than): &(&str, &str)| match *than {
        "as" => longer.ends_with(" as long"),
        "than" => longer.ends_with(" longer"),
        _ => false,
    };
    parts.filter(is_known).unwrap_or(("longer", "than"))
}

/// Ranks that mostly wait themselves, and that others than those who cause it wait for.
fn passing_on(report: &Report, root: &RootCause) -> Vec<u32> {
    let is_of = |found: &&Bottleneck| {
        let first = found.root_causes.first();
        first.is_some_and(|first| first.id == root.id)
    };
    let causes = report.bottlenecks.iter().filter(is_of);
    let causes = causes.flat_map(|found| found.causes.iter().map(move |cause| (found, cause)));
    let is_to_blame = |rank| has_rank(&root.rank_set, rank);
    let passes = causes.filter(|(found, cause)| {
        let waited = cause.wait_s.unwrap_or(0.0);
        let mut waiting = found.ranks.iter().map(|share| share.rank);
        waited > PASSED_ON * cause.severity_s
            && cause.severity_s >= NOTABLE * root.severity_s
            && !is_to_blame(cause.rank)
            && waiting.any(|rank| rank != cause.rank && !is_to_blame(rank))
    });
    let mut ranks: Vec<u32> = passes.map(|(_, cause)| cause.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The verb for one rank or thread, or several.
pub(super) fn agree<'w>(ranks: &str, one: &'w str, several: &'w str) -> &'w str {
    match ranks.contains("ranks ") || ranks.starts_with("threads ") {
        true => several,
        false => one,
    }
}

/// Unexplained time, if it is much.
fn unexplained(report: &Report) -> Option<String> {
    let sums = report.sums();
    let calls = sums.in_calls?;
    let share = crate::percent(calls.unexplained_s, sums.wall_s);
    if share < MUCH_PERCENT && calls.unexplained_s <= sums.wait_s || share < NOTABLE_PERCENT {
        return None;
    }
    let worst = listed(report).iter().find(|found| found.is_unexplained())?;
    let why = match crowd(report) {
        _ if crate::polls(&worst.operation) => ", which polls for what is not known".to_owned(),
        _ if worst.is_among_threads() => "; no recorded thread ended these waits".to_owned(),
        // Where that is known, it has a name of its own.
        Some(crowd) if !report.metrics.contains_key("without_processor") => {
            format!("; {crowd}, so it probably is waiting for a core")
        }
        _ => String::new(),
    };
    Some(format!(
        " {} of all time went by in calls unexplained, {} of it in {} at {}{why}.",
        percent(share),
        part_of(worst.severity_s, calls.unexplained_s),
        worst.operation,
        finding::place(&worst.location)
    ))
}

/// Time lost while no rank was late, if it exceeds `waited`, the largest wait for a rank, s.
fn of_nobody(report: &Report, waited: f64) -> Option<String> {
    let is_such = |found: &&Bottleneck| found.causes.is_empty() && !found.is_unexplained();
    let most = listed(report).iter().find(is_such)?;
    let at = format!("{} at {}", most.operation, finding::place(&most.location));
    let all = report.metrics.get(&most.pattern);
    let all = all.filter(|all| all.total_s > MANY_PLACES * most.severity_s);
    let is_known = most.pattern.ends_with("completion")
        || ["omp_management", "storage"].contains(&&*most.pattern);
    let nobody = match is_known {
        true => "while nobody was late",
        false => "while nobody is known to have been late",
    };
    let (lost, share, why) = match all {
        Some(all) => {
            let part = part_of(most.severity_s, all.total_s);
            let why = format!("{nobody} ({}), {part} of it in {at}", most.name);
            (all.total_s, all.percent, why)
        }
        None => {
            let why = format!("in {at} {nobody} ({})", most.name);
            (most.severity_s, most.percent, why)
        }
    };
    (lost > waited && share >= NOTABLE_PERCENT)
        .then(|| format!(" {} of all time went by {why}.", percent(share)))
}

/// The operation with the highest cost of the calls themselves, if it exceeds the largest
/// finding.
fn costly(report: &Report) -> Option<String> {
    let sums = report.sums();
    let calls = sums.in_calls?;
    let share = |part| crate::percent(part, sums.wall_s);
    let cost = |row: &OperationTimes| row.cost_s.unwrap_or(0.0);
    let rows = report.operations.iter();
    let most = rows.max_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let largest = report
        .bottlenecks
        .first()
        .map_or(0.0, |found| found.severity_s);
    let part = most
        .cost_s
        .filter(|&part| part > largest && share(part) >= MUCH_PERCENT)?;
    let why = crowd(report).map_or_else(String::new, |crowd| {
        format!("; {crowd}, so part of it may be waiting for a core")
    });
    Some(format!(
        " {} of all time is what calls cost without any waiting, {} of it {}{why}.",
        percent(share(calls.cost_s)),
        part_of(part, calls.cost_s),
        most.operation
    ))
}

/// `by rank 3 `, for a finding in which a rank waited for itself.
fn by_itself(found: &Bottleneck) -> String {
    let cause = &found.causes[0];
    match finding::late_rank(found, cause) == finding::ITSELF {
        true => format!("by rank {} ", cause.rank),
        false => String::new(),
    }
}

/// Place where a run hung, or that it is unknown; empty for a run that ended.
pub(crate) fn how_it_ended(report: &Report) -> String {
    let of_kind = |id| report.anomalies.iter().filter(move |row| row.id == id);
    let failed = of_kind("program_failed").next();
    let failed = failed.map(|row| format!(" The program failed: {}.", row.detail));
    how_ranks_ended(report) + &failed.unwrap_or_default()
}

/// The end of the program, as far as its ranks tell.
fn how_ranks_ended(report: &Report) -> String {
    let of_kind = |id| report.anomalies.iter().filter(move |row| row.id == id);
    if let Some(deadlock) = of_kind("deadlock").next() {
        return format!(" It ended in a deadlock: {}.", deadlock.detail);
    }
    let more = of_kind("cut_off_in").count().saturating_sub(1);
    match of_kind("cut_off_in").next() {
        Some(first) => {
            let more = match more {
                0 => String::new(),
                more => format!(" ({} below)", plural(more as u64, "more such call")),
            };
            format!(" It did not end by itself: {}{more}.", first.detail)
        }
        None if report.is_cut_off() => {
            " What happened in the end is not known: traces are cut off.".to_owned()
        }
        None => String::new(),
    }
}

/// Share of `part` in the whole, in words.
fn part_of(part: f64, whole: f64) -> &'static str {
    if part > 0.5 * whole {
        "most"
    } else {
        "the largest part"
    }
}
