//! One finding as text.

use crate::ranks::{list_of_ranges, with_threads};
use crate::style::plural;
use crate::style::{Style, Tone, base_name, count, duration, percent, three_digits, width, wrap};
use crate::{
    Bottleneck, Cause, ParallelRegion, RankShare, Report, SourceLocation, list_of_ranks, words,
};

/// Causes shown per finding.
const CAUSES: usize = 3;
/// Root causes shown per finding.
const ROOTS: usize = 2;
/// Hints shown per finding.
const HINTS: usize = 2;
/// Ranges of ranks shown per finding.
const RANGES: usize = 8;
/// The same in a column of a table.
const FEW_RANGES: usize = 2;
/// Larger ratios say no more than the times themselves.
const MEANINGFUL: f64 = 100.0;
/// Stands for the awaited rank if a rank was late itself.
pub(crate) const ITSELF: &str = "itself";
/// Width of the labels, columns.
const LABEL: usize = 15;

/// `exchange.c:42 exchange_halo`, or the known part of it. For one of several calls of a
/// wrapper, the wrapper's caller: `comm.c:91 exchange via send_receive`.
pub fn place(location: &SourceLocation) -> String {
    let callers = location.callers.iter().rev();
    let callers = callers.map(|caller| match location.callers.len() {
        2.. if caller.line > 0 => line(&caller.file, caller.line, ""),
        _ => line(&caller.file, caller.line, &caller.function),
    });
    let own = line(&location.file, location.line, &location.function);
    let mut places: Vec<String> = callers.chain([own]).collect();
    // Nothing tells the calls of a function by itself apart if their lines are not known.
    places.dedup();
    places.join(" via ")
}

pub(super) fn line(file: &str, line: u32, function: &str) -> String {
    let file = base_name(file);
    let function = &without_arguments(function);
    match (file.is_empty(), line, function.is_empty()) {
        (true, _, true) => "unknown place".to_owned(),
        (true, _, false) => function.clone(),
        (false, 0, true) => file.to_owned(),
        (false, 0, false) => format!("{file} {function}"),
        (false, line, true) => format!("{file}:{line}"),
        (false, line, false) => format!("{file}:{line} {function}"),
    }
}

/// A C++ function with long template arguments replaced by `<...>`.
fn without_arguments(function: &str) -> String {
    const LONG: usize = 40;
    if function.chars().count() <= LONG {
        return function.to_owned();
    }
    let mut short = String::new();
    let mut depth = 0u32;
    let mut before = ' ';
    for letter in function.chars() {
        // Excludes `operator<` and arrows.
        let begins = letter == '<' && (before.is_alphanumeric() || before == '_');
        if begins && !short.ends_with("operator") || letter == '<' && depth > 0 {
            depth += 1;
            if depth == 1 {
                short.push_str("<...>");
            }
        } else if letter == '>' && depth > 0 && before != '-' {
            depth -= 1;
        } else if depth == 0 {
            short.push(letter);
        }
        before = letter;
    }
    match depth {
        0 => short,
        _ => function.to_owned(),
    }
}

/// `calls.c:16 main by threads 0-2 of 4`: a parallel region, and which threads of it.
pub(crate) fn parallel_region(region: &ParallelRegion) -> String {
    let threads = list_of_ranges(&region.thread_set, RANGES).replacen("rank", "thread", 1);
    let place = line(&region.file, region.line, &region.function);
    format!("{place} by {threads} of {}", region.threads)
}

/// ` in the parallel region at calls.c:16 main`; empty outside of them, and for calls of OpenMP, which are at the
/// region's own place or tell of it.
pub(super) fn within(operation: &str, regions: &[ParallelRegion]) -> String {
    let [first, rest @ ..] = regions else {
        return String::new();
    };
    if operation.starts_with("omp_") {
        return String::new();
    }
    let place = line(&first.file, first.line, &first.function);
    match rest.len() {
        0 => format!(" in the parallel region at {place}"),
        more => format!(" in the parallel regions at {place} and {more} more"),
    }
}

/// `rank 0, MPI_Send at exchange.c:37 exchange: computed 4 ms before the send`. A rank that
/// alone waited is `itself`.
pub fn cause(finding: &Bottleneck, cause: &Cause) -> String {
    let mut text = late_rank(finding, cause);
    if !cause.operation.is_empty() {
        text.push_str(&format!(
            ", {} at {}{}",
            cause.operation,
            place(&cause.location),
            within(&cause.operation, &cause.parallel_regions)
        ));
    }
    if !cause.because.is_empty() {
        text.push_str(": ");
        text.push_str(&cause.because);
    }
    text
}

