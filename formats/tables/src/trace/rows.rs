//! The tables of a trace. `TABLES.md` beside this crate documents them.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::cell::{Cell, Dictionaries, Key, Row, name_of, tables};

tables! {
    /// A thread of a rank.
    LocationRow / LocationColumns = "locations" {
        /// Rank in `MPI_COMM_WORLD`.
        rank: u32,
        /// Thread of the rank.
        thread: u32,
        /// Host name.
        host: String,
        /// Process id.
        pid: u32,
        /// Entry of its first call, ns.
        first_ns: i64,
        /// Exit of its last call, ns.
        last_ns: i64,
        /// Rows in `operations`.
        operations: u64,
        /// Calls that these rows stand for.
        calls: u64,
        /// Whether its file was closed.
        complete: bool,
    }
    /// A call path.
    CallPathRow / CallPathColumns = "call_paths" {
        /// Id used in other tables; 0 = unknown.
        call_path: u32,
        /// Source file of the calling line.
        file: Option<String>,
        /// Calling line.
        line: Option<u32>,
        /// Calling function.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// Number of frames.
        depth: u32,
    }
    /// A communicator, window or file.
    GroupRow / GroupColumns = "communicators" {
        /// Identifier used in other tables.
        communicator: Key,
        /// Communicator, window or file.
        kind: Key,
        /// Hexadecimal identity, equal on all ranks.
        id: String,
        /// Members, if known.
        size: Option<u32>,
        /// Communicator that it was made from, if known.
        parent: Option<String>,
    }
    /// A call.
    OperationRow / OperationColumns = "operations" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Number within the thread, from 0, in the order of return.
        number: u64,
        /// Name of the call.
        call: Key,
        /// Generic type.
        type_: Key,
        /// Entry, ns.
        enter_ns: i64,
        /// Exit, ns.
        leave_ns: i64,
        /// Time inside, ns.
        inside_ns: i64,
        /// Number of calls that the row stands for.
        calls: u32,
        /// Outcome.
        outcome: Key,
        /// Communicator, window or file.
        communicator: Option<Key>,
        /// World rank of the receiver.
        to_rank: Option<i32>,
        /// Tag of the message sent.
        to_tag: Option<i32>,
        /// Bytes sent.
        bytes_sent: u64,
        /// World rank of the sender; -1 = any.
        from_rank: Option<i32>,
        /// Tag of the message received; -1 = any.
        from_tag: Option<i32>,
        /// Bytes received.
        bytes_received: u64,
        /// Root of a collective, world rank.
        root: Option<u32>,
        /// Call path.
        call_path: u32,
        /// Number of the OpenMP team in whose parallel region it is made.
        team: Option<u64>,
        /// Threads of that team.
        team_threads: Option<u32>,
        /// The number of this thread in it.
        team_member: Option<u32>,
        /// Where the region begins: a call path.
        region_call_path: Option<u32>,
    }
    /// What the time before a call was beside computation, and what the call was, as far as that was read.
    StretchRow / StretchColumns = "stretches" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Number of the call that ended it.
        number: u64,
        /// Off the processor by itself, ns.
        blocked_ns: i64,
        /// Off the processor since others had it, ns.
        preempted_ns: i64,
        /// In the kernel, ns.
        kernel_ns: i64,
        /// Page faults without a device.
        minor_faults: u32,
        /// Page faults with a device.
        major_faults: u32,
        /// Time in which counters counted, ns.
        counted_ns: Option<i64>,
        /// In the call itself, off the processor by itself, ns.
        inside_blocked_ns: i64,
        /// In the call itself, off the processor since others had it, ns.
        inside_preempted_ns: i64,
        /// In the call itself, in the kernel as far as page faults explain it, ns.
        inside_kernel_ns: i64,
        /// Page faults in the call itself without a device.
        inside_minor_faults: u32,
        /// Page faults in the call itself with a device.
        inside_major_faults: u32,
    }
    /// What a counter counted before a call.
    CounterRow / CounterColumns = "counters" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Number of the call that ended the stretch.
        number: u64,
        /// Name of the counter.
        counter: Key,
        /// How much it counted.
        count: u64,
    }
    /// A sample of the call stack.
    SampleRow / SampleColumns = "samples" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Number of the call that ended the stretch.
        number: u64,
        /// When it was taken, ns.
        time_ns: i64,
        /// Call path.
        call_path: u32,
    }
    /// A wait among the threads of a rank.
    ThreadRow / ThreadColumns = "threads" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Number of the call.
        number: u64,
        /// Number of the OpenMP team in its process.
        team: Option<u64>,
        /// How many threads meet.
        threads: Option<u32>,
        /// The number of this thread in the team.
        member: Option<u32>,
        /// Which meeting of the team it is, from 1.
        meeting: Option<u32>,
        /// Address of what it is about in its process, hexadecimal.
        object: Option<String>,
        /// Whether it ended since its time was over.
        timed_out: bool,
    }
    /// A message.
    MessageRow / MessageColumns = "messages" {
        /// World rank of the sender.
        from_rank: u32,
        /// World rank of the receiver.
        to_rank: u32,
        /// Communicator.
        communicator: Option<Key>,
        /// Tag.
        tag: i32,
        /// Number between the two with this tag on this communicator, from 0.
        number: u64,
        /// Bytes.
        bytes: u64,
        /// Thread of the sender.
        send_thread: Option<u32>,
        /// Name of the sending call.
        send_call: Option<Key>,
        /// Number of the sending call.
        send_number: Option<u64>,
        /// Entry of the sending call, ns.
        send_ns: Option<i64>,
        /// Number of the call that completed the send.
        send_done_number: Option<u64>,
        /// Exit of the completing call, ns.
        send_done_ns: Option<i64>,
        /// Call path of the sending call.
        send_call_path: Option<u32>,
        /// Thread of the receiver.
        receive_thread: Option<u32>,
        /// Name of the call that posted the receive.
        receive_call: Option<Key>,
        /// Number of the posting call.
        receive_number: Option<u64>,
        /// Entry of the posting call, ns.
        receive_ns: Option<i64>,
        /// Number of the call that completed the receive.
        receive_done_number: Option<u64>,
        /// Entry of the completing call, ns.
        receive_wait_ns: Option<i64>,
        /// Exit of the completing call, ns.
        receive_done_ns: Option<i64>,
        /// Call path of the posting call.
        receive_call_path: Option<u32>,
    }
    /// A collective.
    CollectiveRow / CollectiveColumns = "collectives" {
        /// Communicator, window or file.
        communicator: Option<Key>,
        /// Number on it, from 0.
        instance: u64,
        /// Name of the call.
        call: Key,
        /// Number of members that entered it.
        members: u32,
        /// Number of members with a trace.
        expected: u32,
        /// Entry of the first member, ns.
        first_enter_ns: i64,
        /// Rank of the first member to enter.
        first_rank: u32,
        /// Entry of the last member, ns.
        last_enter_ns: i64,
        /// Rank of the last member to enter.
        last_rank: u32,
        /// Exit of the first member, ns.
        first_leave_ns: Option<i64>,
        /// Exit of the last member, ns.
        last_leave_ns: Option<i64>,
        /// Bytes sent by all members.
        bytes_sent: u64,
    }
    /// A member's part in a collective.
    MemberRow / MemberColumns = "collective_members" {
        /// Communicator, window or file.
        communicator: Option<Key>,
        /// Number on it, from 0.
        instance: u64,
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the call.
        call: Key,
        /// Number of the call.
        number: u64,
        /// Entry of the call, ns.
        enter_ns: i64,
        /// Number of the call that completed the collective here.
        done_number: Option<u64>,
        /// Entry of the completing call, ns.
        wait_ns: Option<i64>,
        /// Exit of the completing call, ns.
        leave_ns: Option<i64>,
        /// Bytes sent by the member.
        bytes_sent: u64,
        /// Bytes received by the member.
        bytes_received: u64,
        /// Call path.
        call_path: u32,
    }
    /// The loss of one call in one pattern.
    WaitRow / WaitColumns = "waits" {
        /// Pattern.
        pattern: Key,
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the call.
        call: Key,
        /// Entry, ns.
        enter_ns: i64,
        /// Exit, ns.
        leave_ns: i64,
        /// Time lost within the call, ns.
        lost_ns: i64,
        /// Call path.
        call_path: u32,
        /// Late rank.
        cause_rank: Option<u32>,
        /// Late call of that rank.
        cause_call: Option<Key>,
        /// Call path of the late call.
        cause_call_path: Option<u32>,
        /// Root cause that starts most of such waits.
        root_cause: Option<u32>,
    }
    /// The sums of one call on one call path of one thread.
    ProfileRow / ProfileColumns = "profile" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the call.
        call: Key,
        /// Generic type.
        type_: Key,
        /// Call path.
        call_path: u32,
        /// Number of calls.
        calls: u64,
        /// Sum of durations, ns.
        total_ns: u64,
        /// Shortest duration, ns.
        minimum_ns: u64,
        /// Longest duration, ns.
        maximum_ns: u64,
        /// Bytes moved.
        bytes: u64,
    }
    /// The sums of one region of the program on one thread.
    RegionRow / RegionColumns = "regions" {
        /// Rank.
        rank: u32,
        /// Thread.
        thread: u32,
        /// Name of the region.
        region: String,
        /// `region`, `function` or `phase`.
        region_kind: Key,
        /// Call path of its first begin; for a function its entry.
        call_path: u32,
        /// Number of instances.
        calls: u64,
        /// Number of further instances without times.
        untimed_calls: u64,
        /// Inclusive time, ns.
        inclusive_ns: u64,
        /// Exclusive time, outside of recorded calls and nested regions, ns.
        exclusive_ns: u64,
        /// Smallest exclusive time of an instance, ns.
        minimum_ns: u64,
        /// Largest exclusive time of an instance, ns.
        maximum_ns: u64,
        /// Instances that began and never ended.
        unended: u64,
        /// Ends without a begin.
        unbegun: u64,
    }
    /// A finding of the report.
    FindingRow / FindingColumns = "findings" {
        /// Number in the report, from 1.
        finding: u32,
        /// Id, the same in all reports about the trace.
        id: Option<String>,
        /// Pattern.
        pattern: String,
        /// Name of the call that lost time.
        call: String,
        /// Generic type.
        type_: String,
        /// Source file of the call.
        file: Option<String>,
        /// Line of the call.
        line: Option<u32>,
        /// Function that makes the call.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// Time lost by all ranks, s.
        severity_s: f64,
        /// Share of all time, percent.
        percent: f64,
        /// Confidence, 0 to 1.
        confidence: f64,
        /// Calls at this place.
        calls: u64,
        /// Calls that lost time.
        instances: u64,
        /// Mean duration of the calls, s.
        mean_s: f64,
        /// Ranks that lost time, as ranges.
        ranks: String,
        /// Root cause that starts most of it.
        root_cause: Option<u32>,
        /// Its share, 0 to 1.
        root_share: Option<f64>,
        /// Rank waited for most.
        cause_rank: Option<u32>,
        /// Late call of that rank.
        cause_call: Option<String>,
        /// Source file of the late call.
        cause_file: Option<String>,
        /// Line of the late call.
        cause_line: Option<u32>,
        /// Share of the lost time due to this cause, 0 to 1.
        cause_share: Option<f64>,
        /// Activity of that rank instead.
        because: Option<String>,
        /// Rank of the call that lost most.
        worst_rank: Option<u32>,
        /// Entry of that call, s.
        worst_start_s: Option<f64>,
        /// Exit of that call, s.
        worst_end_s: Option<f64>,
    }
    /// Who started waiting that others passed on.
    RootCauseRow / RootCauseColumns = "root_causes" {
        /// Number in the report, from 1.
        root_cause: u32,
        /// Activity.
        activity: String,
        /// The call; for computation, the call before it.
        call: Option<String>,
        /// Source file of the call.
        file: Option<String>,
        /// Line of the call.
        line: Option<u32>,
        /// Function that makes the call.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// The call that ended the computation, or that waited.
        until_call: Option<String>,
        /// Source file of that call.
        until_file: Option<String>,
        /// Line of that call.
        until_line: Option<u32>,
        /// Function that makes that call.
        until_function: Option<String>,
        /// Frames of that call, outermost first.
        until_frames: Option<String>,
        /// Ranks that cause nearly all of it, as ranges.
        ranks: String,
        /// Waiting for these ranks, s.
        direct_s: f64,
        /// Waiting for others, who waited for these ranks, s.
        indirect_s: f64,
        /// Both, s.
        severity_s: f64,
        /// Share of all time, percent.
        percent: f64,
        /// Predicted gain of mending it, s.
        gain_s: Option<f64>,
        /// Share of the run's time between start-up and shut-down, percent.
        gain_percent: Option<f64>,
        /// The same in words.
        what: String,
    }
    /// An activity on the critical path.
    PathRow / PathColumns = "critical_path" {
        /// Kind of activity.
        kind: String,
        /// The call; for computation, the call before it.
        call: Option<String>,
        /// Source file of the call.
        file: Option<String>,
        /// Line of the call.
        line: Option<u32>,
        /// Function that makes the call.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// The call that ended the computation.
        until_call: Option<String>,
        /// Source file of that call.
        until_file: Option<String>,
        /// Line of that call.
        until_line: Option<u32>,
        /// Function that makes that call.
        until_function: Option<String>,
        /// Frames of that call, outermost first.
        until_frames: Option<String>,
        /// Time of the path in it, s.
        seconds: f64,
        /// Share of the path without start-up, 0 to 1.
        share: f64,
        /// The same of the path's weight.
        weight_share: f64,
        /// Time on the path above the mean of all locations, s.
        imbalance_s: f64,
        /// Its part of what imbalance costs all locations, s.
        impact_s: f64,
    }
    /// Calls that waited because of a root cause.
    VictimRow / VictimColumns = "victims" {
        /// Root cause.
        root_cause: u32,
        /// Pattern.
        pattern: String,
        /// The call that waited.
        call: String,
        /// Source file of the call.
        file: Option<String>,
        /// Line of the call.
        line: Option<u32>,
        /// Function that makes the call.
        function: Option<String>,
        /// Frames, outermost first.
        frames: Option<String>,
        /// Ranks that waited, as ranges.
        ranks: String,
        /// Their waiting, s.
        severity_s: f64,
    }
}
