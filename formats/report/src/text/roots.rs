//! Root causes as text.

use super::headline::agree;
use super::{NEGLIGIBLE_PERCENT, NOTABLE_PERCENT, finding, paragraph, words};
use crate::ranks::{list_of_ranges, with_threads};
use crate::style::{Style, Tone, duration, percent, wrap};
use crate::{
    Bottleneck, GainAfter, ParallelRegion, Report, RootCause, RootSite, SourceLocation, Victim,
};

/// Root causes shown.
pub(super) const SHOWN: usize = 5;
/// Waiting calls shown for each, and the least share of one of them.
const VICTIMS: usize = 2;
const LEAST_SHARE: f64 = 0.05;
/// Hints shown for each.
const HINTS: usize = 1;
/// Ranges of ranks shown for each.
const RANGES: usize = 8;
/// Width of the name before a root cause, columns.
const NAME: usize = 5;

/// The root causes to be listed.
pub(crate) fn listed(report: &Report) -> &[RootCause] {
    let all = report.root_causes.as_deref().unwrap_or_default();
    &all[..all.partition_point(|root| root.percent >= NEGLIGIBLE_PERCENT)]
}

/// `rank 0`, or `thread 1 of rank 0`, who causes it.
pub(crate) fn who(root: &RootCause) -> String {
    let ranks = list_of_ranges(&root.rank_set, RANGES);
    with_threads(&root.thread_set, ranks, RANGES)
}

/// `rank 0 computed between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`.
pub(crate) fn what(root: &RootCause) -> String {
    let ranks = who(root);
    let (begin, until) = ends(&root.operation, &root.location, root.until.as_ref());
    if let Some(did) = did(root)
        && let Some(between) = during(&did, &root.operation, &begin, until.as_deref())
    {
        let between = between + &within(root);
        let did = match did {
            Outside::Computed => "computed".to_owned(),
            Outside::Was(what) => format!("{} {what}", agree(&ranks, "was", "were")),
        };
        return format!("{ranks} {did} {between}");
    }
    match (root.activity.as_str(), until) {
        ("latency", Some(until)) => {
            format!("waits in {until} lasted longer than the delay of {ranks} before {begin}")
        }
        ("computation", None) if root.operation.is_empty() => {
            format!(
                "{ranks} computed longer in {}",
                finding::place(&root.location)
            )
        }
        _ => format!("{ranks} took longer in {begin}"),
    }
}

/// In which parallel region that is, if the calls around it do not tell.
fn within(root: &RootCause) -> String {
    let operation = root.until.as_ref().map(|until| &until.operation);
    let begins = |region: &ParallelRegion| {
        (&region.file, region.line) == (&root.location.file, root.location.line)
    };
    match root.parallel_regions.iter().any(begins) {
        true => String::new(),
        false => finding::within(operation.unwrap_or(&root.operation), &root.parallel_regions),
    }
}

/// What a rank does between two calls, or, if it is no work, in one.
pub(super) enum Outside {
    Computed,
    /// With a form of "to be".
    Was(&'static str),
}

/// The activities between two calls, or what a call was beside work.
pub(super) fn outside(activity: &str) -> Option<Outside> {
    match activity {
        "computation" => Some(Outside::Computed),
        "blocked" => Some(Outside::Was("asleep or blocked")),
        "preempted" => Some(Outside::Was("without a processor")),
        "kernel" => Some(Outside::Was("in the kernel")),
        _ => None,
    }
}

/// The same of a root cause.
pub(super) fn did(root: &RootCause) -> Option<Outside> {
    match root.page_faults {
        Some(_) => Some(Outside::Was(FAULTS)),
        None => outside(&root.activity),
    }
}

/// In the kernel, if it is known why.
const FAULTS: &str = "in the kernel for page faults";

/// What time between calls was beside work.
pub(crate) fn off_work(activity: &str) -> Option<&'static str> {
    match outside(activity)? {
        Outside::Computed => None,
        Outside::Was(what) => Some(what),
    }
}

/// `between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`; there may be no call before
/// it.
fn between(operation: &str, begin: &str, until: Option<&str>) -> Option<String> {
    let until = until?;
    Some(match operation.is_empty() {
        true => format!("until {until}"),
        false if until == begin => format!("between calls of {until}"),
        false => format!("between {begin} and {until}"),
    })
}

/// The same, or `in MPI_Allreduce at chain.c:7 main`.
fn during(did: &Outside, operation: &str, begin: &str, until: Option<&str>) -> Option<String> {
    let is_inside = matches!(did, Outside::Was(_)) && !operation.is_empty();
    let inside = until.is_none() && is_inside;
    between(operation, begin, until).or_else(|| inside.then(|| format!("in {begin}")))
}