/// `rank 0`; `itself` if that rank alone lost time; with the thread, if it is not the first one or threads of a
/// rank wait for each other.
pub(crate) fn late_rank(finding: &Bottleneck, cause: &Cause) -> String {
    let rank = cause.rank.to_string();
    let is_alone = match &finding.rank_set {
        Some(set) => *set == rank,
        None => finding.ranks.iter().all(|share| share.rank == cause.rank),
    };
    match cause.thread.is_none() && is_alone {
        true => ITSELF.to_owned(),
        false => rank_of(cause.thread, cause.rank),
    }
}

/// `rank 0`, or `thread 1 of rank 0`.
fn rank_of(thread: Option<u32>, rank: u32) -> String {
    match thread {
        Some(thread) => format!("thread {thread} of rank {rank}"),
        None => format!("rank {rank}"),
    }
}

/// Ranks that lost time, as a phrase, with their threads where these are told.
pub(crate) fn ranks(finding: &Bottleneck, most: usize) -> String {
    let ranks = match finding.rank_set.as_deref() {
        Some(set) => list_of_ranges(set, most),
        None => list_of_ranks(finding.ranks.iter().map(|share| share.rank), most),
    };
    with_threads(&finding.thread_set, ranks, most)
}

/// `rank 3`, or `threads 1-3 of rank 0`: who lost most; empty if nobody is known.
pub(super) fn lost_most(finding: &Bottleneck) -> String {
    let name = |share: &RankShare| {
        with_threads(
            &share.thread_set,
            format!("rank {}", share.rank),
            FEW_RANGES,
        )
    };
    finding.ranks.first().map_or_else(String::new, name)
}

/// Appends the paragraph of one finding.
pub(super) fn paragraph(
    out: &mut String,
    number: usize,
    (report, finding): (&Report, &Bottleneck),
    screen: usize,
    style: Style,
) {
    let id = match finding.id.is_empty() {
        true => String::new(),
        false => format!(" [{}]", finding.id),
    };
    let title = format!(
        "{number}. {} in {} at {}{id}",
        finding.name,
        finding.operation,
        place(&finding.location)
    );
    for line in wrap(&title, screen) {
        out.push_str(&style.paint(Tone::Strong, &line));
        out.push('\n');
    }
    let mut item = |label: &str, text: &str| labelled(out, label, text, screen, style);
    item("Lost", &lost(finding));
    if !finding.location.callpath.is_empty() {
        item("Call path", &finding.location.callpath.join(" > "));
    }
    for (at, region) in finding.parallel_regions.iter().enumerate() {
        let label = if at == 0 { "In parallel" } else { "" };
        item(label, &parallel_region(region));
    }
    for (at, found) in finding.causes.iter().take(CAUSES).enumerate() {
        let text = format!("{} {}", percent(found.share * 100.0), cause(finding, found));
        item(if at == 0 { "Waits for" } else { "" }, &text);
    }
    if let Some(hidden) = finding.causes.len().checked_sub(CAUSES).filter(|&n| n > 0) {
        item("", &format!("and {hidden} more"));
    }
    if let Some(time) = finding.several_s {
        let share = percent(crate::percent(time, finding.severity_s));
        let label = if finding.causes.is_empty() {
            "Waits for"
        } else {
            ""
        };
        item(label, &format!("{share} more than eight ranks at a time"));
    }
    if finding.is_unexplained() {
        item("Waits for", words::whom_unexplained(finding));
    }
    let shares = super::roots::shares(report, finding).into_iter();
    for (at, text) in shares.take(ROOTS).enumerate() {
        item(if at == 0 { "Root causes" } else { "" }, &text);
    }
    if let Some(worst) = &finding.worst_instance {
        let text = format!(
            "{} lost by {} between {:.6} s and {:.6} s",
            duration(worst.severity_s),
            rank_of(worst.thread, worst.rank),
            worst.start_s,
            worst.end_s
        );
        item("Worst call", &text);
    }
    for (at, hint) in finding.hints.iter().take(HINTS).enumerate() {
        item(if at == 0 { "Try" } else { "" }, &format!("- {hint}"));
    }
}

