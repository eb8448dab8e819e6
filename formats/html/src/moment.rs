//! Picture of the ranks around the worst call of a finding.

use laggard_report::units::{count, duration};
use laggard_report::{Bottleneck, Instance, Lane, Segment, Timeline};
use maud::{Markup, html};

use crate::picture::{below, legend, px, ticks};
use crate::text::{clean, name};

/// Width of the picture, and position of the time axis.
const WIDE: f64 = 1100.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
/// Height of a lane, and of its content.
const LANE: f64 = 40.0;
const BAR: f64 = 24.0;
const BOTTOM: f64 = 38.0;
/// Most lanes in a report.
const LANES: usize = 8;
const SEGMENTS: usize = 200;
/// Width of a letter.
const LETTER: f64 = 6.2;
/// Patterns that lose time from the start of the call on.
pub const FROM_START: &[&str] = &[
    "late_sender",
    "late_sender_wrong_order_same_source",
    "late_sender_wrong_order_other_source",
    "late_receiver",
    "late_sender_sync",
    "late_receiver_sync",
    "wait_at_barrier",
    "wait_at_nxn",
    "late_broadcast",
    "early_reduce",
    "early_scan",
    "wait_at_finalize",
    "wait_at_window_create",
    "wait_at_window_free",
    "wait_at_comm_management",
    "wait_at_collective_io",
    "late_post",
    "early_wait",
    "wait_at_fence",
    "late_post_sync",
    "early_wait_sync",
    "wait_at_fence_sync",
    "wait_on_lock",
    "wait_on_value",
    "wait_at_shmem_barrier",
    "wait_at_omp_barrier",
    "wait_at_implicit_omp_barrier",
    "idle_threads",
    "wait_on_mutex",
    "wait_at_critical",
    "wait_at_ordered",
    "wait_at_thread_barrier",
    "wait_on_signal",
    "wait_for_thread",
    "wait_for_tasks",
];

/// The picture, or a text if there is none.
pub fn figure(found: &Bottleneck) -> Markup {
    let Some(worst) = &found.worst_instance else {
        return Markup::default();
    };
    let words = format!(
        "{} lost by rank {} between {:.6} s and {:.6} s of the run.",
        duration(worst.severity_s),
        worst.rank,
        worst.start_s,
        worst.end_s
    );
    html! {
        figure.block {
            h3 { "Worst call" }
            @if let Some(timeline) = worst.timeline.as_ref().filter(|timeline| is_sound(timeline)) {
                (legend(&[
                    ("computation", "computation"),
                    ("communication", "communication"),
                    ("synchronization", "synchronisation"),
                    ("io", "I/O"),
                    ("several", "many short calls"),
                    match is_from_start(found) {
                        true => ("lost", "lost"),
                        false => ("whole", "the call"),
                    },
                ]))
                div.scroll { (picture(found, worst, timeline, &words)) }
            }
            figcaption { (words) }
        }
    }
}

fn is_sound(timeline: &Timeline) -> bool {
    timeline.start_s.is_finite() && timeline.end_s.is_finite() && timeline.end_s > timeline.start_s
}

/// Maps moments to positions in the picture.
struct Scale {
    start: f64,
    length: f64,
}

impl Scale {
    fn x(&self, moment: f64) -> f64 {
        let share = ((moment - self.start) / self.length).clamp(0.0, 1.0);
        LEFT + share * (WIDE - LEFT - RIGHT)
    }
}

fn picture(found: &Bottleneck, worst: &Instance, timeline: &Timeline, words: &str) -> Markup {
    let lanes = &timeline.lanes[..timeline.lanes.len().min(LANES)];
    let scale = Scale {
        start: timeline.start_s,
        length: timeline.end_s - timeline.start_s,
    };
    let low = TOP + LANE * lanes.len() as f64;
    let high = low + BOTTOM;
    // Counted from the start of the call, as its times are.
    let marks = ticks(timeline.end_s - worst.start_s, 8);
    let end = is_from_start(found).then_some(worst.start_s + worst.severity_s);
    html! {
        svg viewBox=(format!("0 0 {WIDE} {high}")) role="img" aria-label=(words) {
            @for mark in &marks {
                @let at = scale.x(worst.start_s + mark);
                @let x = px(at);
                line.grid x1=(x) x2=(x) y1=(px(TOP - 6.0)) y2=(px(low)) {}
                text class=(below(at, WIDE)) x=(x) y=(px(low + 15.0)) { (duration(*mark)) }
            }
            text.tick.middle x=(px((LEFT + WIDE) / 2.0)) y=(px(high - 4.0)) {
                "time since the call began"
            }
            @for (at, lane) in lanes.iter().enumerate() {
                (track(lane, &scale, TOP + LANE * at as f64))
            }
            (lost(worst, end, &scale))
            @if let Some(end) = end {
                @let at = scale.x(end);
                @let x = px(at);
                line.moment x1=(x) x2=(x) y1=(px(TOP - 6.0)) y2=(px(low)) {}
                text class={ "strong " (below(at, WIDE)) } x=(x) y=(px(TOP - 10.0)) { (duration(worst.severity_s)) " lost" }
            }
        }
    }
}