/// `between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`, or in which function: where a rank was
/// between calls.
pub(crate) fn stretch(root: &RootCause) -> Option<String> {
    outside(&root.activity)?;
    let function = root.functions.first().map(|most| &most.location);
    let is_function = root.operation.is_empty() && root.until.is_none();
    let function = function.or(is_function.then_some(&root.location));
    let place = match function {
        Some(function) => format!("in {}", finding::place(function)),
        None => {
            // Who made no call before did nothing else until then.
            let (begin, until) = ends(&root.operation, &root.location, root.until.as_ref());
            let known = until.filter(|_| !root.operation.is_empty());
            between(&root.operation, &begin, known.as_deref())?
        }
    };
    Some(match did(root)? {
        Outside::Was(what) if root.activity == "kernel" => format!("{what} {place}"),
        _ => place,
    })
}

/// The calls at both ends of an activity.
pub(super) fn ends(
    operation: &str,
    location: &SourceLocation,
    until: Option<&RootSite>,
) -> (String, Option<String>) {
    let call = |operation: &str, location| format!("{operation} at {}", finding::place(location));
    let until = until.map(|until| call(&until.operation, &until.location));
    (call(operation, location), until)
}

/// `computation between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`.
pub(super) fn activity(
    kind: &str,
    operation: &str,
    location: &SourceLocation,
    until: Option<&RootSite>,
) -> String {
    let (begin, until) = ends(operation, location, until);
    if let Some(did) = outside(kind)
        && let Some(between) = during(&did, operation, &begin, until.as_deref())
    {
        let what = match did {
            Outside::Computed => "computation",
            Outside::Was(what) => what,
        };
        return format!("{what} {between}");
    }
    match (kind, until) {
        ("computation", None) if operation.is_empty() => {
            format!("computation in {}", finding::place(location))
        }
        ("computation", None) => format!("computation after {begin}"),
        _ => begin,
    }
}

/// `82 % rc1: rank 0 computed between …`, for each root cause of a finding.
pub(crate) fn shares(report: &Report, finding: &Bottleneck) -> Vec<String> {
    let all = report.root_causes.as_deref().unwrap_or_default();
    let shares = finding.root_causes.iter().filter_map(|share| {
        let root = all.iter().find(|root| root.id == share.id)?;
        let part = percent(share.share * 100.0);
        Some(format!("{part} {}: {}", root.id, what(root)))
    });
    shares.collect()
}

/// `ranks 1-3`, or `threads 1-3 of rank 0`, who waits because of it.
pub(super) fn who_waits(victim: &Victim, most: usize) -> String {
    let ranks = list_of_ranges(&victim.rank_set, most);
    with_threads(&victim.thread_set, ranks, most)
}

/// Who waits because of it, how long, and where.
pub(crate) fn victim(victim: &Victim) -> String {
    format!(
        "{} waited {} in {} at {}",
        who_waits(victim, RANGES),
        duration(victim.severity_s),
        victim.operation,
        finding::place(&victim.location)
    )
}

/// How the waiting came about.
fn way(root: &RootCause) -> String {
    let share = percent(crate::percent(root.indirect_s, root.severity_s));
    let ranks = who(root);
    match root.indirect_s > 0.005 * root.severity_s && !root.rank_set.is_empty() {
        true => format!("; {share} of it for others who waited for {ranks}"),
        false => String::new(),
    }
}

/// How much shorter or longer the run is without it, if that is predicted.
pub(crate) fn gain(root: &RootCause) -> Option<String> {
    let (gain, share) = (root.gain_s?, root.gain_percent?);
    let by = format!("{} ({})", duration(gain.abs()), percent(share.abs()));
    let less = match share {
        NEGLIGIBLE_PERCENT.. => format!("be {by} shorter"),
        share if share <= -NEGLIGIBLE_PERCENT => format!("be {by} longer"),
        _ => "not be shorter".to_owned(),
    };
    let after = root.gain_after.as_ref().map(after);
    let after = after.map_or_else(String::new, |after| format!("; {after}"));
    Some(format!("Without this excess the run would {less}{after}"))
}

/// `once rc1 is mended, by 20 ms (4.0 %)`.
pub(super) fn after(after: &GainAfter) -> String {
    let which = match &after.mended[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last} are", first.join(", ")),
        one => format!("{} is", one.concat()),
    };
    let (gain, share) = (duration(after.gain_s), percent(after.gain_percent));
    format!("once {which} mended, by {gain} ({share})")
}

/// What stands before a hint.
pub(crate) fn try_it(root: &RootCause) -> &'static str {
    match root.gain_after {
        Some(_) => "Then try: ",
        None => "Try: ",
    }
}

