//! The report as text for users: 80 to 120 columns, the most important first.

pub(crate) mod finding;
mod functions;
pub(crate) mod headline;
mod moved;
pub(crate) mod path;
mod regions;
pub(crate) mod roots;
pub(crate) mod table;
pub(crate) mod threads;
pub mod words;

use table::{Column, Row, column};

pub(crate) use crate::numbers::NEGLIGIBLE_PERCENT;
use crate::ranks::list_of_ranges;
use crate::style::{self, Style, Tone, base_name, count, duration, percent, plural, size, wrap};
use crate::{
    Anomaly, Bottleneck, EfficiencyPart, LocationSums, OffWork, OperationTimes, Report, Run,
};

/// Options of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// Findings shown in the table.
    pub top: usize,
    /// Whether the output supports ANSI colours.
    pub color: bool,
    /// Columns of the output.
    pub width: usize,
    /// File of the report, named in commands that show more of it.
    pub file: String,
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions {
            top: 10,
            color: false,
            width: 100,
            file: "REPORT".to_owned(),
        }
    }
}

/// Findings explained below the table.
const EXPLAINED: usize = 3;
/// Smaller parts of computation that were no work are not told, percent.
const NOTABLE_OFF: f64 = 2.0;
/// Unexplained time is in the headline from this share of all time on, percent.
const MUCH_PERCENT: f64 = 5.0;
/// The same, if more time is unexplained than waited; and the least root cause with a hint.
pub(crate) const NOTABLE_PERCENT: f64 = 1.0;
/// Start-up and shut-down take about equally long in every run. In runs shorter than this, s, a
/// share of `MUCH` of all time or more is usual.
const SHORT_RUN_S: f64 = 10.0;
const MUCH: f64 = 0.02;
/// Calls made once that are shown.
const ONCE: usize = 3;
/// Anomalies shown.
const ANOMALIES: usize = 10;
/// Smallest and largest width of a report, columns.
const WIDTHS: (usize, usize) = (60, 140);

/// Columns of text for an output of this width.
pub fn columns(width: usize) -> usize {
    width.clamp(WIDTHS.0, WIDTHS.1)
}

/// The report as text, ending in a newline.
pub fn render_text(report: &Report, options: &RenderOptions) -> String {
    let screen = columns(options.width);
    let style = Style {
        color: options.color,
    };
    let mut out = String::new();
    summary(&mut out, report, screen, style);
    efficiencies(&mut out, report, screen, style);
    roots::section(&mut out, report, screen, style);
    path::section(&mut out, report, screen, style);
    findings(&mut out, report, options, screen, style);
    functions::section(&mut out, report, screen, style);
    threads::section(&mut out, report, screen, style);
    regions::regions(&mut out, report, screen, style);
    anomalies(&mut out, report, screen, style);
    out
}

/// Appends a paragraph.
pub fn paragraph(out: &mut String, text: &str, screen: usize, style: Style, tone: Tone) {
    for line in wrap(text, screen) {
        out.push_str(&style.paint(tone, &line));
        out.push('\n');
    }
}

/// Program without its directory, and arguments.
pub(crate) fn command(run: &Run) -> String {
    let mut command = base_name(&run.program).to_owned();
    for argument in &run.arguments {
        command.push(' ');
        command.push_str(argument);
    }
    command
}

/// `4 ranks on node7 with 8 cores, 531 ms, 10 524 calls`.
pub(crate) fn size_of_run(run: &Run) -> String {
    let hosts = match run.hosts.len() {
        0 => String::new(),
        1 => format!(" on {}{}", run.hosts[0], cores_of_hosts(run)),
        many => format!(" on {many} hosts{}", cores_of_hosts(run)),
    };
    format!(
        "{}{hosts}, {}, {}",
        plural(run.ranks.into(), "rank"),
        duration(run.wall_time_s),
        plural(run.operations, "call")
    )
}

/// ` with 8 cores`, or ` with 4 to 8 cores each`: those that ranks may use.
fn cores_of_hosts(run: &Run) -> String {
    let cores = || run.processors.iter().map(|alike| alike.cores);
    let (Some(least), Some(most)) = (cores().min(), cores().max()) else {
        return String::new();
    };
    let most = plural(most.into(), "core");
    match run.hosts.len() {
        1 => format!(" with {most}"),
        _ if cores().all(|other| other == least) => format!(" with {most} each"),
        _ => format!(" with {least} to {most} each"),
    }
}