/// Size and frequency of the loss, the reference, and the certainty.
pub(crate) fn lost(finding: &Bottleneck) -> String {
    let most = finding.rank_percent.filter(|_| finding.filter == "hotspot");
    let most = most.map(|part| format!(", up to {} of a rank's", percent(part)));
    let mut text = format!(
        "{} ({} of all time{}) by {}, in {} of {}",
        duration(finding.severity_s),
        percent(finding.percent),
        most.unwrap_or_default(),
        ranks(finding, RANGES),
        count(finding.instances),
        plural(finding.calls, "call")
    );
    if let Some(between) = finding.inter_node_s
        && !finding.causes.is_empty()
    {
        let share = percent(crate::percent(between, finding.severity_s));
        text.push_str(&format!("; {share} of it for ranks on other hosts"));
    }
    let mean = duration(finding.mean_s);
    let range = finding.min_s.zip(finding.max_s);
    text.push_str(&match range.filter(|_| finding.calls > 1) {
        Some((least, most)) => format!(
            "; a call takes {} to {}, {mean} on average",
            duration(least),
            duration(most)
        ),
        None => format!("; a call takes {mean} on average"),
    });
    match (finding.baseline_s, finding.ratio) {
        (Some(baseline), Some(ratio)) if ratio < MEANINGFUL => text.push_str(&format!(
            ", {} times the baseline of {}",
            three_digits(ratio),
            duration(baseline)
        )),
        (Some(baseline), _) => {
            text.push_str(&format!(", the baseline is {}", duration(baseline)));
        }
        (None, None) if finding.filter == "hotspot" => {
            text.push_str(", with nothing to compare it with");
        }
        (None, _) => {}
    }
    if let Some([_, median, _]) = finding.quartiles_s {
        text.push_str(&format!("; the median loss is {}", duration(median)));
    }
    if finding.confidence < 0.95 {
        text.push_str(&format!(
            " (confidence {})",
            percent(finding.confidence * 100.0)
        ));
    }
    text
}

/// Appends a label with its text beside it.
pub fn labelled(out: &mut String, label: &str, text: &str, screen: usize, style: Style) {
    for (at, line) in wrap(text, screen.saturating_sub(LABEL).max(20))
        .iter()
        .enumerate()
    {
        let label = if at == 0 { label } else { "" };
        out.push_str("   ");
        out.push_str(&style.paint(Tone::Faint, label));
        out.push_str(&" ".repeat((LABEL - 3).saturating_sub(width(label))));
        out.push_str(line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_say_what_is_known() {
        let at = |file: &str, line, function: &str| {
            place(&SourceLocation {
                file: file.to_owned(),
                line,
                function: function.to_owned(),
                ..SourceLocation::default()
            })
        };
        assert_eq!(at("/a/b.c", 7, "f"), "b.c:7 f");
        assert_eq!(at("b.c", 7, ""), "b.c:7");
        assert_eq!(at("", 0, "f+0x12"), "f+0x12");
        assert_eq!(at("b.c", 0, "f"), "b.c f");
        assert_eq!(at("", 0, ""), "unknown place");
        let caller = |file: &str, line, function: &str| crate::Caller {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
        };
        let called = |callers: Vec<crate::Caller>| {
            place(&SourceLocation {
                file: "parallel.c".to_owned(),
                line: 8,
                function: "send_receive".to_owned(),
                callpath: Vec::new(),
                callers,
            })
        };
        let inner = caller("/src/comm.c", 91, "exchange");
        let own = "parallel.c:8 send_receive";
        assert_eq!(
            called(vec![inner.clone()]),
            format!("comm.c:91 exchange via {own}")
        );
        assert_eq!(
            called(vec![inner, caller("main.c", 5, "main")]),
            format!("main.c:5 via comm.c:91 via {own}")
        );
        let itself = place(&SourceLocation {
            function: "visit".to_owned(),
            callers: vec![caller("", 0, "visit")],
            ..SourceLocation::default()
        });
        assert_eq!(itself, "visit");
    }

    #[test]
    fn arguments_of_templates_are_left_out_where_they_are_long() {
        let short = |function: &str| without_arguments(function);
        assert_eq!(short("std::vector<int>::push"), "std::vector<int>::push");
        assert_eq!(
            short("Original<Suite<(suite_t)0>, &IMB_reduce_scatter>::run"),
            "Original<...>::run"
        );
        let arrow = "a_function_with_a_name_that_is_long_enough->operator<";
        assert_eq!(short(arrow), arrow);
        let other = "a_function_with_a_name_that_is_long_enough::operator<<";
        assert_eq!(short(other), other);
    }

    #[test]
    fn ranks_come_from_the_set_if_there_is_one() {
        let finding = Bottleneck {
            rank_set: Some("0-3,7".to_owned()),
            ..Default::default()
        };
        assert_eq!(ranks(&finding, 3), "ranks 0-3, 7");
    }
}