/// All waiting by the activity that started it, the largest part first; what is less than a thousandth of it
/// is left out.
pub(crate) fn started_by(report: &Report) -> Option<String> {
    let all: f64 = report.waiting_by_activity_s.values().sum();
    let mut parts: Vec<(f64, &str)> = report
        .waiting_by_activity_s
        .iter()
        .map(|(activity, time)| (crate::percent(*time, all), activity.as_str()))
        .filter(|(share, _)| *share >= 0.1)
        .collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts = parts.iter().map(|&(share, activity)| {
        let what = match (activity, off_work(activity)) {
            (_, Some(what)) => format!("ranks {what}"),
            ("io", _) => "file operations".to_owned(),
            ("call", _) => "calls that take longer".to_owned(),
            (words::UNTRACED, _) => "nobody known".to_owned(),
            (other, _) => other.to_owned(),
        };
        format!("{} with {what}", percent(share))
    });
    let parts: Vec<String> = parts.collect();
    let first = parts.first()?.replacen(" with ", " starts with ", 1);
    let rest = parts[1..].iter().map(|part| format!(", {part}"));
    Some(format!(
        "Of all waiting, {first}{}",
        rest.collect::<String>()
    ))
}

/// Appends the root causes.
pub(super) fn section(out: &mut String, report: &Report, screen: usize, style: Style) {
    let Some(all) = &report.root_causes else {
        return;
    };
    let listed = listed(report);
    if listed.is_empty() {
        return;
    }
    out.push('\n');
    paragraph(
        out,
        "Root causes: who started the waiting",
        screen,
        style,
        Tone::Strong,
    );
    if let Some(by) = started_by(report) {
        paragraph(out, &by, screen, style, Tone::Plain);
    }
    for root in listed.iter().take(SHOWN) {
        let tone = crate::style::tone_of_percent(root.percent);
        let share = percent(root.percent);
        let title = format!("{share} ({}): {}", duration(root.severity_s), what(root));
        let is_much = |victim: &&Victim| victim.severity_s >= LEAST_SHARE * root.severity_s;
        let victims = root.victims.iter().take(VICTIMS).take_while(is_much);
        let victims: Vec<_> = victims.map(victim).collect();
        let hidden = root.victims.len() - victims.len();
        let victims = victims.join(", ");
        let more = match hidden {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let because = match root.because.is_empty() {
            true => Vec::new(),
            false => vec![(format!("Because: {}", root.because), Tone::Plain)],
        };
        let mut first = vec![(title, tone)];
        first.extend(because);
        first.extend([(format!("{victims}{more}{}", way(root)), Tone::Plain)]);
        first.extend(gain(root).map(|gain| (gain, Tone::Plain)));
        let is_worth_it = root.percent >= NOTABLE_PERCENT;
        let hints = root.hints.iter().take(HINTS).filter(|_| is_worth_it);
        let hints = hints.map(|hint| (format!("{}{hint}", try_it(root)), Tone::Plain));
        let mut name = format!("{:<NAME$}", root.id);
        for (text, tone) in first.into_iter().chain(hints) {
            for line in wrap(&text, screen.saturating_sub(NAME).max(20)) {
                out.push_str(&name);
                out.push_str(&style.paint(tone, &line));
                out.push('\n');
                name = " ".repeat(NAME);
            }
        }
    }
    let mut answered = listed.iter().filter(|root| root.can_go());
    if let Some(root) = answered.next()
        && listed.iter().all(|root| root.gain_s.is_none())
    {
        let id = root.id.trim_start_matches("rc");
        let ask =
            format!("What the run gains without them: laggard what-if DIR --without-cause {id}");
        paragraph(out, &ask, screen, style, Tone::Faint);
    }
    let hidden = listed.len().saturating_sub(SHOWN);
    let untraced = report.untraced_s.unwrap_or(0.0);
    let untraced = match crate::percent(untraced, report.sums().wall_s) >= NEGLIGIBLE_PERCENT {
        true => format!(
            "; of {} waiting nobody knows who started it",
            duration(untraced)
        ),
        false => String::new(),
    };
    let more = match all.len() - listed.len().min(SHOWN) {
        0 => "these are all".to_owned(),
        more => format!("and {more} smaller ones in the report file"),
    };
    if hidden > 0 || !untraced.is_empty() {
        let text = format!("{more}{untraced}");
        paragraph(out, &text, screen, style, Tone::Faint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_gets_longer_is_said_to() {
        for (gain_s, said) in [
            (0.5, " would be 500 ms"),
            (0.5, ") shorter"),
            (-0.5, " would be 500 ms"),
            (-0.5, ") longer"),
            (-1e-9, " not be shorter"),
        ] {
            let root = RootCause {
                gain_s: Some(gain_s),
                gain_percent: Some(100.0 * gain_s),
                ..RootCause::default()
            };
            let text = gain(&root).unwrap();
            assert!(text.replace('\u{a0}', " ").contains(said), "{text}");
        }
    }
}