fn summary(out: &mut String, report: &Report, screen: usize, style: Style) {
    let head = format!("{}: {}", command(&report.run), size_of_run(&report.run));
    paragraph(out, &head, screen, style, Tone::Strong);
    let text = headline::waiting(report);
    let share = report.waiting_percent();
    paragraph(out, &text, screen, style, style::tone_of_percent(share));
    out.push('\n');
}

/// What the program moved, if that is known.
pub(crate) fn moved(report: &Report) -> Option<String> {
    // Short calls of POSIX I/O are no records, and so have no bytes.
    let is_posix = |row: &OperationTimes| row.time == "io" && !row.operation.starts_with("MPI_");
    let all_of_files = !report.operations.iter().any(is_posix);
    report.sums().traffic?.in_words(all_of_files)
}

/// `4 ranks share 2 cores`, or `4 threads of 2 ranks`, if they do.
pub(crate) fn crowd(report: &Report) -> Option<String> {
    let crowd = report.run.crowd?;
    let hosts = match crowd.hosts {
        1 if report.run.hosts.len() <= 1 => String::new(),
        1 => " on one host".to_owned(),
        many => format!(" on the most crowded of {many} such hosts"),
    };
    let ranks = plural(crowd.ranks.into(), "rank");
    let who = match crowd.threads > crowd.ranks {
        true => format!("{} of {ranks}", plural(crowd.threads.into(), "thread")),
        false => ranks,
    };
    let cores = plural(crowd.cores.into(), "core");
    Some(format!("{who} share {cores}{hosts}"))
}

/// Who shares cores, and how much of the waiting started with somebody who had none, if that is much.
pub(crate) fn cores(report: &Report) -> Option<String> {
    let by_activity = &report.waiting_by_activity_s;
    let without = by_activity.get("preempted").copied().unwrap_or(0.0);
    let share = crate::percent(without, by_activity.values().sum());
    let much = (share >= MUCH_PERCENT).then(|| percent(share));
    match (crowd(report), much) {
        (Some(crowd), Some(share)) => Some(format!(
            "{crowd}: {share} of the waiting starts with a rank that has none; gains suppose a core for each"
        )),
        (Some(crowd), None) => Some(format!(
            "{crowd}: ranks wait for these, too; gains suppose a core for each"
        )),
        (None, Some(share)) => Some(format!(
            "{share} of the waiting starts with a rank whose processor others have"
        )),
        (None, None) => None,
    }
}

/// The findings to be listed.
fn listed(report: &Report) -> &[Bottleneck] {
    let worth = |found: &Bottleneck| found.percent >= NEGLIGIBLE_PERCENT;
    &report.bottlenecks[..report.bottlenecks.partition_point(worth)]
}

