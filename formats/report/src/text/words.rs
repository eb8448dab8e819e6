//! A report's facts as phrases, shared by the text and all other views.
//!
//! Numbers and their units are joined by no-break spaces.

use super::finding;
use crate::text;
use crate::{
    Anomaly, Bottleneck, Caller, Cause, ParallelRegion, PathRow, Report, RootCause, Run,
    SourceLocation, ThreadImbalance, Victim,
};

/// Stands for the awaited rank if no recorded call explains the wait.
const OUTSIDE: &str = "nobody that the recording shows: the cause is outside of the program (the \
    network, other jobs), or it changes memory without the library";

/// The same of waits among threads.
const ELSEWHERE: &str = "nobody that the recording shows: a thread that it does not have, or another process, \
    ended the wait";

/// Reason for unexplained time: nobody for single waits, unknown for all calls together.
pub fn whom_unexplained(finding: &Bottleneck) -> &'static str {
    match finding.worst_instance {
        _ if finding.is_among_threads() => ELSEWHERE,
        Some(_) => OUTSIDE,
        None => {
            "nobody knows: no pattern names it, and calls cost less (a core, data under way, the \
             network)"
        }
    }
}

/// Program without its directory, and arguments.
pub fn command(run: &Run) -> String {
    text::command(run)
}

/// `4 ranks on node7, 531 ms, 10 524 calls`.
pub fn size_of_run(run: &Run) -> String {
    text::size_of_run(run)
}

/// Share of waiting, its certainty, and its main place.
pub fn verdict(report: &Report) -> String {
    text::headline::waiting(report)
}

/// `exchange.c:42 exchange_halo`, or the known part of it; `comm.c:91 exchange via
/// send_receive`.
pub fn place(location: &SourceLocation) -> String {
    finding::place(location)
}

/// `exchange.c:91 exchange`, or the known part of it.
pub fn caller(caller: &Caller) -> String {
    finding::line(&caller.file, caller.line, &caller.function)
}

/// `rank 0, MPI_Send at exchange.c:37 exchange: computed 4 ms before the send`.
pub fn cause(finding: &Bottleneck, cause: &Cause) -> String {
    finding::cause(finding, cause)
}

/// ` in the parallel region at calls.c:16 main`, of a late call; empty outside of them.
pub fn within(cause: &Cause) -> String {
    finding::within(&cause.operation, &cause.parallel_regions)
}

/// `calls.c:16 main by threads 0-2 of 4`: a parallel region, and which threads of it make a call.
pub fn parallel_region(region: &ParallelRegion) -> String {
    finding::parallel_region(region)
}

/// `rank 0`; `itself` if that rank alone lost time.
pub fn late_rank(finding: &Bottleneck, cause: &Cause) -> String {
    finding::late_rank(finding, cause)
}

/// `ranks 0-3`, or `thread 1 of rank 0`: who is a root cause.
pub fn who(root: &RootCause) -> String {
    text::roots::who(root)
}

/// `rank 0 computed between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`.
pub fn root_cause(root: &RootCause) -> String {
    text::roots::what(root)
}

/// `between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`, or in which function, if it is time between
/// calls.
pub fn stretch(root: &RootCause) -> Option<String> {
    text::roots::stretch(root)
}

/// `asleep or blocked`, of an activity that is time between calls beside work.
pub fn off_work(activity: &str) -> Option<&'static str> {
    text::roots::off_work(activity)
}

/// Stands among the activities of root causes for waiting that nobody is known to have started.
pub const UNTRACED: &str = "untraced";

/// `Of all waiting, 61 % starts with computation, 39 % with latency`: by the activity of root causes.
pub fn started_by(report: &Report) -> Option<String> {
    text::roots::started_by(report)
}

/// How much shorter the run is without it, as a sentence, if that is predicted.
pub fn gain(root: &RootCause) -> Option<String> {
    text::roots::gain(root)
}

