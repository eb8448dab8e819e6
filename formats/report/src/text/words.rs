//! A report's facts as phrases, the same in the text and in everything else that shows one.
//!
//! Numbers and their units are joined by no-break spaces.

use super::finding;
use crate::text;
use crate::{Anomaly, Bottleneck, Cause, Report, Run, SourceLocation};

/// Whom a wait is for that no recorded call accounts for.
const OUTSIDE: &str = "nobody that the recording shows: the cause is outside of the program (the \
    network, other jobs), or it changes memory without the library";

/// Why time is unexplained: of single waits that is nobody, of all calls together not known.
pub fn whom_unexplained(finding: &Bottleneck) -> &'static str {
    match finding.worst_instance {
        Some(_) => OUTSIDE,
        None => {
            "nobody knows: no pattern names it, and calls cost less (a core, data under way, the \
             network)"
        }
    }
}

/// Program, without its directory, and arguments.
pub fn command(run: &Run) -> String {
    text::command(run)
}

/// `4 ranks on node7, 531 ms, 10 524 calls`.
pub fn size_of_run(run: &Run) -> String {
    text::size_of_run(run)
}

/// How much waiting there was, how sure that is, and where most of it was.
pub fn verdict(report: &Report) -> String {
    text::waiting(report)
}

/// `exchange.c:42 exchange_halo`, or what is known of it; `comm.c:91 exchange via send_receive`.
pub fn place(location: &SourceLocation) -> String {
    finding::place(location)
}

/// `rank 0, MPI_Send at exchange.c:37 exchange: computed 4 ms before the send`.
pub fn cause(finding: &Bottleneck, cause: &Cause) -> String {
    finding::cause(finding, cause)
}

/// `rank 0`; `itself` of a rank that alone lost time.
pub fn late_rank(finding: &Bottleneck, cause: &Cause) -> String {
    finding::late_rank(finding, cause)
}

/// Time, share, ranks, calls: what a finding lost, against what, how sure.
pub fn lost(finding: &Bottleneck) -> String {
    finding::lost(finding)
}

/// Ranks that lost time, as a phrase with at most `most` ranges.
pub fn ranks(finding: &Bottleneck, most: usize) -> String {
    finding::ranks(finding, most)
}

/// `ranks 0-3, 7` of a set of ranges such as `0-3,7`, with at most `most` ranges.
pub fn ranks_of_set(set: &str, most: usize) -> String {
    crate::ranks::list_of_ranges(set, most)
}

/// `Start-up and shut-down: MPI_Init 54 %, MPI_Finalize 10 % (not counted above)`, if they took
/// time worth a word.
pub fn start_and_end(report: &Report) -> Option<String> {
    text::start_and_end(report)
}

/// How many findings are not listed since they cost no rank much of its time, and what they lost.
pub fn below_hotspot(report: &Report) -> Option<String> {
    text::below_hotspot(report)
}

/// The calls of which nobody can tell whether they were slow, since they were made once.
pub fn called_once(report: &Report) -> Option<String> {
    text::called_once(report)
}

/// Anomalies that say the same of several locations, as one: the first, how often, and how many
/// others.
pub fn alike(anomalies: &[Anomaly]) -> Vec<(&Anomaly, u64, usize)> {
    text::alike(anomalies)
}

/// Share of all time, in percent, below which a finding is not worth a change of the program.
pub const NEGLIGIBLE_PERCENT: f64 = text::NEGLIGIBLE_PERCENT;