fn efficiencies(out: &mut String, report: &Report, screen: usize, style: Style) {
    let efficiency = &report.efficiency;
    let threads = match report.run.locations > report.run.ranks {
        true => ", of the ranks' first threads",
        false => "",
    };
    let parts = efficiency.serialization.zip(efficiency.transfer);
    let parts = parts.map_or(String::new(), |(serialization, transfer)| {
        let (serialization, transfer) = (percent(serialization * 100.0), percent(transfer * 100.0));
        format!(" ({serialization} serialization x {transfer} transfer)")
    });
    let text = format!(
        "{} parallel = {} load balance x {} communication{parts}{threads}",
        percent(efficiency.parallel * 100.0),
        percent(efficiency.load_balance * 100.0),
        percent(efficiency.communication * 100.0)
    );
    finding::labelled(out, "Efficiency", &text, screen, style);
    if let Some(hybrid) = &efficiency.hybrid {
        let part = |part: &EfficiencyPart, of| {
            format!(
                "{} {of} ({} load balance x {} communication)",
                percent(part.parallel * 100.0),
                percent(part.load_balance * 100.0),
                percent(part.communication * 100.0)
            )
        };
        let text = format!(
            "{} parallel with all threads = {} x {}",
            percent(hybrid.parallel * 100.0),
            part(&hybrid.mpi, "MPI"),
            part(&hybrid.threads, "threads")
        );
        finding::labelled(out, "Hybrid", &text, screen, style);
    }
    let sums = report.sums();
    if sums.wall_s > 0.0 {
        let share = |part| percent(crate::percent(part, sums.wall_s));
        let text = format!(
            "{} computation{}, {} communication, {} synchronisation, {} I/O",
            share(sums.computation_s),
            off_work(&sums),
            share(sums.communication_s),
            share(sums.synchronization_s),
            share(sums.io_s)
        );
        finding::labelled(out, "Time", &text, screen, style);
    }
    if let Some(text) = start_and_end(report) {
        finding::labelled(out, "Apart", &text, screen, style);
    }
    if let Some(text) = on_processors(report) {
        finding::labelled(out, "On cores", &text, screen, style);
    }
    if let Some(text) = counted(report) {
        finding::labelled(out, "Counted", &text, screen, style);
    }
    if !sums.busiest.is_empty() {
        let worked = |all: f64, off: &OffWork| all - off.blocked_s - off.preempted_s;
        let mean = worked(sums.computation_s, &sums.off_work);
        let mean = mean / f64::from(report.run.locations.max(1));
        let all = report.locations.iter();
        let all = all.map(|of| worked(of.computation_s, &of.off_work));
        let most = all.fold(0.0, f64::max);
        let text = format!(
            "{}: up to {} of computation, the mean is {}",
            list_of_ranges(&sums.busiest, 8),
            duration(most),
            duration(mean)
        );
        finding::labelled(out, "Busiest", &text, screen, style);
    }
    if let Some(between) = sums.inter_node_wait_s
        && sums.wait_s > 0.0
    {
        let share = percent(crate::percent(between, sums.wait_s));
        let text = format!("{share} of the waiting was for ranks on other hosts");
        finding::labelled(out, "Hosts", &text, screen, style);
    }
    if let Some(calls) = sums.in_calls.filter(|_| sums.wall_s > 0.0) {
        let share = |part| percent(crate::percent(part, sums.wall_s));
        let text = format!(
            "{} of all time = {} that patterns explain + {} that calls cost + {} unexplained",
            share(calls.total_s),
            share(calls.explained_s),
            share(calls.cost_s),
            share(calls.unexplained_s)
        );
        finding::labelled(out, "In calls", &text, screen, style);
    }
    if let Some(text) = moved(report) {
        finding::labelled(out, "Moved", &text, screen, style);
    }
    if let Some(text) = cores(report) {
        finding::labelled(out, "Cores", &text, screen, style);
    }
    let left_out = match report.settings.fast {
        true => "; root causes left out (--fast)",
        false => "",
    };
    let trace = format!(
        "{} in {}, read by {} in {}{left_out}",
        size(report.run.trace_bytes),
        plural(report.run.locations.into(), "location"),
        plural(report.agents.count.into(), "agent"),
        duration(report.agents.analysis_time_s)
    );
    finding::labelled(out, "Trace", &trace, screen, style);
}

/// ` (of it 12.3 % without a processor)`: what computation was beside work, as far as it is much.
fn off_work(sums: &LocationSums) -> String {
    let of = &sums.off_work;
    let parts = [
        (of.preempted_s, "without a processor"),
        (of.blocked_s, "asleep or blocked"),
        (of.kernel_s, "in the kernel"),
    ];
    let parts = parts
        .into_iter()
        .map(|(part, what)| (crate::percent(part, sums.computation_s), what));
    let told = parts.filter(|(share, _)| *share >= NOTABLE_OFF);
    let told: Vec<_> = told
        .map(|(share, what)| format!("{} {what}", percent(share.min(100.0))))
        .collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(" (of it {})", told.join(", ")),
    }
}