/// What stands before a hint against it: `Try: `.
pub fn try_it(root: &RootCause) -> &'static str {
    text::roots::try_it(root)
}

/// `computation between MPI_Barrier at chain.c:7 main and MPI_Send at chain.c:10 main`.
pub fn on_path(row: &PathRow) -> String {
    text::path::what(row)
}

/// `ranks 1-3 waited 900 ms in MPI_Recv at chain.c:9 main`.
pub fn victim(victim: &Victim) -> String {
    text::roots::victim(victim)
}

/// Time, share, ranks and calls of a finding's loss, the reference, and the certainty.
pub fn lost(finding: &Bottleneck) -> String {
    finding::lost(finding)
}

/// Ranks that lost time, as a phrase with at most `most` ranges.
pub fn ranks(finding: &Bottleneck, most: usize) -> String {
    finding::ranks(finding, most)
}

/// `ranks 0-3, 7` for a set of ranges such as `0-3,7`, with at most `most` ranges.
pub fn ranks_of_set(set: &str, most: usize) -> String {
    crate::ranks::list_of_ranges(set, most)
}

/// `Start-up and shut-down: MPI_Init 54 %, MPI_Finalize 10 % (not counted above)`, if they took
/// notable time.
pub fn start_and_end(report: &Report) -> Option<String> {
    text::start_and_end(report)
}

/// `51.3 % of all time: 0.92 s (rank 2) to 1.90 s (rank 0)`: how long locations were on a processor, if
/// they were not for a notable part of the time.
pub fn on_processors(report: &Report) -> Option<String> {
    text::on_processors(report)
}

/// `12 345 678 instructions, 4 567 890 cycles in 3.21 s of computation`: what counters counted.
pub fn counted(report: &Report) -> Option<String> {
    text::counted(report)
}

/// `8 B in 1 message, 2.50 MB given to collectives`: what the program moved, if that is known.
pub fn moved(report: &Report) -> Option<String> {
    text::moved(report)
}

/// `4 ranks share 2 cores`, if they do.
pub fn crowd(report: &Report) -> Option<String> {
    text::crowd(report)
}

/// Who shares cores, and how much of the waiting started with somebody who had none, if that is much.
pub fn cores(report: &Report) -> Option<String> {
    text::cores(report)
}

/// `thread 1 of rank 0`: the thread that computes most beyond the mean of its rank.
pub fn busiest_thread(row: &ThreadImbalance) -> String {
    text::threads::who(row)
}

/// What to do about the place where threads share most unevenly, if it is notable.
pub fn share_among_threads(report: &Report) -> Option<String> {
    text::threads::advice(report)
}

/// Number of findings hidden because they cost no rank much of its time, and their loss.
pub fn below_hotspot(report: &Report) -> Option<String> {
    text::below_hotspot(report)
}

/// Calls made once: nobody can tell whether they were slow.
pub fn called_once(report: &Report) -> Option<String> {
    text::called_once(report)
}

/// Merges anomalies that say the same of several locations: the first, the number of
/// occurrences, and the number of further locations.
pub fn alike(anomalies: &[Anomaly]) -> Vec<(&Anomaly, u64, usize)> {
    text::alike(anomalies)
}

/// `damaged block (2 times): 17 records are lost [rank-3.lag]`: a row of [`alike`].
pub fn anomaly(row: &(&Anomaly, u64, usize)) -> String {
    text::anomaly(row)
}

/// `It did not end by itself: rank 1 was in MPI_Recv.`: how a run ended that was killed or failed, else empty.
pub fn how_it_ended(report: &Report) -> String {
    text::headline::how_it_ended(report).trim_start().to_owned()
}

/// Share of all time, percent, below which a finding is not worth a change of the program.
pub const NEGLIGIBLE_PERCENT: f64 = text::NEGLIGIBLE_PERCENT;
/// The least share of all time, percent, of a root cause with a hint.
pub const NOTABLE_PERCENT: f64 = text::NOTABLE_PERCENT;