fn is_from_start(found: &Bottleneck) -> bool {
    FROM_START.contains(&found.pattern.as_str())
}

fn track(lane: &Lane, scale: &Scale, top: f64) -> Markup {
    let y = top + (LANE - BAR) / 2.0;
    let role = match lane.role.as_str() {
        "waiting" => "waits",
        "late" => "is late",
        _ => "",
    };
    html! {
        text.strong.end x=(px(LEFT - 10.0)) y=(px(y + 10.0)) { "rank " (lane.rank) }
        text.end x=(px(LEFT - 10.0)) y=(px(y + 22.0)) {
            (role) @if lane.thread > 0 { " (thread " (lane.thread) ")" }
        }
        @if let Some(from) = lane.known_from_s && scale.x(from) > LEFT + 70.0 {
            text x=(px(LEFT + 6.0)) y=(px(y + BAR / 2.0 + 4.0)) { "not known" }
        }
        @for segment in lane.segments.iter().take(SEGMENTS) { (bar(segment, scale, y)) }
    }
}

fn bar(segment: &Segment, scale: &Scale, y: f64) -> Markup {
    let (from, to) = (scale.x(segment.start_s), scale.x(segment.end_s));
    let width = (to - from).max(0.5);
    let kind = match segment.kind.as_str() {
        kind @ ("computation" | "communication" | "synchronization" | "io") => kind,
        _ => "several",
    };
    let height = if kind == "computation" {
        BAR - 10.0
    } else {
        BAR
    };
    let letters = ((width - 8.0) / LETTER).max(0.0) as usize;
    let label = label(segment, letters);
    html! {
        rect class=(format!("segment {kind}")) x=(px(from)) y=(px(y + (BAR - height) / 2.0)) width=(px(width))
            height=(px(height)) {
            title { (told(segment)) }
        }
        @if let Some(label) = label {
            text.label x=(px(from + 5.0)) y=(px(y + BAR / 2.0 + 4.0)) { (label) }
        }
    }
}

/// As much of the label as fits.
fn label(segment: &Segment, letters: usize) -> Option<String> {
    let operation = name(segment.operation.as_deref()?);
    let place = segment.place.as_deref().map(name).unwrap_or_default();
    let long = format!("{operation} {place}");
    let fits = |text: &String| text.chars().count() <= letters;
    [long, operation].into_iter().find(fits)
}

fn told(segment: &Segment) -> String {
    let time = duration(segment.end_s - segment.start_s);
    let calls = segment.calls.unwrap_or(1);
    match (&segment.operation, segment.kind.as_str()) {
        (Some(operation), _) => {
            let place = segment.place.as_deref().unwrap_or_default();
            let times = if calls > 1 {
                format!(", {} calls", count(calls))
            } else {
                String::new()
            };
            clean(&format!("{operation} {place}: {time}{times}"), 300)
        }
        (None, "computation") => format!("computation: {time}"),
        (None, _) => {
            let inside = duration(segment.inside_s.unwrap_or(0.0));
            format!("{} calls in {time}, {inside} inside of them", count(calls))
        }
    }
}

/// A line below the lost part of the call, or below the whole call if that part is unknown.
fn lost(worst: &Instance, end: Option<f64>, scale: &Scale) -> Markup {
    let y = TOP + (LANE - BAR) / 2.0 + BAR;
    let to = end.unwrap_or(worst.end_s);
    let (from, to) = (scale.x(worst.start_s), scale.x(to));
    let class = if end.is_some() { "lost" } else { "whole" };
    html! {
        rect class=(class) x=(px(from)) y=(px(y + 1.5)) width=(px((to - from).max(1.0))) height="4" {}
    }
}