/// `51.3 % of all time: 0.92 s (rank 2) to 1.90 s (rank 0)`: how long locations were on a processor, if
/// they were not for a notable part of the time.
pub(crate) fn on_processors(report: &Report) -> Option<String> {
    let sums = report.sums();
    let ends = sums.startup_s.unwrap_or(0.0) + sums.shutdown_s.unwrap_or(0.0);
    let share = crate::percent(sums.processor_s?, sums.wall_s + ends);
    let is_known = report.locations.iter().all(|l| l.processor_s.is_some());
    if share > 100.0 - NOTABLE_OFF || !is_known {
        return None;
    }
    let share = format!("{} of all time", percent(share));
    // Those that are listed of many stand out by something else.
    if !report.location_classes.is_empty() {
        return Some(share);
    }
    let known = report.locations.iter();
    let known = known.filter_map(|l| Some((l.processor_s?, l.rank, l.thread)));
    let (least, most) = (
        known.clone().min_by(|a, b| a.0.total_cmp(&b.0))?,
        known.max_by(|a, b| a.0.total_cmp(&b.0))?,
    );
    let who = |(time, rank, thread): (f64, u32, u32)| match thread {
        0 => format!("{} (rank {rank})", duration(time)),
        _ => format!("{} (thread {thread} of rank {rank})", duration(time)),
    };
    let range = match least == most {
        true => who(least),
        false => format!("{} to {}", who(least), who(most)),
    };
    Some(format!("{share}: {range}"))
}

/// `12 345 678 instructions, 4 567 890 cycles in 3.21 s of computation`: what counters counted.
pub(crate) fn counted(report: &Report) -> Option<String> {
    let sums = report.sums();
    let counts = sums.counters.iter();
    let counts: Vec<String> = counts
        .map(|(name, number)| format!("{}{}{name}", count(*number), style::GLUE))
        .collect();
    let time = sums.counted_s.filter(|_| !counts.is_empty())?;
    let counts = counts.join(", ");
    Some(format!("{counts} in {} of computation", duration(time)))
}

/// Time of start-up and shut-down, as shares of all time.
pub(crate) fn start_and_end(report: &Report) -> Option<String> {
    let phases = report.phases_of_run.as_ref()?;
    let parts = phases.operations.iter();
    let parts: Vec<_> = parts
        .filter(|part| part.share * 100.0 >= NEGLIGIBLE_PERCENT)
        .collect();
    let named = parts.iter().map(|part| {
        let share = percent(part.share * 100.0);
        format!("{} {share}", part.operation)
    });
    let named: Vec<String> = named.collect();
    let all: f64 = parts.iter().map(|part| part.share).sum();
    let wall = report.run.wall_time_s;
    let usual = match all >= MUCH && wall < SHORT_RUN_S {
        true => format!("usual in a run of {}; ", duration(wall)),
        false => String::new(),
    };
    let named = named.join(", ");
    (!parts.is_empty())
        .then(|| format!("Start-up and shut-down: {named} ({usual}not counted above)"))
}

const COLUMNS: &[Column] = &[
    column("#", true, None),
    column("Lost", true, None),
    column("%", true, None),
    column("Pattern", false, Some(12)),
    column("Operation", false, Some(12)),
    column("Where", false, Some(16)),
    column("Most by", false, None),
];

fn findings(
    out: &mut String,
    report: &Report,
    options: &RenderOptions,
    screen: usize,
    style: Style,
) {
    let listed = listed(report);
    let shown = &listed[..listed.len().min(options.top)];
    let negligible = report.bottlenecks.len() - listed.len();
    let is_silent = report.bottlenecks.is_empty()
        && report.below_hotspot.is_none()
        && report.called_once.is_empty();
    if !is_silent {
        out.push('\n');
    }
    if !shown.is_empty() {
        let rows = shown.iter().enumerate();
        let rows: Vec<Row> = rows.map(|(at, found)| row(at + 1, found)).collect();
        table::table(out, COLUMNS, &rows, screen, style);
    }
    let mut faint = |text: String| paragraph(out, &text, screen, style, Tone::Faint);
    if listed.len() > shown.len() {
        let hidden = listed.len() - shown.len();
        faint(format!(
            "and {hidden} more: laggard show {} --top {}",
            options.file,
            listed.len()
        ));
    }
    if negligible > 0 {
        let number = match shown.len() {
            0 => plural(negligible as u64, "finding"),
            _ => format!("and {} more", count(negligible as u64)),
        };
        let limit = percent(NEGLIGIBLE_PERCENT);
        faint(format!("{number} below {limit} of all time"));
    }
    for text in [below_hotspot(report), called_once(report)] {
        text.into_iter().for_each(&mut faint);
    }
    for (at, found) in shown.iter().take(EXPLAINED).enumerate() {
        out.push('\n');
        finding::paragraph(out, at + 1, (report, found), screen, style);
    }
}

/// Number of findings that the hotspot filter left out, and their loss.
pub(crate) fn below_hotspot(report: &Report) -> Option<String> {
    let below = report.below_hotspot.as_ref()?;
    Some(format!(
        "{} hidden ({} of time); show them: laggard analyze --all",
        plural(below.findings, "smaller finding"),
        percent(below.percent),
    ))
}

/// Calls made once: nobody can tell whether they were slow.
pub(crate) fn called_once(report: &Report) -> Option<String> {
    let all = &report.called_once;
    let named = all.iter().take(ONCE).map(|once| {
        let (place, share) = (finding::place(&once.location), percent(once.percent));
        format!("{} at {place} {share}", once.operation)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(ONCE) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| {
        format!(
            "Called once, so whether it was slow needs a table of baselines (laggard baseline): \
             {named}{more}"
        )
    })
}

fn row(number: usize, found: &Bottleneck) -> Row {
    let tone = style::tone_of_percent(found.percent);
    let plain = |text: String| (text, Tone::Plain);
    let cells = vec![
        (number.to_string(), Tone::Faint),
        (duration(found.severity_s), tone),
        (format!("{:.1}", found.percent), tone),
        plain(found.name.clone()),
        plain(found.operation.clone()),
        plain(finding::place(&found.location)),
        plain(finding::lost_most(found)),
    ];
    let note = found.causes.first().map(|cause| {
        // The rank with the largest loss may be the one that the others waited for.
        let worst = found.ranks.first().map(|share| share.rank);
        let late = finding::late_rank(found, cause);
        let is_itself = late == finding::ITSELF || cause.thread.is_some();
        let others = match worst == Some(cause.rank) && !is_itself {
            true => "others ",
            false => "",
        };
        let root = found.root_causes.first().map_or(String::new(), |root| {
            let share = percent(root.share * 100.0);
            format!("; {} starts {share} of it", root.id)
        });
        format!("{others}for {}{root}", finding::cause(found, cause))
    });
    Row { cells, note }
}

fn anomalies(out: &mut String, report: &Report, screen: usize, style: Style) {
    if report.anomalies.is_empty() {
        return;
    }
    out.push('\n');
    paragraph(out, "Anomalies", screen, style, Tone::Strong);
    let rows = alike(&report.anomalies);
    for row in rows.iter().take(ANOMALIES) {
        let text = anomaly(row);
        finding::labelled(out, row.0.severity.name(), &text, screen, style);
    }
    let hidden = rows.len().saturating_sub(ANOMALIES);
    if hidden > 0 {
        let text = format!("and {hidden} more in the report file");
        finding::labelled(out, "", &text, screen, style);
    }
}

/// A row of [`alike`] in words.
pub(crate) fn anomaly((first, times, others): &(&Anomaly, u64, usize)) -> String {
    let mut text = first.id.replace('_', " ");
    if *times > 1 {
        text.push_str(&format!(" ({} times)", count(*times)));
    }
    text.push_str(": ");
    text.push_str(&first.detail);
    match (&first.origin, others) {
        (Some(origin), 0) => text.push_str(&format!(" [{origin}]")),
        (Some(origin), others) => text.push_str(&format!(" [{origin} and {others} more]")),
        (None, _) => {}
    }
    text
}

/// Merges anomalies that say the same of several locations: the first, the number of
/// occurrences, and the number of further locations.
pub(crate) fn alike(anomalies: &[Anomaly]) -> Vec<(&Anomaly, u64, usize)> {
    let mut rows: Vec<(&Anomaly, u64, usize)> = Vec::new();
    for anomaly in anomalies {
        let same = rows.iter_mut().find(|(first, ..)| {
            (&first.id, &first.detail, first.severity)
                == (&anomaly.id, &anomaly.detail, anomaly.severity)
        });
        match same {
            Some((_, count, others)) => {
                *count = count.saturating_add(anomaly.count);
                *others += 1;
            }
            None => rows.push((anomaly, anomaly.count, 0)),
        }
    }
    rows
}
